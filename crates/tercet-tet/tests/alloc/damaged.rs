//! Every truncation and every flipped byte of small files: no panic, no hang, no memory beyond the limits, and with
//! the integrity block no wrong value.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::sync::Arc;

use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_core::{Class, Diagnostic as _, Limits, Selection, Severity};
use tercet_testkit::alloc::measure;
use tercet_testkit::counting::Counting;
use tercet_testkit::damage;
use tercet_tet::{Access, File, IntegrityStatus, ReadOptions, Report, VerifyOptions};

use crate::samples::Sample;

use crate::samples;

const MIB: usize = 1 << 20;

/// One MiB for each kind of memory.
fn limits() -> Limits {
    let mib = MIB as u64;
    Limits::small().with_metadata_bytes(mib).with_chunk_bytes(mib).with_array_bytes(mib).with_table_bytes(mib)
}

/// The limits for a sample: text of more than 64 KiB is charged with its maximum size in memory.
fn limits_for(bytes: &[u8]) -> Limits {
    if bytes.len() > 1 << 16 { limits().with_metadata_bytes(16 * MIB as u64) } else { limits() }
}

/// Runs a check and asserts that it stays within the sum of the limits plus some room for the thread pool.
fn measured(name: &str, check: impl FnOnce() + Send) {
    // One thread: waking others for a million tiny reads takes longer than the reads.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let ((), stats) = measure(|| pool.install(check));
    assert!(stats.peak_bytes < 8 * MIB, "{name}: {stats:?}");
    assert!(stats.largest_bytes <= 2 * MIB, "{name}: {stats:?}");
}

fn open(bytes: &[u8], copies: bool) -> Result<File, tercet_tet::Error> {
    let source = Counting::new(Memory::new("damaged", bytes.to_vec()));
    let source = if copies { source.with_copies() } else { source };
    File::from_source(source.shared(), ReadOptions::new().with_limits(limits_for(bytes)))
}

fn verify(bytes: &[u8], deep: bool) -> Report {
    let source = Arc::new(Memory::new("damaged", bytes.to_vec()));
    let options = VerifyOptions::default().with_deep(deep).with_limits(limits_for(bytes));
    match tercet_tet::verify(source, options, &NoProgress) {
        Ok(report) => report,
        Err(error) => panic!("all bytes exist: {error}"),
    }
}

/// Whether verify reports a finding.
fn is_flagged(report: &Report) -> bool {
    !report.ok || report.findings.iter().any(|finding| finding.severity == Severity::Warning)
}

/// Outcome of reading a damaged file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// It does not open.
    Refused,
    /// It opens, and some reads fail; the others return the original values.
    PartlyRead,
    /// All values are the original ones.
    Same,
    /// It opens, but reports that it is unprotected.
    Unprotected,
    /// Other values than before, without an error, in a file with checksums.
    Wrong,
}

/// Reads everything.
fn read(bytes: &[u8], sample: &Sample, copies: bool) -> Outcome {
    let Ok(file) = open(bytes, copies) else { return Outcome::Refused };
    let protected =
        matches!(file.integrity_status(), IntegrityStatus::Checked { .. } | IntegrityStatus::Partial { .. });
    let (mut failed, mut wrong) = (false, file.datasets().len() != sample.arrays.len());
    for (dataset, (name, expected)) in file.datasets().zip(&sample.arrays) {
        wrong |= dataset.name() != *name;
        match dataset.read_all() {
            Ok(tensor) => wrong |= tensor.bytes() != expected,
            Err(_) => failed = true,
        }
        let Ok(grid) = dataset.grid() else { continue };
        for linear in 0..grid.chunk_count().min(16) {
            let coords = grid.coords(linear);
            failed |= dataset.chunk(&coords[..grid.rank()]).is_err();
            failed |= dataset.chunk_stats(&coords[..grid.rank()]).is_err();
        }
        let export = dataset.export(&Selection::full(dataset.shape()));
        let streamed = export.and_then(|export| {
            let mut out = Vec::new();
            if export.bytes() <= MIB as u64 {
                export.stream(&mut out, &NoProgress).map(|()| Some(out))
            } else {
                Ok(None)
            }
        });
        match streamed {
            Ok(Some(out)) => wrong |= out != *expected,
            Ok(None) => {}
            Err(_) => failed = true,
        }
    }
    match (protected, wrong, failed) {
        (false, _, _) => Outcome::Unprotected,
        (true, true, _) => Outcome::Wrong,
        (true, false, true) => Outcome::PartlyRead,
        (true, false, false) => Outcome::Same,
    }
}

