//! Keys: unsigned integers with the same order as the values, and interpolation between two values.

use std::fmt::Debug;

use tercet_core::ElementType;

use crate::compute::ComputeType;
use crate::simd::{Work, vectorized};

/// An unsigned key with the same order as its value.
pub(super) trait Key: bytemuck::Pod + Ord + Default + Debug + Send + Sync {
    const MAX: Self;
    fn wide(self) -> u64;
    /// Inverse of `wide`.
    fn narrow(wide: u64) -> Self;
}

impl Key for u32 {
    const MAX: Self = Self::MAX;
    #[inline(always)]
    fn wide(self) -> u64 {
        self.into()
    }
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "only called with keys of this type")]
    fn narrow(wide: u64) -> Self {
        wide as Self
    }
}

impl Key for u64 {
    const MAX: Self = Self::MAX;
    #[inline(always)]
    fn wide(self) -> u64 {
        self
    }
    #[inline(always)]
    fn narrow(wide: u64) -> Self {
        wide
    }
}

/// Value of a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Float(f64),
    Integer(i128),
}

/// Conversion of values of a compute type to keys and back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coding<K> {
    pub(super) compute: ComputeType,
    /// Whether the maximum key is NaN.
    pub(super) has_nan: bool,
    /// Converts values to keys. −0.0 sorts before +0.0, NaN after all other values.
    pub(super) encode: fn(&[u8], &mut [K]),
    pub(super) decode: fn(K) -> Number,
    /// Whether results are the differences between exact integers and the nearest f64.
    pub(super) is_rest: bool,
}

impl Coding<u32> {
    /// Conversion for types of at most 32 bits.
    pub(super) fn narrow(dtype: ElementType) -> Option<Self> {
        Some(match dtype {
            ElementType::I32 => Self {
                compute: ComputeType::I64,
                has_nan: false,
                is_rest: false,
                encode: |values, keys| {
                    convert(values, keys, |value: i64| low_bits(value.cast_unsigned()) ^ 1 << 31);
                },
                decode: |key| Number::Integer((key ^ 1 << 31).cast_signed().into()),
            },
            ElementType::U32 => Self {
                compute: ComputeType::U64,
                has_nan: false,
                is_rest: false,
                encode: |values, keys| convert(values, keys, low_bits),
                decode: |key| Number::Integer(key.into()),
            },
            ElementType::F64 | ElementType::I64 | ElementType::U64 => return None,
            _ => Self {
                compute: ComputeType::F32,
                has_nan: true,
                is_rest: false,
                encode: |values, keys| convert(values, keys, key_of_f32),
                decode: |key| {
                    let bits = if key >> 31 == 0 { !key } else { key ^ 1 << 31 };
                    Number::Float(f32::from_bits(bits).into())
                },
            },
        })
    }
}

impl Coding<u64> {
    /// Conversion for types of 64 bits.
    pub(super) fn wide(dtype: ElementType) -> Self {
        match dtype {
            ElementType::I64 => Self {
                compute: ComputeType::I64,
                has_nan: false,
                is_rest: false,
                encode: |values, keys| convert(values, keys, |value: i64| value.cast_unsigned() ^ 1 << 63),
                decode: |key| Number::Integer((key ^ 1 << 63).cast_signed().into()),
            },
            ElementType::U64 => Self {
                compute: ComputeType::U64,
                has_nan: false,
                is_rest: false,
                encode: |values, keys| convert(values, keys, |value: u64| value),
                decode: |key| Number::Integer(key.into()),
            },
            _ => Self {
                compute: ComputeType::F64,
                has_nan: true,
                is_rest: false,
                encode: |values, keys| convert(values, keys, key_of_f64),
                decode: |key| {
                    let bits = if key >> 63 == 0 { !key } else { key ^ 1 << 63 };
                    Number::Float(f64::from_bits(bits))
                },
            },
        }
    }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the value is one of 32 bits")]
fn low_bits(value: u64) -> u32 {
    value as u32
}

/// Key of a float: negative numbers are inverted, the others are shifted above them; both without a branch.
#[inline(always)]
fn key_of_f32(value: f32) -> u32 {
    let bits = value.to_bits();
    let sign = (bits.cast_signed() >> 31).cast_unsigned();
    let key = bits ^ (sign | 1 << 31);
    if value.is_nan() { u32::MAX } else { key }
}

#[inline(always)]
fn key_of_f64(value: f64) -> u64 {
    let bits = value.to_bits();
    let sign = (bits.cast_signed() >> 63).cast_unsigned();
    let key = bits ^ (sign | 1 << 63);
    if value.is_nan() { u64::MAX } else { key }
}

fn convert<T: bytemuck::Pod, K: Key>(values: &[u8], keys: &mut [K], key: impl Fn(T) -> K + Copy) {
    vectorized(Convert { values: bytemuck::cast_slice(values), keys, key });
}

struct Convert<'a, T, K, F> {
    values: &'a [T],
    keys: &'a mut [K],
    key: F,
}

