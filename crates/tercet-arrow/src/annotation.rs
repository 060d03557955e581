//! Annotations in the footer of a `.tatami` file: Arrow types and metadata that `.tatami` does not have.
//!
//! The values of such columns are stored exactly in another type: a date as a day number, a decimal as its unscaled integer.
//! The annotation records the logical type, so that reading restores it:
//!
//! | key | value |
//! |---|---|
//! | `arrow.type:COLUMN` | the logical type: `date32`, `timestamp[ms, UTC]`, `dictionary[int8]`, `fixed_list[2, date32]` |
//! | `arrow.metadata:COLUMN` | the metadata of the Arrow field, including extension types, as a JSON object |
//! | `arrow.element:COLUMN` | the metadata of the list elements |
//! | `arrow.metadata` | the metadata of the Arrow schema |

use arrow_schema::{DataType, TimeUnit};

use crate::arrow_type::Metadata;

/// Key of the schema metadata.
pub(crate) const METADATA: &str = "arrow.metadata";

/// Prefixes of the keys of column annotations.
const KEYS: [&str; 3] = ["arrow.type:", "arrow.metadata:", "arrow.element:"];

/// Key of the logical type of a column.
pub(crate) fn type_key(column: &str) -> String {
    format!("{}{column}", KEYS[0])
}

/// Key of the field metadata of a column.
pub(crate) fn metadata_key(column: &str) -> String {
    format!("{}{column}", KEYS[1])
}

/// Key of the element metadata of a list column.
pub(crate) fn element_key(column: &str) -> String {
    format!("{}{column}", KEYS[2])
}

/// The column that an annotation key refers to.
pub fn annotated_column(key: &str) -> Option<&str> {
    KEYS.iter().find_map(|start| key.strip_prefix(start))
}

/// Metadata as JSON; `None` if there is none.
pub(crate) fn metadata(kept: &Metadata) -> Option<String> {
    if kept.is_empty() { None } else { serde_json::to_string(kept).ok() }
}

/// Parses metadata from JSON.
pub(crate) fn parse_metadata(text: &str) -> Option<Metadata> {
    serde_json::from_str(text).ok()
}

/// Dictionary key types and their names.
const NUMBERS: [(&str, DataType); 8] = [
    ("int8", DataType::Int8),
    ("int16", DataType::Int16),
    ("int32", DataType::Int32),
    ("int64", DataType::Int64),
    ("uint8", DataType::UInt8),
    ("uint16", DataType::UInt16),
    ("uint32", DataType::UInt32),
    ("uint64", DataType::UInt64),
];

/// Annotation of a dictionary; `value` annotates the value type, where needed.
pub(crate) fn dictionary(is_ordered: bool, key: &DataType, value: Option<&str>) -> Option<String> {
    let head = if is_ordered { "ordered_dictionary" } else { "dictionary" };
    let (key, _) = NUMBERS.iter().find(|(_, known)| known == key)?;
    Some(match value {
        Some(value) => format!("{head}[{key}, {value}]"),
        None => format!("{head}[{key}]"),
    })
}

/// Parses a dictionary annotation into order flag, key type and value annotation.
pub(crate) fn parse_dictionary(text: &str) -> Option<(bool, DataType, Option<&str>)> {
    let (is_ordered, rest) = match text.strip_prefix("ordered_") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (key, value) = parts(rest.strip_prefix("dictionary[")?.strip_suffix(']')?);
    let (_, key) = NUMBERS.into_iter().find(|(known, _)| *known == key)?;
    Some((is_ordered, key, value))
}

/// Annotation of fixed-size lists.
pub(crate) fn fixed_list(len: i32, element: Option<&str>) -> String {
    match element {
        Some(element) => format!("fixed_list[{len}, {element}]"),
        None => format!("fixed_list[{len}]"),
    }
}

/// Parses a fixed-size list annotation into length and element annotation.
pub(crate) fn parse_fixed_list(text: &str) -> Option<(i32, Option<&str>)> {
    let (len, element) = parts(text.strip_prefix("fixed_list[")?.strip_suffix(']')?);
    Some((len.parse().ok().filter(|len| *len > 0)?, element))
}

fn parts(inside: &str) -> (&str, Option<&str>) {
    inside.split_once(", ").map_or((inside, None), |(first, rest)| (first, Some(rest)))
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

/// Annotation of a type; `None` for types that need none and for unsupported types.
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

/// Parses the annotation of a type.
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
    fn lists_dictionaries_and_metadata_round_trip() {
        let text = dictionary(true, &DataType::UInt16, Some("timestamp[ms, UTC]")).unwrap();
        assert_eq!(text, "ordered_dictionary[uint16, timestamp[ms, UTC]]");
        assert_eq!(parse_dictionary(&text), Some((true, DataType::UInt16, Some("timestamp[ms, UTC]"))));
        let whole = fixed_list(3, Some(&text));
        assert_eq!(parse_fixed_list(&whole), Some((3, Some(text.as_str()))));
        assert_eq!(parse_fixed_list("fixed_list[2]"), Some((2, None)));
        for wrong in ["fixed_list[0]", "fixed_list[-1]", "fixed_list[x]", "fixed_list[2", "list[2]"] {
            assert_eq!(parse_fixed_list(wrong), None, "{wrong}");
        }
        for wrong in ["dictionary[float32]", "dictionary[]", "dictionary", "unordered_dictionary[int8]"] {
            assert_eq!(parse_dictionary(wrong), None, "{wrong}");
        }
        let kept = Metadata::from([("a".to_owned(), "\"\n".to_owned()), ("ä".to_owned(), String::new())]);
        assert_eq!(metadata(&kept).and_then(|text| parse_metadata(&text)), Some(kept));
        assert_eq!(metadata(&Metadata::new()), None);
        assert_eq!(parse_metadata("[1]"), None);
        assert_eq!(annotated_column("arrow.metadata:a:b"), Some("a:b"));
        assert_eq!(annotated_column(METADATA), None);
    }

    #[test]
    fn types_round_trip() {
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
            let message = text(&kind).unwrap();
            assert_eq!(parse(&message), Some(kind), "{message}");
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
