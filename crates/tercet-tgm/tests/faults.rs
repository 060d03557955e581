//! Every operation that can fail, and every moment at which the power can be cut: the file is the old one or the new
//! one, never something between.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::disallowed_methods, reason = "these tests look at real files")]
#![allow(dead_code, reason = "the names of samples are not used here")]
#![cfg(any(unix, windows))]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tercet_core::progress::{Counter, Silent};
use tercet_core::publish::{Disk, RealDisk};
use tercet_testkit::faults::for_each_fault;
use tercet_testkit::old_or_new;
use tercet_testkit::powercut::for_each_cut;
use tercet_tgm::{
    DataObjectDescriptor, Dtype, EncodeError, Error, Fault, GlobalMetadata, StreamingEncoder, Writer,
};

#[path = "support/samples.rs"]
mod samples;

const NAME: &str = "a.tgm";

/// A change of the file in a folder, through a disk.
type Change = fn(&Arc<dyn Disk>, &Path) -> Result<(), Error>;

fn add_messages(mut writer: Writer) -> Result<(), Error> {
    let descriptor = DataObjectDescriptor::new(Dtype::Uint8, [3]);
    writer.message(&GlobalMetadata::default(), &[(&descriptor, &[1, 2, 3])], &samples::options())?;
    writer.stream(&GlobalMetadata::default(), samples::options(), |stream| {
        stream.write_object(&descriptor, &[4, 5, 6]).map_err(|fault| Error::new(NAME.into(), fault))
    })?;
    writer.finish().map(drop)
}

fn create(disk: &Arc<dyn Disk>, folder: &Path) -> Result<(), Error> {
    add_messages(Writer::create_on(Arc::clone(disk), folder.join(NAME))?)
}

fn append(disk: &Arc<dyn Disk>, folder: &Path) -> Result<(), Error> {
    add_messages(Writer::append_on(Arc::clone(disk), folder.join(NAME), &Silent)?)
}

/// Runs a change with every fault and every power cut.
fn never_between(old: Option<&[u8]>, change: Change) {
    let prepare = |folder: &Path| {
        if let Some(old) = old {
            fs::write(folder.join(NAME), old).unwrap();
        }
    };
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path());
    change(&(Arc::new(RealDisk) as Arc<dyn Disk>), folder.path()).unwrap();
    let new = fs::read(folder.path().join(NAME)).unwrap();
    assert_ne!(Some(&new[..]), old);
    let runs = for_each_fault(
        prepare,
        |disk, folder| change(&disk, folder),
        |trial| {
            let found = fs::read(trial.folder.join(NAME)).ok();
            let is_new = old_or_new(found.as_deref(), old, &new);
            assert!(is_new || trial.result.is_err(), "done, but the file is the old one");
        },
    );
    assert!(runs > 50, "{runs} faults");
    let cuts = for_each_cut(
        prepare,
        |disk, folder| change(&disk, folder).unwrap(),
        |cut| {
            let is_new = old_or_new(cut.file(NAME), old, &new);
            assert!(is_new || !cut.complete, "done, but the power cut undoes it");
        },
    );
    assert!(cuts > 5, "{cuts} cuts");
}

#[test]
fn create_where_nothing_is() {
    never_between(None, create);
}

#[test]
fn create_over_another_file() {
    never_between(Some(&samples::all()[1].bytes), create);
}

#[test]
fn append_to_a_file() {
    never_between(Some(&samples::all()[2].bytes), append);
}

/// Bytes that belong to no message stay where they are.
#[test]
fn append_keeps_every_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    let old = [b"junk".to_vec(), samples::all()[0].bytes.clone(), b"cut mess".to_vec()].concat();
    fs::write(&path, &old).unwrap();
    append(&(Arc::new(RealDisk) as Arc<dyn Disk>), folder.path()).unwrap();
    let new = fs::read(&path).unwrap();
    assert!(new.starts_with(&old));
    assert_eq!(tercet_tgm::scan(&new).len(), 3);
}

#[test]
fn appending_can_be_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    let old = samples::all()[0].bytes.clone();
    fs::write(&path, &old).unwrap();
    let progress = Counter::default();
    progress.cancel();
    let error = Writer::append(&path, &progress).unwrap_err();
    assert!(matches!(error.fault(), Fault::Cancelled(_)), "{error}");
    assert_eq!(fs::read(&path).unwrap(), old);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let missing = Writer::append(folder.path().join("missing.tgm"), &Silent);
    assert!(missing.is_err());
}

/// Half a message is never published.
#[test]
fn an_unfinished_message_is_not_published() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    let mut writer = Writer::create(&path).unwrap();
    let stopped = writer.stream(&GlobalMetadata::default(), samples::options(), |_| {
        Err(Error::new(NAME.into(), Fault::GivenUp))
    });
    assert!(stopped.is_err());
    let descriptor = DataObjectDescriptor::new(Dtype::Uint8, [1]);
    let behind = writer.message(&GlobalMetadata::default(), &[(&descriptor, &[1])], &samples::options());
    assert!(matches!(behind.unwrap_err().fault(), Fault::Encode(EncodeError::Unfinished)));
    assert!(matches!(writer.finish().unwrap_err().fault(), Fault::Encode(EncodeError::Unfinished)));
    assert!(!path.exists());
}

/// A sink that takes a few bytes and then none, and then some again.
struct Moody(usize);

impl std::io::Write for Moody {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += 1;
        if self.0 == 4 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(bytes.len()) }
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What follows a failed write is refused: it would be part of half a message.
#[test]
fn a_failed_stream_stays_failed() {
    let mut encoder =
        StreamingEncoder::new(Moody(0), &GlobalMetadata::default(), samples::options()).unwrap();
    let descriptor = DataObjectDescriptor::new(Dtype::Uint8, [1]);
    assert!(encoder.write_object(&descriptor, &[1]).is_err());
    assert!(matches!(encoder.write_object(&descriptor, &[1]), Err(Fault::Encode(EncodeError::Unfinished))));
    assert!(encoder.finish().is_err());
}
