//! The contents of a file: names, shapes, key ranges, sizes.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::Serialize;
use tercet_core::Progress;

use crate::error::Error;
use crate::file::File;
use crate::message::Message;
use crate::metadata::{Entry, RESERVED};
use crate::value::Value;

/// The maximum number of names, of keys, and of distinct values of a key that are listed. Others are counted.
const MAX_LISTED: usize = 256;
/// The maximum depth of nested keys.
const MAX_DEPTH: usize = 4;
/// Messages that cannot be read and are listed.
const MAX_UNREADABLE: usize = 16;

/// What the messages of a file contain. Metadata and descriptors are read, no values.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Contents {
    /// The number of objects.
    pub objects: u64,
    /// The number of objects with a hash.
    pub hashed_objects: u64,
    /// The stored bytes of payloads and masks.
    pub stored_bytes: u64,
    /// The bytes of all decoded arrays.
    pub decoded_bytes: u64,
    /// The kinds of objects, in order of first occurrence.
    pub arrays: Vec<ArrayKind>,
    /// The keys with their values, in order.
    pub keys: Vec<KeyRange>,
    /// The times at which the first and the last message were written, as recorded by their writers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<(String, String)>,
    /// Messages that cannot be read: number and error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<(u64, String)>,
    /// The number of messages that cannot be read.
    pub unreadable_messages: u64,
}

/// Objects with the same name, type and shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ArrayKind {
    /// The `name` in the metadata.
    pub name: Option<String>,
    /// The element type.
    pub dtype: String,
    /// The extents.
    pub shape: Vec<u64>,
    /// The number of objects.
    pub count: u64,
}

/// The values of a key.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct KeyRange {
    /// The key; dots separate nested keys.
    pub key: String,
    /// The number of objects, or messages without objects, that have it.
    pub count: u64,
    /// The distinct values in order of first occurrence, at most 256.
    pub values: Vec<Value>,
    /// Whether there are more distinct values.
    pub has_more: bool,
    /// The minimum, if all values are numbers or all are strings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Value>,
    /// The maximum, if all values are numbers or all are strings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Value>,
    /// Whether values of different types were found.
    #[serde(skip)]
    is_mixed: bool,
}

impl File {
    /// Reads metadata and descriptors of all messages and sums them up. A message that cannot be read is listed.
    pub fn contents(&self, progress: &dyn Progress) -> Result<Contents, Error> {
        let mut contents = Contents::default();
        let mut keys: BTreeMap<String, KeyRange> = BTreeMap::new();
        for (message, number) in self.messages()?.zip(0..) {
            progress.check().map_err(|stop| Error::new(self.name().clone(), stop.into()))?;
            let added = message.and_then(|message| {
                progress.advance(message.span().len());
                contents.add(&message, &mut keys)
            });
            if let Err(error) = added {
                contents.unreadable_messages += 1;
                if contents.unreadable.len() < MAX_UNREADABLE {
                    contents.unreadable.push((number, error.kind().to_string().replace("\n  ", ": ")));
                }
            }
        }
        contents.keys = keys.into_values().collect();
        Ok(contents)
    }
}

impl Contents {
    fn add(&mut self, message: &Message, keys: &mut BTreeMap<String, KeyRange>) -> Result<(), Error> {
        let metadata = message.metadata();
        for object in message.objects() {
            let object = object?;
            let descriptor = object.descriptor();
            self.objects += 1;
            self.hashed_objects += u64::from(object.frame().hash().is_some());
            self.stored_bytes = self.stored_bytes.saturating_add(object.stored_len());
            let decoded = descriptor.elements().and_then(|elements| descriptor.dtype.byte_len(elements));
            self.decoded_bytes = self.decoded_bytes.saturating_add(decoded.unwrap_or(0));
            let name = metadata.get_for_objects(&[object.index()], "name").and_then(Value::as_text);
            let is_same = |kind: &&mut ArrayKind| {
                kind.name.as_deref() == name
                    && kind.dtype == descriptor.dtype.name()
                    && kind.shape == descriptor.shape
            };
            if let Some(kind) = self.arrays.iter_mut().find(is_same) {
                kind.count += 1;
            } else if self.arrays.len() < MAX_LISTED {
                self.arrays.push(ArrayKind {
                    name: name.map(str::to_owned),
                    dtype: descriptor.dtype.name().to_owned(),
                    shape: descriptor.shape.clone(),
                    count: 1,
                });
            }
            let entry = usize::try_from(object.index()).ok().and_then(|index| metadata.base.get(index));
            add_entry(entry.into_iter().chain([&metadata.extra]), keys);
        }
        if message.object_count() == 0 {
            add_entry([&metadata.extra].into_iter(), keys);
        }
        if let Some(time) = metadata.reserved.get("time").and_then(Value::as_text) {
            let (first, last) = self.written.take().unwrap_or_else(|| (time.to_owned(), time.to_owned()));
            self.written = Some((first.min(time.to_owned()), last.max(time.to_owned())));
        }
        Ok(())
    }
}

/// Adds the values of an object: its own ones first.
fn add_entry<'a>(entries: impl Iterator<Item = &'a Entry>, keys: &mut BTreeMap<String, KeyRange>) {
    let mut found: BTreeMap<String, &Value> = BTreeMap::new();
    for entry in entries {
        for (key, value) in entry.iter().filter(|(key, _)| *key != RESERVED && *key != "name") {
            leaves(key.clone(), value, 1, &mut found);
        }
    }
    for (key, value) in found {
        if let Some(range) = keys.get_mut(&key) {
            range.push(value);
        } else if keys.len() < MAX_LISTED {
            let mut range = KeyRange {
                key: key.clone(),
                count: 0,
                values: Vec::new(),
                has_more: false,
                min: None,
                max: None,
                is_mixed: false,
            };
            range.push(value);
            keys.insert(key, range);
        }
    }
}

fn leaves<'a>(path: String, value: &'a Value, depth: usize, found: &mut BTreeMap<String, &'a Value>) {
    match value {
        Value::Map(pairs) if depth < MAX_DEPTH && !pairs.is_empty() => {
            for (key, value) in pairs {
                leaves(format!("{path}.{}", key.printed()), value, depth + 1, found);
            }
        }
        _ => {
            found.entry(path).or_insert(value);
        }
    }
}

impl KeyRange {
    fn push(&mut self, value: &Value) {
        self.count += 1;
        if !self.values.iter().any(|known| known.is_same(value)) {
            if self.values.len() < MAX_LISTED {
                self.values.push(value.clone());
            } else {
                self.has_more = true;
            }
        }
        if self.is_mixed {
            return;
        }
        let (low, high) = (self.min.as_ref().unwrap_or(value), self.max.as_ref().unwrap_or(value));
        let (Some(below), Some(above)) = (order(value, low), order(value, high)) else {
            (self.min, self.max, self.is_mixed) = (None, None, true);
            return;
        };
        if self.min.is_none() || below == Ordering::Less {
            self.min = Some(value.clone());
        }
        if self.max.is_none() || above == Ordering::Greater {
            self.max = Some(value.clone());
        }
    }
}

/// The order of two numbers, or of two strings.
fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        (Value::Integer(left), Value::Integer(right)) => Some(left.cmp(right)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}
