//! Errors of conversions between formats.

use std::fmt;
use std::sync::Arc;

use tercet_core::limits::LimitExceeded;
use tercet_core::progress::Cancelled;
use tercet_core::publish::PublishError;
use tercet_core::tensor::OutOfMemory;
use tercet_core::{Class, Diagnostic, Hint, SourceError, Span};

use crate::npy;

/// Conversion error with the location of the file: the input or the output.
#[derive(Debug)]
pub struct Error(tercet_core::Error<ErrorKind>);

/// The kind of an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Error of a `.npy` file.
    #[error(transparent)]
    Npy(npy::ErrorKind),
    /// Error of a `.tet` file.
    #[error(transparent)]
    Tet(tercet_tet::ErrorKind),
    /// Error of a `.tgm` file.
    #[error(transparent)]
    Tgm(tercet_tgm::ErrorKind),
    /// Error of a `.tatami` file.
    #[error(transparent)]
    Tatami(tercet_tatami::ErrorKind),
    /// A result that the output format cannot hold.
    #[error("{0}")]
    Refused(Box<str>),
    /// A file of another format that does not follow it.
    #[error("{0}")]
    Malformed(Box<str>),
    /// A feature of another format that is not supported.
    #[error("{0}")]
    Unsupported(Box<str>),
    /// The file has no format with arrays that is known.
    #[error("not an array file of a known format")]
    UnknownFormat,
    /// The output differs from the input.
    #[error("{0}")]
    Differs(Box<str>),
    /// The file could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The file could not be written.
    #[error("cannot write: {0}")]
    Write(std::io::Error),
    /// The file could not be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// A declared size exceeds a limit.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// Out of memory.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The operation was cancelled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl From<std::io::Error> for ErrorKind {
    fn from(error: std::io::Error) -> Self {
        match PublishError::recover(error) {
            Ok(error) => Self::Publish(error),
            Err(error) => Self::Write(error),
        }
    }
}

impl Error {
    /// Attaches the location of a file to an error kind.
    pub fn new(location: Arc<str>, kind: ErrorKind) -> Self {
        Self(tercet_core::Error::new(location, kind))
    }

    /// The path or URL, as it was opened.
    pub fn location(&self) -> &str {
        self.0.location()
    }

    /// The error kind.
    pub fn kind(&self) -> &ErrorKind {
        self.0.kind()
    }

    /// The error kind, without the location.
    pub fn into_kind(self) -> ErrorKind {
        self.0.into_kind()
    }
}

impl From<npy::Error> for Error {
    fn from(error: npy::Error) -> Self {
        let location = error.location().into();
        Self::new(location, ErrorKind::Npy(error.into_kind()))
    }
}

impl From<tercet_tet::Error> for Error {
    fn from(error: tercet_tet::Error) -> Self {
        let location = error.location().into();
        Self::new(location, ErrorKind::Tet(error.into_kind()))
    }
}

impl From<tercet_tgm::Error> for Error {
    fn from(error: tercet_tgm::Error) -> Self {
        let location = error.location().into();
        Self::new(location, ErrorKind::Tgm(error.into_kind()))
    }
}

impl From<tercet_tatami::Error> for Error {
    fn from(error: tercet_tatami::Error) -> Self {
        let location = error.location().into();
        Self::new(location, ErrorKind::Tatami(error.into_kind()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

impl ErrorKind {
    /// The error with its own diagnostic.
    fn side(&self) -> Option<&dyn Diagnostic> {
        match self {
            Self::Npy(error) => Some(error),
            Self::Tet(error) => Some(error),
            Self::Tgm(error) => Some(error),
            Self::Tatami(error) => Some(error),
            Self::Source(error) => Some(error),
            Self::Publish(error) => Some(error),
            _ => None,
        }
    }
}

impl Diagnostic for ErrorKind {
    fn class(&self) -> Class {
        match self {
            Self::Malformed(_) => Class::Malformed,
            Self::Unsupported(_) | Self::UnknownFormat => Class::Unsupported,
            Self::Differs(_) => Class::Corrupt,
            Self::Write(_) => Class::Io,
            Self::Limit(_) | Self::OutOfMemory(_) => Class::Limit,
            other => other.side().map_or(Class::Request, Diagnostic::class),
        }
    }
    fn span(&self) -> Option<Span> {
        self.side().and_then(Diagnostic::span)
    }
    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Limit(_) => Some(Hint::RaiseLimit),
            other => other.side().and_then(Diagnostic::hint),
        }
    }
    fn is_not_found(&self) -> bool {
        self.side().is_some_and(Diagnostic::is_not_found)
    }
    fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled(_)) || self.side().is_some_and(Diagnostic::is_cancelled)
    }
    fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write(error) if error.kind() == std::io::ErrorKind::BrokenPipe)
            || self.side().is_some_and(Diagnostic::is_broken_pipe)
    }
}

impl Diagnostic for Error {
    fn class(&self) -> Class {
        self.0.class()
    }
    fn span(&self) -> Option<Span> {
        self.0.span()
    }
    fn hint(&self) -> Option<Hint> {
        self.0.hint()
    }
    fn is_not_found(&self) -> bool {
        self.0.is_not_found()
    }
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
    fn is_broken_pipe(&self) -> bool {
        self.0.is_broken_pipe()
    }
}

impl From<tercet_core::tensor::CopyError> for ErrorKind {
    fn from(error: tercet_core::tensor::CopyError) -> Self {
        Self::Malformed(error.to_string().into())
    }
}
