//! Errors of the message index.

#[cfg(any(unix, windows))]
use tercet_core::{Class, Diagnostic as _};
use thiserror::Error;

use crate::error;

/// The reason why an index is not used. The file can be read without it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IndexError {
    /// It is not a valid message.
    #[error("{0}")]
    Message(Box<error::ErrorKind>),
    /// The version is not supported.
    #[error("its version is {found}; supported: 1 and 2")]
    Version {
        /// The version.
        found: u64,
    },
    /// A required part is missing or has the wrong type.
    #[error("`{what}` is missing or invalid")]
    Missing {
        /// The part.
        what: &'static str,
    },
    /// Two objects are the same column.
    #[error("object {object} is a duplicate column")]
    DuplicateColumn {
        /// The second object.
        object: u64,
    },
    /// It lists more messages than fit into the file.
    #[error("it lists {found} messages, but the bytes before it have room for {room} at most")]
    Count {
        /// The number of messages listed.
        found: u64,
        /// The maximum number of messages.
        room: u64,
    },
    /// A message ends after the start of the index, or is too short.
    #[error("message {message} has an invalid byte range: the messages end at byte {limit}")]
    InvalidSpan {
        /// The number of the message.
        message: u64,
        /// The start of the index.
        limit: u64,
    },
    /// Bytes outside the listed messages contain a message, or are too many to check.
    #[error("it omits bytes {span}, which {}", if *is_seen { "hold a message" } else { "are too many to check" })]
    Incomplete {
        /// The bytes.
        span: tercet_core::Span,
        /// Whether a message was found.
        is_seen: bool,
    },
    /// The index file does not belong to the file as it is now.
    #[error("the index file is stale: it covers {covered} bytes, and the file has {len}")]
    Stale {
        /// The number of bytes that it covers.
        covered: u64,
        /// The length of the file.
        len: u64,
    },
    /// The index file belongs to another file of the same length.
    #[error("the index file is stale: it belongs to other bytes")]
    OtherFile,
    /// The values of a key cannot be read.
    #[error("the values of `{}` are not a list in CBOR", tercet_core::escape::name(.key))]
    InvalidValues {
        /// The key.
        key: Box<str>,
    },
    /// The code of a value is out of range.
    #[error("the value of `{}` of message {message} is not among its values", tercet_core::escape::name(.key))]
    UnknownCode {
        /// The key.
        key: Box<str>,
        /// The number of the message.
        message: u64,
    },
}

impl IndexError {
    /// Whether the index exceeds a limit of the reader.
    #[cfg(any(unix, windows))]
    pub(crate) fn is_limit(&self) -> bool {
        matches!(self, Self::Message(fault) if fault.class() == Class::Limit)
    }

    /// The error, if the index exceeds a limit of the reader: it may be valid.
    #[cfg(any(unix, windows))]
    pub(crate) fn into_limit(self) -> Option<error::ErrorKind> {
        match self {
            Self::Message(fault) if fault.class() == Class::Limit => Some(*fault),
            _ => None,
        }
    }
}

impl From<error::Error> for IndexError {
    fn from(error: error::Error) -> Self {
        Self::Message(Box::new(error.into_kind()))
    }
}
