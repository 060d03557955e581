//! Filters: rows, counts and plans.

use serde_json::Value;

use super::{TestDir, lines};

/// 30,000 rows in five row groups, pages of 1,000 rows.
fn numbers() -> TestDir {
    let dir = TestDir::new();
    let row = |n: i64| {
        let note = if n % 3 == 0 { "null".to_owned() } else { format!("\"x{}\"", n % 10) };
        format!("{{\"n\":{n},\"s\":{note},\"f\":{}.5,\"l\":[{},7]}}", n % 100, n % 4)
    };
    dir.write("n.jsonl", lines(0..30_000, row));
    dir.ok("create n.tatami --from n.jsonl --page-rows 1000 --row-group-rows 6000 --bloom s");
    dir
}

#[test]
fn rows_are_filtered() {
    let dir = numbers();
    let cat = |filter: &str, more: &[&str]| {
        let args = ["cat", "n.tatami", "--columns", "n", "--where", filter];
        let output = dir.run_args(&[&args, more].concat());
        assert_eq!((output.code, output.err.as_str()), (0, ""), "{filter}");
        output.out
    };
    let count = |filter: &str| {
        let output = dir.run_args(&["count", "n.tatami", "--where", filter]);
        assert_eq!((output.code, output.err.as_str()), (0, ""), "{filter}");
        output.out.trim_end().parse::<usize>().unwrap()
    };
    assert_eq!(cat("n = 12345", &[]), "{\"n\":12345}\n");
    assert_eq!(cat("n between 29998 and 40000", &[]), "{\"n\":29998}\n{\"n\":29999}\n");
    assert_eq!(cat("s prefix \"x1\" and n < 20", &[]), "{\"n\":1}\n{\"n\":11}\n");
    assert_eq!(cat("n > 5", &["--limit", "2"]), "{\"n\":6}\n{\"n\":7}\n");
    assert_eq!(cat("n in (1, 29000, 3) or n = 2", &[]).lines().count(), 4);
    assert_eq!(cat("n < 0", &[]), "");
    for (filter, rows) in [
        ("s is null", 10_000),
        ("s is not null", 20_000),
        ("not s = \"x1\"", 18_000),
        ("s = \"x1\"", 2_000),
        ("l contains 3", 7_500),
        ("not l contains 7", 0),
        ("f >= 99.5", 300),
        ("n != 3 and n <= 10", 10),
        ("(n = 1 or n = 2) and not n = 2", 1),
        ("s in (\"x1\", \"x2\") and n >= 6000", 3_200),
        ("s = x'7831'", 2_000),
        ("s > x'ff'", 0),
        ("n < 1_000", 1_000),
    ] {
        assert_eq!(count(filter), rows, "{filter}");
        assert_eq!(cat(filter, &[]).lines().count(), rows, "{filter}");
    }
    assert_eq!(dir.ok("count n.tatami").out, "30000\n");
    let json: Value =
        serde_json::from_str(&dir.run_args(&["count", "n.tatami", "--where", "n < 7", "--json"]).out)
            .unwrap();
    assert_eq!(json, serde_json::json!({ "file": "n.tatami", "rows": 30_000, "count": 7 }));
}

#[test]
fn standard_input_is_scanned_like_a_file() {
    let dir = numbers();
    let output = dir.run_piped("n.tatami", &["count", "-", "--where", "n < 7"]);
    assert_eq!((output.code, output.out.as_str()), (0, "7\n"), "{}", output.err);
}

#[test]
fn pruning_is_reported() {
    let dir = numbers();
    let explain = |filter: &str| -> Value {
        let output = dir.run_args(&["explain", "n.tatami", "--where", filter, "--json"]);
        assert_eq!(output.code, 0, "{}", output.err);
        serde_json::from_str(&output.out).unwrap()
    };
    let json = explain("n = 12345");
    assert_eq!((json["groups"].as_u64(), json["groups_scanned"].as_u64()), (Some(5), Some(1)));
    assert_eq!(json["groups_pruned"]["zone"], 4);
    assert_eq!(
        json["rows_pruned"],
        serde_json::json!({ "zone": 24_000, "bloom": 0, "bounds": 5_000, "dictionary": 0 })
    );
    assert_eq!(json["rows_tested"], 1_000);
    assert_eq!(explain("s = \"x33\"")["groups_pruned"], serde_json::json!({ "zone": 0, "bloom": 5 }));
    assert_eq!(explain("s prefix \"x11\"")["rows_pruned"]["dictionary"], 30_000);
    let whole = explain("n >= 6000");
    assert_eq!((whole["rows_matched"].as_u64(), whole["rows_tested"].as_u64()), (Some(24_000), Some(0)));
    let text = dir.run_args(&["explain", "n.tatami", "--where", "n = 12345", "--groups"]).out;
    insta::assert_snapshot!("explain", text);
}

#[test]
fn filter_errors_point_at_the_expression() {
    let dir = numbers();
    let refused = |filter: &str| {
        let output = dir.run_args(&["count", "n.tatami", "--where", filter]);
        assert_eq!((output.code, output.out.as_str()), (8, ""), "{filter}: {}", output.err);
        output.err
    };
    let messages = [
        "n = 3 and",
        "n = ",
        "n ~ 3",
        "é = 1 and n = 2",
        "n = 1 and s > 5",
        "n in (1, true)",
        "l = 3",
        "s = \"open",
        "",
        "n = 01",
        "n = +1",
        "n = .5 or n = 5.",
        "n = 5.",
        "n = 1__0",
        "f < 1e400",
        "s = x'0'",
    ];
    let messages: Vec<String> = messages.map(refused).into();
    insta::assert_snapshot!("filter_errors", messages.join("\n"));
}
