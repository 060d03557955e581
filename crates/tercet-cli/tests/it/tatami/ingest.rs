//! `create` and `convert` from tables of any format: detection, dialects, nested objects, rejected rows, sorting.

use std::io::{Read as _, Write as _};

use serde_json::Value;

use super::{TestDir, lines, run_command};

#[test]
fn create_reads_every_table_format_by_content() {
    let dir = TestDir::with_cities();
    let rows = dir.ok("cat cities.tatami").out;
    for name in ["c.parquet", "c.arrow", "c.arrows", "c.csv", "c.tsv", "c.jsonl"] {
        dir.ok(&format!("convert cities.tatami {name}"));
        // The name says nothing.
        std::fs::rename(dir.path(name), dir.path("data")).unwrap();
        let schema = if name.ends_with("sv") {
            "--schema name:string,people:int64,lat:float64,tags:list:string,note:string:nullable"
        } else {
            ""
        };
        dir.ok(&format!("create new.tatami --from data {schema} --force"));
        assert_eq!(dir.ok("cat new.tatami").out, rows, "{name}");
    }
    dir.ok("create copy.tatami --from cities.tatami");
    assert_eq!(dir.ok("cat copy.tatami").out, rows);
}

#[test]
fn compressed_text_directories_and_patterns_are_one_table() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("in")).unwrap();
    let csv = "a,b\n1,x\n";
    dir.write("in/1.csv", csv);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"b;a\ny;2\n").unwrap();
    dir.write("in/2.csv.gz", gzip.finish().unwrap());
    dir.write("in/3.csv.zst", zstd::encode_all(&b"a\n3\n"[..], 1).unwrap());
    dir.write("in/note.txt", "not a table");
    let expected = "{\"a\":1,\"b\":\"x\"}\n{\"a\":2,\"b\":\"y\"}\n{\"a\":3,\"b\":null}\n";
    for from in ["in", "in/*.csv*", "in/1.csv in/2.csv.gz in/3.csv.zst"] {
        dir.ok(&format!("create t.tatami --force --from {from}"));
        assert_eq!(dir.ok("cat t.tatami").out, expected, "{from}");
    }
    dir.ok("convert in t.jsonl");
    assert_eq!(dir.read("t.jsonl"), expected.as_bytes());
    dir.write("in/4.jsonl", "{\"a\":1}\n");
    let mixed = dir.run("create t.tatami --force --from in");
    assert!(mixed.code == 8 && mixed.err.contains("4.jsonl: is jsonl, but "), "{}", mixed.err);
    assert_eq!(dir.run("create t.tatami --force --from none/*.csv").code, 8);
}

#[test]
fn text_is_compressed_by_the_name_of_the_output() {
    let dir = TestDir::with_cities();
    for name in ["c.csv", "c.tsv", "c.jsonl"] {
        dir.ok(&format!("convert cities.tatami {name}"));
        let plain = dir.read(name);
        dir.ok(&format!("convert cities.tatami {name}.gz"));
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(&dir.read(&format!("{name}.gz"))[..]).read_to_end(&mut text).unwrap();
        assert!(text == plain, "{name}");
        dir.ok(&format!("convert cities.tatami {name}.zst"));
        assert_eq!(zstd::decode_all(&dir.read(&format!("{name}.zst"))[..]).unwrap(), plain, "{name}");
    }
    dir.ok("convert cities.tatami rows.gz --to jsonl");
    dir.ok("convert rows.gz rows.jsonl");
    assert_eq!(dir.read("rows.jsonl"), dir.read("c.jsonl"));
    let before = dir.names();
    for args in
        ["convert c.csv c.parquet.gz", "convert c.csv c.zst --to arrow", "create c.tatami.gz --from c.csv"]
    {
        let output = dir.run(args);
        assert!(
            output.code == 8 && output.err.contains("only CSV, TSV and JSONL are compressed"),
            "{}",
            output.err
        );
    }
    assert_eq!(dir.names(), before);
}

