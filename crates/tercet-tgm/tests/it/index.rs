//! Files that end with an index.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use tempfile::TempDir;
use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_core::{Class, Diagnostic as _};
use tercet_testkit::counting::Counting;
use tercet_tgm::{
    DType, DataObjectDescriptor, EncodeOptions, Error, ErrorKind, File, GlobalMetadata, IndexBuilder,
    IndexError, IndexKeys, MAX_KEYS, Provenance, ReadOptions, ReindexOptions, ReindexReport, ScanOptions,
    StreamingEncoder, ValidateOptions, Value, Writer, WriterOptions, encode_message, validate_source,
};

struct TestDir(TempDir);

impl TestDir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("run.tgm")
    }
}

fn metadata(step: u64) -> GlobalMetadata {
    let mars = Value::Map(vec![
        ("param".into(), ["2t", "msl", "10u"][step as usize % 3].into()),
        ("step".into(), step.into()),
    ]);
    let mut metadata =
        GlobalMetadata { base: vec![[("mars".to_owned(), mars)].into()], ..Default::default() };
    if step.is_multiple_of(2) {
        metadata.extra.insert("even".to_owned(), true.into());
    }
    metadata
}

fn message(step: u64) -> Vec<u8> {
    let descriptor = DataObjectDescriptor::new(DType::U8, [3]);
    let options = EncodeOptions::new().with_provenance(Provenance::Off);
    encode_message(&metadata(step), &[(&descriptor, &[1, 2, 3])], &options).unwrap()
}

/// A file of messages without an index.
fn plain(path: &Path, messages: u64) {
    let bytes: Vec<u8> = (0..messages).flat_map(message).collect();
    std::fs::write(path, bytes).unwrap();
}

fn index(path: &Path, keys: Option<&IndexKeys>) -> Result<ReindexReport, Error> {
    let how = ReindexOptions::new().with_keys(keys.cloned()).with_provenance(Provenance::Off);
    Writer::reindex(path, &how, &NoProgress)
}

/// Compares the file with its index and without.
fn check(path: &Path, messages: u64, keys: &[&str]) {
    let file = File::open(path).unwrap();
    let message_index = file.index().unwrap().expect("an index");
    assert_eq!(message_index.keys().collect::<Vec<_>>(), keys);
    assert_eq!(file.message_count().unwrap(), messages);
    let slow = File::open(path).unwrap().with_scan_options(ScanOptions::default().with_index(false));
    let scan = slow.scan().unwrap();
    assert_eq!(scan.messages.len() as u64, messages + 1);
    assert_eq!(scan.messages[..messages as usize], file.scan().unwrap().messages);
    assert_eq!(*scan.messages.last().unwrap(), message_index.span());
    assert_eq!(scan.unrecognized, file.scan().unwrap().unrecognized);
    for key in keys {
        let column = message_index.column(key).unwrap().unwrap();
        for message in slow.messages().unwrap().take(messages as usize) {
            let message = message.unwrap();
            assert_eq!(column.value(message.number()), message.metadata().get(key), "{key}");
        }
        for value in column.values() {
            let slowly: Vec<u64> = slow
                .messages()
                .unwrap()
                .take(messages as usize)
                .map(|message| message.unwrap())
                .filter(|message| message.metadata().get(key) == Some(value))
                .map(|message| message.number())
                .collect();
            assert_eq!(column.matching(|found| found == Some(value)), slowly);
        }
    }
}

#[test]
fn an_index_holds_the_values_of_the_messages() {
    let dir = TestDir::new();
    plain(&dir.path(), 20);
    let done = index(&dir.path(), None).unwrap();
    assert_eq!((done.messages, done.entered, done.is_unchanged), (20, 20, false));
    check(&dir.path(), 20, &["mars.step", "mars.param", "even"]);
    // Indexing again changes nothing.
    let before = std::fs::read(dir.path()).unwrap();
    let done = index(&dir.path(), None).unwrap();
    assert!(done.is_unchanged);
    assert_eq!(std::fs::read(dir.path()).unwrap(), before);
    // Other keys.
    let keys = IndexKeys::Only(vec!["mars.step".to_owned(), "missing".to_owned()]);
    assert!(!index(&dir.path(), Some(&keys)).unwrap().is_unchanged);
    check(&dir.path(), 20, &["mars.step", "missing"]);
    assert!(index(&dir.path(), Some(&keys)).unwrap().is_unchanged);
    // And the same bytes as at first.
    index(&dir.path(), Some(&IndexKeys::All)).unwrap();
    assert_eq!(std::fs::read(dir.path()).unwrap(), before);
}

