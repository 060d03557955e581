//! A serde deserializer for syntax trees; errors keep the position.

use std::fmt;
use std::ops::Range;

use serde::de::{self, DeserializeSeed, IntoDeserializer as _, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

use super::error::{QueryError, QueryErrorKind, excerpt, nearest};
use super::tree::{Entry, Node, Tree};

/// Deserializes a value from a tree.
pub(crate) fn from_node<'de, T: Deserialize<'de>>(node: &'de Node, text: &str) -> Result<T, QueryError> {
    T::deserialize(node).map_err(|error| error.finish(node.at.clone(), text))
}

/// An error that collects its position and key while it is propagated.
#[derive(Debug)]
pub(crate) struct DeError {
    reason: QueryErrorKind,
    /// The path of the value, innermost part first.
    path: Vec<Part>,
    at: Option<Range<usize>>,
}

#[derive(Debug)]
enum Part {
    Key(String),
    Number(usize),
}

impl DeError {
    fn new(reason: QueryErrorKind) -> Self {
        Self { reason, path: Vec::new(), at: None }
    }

    fn at(mut self, at: &Range<usize>) -> Self {
        self.at.get_or_insert_with(|| at.clone());
        self
    }

    fn inside(mut self, part: Part) -> Self {
        self.path.push(part);
        self
    }

    fn finish(self, root: Range<usize>, text: &str) -> QueryError {
        let mut key = String::new();
        for part in self.path.iter().rev() {
            match part {
                Part::Key(name) if key.is_empty() => key.push_str(name),
                Part::Key(name) => key = format!("{key}.{name}"),
                Part::Number(number) => key = format!("{key}[{number}]"),
            }
        }
        QueryError::new(self.reason, key, self.at.unwrap_or(root), text)
    }
}

impl fmt::Display for DeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl std::error::Error for DeError {}

impl de::Error for DeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(QueryErrorKind::Invalid { detail: message.to_string() })
    }
    fn invalid_type(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let found = match found {
            Unexpected::Unit | Unexpected::Option => return Self::new(QueryErrorKind::Null),
            Unexpected::Bool(value) => format!("`{value}`"),
            Unexpected::Unsigned(value) => format!("`{value}`"),
            Unexpected::Signed(value) => format!("`{value}`"),
            // With its fraction, so that `3.0` does not look like an integer.
            Unexpected::Float(value) => format!("`{value:?}`"),
            Unexpected::Str(value) => format!("`\"{}\"`", excerpt(value)),
            Unexpected::Seq => "a list".to_owned(),
            Unexpected::Map => "an object".to_owned(),
            other => other.to_string(),
        };
        Self::new(QueryErrorKind::WrongType { found, expected: describe_expected(&expected.to_string()) })
    }
    fn invalid_value(found: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::invalid_type(found, expected)
    }
    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let nearest = nearest(field, expected.iter().copied());
        Self::new(QueryErrorKind::UnknownKey { key: excerpt(field), nearest })
    }
    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::new(QueryErrorKind::not_found("unknown value", variant, expected.iter().copied()))
    }
    fn missing_field(field: &'static str) -> Self {
        Self::new(QueryErrorKind::MissingKey { key: field.to_owned() })
    }
}

/// The name of a value's type, for messages.
fn describe_expected(expected: &str) -> String {
    match expected {
        "u64" | "usize" => "a non-negative integer".to_owned(),
        "u32" => format!("an integer from 0 to {}", u32::MAX),
        "u16" => format!("an integer from 0 to {}", u16::MAX),
        "f64" => "a number".to_owned(),
        "a boolean" => "`true` or `false`".to_owned(),
        "a sequence" => "a list".to_owned(),
        other if other.starts_with("struct ") => "an object".to_owned(),
        other => other.to_owned(),
    }
}

impl<'de> de::Deserializer<'de> for &'de Node {
    type Error = DeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeError> {
        let value = match &self.value {
            Tree::Null => visitor.visit_unit(),
            Tree::Bool(value) => visitor.visit_bool(*value),
            Tree::Unsigned(value) => visitor.visit_u64(*value),
            Tree::Signed(value) => visitor.visit_i64(*value),
            Tree::Wide(_, value) | Tree::Float(value) => visitor.visit_f64(*value),
            Tree::Text(value) => visitor.visit_borrowed_str(value),
            Tree::List(list) => visitor.visit_seq(List { rest: list.iter().enumerate() }),
            Tree::Table(entries) => visitor.visit_map(Table { rest: entries.iter(), current: None }),
        };
        value.map_err(|error| error.at(&self.at))
    }

    /// null does not mean absent, except for types that allow it
    /// ([`Nullable`](super::document::Nullable)).
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeError> {
        match self.value {
            Tree::Null => Err(DeError::new(QueryErrorKind::Null).at(&self.at)),
            _ => visitor.visit_some(self),
        }
    }

    /// Integers of any size, for types that request them: the nearest float may be another number.
    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeError> {
        match self.value {
            Tree::Wide(value, _) => visitor.visit_i128(value).map_err(|error: DeError| error.at(&self.at)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeError> {
        match &self.value {
            Tree::Text(text) => {
                let deserializer = text.as_str().into_deserializer();
                visitor.visit_enum(deserializer).map_err(|error: DeError| error.at(&self.at))
            }
            Tree::Null => Err(DeError::new(QueryErrorKind::Null).at(&self.at)),
            other => {
                let reason = QueryErrorKind::WrongType {
                    found: other.kind().to_owned(),
                    expected: "a string".to_owned(),
                };
                Err(DeError::new(reason).at(&self.at))
            }
        }
    }

    /// A list is not an object, although serde would accept one.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeError> {
        if let Tree::List(_) = self.value {
            let reason =
                QueryErrorKind::WrongType { found: "a list".to_owned(), expected: "an object".to_owned() };
            return Err(DeError::new(reason).at(&self.at));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DeError> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map identifier ignored_any
    }
}

struct List<'de> {
    rest: std::iter::Enumerate<std::slice::Iter<'de, Node>>,
}

impl<'de> SeqAccess<'de> for List<'de> {
    type Error = DeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, DeError> {
        let Some((number, node)) = self.rest.next() else { return Ok(None) };
        seed.deserialize(node).map(Some).map_err(|error| error.inside(Part::Number(number)))
    }
}

struct Table<'de> {
    rest: std::slice::Iter<'de, Entry>,
    current: Option<&'de Entry>,
}

impl<'de> MapAccess<'de> for Table<'de> {
    type Error = DeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, DeError> {
        self.current = self.rest.next();
        let Some(entry) = self.current else { return Ok(None) };
        // The position of an unknown key is the key, not the object around it.
        let key = seed.deserialize(entry.key.as_str().into_deserializer());
        key.map(Some).map_err(|error: DeError| error.at(&entry.key_at).inside(Part::Key(excerpt(&entry.key))))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, DeError> {
        // serde requests a value only after a key.
        let Some(entry) = self.current.take() else { return Err(de::Error::custom("a value without a key")) };
        seed.deserialize(&entry.node).map_err(|error| error.inside(Part::Key(entry.key.clone())))
    }
}
