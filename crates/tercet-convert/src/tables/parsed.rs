//! What a chunk was parsed to.

use tercet_core::escape;
use tercet_tatami::Column;

use super::error::{Error, ErrorKind};
use super::json::{SyntaxError, TOO_MANY_ELEMENTS};
use super::reject::Reject;

/// A batch with the input line of each row.
#[derive(Debug, Default)]
pub struct Batch {
    /// One column for each field of the schema.
    pub columns: Vec<Column>,
    /// The line on which each row starts, from 1.
    pub lines: Vec<u64>,
}

impl Batch {
    /// Leaves out the rows that are marked.
    pub(super) fn without(self, is_bad: &[bool]) -> Self {
        let rows: Vec<usize> = (0..self.lines.len()).filter(|row| !is_bad[*row]).collect();
        Self {
            columns: self.columns.iter().map(|column| column.take(&rows)).collect(),
            lines: rows.iter().map(|row| self.lines[*row]).collect(),
        }
    }
}

/// The reason a record is rejected.
#[derive(Debug)]
pub(super) enum Problem {
    /// It breaks the rules of the format.
    Malformed(String),
    /// A value or name does not fit the schema.
    Value(String),
    /// It exceeds a limit.
    TooLarge(String),
}

impl Problem {
    pub(super) fn in_column(name: &str, reason: &str) -> Self {
        Self::Value(in_column(name, reason))
    }

    pub(super) fn reason(&self) -> &str {
        match self {
            Self::Malformed(reason) | Self::Value(reason) | Self::TooLarge(reason) => reason,
        }
    }

    /// The error of an input at a line.
    pub(super) fn into_error(self, input: &std::sync::Arc<str>, line: u64, is_sampled: bool) -> Error {
        let kind = match self {
            Self::Malformed(reason) => ErrorKind::Malformed { line, reason: reason.into() },
            Self::Value(reason) if is_sampled => ErrorKind::OutsideSample { line, reason: reason.into() },
            Self::Value(reason) => ErrorKind::Value { line, reason: reason.into() },
            Self::TooLarge(reason) => ErrorKind::TooLarge { line, reason: reason.into() },
        };
        Error::new(std::sync::Arc::clone(input), kind)
    }
}

impl From<SyntaxError> for Problem {
    fn from(SyntaxError { at, reason }: SyntaxError) -> Self {
        if reason == TOO_MANY_ELEMENTS {
            return Self::TooLarge(reason.to_owned());
        }
        Self::Malformed(format!("{reason} (byte {})", at + 1))
    }
}

pub(super) fn in_column(name: &str, reason: &str) -> String {
    format!("column `{}`: {reason}", escape::name(name))
}

/// A parsed chunk.
#[derive(Debug, Default)]
pub(super) struct ParsedChunk {
    pub(super) batch: Batch,
    pub(super) rejects: Vec<Reject>,
    /// The line of the first record that stops the reading, and the reason.
    pub(super) problem: Option<(u64, Problem)>,
}
