//! Types that `.tatami` does not have, as texts in the footer of a file.
//!
//! The values of such columns are kept in a type that holds them exactly: a date as the number of its day, a decimal as its
//! digits. A note under the key `arrow.type:COLUMN` says what they are, so that the way back gives the same type.

use arrow_schema::{DataType, TimeUnit};

/// The start of the keys.
const KEY: &str = "arrow.type:";

/// The key of the note about a column.
pub(crate) fn key(column: &str) -> String {
    format!("{KEY}{column}")
}

/// The column that a key is about.
pub fn column_of(key: &str) -> Option<&str> {
    key.strip_prefix(KEY)
}

fn unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

fn unit(name: &str) -> Option<TimeUnit> {
    [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond]
        .into_iter()
        .find(|unit| unit_name(*unit) == name)
}

/// The text of a type; none for types whose columns need no note, and for those that have no place.
pub(crate) fn text(kind: &DataType) -> Option<String> {
    Some(match kind {
        DataType::Null => "null".to_owned(),
        DataType::Float16 => "float16".to_owned(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string".to_owned(),
        DataType::Date32 => "date32".to_owned(),
        DataType::Date64 => "date64".to_owned(),
        DataType::Time32(unit) | DataType::Time64(unit) => format!("time[{}]", unit_name(*unit)),
        DataType::Duration(unit) => format!("duration[{}]", unit_name(*unit)),
        DataType::Timestamp(unit, None) => format!("timestamp[{}]", unit_name(*unit)),
        DataType::Timestamp(unit, Some(zone)) => format!("timestamp[{}, {zone}]", unit_name(*unit)),
        DataType::FixedSizeBinary(len) => format!("binary[{len}]"),
        DataType::Decimal32(precision, scale) => format!("decimal32[{precision}, {scale}]"),
        DataType::Decimal64(precision, scale) => format!("decimal64[{precision}, {scale}]"),
        DataType::Decimal128(precision, scale) => format!("decimal128[{precision}, {scale}]"),
        DataType::Decimal256(precision, scale) => format!("decimal256[{precision}, {scale}]"),
        _ => return None,
    })
}

/// The type of a text.
pub(crate) fn parse(text: &str) -> Option<DataType> {
    let (name, inside) = match text.split_once('[') {
        Some((name, rest)) => (name, Some(rest.strip_suffix(']')?)),
        None => (text, None),
    };
    let only_unit = || unit(inside?);
    let digits = |max_precision: u8| -> Option<(u8, i8)> {
        let (precision, scale) = inside?.split_once(", ")?;
        let (precision, scale) = (precision.parse().ok()?, scale.parse().ok()?);
        let fits = (1..=max_precision).contains(&precision) && i16::from(scale) <= i16::from(precision);
        fits.then_some((precision, scale))
    };
    Some(match name {
        "null" if inside.is_none() => DataType::Null,
        "float16" if inside.is_none() => DataType::Float16,
        "string" if inside.is_none() => DataType::Utf8View,
        "date32" if inside.is_none() => DataType::Date32,
        "date64" if inside.is_none() => DataType::Date64,
        "time" => match only_unit()? {
            unit @ (TimeUnit::Second | TimeUnit::Millisecond) => DataType::Time32(unit),
            unit => DataType::Time64(unit),
        },
        "duration" => DataType::Duration(only_unit()?),
        "timestamp" => match inside?.split_once(", ") {
            Some((name, zone)) => DataType::Timestamp(unit(name)?, Some(zone.into())),
            None => DataType::Timestamp(only_unit()?, None),
        },
        "binary" => DataType::FixedSizeBinary(inside?.parse().ok().filter(|len| *len >= 0)?),
        "decimal32" => digits(9).map(|(precision, scale)| DataType::Decimal32(precision, scale))?,
        "decimal64" => digits(18).map(|(precision, scale)| DataType::Decimal64(precision, scale))?,
        "decimal128" => digits(38).map(|(precision, scale)| DataType::Decimal128(precision, scale))?,
        "decimal256" => digits(76).map(|(precision, scale)| DataType::Decimal256(precision, scale))?,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_come_back_from_their_texts() {
        for kind in [
            DataType::Null,
            DataType::Float16,
            DataType::Utf8View,
            DataType::Date32,
            DataType::Date64,
            DataType::Time32(TimeUnit::Second),
            DataType::Time32(TimeUnit::Millisecond),
            DataType::Time64(TimeUnit::Microsecond),
            DataType::Time64(TimeUnit::Nanosecond),
            DataType::Duration(TimeUnit::Nanosecond),
            DataType::Timestamp(TimeUnit::Second, None),
            DataType::Timestamp(TimeUnit::Nanosecond, Some("Europe/Berlin".into())),
            DataType::FixedSizeBinary(16),
            DataType::Decimal32(9, 2),
            DataType::Decimal64(18, -3),
            DataType::Decimal128(38, 10),
            DataType::Decimal256(76, 76),
        ] {
            let told = text(&kind).unwrap();
            assert_eq!(parse(&told), Some(kind), "{told}");
        }
        for wrong in [
            "",
            "x",
            "time",
            "time[h]",
            "binary[-1]",
            "decimal128[39, 0]",
            "decimal32[0, 0]",
            "decimal32[2, 3]",
            "date32[]",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
