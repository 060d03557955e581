//! Repair, salvage and rewriting of damaged files: no intact chunk is lost, no wrong value is written, nothing hangs.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tercet_core::progress::NoProgress;
use tercet_core::publish::Disk;
use tercet_core::source::Memory;
use tercet_core::{ByteSource, Class, Diagnostic as _, Limits, OutlineOptions, SourceError, Span};
use tercet_testkit::damage::{self, patched};
use tercet_testkit::faults::FaultyDisk;
use tercet_tet::{
    File, HistoryRow, ReadOptions, RepairOptions, Rewrite, SalvageOptions, VerifyOptions, WriterOptions,
    repair, repair_on, salvage, salvage_file, salvage_file_on,
};

use crate::samples::{self, Sample};
use crate::verify_path;

/// A disk without syncs: those of thousands of files would take minutes.
fn quick_disk() -> Arc<dyn Disk> {
    Arc::new(FaultyDisk::real().without_syncs())
}

fn deep() -> VerifyOptions {
    VerifyOptions::default().with_deep(true)
}

/// Repairs and rewrites accept no more than their caller, and change nothing if that is too little.
#[test]
fn repairs_and_rewrites_have_the_limits_of_the_caller() {
    let good = samples::interop().bytes;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tet");
    let read = ReadOptions::new().with_limits(Limits::uniform(64));
    let error = {
        fs::write(&path, &good).unwrap();
        Rewrite::open_with(&path, read).unwrap_err()
    };
    assert_eq!(error.class(), Class::Limit, "{error}");
    for bytes in [&good[..], &good[..good.len() - 1]] {
        fs::write(&path, bytes).unwrap();
        for options in [
            RepairOptions::new(),
            RepairOptions::new().with_apply("footer_invalid"),
            RepairOptions::new().with_apply("footer_invalid").with_dry_run(true),
            RepairOptions::new().with_apply("recompute_checksums"),
        ] {
            let error = repair(&path, &options.with_read(read), &NoProgress).unwrap_err();
            assert_eq!(error.class(), Class::Limit, "{error}");
            assert_eq!(fs::read(&path).unwrap(), bytes);
        }
    }
}

/// Grids of more chunks than any file has rows.
#[test]
fn absurd_grids_end_in_errors() {
    let good = samples::interop().bytes;
    // The record of the second dataset: its extent and the extent of its chunks.
    let record = good.windows(1).enumerate().skip(60).find(|(_, byte)| *byte == b"z").unwrap().0;
    let (shape, chunk) = (record + 8, record + 16);
    assert_eq!((good[shape], good[chunk]), (20, 16));
    for chunks in [1u64 << 24, 1 << 40, 1 << 60] {
        let bytes = patched(&patched(&good, shape, &chunks.to_le_bytes()), chunk, &1u64.to_le_bytes());
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.tet");
        fs::write(&path, &bytes).unwrap();

        let file = File::open(&path).unwrap();
        let z = file.dataset("z").unwrap();
        assert!(z.read_all().is_err());
        assert!(z.export(&z.selection(":").unwrap()).is_err());
        assert!(z.read(&z.selection("5:20").unwrap()).is_err());
        assert!(z.chunk(&[5]).is_err());
        assert!(file.dataset("t").unwrap().read_all().is_ok(), "the other dataset is valid");
        let _ = file.summary();
        let _ = file.outline(OutlineOptions::new().with_max_rows(Some(10)));
        drop(file);

        assert!(!verify_path(&path, deep(), &NoProgress).unwrap().ok);
        let plan = repair(&path, &RepairOptions::default(), &NoProgress).unwrap();
        assert!(!plan.ok());
        let row = || HistoryRow::at("x", "y", 1);
        let rewrite = Rewrite::open(&path).unwrap();
        assert!(
            rewrite.start(row(), WriterOptions::new(), &NoProgress).is_err(),
            "{chunks} chunks cannot be kept"
        );
        let out = directory.path().join("out.tet");
        if let Ok(report) = salvage_file(&path, &out, true, SalvageOptions::new(), &NoProgress) {
            assert_eq!(report.lost_datasets.len(), 1, "{report:?}");
            assert_eq!(report.kept, 4, "{report:?}");
            assert!(verify_path(&out, deep(), &NoProgress).unwrap().ok);
        } else {
            panic!("the other dataset can be saved");
        }
        // Without the invalid dataset the file is valid.
        let mut rewrite = Rewrite::open(&path).unwrap();
        rewrite.drop_dataset("z").unwrap();
        rewrite.start(row(), WriterOptions::new(), &NoProgress).unwrap().finish().unwrap();
        assert!(verify_path(&path, deep(), &NoProgress).unwrap().ok);
    }
}

