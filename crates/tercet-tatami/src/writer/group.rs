//! The buffered row group and its page boundaries.

use std::ops::Range;

use tercet_codec::varint;

use super::batch_validation::MAX_ELEMENTS;
use crate::column::{Bitmap, Column, Values};
use crate::schema::{Field, Schema, Type};

/// Maximum page size, so that sizes fit the page header.
const PAGE_BYTES: u64 = 1 << 31;

/// Rows per size estimate.
const BLOCK_ROWS: usize = 1024;

/// Groups of more columns grow in smaller steps: the spare capacity of all columns is a large part of the memory.
const WIDE_COLUMNS: usize = 256;

/// The buffered rows.
#[derive(Debug)]
pub(super) struct Group {
    /// Blob columns have empty values; blob values are buffered separately.
    pub(super) columns: Vec<Column>,
    pub(super) rows: usize,
    /// The estimated size of the rows.
    pub(super) bytes: u64,
}

impl Group {
    pub(super) fn new(schema: &Schema) -> Self {
        let columns = schema.fields().iter().map(Column::empty).collect();
        Self { columns, rows: 0, bytes: 0 }
    }

    /// Appends rows of a batch.
    pub(super) fn extend(&mut self, schema: &Schema, batch: &[Column], rows: Range<usize>) {
        let is_wide = self.columns.len() > WIDE_COLUMNS;
        for ((field, mine), theirs) in schema.fields().iter().zip(&mut self.columns).zip(batch) {
            self.bytes += estimate(field, theirs, &rows);
            if is_wide {
                mine.values.reserve_tightly(rows.len());
            }
            if field.kind == Type::BlobRef {
                let mut nothing = Column::empty(field);
                nothing.values.push_zeros(rows.len());
                nothing.validity = theirs.validity.as_ref().map(|theirs| {
                    let mut bits = Bitmap::new();
                    bits.extend_from(theirs, rows.start, rows.end);
                    bits
                });
                mine.extend_from(&nothing, 0, rows.len());
            } else {
                mine.extend_from(theirs, rows.start, rows.end);
            }
        }
        self.rows += rows.len();
    }
}

/// The estimated size of some rows: their width, plus one byte for strings, including null slots.
pub(super) fn estimate(field: &Field, column: &Column, rows: &Range<usize>) -> u64 {
    match &column.values {
        Values::Bool(_) => rows.len().div_ceil(8) as u64,
        Values::Bytes(strings) => {
            strings.views()[rows.clone()].iter().map(|view| u64::from(view.len) + 1).sum()
        }
        Values::List(lists) if !rows.is_empty() => {
            let elements = lists.range(rows.start).start..lists.range(rows.end - 1).end;
            let element = Field::new("", field.scalar());
            rows.len() as u64 + estimate(&element, &lists.elements, &elements)
        }
        _ => field.kind.width().unwrap_or(0) as u64 * rows.len() as u64,
    }
}

/// The number of rows that fit into `room` bytes; at least one if `first` is set.
pub(super) fn rows_that_fit(
    schema: &Schema,
    batch: &[Column],
    rows: Range<usize>,
    room: u64,
    first: bool,
) -> usize {
    let size = |rows: &Range<usize>| -> u64 {
        schema.fields().iter().zip(batch).map(|(field, column)| estimate(field, column, rows)).sum()
    };
    let mut used = 0;
    // Rows are measured in blocks; only the block that does not fit is measured row by row.
    for block in rows.clone().step_by(BLOCK_ROWS) {
        let block = block..rows.end.min(block + BLOCK_ROWS);
        let bytes = size(&block);
        if used + bytes <= room {
            used += bytes;
            continue;
        }
        for row in block {
            used += size(&(row..row + 1));
            if used > room && !(first && row == rows.start) {
                return row - rows.start;
            }
        }
    }
    rows.len()
}

