//! What folds need to know of an element type.

mod addend;
mod float;
mod integer;
#[cfg(test)]
mod tests;

use std::ops::{AddAssign, BitAnd};

use tercet_core::Element;

pub(crate) use addend::Addend;
#[cfg(any(unix, windows))]
pub(crate) use float::to_half;

/// An element type that can be computed with.
///
/// What works on a value is free of branches and calls, so that a loop over values becomes vector code.
pub(crate) trait Number: Element + Default {
    /// Whether values can be NaN or infinite.
    const FLOAT: bool;
    /// Whether some values are no f64.
    const WIDE: bool;
    /// Whether values must be taken apart bit by bit to compute with them: fewer lanes then fit the registers.
    const HALF: bool = false;
    /// What is compared in place of the values: numbers in the same order.
    type Rank: Rank;
    /// The bits of a value.
    type Word: Word;
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
    /// The bits.
    fn word(self) -> Self::Word;
    /// The value.
    fn plain(self) -> Self::Plain;
    /// The absolute value.
    fn magnitude(self) -> Self::Magnitude;
    /// The square: exact for types up to 32 bits.
    fn square(self) -> Self::Square;
    /// Something that reaches [`Self::IRREGULAR`] where [`Self::plain`] and [`Self::magnitude`] are wrong: for infinities
    /// and NaN of a type for which testing each value would be dear.
    #[inline(always)]
    fn peak(self) -> u16 {
        0
    }
    /// See [`Self::peak`].
    const IRREGULAR: u16 = u16::MAX;
    /// `self − pivot`, rounded once.
    fn minus(self, pivot: Self) -> f64;
    /// The nearest value to a float; 0 for integer types.
    fn nearest_f64(value: f64) -> Self;
    /// The nearest float to an integer, possibly infinite; integer types need the exact number.
    fn nearest_i128(value: i128) -> Option<Self>;
}

/// A number that compares in one instruction.
pub(crate) trait Rank: Number<Rank = Self> {
    /// Not above any value.
    const LOWEST: Self;
    /// Not below any value.
    const HIGHEST: Self;
    /// The next value of a float type; integers stay.
    fn up(self) -> Self;
    /// The value before of a float type; integers stay.
    fn down(self) -> Self;
}

/// An unsigned number as wide as an element.
pub(crate) trait Word: Copy + Ord + Default + AddAssign + BitAnd<Output = Self> + Into<u64> {
    /// All bits.
    const ONES: Self;
    /// 1 if it is so, else 0.
    fn one_if(so: bool) -> Self;
    /// The low bits of a number.
    fn from_u64(bits: u64) -> Self;
    /// The difference, around the end.
    fn minus(self, other: Self) -> Self;
}

macro_rules! words {
    ($($type:ty),*) => {$(
        impl Word for $type {
            const ONES: Self = <$type>::MAX;
            #[inline(always)]
            fn one_if(so: bool) -> Self {
                Self::from(so)
            }
            #[inline(always)]
            #[expect(clippy::allow_attributes, reason = "not every type loses bits")]
            #[allow(clippy::cast_possible_truncation, reason = "the low bits are asked for")]
            fn from_u64(bits: u64) -> Self {
                bits as $type
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
        }
    )*};
}

words!(u8, u16, u32, u64);