/// Asserts that every readable chunk has its original values; returns the number of unreadable chunks.
fn lost_chunks(path: &Path, sample: &Sample, what: &str) -> usize {
    let file = File::open(path).unwrap_or_else(|error| panic!("{what}: {error}"));
    let good = File::from_bytes("good", sample.bytes.clone()).unwrap();
    let mut lost = 0;
    for dataset in good.datasets() {
        let grid = dataset.grid().unwrap();
        let Ok(found) = file.dataset(dataset.name()) else {
            lost += grid.chunk_count() as usize;
            continue;
        };
        for linear in 0..grid.chunk_count() {
            let coords = &grid.coords(linear)[..grid.rank()];
            match found.chunk(coords) {
                Ok(chunk) => {
                    assert!(chunk.bytes() == dataset.chunk(coords).unwrap().bytes(), "{what}: {coords:?}");
                }
                Err(_) => lost += 1,
            }
        }
    }
    lost
}

/// For every damaged byte of a file with a block: salvaged values are correct, or the report lists the loss.
fn salvage_every_flip(sample: &Sample) {
    let directory = tempfile::tempdir().unwrap();
    let (path, out) = (directory.path().join("damaged.tet"), directory.path().join("saved.tet"));
    let mut saved = 0;
    let flips =
        damage::all_flips(&sample.bytes).filter(|flip| flip.mask == [0xff, 0x01, 0x20][flip.offset % 3]);
    for flip in flips {
        let mut bytes = sample.bytes.clone();
        bytes[flip.offset] ^= flip.mask;
        fs::write(&path, &bytes).unwrap();
        let what = format!("{} {flip}", sample.name);
        let saved_to = salvage_file_on(quick_disk(), &path, &out, true, SalvageOptions::new(), &NoProgress);
        let Ok(report) = saved_to else { continue };
        assert!(fs::read(&path).unwrap() == bytes, "{what}: the source is untouched");
        if !report.notes.is_empty() || !report.lost_datasets.is_empty() {
            continue;
        }
        saved += 1;
        let lost = lost_chunks(&out, sample, &what);
        assert_eq!(lost, report.missing.len(), "{what}: {report:?}");
        let after = verify_path(&out, deep(), &NoProgress).unwrap();
        assert_eq!(after.ok, report.missing.is_empty(), "{what}: {:?}", after.findings);
    }
    assert!(saved > sample.bytes.len() / 8, "{saved}");
}

#[test]
fn salvage_of_every_flip() {
    salvage_every_flip(&samples::raw_inline());
    salvage_every_flip(&samples::by_reference());
}

/// A recommended repair leaves the file unchanged, or with correct values.
#[test]
fn repair_of_every_flip() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tet");
    for sample in [samples::raw_inline(), samples::zstd_inline(), samples::interop()] {
        let footer = File::from_bytes("good", sample.bytes.clone()).unwrap().payload_end() as usize;
        let (mut repaired, mut refused) = (0, 0);
        for flip in damage::all_flips(&sample.bytes).filter(|flip| [0xff, 0x04].contains(&flip.mask)) {
            let mut bytes = sample.bytes.clone();
            bytes[flip.offset] ^= flip.mask;
            fs::write(&path, &bytes).unwrap();
            let what = format!("{} {flip}", sample.name);
            let options =
                RepairOptions::default().with_apply("footer_invalid").with_apply("recompute_checksums");
            let dry = repair(&path, &options.clone().with_dry_run(true), &NoProgress);
            assert!(fs::read(&path).unwrap() == bytes, "{what}: a dry run changes nothing");
            // A file without a truncation point cannot be repaired, and the report states it.
            let Ok(report) = repair_on(&quick_disk(), &path, &options, &NoProgress) else {
                assert!(fs::read(&path).unwrap() == bytes, "{what}: a failed repair changes nothing");
                continue;
            };
            assert!(dry.is_ok(), "{what}: {dry:?}");
            if flip.offset < footer {
                continue;
            }
            if !report.ok() {
                // Either a checksum of a chunk is damaged or the chunk: no checksum is recomputed.
                let payloads =
                    report.before.findings.iter().find(|finding| finding.code == "tercet_payloads");
                assert!(payloads.is_some_and(|finding| !finding.ok), "{what}: {report:?}");
                assert!(fs::read(&path).unwrap() == bytes, "{what}");
                refused += 1;
                continue;
            }
            // Only the footer is damaged, so no value may be lost.
            assert_eq!(lost_chunks(&path, &sample, &what), 0);
            repaired += 1;
        }
        assert_eq!(repaired + refused, 2 * (sample.bytes.len() - footer), "{}", sample.name);
        // Four checksums in base64 have 24 letters.
        assert!(refused <= 24, "{}: {refused}", sample.name);
    }
}

