//! Errors of messages and files.

use std::fmt;

use tercet_core::{Class, CommonError, Diagnostic, Hint, Span, escape};
use thiserror::Error;

use crate::cbor::CborError;
use crate::edit::EditError;
use crate::encode::EncodeError;
use crate::metadata::MetadataError;
use crate::pipeline::PipelineError;
use crate::region::Region;

/// An error with the location of the file.
pub type Error = tercet_core::Error<ErrorKind>;

/// The kind of an error.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An error that all formats share: I/O, malformed bytes, checksums, limits, cancellation.
    #[error(transparent)]
    Common(CommonError<Region>),
    /// The body of a frame is not valid CBOR, or exceeds a limit.
    #[error("{}{region} (bytes {span})\n  {error}", if error.is_limit() { "" } else { "malformed " })]
    Cbor {
        /// The frame.
        region: Region,
        /// The bytes of the CBOR.
        span: Span,
        /// The error.
        error: CborError,
    },
    /// The metadata in a frame violates the format.
    #[error("malformed {region} (bytes {span})\n  {error}")]
    Metadata {
        /// The frame.
        region: Region,
        /// The bytes of the CBOR.
        span: Span,
        /// The error.
        error: MetadataError,
    },
    /// A frame has no hash, but the preamble announces hashes for all frames.
    #[error("{region} (bytes {span}) has no hash, but the preamble announces hashes for all frames")]
    MissingHash {
        /// The frame.
        region: Region,
        /// The bytes of the frame.
        span: Span,
    },
    /// Two parts of a message contradict each other.
    #[error("{region} (bytes {span}) contradicts the frames of the message\n  {what}")]
    Contradiction {
        /// The part that contradicts the frames.
        region: Region,
        /// The bytes of that part.
        span: Span,
        /// The contradiction.
        what: Contradiction,
    },
    /// A payload has the wrong length.
    #[error("{region} (bytes {span}): the payload has {found} bytes, but its descriptor needs {expected}")]
    PayloadLength {
        /// The object.
        region: Region,
        /// The bytes of the payload.
        span: Span,
        /// The length of the payload.
        found: u64,
        /// The length that the descriptor requires.
        expected: u64,
        /// Whether the payload is compressed.
        is_compressed: bool,
    },
    /// A payload cannot be decoded with the pipeline of its descriptor.
    #[error("{region} (bytes {span}) cannot be decoded\n  {error}")]
    Pipeline {
        /// The object.
        region: Region,
        /// The bytes of the payload.
        span: Span,
        /// The error.
        error: Box<PipelineError>,
    },
    /// Elements that do not exist.
    #[error("{region} has no elements {start} to {end}: it holds {elements}, numbered from 0")]
    NoSuchElements {
        /// The object.
        region: Region,
        /// The first requested element.
        start: u64,
        /// The end of the requested range, exclusive.
        end: u64,
        /// The number of elements.
        elements: u64,
    },
    /// A message that does not exist.
    #[error("has no message {index}: it holds {count}, numbered from 0")]
    NoSuchMessage {
        /// The requested number.
        index: u64,
        /// The number of messages.
        count: u64,
    },
    /// The message at the end of the file is incomplete.
    #[error("{cut}")]
    CutMessage {
        /// The part of the message that is in the file.
        cut: crate::scan::CutTail,
    },
    /// The number of a message is not certain: another one may be lost before it.
    #[error("message {index} follows a gap, in which messages may be lost\n  {gap}")]
    AfterGap {
        /// The requested number.
        index: u64,
        /// The first gap before it.
        gap: crate::gaps::Gap,
    },
    /// An object that does not exist.
    #[error("message {message} has no object {index}: it holds {count}, numbered from 0")]
    NoSuchObject {
        /// The message.
        message: u64,
        /// The requested number.
        index: u64,
        /// The number of objects.
        count: u64,
    },
    /// The index of the file is stale: the file was changed without updating it.
    #[error("the index lists message {message} at bytes {span}, but there is none")]
    StaleIndex {
        /// The message.
        message: u64,
        /// The byte range in the index.
        span: Span,
    },
    /// The index cannot be created.
    #[error("cannot index: {reason}")]
    CannotIndex {
        /// The reason.
        reason: Box<str>,
    },
    /// The file to index has a gap: an index would give the messages after it certain numbers.
    #[error("cannot index: {gap}; messages may be lost")]
    IndexedGap {
        /// The first gap.
        gap: crate::gaps::Gap,
    },
    /// The file to index ends inside a message, which would become a gap before the index.
    #[error("cannot index: {cut}")]
    IndexedTail {
        /// The incomplete message.
        cut: crate::scan::CutTail,
    },
    /// The caller's buffer has the wrong size.
    #[error("the buffer has {found} bytes, but the array has {expected}")]
    BufferSize {
        /// The length of the array in bytes.
        expected: u64,
        /// The length of the buffer in bytes.
        found: u64,
    },
    /// The stream ended inside a message.
    #[error("the stream ends inside message {message}, at byte {at}")]
    TruncatedStream {
        /// The number of the message.
        message: u64,
        /// The number of bytes in the stream.
        at: u64,
    },
    /// A decoder was used after an error.
    #[error("the decoder stopped at an earlier error")]
    DecoderStopped,
    /// The message cannot be encoded as requested.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The message cannot be edited as requested.
    #[error(transparent)]
    Edit(Box<EditError>),
}

