//! Values as JSON, exactly: what a page would round is a string.

use serde_json::Value as Json;
use tercet::core::num::saturating_usize;
use tercet::core::tensor::{IndexSlice, f16};
use tercet::core::{DType, Tensor};
use tercet::raster;
use tercet::tatami::logical_type::StoredValue;
use tercet::tatami::{Column, LogicalType, Scalar, Type, Values};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The largest integer up to which all integers are exact in a page.
const MAX_EXACT: i128 = 1 << 53;

/// Longer strings are cut.
const MAX_CHARS: usize = 4096;

/// Strings are those of a column by its type.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellType {
    is_text: bool,
    logical_type: Option<LogicalType>,
    is_cut: bool,
}

impl CellType {
    pub(super) fn new(kind: Type, logical_type: Option<LogicalType>, is_cut: bool) -> Self {
        let is_text = kind == Type::String || logical_type.is_some_and(LogicalType::is_text);
        Self { is_text, logical_type: logical_type.filter(|kind| !kind.is_text()), is_cut }
    }
}

/// A value of a column, and whether it was cut.
pub(super) fn cell(column: &Column, row: usize, kind: CellType) -> (Json, bool) {
    if !column.is_present(row) {
        return (Json::Null, false);
    }
    if let Values::List(lists) = &column.values {
        let mut is_cut = false;
        let elements = lists.range(row).map(|element| {
            let (value, cut) = cell(&lists.elements, element, kind);
            is_cut |= cut;
            value
        });
        let elements = elements.collect();
        return (Json::Array(elements), is_cut);
    }
    match column.scalar(row) {
        Some(value) => scalar(&value, kind),
        None => (Json::Null, false),
    }
}

/// A scalar, and whether it was cut.
pub(super) fn scalar(value: &Scalar, kind: CellType) -> (Json, bool) {
    if let Some(text) = kind.logical_type.and_then(|logical_type| logical(logical_type, value)) {
        return (text.into(), false);
    }
    let value = match value {
        Scalar::Bool(value) => (*value).into(),
        Scalar::Int8(value) => (*value).into(),
        Scalar::Int16(value) => (*value).into(),
        Scalar::Int32(value) => (*value).into(),
        Scalar::Int64(value) => integer((*value).into()),
        Scalar::UInt8(value) => (*value).into(),
        Scalar::UInt16(value) => (*value).into(),
        Scalar::UInt32(value) => (*value).into(),
        Scalar::UInt64(value) => integer((*value).into()),
        // The shortest digits of the float32.
        Scalar::Float32(value) => float(value.to_string().parse().unwrap_or(f64::from(*value))),
        Scalar::Float64(value) => float(*value),
        Scalar::Bytes(bytes) if kind.is_text => return cut(&String::from_utf8_lossy(bytes), kind.is_cut),
        Scalar::Bytes(bytes) => return cut(&STANDARD.encode(bytes), kind.is_cut),
    };
    (value, false)
}

fn cut(text: &str, is_cut: bool) -> (Json, bool) {
    match text.char_indices().nth(MAX_CHARS).filter(|_| is_cut) {
        Some((end, _)) => (format!("{}…", &text[..end]).into(), true),
        None => (text.into(), false),
    }
}

fn integer(value: i128) -> Json {
    match i64::try_from(value) {
        Ok(small) if value.abs() <= MAX_EXACT => small.into(),
        _ => value.to_string().into(),
    }
}

fn float(value: f64) -> Json {
    serde_json::Number::from_f64(value).map_or_else(|| value.to_string().into(), Json::Number)
}

/// A value by its logical type.
fn logical(logical_type: LogicalType, value: &Scalar) -> Option<String> {
    let stored = match value {
        Scalar::Int8(value) => StoredValue::Number((*value).into()),
        Scalar::Int16(value) => StoredValue::Number((*value).into()),
        Scalar::Int32(value) => StoredValue::Number((*value).into()),
        Scalar::Int64(value) => StoredValue::Number(*value),
        Scalar::Bytes(value) => StoredValue::Bytes(value),
        _ => return None,
    };
    let mut text = Vec::new();
    logical_type.write(stored, &mut text).then(|| String::from_utf8_lossy(&text).into_owned())
}

/// The elements of a tensor at some positions, row-major. Complex numbers are pairs.
pub(super) fn numbers(tensor: &Tensor, slices: &[(usize, IndexSlice)]) -> Result<Vec<Json>, String> {
    Ok(positions(tensor, slices)?.into_iter().map(|at| element(tensor, at)).collect())
}

/// The bytes of the elements of a tensor at some positions, row-major. Not for bitmasks.
pub(super) fn bytes(tensor: &Tensor, slices: &[(usize, IndexSlice)]) -> Result<Vec<u8>, String> {
    let width = tensor.dtype().size().unwrap_or(1);
    let positions = positions(tensor, slices)?;
    let mut out = Vec::with_capacity(positions.len() * width);
    for at in positions {
        out.extend_from_slice(tensor.bytes().get(at * width..(at + 1) * width).unwrap_or_default());
    }
    Ok(out)
}

