//! What can go wrong with a message or a file of messages.

use std::fmt;

use tercet_core::{Class, CommonError, Diagnose, Hint, Span, escape};
use thiserror::Error;

use crate::cbor::{CborError, CborErrorKind};
use crate::edit::EditError;
use crate::encode::EncodeError;
use crate::metadata::MetadataError;
use crate::pipeline::PipelineError;
use crate::region::Region;

/// A fault together with the name of its file.
pub type Error = tercet_core::Error<ErrorKind>;

/// What went wrong.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An error of a kind that every format has: I/O, malformed bytes, checksums, limits, cancellation.
    #[error(transparent)]
    Common(CommonError<Region>),
    /// The body of a frame is no CBOR.
    #[error("malformed {region} (bytes {span})\n  {error}")]
    Cbor {
        /// The frame.
        region: Region,
        /// The CBOR.
        span: Span,
        /// What is wrong with it.
        error: CborError,
    },
    /// The CBOR of a frame says something that the format does not allow.
    #[error("malformed {region} (bytes {span})\n  {error}")]
    Metadata {
        /// The frame.
        region: Region,
        /// The CBOR.
        span: Span,
        /// What is wrong with it.
        error: MetadataError,
    },
    /// A frame carries no hash although its message says that every frame does.
    #[error("{region} (bytes {span}) carries no hash, but its message says that every frame does")]
    MissingHash {
        /// The frame.
        region: Region,
        /// Its bytes.
        span: Span,
    },
    /// Two parts of a message say different things.
    #[error("{region} (bytes {span}) contradicts the frames of the message\n  {what}")]
    Contradiction {
        /// The part that disagrees with the frames.
        region: Region,
        /// Its bytes.
        span: Span,
        /// What it says, and what is there.
        what: Contradiction,
    },
    /// A payload has another length than its descriptor needs.
    #[error("{region} (bytes {span}): the payload has {found} bytes, but its descriptor needs {expected}")]
    PayloadLength {
        /// The object.
        region: Region,
        /// Its payload.
        span: Span,
        /// Bytes found.
        found: u64,
        /// Bytes needed.
        expected: u64,
    },
    /// A payload that cannot be decoded as its descriptor says.
    #[error("{region} (bytes {span}) cannot be decoded\n  {error}")]
    Pipeline {
        /// The object.
        region: Region,
        /// Its payload.
        span: Span,
        /// What is wrong with it.
        error: Box<PipelineError>,
    },
    /// There are no such elements.
    #[error("{region} has no elements {start} to {end}: it holds {elements}, numbered from 0")]
    NoSuchElements {
        /// The object.
        region: Region,
        /// The first one asked for.
        start: u64,
        /// The one after the last.
        end: u64,
        /// Elements there are.
        elements: u64,
    },
    /// There is no message of this number.
    #[error("has no message {index}: it holds {count}, numbered from 0")]
    NoSuchMessage {
        /// The number asked for.
        index: u64,
        /// Messages there are.
        count: u64,
    },
    /// There is no object of this number.
    #[error("message {message} has no object {index}: it holds {count}, numbered from 0")]
    NoSuchObject {
        /// The message.
        message: u64,
        /// The number asked for.
        index: u64,
        /// Objects there are.
        count: u64,
    },
    /// The index of the file gives a message a place where there is none: the file was changed without updating it.
    #[error("the index lists message {message} at bytes {span}, but it is not there")]
    StaleIndex {
        /// The message.
        message: u64,
        /// Its place.
        span: Span,
    },
    /// The index cannot be made.
    #[error("cannot index: {reason}")]
    CannotIndex {
        /// Reason.
        reason: Box<str>,
    },
    /// The caller's buffer has another size than the array.
    #[error("the buffer has {found} bytes, but the array has {expected}")]
    BufferSize {
        /// Bytes of the array.
        expected: u64,
        /// Bytes of the buffer.
        found: u64,
    },
    /// The stream ended inside a message.
    #[error("the stream ends inside message {message}, at byte {at}")]
    CutStream {
        /// The message.
        message: u64,
        /// Bytes there were.
        at: u64,
    },
    /// A decoder was used after it had failed.
    #[error("the stream was given up after an earlier error")]
    GivenUp,
    /// The message cannot be written as asked.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The message cannot be changed as asked.
    #[error(transparent)]
    Edit(Box<EditError>),
}

tercet_core::impl_from_common!(ErrorKind, Region);

