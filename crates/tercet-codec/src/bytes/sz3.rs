//! SZ3: error-bounded lossy compression of doubles.
//!
//! A stream is the SZ3 container of data version 3.3.2 with a one-dimensional double array, regardless of the shape of the
//! tensor. Values are little-endian `f64`.
//!
//! ```text
//!  0  F342F310      magic                     tail: u8 its own bytes │ u8 dimensions │ u8 bits of one │ dimension
//!  4  03 03 02 00   data version                    u64 values │ u8 algorithm │ u8 kind of bound │ bound or bounds
//!  8  u64 n         bytes of the body               u8 switches │ u8 type │ u32 bins │ u32 block │ u8
//! 16  body          n bytes, then the tail    little-endian numbers throughout
//! ```

use crate::CodecError;

const CODEC: &str = "sz3";

/// Error bound.
///
/// A bound that cannot be met, such as zero or less, keeps the values exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sz3 {
    /// Maximum absolute error.
    Abs(f64),
    /// Maximum error relative to the range of all values.
    Rel(f64),
    /// Minimum peak signal-to-noise ratio, in decibels.
    Psnr(f64),
}

impl Sz3 {
    /// Rejects meaningless bounds.
    pub fn check(&self) -> Result<(), CodecError> {
        let (name, bound, allowed, is_allowed) = match *self {
            Self::Abs(bound) => ("absolute bound", bound, "finite", bound.is_finite()),
            Self::Rel(bound) => ("relative bound", bound, "finite", bound.is_finite()),
            Self::Psnr(bound) => ("ratio", bound, "finite, above 0", bound.is_finite() && bound > 0.0),
        };
        if is_allowed {
            return Ok(());
        }
        Err(CodecError::Parameter { codec: CODEC, name, found: bound.to_string(), allowed })
    }
}

/// Whether this build can encode and decode.
pub const fn is_built_in() -> bool {
    cfg!(feature = "sz3")
}

/// Rejects a stream on which the library would abort, or that does not hold `n` doubles.
///
/// A stream that passes can still be damaged inside.
pub fn check_stream(stored: &[u8], n: u64) -> Result<(), CodecError> {
    let failed = |detail: String| Err(CodecError::Decode { codec: CODEC, detail });
    let Some((&[m0, m1, m2, m3, v0, v1, v2, v3, ref body @ ..], rest)) = stored.split_first_chunk::<16>()
    else {
        return failed(format!("{} bytes cannot hold a stream", stored.len()));
    };
    if [m0, m1, m2, m3] != MAGIC {
        return failed("not an SZ3 stream".to_owned());
    }
    if [v0, v1, v2, v3] != VERSION {
        return failed(format!("data version {v3}.{v2}.{v1} instead of 3.3.2"));
    }
    let body = body.iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
    let tail = usize::try_from(body).ok().and_then(|body| rest.get(body..)).unwrap_or_default();
    let Some((&[len, dimensions, bits], numbers)) = tail.split_first_chunk() else {
        return failed(format!("a body of {body} bytes in a stream of {}", stored.len()));
    };
    if usize::from(len) != tail.len() || tail.len() < MIN_TAIL_BYTES {
        return failed(format!("a tail of {} bytes that declares {len} bytes", tail.len()));
    }
    let kind = tail[tail.len() - BEHIND_TYPE - 1];
    if kind != TYPE_DOUBLE {
        return failed(format!("values of type {kind}"));
    }
    let Some((dimension, numbers)) = numbers.split_at_checked(usize::from(bits).div_ceil(8)) else {
        return failed("truncated tail".to_owned());
    };
    let dimension = dimension.iter().rev().fold(0_u128, |number, &byte| number << 8 | u128::from(byte));
    let values = numbers.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    if dimensions != 1 || values.is_none_or(|values| u128::from(values) != dimension) || bits > 64 {
        return failed("not a one-dimensional array".to_owned());
    }
    let found = values.unwrap_or(0);
    if found != n || n == 0 {
        let bytes = |values: u64| values.saturating_mul(8);
        return Err(CodecError::WrongLength { codec: CODEC, expected: bytes(n), found: bytes(found) });
    }
    Ok(())
}

