//! Segments whose writers are killed, and files that appear while they write.

use std::fmt::Write as _;

use super::{TestDir, lines};
use crate::support::killed::{appears_meanwhile, kill_at_every_stage};

/// Documents that are long enough to be killed while they are written, of few words.
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
fn killed_writers_of_segments_leave_the_old_file_or_the_new_one() {
    let dir = dir();
    dir.write("all.tatami", b"something else");
    kill_at_every_stage(&dir, "index a.jsonl -o all.tatami --force", 0, "all.tatami");
    kill_at_every_stage(&dir, "merge a.tatami b.tatami -o all.tatami --force", 0, "all.tatami");
    let ids = dir.ok("cat a.tatami --columns doc_id --limit 1").out;
    let id = ids.split('"').nth(3).unwrap().to_owned();
    kill_at_every_stage(&dir, &format!("delete a.tatami --id {id}"), 0, "a.tatami");
}

/// Without `--force` no file is replaced, even if it was not there when the command began.
#[test]
fn a_segment_that_appears_meanwhile_stays() {
    let dir = dir();
    appears_meanwhile(&dir, "index a.jsonl -o new");
    appears_meanwhile(&dir, "merge a.tatami b.tatami -o new");
}
