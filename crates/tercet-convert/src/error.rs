//! Errors of conversions between formats.

use tercet_core::{Class, Diagnose, Hint, Span};
use thiserror::Error;

use crate::npy;

/// Conversion error: of the input or of the output.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// Error of a `.npy` file.
    #[error(transparent)]
    Npy(#[from] npy::Error),
    /// Error of a `.tet` file.
    #[error(transparent)]
    Tet(#[from] tercet_tet::Error),
}

impl Error {
    fn side(&self) -> &dyn Diagnose {
        match self {
            Self::Npy(error) => error,
            Self::Tet(error) => error,
        }
    }
}

impl Diagnose for Error {
    fn class(&self) -> Class {
        self.side().class()
    }
    fn span(&self) -> Option<Span> {
        self.side().span()
    }
    fn hint(&self) -> Option<Hint> {
        self.side().hint()
    }
    fn is_not_found(&self) -> bool {
        self.side().is_not_found()
    }
    fn is_cancelled(&self) -> bool {
        self.side().is_cancelled()
    }
    fn is_broken_pipe(&self) -> bool {
        self.side().is_broken_pipe()
    }
}
