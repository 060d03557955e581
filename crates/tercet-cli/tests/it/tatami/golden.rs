//! Output equal to that of the reference implementation, byte for byte.

use serde_json::Value;

use super::{TestDir, run_command};

#[test]
fn inspect_and_cat_match_the_reference() {
    let Some(golden) = tercet_testkit::golden("tatami") else { return };
    let manifest = std::fs::read_to_string(golden.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let dir = TestDir::new();
    let mut compared = 0;
    for entry in manifest["cli"].as_array().unwrap() {
        let args: Vec<&str> =
            entry["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
        if !matches!(args[0], "inspect" | "cat") {
            continue;
        }
        let output = run_command(dir.command().args(&args).current_dir(&golden));
        compared += 1;
        // The reference stops at NaN; Tercet prints null and a warning.
        if entry["error_text"].as_str().unwrap().contains("NaN") {
            assert_eq!(output.code, 0, "{}", output.err);
            assert!(
                output.err.contains("NaN and infinities are printed as null: 3 in `f`"),
                "{}",
                output.err
            );
            continue;
        }
        assert_eq!(output.out, entry["stdout"].as_str().unwrap(), "{args:?}");
        assert_eq!(output.code == 0, entry["exit"] == 0, "{args:?}: {}", output.err);
        assert_eq!(output.err.is_empty(), output.code == 0, "{args:?}: {}", output.err);
    }
    assert_eq!(compared, 24);
}

#[test]
fn every_golden_file_is_described_and_valid() {
    let Some(golden) = tercet_testkit::golden("tatami") else { return };
    let manifest = std::fs::read_to_string(golden.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let dir = TestDir::new();
    for entry in manifest["files"].as_array().unwrap() {
        let name = entry["path"].as_str().unwrap();
        let run = |args: &[&str]| {
            let output = run_command(dir.command().args(args).arg(name).current_dir(&golden));
            assert_eq!(output.code, 0, "{args:?} {name}: {}{}", output.out, output.err);
            output.out
        };
        let json: Value = serde_json::from_str(&run(&["inspect", "--json", "--pages"])).unwrap();
        assert_eq!(json["rows"], entry["header"]["row_count"], "{name}");
        assert_eq!(json["required_features"]["reference"], true, "{name}");
        let columns = json["columns"].as_array().unwrap();
        for (column, expected) in columns.iter().zip(entry["schema"].as_array().unwrap()) {
            assert_eq!(column["name"], expected["name"], "{name}");
        }
        let stats: Value = serde_json::from_str(&run(&["stats", "--json"])).unwrap();
        assert_eq!(stats["rows"], json["rows"], "{name}");
        run(&["outline", "--pages"]);
        run(&["verify", "--deep", "-q"]);
        assert_eq!(run(&["cat"]).lines().count() as u64, json["rows"].as_u64().unwrap(), "{name}");
    }
}

/// Rows of reference files round-trip.
#[test]
fn reference_rows_round_trip() {
    let Some(golden) = tercet_testkit::golden("tatami") else { return };
    let dir = TestDir::new();
    let schema = "id:int64,c_bool:bool:nullable,c_i8:int8:nullable,c_i16:int16:nullable,c_i32:int32:nullable,\
        c_i64:int64:nullable,c_u8:uint8:nullable,c_u16:uint16:nullable,c_u32:uint32:nullable,\
        c_u64:uint64:nullable,c_f32:float32:nullable,c_f64:float64:nullable,c_str:string:nullable,\
        c_bytes:bytes:nullable,c_ts:timestamp_micros:nullable,c_blob:blobref:nullable";
    let expected =
        run_command(dir.command().args(["cat", "types_all_nulls.tatami"]).current_dir(&golden)).out;
    for options in ["", "--profile interop", "--codec lz4 --page-rows 7 --row-group-rows 50", "--codec none"]
    {
        let ours = dir.round_trip("rows.jsonl", &expected, &format!("--schema {schema} {options}"));
        assert_eq!(ours, expected, "{options}");
    }
}

/// A zone computed from NaN contains no value.
#[test]
fn untrusted_statistics_are_omitted() {
    let Some(golden) = tercet_testkit::golden("tatami") else { return };
    let dir = TestDir::new();
    let json =
        run_command(dir.command().args(["stats", "--json", "floats_edge.tatami"]).current_dir(&golden)).out;
    let json: Value = serde_json::from_str(&json).unwrap();
    let column = |name: &str| {
        let columns = json["columns"].as_array().unwrap();
        columns.iter().find(|column| column["name"] == name).unwrap().clone()
    };
    assert_eq!((column("id")["min"].as_i64(), column("id")["max"].as_i64()), (Some(0), Some(8)));
    assert_eq!(column("nan_first")["min"], Value::Null);
}
