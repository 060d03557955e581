//! Scalars as text and as JSON.

use serde::Serialize;
use serde_json::Value as Json;
use serde_json::value::RawValue;
use tercet::core::escape;
use tercet::tatami::{LogicalType, Scalar, Type};

/// Longer strings are truncated.
const SHOWN_CHARS: usize = 40;

/// A scalar in JSON output. Only numbers are written as they are: strings are escaped for terminals.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum JsonScalar {
    Number(Box<RawValue>),
    Value(Json),
}

/// A scalar as JSON, by its logical type.
pub(super) fn typed_json(kind: Type, logical_type: Option<LogicalType>, value: &Scalar) -> JsonScalar {
    let Some((text, is_number)) = logical_type.and_then(|kind| Some((kind.format(value)?, kind.is_number())))
    else {
        return JsonScalar::Value(value.to_json(kind == Type::String));
    };
    match is_number.then(|| RawValue::from_string(text.clone())) {
        Some(Ok(number)) => JsonScalar::Number(number),
        _ => JsonScalar::Value(text.into()),
    }
}

/// A scalar as text: by its logical type, strings truncated, bytes as hex.
pub(super) fn display(kind: Type, logical_type: Option<LogicalType>, value: &Scalar) -> String {
    if let Some(text) = logical_type.and_then(|kind| kind.format(value)) {
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
        assert_eq!(Scalar::Float32(68.112_946).to_json(false).to_string(), "68.112946");
        assert_eq!(Scalar::Float64(f64::NAN).to_json(false), "NaN");
        assert_eq!(Scalar::Bytes(b"red".to_vec()).to_json(true), "red");
        assert_eq!(Scalar::Bytes(b"red".to_vec()).to_json(false), "cmVk");
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
