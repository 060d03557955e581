use insta::assert_snapshot;
use serde_json::Value;

use super::support::{TestDir, write_many_chunks};

fn with_cut_footer() -> TestDir {
    let dir = TestDir::with_weather();
    dir.damaged("weather.tet", "bad.tet", |bytes| {
        let end = bytes.len();
        bytes.truncate(end - 4);
    });
    dir
}

#[test]
fn a_plan_changes_nothing() {
    let dir = with_cut_footer();
    let before = dir.read("bad.tet");
    assert_snapshot!("plan_repairable", dir.tet("repair bad.tet").shot());
    assert_snapshot!("dry_run", dir.tet("repair bad.tet --apply footer_invalid --dry-run").shot());
    assert_eq!(dir.read("bad.tet"), before);
}

#[test]
fn a_footer_is_cut_off() {
    let dir = with_cut_footer();
    assert_snapshot!(dir.tercet("repair bad.tet --apply footer_invalid").shot());
    assert_eq!(dir.tet("verify -q bad.tet").code, Some(0));
}

#[test]
fn a_healthy_file_is_not_touched() {
    let dir = TestDir::with_weather();
    let before = dir.read("weather.tet");
    assert_snapshot!("plan_of_a_healthy_file", dir.tet("repair weather.tet").shot());
    assert_snapshot!("skipped", dir.tet("repair weather.tet --apply footer_invalid --apply nonsense").shot());
    assert_eq!(dir.read("weather.tet"), before);
}

#[test]
fn a_code_that_does_not_help_is_found_bad() {
    let dir = TestDir::with_weather();
    dir.with_damaged_chunk("bad.tet");
    let before = dir.read("bad.tet");
    let ran = dir.tet("repair bad.tet --apply footer_invalid");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), "verification still fails\n"));
    assert!(ran.stdout.contains("skipped") && ran.stdout.contains("verify_after: failed"), "{}", ran.stdout);
    assert_eq!(dir.read("bad.tet"), before);
}

#[test]
fn json_reports() {
    let dir = with_cut_footer();
    let told: Value = serde_json::from_str(&dir.tet("repair bad.tet --json").stdout).unwrap();
    assert_eq!((&told["mode"], &told["actions"][0]["state"]), (&"plan".into(), &"repairable".into()));
    let told: Value =
        serde_json::from_str(&dir.tet("repair bad.tet --json --apply footer_invalid").stdout).unwrap();
    assert_eq!((&told["mode"], &told["after"]["ok"]), (&"apply".into(), &true.into()));
}

#[test]
fn good_chunks_are_salvaged() {
    let dir = TestDir::with_weather();
    dir.with_damaged_chunk("bad.tet");
    assert_snapshot!("salvage", dir.tet("repair bad.tet --salvage good.tet --fill nan").shot());
    assert_eq!(dir.tet("verify -q --deep good.tet").code, Some(0));
    assert_snapshot!("salvage_exists", dir.tet("repair bad.tet --salvage good.tet").shot());
    let ran = dir.tet("repair bad.tet --salvage good.tet --force");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("missing chunks (reading them is an error)"), "{}", ran.stdout);
    let told: Value =
        serde_json::from_str(&dir.tet("repair bad.tet --salvage more.tet --json").stdout).unwrap();
    assert_eq!((&told["kept"], &told["holes"][0]["dataset"]), (&4.into(), &"t2m".into()));
}

/// The reason names the dataset, so it is told as it is.
#[test]
fn what_is_lost_is_told_once() {
    let dir = TestDir::new();
    write_many_chunks(&dir.path("good.tet"), 3);
    // More tiles than the file has rows: the extent of the only dataset follows its name.
    dir.damaged("good.tet", "bad.tet", |bytes| {
        let name = bytes.windows(4).position(|word| word == b"many").unwrap();
        let extent = (name..bytes.len()).find(|&at| bytes[at..].starts_with(&3u64.to_le_bytes())).unwrap();
        bytes[extent..extent + 8].copy_from_slice(&(1u64 << 40).to_le_bytes());
    });
    let ran = dir.tet("repair bad.tet --salvage out.tet");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), "no chunk could be kept\n"), "{}", ran.stdout);
    let lost: Vec<&str> = ran.stdout.lines().filter(|line| line.starts_with("lost:")).collect();
    let [lost] = lost[..] else { panic!("one line expected: {}", ran.stdout) };
    assert!(lost.starts_with("lost: dataset `many` "), "{lost}");
    assert_eq!(lost.matches("dataset `").count(), 1, "{lost}");
}

#[test]
fn a_file_is_not_salvaged_onto_itself() {
    let dir = TestDir::with_weather();
    dir.with_damaged_chunk("bad.tet");
    let before = dir.read("bad.tet");
    for args in ["repair bad.tet --salvage bad.tet", "repair bad.tet --salvage ./bad.tet --force"] {
        assert_eq!(dir.tet(args).code, Some(8), "{args}");
    }
    assert_eq!(dir.read("bad.tet"), before);
}

#[test]
fn a_fill_must_be_a_number_of_the_damaged_array() {
    let dir = TestDir::with_weather();
    // The mask is an array of bytes; its only chunk is the last payload.
    let file = tercet::tet::File::open(dir.path("weather.tet")).unwrap();
    let at = file.dataset("mask").unwrap().chunk_ref(&[0]).unwrap().span.start();
    dir.damaged("weather.tet", "bad.tet", |bytes| bytes[usize::try_from(at).unwrap()] ^= 1);
    let ran = dir.tet("repair bad.tet --salvage good.tet --fill nan");
    assert_eq!(ran.code, Some(8), "{}", ran.stderr);
    assert!(!dir.path("good.tet").exists());
    assert_eq!(dir.tet("repair bad.tet --salvage good.tet --fill 255").code, Some(0));
}
