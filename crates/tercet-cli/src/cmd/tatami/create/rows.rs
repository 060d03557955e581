//! Rows of CSV and JSONL, parsed in blocks.

use std::borrow::Cow;
use std::collections::HashSet;

use tercet::core::{Class, Progress as _};
use tercet::tatami::Field;

use super::assemble::{Batch, ReadError, RowError, Rows, field, in_column, is_null};
use super::build::ValueParser;
use super::csv::{Record, State};
use super::infer::Inference;
use super::json::{self, SyntaxError};
use super::text::Lines;
use super::token::Token;
use crate::failure::Failure;
use crate::ui::Bar;

/// The input format.
#[derive(Clone, Debug)]
pub(super) enum Form {
    Jsonl {
        /// The columns to read; `None` for all.
        only: Option<Vec<String>>,
    },
    Csv {
        delimiter: u8,
        /// Whether the first record is the header.
        has_header: bool,
        /// Unquoted fields that mean null.
        nulls: Vec<String>,
    },
}

impl Form {
    /// Whether a column is read.
    pub(super) fn wants(&self, name: &str) -> bool {
        match self {
            Self::Jsonl { only: Some(only) } => only.iter().any(|known| known == name),
            _ => true,
        }
    }
}

/// Infers the columns from the whole input.
pub(super) fn infer(lines: &mut Lines, form: &Form, bar: &Bar) -> Result<Vec<Field>, Failure> {
    let mut inference = Inference::default();
    let class = Class::Request;
    match form {
        Form::Jsonl { .. } => {
            // The last line of each column, to detect duplicate keys.
            let mut last: Vec<u64> = Vec::new();
            each_line(lines, bar, |text, line| {
                json::object::<RowError>(
                    text,
                    |key| form.wants(key),
                    |key, token| {
                        if key.is_empty() {
                            return Err(RowError::Invalid("empty column name".to_owned()));
                        }
                        let column = inference.column(&key);
                        last.resize(last.len().max(column + 1), 0);
                        if std::mem::replace(&mut last[column], line) == line {
                            return Err(in_column(&key, "duplicate column name"));
                        }
                        inference.see(column, &token, line);
                        Ok(())
                    },
                )?;
                inference.end_row();
                Ok(())
            })?;
        }
        Form::Csv { nulls, .. } => {
            let mut columns = Vec::new();
            each_record(lines, form, None, bar, |part, line| {
                let (header, record) = match part {
                    Part::Header(header) => {
                        columns = header.iter().map(|name| inference.column(name)).collect();
                        return Ok(());
                    }
                    Part::Row(header, record) => (header, record),
                };
                for (index, column) in columns.iter().enumerate() {
                    let (text, is_quoted) = field(record, index, &header[index])?;
                    let token = match text {
                        "" if is_quoted => Token::Text(Cow::Borrowed("")),
                        text if !is_quoted && is_null(text, nulls) => Token::Null,
                        text => Token::Loose(text),
                    };
                    inference.see(*column, &token, line);
                }
                inference.end_row();
                Ok(())
            })?;
            inference = inference.or_text();
        }
    }
    if lines.bytes() == 0 {
        let failure = Failure::new(class, format!("{}: empty input", lines.name()));
        return Err(failure.with_hint("set the schema: `--schema name:type,…`"));
    }
    // None of the selected columns exists: the caller reports them.
    if inference.is_empty() && !matches!(form, Form::Jsonl { only: Some(_) }) {
        let failure = Failure::new(class, format!("{}: no rows to infer a schema from", lines.name()));
        return Err(failure.with_hint("set the schema: `--schema name:type,…`"));
    }
    inference.fields().map_err(|reason| {
        let failure = Failure::new(class, format!("{}: {reason}", lines.name()));
        failure.with_hint("set the schema: `--schema name:type,…`")
    })
}

/// All column names of JSONL input.
#[cfg(feature = "arrow")]
pub(super) fn all_names(lines: &mut Lines, bar: &Bar) -> Result<Vec<String>, Failure> {
    let (mut names, mut seen) = (Vec::new(), HashSet::new());
    each_line(lines, bar, |text, _| {
        let note = std::cell::RefCell::new((&mut names, &mut seen));
        let is_wanted = |key: &str| {
            let (names, seen) = &mut *note.borrow_mut();
            if !seen.contains(key) {
                seen.insert(key.to_owned());
                names.push(key.to_owned());
            }
            false
        };
        Ok(json::object::<RowError>(text, is_wanted, |_, _| Ok(()))?)
    })?;
    Ok(names)
}

/// Reads the input into batches.
pub(super) fn read(
    lines: &mut Lines,
    form: &Form,
    fields: &[(Field, ValueParser)],
    bar: &Bar,
    mut each: impl FnMut(Batch) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut rows = Rows::new(fields);
    match form {
        Form::Jsonl { .. } => each_line(lines, bar, |text, line| {
            rows.object(text, line, |key| form.wants(key))?;
            rows.hand_over_if_full(&mut each)
        })?,
        Form::Csv { nulls, .. } => {
            let declared: Vec<String> = fields.iter().map(|(field, _)| field.name.to_string()).collect();
            let mut field_columns: Vec<usize> = Vec::new();
            each_record(lines, form, Some(&declared), bar, |part, line| match part {
                Part::Header(header) => {
                    field_columns = rows.field_columns(header)?;
                    Ok(())
                }
                Part::Row(header, record) => {
                    rows.record(record, &field_columns, header, nulls, line)?;
                    rows.hand_over_if_full(&mut each)
                }
            })?;
        }
    }
    match rows.take() {
        Some(batch) => each(batch),
        None => Ok(()),
    }
}

