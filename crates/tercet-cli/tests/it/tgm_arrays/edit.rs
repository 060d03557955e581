//! `set`, `merge`, `split` and `reshuffle` copy stored values unchanged.

use serde_json::Value as Json;
use tercet::tgm::{self, DType, DataObjectDescriptor, EncodeOptions, GlobalMetadata};

use super::repack::{arrays, dir, metadata};
use super::{TestDir, run_command};

/// Hashes and stored bytes of every object of a file.
fn stored(dir: &TestDir, name: &str) -> Vec<(Option<u64>, Vec<u8>)> {
    let file = tgm::File::open(dir.path(name)).unwrap();
    let mut all = Vec::new();
    for message in file.messages().unwrap() {
        let message = message.unwrap();
        for object in message.objects() {
            let object = object.unwrap();
            all.push((object.frame().hash(), object.stored().unwrap().to_vec()));
        }
    }
    all
}

fn part(dir: &TestDir, name: &str, number: u64) -> Vec<u8> {
    tgm::File::open(dir.path(name)).unwrap().read_message(number).unwrap().to_vec()
}

#[test]
fn set_changes_only_the_given_keys() {
    let dir = dir();
    let before = stored(&dir, "run.tgm");
    let result = dir.ok("set -s mars.class=rd,extra.mars.step=7 run.tgm new.tgm -w mars.step=6/12");
    assert_eq!((result.out.as_str(), result.err.as_str()), ("new.tgm: 2 message(s) changed, 1 copied\n", ""));
    dir.ok("validate --full new.tgm");
    assert!(stored(&dir, "new.tgm") == before, "masks, hashes and all");
    assert!(part(&dir, "new.tgm", 2) == part(&dir, "run.tgm", 2), "copied byte for byte");
    let (old, new) = (metadata(&dir, "run.tgm"), metadata(&dir, "new.tgm"));
    assert_eq!(old[2], new[2]);
    for (old, new) in old.iter().zip(&new).take(2) {
        assert_eq!(new.get("mars.class"), Some(&"rd".into()));
        assert_eq!(new.get("extra.mars.step"), Some(&7.into()), "numbers stay numbers");
        assert_eq!(new.base[0]["name"], old.base[0]["name"]);
    }
    let result = dir.ok(
        "set -s extra.l=[1,2],extra.n=7.5,extra.b=true,extra.code=130.10 --set-str extra.t=x,y --set-str extra.id=007 \
         run.tgm new.tgm --force",
    );
    assert_eq!(
        result.err,
        "note: `extra.code` is stored as the string \"130.10\": as a number it would lose digits\n"
    );
    let new = metadata(&dir, "new.tgm").remove(0);
    let expected = [
        ("b", true.into()),
        ("code", "130.10".into()),
        ("id", "007".into()),
        ("n", 7.5.into()),
        ("t", "x,y".into()),
    ];
    for (key, value) in expected {
        assert_eq!(new.extra[key], value, "{key}");
    }
    assert_eq!(new.extra["l"].printed(), "[1,2]");
    // A number that was set is found by a numeric comparison.
    assert_eq!(dir.ok("get new.tgm -p n -w n>=7.5 -n 1").out, "7.5\n");
    let result = dir.ok("set -s objects.0.quality=good run.tgm new.tgm --force --json -w mars.step=6");
    let json: Json = serde_json::from_str(&result.out).unwrap();
    assert_eq!((&json["messages"], &json["changed"], &json["copied"]), (&3.into(), &1.into(), &2.into()));
    let message = dir.message("new.tgm", 0);
    assert_eq!(message.object(0).unwrap().descriptor().params["quality"], "good".into());
}

