//! Scalars: keys, bounds and literals.

use std::cmp::Ordering;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;

use crate::column::{Column, Values};
use crate::schema::Type;

/// A single value.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the variants are the types")]
pub enum Scalar {
    Bool(bool),
    Int8(i8),
    Int16(i16),
    Int32(i32),
    /// Also timestamps in microseconds.
    Int64(i64),
    UInt8(u8),
    UInt16(u16),
    UInt32(u32),
    UInt64(u64),
    #[serde(with = "float_text")]
    Float32(f32),
    #[serde(with = "float_text")]
    Float64(f64),
    /// Strings, bytes and blobs.
    Bytes(Vec<u8>),
}

/// Floats as strings: JSON has no NaN and no infinities.
mod float_text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Scalar {
    /// The value as JSON: floats with the shortest digits of their type, NaN and infinities as strings, bytes as a string if they
    /// are text, else as base64.
    pub fn to_json(&self, is_text: bool) -> Json {
        let float = |value: f64| {
            serde_json::Number::from_f64(value).map_or_else(|| value.to_string().into(), Json::Number)
        };
        match self {
            Self::Bool(value) => (*value).into(),
            Self::Int8(value) => (*value).into(),
            Self::Int16(value) => (*value).into(),
            Self::Int32(value) => (*value).into(),
            Self::Int64(value) => (*value).into(),
            Self::UInt8(value) => (*value).into(),
            Self::UInt16(value) => (*value).into(),
            Self::UInt32(value) => (*value).into(),
            Self::UInt64(value) => (*value).into(),
            Self::Float32(value) => float(value.to_string().parse().unwrap_or(f64::from(*value))),
            Self::Float64(value) => float(*value),
            Self::Bytes(value) if is_text => String::from_utf8_lossy(value).into(),
            Self::Bytes(value) => STANDARD.encode(value).into(),
        }
    }

