//! Errors of documents.

use std::io;
use std::sync::Arc;

#[cfg(feature = "arrow")]
use tercet_core::SourceError;
use tercet_core::progress::Cancelled;
use tercet_core::{Class, Diagnostic, Hint, escape};
use thiserror::Error;

use super::MAX_BYTES;

/// Error of a document file, with its name.
pub type Error = tercet_core::Error<ErrorKind>;

/// Kind of error.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file could not be opened.
    #[error("cannot open: {0}")]
    Open(io::Error),
    /// The file could not be read.
    #[error("cannot read: {0}")]
    Read(io::Error),
    /// The file has a binary format, not text.
    #[error("is {0}, not a document")]
    Binary(Box<str>),
    /// Two files have the same name, and so the same URL.
    #[error("has the same URL as {}: `{}`", escape::name(other), escape::name(name))]
    SameName {
        /// The other file.
        other: Arc<str>,
        /// The name.
        name: Box<str>,
    },
    /// A line breaks the rules of the format.
    #[error("line {line}{}: {reason}", column.map_or_else(String::new, |column| format!(", column {column}")))]
    Malformed {
        /// The line, from 1.
        line: u64,
        /// The column, from 1.
        column: Option<u64>,
        /// The reason.
        reason: Box<str>,
    },
    /// A document has no ID, or a field of another type.
    #[error("{unit} {number}: {reason}")]
    Document {
        /// What is counted: lines from 1, rows from 0.
        unit: &'static str,
        /// The number of the line or row.
        number: u64,
        /// The reason.
        reason: Box<str>,
    },
    /// The file has no such field, or one of another type.
    #[error("{0}")]
    Fields(Box<str>),
    /// A document is too long.
    #[error("{}document exceeds {} GiB", line.map_or_else(String::new, |line| format!("line {line}: ")), MAX_BYTES >> 30)]
    TooLarge {
        /// The first line of the document, in files of many documents.
        line: Option<u64>,
    },
    /// The file could not be read by position.
    #[cfg(feature = "arrow")]
    #[error(transparent)]
    Source(SourceError),
    /// Of a Parquet file.
    #[cfg(feature = "arrow")]
    #[error(transparent)]
    Parquet(Box<tercet_arrow::ErrorKind>),
    /// Of a `.tatami` file.
    #[error(transparent)]
    Tatami(Box<tercet_tatami::ErrorKind>),
    /// A segment of a collection that no update wrote.
    #[error("is a segment that no update wrote; an update would delete its documents")]
    NotUpdated,
    /// An invalid pattern of file names.
    #[error("invalid pattern `{}`: {reason}", escape::name(pattern))]
    Pattern {
        /// The pattern.
        pattern: Box<str>,
        /// The reason.
        reason: &'static str,
    },
    /// Reading was cancelled.
    #[error(transparent)]
    Cancelled(Cancelled),
}

impl Diagnostic for ErrorKind {
    fn class(&self) -> Class {
        match self {
            Self::Open(_) | Self::Read(_) => Class::Io,
            Self::Binary(_) => Class::Unsupported,
            Self::Malformed { .. } => Class::Malformed,
            Self::TooLarge { .. } => Class::Limit,
            #[cfg(feature = "arrow")]
            Self::Source(error) => error.class(),
            #[cfg(feature = "arrow")]
            Self::Parquet(kind) => kind.class(),
            Self::Tatami(kind) => kind.class(),
            Self::NotUpdated
            | Self::Pattern { .. }
            | Self::SameName { .. }
            | Self::Document { .. }
            | Self::Fields(_)
            | Self::Cancelled(_) => Class::Request,
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            #[cfg(feature = "arrow")]
            Self::Parquet(kind) => kind.hint(),
            Self::Tatami(kind) => kind.hint(),
            Self::NotUpdated => Some("update another directory".into()),
            _ => None,
        }
    }

    fn is_not_found(&self) -> bool {
        matches!(self, Self::Open(error) if error.kind() == io::ErrorKind::NotFound)
    }

    fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled(_))
    }
}