#[test]
fn compressed_binary_tables_are_read() {
    let dir = TestDir::with_cities();
    dir.ok("create cities.tatami --from cities.jsonl --force");
    let rows = dir.ok("cat cities.tatami").out;
    for name in ["c.parquet", "c.arrow", "c.arrows", "c.tatami"] {
        dir.ok(&format!("convert cities.tatami {name}"));
        let bytes = dir.read(name);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&bytes).unwrap();
        let gzip = gzip.finish().unwrap();
        dir.write("packed", &gzip);
        dir.ok("create new.tatami --from packed --force");
        assert_eq!(dir.ok("cat new.tatami").out, rows, "{name}");
        dir.write("packed", zstd::encode_all(&bytes[..], 1).unwrap());
        dir.ok(&format!("create new.tatami --from {name} packed --force"));
        assert_eq!(dir.ok("cat new.tatami").out, rows.repeat(2), "{name}");
        dir.write("packed", &gzip[..gzip.len() - 9]);
        let cut = dir.run(&format!("create cut.tatami --from {name} packed"));
        assert!(cut.code == 4 && cut.err.contains("packed: cannot read"), "{name}: {} {}", cut.code, cut.err);
    }
}

#[test]
fn create_applies_filters_and_columns() {
    let dir = TestDir::with_cities();
    for name in ["c.csv", "c.jsonl", "c.parquet", "c.tatami"] {
        dir.ok(&format!("convert cities.tatami {name}"));
        dir.ok(&format!(
            "create some.tatami --force --from {name} --where people>200000 --columns people,name"
        ));
        let query = "cat cities.tatami --where 200000<people --columns people,name";
        assert_eq!(dir.ok("cat some.tatami").out, dir.ok(query).out, "{name}");
        // The first columns, with a filter on another one.
        dir.ok(&format!("create some.tatami --force --from {name} --where lat>48 --columns name,people"));
        let query = "cat cities.tatami --where lat>48 --columns name,people";
        assert_eq!(dir.ok("cat some.tatami").out, dir.ok(query).out, "{name}");
    }
}

#[test]
fn files_with_columns_in_another_order_are_one_table() {
    let dir = TestDir::new();
    dir.write("1.csv", "a,d,s\n1,2024-01-01,x\n");
    dir.write("2.csv", "s,a,d\ny,2,2024-01-02\n");
    let expected = "{\"a\":1,\"d\":\"2024-01-01\",\"s\":\"x\"}\n{\"a\":2,\"d\":\"2024-01-02\",\"s\":\"y\"}\n";
    for format in ["parquet", "arrow", "arrows", "tatami", "jsonl"] {
        dir.ok(&format!("convert 1.csv 1.{format}"));
        dir.ok(&format!("convert 2.csv 2.{format}"));
        dir.ok(&format!("create all.tatami --force --from 1.{format} 2.{format}"));
        assert_eq!(dir.ok("cat all.tatami").out, expected, "{format}");
    }
    dir.write("3.csv", "s,a,d\ny,2,3\n");
    dir.ok("create 3.tatami --from 3.csv --schema s:string:nullable,a:int64:nullable,d:int32:nullable");
    let other = dir.run("create all.tatami --force --from 1.tatami 3.tatami");
    assert!(
        other.code == 8 && other.err.contains("3.tatami: logical types differ from 1.tatami"),
        "{}",
        other.err
    );
    dir.write("4.csv", "s,a,e\ny,2,3\n");
    dir.ok("convert 4.csv 4.parquet");
    let other = dir.run("create all.tatami --force --from 1.parquet 4.parquet");
    assert!(
        other.code == 8 && other.err.contains("4.parquet: other columns than in 1.parquet"),
        "{}",
        other.err
    );
}

