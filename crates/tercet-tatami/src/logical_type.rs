//! Logical types of columns: dates, times, timestamps, durations, decimals.
//!
//! Types that `.tatami` does not have are stored exactly in one that it has: a date as a day number, a decimal as its
//! unscaled integer. An annotation in the footer names the type: `arrow.type:price` = `decimal128[10, 2]`. A [`LogicalType`] is a parsed
//! annotation. It formats and parses values, and finds the position of a literal among stored values.

pub mod annotation;
mod int256;
mod text;

pub(crate) use int256::Int256;
pub(crate) use text::LiteralPosition;
pub use text::{StoredValue, is_number};

use std::fmt;

pub use annotation::{Annotation, DictionaryKey, ValueType};

use crate::schema::{Field, Type};

/// The prefix of the keys of annotations.
const KEY: &str = "arrow.type:";

/// The logical type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogicalType {
    /// UTF-8 strings stored as bytes.
    Utf8,
    /// Decimals: integers with `scale` digits after the decimal point.
    Decimal {
        /// Maximum number of digits.
        precision: u8,
        /// Digits after the decimal point; if negative, omitted zeros before it.
        scale: i8,
        /// Length of a decimal stored as big-endian bytes.
        width: u8,
    },
    /// Days since 1970.
    Date32,
    /// Milliseconds since 1970 at midnight.
    Date64,
    /// Time since midnight.
    Time(Unit),
    /// Duration.
    Duration(Unit),
    /// Microseconds since 1970 in UTC.
    Timestamp,
    /// Microseconds since 1970 without time zone.
    LocalTimestamp,
}

/// The unit of times and durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the units")]
pub enum Unit {
    Seconds,
    Millis,
    Micros,
    Nanos,
}

impl Unit {
    const fn nanos(self) -> i64 {
        match self {
            Self::Seconds => 1_000_000_000,
            Self::Millis => 1_000_000,
            Self::Micros => 1_000,
            Self::Nanos => 1,
        }
    }

    /// The abbreviation: `s`, `ms`, `us` or `ns`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Millis => "ms",
            Self::Micros => "us",
            Self::Nanos => "ns",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        [Self::Seconds, Self::Millis, Self::Micros, Self::Nanos].into_iter().find(|unit| unit.name() == name)
    }
}

impl LogicalType {
    /// Parses the annotation of values into logical type and storage type; `None` for other annotations.
    pub fn parse(annotation: &str) -> Option<(Self, Type)> {
        Self::from_value_type(&ValueType::parse(annotation)?)
    }

    /// The logical type of annotated values and their storage type; `None` if values need no formatting.
    fn from_value_type(value: &ValueType) -> Option<(Self, Type)> {
        Some(match value {
            ValueType::Null | ValueType::Float16 | ValueType::FixedBinary(_) => return None,
            ValueType::Utf8 => (Self::Utf8, Type::String),
            ValueType::Date32 => (Self::Date32, Type::Int32),
            ValueType::Date64 => (Self::Date64, Type::Int64),
            ValueType::Time(unit @ (Unit::Seconds | Unit::Millis)) => (Self::Time(*unit), Type::Int32),
            ValueType::Time(unit) => (Self::Time(*unit), Type::Int64),
            ValueType::Duration(unit) => (Self::Duration(*unit), Type::Int64),
            ValueType::Timestamp(_, Some(_)) => (Self::Timestamp, Type::TimestampMicros),
            ValueType::Timestamp(_, None) => (Self::LocalTimestamp, Type::TimestampMicros),
            ValueType::Decimal { bits, precision, scale } => {
                let stored = match precision {
                    _ if *bits == 64 => Type::Int64,
                    0..=9 => Type::Int32,
                    10..=18 => Type::Int64,
                    _ => Type::Bytes,
                };
                let width = u8::try_from(bits / 8).unwrap_or(u8::MAX);
                (Self::Decimal { precision: *precision, scale: *scale, width }, stored)
            }
        })
    }

    /// The logical type of a column, or of its list elements. An annotation that does not match the column type is
    /// ignored.
    pub fn for_field(field: &Field, pairs: &[(String, String)]) -> Option<Self> {
        let is_about = |key: &str| key.strip_prefix(KEY) == Some(&field.name);
        let (_, annotation) = pairs.iter().find(|(key, _)| is_about(key))?;
        let (logical_type, stored) = Self::from_value_type(&Annotation::parse(annotation)?.value?)?;
        let kind = field.scalar();
        let apart = kind == Type::BlobRef && matches!(stored, Type::String | Type::Bytes);
        (stored == kind || apart).then_some(logical_type)
    }