#[test]
fn a_rejected_set_leaves_no_file() {
    let dir = dir();
    let mut bad = dir.read("run.tgm");
    let payload = dir.message("run.tgm", 1).object(0).unwrap().payload_span();
    bad[payload.start() as usize + 3] ^= 1;
    dir.write("bad.tgm", &bad);
    dir.write("old.tgm", "old");
    for (args, code, message) in [
        ("-s shape=x run.tgm new.tgm", 8, "`shape`: `shape` describes the stored bytes and cannot be set"),
        (
            "-s objects.0.zstd_level=9 run.tgm new.tgm",
            8,
            "hint: change encoding, filter or compression with `tgm repack`",
        ),
        ("-s _reserved_.uuid=x run.tgm new.tgm", 8, "`_reserved_` is reserved for the library"),
        (
            "-s extra.mars.step.x=1 run.tgm new.tgm",
            8,
            "run.tgm: `extra.mars.step.x` cannot be set: `_extra_.mars.step`",
        ),
        ("-s objects.1.a=1 run.tgm new.tgm", 8, "run.tgm: message 1 has no object 1: it holds 1"),
        ("-s a=1,a=2 run.tgm new.tgm", 8, "`a` and `a` cannot both be set"),
        ("-s a run.tgm new.tgm", 8, "expected KEY=VALUE, found `a`"),
        ("-s a=1,b run.tgm new.tgm", 8, "expected KEY=VALUE, found `b`"),
        ("run.tgm new.tgm", 2, "--set <KEY=VALUE,…>"),
        ("-s a=1 run.tgm old.tgm", 8, "old.tgm: file exists\n  hint: `--force` replaces it"),
        ("-s a=1 run.tgm run.tgm --force", 8, "input and output are the same file"),
        ("-s a=1 bad.tgm new.tgm", 5, "message 1 › object 0"),
        (
            "-s a=1 -w mars.step=6 bad.tgm new.tgm",
            5,
            "hint: salvage the intact parts with `tgm repair FILE -o NEW`",
        ),
        ("-s a=1 none.tgm new.tgm", 3, "none.tgm: cannot open"),
        ("-s a=1 run.tgm - --json", 8, "cannot write both messages and JSON to standard output"),
    ] {
        dir.refused(&format!("set {args}"), code, message);
    }
}

#[test]
fn merge_puts_all_objects_into_one_message() {
    let dir = dir();
    dir.ok("create b.tgm --from i=i.npy --meta mars.step=99 --meta centre=98");
    let result = dir.ok("merge run.tgm b.tgm -o all.tgm");
    assert_eq!(result.out, "Merged 5 objects from 2 file(s) into all.tgm (strategy: first)\n");
    let before = [stored(&dir, "run.tgm"), stored(&dir, "b.tgm")].concat();
    assert!(stored(&dir, "all.tgm") == before);
    dir.ok("validate --full all.tgm");
    let all = metadata(&dir, "all.tgm");
    assert_eq!(all.len(), 1);
    let names: Vec<_> = all[0].base.iter().map(|entry| entry["name"].printed()).collect();
    assert_eq!(names, ["t", "i", "n", "c", "i"]);
    assert_eq!(all[0].get("mars.step"), Some(&6.into()));
    dir.ok("merge run.tgm b.tgm -o last.tgm -s last");
    assert_eq!(metadata(&dir, "last.tgm")[0].get("mars.step"), Some(&99.into()));
    let conflict =
        "`mars` is `{\"step\":12}` in message 1 of run.tgm, but `{\"step\":6}` in message 0 of run.tgm";
    dir.refused("merge run.tgm b.tgm -o none.tgm --strategy error", 8, conflict);
    let result = dir.ok("merge b.tgm -o one.tgm --strategy error --json");
    let json: Json = serde_json::from_str(&result.out).unwrap();
    assert_eq!(
        (&json["objects"], &json["files"], &json["strategy"]),
        (&1.into(), &1.into(), &"error".into())
    );
    // Reproducible output, also through pipes.
    dir.ok("merge run.tgm -o a.tgm --reproducible");
    let mut command = dir.command();
    command.args("merge - -o - --reproducible".split(' ')).write_stdin(dir.read("run.tgm"));
    assert!(standard_output(&mut command) == dir.read("a.tgm"));
    dir.refused("merge run.tgm -o none.tgm -s other", 2, "possible values: first, last, error");
    dir.refused("merge run.tgm -o run.tgm --force", 8, "input and output are the same file");
}

fn standard_output(command: &mut assert_cmd::Command) -> Vec<u8> {
    let result = run_command(command);
    assert_eq!((result.code, result.err.as_str()), (0, ""));
    result.bytes
}

/// `merge` takes more files than a process may have open.
#[cfg(unix)]
#[test]
fn merge_is_not_limited_by_open_files() {
    let dir = TestDir::new();
    let descriptor = DataObjectDescriptor::new(DType::U8, [3]);
    let objects = [(&descriptor, &[1, 2, 3][..])];
    let message = tgm::encode_message(&GlobalMetadata::default(), &objects, &EncodeOptions::new()).unwrap();
    let names: Vec<String> = (0..80).map(|number| format!("{number}.tgm")).collect();
    for name in &names {
        dir.write(name, &message);
    }
    let program = env!("CARGO_BIN_EXE_tgm");
    let args = format!("ulimit -n 40; exec {program} merge {} -o all.tgm", names.join(" "));
    let mut shell = assert_cmd::Command::new("sh");
    let output = run_command(shell.current_dir(dir.0.path()).args(["-c", &args]));
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(output.out.starts_with("Merged 80 objects from 80 file(s)"), "{}", output.out);
}

