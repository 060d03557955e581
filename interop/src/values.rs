//! The values of every array: a pattern, a seed and the linear index decide the bits of an element.
//!
//! `tet_check.py` has the same rules. They are written twice on purpose: two programs that agree on a pattern agree on the
//! array.

use serde::Serialize;
use tercet_core::ElementType;

/// Pattern of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Incompressible: bits of [`mix`]. Integers take its low bits; a float is a signed integer of its precision over a power of
    /// two, so that it is exact.
    Mixed,
    /// Compressible: the small number `index / 7 % 100`, plus the seed.
    Steps,
    /// The ends of each range: a table of bits, without NaN.
    Limits,
    /// Like `Limits`, with NaNs of several payloads. Floats only.
    Nans,
}

/// Splitmix64 of seed and index.
pub fn mix(seed: u32, index: u64) -> u64 {
    let start = (u64::from(seed) << 32).wrapping_add(index).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = start;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The layout of a float: bits of the fraction, and of the whole.
fn fraction_and_width(dtype: ElementType) -> Option<(u32, u32)> {
    match dtype {
        ElementType::F16 => Some((10, 16)),
        ElementType::F32 => Some((23, 32)),
        ElementType::F64 => Some((52, 64)),
        _ => None,
    }
}

/// The bits of a float that is `number / 2^shift`; the quotient must be exact.
fn float_bits(dtype: ElementType, number: i64, shift: i32) -> u64 {
    #[expect(clippy::cast_precision_loss, reason = "at most 53 bits")]
    let value = number as f64 / 2f64.powi(shift);
    match dtype {
        ElementType::F16 => u64::from(tercet_core::tensor::f16::from_f64(value).to_bits()),
        #[expect(clippy::cast_possible_truncation, reason = "at most 24 bits of precision")]
        ElementType::F32 => u64::from((value as f32).to_bits()),
        _ => value.to_bits(),
    }
}

/// The bits of one element; only the low ones of its width count.
pub fn bits(dtype: ElementType, pattern: Pattern, seed: u32, index: u64) -> u64 {
    let float = fraction_and_width(dtype);
    match (pattern, float) {
        (Pattern::Mixed, None) => mix(seed, index),
        (Pattern::Mixed, Some((fraction, _))) => {
            let number = (mix(seed, index) >> (63 - fraction)).cast_signed() - (1 << fraction);
            float_bits(dtype, number, i32::try_from(fraction / 2 + 1).unwrap_or(0))
        }
        (Pattern::Steps, None) => index / 7 % 100 + u64::from(seed),
        (Pattern::Steps, Some(_)) => {
            let number = index / 7 % 100 + u64::from(seed);
            float_bits(dtype, number.cast_signed(), 0)
        }
        (Pattern::Limits | Pattern::Nans, None) => {
            let sign = 1 << (dtype.size() * 8 - 1);
            let table =
                [0, 1, u64::MAX, sign, sign - 1, sign + 1, sign - 2, 0x5555_5555_5555_5555, u64::MAX - 1];
            pick(&table, index)
        }
        (Pattern::Limits | Pattern::Nans, Some((fraction, width))) => {
            let sign = 1u64 << (width - 1);
            let infinity = sign - (1 << fraction);
            let smallest_normal = 1 << fraction;
            let limits = [
                0,
                sign,
                infinity,
                sign | infinity,
                infinity - 1,
                sign | (infinity - 1),
                1,
                sign | 1,
                smallest_normal,
                smallest_normal - 1,
            ];
            let quiet = infinity | (1 << (fraction - 1));
            let nans = [quiet, sign | quiet, quiet | 5, infinity | 1];
            let index = if pattern == Pattern::Nans { index % 14 } else { index % 10 };
            if index < 10 { pick(&limits, index) } else { pick(&nans, index - 10) }
        }
    }
}

fn pick(table: &[u64], index: u64) -> u64 {
    let position = usize::try_from(index % table.len() as u64).unwrap_or(0);
    table.get(position).copied().unwrap_or(0)
}

/// A whole array, row-major and little-endian.
pub fn array(dtype: ElementType, pattern: Pattern, seed: u32, elements: u64) -> Vec<u8> {
    let element = |index| bits(dtype, pattern, seed, index).to_le_bytes();
    (0..elements).flat_map(|index| element(index).into_iter().take(dtype.size())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_the_ends_of_the_ranges() {
        let value = |dtype, index| bits(dtype, Pattern::Limits, 0, index);
        assert_eq!(value(ElementType::F64, 4), f64::MAX.to_bits());
        assert_eq!(value(ElementType::F32, 3), u64::from(f32::NEG_INFINITY.to_bits()));
        assert_eq!(value(ElementType::F32, 8), u64::from(f32::MIN_POSITIVE.to_bits()));
        assert_eq!(array(ElementType::I16, Pattern::Limits, 0, 9)[6..10], [0, 0x80, 0xff, 0x7f]);
    }

    #[test]
    fn only_nans_are_nan() {
        for index in 0..28 {
            let nan = f64::from_bits(bits(ElementType::F64, Pattern::Nans, 0, index)).is_nan();
            assert_eq!(nan, index % 14 >= 10, "{index}");
            assert!(!f64::from_bits(bits(ElementType::F64, Pattern::Limits, 0, index)).is_nan());
        }
    }

    #[test]
    fn mixed_floats_are_finite() {
        for dtype in [ElementType::F16, ElementType::F32, ElementType::F64] {
            let exponent = if dtype == ElementType::F16 { 0x7c00 } else { 0x7f80_0000 };
            let high = |index| {
                let bits = bits(dtype, Pattern::Mixed, 3, index);
                if dtype == ElementType::F64 { bits >> 32 } else { bits }
            };
            assert!((0..1000).all(|index| high(index) & exponent != exponent));
        }
    }
}