/// Effects of flips on a file with a block.
#[derive(Default)]
struct Flips {
    outcomes: BTreeMap<Outcome, usize>,
    /// The bytes whose change verify does not notice.
    unnoticed: BTreeSet<usize>,
}

/// Every flip of a file with a block: no wrong value, and verify fails whenever a read does.
fn flip_everything(sample: &Sample) -> Flips {
    let mut flips = Flips::default();
    assert_eq!(read(&sample.bytes, sample, false), Outcome::Same, "{}", sample.name);
    assert!(!is_flagged(&verify(&sample.bytes, true)), "{:?}", verify(&sample.bytes, true));
    measured(sample.name, || {
        damage::for_each_flip(&sample.bytes, |flip, bytes| {
            let outcome = read(bytes, sample, false);
            assert!(outcome < Outcome::Unprotected, "{} {flip}: {outcome:?}", sample.name);
            if flip.mask == 0xff {
                assert_eq!(read(bytes, sample, true), outcome, "{} {flip}, with copies", sample.name);
            }
            *flips.outcomes.entry(outcome).or_insert(0) += 1;
            let report = verify(bytes, flip.mask == 0xff);
            if report.ok {
                flips.unnoticed.insert(flip.offset);
            }
            let failed = matches!(outcome, Outcome::Refused | Outcome::PartlyRead);
            assert!(!failed || !report.ok, "{} {flip}: {:?}", sample.name, report.findings);
        });
    });
    flips
}

/// Unused bytes between payloads and columns.
fn padding(sample: &Sample) -> BTreeSet<usize> {
    let file = open(&sample.bytes, false).unwrap();
    let end = file.payload_end() as usize;
    let superblock = file.superblock();
    let mut padding: BTreeSet<usize> =
        ((superblock.chunk_index_offset + superblock.chunk_index_length) as usize..end).collect();
    let mut spans = Vec::new();
    file.for_each_row(|_, row| spans.push((row.payload_offset, row.stored_byte_len))).unwrap();
    let json: serde_json::Value =
        serde_json::from_slice(&sample.bytes[end..sample.bytes.len() - 16]).expect("no spill");
    for (_, column) in json["metadata"]["tercet"].as_object().unwrap() {
        if let (Some(offset), Some(len)) = (column["offset"].as_u64(), column["len"].as_u64()) {
            spans.push((offset, len));
        }
    }
    for (offset, len) in spans {
        padding.retain(|at| !(offset..offset + len).contains(&(*at as u64)));
    }
    padding
}

fn check_flips(sample: &Sample) -> Flips {
    let flips = flip_everything(sample);
    assert_eq!(flips.unnoticed, padding(sample));
    // A flip in the padding changes nothing; every other one is also detected by reads.
    let unchanged = flips.outcomes.get(&Outcome::Same).copied().unwrap_or(0);
    assert_eq!(unchanged, flips.unnoticed.len() * damage::MASKS.len(), "{:?}", flips.outcomes);
    flips
}

/// Every truncation of any file: an error, or the original values.
fn cut_everywhere(sample: &Sample) {
    measured(sample.name, || {
        for cut in damage::truncations(&sample.bytes) {
            let len = cut.len();
            match open(cut, len % 2 == 0) {
                Err(_) => {}
                Ok(file) => {
                    for (name, expected) in &sample.arrays {
                        let Ok(dataset) = file.dataset(name) else { panic!("{} at {len}", sample.name) };
                        if let Ok(tensor) = dataset.read_all() {
                            assert!(tensor.bytes() == expected, "{} at {len}", sample.name);
                        }
                    }
                }
            }
            assert!(!verify(cut, true).ok, "{} cut at {len}", sample.name);
        }
    });
}

#[test]
fn truncations() {
    for sample in [
        samples::raw_inline(),
        samples::zstd_inline(),
        samples::by_reference(),
        samples::labels(),
        samples::interop(),
    ] {
        cut_everywhere(&sample);
    }
}

#[test]
fn flips_of_raw_chunks_with_a_block() {
    assert_eq!(check_flips(&samples::raw_inline()).unnoticed.len(), 0);
}

#[test]
fn flips_of_zstd_chunks_with_a_block() {
    assert_eq!(check_flips(&samples::zstd_inline()).unnoticed.len(), 0);
}

#[test]
fn flips_of_columns_by_reference() {
    assert!(check_flips(&samples::by_reference()).unnoticed.len() >= 3, "before the second dataset");
}

#[test]
fn flips_of_labels() {
    assert_eq!(check_flips(&samples::labels()).unnoticed.len(), 0);
}

#[test]
fn flips_without_a_block() {
    let sample = samples::interop();
    measured(sample.name, || {
        damage::for_each_flip(&sample.bytes, |_, bytes| {
            read(bytes, &sample, false);
            read(bytes, &sample, true);
            verify(bytes, true);
        });
    });
}

