//! Segment writers killed while they write, and files created concurrently.

use std::fmt::Write as _;

use super::{TestDir, lines};
use crate::support::killed::{created_concurrently, kill_at_every_stage, kill_over_time};

/// Enough documents to kill the command while it writes, with a small vocabulary.
fn documents(seed: u64) -> String {
    lines(0..40u64, |number| {
        let mut state = seed * 1000 + number + 1;
        let mut body = String::new();
        for _ in 0..300 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Writing to a String cannot fail.
            let _ = write!(body, "{state:016x}{:016x} ", state.rotate_left(29).wrapping_mul(state));
        }
        format!(r#"{{"url":"u/{seed}/{number}","title":"t{number}","body":"{body}"}}"#)
    })
}

fn dir() -> TestDir {
    let dir = TestDir::new();
    dir.write("a.jsonl", documents(1));
    dir.write("b.jsonl", documents(2));
    dir.ok("index a.jsonl -o a.tatami");
    dir.ok("index b.jsonl -o b.tatami");
    dir
}

#[test]
fn killed_segment_writers_leave_the_old_or_the_new_file() {
    let dir = dir();
    dir.write("all.tatami", b"something else");
    kill_at_every_stage(&dir, "index a.jsonl -o all.tatami --force", 0, "all.tatami");
    kill_at_every_stage(&dir, "merge a.tatami b.tatami -o all.tatami --force", 0, "all.tatami");
    let ids = dir.ok("cat a.tatami --columns doc_id --limit 1").out;
    let id = ids.split('"').nth(3).unwrap().to_owned();
    kill_at_every_stage(&dir, &format!("delete a.tatami --id {id}"), 0, "a.tatami");
}

/// Without `--force` no file is replaced, even one created after the command started.
#[test]
fn a_concurrently_created_segment_is_kept() {
    let dir = dir();
    created_concurrently(&dir, "index a.jsonl -o new");
    created_concurrently(&dir, "merge a.tatami b.tatami -o new");
}

#[test]
fn killed_changes_of_rows_leave_the_old_or_the_new_file() {
    let dir = TestDir::new();
    // Values that no codec shrinks: writing them takes long enough to be killed.
    let wide = |key: u64, word: &str| {
        let mut state = key + 1;
        let mut text = String::new();
        for _ in 0..16 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Writing to a String cannot fail.
            let _ = write!(text, "{:016x}", state.rotate_left(29).wrapping_mul(state));
        }
        format!(r#"{{"id":{key},"text":"{word} {text}"}}"#)
    };
    dir.write("rows.jsonl", lines(0..12_000, |key| wide(key, "old")));
    dir.write("new.jsonl", lines(0..6000, |key| wide(2 * key, "new")));
    dir.ok("create a.tatami --from rows.jsonl --sort-key id");
    kill_at_every_stage(&dir, "upsert a.tatami --key id --from new.jsonl", 0, "a.tatami");
    dir.ok("create b.tatami --from rows.jsonl --sort-key id");
    kill_at_every_stage(&dir, "delete b.tatami --where id<2000", 0, "b.tatami");
    std::fs::create_dir(dir.path("c")).unwrap();
    dir.ok("create c/rows.tatami --from rows.jsonl --sort-key id");
    dir.ok("collection add c c/rows.tatami");
    kill_over_time(
        &dir,
        "c",
        "upsert c --key id --from new.jsonl",
        "agg c --count --min text --max text --group-by id --json",
        "verify c -q",
    );
}

#[test]
fn killed_ingestion_leaves_the_old_or_the_new_file() {
    let dir = TestDir::new();
    let wide = |key: u64| {
        let key = key * 7919 % 20_011;
        format!(
            r#"{{"id":{key},"text":"{:016x}{:016x}"}}"#,
            key.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            key << 40
        )
    };
    dir.write("rows.jsonl", lines(0..20_000, wide));
    dir.write("a.tatami", b"something else");
    kill_at_every_stage(
        &dir,
        "create a.tatami --from rows.jsonl --force --row-group-rows 2000",
        0,
        "a.tatami",
    );
    let sorted = "create a.tatami --from rows.jsonl --force --row-group-rows 2000 --sort id";
    kill_at_every_stage(&dir, sorted, 0, "a.tatami");
}
