//! `validate`: output streams and exit code.

use serde_json::{Value, json};

use super::sample::{dir, with_damaged_metadata, with_damaged_payload};
use crate::cli::support::TestDir;

#[test]
fn a_valid_file() {
    let dir = dir();
    for depth in ["", "--quick", "--checksum", "--full", "--canonical"] {
        let output = dir.tgm(&format!("validate {depth} run.tgm"));
        let hashes = if depth == "--quick" { "" } else { ", hash verified" };
        let expected = format!("run.tgm: OK (3 messages, 4 objects{hashes})\n");
        assert_eq!(
            (output.code, output.stdout, output.stderr),
            (Some(0), expected, String::new()),
            "{depth}"
        );
    }
    dir.write("none.tgm", b"");
    assert_eq!(dir.tgm("validate none.tgm").stdout, "none.tgm: OK (0 messages, 0 objects)\n");
}

#[test]
fn problems_are_reported_on_standard_error() {
    let dir = dir();
    with_damaged_payload(&dir, "bad.tgm");
    dir.damaged("bad.tgm", "worse.tgm", |bytes| bytes.extend(b"junk"));
    let output = dir.tgm("validate worse.tgm run.tgm");
    assert_eq!(output.code, Some(1));
    assert_eq!(output.stdout, "run.tgm: OK (3 messages, 4 objects, hash verified)\n");
    let len = dir.read("run.tgm").len();
    let lines: Vec<&str> = output.stderr.lines().collect();
    let [unrecognized, hash, verdict, summary] = lines[..] else { panic!("{}", output.stderr) };
    let bytes = format!("worse.tgm: FAILED — unrecognized bytes {len}..{}: not part of a message", len + 4);
    assert_eq!(unrecognized, bytes);
    // The same numbers as in other commands.
    assert!(hash.starts_with("worse.tgm: FAILED — message 1 › object 0 (bytes "), "{hash}");
    let dump = dir.tgm("dump bad.tgm").stderr;
    assert!(dump.contains("message 1 › object 0 (bytes "), "{dump}");
    assert_eq!(verdict, "worse.tgm: FAILED (2 errors, 3 messages, 4 objects)");
    assert!(summary.starts_with("2 files, ") && summary.ends_with(": 1 ok, 1 failed"), "{summary}");
    assert_eq!(dir.tgm("validate --quick bad.tgm").code, Some(0), "the structure is valid");
    let one = dir.tgm("validate --checksum bad.tgm").stderr;
    assert!(one.ends_with("bad.tgm: FAILED (1 error, 3 messages, 4 objects)\n"), "{one}");
}

#[test]
fn damaged_metadata_is_detected() {
    let dir = dir();
    with_damaged_metadata(&dir, "bad.tgm");
    let output = dir.tgm("validate bad.tgm");
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("bad.tgm: FAILED — message 0 (bytes "), "{}", output.stderr);
}

#[test]
fn json_has_every_finding() {
    let dir = dir();
    with_damaged_payload(&dir, "bad.tgm");
    dir.damaged("bad.tgm", "worse.tgm", |bytes| bytes.extend(b"junk"));
    let output = dir.tgm("validate --json run.tgm worse.tgm");
    assert_eq!((output.code, output.stderr.as_str()), (Some(1), ""));
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    let summary = |file: &Value| {
        ["file", "status", "messages", "objects", "hash_verified"].map(|key| file[key].clone())
    };
    assert_eq!(json!(summary(&json[0])), json!(["run.tgm", "ok", 3, 4, true]));
    assert_eq!(json!(summary(&json[1])), json!(["worse.tgm", "failed", 3, 4, false]));
    assert_eq!(json[1]["file_issues"][0]["length"], 4);
    let issue = &json[1]["message_reports"][1]["issues"][0];
    let facts = ["code", "level", "severity", "object_index"].map(|key| issue[key].clone());
    assert_eq!(json!(facts), json!(["hash_mismatch", "integrity", "error", 0]));
    assert_eq!(json[1]["message_reports"][0]["issues"], json!([]));
}

#[test]
fn a_file_of_another_format_fails_validation() {
    let dir = TestDir::new();
    dir.write("text.tgm", b"this is no such file, it only has the name of one");
    let output = dir.tgm("validate text.tgm");
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
    assert!(
        output.stderr.ends_with("text.tgm: FAILED (1 error, 0 messages, 0 objects)\n"),
        "{}",
        output.stderr
    );
}