const MAGIC: [u8; 4] = [0x10, 0xf3, 0x42, 0xf3];
const VERSION: [u8; 4] = [0, 2, 3, 3];

/// Type number of double.
const TYPE_DOUBLE: u8 = 1;

/// Bytes of the tail after the type.
const BEHIND_TYPE: usize = 9;

/// The tail of one value with one bound.
const MIN_TAIL_BYTES: usize = 3 + 1 + 8 + 2 + 8 + 2 + BEHIND_TYPE;

/// Compresses `values` and appends them to `out`. Empty input cannot be encoded.
#[cfg(feature = "sz3")]
pub fn encode(values: &[u8], bound: &Sz3, out: &mut Vec<u8>) -> Result<(), CodecError> {
    use tensogram_sz3::{DimensionedData, ErrorBound, compress_into};

    bound.check()?;
    let values = doubles(values)?;
    let failed = |detail: String| CodecError::Encode { codec: CODEC, detail };
    if values.is_empty() {
        return Err(failed("no values".to_owned()));
    }
    let bound = match *bound {
        Sz3::Abs(bound) => ErrorBound::Absolute(bound),
        Sz3::Rel(bound) => ErrorBound::Relative(bound),
        Sz3::Psnr(bound) => ErrorBound::PSNR(bound),
    };
    let array = DimensionedData::build(&values).remainder_dim().map_err(|error| failed(error.to_string()))?;
    compress_into(&array, bound, out).map_err(|error| failed(error.to_string()))
}

/// Decodes `stored` into exactly `raw.len()` bytes.
///
/// Only for trusted bytes: version, type and length are checked before the C++ library is called, but it can still crash
/// on a damaged body.
#[cfg(feature = "sz3")]
pub fn decode(stored: &[u8], raw: &mut [u8]) -> Result<(), CodecError> {
    let failed = |detail: String| CodecError::Decode { codec: CODEC, detail };
    let (slots, rest) = raw.as_chunks_mut();
    if !rest.is_empty() {
        return Err(not_whole(slots.len() * 8 + rest.len()));
    }
    check_stream(stored, slots.len() as u64)?;
    let (_, array) =
        tensogram_sz3::decompress::<f64, _>(stored).map_err(|error| failed(error.to_string()))?;
    let values = array.into_data();
    if values.len() != slots.len() {
        let bytes = |len: usize| len as u64 * 8;
        return Err(CodecError::WrongLength {
            codec: CODEC,
            expected: bytes(slots.len()),
            found: bytes(values.len()),
        });
    }
    for (slot, value) in slots.iter_mut().zip(values) {
        *slot = value.to_le_bytes();
    }
    Ok(())
}

#[cfg(feature = "sz3")]
fn doubles(bytes: &[u8]) -> Result<Vec<f64>, CodecError> {
    let (values, rest) = bytes.as_chunks();
    if rest.is_empty() {
        return Ok(values.iter().map(|value| f64::from_le_bytes(*value)).collect());
    }
    Err(not_whole(bytes.len()))
}

#[cfg(feature = "sz3")]
fn not_whole(bytes: usize) -> CodecError {
    let found = format!("{bytes} bytes");
    CodecError::Parameter { codec: CODEC, name: "values of", found, allowed: "whole float64 values" }
}

/// Compresses `values` and appends them to `out`. Empty input cannot be encoded.
#[cfg(not(feature = "sz3"))]
pub fn encode(_values: &[u8], _bound: &Sz3, _out: &mut Vec<u8>) -> Result<(), CodecError> {
    Err(CodecError::NotBuilt { codec: CODEC, feature: "sz3" })
}

