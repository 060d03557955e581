//! `.tgm` messages.

use std::sync::Arc;

use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_core::{Budget, ByteSource, Class, Diagnostic as _, Limits, OutlineOptions, Span};
use tercet_tgm::edit::{self, Change, Changes};
use tercet_tgm::salvage::{SalvageOptions, plan};
use tercet_tgm::{
    Decoder, Depth, Direction, EncodeOptions, Event, File, FollowEvent, Follower, Message, Provenance,
    ReadOptions, ScanOptions, ValidateOptions, cbor, scan_source, validate_source,
};

pub(super) mod checksums;

/// Far below [`Limits::small`], so that a larger allocation is detected.
fn limits() -> Limits {
    let mebibyte = 1 << 20;
    Limits::small()
        .with_metadata_bytes(mebibyte)
        .with_chunk_bytes(mebibyte)
        .with_array_bytes(mebibyte)
        .with_table_bytes(mebibyte)
}

fn source(input: &[u8]) -> Arc<dyn ByteSource> {
    Arc::new(Memory::new("input", input.to_vec()))
}

/// Reads the readable arrays of a message.
fn arrays(message: &Message) -> Vec<Option<Vec<u8>>> {
    let array = |object: Result<tercet_tgm::Object<'_>, _>| {
        let object = object.ok()?;
        let array = object.decode().ok()?;
        let elements = object.descriptor().elements().and_then(|n| object.descriptor().dtype.byte_len(n));
        assert_eq!(Some(array.bytes().len() as u64), elements, "arrays have their size");
        Some(array.bytes().to_vec())
    };
    message.objects().map(array).collect()
}

/// Opens a file and reads everything, with and without checksums: both must give the same. A file that passes validation must
/// be readable.
pub(super) fn open(input: &[u8]) {
    let source = source(input);
    let options = ScanOptions::default().with_index(false);
    let checked = File::from_source(
        Arc::clone(&source),
        ReadOptions::new().with_allow_gaps(true).with_limits(limits()),
    )
    .expect("opening reads nothing");
    let indexed = File::from_source(Arc::clone(&source), *checked.options()).expect("opening reads nothing");
    let checked = checked.with_scan_options(options);
    let trusting =
        ReadOptions::new().with_limits(limits()).with_verify(false).with_strict(false).with_allow_gaps(true);
    let unchecked = File::from_source(Arc::clone(&source), trusting)
        .expect("opening reads nothing")
        .with_scan_options(options);
    let scan = checked.scan().expect("memory can be scanned");
    let covered: u64 = scan.messages.iter().chain(&scan.unrecognized).map(|span| span.len()).sum();
    assert_eq!(covered, input.len() as u64, "every byte belongs to a message or to none");
    for direction in [Direction::Backward, Direction::Bidirectional] {
        let options = ScanOptions::default().with_direction(direction);
        scan_source(&*source, options, &NoProgress).expect("memory can be scanned");
    }
    if let Ok(outline) = checked.outline(OutlineOptions::new().with_max_rows(Some(64))) {
        outline.walk(&mut |_, part| assert!(part.span.end() <= input.len() as u64, "{}", part.name));
    }
    let options = ValidateOptions::new().with_depth(Depth::Full).with_canonical(true).with_limits(limits());
    let report = match validate_source(&source, &options, &NoProgress) {
        Ok(report) => report,
        Err(error) => {
            assert_eq!(error.class(), Class::Limit, "memory can be validated: {error}");
            return;
        }
    };
    // Without the permission, only a file with an issue has messages that cannot be read by number.
    let has_issues = !report.file_issues.is_empty() || report.messages.iter().any(|found| !found.is_ok());
    let by_number = checked.clone().with_options(ReadOptions::new().with_limits(limits()));
    for number in 0..report.messages.len() as u64 {
        let is_after_gap = by_number
            .message(number)
            .is_err_and(|error| matches!(error.kind(), tercet_tgm::ErrorKind::AfterGap { .. }));
        assert!(!is_after_gap || has_issues, "a gap is reported");
    }
    index(&indexed, report.is_ok().then_some(&scan.messages[..]));
    for (number, found) in (0..).zip(&report.messages) {
        match checked.message(number) {
            Ok(message) => {
                let with = arrays(&message);
                let without = unchecked.message(number).expect("what opens with checks opens without");
                for (with, without) in with.iter().zip(arrays(&without)) {
                    assert!(with.is_none() || *with == without, "checks do not change values");
                }
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                let _ = (error.class(), error.span(), error.hint());
                // A limit is not damage.
                let is_expected = !found.is_ok() || error.class() == Class::Limit;
                assert!(is_expected, "validation passes what cannot be read: {error}");
            }
        }
    }
}

/// Reads everything from an index. That of a valid file has the positions of the messages.
fn index(file: &File, messages: Option<&[Span]>) {
    let Some(index) = file.index().expect("memory can be scanned") else { return };
    for key in index.keys() {
        if let Ok(Some(column)) = index.column(key) {
            assert!(column.matching(|_| true).len() == index.scan().messages.len());
        }
    }
    for number in 0..file.message_count().expect("known") {
        let _ = file.message(number);
    }
    if let Some((last, messages)) = messages.and_then(<[Span]>::split_last) {
        assert_eq!((index.span(), &index.scan().messages[..]), (*last, messages));
    }
}

