//! Files that grow.

use std::io::{Seek as _, SeekFrom, Write as _};
use std::time::Duration;

use tercet::tgm::{DType, DataObjectDescriptor, GlobalMetadata, StreamingEncoder};

use super::{TestDir, message, options};

/// Each message is printed when its last byte is written, not before.
#[test]
fn a_message_is_printed_when_complete() {
    let dir = TestDir::new();
    dir.write("run.tgm", message(0, 100));
    let tail = dir.tail("run.tgm --json -p step");
    assert_eq!(tail.steps(1), [0]);
    for n in 1..4 {
        let bytes = message(n, 5000);
        let (start, last) = bytes.split_at(bytes.len() - 1);
        for piece in start.chunks(999) {
            dir.append("run.tgm", piece);
        }
        assert!(tail.out.recv_timeout(Duration::from_millis(100)).is_err(), "a partial message was printed");
        dir.append("run.tgm", last);
        assert_eq!(tail.steps(1), [n]);
    }
    tail.kill();
}

#[test]
fn a_file_grows_byte_by_byte() {
    let dir = TestDir::new();
    dir.write("run.tgm", b"");
    let tail = dir.tail("run.tgm --json -p step --interval 0.001 -n 3");
    for n in 0..3 {
        for byte in message(n, 200) {
            dir.append("run.tgm", &[byte]);
        }
    }
    assert_eq!(tail.steps(3), [0, 1, 2]);
    assert_eq!(tail.end(), (0, vec![], vec![]));
}

/// The last existing messages, then new ones.
#[test]
fn tail_starts_at_the_given_message() {
    let dir = TestDir::new();
    let all: Vec<u8> = (0..5).flat_map(|n| message(n, 300)).collect();
    for (last, expected) in [("", 0), ("--last 2", 3), ("--last 9", 0)] {
        dir.write("run.tgm", [&all[..], &message(5, 300)[..50]].concat());
        let tail = dir.tail(&format!("run.tgm --json -p step {last} --until-count {}", 6 - expected));
        assert_eq!(tail.steps(5 - expected), (expected as u64..5).collect::<Vec<_>>());
        dir.append("run.tgm", &message(5, 300)[50..]);
        let line: serde_json::Value = serde_json::from_str(&tail.line()).unwrap();
        assert_eq!((line["message"].as_u64(), line["offset"].as_u64()), (Some(5), Some(all.len() as u64)));
        assert_eq!(tail.end(), (0, vec![], vec![]));
    }
}

/// With `--last 0` only new messages are printed; the first may be partially written at the start.
#[test]
fn tail_starts_with_new_messages() {
    let dir = TestDir::new();
    dir.write("run.tgm", [&message(0, 300)[..], &message(1, 300)[..50]].concat());
    let tail = dir.tail("run.tgm --json -p step --last 0 -n 1");
    // The start of tail is not observable: the first message it prints is the first that it did not skip.
    let mut n = 0;
    let line = loop {
        n += 1;
        dir.append("run.tgm", &[&message(n, 300)[50..], &message(n + 1, 300)[..50]].concat());
        if let Ok(line) = tail.out.recv_timeout(Duration::from_millis(100)) {
            break line;
        }
        assert!(n < 500, "nothing is printed");
    };
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    let number = line["message"].as_u64().unwrap();
    assert!((1..=n).contains(&number), "{line}");
    assert_eq!(line["keys"]["step"], number);
    assert_eq!(tail.end(), (0, vec![], vec![]));
}

#[test]
fn tail_exits_after_the_idle_timeout() {
    let dir = TestDir::new();
    dir.write("run.tgm", message(0, 10));
    let result = dir.ok("tail run.tgm --idle 0.05 --json -p step");
    assert_eq!(result.out.lines().count(), 1);
    // Existing messages are printed before the idle timeout applies.
    let result = dir.ok("tail run.tgm --no-follow --json -p step");
    assert_eq!(result.out.lines().count(), 1);
    // Everywhere, 0 is no limit.
    let result = dir.ok("tail run.tgm --no-follow -n 0 --json");
    assert_eq!(result.out.lines().count(), 1);
}

/// A writer that patches the length of a message afterwards, and one that then appends.
#[test]
fn lengths_patched_later_change_nothing() {
    let dir = TestDir::new();
    let descriptor = DataObjectDescriptor::new(DType::U8, [50]);
    let mut metadata = GlobalMetadata::default();
    metadata.extra.insert("step".to_owned(), 0.into());
    let sink = std::io::Cursor::new(Vec::new());
    let mut encoder = StreamingEncoder::new(sink, &metadata, options()).unwrap();
    encoder.write_object(&descriptor, &[7; 50]).unwrap();
    let filled = encoder.finish_with_length().unwrap().into_inner();
    let mut open = filled.clone();
    open[16..24].fill(0);

    dir.write("run.tgm", &open[..30]);
    let tail = dir.tail("run.tgm --json -p step -n 3");
    std::thread::sleep(Duration::from_millis(60));
    dir.append("run.tgm", &open[30..]);
    assert_eq!(tail.steps(1), [0]);
    let mut file = std::fs::OpenOptions::new().write(true).open(dir.path("run.tgm")).unwrap();
    file.seek(SeekFrom::Start(16)).unwrap();
    file.write_all(&filled[16..24]).unwrap();
    drop(file);
    dir.append("run.tgm", &message(1, 50));
    assert_eq!(tail.steps(1), [1]);
    let next = [&dir.read("run.tgm")[..], &message(2, 50)].concat();
    dir.write("next.tgm", next);
    std::fs::rename(dir.path("next.tgm"), dir.path("run.tgm")).unwrap();
    assert_eq!(tail.steps(1), [2]);
    assert_eq!(tail.end(), (0, vec![], vec![]));
}
