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

mod cursor;
mod huffman;
mod interpolation;
mod lorenzo;
mod quantizer;

use cursor::Cursor;
use huffman::Tree;
use interpolation::Interpolation;
use lorenzo::Lorenzo;
use quantizer::Quantizer;

use super::zstd;
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

/// Whether this build can encode and decode. SZ3 streams are zstd frames inside.
pub const fn is_built_in() -> bool {
    zstd::is_built_in()
}

/// Rejects a stream that does not hold `n` doubles.
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
///
/// The interpolation is linear or cubic, whichever is smaller; values that zstd alone stores in fewer bytes are kept
/// exactly.
pub fn encode(values: &[u8], bound: &Sz3, out: &mut Vec<u8>) -> Result<(), CodecError> {
    must_be_built_in()?;
    bound.check()?;
    let (chunks, rest) = values.as_chunks();
    if !rest.is_empty() {
        return Err(not_whole(values.len()));
    }
    let numbers: Vec<f64> = chunks.iter().map(|value| f64::from_le_bytes(*value)).collect();
    if numbers.is_empty() {
        return Err(CodecError::Encode { codec: CODEC, detail: "no values".to_owned() });
    }
    let absolute = bound.absolute(&numbers);
    let mut body = Vec::new();
    let mut algorithm = LOSSLESS;
    if absolute > 0.0 && absolute.is_finite() && numbers.len() as u64 <= MAX_VALUES {
        body = interpolated(&numbers, absolute)?;
        algorithm = INTERPOLATION;
    }
    if algorithm == LOSSLESS || values.len() / 3 < body.len() {
        let mut exact = Vec::new();
        compressed(values, &mut exact)?;
        if algorithm == LOSSLESS || exact.len() < body.len() {
            (body, algorithm) = (exact, LOSSLESS);
        }
    }
    out.extend(MAGIC);
    out.extend(VERSION);
    out.extend((body.len() as u64).to_le_bytes());
    out.extend(body);
    put_tail(numbers.len() as u64, algorithm, absolute, out);
    Ok(())
}

impl Sz3 {
    /// The absolute bound for values, as the reference computes it.
    fn absolute(&self, values: &[f64]) -> f64 {
        let range = || {
            let start = (f64::INFINITY, f64::NEG_INFINITY);
            let (low, high) =
                values.iter().fold(start, |(low, high), &value| (low.min(value), high.max(value)));
            high - low
        };
        match *self {
            Self::Abs(bound) => bound,
            Self::Rel(bound) => bound * range(),
            Self::Psnr(ratio) => {
                range() * 10_f64.powf((ratio + 10.0 * (1.0 - 2.0 / 3.0 * 0.99_f64).log10()) / -20.0)
            }
        }
    }
}

/// The body of the smaller of two interpolations, judged by the first values.
fn interpolated(values: &[f64], bound: f64) -> Result<Vec<u8>, CodecError> {
    let one = |values: &[f64], is_cubic: bool| {
        let interpolation = Interpolation::new(is_cubic);
        let mut quantizer = Quantizer::new(bound, RADIUS);
        let mut decoded = values.to_vec();
        let symbols = interpolation.encode(&mut quantizer, &mut decoded);
        let mut inner = Vec::new();
        interpolation.write(values.len(), &mut inner);
        quantizer.write(&mut inner);
        huffman::encode(&symbols, &mut inner);
        let mut body = Vec::new();
        compressed(&inner, &mut body).map(|()| body)
    };
    let sample = &values[..values.len().min(SAMPLE)];
    let (linear, cubic) = (one(sample, false)?, one(sample, true)?);
    let is_cubic = cubic.len() <= linear.len();
    if sample.len() == values.len() {
        return Ok(if is_cubic { cubic } else { linear });
    }
    one(values, is_cubic)
}

/// Appends the length of bytes and the bytes as a zstd frame.
fn compressed(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
    out.extend((bytes.len() as u64).to_le_bytes());
    zstd::encode(bytes, zstd::DEFAULT_LEVEL, out)
}

fn put_tail(n: u64, algorithm: u8, bound: f64, out: &mut Vec<u8>) {
    let bits = u8::try_from(u64::BITS - n.leading_zeros()).unwrap_or(64);
    let mut tail = vec![0, 1, bits];
    tail.extend(n.to_le_bytes().into_iter().take(usize::from(bits).div_ceil(8)));
    tail.extend(n.to_le_bytes());
    tail.extend([algorithm, 0]);
    tail.extend(bound.to_le_bytes());
    tail.extend([0xe0, TYPE_DOUBLE]);
    tail.extend((RADIUS.unsigned_abs() * 2).to_le_bytes());
    tail.extend(128_u32.to_le_bytes());
    tail.push(1);
    tail[0] = u8::try_from(tail.len()).unwrap_or(u8::MAX);
    out.extend(tail);
}