#[test]
fn indexes_are_extended_by_appends() {
    let dir = TestDir::new();
    plain(&dir.path(), 5);
    index(&dir.path(), None).unwrap();
    let descriptor = DataObjectDescriptor::new(DType::U8, [1]);
    let mut writer = Writer::append(dir.path(), &NoProgress).unwrap().with_provenance(Provenance::Off);
    let options = EncodeOptions::new().with_provenance(Provenance::Off);
    writer.message(&metadata(5), &[(&descriptor, &[9])], &options).unwrap();
    writer
        .stream(&GlobalMetadata::default(), options, |encoder| {
            let Value::Map(pairs) = metadata(6).base[0]["mars"].clone() else { unreachable!() };
            encoder.write_preceder([("mars".to_owned(), Value::Map(pairs))].into()).unwrap();
            encoder.write_object(&descriptor, &[8]).unwrap();
            Ok::<(), Error>(())
        })
        .unwrap();
    writer.raw(&message(7)).unwrap();
    let memory = Memory::new("m", [message(8), message(9)].concat());
    let all = tercet_core::Span::first(tercet_core::ByteSource::len(&memory));
    writer.copy_from(&memory, all, &NoProgress).unwrap();
    writer.finish().unwrap();
    check(&dir.path(), 10, &["mars.step", "mars.param", "even"]);
    let appended = std::fs::read(dir.path()).unwrap();
    // The same as an index built at once.
    let keys = IndexKeys::Only(vec!["mars.step".to_owned()]);
    index(&dir.path(), Some(&keys)).unwrap();
    index(&dir.path(), Some(&IndexKeys::All)).unwrap();
    assert_eq!(std::fs::read(dir.path()).unwrap(), appended);
}

/// Programs without index support append messages after it.
#[test]
fn messages_after_an_index_are_added_without_a_rescan() {
    let dir = TestDir::new();
    plain(&dir.path(), 6);
    index(&dir.path(), None).unwrap();
    let mut bytes = std::fs::read(dir.path()).unwrap();
    bytes.extend((6..9).flat_map(message));
    std::fs::write(dir.path(), &bytes).unwrap();
    let file = File::open(dir.path()).unwrap();
    // Until then it is skipped.
    assert!(file.index().unwrap().is_none());
    assert_eq!(file.message_count().unwrap(), 9);
    let done = index(&dir.path(), None).unwrap();
    assert_eq!((done.messages, done.entered), (9, 3));
    check(&dir.path(), 9, &["mars.step", "mars.param", "even"]);
    assert!(std::fs::metadata(dir.path()).unwrap().len() < bytes.len() as u64 + 3000);
}

#[test]
fn unrecognized_bytes_are_kept_and_indexed() {
    let dir = TestDir::new();
    let bytes = [b"junk".to_vec(), message(0), b"more junk".to_vec(), message(1), b"end".to_vec()].concat();
    std::fs::write(dir.path(), &bytes).unwrap();
    let how = ReindexOptions::new().with_provenance(Provenance::Off).with_allow_gaps(true);
    Writer::reindex(dir.path(), &how, &NoProgress).unwrap();
    check(&dir.path(), 2, &["mars.step", "mars.param", "even"]);
    assert!(std::fs::read(dir.path()).unwrap().starts_with(&bytes));
}

