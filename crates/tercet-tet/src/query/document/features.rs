//! Filters, groups, windows and alignment.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use super::nullable::without_null;
use super::{AxisToken, MAX_AXES};
use crate::query::operation::Scalar;

/// A filter by value: all comparisons must hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = without_null, extend("minProperties" = 1))]
pub(crate) struct Filter {
    /// Equal.
    pub(crate) eq: Option<Finite>,
    /// Not equal.
    pub(crate) ne: Option<Finite>,
    /// Less; not with `le`.
    pub(crate) lt: Option<Finite>,
    /// Less or equal; not with `lt`.
    pub(crate) le: Option<Finite>,
    /// Greater; not with `ge`.
    pub(crate) gt: Option<Finite>,
    /// Greater or equal; not with `gt`.
    pub(crate) ge: Option<Finite>,
    /// NaN or the fill value of the dataset; not with comparisons.
    pub(crate) is_null: Option<True>,
    /// Neither NaN nor the fill value of the dataset.
    pub(crate) is_not_null: Option<True>,
}

/// A finite number; integers are exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Finite(pub(crate) Scalar);

impl<'de> Deserialize<'de> for Finite {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Finite;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a finite number")
            }
            fn visit_u64<E>(self, number: u64) -> Result<Finite, E> {
                Ok(Finite(Scalar::Whole(number.into())))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Finite, E> {
                Ok(Finite(Scalar::Whole(number.into())))
            }
            fn visit_i128<E>(self, number: i128) -> Result<Finite, E> {
                Ok(Finite(Scalar::Whole(number)))
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<Finite, E> {
                if number.is_finite() {
                    return Ok(Finite(Scalar::Float(number)));
                }
                Err(E::invalid_value(Unexpected::Float(number), &self))
            }
        }
        deserializer.deserialize_i128(Number)
    }
}

impl JsonSchema for Finite {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Finite".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number"})
    }
}

/// `true`. For `false`, omit the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct True;

impl<'de> Deserialize<'de> for True {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OnlyTrue;
        impl Visitor<'_> for OnlyTrue {
            type Value = True;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`true`, or absent")
            }
            fn visit_bool<E: Error>(self, value: bool) -> Result<True, E> {
                if value { Ok(True) } else { Err(E::invalid_value(Unexpected::Bool(value), &self)) }
            }
        }
        deserializer.deserialize_any(OnlyTrue)
    }
}

impl JsonSchema for True {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "True".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"const": true})
    }
}

/// The positions of an axis with one label.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LabelFilter {
    /// The axis.
    pub(crate) axis: AxisToken,
    /// The label.
    pub(crate) eq: String,
}

/// A list of axes: one group per position. An object: one group per label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupBy {
    pub(crate) by_labels: bool,
    pub(crate) axes: Vec<AxisToken>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "GroupByLabels")]
struct GroupByObject {
    /// The kind of group.
    #[serde(rename = "by")]
    _by: GroupKey,
    /// The axes.
    #[schemars(length(min = 1, max = MAX_AXES))]
    axes: Vec<AxisToken>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum GroupKey {
    Labels,
}

impl<'de> Deserialize<'de> for GroupBy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = GroupBy;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of axes, or `{\"by\": \"labels\", \"axes\": […]}`")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<GroupBy, A::Error> {
                let mut axes = Vec::new();
                while let Some(axis) = seq.next_element()? {
                    axes.push(axis);
                }
                Ok(GroupBy { by_labels: false, axes })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<GroupBy, A::Error> {
                let object = GroupByObject::deserialize(MapAccessDeserializer::new(map))?;
                Ok(GroupBy { by_labels: true, axes: object.axes })
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

impl JsonSchema for GroupBy {
    fn schema_name() -> Cow<'static, str> {
        "GroupBy".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let axis = generator.subschema_for::<AxisToken>();
        let object = generator.subschema_for::<GroupByObject>();
        let list = json_schema!({"type": "array", "items": axis, "minItems": 1, "maxItems": MAX_AXES});
        json_schema!({
            "description": "A list of axes: one group for each position. An object: one group for each label.",
            "anyOf": [list, object],
        })
    }
}

/// Windows along one axis.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = without_null)]
pub(crate) struct Window {
    /// The axis.
    pub(crate) axis: AxisToken,
    /// The number of positions of a window.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub(crate) size: u64,
    /// Bins or rolling windows.
    pub(crate) mode: Mode,
    /// The value of positions outside the axis.
    pub(crate) pad: Option<Pad>,
    /// The distance between rolling windows.
    #[schemars(range(min = 1))]
    pub(crate) step: Option<u64>,
    /// The end of the axis with which windows are aligned.
    pub(crate) align: Option<BinAlign>,
    /// A window with fewer elements is NaN.
    #[schemars(range(min = 1))]
    pub(crate) min_count: Option<u64>,
}

/// The kind of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// Adjacent windows.
    Bins,
    /// Overlapping windows.
    Rolling,
}

/// The value of positions outside the axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Pad {
    /// None: windows stay inside the axis.
    #[default]
    None,
    /// Zero.
    #[serde(rename = "0")]
    Zero,
    /// NaN.
    Nan,
    /// The fill value of the dataset.
    Fill,
}

/// The end of the axis with which windows are aligned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "WindowAlign")]
pub(crate) enum BinAlign {
    /// The start.
    #[default]
    Start,
    /// The end.
    End,
}

/// Compares axes with those of another dataset.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Align {
    /// The other dataset.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    pub(crate) with: String,
    /// The axes, which must exist in both datasets.
    #[schemars(length(min = 1, max = MAX_AXES))]
    pub(crate) axes: Vec<AxisToken>,
}
