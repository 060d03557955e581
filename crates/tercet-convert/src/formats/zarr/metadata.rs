//! Metadata of arrays.

use serde_json::Value;
use tercet_core::DType;

use super::codecs::{Codecs, FixedText, Serializer};
use super::filters::StoredType;
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
    /// A remark for the report.
    pub(super) note: Option<String>,
}

/// The type of an array.
struct DataType {
    kind: Kind,
    is_big: bool,
    /// Strings of a fixed width.
    text: Option<FixedText>,
    /// Times and durations: the units in the words of CF, and the remark.
    time: Option<(String, String)>,
}

impl DataType {
    fn number(dtype: DType, is_big: bool) -> Self {
        Self { kind: Kind::Number(dtype), is_big, text: None, time: None }
    }

    fn text(width: u64, is_utf32: bool, is_big: bool) -> Parse<Self> {
        let width = usize::try_from(width).ok().filter(|width| (1..=1 << 20).contains(width));
        let width = width.ok_or("strings without a width")?;
        let text = FixedText { width, is_utf32, is_big };
        Ok(Self { kind: Kind::String, is_big, text: Some(text), time: None })
    }

    /// Times since 1970, or durations.
    fn time(is_duration: bool, unit: &str, is_big: bool) -> Parse<Self> {
        let name = match unit {
            "ns" => "nanoseconds",
            "us" => "microseconds",
            "ms" => "milliseconds",
            "s" => "seconds",
            "m" => "minutes",
            "h" => "hours",
            "D" => "days",
            "W" => "weeks",
            _ => return Err(format!("times in the unit `{unit}` are not supported")),
        };
        let (units, kind) = if is_duration {
            (name.to_owned(), "timedelta64")
        } else {
            (format!("{name} since 1970-01-01"), "datetime64")
        };
        let note = format!("{kind}[{unit}] read as int64 with the units `{units}`");
        Ok(Self { kind: Kind::Number(DType::I64), is_big, text: None, time: Some((units, note)) })
    }

    /// Version 3: a name, or a name with a configuration.
    fn version_3(value: &Value) -> Parse<Self> {
        let wrong = || format!("the data type {value} is not supported");
        let name = value.as_str().or_else(|| value.get("name").and_then(Value::as_str)).ok_or_else(wrong)?;
        let option = |name: &str| value.get("configuration").and_then(|options| options.get(name));
        let width = || option("length_bytes").and_then(Value::as_u64).unwrap_or(0);
        match name {
            "string" | "variable_length_utf8" => {
                Ok(Self { kind: Kind::String, is_big: false, text: None, time: None })
            }
            "fixed_length_utf32" => Self::text(width(), true, false),
            "null_terminated_bytes" => Self::text(width(), false, false),
            "numpy.datetime64" | "numpy.timedelta64" => {
                if option("scale_factor").and_then(Value::as_u64).unwrap_or(1) != 1 {
                    return Err(wrong());
                }
                let unit = option("unit").and_then(Value::as_str).unwrap_or_default();
                Self::time(name == "numpy.timedelta64", unit, false)
            }
            other => {
                let dtype = DType::from_name(other).filter(|dtype| *dtype != DType::Bitmask);
                Ok(Self::number(dtype.ok_or_else(wrong)?, false))
            }
        }
    }

    /// Version 2: `<f4`, `|b1`, `|S5`, `<U5`, `<M8[ns]`, ….
    fn version_2(text: &str) -> Parse<Self> {
        let wrong = || format!("the data type `{text}` is not supported");
        if text == "|O" {
            return Ok(Self { kind: Kind::String, is_big: false, text: None, time: None });
        }
        let (order, rest) = text.split_at_checked(1).ok_or_else(wrong)?;
        let is_big = order == ">";
        if let Some(width) = rest.strip_prefix('S') {
            return Self::text(width.parse().map_err(|_| wrong())?, false, false);
        }
        if let Some(width) = rest.strip_prefix('U') {
            let units: u64 = width.parse().map_err(|_| wrong())?;
            return Self::text(units.saturating_mul(4), true, is_big);
        }
        for (prefix, is_duration) in [("M8[", false), ("m8[", true)] {
            if let Some(unit) = rest.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(']')) {
                return Self::time(is_duration, unit, is_big);
            }
        }
        let StoredType { dtype, is_big } = StoredType::parse(text)?;
        Ok(Self::number(dtype, is_big))
    }

    /// Adds what CF needs to understand times.
    fn describe(&self, attrs: &mut Vec<Attr>) -> Option<String> {
        let (units, note) = self.time.as_ref()?;
        let has = |attrs: &[Attr], name: &str| attrs.iter().any(|attr| attr.name == name);
        if !has(attrs, "units") {
            attrs.push(Attr::text("units", units));
            if units.contains(" since ") {
                attrs.push(Attr::text("calendar", "proleptic_gregorian"));
            }
        }
        // NaT.
        if !has(attrs, "_FillValue") {
            let missing = Numbers::scalar(DType::I64, i64::MIN.to_le_bytes().to_vec());
            attrs.push(Attr::new("_FillValue", AttrData::Numbers(missing)));
        }
        Some(note.clone())
    }
}

type Parse<T> = Result<T, String>;

fn numbers(value: Option<&Value>) -> Parse<Vec<u64>> {
    let list = value.and_then(Value::as_array).ok_or("a shape is not a list")?;
    list.iter().map(|item| item.as_u64().ok_or_else(|| "a shape has negative numbers".to_owned())).collect()
}

/// The floats that JSON does not have. Python writes them nevertheless.
const CONSTANTS: [(&str, f64); 3] =
    [("NaN", f64::NAN), ("-Infinity", f64::NEG_INFINITY), ("Infinity", f64::INFINITY)];
