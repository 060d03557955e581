//! `.tet` files.

use std::sync::Arc;

use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_core::{ByteSource, Diagnostic as _, Limits, Outline, OutlineOptions, Selection};
use tercet_tet::{Dataset, Error, File, ReadOptions, VerifyOptions};

pub(super) mod checksums;

/// Chunks of a dataset that are read one by one.
const CHUNKS: u64 = 64;
/// Rows of outlines.
const ROWS: u64 = 64;

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

/// Opens a file and reads everything, with and without checksums: both must give the same.
pub(super) fn open(input: &[u8]) {
    let [checked, unchecked] = [true, false].map(|verify| {
        let options = ReadOptions::new().with_limits(limits()).with_verify(verify);
        let file = File::from_source(source(input), options).map_err(|error| explain(&error)).ok()?;
        Some(everything(&file))
    });
    let Some(checked) = checked else { return };
    let unchecked = unchecked.expect("a file that opens with checksums opens without");
    assert_eq!(checked.len(), unchecked.len(), "checksums do not change the number of datasets");
    for (with, without) in checked.iter().zip(&unchecked) {
        assert!(with.is_none() || with == without, "checksums do not change values");
    }
}

/// Verifies a file as thoroughly as possible.
pub(super) fn verify(input: &[u8]) {
    for deep in [false, true] {
        let options = VerifyOptions::default().with_limits(limits()).with_deep(deep);
        match tercet_tet::verify(source(input), options, &NoProgress) {
            Err(error) => explain(&error),
            Ok(report) => {
                assert_eq!(report.ok, report.failures().next().is_none(), "ok means that nothing failed");
                assert!(report.ok || !report.findings.is_empty(), "a bad file has a finding");
                if report.ok && deep {
                    all_arrays_are_readable(input);
                }
            }
        }
    }
}

/// A valid file can be read.
fn all_arrays_are_readable(input: &[u8]) {
    let file = File::from_source(source(input), ReadOptions::new().with_limits(limits()));
    let file = file.expect("a file that verifies opens");
    for dataset in file.datasets() {
        if let Err(error) = dataset.read_all() {
            assert_eq!(error.class(), tercet_core::Class::Limit, "a file that verifies can be read: {error}");
        }
    }
}

/// Formats an error, which must not fail itself.
fn explain(error: &Error) {
    assert!(!error.to_string().is_empty());
    let _ = (error.class(), error.span(), error.hint());
}

/// Reads every readable array of a file.
fn everything(file: &File) -> Vec<Option<Vec<u8>>> {
    let rows = file.chunk_count();
    for number in [0, 1, rows.saturating_sub(1), rows, u64::MAX] {
        let _ = file.row(number).map_err(|error| explain(&error));
    }
    let mut seen = 0;
    if file.for_each_row(|_, _| seen += 1).is_ok() {
        assert_eq!(seen, rows, "every row is visited");
    }
    let _ = file.summary().map_err(|error| explain(&error));
    if let Ok(outline) = file.outline(OutlineOptions::new().with_max_rows(Some(ROWS))) {
        check_outline(&outline, file.len());
    }
    file.datasets().map(|dataset| array(&dataset)).collect()
}

/// Parts are inside the file.
fn check_outline(outline: &Outline, len: u64) {
    outline.walk(&mut |_, part| assert!(part.span.end() <= len, "{} is past the end", part.name));
}

fn array(dataset: &Dataset<'_>) -> Option<Vec<u8>> {
    for axis in 0..=dataset.shape().len() {
        let _ = (dataset.axis_name(axis), dataset.labels(axis));
    }
    let _ = dataset.info();
    let grid = dataset.grid().map_err(|error| explain(&error)).ok()?;
    for linear in (0..grid.chunk_count()).take(usize::try_from(CHUNKS).unwrap_or(0)) {
        let coords = &grid.coords(linear)[..grid.rank()];
        let _ = dataset.chunk_stats(coords).map_err(|error| explain(&error));
        match dataset.chunk(coords) {
            Ok(chunk) => {
                assert_eq!(chunk.bytes().len() as u64, grid.chunk_bytes_at(coords), "chunks have their size");
            }
            Err(error) => explain(&error),
        }
    }
    let _ = dataset.chunk(&vec![u64::MAX; grid.rank()]).map_err(|error| explain(&error));
    let whole = dataset.read_all().map_err(|error| explain(&error)).ok()?;
    assert_eq!(whole.bytes().len() as u64, grid.bytes(), "arrays have their size");
    parts_are_parts(dataset, whole.bytes());
    Some(whole.bytes().to_vec())
}

/// An export equals a read, and a strided selection of a valid array can be read.
fn parts_are_parts(dataset: &Dataset<'_>, whole: &[u8]) {
    let everything = Selection::full(dataset.shape());
    let export = dataset.export(&everything).expect("what can be read can be exported");
    if export.is_sequential() {
        let mut streamed = Vec::new();
        export.stream(&mut streamed, &NoProgress).expect("what can be read can be streamed");
        assert!(streamed == whole, "a stream gives what a read gives");
    }
    let every_second = vec!["::2"; dataset.shape().len()].join(",");
    let part = dataset.select().slices(&every_second).and_then(|select| select.read());
    let part = part.expect("a part of what can be read can be read");
    let size = dataset.dtype().and_then(tercet_core::DType::size).unwrap_or(1);
    assert_eq!(part.bytes()[..size], whole[..size], "a part starts where the whole does");
}
