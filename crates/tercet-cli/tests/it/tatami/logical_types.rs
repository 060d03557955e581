//! Dates, times, decimals, UUIDs, JSON, enums and lists of fixed length: printing, parsing and filters.

use super::TestDir;

const SCHEMA: &str = "id:int64,price:decimal128[9, 2],wide:decimal256[40, 3],day:date32:nullable,at:time[ms],for:duration[ms],\
     ms:timestamp[ms, UTC],clock:timestamp[us],us:timestamp_micros,days:list:date32";

const ROWS: &str = concat!(
    r#"{"id":1,"price":12.50,"wide":1234567890123456789012345678901234567.891,"day":"2020-01-01","at":"12:34:56.789","#,
    r#""for":"PT90.5S","ms":"2020-01-01T00:00:00.5Z","clock":"2020-06-01T12:00:00","us":"2020-01-01T00:00:00.000001Z","#,
    r#""days":["1969-12-31",null]}"#,
    "\n",
    r#"{"id":2,"price":-0.05,"wide":-0.001,"day":null,"at":"00:00:00","for":"-PT0.001S","#,
    r#""ms":"1969-12-31T23:59:59Z","clock":"1900-01-01T00:00:00","us":"1970-01-01T00:00:00Z","days":[]}"#,
    "\n",
    r#"{"id":3,"price":0.00,"wide":0.000,"day":"-000001-01-01","at":"23:59:59.999","for":"PT0S","#,
    r#""ms":"9999-01-01T00:00:00Z","clock":"1970-01-01T00:00:00.25","us":9223372036854775807,"days":["2024-02-29"]}"#,
    "\n",
);

fn made() -> TestDir {
    let dir = TestDir::new();
    dir.write("rows.jsonl", ROWS);
    let output = dir.run_args(&["convert", "rows.jsonl", "a.parquet", "--schema", SCHEMA]);
    assert_eq!(output.code, 0, "{}", output.err);
    dir.ok("convert a.parquet a.tatami");
    dir
}

#[test]
fn logical_types_are_printed_and_parsed() {
    let dir = made();
    for from in ["a.parquet", "a.tatami"] {
        dir.ok(&format!("convert {from} b.arrow --force"));
        assert_eq!(dir.ok(&format!("convert {from} - --to jsonl")).out, ROWS, "{from}");
        assert_eq!(dir.ok("convert b.arrow - --to jsonl").out, ROWS, "{from}");
    }
    dir.ok("convert a.tatami a.csv");
    let csv = std::fs::read_to_string(dir.path("a.csv")).unwrap();
    let row = "1,12.50,1234567890123456789012345678901234567.891,2020-01-01,12:34:56.789,PT90.5S,2020-01-01T00:00:00.5Z,\
         2020-06-01T12:00:00,2020-01-01T00:00:00.000001Z,\"[\"\"1969-12-31\"\",null]\"";
    assert_eq!(csv.lines().nth(1), Some(row));
    for text in ["rows.jsonl", "a.csv"] {
        let output = dir.run_args(&["convert", text, "back.tatami", "--force", "--schema", SCHEMA]);
        assert_eq!(output.code, 0, "{}", output.err);
        let output = dir.run_args(&["create", "made.tatami", "--force", "--from", text, "--schema", SCHEMA]);
        assert_eq!(output.code, 0, "{}", output.err);
        for made in ["back.tatami", "made.tatami"] {
            assert_eq!(dir.ok(&format!("convert {made} - --to jsonl")).out, ROWS);
            dir.ok(&format!("verify --deep {made}"));
        }
    }
}

