//! `repair` writes intact objects to a new file and reports losses.

use serde_json::Value as Json;

use super::TestDir;
use super::repack::{arrays, dir};

/// Changes one byte of an object of `run.tgm`.
fn damage_object(dir: &TestDir, message: u64, object: u64) {
    let mut bytes = dir.read("run.tgm");
    let payload = dir.message("run.tgm", message).object(object).unwrap().payload_span();
    bytes[payload.start() as usize + 2] ^= 0x20;
    dir.write("bad.tgm", bytes);
}

#[test]
fn intact_objects_are_kept() {
    let dir = dir();
    damage_object(&dir, 0, 1);
    let result = dir.tgm("repair bad.tgm -o good.tgm");
    assert_eq!((result.code, result.err.as_str()), (1, ""));
    let lines: Vec<&str> = result.out.lines().collect();
    assert_eq!(lines[..2], ["from: bad.tgm", "into: good.tgm"]);
    assert!(lines[2].starts_with("kept: 3 message(s) with 3 object(s), "), "{}", result.out);
    assert!(lines[2].ends_with("; 2 message(s) were intact"), "{}", result.out);
    assert!(lines[3].starts_with("message 0 (bytes 0.."), "{}", result.out);
    assert!(lines[3].ends_with("): damaged, 1 object(s) kept, now message 0"), "{}", result.out);
    assert!(
        lines[4].starts_with("  lost: object 1 (bytes ") && lines[4].contains(" expected, "),
        "{}",
        result.out
    );
    dir.ok("validate --full good.tgm");
    let mut expected = arrays(&dir, "run.tgm");
    expected.remove(1);
    assert!(arrays(&dir, "good.tgm") == expected);
    // Intact messages are copied byte for byte.
    let (whole, good) = (dir.read("run.tgm"), dir.read("good.tgm"));
    let first = dir.message("run.tgm", 0).span().end() as usize;
    assert!(good.ends_with(&whole[first..]));
    assert_eq!(dir.ok("get -p name good.tgm").out, "t\nn\nc\n");
    // The output needs no repair.
    let result = dir.ok("repair good.tgm");
    assert!(result.out.ends_with("the file is intact\n"), "{}", result.out);
}

#[test]
fn a_lossless_repair_exits_0() {
    let dir = dir();
    let whole = dir.read("run.tgm");
    // A wrong length in the last postamble, and unrecognized bytes on both sides.
    let mut bytes = whole.clone();
    let at = bytes.len() - 20;
    bytes[at] ^= 1;
    dir.write("bad.tgm", [b"junk", &bytes[..], b"more junk"].concat());
    dir.refused("copy bad.tgm copy.tgm", 4, "messages may be lost");
    dir.refused("copy bad.tgm copy.tgm --allow-gaps", 5, "postamble");
    let result = dir.ok("repair bad.tgm -o good.tgm --json");
    let json: Json = serde_json::from_str(&result.out).unwrap();
    assert_eq!((&json["has_losses"], &json["output"]), (&false.into(), &"good.tgm".into()));
    assert_eq!((&json["intact_messages"], &json["kept_objects"]), (&2.into(), &4.into()));
    assert_eq!(json["messages"][0]["state"], "repaired");
    assert_eq!(json["unrecognized"][0], serde_json::json!({ "start": 0, "end": 4 }));
    assert!(arrays(&dir, "good.tgm") == arrays(&dir, "run.tgm"));
}

#[test]
fn a_truncated_file_keeps_its_first_messages() {
    let dir = dir();
    let whole = dir.read("run.tgm");
    let last = dir.message("run.tgm", 2).span();
    dir.write("bad.tgm", &whole[..last.start() as usize + 100]);
    let result = dir.tgm("repair bad.tgm -o good.tgm");
    assert_eq!(result.code, 1, "{}", result.err);
    assert!(dir.read("good.tgm") == whole[..last.start() as usize]);
    assert!(result.out.contains("message 2 (bytes "), "{}", result.out);
    assert!(result.out.contains("  lost: the metadata (bytes "), "{}", result.out);
}

