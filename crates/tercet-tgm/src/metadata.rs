//! The metadata of a message: an entry per object, a reserved section, everything else.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cbor;
use crate::value::Value;

mod error;
mod lookup;
#[cfg(test)]
mod tests;

pub(crate) use error::{Keys, entry_of, items_of, string_of, type_error, u64_of, u64s_of};
pub use error::{MetadataError, MetadataErrorKind};

/// A map with string keys.
pub type Entry = BTreeMap<String, Value>;

/// The name of this library as a writer of messages.
pub(crate) const ENCODER: &str = "tercet";
/// The key of the entries of the objects.
const BASE: &str = "base";
/// The key of what the library adds to a message and to each object.
pub(crate) const RESERVED: &str = "_reserved_";
/// The key of all other metadata.
pub(crate) const EXTRA: &str = "_extra_";

/// The metadata of a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GlobalMetadata {
    /// Entry `i` belongs to object `i`. May be shorter than the list of objects.
    pub base: Vec<Entry>,
    /// Metadata of the message, from the user.
    pub extra: Entry,
    /// Metadata that the library adds: time, UUID, encoder.
    pub reserved: Entry,
}

impl GlobalMetadata {
    /// Whether this library wrote the message, according to its metadata.
    pub(crate) fn is_ours(&self) -> bool {
        let name = self.reserved.get("encoder").and_then(|encoder| encoder.get("name")?.as_text());
        name == Some(ENCODER)
    }

    /// Reads the body of a metadata frame.
    ///
    /// Top-level keys other than `base`, `_extra_` and `_reserved_` go into [`extra`](Self::extra).
    pub fn from_value(value: Value) -> Result<Self, MetadataError> {
        let mut metadata = Self::default();
        let mut stray = Entry::new();
        for (key, value) in entry_of(value, Keys::Body)? {
            match key.as_str() {
                BASE => {
                    let entries = items_of(value, BASE)?.into_iter().enumerate();
                    metadata.base = entries
                        .map(|(at, entry)| entry_of(entry, Keys::At(&format!("{BASE}[{at}]"))))
                        .collect::<Result<_, _>>()?;
                }
                EXTRA => metadata.extra = entry_of(value, Keys::At(EXTRA))?,
                RESERVED => metadata.reserved = entry_of(value, Keys::At(RESERVED))?,
                _ => {
                    stray.insert(key, value);
                }
            }
        }
        for (key, value) in stray {
            if metadata.extra.contains_key(&key) {
                return Err(MetadataError::new(key, MetadataErrorKind::Duplicate { other: EXTRA }));
            }
            metadata.extra.insert(key, value);
        }
        Ok(metadata)
    }

    /// The body of a metadata frame. Empty sections are omitted.
    pub fn to_value(&self) -> Value {
        let mut pairs = Vec::new();
        if !self.base.is_empty() {
            let entries = self.base.iter().cloned().map(Value::from).collect();
            pairs.push((BASE.into(), Value::Array(entries)));
        }
        for (key, section) in [(EXTRA, &self.extra), (RESERVED, &self.reserved)] {
            if !section.is_empty() {
                pairs.push((key.into(), section.clone().into()));
            }
        }
        Value::Map(pairs)
    }

    /// The body of a metadata frame as canonical CBOR.
    pub fn to_cbor(&self) -> Vec<u8> {
        cbor::encode(&self.to_value())
    }

    /// The metadata of the user, without what the library added, for a new message. The last of duplicate keys is
    /// kept, which is the one that readers see.
    pub fn without_reserved(&self) -> Self {
        let mut kept = Self { reserved: Entry::new(), ..self.clone() };
        for entry in &mut kept.base {
            entry.remove(RESERVED);
        }
        let sections = kept.base.iter_mut().chain([&mut kept.extra]);
        sections.flat_map(|section| section.values_mut()).for_each(Value::keep_last_of_keys);
        kept
    }

    /// Merges a preceder into the entry of an object: its keys replace existing ones. Missing entries are added.
    pub(crate) fn merge_preceder(&mut self, object: usize, entry: Entry) {
        if self.base.len() <= object {
            self.base.resize_with(object + 1, Entry::new);
        }
        if let Some(merged) = self.base.get_mut(object) {
            merged.extend(entry);
        }
    }
}

/// Parses the body of a preceder: the entry of the next object, without `_reserved_`.
pub(crate) fn preceder_entry(value: Value) -> Result<Entry, MetadataError> {
    let mut base = GlobalMetadata::from_value(value)?.base;
    match (base.pop(), base.len()) {
        (Some(mut entry), 0) => {
            entry.remove(RESERVED);
            Ok(entry)
        }
        (last, rest) => {
            let found = rest + usize::from(last.is_some());
            Err(MetadataError::new(BASE, MetadataErrorKind::Entries { found, allowed: "exactly 1" }))
        }
    }
}

/// The body of a preceder.
pub(crate) fn preceder_to_value(entry: &Entry) -> Value {
    Value::Map(vec![(BASE.into(), Value::Array(vec![entry.clone().into()]))])
}
