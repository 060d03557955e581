//! Errors of conversions between formats.

use std::fmt;
use std::sync::Arc;

use tercet_core::{Class, Diagnostic, Hint, Span};

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
    /// A result that the output format cannot hold.
    #[error("{0}")]
    Refused(Box<str>),
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
    /// The error of a format; `None` for a refusal.
    fn side(&self) -> Option<&dyn Diagnostic> {
        match self {
            Self::Npy(error) => Some(error),
            Self::Tet(error) => Some(error),
            Self::Refused(_) => None,
        }
    }
}

impl Diagnostic for ErrorKind {
    fn class(&self) -> Class {
        self.side().map_or(Class::Request, Diagnostic::class)
    }
    fn span(&self) -> Option<Span> {
        self.side().and_then(Diagnostic::span)
    }
    fn hint(&self) -> Option<Hint> {
        self.side().and_then(Diagnostic::hint)
    }
    fn is_not_found(&self) -> bool {
        self.side().is_some_and(Diagnostic::is_not_found)
    }
    fn is_cancelled(&self) -> bool {
        self.side().is_some_and(Diagnostic::is_cancelled)
    }
    fn is_broken_pipe(&self) -> bool {
        self.side().is_some_and(Diagnostic::is_broken_pipe)
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