/// The first character of a string that replaces such a float.
const MARK: char = '\u{1}';

/// Parses a metadata file. Floats that JSON does not have become marked strings.
pub(super) fn parse_json(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(bytes).or_else(|error| {
        let mut quoted = Vec::with_capacity(bytes.len() + 64);
        let (mut at, mut is_string) = (0, false);
        while let Some(&byte) = bytes.get(at) {
            let constant =
                CONSTANTS.iter().find(|(name, _)| !is_string && bytes[at..].starts_with(name.as_bytes()));
            if let Some((name, _)) = constant {
                quoted.extend(format!("\"\\u0001{name}\"").bytes());
                at += name.len();
                continue;
            }
            if is_string && byte == b'\\' {
                quoted.extend(&bytes[at..(at + 2).min(bytes.len())]);
                at += 2;
                continue;
            }
            is_string ^= byte == b'"';
            quoted.push(byte);
            at += 1;
        }
        serde_json::from_slice(&quoted).map_err(|_| error)
    })
}

/// The float that a marked string replaces.
fn constant(value: &Value) -> Option<f64> {
    let name = value.as_str()?.strip_prefix(MARK)?;
    CONSTANTS.iter().find(|(found, _)| *found == name).map(|(_, float)| *float)
}

/// The attributes of a node.
pub(super) fn attributes(value: Option<&Value>) -> Vec<Attr> {
    let float = |value: &Value| constant(value).or_else(|| value.as_f64());
    let floats = |list: &[Value], is_list: bool| {
        let floats: Option<Vec<f64>> = list.iter().map(float).collect();
        let bytes = floats?.into_iter().flat_map(f64::to_le_bytes).collect();
        Some(AttrData::Numbers(Numbers { dtype: DType::F64, bytes, is_list }))
    };
    let data = |value: &Value| match value {
        Value::Array(list) if list.iter().any(|item| constant(item).is_some()) => floats(list, true),
        value if constant(value).is_some() => floats(std::slice::from_ref(value), false),
        _ => None,
    };
    let members = value.and_then(Value::as_object).into_iter().flatten();
    let attr = |(name, value): (&String, &Value)| Attr {
        name: name.clone(),
        value: data(value).unwrap_or_else(|| AttrData::from_json(value)),
    };
    members.map(attr).collect()
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
        let data_type = DataType::version_3(node.get("data_type").unwrap_or(&Value::Null))?;
        let kind = data_type.kind;
        let mut codecs = Codecs::parse(node.get("codecs").unwrap_or(&Value::Null), 0)?;
        if let Some(text) = data_type.text {
            codecs.set_text(text);
        }
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
        let note = data_type.describe(&mut attrs);
        let prefix = if is_v2 { "" } else { "c" };
        Self { kind, shape, chunk, fill, codecs, prefix, separator, dims, attrs, note }.checked()
    }

    /// Version 2: `.zarray` and `.zattrs`.
    pub(super) fn version_2(node: &Value, attrs: Option<&Value>) -> Parse<Self> {
        let shape = numbers(node.get("shape"))?;
        let chunk = numbers(node.get("chunks"))?;
        let text = node.get("dtype").and_then(Value::as_str).ok_or("structured types are not supported")?;
        let data_type = DataType::version_2(text)?;
        let kind = data_type.kind;
        let mut codecs = Codecs::version_2(node, data_type.is_big, shape.len())?;
        match data_type.text {
            Some(text) => codecs.set_text(text),
            // Other objects are pickled.
            None if kind == Kind::String && !matches!(codecs.serializer, Serializer::Strings) => {
                return Err("objects that are not strings are not supported".to_owned());
            }
            None => {}
        }
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
            && data_type.time.is_none()
        {
            attrs.push(Attr::new("_FillValue", AttrData::Numbers(Numbers::scalar(dtype, fill.clone()))));
        }
        let note = data_type.describe(&mut attrs);
        Self { kind, shape, chunk, fill, codecs, prefix: "", separator, dims, attrs, note }.checked()
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

/// The bytes of a fill value; of strings, the text.
fn fill_bytes(value: &Value, kind: Kind) -> Parse<Vec<u8>> {
    let Kind::Number(dtype) = kind else { return Ok(value.as_str().unwrap_or_default().as_bytes().to_vec()) };
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
            Value::String(text) => match text.trim_start_matches(MARK) {
                "NaN" => Number::Float(f64::NAN),
                "Infinity" => Number::Float(f64::INFINITY),
                "-Infinity" => Number::Float(f64::NEG_INFINITY),
                "NaT" => Number::Int(i64::MIN.into()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_that_json_lacks_are_read() {
        let text =
            br#"{"a": NaN, "b": [1, -Infinity, Infinity], "c": "NaN", "d": "x\"NaN\\", "e": [NaN, "x"]}"#;
        let attrs = attributes(Some(&parse_json(text).unwrap()));
        let find =
            |name: &str| attrs.iter().find(|attr| attr.name == name).map(|attr| attr.value.clone()).unwrap();
        let floats = |values: &[f64], is_list| {
            let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            AttrData::Numbers(Numbers { dtype: DType::F64, bytes, is_list })
        };
        assert_eq!(find("a"), floats(&[f64::NAN], false));
        assert_eq!(find("b"), floats(&[1.0, f64::NEG_INFINITY, f64::INFINITY], true));
        assert_eq!(find("c"), AttrData::Text("NaN".to_owned()));
        assert_eq!(find("d"), AttrData::Text("x\"NaN\\".to_owned()));
        for damaged in [&b"{\"a\": NaN"[..], b"{\"a\": Nan}", b"NaN NaN", b"\"\\"] {
            assert!(parse_json(damaged).is_err());
        }
    }
}