/// An index made after damage does not make the numbers after a gap certain.
#[test]
fn a_gap_is_not_indexed_unless_allowed_and_stops_numbers() {
    let dir = TestDir::new();
    let path = dir.path();
    let mut bytes = [message(0), message(1), message(2)].concat();
    let second = message(0).len();
    bytes[second..second + 24].fill(0);
    for is_side_file in [false, true] {
        std::fs::write(&path, &bytes).unwrap();
        let how = ReindexOptions::new().with_provenance(Provenance::Off).with_index_file(is_side_file);
        let error = Writer::reindex(&path, &how, &NoProgress).unwrap_err();
        let gap = format!("cannot index: unrecognized bytes {second}..");
        assert!(error.to_string().contains(&gap), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes);

        let done = Writer::reindex(&path, &how.clone().with_allow_gaps(true), &NoProgress).unwrap();
        assert_eq!(done.messages, 2);
        // The index that exists does not hide the gap either.
        assert!(Writer::reindex(&path, &how, &NoProgress).is_err());
        let file = File::open(&path).unwrap();
        assert!(file.index().unwrap().is_some());
        assert!(file.message(0).is_ok());
        let error = file.message(1).unwrap_err();
        assert!(error.to_string().contains("message 1 follows a gap"), "{error}");
        assert!(file.with_options(ReadOptions::new().with_allow_gaps(true)).message(1).is_ok());
        assert!(Writer::remove_index(&path, &ReindexOptions::new(), &NoProgress).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
}

#[test]
fn a_million_messages_would_need_two_reads() {
    let dir = TestDir::new();
    plain(&dir.path(), 3000);
    index(&dir.path(), None).unwrap();
    let bytes = std::fs::read(dir.path()).unwrap();
    let source = Counting::new(Memory::new("m", bytes)).with_remote().shared();
    let file = File::from_source(Arc::clone(&source) as _, ReadOptions::new()).unwrap();
    let steps = file.index().unwrap().unwrap().column("mars.step").unwrap().unwrap();
    assert_eq!(steps.matching(|step| step == Some(&2718.into())), [2718]);
    assert!(source.reads() <= 2, "{:?}", source.spans());
    let message = file.message(2718).unwrap();
    assert_eq!(message.metadata().get("mars.step"), Some(&2718.into()));
}

#[test]
fn a_damaged_index_is_not_used() {
    let dir = TestDir::new();
    plain(&dir.path(), 4);
    index(&dir.path(), None).unwrap();
    let good = std::fs::read(dir.path()).unwrap();
    let file = File::open(dir.path()).unwrap();
    let (span, right) = (file.index().unwrap().unwrap().span(), file.scan().unwrap());
    for at in span.start() as usize..span.end() as usize {
        let mut bytes = good.clone();
        bytes[at] ^= 0x40;
        let source = Arc::new(Memory::new("m", bytes));
        let file = File::from_source(source, ReadOptions::new()).unwrap();
        let scan = file.scan().unwrap();
        assert_eq!(scan.messages[..4], right.messages, "byte {at}");
        assert!(scan.messages.len() == 4 || !file.gaps().unwrap().is_empty(), "byte {at}");
    }
}

/// The mark of an index is in its first and in its last metadata frame: while one of them can be read, the index is not a
/// message, wherever it is.
#[test]
fn a_damaged_index_is_not_a_message() {
    let dir = TestDir::new();
    plain(&dir.path(), 4);
    index(&dir.path(), None).unwrap();
    let good = std::fs::read(dir.path()).unwrap();
    let span = File::open(dir.path()).unwrap().index().unwrap().unwrap().span();
    let (mut skipped, mut gaps) = (0, 0);
    for at in span.start() as usize..span.end() as usize {
        for mask in [0x01, 0x40] {
            let mut bytes = good.clone();
            bytes[at] ^= mask;
            bytes.extend(message(4));
            let file = File::from_bytes("m", bytes).unwrap();
            let count = file.message_count().unwrap();
            let has_gap = !file.gaps().unwrap().is_empty();
            assert!(count == 5 || has_gap, "byte {at} ^ {mask}: {count} messages");
            if has_gap {
                gaps += 1;
                continue;
            }
            skipped += 1;
            assert_eq!(file.message(4).unwrap().metadata().get("mars.step"), Some(&4.into()), "byte {at}");
        }
    }
    // Only magic, lengths and end magic are gaps.
    assert!(skipped > 2000 && gaps < 100, "{skipped} skipped, {gaps} gaps");
}

/// Nothing shows what a message was if both of its metadata frames are damaged: it is an error, and is not skipped.
#[test]
fn an_index_without_a_readable_mark_is_a_damaged_message() {
    let dir = TestDir::new();
    plain(&dir.path(), 4);
    index(&dir.path(), None).unwrap();
    let mut bytes = std::fs::read(dir.path()).unwrap();
    let mark = b"tercet_catalogue";
    let marks: Vec<usize> =
        bytes.windows(mark.len()).enumerate().filter(|(_, found)| found == mark).map(|(at, _)| at).collect();
    assert_eq!(marks.len(), 2);
    for &at in &marks {
        bytes[at] ^= 1;
    }
    bytes.extend(message(4));
    let file = File::from_bytes("m", bytes).unwrap();
    assert_eq!(file.message_count().unwrap(), 6);
    let error = file.message(4).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Common(tercet_core::CommonError::Checksum { .. })), "{error}");
    for (number, step) in [(0, 0), (3, 3), (5, 4_u64)] {
        assert_eq!(file.message(number).unwrap().metadata().get("mars.step"), Some(&step.into()));
    }
}

/// A change under the index is detected when a message is read.
#[test]
fn moved_messages_are_detected() {
    let dir = TestDir::new();
    plain(&dir.path(), 4);
    index(&dir.path(), None).unwrap();
    let mut bytes = std::fs::read(dir.path()).unwrap();
    // Two messages are swapped; the bytes of the index cannot show it.
    let (first, second) = (message(0), message(1));
    assert_ne!(first.len(), second.len());
    let swapped = [second.clone(), first.clone()].concat();
    bytes[..swapped.len()].copy_from_slice(&swapped);
    let file = File::from_source(Arc::new(Memory::new("m", bytes)), ReadOptions::new()).unwrap();
    assert!(file.index().unwrap().is_some());
    let error = file.message(1).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::StaleIndex { message: 1, .. }), "{error}");
    assert!(matches!(file.message(0).unwrap_err().kind(), ErrorKind::StaleIndex { message: 0, .. }));
    assert!(file.message(2).is_ok());
}

