use insta::assert_snapshot;
use serde_json::Value;
use tercet::tet::WriterOptions;

use super::support::{TestDir, write_weather};

#[test]
fn datasets_and_metadata_by_default() {
    assert_snapshot!(TestDir::with_weather().tet("info weather.tet").snapshot());
}

#[test]
fn every_section() {
    assert_snapshot!(TestDir::with_weather().tet("info weather.tet --all").snapshot());
}

#[test]
fn chunks_are_limited_and_filtered() {
    let dir = TestDir::with_weather();
    assert_snapshot!("chunks_limited", dir.tet("info weather.tet --chunks -n 2").snapshot());
    assert_snapshot!("chunks_filtered", dir.tet("info weather.tet --chunks --dataset MASK").snapshot());
    let all = dir.tet("info weather.tet --chunks -n 0").stdout;
    assert_eq!(all.matches(" raw ").count(), 5 + 1, "five chunks and the head of a column:\n{all}");
}

#[test]
fn one_line() {
    let dir = TestDir::with_weather();
    let len = dir.read("weather.tet").len();
    let line = format!("path=weather.tet file_len={len} layout=1 datasets=2 chunks=5 history=1\n");
    assert_eq!(dir.tet("info weather.tet -q").stdout, line);
    assert_eq!(dir.tercet("info -q weather.tet").stdout, line);
    assert_eq!(dir.tercet("tet info -q weather.tet").stdout, line);
    let filtered = dir.tet("info weather.tet -q --grep STATION").stdout;
    assert!(filtered.contains("datasets=1 chunks=4 "), "{filtered}");
}

#[test]
fn json_has_the_documented_members() {
    let dir = TestDir::with_weather();
    let json: Value = serde_json::from_str(&dir.tet("info --json weather.tet").stdout).unwrap();
    assert_eq!(json["path"], "weather.tet");
    assert_eq!(json["file_len"], dir.read("weather.tet").len());
    assert_eq!(json["filter"], Value::Null);
    let summary = json["summary"].as_object().unwrap();
    for member in ["superblock", "datasets", "chunks", "file_execution", "history", "metadata"] {
        assert!(summary.contains_key(member), "{member}");
    }
    assert_eq!(summary["chunks"].as_array().unwrap().len(), 5);
    assert_eq!(summary["datasets"][0]["name"], "t2m");
    assert_eq!(summary["metadata"]["datasets"]["t2m"]["attrs"]["units"], "K");
}

#[test]
fn filtered_json_counts_the_listed_chunks() {
    let dir = TestDir::with_weather();
    let json: Value =
        serde_json::from_str(&dir.tet("info --json weather.tet --dataset Mask --grep u8").stdout).unwrap();
    assert_eq!(json["filter"], "dataset~Mask grep~u8");
    let summary = &json["summary"];
    assert_eq!(summary["datasets"].as_array().unwrap().len(), 1);
    assert_eq!(summary["chunks"].as_array().unwrap().len(), 1);
    assert_eq!(summary["chunks"][0]["dataset_id"], 0, "an index into the datasets shown");
    assert!(summary["metadata"]["datasets"].get("t2m").is_none());
    assert_eq!(summary["metadata"]["file"]["tool"], "test");
}

#[test]
fn a_file_without_checksums_is_unprotected() {
    let dir = TestDir::new();
    write_weather(&dir.path("plain.tet"), WriterOptions::interop());
    let text = dir.tet("info plain.tet").stdout;
    assert!(text.contains("unprotected: no checksums"), "{text}");
}

#[test]
fn a_filter_can_match_nothing() {
    let text = TestDir::with_weather().tet("info weather.tet --dataset nothing").stdout;
    assert!(text.contains("datasets: (no dataset matches the filter)"), "{text}");
}
