//! [`AttrValue`]: typed attribute values.
//!
//! The format stores the attributes of datasets as strings. The type of a value follows from its text: a JSON number, `true`, `false`, a
//! JSON list or object is that, everything else is a string. Where the text alone would be read as another type, the
//! type is recorded in the member `attr_types` next to `attrs`, which other implementations ignore.

use std::fmt;

use serde_json::{Map, Value};
use tercet_core::{ElementType, with_element};

/// The member of a dataset entry with the types that do not follow from the text.
pub(crate) const ATTR_TYPES: &str = "attr_types";
/// The member of the file entry with the attributes of the file.
pub(crate) const FILE_ATTRS: &str = "attrs";

/// The value of an attribute: its text and its type.
///
/// ```
/// use tercet_tet::{AttrType, AttrValue};
///
/// assert_eq!(AttrValue::parse("850")?.kind(), AttrType::Number(None));
/// assert_eq!(AttrValue::parse("K")?, AttrValue::from("K"));
/// assert_eq!(AttrValue::parse("[0, 1.5]")?.text(), "[0,1.5]");
/// assert_ne!(AttrValue::parse("850")?, AttrValue::from("850"));
/// # Ok::<(), tercet_tet::AttrError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttrValue {
    text: String,
    kind: AttrType,
}

/// The type of an attribute value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttrType {
    /// A string.
    String,
    /// `true` or `false`.
    Bool,
    /// A number, of an element type if one is given.
    Number(Option<ElementType>),
    /// A JSON list or object.
    Json,
}

/// The error of an attribute value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are the words of the message")]
pub enum AttrError {
    Empty,
    Json { text: String, detail: String },
    Number { text: String, dtype: Option<ElementType> },
    NotFinite { text: String },
    Zero,
    List,
    Range { text: String },
    ReversedRange { text: String },
}

impl fmt::Display for AttrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let q = |text: &str| format!("`{}`", tercet_core::escape::name(text));
        match self {
            Self::Empty => f.write_str("a value must not be empty"),
            Self::Json { text, detail } => write!(f, "{} is not valid JSON: {detail}", q(text)),
            Self::Number { text, dtype: Some(dtype) } if text.starts_with('[') => {
                write!(f, "{} is not a list of numbers of type {dtype}", q(text))
            }
            Self::Number { text, dtype: Some(dtype) } => {
                write!(f, "{} is not a number of type {dtype}", q(text))
            }
            Self::Number { text, dtype: None } => write!(f, "{} is not a number", q(text)),
            Self::NotFinite { text } => write!(f, "{} is not a finite number", q(text)),
            Self::Zero => f.write_str("the value must not be 0"),
            Self::List => f.write_str("a list is not supported: the value must be one number"),
            Self::Range { text } => write!(f, "{} is not a list of two numbers", q(text)),
            Self::ReversedRange { text } => {
                write!(f, "the minimum of {} is greater than the maximum", q(text))
            }
        }
    }
}

impl std::error::Error for AttrError {}

impl From<&str> for AttrValue {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), kind: AttrType::String }
    }
}

impl From<String> for AttrValue {
    fn from(text: String) -> Self {
        Self { text, kind: AttrType::String }
    }
}

impl From<bool> for AttrValue {
    fn from(value: bool) -> Self {
        Self { text: value.to_string(), kind: AttrType::Bool }
    }
}

impl From<i64> for AttrValue {
    fn from(value: i64) -> Self {
        Self { text: value.to_string(), kind: AttrType::Number(None) }
    }
}

impl From<f64> for AttrValue {
    fn from(value: f64) -> Self {
        // JSON has no NaN and no infinities: the type is recorded.
        let dtype = (!value.is_finite()).then_some(ElementType::F64);
        Self { text: float_text(value), kind: AttrType::Number(dtype) }
    }
}

impl AttrValue {
    /// Parses a value: a JSON number, `true`, `false`, a JSON list, object or quoted string; other text is a string.
    pub fn parse(text: &str) -> Result<Self, AttrError> {
        let new = |text: String, kind| Ok(Self { text, kind });
        match text.trim_start().as_bytes().first() {
            None => Err(AttrError::Empty),
            Some(b'[' | b'{' | b'"') => {
                let value = serde_json::from_str(text);
                match value
                    .map_err(|error| AttrError::Json { text: text.to_owned(), detail: error.to_string() })?
                {
                    Value::String(text) if text.is_empty() => Err(AttrError::Empty),
                    Value::String(text) => Ok(text.into()),
                    value => new(value.to_string(), AttrType::Json),
                }
            }
            _ if matches!(text, "true" | "false") => new(text.to_owned(), AttrType::Bool),
            _ if is_json_number(text) => new(text.to_owned(), AttrType::Number(None)),
            _ => Ok(text.into()),
        }
    }

