//! Every fault and every power cut leaves the old file or the new file.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tercet_core::progress::{Counter, NoProgress};
use tercet_core::publish::{Disk, RealDisk};
use tercet_core::source::Memory;
use tercet_core::{ByteSource, CommonError};
use tercet_testkit::faults::{FaultyDisk, for_each_fault};
use tercet_testkit::old_or_new;
use tercet_testkit::powercut::for_each_cut;
use tercet_tgm::edit::{self, Changes, Merge, Strategy};
use tercet_tgm::{
    DType, DataObjectDescriptor, EncodeError, Error, ErrorKind, File, GlobalMetadata, IndexKeys, Provenance,
    ReindexOptions, StreamingEncoder, Writer, WriterOptions,
};

use crate::samples;

const NAME: &str = "a.tgm";

/// A change to the file in a directory, through a disk.
type Change = fn(&Arc<dyn Disk>, &Path) -> Result<(), Error>;

fn add_messages(mut writer: Writer) -> Result<(), Error> {
    let descriptor = DataObjectDescriptor::new(DType::U8, [3]);
    writer.message(&GlobalMetadata::default(), &[(&descriptor, &[1, 2, 3])], &samples::options())?;
    writer.stream(&GlobalMetadata::default(), samples::options(), |stream| {
        stream.write_object(&descriptor, &[4, 5, 6])
    })?;
    writer.finish().map(drop)
}

fn create(disk: &Arc<dyn Disk>, dir: &Path) -> Result<(), Error> {
    add_messages(Writer::create_on(
        Arc::clone(disk),
        dir.join(NAME),
        WriterOptions::new().with_overwrite(true),
    )?)
}

/// Locks that are never released end the wait.
fn impatient() -> WriterOptions {
    WriterOptions::new().with_lock_wait(Duration::from_millis(20))
}

fn append(disk: &Arc<dyn Disk>, dir: &Path) -> Result<(), Error> {
    add_messages(Writer::append_on(Arc::clone(disk), dir.join(NAME), impatient(), &NoProgress)?)
}

/// Appends messages to a file that ends with an index.
fn append_indexed(disk: &Arc<dyn Disk>, dir: &Path) -> Result<(), Error> {
    let writer = Writer::append_on(Arc::clone(disk), dir.join(NAME), impatient(), &NoProgress)?;
    add_messages(writer.with_provenance(Provenance::Off))
}

/// Replaces the file by messages made from its own: one with another key, one with all objects, and one with a single
/// object.
fn edit_in_place(disk: &Arc<dyn Disk>, dir: &Path) -> Result<(), Error> {
    let path = dir.join(NAME);
    let (file, options) = (File::open(&path)?, samples::options());
    let changes = Changes::new(vec![edit::Change::new("mars.step", "12").unwrap()]).unwrap();
    let mut merge = Merge::new(Strategy::First);
    let writer_options = WriterOptions::new()
        .with_overwrite(true)
        .with_index(Some(IndexKeys::All))
        .with_provenance(Provenance::Off);
    let mut writer = Writer::create_on(Arc::clone(disk), &path, writer_options)?;
    for message in file.messages()? {
        let message = message?;
        writer.write(&edit::set(&message, &changes, &options)?, &NoProgress)?;
        writer.write(&edit::split(&message, 0, &options)?, &NoProgress)?;
        merge.add(&message)?;
    }
    writer.write(&merge.finish(&options)?, &NoProgress)?;
    writer.finish().map(drop)
}

fn reindex(disk: &Arc<dyn Disk>, dir: &Path) -> Result<(), Error> {
    let how = ReindexOptions::new().with_provenance(Provenance::Off);
    Writer::reindex_on(Arc::clone(disk), dir.join(NAME), &how, &NoProgress).map(drop)
}

fn remove_index(disk: &Arc<dyn Disk>, dir: &Path) -> Result<(), Error> {
    Writer::remove_index_on(Arc::clone(disk), dir.join(NAME), &ReindexOptions::new(), &NoProgress).map(drop)
}

