//! A follower reports the messages of a scan, for any chunking of the bytes.

use std::sync::Arc;

use proptest::prelude::*;
use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_core::{ByteSource, CommonError, Span};
use tercet_tgm::{
    DType, DataObjectDescriptor, ErrorKind, FollowEvent, Follower, GlobalMetadata, Message, ReadOptions,
    ScanOptions, StreamingEncoder, encode_message, scan_source,
};

use crate::samples;

/// All events of a follower for bytes in pieces of these lengths.
fn reports(bytes: &[u8], cuts: &[usize]) -> Vec<FollowEvent> {
    let mut follower = Follower::new();
    let mut out = Vec::new();
    let mut rest = bytes;
    let mut cuts = cuts.iter().copied().cycle();
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(cuts.next().unwrap_or(usize::MAX).clamp(1, rest.len()));
        rest = more;
        follower.push(piece);
        out.extend(std::iter::from_fn(|| follower.next_event()));
    }
    out.extend(std::iter::from_fn(|| follower.finish()));
    assert!(follower.pending().is_none());
    out
}

fn summaries(reports: &[FollowEvent]) -> Vec<String> {
    reports.iter().map(|report| format!("{report:?}")).collect()
}

/// Number, offset, objects and metadata of a message.
type Seen = (u64, Span, u64, GlobalMetadata);

fn whole(reports: &[FollowEvent]) -> Vec<Seen> {
    let of = |report: &FollowEvent| match report {
        FollowEvent::Message(message) => {
            Some((message.number, message.span, message.objects, message.metadata.clone()))
        }
        _ => None,
    };
    reports.iter().filter_map(of).collect()
}

/// The naive way: scan for all messages and keep the valid ones.
fn scanned(bytes: &[u8]) -> Vec<Seen> {
    let source: Arc<dyn ByteSource> = Arc::new(Memory::new("whole", bytes.to_vec()));
    let found = scan_source(&*source, ScanOptions::default(), &NoProgress).unwrap();
    let open = |(number, span): (usize, &Span)| {
        let message = Message::open(Arc::clone(&source), number as u64, *span, ReadOptions::new()).ok()?;
        let is_whole = message.span() == *span
            && message.objects().all(|object| object.is_ok_and(|object| object.verify().is_ok()));
        is_whole.then(|| (number as u64, *span, message.object_count(), message.metadata().clone()))
    };
    found.messages.iter().enumerate().filter_map(open).collect()
}

/// Bytes before a message: none, unrecognized bytes, a preamble, a truncated message.
fn unrecognized() -> impl Strategy<Value = Vec<u8>> {
    let start = b"TENSOGRM\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    prop_oneof![
        3 => Just(Vec::new()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => (0..24usize).prop_map(move |len| start[..len.min(start.len())].to_vec()),
        1 => Just(b"FR39277777TENSOGR".to_vec()),
        3 => (any::<usize>(), any::<usize>()).prop_map(|(which, len)| {
            let samples = samples::all();
            let bytes = &samples[which % samples.len()].bytes;
            bytes[..len % bytes.len()].to_vec()
        }),
    ]
}

/// The number of a sample, a change to one of its bytes, and the bytes before it.
type Part = (usize, Option<(usize, u8)>, Vec<u8>);

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let flip = prop::option::weighted(0.3, (any::<usize>(), 1..=255u8));
    prop::collection::vec((any::<usize>(), flip, unrecognized()), 1..6)
}

