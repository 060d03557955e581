//! Shared parts of the row writers: columns, value formats, counts of unrepresentable values.

use rayon::prelude::*;
use tercet::tatami::logical_type::StoredValue;
use tercet::tatami::{Column, Field, LogicalType, Type, Values};

/// Rows per parallel task.
const PIECE_ROWS: usize = 1024;

/// The columns of a row writer.
#[derive(Clone, Debug)]
pub(crate) struct RowColumns {
    pub(super) columns: Vec<RowColumn>,
}

#[derive(Clone, Debug)]
pub(super) struct RowColumn {
    pub(super) name: String,
    pub(super) format: ValueFormat,
    pub(super) losses: LossCounts,
}

/// How the values of a column, or the elements of its lists, are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValueFormat {
    pub(super) is_text: bool,
    /// Strings of JSON, which JSON output contains as they are.
    pub(super) is_json: bool,
    /// The logical type, unless the stored values are written.
    pub(super) logical_type: Option<LogicalType>,
}

/// Counts of values that the format cannot represent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LossCounts {
    /// NaN and infinities, written as null.
    pub(crate) not_finite: u64,
    /// Strings with invalid UTF-8, written with U+FFFD.
    pub(crate) not_utf8: u64,
}

/// A row writer.
pub(crate) trait Rows: Clone + Send + Sync {
    /// Appends rows `from..to` of a batch.
    fn rows(&mut self, batch: &[Column], from: usize, to: usize, out: &mut Vec<u8>);

    /// The columns.
    fn columns(&self) -> &RowColumns;

    /// The columns, to count unrepresentable values.
    fn columns_mut(&mut self) -> &mut RowColumns;

    /// The columns with unrepresentable values.
    fn losses(&self) -> impl Iterator<Item = (&str, LossCounts)> {
        let losses = self.columns().columns.iter().filter(|column| column.losses != LossCounts::default());
        losses.map(|column| (column.name.as_str(), column.losses))
    }
}

impl RowColumns {
    /// The columns with their logical types.
    pub(super) fn new<'a>(columns: impl IntoIterator<Item = (&'a Field, Option<LogicalType>)>) -> Self {
        let column = |(field, logical_type): (&Field, Option<LogicalType>)| {
            let is_text = field.scalar() == Type::String || logical_type.is_some_and(LogicalType::is_text);
            let is_json = logical_type == Some(LogicalType::Json);
            let logical_type = logical_type.filter(|logical_type| !logical_type.is_text());
            let format = ValueFormat { is_text, is_json, logical_type };
            RowColumn { name: field.name.to_string(), format, losses: LossCounts::default() }
        };
        Self { columns: columns.into_iter().map(column).collect() }
    }

    fn clear(&mut self) {
        self.columns.iter_mut().for_each(|column| column.losses = LossCounts::default());
    }

    /// Adds the counts of another writer for the same columns.
    fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.columns.iter_mut().zip(&other.columns) {
            mine.losses.not_finite += theirs.losses.not_finite;
            mine.losses.not_utf8 += theirs.losses.not_utf8;
        }
    }
}

impl ValueFormat {
    /// Appends a value by its logical type; returns false if the stored value must be written instead.
    pub(super) fn write_logical(self, column: &Column, row: usize, out: &mut Vec<u8>) -> bool {
        let Some(logical_type) = self.logical_type else { return false };
        match &column.values {
            Values::Int32(v) => logical_type.write(StoredValue::Number(v[row].into()), out),
            Values::Int64(v) => logical_type.write(StoredValue::Number(v[row]), out),
            Values::Bytes(v) => logical_type.write(StoredValue::Bytes(v.get(row)), out),
            _ => false,
        }
    }
}

/// The first rows of a batch as text, formatted in parallel and returned in order.
pub(crate) fn pieces<R: Rows>(writer: &mut R, batch: &[Column], rows: usize) -> Vec<Vec<u8>> {
    let mut fresh = writer.clone();
    fresh.columns_mut().clear();
    let made: Vec<(R, Vec<u8>)> = (0..rows.div_ceil(PIECE_ROWS))
        .into_par_iter()
        .map(|piece| {
            let (mut writer, mut text) = (fresh.clone(), Vec::new());
            let start = piece * PIECE_ROWS;
            writer.rows(batch, start, rows.min(start + PIECE_ROWS), &mut text);
            (writer, text)
        })
        .collect();
    let mut parts = Vec::with_capacity(made.len());
    for (counted, text) in made {
        writer.columns_mut().add(counted.columns());
        parts.push(text);
    }
    parts
}
