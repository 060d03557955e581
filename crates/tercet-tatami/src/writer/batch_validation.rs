//! Validation of batches.

use std::cmp::Ordering;

use crate::column::{Bitmap, Column, Lists, Strings, Values};
use crate::error::BatchError;
use crate::scalar::Scalar;
use crate::schema::{Field, Schema, Type};

/// Maximum bytes per value: it must fit into a page of less than 4 GiB, compressed or not.
pub(super) const MAX_VALUE_BYTES: u64 = u32::MAX as u64 - (1 << 20);

/// Maximum elements per list that readers accept.
pub(super) const MAX_ELEMENTS: u64 = 1 << 24;

/// Validates a batch and returns its number of rows.
pub(super) fn batch(schema: &Schema, columns: &[Column]) -> Result<usize, BatchError> {
    if columns.len() != schema.len() {
        return Err(BatchError::Columns { expected: schema.len(), found: columns.len() });
    }
    let rows = columns.first().map_or(0, Column::len);
    for (field, column) in schema.fields().iter().zip(columns) {
        if !column.values.fits(field) {
            let found = column.values.type_name();
            return Err(BatchError::Values { column: name(field), expected: field.kind, found });
        }
        same_rows(field, rows, column.len())?;
        validity(field, rows, column)?;
        values(field, column)?;
    }
    Ok(rows)
}

fn name(field: &Field) -> Box<str> {
    (&*field.name).into()
}

fn same_rows(field: &Field, expected: usize, found: usize) -> Result<(), BatchError> {
    if expected == found {
        return Ok(());
    }
    Err(BatchError::Rows { column: name(field), expected: expected as u64, found: found as u64 })
}

fn validity(field: &Field, rows: usize, column: &Column) -> Result<(), BatchError> {
    let Some(bits) = &column.validity else { return Ok(()) };
    same_rows(field, rows, bits.len())?;
    if field.nullable || bits.ones() == rows {
        return Ok(());
    }
    let row = (0..rows).find(|row| !bits.get(*row)).unwrap_or(0);
    Err(BatchError::Null { column: name(field), row: row as u64 })
}

fn values(field: &Field, column: &Column) -> Result<(), BatchError> {
    match &column.values {
        Values::Bytes(strings) => {
            check_strings(field, field.kind, strings, column.validity.as_ref(), &|row| row)
        }
        Values::List(lists) => self::lists(field, lists),
        _ => Ok(()),
    }
}

/// Strings must be UTF-8, and every value must fit into a page.
fn check_strings(
    field: &Field,
    kind: Type,
    strings: &Strings,
    validity: Option<&Bitmap>,
    row_of: &dyn Fn(usize) -> usize,
) -> Result<(), BatchError> {
    if validity.is_none() && strings.views().iter().all(|view| u64::from(view.len) <= MAX_VALUE_BYTES) {
        // Values are validated together.
        let wrong = if kind == Type::String { strings.first_invalid_utf8(0) } else { None };
        return match wrong {
            None => Ok(()),
            Some(index) => Err(BatchError::NotUtf8 { column: name(field), row: row_of(index) as u64 }),
        };
    }
    for (index, value) in strings.iter().enumerate() {
        if value.is_empty() || validity.is_some_and(|bits| !bits.get(index)) {
            continue;
        }
        let bytes = value.len() as u64;
        if bytes > MAX_VALUE_BYTES {
            return Err(BatchError::TooLarge { column: name(field), row: row_of(index) as u64, bytes });
        }
        if kind == Type::String && simdutf8::basic::from_utf8(value).is_err() {
            return Err(BatchError::NotUtf8 { column: name(field), row: row_of(index) as u64 });
        }
    }
    Ok(())
}

