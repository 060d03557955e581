//! Rows of CSV and JSONL, parsed in blocks.

use std::borrow::Cow;
use std::collections::HashSet;

use tercet_core::Progress;
use tercet_core::progress::Cancelled;
use tercet_tatami::Field;

use super::TextFormat;
use super::assemble::{Batch, ReadError, RowError, Rows, field, in_column, is_null};
use super::build::ValueParser;
use super::csv::{Record, State};
use super::error::{Error, ErrorKind};
use super::infer::Inference;
use super::json::{self, SyntaxError};
use super::text::Lines;
use super::token::Token;

/// Infers the columns from the whole input.
pub(super) fn infer(
    lines: &mut Lines,
    format: &TextFormat,
    progress: &dyn Progress,
) -> Result<Vec<Field>, Error> {
    let mut inference = Inference::default();
    match format {
        TextFormat::Jsonl { .. } => {
            // The last line of each column, to detect duplicate keys.
            let mut last: Vec<u64> = Vec::new();
            each_line(lines, progress, |text, line| {
                json::object::<RowError>(
                    text,
                    |key| format.wants(key),
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
        TextFormat::Csv { nulls, .. } => {
            let mut columns = Vec::new();
            each_record(lines, format, None, progress, |part, line| {
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
        return Err(lines.error(ErrorKind::Empty));
    }
    // None of the selected columns exists: the caller reports them.
    if inference.is_empty() && !matches!(format, TextFormat::Jsonl { only: Some(_) }) {
        return Err(lines.error(ErrorKind::NoRows));
    }
    inference.fields().map_err(|reason| lines.error(ErrorKind::Inference(reason.into())))
}

/// All column names of JSONL input.
pub(super) fn all_names(lines: &mut Lines, progress: &dyn Progress) -> Result<Vec<String>, Error> {
    let (mut names, mut seen) = (Vec::new(), HashSet::new());
    each_line(lines, progress, |text, _| {
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
pub(super) fn read<E: From<Error>>(
    lines: &mut Lines,
    format: &TextFormat,
    fields: &[(Field, ValueParser)],
    progress: &dyn Progress,
    mut each: impl FnMut(Batch) -> Result<(), E>,
) -> Result<(), E> {
    let mut rows = Rows::new(fields);
    match format {
        TextFormat::Jsonl { .. } => each_line(lines, progress, |text, line| {
            rows.object(text, line, |key| format.wants(key))?;
            rows.hand_over_if_full(&mut each)
        })?,
        TextFormat::Csv { nulls, .. } => {
            let declared: Vec<String> = fields.iter().map(|(field, _)| field.name.to_string()).collect();
            let mut field_columns: Vec<usize> = Vec::new();
            each_record(lines, format, Some(&declared), progress, |part, line| match part {
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

impl<E: From<Error>> ReadError<E> {
    fn into_error(self, lines: &Lines, line: u64) -> E {
        match self {
            Self::Row(RowError::Syntax(SyntaxError { at, reason })) => {
                lines.malformed(line, &format!("{reason} (byte {})", at + 1)).into()
            }
            Self::Row(RowError::Invalid(reason)) => {
                lines.error(ErrorKind::Value { line, reason: reason.into() }).into()
            }
            Self::Failed(error) => error,
        }
    }
}

/// Calls `each` for every line that is not blank.
fn each_line<E: From<Error>>(
    lines: &mut Lines,
    progress: &dyn Progress,
    mut each: impl FnMut(&str, u64) -> Result<(), ReadError<E>>,
) -> Result<(), E> {
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
        result.map_err(|stopped| stopped.into_error(lines, number))?;
        advance(lines, progress, &mut reported)?;
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
fn each_record<E: From<Error>>(
    lines: &mut Lines,
    format: &TextFormat,
    declared: Option<&[String]>,
    progress: &dyn Progress,
    mut each: impl FnMut(Part<'_>, u64) -> Result<(), ReadError<E>>,
) -> Result<(), E> {
    let TextFormat::Csv { delimiter, has_header, .. } = format else { return Ok(()) };
    let mut header: Option<Vec<String>> = None;
    if let Some(declared) = declared.filter(|_| !has_header) {
        each(Part::Header(declared), 1).map_err(|stopped| stopped.into_error(lines, 1))?;
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
        state = added.map_err(|reason| lines.malformed(number, reason))?;
        if state == State::Open {
            continue;
        }
        if is_first && !record.has_bare(b'\r') {
            is_first = false;
        } else if is_first {
            let reason = "lines end with CR only; expected LF or CR LF";
            return Err(lines.malformed(start, reason).into());
        }
        let is_blank = record.len() == 1 && record.get(0).is_some_and(|field| field == (&[], false));
        match &header {
            None if is_blank => {}
            None => {
                let names = names(&record).and_then(|names| {
                    each(Part::Header(&names), start)?;
                    Ok(names)
                });
                header = Some(names.map_err(|stopped| stopped.into_error(lines, start))?);
            }
            Some(header) if is_blank && header.len() != 1 => {}
            Some(header) if header.len() != record.len() => {
                let plural = |count: usize| if count == 1 { "" } else { "s" };
                let (fields, columns) = (record.len(), header.len());
                let (one, other) = (plural(fields), plural(columns));
                let reason = format!("{fields} field{one}, expected {columns} column{other}");
                return Err(lines.malformed(start, &reason).into());
            }
            Some(header) => {
                let part = Part::Row(header, &record);
                each(part, start).map_err(|stopped| stopped.into_error(lines, start))?;
            }
        }
        advance(lines, progress, &mut reported)?;
    }
    if state == State::Open {
        return Err(lines.malformed(start, "unterminated quoted field").into());
    }
    Ok(())
}

fn advance(lines: &Lines, progress: &dyn Progress, reported: &mut u64) -> Result<(), Error> {
    const STEP: u64 = 1 << 20;
    if lines.bytes() - *reported >= STEP {
        progress.advance(lines.bytes() - *reported);
        *reported = lines.bytes();
        if progress.is_cancelled() {
            return Err(lines.error(ErrorKind::Cancelled(Cancelled)));
        }
    }
    Ok(())
}

/// The unique column names of the header.
fn names<E>(record: &Record) -> Result<Vec<String>, ReadError<E>> {
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