    /// A number of an element type, from its text. Integers must be in range; floats are rounded when they are used.
    pub fn number(text: &str, dtype: ElementType) -> Result<Self, AttrError> {
        let text = text.trim();
        if !is_element(text, dtype) {
            return Err(AttrError::Number { text: text.to_owned(), dtype: Some(dtype) });
        }
        Ok(Self { text: text.to_owned(), kind: AttrType::Number(Some(dtype)) })
    }

    /// A number or a JSON list of numbers, all of an element type, from its text.
    pub fn typed(text: &str, dtype: ElementType) -> Result<Self, AttrError> {
        let value = match text.trim_start().as_bytes().first() {
            Some(b'[') => Self::parse(text)?,
            _ => return Self::number(text, dtype),
        };
        let is_element = |item: &Value| item.is_number() && is_element(&item.to_string(), dtype);
        match serde_json::from_str(&value.text) {
            Ok(Value::Array(items)) if items.iter().all(is_element) => Ok(value),
            _ => Err(AttrError::Number { text: text.trim().to_owned(), dtype: Some(dtype) }),
        }
    }

    /// The text, as it is stored.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The type.
    pub fn kind(&self) -> AttrType {
        self.kind
    }

    /// The value as a float; `None` if it is not a number.
    pub fn as_f64(&self) -> Option<f64> {
        match self.kind {
            AttrType::Number(_) => self.text.trim().parse().ok(),
            _ => None,
        }
    }

    /// A stored value. Any text is accepted.
    pub(crate) fn from_stored(text: &str, recorded: Option<&str>) -> Self {
        let dtype = |name: &str| ElementType::ALL.into_iter().find(|dtype| dtype.name() == name);
        match recorded {
            Some("string") => text.into(),
            Some(name) if dtype(name).is_some_and(|dtype| is_element(text.trim(), dtype)) => {
                Self { text: text.to_owned(), kind: AttrType::Number(dtype(name)) }
            }
            _ => Self::implied(text),
        }
    }

    /// The value of a text without a recorded type.
    fn implied(text: &str) -> Self {
        // A quoted string is stored without its quotes: quotes are part of the text.
        match Self::parse(text) {
            Ok(value) if value.kind != AttrType::String => Self { text: text.to_owned(), ..value },
            _ => text.into(),
        }
    }

    /// The name of the type, if it does not follow from the text.
    pub(crate) fn recorded_type(&self) -> Option<&'static str> {
        if Self::implied(&self.text) == *self {
            return None;
        }
        match self.kind {
            AttrType::String => Some("string"),
            AttrType::Number(Some(dtype)) => Some(dtype.name()),
            // Values of these types are always recognized by their text.
            AttrType::Bool | AttrType::Json | AttrType::Number(None) => None,
        }
    }

    /// The value as JSON, for the attributes of a file.
    pub(crate) fn to_json(&self) -> Result<Value, AttrError> {
        match self.kind {
            AttrType::String => Ok(self.text.clone().into()),
            AttrType::Bool | AttrType::Json | AttrType::Number(_) => {
                serde_json::from_str(&self.text).map_err(|_| AttrError::NotFinite { text: self.text.clone() })
            }
        }
    }

    /// The value of a file attribute.
    pub(crate) fn from_json(value: &Value) -> Self {
        let kind = match value {
            Value::String(text) => return text.clone().into(),
            Value::Bool(_) => AttrType::Bool,
            Value::Number(_) => AttrType::Number(None),
            Value::Null | Value::Array(_) | Value::Object(_) => AttrType::Json,
        };
        Self { text: value.to_string(), kind }
    }

    /// Whether the CF conventions require a number, or a list of two, as the value of an attribute.
    pub fn must_be_number(key: &str) -> bool {
        const KEYS: [&str; 8] = [
            "_FillValue",
            "missing_value",
            "fill_value",
            "scale_factor",
            "add_offset",
            "valid_min",
            "valid_max",
            "valid_range",
        ];
        KEYS.contains(&key)
    }

    /// Checks the value of an attribute that Tercet itself uses, for a dataset of this type: it is a number, or two
    /// for a range. Other attributes may have any value.
    pub(crate) fn checked(&self, key: &str, dtype: ElementType) -> Result<Self, AttrError> {
        let text = self.text.trim();
        let number = |text: &str| {
            text.parse::<f64>().map_err(|_| AttrError::Number { text: text.to_owned(), dtype: None })
        };
        let finite = |text: &str| {
            number(text)?
                .is_finite()
                .then_some(())
                .ok_or_else(|| AttrError::NotFinite { text: text.to_owned() })
        };
        let typed = |text: &str| Self::from_stored(text, Some(dtype.name())).untyped_if_implied();
        match key {
            // By the CF conventions there may be several of these values only.
            "missing_value" if text.starts_with('[') => match Self::typed(text, dtype)? {
                list if list.text.trim_matches(['[', ']', ' ']).is_empty() => Err(AttrError::Empty),
                list => Ok(list),
            },
            "_FillValue" | "fill_value" if text.starts_with('[') => Err(AttrError::List),
            "_FillValue" | "missing_value" | "fill_value" => Self::number(text, dtype).map(|_| typed(text)),
            "scale_factor" | "add_offset" => {
                finite(text)?;
                if key == "scale_factor" && number(text)? == 0.0 {
                    return Err(AttrError::Zero);
                }
                Ok(self.as_number(text))
            }
            "valid_min" | "valid_max" => {
                number(text)?;
                Ok(self.as_number(text))
            }
            "valid_range" => {
                let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
                let split = |c: char| c == ',' || c.is_whitespace();
                let ends: Vec<&str> = inner.split(split).filter(|part| !part.is_empty()).collect();
                let wrong = || AttrError::Range { text: text.to_owned() };
                let [low, high] = ends[..] else { return Err(wrong()) };
                if !is_json_number(low) || !is_json_number(high) {
                    return Err(wrong());
                }
                if number(low)? > number(high)? {
                    return Err(AttrError::ReversedRange { text: text.to_owned() });
                }
                Ok(Self { text: format!("[{low},{high}]"), kind: AttrType::Json })
            }
            _ => Ok(self.clone()),
        }
    }

    /// A number with this text. A string becomes a number; a given element type is kept.
    fn as_number(&self, text: &str) -> Self {
        let dtype = match self.kind {
            AttrType::Number(dtype) => dtype,
            _ if is_json_number(text) => None,
            _ => Some(ElementType::F64),
        };
        Self { text: text.to_owned(), kind: AttrType::Number(dtype) }
    }

    fn untyped_if_implied(self) -> Self {
        if is_json_number(&self.text) { Self { kind: AttrType::Number(None), ..self } } else { self }
    }
}