/// Repairs a damaged file into an existing file.
fn repair(disk: &Arc<dyn Disk>, dir: &Path) -> Result<(), Error> {
    let mut damaged = two_messages();
    let at = damaged.len() - 100;
    damaged[at] ^= 1;
    let source: Arc<dyn ByteSource> = Arc::new(Memory::new("damaged.tgm", damaged));
    let found = tercet_tgm::salvage::plan(
        &source,
        &tercet_tgm::SalvageOptions::new().with_encode(samples::options()),
        &NoProgress,
    )?;
    let mut writer =
        Writer::create_on(Arc::clone(disk), dir.join(NAME), WriterOptions::new().with_overwrite(true))?;
    found.write(&mut writer, &NoProgress)?;
    writer.finish().map(drop)
}

/// A message in one piece and one that was streamed.
fn two_messages() -> Vec<u8> {
    let samples = samples::all();
    [&samples[2].bytes[..], &samples[9].bytes].concat()
}

/// The same with an index at the end.
fn indexed() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(NAME), two_messages()).unwrap();
    reindex(&(Arc::new(RealDisk) as Arc<dyn Disk>), dir.path()).unwrap();
    fs::read(dir.path().join(NAME)).unwrap()
}

/// Runs a change with every fault and every power cut.
fn assert_atomic(old: Option<&[u8]>, change: Change) {
    let prepare = |dir: &Path| {
        if let Some(old) = old {
            fs::write(dir.join(NAME), old).unwrap();
        }
    };
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path());
    change(&(Arc::new(RealDisk) as Arc<dyn Disk>), dir.path()).unwrap();
    let new = fs::read(dir.path().join(NAME)).unwrap();
    assert_ne!(Some(&new[..]), old);
    let runs = for_each_fault(
        prepare,
        |disk, dir| change(&disk, dir),
        |trial| {
            let found = fs::read(trial.directory.join(NAME)).ok();
            let is_new = old_or_new(found.as_deref(), old, &new);
            assert!(is_new || trial.result.is_err(), "done, but the file is the old one");
        },
    );
    assert!(runs > 50, "{runs} faults");
    let cuts = for_each_cut(
        prepare,
        |disk, dir| change(&disk, dir).unwrap(),
        |cut| {
            let is_new = old_or_new(cut.file(NAME), old, &new);
            assert!(is_new || !cut.complete, "done, but the power cut undoes it");
        },
    );
    assert!(cuts > 5, "{cuts} cuts");
}

#[test]
fn create_a_new_file() {
    assert_atomic(None, create);
}

#[test]
fn replace_an_existing_file() {
    assert_atomic(Some(&samples::all()[1].bytes), create);
}

/// The messages of a file, which are all valid, and whether there are bytes after them.
fn valid_messages(bytes: &[u8]) -> (Vec<Vec<u8>>, bool) {
    let file = File::from_bytes(NAME, bytes.to_vec()).unwrap();
    let scan = file.scan().unwrap();
    for message in file.messages().unwrap() {
        for object in message.unwrap().objects() {
            object.unwrap().decode().unwrap();
        }
    }
    let inside = |span: &tercet_core::Span| bytes[span.to_range().unwrap()].to_vec();
    (scan.messages.iter().map(inside).collect(), !scan.unrecognized.is_empty())
}

/// The start of the zeros after the last message.
fn zeroed_tail(bytes: &[u8]) -> Option<usize> {
    let scan = File::from_bytes(NAME, bytes.to_vec()).unwrap().scan().unwrap();
    let tail = scan.unrecognized.last()?.to_range()?;
    (tail.end == bytes.len() && bytes[tail.clone()].iter().all(|&byte| byte == 0)).then_some(tail.start)
}