/// `cat` prints annotated types; times without annotation are printed as numbers, as other readers do.
#[test]
fn cat_prints_annotated_types() {
    let dir = made();
    let first = |args: &str| dir.ok(args).out.lines().next().unwrap().to_owned();
    let columns = "--columns price,wide,day,at,for,ms,clock,us,days";
    assert_eq!(
        first(&format!("cat a.tatami {columns}")),
        concat!(
            r#"{"price":12.50,"wide":1234567890123456789012345678901234567.891,"day":"2020-01-01","at":"12:34:56.789","#,
            r#""for":"PT90.5S","ms":"2020-01-01T00:00:00.5Z","clock":"2020-06-01T12:00:00","us":1577836800000001,"#,
            r#""days":["1969-12-31",null]}"#,
        )
    );
    assert_eq!(
        first("cat a.tatami --stored --columns price,day,at,for,ms,us,days"),
        r#"{"price":1250,"day":18262,"at":45296789,"for":90500,"ms":1577836800500000,"us":1577836800000001,"days":[-1,null]}"#
    );
    assert_eq!(
        first("convert a.tatami - --to csv --stored --columns price,day,ms"),
        "price,day,ms",
        "names come first"
    );
    assert_eq!(first("head a.tatami -n 1 --columns price"), r#"{"price":12.50}"#);
    dir.ok("convert a.tatami sorted.tatami --sort-key id");
    assert_eq!(first("lookup sorted.tatami 2 --columns price"), r#"{"price":-0.05}"#);
    assert_eq!(first("lookup sorted.tatami 2 --columns price --stored"), r#"{"price":-5}"#);
    dir.run_args(&["convert", "a.tatami", "days.tatami", "--where", "id = 1", "--sort-key", "day"]);
    assert_eq!(first("lookup days.tatami 2020-01-01 --columns id"), r#"{"id":1}"#);
    assert_eq!(first("lookup days.tatami 18262 --columns id"), r#"{"id":1}"#);
    let output = dir.run("convert a.tatami x.parquet --stored");
    assert_eq!(output.code, 8, "{}", output.err);
}

#[test]
fn blob_columns_hold_strings() {
    let dir = TestDir::new();
    dir.write("in.jsonl", "{\"body\":\"hello, \\\"é\\\"\",\"n\":1}\n");
    dir.ok("convert in.jsonl a.parquet");
    dir.ok("convert a.parquet a.tatami --blob body");
    let row = "{\"body\":\"hello, \\\"é\\\"\",\"n\":1}\n";
    assert_eq!(dir.ok("cat a.tatami").out, row);
    assert_eq!(dir.ok("convert a.tatami - --to jsonl").out, row);
    assert_eq!(dir.ok("convert a.tatami - --to csv").out, "body,n\n\"hello, \"\"é\"\"\",1\n");
}

/// The same results from a scan of a `.tatami` file and from a filter during conversion.
#[test]
fn filters_use_logical_types() {
    let dir = made();
    for (filter, ids) in [
        ("price = 12.5", "1"),
        ("price > 12.5", ""),
        ("price >= 12.5", "1"),
        ("price > 12.499", "1"),
        ("price < 12.501", "1 2 3"),
        ("price = 12.501", ""),
        ("price != 12.501", "1 2 3"),
        ("price between -0.05 and 0", "2 3"),
        ("price in (0, -0.05, 7.777)", "2 3"),
        ("wide < 0", "2"),
        ("wide >= 0", "1 3"),
        ("wide > -0.001", "1 3"),
        ("wide <= -0.0005", "2"),
        ("wide = 1234567890123456789012345678901234567.891", "1"),
        ("wide = \"-0.001\"", "2"),
        ("wide between -1 and 1", "2 3"),
        ("not wide = 0", "1 2"),
        ("day = \"2020-01-01\"", "1"),
        ("day < \"2020-01-01\"", "3"),
        ("day = 18262", "1"),
        ("day is null", "2"),
        ("at >= \"12:34:56.7885\"", "1 3"),
        ("for > \"PT1M\"", "1"),
        ("ms >= \"2020-01-01T01:00:00.5+01:00\"", "1 3"),
        ("clock < \"1970-01-01T00:00:00\"", "2"),
        ("us > \"1970-01-01T00:00:00Z\"", "1 3"),
        ("days contains \"2024-02-29\"", "3"),
    ] {
        for from in ["a.tatami", "a.parquet"] {
            let output =
                dir.run_args(&["convert", from, "-", "--to", "csv", "--columns", "id", "--where", filter]);
            assert_eq!(output.code, 0, "{filter}: {}", output.err);
            let found: Vec<&str> = output.out.lines().skip(1).collect();
            assert_eq!(found.join(" "), ids, "{filter} of {from}");
        }
        let output = dir.run_args(&["count", "a.tatami", "--where", filter]);
        assert_eq!(output.out.trim_end(), ids.split_whitespace().count().to_string(), "{filter}");
    }
    for (filter, reason) in [
        ("price > \"x\"", "invalid decimal(9, 2) literal \"x\" for column `price`, for example 12.5"),
        ("wide > x'00'", "invalid decimal(40, 3) literal"),
        ("price prefix \"1\"", "column `price` is decimal(9, 2), which does not support `starts_with`"),
        ("wide prefix x'00'", "column `wide` is decimal(40, 3), which does not support `starts_with`"),
        ("day = \"2020\"", "invalid date literal \"2020\" for column `day`, for example \"2020-01-31\""),
        ("clock < \"1970-01-01T00:00:00Z\"", "invalid timestamp without time zone literal"),
    ] {
        let output = dir.run_args(&["count", "a.tatami", "--where", filter]);
        assert_eq!(output.code, 8);
        assert!(output.err.contains(reason) && output.err.contains('^'), "{filter}: {}", output.err);
    }
}

#[test]
fn values_out_of_range_are_rejected() {
    let dir = TestDir::new();
    for (kind, value) in [
        ("decimal128[9, 2]", "12.505"),
        ("decimal128[4, 2]", "123.45"),
        ("decimal128[4, 2]", "\"x\""),
        ("date32", "\"2020-02-30\""),
        ("date32", "\"2020-01-01T00:00:00\""),
        ("date32", "true"),
        ("time[s]", "\"12:00:00.5\""),
        ("duration[s]", "\"2 hours\""),
        ("timestamp[us]", "\"2020-01-01T00:00:00Z\""),
        ("timestamp[us, UTC]", "\"2020-01-01T00:00:00\""),
    ] {
        dir.write("in.jsonl", format!("{{\"v\":{value}}}\n"));
        let output = dir.run_args(&["convert", "in.jsonl", "x.tatami", "--schema", &format!("v:{kind}")]);
        assert_eq!(output.code, 8, "{kind} {value}: {}", output.err);
        assert!(
            output.err.contains("line 1: column `v`: ") && !dir.path("x.tatami").exists(),
            "{}",
            output.err
        );
    }
}

/// The byte order of wide decimals is not their numeric order, so they cannot be sort keys.
#[test]
fn wide_decimals_cannot_be_sort_keys() {
    let dir = TestDir::new();
    dir.write("a.csv", "p\n-1.25\n1.00\n");
    for (digits, code) in [(18, 0), (19, 8)] {
        let schema = format!("p:decimal128[{digits}, 2]");
        let output = dir.run_args(&[
            "create",
            "a.tatami",
            "--from",
            "a.csv",
            "--schema",
            &schema,
            "--sort-key",
            "p",
            "--force",
        ]);
        assert_eq!(output.code, code, "{}", output.err);
        assert_eq!(output.err.contains("column `p` cannot be the sort key"), code == 8, "{}", output.err);
    }
}

/// UUIDs, JSON, enums and lists of fixed length, through Parquet and back.
#[test]
fn uuids_json_enums_and_fixed_lists_are_logical_types() {
    let dir = TestDir::new();
    let rows = concat!(
        r#"{"id":"123e4567-e89b-12d3-a456-426614174000","doc":{"a":[{"b":null}]},"color":"red","at":[1.5,2]}"#,
        "\n",
        r#"{"id":"ffffffff-0000-0000-0000-000000000000","doc":"text","color":"blue","at":null}"#,
        "\n",
    );
    let schema = "id:uuid,doc:json,color:enum,at:fixed_list[2, float64]:nullable";
    dir.write("rows.jsonl", rows);
    let output =
        dir.run_args(&["create", "a.tatami", "--from", "rows.jsonl", "--schema", schema, "--sort", "id"]);
    assert_eq!(output.code, 0, "{}", output.err);
    assert_eq!(dir.ok("cat a.tatami").out, rows);
    dir.ok("convert a.tatami a.parquet");
    dir.ok("convert a.parquet b.tatami");
    assert_eq!(dir.ok("cat b.tatami").out, rows);
    dir.ok("verify --deep b.tatami");
    assert_eq!(
        dir.ok("cat a.tatami --stored --columns doc -n 1").out,
        "{\"doc\":\"{\\\"a\\\":[{\\\"b\\\":null}]}\"}\n"
    );
    let csv = dir.ok("convert a.tatami - --to csv").out;
    let expected = concat!(
        "id,doc,color,at\n",
        r#"123e4567-e89b-12d3-a456-426614174000,"{""a"":[{""b"":null}]}",red,"[1.5,2]""#,
        "\n",
        r#"ffffffff-0000-0000-0000-000000000000,"""text""",blue,"#,
        "\n",
    );
    assert_eq!(csv, expected);
    dir.write("rows.csv", &csv);
    let output = dir.run_args(&["create", "c.tatami", "--from", "rows.csv", "--schema", schema]);
    assert_eq!(output.code, 0, "{}", output.err);
    assert_eq!(dir.ok("cat c.tatami").out, rows);
    for file in ["a.tatami", "b.tatami"] {
        for (filter, count) in [
            ("id = \"123E4567E89B12D3A456426614174000\"", "1"),
            ("id > \"123e4567-e89b-12d3-a456-426614174000\"", "1"),
            ("color in (\"red\", \"green\")", "1"),
            ("color like \"%e%\"", "2"),
            ("doc contains \"null\"", "1"),
        ] {
            let found = dir.run_args(&["count", file, "--where", filter]);
            assert_eq!(found.out.trim(), count, "{filter}: {}", found.err);
        }
    }
    let found = dir.ok("lookup a.tatami ffffffff-0000-0000-0000-000000000000 --columns color");
    assert_eq!(found.out, "{\"color\":\"blue\"}\n");
    let stats = dir.ok("stats a.tatami").out;
    assert!(stats.contains("123e4567-e89b-12d3-a456-426614174000"), "{stats}");
    let wrong = dir.run_args(&["count", "a.tatami", "--where", "id = \"1\""]);
    assert_eq!(wrong.code, 8);
    assert!(wrong.err.contains("invalid uuid literal \"1\" for column `id`, for example"), "{}", wrong.err);
    for (schema, row, reason) in [
        ("id:uuid", r#"{"id":"1"}"#, "is not a valid uuid"),
        (
            "at:fixed_list[2, int8]",
            r#"{"at":[1]}"#,
            "line 1: column `at`: the list has another length than declared",
        ),
    ] {
        dir.write("bad.jsonl", row);
        let output = dir.run_args(&["create", "bad.tatami", "--from", "bad.jsonl", "--schema", schema]);
        assert!(output.code == 8 && output.err.contains(reason), "{} {}", output.code, output.err);
    }
    dir.write("bad.csv", "doc\n{\n");
    let output = dir.run("create bad.tatami --from bad.csv --schema doc:json");
    assert!(output.code == 8 && output.err.contains("is not valid JSON"), "{} {}", output.code, output.err);
}

/// Strings of JSONL that are all dates are dates; a later value that is none makes them strings again.
#[test]
fn dates_of_jsonl_are_inferred() {
    let dir = TestDir::new();
    let rows =
        "{\"day\":\"2024-02-29\",\"at\":\"2024-02-29T12:00:00Z\"}\n{\"day\":\"2023-01-01\",\"at\":null}\n";
    assert_eq!(dir.round_trip("d.jsonl", rows, ""), rows);
    let stored = dir.ok("cat back.tatami --stored").out;
    assert_eq!(stored, "{\"day\":19782,\"at\":1709208000000000}\n{\"day\":19358,\"at\":null}\n");
    let mixed = format!("{rows}{{\"day\":\"unknown\",\"at\":\"2024-02-29T12:00:00Z\"}}\n");
    assert_eq!(dir.round_trip("m.jsonl", &mixed, "--sample 1"), mixed);
    let number = format!("{rows}{{\"day\":5}}\n");
    dir.write("n.jsonl", &number);
    let output = dir.run("create n.tatami --from n.jsonl --sample 1");
    assert!(output.err.contains("has numbers (line 3) and dates (line 1)"), "{}", output.err);
    // As strings on request.
    let text = dir.round_trip("d.jsonl", rows, "--schema day:string,at:string:nullable");
    assert_eq!(text, rows);
    assert_eq!(dir.ok("cat back.tatami --stored").out, rows);
}
