//! Metadata of arrays.

use serde_json::Value;
use tercet_core::DType;

use super::codecs::Codecs;
use crate::arrays::{Attr, AttrData, Kind, Number, Numbers, push_number};

/// An array of a store.
#[derive(Clone, Debug)]
pub(super) struct ArrayInfo {
    pub(super) kind: Kind,
    pub(super) shape: Vec<u64>,
    pub(super) chunk: Vec<u64>,
    pub(super) fill: Vec<u8>,
    pub(super) codecs: Codecs,
    /// The key of a chunk is `prefix`, `separator` and the numbers of the chunk.
    pub(super) prefix: &'static str,
    pub(super) separator: char,
    pub(super) dims: Vec<Option<String>>,
    pub(super) attrs: Vec<Attr>,
}

type Parse<T> = Result<T, String>;

fn numbers(value: Option<&Value>) -> Parse<Vec<u64>> {
    let list = value.and_then(Value::as_array).ok_or("a shape is not a list")?;
    list.iter().map(|item| item.as_u64().ok_or_else(|| "a shape has negative numbers".to_owned())).collect()
}

/// The attributes of a node.
pub(super) fn attributes(value: Option<&Value>) -> Vec<Attr> {
    let members = value.and_then(Value::as_object).into_iter().flatten();
    members.map(|(name, value)| Attr { name: name.clone(), value: AttrData::from_json(value) }).collect()
}

impl ArrayInfo {
    /// Version 3: `zarr.json`.
    pub(super) fn version_3(node: &Value) -> Parse<Self> {
        let shape = numbers(node.get("shape"))?;
        let grid = node.get("chunk_grid").unwrap_or(&Value::Null);
        if grid.get("name").and_then(Value::as_str) != Some("regular") {
            return Err("the chunk grid is not regular".to_owned());
        }
        let chunk = numbers(grid.get("configuration").and_then(|options| options.get("chunk_shape")))?;
        let name = node.get("data_type").and_then(Value::as_str).ok_or_else(|| {
            format!("the data type {} is not supported", node.get("data_type").unwrap_or(&Value::Null))
        })?;
        let kind = match name {
            "string" => Kind::String,
            other => Kind::Number(
                DType::from_name(other)
                    .filter(|dtype| *dtype != DType::Bitmask)
                    .ok_or_else(|| format!("the data type `{other}` is not supported"))?,
            ),
        };
        let codecs = Codecs::parse(node.get("codecs").unwrap_or(&Value::Null), 0)?;
        let encoding = node.get("chunk_key_encoding").unwrap_or(&Value::Null);
        let is_v2 = encoding.get("name").and_then(Value::as_str) == Some("v2");
        let separator = encoding
            .get("configuration")
            .and_then(|options| options.get("separator"))
            .and_then(Value::as_str);
        let separator = match separator {
            Some(".") => '.',
            Some("/") => '/',
            None => {
                if is_v2 {
                    '.'
                } else {
                    '/'
                }
            }
            Some(other) => return Err(format!("the separator `{other}` is not supported")),
        };
        let names = node.get("dimension_names").and_then(Value::as_array);
        let dims = match names {
            Some(names) => names.iter().map(|name| name.as_str().map(str::to_owned)).collect(),
            None => vec![None; shape.len()],
        };
        let mut attrs = attributes(node.get("attributes"));
        let fill = fill_bytes(node.get("fill_value").unwrap_or(&Value::Null), kind)?;
        decode_fill_attribute(&mut attrs, kind);
        let prefix = if is_v2 { "" } else { "c" };
        Self { kind, shape, chunk, fill, codecs, prefix, separator, dims, attrs }.checked()
    }

    /// Version 2: `.zarray` and `.zattrs`.
    pub(super) fn version_2(node: &Value, attrs: Option<&Value>) -> Parse<Self> {
        let shape = numbers(node.get("shape"))?;
        let chunk = numbers(node.get("chunks"))?;
        let text = node.get("dtype").and_then(Value::as_str).ok_or("structured types are not supported")?;
        let (kind, big) = version_2_type(text)?;
        let codecs = Codecs::version_2(node, big, shape.len())?;
        let separator =
            if node.get("dimension_separator").and_then(Value::as_str) == Some("/") { '/' } else { '.' };
        let mut attrs = attributes(attrs);
        let named =
            attrs.iter().position(|attr| attr.name == "_ARRAY_DIMENSIONS").map(|at| attrs.remove(at).value);
        let dims = match &named {
            Some(AttrData::Strings(names)) => names.iter().cloned().map(Some).collect(),
            _ => vec![None; shape.len()],
        };
        let value = node.get("fill_value").unwrap_or(&Value::Null);
        let fill = fill_bytes(value, kind)?;
        // xarray uses the fill value of version 2 as the mark of missing values.
        if let (Some(_), Kind::Number(dtype), false) = (&named, kind, value.is_null())
            && !attrs.iter().any(|attr| attr.name == "_FillValue")
            && !matches!(dtype, DType::Bool | DType::C64 | DType::C128)
        {
            attrs.push(Attr::new("_FillValue", AttrData::Numbers(Numbers::scalar(dtype, fill.clone()))));
        }
        Self { kind, shape, chunk, fill, codecs, prefix: "", separator, dims, attrs }.checked()
    }