/// What an interrupted append leaves: the old messages, perhaps new ones that are complete, perhaps a part of one, which
/// the next append removes. Zeros are kept: they may have replaced a message.
fn assert_recoverable(found: &[u8], old: &[u8], new: &[u8]) {
    let ((old, _), (new, _)) = (valid_messages(old), valid_messages(new));
    let (messages, _) = valid_messages(found);
    assert!(messages.len() >= old.len() && new.starts_with(&messages), "{} messages", messages.len());
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(NAME), found).unwrap();
    append(&(Arc::new(RealDisk) as Arc<dyn Disk>), dir.path()).unwrap();
    let (again, has_rest) = valid_messages(&fs::read(dir.path().join(NAME)).unwrap());
    let is_zeroed = zeroed_tail(found).is_some();
    assert!(again.starts_with(&messages) && again.len() == messages.len() + 2 && has_rest == is_zeroed);
}

/// Runs an append with every fault and every power cut: nothing that was in the file is lost.
fn assert_appends(old: &[u8], change: Change) {
    assert_in_place(old, change, 30, 5);
}

/// Runs a change in place with every fault, at least this number, and every power cut.
fn assert_in_place(old: &[u8], change: Change, least_faults: usize, least_cuts: usize) {
    let prepare = |dir: &Path| fs::write(dir.join(NAME), old).unwrap();
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path());
    change(&(Arc::new(RealDisk) as Arc<dyn Disk>), dir.path()).unwrap();
    let new = fs::read(dir.path().join(NAME)).unwrap();
    let mut restored = 0;
    let restored = std::cell::RefCell::new(&mut restored);
    let runs = for_each_fault(
        prepare,
        |disk, dir| change(&disk, dir),
        |trial| {
            let found = fs::read(trial.directory.join(NAME)).unwrap();
            if trial.result.is_ok() {
                assert!(found == new, "done, but the file is not the new one");
            } else if found == old {
                **restored.borrow_mut() += 1;
            } else {
                assert_recoverable(&found, old, &new);
            }
        },
    );
    let restored = **restored.borrow();
    assert!(runs > least_faults && restored > runs / 3, "{runs} faults, {restored} times the old file");
    let cuts = for_each_cut(
        prepare,
        |disk, dir| change(&disk, dir).unwrap(),
        |cut| {
            let found = cut.file(NAME).unwrap();
            assert!(!cut.complete || found == new, "done, but the power cut undoes it");
            assert_recoverable(found, old, &new);
        },
    );
    assert!(cuts > least_cuts, "{cuts} cuts");
}

#[test]
fn append_to_a_file() {
    assert_appends(&samples::all()[2].bytes, append);
}

#[test]
fn append_to_a_file_with_an_index() {
    assert_appends(&indexed(), append_indexed);
}

/// An incomplete message at the end is removed and reported.
#[test]
fn an_incomplete_message_is_removed() {
    let whole = [samples::all()[2].bytes.clone(), samples::all()[1].bytes.clone()].concat();
    let first = samples::all()[2].bytes.len();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    for end in first + 1..whole.len() {
        fs::write(&path, &whole[..end]).unwrap();
        let writer = Writer::append(&path, &NoProgress).unwrap();
        let cut = writer.cut_tail().unwrap_or_else(|| panic!("{end} bytes"));
        assert_eq!((cut.message, cut.span.start(), cut.span.end()), (1, first as u64, end as u64));
        if end == first + 30 {
            let text = format!("file ends inside message 1: 30 of {} bytes", whole.len() - first);
            assert_eq!(cut.to_string(), text);
        }
        add_messages(writer).unwrap();
        let (messages, has_rest) = valid_messages(&fs::read(&path).unwrap());
        assert_eq!((messages.len(), has_rest), (3, false), "{end} bytes");
    }
    // A complete message with a wrong length is damaged: it is kept.
    let mut damaged = whole;
    damaged[first + 17] ^= 1;
    fs::write(&path, &damaged).unwrap();
    add_messages(Writer::append(&path, &NoProgress).unwrap()).unwrap();
    assert!(fs::read(&path).unwrap().starts_with(&damaged));
}