/// Metadata too large for the text: every byte of text and tail, and a sample of the spill.
#[test]
fn flips_of_a_spill() {
    let sample = samples::spill();
    let file = open(&sample.bytes, false).unwrap();
    let spill = file.payload_end() as usize;
    let text = sample.bytes.len() - 200;
    assert!(text - spill > 65_536);
    let offsets = (0..spill).step_by(7).chain((spill..text).step_by(997)).chain(text..sample.bytes.len());
    measured(sample.name, || {
        let mut bytes = sample.bytes.clone();
        for offset in offsets {
            bytes[offset] ^= 0x01;
            let outcome = read(&bytes, &sample, offset % 2 == 0);
            assert!(outcome < Outcome::Same, "byte {offset}: {outcome:?}");
            assert!(!verify(&bytes, false).ok, "byte {offset}");
            bytes[offset] ^= 0x01;
        }
    });
}

#[test]
fn flips_of_a_version_2_footer() {
    let Some(directory) = tercet_testkit::golden("tet") else { return };
    #[expect(clippy::disallowed_methods, reason = "a golden file as it is")]
    let bytes = std::fs::read(directory.join("embed_v2.tet")).unwrap();
    let values = open(&bytes, false).unwrap().dataset("e").unwrap().read_all().unwrap();
    let sample = Sample { name: "embed_v2", bytes, arrays: vec![("e", values.bytes().to_vec())] };
    cut_everywhere(&sample);
    measured(sample.name, || {
        let mut bytes = sample.bytes.clone();
        for flip in damage::all_flips(&sample.bytes).filter(|flip| [0xff, 0x01, 0x40].contains(&flip.mask)) {
            bytes[flip.offset] ^= flip.mask;
            assert_ne!(read(&bytes, &sample, flip.mask == 0xff), Outcome::Wrong);
            verify(&bytes, flip.mask == 0x01);
            bytes[flip.offset] ^= flip.mask;
        }
    });
}

/// A footer that claims to be as long as the file, which is sparse.
#[test]
fn a_huge_footer_is_not_read_into_memory() {
    const HOLE: u64 = 1 << 33;
    let sample = samples::raw_inline();
    let footer = open(&sample.bytes, false).unwrap().payload_end();
    let text = String::from_utf8(sample.bytes[footer as usize..sample.bytes.len() - 16].to_vec()).unwrap();
    let zones = format!(r#","zone_maps_ref":{{"offset":{footer},"len":{HOLE}}}}}"#);
    let text = [text.strip_suffix('}').unwrap(), &zones].concat();
    let tail = [&(text.len() as u64).to_le_bytes()[..], &[2, 0, 0, 0], b"THST"].concat();

    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&sample.bytes[..footer as usize]).unwrap();
    file.seek(SeekFrom::Start(footer + HOLE)).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.write_all(&tail).unwrap();
    for access in [Access::Pread, Access::Mmap] {
        measured("a huge footer", || {
            let options = ReadOptions::new().with_limits(limits()).with_access(access);
            let error = File::open_with(file.path(), options).unwrap_err();
            assert_eq!(error.class(), Class::Limit, "{error}");
        });
    }
    let source = Arc::new(tercet_core::source::File::open(file.path()).unwrap());
    measured("a huge footer, verified", || {
        // Reported or rejected, but not read.
        let _ = tercet_tet::verify(source, VerifyOptions::default().with_limits(limits()), &NoProgress);
    });
}

/// A summary of borrowed bytes needs memory for catalog, index and footer, not for the payloads.
#[test]
fn a_summary_borrows_its_bytes() {
    // Small enough not to disturb the measurements of the other tests.
    let values = vec![1u8; MIB / 2];
    let len = values.len() as u64;
    let mut layout = tercet_tet::Layout::new();
    let id = layout.dataset("a", tercet_core::DType::U8, [len], [len / 32]).unwrap();
    let sink = std::io::Cursor::new(Vec::new());
    let mut writer = tercet_tet::Writer::new(sink, layout, tercet_tet::WriterOptions::new()).unwrap();
    writer.array(id, tercet_core::TensorView::from_slice(&[len], &values).unwrap()).unwrap();
    let bytes = writer.finish().unwrap().output;
    let (summary, stats) = measure(|| tercet_tet::read_tet_summary_v1(&bytes).unwrap());
    assert_eq!(summary.chunks.len(), 32);
    assert_eq!(summary.integrity_status, IntegrityStatus::Checked { statistics: true });
    assert!(stats.peak_bytes < MIB / 8, "{stats:?}");
}
