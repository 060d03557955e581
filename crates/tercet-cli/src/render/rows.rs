//! What all texts of rows have in common: columns, how their values are told, and what could not be told.

use rayon::prelude::*;
use tercet::tatami::logical_type::StoredValue;
use tercet::tatami::{Column, Field, LogicalType, Type, Values};

/// Rows that one thread makes text of.
const PIECE_ROWS: usize = 1024;

/// Columns on their way into text.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(super) columns: Vec<ShownColumn>,
}

#[derive(Clone, Debug)]
pub(super) struct ShownColumn {
    pub(super) name: String,
    pub(super) how: How,
    pub(super) odd: Odd,
}

/// How the values of a column, or the elements of its lists, are told.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    pub(super) is_text: bool,
    /// What they mean, where they are not told as they are stored.
    pub(super) logical_type: Option<LogicalType>,
}

/// Values that are not told as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Odd {
    /// NaN and infinities, which are told as null.
    pub(crate) not_finite: u64,
    /// Texts that are no UTF-8, of which the wrong bytes are told as U+FFFD.
    pub(crate) not_utf8: u64,
}

/// A form of rows as text.
pub(crate) trait Rows: Clone + Send + Sync {
    /// Appends rows `from..to` of a batch, which has the columns of this form.
    fn rows(&mut self, batch: &[Column], from: usize, to: usize, out: &mut Vec<u8>);

    /// The columns.
    fn shown(&self) -> &Shown;

    /// The columns, to count what is not told.
    fn shown_mut(&mut self) -> &mut Shown;

    /// The columns with values that were not told as they are.
    fn odd(&self) -> impl Iterator<Item = (&str, Odd)> {
        let odd = self.shown().columns.iter().filter(|column| column.odd != Odd::default());
        odd.map(|column| (column.name.as_str(), column.odd))
    }
}

impl Shown {
    /// These columns, in this order, each with what its values mean.
    pub(super) fn new<'a>(columns: impl IntoIterator<Item = (&'a Field, Option<LogicalType>)>) -> Self {
        let shown = |(field, logical_type): (&Field, Option<LogicalType>)| {
            let is_text = field.scalar() == Type::String || logical_type == Some(LogicalType::Utf8);
            let logical_type = logical_type.filter(|logical_type| *logical_type != LogicalType::Utf8);
            let how = How { is_text, logical_type };
            ShownColumn { name: field.name.to_string(), how, odd: Odd::default() }
        };
        Self { columns: columns.into_iter().map(shown).collect() }
    }

    fn clear(&mut self) {
        self.columns.iter_mut().for_each(|column| column.odd = Odd::default());
    }

    /// Adds what was counted of the same columns elsewhere.
    fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.columns.iter_mut().zip(&other.columns) {
            mine.odd.not_finite += theirs.odd.not_finite;
            mine.odd.not_utf8 += theirs.odd.not_utf8;
        }
    }
}

impl How {
    /// Appends what a value means; false where it is to be told as it is stored.
    pub(super) fn meant(self, column: &Column, row: usize, out: &mut Vec<u8>) -> bool {
        let Some(logical_type) = self.logical_type else { return false };
        match &column.values {
            Values::Int32(v) => logical_type.write(StoredValue::Number(v[row].into()), out),
            Values::Int64(v) => logical_type.write(StoredValue::Number(v[row]), out),
            Values::Bytes(v) => logical_type.write(StoredValue::Bytes(v.get(row)), out),
            _ => false,
        }
    }
}

/// The first rows of a batch as text, made on all threads and handed over in order.
pub(crate) fn pieces<R: Rows>(writer: &mut R, batch: &[Column], rows: usize) -> Vec<Vec<u8>> {
    let mut fresh = writer.clone();
    fresh.shown_mut().clear();
    let made: Vec<(R, Vec<u8>)> = (0..rows.div_ceil(PIECE_ROWS))
        .into_par_iter()
        .map(|piece| {
            let (mut writer, mut text) = (fresh.clone(), Vec::new());
            let start = piece * PIECE_ROWS;
            writer.rows(batch, start, rows.min(start + PIECE_ROWS), &mut text);
            (writer, text)
        })
        .collect();
    let mut texts = Vec::with_capacity(made.len());
    for (counted, text) in made {
        writer.shown_mut().add(counted.shown());
        texts.push(text);
    }
    texts
}
