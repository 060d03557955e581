//! Logical types of columns: dates, times, timestamps, durations, decimals, UUIDs, JSON, enums, fixed-size lists.
//!
//! Types that `.tatami` does not have are stored exactly in one that it has: a date as a day number, a decimal as its
//! unscaled integer. An annotation in the footer names the type: `arrow.type:price` = `decimal128[10, 2]`. An [`Annotation`] is the
//! type of a column, with the length of fixed-size lists; the [`LogicalType`] is that of its values, or of its list elements. It
//! formats and parses values, and finds the position of a literal among stored values.

pub mod annotation;
pub(crate) mod int256;
mod text;
mod zone;

pub(crate) use int256::Int256;
pub(crate) use text::LiteralPosition;
pub use text::{StoredValue, is_json, is_number};

use std::fmt;

pub use annotation::{Annotation, DictionaryKey, ValueType};
pub use zone::Zone;

use crate::schema::{Field, Type};

/// The prefix of the keys of annotations.
const KEY: &str = "arrow.type:";

/// The logical type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogicalType {
    /// UTF-8 strings stored as bytes.
    Utf8,
    /// JSON text, stored as strings.
    Json,
    /// Names of an enumeration, stored as strings.
    Enum,
    /// UUIDs, stored as 16 bytes.
    Uuid,
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
    /// Timestamps with a time zone: stored as microseconds since 1970 in UTC, and printed in UTC.
    Timestamp {
        /// The unit of the source. Values are multiples of it.
        unit: Unit,
        /// The time zone of the source.
        zone: Zone,
    },
    /// Timestamps without time zone, stored as microseconds since 1970.
    LocalTimestamp(Unit),
}

/// The unit of times, timestamps and durations.
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
    /// Timestamps in microseconds in UTC: those of `TIMESTAMP_MICROS` columns without annotation.
    pub const UTC: Self = Self::Timestamp { unit: Unit::Micros, zone: Zone::UTC };

    /// Parses the annotation of values into logical type and storage type; `None` for other annotations.
    pub fn parse(annotation: &str) -> Option<(Self, Type)> {
        Self::from_value_type(&ValueType::parse(annotation)?)
    }

    /// The logical type of annotated values and their storage type; `None` if values need no formatting.
    fn from_value_type(value: &ValueType) -> Option<(Self, Type)> {
        Some(match value {
            ValueType::Null | ValueType::Float16 | ValueType::FixedBinary(_) => return None,
            ValueType::Utf8 => (Self::Utf8, Type::String),
            ValueType::Json => (Self::Json, Type::String),
            ValueType::Enum => (Self::Enum, Type::String),
            ValueType::Uuid => (Self::Uuid, Type::Bytes),
            ValueType::Date32 => (Self::Date32, Type::Int32),
            ValueType::Date64 => (Self::Date64, Type::Int64),
            ValueType::Time(unit @ (Unit::Seconds | Unit::Millis)) => (Self::Time(*unit), Type::Int32),
            ValueType::Time(unit) => (Self::Time(*unit), Type::Int64),
            ValueType::Duration(unit) => (Self::Duration(*unit), Type::Int64),
            ValueType::Timestamp(unit, Some(zone)) => {
                (Self::Timestamp { unit: *unit, zone: Zone::new(zone)? }, Type::TimestampMicros)
            }
            ValueType::Timestamp(unit, None) => (Self::LocalTimestamp(*unit), Type::TimestampMicros),
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
        Self::of_annotation(field, &Annotation::for_field(field, pairs)?)
    }

    fn of_annotation(field: &Field, annotation: &Annotation) -> Option<Self> {
        let (logical_type, stored) = Self::from_value_type(annotation.value.as_ref()?)?;
        let kind = field.scalar();
        let apart = kind == Type::BlobRef && matches!(stored, Type::String | Type::Bytes);
        // Parquet files without Arrow schema have the names of enumerations as bytes.
        let as_bytes = kind == Type::Bytes && logical_type == Self::Enum;
        (stored == kind || apart || as_bytes).then_some(logical_type)
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
            Self::Utf8 | Self::Enum => "\"text\"",
            Self::Json => "{\"a\": 1}",
            Self::Uuid => "\"123e4567-e89b-12d3-a456-426614174000\"",
            Self::Decimal { .. } => "12.5",
            Self::Date32 | Self::Date64 => "\"2020-01-31\"",
            Self::Time(_) => "\"12:34:56.789\"",
            Self::Duration(_) => "\"PT90.5S\"",
            Self::Timestamp { .. } => "\"2020-01-31T12:34:56Z\"",
            Self::LocalTimestamp(_) => "\"2020-01-31T12:34:56\"",
        }
    }

    /// Whether literals are numbers.
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Decimal { .. })
    }

    /// Whether values are strings: literals and operators are those of strings.
    pub const fn is_text(self) -> bool {
        matches!(self, Self::Utf8 | Self::Json | Self::Enum)
    }

    /// Whether values of both types can be compared as they are stored. Units and time zones do not matter.
    pub fn is_comparable(self, other: Self) -> bool {
        match (self, other) {
            (Self::Timestamp { .. }, Self::Timestamp { .. })
            | (Self::LocalTimestamp(_), Self::LocalTimestamp(_)) => true,
            (one, other) => one == other,
        }
    }
}