    /// The logical types of all columns.
    pub fn for_fields(fields: &[Field], pairs: &[(String, String)]) -> Vec<Option<Self>> {
        // Most files have no annotations.
        if !pairs.iter().any(|(key, _)| key.starts_with(KEY)) {
            return vec![None; fields.len()];
        }
        fields.iter().map(|field| Self::for_field(field, pairs)).collect()
    }

    /// The key of the annotation of a column.
    pub fn key(column: &str) -> String {
        format!("{KEY}{column}")
    }

    /// An example of a literal.
    pub const fn example(self) -> &'static str {
        match self {
            Self::Utf8 => "\"text\"",
            Self::Decimal { .. } => "12.5",
            Self::Date32 | Self::Date64 => "\"2020-01-31\"",
            Self::Time(_) => "\"12:34:56.789\"",
            Self::Duration(_) => "\"PT90.5S\"",
            Self::Timestamp => "\"2020-01-31T12:34:56Z\"",
            Self::LocalTimestamp => "\"2020-01-31T12:34:56\"",
        }
    }

    /// Whether literals are numbers.
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Decimal { .. })
    }
}

impl fmt::Display for LogicalType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Utf8 => f.write_str("string"),
            Self::Decimal { precision, scale, .. } => write!(f, "decimal({precision}, {scale})"),
            Self::Date32 | Self::Date64 => f.write_str("date"),
            Self::Time(_) => f.write_str("time of day"),
            Self::Duration(_) => f.write_str("duration"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::LocalTimestamp => f.write_str("timestamp without time zone"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_are_parsed_and_must_match_the_column() {
        let decimal = |precision, scale, width| LogicalType::Decimal { precision, scale, width };
        for (annotation, expected) in [
            ("string", Some((LogicalType::Utf8, Type::String))),
            ("date32", Some((LogicalType::Date32, Type::Int32))),
            ("time[ms]", Some((LogicalType::Time(Unit::Millis), Type::Int32))),
            ("time[ns]", Some((LogicalType::Time(Unit::Nanos), Type::Int64))),
            ("duration[s]", Some((LogicalType::Duration(Unit::Seconds), Type::Int64))),
            ("timestamp[ms]", Some((LogicalType::LocalTimestamp, Type::TimestampMicros))),
            ("timestamp[ns, Europe/Berlin]", Some((LogicalType::Timestamp, Type::TimestampMicros))),
            ("decimal64[5, 2]", Some((decimal(5, 2, 8), Type::Int64))),
            ("decimal128[9, 2]", Some((decimal(9, 2, 16), Type::Int32))),
            ("decimal128[18, -3]", Some((decimal(18, -3, 16), Type::Int64))),
            ("decimal256[76, 10]", Some((decimal(76, 10, 32), Type::Bytes))),
            ("decimal128[39, 2]", None),
            ("decimal32[2, 3]", None),
            ("time[h]", None),
            ("float16", None),
            ("binary[4]", None),
            ("date32]", None),
        ] {
            assert_eq!(LogicalType::parse(annotation), expected, "{annotation}");
        }
        let pairs = vec![("arrow.type:a".to_owned(), "date32".to_owned())];
        assert_eq!(LogicalType::for_field(&Field::new("a", Type::Int32), &pairs), Some(LogicalType::Date32));
        assert_eq!(LogicalType::for_field(&Field::list("a", Type::Int32), &pairs), Some(LogicalType::Date32));
        assert_eq!(LogicalType::for_field(&Field::new("a", Type::Int64), &pairs), None);
        assert_eq!(LogicalType::for_field(&Field::new("b", Type::Int32), &pairs), None);
        for annotation in ["fixed_list[2, date32]", "fixed_list[2, ordered_dictionary[int8, date32]]"] {
            let pairs = vec![("arrow.type:a".to_owned(), annotation.to_owned())];
            assert_eq!(
                LogicalType::for_field(&Field::list("a", Type::Int32), &pairs),
                Some(LogicalType::Date32),
                "{annotation}"
            );
        }
    }
}
