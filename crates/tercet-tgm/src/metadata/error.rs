//! Errors of metadata, and the checks that return them.

use std::fmt;

use tercet_core::escape;

use super::Entry;
use crate::value::Value;

/// Metadata that violates the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataError {
    /// The path of the key, like `base[2].mars`. Empty for the top-level map.
    pub key: String,
    /// The error.
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

/// The errors of metadata.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataErrorKind {
    /// A value of the wrong type.
    #[error("is {found}, but must be {allowed}")]
    Type {
        /// The type found, with an article.
        found: &'static str,
        /// The types allowed.
        allowed: &'static str,
    },
    /// A required key is missing.
    #[error("is missing")]
    Missing,
    /// A key that is not a string.
    #[error("has {found} as a key, but all keys must be strings")]
    NonTextKey {
        /// The type of the key, with an article.
        found: &'static str,
    },
    /// A key that is also in another section.
    #[error("is also in `{other}`")]
    Duplicate {
        /// The other section.
        other: &'static str,
    },
    /// An array of the wrong length.
    #[error("has {found} entries, but must have {allowed}")]
    Entries {
        /// The number of entries.
        found: usize,
        /// The numbers allowed.
        allowed: &'static str,
    },
    /// An integer out of range.
    #[error("is {found}, but must be {allowed}")]
    OutOfRange {
        /// The integer found.
        found: i128,
        /// The values allowed.
        allowed: &'static str,
    },
    /// A string that is not one of those allowed.
    #[error("is `{}`, but must be {allowed}", escape::name(.found))]
    Unknown {
        /// The string found.
        found: String,
        /// The strings allowed.
        allowed: &'static str,
    },
    /// A number that differs from a redundant one.
    #[error("is {found}, but must be {expected} ({because})")]
    Mismatch {
        /// The number found.
        found: u64,
        /// The expected number.
        expected: u64,
        /// The origin of the expected number.
        because: &'static str,
    },
    /// A span that exceeds its region.
    #[error("spans {length} bytes at offset {offset}, but the payload region has {region}")]
    OutOfBounds {
        /// The start of the span.
        offset: u64,
        /// The length of the span in bytes.
        length: u64,
        /// The length of the region in bytes.
        region: u64,
    },
    /// A product that overflows 64 bits.
    #[error("has a product that overflows 64 bits")]
    Overflow,
}

/// The map whose keys are read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keys<'a> {
    /// The top-level map, which must not be tagged.
    Body,
    /// The map at this path; tags are ignored.
    At(&'a str),
}

/// A map with string keys. The last of duplicate keys is used.
pub(crate) fn entry_of(value: Value, keys: Keys<'_>) -> Result<Entry, MetadataError> {
    let (value, path) = match keys {
        Keys::Body => (value, ""),
        Keys::At(path) => (value.into_untagged(), path),
    };
    let Value::Map(pairs) = value else { return Err(type_error(&value, path, "a map")) };
    let string_key = |(key, value)| match key {
        Value::Text(key) => Ok((key, value)),
        key => Err(MetadataError::new(path, MetadataErrorKind::NonTextKey { found: key.kind() })),
    };
    pairs.into_iter().map(string_key).collect()
}

/// The items of an array; tags are ignored.
pub(crate) fn items_of(value: Value, path: &str) -> Result<Vec<Value>, MetadataError> {
    match value.into_untagged() {
        Value::Array(items) => Ok(items),
        value => Err(type_error(&value, path, "an array")),
    }
}

/// A string; tags are ignored.
pub(crate) fn string_of(value: Value, path: &str) -> Result<String, MetadataError> {
    match value.into_untagged() {
        Value::Text(string) => Ok(string),
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

/// An array of unsigned integers; tags are ignored.
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
