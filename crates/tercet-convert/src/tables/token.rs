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
    /// A CSV field of any type.
    Loose(&'a str),
    /// A list of scalars and its JSON text.
    List(Vec<Token<'a>>, &'a str),
    /// The JSON text of an object, or of a list of lists or objects.
    Json(&'a str),
}

impl Token<'_> {
    /// The kind of value, for messages.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a bool",
            Self::Number(_) => "a number",
            Self::Text(_) | Self::Loose(_) => "a string",
            Self::List(..) => "a list",
            Self::Json(_) => "a nested value",
        }
    }
}