/// Zeros at the end may have been a complete message: they are kept, and reported as a gap.
#[test]
fn a_zeroed_tail_is_a_gap() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    let (first, second) = (&samples::all()[2].bytes, &samples::all()[1].bytes);
    for zeros in [second.len(), 512, 24, 9] {
        let old = [&first[..], &vec![0; zeros]].concat();
        assert_eq!(zeroed_tail(&old), Some(first.len()));
        fs::write(&path, &old).unwrap();
        let writer = Writer::append(&path, &NoProgress).unwrap();
        assert_eq!(writer.cut_tail(), None);
        add_messages(writer).unwrap();
        assert!(fs::read(&path).unwrap().starts_with(&old), "{zeros} zeros");
        let file = File::open(&path).unwrap();
        let gaps = file.gaps().unwrap();
        assert_eq!((gaps.len(), gaps[0].span.start()), (1, first.len() as u64), "{zeros} zeros");
        assert!(file.message(0).is_ok());
        assert!(matches!(file.message(1).unwrap_err().kind(), ErrorKind::AfterGap { .. }));
    }
}

/// Appenders wait for each other.
#[test]
fn concurrent_appends_all_succeed() {
    for old in [two_messages(), indexed()] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        fs::write(&path, &old).unwrap();
        let (before, _) = valid_messages(&old);
        let is_done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                    let (messages, _) = valid_messages(&fs::read(&path).unwrap());
                    assert!(messages.starts_with(&before));
                }
            });
            let appenders: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        for _ in 0..5 {
                            add_messages(Writer::append(&path, &NoProgress).unwrap()).unwrap();
                        }
                    })
                })
                .collect();
            for appender in appenders {
                appender.join().unwrap();
            }
            is_done.store(true, std::sync::atomic::Ordering::Relaxed);
            reader.join().unwrap();
        });
        let (messages, has_rest) = valid_messages(&fs::read(&path).unwrap());
        assert_eq!((messages.len(), has_rest), (before.len() + 80, false));
    }
}

/// The cost of an append does not depend on the length of the file.
#[test]
fn an_append_writes_only_the_message() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(NAME), two_messages().repeat(1000)).unwrap();
    let disk = FaultyDisk::real();
    append(&(Arc::new(disk.clone()) as Arc<dyn Disk>), dir.path()).unwrap();
    assert!(disk.written_bytes() < 2000, "{} bytes written", disk.written_bytes());
}

#[test]
fn edit_a_file_in_place() {
    assert_atomic(Some(&two_messages()), edit_in_place);
}

#[test]
fn repair_into_an_existing_file() {
    assert_atomic(Some(&samples::all()[0].bytes), repair);
}

#[test]
fn index_a_file() {
    assert_appends(&two_messages(), reindex);
}

/// The index is written after the messages, which are not written again.
#[test]
fn an_index_writes_only_the_index() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(NAME), two_messages().repeat(300)).unwrap();
    let len = fs::metadata(dir.path().join(NAME)).unwrap().len();
    let disk = FaultyDisk::real();
    reindex(&(Arc::new(disk.clone()) as Arc<dyn Disk>), dir.path()).unwrap();
    assert!(disk.written_bytes() < len / 4, "{} of {len} bytes written", disk.written_bytes());
    remove_index(&(Arc::new(disk.clone()) as Arc<dyn Disk>), dir.path()).unwrap();
    assert!(fs::read(dir.path().join(NAME)).unwrap() == two_messages().repeat(300));
}

