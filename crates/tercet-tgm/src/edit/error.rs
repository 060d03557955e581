//! Errors of editing.

use std::fmt;
use std::sync::Arc;

use tercet_core::{Hint, escape};
use thiserror::Error;

/// The number of characters of a value in an error message.
const MAX_CHARS: usize = 80;

/// A message of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The name of the file.
    pub file: Arc<str>,
    /// The number of the message in it, from 0.
    pub message: u64,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {} of {}", self.message, escape::name(&self.file))
    }
}

/// The error of a message that cannot be edited as requested.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EditError {
    /// An invalid path.
    #[error("`{}`: {reason}", escape::name(.path))]
    Path {
        /// The path.
        path: String,
        /// The error.
        reason: &'static str,
    },
    /// A key that describes the stored bytes of an object.
    #[error("`{}`: `{}` describes the stored bytes and cannot be set", escape::name(.path), escape::name(.key))]
    Immutable {
        /// The path.
        path: String,
        /// The key.
        key: String,
    },
    /// Two changes of the same value.
    #[error("`{}` and `{}` cannot both be set", escape::name(.first), escape::name(.second))]
    Overlap {
        /// The first path.
        first: String,
        /// The second path: of the same value, of a map around it or of a value in it.
        second: String,
    },
    /// A value on the path that is not a map.
    #[error("`{}` cannot be set: `{}` is {found}, not a map", escape::name(.path), escape::name(.at))]
    NotAMap {
        /// The path.
        path: String,
        /// The path of that value.
        at: String,
        /// The type of that value.
        found: &'static str,
    },
    /// Merged messages have different values for a key.
    #[error(
        "`{}` is {} in {second}, but {} in {first}",
        escape::name(.key),
        display(.second_value),
        display(.first_value)
    )]
    Conflict {
        /// The key in `_extra_`.
        key: String,
        /// The message with the first value.
        first: Origin,
        /// The first value.
        first_value: String,
        /// The message with the other value.
        second: Origin,
        /// The other value.
        second_value: String,
    },
}

impl EditError {
    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<Hint> {
        match self {
            Self::Immutable { .. } => Some(Hint::Repack),
            Self::Conflict { .. } => Some(Hint::ConflictStrategy),
            _ => None,
        }
    }
}

/// The first characters of a value, quoted.
fn display(value: &str) -> String {
    let cut: String = value.chars().take(MAX_CHARS).collect();
    let more = if cut.len() < value.len() { "…" } else { "" };
    format!("`{}{more}`", escape::name(&cut))
}
