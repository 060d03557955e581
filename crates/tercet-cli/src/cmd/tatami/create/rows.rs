//! Rows of an input, in batches of columns.

use std::borrow::Cow;
use std::collections::HashMap;

use tercet::core::{Class, Progress as _, escape};
use tercet::tatami::{Column, Field};

use super::build::{Builder, Reading};
use super::csv::{Record, State};
use super::infer::Inference;
use super::json::{self, Wrong};
use super::text::Lines;
use super::token::Token;
use crate::failure::Failure;
use crate::ui::Bar;

/// Rows of a batch.
const BATCH_ROWS: usize = 16_384;
/// Bytes of a batch, unless one row has more.
const BATCH_BYTES: usize = 8 << 20;

/// How an input is written.
#[derive(Clone, Debug)]
pub(super) enum Form {
    Jsonl,
    Csv {
        delimiter: u8,
        /// The first record has the names.
        has_header: bool,
        /// Texts out of quotes that mean null.
        nulls: Vec<String>,
    },
}

/// Rows and the lines at which they start.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) columns: Vec<Column>,
    pub(super) lines: Vec<u64>,
}

/// Why a row is refused.
enum Refused {
    Wrong(Wrong),
    Row(String),
}

impl From<Wrong> for Refused {
    fn from(wrong: Wrong) -> Self {
        Self::Wrong(wrong)
    }
}

fn in_column(name: &str, why: &str) -> Refused {
    Refused::Row(format!("column `{}`: {why}", escape::name(name)))
}

