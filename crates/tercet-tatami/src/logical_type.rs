//! Logical types of columns: dates, times, timestamps, durations, decimals.
//!
//! Types that `.tatami` does not have are stored exactly in one that it has: a date as a day number, a decimal as its
//! unscaled integer. An annotation in the footer names the type: `arrow.type:price` = `decimal128[10, 2]`. A [`LogicalType`] is a parsed
//! annotation. It formats and parses values, and finds the position of a literal among stored values.

mod int256;
mod text;

pub(crate) use int256::Int256;
pub(crate) use text::LiteralPosition;
pub use text::{StoredValue, is_number};

use std::fmt;

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

    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "s" => Self::Seconds,
            "ms" => Self::Millis,
            "us" => Self::Micros,
            "ns" => Self::Nanos,
            _ => return None,
        })
    }
}

impl LogicalType {
    /// Parses an annotation into logical type and storage type; `None` for other annotations.
    pub fn parse(annotation: &str) -> Option<(Self, Type)> {
        let (name, inside) = match annotation.split_once('[') {
            Some((name, rest)) => (name, rest.strip_suffix(']')?),
            None => (annotation, ""),
        };
        let decimal = |width: u8, most: u8, least: Type| {
            let (precision, scale) = inside.split_once(", ")?;
            let (precision, scale): (u8, i8) = (precision.parse().ok()?, scale.parse().ok()?);
            let fits = (1..=most).contains(&precision) && i16::from(scale) <= i16::from(precision);
            let stored = match precision {
                _ if least == Type::Int64 => Type::Int64,
                0..=9 => Type::Int32,
                10..=18 => Type::Int64,
                _ => Type::Bytes,
            };
            fits.then_some((Self::Decimal { precision, scale, width }, stored))
        };
        match name {
            "string" => Some((Self::Utf8, Type::String)),
            "date32" => Some((Self::Date32, Type::Int32)),
            "date64" => Some((Self::Date64, Type::Int64)),
            "time" => match Unit::parse(inside)? {
                unit @ (Unit::Seconds | Unit::Millis) => Some((Self::Time(unit), Type::Int32)),
                unit => Some((Self::Time(unit), Type::Int64)),
            },
            "duration" => Some((Self::Duration(Unit::parse(inside)?), Type::Int64)),
            "timestamp" => {
                let (unit, logical_type) = match inside.split_once(", ") {
                    Some((unit, _)) => (unit, Self::Timestamp),
                    None => (inside, Self::LocalTimestamp),
                };
                Unit::parse(unit).map(|_| (logical_type, Type::TimestampMicros))
            }
            "decimal32" => decimal(4, 9, Type::Int32),
            "decimal64" => decimal(8, 18, Type::Int64),
            "decimal128" => decimal(16, 38, Type::Int32),
            "decimal256" => decimal(32, 76, Type::Int32),
            _ => None,
        }
    }

    /// The logical type of a column, or of its list elements. An annotation that does not match the column type is
    /// ignored.
    pub fn for_field(field: &Field, pairs: &[(String, String)]) -> Option<Self> {
        let is_about = |key: &str| key.strip_prefix(KEY) == Some(&field.name);
        let (_, annotation) = pairs.iter().find(|(key, _)| is_about(key))?;
        let (logical_type, stored) = Self::parse(unwrapped(annotation))?;
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

/// The value type of a nested annotation: `fixed_list[2, date32]`, `dictionary[int8, date32]`.
fn unwrapped(annotation: &str) -> &str {
    let inside = ["fixed_list[", "dictionary[", "ordered_dictionary["].iter().find_map(|head| {
        let inside = annotation.strip_prefix(head)?.strip_suffix(']')?;
        inside.split_once(", ").map(|(_, value)| value)
    });
    inside.map_or(annotation, unwrapped)
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
