//! Reason an index is not used.

use thiserror::Error;

use crate::error;

/// Reason an index is not used. The file can be read without it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IndexError {
    /// It cannot be read as a message.
    #[error("{0}")]
    Message(Box<error::ErrorKind>),
    /// It is of a version that this library does not know.
    #[error("its version is {found}; supported: 1")]
    Version {
        /// The version.
        found: u64,
    },
    /// Something that every index has is missing, or of another kind.
    #[error("`{what}` is missing or invalid")]
    Missing {
        /// What.
        what: &'static str,
    },
    /// Two objects say that they are the same column.
    #[error("object {object} is a duplicate column")]
    DuplicateColumn {
        /// The second of them.
        object: u64,
    },
    /// It lists more messages than the file has room for.
    #[error("it lists {found} messages, but the bytes before it have room for {room} at most")]
    Count {
        /// Messages it lists.
        found: u64,
        /// The most that there can be.
        room: u64,
    },
    /// A message would end after the start of the index, or is too short to be one.
    #[error("message {message} has an invalid byte range: the messages end at byte {limit}")]
    InvalidSpan {
        /// The message.
        message: u64,
        /// Where the index starts.
        limit: u64,
    },
    /// Bytes that it lists as junk hold a message, or are too many to look at.
    #[error("it omits bytes {span}, which {}", if *is_seen { "hold a message" } else { "are too many to look at" })]
    Incomplete {
        /// The bytes.
        span: tercet_core::Span,
        /// Whether a message was found there.
        is_seen: bool,
    },
    /// The values of a key cannot be read.
    #[error("the values of `{}` are not a list in CBOR", tercet_core::escape::name(.key))]
    InvalidValues {
        /// The key.
        key: Box<str>,
    },
    /// A message has a value that is not in the list.
    #[error("the value of `{}` of message {message} is not among its values", tercet_core::escape::name(.key))]
    UnknownCode {
        /// The key.
        key: Box<str>,
        /// The message.
        message: u64,
    },
}

impl From<error::Error> for IndexError {
    fn from(error: error::Error) -> Self {
        Self::Message(Box::new(error.into_kind()))
    }
}
