//! What can go wrong on the way from one format to another.

use tercet_core::{Class, Diagnose, Hint, Span};
use thiserror::Error;

use crate::npy;

/// A conversion that failed: on the side it is read from, or on the side it is written to.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A `.npy` file.
    #[error(transparent)]
    Npy(#[from] npy::Error),
    /// A `.tet` file.
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