tercet_core::impl_from_common!(ErrorKind, Region);

impl From<EditError> for ErrorKind {
    fn from(error: EditError) -> Self {
        Self::Edit(error.into())
    }
}

/// A contradiction between a part of a message and its frames.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Contradiction {
    /// The number of objects in an index or a hash list, or of entries in `base`.
    Count {
        /// The list.
        what: &'static str,
        /// The number of entries.
        found: u64,
        /// The number of objects.
        objects: u64,
    },
    /// A number in the index.
    Index {
        /// `offsets` or `lengths`.
        list: &'static str,
        /// The object.
        object: u64,
        /// The stored number.
        found: u64,
        /// The correct number.
        expected: u64,
    },
    /// A hash in a hash list.
    Hash {
        /// The object.
        object: u64,
        /// The stored hash.
        found: Box<str>,
        /// The hash in the frame of the object.
        expected: u64,
    },
    /// A flag of the preamble.
    Flag {
        /// The name of the flag.
        flag: &'static str,
        /// Whether it is set.
        set: bool,
    },
    /// A number of the postamble.
    Postamble {
        /// The field.
        field: &'static str,
        /// The stored number.
        found: u64,
        /// The correct number.
        expected: u64,
    },
    /// The message has no metadata frame.
    NoMetadata,
    /// A second metadata frame before or after the objects.
    SecondMetadata,
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { what, found, objects } => {
                write!(f, "{what} has {found} entries, but the message has {objects} objects")
            }
            Self::Index { list, object, found, expected } => {
                write!(f, "{list}[{object}] is {found}, but the object has {expected}")
            }
            Self::Hash { object, found, expected } => {
                let found = escape::name(found);
                write!(f, "hashes[{object}] is {found}, but the object has {expected:016x}")
            }
            Self::Flag { flag, set: true } => write!(f, "{flag} is set, but the message has no such frame"),
            Self::Flag { flag, set: false } => {
                write!(f, "{flag} is not set, but the message has such a frame")
            }
            Self::Postamble { field, found, expected } => {
                write!(f, "{field} is {found}, but must be {expected}")
            }
            Self::NoMetadata => f.write_str("the message has no metadata frame"),
            Self::SecondMetadata => f.write_str("it is the second one on its side of the objects"),
        }
    }
}

impl Diagnostic for ErrorKind {
    fn class(&self) -> Class {
        match self {
            Self::Common(error) => error.class(),
            Self::Cbor { error, .. } if error.is_limit() => Class::Limit,
            Self::Contradiction { what: Contradiction::NoMetadata, .. }
            | Self::Cbor { .. }
            | Self::Metadata { .. }
            | Self::PayloadLength { .. }
            | Self::AfterGap { .. }
            | Self::IndexedGap { .. }
            | Self::CutMessage { .. }
            | Self::IndexedTail { .. }
            | Self::TruncatedStream { .. } => Class::Malformed,
            Self::MissingHash { .. } | Self::Contradiction { .. } | Self::StaleIndex { .. } => Class::Corrupt,
            Self::Pipeline { error, .. } => error.class(),
            Self::Encode(error) => error.class(),
            Self::NoSuchMessage { .. }
            | Self::NoSuchObject { .. }
            | Self::NoSuchElements { .. }
            | Self::BufferSize { .. }
            | Self::CannotIndex { .. }
            | Self::DecoderStopped
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
            Self::AfterGap { gap, .. } | Self::IndexedGap { gap } => Some(gap.span),
            Self::CutMessage { cut } | Self::IndexedTail { cut } => Some(cut.span),
            _ => None,
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Common(CommonError::Checksum { .. })
            | Self::MissingHash { .. }
            | Self::Contradiction { .. } => Some(Hint::SkipChecksums),
            Self::Common(error) => error.hint(),
            Self::Cbor { error, .. } if error.is_limit() => Some(Hint::RaiseLimit),
            Self::StaleIndex { .. } => Some(Hint::RebuildIndex),
            Self::AfterGap { .. } => Some(Hint::AllowGaps),
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
