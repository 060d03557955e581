//! `.tatami` files.

use std::io::Cursor;
use std::sync::Arc;

use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_core::{ByteSource, Class, Diagnostic as _, Limits, OutlineOptions};
use tercet_tatami::salvage::{SalvageOptions, salvage};
use tercet_tatami::{
    Column, Error, Field, File, ReadOptions, Schema, Type, Values, VerifyOptions, WriterOptions, verify,
};

pub(super) mod checksums;
pub(super) mod manifest;
pub(super) mod page;

/// Rows compared between the ways of reading.
const ROWS: u64 = 2000;
/// Rows per batch, so that batches and pages are not aligned.
const BATCH_ROWS: u64 = 7;

/// Far below [`Limits::small`], so that a larger allocation is detected. Few bytes can encode many equal rows, so page limits
/// are smaller still.
fn limits() -> Limits {
    let mebibyte = 1 << 20;
    Limits::small()
        .with_metadata_bytes(mebibyte)
        .with_chunk_bytes(mebibyte / 4)
        .with_array_bytes(mebibyte)
        .with_table_bytes(mebibyte)
}

fn source(input: &[u8]) -> Arc<dyn ByteSource> {
    Arc::new(Memory::new("input", input.to_vec()))
}

/// One row of a column as bytes: floats by their bits, so that NaN equals itself.
type Cell = Option<Vec<u8>>;

fn cell(column: &Column, row: usize) -> Cell {
    let Values::List(lists) = &column.values else {
        return column.scalar(row).map(|value| value.to_bytes());
    };
    let elements = column.is_present(row).then(|| lists.range(row))?;
    let mut bytes = Vec::new();
    for at in elements {
        let element = cell(&lists.elements, at);
        bytes.push(u8::from(element.is_some()));
        bytes.extend(element.iter().map(Vec::len).flat_map(usize::to_le_bytes));
        bytes.extend(element.into_iter().flatten());
    }
    Some(bytes)
}

fn cells(column: &Column) -> Vec<Cell> {
    (0..column.len()).map(|row| cell(column, row)).collect()
}

/// Formats an error, which must not fail itself.
fn explain(error: &Error) {
    assert!(!error.to_string().is_empty());
    let _ = (error.class(), error.span(), error.hint());
}

/// Opens a file and reads everything, with and without checksums: both must give the same. A file that passes verification
/// must be readable.
pub(super) fn open(input: &[u8]) {
    let [checked, unchecked] = [false, true].map(|ignore| {
        let options = ReadOptions::new().with_limits(limits()).with_verify(!ignore);
        let file = File::from_source(source(input), options).map_err(|error| explain(&error)).ok()?;
        Some(everything(&file))
    });
    let sound = [false, true].map(|deep| {
        let options = VerifyOptions::default().with_limits(limits()).with_deep(deep);
        let report = verify(source(input), options, &NoProgress).expect("memory can be verified");
        assert!(report.ok || !report.findings.is_empty(), "a bad file has a finding");
        report.ok
    });
    let Some(checked) = checked else {
        assert_eq!(sound, [false; 2], "verification passes what does not open");
        return;
    };
    let unchecked = unchecked.expect("a file that opens with checksums opens without");
    for (with, without) in checked.iter().zip(&unchecked) {
        match with {
            Ok(with) => assert!(without.as_ref().ok() == Some(with), "checksums do not change values"),
            Err(class) => {
                assert!(!sound[1] || *class == Class::Limit, "verification passes what cannot be read");
            }
        }
    }
}

/// Reads every readable column of a file in every way.
fn everything(file: &File) -> Vec<Result<Vec<Cell>, Class>> {
    let len = file.len();
    for max_rows in [Some(0), None] {
        match file.outline(OutlineOptions::new().with_max_rows(max_rows)) {
            Ok(outline) => {
                outline.walk(&mut |_, part| assert!(part.span.end() <= len, "{} is past the end", part.name));
            }
            Err(error) => explain(&error),
        }
    }
    let _ = file.required_features();
    let key = file.schema().sort_key();
    (0..file.schema().len()).map(|column| one_column(file, column, key == Some(column))).collect()
}

fn one_column(file: &File, column: usize, is_key: bool) -> Result<Vec<Cell>, Class> {
    let whole = file.read_column(column).map_err(|error| {
        explain(&error);
        error.class()
    });
    parts_are_parts(file, column, whole.as_ref().ok());
    let whole = whole?;
    assert_eq!(whole.len() as u64, file.rows(), "columns have all rows");
    if is_key {
        keys_are_found(file, &whole);
    }
    Ok(cells(&whole))
}