impl<T: Copy, K, F: Fn(T) -> K> Work for Convert<'_, T, K, F> {
    type Output = ();
    #[inline(always)]
    fn work(self) {
        for (key, &value) in self.keys.iter_mut().zip(self.values) {
            *key = (self.key)(value);
        }
    }
}

/// Rank of a quantile among `count` sorted values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rank {
    /// Index of the lower value.
    pub(super) low: u64,
    /// Fraction of the way to the next value, below 1; 0 at the last value.
    pub(super) fraction: f64,
}

impl Rank {
    /// Position q·(count − 1). `count` must not be 0.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "no array has 2^53 elements; q is between 0 and 1"
    )]
    pub(super) fn new(q: f64, count: u64) -> Self {
        let last = count.saturating_sub(1);
        let position = q * last as f64;
        let low = position.floor();
        if low >= last as f64 {
            return Self { low: last, fraction: 0.0 };
        }
        Self { low: low as u64, fraction: position - low }
    }

    /// Index of the upper value; equal to `low` if the quantile is a value.
    pub(super) fn high(self) -> u64 {
        self.low + u64::from(self.fraction > 0.0)
    }
}

/// Linear interpolation: the number at `fraction` of the way from `low` to `high`; `high` is not less than `low`.
#[expect(clippy::cast_precision_loss, reason = "differences of 64-bit integers are rounded once, at the end")]
pub(super) fn between(low: Number, high: Number, fraction: f64) -> f64 {
    let half = fraction == 0.5;
    let (a, b) = match (low, high) {
        (Number::Integer(a), Number::Integer(b)) => {
            return match (half, fraction < 0.5) {
                (true, _) => (a + b) as f64 / 2.0,
                (_, true) => a as f64 + (b - a) as f64 * fraction,
                _ => b as f64 - (b - a) as f64 * (1.0 - fraction),
            };
        }
        (Number::Float(a), Number::Float(b)) => (a, b),
        (Number::Integer(whole), Number::Float(float)) | (Number::Float(float), Number::Integer(whole)) => {
            (whole as f64, float)
        }
    };
    if a == b || fraction == 0.0 {
        return a;
    }
    if a.is_infinite() || b.is_infinite() {
        // A number and an infinity interpolate to that infinity; two opposite infinities to NaN.
        return a + b;
    }
    let distance = b - a;
    if distance.is_infinite() {
        return a * (1.0 - fraction) + b * fraction;
    }
    match (half, fraction < 0.5) {
        (true, _) => a.midpoint(b),
        (_, true) => a + distance * fraction,
        _ => b - distance * (1.0 - fraction),
    }
}

/// Difference between the number between two integers and the nearest f64; NaN if that number is not an integer. 0 for
/// floats.
fn rest(low: Number, high: Number, fraction: f64) -> f64 {
    let (Number::Integer(a), Number::Integer(b)) = (low, high) else { return 0.0 };
    let whole = match fraction {
        0.0 => Some(a),
        _ if a == b => Some(a),
        0.5 if (a + b) % 2 == 0 => Some(i128::midpoint(a, b)),
        _ => None,
    };
    whole.map_or(f64::NAN, |whole| crate::sum::rest(whole, between(low, high, fraction)))
}

impl<K: Key> Coding<K> {
    /// Converts one value.
    pub(super) fn key(&self, value: &[u8]) -> K {
        let mut key = [K::default()];
        (self.encode)(value, &mut key);
        key[0]
    }

    /// The number between two values, or its difference to the nearest f64.
    pub(super) fn between(&self, low: Number, high: Number, fraction: f64) -> f64 {
        if self.is_rest { rest(low, high, fraction) } else { between(low, high, fraction) }
    }

    /// Selects the quantile of some keys, and reorders them; NaN for no keys, or if any key is NaN.
    pub(super) fn select(&self, keys: &mut [K], q: f64) -> f64 {
        if keys.is_empty() {
            return f64::NAN;
        }
        let rank = Rank::new(q, keys.len() as u64);
        // Keys are in memory, so their number fits.
        let low = usize::try_from(rank.low).unwrap_or(0);
        let (_, &mut key, above) = keys.select_nth_unstable(low);
        // One pass over the upper part finds the next key and detects NaN, which is the maximum key.
        let (mut next, mut greatest) = (K::MAX, key);
        for &other in above.iter() {
            next = next.min(other);
            greatest = greatest.max(other);
        }
        if self.has_nan && greatest == K::MAX {
            return f64::NAN;
        }
        let value = (self.decode)(key);
        let next = if rank.fraction == 0.0 { value } else { (self.decode)(next) };
        self.between(value, next, rank.fraction)
    }
}
