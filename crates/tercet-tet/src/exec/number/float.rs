//! Floats.

use std::convert::identity;

use tercet_core::tensor::f16;

use super::addend::Half;
use super::{Number, Rank};

/// What all float types have in common. `$rank_of` and `$to_f64` are exact.
macro_rules! floats {
    ($($type:ty, rank $rank:ty = $rank_of:expr, word $word:ty, f64 $to_f64:expr,
       nearest $nearest:expr, $nearest_whole:expr, { $($sums:tt)* })*) => {$(
        impl Number for $type {
            const FLOAT: bool = true;
            const WIDE: bool = false;
            type Rank = $rank;
            type Word = $word;
            type Square = f64;
            #[inline(always)]
            fn to_f64(self) -> f64 {
                $to_f64(self)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                <$type>::is_nan(self)
            }
            #[inline(always)]
            fn is_infinite(self) -> bool {
                <$type>::is_infinite(self)
            }
            #[inline(always)]
            fn to_i128(self) -> i128 {
                0
            }
            #[inline(always)]
            fn rank(self) -> $rank {
                $rank_of(self)
            }
            #[inline(always)]
            fn word(self) -> $word {
                self.to_bits()
            }
            #[inline(always)]
            fn square(self) -> f64 {
                $to_f64(self) * $to_f64(self)
            }
            #[inline(always)]
            fn minus(self, pivot: Self) -> f64 {
                $to_f64(self) - $to_f64(pivot)
            }
            fn nearest_f64(value: f64) -> Self {
                $nearest(value)
            }
            fn nearest_i128(value: i128) -> Option<Self> {
                Some($nearest_whole(value))
            }
            $($sums)*
        }
    )*};
}

floats! {
    f16, rank f32 = to_single, word u16, f64 to_double, nearest to_half, whole_to_half, {
        const HALF: bool = true;
        const IRREGULAR: u16 = 0x7c00;
        type Plain = Half;
        type Magnitude = Half;
        #[inline(always)]
        fn plain(self) -> Half {
            Half::plain(self)
        }
        #[inline(always)]
        fn magnitude(self) -> Half {
            Half::magnitude(self)
        }
        #[inline(always)]
        fn peak(self) -> u16 {
            self.to_bits() & 0x7fff
        }
    }
    f32, rank f32 = identity::<f32>, word u32, f64 f64::from, nearest to_f32, whole_to_f32, {
        type Plain = f32;
        type Magnitude = f32;
        #[inline(always)]
        fn plain(self) -> f32 {
            self
        }
        #[inline(always)]
        fn magnitude(self) -> f32 {
            self.abs()
        }
    }
    f64, rank f64 = identity::<f64>, word u64, f64 identity::<f64>, nearest identity::<f64>, whole_to_f64, {
        type Plain = f64;
        type Magnitude = f64;
        #[inline(always)]
        fn plain(self) -> f64 {
            self
        }
        #[inline(always)]
        fn magnitude(self) -> f64 {
            self.abs()
        }
    }
}

macro_rules! ranks {
    ($($type:ty),*) => {$(
        impl Rank for $type {
            const LOWEST: Self = <$type>::NEG_INFINITY;
            const HIGHEST: Self = <$type>::INFINITY;
            fn up(self) -> Self {
                self.next_up()
            }
            fn down(self) -> Self {
                self.next_down()
            }
        }
    )*};
}

ranks!(f32, f64);

/// Half-precision numbers as others. The library's conversions have a branch for the machine's abilities, which keeps
/// loops from becoming vector code.
macro_rules! widen {
    ($name:ident: $float:ty, $signed:ty, shift $shift:literal, digits $digits:literal, bias $bias:literal) => {
        #[inline(always)]
        fn $name(half: f16) -> $float {
            /// The difference of the exponents of the two types, and the exponent of the least normal half.
            const REBIAS: $signed = ($bias - 15) << $digits;
            const LEAST: $signed = ($bias - 14) << $digits;
            let half = <$signed>::from(half.to_bits().cast_signed());
            let body = (half & 0x7fff) << $shift;
            let least = <$float>::from_bits(LEAST.cast_unsigned());
            let subnormal = <$float>::from_bits((body + LEAST).cast_unsigned()) - least;
            // Infinities and NaN have the greatest exponent of either type.
            let special = if body >= 31 << $digits { REBIAS } else { 0 };
            let normal = <$float>::from_bits((body + REBIAS + special).cast_unsigned());
            let magnitude = if body < 1 << $digits { subnormal } else { normal };
            <$float>::from_bits(magnitude.to_bits() | (half & <$signed>::MIN).cast_unsigned())
        }
    };
}

widen!(to_single: f32, i32, shift 13, digits 23, bias 127);
widen!(to_double: f64, i64, shift 42, digits 52, bias 1023);

#[expect(clippy::cast_possible_truncation, reason = "the nearest")]
fn to_f32(value: f64) -> f32 {
    value as f32
}

/// The nearest half. The way over an f32 would round twice, were it not for its last bit: it tells whether anything was
/// cut off, and so keeps what is no tie from looking like one.
pub(crate) fn to_half(value: f64) -> f16 {
    let near = to_f32(value);
    if value.is_nan() || f64::from(near) == value {
        return f16::from_f32(near);
    }
    let toward_zero = near.to_bits() - u32::from(f64::from(near).abs() > value.abs());
    f16::from_f32(f32::from_bits(toward_zero | 1))
}

#[expect(clippy::cast_precision_loss, reason = "the nearest")]
fn whole_to_f32(value: i128) -> f32 {
    value as f32
}

#[expect(clippy::cast_precision_loss, reason = "the nearest")]
fn whole_to_f64(value: i128) -> f64 {
    value as f64
}

/// Whole numbers that are no f64 lie far beyond all halves.
fn whole_to_half(value: i128) -> f16 {
    to_half(whole_to_f64(value))
}