/// An index file is written beside the file, which never changes.
#[test]
fn write_an_index_file() {
    fn write(disk: &Arc<dyn Disk>, dir: &Path) -> Result<(), Error> {
        let how = ReindexOptions::new().with_provenance(Provenance::Off).with_index_file(true);
        Writer::reindex_on(Arc::clone(disk), dir.join(NAME), &how, &NoProgress).map(drop)
    }
    let prepare = |dir: &Path| fs::write(dir.join(NAME), two_messages()).unwrap();
    let is_complete = |file: &[u8], index: Option<&[u8]>| {
        assert!(file == two_messages());
        let Some(index) = index else { return false };
        let index: Arc<dyn ByteSource> = Arc::new(Memory::new("index", index.to_vec()));
        let file = File::from_bytes(NAME, file.to_vec()).unwrap().with_index_file(index);
        assert!(file.index().unwrap().is_some_and(|index| index.scan().messages.len() == 2));
        true
    };
    let index_name = format!("{NAME}.idx");
    for_each_fault(
        prepare,
        |disk, dir| write(&disk, dir),
        |trial| {
            let index = fs::read(trial.directory.join(&index_name)).ok();
            let found = is_complete(&fs::read(trial.directory.join(NAME)).unwrap(), index.as_deref());
            assert!(found || trial.result.is_err());
        },
    );
    for_each_cut(
        prepare,
        |disk, dir| write(&disk, dir).unwrap(),
        |cut| {
            let found = is_complete(cut.file(NAME).unwrap(), cut.file(&index_name));
            assert!(found || !cut.complete);
        },
    );
}

/// A message was written after the index: the index is replaced.
#[test]
fn index_a_file_with_messages_after_its_index() {
    assert_atomic(Some(&[indexed(), samples::all()[1].bytes.clone()].concat()), reindex);
}

#[test]
fn remove_the_index_of_a_file() {
    assert_in_place(&indexed(), remove_index, 5, 1);
}

/// Bytes between messages stay where they are.
#[test]
fn append_keeps_every_byte() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    let old = [b"junk".to_vec(), samples::all()[0].bytes.clone(), b"cut mess".to_vec()].concat();
    fs::write(&path, &old).unwrap();
    append(&(Arc::new(RealDisk) as Arc<dyn Disk>), dir.path()).unwrap();
    let new = fs::read(&path).unwrap();
    assert!(new.starts_with(&old));
    assert_eq!(tercet_tgm::scan(&new).len(), 3);
}

#[test]
fn appending_can_be_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    let old = samples::all()[0].bytes.clone();
    fs::write(&path, &old).unwrap();
    let progress = Counter::default();
    progress.cancel();
    let error = Writer::append(&path, &progress).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Common(CommonError::Cancelled(_))), "{error}");
    assert_eq!(fs::read(&path).unwrap(), old);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    let missing = Writer::append(dir.path().join("missing.tgm"), &NoProgress);
    assert!(missing.is_err());
}

/// A partial message is never published.
#[test]
fn an_unfinished_message_is_not_published() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    let mut writer = Writer::create(&path, WriterOptions::new().with_overwrite(true)).unwrap();
    let stopped = writer.stream(&GlobalMetadata::default(), samples::options(), |_| {
        Err(Error::new(NAME.into(), ErrorKind::DecoderStopped))
    });
    assert!(stopped.is_err());
    let descriptor = DataObjectDescriptor::new(DType::U8, [1]);
    let next = writer.message(&GlobalMetadata::default(), &[(&descriptor, &[1])], &samples::options());
    assert!(matches!(next.unwrap_err().kind(), ErrorKind::Encode(EncodeError::Unfinished)));
    assert!(matches!(writer.finish().unwrap_err().kind(), ErrorKind::Encode(EncodeError::Unfinished)));
    assert!(!path.exists());
}

/// A sink that accepts a few bytes, then fails, then accepts bytes again.
struct FailingSink(usize);

impl std::io::Write for FailingSink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += 1;
        if self.0 == 4 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(bytes.len()) }
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes after a failed write are rejected: they would be part of a partial message.
#[test]
fn a_failed_stream_stays_failed() {
    let mut encoder =
        StreamingEncoder::new(FailingSink(0), &GlobalMetadata::default(), samples::options()).unwrap();
    let descriptor = DataObjectDescriptor::new(DType::U8, [1]);
    assert!(encoder.write_object(&descriptor, &[1]).is_err());
    let error = encoder.write_object(&descriptor, &[1]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Encode(EncodeError::Unfinished)));
    assert!(encoder.finish().is_err());
}
