//! Deletes and merges of search segments.

use serde_json::Value;

use super::{TestDir, lines, run_command};

/// A directory with copies of golden segments.
fn with(names: &[&str]) -> Option<TestDir> {
    let golden = tercet_testkit::golden("tatami")?;
    let dir = TestDir::new();
    for name in names {
        std::fs::copy(golden.join(name), dir.path(name.rsplit('/').next().unwrap())).unwrap();
    }
    Some(dir)
}

fn ids(dir: &TestDir, file: &str) -> Vec<String> {
    let printed = dir.ok(&format!("cat {file} --columns doc_id")).out;
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["doc_id"].as_str().unwrap().to_owned();
    printed.lines().map(id).collect()
}

#[test]
fn documents_are_deleted_by_id_filter_and_list() {
    let Some(dir) = with(&["seg_full.tatami"]) else { return };
    let ids = ids(&dir, "seg_full.tatami");
    let one = dir.ok(&format!("delete seg_full.tatami --id {}", ids[0]));
    assert_eq!(one.out, "seg_full.tatami: deleted 1, 399 of 400 documents left\n");
    let two = dir.run(&format!("delete seg_full.tatami --id {} {}", ids[0], ids[1]));
    assert_eq!(two.code, 1, "the first is gone already: {}", two.err);
    assert!(two.out.contains("deleted 1, 398 of 400"), "{}", two.out);
    let unknown = dir.run("delete seg_full.tatami --id unknown");
    assert_eq!(unknown.code, 1);
    assert!(unknown.err.contains("no document `unknown`"), "{}", unknown.err);
    let list = format!("{}\n\n{}\r\n", ids[10], ids[11]);
    let listed = run_command(
        dir.command().args(["delete", "seg_full.tatami", "--ids-from", "-", "--json"]).write_stdin(list),
    );
    let json: Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!((json["deleted"].as_u64(), json["live"].as_u64()), (Some(2), Some(396)));
    let by_condition =
        run_command(dir.command().args(["delete", "seg_full.tatami", "--where", "norm_body >= 0"]));
    assert_eq!(
        by_condition.out, "seg_full.tatami: deleted 396, 0 of 400 documents left\n",
        "{}",
        by_condition.err
    );
    dir.ok("verify --deep -q seg_full.tatami");
    let wrong = run_command(dir.command().args(["delete", "seg_full.tatami", "--where", "nothing = 1"]));
    assert_eq!(wrong.code, 8, "{}", wrong.err);
    assert_eq!(dir.run("delete seg_full.tatami").code, 2);
}

#[test]
fn documents_are_deleted_from_search_segments_only() {
    let dir = TestDir::with_cities();
    let before = dir.read("cities.tatami");
    let refused = dir.run("delete cities.tatami --id 1");
    assert_eq!(refused.code, 8);
    assert!(refused.err.contains("cities.tatami: is not a search segment"), "{}", refused.err);
    assert_eq!(dir.read("cities.tatami"), before);
    assert_eq!(dir.run("delete nothing.tatami --id 1").code, 3);
}

#[test]
fn merged_segments_omit_deleted_documents() {
    let Some(dir) = with(&["cluster/shard-0.tatami", "cluster/shard-1.tatami", "cluster/shard-2.tatami"])
    else {
        return;
    };
    let shards = "shard-0.tatami shard-1.tatami shard-2.tatami";
    let all: Vec<String> = (0..3).flat_map(|shard| ids(&dir, &format!("shard-{shard}.tatami"))).collect();
    dir.ok(&format!("delete shard-0.tatami --id {}", all[3]));
    let json: Value =
        serde_json::from_str(&dir.ok(&format!("merge {shards} -o all.tatami --json")).out).unwrap();
    assert_eq!(json["rows"].as_u64().unwrap(), all.len() as u64 - 1);
    assert_eq!(json["deleted"], 1);
    dir.ok("verify --deep -q all.tatami");
    let mut expected = all.clone();
    expected.remove(3);
    assert_eq!(ids(&dir, "all.tatami"), expected);
    assert_eq!(dir.run(&format!("merge {shards} -o all.tatami")).code, 8, "the file exists");
    dir.ok(&format!("merge {shards} -o all.tatami --dedup --force"));
    let mut once = ids(&dir, "all.tatami");
    let rows = once.len();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), rows, "every ID once");
    let mut distinct: Vec<String> = expected;
    distinct.sort();
    distinct.dedup();
    assert_eq!(once, distinct);
    let plan = dir.ok("merge --policy .").out;
    assert_eq!(plan, "nothing to merge: 4 segments\n");
}

#[test]
fn files_with_the_same_columns_are_merged_by_key() {
    let dir = TestDir::new();
    for (name, from) in [("even", 0), ("odd", 1)] {
        dir.write(
            "rows.jsonl",
            lines((from..200).step_by(2), |key| format!(r#"{{"key":{key},"from":"{name}"}}"#)),
        );
        dir.ok(&format!("create {name}.tatami --from rows.jsonl --sort-key key"));
    }
    let merged = dir.ok("merge even.tatami odd.tatami -o all.tatami").out;
    assert!(merged.starts_with("all.tatami: 200 rows of 2 files, "), "{merged}");
    let rows = dir.ok("cat all.tatami --columns key").out;
    assert_eq!(rows, lines(0..200, |key| format!(r#"{{"key":{key}}}"#)));
    assert_eq!(dir.run("merge even.tatami odd.tatami -o two.tatami --dedup").code, 8);
    dir.write("rows.jsonl", "{\"other\":1}\n");
    dir.ok("create other.tatami --from rows.jsonl");
    let refused = dir.run("merge even.tatami other.tatami -o two.tatami");
    assert_eq!(refused.code, 8, "{}", refused.err);
    assert!(refused.err.contains("the columns differ"), "{}", refused.err);
    assert!(!dir.names().contains(&"two.tatami".to_owned()));
}
