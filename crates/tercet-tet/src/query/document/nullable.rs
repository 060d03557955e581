//! Keys that accept `null` for an absent value.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, IntoDeserializer as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A value, or null if it is absent. Other keys of the document reject null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nullable<T>(pub(crate) Option<T>);

impl<T> Default for Nullable<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Nullable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Null<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Null<T> {
            type Value = Option<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value or null")
            }
            fn visit_unit<E>(self) -> Result<Option<T>, E> {
                Ok(None)
            }
            fn visit_bool<E: Error>(self, value: bool) -> Result<Option<T>, E> {
                T::deserialize(value.into_deserializer()).map(Some)
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Option<T>, E> {
                T::deserialize(value.into_deserializer()).map(Some)
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<Option<T>, E> {
                T::deserialize(value.into_deserializer()).map(Some)
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Option<T>, E> {
                T::deserialize(value.into_deserializer()).map(Some)
            }
            fn visit_str<E: Error>(self, value: &str) -> Result<Option<T>, E> {
                T::deserialize(value.into_deserializer()).map(Some)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Option<T>, A::Error> {
                T::deserialize(SeqAccessDeserializer::new(seq)).map(Some)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Option<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Some)
            }
        }
        deserializer.deserialize_any(Null(PhantomData)).map(Self)
    }
}

impl<T: JsonSchema> JsonSchema for Nullable<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Nullable{}", T::schema_name()).into()
    }
    /// Uses `oneOf`, which [`without_null`] does not change.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"oneOf": [generator.subschema_for::<T>(), {"type": "null"}]})
    }
}

/// Removes null from the schemas of optional members: a key may be absent, but not null.
pub(super) fn without_null(schema: &mut Schema) {
    let Some(Value::Object(members)) = schema.get_mut("properties") else { return };
    for member in members.values_mut() {
        let Value::Object(member) = member else { continue };
        if let Some(Value::Array(types)) = member.get_mut("type") {
            types.retain(|name| name != "null");
            if let [only] = &types[..] {
                let only = only.clone();
                member.insert("type".to_owned(), only);
            }
        }
        if let Some(Value::Array(choices)) = member.get_mut("anyOf") {
            let null = serde_json::json!({"type": "null"});
            let before = choices.len();
            choices.retain(|choice| *choice != null);
            if let ([Value::Object(only)], true) = (&choices[..], choices.len() < before) {
                let only = only.clone();
                member.remove("anyOf");
                member.extend(only);
            }
        }
        if let Some(Value::Array(values)) = member.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
        // An optional member is absent by default.
        if member.get("default").is_some_and(Value::is_null) {
            member.remove("default");
        }
    }
}
