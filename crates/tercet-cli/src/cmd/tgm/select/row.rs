//! The values of a message or of one of its objects, by key.

use std::borrow::Cow;
use std::cell::OnceCell;

use serde_json::{Map, Value as Json};
use tercet::tgm::{ArrayStats, Field, GlobalMetadata, Message, VERSION, Value, is_pipeline_parameter};

use super::Keys;
use crate::failure::Failure;
use crate::persona::is_reference;

/// The key of the wire format version, which every message has.
pub(in crate::cmd::tgm) const VERSION_KEY: &str = "version";
/// The text of a missing value.
const MISSING: &str = "N/A";

/// The values of some objects of a message: those of the first of them that has the key, else those of the message.
pub(in crate::cmd::tgm) struct Row<'a> {
    metadata: &'a GlobalMetadata,
    /// The message, unless only its metadata is known.
    message: Option<&'a Message>,
    objects: &'a [u64],
    stats: OnceCell<ArrayStats>,
}

impl<'a> Row<'a> {
    pub(in crate::cmd::tgm) fn new(
        metadata: &'a GlobalMetadata,
        message: Option<&'a Message>,
        objects: &'a [u64],
    ) -> Self {
        Self { metadata, message, objects, stats: OnceCell::new() }
    }

    /// The values of a message of which only metadata is known.
    pub(in crate::cmd::tgm) fn of_metadata(metadata: &'a GlobalMetadata, objects: &'a [u64]) -> Self {
        Self::new(metadata, None, objects)
    }

    /// The value of a key: `version`, metadata, or a field or pipeline parameter of the object. Metadata with the name of a field comes first.
    pub(in crate::cmd::tgm) fn value(&self, key: &str) -> Result<Option<Cow<'a, Value>>, Failure> {
        if key == VERSION_KEY {
            return Ok(Some(Cow::Owned(VERSION.into())));
        }
        match (self.look_up(key), Field::from_name(key).filter(|_| !is_reference())) {
            (Some(value), _) => Ok(Some(Cow::Borrowed(value))),
            (None, Some(field)) => self.field(field),
            (None, None) => self.pipeline_parameter(key),
        }
    }

    /// A parameter of the pipeline of the first object.
    fn pipeline_parameter(&self, key: &str) -> Result<Option<Cow<'a, Value>>, Failure> {
        let (Some(message), Some(&object)) = (self.message, self.objects.first()) else { return Ok(None) };
        if is_reference() || !is_pipeline_parameter(key) {
            return Ok(None);
        }
        Ok(message.object(object)?.pipeline_parameter(key).map(|value| Cow::Owned(value.clone())))
    }

    fn look_up(&self, key: &str) -> Option<&'a Value> {
        if is_reference() {
            return self.metadata.get(key);
        }
        self.metadata.get_for_objects(self.objects, key)
    }

    /// A field of the first object.
    fn field(&self, field: Field) -> Result<Option<Cow<'a, Value>>, Failure> {
        let Some(message) = self.message else {
            // Only metadata is known.
            return Ok(None);
        };
        if field == Field::Message {
            return Ok(Some(Cow::Owned(message.number().into())));
        }
        let Some(&object) = self.objects.first() else { return Ok(None) };
        let object = message.object(object)?;
        let value = if field.is_statistic() {
            let stats = if let Some(stats) = self.stats.get() {
                stats
            } else {
                let stats = object.stats()?;
                self.stats.get_or_init(|| stats)
            };
            stats.get(field)
        } else {
            object.field(field)?
        };
        Ok(Some(Cow::Owned(value)).filter(|value| **value != Value::Null))
    }

    /// The value of a key as text; `N/A` if it is missing.
    pub(in crate::cmd::tgm) fn text(&self, key: &str) -> Result<String, Failure> {
        let value = self.value(key)?;
        Ok(value.map_or_else(
            || MISSING.to_owned(),
            |value| match Field::from_name(key) {
                Some(Field::Shape) if !is_reference() && value.as_array().is_some() => shape_text(&value),
                _ => printed(&value).into_owned(),
            },
        ))
    }

    /// The values of the keys that exist, as JSON: typed, or strings in the form of the reference implementation.
    pub(in crate::cmd::tgm) fn json(&self, keys: &Keys) -> Result<Json, Failure> {
        let mut found = Map::new();
        for key in keys.iter() {
            if let Some(value) = self.value(key)? {
                let json = if is_reference() { printed(&value).into() } else { value.to_json() };
                found.insert(key.to_owned(), json);
            }
        }
        if is_reference() {
            found.sort_keys();
        }
        Ok(Json::Object(found))
    }
}

/// A value as printed.
pub(in crate::cmd::tgm) fn printed(value: &Value) -> Cow<'_, str> {
    value.as_text().map_or_else(|| value.printed().into(), Cow::Borrowed)
}

/// A shape as `2×3`; a scalar has none.
pub(in crate::cmd::tgm) fn shape_text(shape: &Value) -> String {
    let extents: Vec<String> = shape.as_array().unwrap_or_default().iter().map(Value::printed).collect();
    if extents.is_empty() { "scalar".to_owned() } else { extents.join("×") }
}