/// Decodes objects whole, in parts and without masks: parts are slices of the whole.
pub(super) fn pipeline(input: &[u8]) {
    let options = ReadOptions::new().with_limits(limits()).with_verify(false).with_strict(false);
    let file = File::from_source(source(input), options).expect("opening reads nothing");
    for message in file.messages().expect("memory can be scanned").flatten() {
        for object in message.objects().flatten() {
            let whole = object.decode();
            let _ = (object.decode_with_masks(), object.wrong_szip_offset());
            let elements = object.descriptor().elements().unwrap_or(0);
            let ranges = [0..elements.min(3), elements / 3..elements / 2, elements..elements];
            let (Ok(whole), Ok(found)) = (whole, object.decode_ranges(&ranges)) else { continue };
            let width = (object.descriptor().dtype.bits() / 8) as usize;
            for (range, array) in ranges.iter().zip(&found.arrays).filter(|_| width > 0) {
                let at =
                    |element: u64| usize::try_from(element).map_or(usize::MAX, |element| element * width);
                assert_eq!(array.bytes(), &whole.bytes()[at(range.start)..at(range.end)], "parts are cuts");
            }
        }
    }
}

/// Edits the messages of a file, and salvages its intact parts: the output is valid and has the same content.
pub(super) fn edit(input: &[u8]) {
    let source = source(input);
    let reading = ReadOptions::new().with_limits(limits());
    let writing = EncodeOptions::new().with_provenance(Provenance::Off);
    let file = File::from_source(Arc::clone(&source), reading).expect("opening reads nothing");
    let changes =
        Changes::new(vec![Change::new("extra.fuzz", "x").expect("a good path")]).expect("one change");
    for message in file.messages().expect("memory can be scanned").flatten() {
        let mut drafts = vec![edit::set(&message, &changes, &writing)];
        drafts.extend(edit::reshuffle(&message, &writing).transpose());
        for draft in drafts.into_iter().flatten() {
            let Ok(bytes) = draft.to_bytes() else { continue };
            assert_eq!(bytes.len() as u64, draft.len(), "a draft knows its length");
            let made = Message::from_bytes_with("made", bytes, reading).expect("what is made can be read");
            assert_eq!(arrays(&made), arrays(&message), "editing changes no value");
        }
    }
    let options = SalvageOptions::new().with_read(reading).with_encode(writing);
    let found = match plan(&source, &options, &NoProgress) {
        Ok(found) => found,
        Err(error) => {
            assert_eq!(error.class(), Class::Limit, "memory can be searched: {error}");
            return;
        }
    };
    let Ok(bytes) = found.to_bytes() else { return };
    let again = self::source(&bytes);
    let again = plan(&again, &options, &NoProgress).expect("memory can be searched");
    assert!(again.report.is_intact(), "what is salvaged is intact");
    assert_eq!(again.report.kept_objects, found.report.kept_objects, "and holds what was found");
}

/// Decodes a stream, in one piece and byte by byte: the events are the same.
pub(super) fn stream(input: &[u8]) {
    let events = |piece: usize| {
        let mut decoder = Decoder::with_options(ReadOptions::new().with_limits(limits())).with_resync(true);
        let mut all = Vec::new();
        let mut add = |event: Event| {
            all.push(match event {
                Event::Object(object) => {
                    format!("{:?}", object.decode().map(|array| array.bytes().to_vec()).ok())
                }
                event => format!("{event:?}"),
            });
        };
        for piece in input.chunks(piece) {
            decoder.push(piece);
            loop {
                match decoder.next_event() {
                    Ok(Some(event)) => add(event),
                    Ok(None) => break,
                    Err(error) => assert!(!error.to_string().is_empty()),
                }
            }
        }
        // Other messages may follow a truncated one.
        loop {
            let next = match decoder.next_event() {
                Ok(None) => decoder.finish(),
                next => next,
            };
            match next {
                Ok(Some(event)) => add(event),
                Ok(None) => break,
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
        all
    };
    assert_eq!(events(input.len().max(1)), events(7), "cuts change nothing");
    follow(input);
}

/// Follows a stream: a message that is reported as complete can be opened.
fn follow(input: &[u8]) {
    let options = ReadOptions::new().with_limits(limits());
    let mut follower = Follower::with_options(options);
    let mut end = 0;
    let mut check = |report: FollowEvent| {
        let FollowEvent::Message(found) = report else { return };
        assert!(found.span.start() >= end, "no byte belongs to two messages");
        end = found.span.end();
        let opened = Message::open(source(input), found.number, found.span, options).expect("it is whole");
        assert_eq!((opened.span(), opened.object_count()), (found.span, found.objects));
    };
    for piece in input.chunks(100) {
        follower.push(piece);
        while let Some(report) = follower.next_event() {
            check(report);
        }
    }
    while let Some(report) = follower.finish() {
        check(report);
    }
}

/// Decodes CBOR; the result is encoded canonically and decodes to the same.
pub(super) fn cbor(input: &[u8]) {
    let budget = || Budget::new("fuzz", 1 << 20);
    let _ = cbor::verify_canonical_cbor(input);
    let _ = cbor::key_order(input);
    let Ok((value, used)) = cbor::decode(input, &budget()) else { return };
    assert!(used <= input.len());
    let _ = (value.printed(), value.to_json());
    let encoded = cbor::encode(&value);
    let (again, _) = cbor::decode(&encoded, &Budget::new("fuzz", 1 << 24)).expect("what was encoded decodes");
    assert_eq!(cbor::encode(&again), encoded, "canonical bytes stay as they are");
    let mut sorted = value;
    if cbor::canonicalize(&mut sorted).is_ok() {
        cbor::verify_canonical_cbor(&encoded).expect("what was encoded is canonical");
    }
}
