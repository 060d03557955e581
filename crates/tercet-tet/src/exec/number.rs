//! What folds need to know of an element type.

mod addend;
#[cfg(test)]
mod tests;

use std::convert::identity;

use tercet_core::Element;
use tercet_core::tensor::f16;

pub(crate) use addend::Addend;
use addend::Half;

/// An element type that can be computed with.
///
/// Everything here is free of branches and calls, so that a loop over values becomes vector code.
pub(crate) trait Number: Element + Default {
    /// Whether values can be NaN or infinite.
    const FLOAT: bool;
    /// Whether some values are no f64.
    const WIDE: bool;
    /// Whether values must be taken apart bit by bit to compute with them: fewer lanes then fit the registers.
    const HALF: bool = false;
    /// See [`Self::peak`].
    const IRREGULAR: u16 = u16::MAX;
    /// What is compared in place of the values: numbers in the same order.
    type Rank: Rank;
    /// What is added up for a sum.
    type Plain: Addend;
    /// What is added up for a sum of absolute values.
    type Magnitude: Addend;
    /// What is added up for a sum of squares.
    type Square: Addend;
    /// The value as an f64; exact for all but 64-bit integers, there the nearest.
    fn to_f64(self) -> f64;
    /// Whether the value is NaN.
    fn is_nan(self) -> bool;
    /// Whether the value is infinite.
    fn is_infinite(self) -> bool;
    /// Whole numbers exactly; floats as 0.
    fn to_i128(self) -> i128;
    /// The value in the type of comparisons, exactly.
    fn rank(self) -> Self::Rank;
    /// The value.
    fn plain(self) -> Self::Plain;
    /// The absolute value.
    fn magnitude(self) -> Self::Magnitude;
    /// The square: exact for types up to 32 bits.
    fn square(self) -> Self::Square;
    /// What tells, when it reaches [`Self::IRREGULAR`], that [`Self::plain`] and [`Self::magnitude`] are wrong for this
    /// value: so it is for infinities and NaN of a type for which testing each value would be dear.
    fn peak(self) -> u16 {
        0
    }
    /// `self − pivot`, rounded once.
    fn minus(self, pivot: Self) -> f64;
}

/// A number that compares in one instruction.
pub(crate) trait Rank: Number<Rank = Self> {
    /// Not above any value.
    const LOWEST: Self;
    /// Not below any value.
    const HIGHEST: Self;
}

macro_rules! floats {
    ($($type:ty: $rank:ty, $widen:expr, $addend:ty, $plain:expr, $magnitude:expr, $half:literal, $peak:expr;)*) => {$(
        impl Number for $type {
            const FLOAT: bool = true;
            const WIDE: bool = false;
            const HALF: bool = $half;
            const IRREGULAR: u16 = 0x7c00;
            type Rank = $rank;
            type Plain = $addend;
            type Magnitude = $addend;
            type Square = f64;
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from($widen(self))
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
                $widen(self)
            }
            #[inline(always)]
            fn plain(self) -> $addend {
                $plain(self)
            }
            #[inline(always)]
            fn magnitude(self) -> $addend {
                $magnitude(self)
            }
            #[inline(always)]
            fn square(self) -> f64 {
                self.to_f64() * self.to_f64()
            }
            #[inline(always)]
            fn peak(self) -> u16 {
                $peak(self)
            }
            #[inline(always)]
            fn minus(self, pivot: Self) -> f64 {
                self.to_f64() - pivot.to_f64()
            }
        }
    )*};
}

floats! {
    f16: f32, widen, Half, Half::plain, Half::magnitude, true, Half::peak;
    f32: f32, identity::<f32>, f32, identity::<f32>, f32::abs, false, |_| 0;
    f64: f64, identity::<f64>, f64, identity::<f64>, f64::abs, false, |_| 0;
}

macro_rules! integers {
    ($($type:ty: $unsigned:ty, $abs:expr, $square:ty, $wide:literal, $to_f64:expr, $minus:expr;)*) => {$(
        impl Number for $type {
            const FLOAT: bool = false;
            const WIDE: bool = $wide;
            type Rank = $type;
            type Plain = $type;
            type Magnitude = $unsigned;
            type Square = $square;
            #[inline(always)]
            fn to_f64(self) -> f64 {
                $to_f64(self)
            }
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
            fn plain(self) -> $type {
                self
            }
            #[inline(always)]
            fn magnitude(self) -> $unsigned {
                $abs(self)
            }
            #[inline(always)]
            fn square(self) -> $square {
                let magnitude = <$square as Widened<_>>::widened(self.magnitude());
                magnitude * magnitude
            }
            #[inline(always)]
            fn minus(self, pivot: Self) -> f64 {
                $minus(self, pivot)
            }
        }
    )*};
}

