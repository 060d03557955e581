//! Every fault and every power cut leaves the old file or the new file.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::columns::{Noise, Shape, column};
use tercet_core::publish::{Disk, RealDisk};
use tercet_core::{Class, Diagnostic as _};
use tercet_tatami::search::{Document, SegmentBuilder, SegmentOptions};
use tercet_tatami::{Column, Error, Field, File, Provenance, Schema, Type, Writer, WriterOptions};
use tercet_testkit::faults::for_each_fault;
use tercet_testkit::old_or_new;
use tercet_testkit::powercut::for_each_cut;

const NAME: &str = "a.tatami";

fn fields() -> Vec<Field> {
    vec![
        Field::new("key", Type::Int64).with_sort_key(),
        Field::new("name", Type::String).with_nulls().with_bloom(),
        Field::new("body", Type::BlobRef),
    ]
}

fn columns() -> Vec<Column> {
    let mut noise = Noise(1);
    fields().iter().map(|field| column(field, 300, Shape::Rising, &mut noise)).collect()
}

/// The new file is known by its bytes.
fn reproducible() -> WriterOptions {
    WriterOptions::new().with_provenance(Provenance::Off)
}

fn create(disk: &Arc<dyn Disk>, dir: &Path) -> Result<(), Error> {
    let path = dir.join(NAME);
    let options = reproducible().with_row_group_max_rows(100).with_overwrite(true);
    let mut writer = Writer::create_on(Arc::clone(disk), &path, Schema::new(fields()).unwrap(), options)?;
    writer.append(&columns())?;
    writer.finish().map(drop)
}

/// A search segment whose postings spill to temporary files.
fn index(disk: &Arc<dyn Disk>, dir: &Path) -> Result<(), Error> {
    let path = dir.join(NAME);
    let options = SegmentOptions::new().with_writer(reproducible()).with_memory_bytes(1).with_overwrite(true);
    let mut builder = SegmentBuilder::create_on(Arc::clone(disk), &path, options)?;
    for number in 0..300 {
        let body = format!("document {number} of three hundred");
        let url = format!("https://x.example/{number}");
        builder.add(&Document::new(&url, "title").with_body(body.as_bytes()))?;
    }
    builder.finish().map(drop)
}

type Create = fn(&Arc<dyn Disk>, &Path) -> Result<(), Error>;

fn assert_atomic(old: Option<&[u8]>, create: Create) {
    let prepare = |dir: &Path| {
        if let Some(old) = old {
            fs::write(dir.join(NAME), old).unwrap();
        }
    };
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path());
    let real: Arc<dyn Disk> = Arc::new(RealDisk);
    create(&real, dir.path()).unwrap();
    let new = fs::read(dir.path().join(NAME)).unwrap();
    assert_eq!(File::open(dir.path().join(NAME)).unwrap().rows(), 300);
    assert_eq!(dir.path().read_dir().unwrap().count(), 1, "no temporary file is left");
    let runs = for_each_fault(
        prepare,
        |disk, dir| create(&disk, dir),
        |trial| {
            let found = fs::read(trial.directory.join(NAME)).ok();
            let is_new = old_or_new(found.as_deref(), old, &new);
            match trial.result {
                Ok(()) => assert!(is_new, "done, but the file is the old one"),
                Err(error) => {
                    assert!(error.to_string().contains(NAME), "{error}");
                    assert_eq!(error.class(), Class::Io, "{error}");
                }
            }
        },
    );
    assert!(runs > 20, "{runs} faults");
    let cuts = for_each_cut(
        prepare,
        |disk, dir| create(&disk, dir).unwrap(),
        |cut| {
            let is_new = old_or_new(cut.file(NAME), old, &new);
            assert!(is_new || !cut.complete, "done, but the power cut undoes it");
        },
    );
    assert!(cuts > 5, "{cuts} cuts");
}

#[test]
fn creating_a_file_is_atomic() {
    assert_atomic(None, create);
    assert_atomic(None, index);
}

#[test]
fn replacing_a_file_is_atomic() {
    assert_atomic(Some(b"some other file"), create);
    assert_atomic(Some(b"some other file"), index);
}

#[test]
fn a_dropped_writer_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    let mut writer =
        Writer::create(&path, Schema::new(fields()).unwrap(), WriterOptions::new().with_overwrite(true))
            .unwrap();
    writer.append(&columns()).unwrap();
    drop(writer);
    assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    let mut builder =
        SegmentBuilder::create(&path, SegmentOptions::new().with_memory_bytes(1).with_overwrite(true))
            .unwrap();
    builder.add(&Document::new("u", "t").with_body(b"one two")).unwrap();
    drop(builder);
    assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    let missing = dir.path().join("no such directory").join(NAME);
    let error = Writer::create(&missing, Schema::new(fields()).unwrap(), WriterOptions::new()).unwrap_err();
    assert!(error.to_string().contains("no such directory"), "{error}");
}