impl fmt::Display for LogicalType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Utf8 => f.write_str("string"),
            Self::Json => f.write_str("json"),
            Self::Enum => f.write_str("enum"),
            Self::Uuid => f.write_str("uuid"),
            Self::Decimal { precision, scale, .. } => write!(f, "decimal({precision}, {scale})"),
            Self::Date32 | Self::Date64 => f.write_str("date"),
            Self::Time(_) => f.write_str("time of day"),
            Self::Duration(_) => f.write_str("duration"),
            Self::Timestamp { .. } => f.write_str("timestamp"),
            Self::LocalTimestamp(_) => f.write_str("timestamp without time zone"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_are_parsed_and_must_match_the_column() {
        let decimal = |precision, scale, width| LogicalType::Decimal { precision, scale, width };
        let berlin = Zone::new("Europe/Berlin").unwrap();
        for (annotation, expected) in [
            ("string", Some((LogicalType::Utf8, Type::String))),
            ("date32", Some((LogicalType::Date32, Type::Int32))),
            ("time[ms]", Some((LogicalType::Time(Unit::Millis), Type::Int32))),
            ("time[ns]", Some((LogicalType::Time(Unit::Nanos), Type::Int64))),
            ("duration[s]", Some((LogicalType::Duration(Unit::Seconds), Type::Int64))),
            ("timestamp[ms]", Some((LogicalType::LocalTimestamp(Unit::Millis), Type::TimestampMicros))),
            (
                "timestamp[ns, Europe/Berlin]",
                Some((LogicalType::Timestamp { unit: Unit::Nanos, zone: berlin }, Type::TimestampMicros)),
            ),
            ("uuid", Some((LogicalType::Uuid, Type::Bytes))),
            ("json", Some((LogicalType::Json, Type::String))),
            ("enum", Some((LogicalType::Enum, Type::String))),
            ("uuid[16]", None),
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
        let pairs = vec![("arrow.type:a".to_owned(), "enum".to_owned())];
        for kind in [Type::String, Type::Bytes, Type::BlobRef] {
            assert_eq!(LogicalType::for_field(&Field::new("a", kind), &pairs), Some(LogicalType::Enum));
        }
        let list = Field::list("a", Type::Bytes);
        let pairs = vec![("arrow.type:a".to_owned(), "fixed_list[2, uuid]".to_owned())];
        assert_eq!(LogicalType::for_field(&list, &pairs), Some(LogicalType::Uuid));
        assert_eq!(Annotation::for_field(&list, &pairs).and_then(|found| found.fixed_len), Some(2));
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
