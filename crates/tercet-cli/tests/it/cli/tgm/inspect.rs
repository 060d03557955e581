//! `info`, `dump`, `outline`, `doctor`.

use insta::assert_snapshot;
use serde_json::{Value, json};
use tercet::tgm;

use super::sample::{dir, options, write_texts, write_value};
use crate::cli::support::run;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn info_counts_messages() {
    let dir = dir();
    let len = dir.read("run.tgm").len();
    dir.write("none.tgm", b"");
    let output = dir.tgm("info run.tgm none.tgm");
    let expected = format!(
        "File: run.tgm\n  Messages: 3\n  Size: {len} bytes\n  Version: 3\n  \
         Objects: 4, 74 B stored, 74 B decoded\n    (no name): 3 × float32 2×3\n    quality: 1 × int16 scalar\n  \
         Keys:\n    centre: ecmf\n    mars.param: 2t, msl, 10u\n    mars.step: 0, 6, 12\n    scale: 1\n  \
         Written: 2023-11-14T22:13:20Z\n  Integrity: all objects have hashes, no gaps\n\n\
         File: none.tgm\n  Messages: 0\n  Size: 0 bytes\n\n"
    );
    assert_eq!((output.code, output.stdout), (Some(0), expected));
    assert!(
        output.stderr.starts_with("2 files, ") && output.stderr.ends_with(": 2 ok\n"),
        "{}",
        output.stderr
    );
    let mut json = parsed(&dir.tgm("info --json run.tgm none.tgm").stdout);
    let contents = json[0].as_object_mut().unwrap().remove("contents").unwrap();
    assert_eq!((&contents["objects"], &contents["stored_bytes"]), (&4.into(), &74.into()));
    assert_eq!(contents["keys"][2]["values"], json!([0, 6, 12]));
    json[1].as_object_mut().unwrap().remove("contents");
    assert_eq!(
        json,
        json!([
            { "file": "run.tgm", "messages": 3, "size": len, "version": 3, "unrecognized": [], "gaps": [] },
            { "file": "none.tgm", "messages": 0, "size": 0, "version": null, "unrecognized": [], "gaps": [] },
        ])
    );
}

#[test]
fn dump_prints_all_fields() {
    let dir = dir();
    assert_snapshot!("tgm_dump", dir.tgm("dump run.tgm").snapshot());
    assert_snapshot!("tgm_dump_json", dir.tgm("dump -j -w mars.param=msl run.tgm").snapshot());
    let all = dir.tgm("dump --reserved -w mars.param=2t run.tgm").stdout;
    let stamp = "  reserved:\n    encoder: {\"name\":\"tercet\",\"version\":";
    assert!(all.contains(stamp) && all.contains("    time: \"2023-11-14T22:13:20Z\"\n"), "{all}");
    let json = parsed(&dir.tgm("dump --reserved --json -w mars.param=2t run.tgm").stdout);
    assert_eq!(json["reserved"]["uuid"], "976bf8a7-b57e-4bb9-b612-99ca8e251769");
}

#[test]
fn dump_projects_keys() {
    let dir = dir();
    let output = dir.tgm("dump -p scale,mars,nope -w mars.param=2t run.tgm");
    let expected = "=== Message 0 ===\nmars: {\"step\":0,\"param\":\"2t\"}\nscale: 1\n\n";
    assert_eq!((output.stdout.as_str(), output.code), (expected, Some(0)));
    let json = parsed(&dir.tgm("dump -j -p scale,mars.step,nope -w mars.param=msl run.tgm").stdout);
    assert_eq!(json, json!({ "scale": 1.0, "mars.step": 6 }));
}

#[test]
fn dump_keeps_values_that_json_cannot_represent() {
    let dir = dir();
    let value =
        tgm::Value::Array(vec![f64::NAN.into(), f64::NEG_INFINITY.into(), tgm::Value::Bytes(vec![1, 255])]);
    write_value(&dir.path("odd.tgm"), value);
    let text = dir.tgm("dump odd.tgm").stdout;
    let line = "    k: [{\"$float\":\"nan\"},{\"$float\":\"-inf\"},{\"$bytes\":\"01ff\"}]\n";
    assert!(text.contains(line), "{text}");
    let json = parsed(&dir.tgm("dump -j odd.tgm").stdout);
    assert_eq!(
        json,
        json!({
            "extra": { "k": [{ "$float": "nan" }, { "$float": "-inf" }, { "$bytes": "01ff" }] },
            "objects": [],
            "version": 3,
        })
    );
}

#[test]
fn dump_needs_no_codec() {
    let dir = dir();
    let mut descriptor = tgm::DataObjectDescriptor::new(tgm::DType::U8, [9]);
    descriptor.compression = "zstd".to_owned();
    let object = tgm::PreEncoded { descriptor: &descriptor, payload: b"no zstd at all" };
    let bytes = tgm::encode_pre_encoded(&tgm::GlobalMetadata::default(), &[object], &options()).unwrap();
    dir.write("packed.tgm", &bytes);
    let output = dir.tgm("dump packed.tgm");
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stdout.contains("object[0]: type=ntensor, dtype=uint8, shape=[9]"), "{}", output.stdout);
}

