//! Any chunking of a stream gives the same events; scans of damaged files find the same messages from blocks and from
//! memory.

use std::sync::Arc;

use proptest::prelude::*;
use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_core::{ByteSource, Span};
use tercet_testkit::counting::Counting;
use tercet_tgm::{Decoder, Direction, File, ReadOptions, ScanOptions, scan, scan_source};

use crate::samples;

/// All events of a decoder as text, for pieces of these lengths.
fn events(bytes: &[u8], cuts: &[usize], resync: bool) -> Vec<String> {
    let mut decoder = Decoder::new().with_resync(resync);
    let mut out = Vec::new();
    let mut rest = bytes;
    let mut cuts = cuts.iter().copied().cycle();
    let mut give_up = false;
    while !rest.is_empty() && !give_up {
        let (piece, more) = rest.split_at(cuts.next().unwrap_or(usize::MAX).clamp(1, rest.len()));
        rest = more;
        decoder.push(piece);
        loop {
            match decoder.next_event() {
                Ok(Some(event)) => out.push(format!("{event:?}")),
                Ok(None) => break,
                Err(error) => {
                    out.push(format!("error: {error}"));
                    if !resync {
                        give_up = true;
                        break;
                    }
                }
            }
        }
    }
    if !give_up {
        match decoder.finish() {
            Ok(event) => out.extend(event.map(|event| format!("{event:?}"))),
            Err(error) => out.push(format!("error: {error}")),
        }
    }
    out
}

/// The number of a sample, a change to one of its bytes, and unrecognized bytes before it.
type Part = (usize, Option<(usize, u8)>, Vec<u8>);

/// Messages with unrecognized bytes between them, some of them damaged.
fn stream_of(parts: &[Part]) -> Vec<u8> {
    let samples = samples::all();
    let mut out = Vec::new();
    for (which, flip, unrecognized) in parts {
        out.extend_from_slice(unrecognized);
        let sample = &samples[which % samples.len()];
        assert!(!sample.name.is_empty());
        let mut bytes = sample.bytes.clone();
        if let Some((at, mask)) = flip {
            let at = at % bytes.len();
            bytes[at] ^= mask;
        }
        out.extend_from_slice(&bytes);
    }
    out
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let unrecognized = prop_oneof![
        3 => Just(Vec::new()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => Just(b"TENSOGRM".to_vec()),
        1 => Just(b"TENSOGRM\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec()),
        1 => Just(b"FR39277777TENSOGR".to_vec()),
    ];
    let flip = prop::option::weighted(0.3, (any::<usize>(), 1..=255u8));
    prop::collection::vec((any::<usize>(), flip, unrecognized), 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(300)))]

    #[test]
    fn input_boundaries_change_nothing(parts in parts(), cuts in prop::collection::vec(1..200usize, 1..8), resync: bool) {
        let bytes = stream_of(&parts);
        let whole = events(&bytes, &[bytes.len()], resync);
        prop_assert_eq!(&events(&bytes, &cuts, resync), &whole);
        prop_assert_eq!(&events(&bytes, &[1], resync), &whole);
    }

    #[test]
    fn block_and_memory_scans_are_equal(parts in parts()) {
        let bytes = stream_of(&parts);
        let in_memory = scan(&bytes);
        let source = Counting::new(Memory::new("blocks", bytes.clone())).with_copies().shared();
        let in_blocks = scan_source(&*source, ScanOptions::default(), &NoProgress).unwrap();
        prop_assert_eq!(&in_blocks.messages, &in_memory);
        let covered: u64 = in_blocks.messages.iter().chain(&in_blocks.unrecognized).map(|span| span.len()).sum();
        prop_assert_eq!(covered, bytes.len() as u64);
        // Valid messages are all found, and from both ends.
        let intact = parts.iter().all(|(_, flip, unrecognized)| flip.is_none() && unrecognized.is_empty());
        if intact {
            prop_assert_eq!(in_memory.len(), parts.len());
            let options = ScanOptions::default().with_direction(Direction::Bidirectional);
            let memory = Memory::new("both", bytes);
            prop_assert_eq!(&scan_source(&memory, options, &NoProgress).unwrap().messages, &in_memory);
        }
    }
}

/// A payload that contains the end of a message does not end a stream.
#[test]
fn magic_inside_a_payload_is_ignored() {
    use tercet_tgm::{DType, DataObjectDescriptor, GlobalMetadata, StreamingEncoder};
    let payload = b"39277777TENSOGRM39277777ENDFFR39277777".to_vec();
    let descriptor = DataObjectDescriptor::new(DType::U8, [payload.len() as u64]);
    let mut encoder =
        StreamingEncoder::new(Vec::new(), &GlobalMetadata::default(), samples::options()).unwrap();
    encoder.write_object(&descriptor, &payload).unwrap();
    let bytes = encoder.finish().unwrap();
    let twice = [bytes.clone(), bytes.clone()].concat();
    let len = bytes.len() as u64;
    assert_eq!(scan(&twice), [Span::first(len), Span::at(len, len).unwrap()]);
}

#[test]
fn opening_reads_nothing_and_scanning_reads_blocks() {
    let big = vec![7u8; 1 << 20];
    let descriptor = tercet_tgm::DataObjectDescriptor::new(tercet_tgm::DType::U8, [big.len() as u64]);
    let one = tercet_tgm::encode_message(
        &tercet_tgm::GlobalMetadata::default(),
        &[(&descriptor, &big)],
        &samples::options(),
    )
    .unwrap();
    let bytes = one.repeat(8);
    let counting = Counting::new(Memory::new("big", bytes)).with_copies().shared();
    let source: Arc<dyn ByteSource> = counting.clone();
    let file = File::from_source(Arc::clone(&source), ReadOptions::new()).unwrap();
    assert_eq!(counting.bytes(), 0);
    assert_eq!(file.message_count().unwrap(), 8);
    let scanned = counting.bytes();
    // One block per message, and the last one again, which could be an index.
    assert!(scanned <= 8 * ((64 << 10) + 48) + (64 << 10), "{scanned}");
    assert_eq!(file.message_count().unwrap(), 8);
    assert_eq!(counting.bytes(), scanned);
    // One message costs the headers of its frames, not its payload.
    let message = file.message(5).unwrap();
    let opened = counting.bytes() - scanned;
    assert!(opened <= 3 * (64 << 10), "{opened}");
    assert_eq!(message.object(0).unwrap().decode().unwrap().bytes(), big);
}

