//! Annotations: the grammar of logical types in the footer.
//!
//! ```text
//! annotation = [ "fixed_list[" length ", " ] [ "dictionary[" key ", " ] value …      each part may be absent
//! value      = "null" | "float16" | "string" | "json" | "enum" | "uuid" | "date32" | "date64" | "time[" unit "]" | "duration[" unit "]"
//!            | "timestamp[" unit [ ", " zone ] "]" | "binary[" length "]" | "decimal" bits "[" precision ", " scale "]"
//! unit       = "s" | "ms" | "us" | "ns"
//! ```

use std::fmt;

use super::{KEY, Unit};
use crate::schema::{Field, TYPES, Type};

/// The parsed annotation of a column: `date32`, `dictionary[int8, date32]`, `fixed_list[2, timestamp[ms, UTC]]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotation {
    /// The length of fixed-size lists.
    pub fixed_len: Option<i32>,
    /// The dictionary of the values.
    pub dictionary: Option<DictionaryKey>,
    /// The type of the values or list elements; `None` if the stored type implies it.
    pub value: Option<ValueType>,
}

/// The keys of a dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DictionaryKey {
    /// Whether the values are ordered.
    pub is_ordered: bool,
    /// The type of the keys, an integer.
    pub key: Type,
}

/// The type of annotated values.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the types")]
pub enum ValueType {
    Null,
    Float16,
    Utf8,
    Json,
    Enum,
    Uuid,
    Date32,
    Date64,
    Time(Unit),
    Duration(Unit),
    /// The unit and the time zone.
    Timestamp(Unit, Option<String>),
    /// Bytes of this length.
    FixedBinary(i32),
    Decimal {
        /// 32, 64, 128 or 256.
        bits: u16,
        precision: u8,
        scale: i8,
    },
}

impl Annotation {
    /// An annotation of values.
    pub fn new(value: ValueType) -> Self {
        Self { value: Some(value), ..Self::default() }
    }

    /// The annotation of a column in the key-value pairs of a footer.
    pub fn for_field(field: &Field, pairs: &[(String, String)]) -> Option<Self> {
        let is_about = |key: &str| key.strip_prefix(KEY) == Some(&field.name);
        pairs.iter().find(|(key, _)| is_about(key)).and_then(|(_, text)| Self::parse(text))
    }

    /// Parses an annotation; `None` for other text.
    pub fn parse(text: &str) -> Option<Self> {
        let mut out = Self::default();
        let mut rest = Some(text);
        if let Some((len, inner)) = wrapped(text, "fixed_list") {
            out.fixed_len = Some(len.parse().ok().filter(|len| *len > 0)?);
            rest = inner;
        }
        let dictionary = rest.and_then(|text| match text.strip_prefix("ordered_") {
            Some(text) => wrapped(text, "dictionary").map(|parts| (true, parts)),
            None => wrapped(text, "dictionary").map(|parts| (false, parts)),
        });
        if let Some((is_ordered, (key, inner))) = dictionary {
            let key = TYPES.into_iter().find(|kind| kind.name() == key);
            let key = key.filter(|key| key.is_integer() && *key != Type::TimestampMicros)?;
            out.dictionary = Some(DictionaryKey { is_ordered, key });
            rest = inner;
        }
        out.value = match rest {
            Some(text) => Some(ValueType::parse(text)?),
            None => None,
        };
        Some(out)
    }
}

/// The parts of `name[first, rest]`.
fn wrapped<'a>(text: &'a str, name: &str) -> Option<(&'a str, Option<&'a str>)> {
    let inside = text.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']')?;
    Some(inside.split_once(", ").map_or((inside, None), |(first, rest)| (first, Some(rest))))
}

