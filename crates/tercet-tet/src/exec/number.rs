//! [`Number`]: element types for filters, order statistics and transforms.

#[cfg(test)]
mod tests;

use tercet_core::Element;
use tercet_core::tensor::f16;
use tercet_kernel::from_half;

/// An element type for arithmetic.
///
/// Methods on values have no branches and no calls, so that loops over values vectorize.
pub(crate) trait Number: Element + Default {
    /// Whether values can be NaN or infinite.
    const FLOAT: bool;
    /// Type that is compared in place of the values, with the same order.
    type Rank: Rank;
    /// Converts to f64; exact except for 64-bit integers, which are rounded to nearest.
    fn to_f64(self) -> f64;
    /// Whether the value is NaN.
    fn is_nan(self) -> bool;
    /// Whether the value is infinite.
    fn is_infinite(self) -> bool;
    /// Converts integers exactly; floats become 0.
    fn to_i128(self) -> i128;
    /// Converts to the comparison type, exactly.
    fn rank(self) -> Self::Rank;
    /// Nearest value to a float; 0 for integer types.
    fn nearest_f64(value: f64) -> Self;
    /// Nearest float to an integer, possibly infinite; integer types require an exact conversion.
    fn nearest_i128(value: i128) -> Option<Self>;
}

/// A number that compares in one instruction.
pub(crate) trait Rank: Number<Rank = Self> {
    /// Minimum of the type: no value is less.
    const LOWEST: Self;
    /// Maximum of the type: no value is greater.
    const HIGHEST: Self;
    /// Next value of a float type; integers are unchanged.
    fn up(self) -> Self;
    /// Previous value of a float type; integers are unchanged.
    fn down(self) -> Self;
}

macro_rules! floats {
    ($($type:ty, rank $rank:ty = $rank_of:expr, nearest $nearest:expr;)*) => {$(
        impl Number for $type {
            const FLOAT: bool = true;
            type Rank = $rank;
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from($rank_of(self))
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
            fn nearest_f64(value: f64) -> Self {
                $nearest(value)
            }
            #[expect(clippy::cast_precision_loss, reason = "integers that are not exact in f64 are larger than all half floats")]
            fn nearest_i128(value: i128) -> Option<Self> {
                Some(<$type>::of_whole(value, value as f64))
            }
        }
    )*};
}

/// Converts integers to floats, rounded once.
trait FromInteger {
    fn of_whole(whole: i128, nearest: f64) -> Self;
}

impl FromInteger for f16 {
    fn of_whole(_: i128, nearest: f64) -> Self {
        to_half(nearest)
    }
}

impl FromInteger for f32 {
    #[expect(clippy::cast_precision_loss, reason = "the nearest")]
    fn of_whole(whole: i128, _: f64) -> Self {
        whole as Self
    }
}

impl FromInteger for f64 {
    fn of_whole(_: i128, nearest: f64) -> Self {
        nearest
    }
}

floats! {
    f16, rank f32 = from_half, nearest to_half;
    f32, rank f32 = std::convert::identity::<f32>, nearest to_f32;
    f64, rank f64 = std::convert::identity::<f64>, nearest std::convert::identity::<f64>;
}

macro_rules! float_ranks {
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

float_ranks!(f32, f64);

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Number for $type {
            const FLOAT: bool = false;
            type Rank = $type;
            #[inline(always)]
            #[expect(clippy::allow_attributes, reason = "not every type loses digits")]
            #[allow(clippy::cast_precision_loss, clippy::cast_lossless, reason = "the nearest")]
            fn to_f64(self) -> f64 {
                self as f64
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
            fn nearest_f64(_: f64) -> Self {
                0
            }
            fn nearest_i128(value: i128) -> Option<Self> {
                Self::try_from(value).ok()
            }
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

integers!(u8, u16, u32, u64, i16, i32, i64);

#[expect(clippy::cast_possible_truncation, reason = "the nearest")]
fn to_f32(value: f64) -> f32 {
    value as f32
}

/// Nearest f16. The conversion through f32 would round twice; the last bit of the f32 is therefore sticky. It is set if
/// any bits were cut off, so a value that is not a tie does not become one.
pub(crate) fn to_half(value: f64) -> f16 {
    let near = to_f32(value);
    if value.is_nan() || f64::from(near) == value {
        return f16::from_f32(near);
    }
    let toward_zero = near.to_bits() - u32::from(f64::from(near).abs() > value.abs());
    f16::from_f32(f32::from_bits(toward_zero | 1))
}
