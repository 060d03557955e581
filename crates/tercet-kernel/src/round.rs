//! Bit rounding: fewer significant bits, so that floats compress better.
//!
//! A rounded value is an ordinary float whose last mantissa bits are zero. Rounding is to nearest, ties to even.

use tercet_core::tensor::f16;
use tercet_core::{ElementType, Scalar};

use crate::simd::{Work, vectorized};

#[cfg(test)]
mod tests;

/// Bit rounding of the values of a float type.
///
/// NaN and infinities are not changed, and no value becomes infinite. Rounding again changes nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BitRounding {
    dtype: ElementType,
    rule: Rule,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    /// Values stay as they are.
    Exact,
    /// The number of low mantissa bits that become zero.
    Drop(u32),
    /// Values become multiples of two to the power of this. The number of kept bits differs from value to value: it is
    /// the smallest within the error.
    Multiple(i32),
}

/// Values rounded at a time: small enough for the first cache.
const BLOCK: usize = 1 << 10;

impl BitRounding {
    /// The number of mantissa bits of a float type; `None` for integers.
    pub const fn mantissa_bits(dtype: ElementType) -> Option<u32> {
        match dtype {
            ElementType::F16 => Some(10),
            ElementType::F32 => Some(23),
            ElementType::F64 => Some(52),
            _ => None,
        }
    }

    /// Rounding to a number of mantissa bits. `None` for integers, and for more bits than the type has.
    pub fn keep_bits(dtype: ElementType, bits: u32) -> Option<Self> {
        let drop = Self::mantissa_bits(dtype)?.checked_sub(bits)?;
        Some(Self { dtype, rule: if drop == 0 { Rule::Exact } else { Rule::Drop(drop) } })
    }

    /// Rounding to the fewest mantissa bits with `|x − x'| ≤ error`, for every value. `None` for integers, and for an error that
    /// is negative, infinite or NaN.
    pub fn max_error(dtype: ElementType, error: f64) -> Option<Self> {
        let mantissa = Self::mantissa_bits(dtype)?.cast_signed();
        if !(error.is_finite() && error >= 0.0) {
            return None;
        }
        // Half a multiple is the maximum error.
        let (lowest, highest) = match dtype {
            ElementType::F16 => (-24, 103),
            ElementType::F32 => (-149, 126 - mantissa),
            _ => (-1074, 1022 - mantissa),
        };
        let rule = match exponent(error).map(|exponent| exponent + 1) {
            // Every value is a multiple of the smallest subnormal.
            Some(power) if power > lowest => Rule::Multiple(power.min(highest)),
            _ => Rule::Exact,
        };
        Some(Self { dtype, rule })
    }

    /// Whether no value is changed.
    pub fn is_exact(&self) -> bool {
        self.rule == Rule::Exact
    }

    /// Whether values that were rounded by `other` stay as they are.
    pub fn keeps(&self, other: &Self) -> bool {
        match (self.rule, other.rule) {
            (Rule::Exact, _) => true,
            (Rule::Drop(more), Rule::Drop(fewer)) => more <= fewer,
            (Rule::Multiple(fine), Rule::Multiple(coarse)) => fine <= coarse,
            _ => false,
        }
    }

    /// Rounds little-endian values in place. A last incomplete value is ignored.
    pub fn apply(&self, bytes: &mut [u8]) {
        match (self.rule, self.dtype) {
            (Rule::Exact, _) => {}
            (Rule::Drop(drop), ElementType::F16) => blocks::<u16>(bytes, |block| drop_u16(block, drop)),
            (Rule::Drop(drop), ElementType::F32) => blocks::<u32>(bytes, |block| drop_u32(block, drop)),
            (Rule::Drop(drop), _) => blocks::<u64>(bytes, |block| drop_u64(block, drop)),
            (Rule::Multiple(power), ElementType::F16) => {
                let magic = power_f32(power + 23);
                blocks::<f16>(bytes, |block| {
                    for value in block {
                        let rounded = f16::from_f32(multiple_f32(value.to_f32(), magic));
                        *value = if value.is_finite() && rounded.is_finite() { rounded } else { *value };
                    }
                });
            }
            (Rule::Multiple(power), ElementType::F32) => {
                let magic = power_f32(power + 23);
                blocks::<f32>(bytes, |values| vectorized(Multiples32 { values, magic }));
            }
            (Rule::Multiple(power), _) => {
                let magic = power_f64(power + 52);
                blocks::<f64>(bytes, |values| vectorized(Multiples64 { values, magic }));
            }
        }
    }
}

/// The largest absolute difference of the values of a float type; infinite if a NaN or an infinity differs, or the lengths.
/// Values with equal bits do not differ.
pub fn max_abs_error(dtype: ElementType, before: &[u8], after: &[u8]) -> f64 {
    if before.len() != after.len() {
        return f64::INFINITY;
    }
    match dtype {
        ElementType::F16 => pairs::<f16>(before, after, |value| (u64::from(value.to_bits()), value.to_f64())),
        ElementType::F32 => {
            pairs::<f32>(before, after, |value| (u64::from(value.to_bits()), f64::from(value)))
        }
        ElementType::F64 => pairs::<f64>(before, after, |value| (value.to_bits(), value)),
        _ if before == after => 0.0,
        _ => f64::INFINITY,
    }
}

