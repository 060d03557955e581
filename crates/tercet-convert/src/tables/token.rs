//! Untyped values of the input.

use std::borrow::Cow;

/// An untyped value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Null,
    Bool(bool),
    /// The digits of a JSON number.
    Number(&'a str),
    /// A string.
    Text(Cow<'a, str>),
    /// An unquoted CSV field of any type.
    Loose(&'a str),
    List(Vec<Token<'a>>),
}

impl Token<'_> {
    /// The kind of value, for messages.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a bool",
            Self::Number(_) => "a number",
            Self::Text(_) | Self::Loose(_) => "a string",
            Self::List(_) => "a list",
        }
    }
}
