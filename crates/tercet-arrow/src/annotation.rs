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

use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use arrow_schema::{DataType, TimeUnit};
use tercet_tatami::Type;
use tercet_tatami::logical_type::{DictionaryKey, Unit, ValueType};

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

/// Dictionary key types.
const KEY_TYPES: [(Type, DataType); 8] = [
    (Type::Int8, DataType::Int8),
    (Type::Int16, DataType::Int16),
    (Type::Int32, DataType::Int32),
    (Type::Int64, DataType::Int64),
    (Type::UInt8, DataType::UInt8),
    (Type::UInt16, DataType::UInt16),
    (Type::UInt32, DataType::UInt32),
    (Type::UInt64, DataType::UInt64),
];

/// The annotation of a dictionary.
pub(crate) fn dictionary_key(is_ordered: bool, key: &DataType) -> Option<DictionaryKey> {
    let (key, _) = KEY_TYPES.iter().find(|(_, known)| known == key)?;
    Some(DictionaryKey { is_ordered, key: *key })
}

/// The Arrow type of the keys of a dictionary.
pub(crate) fn key_type(key: DictionaryKey) -> Option<DataType> {
    KEY_TYPES.into_iter().find(|(known, _)| *known == key.key).map(|(_, kind)| kind)
}

fn unit(unit: TimeUnit) -> Unit {
    match unit {
        TimeUnit::Second => Unit::Seconds,
        TimeUnit::Millisecond => Unit::Millis,
        TimeUnit::Microsecond => Unit::Micros,
        TimeUnit::Nanosecond => Unit::Nanos,
    }
}

fn time_unit(unit: Unit) -> TimeUnit {
    match unit {
        Unit::Seconds => TimeUnit::Second,
        Unit::Millis => TimeUnit::Millisecond,
        Unit::Micros => TimeUnit::Microsecond,
        Unit::Nanos => TimeUnit::Nanosecond,
    }
}

/// The annotation of a type; `None` for types that need none and for unsupported types.
pub(crate) fn value_type(kind: &DataType) -> Option<ValueType> {
    let decimal = |bits, precision, scale| ValueType::Decimal { bits, precision, scale };
    Some(match kind {
        DataType::Null => ValueType::Null,
        DataType::Float16 => ValueType::Float16,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ValueType::Utf8,
        DataType::Date32 => ValueType::Date32,
        DataType::Date64 => ValueType::Date64,
        DataType::Time32(of) | DataType::Time64(of) => ValueType::Time(unit(*of)),
        DataType::Duration(of) => ValueType::Duration(unit(*of)),
        DataType::Timestamp(of, zone) => ValueType::Timestamp(unit(*of), zone.as_deref().map(str::to_owned)),
        DataType::FixedSizeBinary(len) => ValueType::FixedBinary(*len),
        DataType::Decimal32(precision, scale) => decimal(32, *precision, *scale),
        DataType::Decimal64(precision, scale) => decimal(64, *precision, *scale),
        DataType::Decimal128(precision, scale) => decimal(128, *precision, *scale),
        DataType::Decimal256(precision, scale) => decimal(256, *precision, *scale),
        _ => return None,
    })
}

/// The Arrow type of an annotation.
pub(crate) fn arrow_type(value: &ValueType) -> DataType {
    match value {
        ValueType::Null => DataType::Null,
        ValueType::Float16 => DataType::Float16,
        ValueType::Utf8 | ValueType::Json | ValueType::Enum => DataType::Utf8View,
        ValueType::Uuid => DataType::FixedSizeBinary(16),
        ValueType::Date32 => DataType::Date32,
        ValueType::Date64 => DataType::Date64,
        ValueType::Time(unit @ (Unit::Seconds | Unit::Millis)) => DataType::Time32(time_unit(*unit)),
        ValueType::Time(unit) => DataType::Time64(time_unit(*unit)),
        ValueType::Duration(unit) => DataType::Duration(time_unit(*unit)),
        ValueType::Timestamp(unit, zone) => {
            DataType::Timestamp(time_unit(*unit), zone.as_deref().map(Into::into))
        }
        ValueType::FixedBinary(len) => DataType::FixedSizeBinary(*len),
        ValueType::Decimal { bits: 32, precision, scale } => DataType::Decimal32(*precision, *scale),
        ValueType::Decimal { bits: 64, precision, scale } => DataType::Decimal64(*precision, *scale),
        ValueType::Decimal { bits: 128, precision, scale } => DataType::Decimal128(*precision, *scale),
        ValueType::Decimal { precision, scale, .. } => DataType::Decimal256(*precision, *scale),
    }
}

/// Metadata key for a Parquet logical type that has neither Arrow type nor extension type.
pub(crate) const PARQUET_LOGICAL_TYPE: &str = "PARQUET:logical_type";

/// The metadata of values with an extension type, and of enums.
pub(crate) fn extension_metadata(value: &ValueType) -> Option<(&'static str, &'static str)> {
    match value {
        ValueType::Uuid => Some((EXTENSION_TYPE_NAME_KEY, "arrow.uuid")),
        ValueType::Json => Some((EXTENSION_TYPE_NAME_KEY, "arrow.json")),
        ValueType::Enum => Some((PARQUET_LOGICAL_TYPE, "ENUM")),
        _ => None,
    }
}

/// The extension type that metadata names, if it fits the values.
pub(crate) fn extension(metadata: &Metadata, kind: &DataType) -> Option<ValueType> {
    let found = [ValueType::Uuid, ValueType::Json, ValueType::Enum].into_iter().find(|value| {
        extension_metadata(value)
            .is_some_and(|(key, name)| metadata.get(key).is_some_and(|found| found == name))
    })?;
    let fits = *kind == arrow_type(&found) || (found == ValueType::Enum && *kind == DataType::BinaryView);
    fits.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_round_trips() {
        let kept = Metadata::from([("a".to_owned(), "\"\n".to_owned()), ("ä".to_owned(), String::new())]);
        assert_eq!(metadata(&kept).and_then(|text| parse_metadata(&text)), Some(kept));
        assert_eq!(metadata(&Metadata::new()), None);
        assert_eq!(parse_metadata("[1]"), None);
        assert_eq!(annotated_column("arrow.metadata:a:b"), Some("a:b"));
        assert_eq!(annotated_column(METADATA), None);
    }

    #[test]
    fn extension_types_are_named_by_metadata() {
        for (value, kind) in [
            (ValueType::Uuid, DataType::FixedSizeBinary(16)),
            (ValueType::Json, DataType::Utf8View),
            (ValueType::Enum, DataType::Utf8View),
            (ValueType::Enum, DataType::BinaryView),
        ] {
            let (key, name) = extension_metadata(&value).unwrap();
            let metadata = Metadata::from([(key.to_owned(), name.to_owned())]);
            assert_eq!(extension(&metadata, &kind), Some(value));
            assert_eq!(extension(&metadata, &DataType::Int32), None);
            assert_eq!(extension(&Metadata::new(), &kind), None);
        }
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
            let message = value_type(&kind).unwrap().to_string();
            let parsed = ValueType::parse(&message).unwrap();
            assert_eq!(arrow_type(&parsed), kind, "{message}");
        }
    }
}
