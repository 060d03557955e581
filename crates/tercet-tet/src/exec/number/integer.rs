//! Whole numbers.

use std::convert::identity;

use super::{Number, Rank};

/// What all integer types have in common.
macro_rules! integers {
    ($($type:ty, unsigned $unsigned:ty = $word:expr, $abs:expr, wide $wide:literal, { $($floats:tt)* })*) => {$(
        impl Number for $type {
            const FLOAT: bool = false;
            const WIDE: bool = $wide;
            type Rank = $type;
            type Word = $unsigned;
            type Plain = $type;
            type Magnitude = $unsigned;
            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }
            #[inline(always)]
            fn is_infinite(self) -> bool {
                false
            }
            #[inline(always)]
            fn to_i128(self) -> i128 {
                i128::from(self)
            }
            #[inline(always)]
            fn rank(self) -> $type {
                self
            }
            #[inline(always)]
            fn word(self) -> $unsigned {
                $word(self)
            }
            #[inline(always)]
            fn plain(self) -> $type {
                self
            }
            #[inline(always)]
            fn magnitude(self) -> $unsigned {
                $abs(self)
            }
            fn nearest_f64(_: f64) -> Self {
                0
            }
            fn nearest_i128(value: i128) -> Option<Self> {
                Self::try_from(value).ok()
            }
            $($floats)*
        }

        impl Rank for $type {
            const LOWEST: Self = <$type>::MIN;
            const HIGHEST: Self = <$type>::MAX;
            fn up(self) -> Self {
                self
            }
            fn down(self) -> Self {
                self
            }
        }
    )*};
}

/// Types whose values are f64 and whose squares fit a type twice as wide.
macro_rules! narrow {
    ($($type:ty, $unsigned:ty = $word:expr, $abs:expr, $square:ty;)*) => {
        integers! {$(
            $type, unsigned $unsigned = $word, $abs, wide false, {
                type Square = $square;
                #[inline(always)]
                fn to_f64(self) -> f64 {
                    f64::from(self)
                }
                #[inline(always)]
                fn square(self) -> $square {
                    <$square>::from(self.magnitude()) * <$square>::from(self.magnitude())
                }
                #[inline(always)]
                fn minus(self, pivot: Self) -> f64 {
                    f64::from(self) - f64::from(pivot)
                }
            }
        )*}
    };
}

narrow! {
    u8, u8 = identity::<u8>, identity::<u8>, u16;
    u16, u16 = identity::<u16>, identity::<u16>, u32;
    u32, u32 = identity::<u32>, identity::<u32>, u64;
    i16, u16 = i16::cast_unsigned, i16::unsigned_abs, u32;
    i32, u32 = i32::cast_unsigned, i32::unsigned_abs, u64;
}

integers! {
    u64, unsigned u64 = identity::<u64>, identity::<u64>, wide true, {
        type Square = f64;
        #[inline(always)]
        fn to_f64(self) -> f64 {
            let (high, low) = halves(self);
            (high - (HIGH + LOW)) + low
        }
        #[inline(always)]
        fn square(self) -> f64 {
            self.to_f64() * self.to_f64()
        }
        #[inline(always)]
        fn minus(self, pivot: Self) -> f64 {
            minus(self, pivot)
        }
    }
    i64, unsigned u64 = i64::cast_unsigned, i64::unsigned_abs, wide true, {
        type Square = f64;
        #[inline(always)]
        fn to_f64(self) -> f64 {
            let (high, low) = halves(biased(self));
            (high - (HIGH + LOW + BIAS)) + low
        }
        #[inline(always)]
        fn square(self) -> f64 {
            self.to_f64() * self.to_f64()
        }
        #[inline(always)]
        fn minus(self, pivot: Self) -> f64 {
            minus(biased(self), biased(pivot))
        }
    }
}

/// 2^84, 2^52 and 2^63.
const HIGH: f64 = f64::from_bits((1023 + 84) << 52);
const LOW: f64 = f64::from_bits((1023 + 52) << 52);
const BIAS: f64 = f64::from_bits((1023 + 63) << 52);

/// The halves of a word as exact floats, by operations that every vector unit has: 2^84 + high · 2^32 and 2^52 + low,
/// whose digits they are.
#[inline(always)]
fn halves(word: u64) -> (f64, f64) {
    (f64::from_bits(word >> 32 | HIGH.to_bits()), f64::from_bits(word & 0xffff_ffff | LOW.to_bits()))
}

/// A signed word as an unsigned one, 2^63 larger.
#[inline(always)]
pub(super) fn biased(value: i64) -> u64 {
    value.cast_unsigned() ^ 1 << 63
}

/// The difference of two words, rounded once: those of the halves are exact.
#[inline(always)]
fn minus(a: u64, b: u64) -> f64 {
    let ((a_high, a_low), (b_high, b_low)) = (halves(a), halves(b));
    (a_high - b_high) + (a_low - b_low)
}