impl From<EditError> for ErrorKind {
    fn from(error: EditError) -> Self {
        Self::Edit(error.into())
    }
}

/// Something a message says about its frames that the frames deny.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Contradiction {
    /// The number of objects in an index or a hash list, or of entries in `base`.
    Count {
        /// What is counted.
        what: &'static str,
        /// The number it says.
        found: u64,
        /// Objects there are.
        objects: u64,
    },
    /// A number in the index.
    Index {
        /// `offsets` or `lengths`.
        list: &'static str,
        /// The object.
        object: u64,
        /// The number it says.
        found: u64,
        /// The number it should say.
        expected: u64,
    },
    /// A hash in a hash list.
    Hash {
        /// The object.
        object: u64,
        /// The hash it says.
        found: Box<str>,
        /// The hash in the frame of the object.
        expected: u64,
    },
    /// A flag of the preamble.
    Flag {
        /// Its name.
        flag: &'static str,
        /// Whether it is set.
        set: bool,
    },
    /// A number of the postamble.
    Postamble {
        /// The field.
        field: &'static str,
        /// The number it says.
        found: u64,
        /// The number it should say.
        expected: u64,
    },
    /// There is no metadata frame.
    NoMetadata,
    /// There are two metadata frames on the same side of the objects.
    SecondMetadata,
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { what, found, objects } => {
                write!(f, "{what} has {found} entries, but the message has {objects} objects")
            }
            Self::Index { list, object, found, expected } => {
                write!(f, "{list}[{object}] says {found}, but the object has {expected}")
            }
            Self::Hash { object, found, expected } => {
                let found = escape::name(found);
                write!(f, "hashes[{object}] says {found}, but the object has {expected:016x}")
            }
            Self::Flag { flag, set: true } => write!(f, "{flag} is set, but there is no such frame"),
            Self::Flag { flag, set: false } => write!(f, "{flag} is not set, but there is such a frame"),
            Self::Postamble { field, found, expected } => {
                write!(f, "{field} says {found}, but must be {expected}")
            }
            Self::NoMetadata => f.write_str("there is no metadata frame"),
            Self::SecondMetadata => f.write_str("it is the second one on its side of the objects"),
        }
    }
}

impl Diagnose for ErrorKind {
    fn class(&self) -> Class {
        match self {
            Self::Common(error) => error.class(),
            Self::Cbor { error, .. } if matches!(error.reason, CborErrorKind::Limit(_)) => Class::Limit,
            Self::Contradiction { what: Contradiction::NoMetadata, .. }
            | Self::Cbor { .. }
            | Self::Metadata { .. }
            | Self::PayloadLength { .. }
            | Self::CutStream { .. } => Class::Malformed,
            Self::MissingHash { .. } | Self::Contradiction { .. } | Self::StaleIndex { .. } => Class::Corrupt,
            Self::Pipeline { error, .. } => error.class(),
            Self::Encode(error) => error.class(),
            Self::NoSuchMessage { .. }
            | Self::NoSuchObject { .. }
            | Self::NoSuchElements { .. }
            | Self::BufferSize { .. }
            | Self::CannotIndex { .. }
            | Self::GivenUp
            | Self::Edit(_) => Class::Request,
        }
    }

    fn span(&self) -> Option<Span> {
        match self {
            Self::Common(error) => error.span(),
            Self::Cbor { span, .. }
            | Self::Metadata { span, .. }
            | Self::MissingHash { span, .. }
            | Self::Contradiction { span, .. }
            | Self::PayloadLength { span, .. }
            | Self::StaleIndex { span, .. }
            | Self::Pipeline { span, .. } => Some(*span),
            _ => None,
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Common(CommonError::Checksum { .. })
            | Self::MissingHash { .. }
            | Self::Contradiction { .. } => Some(Hint::SkipChecksums),
            Self::Common(error) => error.hint(),
            Self::StaleIndex { .. } => Some(Hint::RebuildIndex),
            Self::Pipeline { error, .. } | Self::Encode(EncodeError::Pipeline { error, .. }) => error.hint(),
            Self::Edit(error) => error.hint(),
            _ => None,
        }
    }

    fn is_not_found(&self) -> bool {
        matches!(self, Self::Common(error) if error.is_not_found())
    }

    fn is_cancelled(&self) -> bool {
        matches!(self, Self::Common(error) if error.is_cancelled())
    }

    fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Common(error) if error.is_broken_pipe())
    }
}