fn stream_of(parts: &[Part], flips: bool) -> Vec<u8> {
    let samples = samples::all();
    let mut out = Vec::new();
    for (which, flip, unrecognized) in parts {
        out.extend_from_slice(unrecognized);
        let mut bytes = samples[which % samples.len()].bytes.clone();
        if let Some((at, mask)) = flip.filter(|_| flips) {
            let at = at % bytes.len();
            bytes[at] ^= mask;
        }
        out.extend_from_slice(&bytes);
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(400)))]

    /// Any chunking gives the same events, with any damage.
    #[test]
    fn input_boundaries_change_nothing(parts in parts(), cuts in prop::collection::vec(1..200usize, 1..8)) {
        let bytes = stream_of(&parts, true);
        let at_once = summaries(&reports(&bytes, &[bytes.len()]));
        prop_assert_eq!(&summaries(&reports(&bytes, &cuts)), &at_once);
        prop_assert_eq!(&summaries(&reports(&bytes, &[1])), &at_once);
    }

    /// With truncated messages and unrecognized bytes between them: the messages of a scan, each once, with their numbers.
    #[test]
    fn followed_messages_equal_a_scan(parts in parts(), cuts in prop::collection::vec(1..400usize, 1..8)) {
        let bytes = stream_of(&parts, false);
        let found = whole(&reports(&bytes, &cuts));
        prop_assert!(found.len() >= parts.len(), "{} of {}", found.len(), parts.len());
        let expected = scanned(&bytes);
        // A scan compares no hashes: a truncated frame can end where a frame of the next message ends, and its message
        // then includes that frame.
        if expected.len() >= parts.len() {
            prop_assert_eq!(&found, &expected);
        } else {
            prop_assert!(expected.iter().all(|(_, span, ..)| found.iter().any(|(_, position, ..)| position == span)));
        }
    }

    /// With changed bytes too, only valid messages are reported, and all that a scan finds.
    #[test]
    fn damage_hides_no_other_message(parts in parts(), cuts in prop::collection::vec(1..400usize, 1..8)) {
        let bytes = stream_of(&parts, true);
        let message_table = |seen: Vec<Seen>| seen.into_iter().map(|(_, span, ..)| span).collect::<Vec<_>>();
        let events = reports(&bytes, &cuts);
        let (found, expected) = (message_table(whole(&events)), message_table(scanned(&bytes)));
        for span in &expected {
            prop_assert!(found.contains(span), "{span} is missing");
        }
        for span in &found {
            let message = &bytes[span.to_range().unwrap()];
            prop_assert!(Message::from_bytes("found", message.to_vec()).is_ok());
        }
        // Every byte is accounted for: in messages, or reported.
        if found.iter().map(|span| span.len()).sum::<u64>() < bytes.len() as u64 {
            prop_assert!(events.len() > found.len());
        }
    }
}

