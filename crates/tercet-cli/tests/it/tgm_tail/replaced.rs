//! Files that shrink, are replaced, go away and come back.

use std::io::Write as _;

use super::{TestDir, message};

fn rename(dir: &TestDir, from: &str, to: &str) {
    std::fs::rename(dir.path(from), dir.path(to)).unwrap();
}

#[test]
fn a_file_that_shrank_is_read_from_its_start() {
    let dir = TestDir::new();
    dir.write("run.tgm", [message(0, 1000), message(1, 1000)].concat());
    let tail = dir.tail("run.tgm --json -p step");
    assert_eq!(tail.steps(2), [0, 1]);
    dir.write("run.tgm", message(2, 10));
    assert_eq!(tail.note(), "note: run.tgm: file was truncated; reading from its start");
    assert_eq!(tail.steps(1), [2]);
    dir.append("run.tgm", &message(3, 10));
    assert_eq!(tail.steps(1), [3]);
    tail.kill();
}

/// A writer that starts anew takes back half a message first: what was told is not told again.
#[test]
fn half_a_message_that_is_taken_back_costs_nothing() {
    let dir = TestDir::new();
    let good = [message(0, 100), message(1, 100)].concat();
    dir.write("run.tgm", [&good[..], &message(2, 1000)[..700]].concat());
    let tail = dir.tail("run.tgm --json -p step --until-count 6");
    assert_eq!(tail.steps(2), [0, 1]);
    let cut = |len: usize| {
        let file = std::fs::OpenOptions::new().write(true).open(dir.path("run.tgm")).unwrap();
        file.set_len(len as u64).unwrap();
    };
    cut(good.len());
    assert_eq!(tail.note(), "note: run.tgm: file was truncated; continuing after the last complete message");
    dir.append("run.tgm", &message(3, 100));
    assert_eq!(tail.steps(1), [3]);
    // The same in a file that takes its place; whether the half one was seen by then makes no difference.
    let good = dir.read("run.tgm");
    dir.append("run.tgm", &message(4, 100)[..99]);
    std::thread::sleep(std::time::Duration::from_millis(100));
    dir.write("next.tgm", [&good[..], &message(5, 100)].concat());
    rename(&dir, "next.tgm", "run.tgm");
    assert_eq!(tail.steps(1), [5]);
    // And in one that is longer already when it is looked at.
    let good = dir.read("run.tgm");
    dir.append("run.tgm", &message(6, 100)[..99]);
    std::thread::sleep(std::time::Duration::from_millis(100));
    cut(good.len());
    dir.append("run.tgm", &[message(7, 100), message(8, 100)].concat());
    assert_eq!(tail.steps(2), [7, 8]);
    let (code, out, _) = tail.end();
    assert_eq!((code, out), (0, vec![]));
}

/// Between two looks at a file it can shrink and grow beyond what it was.
#[test]
fn a_file_that_was_written_anew_is_read_from_its_start() {
    let dir = TestDir::new();
    dir.write("run.tgm", message(0, 10));
    let tail = dir.tail("run.tgm --json -p step --interval 0.3");
    assert_eq!(tail.steps(1), [0]);
    dir.write("run.tgm", [message(1, 300), message(2, 300)].concat());
    let note = tail.note();
    // On a machine that is very busy it may be seen while it is empty.
    let (anew, shrank) = ("was rewritten", "was truncated");
    assert!(note.contains(anew) || note.contains(shrank), "{note}");
    assert_eq!(tail.steps(2), [1, 2]);
    tail.kill();
}

/// Messages of one run have the same length, and so have two runs.
#[test]
fn a_file_that_is_written_anew_with_the_same_length_is_read_again() {
    let dir = TestDir::new();
    let (old, new) =
        ([message(0, 300), message(1, 300)].concat(), [message(2, 300), message(3, 300)].concat());
    assert_eq!(old.len(), new.len());
    dir.write("run.tgm", &old);
    let tail = dir.tail("run.tgm --json -p step --interval 0.1");
    assert_eq!(tail.steps(2), [0, 1]);
    // Not shorter for a moment, as a file that is created anew would be.
    let mut file = std::fs::OpenOptions::new().write(true).open(dir.path("run.tgm")).unwrap();
    file.write_all(&new).unwrap();
    assert_eq!(tail.note(), "note: run.tgm: file was rewritten; reading from its start");
    assert_eq!(tail.steps(2), [2, 3]);
    tail.kill();
}

/// Our own writers put a new file in the place of the old one.
#[test]
fn a_file_that_was_appended_to_is_gone_on_with() {
    let dir = TestDir::new();
    let array =
        [&b"\x93NUMPY\x01\0\x76\0{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }"[..]].concat();
    let mut array = [array, vec![b' '; 128 - 10 - 58 - 1], b"\n".to_vec()].concat();
    array.resize(128, b' ');
    array[127] = b'\n';
    array.extend([1, 2, 3]);
    dir.write("a.npy", &array);
    // A catalogue is written anew behind every message; nobody is told.
    for has_catalogue in [false, true] {
        dir.ok("create run.tgm --force --from a=a.npy");
        if has_catalogue {
            dir.ok("index run.tgm");
        }
        let tail = dir.tail("run.tgm --until-count 5");
        assert_eq!(tail.line(), "message\toffset\tlength\tobjects");
        let first = tail.line();
        assert!(first.starts_with("0\t0\t"), "{first}");
        for number in 1..5 {
            dir.ok("create run.tgm --append --from a=a.npy");
            let line = tail.line();
            assert!(line.starts_with(&format!("{number}\t")), "{line}");
        }
        assert_eq!(tail.end(), (0, vec![], vec![]), "{has_catalogue}");
    }
}

