//! Columns from JSONL chunks.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tercet_tatami::Field;

use super::build::{Builder, ValueParser};
use super::chunks::Chunk;
use super::infer::{Inference, check_names};
use super::json::{self, Nested, SyntaxError};
use super::parsed::{Batch, ParsedChunk, Problem};
use super::plain_json::{self, Keys};
use super::reject::{OnError, Reject};
use super::token::Token;

/// How the chunks of a file are parsed.
#[derive(Debug)]
pub(super) struct JsonlReader<'a> {
    pub(super) input: &'a Arc<str>,
    pub(super) nested: Nested,
    /// The columns to read; `None` for all.
    pub(super) only: Option<&'a [String]>,
    pub(super) fields: &'a [(Field, ValueParser)],
    pub(super) by_name: &'a HashMap<String, usize>,
    pub(super) keys: &'a Keys,
    /// The paths of objects that have columns.
    pub(super) objects: &'a HashSet<String>,
    pub(super) on_error: OnError,
}

/// Whether a column is read, or a column in it.
pub(super) fn is_wanted(only: Option<&[String]>, path: &str) -> bool {
    let is_in =
        |name: &String| name == path || name.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
    only.is_none_or(|only| only.iter().any(is_in))
}

impl JsonlReader<'_> {
    pub(super) fn parse(&self, chunk: &Chunk) -> ParsedChunk {
        match plain_json::parse(self, chunk) {
            Some((columns, lines)) => {
                ParsedChunk { batch: Batch { columns, lines }, ..ParsedChunk::default() }
            }
            None => self.parse_lines(chunk),
        }
    }

    /// Parses a chunk row by row.
    pub(super) fn parse_lines(&self, chunk: &Chunk) -> ParsedChunk {
        let mut rows = Rows::new(self);
        let mut parsed = ParsedChunk::default();
        let mut is_bad = Vec::new();
        each_line(chunk, |line, bytes| {
            parsed.batch.lines.push(line);
            let problem = match rows.line(bytes, self) {
                Ok(()) => None,
                Err(problem) if self.on_error == OnError::Stop => {
                    parsed.problem = Some((line, problem));
                    return false;
                }
                Err(problem) => Some(problem),
            };
            for reason in rows.nulled.drain(..) {
                parsed.rejects.push(Reject::new(self.input, line, &reason, bytes, true));
            }
            is_bad.push(problem.is_some());
            if let Some(problem) = problem {
                rows.pad();
                parsed.rejects.push(Reject::new(self.input, line, problem.reason(), bytes, false));
            }
            true
        });
        if parsed.problem.is_some() {
            rows.pad();
        }
        parsed.batch.columns = rows.builders.iter_mut().map(Builder::take).collect();
        if is_bad.contains(&true) {
            parsed.batch = parsed.batch.without(&is_bad);
        }
        parsed
    }

    /// Records the values of a chunk for inference.
    pub(super) fn infer(&self, chunk: &Chunk, most: u64) -> Result<Inference, (u64, Problem)> {
        let mut inference = Inference::default();
        // The last line of each column, to detect duplicate keys.
        let mut last: Vec<u64> = Vec::new();
        let mut result = Ok(());
        each_line(chunk, |line, bytes| {
            let seen = self.see(line, bytes, &mut inference, &mut last);
            match seen {
                Err(problem @ Problem::TooLarge(_)) => result = Err((line, problem)),
                Err(problem) if self.on_error == OnError::Stop => result = Err((line, problem)),
                _ => {}
            }
            result.is_ok() && inference.rows() < most
        });
        result.map(|()| inference)
    }

    fn see(
        &self,
        line: u64,
        bytes: &[u8],
        inference: &mut Inference,
        last: &mut Vec<u64>,
    ) -> Result<(), Problem> {
        let text = utf8(bytes)?;
        let (mut seen, mut name_bytes) = (Vec::new(), 0);
        json::object::<Problem>(
            text,
            self.nested,
            |key| is_wanted(self.only, key),
            |_| false,
            |key, token| {
                if key.is_empty() {
                    return Err(Problem::Value("empty column name".to_owned()));
                }
                name_bytes += key.len();
                check_names(seen.len() + 1, name_bytes).map_err(Problem::TooLarge)?;
                seen.push((key, token));
                Ok(())
            },
        )?;
        for (key, token) in seen {
            let column = inference.column(&key);
            last.resize(last.len().max(column + 1), 0);
            if std::mem::replace(&mut last[column], line) == line {
                return Err(Problem::in_column(&key, "duplicate column name"));
            }
            inference.see(column, &token, line);
        }
        inference.end_row();
        inference.check_limits().map_err(Problem::TooLarge)
    }

    /// All column names of a chunk.
    pub(super) fn names(&self, chunk: &Chunk, each: &mut impl FnMut(&str)) {
        each_line(chunk, |_, bytes| {
            let Ok(text) = utf8(bytes) else { return true };
            // Damaged lines are reported elsewhere.
            let _ = json::object::<Problem>(
                text,
                self.nested,
                |_| true,
                |_| false,
                |key, _| {
                    each(&key);
                    Ok(())
                },
            );
            true
        });
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, Problem> {
    simdutf8::basic::from_utf8(bytes).map_err(|_| {
        let at = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
        SyntaxError { at, reason: "invalid UTF-8" }.into()
    })
}

/// Calls `each` for every line that is not blank, until it returns false.
fn each_line(chunk: &Chunk, mut each: impl FnMut(u64, &[u8]) -> bool) {
    let mut start = 0;
    for line in chunk.line.. {
        let rest = &chunk.bytes[start..];
        if rest.is_empty() {
            return;
        }
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        start += end;
        let bytes = &rest[..end];
        if !bytes.trim_ascii().is_empty() && !each(line, bytes) {
            return;
        }
    }
}

/// Collects rows into columns.
struct Rows<'a> {
    builders: Vec<Builder>,
    by_name: &'a HashMap<String, usize>,
    /// For each column the number of the last row with a value, from 1.
    last: Vec<u64>,
    row: u64,
    on_error: OnError,
    /// Values of the row that were replaced by null.
    nulled: Vec<String>,
}