/// The positions of the selected elements, row-major.
fn positions(tensor: &Tensor, slices: &[(usize, IndexSlice)]) -> Result<Vec<usize>, String> {
    let extents = tensor.shape().to_vec();
    let mut stride = tensor.shape().elements().map_or(0, saturating_usize);
    let mut chosen = vec![0usize];
    for (axis, &extent) in extents.iter().enumerate() {
        stride = stride.checked_div(saturating_usize(extent)).unwrap_or(0);
        let slice = slices.iter().rev().find(|(other, _)| *other == axis);
        let mut positions: Vec<usize> = match slice {
            None => (0..saturating_usize(extent)).collect(),
            Some((_, slice)) => {
                let (resolved, is_reversed) =
                    raster::positions(slice, axis, extent).map_err(|error| error.to_string())?;
                let range = saturating_usize(resolved.start)..saturating_usize(resolved.stop);
                let mut positions: Vec<_> = range.step_by(saturating_usize(resolved.step)).collect();
                if is_reversed {
                    positions.reverse();
                }
                positions
            }
        };
        for position in &mut positions {
            *position *= stride;
        }
        chosen = chosen.iter().flat_map(|base| positions.iter().map(move |at| base + at)).collect();
    }
    Ok(chosen)
}

fn element(tensor: &Tensor, at: usize) -> Json {
    fn read<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
        bytes.get(at.checked_mul(N)?..)?.first_chunk::<N>().copied()
    }
    fn short(value: f32) -> Json {
        float(value.to_string().parse().unwrap_or(f64::from(value)))
    }
    let bytes = tensor.bytes();
    let json = match tensor.dtype() {
        DType::F32 => read(bytes, at).map(|b| short(f32::from_le_bytes(b))),
        DType::F64 => read(bytes, at).map(|b| float(f64::from_le_bytes(b))),
        DType::F16 => read(bytes, at).map(|b| short(f16::from_le_bytes(b).to_f32())),
        DType::BF16 => read(bytes, at).map(|b| short(f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16))),
        DType::I8 => read(bytes, at).map(|b| i8::from_le_bytes(b).into()),
        DType::I16 => read(bytes, at).map(|b| i16::from_le_bytes(b).into()),
        DType::I32 => read(bytes, at).map(|b| i32::from_le_bytes(b).into()),
        DType::I64 => read(bytes, at).map(|b| integer(i64::from_le_bytes(b).into())),
        DType::U8 => read(bytes, at).map(|[byte]: [u8; 1]| byte.into()),
        DType::Bool => read(bytes, at).map(|[byte]: [u8; 1]| (byte != 0).into()),
        DType::U16 => read(bytes, at).map(|b| u16::from_le_bytes(b).into()),
        DType::U32 => read(bytes, at).map(|b| u32::from_le_bytes(b).into()),
        DType::U64 => read(bytes, at).map(|b| integer(u64::from_le_bytes(b).into())),
        DType::C64 => read(bytes, at * 2)
            .zip(read(bytes, at * 2 + 1))
            .map(|(re, im)| Json::Array(vec![short(f32::from_le_bytes(re)), short(f32::from_le_bytes(im))])),
        DType::C128 => read(bytes, at * 2)
            .zip(read(bytes, at * 2 + 1))
            .map(|(re, im)| Json::Array(vec![float(f64::from_le_bytes(re)), float(f64::from_le_bytes(im))])),
        DType::Bitmask => bytes.get(at / 8).map(|byte| (byte >> (7 - at % 8) & 1 == 1).into()),
        _ => None,
    };
    json.unwrap_or(Json::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_would_round_is_a_string() {
        let plain = CellType::new(Type::Int64, None, true);
        assert_eq!(scalar(&Scalar::Int64(1 << 53), plain).0, 9_007_199_254_740_992_i64);
        assert_eq!(scalar(&Scalar::Int64((1 << 53) + 1), plain).0, "9007199254740993");
        assert_eq!(scalar(&Scalar::UInt64(u64::MAX), plain).0, "18446744073709551615");
        assert_eq!(scalar(&Scalar::Float64(f64::NAN), plain).0, "NaN");
        assert_eq!(scalar(&Scalar::Float64(f64::NEG_INFINITY), plain).0, "-inf");
        assert_eq!(scalar(&Scalar::Float32(0.1), plain).0.to_string(), "0.1");
        let price = LogicalType::Decimal { precision: 9, scale: 2, width: 16 };
        assert_eq!(scalar(&Scalar::Int32(-1250), CellType::new(Type::Int32, Some(price), true)).0, "-12.50");
        let text = CellType::new(Type::String, None, true);
        let long = Scalar::Bytes(vec![b'a'; 5000]);
        let (cut, is_cut) = scalar(&long, text);
        assert!(is_cut && cut.as_str().is_some_and(|cut| cut.chars().count() == 4097));
        assert!(!scalar(&long, CellType::new(Type::String, None, false)).1);
        assert_eq!(scalar(&Scalar::Bytes(b"red".to_vec()), CellType::new(Type::Bytes, None, true)).0, "cmVk");
    }

    #[test]
    fn elements_are_exact() {
        let tensor = Tensor::from_vec([2, 2], vec![1i64, 2, i64::MAX, -4]).unwrap();
        let slice = |text: &str| IndexSlice::parse(text).unwrap();
        let json = |slices: &[_]| numbers(&tensor, slices).unwrap();
        assert_eq!(json(&[]), [Json::from(1), 2.into(), "9223372036854775807".into(), (-4).into()]);
        assert_eq!(
            json(&[(0, slice("1")), (1, slice("::-1"))]),
            [Json::from(-4), "9223372036854775807".into()]
        );
        for text in ["7", "0:3", "1:1", "0:100000000000"] {
            assert!(numbers(&tensor, &[(0, slice(text))]).is_err(), "{text}");
        }
        let reversed = bytes(&tensor, &[(0, slice("::-1")), (1, slice("1"))]).unwrap();
        assert_eq!(reversed, [(-4i64).to_le_bytes(), 2i64.to_le_bytes()].concat());
    }
}