#[test]
fn keys_that_cannot_be_indexed_are_rejected() {
    let dir = TestDir::new();
    std::fs::write(dir.path(), b"").unwrap();
    assert!(index(&dir.path(), None).unwrap_err().to_string().contains("holds no message"));
    let mut damaged = [message(0), message(1)].concat();
    let at = message(0).len() + 40;
    damaged[at] ^= 1;
    std::fs::write(dir.path(), &damaged).unwrap();
    index(&dir.path(), None).unwrap_err();
    assert_eq!(std::fs::read(dir.path()).unwrap(), damaged);
    plain(&dir.path(), 1);
    let many = IndexKeys::Only((0..=MAX_KEYS).map(|key| key.to_string()).collect());
    assert!(index(&dir.path(), Some(&many)).unwrap_err().to_string().contains("room for 64"));
    let long = IndexKeys::Only(vec!["k".repeat(129)]);
    assert!(index(&dir.path(), Some(&long)).unwrap_err().to_string().contains("129 bytes"));
}

/// An index of the longest and most keys still fits into the last bytes, where readers look for it.
#[test]
fn the_largest_index_is_found() {
    let dir = TestDir::new();
    let descriptor = DataObjectDescriptor::new(DType::U8, [1]);
    let keys: Vec<String> = (0..MAX_KEYS).map(|key| format!("{key:0>128}")).collect();
    let extra = keys.iter().map(|key| (key.clone(), key.as_str().into())).collect();
    let metadata = GlobalMetadata { extra, ..Default::default() };
    let mut writer = Writer::create(
        dir.path(),
        WriterOptions::new().with_overwrite(true).with_index(Some(IndexKeys::All)),
    )
    .unwrap();
    for _ in 0..3 {
        writer.message(&metadata, &[(&descriptor, &[1])], &EncodeOptions::new()).unwrap();
    }
    writer.finish().unwrap();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    check(&dir.path(), 3, &keys);
}

#[test]
fn an_index_is_a_valid_message() {
    let dir = TestDir::new();
    plain(&dir.path(), 4);
    index(&dir.path(), None).unwrap();
    assert_eq!(findings(&dir.path()), "");
    Writer::remove_index(dir.path(), &ReindexOptions::new(), &NoProgress).unwrap();
    assert_eq!(std::fs::read(dir.path()).unwrap(), (0..4).flat_map(message).collect::<Vec<_>>());
    assert!(!Writer::remove_index(dir.path(), &ReindexOptions::new(), &NoProgress).unwrap());
}

/// Validation, verification, repair and readers give a message the same number, also after an index.
#[test]
fn numbers_do_not_count_indexes() {
    let dir = TestDir::new();
    plain(&dir.path(), 3);
    index(&dir.path(), None).unwrap();
    let one = std::fs::read(dir.path()).unwrap();
    let mut two = [&one[..], &one].concat();
    let source =
        |bytes: &[u8]| -> Arc<dyn tercet_core::ByteSource> { Arc::new(Memory::new("m", bytes.to_vec())) };
    let report = validate_source(&source(&two), &ValidateOptions::new(), &NoProgress).unwrap();
    let numbers: Vec<Option<u64>> = report.messages.iter().map(|message| message.number).collect();
    assert_eq!(numbers, [Some(0), Some(1), Some(2), None, Some(3), Some(4), Some(5), None]);
    assert_eq!((report.message_count(), report.object_count()), (6, 6));
    // The last index omits the first half: a warning, because readers do not use it.
    assert!(report.is_ok() && report.hash_verified());
    let issues: Vec<_> = report.messages.iter().flat_map(|message| &message.issues).collect();
    assert_eq!((issues.len(), issues[0].code.name()), (1, "message_index_wrong"));

    // The payload of message 4.
    let messages = File::from_bytes("m", two.clone()).unwrap().scan().unwrap().messages.clone();
    let range = messages[4].to_range().unwrap();
    let at = two[range.clone()].windows(4).position(|bytes| bytes == [1, 2, 3, 0xa9]).unwrap();
    two[range.start + at] ^= 1;
    let file = File::from_bytes("m", two.clone()).unwrap();
    let error = file.message(4).unwrap().object(0).unwrap().decode().unwrap_err();
    assert!(error.to_string().contains("message 4 › object 0"), "{error}");
    let report = validate_source(&source(&two), &ValidateOptions::new(), &NoProgress).unwrap();
    let failed: Vec<_> = report.messages.iter().filter(|message| !message.is_ok()).collect();
    assert_eq!((failed.len(), failed[0].number), (1, Some(4)));
    let verified = tercet_tgm::verify(source(&two), tercet_tgm::VerifyOptions::new(), &NoProgress).unwrap();
    let site = verified.failures().next().unwrap().site.clone().unwrap();
    assert_eq!((site.region.as_str(), verified.details.messages), ("message 4 › object 0", 6));
    let options = tercet_tgm::SalvageOptions::new();
    let plan = tercet_tgm::salvage::plan(&source(&two), &options, &NoProgress).unwrap();
    assert_eq!((plan.report.messages[0].message, plan.report.kept_objects), (4, 5));
}