integers! {
    u8: u8, identity::<u8>, u16, false, f64::from, minus;
    u16: u16, identity::<u16>, u32, false, f64::from, minus;
    u32: u32, identity::<u32>, u64, false, f64::from, minus;
    u64: u64, identity::<u64>, f64, true, nearest_unsigned, minus_words;
    i16: u16, i16::unsigned_abs, u32, false, f64::from, minus;
    i32: u32, i32::unsigned_abs, u64, false, f64::from, minus;
    i64: u64, i64::unsigned_abs, f64, true, nearest_signed, |a, b| minus_words(biased(a), biased(b));
}

macro_rules! ranks {
    ($($type:ty: $lowest:expr, $highest:expr;)*) => {$(
        impl Rank for $type {
            const LOWEST: Self = $lowest;
            const HIGHEST: Self = $highest;
        }
    )*};
}

ranks! {
    f32: f32::NEG_INFINITY, f32::INFINITY;
    f64: f64::NEG_INFINITY, f64::INFINITY;
    u8: u8::MIN, u8::MAX;
    u16: u16::MIN, u16::MAX;
    u32: u32::MIN, u32::MAX;
    u64: u64::MIN, u64::MAX;
    i16: i16::MIN, i16::MAX;
    i32: i32::MIN, i32::MAX;
    i64: i64::MIN, i64::MAX;
}

/// The type of squares, made of that of absolute values.
trait Widened<T> {
    fn widened(value: T) -> Self;
}

macro_rules! widened {
    ($($square:ty, $of:ty, $by:expr;)*) => {$(
        impl Widened<$of> for $square {
            #[inline(always)]
            fn widened(value: $of) -> Self {
                $by(value)
            }
        }
    )*};
}

widened! {
    u16, u8, u16::from;
    u32, u16, u32::from;
    u64, u32, u64::from;
    f64, u64, nearest_unsigned;
}

/// A half-precision number as a single-precision one. The library's has a branch for the machine's abilities, which
/// keeps loops from becoming vector code.
#[inline(always)]
fn widen(half: f16) -> f32 {
    /// The difference of the two types' exponents, and the exponent of the least normal half.
    const REBIAS: i32 = 112 << 23;
    const LEAST: i32 = 113 << 23;
    let half = i32::from(half.to_bits().cast_signed());
    let body = (half & 0x7fff) << 13;
    let subnormal = bits_to_float(body + LEAST) - bits_to_float(LEAST);
    // Infinities and NaN have the greatest exponent in either type.
    let special = if body >= 31 << 23 { REBIAS } else { 0 };
    let normal = bits_to_float(body + REBIAS + special);
    let magnitude = if body < 1 << 23 { subnormal } else { normal };
    f32::from_bits(magnitude.to_bits() | half.cast_unsigned() & 1 << 31)
}

#[inline(always)]
fn bits_to_float(bits: i32) -> f32 {
    f32::from_bits(bits.cast_unsigned())
}

/// Exponents that put the halves of a word into the digits of a float: 2^84 + high · 2^32 and 2^52 + low.
const HIGH: u64 = 1107 << 52;
const LOW: u64 = 1075 << 52;

/// Both halves of a word, each as an exact float with its own offset.
#[inline(always)]
fn halves(word: u64) -> (f64, f64) {
    (f64::from_bits(word >> 32 | HIGH), f64::from_bits(word & 0xffff_ffff | LOW))
}

/// A signed word as an unsigned one that is 2^63 larger.
#[inline(always)]
pub(crate) fn biased(value: i64) -> u64 {
    value.cast_unsigned() ^ 1 << 63
}

/// The nearest f64, by operations that every vector unit has: all is exact but the last addition.
#[inline(always)]
fn nearest_unsigned(value: u64) -> f64 {
    const OFFSET: f64 = f64::from_bits(HIGH) + f64::from_bits(LOW);
    let (high, low) = halves(value);
    (high - OFFSET) + low
}

#[inline(always)]
fn nearest_signed(value: i64) -> f64 {
    const OFFSET: f64 = f64::from_bits(HIGH) + f64::from_bits(1086 << 52) + f64::from_bits(LOW);
    let (high, low) = halves(biased(value));
    (high - OFFSET) + low
}

#[inline(always)]
fn minus<T: Number>(a: T, b: T) -> f64 {
    a.to_f64() - b.to_f64()
}

/// The difference of two words, rounded once: those of the halves are exact.
#[inline(always)]
fn minus_words(a: u64, b: u64) -> f64 {
    let ((a_high, a_low), (b_high, b_low)) = (halves(a), halves(b));
    (a_high - b_high) + (a_low - b_low)
}
