//! The key `tercet` of an object: what a variable of another format was.
//!
//! ```json
//! {"dims": ["lat", "lon"], "kind": "char", "types": {"_FillValue": "f32"}, "masked": true,
//!  "axes": {"time": {"dtype": "int32", "attrs": {"units": "hours since 2024-01-01"}, "types": {}}}}
//! ```

use std::collections::BTreeMap;

use tercet_core::DType;
use tercet_tgm::{Entry, Value};

use super::keys;
use crate::arrays::{Attr, AttrData, Kind};

/// The name of the key.
pub(super) const KEY: &str = "tercet";

/// What a variable of another format was.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Special {
    /// The dimensions of the object.
    pub(crate) dims: Vec<String>,
    /// `char` or `string`, if the bytes are text.
    pub(crate) kind: Option<Kind>,
    /// Attributes of the variable, in order.
    pub(crate) attrs: Vec<Attr>,
    /// The dimensions that the messages are split along, with the type and attributes of their coordinates.
    pub(crate) axes: Vec<Axis>,
    /// Missing values are stored as masked ones; the values were those of `_FillValue`.
    pub(crate) masked: bool,
}

/// A dimension that messages are split along.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    pub(crate) name: String,
    /// The type of the coordinates; `None` without a coordinate variable.
    pub(crate) kind: Option<Kind>,
    pub(crate) attrs: Vec<Attr>,
    /// The position of the object, if the coordinates do not ascend or descend.
    pub(crate) index: Option<u64>,
}

fn type_name(kind: Kind) -> String {
    kind.to_string()
}

fn parse_kind(name: &str) -> Option<Kind> {
    match name {
        "char" => Some(Kind::Char),
        "string" => Some(Kind::String),
        other => other.parse::<DType>().ok().map(Kind::Number),
    }
}

/// Attributes as a list of `[name, value, type]`. The type is that of numbers.
fn attrs_value(attrs: &[Attr]) -> Value {
    let item = |attr: &Attr| {
        let mut item = vec![attr.name.as_str().into(), keys::value(&attr.value)];
        match &attr.value {
            AttrData::Numbers(numbers) => item.push(numbers.dtype.name().into()),
            AttrData::Json(_) => item.push("json".into()),
            _ => {}
        }
        Value::Array(item)
    };
    Value::Array(attrs.iter().map(item).collect())
}

fn parse_attrs(value: Option<&Value>) -> Option<Vec<Attr>> {
    value.and_then(Value::as_array).unwrap_or_default().iter().map(parse_attr).collect()
}

#[expect(clippy::single_match_else, reason = "the kinds of numbers")]
fn parse_attr(item: &Value) -> Option<Attr> {
    let item = item.as_array()?;
    let name = item.first()?.as_text()?;
    let value = item.get(1)?;
    let data = match item.get(2).and_then(Value::as_text) {
        None => keys::attribute(value),
        Some("json") => AttrData::Json(value.to_json()),
        Some(dtype) => {
            let dtype: DType = dtype.parse().ok()?;
            match value {
                // The numbers of an empty list have no type of their own.
                Value::Array(items) if items.is_empty() => {
                    AttrData::Numbers(crate::arrays::Numbers { dtype, bytes: Vec::new(), is_list: true })
                }
                _ => match keys::attribute(value) {
                    AttrData::Numbers(numbers) => AttrData::Numbers(numbers.converted(dtype)?),
                    // Integers beyond 64 bits signed.
                    _ => {
                        let items = value.as_array().unwrap_or(std::slice::from_ref(value));
                        let mut bytes = Vec::new();
                        for item in items {
                            let integer = crate::arrays::Number::Int(item.as_i128()?);
                            crate::arrays::push_number(dtype, integer, &mut bytes).then_some(())?;
                        }
                        AttrData::Numbers(crate::arrays::Numbers {
                            dtype,
                            bytes,
                            is_list: value.as_array().is_some(),
                        })
                    }
                },
            }
        }
    };
    Some(Attr { name: name.to_owned(), value: data })
}

impl Special {
    /// The value of the key.
    pub(super) fn to_value(&self) -> Value {
        let mut map = Entry::new();
        let dims = self.dims.iter().map(|dim| dim.as_str().into()).collect();
        map.insert("dims".to_owned(), Value::Array(dims));
        if let Some(kind) = self.kind {
            map.insert("kind".to_owned(), type_name(kind).into());
        }
        if !self.attrs.is_empty() {
            map.insert("attrs".to_owned(), attrs_value(&self.attrs));
        }
        if self.masked {
            map.insert("masked".to_owned(), true.into());
        }
        if !self.axes.is_empty() {
            let axis = |axis: &Axis| {
                let mut map: BTreeMap<String, Value> =
                    [("name".to_owned(), axis.name.as_str().into())].into();
                if let Some(kind) = axis.kind {
                    map.insert("dtype".to_owned(), type_name(kind).into());
                }
                if !axis.attrs.is_empty() {
                    map.insert("attrs".to_owned(), attrs_value(&axis.attrs));
                }
                if let Some(index) = axis.index {
                    map.insert("index".to_owned(), index.into());
                }
                map.into()
            };
            map.insert("axes".to_owned(), Value::Array(self.axes.iter().map(axis).collect()));
        }
        map.into()
    }

    /// Reads the value of the key; `None` if it is something else.
    pub(super) fn parse(value: &Value) -> Option<Self> {
        let texts = |value: &Value| -> Option<Vec<String>> {
            value.as_array()?.iter().map(|item| item.as_text().map(str::to_owned)).collect()
        };
        let kind = |value: &Value| value.as_text().and_then(parse_kind);
        let mut special = Self { dims: texts(value.get("dims")?)?, ..Self::default() };
        if let Some(value) = value.get("kind") {
            special.kind = Some(kind(value)?);
        }
        special.attrs = parse_attrs(value.get("attrs"))?;
        special.masked = value.get("masked") == Some(&Value::Bool(true));
        for item in value.get("axes").and_then(Value::as_array).unwrap_or_default() {
            let name = item.get("name")?.as_text()?.to_owned();
            let kind = match item.get("dtype") {
                Some(value) => Some(kind(value)?),
                None => None,
            };
            let index =
                item.get("index").and_then(Value::as_i128).and_then(|index| u64::try_from(index).ok());
            special.axes.push(Axis { name, kind, attrs: parse_attrs(item.get("attrs"))?, index });
        }
        Some(special)
    }
}
