//! Files that shrink, are replaced, removed and recreated.

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

/// A restarted writer truncates a partial message first: printed messages are not printed again.
#[test]
fn a_truncated_partial_message_loses_nothing() {
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
    // The same with a replacement file; it makes no difference whether the partial message was read.
    let good = dir.read("run.tgm");
    dir.append("run.tgm", &message(4, 100)[..99]);
    std::thread::sleep(std::time::Duration::from_millis(100));
    dir.write("next.tgm", [&good[..], &message(5, 100)].concat());
    rename(&dir, "next.tgm", "run.tgm");
    assert_eq!(tail.steps(1), [5]);
    // And with one that is longer when it is read.
    let good = dir.read("run.tgm");
    dir.append("run.tgm", &message(6, 100)[..99]);
    std::thread::sleep(std::time::Duration::from_millis(100));
    cut(good.len());
    dir.append("run.tgm", &[message(7, 100), message(8, 100)].concat());
    assert_eq!(tail.steps(2), [7, 8]);
    let (code, out, _) = tail.end();
    assert_eq!((code, out), (0, vec![]));
}

/// Between two polls a file can shrink and grow beyond its old length.
#[test]
fn a_rewritten_file_is_read_from_its_start() {
    let dir = TestDir::new();
    dir.write("run.tgm", message(0, 10));
    let tail = dir.tail("run.tgm --json -p step --interval 0.3");
    assert_eq!(tail.steps(1), [0]);
    dir.write("run.tgm", [message(1, 300), message(2, 300)].concat());
    let note = tail.note();
    // On a busy machine the file may be polled while it is empty.
    let (rewritten, truncated) = ("was rewritten", "was truncated");
    assert!(note.contains(rewritten) || note.contains(truncated), "{note}");
    assert_eq!(tail.steps(2), [1, 2]);
    tail.kill();
}

/// Messages of one run have the same length, and so have two runs.
#[test]
fn a_rewritten_file_of_equal_length_is_read_again() {
    let dir = TestDir::new();
    let (old, new) =
        ([message(0, 300), message(1, 300)].concat(), [message(2, 300), message(3, 300)].concat());
    assert_eq!(old.len(), new.len());
    dir.write("run.tgm", &old);
    let tail = dir.tail("run.tgm --json -p step --interval 0.1");
    assert_eq!(tail.steps(2), [0, 1]);
    // The length never decreases, unlike that of a recreated file.
    let mut file = std::fs::OpenOptions::new().write(true).open(dir.path("run.tgm")).unwrap();
    file.write_all(&new).unwrap();
    assert_eq!(tail.note(), "note: run.tgm: file was rewritten; reading from its start");
    assert_eq!(tail.steps(2), [2, 3]);
    tail.kill();
}

/// Tercet's appends extend the file in place.
#[test]
fn an_appended_file_continues() {
    let dir = TestDir::new();
    let array =
        [&b"\x93NUMPY\x01\0\x76\0{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }"[..]].concat();
    let mut array = [array, vec![b' '; 128 - 10 - 58 - 1], b"\n".to_vec()].concat();
    array.resize(128, b' ');
    array[127] = b'\n';
    array.extend([1, 2, 3]);
    dir.write("a.npy", &array);
    // The index is rewritten after every message, without a notice.
    for has_index in [false, true] {
        dir.ok("create run.tgm --force --from a=a.npy");
        if has_index {
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
        assert_eq!(tail.end(), (0, vec![], vec![]), "{has_index}");
    }
}

/// The remaining messages of a replaced file are printed first.
#[test]
fn a_replaced_file_is_read_to_its_end() {
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

/// A partial message at the end of a replaced file stays partial.
#[test]
fn a_file_replaced_inside_a_message_is_damaged() {
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
            "warning: run.tgm: 1 damaged message, 0 unrecognized bytes".to_owned(),
        ]
    );
}

#[test]
fn a_removed_file_is_followed_when_recreated() {
    let dir = TestDir::new();
    let tail = dir.tail("run.tgm --json -p step --retry --until-count 4");
    assert_eq!(tail.note(), "note: run.tgm: file not found; waiting for it");
    dir.write("next.tgm", message(0, 10));
    rename(&dir, "next.tgm", "run.tgm");
    assert_eq!(tail.steps(1), [0]);
    rename(&dir, "run.tgm", "run.1.tgm");
    assert_eq!(tail.note(), "note: run.tgm: file removed; waiting for it to reappear");
    // A process that has the file open may still write to it.
    dir.append("run.1.tgm", &message(1, 10));
    assert_eq!(tail.steps(1), [1]);
    dir.write("next.tgm", message(2, 10));
    rename(&dir, "next.tgm", "run.tgm");
    assert_eq!(tail.steps(1), [2]);
    std::fs::remove_file(dir.path("run.tgm")).unwrap();
    assert!(tail.note().contains("was replaced"));
    assert_eq!(tail.note(), "note: run.tgm: file removed; waiting for it to reappear");
    // The same beginning and more bytes: recognised as the same file.
    dir.write("next.tgm", [message(2, 10), message(3, 10)].concat());
    rename(&dir, "next.tgm", "run.tgm");
    assert_eq!(tail.steps(1), [3]);
    assert_eq!(tail.end(), (0, vec![], vec![]));
}

#[test]
fn a_missing_file_is_an_error() {
    let dir = TestDir::new();
    for args in ["tail run.tgm", "tail run.tgm --retry --no-follow", "tail run.tgm --retry --idle 0.05"] {
        let result = dir.run(args);
        assert_eq!(result.code, 3, "{args}: {}", result.err);
        assert!(result.err.contains("run.tgm: cannot open: no such file"), "{args}: {}", result.err);
        assert_eq!(result.err.contains("--retry"), !args.contains("--retry"), "{args}: {}", result.err);
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
