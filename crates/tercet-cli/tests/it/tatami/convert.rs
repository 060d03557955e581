//! Tables of other formats, made and taken.

use serde_json::Value;

use super::{CITIES, TestDir, lines, run_command};

#[test]
fn golden_conversions_are_told_as_the_reference_tells_them() {
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
        let words = ["convert", "in.parquet", "out.tatami"].iter().chain(&args[3..]).chain(&more);
        let ran = run_command(dir.command().args(words));
        assert_eq!(ran.code, 0, "{}", ran.err);
        let expected = entry["stdout"].as_str().unwrap();
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        // The sizes of our files differ by the bytes of zstd.
        assert_eq!(lines(&ran.out)[..2], lines(expected)[..2]);
        let last = lines(&ran.out)[2].clone();
        assert!(last.starts_with("  tatami:  ") && last.ends_with("% smaller)"), "{last}");
        compared += 1;
        let told: Value = serde_json::from_str(&dir.ok("inspect out.tatami --json").out).unwrap();
        assert_eq!(told["needs"]["reference"], true);
        let blooms = told["schema"].as_array().or(told["columns"].as_array());
        let blooms = blooms.unwrap().iter().filter(|column| column["bloom"] == true).count();
        // An empty list is a list: the reference takes `--bloom ""` for none given.
        assert_eq!(blooms, if args.contains(&"--bloom") { 0 } else { 2 }, "{args:?}");
    }
    assert_eq!(compared, 4);
}

