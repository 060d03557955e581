//! Errors of encoding.

use tercet_core::Class;
use thiserror::Error;

use crate::cbor::CborError;
use crate::metadata::MetadataError;
use crate::pipeline::PipelineError;

/// The error of a message that cannot be encoded as requested.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// A descriptor violates the format.
    #[error("object {object}: {error}")]
    Descriptor {
        /// The object.
        object: u64,
        /// The rule.
        error: MetadataError,
    },
    /// A payload has the wrong length.
    #[error("object {object}: the payload has {found} bytes, but its descriptor needs {expected}")]
    PayloadLength {
        /// The object.
        object: u64,
        /// The given length in bytes.
        found: u64,
        /// The length that the descriptor requires.
        expected: u64,
    },
    /// Values that the pipeline of the descriptor cannot encode.
    #[error("object {object}: {error}")]
    Pipeline {
        /// The object.
        object: u64,
        /// The error.
        error: Box<PipelineError>,
    },
    /// A descriptor with masks; the encoder creates them.
    #[error("object {object}: the encoder creates masks; the descriptor must have none")]
    ReservedMasks {
        /// The object.
        object: u64,
    },
    /// A negative or infinite error bound.
    #[error("the maximum error must be finite and not negative, not {found}")]
    Bound {
        /// The requested bound.
        found: f64,
    },
    /// A pipeline that exceeds the requested error bound.
    #[error("object {object}: the maximum error is {found}, but at most {bound} is allowed")]
    Inexact {
        /// The object.
        object: u64,
        /// The maximum error.
        found: f64,
        /// The requested bound.
        bound: f64,
    },
    /// A user key `precision` in the metadata of an object with an error bound.
    #[error("base[{object}]: `precision` is reserved for the error bound of the object")]
    ReservedPrecision {
        /// The object.
        object: u64,
    },
    /// A reserved key.
    #[error("{path}: `_reserved_` is reserved for the library")]
    Reserved {
        /// The path of the key.
        path: Box<str>,
    },
    /// More entries in `base` than objects.
    #[error("base has {entries} entries, but there are {objects} objects")]
    TooManyEntries {
        /// The number of entries.
        entries: u64,
        /// The number of objects.
        objects: u64,
    },
    /// A value that no reader would accept.
    #[error("{path}: {error}")]
    Value {
        /// The path of the value.
        path: Box<str>,
        /// The error.
        error: CborError,
    },
    /// An incomplete message: it was not finished, or a write failed.
    #[error("the previous message is incomplete, so nothing can be written after it")]
    Unfinished,
    /// A frame before the objects, in a stream.
    #[error("a streaming encoder cannot write {what} before the objects")]
    Placement {
        /// The index or the hash list.
        what: &'static str,
    },
    /// Two preceders for one object.
    #[error("the next object already has a preceder")]
    DuplicatePreceder,
    /// A preceder without an object.
    #[error("the message ends with a preceder without an object")]
    DanglingPreceder,
    /// A message that is too large.
    #[error("the message is too large")]
    TooLarge,
}

impl EncodeError {
    /// The class.
    pub(crate) fn class(&self) -> Class {
        match self {
            Self::Pipeline { error, .. } if error.is_unsupported() => Class::Unsupported,
            Self::TooLarge => Class::Limit,
            _ => Class::Request,
        }
    }
}
