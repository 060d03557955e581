//! `create`: rows round-trip.

use serde_json::Value;

use super::{CITIES, TestDir, lines, run_command};

#[test]
fn columns_are_inferred_from_jsonl() {
    let dir = TestDir::with_cities();
    let json: Value = serde_json::from_str(&dir.ok("inspect --json cities.tatami").out).unwrap();
    let column = |index: usize| {
        let column = &json["columns"][index];
        (column["type"].as_str().unwrap(), column["nullable"].as_bool().unwrap())
    };
    let types = [("string", false), ("int64", false), ("float64", false), ("list", false), ("string", true)];
    for (index, expected) in types.into_iter().enumerate() {
        assert_eq!(column(index), expected);
    }
    assert_eq!(json["columns"][3]["element"], "string");
    let rows = dir.ok("cat cities.tatami").out;
    let expected: Vec<Value> = CITIES
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for (row, expected) in rows.lines().zip(&expected) {
        let row: Value = serde_json::from_str(row).unwrap();
        for key in ["name", "people", "lat", "tags", "note"] {
            assert_eq!(row[key], expected[key]);
        }
    }
    assert_eq!(rows.lines().count(), expected.len());
}

#[test]
fn cat_output_recreates_the_same_file() {
    let dir = TestDir::with_cities();
    let rows = dir.ok("cat cities.tatami").out;
    let again = dir.round_trip("again.jsonl", &rows, "--sort-key name --bloom people");
    assert_eq!(again, rows);
    assert_eq!(dir.read("back.tatami"), dir.read("cities.tatami"), "byte for byte");
}

#[test]
fn rows_across_groups_and_pages_round_trip() {
    let dir = TestDir::new();
    let text = lines(0..40_000_u32, |row| {
        let city = ["Bonn", "Ulm", "Oslo"][row as usize % 3];
        let note = if row % 5 == 0 { "null".to_owned() } else { format!("\"n{}\"", row * 7919 % 1000) };
        let (x, f) = ((i64::from(row) - 20_000) * 3, f64::from(row) / 8.0);
        let big = u64::from(row).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!(
            "{{\"row\":{row},\"city\":\"{city}\",\"note\":{note},\"x\":{x},\"big\":{big},\"f\":{f},\"l\":[{row},null]}}"
        )
    });
    for options in [
        "--sort-key row",
        "--row-group-rows 777 --page-rows 100 --bloom city --codec lz4",
        "--blob note --threads 1",
    ] {
        let rows = dir.round_trip("rows.jsonl", &text, options);
        if options.contains("blob") {
            assert_eq!(rows, text, "text stays text in a blob");
        } else {
            assert_eq!(rows, text, "{options}");
        }
    }
    let one = dir.read("back.tatami");
    dir.ok("create back.tatami --force --from rows.jsonl --blob note --threads 4");
    assert_eq!(dir.read("back.tatami"), one, "threads do not change a byte");
}

#[test]
fn csv_distinguishes_null_and_empty_strings() {
    let dir = TestDir::new();
    let text = "id,name,x,ok,code\r\n1,\"a \"\"b\"\", c\",2.5,true,007\r\n2,,,false,010\r\n3,\"\",1,,\"line\nbreak\"\r\n";
    let rows = dir.round_trip("t.csv", text, "");
    let expected = concat!(
        r#"{"id":1,"name":"a \"b\", c","x":2.5,"ok":true,"code":"007"}"#,
        "\n",
        r#"{"id":2,"name":null,"x":null,"ok":false,"code":"010"}"#,
        "\n",
        r#"{"id":3,"name":"","x":1,"ok":null,"code":"line\nbreak"}"#,
        "\n",
    );
    assert_eq!(rows, expected);
    let tabs = dir.round_trip("t.tsv", "a\tb\nNA\t1\n\"NA\"\t2\n", "--null NA");
    assert_eq!(tabs, "{\"a\":null,\"b\":1}\n{\"a\":\"NA\",\"b\":2}\n");
    let bare =
        dir.round_trip("bare.csv", "7;x\n;\n", "--no-header --delimiter ; --schema n:int8:nullable,s:string");
    assert_eq!(bare, "{\"n\":7,\"s\":\"x\"}\n{\"n\":null,\"s\":\"\"}\n");
    let times = dir.round_trip(
        "times.csv",
        "f,t\nNaN,2024-06-21T12:00:00Z\n-inf,1\n",
        "--schema f:float64,t:timestamp_micros,more:bool:nullable",
    );
    assert_eq!(
        times,
        "{\"f\":null,\"t\":1718971200000000,\"more\":null}\n{\"f\":null,\"t\":1,\"more\":null}\n"
    );
}