#[test]
fn split_writes_one_file_per_object() {
    let dir = dir();
    let result = dir.ok("split run.tgm -o part.tgm");
    assert_eq!((result.out.as_str(), result.err.as_str()), ("Split into 4 message(s)\n", ""));
    let (before, described) = (stored(&dir, "run.tgm"), metadata(&dir, "run.tgm"));
    let entries: Vec<_> =
        described.iter().flat_map(|all| all.base.clone().into_iter().map(|e| (e, &all.extra))).collect();
    for (number, (entry, extra)) in entries.iter().enumerate() {
        let name = format!("part_{number:04}.tgm");
        dir.ok(&format!("validate --full {name}"));
        assert!(stored(&dir, &name) == before[number..=number], "{name}");
        let found = metadata(&dir, &name).remove(0);
        assert_eq!((&found.base[..], &found.extra), (&[entry.clone()][..], *extra), "{name}");
    }
    assert!(dir.read("part_0002.tgm") == part(&dir, "run.tgm", 1), "one object: byte for byte");
    std::fs::create_dir(dir.path("parts")).unwrap();
    let result = dir.ok("split run.tgm -o parts/[index]x.tgm --json");
    let json: Json = serde_json::from_str(&result.out).unwrap();
    assert_eq!((&json["messages"], &json["files"][3]), (&4.into(), &"parts/0003x.tgm".into()));
    // One existing file is an error, and nothing is written.
    std::fs::create_dir(dir.path("taken")).unwrap();
    dir.write("taken/p_0003.tgm", "old");
    dir.refused("split run.tgm -o taken/p.tgm", 8, "taken/p_0003.tgm: file exists");
    assert_eq!(std::fs::read_dir(dir.path("taken")).unwrap().count(), 1);
    dir.ok("split run.tgm -o taken/p.tgm --force");
    assert_eq!(std::fs::read_dir(dir.path("taken")).unwrap().count(), 4);
    for output in ["-", "/dev/stdout", "/dev/fd/1"] {
        let args = format!("split run.tgm -o {output}");
        dir.refused(&args, 8, "cannot write several files to standard output");
    }
}

#[test]
fn split_numbers_may_exceed_four_digits() {
    let dir = TestDir::new();
    let descriptor = DataObjectDescriptor::new(DType::U8, [2]);
    let payloads: Vec<[u8; 2]> = (0..10_003u16).map(u16::to_le_bytes).collect();
    let objects: Vec<(&DataObjectDescriptor, &[u8])> =
        payloads.iter().map(|p| (&descriptor, &p[..])).collect();
    let bytes = tgm::encode_message(&GlobalMetadata::default(), &objects, &EncodeOptions::new()).unwrap();
    dir.write("many.tgm", bytes);
    // All names are checked before the first file is written.
    dir.write("p_10002.tgm", "old");
    dir.refused("split many.tgm -o p.tgm", 8, "p_10002.tgm: file exists");
    let result = dir.ok("merge many.tgm many.tgm -o twice.tgm");
    assert_eq!(result.out, "Merged 20006 objects from 2 file(s) into twice.tgm (strategy: first)\n");
    for number in [0, 9999, 10_002] {
        assert_eq!(dir.values("twice.tgm", 0, 10_003 + number), payloads[number as usize]);
    }
}

#[test]
fn reshuffle_moves_the_index_to_the_header() {
    let dir = dir();
    let result = dir.ok("reshuffle run.tgm -o new.tgm");
    assert_eq!(result.out, "Reshuffled 3 message(s) from run.tgm to new.tgm\n");
    dir.ok("validate --full new.tgm");
    assert!(arrays(&dir, "new.tgm") == arrays(&dir, "run.tgm"));
    assert!(stored(&dir, "new.tgm") == stored(&dir, "run.tgm"));
    assert_eq!(metadata(&dir, "new.tgm"), metadata(&dir, "run.tgm"));
    for number in [0, 2] {
        assert!(part(&dir, "new.tgm", number) == part(&dir, "run.tgm", number), "header style already");
    }
    let kinds: Vec<_> =
        dir.message("new.tgm", 1).layout().unwrap().frames.iter().map(|frame| frame.kind.name()).collect();
    assert_eq!(kinds, ["header_metadata", "header_index", "header_hash", "ntensor"]);
    dir.ok("reshuffle new.tgm -o again.tgm");
    assert!(dir.read("again.tgm") == dir.read("new.tgm"));
    let result = dir.ok("reshuffle run.tgm -o third.tgm --json");
    let json: Json = serde_json::from_str(&result.out).unwrap();
    assert_eq!((&json["messages"], &json["changed"]), (&3.into(), &1.into()));
}

#[test]
fn merging_no_messages_is_an_error() {
    let dir = TestDir::new();
    dir.write("empty.tgm", b"");
    dir.refused("merge empty.tgm -o all.tgm", 4, "empty.tgm: contains no messages");
}
