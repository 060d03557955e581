//! Why a message cannot be written as asked.

use tercet_core::Class;
use thiserror::Error;

use crate::cbor::CborError;
use crate::metadata::MetadataError;

/// Why a message cannot be written as asked.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// A descriptor breaks the rules of the format.
    #[error("object {object}: {error}")]
    Descriptor {
        /// The object.
        object: u64,
        /// The rule.
        error: MetadataError,
    },
    /// A payload has another length than its descriptor needs.
    #[error("object {object}: the payload has {found} bytes, but its descriptor needs {expected}")]
    PayloadLength {
        /// The object.
        object: u64,
        /// Bytes given.
        found: u64,
        /// Bytes needed.
        expected: u64,
    },
    /// A stage of the pipeline that this build cannot do.
    #[error("object {object}: {stage} `{name}` cannot be encoded by this build")]
    Unsupported {
        /// The object.
        object: u64,
        /// `encoding`, `filter` or `compression`.
        stage: &'static str,
        /// What the descriptor says.
        name: Box<str>,
    },
    /// A key that belongs to the library.
    #[error("{place}: `_reserved_` belongs to the library and cannot be given")]
    Reserved {
        /// Where it was given.
        place: Box<str>,
    },
    /// More entries in `base` than objects.
    #[error("base has {entries} entries, but there are {objects} objects")]
    TooManyEntries {
        /// Entries given.
        entries: u64,
        /// Objects given.
        objects: u64,
    },
    /// A value that no reader would accept.
    #[error("{place}: {error}")]
    Value {
        /// Where it was given.
        place: Box<str>,
        /// What is wrong with it.
        error: CborError,
    },
    /// A message that was started and not finished, or whose writing failed.
    #[error("a message was started but not finished, so nothing can be written behind it")]
    Unfinished,
    /// A place in front of the objects, asked of a writer that does not know them yet.
    #[error("a streaming writer cannot put {what} before the objects")]
    Placement {
        /// The index or the hash list.
        what: &'static str,
    },
    /// Metadata for the next object, twice.
    #[error("the next object has a preceder already")]
    PrecederTwice,
    /// Metadata for an object that does not come.
    #[error("the message ends with a preceder whose object was not written")]
    DanglingPreceder,
    /// Sizes that no message can have.
    #[error("the message would have more than 2^63 bytes")]
    TooLarge,
}

impl EncodeError {
    /// The kind of failure.
    pub(crate) fn class(&self) -> Class {
        match self {
            Self::Unsupported { .. } => Class::Unsupported,
            Self::TooLarge => Class::Limit,
            _ => Class::Request,
        }
    }
}
