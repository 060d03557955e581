//! Conversion of values to and from JSON.

use std::fmt::Write as _;

use serde::{Serialize, Serializer};
use serde_json::{Map, Number, Value as Json, json};

use super::Value;

/// The only key of a JSON object for a float that JSON cannot represent.
const FLOAT: &str = "$float";
/// The only key of a JSON object for a byte string, in hexadecimal.
const BYTES: &str = "$bytes";
/// The first key of a JSON object for a tag; the second one is `value`.
const TAG: &str = "$tag";
/// The only key of a JSON object for a map, as an array of pairs.
const MAP: &str = "$map";

impl Value {
    /// The value as JSON.
    ///
    /// What JSON cannot represent becomes an object: `{"$float": "nan"}` (also `inf`, `-inf`), `{"$bytes": "00ff"}`,
    /// `{"$tag": 1, "value": …}` and, for maps with keys that are not strings or are one of these names, `{"$map":
    /// [[key, value], …]}`. Integers outside 64 bits become strings of digits. The last of duplicate string keys is
    /// used.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Null => Json::Null,
            Self::Bool(bool) => Json::Bool(*bool),
            Self::Integer(integer) => {
                Number::from_i128(*integer).map_or_else(|| Json::String(integer.to_string()), Json::Number)
            }
            Self::Float(float) => Number::from_f64(*float).map_or_else(|| not_finite(*float), Json::Number),
            Self::Bytes(bytes) => json!({ BYTES: hex(bytes) }),
            Self::Text(text) => Json::String(text.clone()),
            Self::Array(items) => items.iter().map(Self::to_json).collect(),
            Self::Map(pairs) => object(pairs).unwrap_or_else(|| {
                let pairs = pairs.iter().map(|(key, value)| Json::from(vec![key.to_json(), value.to_json()]));
                json!({ MAP: pairs.collect::<Json>() })
            }),
            Self::Tag(tag, inner) => json!({ TAG: tag, "value": inner.to_json() }),
        }
    }

    /// The value of JSON: the inverse of [`to_json`](Self::to_json), except that a string of digits stays a
    /// string.
    pub fn from_json(json: &Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(bool) => Self::Bool(*bool),
            Json::Number(number) => number
                .as_i128()
                .map_or_else(|| Self::Float(number.as_f64().unwrap_or(f64::NAN)), Self::Integer),
            Json::String(text) => Self::Text(text.clone()),
            Json::Array(items) => Self::Array(items.iter().map(Self::from_json).collect()),
            Json::Object(object) => special(object).unwrap_or_else(|| {
                let pair = |(key, value): (&String, &Json)| (Self::Text(key.clone()), Self::from_json(value));
                Self::Map(object.iter().map(pair).collect())
            }),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

fn not_finite(float: f64) -> Json {
    let name = if float.is_nan() {
        "nan"
    } else if float > 0.0 {
        "inf"
    } else {
        "-inf"
    };
    json!({ FLOAT: name })
}

/// A map as a JSON object, unless its keys prevent it.
fn object(pairs: &[(Value, Value)]) -> Option<Json> {
    let plain = |key: &&str| ![FLOAT, BYTES, TAG, MAP].contains(key);
    if !pairs.iter().all(|(key, _)| key.as_text().as_ref().is_some_and(plain)) {
        return None;
    }
    let pair = |(key, value): &(Value, Value)| Some((key.as_text()?.to_owned(), value.to_json()));
    Some(Json::Object(pairs.iter().filter_map(pair).collect()))
}

/// The value of a JSON object with a special key.
fn special(object: &Map<String, Json>) -> Option<Value> {
    let mut entries = object.iter();
    let (first, second) = (entries.next()?, entries.next());
    match (first.0.as_str(), first.1, second, object.len()) {
        (FLOAT, Json::String(name), _, 1) => match name.as_str() {
            "nan" => Some(Value::Float(f64::NAN)),
            "inf" => Some(Value::Float(f64::INFINITY)),
            "-inf" => Some(Value::Float(f64::NEG_INFINITY)),
            _ => None,
        },
        (BYTES, Json::String(digits), _, 1) => unhex(digits).map(Value::Bytes),
        (MAP, Json::Array(pairs), _, 1) => {
            let pair = |pair: &Json| match pair.as_array()?.as_slice() {
                [key, value] => Some((Value::from_json(key), Value::from_json(value))),
                _ => None,
            };
            pairs.iter().map(pair).collect::<Option<_>>().map(Value::Map)
        }
        (TAG, Json::Number(tag), Some((key, inner)), 2) if key == "value" => {
            Some(Value::Tag(tag.as_u64()?, Box::new(Value::from_json(inner))))
        }
        _ => None,
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
    out
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}