/// Decodes `stored` into exactly `raw.len()` bytes.
#[cfg(not(feature = "sz3"))]
pub fn decode(_stored: &[u8], _raw: &mut [u8]) -> Result<(), CodecError> {
    Err(CodecError::NotBuilt { codec: CODEC, feature: "sz3" })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream of 1000 doubles with an empty body: valid as far as can be checked without the library.
    fn shell() -> Vec<u8> {
        let mut stored = vec![0x10, 0xf3, 0x42, 0xf3, 0, 2, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0];
        stored.extend([0x22, 1, 10, 0xe8, 3, 0xe8, 3, 0, 0, 0, 0, 0, 0, 2, 0]);
        stored.extend(1e-3_f64.to_le_bytes());
        stored.extend([0xe0, 1, 0, 0, 1, 0, 0x80, 0, 0, 0, 1]);
        stored
    }

    #[test]
    fn meaningless_bounds_are_rejected() {
        for bound in [Sz3::Abs(f64::NAN), Sz3::Rel(f64::INFINITY), Sz3::Psnr(0.0), Sz3::Psnr(f64::NAN)] {
            assert!(matches!(bound.check(), Err(CodecError::Parameter { .. })), "{bound:?}");
        }
        for bound in [Sz3::Abs(0.0), Sz3::Abs(-1.0), Sz3::Rel(1e-4), Sz3::Psnr(60.0)] {
            bound.check().unwrap();
        }
    }

    #[test]
    fn inputs_that_abort_the_library_are_rejected() {
        let whole = shell();
        check_stream(&whole, 1000).unwrap();
        assert!(matches!(
            check_stream(&whole, 999),
            Err(CodecError::WrongLength { expected: 7992, found: 8000, .. })
        ));
        for cut in 0..whole.len() {
            assert!(check_stream(&whole[..cut], 1000).is_err(), "cut at {cut}");
        }
        // Magic, version, body length, tail length, dimensions, their number, values, type.
        let type_at = whole.len() - 10;
        for at in (0..16).chain(16..29).chain([type_at]) {
            // The number of bits is a width in bytes here.
            let flip = if at == 18 { 0x20 } else { 1 };
            let mut stored = whole.clone();
            stored[at] ^= flip;
            assert!(check_stream(&stored, 1000).is_err(), "byte {at}");
        }
    }

    #[cfg(feature = "sz3")]
    mod built {
        use super::*;

        fn wave(n: u32) -> Vec<u8> {
            (0..n).flat_map(|at| ((f64::from(at) * 0.01).sin() * 100.0).to_le_bytes()).collect()
        }

        fn worst(left: &[u8], right: &[u8]) -> f64 {
            let values = |bytes: &[u8]| -> Vec<f64> {
                bytes.as_chunks().0.iter().map(|value| f64::from_le_bytes(*value)).collect()
            };
            values(left).iter().zip(values(right)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
        }

        #[test]
        fn bounds_are_kept() {
            for n in [2, 3, 100, 5000] {
                let values = wave(n);
                for (bound, most) in [(Sz3::Abs(1e-3), 1e-3), (Sz3::Rel(1e-4), 2e-2), (Sz3::Abs(0.0), 0.0)] {
                    let mut out = vec![7];
                    encode(&values, &bound, &mut out).unwrap();
                    let mut back = vec![0; values.len()];
                    decode(&out[1..], &mut back).unwrap();
                    assert!(worst(&values, &back) <= most, "{n} {bound:?}: {}", worst(&values, &back));
                    assert!(decode(&out[1..], &mut back[8..]).is_err(), "fewer values");
                }
            }
        }

        #[test]
        fn empty_and_partial_values_are_rejected() {
            assert!(encode(&[], &Sz3::Abs(1.0), &mut Vec::new()).is_err());
            assert!(encode(&[0; 9], &Sz3::Abs(1.0), &mut Vec::new()).is_err());
            assert!(decode(&shell(), &mut []).is_err());
            assert!(decode(&shell(), &mut [0; 9]).is_err());
        }
    }
}
