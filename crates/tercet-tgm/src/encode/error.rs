//! Reason a message cannot be written as asked.

use tercet_core::Class;
use thiserror::Error;

use crate::cbor::CborError;
use crate::metadata::MetadataError;
use crate::pipeline::PipelineError;

/// Reason a message cannot be written as asked.
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
    /// Values that cannot be stored as their descriptor asks.
    #[error("object {object}: {error}")]
    Pipeline {
        /// The object.
        object: u64,
        /// Reason not.
        error: Box<PipelineError>,
    },
    /// Masks in the descriptor of values that are not encoded yet: they are made from the values.
    #[error("object {object}: masks are made by the writer and cannot be given")]
    MasksGiven {
        /// The object.
        object: u64,
    },
    /// A bound on errors that is none.
    #[error("the largest error must be a number that is not negative, not {found}")]
    Bound {
        /// What was asked for.
        found: f64,
    },
    /// A pipeline that does not hold the bound that was asked for.
    #[error("object {object}: its pipeline changes a value by {found}, but at most {bound} is allowed")]
    Inexact {
        /// The object.
        object: u64,
        /// The largest error there is.
        found: f64,
        /// What was asked for.
        bound: f64,
    },
    /// Metadata under the key that states which bound an object holds, for an object that is to hold one.
    #[error("base[{object}]: `precision` is written by the library where a largest error is asked for")]
    PrecisionGiven {
        /// The object.
        object: u64,
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
    #[error("a message was started but not finished, so nothing can be written after it")]
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
            Self::Pipeline { error, .. } if error.is_unsupported() => Class::Unsupported,
            Self::TooLarge => Class::Limit,
            _ => Class::Request,
        }
    }
}
