//! The key `selection`: slices in the order of the axes, or by the names of axes.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer};

use super::nullable::without_null;
use super::{MAX_AXES, Nullable};

/// A selection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Selecting {
    /// One entry for each of the leading axes.
    List(Vec<AxisEntry>),
    /// Entries by the name or number of the axis.
    Named(Vec<(String, AxisEntry)>),
}

/// The selection of one axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AxisEntry {
    /// A number: a position in a list, a label by name.
    Number(f64),
    /// A string: `start:stop:step` or `...` in a list, a label or `FROM..TO` by name.
    Text(String),
    Object(Box<AxisObject>),
}

/// The selection of one axis as an object: positions, or labels.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = without_null)]
pub(crate) struct AxisObject {
    /// The first position; 0 by default. Negative positions count from the end.
    #[serde(default)]
    pub(crate) start: Nullable<Position>,
    /// The end, exclusive; by default the end of the axis.
    #[serde(default)]
    pub(crate) stop: Nullable<Position>,
    /// The step, not 0; 1 by default. A negative step reverses the order.
    #[serde(default)]
    pub(crate) step: Nullable<Position>,
    /// The label of the first position, instead of `start`.
    #[serde(default)]
    pub(crate) start_label: Nullable<String>,
    /// The label of the end, exclusive, instead of `stop`.
    #[serde(default)]
    pub(crate) stop_label: Nullable<String>,
    /// A single position, whose axis is not a dimension of the result. Negative positions count from the end.
    pub(crate) position: Option<Position>,
    /// The first label of a range; by default the first of the axis.
    #[serde(default)]
    pub(crate) from: Nullable<LabelValue>,
    /// The last label of a range, inclusive; by default the last of the axis.
    #[serde(default)]
    pub(crate) to: Nullable<LabelValue>,
    /// The label whose nearest one is selected.
    pub(crate) nearest: Option<LabelValue>,
    /// The maximum distance of the nearest label; of times in seconds.
    pub(crate) tolerance: Option<f64>,
}

impl AxisObject {
    /// Whether the object selects by labels, not by positions.
    pub(crate) fn has_labels(&self) -> bool {
        self.from.0.is_some() || self.to.0.is_some() || self.nearest.is_some()
    }

    /// Whether it has a range of positions or of exclusive labels.
    pub(crate) fn has_range(&self) -> bool {
        self.start.0.is_some()
            || self.stop.0.is_some()
            || self.step.0.is_some()
            || self.start_label.0.is_some()
            || self.stop_label.0.is_some()
    }
}

/// A position or a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position(pub(crate) i128);

impl Position {
    /// The nearest i64: numbers beyond its range are beyond every axis as well.
    pub(crate) fn to_i64(self) -> i64 {
        i64::try_from(self.0).unwrap_or(if self.0 < 0 { i64::MIN } else { i64::MAX })
    }
}

impl<'de> Deserialize<'de> for Position {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Whole;
        impl Visitor<'_> for Whole {
            type Value = Position;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer")
            }
            fn visit_u64<E>(self, number: u64) -> Result<Position, E> {
                Ok(Position(number.into()))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Position, E> {
                Ok(Position(number.into()))
            }
        }
        deserializer.deserialize_any(Whole)
    }
}

impl JsonSchema for Position {
    fn schema_name() -> Cow<'static, str> {
        "Position".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer"})
    }
}

/// A label: a number or a string.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LabelValue(pub(crate) crate::compute::Label);

impl<'de> Deserialize<'de> for LabelValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use crate::compute::Label;
        struct Value;
        impl Visitor<'_> for Value {
            type Value = LabelValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a string")
            }
            #[expect(clippy::cast_precision_loss, reason = "labels are compared as f64")]
            fn visit_u64<E>(self, number: u64) -> Result<LabelValue, E> {
                Ok(LabelValue(Label::Number(number as f64)))
            }
            #[expect(clippy::cast_precision_loss, reason = "labels are compared as f64")]
            fn visit_i64<E>(self, number: i64) -> Result<LabelValue, E> {
                Ok(LabelValue(Label::Number(number as f64)))
            }
            fn visit_f64<E>(self, number: f64) -> Result<LabelValue, E> {
                Ok(LabelValue(Label::Number(number)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<LabelValue, E> {
                Ok(LabelValue(Label::parse(text)))
            }
        }
        deserializer.deserialize_any(Value)
    }
}

impl JsonSchema for LabelValue {
    fn schema_name() -> Cow<'static, str> {
        "Label".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"description": "A label: a number or a string.", "type": ["number", "string"]})
    }
}

impl<'de> Deserialize<'de> for AxisEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = AxisEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a string, or an object such as `{\"start\": 0, \"stop\": 10}`")
            }
            #[expect(clippy::cast_precision_loss, reason = "positions beyond 2^53 are beyond every axis")]
            fn visit_u64<E>(self, number: u64) -> Result<AxisEntry, E> {
                Ok(AxisEntry::Number(number as f64))
            }
            #[expect(clippy::cast_precision_loss, reason = "positions beyond 2^53 are beyond every axis")]
            fn visit_i64<E>(self, number: i64) -> Result<AxisEntry, E> {
                Ok(AxisEntry::Number(number as f64))
            }
            fn visit_f64<E>(self, number: f64) -> Result<AxisEntry, E> {
                Ok(AxisEntry::Number(number))
            }
            fn visit_str<E>(self, text: &str) -> Result<AxisEntry, E> {
                Ok(AxisEntry::Text(text.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<AxisEntry, A::Error> {
                let object = AxisObject::deserialize(MapAccessDeserializer::new(map))?;
                Ok(AxisEntry::Object(Box::new(object)))
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

impl JsonSchema for AxisEntry {
    fn schema_name() -> Cow<'static, str> {
        "AxisSelection".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let object = generator.subschema_for::<AxisObject>();
        json_schema!({
            "description": "In a list: a position, or `start:stop:step` or `...` as a string. By name: a label, or \
                `FROM..TO` as a string. In both: an object.",
            "anyOf": [{"type": "number"}, {"type": "string"}, object],
        })
    }
}

impl<'de> Deserialize<'de> for Selecting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = Selecting;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list with one slice per axis, or an object by the names of axes")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Selecting, A::Error> {
                let mut list = Vec::new();
                while let Some(entry) = seq.next_element()? {
                    list.push(entry);
                }
                Ok(Selecting::List(list))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Selecting, A::Error> {
                let mut named = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    named.push(entry);
                }
                Ok(Selecting::Named(named))
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

impl JsonSchema for Selecting {
    fn schema_name() -> Cow<'static, str> {
        "Selection".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let entry = generator.subschema_for::<AxisEntry>();
        json_schema!({
            "anyOf": [
                {"type": "array", "items": entry, "maxItems": MAX_AXES + 1},
                {"type": "object", "additionalProperties": entry},
            ],
        })
    }
}
