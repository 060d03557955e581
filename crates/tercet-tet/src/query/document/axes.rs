//! Axes: by number, decimal string or name.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, IntoDeserializer as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::MAX_AXES;
use crate::query::error::excerpt;

/// The length limit of axis names, in bytes.
const AXIS_NAME_BYTES: usize = 1024;

/// An axis by number, decimal string or name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AxisToken {
    Number(u64),
    /// A decimal string or a name.
    Text(String),
}

/// The axes of an operation in any form; an empty list means all, reduced to one value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Axes(pub(crate) Vec<AxisToken>);

impl fmt::Display for AxisToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Serialize for AxisToken {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AxisToken {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Token;
        impl Visitor<'_> for Token {
            type Value = AxisToken;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an axis: its number or its name")
            }
            fn visit_u64<E>(self, number: u64) -> Result<AxisToken, E> {
                Ok(AxisToken::Number(number))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<AxisToken, E> {
                // Files name their axes as they like.
                if !text.is_empty() && text.len() <= AXIS_NAME_BYTES {
                    return Ok(AxisToken::Text(text.to_owned()));
                }
                let rule = format!("a number or a name of 1 to {AXIS_NAME_BYTES} bytes");
                Err(E::custom(format!("`{}` is not an axis: expected {rule}", excerpt(text))))
            }
        }
        deserializer.deserialize_any(Token)
    }
}

/// An axis or a list of them.
struct One(Vec<AxisToken>);

impl<'de> Deserialize<'de> for One {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Forms { object: false }).map(One)
    }
}

impl<'de> Deserialize<'de> for Axes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Forms { object: true }).map(Axes)
    }
}

struct Forms {
    /// Whether `{"axis": …}` is one of the forms.
    object: bool,
}

impl<'de> Visitor<'de> for Forms {
    type Value = Vec<AxisToken>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an axis, a list of axes, or `[]` for all of them")
    }

    fn visit_u64<E>(self, number: u64) -> Result<Vec<AxisToken>, E> {
        Ok(vec![AxisToken::Number(number)])
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<AxisToken>, E> {
        AxisToken::deserialize(text.into_deserializer()).map(|token| vec![token])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<AxisToken>, A::Error> {
        let mut tokens = Vec::new();
        while let Some(token) = seq.next_element()? {
            if tokens.len() == MAX_AXES {
                return Err(A::Error::custom(format!("lists more than {MAX_AXES} axes")));
            }
            tokens.push(token);
        }
        Ok(tokens)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<AxisToken>, A::Error> {
        if !self.object {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Map, &self));
        }
        let mut axes = None;
        while let Some(key) = map.next_key_seed(AxisKey)? {
            let One(tokens) = map.next_value()?;
            if axes.replace(tokens).is_some() {
                return Err(A::Error::custom(format!("has both `axis` and `axes`; remove `{key}`")));
            }
        }
        axes.ok_or_else(|| A::Error::missing_field("axis"))
    }
}

/// `axis` or `axes`.
struct AxisKey;

impl<'de> serde::de::DeserializeSeed<'de> for AxisKey {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<&'static str, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for AxisKey {
    type Value = &'static str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`axis` or `axes`")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<&'static str, E> {
        match key {
            "axis" => Ok("axis"),
            "axes" => Ok("axes"),
            _ => Err(E::unknown_field(key, &["axis", "axes"])),
        }
    }
}

impl JsonSchema for AxisToken {
    fn schema_name() -> Cow<'static, str> {
        "Axis".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An axis: its number, or its name.",
            "anyOf": [
                {"type": "integer", "minimum": 0},
                {"type": "string", "minLength": 1, "maxLength": AXIS_NAME_BYTES},
            ],
        })
    }
}

impl JsonSchema for Axes {
    fn schema_name() -> Cow<'static, str> {
        "Axes".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let axis = generator.subschema_for::<AxisToken>();
        let list = json_schema!({"type": "array", "items": axis, "maxItems": MAX_AXES});
        let object = |key: &str| {
            json_schema!({
                "type": "object",
                "properties": {key: {"anyOf": [axis, list]}},
                "required": [key],
                "additionalProperties": false,
            })
        };
        json_schema!({
            "description": "The axes to reduce; `[]` means all axes, reduced to one value.",
            "anyOf": [axis, list, object("axis"), object("axes")],
        })
    }
}
