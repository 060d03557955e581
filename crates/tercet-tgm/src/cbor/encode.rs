//! Writing, always canonical.

use tercet_core::tensor::f16;

use super::head::major;
use crate::value::Value;

/// Encodes a value in canonical form: maps sorted by the bytes of their keys at every depth, everything else as short as
/// possible. Duplicate keys are written one after the other.
pub fn encode(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    encode_into(value, &mut out);
    out
}

/// Appends a value in canonical form.
pub fn encode_into(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(0xf6),
        Value::Bool(bool) => out.push(0xf4 | u8::from(*bool)),
        Value::Integer(integer) => {
            let (tag, magnitude) = bignum(*integer);
            number(tag, &magnitude, out);
        }
        Value::Float(float) => {
            let (info, bits) = shortest_float(*float);
            out.push(major::SIMPLE << 5 | info);
            out.extend_from_slice(&bits.to_be_bytes()[8 - (1 << (info - 24))..]);
        }
        Value::Bytes(bytes) => {
            head(major::BYTES, bytes.len() as u64, out);
            out.extend_from_slice(bytes);
        }
        Value::Text(content) => text(content, out),
        Value::Array(items) => {
            head(major::ARRAY, items.len() as u64, out);
            for item in items {
                encode_into(item, out);
            }
        }
        Value::Map(pairs) => map(pairs, out),
        Value::Tag(tag, inner) => {
            if let (2 | 3, Value::Bytes(magnitude)) = (tag, &**inner) {
                return number(*tag, magnitude, out);
            }
            head(major::TAG, *tag, out);
            encode_into(inner, out);
        }
    }
}

/// Appends a text string.
pub(crate) fn text(content: &str, out: &mut Vec<u8>) {
    head(major::TEXT, content.len() as u64, out);
    out.extend_from_slice(content.as_bytes());
}

/// Appends an initial byte of a major type and its argument.
#[expect(clippy::cast_possible_truncation, reason = "each arm has the range of its cast")]
pub(crate) fn head(major: u8, argument: u64, out: &mut Vec<u8>) {
    let major = major << 5;
    match argument {
        0..24 => out.push(major | argument as u8),
        24..=0xff => out.extend_from_slice(&[major | 0x18, argument as u8]),
        0x100..=0xffff => {
            out.push(major | 0x19);
            out.extend_from_slice(&(argument as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            out.push(major | 0x1a);
            out.extend_from_slice(&(argument as u32).to_be_bytes());
        }
        _ => {
            out.push(major | 0x1b);
            out.extend_from_slice(&argument.to_be_bytes());
        }
    }
}

/// The tag and the magnitude of an integer as a bignum. The magnitude of a negative one is −1 − n.
pub(crate) fn bignum(integer: i128) -> (u64, [u8; 16]) {
    if integer < 0 { (3, (!integer).to_be_bytes()) } else { (2, integer.to_be_bytes()) }
}

/// A big-endian number without leading zeros.
pub(crate) fn without_zeros(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
    bytes.get(zeros..).unwrap_or_default()
}

/// Appends an integer given as the parts of a bignum; a bignum is written only if necessary.
fn number(tag: u64, magnitude: &[u8], out: &mut Vec<u8>) {
    let digits = without_zeros(magnitude);
    if digits.len() <= 8 {
        let argument = digits.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        head(if tag == 2 { major::UNSIGNED } else { major::NEGATIVE }, argument, out);
    } else {
        head(major::TAG, tag, out);
        head(major::BYTES, digits.len() as u64, out);
        out.extend_from_slice(digits);
    }
}

/// The low bits of the initial byte and the bits of the shortest float with the same value. Every NaN is `7e00`.
pub(super) fn shortest_float(float: f64) -> (u8, u64) {
    if float.is_nan() {
        return (25, 0x7e00);
    }
    #[expect(clippy::cast_possible_truncation, reason = "compared with what it was")]
    let single = float as f32;
    if f64::from(single).to_bits() != float.to_bits() {
        return (27, float.to_bits());
    }
    let half = f16::from_f32(single);
    if half.to_f32().to_bits() == single.to_bits() {
        (25, u64::from(half.to_bits()))
    } else {
        (26, u64::from(single.to_bits()))
    }
}

/// Appends a map, and sorts it if it is not sorted.
fn map(pairs: &[(Value, Value)], out: &mut Vec<u8>) {
    head(major::MAP, pairs.len() as u64, out);
    let start = out.len();
    let mut spans = Vec::with_capacity(pairs.len());
    for (key, value) in pairs {
        let key_start = out.len();
        encode_into(key, out);
        let key_end = out.len();
        encode_into(value, out);
        spans.push((key_start..key_end, key_start..out.len()));
    }
    if spans.is_sorted_by(|a, b| out[a.0.clone()] <= out[b.0.clone()]) {
        return;
    }
    spans.sort_by(|a, b| out[a.0.clone()].cmp(&out[b.0.clone()]));
    let unsorted = out[start..].to_vec();
    out.truncate(start);
    for (_, pair) in spans {
        out.extend_from_slice(&unsorted[pair.start - start..pair.end - start]);
    }
}