/// `--codec` and `--level` are the former spellings.
#[test]
fn compression_has_a_codec_and_a_level() {
    let dir = TestDir::new();
    let rows: Vec<String> = (0..500).map(|row| format!("{{\"s\":\"row {row} of many\"}}\n")).collect();
    dir.write("a.jsonl", rows.concat());
    let made = |options: &str| {
        dir.ok(&format!("create out.tatami --from a.jsonl {options} --force"));
        dir.read("out.tatami")
    };
    for (option, former) in [
        ("--compression lz4", "--codec lz4"),
        ("--compression none", "--codec none"),
        ("--compression zstd", ""),
        ("--compression zstd:19", "--level 19"),
        ("--compression zstd:-7", "--codec zstd --level -7"),
    ] {
        assert!(made(option) == made(former), "{option}");
    }
    for (options, code, message) in [
        ("--compression lz4:3", 8, "only `--compression zstd` has levels"),
        ("--compression zstd:3 --level 3", 8, "given twice"),
        ("--compression zstd:23", 8, "zstd has no level 23"),
        ("--compression gzip", 2, "invalid value 'gzip'"),
    ] {
        let result = dir.run(&format!("create new.tatami --from a.jsonl {options}"));
        assert_eq!(result.code, code, "{options}: {}", result.err);
        assert!(result.err.contains(message), "{options}: {}", result.err);
    }
}

#[test]
fn options_are_stored_in_the_file() {
    let dir = TestDir::new();
    dir.write("a.jsonl", "{\"k\":1,\"s\":\"x\"}\n{\"k\":2,\"s\":\"y\"}\n{\"k\":3,\"s\":\"z\"}\n");
    let made = dir.ok(
        "create a.tatami --from a.jsonl --profile interop --level 7 --row-group-rows 2 --page-rows 1 --dict s \
         --sort-key k --bloom s --uuid 00112233-4455-6677-8899-aabbccddeeff --created 2024-06-21T12:00:00Z \
         --metadata source=test --metadata empty= --json",
    );
    let made: Value = serde_json::from_str(&made.out).unwrap();
    assert_eq!((made["rows"].as_u64(), made["groups"].as_u64()), (Some(3), Some(2)));
    assert_eq!(made["required_features"], Value::Array(Vec::new()));
    let json: Value = serde_json::from_str(&dir.ok("inspect a.tatami --json --pages").out).unwrap();
    assert_eq!(json["header"]["uuid"], "00112233-4455-6677-8899-aabbccddeeff");
    assert_eq!(json["header"]["created"], "2024-06-21T12:00:00.000Z");
    assert_eq!(json["header"]["flags"], serde_json::json!(["FlagSorted", "FlagHasIndexRegion"]));
    assert_eq!(json["required_features"]["reference"], true);
    let metadata = json["metadata"].as_array().unwrap();
    assert_eq!(metadata[2..], [serde_json::json!(["source", "test"]), serde_json::json!(["empty", ""])]);
    assert_eq!(json["columns"][1]["dictionary_hint"], true);
    assert_eq!(json["groups"][0]["sort_bounds"], serde_json::json!({ "min": 1, "max": 2 }));
    assert_eq!(json["groups"][0]["chunks"][0]["pages"].as_array().unwrap().len(), 2);
    assert_eq!(json["groups"][1]["chunks"][1]["zone"]["max"], "z");
    assert!(dir.ok("inspect a.tatami").out.contains("\nrequired features: reference\n"));
}

#[test]
fn standard_streams_carry_rows_and_files() {
    let dir = TestDir::new();
    let made = run_command(dir.command().args(["create", "-", "--from", "-"]).write_stdin("{\"a\":1}\n"));
    assert_eq!((made.code, made.err.as_str()), (0, ""));
    assert_eq!(&made.bytes[..4], b"TAT1");
    let cat = run_command(dir.command().args(["cat", "-"]).write_stdin(made.bytes));
    assert_eq!(cat.out, "{\"a\":1}\n");
    let csv = run_command(
        dir.command().args(["create", "c.tatami", "--from", "-", "--format", "csv"]).write_stdin("a\n1\n"),
    );
    assert_eq!(csv.code, 0, "{}", csv.err);
    let empty = run_command(
        dir.command().args(["create", "e.tatami", "--from", "-", "--schema", "a:int8"]).write_stdin(""),
    );
    assert_eq!(empty.code, 0, "{}", empty.err);
    assert_eq!(dir.ok("cat e.tatami").out, "");
    assert_eq!(dir.ok("verify --deep -q e.tatami").code, 0);
}