    /// The scalar encoding, used by zone maps, page statistics and bloom filters.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Bool(value) => vec![u8::from(*value)],
            Self::Int8(value) => value.to_le_bytes().to_vec(),
            Self::Int16(value) => value.to_le_bytes().to_vec(),
            Self::Int32(value) => value.to_le_bytes().to_vec(),
            Self::Int64(value) => value.to_le_bytes().to_vec(),
            Self::UInt8(value) => value.to_le_bytes().to_vec(),
            Self::UInt16(value) => value.to_le_bytes().to_vec(),
            Self::UInt32(value) => value.to_le_bytes().to_vec(),
            Self::UInt64(value) => value.to_le_bytes().to_vec(),
            Self::Float32(value) => value.to_le_bytes().to_vec(),
            Self::Float64(value) => value.to_le_bytes().to_vec(),
            Self::Bytes(value) => value.clone(),
        }
    }

    /// Parses the scalar encoding; `None` if the length is wrong.
    pub fn from_bytes(kind: Type, bytes: &[u8]) -> Option<Self> {
        Some(match kind {
            Type::Bool => match bytes {
                [0] => Self::Bool(false),
                [1] => Self::Bool(true),
                _ => return None,
            },
            Type::Int8 => Self::Int8(i8::from_le_bytes(bytes.try_into().ok()?)),
            Type::Int16 => Self::Int16(i16::from_le_bytes(bytes.try_into().ok()?)),
            Type::Int32 => Self::Int32(i32::from_le_bytes(bytes.try_into().ok()?)),
            Type::Int64 | Type::TimestampMicros => Self::Int64(i64::from_le_bytes(bytes.try_into().ok()?)),
            Type::UInt8 => Self::UInt8(u8::from_le_bytes(bytes.try_into().ok()?)),
            Type::UInt16 => Self::UInt16(u16::from_le_bytes(bytes.try_into().ok()?)),
            Type::UInt32 => Self::UInt32(u32::from_le_bytes(bytes.try_into().ok()?)),
            Type::UInt64 => Self::UInt64(u64::from_le_bytes(bytes.try_into().ok()?)),
            Type::Float32 => Self::Float32(f32::from_le_bytes(bytes.try_into().ok()?)),
            Type::Float64 => Self::Float64(f64::from_le_bytes(bytes.try_into().ok()?)),
            Type::String | Type::Bytes | Type::BlobRef => Self::Bytes(bytes.to_vec()),
            Type::List => return None,
        })
    }

    /// Whether the value has a column type.
    pub const fn fits(&self, kind: Type) -> bool {
        matches!(
            (self, kind),
            (Self::Bool(_), Type::Bool)
                | (Self::Int8(_), Type::Int8)
                | (Self::Int16(_), Type::Int16)
                | (Self::Int32(_), Type::Int32)
                | (Self::Int64(_), Type::Int64 | Type::TimestampMicros)
                | (Self::UInt8(_), Type::UInt8)
                | (Self::UInt16(_), Type::UInt16)
                | (Self::UInt32(_), Type::UInt32)
                | (Self::UInt64(_), Type::UInt64)
                | (Self::Float32(_), Type::Float32)
                | (Self::Float64(_), Type::Float64)
                | (Self::Bytes(_), Type::String | Type::Bytes | Type::BlobRef)
        )
    }

    /// Compares two values of the same type; `None` for NaN and for different types.
    pub fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.partial_cmp(b),
            (Self::Int8(a), Self::Int8(b)) => a.partial_cmp(b),
            (Self::Int16(a), Self::Int16(b)) => a.partial_cmp(b),
            (Self::Int32(a), Self::Int32(b)) => a.partial_cmp(b),
            (Self::Int64(a), Self::Int64(b)) => a.partial_cmp(b),
            (Self::UInt8(a), Self::UInt8(b)) => a.partial_cmp(b),
            (Self::UInt16(a), Self::UInt16(b)) => a.partial_cmp(b),
            (Self::UInt32(a), Self::UInt32(b)) => a.partial_cmp(b),
            (Self::UInt64(a), Self::UInt64(b)) => a.partial_cmp(b),
            (Self::Float32(a), Self::Float32(b)) => a.partial_cmp(b),
            (Self::Float64(a), Self::Float64(b)) => a.partial_cmp(b),
            (Self::Bytes(a), Self::Bytes(b)) => a.partial_cmp(b),
            _ => None,
        }
    }

    /// Whether it is NaN.
    pub const fn is_nan(&self) -> bool {
        match self {
            Self::Float32(value) => value.is_nan(),
            Self::Float64(value) => value.is_nan(),
            _ => false,
        }
    }

    /// Whether it is infinite.
    pub const fn is_infinite(&self) -> bool {
        match self {
            Self::Float32(value) => value.is_infinite(),
            Self::Float64(value) => value.is_infinite(),
            _ => false,
        }
    }

    /// Parses a value of a column type.
    pub fn parse(kind: Type, text: &str) -> Option<Self> {
        Some(match kind {
            Type::Bool => Self::Bool(text.parse().ok()?),
            Type::Int8 => Self::Int8(text.parse().ok()?),
            Type::Int16 => Self::Int16(text.parse().ok()?),
            Type::Int32 => Self::Int32(text.parse().ok()?),
            Type::Int64 | Type::TimestampMicros => Self::Int64(text.parse().ok()?),
            Type::UInt8 => Self::UInt8(text.parse().ok()?),
            Type::UInt16 => Self::UInt16(text.parse().ok()?),
            Type::UInt32 => Self::UInt32(text.parse().ok()?),
            Type::UInt64 => Self::UInt64(text.parse().ok()?),
            Type::Float32 => Self::Float32(text.parse().ok()?),
            Type::Float64 => Self::Float64(text.parse().ok()?),
            Type::String | Type::Bytes | Type::BlobRef => Self::Bytes(text.as_bytes().to_vec()),
            Type::List => return None,
        })
    }
}

impl Scalar {
    /// Parses a key of a column type. Bytes may be written in hexadecimal digits, as in filters: `x'00ff'`.
    pub fn parse_key(kind: Type, text: &str) -> Option<Self> {
        let quoted = |quote: char| text.strip_prefix(['x', 'X'])?.strip_prefix(quote)?.strip_suffix(quote);
        match quoted('\'').or_else(|| quoted('"')).filter(|_| kind == Type::Bytes) {
            Some(digits) => hexadecimal(digits).map(Self::Bytes),
            None => Self::parse(kind, text),
        }
    }
}