/// All findings of a file as text.
fn findings(path: &Path) -> String {
    let source: Arc<dyn tercet_core::ByteSource> = Arc::new(tercet_core::source::File::open(path).unwrap());
    let report = validate_source(&source, &ValidateOptions::new(), &NoProgress).unwrap();
    let issues = report.messages.iter().flat_map(|message| &message.issues);
    let lines: Vec<String> = issues.map(|issue| format!("{}: {}", issue.code, issue.description)).collect();
    lines.join("\n")
}

/// Validation compares an index with the messages.
#[test]
fn a_wrong_index_is_reported() {
    let dir = TestDir::new();
    plain(&dir.path(), 4);
    index(&dir.path(), None).unwrap();
    let bytes = std::fs::read(dir.path()).unwrap();
    // A message of the same length with another value.
    let at = message(0).len();
    let other = message(1).windows(3).position(|window| window == b"msl").unwrap();
    let mut changed = bytes.clone();
    changed[at + other..][..3].copy_from_slice(b"mxl");
    std::fs::write(dir.path(), &changed).unwrap();
    assert!(findings(&dir.path()).starts_with("hash_mismatch"), "{}", findings(&dir.path()));
    let swapped = [message(1), message(0), bytes[message(0).len() + message(1).len()..].to_vec()].concat();
    std::fs::write(dir.path(), &swapped).unwrap();
    let found = findings(&dir.path());
    assert!(found.starts_with("message_index_wrong: the index lists message 0 at"), "{found}");
    let swapped = [message(6), bytes[message(0).len()..].to_vec()].concat();
    assert_eq!(message(6).len(), message(0).len());
    std::fs::write(dir.path(), &swapped).unwrap();
    let found = findings(&dir.path());
    assert!(found.starts_with("message_index_wrong: the index differs from message 0"), "{found}");
}

/// Repair keeps an index only if everything before it keeps its offset.
#[test]
fn repair_drops_a_stale_index() {
    let dir = TestDir::new();
    plain(&dir.path(), 3);
    let messages = std::fs::read(dir.path()).unwrap();
    index(&dir.path(), None).unwrap();
    let good = std::fs::read(dir.path()).unwrap();
    let salvage = |bytes: &[u8]| {
        let source: Arc<dyn tercet_core::ByteSource> = Arc::new(Memory::new("m", bytes.to_vec()));
        let options = EncodeOptions::new().with_provenance(Provenance::Off);
        tercet_tgm::salvage::plan(
            &source,
            &tercet_tgm::SalvageOptions::new().with_encode(options),
            &NoProgress,
        )
        .unwrap()
    };
    let untouched = salvage(&good);
    assert_eq!(untouched.to_bytes().unwrap(), good);
    assert!(!untouched.report.index_dropped);
    let with_unrecognized = salvage(&[b"junk", &good[..]].concat());
    assert_eq!(with_unrecognized.to_bytes().unwrap(), messages);
    assert!(with_unrecognized.report.index_dropped && with_unrecognized.report.is_complete());
    assert_eq!(with_unrecognized.report.kept_messages, 3);
    // A damaged index is not a loss.
    let mut damaged = good.clone();
    let at = messages.len() + (good.len() - messages.len()) / 2;
    damaged[at] ^= 1;
    let damaged = salvage(&damaged);
    assert_eq!(damaged.to_bytes().unwrap(), messages);
    assert!(damaged.report.index_dropped && damaged.report.is_complete(), "{:?}", damaged.report);
}