impl ValueType {
    /// Parses the type of values.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, inside) = match text.split_once('[') {
            Some((name, rest)) => (name, Some(rest.strip_suffix(']')?)),
            None => (text, None),
        };
        let decimal = |bits: u16, max_precision: u8| {
            let (precision, scale) = inside?.split_once(", ")?;
            let (precision, scale): (u8, i8) = (precision.parse().ok()?, scale.parse().ok()?);
            let fits = (1..=max_precision).contains(&precision) && i16::from(scale) <= i16::from(precision);
            fits.then_some(Self::Decimal { bits, precision, scale })
        };
        Some(match name {
            "null" if inside.is_none() => Self::Null,
            "float16" if inside.is_none() => Self::Float16,
            "string" if inside.is_none() => Self::Utf8,
            "json" if inside.is_none() => Self::Json,
            "enum" if inside.is_none() => Self::Enum,
            "uuid" if inside.is_none() => Self::Uuid,
            "date32" if inside.is_none() => Self::Date32,
            "date64" if inside.is_none() => Self::Date64,
            "time" => Self::Time(Unit::parse(inside?)?),
            "duration" => Self::Duration(Unit::parse(inside?)?),
            "timestamp" => match inside?.split_once(", ") {
                Some((unit, zone)) => Self::Timestamp(Unit::parse(unit)?, Some(zone.to_owned())),
                None => Self::Timestamp(Unit::parse(inside?)?, None),
            },
            "binary" => Self::FixedBinary(inside?.parse().ok().filter(|len| *len >= 0)?),
            "decimal32" => decimal(32, 9)?,
            "decimal64" => decimal(64, 18)?,
            "decimal128" => decimal(128, 38)?,
            "decimal256" => decimal(256, 76)?,
            _ => return None,
        })
    }
}

impl fmt::Display for Annotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut open = 0;
        let mut heads: Vec<(&str, String)> = Vec::new();
        heads.extend(self.fixed_len.map(|len| ("fixed_list", len.to_string())));
        heads.extend(self.dictionary.map(|dictionary| {
            let head = if dictionary.is_ordered { "ordered_dictionary" } else { "dictionary" };
            (head, dictionary.key.name().to_owned())
        }));
        let last = heads.len();
        for (at, (head, inside)) in heads.into_iter().enumerate() {
            write!(f, "{head}[{inside}")?;
            open += 1;
            if at + 1 < last || self.value.is_some() {
                f.write_str(", ")?;
            }
        }
        if let Some(value) = &self.value {
            value.fmt(f)?;
        }
        (0..open).try_for_each(|_| f.write_str("]"))
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Float16 => f.write_str("float16"),
            Self::Utf8 => f.write_str("string"),
            Self::Json => f.write_str("json"),
            Self::Enum => f.write_str("enum"),
            Self::Uuid => f.write_str("uuid"),
            Self::Date32 => f.write_str("date32"),
            Self::Date64 => f.write_str("date64"),
            Self::Time(unit) => write!(f, "time[{}]", unit.name()),
            Self::Duration(unit) => write!(f, "duration[{}]", unit.name()),
            Self::Timestamp(unit, None) => write!(f, "timestamp[{}]", unit.name()),
            Self::Timestamp(unit, Some(zone)) => write!(f, "timestamp[{}, {zone}]", unit.name()),
            Self::FixedBinary(len) => write!(f, "binary[{len}]"),
            Self::Decimal { bits, precision, scale } => write!(f, "decimal{bits}[{precision}, {scale}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_round_trip() {
        for text in [
            "null",
            "float16",
            "string",
            "json",
            "enum",
            "uuid",
            "fixed_list[4, uuid]",
            "date32",
            "date64",
            "time[s]",
            "time[ns]",
            "duration[us]",
            "timestamp[ms]",
            "timestamp[ns, Europe/Berlin]",
            "binary[16]",
            "decimal32[9, 2]",
            "decimal64[18, -3]",
            "decimal128[38, 10]",
            "decimal256[76, 76]",
            "dictionary[int8]",
            "ordered_dictionary[uint16, timestamp[ms, UTC]]",
            "fixed_list[3]",
            "fixed_list[3, date32]",
            "fixed_list[3, dictionary[int64]]",
            "fixed_list[3, ordered_dictionary[uint16, timestamp[ms, UTC]]]",
        ] {
            let parsed = Annotation::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(parsed.to_string(), text);
        }
    }

    #[test]
    fn other_text_is_no_annotation() {
        for text in [
            "",
            "x",
            "time",
            "time[h]",
            "binary[-1]",
            "decimal128[39, 0]",
            "decimal32[0, 0]",
            "decimal32[2, 3]",
            "date32[]",
            "date32]",
            "fixed_list[0]",
            "fixed_list[-1]",
            "fixed_list[x]",
            "fixed_list[2",
            "fixed_list[2, fixed_list[2]]",
            "list[2]",
            "dictionary[float32]",
            "dictionary[]",
            "dictionary",
            "unordered_dictionary[int8]",
            "dictionary[int8, dictionary[int8]]",
        ] {
            assert_eq!(Annotation::parse(text), None, "{text}");
        }
    }
}
