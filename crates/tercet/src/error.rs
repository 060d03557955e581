//! What can go wrong with a container of any format.

use std::fmt;

use tercet_core::{Class, Diagnose, Hint, SourceError, Span};
use thiserror::Error;

/// Reason a container could not be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// Its bytes could not be read.
    #[error(transparent)]
    Source(tercet_core::Error<SourceError>),
    /// It is in no format that is known here.
    #[error(transparent)]
    Unrecognised(tercet_core::Error<Unrecognised>),
    /// It is a `.tet` file.
    #[error(transparent)]
    Tet(#[from] tercet_tet::Error),
    /// It is a `.tgm` file.
    #[error(transparent)]
    Tgm(#[from] tercet_tgm::Error),
    /// It is a `.tatami` file.
    #[error(transparent)]
    Tatami(#[from] tercet_tatami::Error),
}

/// The first bytes of a file that belong to no format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unrecognised {
    /// Up to eight bytes.
    pub head: Vec<u8>,
}

impl fmt::Display for Unrecognised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.head.is_empty() {
            return f.write_str("is empty");
        }
        write!(f, "is in no format that is known here: it starts with `{}`", self.head.escape_ascii())
    }
}

impl std::error::Error for Unrecognised {}

impl Diagnose for Unrecognised {
    fn class(&self) -> Class {
        Class::Malformed
    }
    fn span(&self) -> Option<Span> {
        Span::at(0, self.head.len() as u64)
    }
}

impl Error {
    fn inner(&self) -> &dyn Diagnose {
        match self {
            Self::Source(error) => error,
            Self::Unrecognised(error) => error,
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
