//! Conversion from and to other table formats.

use serde_json::Value;

use super::{CITIES, TestDir, lines, run_command};

#[test]
fn golden_conversions_match_the_reference() {
    let Some(golden) = tercet_testkit::golden("tatami") else { return };
    let manifest = std::fs::read_to_string(golden.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let dir = TestDir::new();
    std::fs::copy(golden.join("convert/in.parquet"), dir.path("in.parquet")).unwrap();
    let mut compared = 0;
    for entry in manifest["cli"].as_array().unwrap() {
        let args: Vec<&str> =
            entry["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
        if args[0] != "convert" {
            continue;
        }
        let more = ["--force", "--profile", "interop", "--raw-timestamps"];
        let command_args = ["convert", "in.parquet", "out.tatami"].iter().chain(&args[3..]).chain(&more);
        let output = run_command(dir.command().args(command_args));
        assert_eq!(output.code, 0, "{}", output.err);
        let expected = entry["stdout"].as_str().unwrap();
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        // File sizes differ by the output of the zstd version.
        assert_eq!(lines(&output.out)[..2], lines(expected)[..2]);
        let last = lines(&output.out)[2].clone();
        assert!(last.starts_with("  tatami:  ") && last.ends_with("% smaller)"), "{last}");
        compared += 1;
        let json: Value = serde_json::from_str(&dir.ok("inspect out.tatami --json").out).unwrap();
        assert_eq!(json["required_features"]["reference"], true);
        let blooms = json["schema"].as_array().or(json["columns"].as_array());
        let blooms = blooms.unwrap().iter().filter(|column| column["bloom"] == true).count();
        // An empty list is a list: the reference treats `--bloom ""` as no option.
        assert_eq!(blooms, if args.contains(&"--bloom") { 0 } else { 2 }, "{args:?}");
    }
    assert_eq!(compared, 4);
}

#[test]
fn every_format_converts_to_every_other() {
    let dir = TestDir::new();
    dir.write("cities.jsonl", CITIES);
    dir.ok("create cities.tatami --from cities.jsonl");
    let expected = dir.ok("cat cities.tatami").out;
    let formats = ["tatami", "parquet", "arrow", "arrows", "csv", "tsv", "jsonl"];
    let schema = "--schema name:string,people:int64,lat:float64,tags:list:string,note:string:nullable";
    for first in formats {
        dir.ok(&format!("convert cities.tatami a.{first} --force"));
        for second in formats {
            let text = |format: &str| if matches!(format, "csv" | "tsv" | "jsonl") { schema } else { "" };
            dir.ok(&format!("convert a.{first} b.{second} --force {}", text(first)));
            dir.ok(&format!("convert b.{second} back.tatami --force {}", text(second)));
            assert_eq!(dir.ok("cat back.tatami").out, expected, "{first} to {second}");
            assert_eq!(dir.run("verify --deep back.tatami").code, 0);
        }
    }
}

/// Column names select roles in `.tatami` files only; strings stay strings in other formats.
#[test]
fn string_types_stay_strings() {
    let dir = TestDir::new();
    dir.write("in.jsonl", "{\"body\":\"hello\",\"html\":\"é\"}\n");
    dir.ok("convert in.jsonl a.parquet");
    dir.ok("convert a.parquet b.arrow");
    for from in ["a.parquet", "b.arrow"] {
        assert_eq!(
            dir.ok(&format!("convert {from} - --to jsonl")).out,
            "{\"body\":\"hello\",\"html\":\"é\"}\n"
        );
        assert_eq!(dir.ok(&format!("convert {from} - --to csv")).out, "body,html\nhello,é\n");
    }
    dir.ok("convert a.parquet c.tatami");
    assert!(dir.ok("inspect c.tatami").out.contains("blobref"));
}

#[test]
fn input_formats_are_detected_by_content() {
    let dir = TestDir::new();
    dir.write("cities.jsonl", CITIES);
    for format in ["tatami", "parquet", "arrow", "arrows", "csv", "jsonl"] {
        dir.ok(&format!("convert cities.jsonl x.{format}"));
        std::fs::rename(dir.path(&format!("x.{format}")), dir.path("unnamed")).unwrap();
        let json: Value =
            serde_json::from_str(&dir.ok("convert unnamed y.jsonl --force --json").out).unwrap();
        let expected = if format == "arrows" { "arrow-stream" } else { format };
        assert_eq!((&json["input_format"], json["rows"].as_u64()), (&Value::from(expected), Some(3)));
        let output = dir.run_piped("unnamed", &["convert", "-", "-", "--to", "jsonl"]);
        assert_eq!((output.code, output.out.lines().count()), (0, 3), "{}", output.err);
        assert!(output.err.starts_with("converted 3 rows, 5 columns\n"), "{}", output.err);
    }
    dir.write("noise", [1u8, 2, 3, 0, 255]);
    let output = dir.run("convert noise y.parquet");
    assert_eq!(output.code, 7);
    assert!(output.err.contains("noise: unknown file format"), "{}", output.err);
    assert!(output.err.contains("`--from-format FORMAT`"), "{}", output.err);
    dir.write("h5.nc", b"\x89HDF\r\n\x1a\n\0\0\0\0\0\0\0\0");
    let output = dir.run("convert h5.nc out.tatami");
    assert!(output.err.contains("is an HDF5 or NetCDF-4 file"), "{}", output.err);
    assert!(!output.err.contains("--from-format"), "{}", output.err);
    let output = dir.run("convert cities.jsonl y.unknown");
    assert_eq!(output.code, 8);
    assert!(output.err.contains("--to FORMAT"), "{}", output.err);
}

#[test]
fn files_are_replaced_atomically_and_only_with_force() {
    let dir = TestDir::new();
    dir.write("cities.jsonl", CITIES);
    dir.ok("convert cities.jsonl a.parquet");
    let before = std::fs::read(dir.path("a.parquet")).unwrap();
    let output = dir.run("convert cities.jsonl a.parquet");
    assert_eq!(output.code, 8);
    assert!(output.err.contains("a.parquet: file exists"), "{}", output.err);
    dir.write("broken.jsonl", "{\"a\":1}\n{\"a\":\n");
    for end in ["parquet", "tatami", "arrow", "csv", "jsonl"] {
        dir.write(&format!("old.{end}"), "old");
        let output = dir.run(&format!("convert broken.jsonl old.{end} --force --schema a:int8"));
        assert_ne!(output.code, 0);
        assert_eq!(std::fs::read(dir.path(&format!("old.{end}"))).unwrap(), b"old", "{end}");
    }
    assert_eq!(std::fs::read(dir.path("a.parquet")).unwrap(), before);
    let output = dir.run("convert a.parquet a.parquet --force");
    assert!(output.err.contains("input and output are the same file"), "{}", output.err);
    dir.ok("convert cities.jsonl a.parquet --force");
    let left: Vec<String> = std::fs::read_dir(dir.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("tmp") || name.starts_with('.'))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn convert_applies_filters_and_columns() {
    let dir = TestDir::new();
    dir.write("n.jsonl", lines(0..20_000, |n| format!("{{\"n\":{n},\"s\":\"x{}\"}}", n % 7)));
    dir.ok("create n.tatami --from n.jsonl --sort-key n --page-rows 500");
    let output =
        dir.run_args(&["convert", "n.tatami", "some.parquet", "--where", "s = \"x3\"", "--columns", "s,n"]);
    assert_eq!(output.code, 0, "{}", output.err);
    dir.ok("convert some.parquet some.tatami --sort-key n");
    assert_eq!(dir.ok("head some.tatami -n 1").out, "{\"s\":\"x3\",\"n\":3}\n");
    assert_eq!(dir.ok("count some.tatami").out, "2857\n");
    assert_eq!(dir.ok("lookup some.tatami 10").out, "{\"s\":\"x3\",\"n\":10}\n");
    // Roles are kept from one .tatami file to another.
    dir.ok("convert n.tatami same.tatami --profile interop");
    assert_eq!(dir.ok("lookup same.tatami 10").out, "{\"n\":10,\"s\":\"x3\"}\n");
    for (args, reason) in [
        (["convert", "n.tatami", "x.csv", "--where", "n = "].as_slice(), "expected a number"),
        (&["convert", "n.tatami", "x.csv", "--bloom", "n"], "`--bloom` applies to .tatami output only"),
        (&["convert", "some.parquet", "x.csv", "--columns", "n,m"], "some.parquet: no column `m`"),
        (&["convert", "some.parquet", "x.csv", "--where", "m = 1"], "some.parquet: has no column `m`"),
        (&["convert", "some.parquet", "x.csv", "--columns", "n,n"], "duplicate column `n`"),
        (&["convert", "some.parquet", "x.tatami", "--bloom", "nothing"], "no such column"),
        (&["convert", "some.parquet", "x.tatami", "--schema", "n:int8"], "applies to CSV and JSONL"),
    ] {
        let output = dir.run_args(args);
        assert_eq!(output.code, 8, "{args:?}: {}", output.err);
        assert!(output.err.contains(reason), "{args:?}: {}", output.err);
        assert!(!dir.path("x.csv").exists() && !dir.path("x.tatami").exists());
    }
}

#[test]
fn lossy_text_conversions_are_reported() {
    let dir = TestDir::new();
    dir.write("f.csv", "f\n1.5\nNaN\n-inf\n");
    dir.ok("convert f.csv f.parquet --schema f:float64");
    let output = dir.ok("convert f.parquet f.jsonl");
    assert_eq!(
        std::fs::read_to_string(dir.path("f.jsonl")).unwrap(),
        "{\"f\":1.5}\n{\"f\":null}\n{\"f\":null}\n"
    );
    assert!(output.err.contains("NaN and infinities are written as null: 2 in `f`"), "{}", output.err);
    let output = dir.ok("convert f.parquet back.csv");
    assert_eq!(std::fs::read_to_string(dir.path("back.csv")).unwrap(), "f\n1.5\nNaN\n-inf\n");
    assert_eq!(output.err, "");
}

/// Columns and filters work on every input format, also for columns used by the filter only.
#[test]
fn every_table_format_can_be_queried() {
    let dir = TestDir::new();
    let row = |n: i64| format!("{{\"n\":{n},\"a,`b\":\"x{}\",\"l\":[{n}],\"z\":null}}", n % 7);
    dir.write("n.jsonl", lines(0..20_000, row));
    let schema = "n:int64,`a,``b`:string,l:list:int64,z:int8:nullable";
    let some = (0..20_000).filter(|n| n % 7 == 3);
    let expected = lines(some, |n| format!("{{\"l\":[{n}],\"n\":{n}}}"));
    for format in ["tatami", "parquet", "arrow", "arrows", "csv", "tsv", "jsonl"] {
        let input = format!("in.{format}");
        let output = dir.run_args(&["convert", "n.jsonl", &input, "--schema", schema]);
        assert_eq!(output.code, 0, "{}", output.err);
        let text = matches!(format, "csv" | "tsv" | "jsonl");
        let more = if text { &["--schema", schema][..] } else { &[] };
        let output = |args: &[&str]| dir.run_args(&[&["convert", &input], args, more].concat());
        let converted = |columns: &str, filter: &str| {
            let output = output(&["-", "--to", "jsonl", "--columns", columns, "--where", filter]);
            assert_eq!(output.code, 0, "{format}: {}", output.err);
            output.out
        };
        assert!(converted("l,n", "`a,``b` = 'x3'") == expected, "{format}");
        let two = "{\"a,`b\":\"x5\"}\n{\"a,`b\":\"x0\"}\n";
        assert_eq!(converted("`a,``b`", "n in (5, 19999)"), two, "{format}");
        assert_eq!(converted("n", "z is not null or l contains -1"), "", "{format}");
        let wrong = output(&["x.parquet", "--force", "--where", "n = 'x'"]);
        assert_eq!(wrong.code, 8);
        assert!(wrong.err.contains("n = 'x'\n    |     ^^^\n"), "{format}: {}", wrong.err);
        let made = output(&["some.tatami", "--force", "--columns", "z,n", "--sort-key", "n"]);
        assert_eq!(made.code, 0, "{}", made.err);
        assert_eq!(dir.ok("lookup some.tatami 7").out, "{\"z\":null,\"n\":7}\n");
    }
}

/// Columns that are not selected may have any type.
#[test]
fn unselected_columns_may_be_nested() {
    let dir = TestDir::new();
    dir.write("a.jsonl", "{\"n\":1,\"o\":{\"p\":[[]]},\"m\":2}\n{\"o\":3,\"n\":2,\"m\":3}\n");
    dir.write("b.jsonl", "{\"n\":1,\"o\":[}\n");
    assert_eq!(dir.run("convert b.jsonl b.parquet").code, 4);
    let output =
        dir.run_args(&["convert", "a.jsonl", "-", "--to", "csv", "--columns", "n", "--where", "m > 2"]);
    assert_eq!((output.code, output.out.as_str()), (0, "n\n2\n"), "{}", output.err);
}

#[test]
fn the_interop_profile_rejects_lists() {
    let dir = TestDir::new();
    dir.write("a.jsonl", "{\"l\":[1],\"n\":1}\n");
    dir.ok("convert a.jsonl a.parquet");
    let output = dir.run("convert a.parquet a.tatami --profile interop");
    assert_eq!(output.code, 7);
    assert!(
        output.err.contains("`--profile interop` does not support list columns")
            && output.err.contains("`l`"),
        "{}",
        output.err
    );
    let output = dir.ok("convert a.parquet a.tatami --profile interop --columns n");
    assert!(output.out.starts_with("converted 1 row, 1 column\n"), "{}", output.out);
}

#[test]
fn other_formats_are_named_in_errors() {
    let dir = TestDir::new();
    dir.write("a.jsonl", lines(0..100, |n| format!("{{\"n\":{n},\"m\":1}}")));
    for (format, what) in [
        ("parquet", "a Parquet file"),
        ("arrow", "an Arrow IPC file"),
        ("arrows", "an Arrow IPC stream"),
        ("csv", "a text table such as CSV"),
        ("jsonl", "a JSON file"),
    ] {
        dir.ok(&format!("convert a.jsonl b.{format}"));
        for verb in ["cat", "count", "inspect", "stats"] {
            let output = dir.run(&format!("{verb} b.{format}"));
            assert_eq!(output.code, 7, "{}", output.err);
            assert!(
                output.err.contains(&format!("b.{format}: is {what}, not a Tercet container")),
                "{}",
                output.err
            );
            assert!(output.err.contains("`tatami convert b."), "{}", output.err);
        }
    }
    dir.write("a.gz", [&[0x1f, 0x8b, 8, 0][..], &[0; 200]].concat());
    let output = dir.run("cat a.gz");
    assert!(output.err.contains("a.gz: is gzip-compressed, not a Tercet container"), "{}", output.err);
    assert!(output.err.contains("`gunzip`"), "{}", output.err);
}