/// Damage inside a message is reported once with its offset, and the message keeps its number.
#[test]
fn a_damaged_message_is_reported_and_skipped() {
    let good = samples::all().remove(1).bytes;
    let mut bad = good.clone();
    let payload = good.windows(4).position(|four| four == 1.5f32.to_le_bytes()).unwrap();
    bad[payload] ^= 1;
    let bytes = [&good[..], &bad, &good].concat();
    let events = reports(&bytes, &[7]);
    let [
        FollowEvent::Message(first),
        FollowEvent::Damaged { number, start, fault },
        rest @ ..,
        FollowEvent::Message(last),
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    let len = good.len() as u64;
    assert_eq!((first.number, *number, last.number), (0, 1, 2));
    assert_eq!((first.span.start(), *start, last.span.start()), (0, len, 2 * len));
    assert!(matches!(fault, ErrorKind::Common(CommonError::Checksum { .. })), "{fault}");
    assert!(matches!(rest, [FollowEvent::Skipped { after_damage: true, .. }]), "{rest:?}");
}

/// A killed writer leaves a partial message; messages appended after it are found, with the numbers of a scan.
#[test]
fn messages_after_any_truncation_are_found() {
    for sample in samples::all() {
        let good = samples::all().remove(0).bytes;
        for cut in 1..sample.bytes.len() {
            let bytes = [&good[..], &sample.bytes[..cut], &good, &good].concat();
            let events = reports(&bytes, &[1000]);
            let numbers: Vec<u64> = whole(&events).iter().map(|(number, ..)| *number).collect();
            assert_eq!(numbers, [0, 1, 2], "{} cut at {cut}: {events:?}", sample.name);
            let damaged =
                events.iter().filter(|report| matches!(report, FollowEvent::Damaged { .. })).count();
            let skipped =
                events.iter().filter(|report| matches!(report, FollowEvent::Skipped { .. })).count();
            assert!(damaged + skipped >= 1, "{} cut at {cut}: {events:?}", sample.name);
        }
    }
}

/// A truncated frame without a hash can end where a frame of the next message ends. Later frames reveal it, and the
/// next message is found.
#[test]
fn messages_inside_an_unhashed_frame_are_recovered() {
    let (samples, mut swallowed) = (samples::all(), 0);
    let ends = |bytes: &[u8]| -> Vec<usize> {
        bytes.windows(4).enumerate().filter(|(_, four)| four == b"ENDF").map(|(at, _)| at + 4).collect()
    };
    for cut_off in samples.iter().filter(|sample| sample.name.contains("no hashes")) {
        for next in &samples {
            // Truncate so that an end of one message coincides with an end of the other.
            for end in ends(&cut_off.bytes) {
                for other in ends(&next.bytes) {
                    let Some(cut) = end.checked_sub(other).filter(|&cut| cut > 0) else { continue };
                    let bytes = [&cut_off.bytes[..cut], &next.bytes].concat();
                    let events = reports(&bytes, &[1000]);
                    let found = whole(&events);
                    let expected = Span::at(cut as u64, next.bytes.len() as u64).unwrap();
                    assert!(
                        found.iter().any(|(_, span, ..)| *span == expected),
                        "{} {} {events:?}",
                        cut_off.name,
                        next.name
                    );
                    swallowed += 1;
                }
            }
        }
    }
    assert!(swallowed > 50, "{swallowed} such cuts");
}

/// A truncated frame whose length spans complete messages, up to the end of one of their frames: its hash is wrong, and
/// the messages are found.
#[test]
fn messages_inside_a_damaged_frame_are_recovered() {
    let good = samples::all().remove(2).bytes;
    let end = good.windows(4).rposition(|four| four == b"ENDF").unwrap() + 4;
    let payload = vec![7u8; 4000];
    let descriptor = DataObjectDescriptor::new(DType::U8, [payload.len() as u64]);
    let long =
        encode_message(&GlobalMetadata::default(), &[(&descriptor, &payload)], &samples::options()).unwrap();
    let frame =
        Message::from_bytes("long", long.clone()).unwrap().layout().unwrap().objects().next().unwrap().span;
    let frame_end = usize::try_from(frame.end()).unwrap();
    let cut = frame_end - end;
    let bytes = [&long[..cut], &good, &good, &long].concat();
    assert_eq!(&bytes[frame_end - 4..frame_end], b"ENDF", "the frame ends with a frame");
    let events = reports(&bytes, &[64]);
    assert!(
        matches!(
            &events[0],
            FollowEvent::Damaged { fault: ErrorKind::Common(CommonError::Checksum { .. }), .. }
        ),
        "{events:?}"
    );
    assert_eq!(whole(&events), scanned(&bytes));
    assert_eq!(whole(&events).len(), 3);
}

/// Nested frames that all end at the same offset: the search is bounded.
#[test]
fn rescans_are_bounded() {
    let count = 60_000u64;
    let each = 40;
    let mut bytes = Vec::new();
    let end = count * each + 24;
    for n in 0..count {
        bytes.extend_from_slice(b"TENSOGRM\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        bytes.extend_from_slice(b"FR\0\x01\0\x01\0\x02");
        bytes.extend_from_slice(&(end - n * each - 24).to_be_bytes());
    }
    bytes.extend_from_slice(&[0; 20]);
    bytes.extend_from_slice(b"ENDF");
    assert_eq!(bytes.len() as u64, end);
    let good = samples::all().remove(0).bytes;
    bytes.extend_from_slice(&good);
    // Without a bound this would hash 72 GB.
    let events = reports(&bytes, &[1 << 20]);
    assert_eq!(whole(&events).len(), 1);
}

/// A stream that starts in the middle of a file continues its offsets and numbers.
#[test]
fn streams_start_in_the_middle() {
    let good = samples::all().remove(0).bytes;
    let mut follower = Follower::new().starting_at(1000, 7);
    follower.push(&good);
    follower.push(&good[..40]);
    let Some(FollowEvent::Message(first)) = follower.next_event() else { panic!("no message") };
    assert_eq!((first.number, first.span), (7, Span::at(1000, good.len() as u64).unwrap()));
    assert!(follower.next_event().is_none());
    let (start, preamble) = follower.pending().unwrap();
    assert_eq!((start, preamble.total_length), (1000 + good.len() as u64, good.len() as u64));
    let Some(FollowEvent::Damaged { number: 8, start: at, fault: ErrorKind::TruncatedStream { .. } }) =
        follower.finish()
    else {
        panic!("the end is not reported");
    };
    assert_eq!(at, start);
}

/// A message whose length is patched later is the same message.
#[test]
fn a_length_may_still_be_unknown() {
    let descriptor = DataObjectDescriptor::new(DType::U8, [3]);
    let sink = std::io::Cursor::new(Vec::new());
    let mut encoder = StreamingEncoder::new(sink, &GlobalMetadata::default(), samples::options()).unwrap();
    encoder.write_object(&descriptor, &[1, 2, 3]).unwrap();
    let bytes = encoder.finish_with_length().unwrap().into_inner();
    let mut before = bytes.clone();
    before[16..24].fill(0);
    let events = reports(&before, &[11]);
    let [FollowEvent::Message(message)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(message.span, Span::first(bytes.len() as u64));
    assert_eq!((message.objects, message.preamble.known_length()), (1, None));
}