impl fmt::Display for AttrValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The text of a float; whole numbers keep a decimal point.
fn float_text(value: f64) -> String {
    format!("{value:?}")
}

/// Whether a text is a number in JSON.
fn is_json_number(text: &str) -> bool {
    text.as_bytes().first().is_some_and(|byte| *byte == b'-' || byte.is_ascii_digit())
        && text.len() <= 64
        && !text.ends_with(char::is_whitespace)
        && serde_json::from_str::<serde_json::Number>(text).is_ok()
}

/// Whether a text is a value of an element type.
fn is_element(text: &str, dtype: ElementType) -> bool {
    if dtype.is_float() {
        return text.parse::<f64>().is_ok();
    }
    with_element!(dtype, |T| <T as Whole>::parses(text))
}

/// An element type whose values are parsed from text.
trait Whole {
    fn parses(text: &str) -> bool;
}

macro_rules! whole {
    ($($type:ty),*) => {$(
        impl Whole for $type {
            fn parses(text: &str) -> bool {
                text.parse::<$type>().is_ok()
            }
        }
    )*};
}

whole!(u8, u16, u32, u64, i16, i32, i64, f32, f64);

impl Whole for tercet_core::tensor::f16 {
    fn parses(text: &str) -> bool {
        text.parse::<f64>().is_ok()
    }
}

/// The recorded type of an attribute.
pub(crate) fn recorded<'m>(members: &'m Map<String, Value>, key: &str) -> Option<&'m str> {
    members.get(ATTR_TYPES)?.get(key)?.as_str()
}