impl<'a> Rows<'a> {
    fn new(reader: &JsonlReader<'a>) -> Self {
        let builders = reader.fields.iter().map(|(field, parser)| Builder::new(field.clone(), *parser));
        let builders: Vec<Builder> = builders.collect();
        let last = vec![0; builders.len()];
        let (by_name, on_error) = (reader.by_name, reader.on_error);
        Self { builders, by_name, last, row: 0, on_error, nulled: Vec::new() }
    }

    /// Adds nulls where the current row has no value.
    fn pad(&mut self) {
        let rows = usize::try_from(self.row).unwrap_or(usize::MAX);
        self.builders.iter_mut().for_each(|builder| builder.pad_to(rows));
        self.nulled.clear();
    }

    /// Adds a JSON object as a row.
    fn line(&mut self, bytes: &[u8], reader: &JsonlReader<'_>) -> Result<(), Problem> {
        self.row += 1;
        let text = utf8(bytes)?;
        let (mut expected, mut found) = (0, 0);
        let Self { builders, by_name, last, row, on_error, nulled } = self;
        json::object::<Problem>(
            text,
            reader.nested,
            |key| is_wanted(reader.only, key),
            |key| reader.by_name.get(key).is_some_and(|column| reader.fields[*column].1 == ValueParser::Json),
            |key, token| {
                // Keys are usually in the same order in every row.
                let column = match builders.get(expected).filter(|builder| builder.name() == key) {
                    Some(_) => expected,
                    None => match by_name.get(&*key) {
                        Some(column) => *column,
                        // A null in place of an object.
                        None if token == Token::Null && reader.objects.contains(&*key) => return Ok(()),
                        None => return Err(Problem::in_column(&key, "not in the schema")),
                    },
                };
                if std::mem::replace(&mut last[column], *row) == *row {
                    return Err(Problem::in_column(&key, "duplicate key"));
                }
                let builder = &mut builders[column];
                if let Err(reason) = builder.push(token) {
                    if *on_error != OnError::Null || !builder.is_nullable() {
                        return Err(Problem::in_column(&key, &reason));
                    }
                    builder.pad_to(usize::try_from(*row).unwrap_or(usize::MAX));
                    nulled.push(super::parsed::in_column(&key, &reason));
                }
                expected = column + 1;
                found += 1;
                Ok(())
            },
        )?;
        if found < builders.len() {
            for (builder, last) in builders.iter_mut().zip(last) {
                if *last != *row {
                    if !builder.is_nullable() {
                        return Err(Problem::in_column(builder.name(), "missing in a non-nullable column"));
                    }
                    let pushed = builder.push(Token::Null);
                    pushed.map_err(|reason| Problem::in_column(builder.name(), &reason))?;
                }
            }
        }
        Ok(())
    }
}

/// The paths of the objects that have columns: `a` and `a.b` of `a.b.c`.
pub(super) fn objects<'a>(names: impl Iterator<Item = &'a str>) -> HashSet<String> {
    let paths = |name: &'a str| name.match_indices('.').map(move |(at, _)| name[..at].to_owned());
    names.flat_map(paths).collect()
}