#[test]
fn valid_files_are_not_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tet");
    for sample in [samples::raw_inline(), samples::by_reference(), samples::interop(), samples::spill()] {
        fs::write(&path, &sample.bytes).unwrap();
        let options = RepairOptions::default()
            .with_apply("footer_invalid")
            .with_apply("recompute_checksums")
            .with_apply("no_such_code");
        let report = repair(&path, &options, &NoProgress).unwrap();
        assert!(report.ok());
        assert!(fs::read(&path).unwrap() == sample.bytes, "{}", sample.name);
        let out = directory.path().join("out.tet");
        let report = salvage_file(&path, &out, true, SalvageOptions::new(), &NoProgress).unwrap();
        assert!(report.missing.is_empty() && report.notes.is_empty(), "{report:?}");
        assert_eq!(lost_chunks(&out, &sample, sample.name), 0);
    }
}

#[test]
fn missing_chunks_are_errors_or_the_fill_value() {
    let directory = tempfile::tempdir().unwrap();
    let (path, out) = (directory.path().join("damaged.tet"), directory.path().join("saved.tet"));
    let sample = samples::raw_inline();
    let row = File::from_bytes("good", sample.bytes.clone()).unwrap().row(3).unwrap();
    let mut bytes = sample.bytes.clone();
    bytes[row.payload_offset as usize] ^= 1;
    fs::write(&path, &bytes).unwrap();

    let report = salvage_file(&path, &out, true, SalvageOptions::new(), &NoProgress).unwrap();
    assert_eq!(report.missing.len(), 1);
    assert_eq!((&*report.missing[0].dataset, &report.missing[0].chunk[..]), ("t", &[1, 1][..]));
    let file = File::open(&out).unwrap();
    let t = file.dataset("t").unwrap();
    assert!(t.read_all().is_err());
    assert!(t.chunk(&[1, 1]).is_err());
    assert!(t.read(&t.selection("0:2,:").unwrap()).is_ok());
    drop(file);

    let report = salvage_file(&path, &out, true, SalvageOptions::new().with_fill(-7.0), &NoProgress).unwrap();
    assert_eq!(report.missing.len(), 1);
    let file = File::open(&out).unwrap();
    let all = file.dataset("t").unwrap().read_all().unwrap();
    assert_eq!(all.as_slice::<i32>().unwrap()[13..], [-7, -7]);
    assert_eq!(all.bytes()[..52], sample.arrays[0].1[..52]);
    assert!(
        salvage_file(&path, &out, true, SalvageOptions::new().with_fill(0.5), &NoProgress).is_err(),
        "no whole number"
    );
}

#[test]
fn salvage_onto_the_input_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("damaged.tet");
    let sample = samples::raw_inline();
    fs::write(&path, &sample.bytes).unwrap();
    assert!(salvage_file(&path, &path, true, SalvageOptions::new(), &NoProgress).is_err());
    assert!(fs::read(&path).unwrap() == sample.bytes);
}

/// A source with limited memory: long reads fail.
#[derive(Debug)]
struct LimitedMemory {
    memory: Memory,
    longest: u64,
}

impl ByteSource for LimitedMemory {
    fn name(&self) -> &Arc<str> {
        self.memory.name()
    }
    fn len(&self) -> u64 {
        self.memory.len()
    }
    fn read_at(&self, span: Span) -> Result<bytes::Bytes, SourceError> {
        if span.len() > self.longest {
            return Err(SourceError::TooLarge { span });
        }
        self.memory.read_at(span)
    }
}

#[test]
fn intact_chunks_are_not_dropped_when_memory_is_short() {
    let values = vec![7u8; 100_000];
    let mut layout = tercet_tet::Layout::new();
    let id = layout.dataset("a", tercet_core::DType::U8, [100_000], [50_000]).unwrap();
    let sink = || std::io::Cursor::new(Vec::new());
    let mut writer = tercet_tet::Writer::new(sink(), layout, WriterOptions::new()).unwrap();
    writer.array(id, tercet_core::TensorView::from_slice(&[100_000], &values).unwrap()).unwrap();
    let bytes = writer.finish().unwrap().output;
    let source = |longest| {
        Arc::new(LimitedMemory { memory: Memory::new("a.tet", bytes.clone()), longest })
            as Arc<dyn ByteSource>
    };
    let report = salvage(source(u64::MAX), sink(), SalvageOptions::new(), &NoProgress).unwrap();
    assert_eq!((report.kept, report.missing.len()), (2, 0));
    let saved = File::from_bytes("saved", report.output).unwrap();
    assert_eq!(saved.dataset("a").unwrap().read_all().unwrap().as_slice::<u8>(), Some(&values[..]));
    let error = salvage(source(20_000), sink(), SalvageOptions::new(), &NoProgress).unwrap_err();
    assert_eq!(error.class(), Class::Limit, "{error}");
}