/// The file is standard output, and the report standard error.
#[test]
fn the_repaired_file_can_be_standard_output() {
    let dir = dir();
    damage_object(&dir, 0, 1);
    let file = dir.tgm("repair bad.tgm -o good.tgm --reproducible");
    for output in ["-", "/dev/stdout"] {
        let piped = dir.tgm(&format!("repair bad.tgm -o {output} --reproducible"));
        assert_eq!(piped.code, 1, "{}", piped.err);
        assert!(piped.bytes == dir.read("good.tgm"));
        assert_eq!(piped.err, file.out.replace("into: good.tgm", "into: standard output"));
    }
    dir.refused("repair bad.tgm -o - --json", 8, "cannot write both the file and JSON to standard output");
}

/// An exceeded limit is not damage, but damage is reported next to it.
#[test]
fn a_limit_is_not_damage() {
    let dir = dir();
    for args in ["validate --full run.tgm --max-memory 4KiB", "repair run.tgm --max-memory 64B"] {
        let result = dir.tgm(args);
        assert_eq!(result.code, 6, "{args}: {}{}", result.out, result.err);
        assert!(result.err.contains("hint: raise the limit with `--max-memory SIZE`"), "{}", result.err);
        assert!(!result.err.contains("FAILED") && !result.out.contains("lost"), "{}", result.err);
    }
    damage_object(&dir, 0, 1);
    let result = dir.tgm("validate --full bad.tgm --max-memory 4KiB");
    assert_eq!(result.code, 1, "{}", result.err);
    assert!(result.err.contains("WARNING — message 0 › object 0 (bytes "), "{}", result.err);
    assert!(result.err.contains("FAILED — message 0 › object 1 (bytes "), "{}", result.err);
}

#[test]
fn existing_files_need_force() {
    let dir = dir();
    damage_object(&dir, 2, 0);
    dir.write("old.tgm", "old");
    dir.refused("repair bad.tgm -o old.tgm", 8, "old.tgm: file exists\n  hint: `--force` replaces it");
    dir.refused("repair bad.tgm -o bad.tgm --force", 8, "bad.tgm: input and output");
    dir.refused("repair none.tgm -o new.tgm", 3, "none.tgm: cannot open");
    assert_eq!(dir.tgm("repair bad.tgm -o old.tgm --force").code, 1);
    // Without an output path nothing is written.
    let names = dir.names();
    assert_eq!(dir.tgm("repair bad.tgm").code, 1);
    assert_eq!(dir.names(), names);
    dir.write("text.tgm", "TENSOGRM and nothing else of a message");
    let result = dir.tgm("repair text.tgm -o new.tgm");
    assert_eq!((result.code, result.err.as_str()), (1, "nothing could be kept; no file written\n"));
    assert!(result.out.contains("not part of a message, but they contain parts of one"), "{}", result.out);
    assert_eq!(dir.names().iter().filter(|name| *name == "new.tgm").count(), 0);
}

#[test]
fn repair_is_deterministic() {
    let dir = dir();
    damage_object(&dir, 0, 0);
    for name in ["a.tgm", "b.tgm"] {
        assert_eq!(dir.tgm(&format!("repair bad.tgm -o {name} --reproducible")).code, 1);
    }
    assert!(dir.read("a.tgm") == dir.read("b.tgm"));
    let mut command = dir.command();
    command.args(["repair", "-", "-o", "c.tgm", "--reproducible"]).write_stdin(dir.read("bad.tgm"));
    assert_eq!(super::run_command(&mut command).code, 1);
    assert!(dir.read("c.tgm") == dir.read("a.tgm"));
}

#[test]
fn a_file_without_intact_objects_exits_1() {
    let dir = TestDir::new();
    dir.write("junk.tgm", b"junkjunkjunk");
    for args in ["repair junk.tgm", "repair junk.tgm -o new.tgm"] {
        assert_eq!(dir.tgm(args).code, 1, "{args}");
    }
    assert_eq!(dir.names(), ["junk.tgm"]);
}
