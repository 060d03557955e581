//! Errors of containers of any format.

use std::fmt;
use std::sync::Arc;

use tercet_core::publish::PublishError;
use tercet_core::{Class, Diagnostic, Hint, SourceError, Span};
use thiserror::Error;

use crate::other_format::{OtherFormat, OtherFormatSupport};

/// Error of a container of any format, with the location of the file.
///
/// The errors of the formats convert to it.
#[derive(Debug)]
pub struct Error(tercet_core::Error<ErrorKind>);

/// The kind of an error.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file cannot be opened or read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The file is not a container.
    #[error(transparent)]
    UnknownFormat(#[from] UnknownFormat),
    /// The output of a salvage is the damaged file itself.
    #[error(transparent)]
    OutputIsInput(#[from] OutputIsInput),
    /// The output file cannot be created or published.
    #[error(transparent)]
    Publish(Box<PublishError>),
    /// Error of a `.tet` file.
    #[error(transparent)]
    Tet(tercet_tet::ErrorKind),
    /// Error of a `.tgm` file.
    #[error(transparent)]
    Tgm(tercet_tgm::ErrorKind),
    /// Error of a `.tatami` file.
    #[error(transparent)]
    Tatami(tercet_tatami::ErrorKind),
}

impl Error {
    /// Attaches the location of a file to an error kind.
    pub fn new(location: Arc<str>, kind: impl Into<ErrorKind>) -> Self {
        Self(tercet_core::Error::new(location, kind.into()))
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

macro_rules! impl_from_format_error {
    ($($variant:ident, $format:ident;)*) => {$(
        impl From<$format::Error> for Error {
            fn from(error: $format::Error) -> Self {
                let location = error.location().into();
                Self::new(location, ErrorKind::$variant(error.into_kind()))
            }
        }
    )*};
}

impl_from_format_error! {
    Tet, tercet_tet;
    Tgm, tercet_tgm;
    Tatami, tercet_tatami;
}

impl From<PublishError> for Error {
    fn from(error: PublishError) -> Self {
        let location = error.path().to_string_lossy().into();
        Self::new(location, ErrorKind::Publish(error.into()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            // It names the path itself.
            ErrorKind::Publish(error) => error.fmt(f),
            _ => self.0.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

/// The output is the input file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the output is the damaged file itself; choose another path")]
#[non_exhaustive]
pub struct OutputIsInput;

impl Diagnostic for OutputIsInput {
    fn class(&self) -> Class {
        Class::Request
    }
}

/// A file that is not a container.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownFormat {
    /// Up to eight first bytes.
    pub head: Vec<u8>,
    /// The format of the file, if it is a well-known one.
    pub format: Option<OtherFormat>,
}

impl UnknownFormat {
    /// Number of first bytes in the message.
    const HEAD_LEN: usize = 8;

    /// A file with these first bytes.
    pub fn new(head: &[u8], format: Option<OtherFormat>) -> Self {
        Self { head: head.iter().copied().take(Self::HEAD_LEN).collect(), format }
    }
}

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.format {
            Some(format) if format.support() == OtherFormatSupport::None => {
                write!(f, "is {format}, which is not supported")
            }
            Some(format) => write!(f, "is {format}, not a Tercet container"),
            None if self.head.is_empty() => f.write_str("empty file"),
            None => write!(f, "unknown file format: starts with `{}`", self.head.escape_ascii()),
        }
    }
}

impl std::error::Error for UnknownFormat {}

impl Diagnostic for UnknownFormat {
    fn class(&self) -> Class {
        match self.format {
            Some(_) => Class::Unsupported,
            None => Class::Malformed,
        }
    }
    fn span(&self) -> Option<Span> {
        Span::at(0, self.head.len() as u64)
    }
    fn hint(&self) -> Option<Hint> {
        match self.format?.support() {
            OtherFormatSupport::Array => Some(Hint::ImportArray),
            OtherFormatSupport::Table => Some(Hint::ImportTable),
            OtherFormatSupport::Decompress => Some("decompress the file first".into()),
            OtherFormatSupport::Unpack => Some("extract its files first".into()),
            OtherFormatSupport::Collection => Some("open the directory of the collection".into()),
            OtherFormatSupport::None => None,
        }
    }
}

impl ErrorKind {
    fn inner(&self) -> &dyn Diagnostic {
        match self {
            Self::Source(error) => error,
            Self::UnknownFormat(error) => error,
            Self::OutputIsInput(error) => error,
            Self::Publish(error) => &**error,
            Self::Tet(error) => error,
            Self::Tgm(error) => error,
            Self::Tatami(error) => error,
        }
    }
}

impl Diagnostic for ErrorKind {
    fn class(&self) -> Class {
        self.inner().class()
    }
    fn span(&self) -> Option<Span> {
        self.inner().span()
    }
    fn hint(&self) -> Option<Hint> {
        self.inner().hint()
    }
    fn is_not_found(&self) -> bool {
        self.inner().is_not_found()
    }
    fn is_cancelled(&self) -> bool {
        self.inner().is_cancelled()
    }
    fn is_broken_pipe(&self) -> bool {
        self.inner().is_broken_pipe()
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
