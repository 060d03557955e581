//! A flipped bit of a protected file changes nothing that a verb prints or writes: the result is the same, or an error. A
//! truncated file is an error for every verb.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use tercet::tet::File;

use super::support::TestDir;

/// Verbs with their arguments, and the file that each writes.
const VERBS: [(&str, &str); 46] = [
    ("tet info w.tet --all", ""),
    ("tet info w.tet --json", ""),
    ("tet outline w.tet", ""),
    ("tet verify w.tet --deep", ""),
    (r#"tet query {"dataset":"t2m","mean":[],"filter":{"is_not_null":true}} -t w.tet -x -q"#, ""),
    ("tet mean w.tet t2m --json", ""),
    ("tet mean w.tet t2m --over time --json", ""),
    ("tet mean w.tet t2m --sel station=C --json", ""),
    ("tet mean w.tet t2m --rolling time=2 --json", ""),
    ("tet mean w.tet t2m --where value>280 --json", ""),
    ("tet mean w.tet mask --json", ""),
    ("tet mean w.tet t2m --over time -o out.tet", "out.tet"),
    ("tet sum w.tet t2m --over station --json", ""),
    ("tet min w.tet t2m --json", ""),
    ("tet max w.tet t2m --json", ""),
    ("tet std w.tet t2m --json", ""),
    ("tet var w.tet t2m --json", ""),
    ("tet median w.tet t2m --json", ""),
    ("tet quantile w.tet t2m --q 0.3 --json", ""),
    ("tet histogram w.tet t2m --json", ""),
    ("tet count w.tet t2m --json", ""),
    ("tet product w.tet t2m --json", ""),
    ("tet argmin w.tet t2m --json", ""),
    ("tet argmax w.tet t2m --over time --json", ""),
    ("tet plot w.tet t2m", ""),
    ("tet extract w.tet t2m -o out.npy", "out.npy"),
    ("tet extract w.tet t2m -o out.raw", "out.raw"),
    ("tet extract w.tet t2m -o out.csv", "out.csv"),
    ("tet extract w.tet t2m -o out.json", "out.json"),
    ("tet extract w.tet t2m -s 1:3,2 --decode -o out.tet", "out.tet"),
    ("tet extract w.tet mask -o out.npy", "out.npy"),
    ("tet append w.tet --from new=row.npy", "w.tet"),
    ("tet append w.tet --from t2m=row.npy --along time", "w.tet"),
    ("tet drop w.tet mask", "w.tet"),
    ("tet set w.tet t2m units=C", "w.tet"),
    ("tet unset w.tet t2m units", "w.tet"),
    ("tet rename w.tet t2m temperature", "w.tet"),
    ("tet copy w.tet:t2m out.tet", "out.tet"),
    ("tet merge w.tet -o out.tet", "out.tet"),
    ("tet repack w.tet -o out.tet --zstd", "out.tet"),
    ("tet repair w.tet --salvage out.tet", "out.tet"),
    ("tercet info w.tet", ""),
    ("tercet hash w.tet", ""),
    ("tercet diff w.tet weather.tet", ""),
    ("tercet convert w.tet out.nc", "out.nc"),
    ("tercet convert w.tet out.npz", "out.npz"),
];

/// Verbs that read a search segment.
const SEGMENT_VERBS: [(&str, &str); 16] = [
    ("tatami search w.tatami memory", ""),
    ("tatami search w.tatami +memory-safety", ""),
    ("tatami search w.tatami title:lamp --rank bm25", ""),
    ("tatami search w.tatami saf* --rank native --explain", ""),
    ("tatami search w.tatami memroy~1 --snippet-bytes 0", ""),
    ("tatami search w.tatami +price:>=3 --facet tags", ""),
    ("tatami search w.tatami * --sort price:desc --facet lang", ""),
    ("tatami search w.tatami memory --where price<20", ""),
    ("tatami search w.tatami memory --expand", ""),
    ("tatami search w.tatami --like d3", ""),
    ("tatami search w.tatami --complete me", ""),
    ("tatami eval w.tatami --queries q.tsv --qrels r.txt", ""),
    ("tatami cat w.tatami", ""),
    ("tatami delete w.tatami --id d5 --json", ""),
    ("tatami merge w.tatami other.tatami -o out.tatami", "out.tatami"),
    ("tatami index w.tatami -o out.tatami --analyzer standard", "out.tatami"),
];

/// What a verb prints and writes.
#[derive(Debug, PartialEq)]
struct Outcome {
    stdout: String,
    written: Option<Vec<u8>>,
}

/// Runs a verb on these bytes. `Err` is the exit code of a failure.
fn attempt(dir: &TestDir, bytes: &[u8], (line, output): (&str, &str)) -> Result<Outcome, Option<i32>> {
    let (program, args) = line.split_once(' ').unwrap();
    let input = if program == "tatami" { "w.tatami" } else { "w.tet" };
    dir.write(input, bytes);
    if !output.is_empty() && output != input {
        let _ = std::fs::remove_file(dir.path(output));
    }
    let ran = match program {
        "tet" => dir.tet(args),
        "tatami" => dir.tatami(args),
        _ => dir.tercet(args),
    };
    if ran.code != Some(0) {
        return Err(ran.code);
    }
    let written = (!output.is_empty()).then(|| dir.read(output));
    Ok(Outcome { stdout: ran.stdout, written })
}

/// Some bits of a small file, among them bits of every chunk; every night all bits.
#[test]
fn no_flipped_bit_changes_what_a_verb_prints_or_writes() {
    let dir = TestDir::with_weather();
    assert_eq!(dir.tet("extract weather.tet t2m -s 0:1 -o row.npy").code, Some(0));
    let bytes = dir.read("weather.tet");
    let expected = VERBS.map(|verb| attempt(&dir, &bytes, verb));
    for ((line, _), outcome) in VERBS.iter().zip(&expected) {
        assert!(outcome.is_ok(), "{line}: {outcome:?}");
    }
    let all = tercet_testkit::cases(1) > 1;
    let mut offsets: BTreeSet<usize> = (0..bytes.len()).step_by(if all { 1 } else { 331 }).collect();
    let file = File::open(dir.path("weather.tet")).unwrap();
    for row in (0..file.chunk_count()).step_by(2) {
        offsets.insert(usize::try_from(file.row(row).unwrap().payload_offset).unwrap() + 1);
    }
    for offset in offsets {
        for bit in (0..8).filter(|bit| all || offset * 5 % 8 == *bit) {
            let mut damaged = bytes.clone();
            damaged[offset] ^= 1 << bit;
            for (verb, expected) in VERBS.iter().zip(&expected) {
                let what = format!("byte {offset}, bit {bit}: {}", verb.0);
                match attempt(&dir, &damaged, *verb) {
                    Ok(found) => assert_eq!(Ok(&found), expected.as_ref(), "{what}"),
                    Err(code) => assert!(matches!(code, Some(1..=9)), "{what}: exit code {code:?}"),
                }
            }
        }
    }
}

/// Some lengths of a small file; every night all lengths. Up to three bytes have no format: `tercet hash` takes them as they
/// are.
#[test]
fn no_verb_accepts_a_truncated_file() {
    let dir = TestDir::with_weather();
    assert_eq!(dir.tet("extract weather.tet t2m -s 0:1 -o row.npy").code, Some(0));
    let bytes = dir.read("weather.tet");
    let step = if tercet_testkit::cases(1) > 1 { 1 } else { bytes.len() / 24 };
    let lengths = (4..bytes.len()).step_by(step).chain([0, bytes.len() - 1]);
    for length in lengths {
        for verb in VERBS {
            let found = attempt(&dir, &bytes[..length], verb);
            assert!(
                matches!(found, Err(Some(1..=9))),
                "{length} of {} bytes: {}: {found:?}",
                bytes.len(),
                verb.0
            );
        }
    }
}

/// The same of a search segment with positions and columns. No hits are an answer, too.
#[test]
fn no_flipped_bit_changes_what_a_search_finds() {
    let dir = TestDir::new();
    let mut documents = String::new();
    for number in 0..12 {
        let text = ["memory safety without a collector", "safe memory is a matter of types", "a bright lamp"];
        let (text, lang) = (text[number % 3], ["en", "de"][number % 2]);
        let title = ["Desk lamp", "Memory"][number % 2];
        let _ = writeln!(
            documents,
            "{{\"id\":\"d{number}\",\"title\":\"{title}\",\"text\":\"{text} {number}\",\"lang\":\"{lang}\",\
             \"price\":{},\"tags\":[\"a\",\"t{lang}\"]}}",
            number * 3
        );
    }
    dir.write("d.jsonl", documents.as_bytes());
    dir.write("e.jsonl", b"{\"id\":\"e\",\"text\":\"memory\",\"lang\":\"fr\",\"price\":5,\"tags\":[]}\n");
    dir.write("q.tsv", b"1\tmemory safety\n2\tlamp\n");
    dir.write("r.txt", b"1 0 d0 1\n1 0 d6 1\n2 0 d2 1\n");
    for (input, output) in [("d.jsonl", "clean.tatami"), ("e.jsonl", "other.tatami")] {
        let made = dir.tatami(&format!("index {input} -o {output} --analyzer standard --positions"));
        assert_eq!(made.code, Some(0), "{}", made.stderr);
    }
    let bytes = dir.read("clean.tatami");
    let expected = SEGMENT_VERBS.map(|verb| attempt(&dir, &bytes, verb));
    for ((line, _), outcome) in SEGMENT_VERBS.iter().zip(&expected) {
        assert!(outcome.is_ok(), "{line}: {outcome:?}");
    }
    let all = tercet_testkit::cases(1) > 1;
    for offset in (0..bytes.len()).step_by(if all { 1 } else { 149 }) {
        for bit in (0..8).filter(|bit| all || offset * 5 % 8 == *bit) {
            let mut damaged = bytes.clone();
            damaged[offset] ^= 1 << bit;
            for (verb, expected) in SEGMENT_VERBS.iter().zip(&expected) {
                let what = format!("byte {offset}, bit {bit}: {}", verb.0);
                match attempt(&dir, &damaged, *verb) {
                    Ok(found) => assert_eq!(Ok(&found), expected.as_ref(), "{what}"),
                    // A search without hits ends with 1.
                    Err(code) => assert!(matches!(code, Some(2..=9)), "{what}: exit code {code:?}"),
                }
            }
        }
    }
}
