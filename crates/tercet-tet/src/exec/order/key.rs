//! Keys: unsigned integers with the same order as the values, and interpolation between two values.

use bytemuck::Pod;
use tercet_core::tensor::f16;

use crate::exec::number::Number;

/// An unsigned key with the same order as its value.
pub(crate) trait Key: Pod + Ord + Send + Sync {
    /// Width in bits.
    const BITS: u32;
    /// Maximum key. For floats it represents every NaN and no other value.
    const MAX: Self;
    /// Widens to u64.
    fn wide(self) -> u64;
    /// Narrows from u64, if it fits.
    fn narrow(wide: u64) -> Self;
}

macro_rules! keys {
    ($($type:ty),*) => {$(
        impl Key for $type {
            const BITS: u32 = <$type>::BITS;
            const MAX: Self = <$type>::MAX;
            #[inline(always)]
            #[expect(clippy::allow_attributes, reason = "one of the types is u64 itself")]
            #[allow(clippy::cast_lossless, reason = "one of the types is u64 itself")]
            fn wide(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            #[expect(clippy::allow_attributes, reason = "one of the types is u64 itself")]
            #[allow(clippy::cast_possible_truncation, reason = "only called with keys of this type")]
            fn narrow(wide: u64) -> Self {
                wide as $type
            }
        }
    )*};
}

keys!(u8, u16, u32, u64);

/// An element type whose values have keys.
pub(crate) trait Ordinal: Number {
    type Key: Key;
    /// Key of a value. −0.0 sorts before +0.0, NaN after all other values.
    fn key(self) -> Self::Key;
    /// Value of a key.
    fn of_key(key: Self::Key) -> Self;
}

macro_rules! unsigned {
    ($($type:ty),*) => {$(
        impl Ordinal for $type {
            type Key = $type;
            #[inline(always)]
            fn key(self) -> $type {
                self
            }
            #[inline(always)]
            fn of_key(key: $type) -> Self {
                key
            }
        }
    )*};
}

macro_rules! signed {
    ($($type:ty, $key:ty;)*) => {$(
        impl Ordinal for $type {
            type Key = $key;
            #[inline(always)]
            fn key(self) -> $key {
                self.cast_unsigned() ^ (1 << (<$key>::BITS - 1))
            }
            #[inline(always)]
            fn of_key(key: $key) -> Self {
                (key ^ (1 << (<$key>::BITS - 1))).cast_signed()
            }
        }
    )*};
}

macro_rules! floats {
    ($($type:ty, $key:ty;)*) => {$(
        impl Ordinal for $type {
            type Key = $key;
            #[inline(always)]
            fn key(self) -> $key {
                let bits = self.to_bits();
                // Negative numbers are inverted, the others are shifted above them; both without a branch.
                let sign = (bits.cast_signed() >> (<$key>::BITS - 1)).cast_unsigned();
                let key = bits ^ (sign | (1 << (<$key>::BITS - 1)));
                if <$type>::is_nan(self) { <$key>::MAX } else { key }
            }
            #[inline(always)]
            fn of_key(key: $key) -> Self {
                let negative = key >> (<$key>::BITS - 1) == 0;
                <$type>::from_bits(if negative { !key } else { key ^ (1 << (<$key>::BITS - 1)) })
            }
        }
    )*};
}

unsigned!(u8, u16, u32, u64);
signed! { i16, u16; i32, u32; i64, u64; }
floats! { f16, u16; f32, u32; f64, u64; }

/// Rank of a quantile among `count` sorted values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rank {
    /// Index of the lower value.
    pub(crate) low: u64,
    /// Fraction of the way to the next value, below 1; 0 at the last value.
    pub(crate) fraction: f64,
}

impl Rank {
    /// Position q·(count − 1). `count` must not be 0.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "no array has 2^53 cells; q is between 0 and 1"
    )]
    pub(crate) fn new(q: f64, count: u64) -> Self {
        let last = count.saturating_sub(1);
        let position = q * last as f64;
        let low = position.floor();
        if low >= last as f64 {
            return Self { low: last, fraction: 0.0 };
        }
        Self { low: low as u64, fraction: position - low }
    }

    /// Index of the upper value; equal to `low` if the quantile is a value.
    pub(crate) fn high(self) -> u64 {
        self.low + u64::from(self.fraction > 0.0)
    }
}