/// The bytes of an even number of hexadecimal digits.
fn hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int8(value) => write!(f, "{value}"),
            Self::Int16(value) => write!(f, "{value}"),
            Self::Int32(value) => write!(f, "{value}"),
            Self::Int64(value) => write!(f, "{value}"),
            Self::UInt8(value) => write!(f, "{value}"),
            Self::UInt16(value) => write!(f, "{value}"),
            Self::UInt32(value) => write!(f, "{value}"),
            Self::UInt64(value) => write!(f, "{value}"),
            Self::Float32(value) => write!(f, "{value}"),
            Self::Float64(value) => write!(f, "{value}"),
            Self::Bytes(value) => write!(f, "`{}`", value.escape_ascii()),
        }
    }
}

impl Column {
    /// The value of a row; `None` if it is null, out of range, or a list.
    pub fn scalar(&self, row: usize) -> Option<Scalar> {
        if !self.is_present(row) {
            return None;
        }
        Some(match &self.values {
            Values::Bool(v) => Scalar::Bool(*v.get(row)?),
            Values::Int8(v) => Scalar::Int8(*v.get(row)?),
            Values::Int16(v) => Scalar::Int16(*v.get(row)?),
            Values::Int32(v) => Scalar::Int32(*v.get(row)?),
            Values::Int64(v) => Scalar::Int64(*v.get(row)?),
            Values::UInt8(v) => Scalar::UInt8(*v.get(row)?),
            Values::UInt16(v) => Scalar::UInt16(*v.get(row)?),
            Values::UInt32(v) => Scalar::UInt32(*v.get(row)?),
            Values::UInt64(v) => Scalar::UInt64(*v.get(row)?),
            Values::Float32(v) => Scalar::Float32(*v.get(row)?),
            Values::Float64(v) => Scalar::Float64(*v.get(row)?),
            Values::Bytes(v) if row < v.len() => Scalar::Bytes(v.get(row).to_vec()),
            Values::Bytes(_) | Values::List(_) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_little_endian_with_fixed_length() {
        let key = Scalar::Int64(-200_000);
        assert_eq!(key.to_bytes(), [0xc0, 0xf2, 0xfc, 0xff, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(Scalar::from_bytes(Type::Int64, &key.to_bytes()), Some(key));
        assert_eq!(Scalar::from_bytes(Type::Int64, &[1, 2]), None);
        assert_eq!(Scalar::from_bytes(Type::Bool, &[2]), None);
    }

    #[test]
    fn keys_of_bytes_may_be_hexadecimal() {
        let parse = |kind, text| Scalar::parse_key(kind, text);
        let bytes = |bytes: &[u8]| Some(Scalar::Bytes(bytes.to_vec()));
        assert_eq!(parse(Type::Bytes, "x'00fF'"), bytes(&[0, 0xff]));
        assert_eq!(parse(Type::Bytes, "X\"\""), bytes(&[]));
        assert_eq!(parse(Type::Bytes, "x'0'"), None);
        assert_eq!(parse(Type::Bytes, "x'é'"), None);
        assert_eq!(parse(Type::Bytes, "x'00"), bytes(b"x'00"));
        assert_eq!(parse(Type::String, "x'00'"), bytes(b"x'00'"));
        assert_eq!(parse(Type::Int8, "5"), Some(Scalar::Int8(5)));
    }

    #[test]
    fn numbers_are_ordered_by_value() {
        assert_eq!(Scalar::Int64(-1).order(&Scalar::Int64(1)), Some(Ordering::Less));
        assert_eq!(Scalar::Float64(f64::NAN).order(&Scalar::Float64(1.0)), None);
        assert_eq!(Scalar::Float64(0.0).order(&Scalar::Float64(-0.0)), Some(Ordering::Equal));
        assert_eq!(Scalar::Int8(1).order(&Scalar::Int16(1)), None);
    }
}