#[test]
fn dialects_and_types_are_detected() {
    let dir = TestDir::new();
    let cases = [
        ("a;b\n1,5;x\n2,25;\n", r#"{"a":1.5,"b":"x"}|{"a":2.25,"b":null}"#),
        (
            "day|at|t\n2024-06-21|12:00:00|2024-06-21 12:00:00\n",
            r#"{"day":"2024-06-21","at":"12:00:00","t":"2024-06-21T12:00:00"}"#,
        ),
        (
            "\u{feff}n,s\r\n1,\"a\r\nb\"\r\nNA,NA\r\n",
            "{\"n\":1,\"s\":\"a\\r\\nb\"}|{\"n\":null,\"s\":\"NA\"}",
        ),
        ("t\n2024-06-21T12:00:00Z\n", r#"{"t":"2024-06-21T12:00:00Z"}"#),
        ("b\nTRUE\nfalse\n", r#"{"b":true}|{"b":false}"#),
        ("1,x\n2,y\n", r#"{"column0":1,"column1":"x"}|{"column0":2,"column1":"y"}"#),
    ];
    for (text, expected) in cases {
        dir.write("t.csv", text);
        dir.ok("create t.tatami --force --from t.csv");
        assert_eq!(dir.ok("cat t.tatami").out.trim_end().replace('\n', "|"), expected, "{text}");
    }
    // Flags override.
    dir.write("t.csv", "a;b\n1,5;x\n");
    dir.ok("create t.tatami --force --from t.csv --delimiter ; --no-header");
    assert_eq!(
        dir.ok("cat t.tatami").out,
        "{\"column0\":\"a\",\"column1\":\"b\"}\n{\"column0\":\"1,5\",\"column1\":\"x\"}\n"
    );
    let plan = dir.ok("create t.tatami --force --from t.csv --dry-run");
    assert_eq!(plan.out, "t.csv: csv, delimiter `;`, decimal comma\n  a  float64\n  b  string\n");
    let json: Value =
        serde_json::from_str(&dir.ok("create t.tatami --from t.csv --dry-run --json").out).unwrap();
    assert_eq!(json["dialects"][0]["delimiter"], ";");
    assert_eq!(json["columns"][0]["type"], "float64");
}

#[test]
fn lines_before_and_between_records_are_skipped() {
    let dir = TestDir::new();
    let text = "Report \"of 2024\n,\n# it's, \"x\na,b\n1,x\n# 2,y\n3,\"z\n# z\"\n# end";
    dir.write("t.csv", text);
    dir.ok("create t.tatami --from t.csv --skip 2 --comment #");
    assert_eq!(dir.ok("cat t.tatami").out, "{\"a\":1,\"b\":\"x\"}\n{\"a\":3,\"b\":\"z\\n# z\"}\n");
    // Line numbers are those of the file.
    dir.write("t.csv", text.replace("3,", "3,4,"));
    let output = dir.run("create t.tatami --force --from t.csv --skip 2 --comment #");
    assert!(output.code == 4 && output.err.contains("t.csv: line 7: 3 fields"), "{}", output.err);
    // Over many chunks.
    let rows = |row: u64| {
        if row.is_multiple_of(3) { format!("#,\"{row}") } else { format!("{row},\"{}\n\"", "x".repeat(40)) }
    };
    dir.write("big.csv", format!("title\nn,s\n{}", lines(0..60_000, rows)));
    dir.ok("create big.tatami --from big.csv --skip 1 --comment #");
    assert_eq!(
        dir.ok("agg big.tatami --count --sum n --json").out,
        "{\"count\":40000,\"sum(n)\":1200000000}\n"
    );
    dir.write("t.jsonl", "{\"a\":1}\n");
    for option in ["--skip 1", "--comment #"] {
        let output = dir.run(&format!("create j.tatami --from t.jsonl {option}"));
        assert!(output.code == 8 && output.err.contains("applies to CSV only"), "{}", output.err);
    }
}

#[test]
fn text_of_other_encodings_is_decoded() {
    let dir = TestDir::new();
    let wide = |text: &str| {
        [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect::<Vec<u8>>()
    };
    let expected = "{\"n\":1,\"ö\":\"日本\"}\n";
    dir.write("t.csv", wide("n\tö\r\n1\t日本\r\n"));
    dir.write("noname", wide("{\"n\":1,\"ö\":\"日本\"}\n"));
    dir.write("j.csv", b"n,\x83\xb6\n1,\x93\xfa\x96\x7b\n");
    for (args, expected) in [
        ("t.csv", expected),
        ("noname", expected),
        ("j.csv --encoding shift_jis", "{\"n\":1,\"Ω\":\"日本\"}\n"),
    ] {
        dir.ok(&format!("create t.tatami --force --from {args}"));
        assert_eq!(dir.ok("cat t.tatami").out, expected, "{args}");
    }
    dir.write("l.csv", b"a\ncaf\xe9\n");
    dir.ok("create t.tatami --force --from l.csv --encoding latin1");
    assert_eq!(dir.ok("cat t.tatami").out, "{\"a\":\"café\"}\n");
    let refused = dir.run("create t.tatami --force --from l.csv");
    assert!(
        refused.err.contains("invalid UTF-8") && refused.err.contains("`--encoding windows-1252`"),
        "{}",
        refused.err
    );
    let unknown = dir.run("create t.tatami --force --from l.csv --encoding none");
    assert!(unknown.code == 8 && unknown.err.contains("unknown encoding `none`"), "{}", unknown.err);
}

#[test]
fn blanks_around_values_are_ignored_except_in_strings() {
    let dir = TestDir::new();
    for (text, options, expected) in [
        (
            "a, b,c,d\n1, 2, x, 2024-01-01\n 3,  , y ,\n",
            "",
            "{\"a\":1,\" b\":2,\"c\":\" x\",\"d\":\"2024-01-01\"}\n{\"a\":3,\" b\":null,\"c\":\" y \",\"d\":null}\n",
        ),
        ("a;b\n 1,5 ;true\n2,25; false\n", "", "{\"a\":1.5,\"b\":true}\n{\"a\":2.25,\"b\":false}\n"),
        ("a\n 1\n  NA\nx\n", "", "{\"a\":\" 1\"}\n{\"a\":\"  NA\"}\n{\"a\":\"x\"}\n"),
        ("a\n1\n\"  \"\n", "", "{\"a\":\"1\"}\n{\"a\":\"  \"}\n"),
        ("a\n1\n\" 2 \"\n", "", "{\"a\":1}\n{\"a\":2}\n"),
        ("a,b\n 1, x\n", "--schema a:int64,b:string", "{\"a\":1,\"b\":\" x\"}\n"),
    ] {
        dir.write("t.csv", text);
        dir.ok(&format!("create t.tatami --force --from t.csv {options}"));
        assert_eq!(dir.ok("cat t.tatami").out, expected, "{text}");
    }
}

/// A sample never changes a value: types that do not hold are inferred again.
#[test]
fn a_misleading_sample_costs_time_only() {
    let dir = TestDir::new();
    let csv = format!(
        "a,b,c\n{}",
        lines(0..3000, |row| match row {
            2500 => "x,,2024-01-01".to_owned(),
            2600 => "7,0.5,".to_owned(),
            row => format!("{row},,{row}"),
        })
    );
    dir.write("t.csv", &csv);
    dir.ok("create all.tatami --from t.csv --sample all");
    dir.ok("create some.tatami --from t.csv --sample 10");
    assert_eq!(dir.read("some.tatami"), dir.read("all.tatami"));
    let jsonl = lines(0..3000, |row| {
        if row == 2000 { r#"{"k":1,"new":[1.5]}"#.to_owned() } else { format!("{{\"k\":{row}}}") }
    });
    dir.write("t.jsonl", &jsonl);
    dir.ok("create all.tatami --force --from t.jsonl --sample all");
    dir.ok("create some.tatami --force --from t.jsonl --sample 10");
    assert_eq!(dir.read("some.tatami"), dir.read("all.tatami"));
}

#[test]
fn nested_objects_become_columns_or_json() {
    let dir = TestDir::new();
    let text = "{\"a\":{\"b\":1,\"c\":{\"d\":\"x\"}},\"l\":[1,2],\"o\":[]}\n{\"a\":null,\"l\":[],\"o\":[{\"p\":1}]}\n";
    let rows = dir.round_trip("n.jsonl", text, "");
    assert_eq!(
        rows,
        "{\"a.b\":1,\"a.c.d\":\"x\",\"l\":[1,2],\"o\":[]}\n{\"a.b\":null,\"a.c.d\":null,\"l\":[],\"o\":[{\"p\":1}]}\n"
    );
    assert_eq!(dir.round_trip("n.jsonl", text, "--nested json"), text);
    let stored = dir.ok("cat back.tatami --stored --columns o").out;
    assert_eq!(stored, "{\"o\":\"[]\"}\n{\"o\":\"[{\\\"p\\\":1}]\"}\n");
}

#[test]
fn rejected_rows_are_reported() {
    let dir = TestDir::new();
    dir.write("t.csv", "a,b\n1,2\n3\nx,4\n5,\"6\"7\n8,9\n");
    let schema = "--schema a:int8:nullable,b:int8";
    assert_eq!(dir.run(&format!("create t.tatami --from t.csv {schema}")).code, 4);
    let skipped =
        dir.ok(&format!("create t.tatami --from t.csv {schema} --on-error skip --rejects bad.jsonl"));
    assert_eq!(dir.ok("cat t.tatami").out, "{\"a\":1,\"b\":2}\n{\"a\":8,\"b\":9}\n");
    assert!(
        skipped.err.contains("3 rows rejected\n  t.csv: line 3: 1 field, expected 2 columns\n"),
        "{}",
        skipped.err
    );
    let bad = String::from_utf8(dir.read("bad.jsonl")).unwrap();
    let bad: Vec<Value> = bad.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((bad.len(), bad[1]["line"].as_u64(), bad[1]["text"].as_str()), (3, Some(4), Some("x,4")));
    dir.ok(&format!("create t.tatami --force --from t.csv {schema} --on-error null"));
    assert_eq!(dir.ok("cat t.tatami").out, "{\"a\":1,\"b\":2}\n{\"a\":null,\"b\":4}\n{\"a\":8,\"b\":9}\n");
    dir.write("t.jsonl", "{\"a\":1}\n{\"a\":\n{\"a\":\"x\"}\n{\"a\":[1]}\n{\"a\":2}\n");
    dir.ok("create t.tatami --force --from t.jsonl --schema a:int8:nullable --on-error skip");
    assert_eq!(dir.ok("cat t.tatami").out, "{\"a\":1}\n{\"a\":2}\n");
    dir.ok("create t.tatami --force --from t.jsonl --schema a:int8:nullable --on-error null");
    assert_eq!(dir.ok("cat t.tatami").out, "{\"a\":1}\n{\"a\":null}\n{\"a\":null}\n{\"a\":2}\n");
}

/// Values of other kinds than the first one are rejected, in the sample as after it.
#[test]
fn conflicting_values_of_jsonl_are_rejected_on_request() {
    let dir = TestDir::new();
    let cases = [
        ("1|\"x\"|2", "1|2", "1|null|2"),
        ("\"x\"|1|\"y\"", "\"x\"|\"y\"", "\"x\"|null|\"y\""),
        ("true|1", "true", "true|null"),
        (
            "\"2024-01-01\"|5|\"2024-01-02\"",
            "\"2024-01-01\"|\"2024-01-02\"",
            "\"2024-01-01\"|null|\"2024-01-02\"",
        ),
        ("0.5|12345678901234567.89", "0.5", "0.5|null"),
        ("1|18446744073709551616", "1", "1|null"),
        ("-1|18446744073709551615", "-1", "-1|null"),
        ("18446744073709551615|-1", "18446744073709551615", "18446744073709551615|null"),
        ("9007199254740993|0.5", "9007199254740993", "9007199254740993|null"),
        ("0.5|9007199254740993", "0.5", "0.5|null"),
        ("[1]|[\"x\"]|3|[2]", "[1]|[2]", "[1]|null|null|[2]"),
    ];
    let rows = |values: &str| lines(values.split('|'), |value| format!("{{\"a\":{value}}}"));
    for (values, skipped, nulled) in cases {
        dir.write("m.jsonl", rows(values));
        assert_eq!(dir.run("create m.tatami --from m.jsonl").code, 8, "{values}");
        for (action, expected) in [("skip", skipped), ("null", nulled)] {
            let rejects = values.split('|').count() - skipped.split('|').count();
            for sample in ["1", "all"] {
                let args =
                    format!("create m.tatami --force --from m.jsonl --on-error {action} --sample {sample}");
                let done = dir.ok(&args);
                assert_eq!(dir.ok("cat m.tatami").out, rows(expected), "{values}: {args}");
                let what = if action == "skip" { "row" } else { "value" };
                assert!(done.err.contains(&format!("warning: {rejects} {what}")), "{values}: {}", done.err);
            }
        }
    }
    dir.write("m.jsonl", "{\"a\":1}\nnot json\n{\"a\":\"x\"}\n");
    let done = dir.ok("create m.tatami --force --from m.jsonl --on-error null");
    assert!(done.err.contains("1 row rejected, 1 value replaced by null"), "{}", done.err);
    assert_eq!(dir.ok("cat m.tatami").out, "{\"a\":1}\n{\"a\":null}\n");
}

#[test]
fn rows_are_sorted_on_request() {
    let dir = TestDir::new();
    dir.write("t.jsonl", lines(0..20_000, |row| format!("{{\"k\":{},\"row\":{row}}}", row * 7919 % 1000)));
    dir.ok("create t.tatami --from t.jsonl --sort k");
    let rows: Vec<Value> =
        dir.ok("cat t.tatami").out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let keys: Vec<(u64, u64)> =
        rows.iter().map(|row| (row["k"].as_u64().unwrap(), row["row"].as_u64().unwrap())).collect();
    assert!(keys.len() == 20_000 && keys.is_sorted(), "by key, then in the order of the input");
    assert_eq!(dir.ok("lookup t.tatami 999").code, 0);
    dir.ok("convert t.jsonl t.csv --sort row --columns row");
    assert_eq!(dir.names(), ["t.csv", "t.jsonl", "t.tatami"], "no temporary file is left");
    assert_eq!(dir.run("create u.tatami --from t.jsonl --sort z").code, 8);
}

#[test]
fn a_schema_can_be_a_file() {
    let dir = TestDir::new();
    dir.write("t.csv", "a,b\n1,2.50\n");
    dir.write("schema.txt", "# columns\na:uint8\nb:decimal128[9, 2]\n");
    dir.ok("create t.tatami --from t.csv --schema-file schema.txt");
    assert_eq!(dir.ok("cat t.tatami").out, "{\"a\":1,\"b\":2.50}\n");
}

/// The manifest of a collection names its files and their deleted rows.
#[test]
fn a_collection_is_converted_without_deleted_rows() {
    let dir = TestDir::new();
    dir.write("a.jsonl", lines(0..5, |row| format!("{{\"id\":{row},\"s\":\"a{row}\"}}")));
    dir.write("b.jsonl", lines(5..9, |row| format!("{{\"id\":{row},\"s\":\"b{row}\"}}")));
    std::fs::create_dir(dir.path("all")).unwrap();
    dir.ok("create all/a.tatami --from a.jsonl --sort-key id");
    dir.ok("create all/b.tatami --from b.jsonl --sort-key id");
    dir.ok("create all/stray.tatami --from b.jsonl --sort-key id");
    dir.ok("collection add all all/a.tatami all/b.tatami");
    dir.ok("delete all --where id=3");
    let rows = dir.ok("cat all").out;
    assert_eq!(rows.lines().count(), 8, "{rows}");
    dir.ok("convert all all.jsonl");
    assert_eq!(String::from_utf8(dir.read("all.jsonl")).unwrap(), rows);
    dir.ok("convert all some.jsonl --where id>3 --columns id");
    assert_eq!(
        String::from_utf8(dir.read("some.jsonl")).unwrap(),
        lines(4..9, |row| format!("{{\"id\":{row}}}"))
    );
    dir.ok("create all.tatami --from all --sort-key id");
    assert_eq!(dir.ok("cat all.tatami").out, rows);
    let two = dir.run("create two.tatami --from all all.tatami");
    assert!(two.code == 8 && two.err.contains("all: a collection must be the only input"), "{}", two.err);
    let manifest = std::fs::read_dir(dir.path("all")).unwrap().map(|entry| entry.unwrap().file_name());
    let manifest =
        manifest.map(|name| name.into_string().unwrap()).find(|name| !name.ends_with(".tatami")).unwrap();
    let mut bytes = dir.read(&format!("all/{manifest}"));
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    dir.write(&format!("all/{manifest}"), bytes);
    assert_ne!(dir.run("convert all damaged.jsonl").code, 0);
}

/// Text stored as blobs prints as text, and `get --raw` writes the bytes of a value.
#[test]
fn single_values_are_written_as_bytes() {
    let dir = TestDir::new();
    dir.write(
        "t.jsonl",
        "{\"k\":\"a\",\"html\":\"<p>\\n\u{e9}\",\"x\":null}\n{\"k\":\"b\",\"html\":\"\",\"x\":1}\n",
    );
    dir.ok("create t.tatami --from t.jsonl --sort-key k --blob html");
    assert_eq!(dir.ok("lookup t.tatami a --columns html").out, "{\"html\":\"\\u003cp\\u003e\\n\u{e9}\"}\n");
    assert_eq!(dir.ok("get t.tatami a --columns html --raw").bytes, "<p>\n\u{e9}".as_bytes());
    assert_eq!(dir.ok("get t.tatami b --columns html --raw").bytes, b"");
    assert_eq!(dir.ok("get t.tatami b --columns x --raw").bytes, b"1");
    assert_eq!(dir.run("get t.tatami a --columns x --raw").code, 1, "null");
    assert_eq!(dir.run("get t.tatami c --columns html --raw").code, 1, "not found");
    assert_eq!(dir.run("get t.tatami a --columns html,x --raw").code, 8);
    assert_eq!(dir.run("get t.tatami a --raw").code, 2);
}

/// Hostile input is an error with little memory.
#[test]
fn hostile_input_is_a_limit_error() {
    let dir = TestDir::new();
    let columns: Vec<String> = (0..100_000).map(|column| format!("c{column}")).collect();
    dir.write("wide.csv", format!("{}\n", columns.join(",")));
    dir.write("commas.csv", ",".repeat(5_000_000));
    dir.write("list.jsonl", format!("{{\"a\":[{}0]}}\n", "0,".repeat(5_000_000)));
    let members: Vec<String> = (0..200_000).map(|key| format!("\"k{key}\":0")).collect();
    dir.write("keys.jsonl", format!("{{{}}}\n", members.join(",")));
    dir.write("growing.jsonl", lines(0..20_000, |key| format!("{{\"k{key}\":0}}")));
    for name in ["wide.csv", "commas.csv", "list.jsonl", "keys.jsonl", "growing.jsonl"] {
        let output = dir.run(&format!("create t.tatami --from {name}"));
        assert_eq!(output.code, 6, "{name}: {}", output.err);
    }
    // A long record among short ones, and long names.
    dir.write("long.csv", format!("a,b\n1,2\n{}\n", ",".repeat(5_000_000)));
    assert_eq!(dir.run("create t.tatami --from long.csv").code, 6);
    dir.write("names.jsonl", lines(1..4000, |key| format!("{{\"{}\":0}}", "k".repeat(key * 3))));
    let output = dir.run("create t.tatami --from names.jsonl");
    assert!(output.code == 6 && output.err.contains("the column names exceed 16 MiB"), "{}", output.err);
}

/// Few values in many columns take memory for one batch and one row group, not for a whole chunk of lines.
#[cfg(unix)]
#[test]
fn sparse_columns_fit_into_memory() {
    let dir = TestDir::new();
    dir.write("sparse.jsonl", lines(0..6000, |row| format!("{{\"a\":{{\"k{}\":null}}}}", row % 5000)));
    let args = format!(
        "ulimit -v 900000; exec {} create t.tatami --from sparse.jsonl",
        env!("CARGO_BIN_EXE_tatami")
    );
    let mut shell = assert_cmd::Command::new("sh");
    let output = run_command(shell.current_dir(dir.0.path()).args(["-c", &args]));
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(output.out.contains("6000 rows, 5000 columns, 2 row groups"), "{}", output.out);
}