/// Records the type of an attribute, or removes the record.
pub(crate) fn record(members: &mut Map<String, Value>, key: &str, kind: Option<&str>) {
    match (members.get_mut(ATTR_TYPES).and_then(Value::as_object_mut), kind) {
        (Some(types), Some(kind)) => {
            types.insert(key.to_owned(), kind.into());
        }
        (Some(types), None) => {
            // The order of the others is kept.
            types.shift_remove(key);
            if types.is_empty() {
                members.shift_remove(ATTR_TYPES);
            }
        }
        (None, Some(kind)) => {
            members.insert(
                ATTR_TYPES.to_owned(),
                Value::Object(Map::from_iter([(key.to_owned(), kind.into())])),
            );
        }
        (None, None) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_holds_for_the_numbers_of_lists() {
        let typed = AttrValue::typed;
        assert_eq!(typed("[1, 2.5]", ElementType::F32).unwrap().text(), "[1,2.5]");
        assert_eq!(typed("7", ElementType::I16).unwrap().kind(), AttrType::Number(Some(ElementType::I16)));
        for (text, dtype) in [
            ("[1, 2.5]", ElementType::I16),
            ("[1, 70000]", ElementType::I16),
            ("[1, \"x\"]", ElementType::F32),
            ("[1, [2]]", ElementType::F32),
            ("hello", ElementType::F32),
        ] {
            assert!(matches!(typed(text, dtype), Err(AttrError::Number { .. })), "{text}");
        }
    }

    #[test]
    fn types_follow_from_the_text_or_are_recorded() {
        let forced = |text: &str| AttrValue::from(text);
        for (value, kind) in [
            (AttrValue::parse("850").unwrap(), None),
            (AttrValue::parse("-1.5e3").unwrap(), None),
            (AttrValue::parse("true").unwrap(), None),
            (AttrValue::parse("[1, \"a\"]").unwrap(), None),
            (AttrValue::parse("{\"a\": [1]}").unwrap(), None),
            (AttrValue::parse("K").unwrap(), None),
            (AttrValue::parse("007").unwrap(), None),
            (AttrValue::parse("1 m").unwrap(), None),
            (AttrValue::parse("\"850\"").unwrap(), Some("string")),
            (forced("850"), Some("string")),
            (forced("false"), Some("string")),
            (forced("[]"), Some("string")),
            (forced("\"quoted\""), None),
            (forced("[K"), None),
            (AttrValue::number("1", ElementType::I16).unwrap(), Some("i16")),
            (AttrValue::from(0.5), None),
            (AttrValue::from(f64::NAN), Some("f64")),
            (AttrValue::from(1e300), None),
            (AttrValue::from(i64::MIN), None),
        ] {
            assert_eq!(value.recorded_type(), kind, "{value:?}");
            assert_eq!(AttrValue::from_stored(value.text(), value.recorded_type()), value, "{value:?}");
        }
        for wrong in ["", " ", "[1,", "{a}", "\"x", "[1] 2", "\"\""] {
            assert!(AttrValue::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_are_values_of_their_type() {
        for (text, dtype, fits) in [
            ("255", ElementType::U8, true),
            ("256", ElementType::U8, false),
            ("-1", ElementType::U8, false),
            ("1.0", ElementType::I16, false),
            ("-32768", ElementType::I16, true),
            ("nan", ElementType::F32, true),
            ("1e400", ElementType::F64, true),
            ("x", ElementType::F16, false),
        ] {
            assert_eq!(AttrValue::number(text, dtype).is_ok(), fits, "{text} {dtype}");
        }
    }

    #[test]
    fn known_attributes_are_numbers() {
        let check = |key: &str, text: &str, dtype| {
            let value = AttrValue::parse(text).unwrap();
            value.checked(key, dtype).map(|value| (value.text().to_owned(), value.recorded_type()))
        };
        let done = |text: &str| Ok((text.to_owned(), None));
        assert_eq!(check("_FillValue", "-999", ElementType::I16), done("-999"));
        assert_eq!(check("_FillValue", "NaN", ElementType::F32), Ok(("NaN".to_owned(), Some("f32"))));
        assert_eq!(check("_FillValue", "1e20", ElementType::F32), done("1e20"));
        assert!(matches!(
            check("valid_range", "[5, 1]", ElementType::I16),
            Err(AttrError::ReversedRange { .. })
        ));
        assert_eq!(check("valid_range", "1 1", ElementType::I16), done("[1,1]"));
        assert!(check("_FillValue", "-999", ElementType::U8).is_err());
        assert!(check("missing_value", "none", ElementType::F32).is_err());
        assert_eq!(check("missing_value", "[1,2]", ElementType::I16).unwrap().0, "[1,2]");
        assert!(check("missing_value", "[]", ElementType::I16).is_err());
        assert!(check("missing_value", "[1,70000]", ElementType::I16).is_err());
        assert_eq!(check("_FillValue", "[1,2]", ElementType::I16), Err(AttrError::List));
        assert_eq!(check("scale_factor", "0.01", ElementType::I16), done("0.01"));
        assert_eq!(check("scale_factor", "0", ElementType::I16), Err(AttrError::Zero));
        assert!(check("add_offset", "inf", ElementType::I16).is_err());
        for text in ["[0, 100]", "0,100", "0 100"] {
            assert_eq!(check("valid_range", text, ElementType::I16), done("[0,100]"), "{text}");
        }
        assert!(check("valid_range", "5", ElementType::I16).is_err());
        assert_eq!(check("units", "K", ElementType::I16), done("K"));
        let forced = AttrValue::from("0.01").checked("scale_factor", ElementType::I16).unwrap();
        assert_eq!(forced.kind(), AttrType::Number(None), "a known attribute keeps its type");
    }
}
