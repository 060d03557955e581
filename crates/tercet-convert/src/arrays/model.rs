//! The common model of array files: dimensions, variables, attributes.

use std::fmt;

use serde_json::Value;
use tercet_core::DType;

/// The structure of an array file: everything but the values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    /// The name of the file format.
    pub format: String,
    /// Attributes of the file. Those of a group are named `group/attribute`.
    pub attrs: Vec<Attr>,
    /// Dimensions. Those of a group are named `group/dimension`.
    pub dims: Vec<Dim>,
    /// Variables. Those of a group are named `group/variable`.
    pub variables: Vec<Variable>,
    /// Parts of the file that cannot be read: a name and the reason.
    pub unreadable: Vec<(String, String)>,
    /// Remarks on variables for the report, such as missing fields: a name and the remark.
    pub notes: Vec<(String, String)>,
}

/// A dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dim {
    /// The name.
    pub name: String,
    /// The length.
    pub len: u64,
    /// Whether the file format lets it grow.
    pub unlimited: bool,
}

/// A variable: a named array with dimensions and attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// The name.
    pub name: String,
    /// The type of the elements.
    pub kind: Kind,
    /// The names of the dimensions, one per axis.
    pub dims: Vec<String>,
    /// The shape. A scalar has none.
    pub shape: Vec<u64>,
    /// The chunk shape of the file; `None` if the values are contiguous.
    pub chunks: Option<Vec<u64>>,
    /// Attributes, in the order of the file.
    pub attrs: Vec<Attr>,
}

/// The type of the elements of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Numbers or bools.
    Number(DType),
    /// Characters of one byte. The last axis is the length of strings.
    Char,
    /// Strings of any length.
    String,
}

/// An attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct Attr {
    /// The name.
    pub name: String,
    /// The value.
    pub value: AttrData,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttrData {
    /// A string.
    Text(String),
    /// A list of strings.
    Strings(Vec<String>),
    /// Numbers of one type.
    Numbers(Numbers),
    /// Any other JSON value.
    Json(Value),
}

/// Numbers of one element type: a scalar or a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers {
    /// The element type: an integer or float type.
    pub dtype: DType,
    /// The elements, little-endian.
    pub bytes: Vec<u8>,
    /// Whether it is a list. One number that is not a list is a scalar.
    pub is_list: bool,
}

impl Header {
    /// The variable with this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.variables.iter().position(|variable| variable.name == name)
    }

    /// Whether a variable has the bounds of a coordinate.
    pub(crate) fn is_bounds(&self, name: &str) -> bool {
        let group = |name: &str| name.rsplit_once('/').map_or(0, |(group, _)| group.len() + 1);
        let names = |attr: &str, variable: &Variable| {
            let named = variable.attr(attr).and_then(AttrData::as_text);
            // Also a name in the same group.
            named.is_some_and(|text| {
                text == name
                    || name.get(group(name)..) == Some(text)
                        && name[..group(name)] == variable.name[..group(&variable.name)]
            })
        };
        self.variables.iter().any(|variable| names("bounds", variable) || names("climatology", variable))
    }

    /// The dimension with this name.
    pub fn dim(&self, name: &str) -> Option<&Dim> {
        self.dims.iter().find(|dim| dim.name == name)
    }

    /// The number of bytes of all values, without strings.
    pub fn bytes(&self) -> u64 {
        self.variables.iter().map(Variable::bytes).fold(0, u64::saturating_add)
    }
}

impl Variable {
    /// The element type in memory; strings have none.
    pub fn dtype(&self) -> Option<DType> {
        match self.kind {
            Kind::Number(dtype) => Some(dtype),
            Kind::Char => Some(DType::U8),
            Kind::String => None,
        }
    }

    /// The size of an element in bytes; 0 for strings.
    pub fn item_size(&self) -> usize {
        self.dtype().and_then(DType::size).unwrap_or(0)
    }

    /// The number of elements.
    pub fn elements(&self) -> u64 {
        self.shape.iter().fold(1, |product: u64, &extent| product.saturating_mul(extent))
    }

    /// The length of the values in bytes.
    pub fn bytes(&self) -> u64 {
        self.elements().saturating_mul(self.item_size() as u64)
    }

    /// The attribute with this name.
    pub fn attr(&self, name: &str) -> Option<&AttrData> {
        self.attrs.iter().find(|attr| attr.name == name).map(|attr| &attr.value)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(dtype) => dtype.fmt(f),
            Self::Char => f.pad("char"),
            Self::String => f.pad("string"),
        }
    }
}

impl Attr {
    /// An attribute.
    pub fn new(name: impl Into<String>, value: AttrData) -> Self {
        Self { name: name.into(), value }
    }

