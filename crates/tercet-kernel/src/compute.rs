//! Compute types: the four types that arithmetic is done in.

use std::fmt::Debug;

use tercet_core::ElementType;

/// A compute type: the type that values are widened to before arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum ComputeType {
    F32,
    F64,
    I64,
    U64,
}

impl ComputeType {
    /// The smallest compute type that represents all values of an element type.
    pub const fn for_dtype(dtype: ElementType) -> Self {
        match dtype {
            ElementType::U8 | ElementType::U16 | ElementType::I16 | ElementType::F16 | ElementType::F32 => {
                Self::F32
            }
            ElementType::U32 | ElementType::I32 | ElementType::F64 => Self::F64,
            ElementType::I64 => Self::I64,
            ElementType::U64 => Self::U64,
        }
    }

    /// Size of a value in bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
        }
    }

    /// Whether stored elements of this element type can be used without conversion.
    pub const fn is_native(self, dtype: ElementType) -> bool {
        cfg!(target_endian = "little")
            && matches!(
                (self, dtype),
                (Self::F32, ElementType::F32)
                    | (Self::F64, ElementType::F64)
                    | (Self::I64, ElementType::I64)
                    | (Self::U64, ElementType::U64)
            )
    }
}

/// A scalar value of a compute type.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Value {
    F32(f32),
    F64(f64),
    I64(i64),
    U64(u64),
}

/// A number type for arithmetic.
///
/// Methods on values have no branches and no calls, so that loops over values vectorize.
pub trait Compute: bytemuck::Pod + PartialOrd + Default + Send + Sync + Debug {
    /// Compute type.
    const TYPE: ComputeType;
    /// Whether values can be NaN or infinite.
    const FLOAT: bool;
    /// Minimum of the type: no value is less.
    const LOWEST: Self;
    /// Maximum of the type: no value is greater.
    const HIGHEST: Self;
    /// A counter with the same width as a value, so that it fits the SIMD lanes.
    type Ordinal: Copy + PartialEq + Send + Sync + Debug + Into<u64>;
    /// Sentinel, greater than any ordinal in use.
    const NO_ORDINAL: Self::Ordinal;
    /// Converts a small number to an ordinal.
    fn ordinal(number: u32) -> Self::Ordinal;
    /// The next ordinal if `so` is true, else the same.
    fn next_if(ordinal: Self::Ordinal, so: bool) -> Self::Ordinal;
    /// Converts to the nearest f64; exact for floats.
    fn to_f64(self) -> f64;
    /// Difference between the value and `to_f64`: 0 except for large integers.
    fn rest(self) -> f64;
    /// Difference `self − pivot`, rounded once.
    fn minus(self, pivot: Self) -> f64;
    /// Whether the value is NaN.
    fn is_nan(self) -> bool;
    /// Whether the value is infinite.
    fn is_infinite(self) -> bool;
    /// The value if it has this type, else 0.
    fn from_value(value: Value) -> Self;
}

macro_rules! floats {
    ($($type:ty, $name:ident, $ordinal:ty;)*) => {$(
        impl Compute for $type {
            const TYPE: ComputeType = ComputeType::$name;
            const FLOAT: bool = true;
            const LOWEST: Self = <$type>::NEG_INFINITY;
            const HIGHEST: Self = <$type>::INFINITY;
            type Ordinal = $ordinal;
            const NO_ORDINAL: $ordinal = <$ordinal>::MAX;
            #[inline(always)]
            fn ordinal(number: u32) -> $ordinal {
                <$ordinal>::from(number)
            }
            #[inline(always)]
            fn next_if(ordinal: $ordinal, so: bool) -> $ordinal {
                ordinal.wrapping_add(<$ordinal>::from(so))
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            fn rest(self) -> f64 {
                0.0
            }
            #[inline(always)]
            fn minus(self, pivot: Self) -> f64 {
                f64::from(self) - f64::from(pivot)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                <$type>::is_nan(self)
            }
            #[inline(always)]
            fn is_infinite(self) -> bool {
                <$type>::is_infinite(self)
            }
            fn from_value(value: Value) -> Self {
                if let Value::$name(value) = value { value } else { 0.0 }
            }
        }
    )*};
}

floats! {
    f32, F32, u32;
    f64, F64, u64;
}

macro_rules! integers {
    ($($type:ty, $name:ident, $biased:expr, $offset:expr;)*) => {$(
        impl Compute for $type {
            const TYPE: ComputeType = ComputeType::$name;
            const FLOAT: bool = false;
            const LOWEST: Self = <$type>::MIN;
            const HIGHEST: Self = <$type>::MAX;
            type Ordinal = u64;
            const NO_ORDINAL: u64 = u64::MAX;
            #[inline(always)]
            fn ordinal(number: u32) -> u64 {
                u64::from(number)
            }
            #[inline(always)]
            fn next_if(ordinal: u64, so: bool) -> u64 {
                ordinal.wrapping_add(u64::from(so))
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                let (high, low) = halves($biased(self));
                (high - $offset) + low
            }
            fn rest(self) -> f64 {
                crate::sum::rest(self.into(), self.to_f64())
            }
            #[inline(always)]
            fn minus(self, pivot: Self) -> f64 {
                let ((high, low), (pivot_high, pivot_low)) = (halves($biased(self)), halves($biased(pivot)));
                (high - pivot_high) + (low - pivot_low)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }
            #[inline(always)]
            fn is_infinite(self) -> bool {
                false
            }
            fn from_value(value: Value) -> Self {
                if let Value::$name(value) = value { value } else { 0 }
            }
        }
    )*};
}

integers! {
    i64, I64, biased, HIGH + LOW + BIAS;
    u64, U64, std::convert::identity::<u64>, HIGH + LOW;
}

/// Constants 2^84, 2^52 and 2^63.
const HIGH: f64 = f64::from_bits((1023 + 84) << 52);
const LOW: f64 = f64::from_bits((1023 + 52) << 52);
const BIAS: f64 = f64::from_bits((1023 + 63) << 52);

/// Splits a 64-bit word into two exact floats with operations that every vector unit has: 2^84 + high · 2^32 and 2^52 +
/// low.
#[inline(always)]
fn halves(word: u64) -> (f64, f64) {
    (f64::from_bits(word >> 32 | HIGH.to_bits()), f64::from_bits(word & 0xffff_ffff | LOW.to_bits()))
}

/// Maps a signed word to an unsigned word by adding 2^63.
#[inline(always)]
fn biased(value: i64) -> u64 {
    value.cast_unsigned() ^ 1 << 63
}