/// Messages of one run have the same length: offsets of another file fit.
#[test]
fn an_incomplete_index_is_not_used() {
    let dir = TestDir::new();
    let same = |step: u64| message(10 + 6 * step);
    assert_eq!(same(0).len(), same(1).len());
    let front: Vec<u8> = (0..3).flat_map(same).collect();
    std::fs::write(dir.path(), (3..6).flat_map(same).collect::<Vec<_>>()).unwrap();
    index(&dir.path(), None).unwrap();
    let back = std::fs::read(dir.path()).unwrap();
    std::fs::write(dir.path(), [&front[..], &back].concat()).unwrap();
    let file = File::open(dir.path()).unwrap();
    assert!(file.index().unwrap().is_none());
    let reason = file.rejected_index().unwrap().unwrap().to_string();
    assert!(reason.contains("which hold a message"), "{reason}");
    assert_eq!(file.message_count().unwrap(), 6);
    let done = index(&dir.path(), None).unwrap();
    assert_eq!((done.messages, done.is_unchanged), (6, false));
    check(&dir.path(), 6, &["mars.step", "mars.param", "even"]);
    // An index without a message in the middle.
    let mut builder = IndexBuilder::new(&IndexKeys::All);
    let len = same(0).len() as u64;
    for at in [0, 2] {
        builder.push(tercet_core::Span::at(at * len, len).unwrap(), &metadata(10 + 6 * at));
    }
    let mut bytes = std::io::Cursor::new(front.clone());
    bytes.set_position(front.len() as u64);
    builder.write(&mut bytes, Provenance::Off).unwrap();
    let file = File::from_source(Arc::new(Memory::new("m", bytes.into_inner())), ReadOptions::new()).unwrap();
    assert!(file.rejected_index().unwrap().is_some());
    assert_eq!(file.message_count().unwrap(), 3);
}

