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
    /// I/O errors.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A hash mismatch: the bytes changed since they were written.
    #[error("hash mismatch: {expected} expected, {actual} found")]
    HashMismatch {
        /// The stored hash, 16 hex digits.
        expected: String,
        /// The hash of the bytes.
        actual: String,
    },
    /// A missing hash.
    #[error("missing hash: {0}")]
    MissingHash(String),
}

impl From<Error> for TensogramError {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        Self::from_kind(error.into_kind(), message)
    }
}

impl From<ErrorKind> for TensogramError {
    fn from(fault: ErrorKind) -> Self {
        let message = fault.to_string();
        Self::from_kind(fault, message)
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
    fn from_kind(fault: ErrorKind, message: String) -> Self {
        match fault {
            ErrorKind::Common(error) => Self::from_common(error, message),
            ErrorKind::MissingHash { .. } => Self::MissingHash(message),
            ErrorKind::TruncatedStream { .. }
            | ErrorKind::DecoderStopped
            | ErrorKind::StaleIndex { .. }
            | ErrorKind::Encode(EncodeError::DuplicatePreceder | EncodeError::DanglingPreceder)
            | ErrorKind::Contradiction {
                what: Contradiction::Flag { .. } | Contradiction::Postamble { .. },
                ..
            } => Self::Framing(message),
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
                    PipelineError::Parameter(_) => Self::Metadata(message),
                    PipelineError::Codec(_) => Self::Compression(message),
                    _ => Self::Encoding(message),
                }
            }
            ErrorKind::NoSuchMessage { .. }
            | ErrorKind::NoSuchObject { .. }
            | ErrorKind::NoSuchElements { .. } => Self::Object(message),
            ErrorKind::PayloadLength { .. }
            | ErrorKind::BufferSize { .. }
            | ErrorKind::CannotIndex { .. }
            | ErrorKind::Encode(_) => Self::Encoding(message),
        }
    }

    fn from_common(error: CommonError<Region>, message: String) -> Self {
        match error {
            CommonError::Source(SourceError::Open(error) | SourceError::Read { error, .. })
            | CommonError::Write(error) => Self::Io(error),
            CommonError::Checksum { mismatch, .. } => Self::HashMismatch {
                expected: format!("{:016x}", mismatch.expected),
                actual: format!("{:016x}", mismatch.actual),
            },
            CommonError::Malformed(_) => Self::Framing(message),
            CommonError::Publish(error) => Self::Io(io::Error::other(error)),
            CommonError::Limit(_) | CommonError::OutOfMemory(_) => Self::Encoding(message),
            _ => Self::Io(io::Error::other(message)),
        }
    }
}