impl ReadError {
    fn into_failure(self, lines: &Lines, line: u64) -> Failure {
        match self {
            Self::Row(RowError::Syntax(SyntaxError { at, reason })) => {
                lines.failure(Class::Malformed, line, &format!("{reason} (byte {})", at + 1))
            }
            Self::Row(RowError::Invalid(reason)) => lines.failure(Class::Request, line, &reason),
            Self::Failed(failure) => failure,
        }
    }
}

/// Calls `each` for every line that is not blank.
fn each_line(
    lines: &mut Lines,
    bar: &Bar,
    mut each: impl FnMut(&str, u64) -> Result<(), ReadError>,
) -> Result<(), Failure> {
    let mut reported = lines.bytes();
    loop {
        let number = lines.number() + 1;
        let Some(line) = lines.next()? else { return Ok(()) };
        let result = match simdutf8::basic::from_utf8(line) {
            Ok(text) if text.trim_ascii().is_empty() => Ok(()),
            Ok(text) => each(text, number),
            Err(_) => {
                let at = std::str::from_utf8(line).map_or_else(|error| error.valid_up_to(), str::len);
                Err(RowError::Syntax(SyntaxError { at, reason: "invalid UTF-8" }).into())
            }
        };
        result.map_err(|stopped| stopped.into_failure(lines, number))?;
        advance(lines, bar, &mut reported)?;
    }
}

/// A CSV event.
enum Part<'a> {
    /// The column names.
    Header(&'a [String]),
    /// The column names and a record.
    Row(&'a [String], &'a Record),
}

/// Calls `each` for the header (`declared` without one) and for every record.
fn each_record(
    lines: &mut Lines,
    form: &Form,
    declared: Option<&[String]>,
    bar: &Bar,
    mut each: impl FnMut(Part<'_>, u64) -> Result<(), ReadError>,
) -> Result<(), Failure> {
    let Form::Csv { delimiter, has_header, .. } = form else { return Ok(()) };
    let mut header: Option<Vec<String>> = None;
    if let Some(declared) = declared.filter(|_| !has_header) {
        each(Part::Header(declared), 1).map_err(|stopped| stopped.into_failure(lines, 1))?;
        header = Some(declared.to_vec());
    }
    let (mut record, mut state, mut start) = (Record::default(), State::Done, 0);
    let mut reported = lines.bytes();
    let mut is_first = true;
    loop {
        let number = lines.number() + 1;
        let Some(line) = lines.next()? else { break };
        if state == State::Done {
            record.clear();
            start = number;
        }
        let added = record.add(line, state, *delimiter);
        state = added.map_err(|reason| lines.failure(Class::Malformed, number, reason))?;
        if state == State::Open {
            continue;
        }
        if is_first && !record.has_bare(b'\r') {
            is_first = false;
        } else if is_first {
            let reason = "lines end with CR only; expected LF or CR LF";
            return Err(lines.failure(Class::Malformed, start, reason));
        }
        let is_blank = record.len() == 1 && record.get(0).is_some_and(|field| field == (&[], false));
        match &header {
            None if is_blank => {}
            None => {
                let names = names(&record).and_then(|names| {
                    each(Part::Header(&names), start)?;
                    Ok(names)
                });
                header = Some(names.map_err(|stopped| stopped.into_failure(lines, start))?);
            }
            Some(header) if is_blank && header.len() != 1 => {}
            Some(header) if header.len() != record.len() => {
                let plural = |count: usize| if count == 1 { "" } else { "s" };
                let (fields, columns) = (record.len(), header.len());
                let (one, other) = (plural(fields), plural(columns));
                let reason = format!("{fields} field{one}, expected {columns} column{other}");
                return Err(lines.failure(Class::Malformed, start, &reason));
            }
            Some(header) => {
                let part = Part::Row(header, &record);
                each(part, start).map_err(|stopped| stopped.into_failure(lines, start))?;
            }
        }
        advance(lines, bar, &mut reported)?;
    }
    if state == State::Open {
        return Err(lines.failure(Class::Malformed, start, "unterminated quoted field"));
    }
    Ok(())
}

fn advance(lines: &Lines, bar: &Bar, reported: &mut u64) -> Result<(), Failure> {
    const STEP: u64 = 1 << 20;
    if lines.bytes() - *reported >= STEP {
        bar.advance(lines.bytes() - *reported);
        *reported = lines.bytes();
        if bar.is_cancelled() {
            return Err(Failure::Interrupted);
        }
    }
    Ok(())
}

/// The unique column names of the header.
fn names(record: &Record) -> Result<Vec<String>, ReadError> {
    let mut names: Vec<String> = Vec::with_capacity(record.len());
    let mut seen = HashSet::with_capacity(record.len());
    for index in 0..record.len() {
        let (bytes, _) = record.get(index).unwrap_or_default();
        let name = simdutf8::basic::from_utf8(bytes)
            .map_err(|_| RowError::Invalid(format!("invalid UTF-8 in the name of column {}", index + 1)))?;
        if name.is_empty() {
            return Err(RowError::Invalid(format!("column {} has an empty name", index + 1)).into());
        }
        if !seen.insert(name) {
            return Err(in_column(name, "duplicate column name").into());
        }
        names.push(name.to_owned());
    }
    Ok(names)
}