/// Another file in the place of the old one: what the old one still had is told first.
#[test]
fn a_file_that_was_replaced_is_read_to_its_end() {
    let dir = TestDir::new();
    dir.write("run.tgm", message(0, 100));
    let tail = dir.tail("run.tgm --json -p step --interval 0.3");
    assert_eq!(tail.steps(1), [0]);
    dir.append("run.tgm", &message(1, 100));
    dir.write("next.tgm", [message(2, 10), message(3, 10)].concat());
    rename(&dir, "next.tgm", "run.tgm");
    assert_eq!(tail.steps(3), [1, 2, 3]);
    assert_eq!(tail.note(), "note: run.tgm: file was replaced by another file; reading from its start");
    dir.append("run.tgm", &message(4, 10));
    assert_eq!(tail.steps(1), [4]);
    tail.kill();
}

/// Half a message at the end of a file that was replaced stays half a message.
#[test]
fn a_file_that_was_replaced_inside_a_message_is_damaged() {
    let dir = TestDir::new();
    dir.write("run.tgm", [&message(0, 100)[..], &message(1, 100)[..90]].concat());
    let tail = dir.tail("run.tgm --json -p step --until-count 2");
    assert_eq!(tail.steps(1), [0]);
    dir.write("next.tgm", message(2, 10));
    rename(&dir, "next.tgm", "run.tgm");
    assert_eq!(tail.steps(1), [2]);
    let (code, out, err) = tail.end();
    assert_eq!((code, out), (1, vec![]));
    let len = message(0, 100).len();
    assert_eq!(
        err,
        [
            format!("error: run.tgm: the stream ends inside message 1, at byte {}", len + 90),
            format!("  skipped the message at byte {len}"),
            "note: run.tgm: file was replaced by another file; reading from its start".to_owned(),
            "warning: run.tgm: 1 damaged message, 0 bytes between messages".to_owned(),
        ]
    );
}

#[test]
fn a_file_goes_away_and_comes_back() {
    let dir = TestDir::new();
    let tail = dir.tail("run.tgm --json -p step --retry --until-count 4");
    assert_eq!(tail.note(), "note: run.tgm: file not found; waiting for it");
    dir.write("next.tgm", message(0, 10));
    rename(&dir, "next.tgm", "run.tgm");
    assert_eq!(tail.steps(1), [0]);
    rename(&dir, "run.tgm", "run.1.tgm");
    assert_eq!(tail.note(), "note: run.tgm: file removed; waiting for it to reappear");
    // Whoever has it open may still write to it.
    dir.append("run.1.tgm", &message(1, 10));
    assert_eq!(tail.steps(1), [1]);
    dir.write("next.tgm", message(2, 10));
    rename(&dir, "next.tgm", "run.tgm");
    assert_eq!(tail.steps(1), [2]);
    std::fs::remove_file(dir.path("run.tgm")).unwrap();
    assert!(tail.note().contains("was replaced"));
    assert_eq!(tail.note(), "note: run.tgm: file removed; waiting for it to reappear");
    // The same beginning and more: it is known again.
    dir.write("next.tgm", [message(2, 10), message(3, 10)].concat());
    rename(&dir, "next.tgm", "run.tgm");
    assert_eq!(tail.steps(1), [3]);
    assert_eq!(tail.end(), (0, vec![], vec![]));
}

#[test]
fn a_file_that_is_not_there_is_an_error() {
    let dir = TestDir::new();
    for words in ["tail run.tgm", "tail run.tgm --retry --no-follow", "tail run.tgm --retry --idle 0.05"] {
        let result = dir.run(words);
        assert_eq!(result.code, 3, "{words}: {}", result.err);
        assert!(result.err.contains("run.tgm: cannot open: no such file"), "{words}: {}", result.err);
        assert_eq!(result.err.contains("--retry"), !words.contains("--retry"), "{words}: {}", result.err);
    }
    dir.write("run.tgm", message(0, 10));
    let tail = dir.tail("run.tgm --json -p step");
    assert_eq!(tail.steps(1), [0]);
    std::fs::remove_file(dir.path("run.tgm")).unwrap();
    let (code, out, err) = tail.end();
    assert_eq!((code, out), (3, vec![]), "{err:?}");
    assert!(err.concat().contains("add `--retry` to wait for it"), "{err:?}");
    std::fs::create_dir(dir.path("dir")).unwrap();
    let result = dir.run("tail dir --retry");
    assert_eq!(result.code, 3, "{}", result.err);
    assert!(result.err.contains("is a directory"), "{}", result.err);
}
