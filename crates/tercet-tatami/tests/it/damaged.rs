//! Damaged files: every change is detected or harmless.

use std::io::Cursor;
use std::sync::Arc;

use tercet_core::source::Memory;
use tercet_core::{Limits, progress::NoProgress};
use tercet_tatami::format::Codec;
use tercet_tatami::{
    Column, Error, Field, File, Lists, ReadOptions, Schema, Type, Values, VerifyOptions, Writer,
    WriterOptions, verify,
};

/// Small files of the reference, without checksums of page headers.
const SMALL: [&str; 10] = [
    "empty.tatami",
    "one_int.tatami",
    "future_minor.tatami",
    "meta.tatami",
    "blob_tiny.tatami",
    "floats_edge.tatami",
    "strings_edge.tatami",
    "seg_tiny.tatami",
    "seg_empty.tatami",
    "collection/part-3.tatami",
];

fn open(bytes: Vec<u8>) -> Result<File, Error> {
    let options = ReadOptions::new().with_limits(Limits::small());
    File::from_source(Arc::new(Memory::new("damaged", bytes)), options)
}

/// The content of a file: values by their bits, so that NaN equals itself, and metadata pairs.
fn contents(bytes: Vec<u8>) -> Result<Vec<Vec<Option<Vec<u8>>>>, Error> {
    let file = open(bytes)?;
    let all: Vec<usize> = (0..file.schema().len()).collect();
    let columns = file.read_columns(&all)?;
    let mut out: Vec<Vec<Option<Vec<u8>>>> = columns.iter().map(values).collect();
    let scanned: Vec<_> = file.scan().with_batch_rows(16).batches().collect::<Result<_, _>>()?;
    for (column, whole) in columns.iter().enumerate() {
        let parts: Vec<_> = scanned.iter().flat_map(|batch| values(&batch.columns[column])).collect();
        assert_eq!(parts, values(whole), "a scan differs from the whole column");
    }
    if let Some(key) = file.schema().sort_key() {
        let mut places = Vec::new();
        for row in 0..columns[key].len() {
            let Some(value) = columns[key].scalar(row) else { continue };
            let found = file.lookup(&value)?;
            places.push(found.map(|found| found.row.to_le_bytes().to_vec()));
        }
        out.push(places);
    }
    out.push(file.schema().fields().iter().map(|field| Some(format!("{field:?}").into_bytes())).collect());
    Ok(out)
}

fn values(column: &Column) -> Vec<Option<Vec<u8>>> {
    (0..column.len()).map(|row| column.scalar(row).map(|value| value.to_bytes())).collect()
}

/// The encoding bytes of pages after the first of their chunk. In a file without checksums of page headers nothing
/// determines them: integers can often be decoded with another encoding.
fn later_encodings(bytes: &[u8]) -> Vec<usize> {
    let file = open(bytes.to_vec()).unwrap();
    if file.footer().features.is_some() {
        return Vec::new();
    }
    let mut out = Vec::new();
    for chunk in file.footer().groups.iter().flat_map(|group| &group.chunks) {
        let mut at = usize::try_from(chunk.offset).unwrap();
        for page in 0..chunk.pages {
            if page > 0 {
                out.push(at + 1);
            }
            let stored = u32::from_le_bytes(bytes[at + 12..at + 16].try_into().unwrap());
            at += 32 + usize::try_from(stored).unwrap();
        }
    }
    out
}

fn verified(bytes: Vec<u8>) -> bool {
    let options = VerifyOptions::default().with_deep(true).with_limits(Limits::small());
    verify(Arc::new(Memory::new("damaged", bytes)), options, &NoProgress).unwrap().ok
}

/// A small file with every extension of Tercet.
fn own(codec: Codec, interop: bool) -> Vec<u8> {
    let mut fields = vec![
        Field::new("key", Type::UInt16).with_sort_key(),
        Field::new("city", Type::String).with_bloom().with_nulls(),
        Field::new("temperature", Type::Float64),
        Field::new("body", Type::BlobRef),
    ];
    let strings = |make: &dyn Fn(u16) -> String| Column::new(Values::Bytes((0..24).map(make).collect()));
    let mut columns = vec![
        Column::new(Values::UInt16((0..24).map(|n| n * 3).collect())),
        strings(&|n| ["Ulm", "Bonn", "Jena"][usize::from(n % 3)].to_owned())
            .with_validity((0..24).map(|n| n % 7 != 0).collect()),
        Column::new(Values::Float64((0..24).map(|n| f64::from(n % 4) * 0.5 - 1.0).collect())),
        strings(&|n| format!("<p>{n}</p>").repeat(3)),
    ];
    let mut options = WriterOptions::interop();
    if !interop {
        fields.push(Field::list("tags", Type::Int32));
        let elements = Column::new(Values::Int32((0..48).collect()));
        columns.push(Column::new(Values::List(Box::new(Lists {
            ends: (1..=24).map(|n| n * 2).collect(),
            elements,
        }))));
        options = WriterOptions::new().with_codec(codec);
    }
    let options = options.with_page_max_values(10).with_blob_run_target_bytes(300);
    let mut writer = Writer::new(Cursor::new(Vec::new()), Schema::new(fields).unwrap(), options).unwrap();
    writer.append(&columns).unwrap();
    writer.finish().unwrap().output
}

#[test]
fn every_flipped_byte_in_tercet_files_is_detected() {
    let files =
        [own(Codec::None, false), own(Codec::Lz4, false), own(Codec::Zstd, false), own(Codec::Zstd, true)];
    for good in files {
        let expected = contents(good.clone()).unwrap();
        assert!(verified(good.clone()));
        for (at, flip) in (0..good.len()).flat_map(|at| [0xff, 1 << (at % 8)].map(|flip| (at, flip))) {
            let mut bad = good.clone();
            bad[at] ^= flip;
            // Every byte is covered: what a read does not touch, verification does.
            if let Ok(found) = contents(bad.clone()) {
                assert!(found == expected, "byte {at} changes the contents");
            }
            assert!(!verified(bad), "byte {at} is not detected");
        }
        for cut in 0..good.len() {
            assert!(contents(good[..cut].to_vec()).is_err(), "cut at {cut}");
        }
    }
}

#[test]
fn every_flipped_byte_is_detected_or_harmless() {
    let Some(dir) = tercet_testkit::golden("tatami") else { return };
    for name in SMALL {
        let good = std::fs::read(dir.join(name)).unwrap();
        let expected = contents(good.clone()).unwrap();
        assert!(verified(good.clone()), "{name}");
        let mut detected = 0;
        let unguarded = later_encodings(&good);
        for at in (0..good.len()).filter(|at| !unguarded.contains(at)) {
            for flip in [0x01, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] ^= flip;
                match contents(bad.clone()) {
                    Err(_) => {
                        detected += 1;
                    }
                    Ok(found) => {
                        assert!(found == expected, "{name}: byte {at} ^ {flip:#x} changes the contents");
                    }
                }
                verified(bad);
            }
        }
        assert!(detected > good.len(), "{name}: {detected} of {}", 3 * good.len());
    }
}

#[test]
fn every_truncation_is_detected() {
    let Some(dir) = tercet_testkit::golden("tatami") else { return };
    for name in SMALL {
        let good = std::fs::read(dir.join(name)).unwrap();
        for cut in 0..good.len() {
            assert!(contents(good[..cut].to_vec()).is_err(), "{name} cut at {cut}");
            assert!(!verified(good[..cut].to_vec()), "{name} cut at {cut}");
        }
        let longer = [&good[..], b"x"].concat();
        assert!(open(longer).is_err(), "{name} with a trailing byte");
    }
}