#[test]
fn every_format_becomes_every_other() {
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

/// Names give roles to columns of `.tatami` files only: text stays text in other formats.
#[test]
fn texts_of_any_name_stay_texts() {
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
fn inputs_are_known_by_their_bytes() {
    let dir = TestDir::new();
    dir.write("cities.jsonl", CITIES);
    for format in ["tatami", "parquet", "arrow", "arrows", "csv", "jsonl"] {
        dir.ok(&format!("convert cities.jsonl x.{format}"));
        std::fs::rename(dir.path(&format!("x.{format}")), dir.path("unnamed")).unwrap();
        let told: Value =
            serde_json::from_str(&dir.ok("convert unnamed y.jsonl --force --json").out).unwrap();
        let expected = if format == "arrows" { "arrow-stream" } else { format };
        assert_eq!((&told["input_format"], told["rows"].as_u64()), (&Value::from(expected), Some(3)));
        let ran = dir.fed("unnamed", &["convert", "-", "-", "--to", "jsonl"]);
        assert_eq!((ran.code, ran.out.lines().count()), (0, 3), "{}", ran.err);
        assert!(ran.err.starts_with("converted 3 rows, 5 columns\n"), "{}", ran.err);
    }
    dir.write("noise", [1u8, 2, 3, 0, 255]);
    let ran = dir.run("convert noise y.parquet");
    assert_eq!(ran.code, 7);
    assert!(ran.err.contains("noise: unknown file format"), "{}", ran.err);
    let ran = dir.run("convert cities.jsonl y.unknown");
    assert_eq!(ran.code, 8);
    assert!(ran.err.contains("--to FORMAT"), "{}", ran.err);
}

#[test]
fn files_are_replaced_only_when_told_and_only_whole() {
    let dir = TestDir::new();
    dir.write("cities.jsonl", CITIES);
    dir.ok("convert cities.jsonl a.parquet");
    let before = std::fs::read(dir.path("a.parquet")).unwrap();
    let ran = dir.run("convert cities.jsonl a.parquet");
    assert_eq!(ran.code, 8);
    assert!(ran.err.contains("a.parquet: file exists"), "{}", ran.err);
    dir.write("broken.jsonl", "{\"a\":1}\n{\"a\":\n");
    for end in ["parquet", "tatami", "arrow", "csv", "jsonl"] {
        dir.write(&format!("old.{end}"), "old");
        let ran = dir.run(&format!("convert broken.jsonl old.{end} --force --schema a:int8"));
        assert_ne!(ran.code, 0);
        assert_eq!(std::fs::read(dir.path(&format!("old.{end}"))).unwrap(), b"old", "{end}");
    }
    assert_eq!(std::fs::read(dir.path("a.parquet")).unwrap(), before);
    let ran = dir.run("convert a.parquet a.parquet --force");
    assert!(ran.err.contains("input and output are the same file"), "{}", ran.err);
    dir.ok("convert cities.jsonl a.parquet --force");
    let left: Vec<String> = std::fs::read_dir(dir.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("tmp") || name.starts_with('.'))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn a_file_is_asked_on_the_way() {
    let dir = TestDir::new();
    dir.write("n.jsonl", lines(0..20_000, |n| format!("{{\"n\":{n},\"s\":\"x{}\"}}", n % 7)));
    dir.ok("create n.tatami --from n.jsonl --sort-key n --page-rows 500");
    let ran = dir.ran(&["convert", "n.tatami", "some.parquet", "--where", "s = \"x3\"", "--columns", "s,n"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    dir.ok("convert some.parquet some.tatami --sort-key n");
    assert_eq!(dir.ok("head some.tatami -n 1").out, "{\"s\":\"x3\",\"n\":3}\n");
    assert_eq!(dir.ok("count some.tatami").out, "2857\n");
    assert_eq!(dir.ok("lookup some.tatami 10").out, "{\"s\":\"x3\",\"n\":10}\n");
    // Roles go with the rows of a .tatami file.
    dir.ok("convert n.tatami same.tatami --profile interop");
    assert_eq!(dir.ok("lookup same.tatami 10").out, "{\"n\":10,\"s\":\"x3\"}\n");
    for (args, result) in [
        (["convert", "n.tatami", "x.csv", "--where", "n = "].as_slice(), "expected a number"),
        (&["convert", "n.tatami", "x.csv", "--bloom", "n"], "`--bloom` applies to .tatami output only"),
        (&["convert", "some.parquet", "x.csv", "--columns", "n,m"], "some.parquet: no column `m`"),
        (&["convert", "some.parquet", "x.csv", "--where", "m = 1"], "some.parquet: has no column `m`"),
        (&["convert", "some.parquet", "x.csv", "--columns", "n,n"], "duplicate column `n`"),
        (&["convert", "some.parquet", "x.tatami", "--bloom", "nothing"], "no such column"),
        (&["convert", "some.parquet", "x.tatami", "--schema", "n:int8"], "applies to CSV and JSONL"),
    ] {
        let ran = dir.ran(args);
        assert_eq!(ran.code, 8, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(result), "{args:?}: {}", ran.err);
        assert!(!dir.path("x.csv").exists() && !dir.path("x.tatami").exists());
    }
}

#[test]
fn what_texts_cannot_say_is_told() {
    let dir = TestDir::new();
    dir.write("f.csv", "f\n1.5\nNaN\n-inf\n");
    dir.ok("convert f.csv f.parquet --schema f:float64");
    let ran = dir.ok("convert f.parquet f.jsonl");
    assert_eq!(
        std::fs::read_to_string(dir.path("f.jsonl")).unwrap(),
        "{\"f\":1.5}\n{\"f\":null}\n{\"f\":null}\n"
    );
    assert!(ran.err.contains("NaN and infinities are written as null: 2 in `f`"), "{}", ran.err);
    let ran = dir.ok("convert f.parquet back.csv");
    assert_eq!(std::fs::read_to_string(dir.path("back.csv")).unwrap(), "f\n1.5\nNaN\n-inf\n");
    assert_eq!(ran.err, "");
}

/// Every input is asked for columns and rows, also for columns that stand in the condition only.
#[test]
fn tables_of_all_formats_are_asked() {
    let dir = TestDir::new();
    let row = |n: i64| format!("{{\"n\":{n},\"a,`b\":\"x{}\",\"l\":[{n}],\"z\":null}}", n % 7);
    dir.write("n.jsonl", lines(0..20_000, row));
    let schema = "n:int64,`a,``b`:string,l:list:int64,z:int8:nullable";
    let some = (0..20_000).filter(|n| n % 7 == 3);
    let expected = lines(some, |n| format!("{{\"l\":[{n}],\"n\":{n}}}"));
    for format in ["tatami", "parquet", "arrow", "arrows", "csv", "tsv", "jsonl"] {
        let input = format!("in.{format}");
        let ran = dir.ran(&["convert", "n.jsonl", &input, "--schema", schema]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let text = matches!(format, "csv" | "tsv" | "jsonl");
        let more = if text { &["--schema", schema][..] } else { &[] };
        let ran = |words: &[&str]| dir.ran(&[&["convert", &input], words, more].concat());
        let asked = |columns: &str, condition: &str| {
            let ran = ran(&["-", "--to", "jsonl", "--columns", columns, "--where", condition]);
            assert_eq!(ran.code, 0, "{format}: {}", ran.err);
            ran.out
        };
        assert!(asked("l,n", "`a,``b` = 'x3'") == expected, "{format}");
        let two = "{\"a,`b\":\"x5\"}\n{\"a,`b\":\"x0\"}\n";
        assert_eq!(asked("`a,``b`", "n in (5, 19999)"), two, "{format}");
        assert_eq!(asked("n", "z is not null or l contains -1"), "", "{format}");
        let wrong = ran(&["x.parquet", "--force", "--where", "n = 'x'"]);
        assert_eq!(wrong.code, 8);
        assert!(wrong.err.contains("n = 'x'\n    |     ^^^\n"), "{format}: {}", wrong.err);
        let made = ran(&["some.tatami", "--force", "--columns", "z,n", "--sort-key", "n"]);
        assert_eq!(made.code, 0, "{}", made.err);
        assert_eq!(dir.ok("lookup some.tatami 7").out, "{\"z\":null,\"n\":7}\n");
    }
}

/// What stands in columns that nobody asks for may be anything.
#[test]
fn nested_values_can_be_left_out() {
    let dir = TestDir::new();
    dir.write("a.jsonl", "{\"n\":1,\"o\":{\"p\":[[]]},\"m\":2}\n{\"o\":3,\"n\":2,\"m\":3}\n");
    assert_eq!(dir.run("convert a.jsonl a.parquet").code, 4);
    let ran = dir.ran(&["convert", "a.jsonl", "-", "--to", "csv", "--columns", "n", "--where", "m > 2"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "n\n2\n"), "{}", ran.err);
}

#[test]
fn lists_are_refused_by_the_option_that_refuses_them() {
    let dir = TestDir::new();
    dir.write("a.jsonl", "{\"l\":[1],\"n\":1}\n");
    dir.ok("convert a.jsonl a.parquet");
    let ran = dir.run("convert a.parquet a.tatami --profile interop");
    assert_eq!(ran.code, 7);
    assert!(
        ran.err.contains("`--profile interop` does not support list columns") && ran.err.contains("`l`"),
        "{}",
        ran.err
    );
    let ran = dir.ok("convert a.parquet a.tatami --profile interop --columns n");
    assert!(ran.out.starts_with("converted 1 row, 1 column\n"), "{}", ran.out);
}

#[test]
fn files_of_other_formats_are_called_by_their_names() {
    let dir = TestDir::new();
    dir.write("a.jsonl", lines(0..100, |n| format!("{{\"n\":{n},\"m\":1}}")));
    for (format, what) in [
        ("parquet", "a Parquet file"),
        ("arrow", "an Arrow file"),
        ("arrows", "an Arrow stream"),
        ("csv", "CSV"),
        ("jsonl", "JSON"),
    ] {
        dir.ok(&format!("convert a.jsonl b.{format}"));
        for verb in ["cat", "count", "inspect", "stats"] {
            let ran = dir.run(&format!("{verb} b.{format}"));
            assert_eq!(ran.code, 4, "{}", ran.err);
            assert!(ran.err.contains(&format!("b.{format}: {what}, not a .tatami file")), "{}", ran.err);
            assert!(ran.err.contains("`tatami convert b."), "{}", ran.err);
        }
    }
    dir.write("a.gz", [&[0x1f, 0x8b, 8, 0][..], &[0; 200]].concat());
    let ran = dir.run("cat a.gz");
    assert!(ran.err.contains("a.gz: gzip-compressed data, not a .tatami file"), "{}", ran.err);
}
