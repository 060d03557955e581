//! The metadata of a message: one map per object, what the library adds, everything else.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cbor;
use crate::value::Value;

mod error;
mod lookup;
#[cfg(test)]
mod tests;

pub(crate) use error::{Keys, entry_of, items_of, text_of, type_error, u64_of, u64s_of};
pub use error::{MetadataError, MetadataErrorKind};

/// A map with text keys.
pub type Entry = BTreeMap<String, Value>;

/// The name under which this library writes messages.
pub(crate) const ENCODER: &str = "tercet";
/// The key of the maps that belong to the objects.
const BASE: &str = "base";
/// The key of what the library adds, to a message and to each object.
pub(crate) const RESERVED: &str = "_reserved_";
/// The key of everything else.
pub(crate) const EXTRA: &str = "_extra_";

/// The metadata of a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GlobalMetadata {
    /// Entry `i` belongs to object `i`. May be shorter than the list of objects.
    pub base: Vec<Entry>,
    /// Everything that is neither of an object nor of the library.
    pub extra: Entry,
    /// What the library adds to a message: time, identity, encoder.
    pub reserved: Entry,
}

impl GlobalMetadata {
    /// Whether the message says that this library wrote it.
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
                return Err(MetadataError::new(key, MetadataErrorKind::Twice { other: EXTRA }));
            }
            metadata.extra.insert(key, value);
        }
        Ok(metadata)
    }

    /// The body of a metadata frame. Empty sections are left out.
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

    /// What its writer said, without what the library added: as a new message can be made of it. Of keys that a map has
    /// twice the last one stays, which is the one that readers see.
    pub fn without_reserved(&self) -> Self {
        let mut kept = Self { reserved: Entry::new(), ..self.clone() };
        for entry in &mut kept.base {
            entry.remove(RESERVED);
        }
        let sections = kept.base.iter_mut().chain([&mut kept.extra]);
        sections.flat_map(|section| section.values_mut()).for_each(Value::keep_last_of_keys);
        kept
    }

    /// Puts the keys of a preceder over those of an object; values are replaced whole. Entries that are not there
    /// yet are added.
    pub(crate) fn merge_preceder(&mut self, object: usize, entry: Entry) {
        if self.base.len() <= object {
            self.base.resize_with(object + 1, Entry::new);
        }
        if let Some(merged) = self.base.get_mut(object) {
            merged.extend(entry);
        }
    }
}

/// Reads the body of a preceder: the entry of the object that follows it, without `_reserved_`.
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
