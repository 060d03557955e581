//! Scalars as text and as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value as Json;
use serde_json::value::RawValue;
use tercet::core::escape;
use tercet::tatami::logical_type::StoredValue;
use tercet::tatami::{LogicalType, Scalar, Type};

/// Longer strings are truncated.
const SHOWN_CHARS: usize = 40;

/// A scalar as JSON, like the output of `cat`; NaN and infinities as strings.
pub(super) fn json(kind: Type, value: &Scalar) -> Json {
    match value {
        Scalar::Bool(value) => (*value).into(),
        Scalar::Int8(value) => (*value).into(),
        Scalar::Int16(value) => (*value).into(),
        Scalar::Int32(value) => (*value).into(),
        Scalar::Int64(value) => (*value).into(),
        Scalar::UInt8(value) => (*value).into(),
        Scalar::UInt16(value) => (*value).into(),
        Scalar::UInt32(value) => (*value).into(),
        Scalar::UInt64(value) => (*value).into(),
        // The shortest digits of the float32.
        Scalar::Float32(value) => number(value.to_string().parse().unwrap_or(f64::from(*value))),
        Scalar::Float64(value) => number(*value),
        Scalar::Bytes(value) if kind == Type::String => String::from_utf8_lossy(value).into(),
        Scalar::Bytes(value) => STANDARD.encode(value).into(),
    }
}

fn number(value: f64) -> Json {
    serde_json::Number::from_f64(value).map_or_else(|| value.to_string().into(), Json::Number)
}

/// A scalar by its logical type; `None` if it has none.
fn logical(logical_type: Option<LogicalType>, value: &Scalar) -> Option<(String, bool)> {
    let logical_type = logical_type?;
    let stored = match value {
        Scalar::Int8(value) => StoredValue::Number((*value).into()),
        Scalar::Int16(value) => StoredValue::Number((*value).into()),
        Scalar::Int32(value) => StoredValue::Number((*value).into()),
        Scalar::Int64(value) => StoredValue::Number(*value),
        Scalar::Bytes(value) => StoredValue::Bytes(value),
        _ => return None,
    };
    let mut text = Vec::new();
    let is_written = logical_type.write(stored, &mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    is_written.then_some((text, logical_type.is_number()))
}

/// A scalar in JSON output. Only numbers are written as they are: strings are escaped for terminals.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum JsonScalar {
    Number(Box<RawValue>),
    Value(Json),
}

/// A scalar as JSON, by its logical type.
pub(super) fn typed_json(kind: Type, logical_type: Option<LogicalType>, value: &Scalar) -> JsonScalar {
    match logical(logical_type, value) {
        Some((text, true)) => match RawValue::from_string(text.clone()) {
            Ok(number) => JsonScalar::Number(number),
            Err(_) => JsonScalar::Value(text.into()),
        },
        Some((text, false)) => JsonScalar::Value(text.into()),
        None => JsonScalar::Value(json(kind, value)),
    }
}

/// A scalar as text: by its logical type, strings truncated, bytes as hex.
pub(super) fn display(kind: Type, logical_type: Option<LogicalType>, value: &Scalar) -> String {
    if let Some((text, _)) = logical(logical_type, value) {
        return cut(&escape::name(&text));
    }
    let Scalar::Bytes(bytes) = value else { return value.to_string() };
    if bytes.is_empty() {
        return "\"\"".to_owned();
    }
    if kind == Type::String {
        return cut(&escape::name(&String::from_utf8_lossy(bytes)));
    }
    let head = &bytes[..bytes.len().min(SHOWN_CHARS)];
    let digits = head.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    cut(&digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect::<String>())
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_equal_the_output_of_cat() {
        assert_eq!(json(Type::Float32, &Scalar::Float32(68.112_946)).to_string(), "68.112946");
        assert_eq!(json(Type::Float64, &Scalar::Float64(f64::NAN)), "NaN");
        assert_eq!(json(Type::String, &Scalar::Bytes(b"red".to_vec())), "red");
        assert_eq!(json(Type::Bytes, &Scalar::Bytes(b"red".to_vec())), "cmVk");
        assert_eq!(
            display(Type::String, None, &Scalar::Bytes(vec![b'a'; 50])),
            format!("{}…", "a".repeat(40))
        );
        assert_eq!(display(Type::Bytes, None, &Scalar::Bytes(vec![0, 255])), "00ff");
        let date = Some(LogicalType::Date32);
        assert_eq!(display(Type::Int32, date, &Scalar::Int32(19_723)), "2024-01-01");
        let text = |value: &JsonScalar| serde_json::to_string(value).unwrap();
        assert_eq!(text(&typed_json(Type::Int32, date, &Scalar::Int32(19_723))), "\"2024-01-01\"");
        let price = Some(LogicalType::Decimal { precision: 9, scale: 2, width: 16 });
        assert_eq!(text(&typed_json(Type::Int32, price, &Scalar::Int32(-1250))), "-12.50");
    }
}
