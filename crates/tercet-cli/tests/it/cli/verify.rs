use insta::assert_snapshot;
use serde_json::Value;

use super::support::{TestDir, write_many_chunks};

#[test]
fn a_valid_file() {
    assert_snapshot!(TestDir::with_weather().tet("verify weather.tet").snapshot());
}

#[test]
fn a_damaged_chunk_is_named() {
    let dir = TestDir::with_weather();
    dir.with_damaged_chunk("bad.tet");
    assert_snapshot!(dir.tet("verify bad.tet").snapshot());
}

#[test]
fn an_unparsable_file() {
    let dir = TestDir::with_weather();
    dir.damaged("weather.tet", "bad.tet", |bytes| bytes[4] = 9);
    assert_snapshot!(dir.tet("verify bad.tet").snapshot());
    let line = dir.tet("verify -q bad.tet");
    assert_eq!(line.stdout, "path=bad.tet status=failed datasets=? chunks=? recommendations=1\n");
    assert_eq!((line.code, line.stderr.as_str()), (Some(1), "verification failed\n"));
}

/// A limit of the reader says nothing about the file.
#[test]
fn a_limit_is_not_damage() {
    let dir = TestDir::with_weather();
    dir.damaged("weather.tet", "cut.tet", |bytes| bytes.truncate(bytes.len() - 1));
    assert_eq!(dir.tet("extract weather.tet mask -o a.npy").code, Some(0));
    for args in [
        "verify weather.tet",
        "verify --deep weather.tet",
        "verify weather.tet --repair",
        "repair weather.tet",
        "repair cut.tet --apply footer_invalid",
        "repair cut.tet --apply footer_invalid --dry-run",
        "repair weather.tet --apply recompute_checksums",
        "repair weather.tet -o copy.tet",
        "drop weather.tet mask",
        "append weather.tet --from a=a.npy",
    ] {
        let before = dir.read("weather.tet");
        let output = dir.tet(&format!("{args} --max-memory 64"));
        assert_eq!((output.code, output.stdout.as_str()), (Some(6), ""), "{}", output.stderr);
        assert!(
            output.stderr.contains("hint: raise the limit with `--max-memory SIZE`"),
            "{}",
            output.stderr
        );
        assert_eq!(dir.read("weather.tet"), before, "{args}");
    }
}

#[test]
fn one_line_and_json() {
    let dir = TestDir::with_weather();
    let output = dir.tercet("verify -q weather.tet");
    assert_eq!(output.stdout, "path=weather.tet status=ok datasets=2 chunks=5 recommendations=0\n");
    assert_eq!(output.code, Some(0));
    let json: Value = serde_json::from_str(&dir.tet("verify --json weather.tet").stdout).unwrap();
    assert_eq!(json["ok"], true);
    assert_eq!(json["summary"]["chunk_count"], 5);
    for finding in json["findings"].as_array().unwrap() {
        assert_eq!(finding["ok"], true, "{finding}");
    }
}

#[test]
fn deep_decodes_every_chunk() {
    let dir = TestDir::new();
    write_many_chunks(&dir.path("many.tet"), 200);
    let quick = dir.tet("verify many.tet").stdout;
    assert!(quick.contains("chunk_decode_skipped   warn"), "{quick}");
    assert!(quick.contains("deep_decode=false"), "{quick}");
    let deep = dir.tet("verify many.tet --deep").stdout;
    assert!(!deep.contains("chunk_decode_skipped") && deep.contains("deep_decode=true"), "{deep}");
}

#[test]
fn verify_can_repair() {
    let dir = TestDir::with_weather();
    dir.damaged("weather.tet", "bad.tet", |bytes| {
        let end = bytes.len();
        bytes.truncate(end - 4);
    });
    assert_eq!(dir.tet("verify bad.tet -q").code, Some(1));
    assert_snapshot!(dir.tet("verify bad.tet -q --repair").snapshot());
    assert_eq!(dir.tet("verify bad.tet -q").code, Some(0));
}

#[test]
fn an_irreparable_file_is_not_changed() {
    let dir = TestDir::with_weather();
    dir.with_damaged_chunk("bad.tet");
    let before = dir.read("bad.tet");
    let output = dir.tet("verify bad.tet -q --repair");
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("no automatic repair available"), "{}", output.stderr);
    assert_eq!(dir.read("bad.tet"), before);
}
