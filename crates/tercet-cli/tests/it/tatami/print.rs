//! Output of the commands.

use insta::assert_snapshot;
use serde_json::Value;

use super::{TestDir, lines};

#[test]
fn inspect_stats_and_verify_print_reports() {
    let dir = TestDir::with_cities();
    assert_snapshot!("inspect", dir.ok("inspect cities.tatami --pages").out);
    assert_snapshot!("inspect_json", dir.ok("inspect cities.tatami --json").out);
    assert_snapshot!("stats", dir.ok("stats cities.tatami").out);
    assert_snapshot!("verify", dir.ok("verify cities.tatami --deep").out);
    assert_snapshot!("verify_json", dir.ok("verify cities.tatami --json").out);
    assert_snapshot!("outline", dir.ok("outline cities.tatami --pages").out);
}

#[test]
fn head_and_cat_stop_at_the_limit() {
    let dir = TestDir::new();
    let rows = lines(0..30_000, |row| format!("{{\"n\":{row},\"s\":\"x{row}\"}}"));
    dir.write("n.jsonl", &rows);
    dir.ok("create n.tatami --from n.jsonl --page-rows 1000 --row-group-rows 7000");
    let first = |count: usize| -> String { rows.split_inclusive('\n').take(count).collect() };
    assert_eq!(dir.ok("head n.tatami").out, first(10));
    assert_eq!(dir.ok("head n.tatami -n 0").out, rows);
    assert_eq!(dir.ok("head n.tatami -n 20001").out, first(20_001));
    assert_eq!(dir.ok("cat n.tatami --limit 3").out, first(3));
    assert_eq!(dir.ok("cat n.tatami --limit 0").out, rows);
    assert_eq!(dir.ok("cat n.tatami").out, rows);
    assert_eq!(dir.ok("head n.tatami -n 1 --columns s").out, "{\"s\":\"x0\"}\n");
    assert_eq!(dir.ok("head n.tatami -n 1 -c s,n").out, "{\"s\":\"x0\",\"n\":0}\n");
    let twice = dir.run("cat n.tatami --columns n,n");
    assert_eq!(twice.code, 8);
    assert!(twice.err.contains("duplicate column `n`"), "{}", twice.err);
}

#[test]
fn lookup_finds_keys() {
    let dir = TestDir::with_cities();
    let found = dir.ok("lookup cities.tatami Ulm");
    assert_eq!(found.out, "{\"name\":\"Ulm\",\"people\":126329,\"lat\":48.4,\"tags\":[],\"note\":null}\n");
    let json: Value =
        serde_json::from_str(&dir.ok("lookup cities.tatami Ulm --columns lat --json").out).unwrap();
    assert_eq!(json["values"], serde_json::json!({ "lat": 48.4 }));
    assert_eq!(json["found"], true);
    assert_eq!((json["group"].as_u64(), json["row"].as_u64()), (Some(0), Some(1)));
    let missing = dir.run("lookup cities.tatami Rom");
    assert_eq!((missing.code, missing.out.as_str()), (1, ""));
    assert_eq!(missing.err, "cities.tatami: no row with key `Rom`\n");
    let missing = dir.run("lookup cities.tatami Rom -q");
    assert_eq!((missing.code, missing.out.as_str(), missing.err.as_str()), (1, "", ""));
    let json: Value = serde_json::from_str(&dir.run("lookup cities.tatami Rom --json").out).unwrap();
    assert_eq!(json["found"], false);

    dir.write("n.jsonl", lines(-500..500, |n| format!("{{\"n\":{}}}", n * 2)));
    dir.ok("create n.tatami --from n.jsonl --sort-key n --page-rows 64 --row-group-rows 300");
    for n in (-500..500).step_by(37) {
        let output = dir.ok(&format!("lookup n.tatami -- {}", n * 2));
        assert_eq!(output.out, format!("{{\"n\":{}}}\n", n * 2));
        assert_eq!(dir.run(&format!("lookup n.tatami -- {}", n * 2 + 1)).code, 1);
    }
    assert_eq!(dir.ok("lookup n.tatami -6").out, "{\"n\":-6}\n");
    // Several rows have a key, also over pages and row groups.
    dir.write("many.jsonl", lines(0..900, |n| format!("{{\"n\":{},\"row\":{n}}}", n / 300)));
    dir.ok("create many.tatami --from many.jsonl --sort-key n --page-rows 64 --row-group-rows 250");
    let first = dir.ok("lookup many.tatami 1");
    assert_eq!(first.out, "{\"n\":1,\"row\":300}\n");
    assert_eq!(first.err, "note: more rows have this key; `--all` prints them\n");
    let all = dir.ok("lookup many.tatami 1 --all --columns row").out;
    assert_eq!(all, lines(300..600, |n| format!("{{\"row\":{n}}}")));
    assert_eq!(dir.run("lookup many.tatami 7 --all").code, 1);
    assert_eq!(dir.ok("lookup n.tatami 4").err, "");
    let wrong = dir.run("lookup n.tatami many");
    assert_eq!(wrong.code, 8);
    assert!(wrong.err.contains("invalid int64 value `many` for the sort key `n`"), "{}", wrong.err);
    dir.ok("create plain.tatami --from n.jsonl");
    let unsorted = dir.run("lookup plain.tatami 2");
    assert_eq!(unsorted.code, 8);
    assert!(unsorted.err.contains("has no sort key to look up"), "{}", unsorted.err);
}

#[test]
fn values_without_json_form_are_counted() {
    let dir = TestDir::new();
    dir.write("f.csv", "a,b\nNaN,1\n1,inf\n-inf,2\n");
    dir.ok("create f.tatami --from f.csv --schema a:float32,b:float64");
    let output = dir.ok("cat f.tatami");
    assert_eq!(output.out, "{\"a\":null,\"b\":1}\n{\"a\":1,\"b\":null}\n{\"a\":null,\"b\":2}\n");
    assert_eq!(output.err, "warning: f.tatami: NaN and infinities are printed as null: 2 in `a`, 1 in `b`\n");
    assert_eq!(dir.ok("head f.tatami -n 1 --columns b").err, "");
}

#[test]
fn names_are_escaped_for_terminals() {
    let dir = TestDir::new();
    dir.write("evil.jsonl", "{\"a\\u001b[2Jb\":\"c\\u009b31m\\u202e\\r\"}\n");
    dir.ok("create evil.tatami --from evil.jsonl --metadata \u{9b}k=\u{1b}v");
    let evil = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    for verb in
        ["inspect", "inspect --pages", "inspect --json", "stats", "stats --json", "outline --pages", "verify"]
    {
        let output = dir.ok(&format!("{verb} evil.tatami"));
        assert!(!output.out.contains(evil), "{verb}: {:?}", output.out);
    }
    let json: Value = serde_json::from_str(&dir.ok("inspect --json evil.tatami").out).unwrap();
    assert_eq!(json["columns"][0]["name"], "a\u{1b}[2Jb");
}