    /// A string attribute.
    pub fn text(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(name, AttrData::Text(text.into()))
    }
}

/// A number in the widest types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer.
    Int(i128),
    /// A float.
    Float(f64),
}

impl Number {
    /// The number as a float.
    #[expect(clippy::cast_precision_loss, reason = "the nearest float")]
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

/// Reads one element of an integer or float type.
pub fn number_at(dtype: DType, bytes: &[u8]) -> Option<Number> {
    use tercet_core::tensor::f16;
    macro_rules! read {
        ($type:ty) => {
            <$type>::from_le_bytes(bytes.try_into().ok()?)
        };
    }
    Some(match dtype {
        DType::I8 => Number::Int(read!(i8).into()),
        DType::U8 | DType::Bool => Number::Int(read!(u8).into()),
        DType::I16 => Number::Int(read!(i16).into()),
        DType::U16 => Number::Int(read!(u16).into()),
        DType::I32 => Number::Int(read!(i32).into()),
        DType::U32 => Number::Int(read!(u32).into()),
        DType::I64 => Number::Int(read!(i64).into()),
        DType::U64 => Number::Int(read!(u64).into()),
        DType::F16 => Number::Float(read!(f16).to_f64()),
        DType::BF16 => Number::Float(f64::from(f32::from_bits(u32::from(read!(u16)) << 16))),
        DType::F32 => Number::Float(read!(f32).into()),
        DType::F64 => Number::Float(read!(f64)),
        _ => return None,
    })
}

/// Appends a number as an element of a type. Returns `false`, and appends nothing, if the type cannot hold the value exactly.
/// NaN and infinities fit into float types.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "conversions are compared")]
pub fn push_number(dtype: DType, number: Number, out: &mut Vec<u8>) -> bool {
    use tercet_core::tensor::f16;
    let whole = match number {
        Number::Int(value) => Some(value),
        Number::Float(value) if value.fract() == 0.0 && value.abs() < 1e30 => Some(value as i128),
        Number::Float(_) => None,
    };
    let float = match number {
        Number::Float(value) => Some(value),
        Number::Int(value) => Some(value as f64).filter(|float| *float as i128 == value),
    };
    macro_rules! int {
        ($type:ty) => {
            whole.and_then(|value| <$type>::try_from(value).ok()).map(|value| out.extend(value.to_le_bytes()))
        };
    }
    let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    let done = match dtype {
        DType::I8 => int!(i8),
        DType::U8 => int!(u8),
        DType::I16 => int!(i16),
        DType::U16 => int!(u16),
        DType::I32 => int!(i32),
        DType::U32 => int!(u32),
        DType::I64 => int!(i64),
        DType::U64 => int!(u64),
        DType::F16 => float
            .filter(|value| same(f16::from_f64(*value).to_f64(), *value))
            .map(|value| out.extend(f16::from_f64(value).to_le_bytes())),
        DType::F32 => float
            .filter(|value| same(f64::from(*value as f32), *value))
            .map(|value| out.extend((value as f32).to_le_bytes())),
        DType::F64 => float.map(|value| out.extend(value.to_le_bytes())),
        _ => None,
    };
    done.is_some()
}

impl Numbers {
    /// A scalar.
    pub fn scalar(dtype: DType, bytes: Vec<u8>) -> Self {
        Self { dtype, bytes, is_list: false }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.dtype.size().unwrap_or(1).max(1)
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The elements.
    pub fn iter(&self) -> impl Iterator<Item = Number> + '_ {
        let size = self.dtype.size().unwrap_or(1).max(1);
        self.bytes.chunks_exact(size).filter_map(move |element| number_at(self.dtype, element))
    }

    /// The first element.
    pub fn first(&self) -> Option<Number> {
        self.iter().next()
    }

    /// The same numbers as another type; `None` if one does not fit exactly.
    pub fn converted(&self, dtype: DType) -> Option<Self> {
        let mut bytes = Vec::new();
        let fits = self.iter().all(|number| push_number(dtype, number, &mut bytes));
        fits.then_some(Self { dtype, bytes, is_list: self.is_list })
    }

    /// The text of the elements.
    pub fn texts(&self) -> Vec<String> {
        self.iter().map(|number| number_text(number, self.dtype)).collect()
    }