/// Decodes `stored` into exactly `raw.len()` bytes.
///
/// Decodes what the default settings of the reference write: no prediction, interpolation, and the predictor of previous
/// values. Any bytes are safe: lengths and counts are checked before memory is allocated.
pub fn decode(stored: &[u8], raw: &mut [u8]) -> Result<(), CodecError> {
    must_be_built_in()?;
    let (slots, rest) = raw.as_chunks_mut::<8>();
    if !rest.is_empty() {
        return Err(not_whole(slots.len() * 8 + rest.len()));
    }
    let n = slots.len();
    check_stream(stored, n as u64)?;
    let mut cursor = Cursor(stored);
    cursor.take(8)?;
    let body = usize::try_from(cursor.u64()?).unwrap_or(usize::MAX);
    let (body, tail) = (cursor.take(body)?, cursor.0);
    let mut body = Cursor(body);
    let inner_len = body.u64()?;
    let algorithm =
        *tail.get(3 + dimension_bytes(tail) + 8).ok_or_else(|| failed("its tail is truncated"))?;
    if algorithm == LOSSLESS {
        if inner_len != n as u64 * 8 {
            let expected = n as u64 * 8;
            return Err(CodecError::WrongLength { codec: CODEC, expected, found: inner_len });
        }
        return zstd::decode(body.0, raw).map_err(|error| failed(&error.to_string()));
    }
    // Stored values, codes of at most 17 bits on average, and a tree.
    let most = (n as u64).saturating_mul(24).saturating_add(MAX_TREE_BYTES);
    let len = usize::try_from(inner_len).ok().filter(|_| inner_len <= most && n as u64 <= MAX_VALUES);
    let len = len.ok_or_else(|| failed("its length is not that of its values"))?;
    let mut inner = Vec::new();
    zstd::decode_new(body.0, len, &mut inner).map_err(|error| failed(&error.to_string()))?;
    let mut inner = Cursor(&inner);
    let mut values = vec![0.0; n];
    match algorithm {
        INTERPOLATION => {
            let interpolation = Interpolation::read(&mut inner, n)?;
            let (mut quantizer, symbols) = symbols(&mut inner, n)?;
            interpolation.decode(&mut quantizer, &symbols, &mut values)?;
        }
        LORENZO => {
            let [switches, _, block] = switches(tail).ok_or_else(|| failed("its tail is truncated"))?;
            let lorenzo = Lorenzo::read(&mut inner, switches.to_le_bytes()[0], block)?;
            let (mut quantizer, symbols) = symbols(&mut inner, n)?;
            lorenzo.decode(&mut quantizer, &symbols, &mut values)?;
        }
        other => return Err(failed(&format!("algorithm {other} is not supported"))),
    }
    for (slot, value) in slots.iter_mut().zip(values) {
        *slot = value.to_le_bytes();
    }
    Ok(())
}

/// The quantizer, and the symbols of `n` values.
fn symbols(inner: &mut Cursor<'_>, n: usize) -> Result<(Quantizer, Vec<i32>), CodecError> {
    let quantizer = Quantizer::read(inner)?;
    let tree = Tree::read(inner)?;
    if inner.u64()? != n as u64 {
        return Err(failed("it does not have a symbol for each value"));
    }
    let symbols = tree.decode(inner, n)?;
    Ok((quantizer, symbols))
}

fn dimension_bytes(tail: &[u8]) -> usize {
    tail.get(2).map_or(0, |bits| usize::from(*bits).div_ceil(8))
}

/// The switches of the predictors, the number of bins and the size of a block.
fn switches(tail: &[u8]) -> Option<[u32; 3]> {
    let end = tail.len().checked_sub(BEHIND_TYPE + 2)?;
    let number = |at: usize| Some(u32::from_le_bytes(*tail.get(at..)?.first_chunk()?));
    Some([u32::from(*tail.get(end)?), number(end + 2)?, number(end + 6)?])
}

/// The numbers of the algorithms.
const LORENZO: u8 = 0;
const INTERPOLATION: u8 = 2;
const LOSSLESS: u8 = 4;

/// Half of the number of symbols.
const RADIUS: i32 = 32_768;
/// The number of values by which the kind of interpolation is chosen.
const SAMPLE: usize = 1 << 16;
/// The length of a tree of all symbols, and everything of a fixed size.
const MAX_TREE_BYTES: u64 = 4 << 20;
/// The maximum number of values: symbols are in memory.
const MAX_VALUES: u64 = 1 << 36;

