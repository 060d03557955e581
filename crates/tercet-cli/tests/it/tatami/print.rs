//! What the verbs print.

use insta::assert_snapshot;
use serde_json::Value;

use super::{Folder, lines};

#[test]
fn inspect_stats_and_verify_are_told() {
    let folder = Folder::with_cities();
    assert_snapshot!("inspect", folder.ok("inspect cities.tatami --pages").out);
    assert_snapshot!("inspect_json", folder.ok("inspect cities.tatami --json").out);
    assert_snapshot!("stats", folder.ok("stats cities.tatami").out);
    assert_snapshot!("verify", folder.ok("verify cities.tatami --deep").out);
    assert_snapshot!("verify_json", folder.ok("verify cities.tatami --json").out);
    assert_snapshot!("outline", folder.ok("outline cities.tatami --pages").out);
}

#[test]
fn head_and_cat_stop_where_they_are_told() {
    let folder = Folder::new();
    let rows = lines(0..30_000, |row| format!("{{\"n\":{row},\"s\":\"x{row}\"}}"));
    folder.write("n.jsonl", &rows);
    folder.ok("create n.tatami --from n.jsonl --page-rows 1000 --row-group-rows 7000");
    let first = |count: usize| -> String { rows.split_inclusive('\n').take(count).collect() };
    assert_eq!(folder.ok("head n.tatami").out, first(10));
    assert_eq!(folder.ok("head n.tatami -n 0").out, "");
    assert_eq!(folder.ok("head n.tatami -n 20001").out, first(20_001));
    assert_eq!(folder.ok("cat n.tatami --limit 3").out, first(3));
    assert_eq!(folder.ok("cat n.tatami --limit 0").out, rows);
    assert_eq!(folder.ok("cat n.tatami").out, rows);
    assert_eq!(folder.ok("head n.tatami -n 1 --columns s").out, "{\"s\":\"x0\"}\n");
    assert_eq!(folder.ok("head n.tatami -n 1 -c s,n").out, "{\"s\":\"x0\",\"n\":0}\n");
    let twice = folder.run("cat n.tatami --columns n,n");
    assert_eq!(twice.code, 8);
    assert!(twice.err.contains("duplicate column `n`"), "{}", twice.err);
}

#[test]
fn a_key_is_found_or_not() {
    let folder = Folder::with_cities();
    let found = folder.ok("lookup cities.tatami Ulm");
    assert_eq!(found.out, "{\"name\":\"Ulm\",\"people\":126329,\"lat\":48.4,\"tags\":[],\"note\":null}\n");
    let told: Value =
        serde_json::from_str(&folder.ok("lookup cities.tatami Ulm --columns lat --json").out).unwrap();
    assert_eq!(told["values"], serde_json::json!({ "lat": 48.4 }));
    assert_eq!(told["found"], true);
    assert_eq!((told["group"].as_u64(), told["row"].as_u64()), (Some(0), Some(1)));
    let missing = folder.run("lookup cities.tatami Rom");
    assert_eq!((missing.code, missing.out.as_str()), (1, ""));
    assert_eq!(missing.err, "cities.tatami: no row with key `Rom`\n");
    let told: Value = serde_json::from_str(&folder.run("lookup cities.tatami Rom --json").out).unwrap();
    assert_eq!(told["found"], false);

    folder.write("n.jsonl", lines(-500..500, |n| format!("{{\"n\":{}}}", n * 2)));
    folder.ok("create n.tatami --from n.jsonl --sort-key n --page-rows 64 --row-group-rows 300");
    for n in (-500..500).step_by(37) {
        let ran = folder.ok(&format!("lookup n.tatami -- {}", n * 2));
        assert_eq!(ran.out, format!("{{\"n\":{}}}\n", n * 2));
        assert_eq!(folder.run(&format!("lookup n.tatami -- {}", n * 2 + 1)).code, 1);
    }
    assert_eq!(folder.ok("lookup n.tatami -6").out, "{\"n\":-6}\n");
    let wrong = folder.run("lookup n.tatami many");
    assert_eq!(wrong.code, 8);
    assert!(wrong.err.contains("invalid int64 value `many` for the sort key `n`"), "{}", wrong.err);
    folder.ok("create plain.tatami --from n.jsonl");
    let unsorted = folder.run("lookup plain.tatami 2");
    assert_eq!(unsorted.code, 8);
    assert!(unsorted.err.contains("has no sort key to look up"), "{}", unsorted.err);
}

#[test]
fn what_json_cannot_say_is_counted() {
    let folder = Folder::new();
    folder.write("f.csv", "a,b\nNaN,1\n1,inf\n-inf,2\n");
    folder.ok("create f.tatami --from f.csv --schema a:float32,b:float64");
    let ran = folder.ok("cat f.tatami");
    assert_eq!(ran.out, "{\"a\":null,\"b\":1}\n{\"a\":1,\"b\":null}\n{\"a\":null,\"b\":2}\n");
    assert_eq!(ran.err, "warning: f.tatami: NaN and infinities are printed as null: 2 in `a`, 1 in `b`\n");
    assert_eq!(folder.ok("head f.tatami -n 1 --columns b").err, "");
}

#[test]
fn names_cannot_command_a_terminal() {
    let folder = Folder::new();
    folder.write("evil.jsonl", "{\"a\\u001b[2Jb\":\"c\\u009b31m\\u202e\\r\"}\n");
    folder.ok("create evil.tatami --from evil.jsonl --metadata \u{9b}k=\u{1b}v");
    let evil = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    for verb in
        ["inspect", "inspect --pages", "inspect --json", "stats", "stats --json", "outline --pages", "verify"]
    {
        let ran = folder.ok(&format!("{verb} evil.tatami"));
        assert!(!ran.out.contains(evil), "{verb}: {:?}", ran.out);
    }
    let told: Value = serde_json::from_str(&folder.ok("inspect --json evil.tatami").out).unwrap();
    assert_eq!(told["columns"][0]["name"], "a\u{1b}[2Jb");
}
