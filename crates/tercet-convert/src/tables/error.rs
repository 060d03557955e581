//! Errors of CSV and JSONL tables.

use std::{fmt, io};

use tercet_core::progress::Cancelled;
use tercet_core::{Class, Diagnostic, Hint};
use thiserror::Error;

/// Error of a CSV or JSONL table, with the name of the input.
pub type Error = tercet_core::Error<ErrorKind>;

/// Kind of error.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input could not be read.
    #[error("cannot read: {0}")]
    Read(io::Error),
    /// The input is no UTF-8 text.
    #[error("{0}")]
    NonText(NonText),
    /// A record exceeds the maximum length.
    #[error("line {line}: record exceeds {} MiB", limit >> 20)]
    LineTooLong {
        /// The line, from 1.
        line: u64,
        /// The maximum in bytes.
        limit: u64,
    },
    /// A compressed file exceeds the maximum size.
    #[error("the decompressed file exceeds {limit} bytes")]
    UnpackedTooLong {
        /// The maximum.
        limit: u64,
    },
    /// A line breaks the rules of CSV or JSON.
    #[error("line {line}: {reason}")]
    Malformed {
        /// The line, from 1.
        line: u64,
        /// The reason.
        reason: Box<str>,
    },
    /// A value or a name does not fit the schema.
    #[error("line {line}: {reason}")]
    Value {
        /// The line, from 1.
        line: u64,
        /// The column and the reason.
        reason: Box<str>,
    },
    /// A record or a schema exceeds a limit.
    #[error("line {line}: {reason}")]
    TooLarge {
        /// The line, from 1.
        line: u64,
        /// The limit.
        reason: Box<str>,
    },
    /// A value does not fit the types inferred from a sample.
    #[error("line {line}: {reason}; the types are inferred from a sample")]
    OutsideSample {
        /// The line, from 1.
        line: u64,
        /// The column and the reason.
        reason: Box<str>,
    },
    /// None of the columns to read exists; the existing ones.
    #[error("no such columns")]
    NoSuchColumns(Box<[String]>),
    /// The inputs are not one table.
    #[error("{0}")]
    Inputs(Box<str>),
    /// The input is empty, and no schema is declared.
    #[error("empty input")]
    Empty,
    /// The input has no columns, and no schema is declared.
    #[error("no rows to infer a schema from")]
    NoRows,
    /// No type holds all values of a column.
    #[error("{0}")]
    Inference(Box<str>),
    /// Reading was cancelled.
    #[error(transparent)]
    Cancelled(Cancelled),
}

const _: () = assert!(size_of::<Error>() <= 24 && size_of::<ErrorKind>() <= 32);

impl Diagnostic for ErrorKind {
    fn class(&self) -> Class {
        match self {
            // Of a damaged compressed file.
            Self::Read(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
                ) =>
            {
                Class::Malformed
            }
            Self::Read(_) => Class::Io,
            Self::NonText(_) => Class::Unsupported,
            Self::LineTooLong { .. } | Self::UnpackedTooLong { .. } | Self::TooLarge { .. } => Class::Limit,
            Self::Malformed { .. } => Class::Malformed,
            Self::Value { .. }
            | Self::OutsideSample { .. }
            | Self::Inputs(_)
            | Self::NoSuchColumns(_)
            | Self::Empty
            | Self::NoRows
            | Self::Inference(_)
            | Self::Cancelled(_) => Class::Request,
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::NonText(found) => Some(found.hint()),
            Self::Empty | Self::NoRows | Self::Inference(_) => {
                Some("declare the columns and their types".into())
            }
            _ => None,
        }
    }

    fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled(_))
    }
}

/// Binary formats and encodings that are no UTF-8 text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the documentation")]
#[non_exhaustive]
pub enum NonText {
    Gzip,
    Zstd,
    Utf16,
    Zip,
    Parquet,
    Arrow,
    Tatami,
}

impl NonText {
    /// Detects a known format by the first bytes of the input.
    pub fn detect(start: &[u8]) -> Option<Self> {
        Some(match start {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Self::Utf16,
            [b'P', b'K', 3, 4, ..] => Self::Zip,
            [b'P', b'A', b'R', b'1', ..] => Self::Parquet,
            [b'A', b'R', b'R', b'O', b'W', b'1', 0, ..] => Self::Arrow,
            [b'T', b'A', b'T', b'1', ..] => Self::Tatami,
            _ => return None,
        })
    }

    /// What to do with such an input.
    pub fn hint(self) -> Hint {
        match self {
            Self::Gzip | Self::Zstd | Self::Zip => "decompress it first".into(),
            Self::Utf16 => "save it as UTF-8".into(),
            Self::Parquet | Self::Arrow | Self::Tatami => Hint::ImportTable,
        }
    }
}

impl fmt::Display for NonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip-compressed data, not text",
            Self::Zstd => "zstd-compressed data, not text",
            Self::Utf16 => "UTF-16 text, not UTF-8",
            Self::Zip => "ZIP archive, not text",
            Self::Parquet => "Parquet file, not text",
            Self::Arrow => "Arrow file, not text",
            Self::Tatami => ".tatami file, not text",
        })
    }
}
