use insta::assert_snapshot;
use serde_json::Value;

use super::support::{TestDir, write_many_chunks};

#[test]
fn every_field_has_its_bytes() {
    let dir = TestDir::with_weather();
    let output = dir.tet("outline weather.tet -n 1");
    insta::with_settings!({filters => vec![(r"\{.history.*", "[json]")]}, {
        assert_snapshot!(output.snapshot());
    });
    assert_eq!(dir.tercet("outline weather.tet -n 1").stdout, output.stdout);
}

#[test]
fn json_covers_the_file() {
    let dir = TestDir::with_weather();
    let json: Value = serde_json::from_str(&dir.tet("outline --json weather.tet").stdout).unwrap();
    let len = dir.read("weather.tet").len();
    assert_eq!((&json["path"], &json["file_len"]), (&"weather.tet".into(), &len.into()));
    let json = &json["outline"];
    assert_eq!(json["span"], serde_json::json!({"start": 0, "end": len}), "{json}");
    assert_eq!(json["parts"][0]["name"], "superblock");
}

#[test]
fn rows_are_limited() {
    let dir = TestDir::new();
    write_many_chunks(&dir.path("many.tet"), 100);
    let rows = |args: &str| dir.tet(args).stdout.matches("payload_offset").count();
    assert_eq!(rows("outline many.tet"), 32);
    assert_eq!(rows("outline many.tet -n 3"), 3);
    assert_eq!(rows("outline many.tet -n 0"), 100);
}
