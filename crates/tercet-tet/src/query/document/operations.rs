//! Operations with parameters.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, IntoDeserializer as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::nullable::without_null;
use super::{Axes, AxisToken, Nullable, plain_kind};
use crate::query::error::excerpt;
use crate::query::operation::{Kind, Method, Scalar};

/// An operation of the document, with its axes not resolved.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Specified {
    pub(crate) key: &'static str,
    pub(crate) kind: Kind,
    pub(crate) axes: Vec<AxisToken>,
}

impl Axes {
    pub(super) fn specify(&self, key: &'static str) -> Specified {
        // Exactly the keys of the plain kinds have only axes as their value; a test checks this.
        Specified { key, kind: plain_kind(key).unwrap_or(Kind::Count), axes: self.0.clone() }
    }
}

/// The axes of `axis` or `axes`; [`validate`](crate::query::validate) rejects both together.
fn either(axis: Option<&Axes>, axes: Option<&Axes>) -> Vec<AxisToken> {
    axis.or(axes).map(|axes| axes.0.clone()).unwrap_or_default()
}

/// `quantile`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = without_null)]
pub(crate) struct Quantile {
    /// The quantile, from 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    q: f64,
    /// The axes to reduce.
    axis: Option<Axes>,
    /// The same as `axis`.
    axes: Option<Axes>,
}

impl Quantile {
    pub(super) fn specify(&self, key: &'static str) -> Specified {
        let axes = either(self.axis.as_ref(), self.axes.as_ref());
        Specified { key, kind: Kind::Quantile { q: self.q }, axes }
    }
}

/// `histogram`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = without_null)]
pub(crate) struct Histogram {
    /// The number of bins.
    #[schemars(range(min = 1, max = 4096))]
    bins: u32,
    /// The lower end of the first bin; only together with `max`.
    #[serde(default)]
    pub(crate) min: Nullable<f64>,
    /// The upper end of the last bin; only together with `min`.
    #[serde(default)]
    pub(crate) max: Nullable<f64>,
    /// The axes to reduce.
    axis: Option<Axes>,
    /// The same as `axis`.
    axes: Option<Axes>,
}

impl Histogram {
    pub(super) fn specify(&self, key: &'static str) -> Specified {
        let axes = either(self.axis.as_ref(), self.axes.as_ref());
        let range = self.min.0.zip(self.max.0);
        Specified { key, kind: Kind::Histogram { bins: self.bins, range }, axes }
    }
}

/// `transform`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = without_null)]
pub(crate) struct Transform {
    /// The method.
    method: Method,
    /// The axes over which its statistics are computed.
    axis: Option<Axes>,
    /// The same as `axis`.
    axes: Option<Axes>,
}

impl Transform {
    pub(super) fn specify(&self, key: &'static str) -> Specified {
        let axes = either(self.axis.as_ref(), self.axes.as_ref());
        Specified { key, kind: Kind::Transform { method: self.method }, axes }
    }
}

/// `null_count`: axes in any form, or an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NullCount(NullCountObject);

#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = without_null, rename = "NullCountObject")]
struct NullCountObject {
    /// The axes to reduce.
    axis: Option<Axes>,
    /// The same as `axis`.
    axes: Option<Axes>,
    /// The fill value; by default that of the dataset.
    #[serde(default)]
    fill: Nullable<Fill>,
}

impl NullCount {
    pub(super) fn specify(&self, key: &'static str) -> Specified {
        let axes = either(self.0.axis.as_ref(), self.0.axes.as_ref());
        let fill = self.0.fill.0.map(|Fill(fill)| fill);
        Specified { key, kind: Kind::NullCount { fill }, axes }
    }
}

impl<'de> Deserialize<'de> for NullCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = NullCountObject;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an axis, a list of axes, `[]` for all of them, or `{\"fill\": …, \"axis\": …}`")
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<NullCountObject, E> {
                Axes::deserialize(number.into_deserializer()).map(plain)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<NullCountObject, E> {
                Axes::deserialize(text.into_deserializer()).map(plain)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<NullCountObject, A::Error> {
                Axes::deserialize(serde::de::value::SeqAccessDeserializer::new(seq)).map(plain)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<NullCountObject, A::Error> {
                NullCountObject::deserialize(serde::de::value::MapAccessDeserializer::new(map))
            }
        }
        fn plain(axes: Axes) -> NullCountObject {
            NullCountObject { axis: Some(axes), ..NullCountObject::default() }
        }
        deserializer.deserialize_any(Forms).map(Self)
    }
}

impl JsonSchema for NullCount {
    fn schema_name() -> Cow<'static, str> {
        "NullCount".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let axes = generator.subschema_for::<Axes>();
        let object = generator.subschema_for::<NullCountObject>();
        json_schema!({"anyOf": [axes, object]})
    }
}

/// A fill value: a number, or a number as a string.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fill(Scalar);

/// Parses a number, including NaN and infinities; integers are exact.
pub(crate) fn parse_scalar(text: &str) -> Option<Scalar> {
    let text = text.trim();
    let whole = text.parse().map(Scalar::Whole);
    whole.ok().or_else(|| text.parse().map(Scalar::Float).ok())
}

impl<'de> Deserialize<'de> for Fill {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a number as a string")
            }
            fn visit_u64<E>(self, number: u64) -> Result<Scalar, E> {
                Ok(Scalar::Whole(number.into()))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
                Ok(Scalar::Whole(number.into()))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Scalar, E> {
                Ok(Scalar::Float(number))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Scalar, E> {
                parse_scalar(text).ok_or_else(|| E::custom(format!("`{}` is not a number", excerpt(text))))
            }
        }
        deserializer.deserialize_any(Number).map(Self)
    }
}

impl JsonSchema for Fill {
    fn schema_name() -> Cow<'static, str> {
        "Fill".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let digits = r"[0-9]+\.?[0-9]*|\.[0-9]+";
        let pattern = format!(
            r"^\s*[+-]?(({digits})([eE][+-]?[0-9]+)?|[nN][aA][nN]|[iI][nN][fF]([iI][nN][iI][tT][yY])?)\s*$"
        );
        json_schema!({
            "description": "A number, or a number as a string.",
            "anyOf": [{"type": "number"}, {"type": "string", "pattern": pattern}],
        })
    }
}
