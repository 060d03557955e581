//! Cursor over metadata values.

use ciborium::Value;

use super::types::{GlobalMetadata, Section};
use crate::metadata::{EXTRA, RESERVED};

/// The type of a metadata value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum MetaType {
    Null,
    Bool,
    Int,
    Float,
    String,
    Bytes,
    Array,
    Map,
}

/// A borrowed metadata value: a CBOR item, or a section of the metadata.
#[derive(Clone, Copy, Debug)]
pub struct MetaValue<'a>(Item<'a>);

#[derive(Clone, Copy, Debug)]
enum Item<'a> {
    Value(&'a Value),
    Section(&'a Section),
}

impl<'a> MetaValue<'a> {
    const fn value(value: &'a Value) -> Self {
        Self(Item::Value(value))
    }

    const fn item(&self) -> Option<&'a Value> {
        match self.0 {
            Item::Value(value) => Some(value),
            Item::Section(_) => None,
        }
    }

    /// The type. Tagged items count as null.
    pub fn value_type(&self) -> MetaType {
        match self.item() {
            None | Some(Value::Map(_)) => MetaType::Map,
            Some(Value::Bool(_)) => MetaType::Bool,
            Some(Value::Integer(_)) => MetaType::Int,
            Some(Value::Float(_)) => MetaType::Float,
            Some(Value::Text(_)) => MetaType::String,
            Some(Value::Bytes(_)) => MetaType::Bytes,
            Some(Value::Array(_)) => MetaType::Array,
            Some(_) => MetaType::Null,
        }
    }

    /// Whether the type is null.
    pub fn is_null(&self) -> bool {
        self.value_type() == MetaType::Null
    }

    /// The boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        self.item()?.as_bool()
    }

    /// The integer, if this is one that fits.
    pub fn as_i64(&self) -> Option<i64> {
        self.item()?.as_integer()?.try_into().ok()
    }

    /// The integer, if this is one that fits.
    pub fn as_u64(&self) -> Option<u64> {
        self.item()?.as_integer()?.try_into().ok()
    }

    /// The float, or an integer as a float.
    #[expect(clippy::cast_precision_loss, reason = "as documented")]
    pub fn as_f64(&self) -> Option<f64> {
        let item = self.item()?;
        item.as_float().or_else(|| Some(i128::from(item.as_integer()?) as f64))
    }

    /// The string, if this is one.
    pub fn as_str(&self) -> Option<&'a str> {
        self.item()?.as_text()
    }

    /// The bytes, if this is a byte string.
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        self.item()?.as_bytes().map(Vec::as_slice)
    }

    /// The number of items of an array or map; 0 for other values.
    pub fn len(&self) -> usize {
        match self.0 {
            Item::Section(section) => section.len(),
            Item::Value(Value::Array(items)) => items.len(),
            Item::Value(Value::Map(pairs)) => pairs.len(),
            Item::Value(_) => 0,
        }
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An item of an array.
    pub fn get_index(&self, index: usize) -> Option<MetaValue<'a>> {
        self.item()?.as_array()?.get(index).map(Self::value)
    }

    /// The value of a key of a map. The key is not a path.
    pub fn get_key(&self, key: &str) -> Option<MetaValue<'a>> {
        match self.0 {
            Item::Section(section) => section.get(key).map(Self::value),
            Item::Value(value) => lookup(value, key).map(Self::value),
        }
    }

    /// Whether a map has the key.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get_key(key).is_some()
    }

    /// The key at a position of a map, if it is a string.
    pub fn key_at(&self, index: usize) -> Option<&'a str> {
        match self.0 {
            Item::Section(section) => section.keys().nth(index).map(String::as_str),
            Item::Value(value) => value.as_map()?.get(index)?.0.as_text(),
        }
    }

    /// The value at a position of a map.
    pub fn value_at(&self, index: usize) -> Option<MetaValue<'a>> {
        match self.0 {
            Item::Section(section) => section.values().nth(index).map(Self::value),
            Item::Value(value) => value.as_map()?.get(index).map(|(_, value)| Self::value(value)),
        }
    }
}

/// The last of duplicate keys, which is the one that all readers see.
fn lookup<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    let pairs = value.as_map()?;
    pairs.iter().rev().find(|(found, _)| found.as_text() == Some(key)).map(|(_, value)| value)
}

fn walk<'a>(section: &'a Section, path: &str) -> Option<&'a Value> {
    let mut segments = path.split('.');
    let first = section.get(segments.next()?)?;
    segments.try_fold(first, lookup)
}

fn walk_object<'a>(section: &'a Section, path: &str) -> Option<&'a Value> {
    if path.split('.').next() == Some(RESERVED) { None } else { walk(section, path) }
}

impl GlobalMetadata {
    /// The number of entries of `base`.
    pub fn num_objects(&self) -> usize {
        self.base.len()
    }

    /// The value at a path like `mars.param`: of the first object that has it, else of `extra`.
    pub fn get_value(&self, path: &str) -> Option<&Value> {
        if let Some((EXTRA | "extra", path)) = path.split_once('.') {
            return walk(&self.extra, path);
        }
        let in_objects = || self.base.iter().find_map(|entry| walk_object(entry, path));
        in_objects().or_else(|| walk(&self.extra, path))
    }

    /// The value at a path in the entry of one object.
    pub fn get_value_at(&self, object: usize, path: &str) -> Option<&Value> {
        walk_object(self.base.get(object)?, path)
    }

    /// [`get_value`](Self::get_value) as a cursor.
    pub fn get(&self, path: &str) -> Option<MetaValue<'_>> {
        self.get_value(path).map(MetaValue::value)
    }

    /// [`get_value_at`](Self::get_value_at) as a cursor.
    pub fn get_at(&self, object: usize, path: &str) -> Option<MetaValue<'_>> {
        self.get_value_at(object, path).map(MetaValue::value)
    }

    /// Whether [`get_value`](Self::get_value) finds the path.
    pub fn contains(&self, path: &str) -> bool {
        self.get_value(path).is_some()
    }

    /// Whether [`get_value_at`](Self::get_value_at) finds the path.
    pub fn contains_at(&self, object: usize, path: &str) -> bool {
        self.get_value_at(object, path).is_some()
    }

    /// All metadata of an object, with `_reserved_`.
    pub fn object(&self, object: usize) -> Option<MetaValue<'_>> {
        self.base.get(object).map(|section| MetaValue(Item::Section(section)))
    }

    /// The section `extra`.
    pub fn extra_view(&self) -> MetaValue<'_> {
        MetaValue(Item::Section(&self.extra))
    }

    /// The section `reserved`.
    pub fn reserved_view(&self) -> MetaValue<'_> {
        MetaValue(Item::Section(&self.reserved))
    }
}