/// Unrecognized bytes full of preambles cost a bounded number of reads per byte.
#[test]
fn false_starts_are_skipped_in_linear_time() {
    let start = b"TENSOGRM\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0FR\0\x09\0\x01\0\x01";
    let known = b"TENSOGRM\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\x10\x08";
    for pattern in [&start[..], known] {
        let mut bytes = pattern.repeat(20_000);
        let message = samples::all().remove(0).bytes;
        let at = bytes.len() as u64;
        bytes.extend_from_slice(&message);
        let counting = Counting::new(Memory::new("starts", bytes.clone())).with_copies().shared();
        let found = scan_source(&*counting, ScanOptions::default(), &NoProgress).unwrap();
        assert_eq!(found.messages, [Span::at(at, message.len() as u64).unwrap()]);
        let read = counting.bytes();
        assert!(read < 100 * bytes.len() as u64, "{read} for {}", bytes.len());
    }
}

/// Preambles whose frames all lead to the same end, followed by a long walk before it fails.
#[test]
fn shared_dead_ends_are_visited_once() {
    let count = 2_000u64;
    let each = 40u64;
    // After the frames: zeros that must be walked, or other bytes that must be searched.
    for after in [vec![0u8; 1 << 20], vec![b'x'; 1 << 20]] {
        let mut bytes = Vec::new();
        let end = count * each + 24;
        for n in 0..count {
            bytes.extend_from_slice(b"TENSOGRM\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
            bytes.extend_from_slice(b"FR\0\x01\0\x01\0\0");
            bytes.extend_from_slice(&(end - n * each - 24).to_be_bytes());
        }
        bytes.extend_from_slice(&[0; 20]);
        bytes.extend_from_slice(b"ENDF");
        assert_eq!(bytes.len() as u64, end);
        bytes.extend_from_slice(&after);
        bytes.extend_from_slice(b"junk, not a frame, and the end of all");
        let counting = Counting::new(Memory::new("shared", bytes.clone())).with_copies().shared();
        let found = scan_source(&*counting, ScanOptions::default(), &NoProgress).unwrap();
        assert!(found.messages.is_empty());
        let read = counting.bytes();
        assert!(read < 200 * bytes.len() as u64, "{read} for {}", bytes.len());
    }
}

/// Messages with a known length are found backwards.
#[test]
fn messages_are_found_backwards() {
    let samples = samples::all();
    let known: Vec<&[u8]> =
        samples.iter().map(|sample| &*sample.bytes).filter(|bytes| bytes[16..24] != [0; 8]).collect();
    let bytes = known.concat();
    let options = ScanOptions::default().with_direction(Direction::Backward);
    let all = scan_source(&Memory::new("known", bytes.clone()), options, &NoProgress).unwrap();
    assert_eq!(all.messages, scan(&bytes));
    assert_eq!(all.messages.len(), known.len());
    let stream = samples.iter().find(|sample| sample.name == "stream").unwrap();
    let mixed = [known[0], &stream.bytes, known[1]].concat();
    let last = scan_source(&Memory::new("mixed", mixed.clone()), options, &NoProgress).unwrap();
    assert_eq!(last.messages, scan(&mixed)[2..]);
    // Messages longer than the caller's limit are not found backwards.
    let few =
        scan_source(&Memory::new("known", bytes), options.with_max_message_bytes(100), &NoProgress).unwrap();
    assert!(few.messages.is_empty());
}

/// Frames of unknown types are rejected, or skipped on request.
#[test]
fn unknown_frames_are_rejected_or_skipped() {
    let bytes = samples::all().remove(0).bytes;
    let message = tercet_tgm::Message::from_bytes("m", bytes.clone()).unwrap();
    let last = message.layout().unwrap().frames.last().unwrap();
    let at = usize::try_from(last.span.end().next_multiple_of(8)).unwrap();
    let mut frame =
        b"FR\x00\x63\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x20body\0\0\0\0\0\0\0\0ENDF".to_vec();
    assert_eq!(frame.len(), 32);
    let mut longer = bytes[..at].to_vec();
    longer.append(&mut frame);
    longer.extend_from_slice(&bytes[at..]);
    let total = (longer.len() as u64).to_be_bytes();
    longer[16..24].copy_from_slice(&total);
    let end = longer.len();
    longer[end - 16..end - 8].copy_from_slice(&total);
    // The postamble moved, and with it where footer frames would start.
    let footer = (end as u64 - 24).to_be_bytes();
    longer[end - 24..end - 16].copy_from_slice(&footer);
    let error = tercet_tgm::Message::from_bytes("m", longer.clone()).unwrap_err();
    assert!(error.to_string().contains("frame 4 › type"), "{error}");
    let skipping = ReadOptions::new().with_skip_unknown_frames(true);
    let read = tercet_tgm::Message::from_bytes_with("m", longer, skipping).unwrap();
    assert_eq!(read.metadata(), message.metadata());
    assert_eq!(
        read.object(0).unwrap().decode().unwrap().bytes(),
        message.object(0).unwrap().decode().unwrap().bytes()
    );
}