    /// The numbers of strings.
    pub fn parse(dtype: DType, texts: &[&str], is_list: bool) -> Option<Self> {
        let mut bytes = Vec::new();
        for text in texts {
            let text = text.trim();
            // A float is rounded to the type; its text is the shortest that gives the same bits.
            let number = if dtype.is_float() {
                let value: f64 = text.parse().ok()?;
                match dtype {
                    DType::F32 => Number::Float(text.parse::<f32>().ok()?.into()),
                    DType::F16 => Number::Float(tercet_core::tensor::f16::from_f64(value).to_f64()),
                    _ => Number::Float(value),
                }
            } else {
                Number::Int(text.parse().ok()?)
            };
            if !push_number(dtype, number, &mut bytes) {
                return None;
            }
        }
        Some(Self { dtype, bytes, is_list })
    }
}

/// The shortest text that is read as the same number.
#[expect(clippy::cast_possible_truncation, reason = "the number is one of this type")]
fn number_text(number: Number, dtype: DType) -> String {
    match (number, dtype) {
        (Number::Int(value), _) => value.to_string(),
        (Number::Float(value), DType::F32) => format!("{:?}", value as f32),
        (Number::Float(value), _) => format!("{value:?}"),
    }
}

impl AttrData {
    /// A scalar float attribute.
    pub fn f64(value: f64) -> Self {
        Self::Numbers(Numbers::scalar(DType::F64, value.to_le_bytes().to_vec()))
    }

    /// A scalar integer attribute.
    pub fn i64(value: i64) -> Self {
        Self::Numbers(Numbers::scalar(DType::I64, value.to_le_bytes().to_vec()))
    }

    /// The string, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The first number, if there is one.
    pub fn as_number(&self) -> Option<Number> {
        match self {
            Self::Numbers(numbers) => numbers.first(),
            _ => None,
        }
    }

    /// The name of the type.
    pub fn type_name(&self) -> String {
        match self {
            Self::Text(_) => "string".to_owned(),
            Self::Strings(_) => "string list".to_owned(),
            Self::Numbers(numbers) if numbers.is_list => format!("{} list", numbers.dtype),
            Self::Numbers(numbers) => numbers.dtype.to_string(),
            Self::Json(_) => "JSON".to_owned(),
        }
    }

    /// The value as JSON. NaN and infinities become strings.
    pub fn to_json(&self) -> Value {
        let json = |number: Number, dtype: DType| match number {
            Number::Int(value) => match (i64::try_from(value), u64::try_from(value)) {
                (Ok(value), _) => value.into(),
                (_, Ok(value)) => value.into(),
                _ => value.to_string().into(),
            },
            // The shortest text of the type, not the digits of a wider one.
            Number::Float(value) if value.is_finite() => {
                number_text(number, dtype).parse::<serde_json::Number>().map_or(Value::Null, Value::Number)
            }
            Number::Float(value) if value.is_nan() => "NaN".into(),
            Number::Float(value) => (if value > 0.0 { "Infinity" } else { "-Infinity" }).into(),
        };
        match self {
            Self::Text(text) => text.clone().into(),
            Self::Strings(texts) => texts.clone().into(),
            Self::Json(value) => value.clone(),
            Self::Numbers(numbers) if numbers.is_list => {
                numbers.iter().map(|number| json(number, numbers.dtype)).collect()
            }
            Self::Numbers(numbers) => {
                numbers.first().map_or(Value::Null, |number| json(number, numbers.dtype))
            }
        }
    }

    /// The value of JSON: integers are int64 or uint64, other numbers float64.
    pub fn from_json(value: &Value) -> Self {
        let number = |value: &Value| -> Option<(DType, Vec<u8>)> {
            let number = value.as_number()?;
            if let Some(value) = number.as_i64() {
                Some((DType::I64, value.to_le_bytes().to_vec()))
            } else if let Some(value) = number.as_u64() {
                Some((DType::U64, value.to_le_bytes().to_vec()))
            } else {
                number.as_f64().map(|value| (DType::F64, value.to_le_bytes().to_vec()))
            }
        };
        match value {
            Value::String(text) => Self::Text(text.clone()),
            Value::Number(_) => match number(value) {
                Some((dtype, bytes)) => Self::Numbers(Numbers::scalar(dtype, bytes)),
                None => Self::Json(value.clone()),
            },
            Value::Array(items) if !items.is_empty() => {
                let texts: Option<Vec<String>> =
                    items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
                if let Some(texts) = texts {
                    return Self::Strings(texts);
                }
                let numbers: Option<Vec<_>> = items.iter().map(number).collect();
                match numbers {
                    Some(numbers) if numbers.iter().all(|(dtype, _)| *dtype == numbers[0].0) => {
                        let dtype = numbers[0].0;
                        let bytes = numbers.into_iter().flat_map(|(_, bytes)| bytes).collect();
                        Self::Numbers(Numbers { dtype, bytes, is_list: true })
                    }
                    _ => Self::Json(value.clone()),
                }
            }
            other => Self::Json(other.clone()),
        }
    }

    /// The value as text, for formats that store strings only.
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Numbers(numbers) if !numbers.is_list => numbers.texts().concat(),
            other => other.to_json().to_string(),
        }
    }
}
