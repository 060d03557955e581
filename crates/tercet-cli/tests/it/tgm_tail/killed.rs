//! Producers killed while they write.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tercet::tgm::{
    DType, DataObjectDescriptor, GlobalMetadata, MaskMethod, StreamingEncoder, encode_message, scan,
};

use super::{TIMEOUT, TestDir, options};

/// Messages of different kinds: in one piece or streamed, with and without hashes and masks.
fn message(n: u64, len: usize) -> Vec<u8> {
    let mut metadata = GlobalMetadata::default();
    metadata.extra.insert("step".to_owned(), n.into());
    let (is_stream, is_hashed, is_masked) = (n % 2 == 1, n % 3 != 1, n % 5 < 2);
    let not_finite = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    let value = |at: usize| {
        if is_masked && at.is_multiple_of(3) { not_finite[at % 9 / 3] } else { f32::from(at as u16) }
    };
    let values: Vec<u8> = (0..len).flat_map(|at| value(at).to_le_bytes()).collect();
    let descriptor = DataObjectDescriptor::new(DType::F32, [len as u64]);
    let options = options().with_hash(is_hashed).with_allowed(true, true).with_masks(MaskMethod::Rle);
    if !is_stream {
        return encode_message(&metadata, &[(&descriptor, &values)], &options).unwrap();
    }
    let mut encoder = StreamingEncoder::new(Vec::new(), &metadata, options).unwrap();
    encoder.write_object(&descriptor, &values).unwrap();
    encoder.finish().unwrap()
}

/// A process that appends its standard input to a file.
fn producer(dir: &TestDir) -> Child {
    let file = std::fs::OpenOptions::new().append(true).create(true).open(dir.path("run.tgm")).unwrap();
    Command::new("cat").stdin(Stdio::piped()).stdout(file).spawn().unwrap()
}

/// Waits until a file has this length.
fn wait_for(dir: &TestDir, len: usize) {
    let start = Instant::now();
    while std::fs::metadata(dir.path("run.tgm")).unwrap().len() < len as u64 {
        assert!(start.elapsed() < TIMEOUT, "the producer does not write");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Producers are killed at random points, and the next one appends after the partial message. Every complete message is
/// printed once, with the number and offset that a scan finds, and nothing else is printed.
#[test]
fn complete_messages_are_printed_exactly_once() {
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut below = |bound: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % bound as u64) as usize
    };
    let dir = TestDir::new();
    // The bytes each producer writes before it is killed; the last one completes.
    let mut n = 0;
    let mut runs: Vec<Vec<u8>> = (0..25)
        .map(|_| {
            let mut bytes: Vec<u8> = Vec::new();
            for _ in 0..=below(4) {
                bytes.extend(message(n, below(1000)));
                n += 1;
            }
            bytes.truncate(below(bytes.len()) + 1);
            bytes
        })
        .collect();
    runs.push((0..6).flat_map(|k| message(1000 + k, 1000)).collect());
    let whole = runs.concat();
    let expected = scan(&whole);
    assert!(expected.len() > 20, "{}", expected.len());

    dir.write("run.tgm", b"");
    let tail = dir.tail(&format!("run.tgm --json --until-count {} --idle 60", expected.len()));
    let mut len = 0;
    for run in &runs {
        let mut child = producer(&dir);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(run).unwrap();
        len += run.len();
        wait_for(&dir, len);
        // SIGKILL, while it waits for more.
        child.kill().unwrap();
        child.wait().unwrap();
        drop(stdin);
    }
    assert_eq!(dir.read("run.tgm"), whole);
    for (number, span) in expected.iter().enumerate() {
        let line: serde_json::Value = serde_json::from_str(&tail.line()).unwrap();
        let printed = ["message", "offset", "length"].map(|key| line[key].as_u64().unwrap());
        assert_eq!(printed, [number as u64, span.start(), span.len()]);
    }
    let (code, out, err) = tail.end();
    assert_eq!((code, out), (1, vec![]), "{err:?}");
    let damaged = err.iter().filter(|line| line.contains("skipped the message")).count();
    assert!(damaged > 10, "{err:?}");
}