/// Finds the columns of an input by looking at all of it.
pub(super) fn infer(lines: &mut Lines, form: &Form, bar: &Bar) -> Result<Vec<Field>, Failure> {
    let mut inference = Inference::default();
    let class = Class::Request;
    match form {
        Form::Jsonl => {
            // Where each column was last seen, to notice a name that comes twice.
            let mut last: Vec<u64> = Vec::new();
            each_line(lines, bar, |text, line| {
                json::object::<Refused>(text, |key, token| {
                    let column = inference.column(&key);
                    last.resize(last.len().max(column + 1), 0);
                    if std::mem::replace(&mut last[column], line) == line {
                        return Err(in_column(&key, "is there twice"));
                    }
                    inference.see(column, &token, line);
                    Ok(())
                })?;
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
    if inference.is_empty() {
        let failure = Failure::new(class, format!("{}: no row says what the columns are", lines.name()));
        return Err(failure.with_hint("tell them: `--schema name:type,…`"));
    }
    inference.fields().map_err(|why| {
        let failure = Failure::new(class, format!("{}: {why}", lines.name()));
        failure.with_hint("tell the columns: `--schema name:type,…`")
    })
}

/// Reads an input into batches of the columns of these fields.
pub(super) fn read(
    lines: &mut Lines,
    form: &Form,
    fields: &[(Field, Reading)],
    bar: &Bar,
    mut each: impl FnMut(Batch) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut rows = Rows::new(fields);
    match form {
        Form::Jsonl => each_line(lines, bar, |text, line| {
            rows.object(text, line)?;
            rows.hand_over_if_full(&mut each)
        })?,
        Form::Csv { nulls, .. } => {
            let declared: Vec<String> = fields.iter().map(|(field, _)| field.name.to_string()).collect();
            let mut places: Vec<usize> = Vec::new();
            each_record(lines, form, Some(&declared), bar, |part, line| match part {
                Part::Header(header) => {
                    places = rows.places(header)?;
                    Ok(())
                }
                Part::Row(header, record) => {
                    rows.record(record, &places, header, nulls, line)?;
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

/// A failure of the consumer, or a row that is refused.
enum Stopped {
    Refused(Refused),
    Failed(Failure),
}

impl From<Refused> for Stopped {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl Stopped {
    fn told(self, lines: &Lines, line: u64) -> Failure {
        match self {
            Self::Refused(Refused::Wrong(Wrong { at, why })) => {
                lines.refused(Class::Malformed, line, &format!("{why} (byte {})", at + 1))
            }
            Self::Refused(Refused::Row(why)) => lines.refused(Class::Request, line, &why),
            Self::Failed(failure) => failure,
        }
    }
}

/// Hands over every line that is not blank.
fn each_line(
    lines: &mut Lines,
    bar: &Bar,
    mut each: impl FnMut(&str, u64) -> Result<(), Stopped>,
) -> Result<(), Failure> {
    let mut told = lines.bytes();
    loop {
        let number = lines.number() + 1;
        let Some(line) = lines.next()? else { return Ok(()) };
        let result = match simdutf8::basic::from_utf8(line) {
            Ok(text) if text.trim_ascii().is_empty() => Ok(()),
            Ok(text) => each(text, number),
            Err(_) => {
                let at = std::str::from_utf8(line).map_or_else(|error| error.valid_up_to(), str::len);
                Err(Refused::Wrong(Wrong { at, why: "text is not valid UTF-8" }).into())
            }
        };
        result.map_err(|stopped| stopped.told(lines, number))?;
        advance(lines, bar, &mut told)?;
    }
}

/// A part of CSV.
enum Part<'a> {
    /// The names of the columns, before any row.
    Header(&'a [String]),
    /// The names again, and a row.
    Row(&'a [String], &'a Record),
}

/// Hands over the names of the columns, `declared` ones if the input has none, and then every record.
fn each_record(
    lines: &mut Lines,
    form: &Form,
    declared: Option<&[String]>,
    bar: &Bar,
    mut each: impl FnMut(Part<'_>, u64) -> Result<(), Stopped>,
) -> Result<(), Failure> {
    let Form::Csv { delimiter, has_header, .. } = form else { return Ok(()) };
    let mut header: Option<Vec<String>> = None;
    if let Some(declared) = declared.filter(|_| !has_header) {
        each(Part::Header(declared), 1).map_err(|stopped| stopped.told(lines, 1))?;
        header = Some(declared.to_vec());
    }
    let (mut record, mut state, mut start) = (Record::default(), State::Done, 0);
    let mut told = lines.bytes();
    loop {
        let number = lines.number() + 1;
        let Some(line) = lines.next()? else { break };
        if state == State::Done {
            record.clear();
            start = number;
        }
        let added = record.add(line, state, *delimiter);
        state = added.map_err(|why| lines.refused(Class::Malformed, number, why))?;
        if state == State::Open {
            continue;
        }
        let is_blank = record.len() == 1 && record.get(0).is_some_and(|field| field == (&[], false));
        match &header {
            None if is_blank => {}
            None => {
                let names = names(&record).and_then(|names| {
                    each(Part::Header(&names), start)?;
                    Ok(names)
                });
                header = Some(names.map_err(|stopped| stopped.told(lines, start))?);
            }
            Some(header) if is_blank && header.len() != 1 => {}
            Some(header) if header.len() != record.len() => {
                let why = format!("has {} fields, but there are {} columns", record.len(), header.len());
                return Err(lines.refused(Class::Malformed, start, &why));
            }
            Some(header) => {
                let part = Part::Row(header, &record);
                each(part, start).map_err(|stopped| stopped.told(lines, start))?;
            }
        }
        advance(lines, bar, &mut told)?;
    }
    if state == State::Open {
        return Err(lines.refused(Class::Malformed, start, "a field in quotes does not end"));
    }
    Ok(())
}

fn advance(lines: &Lines, bar: &Bar, told: &mut u64) -> Result<(), Failure> {
    const STEP: u64 = 1 << 20;
    if lines.bytes() - *told >= STEP {
        bar.advance(lines.bytes() - *told);
        *told = lines.bytes();
        if bar.is_cancelled() {
            return Err(Failure::Interrupted);
        }
    }
    Ok(())
}

/// The names of the first record, each of them once.
fn names(record: &Record) -> Result<Vec<String>, Stopped> {
    let mut names: Vec<String> = Vec::with_capacity(record.len());
    for index in 0..record.len() {
        let (name, _) = field(record, index, "of a name")?;
        if name.is_empty() {
            return Err(Refused::Row(format!("column {} has no name", index + 1)).into());
        }
        if names.iter().any(|kept| kept == name) {
            return Err(in_column(name, "is there twice").into());
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

fn field<'a>(record: &'a Record, index: usize, name: &str) -> Result<(&'a str, bool), Refused> {
    let (bytes, is_quoted) = record.get(index).unwrap_or_default();
    let text = simdutf8::basic::from_utf8(bytes).map_err(|_| in_column(name, "text is not valid UTF-8"))?;
    Ok((text, is_quoted))
}

fn is_null(text: &str, nulls: &[String]) -> bool {
    text.is_empty() || nulls.iter().any(|null| null == text)
}

/// Rows that become columns.
struct Rows {
    builders: Vec<Builder>,
    by_name: HashMap<String, usize>,
    /// For each column the number of the last row that has it, from 1.
    last: Vec<u64>,
    row: u64,
    lines: Vec<u64>,
}

impl Rows {
    fn new(fields: &[(Field, Reading)]) -> Self {
        let builders: Vec<Builder> =
            fields.iter().map(|(field, reading)| Builder::new(field.clone(), *reading)).collect();
        let by_name =
            builders.iter().enumerate().map(|(index, builder)| (builder.name().to_owned(), index)).collect();
        Self { last: vec![0; builders.len()], builders, by_name, row: 0, lines: Vec::new() }
    }

    /// Adds the row of an object.
    fn object(&mut self, text: &str, line: u64) -> Result<(), Refused> {
        self.row += 1;
        self.lines.push(line);
        let (mut expected, mut found) = (0, 0);
        let Self { builders, by_name, last, row, .. } = self;
        json::object::<Refused>(text, |key, token| {
            // Most inputs have their names in the same order in every row.
            let column = match builders.get(expected).filter(|builder| builder.name() == key) {
                Some(_) => expected,
                None => match by_name.get(&*key) {
                    Some(column) => *column,
                    None => return Err(in_column(&key, "the schema has no such column")),
                },
            };
            if std::mem::replace(&mut last[column], *row) == *row {
                return Err(in_column(&key, "is there twice"));
            }
            builders[column].push(token).map_err(|why| in_column(&key, &why))?;
            expected = column + 1;
            found += 1;
            Ok(())
        })?;
        if found < builders.len() {
            for (builder, last) in builders.iter_mut().zip(last) {
                if *last != *row {
                    if !builder.is_nullable() {
                        let why = "is missing, and the column is not nullable";
                        return Err(in_column(builder.name(), why));
                    }
                    let pushed = builder.push(Token::Null);
                    pushed.map_err(|why| in_column(builder.name(), &why))?;
                }
            }
        }
        Ok(())
    }

    /// For each field of a record its column.
    fn places(&self, header: &[String]) -> Result<Vec<usize>, Refused> {
        let place = |name: &String| {
            let found = self.by_name.get(name).copied();
            found.ok_or_else(|| in_column(name, "the schema has no such column"))
        };
        let places: Vec<usize> = header.iter().map(place).collect::<Result<_, _>>()?;
        let missing = |index: &usize| !places.contains(index) && !self.builders[*index].is_nullable();
        match (0..self.builders.len()).find(missing) {
            Some(index) => Err(in_column(
                self.builders[index].name(),
                "is missing in the first record, and the column is not nullable",
            )),
            None => Ok(places),
        }
    }

    /// Adds the row of a record.
    fn record(
        &mut self,
        record: &Record,
        places: &[usize],
        header: &[String],
        nulls: &[String],
        line: u64,
    ) -> Result<(), Refused> {
        self.row += 1;
        self.lines.push(line);
        for (index, column) in places.iter().enumerate() {
            let (text, is_quoted) = field(record, index, &header[index])?;
            let builder = &mut self.builders[*column];
            let token = if is_quoted || !is_null(text, nulls) {
                Token::Loose(text)
            } else if builder.is_nullable() {
                Token::Null
            } else if text.is_empty() && builder.holds_text() {
                Token::Loose("")
            } else {
                return Err(in_column(&header[index], "is empty, but the column is not nullable"));
            };
            builder.push(token).map_err(|why| in_column(&header[index], &why))?;
            self.last[*column] = self.row;
        }
        if places.len() < self.builders.len() {
            for (builder, last) in self.builders.iter_mut().zip(&self.last) {
                if *last != self.row {
                    builder.push(Token::Null).map_err(|why| in_column(builder.name(), &why))?;
                }
            }
        }
        Ok(())
    }

    fn hand_over_if_full(
        &mut self,
        each: &mut impl FnMut(Batch) -> Result<(), Failure>,
    ) -> Result<(), Stopped> {
        let bytes = || self.builders.iter().map(Builder::bytes).sum::<usize>();
        if self.lines.len() < BATCH_ROWS && bytes() < BATCH_BYTES {
            return Ok(());
        }
        match self.take() {
            Some(batch) => each(batch).map_err(Stopped::Failed),
            None => Ok(()),
        }
    }

    fn take(&mut self) -> Option<Batch> {
        if self.lines.is_empty() {
            return None;
        }
        let columns = self.builders.iter_mut().map(Builder::take).collect();
        Some(Batch { columns, lines: std::mem::take(&mut self.lines) })
    }
}
