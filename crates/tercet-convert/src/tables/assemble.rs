//! Batches of columns from parsed rows.

use std::collections::HashMap;

use tercet_core::escape;
use tercet_tatami::{Column, Field};

use super::build::{Builder, ValueParser};
use super::csv::Record;
use super::json::{self, SyntaxError};
use super::token::Token;

/// Maximum rows per batch.
const BATCH_ROWS: usize = 16_384;
/// Target bytes per batch.
const BATCH_BYTES: usize = 8 << 20;

/// A batch with the input line of each row.
#[derive(Debug)]
pub struct Batch {
    /// One column for each field of the schema.
    pub columns: Vec<Column>,
    /// The line on which each row starts, from 1.
    pub lines: Vec<u64>,
}

/// The reason a row is rejected.
pub(super) enum RowError {
    Syntax(SyntaxError),
    Invalid(String),
}

impl From<SyntaxError> for RowError {
    fn from(error: SyntaxError) -> Self {
        Self::Syntax(error)
    }
}

pub(super) fn in_column(name: &str, reason: &str) -> RowError {
    RowError::Invalid(format!("column `{}`: {reason}", escape::name(name)))
}

/// A rejected row, or a failure of the consumer.
pub(super) enum ReadError<E> {
    Row(RowError),
    Failed(E),
}

impl<E> From<RowError> for ReadError<E> {
    fn from(error: RowError) -> Self {
        Self::Row(error)
    }
}

pub(super) fn field<'a>(record: &'a Record, index: usize, name: &str) -> Result<(&'a str, bool), RowError> {
    let (bytes, is_quoted) = record.get(index).unwrap_or_default();
    let text = simdutf8::basic::from_utf8(bytes).map_err(|_| in_column(name, "invalid UTF-8"))?;
    Ok((text, is_quoted))
}

pub(super) fn is_null(text: &str, nulls: &[String]) -> bool {
    text.is_empty() || nulls.iter().any(|null| null == text)
}

/// Collects rows into columns.
pub(super) struct Rows {
    builders: Vec<Builder>,
    by_name: HashMap<String, usize>,
    /// For each column the number of the last row with a value, from 1.
    last: Vec<u64>,
    row: u64,
    lines: Vec<u64>,
}

impl Rows {
    pub(super) fn new(fields: &[(Field, ValueParser)]) -> Self {
        let builders: Vec<Builder> =
            fields.iter().map(|(field, reading)| Builder::new(field.clone(), *reading)).collect();
        let by_name =
            builders.iter().enumerate().map(|(index, builder)| (builder.name().to_owned(), index)).collect();
        Self { last: vec![0; builders.len()], builders, by_name, row: 0, lines: Vec::new() }
    }

    /// Adds a JSON object as a row.
    pub(super) fn object(
        &mut self,
        text: &str,
        line: u64,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<(), RowError> {
        self.row += 1;
        self.lines.push(line);
        let (mut expected, mut found) = (0, 0);
        let Self { builders, by_name, last, row, .. } = self;
        json::object::<RowError>(text, is_wanted, |key, token| {
            // Keys are usually in the same order in every row.
            let column = match builders.get(expected).filter(|builder| builder.name() == key) {
                Some(_) => expected,
                None => match by_name.get(&*key) {
                    Some(column) => *column,
                    None => return Err(in_column(&key, "not in the schema")),
                },
            };
            if std::mem::replace(&mut last[column], *row) == *row {
                return Err(in_column(&key, "duplicate key"));
            }
            builders[column].push(token).map_err(|reason| in_column(&key, &reason))?;
            expected = column + 1;
            found += 1;
            Ok(())
        })?;
        if found < builders.len() {
            for (builder, last) in builders.iter_mut().zip(last) {
                if *last != *row {
                    if !builder.is_nullable() {
                        let reason = "missing in a non-nullable column";
                        return Err(in_column(builder.name(), reason));
                    }
                    let pushed = builder.push(Token::Null);
                    pushed.map_err(|reason| in_column(builder.name(), &reason))?;
                }
            }
        }
        Ok(())
    }

    /// Maps CSV fields to columns.
    pub(super) fn field_columns(&self, header: &[String]) -> Result<Vec<usize>, RowError> {
        let place = |name: &String| {
            let found = self.by_name.get(name).copied();
            found.ok_or_else(|| in_column(name, "not in the schema"))
        };
        let field_columns: Vec<usize> = header.iter().map(place).collect::<Result<_, _>>()?;
        let mut is_there = vec![false; self.builders.len()];
        for &place in &field_columns {
            is_there[place] = true;
        }
        let missing = |index: &usize| !is_there[*index] && !self.builders[*index].is_nullable();
        match (0..self.builders.len()).find(missing) {
            Some(index) => {
                Err(in_column(self.builders[index].name(), "non-nullable column is missing in the header"))
            }
            None => Ok(field_columns),
        }
    }

    /// Adds a CSV record as a row.
    pub(super) fn record(
        &mut self,
        record: &Record,
        field_columns: &[usize],
        header: &[String],
        nulls: &[String],
        line: u64,
    ) -> Result<(), RowError> {
        self.row += 1;
        self.lines.push(line);
        for (index, column) in field_columns.iter().enumerate() {
            let (text, is_quoted) = field(record, index, &header[index])?;
            let builder = &mut self.builders[*column];
            let token = if is_quoted || !is_null(text, nulls) {
                Token::Loose(text)
            } else if builder.is_nullable() {
                Token::Null
            } else if text.is_empty() && builder.holds_text() {
                Token::Loose("")
            } else {
                return Err(in_column(&header[index], "empty value in a non-nullable column"));
            };
            builder.push(token).map_err(|reason| in_column(&header[index], &reason))?;
            self.last[*column] = self.row;
        }
        if field_columns.len() < self.builders.len() {
            for (builder, last) in self.builders.iter_mut().zip(&self.last) {
                if *last != self.row {
                    builder.push(Token::Null).map_err(|reason| in_column(builder.name(), &reason))?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn hand_over_if_full<E>(
        &mut self,
        each: &mut impl FnMut(Batch) -> Result<(), E>,
    ) -> Result<(), ReadError<E>> {
        let bytes = || self.builders.iter().map(Builder::bytes).sum::<usize>();
        if self.lines.len() < BATCH_ROWS && bytes() < BATCH_BYTES {
            return Ok(());
        }
        match self.take() {
            Some(batch) => each(batch).map_err(ReadError::Failed),
            None => Ok(()),
        }
    }

    pub(super) fn take(&mut self) -> Option<Batch> {
        if self.lines.is_empty() {
            return None;
        }
        let columns = self.builders.iter_mut().map(Builder::take).collect();
        Some(Batch { columns, lines: std::mem::take(&mut self.lines) })
    }
}
