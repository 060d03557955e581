//! How values are added up: in lanes that cannot overflow within a block, then exactly or with compensation.

use std::ops::AddAssign;

use tercet_core::tensor::f16;

use super::integer::biased;

/// A value to be added up.
pub(crate) trait Addend: Copy {
    /// Partial sums of a lane.
    type Lane: Copy + Default + AddAssign;
    /// How many values a lane can add up.
    const STEPS: usize;
    /// Whether totals are exact integers.
    const EXACT: bool;
    /// Whether values are added in two parts.
    const SPLIT: bool = false;
    /// The part of the value that goes into the lower lane.
    fn low(self) -> Self::Lane;
    /// The part of the value that goes into the upper lane; 0 if there is only one.
    fn high(self) -> Self::Lane;
    /// The total of lanes that added up `count` values: exact ones.
    fn whole(low: Self::Lane, high: Self::Lane, count: usize) -> i128;
    /// Likewise floats.
    fn float(low: Self::Lane) -> f64;
}

macro_rules! wholes {
    ($($type:ty: $lane:ty, $steps:expr;)*) => {$(
        impl Addend for $type {
            type Lane = $lane;
            const STEPS: usize = $steps;
            const EXACT: bool = true;
            #[inline(always)]
            fn low(self) -> $lane {
                <$lane>::from(self)
            }
            #[inline(always)]
            fn high(self) -> $lane {
                0
            }
            #[inline(always)]
            fn whole(low: $lane, _: $lane, _: usize) -> i128 {
                i128::from(low)
            }
            #[inline(always)]
            fn float(_: $lane) -> f64 {
                0.0
            }
        }
    )*};
}

wholes! {
    u8: u16, 256;
    u16: u32, 65_536;
    u32: u64, 65_536;
    i16: i32, 65_536;
    i32: i64, 65_536;
}

macro_rules! words {
    ($($type:ty: $word:expr, $bias:expr;)*) => {$(
        impl Addend for $type {
            type Lane = u64;
            const STEPS: usize = 65_536;
            const EXACT: bool = true;
            const SPLIT: bool = true;
            #[inline(always)]
            fn low(self) -> u64 {
                $word(self) & 0xffff_ffff
            }
            #[inline(always)]
            fn high(self) -> u64 {
                $word(self) >> 32
            }
            #[inline(always)]
            fn whole(low: u64, high: u64, count: usize) -> i128 {
                i128::from(low) + (i128::from(high) << 32) - $bias * count as i128
            }
            #[inline(always)]
            fn float(_: u64) -> f64 {
                0.0
            }
        }
    )*};
}

words! {
    u64: std::convert::identity::<u64>, 0;
    i64: biased, (1 << 63);
}

macro_rules! floats {
    ($($type:ty),*) => {$(
        impl Addend for $type {
            type Lane = f64;
            const STEPS: usize = 256;
            const EXACT: bool = false;
            #[inline(always)]
            fn low(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn high(self) -> f64 {
                0.0
            }
            #[inline(always)]
            fn whole(_: f64, _: f64, _: usize) -> i128 {
                0
            }
            #[inline(always)]
            fn float(low: f64) -> f64 {
                low
            }
        }
    )*};
}

floats!(f32, f64);

/// A finite half-precision number, 2^1008 times too small: its bits, put where an f64 has them. Multiples of 2^-24 below
/// 2^16 add up without rounding, 4096 of them and more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Half(f64);

impl Half {
    #[inline(always)]
    pub(super) fn plain(value: f16) -> Self {
        let bits = i64::from(value.to_bits().cast_signed()) << 42;
        Self(f64::from_bits(bits.cast_unsigned() & 0x81ff_fc00_0000_0000))
    }

    #[inline(always)]
    pub(super) fn magnitude(value: f16) -> Self {
        Self(f64::from_bits(u64::from(value.to_bits() & 0x7fff) << 42))
    }
}

impl Addend for Half {
    type Lane = f64;
    const STEPS: usize = 256;
    const EXACT: bool = false;
    #[inline(always)]
    fn low(self) -> f64 {
        self.0
    }
    #[inline(always)]
    fn high(self) -> f64 {
        0.0
    }
    #[inline(always)]
    fn whole(_: f64, _: f64, _: usize) -> i128 {
        0
    }
    #[inline(always)]
    fn float(low: f64) -> f64 {
        low * f64::from_bits((1023 + 1008) << 52)
    }
}