/// A scan and single rows give the same as the whole column; without one they return.
fn parts_are_parts(file: &File, column: usize, whole: Option<&Column>) {
    let scan = file.scan().with_batch_rows(BATCH_ROWS).limit(ROWS).column_positions(&[column]);
    let mut at = 0;
    for batch in scan.into_iter().flat_map(|scan| scan.batches()) {
        match (batch, whole) {
            (Ok(batch), Some(whole)) => {
                for row in 0..batch.columns[0].len() {
                    assert!(
                        cell(&batch.columns[0], row) == cell(whole, at + row),
                        "a scan differs from the column"
                    );
                }
                at += batch.columns[0].len();
            }
            (Ok(_), None) => {}
            (Err(error), _) => {
                explain(&error);
                assert!(whole.is_none(), "what can be read can be scanned: {error}");
            }
        }
    }
    let rows = file.rows();
    let some = [rows.saturating_sub(1), 0, rows / 2, 0].map(|row| row.min(rows.saturating_sub(1)));
    let some = if rows == 0 { &[][..] } else { &some[..] };
    match (file.take(some, &[column]), whole) {
        (Ok(taken), Some(whole)) => {
            for (at, row) in some.iter().enumerate() {
                let row = usize::try_from(*row).unwrap_or(usize::MAX);
                assert!(cell(&taken[0], at) == cell(whole, row), "a single row differs from the column");
            }
        }
        (Ok(_), None) => {}
        (Err(error), _) => {
            explain(&error);
            assert!(whole.is_none(), "single rows of what can be read can be read: {error}");
        }
    }
    assert!(file.take(&[rows], &[column]).is_err(), "there is no row after the last");
}

/// A row that is found has the requested key. Only sorted files guarantee that all keys are found.
fn keys_are_found(file: &File, whole: &Column) {
    for row in (0..whole.len()).step_by(1 + whole.len() / 50) {
        let Some(key) = whole.scalar(row) else { continue };
        match file.lookup(&key) {
            Ok(Some(found)) => {
                let found = usize::try_from(found.row).unwrap_or(usize::MAX);
                let found = whole.scalar(found).expect("a found row has a key");
                assert!(found.order(&key) == Some(std::cmp::Ordering::Equal), "another key was found");
            }
            Ok(None) => {}
            Err(error) => explain(&error),
        }
    }
}

/// Schemas for a file whose footer is lost: those of most seeds, and one that fits every file of numbers.
fn schemas() -> Vec<Schema> {
    let fields = [
        vec![Field::new("n", Type::Int32).with_nulls()],
        vec![
            Field::new("key", Type::UInt16).with_sort_key(),
            Field::new("city", Type::String).with_bloom().with_nulls(),
            Field::new("body", Type::BlobRef).with_nulls(),
            Field::list("tags", Type::Int32).with_nulls(),
        ],
    ];
    fields.into_iter().filter_map(|fields| Schema::new(fields).ok()).collect()
}

/// Repairs a file: the output is valid, and has all rows that are not reported as lost.
pub(super) fn repair(input: &[u8]) {
    let open = ReadOptions::new().with_limits(limits());
    let original = File::from_source(source(input), open).ok();
    if original.as_ref().is_some_and(|file| file.rows() > 20 * ROWS) {
        return;
    }
    for schema in [None].into_iter().chain(schemas().into_iter().map(Some)) {
        let mut options =
            SalvageOptions::new().with_read(open).with_writer(WriterOptions::new().with_level(1));
        options.schema = schema;
        let (report, bytes) = match salvage(source(input), Cursor::new(Vec::new()), options, &NoProgress) {
            Ok(salvaged) => salvaged.into_parts(),
            Err(error) => {
                explain(&error);
                continue;
            }
        };
        let lost: u64 = report.lost.iter().map(|rows| rows.end - rows.start).sum();
        assert_eq!(report.rows_kept + lost, report.rows, "every row is kept or lost");
        let options = VerifyOptions::default().with_limits(Limits::small()).with_deep(true);
        let verified = verify(source(&bytes), options, &NoProgress).expect("memory can be verified");
        let unsorted = |text: &str| text.contains("the rows are sorted by the sort key");
        let bad =
            verified.findings.iter().find(|found| found.is_failure() && !unsorted(&format!("{found:?}")));
        assert!(bad.is_none(), "the new file is bad: {bad:?}");
        let repaired = File::from_source(source(&bytes), ReadOptions::new()).expect("a repaired file opens");
        assert_eq!(repaired.rows(), report.rows_kept, "all kept rows are in the output");
        let Some(original) = original.as_ref().filter(|_| !report.footer_rebuilt) else { continue };
        let all: Vec<usize> = (0..original.schema().len()).collect();
        if let Ok(before) = original.read_columns(&all) {
            let after = repaired.read_columns(&all).expect("a repaired file can be read");
            assert!(report.lost.is_empty(), "no row of a file that can be read is lost: {report:?}");
            for (before, after) in before.iter().zip(&after) {
                assert!(cells(before) == cells(after), "a repair does not change values");
            }
        }
    }
}