#[test]
fn outline_covers_the_file() {
    let dir = dir();
    assert_snapshot!("tgm_outline", dir.tgm("outline run.tgm -n 1").snapshot());
    assert!(dir.tgm("outline run.tgm -n 2").stdout.ends_with(" 1 more message\n"));
    let len = dir.read("run.tgm").len();
    let json = &parsed(&dir.tgm("outline --json run.tgm").stdout)["outline"];
    assert_eq!(json["span"], json!({ "start": 0, "end": len }));
    assert_eq!(json["parts"].as_array().unwrap().len(), 3);
    assert_eq!(dir.tercet("outline run.tgm -n 1").stdout, dir.tgm("outline run.tgm -n 1").stdout);
}

#[test]
fn outline_shows_damaged_regions() {
    let dir = dir();
    dir.damaged("run.tgm", "bad.tgm", |bytes| bytes[24] = b'X');
    let output = dir.tgm("outline bad.tgm");
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stdout.contains("damaged"), "{}", output.stdout);
    dir.write("junk.tgm", b"no message at all");
    let output = dir.tgm("outline junk.tgm");
    assert_eq!(
        (output.code, output.stdout.contains("unrecognized bytes")),
        (Some(0), true),
        "{}",
        output.stderr
    );
}

#[test]
fn doctor_is_healthy() {
    let dir = dir();
    let output = dir.tgm("doctor");
    assert_eq!(output.code, Some(0), "{}", output.stdout);
    for line in ["wire-format           3\n", "encode/decode  complex128, big", "\nStatus: HEALTHY\n"] {
        assert!(output.stdout.contains(line), "{line}\n{}", output.stdout);
    }
    let json = parsed(&dir.tgm("doctor --json").stdout);
    assert_eq!(json["healthy"], true);
    assert_eq!(json["build"]["version"], env!("CARGO_PKG_VERSION"));
    let rows = json["self_test"].as_array().unwrap();
    assert!(rows.len() > 30 && rows.iter().all(|row| row.get("failed").is_none()), "{rows:?}");
    let outcome = |name: &str| rows.iter().find(|row| row["name"] == name).map(|row| row["outcome"].clone());
    assert_eq!(outcome("known bytes    szip, 8 bits"), Some("ok".into()));
    let sz3 = if cfg!(feature = "sz3") { "ok" } else { "skipped" };
    assert_eq!(outcome("pipeline       sz3"), Some(sz3.into()));
    let features = json["features"].as_array().unwrap();
    assert_eq!(features.len(), 14);
    let feature = |name: &str| features.iter().find(|feature| feature["name"] == name).unwrap();
    assert_eq!(
        *feature("szip"),
        json!({
            "name": "szip", "kind": "compression", "state": "on",
            "backend": "own", "linkage": "pure-rust", "version": env!("CARGO_PKG_VERSION"),
        })
    );
    assert_eq!(feature("zstd")["linkage"], "static-c");
    assert!(feature("zstd")["version"].as_str().unwrap().starts_with("1."));
    let state = if cfg!(feature = "remote") { "on" } else { "off" };
    assert_eq!(feature("remote")["state"], state);
    assert_eq!(*feature("async"), json!({ "name": "async", "kind": "io", "state": "off" }));
    for line in
        ["  lz4                   lz4_flex          pure Rust ", "  async                 not built in\n"]
    {
        assert!(output.stdout.contains(line), "{line}\n{}", output.stdout);
    }
}

#[test]
fn standard_input_is_read_like_a_file() {
    let dir = dir();
    let piped = |args: &[&str]| run(dir.command("tgm").args(args).write_stdin(dir.read("run.tgm")));
    assert!(piped(&["info", "-"]).stdout.starts_with("File: standard input\n  Messages: 3\n"));
    for verb in ["ls", "dump", "outline"] {
        let expected = dir.tgm(&format!("{verb} run.tgm")).stdout;
        assert_eq!(piped(&[verb, "-"]).stdout, expected, "{verb}");
    }
    assert_eq!(piped(&["get", "-p", "mars.param", "-"]).stdout, "2t\nmsl\n10u\n");
    let valid = piped(&["validate", "-"]);
    assert_eq!(valid.stdout, "standard input: OK (3 messages, 4 objects, hash verified)\n");
    let twice = piped(&["info", "-", "-"]);
    assert_eq!((twice.code, twice.stdout.as_str()), (Some(8), ""), "{}", twice.stderr);
    let limited = piped(&["info", "-", "--max-stdin", "1KiB"]);
    assert_eq!(limited.code, Some(6), "{}", limited.stderr);
}

#[test]
fn metadata_is_escaped_for_terminals() {
    let dir = dir();
    write_texts(&dir.path("evil.tgm"), &["a\u{1b}[2J\tb\u{9b}31m\u{202e}\n"]);
    for args in ["ls -p k", "get -p k", "dump", "dump -p k", "ls -p k\u{1b}[2J"] {
        let output = dir.tgm(&format!("{args} evil.tgm"));
        let is_unsafe = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!output.snapshot().contains(is_unsafe), "{args}: {:?}", output.snapshot());
        assert_eq!(output.code, Some(0), "{args}: {}", output.stderr);
    }
    let json = parsed(&dir.tgm("ls -j -p k evil.tgm").stdout);
    assert_eq!(json["k"], "a\u{1b}[2J\tb\u{9b}31m\u{202e}\n", "JSON has the value as it is");
}