fn must_be_built_in() -> Result<(), CodecError> {
    if is_built_in() { Ok(()) } else { Err(CodecError::NotBuilt { codec: CODEC, feature: "zstd" }) }
}

fn failed(detail: &str) -> CodecError {
    CodecError::Decode { codec: CODEC, detail: detail.to_owned() }
}

fn not_whole(bytes: usize) -> CodecError {
    let found = format!("{bytes} bytes");
    CodecError::Parameter { codec: CODEC, name: "values of", found, allowed: "whole float64 values" }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream of 1000 doubles with an empty body: its lengths are valid.
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
    fn wrong_lengths_are_rejected() {
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

    #[cfg(feature = "zstd")]
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

        /// Streams of the C++ library decode to what it decodes them to, and it decodes ours to what we do.
        #[cfg(feature = "sz3")]
        #[test]
        fn streams_are_those_of_the_reference() {
            use tensogram_sz3::{DimensionedData, ErrorBound, compress_into, decompress};

            let noise = |n: u32| -> Vec<f64> {
                let mut state = 1_u64;
                let mut next = || {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    f64::from(u32::try_from(state >> 40).unwrap()) / f64::from(1 << 24)
                };
                (0..n).map(|_| next()).collect()
            };
            let smooth =
                |n: u32| -> Vec<f64> { (0..n).map(|at| (f64::from(at) * 0.01).sin() * 100.0).collect() };
            let walk = |n: u32| -> Vec<f64> {
                let mut sum = 0.0;
                noise(n)
                    .iter()
                    .map(|step| {
                        sum += step - 0.5;
                        sum
                    })
                    .collect()
            };
            let steps = |n: u32| -> Vec<f64> { (0..n).map(|at| f64::from(at / 977 % 3)).collect() };
            let wild = |n: u32| -> Vec<f64> { noise(n).iter().map(|x| (x * 600.0 - 300.0).exp()).collect() };
            // The position of the algorithm: bound, switches and type follow it.
            let mut algorithms = std::collections::BTreeSet::new();
            for n in [1, 2, 3, 4, 5, 7, 8, 31, 32, 33, 64, 100, 1000, 4096, 4097, 5000, 20_000, 300_000] {
                for values in [smooth(n), noise(n), walk(n), steps(n), wild(n)] {
                    for (ours, theirs) in [
                        (Sz3::Abs(1e-3), ErrorBound::Absolute(1e-3)),
                        (Sz3::Abs(0.4), ErrorBound::Absolute(0.4)),
                        (Sz3::Rel(1e-4), ErrorBound::Relative(1e-4)),
                        (Sz3::Psnr(60.0), ErrorBound::PSNR(60.0)),
                    ] {
                        let array = DimensionedData::build(&values).remainder_dim().unwrap();
                        let mut stream = Vec::new();
                        compress_into(&array, theirs, &mut stream).unwrap();
                        let (_, expected) = decompress::<f64, _>(&*stream).unwrap();
                        let mut found = vec![0; values.len() * 8];
                        decode(&stream, &mut found).unwrap_or_else(|error| panic!("{n} {ours:?}: {error}"));
                        let expected: Vec<u8> =
                            expected.into_data().iter().flat_map(|v| v.to_le_bytes()).collect();
                        assert!(found == expected, "{n} {ours:?}: {}", worst(&found, &expected));
                        algorithms.insert(stream[stream.len() - 21]);

                        let raw: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
                        let mut stream = Vec::new();
                        encode(&raw, &ours, &mut stream).unwrap();
                        let mut found = vec![0; raw.len()];
                        decode(&stream, &mut found).unwrap();
                        let (_, theirs) = decompress::<f64, _>(&*stream).unwrap();
                        let theirs: Vec<u8> =
                            theirs.into_data().iter().flat_map(|v| v.to_le_bytes()).collect();
                        assert!(found == theirs, "ours {n} {ours:?}: {}", worst(&found, &theirs));
                        let absolute = ours.absolute(&values);
                        assert!(worst(&raw, &found) <= absolute.max(0.0), "{n} {ours:?}");
                    }
                }
            }
            // Interpolation, previous values, and no prediction all occurred.
            assert!([0, 2, 4].iter().all(|algorithm| algorithms.contains(algorithm)), "{algorithms:?}");
        }

        #[test]
        fn damaged_streams_are_errors_or_values() {
            let values = wave(5000);
            let mut stream = Vec::new();
            encode(&values, &Sz3::Abs(1e-3), &mut stream).unwrap();
            let mut back = vec![0; values.len()];
            for at in 0..stream.len() {
                let mut damaged = stream.clone();
                damaged[at] ^= 1 << (at % 8);
                let _ = decode(&damaged, &mut back);
                assert!(decode(&stream[..at], &mut back).is_err(), "cut at {at}");
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
