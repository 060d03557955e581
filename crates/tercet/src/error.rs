//! Errors of containers of any format.

use std::fmt;

use tercet_core::{Class, Diagnose, Hint, SourceError, Span};
use thiserror::Error;

use crate::foreign::{Foreign, ForeignSupport};

/// Error of a container of any format.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be opened or read.
    #[error(transparent)]
    Source(tercet_core::Error<SourceError>),
    /// The file is not a container.
    #[error(transparent)]
    UnknownFormat(tercet_core::Error<UnknownFormat>),
    /// The output of a salvage is the damaged file itself.
    #[error(transparent)]
    OutputIsInput(tercet_core::Error<OutputIsInput>),
    /// The output file cannot be created or published.
    #[error(transparent)]
    Publish(Box<tercet_core::publish::PublishError>),
    /// Error of a `.tet` file.
    #[error(transparent)]
    Tet(#[from] tercet_tet::Error),
    /// Error of a `.tgm` file.
    #[error(transparent)]
    Tgm(#[from] tercet_tgm::Error),
    /// Error of a `.tatami` file.
    #[error(transparent)]
    Tatami(#[from] tercet_tatami::Error),
}

/// The output is the input file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the output is the damaged file itself; choose another path")]
#[non_exhaustive]
pub struct OutputIsInput;

impl Diagnose for OutputIsInput {
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
    pub foreign: Option<Foreign>,
}

impl UnknownFormat {
    /// Number of first bytes in the message.
    const HEAD_LEN: usize = 8;

    /// A file with these first bytes.
    pub fn new(head: &[u8], foreign: Option<Foreign>) -> Self {
        Self { head: head.iter().copied().take(Self::HEAD_LEN).collect(), foreign }
    }
}

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.foreign {
            Some(foreign) if foreign.support() == ForeignSupport::None => {
                write!(f, "is {foreign}, which is not supported")
            }
            Some(foreign) => write!(f, "is {foreign}, not a Tercet container"),
            None if self.head.is_empty() => f.write_str("empty file"),
            None => write!(f, "unknown file format: starts with `{}`", self.head.escape_ascii()),
        }
    }
}

impl std::error::Error for UnknownFormat {}

impl Diagnose for UnknownFormat {
    fn class(&self) -> Class {
        match self.foreign {
            Some(_) => Class::Unsupported,
            None => Class::Malformed,
        }
    }
    fn span(&self) -> Option<Span> {
        Span::at(0, self.head.len() as u64)
    }
    fn hint(&self) -> Option<Hint> {
        match self.foreign?.support() {
            ForeignSupport::Array => Some(Hint::ImportArray),
            ForeignSupport::Table => Some(Hint::ImportTable),
            ForeignSupport::Decompress => Some("decompress the file first".into()),
            ForeignSupport::Unpack => Some("extract its files first".into()),
            ForeignSupport::Collection => Some("open the directory of the collection".into()),
            ForeignSupport::None => None,
        }
    }
}

impl Error {
    fn inner(&self) -> &dyn Diagnose {
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

impl Diagnose for Error {
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