fn lists(field: &Field, lists: &Lists) -> Result<(), BatchError> {
    let elements = &lists.elements;
    let mut start = 0;
    for (row, end) in (0u64..).zip(&lists.ends) {
        if *end < start || *end > elements.len() as u64 {
            return Err(BatchError::ListEnds { column: name(field), row });
        }
        let count = end - start;
        if count > MAX_ELEMENTS {
            return Err(BatchError::TooManyElements { column: name(field), row, elements: count });
        }
        start = *end;
    }
    if let Some(bits) = &elements.validity {
        same_rows(field, elements.len(), bits.len())?;
    }
    if start != elements.len() as u64 {
        return Err(BatchError::ListEnds { column: name(field), row: lists.ends.len() as u64 });
    }
    let Values::Bytes(strings) = &elements.values else { return Ok(()) };
    let row_of = |element: usize| lists.ends.partition_point(|end| *end <= element as u64);
    check_strings(field, field.scalar(), strings, elements.validity.as_ref(), &row_of)?;
    for row in 0..lists.ends.len() {
        // A length takes at most five bytes.
        let bytes: u64 = strings.views()[lists.range(row)].iter().map(|view| u64::from(view.len) + 5).sum();
        if bytes > MAX_VALUE_BYTES {
            return Err(BatchError::TooLarge { column: name(field), row: row as u64, bytes });
        }
    }
    Ok(())
}

/// Checks the lengths of fixed-size lists. Null rows have any.
pub(super) fn fixed_lengths(
    schema: &Schema,
    lengths: &[Option<u64>],
    columns: &[Column],
) -> Result<(), BatchError> {
    for ((field, expected), column) in schema.fields().iter().zip(lengths).zip(columns) {
        let (Some(expected), Values::List(lists)) = (*expected, &column.values) else { continue };
        let mut start = 0;
        for (row, end) in lists.ends.iter().enumerate() {
            let elements = end - start;
            if elements != expected && column.is_present(row) {
                let column = name(field);
                return Err(BatchError::ListLength { column, row: row as u64, expected, elements });
            }
            start = *end;
        }
    }
    Ok(())
}

/// The order of the sort key over all batches.
#[derive(Debug)]
pub(super) struct Order {
    column: usize,
    last: Option<Scalar>,
}

impl Order {
    pub(super) fn new(column: usize) -> Self {
        Self { column, last: None }
    }

    /// Rejects an unsorted batch, which starts at row `first_row` of the file. Nulls and NaN are not ordered and are skipped.
    pub(super) fn check(
        &mut self,
        schema: &Schema,
        columns: &[Column],
        first_row: u64,
    ) -> Result<(), BatchError> {
        let column = &columns[self.column];
        let last = match ascending(column, self.last.as_ref()) {
            Ok(last) => last,
            Err(row) => {
                let column = name(&schema.fields()[self.column]);
                return Err(BatchError::Unsorted { column, row: first_row + row as u64 });
            }
        };
        if let Some(row) = last {
            self.last = column.scalar(row);
        }
        Ok(())
    }
}

/// The row of the last key, or the first row that is less than the previous one.
fn ascending(column: &Column, last: Option<&Scalar>) -> Result<Option<usize>, usize> {
    let mut previous: Option<usize> = None;
    for row in 0..column.len() {
        if !column.is_present(row) || is_nan(&column.values, row) {
            continue;
        }
        let falls = match (previous, last) {
            (Some(before), _) => order(&column.values, row, before) == Some(Ordering::Less),
            (None, Some(last)) => column.scalar(row).and_then(|key| key.order(last)) == Some(Ordering::Less),
            (None, None) => false,
        };
        if falls {
            return Err(row);
        }
        previous = Some(row);
    }
    Ok(previous)
}

fn is_nan(values: &Values, row: usize) -> bool {
    match values {
        Values::Float32(v) => v[row].is_nan(),
        Values::Float64(v) => v[row].is_nan(),
        _ => false,
    }
}

fn order(values: &Values, a: usize, b: usize) -> Option<Ordering> {
    crate::column::each_values!(
        values,
        fixed(v) => v[a].partial_cmp(&v[b]),
        bool(v) => v[a].partial_cmp(&v[b]),
        bytes(v) => v.get(a).partial_cmp(v.get(b)),
        list(_v) => None,
    )
}