#[inline(always)]
fn pairs<T: Scalar>(before: &[u8], after: &[u8], parts: impl Fn(T) -> (u64, f64)) -> f64 {
    let read = |bytes: &[u8]| parts(bytemuck::pod_read_unaligned::<T>(bytes).swap_le());
    let size = size_of::<T>();
    before.chunks_exact(size).zip(after.chunks_exact(size)).fold(0.0, |largest: f64, (before, after)| {
        let ((bits, before), (other_bits, after)) = (read(before), read(after));
        let difference = (before - after).abs();
        let difference = if difference.is_nan() { f64::INFINITY } else { difference };
        largest.max(if bits == other_bits { 0.0 } else { difference })
    })
}

/// Changes the values of a byte slice block by block. The bytes need not be aligned.
fn blocks<T: Scalar>(bytes: &mut [u8], change: impl Fn(&mut [T])) {
    let mut values = [T::zeroed(); BLOCK];
    let size = size_of::<T>();
    for block in bytes.chunks_mut(BLOCK * size) {
        let len = block.len() / size;
        let (block, values) = (&mut block[..len * size], &mut values[..len]);
        bytemuck::cast_slice_mut::<T, u8>(values).copy_from_slice(block);
        swap_le(values);
        change(values);
        swap_le(values);
        block.copy_from_slice(bytemuck::cast_slice(values));
    }
}

#[inline(always)]
fn swap_le<T: Scalar>(values: &mut [T]) {
    for value in values {
        *value = value.swap_le();
    }
}

macro_rules! drop_bits {
    ($name:ident, $bits:ty, $infinity:expr) => {
        /// Sets the low mantissa bits to zero, rounding the others.
        fn $name(values: &mut [$bits], drop: u32) {
            const SIGN: $bits = 1 << (<$bits>::BITS - 1);
            const INFINITY: $bits = $infinity;
            const ONE: $bits = 1;
            let (half, mask) = (ONE << (drop - 1), (ONE << drop) - 1);
            for value in values {
                let magnitude = *value & !SIGN;
                let even = (magnitude >> drop) & 1;
                // The largest magnitudes are NaN: the sum does not overflow.
                let rounded = (magnitude + (half - 1) + even) & !mask;
                // The largest finite values are cut off, so that they stay finite.
                let rounded = if rounded < INFINITY { rounded } else { magnitude & !mask };
                *value = if magnitude < INFINITY { (*value & SIGN) | rounded } else { *value };
            }
        }
    };
}

drop_bits!(drop_u16, u16, 0x7c00);
drop_bits!(drop_u32, u32, 0x7f80_0000);
drop_bits!(drop_u64, u64, 0x7ff0_0000_0000_0000);

/// The nearest multiple of `magic / 2^23`. The sum has that unit in the last place, so the addition rounds.
#[inline(always)]
fn multiple_f32(value: f32, magic: f32) -> f32 {
    let magnitude = value.abs();
    let rounded = (magnitude + magic) - magic;
    if magnitude < magic { rounded.copysign(value) } else { value }
}

/// The nearest multiple of `magic / 2^52`.
#[inline(always)]
fn multiple_f64(value: f64, magic: f64) -> f64 {
    let magnitude = value.abs();
    let rounded = (magnitude + magic) - magic;
    if magnitude < magic { rounded.copysign(value) } else { value }
}

struct Multiples32<'a> {
    values: &'a mut [f32],
    magic: f32,
}

impl Work for Multiples32<'_> {
    type Output = ();
    #[inline(always)]
    fn work(self) {
        for value in self.values {
            *value = multiple_f32(*value, self.magic);
        }
    }
}

struct Multiples64<'a> {
    values: &'a mut [f64],
    magic: f64,
}

impl Work for Multiples64<'_> {
    type Output = ();
    #[inline(always)]
    fn work(self) {
        for value in self.values {
            *value = multiple_f64(*value, self.magic);
        }
    }
}

/// The exponent of the largest power of two up to a positive number; `None` for zero.
fn exponent(number: f64) -> Option<i32> {
    let bits = number.to_bits();
    match i32::try_from(bits >> 52) {
        Ok(0) => Some(-1074 + bits.checked_ilog2()?.cast_signed()),
        Ok(biased) => Some(biased - 1023),
        Err(_) => None,
    }
}

/// Two to the power of a normal exponent.
fn power_f32(exponent: i32) -> f32 {
    f32::from_bits((exponent + 127).cast_unsigned() << 23)
}

/// Two to the power of a normal exponent.
fn power_f64(exponent: i32) -> f64 {
    f64::from_bits(u64::from((exponent + 1023).cast_unsigned()) << 52)
}