/// The page boundaries of a column.
pub(super) fn page_ranges(
    field: &Field,
    column: &Column,
    max_rows: usize,
    max_bytes: u64,
) -> Vec<Range<usize>> {
    let max_rows = max_rows.max(1);
    let max_bytes = if max_bytes == 0 { PAGE_BYTES } else { max_bytes.min(PAGE_BYTES) };
    let mut out = Vec::new();
    let (mut start, mut bytes, mut elements) = (0, 0, 0);
    let fixed = fixed_bytes(field);
    let even = match fixed {
        Some(0) => Some(max_rows),
        Some(width) if column.validity.is_none() => {
            Some(usize::try_from(max_bytes / width).unwrap_or(max_rows).clamp(1, max_rows))
        }
        _ => None,
    };
    if let Some(even) = even {
        // Fixed-width rows are counted, not measured.
        let len = column.len();
        return (0..len).step_by(even).map(|start| start..len.min(start + even)).collect();
    }
    for row in 0..column.len() {
        let (row_bytes, row_elements) = match fixed {
            _ if !column.is_present(row) => (0, 0),
            Some(width) => (width, 0),
            None => row_size(field, column, row),
        };
        let full = row - start >= max_rows
            || row > start && (bytes + row_bytes > max_bytes || elements + row_elements > MAX_ELEMENTS);
        if full {
            out.push(start..row);
            (start, bytes, elements) = (row, 0, 0);
        }
        bytes += row_bytes;
        elements += row_elements;
    }
    if start < column.len() {
        out.push(start..column.len());
    }
    out
}

fn fixed_bytes(field: &Field) -> Option<u64> {
    match field.kind {
        Type::Bool | Type::BlobRef => Some(0),
        kind => kind.width().map(|width| width as u64),
    }
}

/// PLAIN size and number of elements of a non-null row.
fn row_size(field: &Field, column: &Column, row: usize) -> (u64, u64) {
    let text = |len: u32| u64::from(len) + varint::len(u64::from(len)) as u64;
    match &column.values {
        Values::Bytes(strings) => (text(strings.views()[row].len), 0),
        Values::List(lists) => {
            let range = lists.range(row);
            let present = range.clone().filter(|element| lists.elements.is_present(*element));
            let bytes: u64 = match &lists.elements.values {
                Values::Bytes(strings) => present.map(|element| text(strings.views()[element].len)).sum(),
                _ => field.scalar().width().unwrap_or(0) as u64 * present.count() as u64,
            };
            (1 + bytes, range.len() as u64)
        }
        _ => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(pages: &[Range<usize>]) -> Vec<usize> {
        pages.iter().map(ExactSizeIterator::len).collect()
    }

    #[test]
    fn pages_are_split_by_rows_and_bytes() {
        let field = Field::new("s", Type::String).with_nulls();
        let strings = ["aaa", "bbb", "", "an 18-byte string.", "c"];
        let column = Column::new(Values::Bytes(strings.iter().collect()));
        assert_eq!(lengths(&page_ranges(&field, &column, 100, 0)), [5]);
        assert_eq!(lengths(&page_ranges(&field, &column, 2, 0)), [2, 2, 1]);
        assert_eq!(lengths(&page_ranges(&field, &column, 100, 9)), [3, 1, 1]);
        assert_eq!(lengths(&page_ranges(&field, &column, 100, 8)), [2, 1, 1, 1]);
        let nulls = column.with_validity([true, true, true, false, true].into_iter().collect());
        assert_eq!(lengths(&page_ranges(&field, &nulls, 100, 9)), [4, 1]);
        let field = Field::new("n", Type::Int64);
        let column = Column::new(Values::Int64(vec![1; 10]));
        assert_eq!(lengths(&page_ranges(&field, &column, 100, 32)), [4, 4, 2]);
        assert_eq!(lengths(&page_ranges(&field, &column, 100, 1)), [1; 10]);
        assert_eq!(page_ranges(&field, &Column::empty(&field), 100, 1), Vec::<Range<usize>>::new());
    }

    #[test]
    fn rows_fill_the_remaining_space() {
        let schema = Schema::new(vec![Field::new("s", Type::String)]).unwrap();
        let batch = [Column::new(Values::Bytes(["aa", "bb", "cc"].iter().collect()))];
        let fit = |room, first| rows_that_fit(&schema, &batch, 0..3, room, first);
        assert_eq!(fit(9, false), 3);
        assert_eq!(fit(8, false), 2);
        assert_eq!(fit(2, false), 0);
        assert_eq!(fit(2, true), 1);
    }
}