/// Values that would need far more memory than the messages have: rejected before decoding.
#[test]
fn a_column_cannot_be_larger_than_its_messages() {
    let front = message(0);
    let mark = Value::Map(vec![("version".into(), 2.into()), ("messages".into(), 1.into())]);
    let extra = [("tercet_catalogue".to_owned(), mark)].into();
    let metadata = GlobalMetadata { extra, ..Default::default() };
    let mut sink = std::io::Cursor::new(front.clone());
    sink.set_position(front.len() as u64);
    let options = EncodeOptions::new().with_provenance(Provenance::Off);
    let mut encoder = StreamingEncoder::new(sink, &metadata, options).unwrap();
    let zeros = vec![0; 1 << 20];
    for (column, dtype, bytes) in [
        ("lengths", DType::U64, &(front.len() as u64).to_le_bytes()[..]),
        ("gaps", DType::U64, &0u64.to_le_bytes()),
        ("codes", DType::U32, &1u32.to_le_bytes()),
        ("values", DType::U8, &zeros),
    ] {
        let what = Value::Map(vec![("column".into(), column.into()), ("key".into(), "step".into())]);
        encoder.write_preceder([("catalogue".to_owned(), what)].into()).unwrap();
        let count = bytes.len() as u64 / u64::from(dtype.bits() / 8);
        let descriptor = DataObjectDescriptor::new(dtype, [count]).with_compression("zstd");
        encoder.write_object(&descriptor, bytes).unwrap();
    }
    let bytes = encoder.finish_with_length().unwrap().into_inner();
    let file = File::from_source(Arc::new(Memory::new("m", bytes)), ReadOptions::new()).unwrap();
    let message_index = file.index().unwrap().expect("its places are right");
    assert!(matches!(message_index.column("step"), Err(IndexError::InvalidValues { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(64)))]

    /// Random mixtures of keys and types.
    #[test]
    fn every_value_is_found(
        rows in prop::collection::vec(prop::collection::btree_map("[a-c]", 0u8..8, 0..3), 1..40),
        added in 0usize..10,
    ) {
        let dir = TestDir::new();
        let descriptor = DataObjectDescriptor::new(DType::U8, [1]);
        let value = |kind: u8| match kind {
            0 => Value::Null,
            1 => Value::from(1),
            2 => Value::from(1.0),
            3 => Value::from("1"),
            4 => Value::Bytes(vec![1]),
            5 => Value::Bytes(vec![1; 300]),
            6 => Value::Map(vec![]),
            _ => Value::Map(vec![("x".into(), 1.into())]),
        };
        let split = rows.len().saturating_sub(added).max(1);
        let mut writer = Writer::create(dir.path(), WriterOptions::new().with_overwrite(true).with_index(Some(IndexKeys::All))).unwrap();
        for (at, row) in rows.iter().enumerate() {
            if at == split {
                writer.finish().unwrap();
                writer = Writer::append(dir.path(), &NoProgress).unwrap();
            }
            let extra = row.iter().map(|(key, kind)| (key.clone(), value(*kind))).collect();
            let metadata = GlobalMetadata { extra, ..Default::default() };
            writer.message(&metadata, &[(&descriptor, &[1])], &EncodeOptions::new()).unwrap();
        }
        writer.finish().unwrap();
        let message_index = File::open(dir.path()).unwrap().index().unwrap().unwrap();
        for key in ["a", "b", "c", "a.x"] {
            let column = message_index.column(key).unwrap();
            for (message, row) in rows.iter().enumerate() {
                let found = match key.split_once('.') {
                    None => row.get(key),
                    Some((key, _)) => row.get(key).filter(|kind| **kind == 7),
                };
                let expected = found.map(|kind| if key.contains('.') { 1.into() } else { value(*kind) });
                let Some(column) = &column else {
                    // A key that was a map in its first message is not indexed.
                    let first = rows.iter().find_map(|row| row.get(key));
                    prop_assert!(expected.is_none() || first == Some(&7));
                    continue;
                };
                if column.is_stored(message as u64) {
                    prop_assert_eq!(column.value(message as u64), expected.as_ref());
                } else {
                    prop_assert_eq!(found, Some(&5));
                }
            }
        }
    }
}

fn index_file(path: &Path) -> Result<ReindexReport, Error> {
    let how = ReindexOptions::new().with_provenance(Provenance::Off).with_index_file(true);
    Writer::reindex(path, &how, &NoProgress)
}

/// A fresh index file is used, a stale one is reported and ignored, and appends keep it fresh.
#[test]
fn an_index_file_is_used_while_it_is_fresh() {
    let dir = TestDir::new();
    let path = dir.path();
    plain(&path, 20);
    let before = std::fs::read(&path).unwrap();
    let done = index_file(&path).unwrap();
    assert_eq!((done.messages, done.entered, done.is_unchanged), (20, 20, false));
    assert!(index_file(&path).unwrap().is_unchanged);
    assert!(std::fs::read(&path).unwrap() == before, "the file does not change");
    let file = File::open(&path).unwrap();
    let column = file.index().unwrap().expect("an index").column("mars.step").unwrap().unwrap();
    assert_eq!(column.matching(|step| step == Some(&Value::from(7))), [7]);
    assert_eq!((file.message_count().unwrap(), file.index_span().unwrap()), (20, None));
    // Appends extend it.
    let mut writer = Writer::append(&path, &NoProgress).unwrap();
    writer.raw(&message(20)).unwrap();
    assert_eq!(writer.finish().unwrap().index_file_error, None);
    let file = File::open(&path).unwrap();
    assert_eq!(file.index().unwrap().expect("an index").scan().messages.len(), 21);
    // Bytes of another program make it stale; the next index reads only these.
    let longer = [std::fs::read(&path).unwrap(), message(21)].concat();
    std::fs::write(&path, &longer).unwrap();
    let file = File::open(&path).unwrap();
    assert_eq!((file.message_count().unwrap(), file.index().unwrap().is_some()), (22, false));
    let reason = file.rejected_index().unwrap().unwrap().to_string();
    assert!(reason.starts_with("the index file is stale: it covers "), "{reason}");
    let done = index_file(&path).unwrap();
    assert_eq!((done.messages, done.entered), (22, 1));
    assert!(File::open(&path).unwrap().index().unwrap().is_some());
    // Other bytes of the same length.
    let mut other = longer;
    let at = other.len() - 100;
    other[at] ^= 1;
    std::fs::write(&path, &other).unwrap();
    let file = File::open(&path).unwrap();
    let reason = file.rejected_index().unwrap().unwrap().to_string();
    assert_eq!(reason, "the index file is stale: it belongs to other bytes");
    assert_eq!(file.message_count().unwrap(), 22);
    // It is removed with the index.
    plain(&path, 3);
    index_file(&path).unwrap();
    assert!(Writer::remove_index(&path, &ReindexOptions::new(), &NoProgress).unwrap());
    assert!(!tercet_tgm::index_file_path(&path).exists());
    assert!(!Writer::remove_index(&path, &ReindexOptions::new(), &NoProgress).unwrap());
}

/// A damaged index file never changes what is read.
#[test]
fn no_flipped_byte_of_an_index_file_changes_a_result() {
    let dir = TestDir::new();
    plain(&dir.path(), 5);
    index_file(&dir.path()).unwrap();
    let index = std::fs::read(tercet_tgm::index_file_path(&dir.path())).unwrap();
    let bytes = std::fs::read(dir.path()).unwrap();
    let right = File::from_bytes("run", bytes.clone()).unwrap().scan().unwrap();
    for at in 0..index.len() {
        let mut index = index.clone();
        index[at] ^= 0x04;
        let index = Arc::new(Memory::new("run.tgm.idx", index));
        let file = File::from_bytes("run", bytes.clone()).unwrap().with_index_file(index);
        assert_eq!(file.scan().unwrap().messages, right.messages, "byte {at}");
    }
}

/// A full file is renamed with its index file, and a new one is started.
#[test]
fn full_files_are_rotated() {
    let dir = TestDir::new();
    let one = message(0).len() as u64;
    let options = WriterOptions::new().with_index_file(true).with_max_file_size(Some(one * 2 + 1));
    let mut full = Vec::new();
    for step in 0..10 {
        let mut writer = Writer::append_or_create(dir.path(), options.clone(), &NoProgress).unwrap();
        full.extend(writer.rotated().map(Path::to_owned));
        writer.raw(&message(step)).unwrap();
        assert_eq!(writer.finish().unwrap().index_file_error, None);
    }
    let names = ["run-000000.tgm", "run-000001.tgm", "run-000002.tgm"];
    assert!(full.iter().map(|path| path.file_name().unwrap()).eq(names), "{full:?}");
    let mut steps = Vec::new();
    for path in full.iter().chain([&dir.path()]) {
        let file = File::open(path).unwrap();
        assert!(file.index().unwrap().is_some(), "{}", path.display());
        for message in file.messages().unwrap() {
            steps.push(message.unwrap().metadata().get("mars.step").and_then(Value::as_u64).unwrap());
        }
    }
    assert_eq!(steps, (0..10).collect::<Vec<_>>());
}

/// Reading a message by number does not look at the messages after it.
#[test]
fn a_message_by_number_stops_the_scan() {
    let payload = vec![7; 100_000];
    let descriptor = DataObjectDescriptor::new(DType::U8, [100_000]);
    let one = encode_message(&metadata(1), &[(&descriptor, &payload)], &EncodeOptions::new()).unwrap();
    let source = Counting::new(Memory::new("run", one.repeat(200))).with_copies().shared();
    let file = File::from_source(Arc::clone(&source) as _, ReadOptions::new()).unwrap();
    assert_eq!(file.message(30).unwrap().span().start(), 30 * one.len() as u64);
    let furthest =
        source.spans().iter().map(|span| span.end()).filter(|end| *end < 199 * one.len() as u64).max();
    assert!(furthest <= Some(32 * one.len() as u64), "{furthest:?}");
    let reads = source.reads();
    assert!(reads < 80, "{reads} reads");
    assert_eq!(file.message(29).unwrap().number(), 29);
    assert_eq!(file.message_count().unwrap(), 200);
    assert!(file.message(200).is_err());
}

/// An index after an incomplete message would make a gap of it.
#[test]
fn a_file_that_ends_inside_a_message_is_not_indexed() {
    let dir = TestDir::new();
    let bytes = [message(0), message(1)].concat();
    let cut = &bytes[..bytes.len() - 9];
    std::fs::write(dir.path(), cut).unwrap();
    for error in [index(&dir.path(), None).unwrap_err(), index_file(&dir.path()).unwrap_err()] {
        let (first, second) = (message(0).len(), message(1).len());
        let reason = format!("file ends inside message 1: {} of {second} bytes", cut.len() - first);
        assert!(error.to_string().contains(&reason), "{error}");
        let place = (error.class(), error.span().map(tercet_core::Span::start));
        assert_eq!(place, (Class::Malformed, Some(first as u64)));
    }
    assert_eq!(std::fs::read(dir.path()).unwrap(), cut);
}

/// An index that cannot be used is not a message: neither its own bytes nor those of another one before it.
#[test]
fn appending_after_an_unusable_index_keeps_the_numbers() {
    let dir = TestDir::new();
    let path = dir.path();
    plain(&path, 5);
    let messages = std::fs::metadata(&path).unwrap().len() as usize;
    index(&path, None).unwrap();
    let indexed = std::fs::read(&path).unwrap();
    let append = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let mut writer = Writer::append(&path, &NoProgress).unwrap();
        writer.raw(&message(9)).unwrap();
        writer.finish().unwrap();
        File::open(&path).unwrap()
    };
    let file = append(&indexed.repeat(2));
    assert_eq!(file.message_count().unwrap(), 11);
    assert_eq!(file.message(10).unwrap().metadata().get("mars.step"), Some(&9.into()));
    assert!(file.rejected_index().unwrap().is_none());
    let mut recognized = 0;
    for at in (messages + 24..indexed.len()).step_by(7) {
        let mut damaged = indexed.clone();
        damaged[at] ^= 0x55;
        // Without its mark it is a damaged message, with or without the append.
        if File::from_bytes("m", damaged.clone()).unwrap().rejected_index().unwrap().is_none() {
            continue;
        }
        recognized += 1;
        let file = append(&damaged);
        assert_eq!(file.message_count().unwrap(), 6, "byte {at} of {}", indexed.len());
        let last = file.with_options(ReadOptions::new().with_allow_gaps(true)).message(5).unwrap();
        assert_eq!(last.metadata().get("mars.step"), Some(&9.into()), "byte {at}");
    }
    assert!(recognized > 100, "{recognized}");
}
