//! Metadata that breaks the rules, and the checks that find it.

use std::fmt;

use tercet_core::escape;

use super::Entry;
use crate::value::Value;

/// Metadata that breaks the rules of the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataError {
    /// The path of the key, like `base[2].mars`. Empty for the whole structure.
    pub key: String,
    /// What is wrong with it.
    pub reason: MetadataErrorKind,
}

const _: () = assert!(size_of::<MetadataError>() <= 96);

impl MetadataError {
    pub(crate) fn new(key: impl Into<String>, reason: MetadataErrorKind) -> Self {
        Self { key: key.into(), reason }
    }
}

impl fmt::Display for MetadataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            write!(f, "the map {}", self.reason)
        } else {
            write!(f, "key `{}` {}", escape::name(&self.key), self.reason)
        }
    }
}

impl std::error::Error for MetadataError {}

/// The ways metadata can break the rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataErrorKind {
    /// A value of the wrong type.
    #[error("is {found}, but must be {allowed}")]
    Type {
        /// The type found, in words.
        found: &'static str,
        /// The types allowed, in words.
        allowed: &'static str,
    },
    /// A key that must be there is not.
    #[error("is missing")]
    Missing,
    /// A map whose keys must be texts has another one.
    #[error("has {found} as a key, but all keys must be strings")]
    NonTextKey {
        /// The type of the key found, in words.
        found: &'static str,
    },
    /// A key that is also in another section.
    #[error("is also in `{other}`")]
    Twice {
        /// The other section.
        other: &'static str,
    },
    /// An array of the wrong length.
    #[error("has {found} entries, but must have {allowed}")]
    Entries {
        /// The number of entries found.
        found: usize,
        /// The numbers allowed, in words.
        allowed: &'static str,
    },
    /// An integer outside the values allowed.
    #[error("is {found}, but must be {allowed}")]
    OutOfRange {
        /// The integer found.
        found: i128,
        /// The values allowed, in words.
        allowed: &'static str,
    },
    /// A text that is none of those allowed.
    #[error("is `{}`, but must be {allowed}", escape::name(.found))]
    Unknown {
        /// The text found.
        found: String,
        /// The texts allowed, in words.
        allowed: &'static str,
    },
    /// A number that must equal another one.
    #[error("is {found}, but must be {expected} ({because})")]
    Mismatch {
        /// The number found.
        found: u64,
        /// The number it must equal.
        expected: u64,
        /// What the expected number is.
        because: &'static str,
    },
    /// A span that leaves the bytes it must lie in.
    #[error("spans {length} bytes at offset {offset}, but the payload region has {region}")]
    OutOfBounds {
        /// Where the span starts.
        offset: u64,
        /// Its length in bytes.
        length: u64,
        /// Bytes of the region it must lie in.
        region: u64,
    },
    /// A product that is no 64-bit number.
    #[error("has a product of more than 64 bits")]
    Overflow,
}

/// Whose keys are read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keys<'a> {
    /// Those of a whole structure, which must not be tagged.
    Body,
    /// Those of the map with this path. Tags in front of it are ignored.
    At(&'a str),
}

/// A map with text keys. Of repeated keys the last one counts.
pub(crate) fn entry_of(value: Value, keys: Keys<'_>) -> Result<Entry, MetadataError> {
    let (value, path) = match keys {
        Keys::Body => (value, ""),
        Keys::At(path) => (value.into_untagged(), path),
    };
    let Value::Map(pairs) = value else { return Err(type_error(&value, path, "a map")) };
    let text = |(key, value)| match key {
        Value::Text(key) => Ok((key, value)),
        key => Err(MetadataError::new(path, MetadataErrorKind::NonTextKey { found: key.kind() })),
    };
    pairs.into_iter().map(text).collect()
}

/// The items of an array, tags in front of it ignored.
pub(crate) fn items_of(value: Value, path: &str) -> Result<Vec<Value>, MetadataError> {
    match value.into_untagged() {
        Value::Array(items) => Ok(items),
        value => Err(type_error(&value, path, "an array")),
    }
}

/// A text, tags in front of it ignored.
pub(crate) fn text_of(value: Value, path: &str) -> Result<String, MetadataError> {
    match value.into_untagged() {
        Value::Text(text) => Ok(text),
        value => Err(type_error(&value, path, "a string")),
    }
}

/// An unsigned integer.
pub(crate) fn u64_of(value: &Value, path: &str) -> Result<u64, MetadataError> {
    let Some(found) = value.as_i128() else {
        return Err(type_error(value, path, "an unsigned integer"));
    };
    let out_of_range = |_| MetadataErrorKind::OutOfRange { found, allowed: "0 to 2^64 - 1" };
    u64::try_from(found).map_err(|error| MetadataError::new(path, out_of_range(error)))
}

/// The items of an array of unsigned integers, tags in front of it ignored.
pub(crate) fn u64s_of(value: &Value, path: &str) -> Result<Vec<u64>, MetadataError> {
    let value = value.untagged();
    let items = value.as_array().ok_or_else(|| type_error(value, path, "an array"))?;
    let number = |(at, item): (usize, &Value)| match u64_of(item, "") {
        Ok(number) => Ok(number),
        Err(error) => Err(MetadataError::new(format!("{path}[{at}]"), error.reason)),
    };
    items.iter().enumerate().map(number).collect()
}

pub(crate) fn type_error(value: &Value, path: &str, allowed: &'static str) -> MetadataError {
    MetadataError::new(path, MetadataErrorKind::Type { found: value.kind(), allowed })
}
