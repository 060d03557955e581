//! A value of the input, before it is known which column it fits.

use std::borrow::Cow;

/// A value as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Null,
    Bool(bool),
    /// The digits of a JSON number.
    Number(&'a str),
    /// A text that is one.
    Text(Cow<'a, str>),
    /// A field of CSV: the column says what it is.
    Loose(&'a str),
    List(Vec<Token<'a>>),
}

impl Token<'_> {
    /// What it is, in words.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a bool",
            Self::Number(_) => "a number",
            Self::Text(_) | Self::Loose(_) => "a text",
            Self::List(_) => "a list",
        }
    }
}