/// Linear interpolation: the number at `fraction` of the way from `low` to `high`; `high` is not less than `low`.
#[expect(clippy::cast_precision_loss, reason = "differences of 64-bit integers are rounded once, at the end")]
pub(crate) fn between<T: Ordinal>(low: T, high: T, fraction: f64) -> f64 {
    let half = fraction == 0.5;
    if !T::FLOAT {
        let (a, b) = (low.to_i128(), high.to_i128());
        return match (half, fraction < 0.5) {
            (true, _) => (a + b) as f64 / 2.0,
            (_, true) => a as f64 + (b - a) as f64 * fraction,
            _ => b as f64 - (b - a) as f64 * (1.0 - fraction),
        };
    }
    let (a, b) = (low.to_f64(), high.to_f64());
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

/// Selects the quantile of some keys, and reorders them; NaN for no keys, or if any key is NaN.
pub(crate) fn select<T: Ordinal>(keys: &mut [T::Key], q: f64) -> f64 {
    if keys.is_empty() {
        return f64::NAN;
    }
    let rank = Rank::new(q, keys.len() as u64);
    // Keys are in memory, so their number fits.
    let low = usize::try_from(rank.low).unwrap_or(0);
    let (_, &mut key, above) = keys.select_nth_unstable(low);
    // One pass over the upper half finds the next key and detects NaN, which is the maximum key.
    let (mut next, mut greatest) = (T::Key::MAX, key);
    for &other in above.iter() {
        next = next.min(other);
        greatest = greatest.max(other);
    }
    if T::FLOAT && greatest == T::Key::MAX {
        return f64::NAN;
    }
    let value = T::of_key(key);
    if rank.fraction == 0.0 {
        between(value, value, 0.0)
    } else {
        between(value, T::of_key(next), rank.fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_order<T: Ordinal>(values: &[T]) {
        for pair in values.windows(2) {
            assert!(pair[0].key() < pair[1].key(), "{pair:?}");
        }
        for &value in values {
            assert_eq!(T::of_key(value.key()).to_f64().to_bits(), value.to_f64().to_bits());
        }
    }

    #[test]
    fn keys_sort_like_values() {
        in_order(&[i16::MIN, -1, 0, 1, i16::MAX]);
        in_order(&[i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX]);
        in_order(&[0u8, 1, 255]);
        let floats =
            [f64::NEG_INFINITY, f64::MIN, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, f64::MAX, f64::INFINITY];
        in_order(&floats);
        in_order(&[f32::NEG_INFINITY, f32::MIN, -1.0, -0.0, 0.0, 1e-45, 1.0, f32::MAX, f32::INFINITY]);
        in_order(&[f16::NEG_INFINITY, f16::MIN, f16::from_f32(-0.0), f16::ZERO, f16::MAX, f16::INFINITY]);
        for nan in [f32::NAN, -f32::NAN, f32::from_bits(0x7f80_0001), f32::from_bits(0xffff_ffff)] {
            assert_eq!(nan.key(), u32::MAX);
        }
    }

    #[test]
    fn numbers_between_are_those_of_the_definition() {
        let inf = f64::INFINITY;
        assert_eq!(between(1.0, 2.0, 0.25), 1.25);
        assert_eq!(between(-inf, 3.0, 0.1), -inf);
        assert_eq!(between(3.0, inf, 0.9), inf);
        assert_eq!(between(inf, inf, 0.3), inf);
        assert!(between(-inf, inf, 0.5).is_nan());
        assert_eq!(between(-inf, inf, 0.0), -inf);
        assert_eq!(between(f64::MIN, f64::MAX, 0.5), 0.0);
        assert_eq!(between(f64::MAX, f64::MAX, 0.5), f64::MAX);
        let large = 2f64.powi(1023);
        assert_eq!(between(large, 1.5 * large, 0.5), 1.25 * large);
        assert_eq!(between(u64::MAX - 1, u64::MAX, 0.5), 2f64.powi(64));
        assert_eq!(between(i64::MIN, i64::MAX, 0.5), -0.5);
        assert_eq!(between(7i64, 8, 0.75), 7.75);
    }

    #[test]
    fn ranks_are_those_of_the_definition() {
        assert_eq!(Rank::new(0.5, 4), Rank { low: 1, fraction: 0.5 });
        assert_eq!(Rank::new(0.5, 5), Rank { low: 2, fraction: 0.0 });
        assert_eq!(Rank::new(1.0, 5), Rank { low: 4, fraction: 0.0 });
        assert_eq!(Rank::new(0.0, 1), Rank { low: 0, fraction: 0.0 });
        assert_eq!((Rank::new(0.5, 4).high(), Rank::new(0.5, 5).high()), (2, 2));
    }
}
