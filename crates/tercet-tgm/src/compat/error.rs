//! The error hierarchy of the documentation.

use std::io;

use tercet_core::{CommonError, SourceError};
use thiserror::Error;

use crate::cbor::CborError;
use crate::encode::EncodeError;
use crate::error::{Contradiction, Error, ErrorKind};
use crate::pipeline::PipelineError;
use crate::region::Region;

/// A result with the errors of the documentation.
pub type Result<T, E = TensogramError> = std::result::Result<T, E>;

/// The errors of the documentation, with the messages of [`crate::Error`](type@crate::Error).
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TensogramError {
    /// Invalid magic, truncated preamble, bad frame markers, missing postamble, frames out of order.
    #[error("framing: {0}")]
    Framing(String),
    /// CBOR that does not parse, or metadata that violates the format.
    #[error("metadata: {0}")]
    Metadata(String),
    /// Invalid parameters, payloads of the wrong length.
    #[error("encoding: {0}")]
    Encoding(String),
    /// A compressor failed or is not built in.
    #[error("compression: {0}")]
    Compression(String),
    /// An object or message that does not exist.
    #[error("object: {0}")]
    Object(String),
    /// I/O errors. The text names the file.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A hash mismatch: the bytes changed since they were written. The text names the file and the object.
    #[error("{}hash mismatch: {expected} expected, {actual} found", actual.prefix())]
    HashMismatch {
        /// The stored hash, 16 hex digits.
        expected: Digest,
        /// The hash of the bytes.
        actual: Digest,
    },
    /// A missing hash.
    #[error("missing hash: {0}")]
    MissingHash(String),
}

/// A hash in hexadecimal, and the place of the bytes. Dereferences to the digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    digits: String,
    place: Box<str>,
}

impl Digest {
    fn new(hash: u64, place: &str) -> Self {
        Self { digits: format!("{hash:016x}"), place: place.into() }
    }

    /// The file, message and object, and their bytes.
    pub fn place(&self) -> &str {
        &self.place
    }

    fn prefix(&self) -> String {
        if self.place.is_empty() { String::new() } else { format!("{}: ", self.place) }
    }
}

impl std::ops::Deref for Digest {
    type Target = str;

    fn deref(&self) -> &str {
        &self.digits
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.digits)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.digits
    }
}

/// An I/O error with the text of the complete error.
#[derive(Debug)]
struct Located {
    message: String,
    error: io::Error,
}

impl std::fmt::Display for Located {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Located {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

fn located(error: io::Error, message: String) -> io::Error {
    io::Error::new(error.kind(), Located { message, error })
}

impl From<Error> for TensogramError {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        let file = error.location().to_owned();
        Self::from_kind(error.into_kind(), message, &file)
    }
}

impl From<ErrorKind> for TensogramError {
    fn from(fault: ErrorKind) -> Self {
        let message = fault.to_string();
        Self::from_kind(fault, message, "")
    }
}

impl From<EncodeError> for TensogramError {
    fn from(error: EncodeError) -> Self {
        ErrorKind::from(error).into()
    }
}

impl From<CborError> for TensogramError {
    fn from(error: CborError) -> Self {
        Self::Metadata(error.to_string())
    }
}

impl TensogramError {
    fn from_kind(fault: ErrorKind, message: String, file: &str) -> Self {
        match fault {
            ErrorKind::Common(error) => Self::from_common(error, message, file),
            ErrorKind::MissingHash { .. } => Self::MissingHash(message),
            ErrorKind::CutMessage { .. }
            | ErrorKind::TruncatedStream { .. }
            | ErrorKind::DecoderStopped
            | ErrorKind::StaleIndex { .. }
            | ErrorKind::Encode(EncodeError::DuplicatePreceder | EncodeError::DanglingPreceder)
            | ErrorKind::Contradiction {
                what: Contradiction::Flag { .. } | Contradiction::Postamble { .. },
                ..
            } => Self::Framing(message),
            // Encoding, filter and compression are checked with the descriptor, but are not a matter of CBOR.
            ErrorKind::Encode(EncodeError::Descriptor { error, .. })
                if ["encoding", "filter", "compression"].contains(&&*error.key) =>
            {
                Self::Encoding(message)
            }
            ErrorKind::Cbor { .. }
            | ErrorKind::Metadata { .. }
            | ErrorKind::Contradiction { .. }
            | ErrorKind::Edit(_)
            | ErrorKind::Encode(
                EncodeError::Descriptor { .. }
                | EncodeError::Reserved { .. }
                | EncodeError::Value { .. }
                | EncodeError::TooManyEntries { .. }
                | EncodeError::PayloadLength { .. },
            ) => Self::Metadata(message),
            ErrorKind::Pipeline { error, .. } | ErrorKind::Encode(EncodeError::Pipeline { error, .. }) => {
                match *error {
                    PipelineError::Codec(_) => Self::Compression(message),
                    _ => Self::Encoding(message),
                }
            }
            ErrorKind::NoSuchMessage { .. }
            | ErrorKind::AfterGap { .. }
            | ErrorKind::IndexedGap { .. }
            | ErrorKind::IndexedTail { .. }
            | ErrorKind::NoSuchObject { .. }
            | ErrorKind::NoSuchElements { .. } => Self::Object(message),
            ErrorKind::PayloadLength { is_compressed: true, .. } => Self::Compression(message),
            ErrorKind::PayloadLength { .. }
            | ErrorKind::BufferSize { .. }
            | ErrorKind::CannotIndex { .. }
            | ErrorKind::Encode(_) => Self::Encoding(message),
        }
    }

    fn from_common(error: CommonError<Region>, message: String, file: &str) -> Self {
        match error {
            CommonError::Source(SourceError::Open(error) | SourceError::Read { error, .. })
            | CommonError::Write(error) => Self::Io(located(error, message)),
            CommonError::Checksum { region, span, mismatch } => {
                let place = if file.is_empty() { String::new() } else { format!("{file}: ") };
                let place = format!("{place}{region} (bytes {span})");
                let digest = |hash| Digest::new(hash, &place);
                Self::HashMismatch { expected: digest(mismatch.expected), actual: digest(mismatch.actual) }
            }
            CommonError::Malformed(_) => Self::Framing(message),
            CommonError::Limit(_) | CommonError::OutOfMemory(_) => Self::Encoding(message),
            _ => Self::Io(io::Error::other(message)),
        }
    }
}