    fn checked(mut self) -> Parse<Self> {
        let rank = self.shape.len();
        if self.chunk.len() != rank || self.chunk.contains(&0) || rank > 64 {
            return Err(format!("chunks {:?} of an array of shape {:?}", self.chunk, self.shape));
        }
        let size = match self.kind {
            Kind::Number(dtype) => dtype.size().unwrap_or(1) as u64,
            _ => 1,
        };
        let bytes = |shape: &[u64]| {
            shape
                .iter()
                .try_fold(size, |bytes, extent| bytes.checked_mul(*extent))
                .filter(|bytes| *bytes < 1 << 62)
        };
        if bytes(&self.shape).is_none() || bytes(&self.chunk).is_none_or(|bytes| bytes > 8 << 30) {
            return Err(format!(
                "an array of shape {:?} with chunks {:?} is too large",
                self.shape, self.chunk
            ));
        }
        self.dims.resize(rank, None);
        Ok(self)
    }

    /// The key of a chunk, below the path of the array.
    pub(super) fn key(&self, coords: &[u64]) -> String {
        let parts: Vec<String> = coords.iter().map(u64::to_string).collect();
        let joined = parts.join(&self.separator.to_string());
        match (self.prefix, joined.is_empty()) {
            ("", true) => "0".to_owned(),
            ("", false) => joined,
            (prefix, true) => prefix.to_owned(),
            (prefix, false) => format!("{prefix}{}{joined}", self.separator),
        }
    }
}

/// The type of version 2: `<f4`, `|b1`, ….
fn version_2_type(text: &str) -> Parse<(Kind, bool)> {
    let wrong = || format!("the data type `{text}` is not supported");
    if text == "|O" {
        return Ok((Kind::String, false));
    }
    let (order, rest) = text.split_at_checked(1).ok_or_else(wrong)?;
    let dtype = match rest {
        "b1" => DType::Bool,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "u1" => DType::U8,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        "c8" => DType::C64,
        "c16" => DType::C128,
        _ => return Err(wrong()),
    };
    Ok((Kind::Number(dtype), order == ">"))
}

/// The bytes of a fill value.
fn fill_bytes(value: &Value, kind: Kind) -> Parse<Vec<u8>> {
    let Kind::Number(dtype) = kind else { return Ok(vec![0]) };
    let wrong = || format!("the fill value {value} is not supported");
    let size = dtype.size().unwrap_or(1);
    let part = |value: &Value, dtype: DType| -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let number = match value {
            Value::Bool(flag) => Number::Int(i128::from(*flag)),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => Number::Int(value.into()),
                (_, Some(value)) => Number::Int(value.into()),
                _ => Number::Float(number.as_f64()?),
            },
            Value::String(text) => match text.as_str() {
                "NaN" => Number::Float(f64::NAN),
                "Infinity" => Number::Float(f64::INFINITY),
                "-Infinity" => Number::Float(f64::NEG_INFINITY),
                hex => {
                    let bits = u64::from_str_radix(hex.strip_prefix("0x")?, 16).ok()?;
                    return Some(bits.to_le_bytes()[..dtype.size()?.min(8)].to_vec());
                }
            },
            _ => return None,
        };
        let stored = if dtype == DType::Bool { DType::U8 } else { dtype };
        // A float is rounded to the type.
        let number = match (number, stored) {
            #[expect(clippy::cast_possible_truncation, reason = "the type of the array")]
            (number, DType::F32) => Number::Float(f64::from(number.as_f64() as f32)),
            (number, DType::F16) => {
                Number::Float(tercet_core::tensor::f16::from_f64(number.as_f64()).to_f64())
            }
            (number, _) => number,
        };
        push_number(stored, number, &mut out).then_some(out)
    };
    if value.is_null() {
        return Ok(vec![0; size]);
    }
    match dtype {
        DType::C64 | DType::C128 => {
            let half = if dtype == DType::C64 { DType::F32 } else { DType::F64 };
            let parts = match value {
                Value::Array(parts) => parts.clone(),
                other => vec![other.clone(), Value::from(0)],
            };
            let parts: Option<Vec<Vec<u8>>> = parts.iter().map(|value| part(value, half)).collect();
            parts.map(|parts| parts.concat()).filter(|bytes| bytes.len() == size).ok_or_else(wrong)
        }
        DType::BF16 => Err("bfloat16 is not supported".to_owned()),
        _ => part(value, dtype).filter(|bytes| bytes.len() == size).ok_or_else(wrong),
    }
}

/// xarray stores `_FillValue` of floats in base64, as a float64.
fn decode_fill_attribute(attrs: &mut [Attr], kind: Kind) {
    use base64::Engine as _;
    let Kind::Number(dtype) = kind else { return };
    let Some(attr) = attrs.iter_mut().find(|attr| attr.name == "_FillValue") else { return };
    let value = match &attr.value {
        AttrData::Text(text) if dtype.is_float() => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok();
            bytes
                .and_then(|bytes| bytes.try_into().ok())
                .map(|bytes| Number::Float(f64::from_le_bytes(bytes)))
        }
        AttrData::Numbers(numbers) if !numbers.is_list => numbers.first(),
        _ => None,
    };
    let mut bytes = Vec::new();
    if value.is_some_and(|value| push_number(dtype, value, &mut bytes)) {
        attr.value = AttrData::Numbers(Numbers::scalar(dtype, bytes));
    }
}

/// `_FillValue` as xarray stores it.
pub(super) fn attribute_json(attr: &Attr, kind: Kind) -> Value {
    use base64::Engine as _;
    match (&attr.value, kind) {
        (AttrData::Numbers(numbers), Kind::Number(dtype))
            if attr.name == "_FillValue"
                && numbers.dtype == dtype
                && dtype.is_float()
                && !numbers.is_list =>
        {
            let value = numbers.first().map_or(f64::NAN, Number::as_f64);
            base64::engine::general_purpose::STANDARD.encode(value.to_le_bytes()).into()
        }
        (value, _) => value.to_json(),
    }
}
