//! Reason a message cannot be changed as asked.

use std::fmt;
use std::sync::Arc;

use tercet_core::{Hint, escape};
use thiserror::Error;

/// Characters of a value that are told in a message.
const SHOWN: usize = 80;

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

/// Reason a message cannot be changed as asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EditError {
    /// A path that leads nowhere.
    #[error("`{}`: {reason}", escape::name(.path))]
    Path {
        /// The path.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A key that says what the bytes of an object are.
    #[error("`{}`: `{}` says what the stored bytes are and cannot be set", escape::name(.path), escape::name(.key))]
    Immutable {
        /// The path.
        path: String,
        /// The key in it.
        key: String,
    },
    /// Two changes of one place.
    #[error("`{}` and `{}` cannot both be set", escape::name(.first), escape::name(.second))]
    Twice {
        /// The path that was given first.
        first: String,
        /// The path of the same value, or of one around it or in it.
        second: String,
    },
    /// A value on the way to a key that holds no keys.
    #[error("`{}` cannot be set: `{}` is {found}, which holds no keys", escape::name(.path), escape::name(.at))]
    InTheWay {
        /// The path.
        path: String,
        /// The value in the way.
        at: String,
        /// What it is.
        found: &'static str,
    },
    /// Different values for one key of the messages that are merged.
    #[error(
        "`{}` is {} in {second}, but {} in {first}",
        escape::name(.key),
        display(.second_value),
        display(.first_value)
    )]
    Conflict {
        /// The key in `_extra_`.
        key: String,
        /// Where it was seen first.
        first: Origin,
        /// What it is there.
        first_value: String,
        /// Where it is something else.
        second: Origin,
        /// What it is there.
        second_value: String,
    },
}

impl EditError {
    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<Hint> {
        match self {
            Self::Immutable { .. } => Some(Hint::Recode),
            Self::Conflict { .. } => Some(Hint::ConflictStrategy),
            _ => None,
        }
    }
}

/// A value in a message: its first characters are enough.
fn display(value: &str) -> String {
    let cut: String = value.chars().take(SHOWN).collect();
    let more = if cut.len() < value.len() { "…" } else { "" };
    format!("`{}{more}`", escape::name(&cut))
}
