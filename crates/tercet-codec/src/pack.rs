//! Simple packing: float64 values as unsigned integers of a fixed number of bits.
//!
//! ```text
//! q[i] = round_half_away((v[i] - R) * (10^D * 2^-E)), clamped to 0 ..= 2^B - 1     pack
//! v[i] = R + (2^E * 10^-D) * q[i]                                                  unpack
//! ```
//!
//! The integers are stored most significant bit first; the spare bits of the last byte are zero. Every operation is one IEEE
//! operation on doubles, in the order written, so that implementations agree bit for bit: no kernel fuses a multiplication
//! with an addition. Values are little-endian bytes of any alignment.
//!
//! ```
//! use tercet_codec::pack::Packing;
//!
//! let values: Vec<u8> = [1.5f64, 2.25, 3.0, 10.0].iter().flat_map(|v| v.to_le_bytes()).collect();
//! let packing = Packing::for_values(&values, 12, 0, false).unwrap();
//! assert_eq!((packing.reference, packing.binary_scale), (1.5, -8));
//! let mut packed = [0; 6];
//! packing.pack(&values, &mut packed).unwrap();
//! assert_eq!(packed, [0x00, 0x00, 0xc0, 0x18, 0x08, 0x80]);
//! let mut last = [0; 8];
//! packing.unpack(&packed, 3, &mut last).unwrap();
//! assert_eq!(f64::from_le_bytes(last), 10.0);
//! ```

mod arch;
mod extent;
mod masked;
mod samples;
#[cfg(test)]
mod tests;

use rayon::prelude::*;
use thiserror::Error;

use crate::CodecError;
use crate::finite::{self, Float, NonFinite};

/// Binary scales allowed in writing; readers accept any.
pub const BINARY_SCALES: std::ops::RangeInclusive<i32> = -256..=256;

/// Bytes of one value.
const VALUE: usize = size_of::<f64>();

/// Values per task: a multiple of 8, so that every piece starts on a whole byte at any width.
const PIECE: usize = 1 << 14;

/// Values read twice while they are in the L1 cache: a multiple of the 64 values of a mask word.
const PART: usize = 1 << 11;

/// Inputs below this size are not worth another thread.
const WORTH_SPLITTING: usize = 1 << 16;

/// Packing parameters: `R`, `E`, `D` and `B` of the formulas above.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packing {
    /// Reference value: the value of the integer 0.
    pub reference: f64,
    /// Binary scale factor: the power of two of one step.
    pub binary_scale: i32,
    /// Decimal scale factor: values are multiplied by this power of ten.
    pub decimal_scale: i32,
    /// Bits per value, 0 to 64; with 0 every value is the reference.
    pub bits: u32,
}

/// Packing error.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum PackError {
    /// More than 64 bits per value.
    #[error("{found} bits per value, at most 64 can be packed")]
    Bits {
        /// The number of bits.
        found: u32,
    },
    /// A value that is not finite.
    #[error("value {index} is {what}, only finite values can be packed")]
    NonFinite {
        /// The position of the first such value.
        index: u64,
        /// Its kind.
        what: NonFinite,
    },
    /// A reference that is not finite.
    #[error("the reference value {found} is not finite")]
    Reference {
        /// The reference.
        found: f64,
    },
    /// A power of ten outside the range of doubles.
    #[error("decimal scale {found}: 10^{found} or its inverse is not a finite number")]
    DecimalScale {
        /// The decimal scale.
        found: i32,
    },
    /// A binary scale that is not allowed in writing.
    #[error(
        "binary scale {found} is outside -256..=256: the values spread too much or too little for the bits"
    )]
    BinaryScale {
        /// The binary scale.
        found: i64,
    },
    /// Binary and decimal scale together exceed the range of doubles.
    #[error(
        "binary scale {binary_scale} with decimal scale {decimal_scale}: the step between values is {step}"
    )]
    Scale {
        /// The binary scale.
        binary_scale: i32,
        /// The decimal scale.
        decimal_scale: i32,
        /// The step between two neighbouring integers, as a double.
        step: f64,
    },
    /// The distance between minimum and maximum is not finite.
    #[error("the scaled distance between the minimum and the maximum is not a finite number")]
    Overflow,
    /// A buffer of the wrong length.
    #[error("{what} of {found} bytes instead of {expected}")]
    Length {
        /// The buffer.
        what: &'static str,
        /// The expected length (for a packed payload that is read in part: the minimum).
        expected: u64,
        /// The actual length.
        found: u64,
    },
    /// The masks could not be allocated.
    #[error(transparent)]
    Masks(#[from] CodecError),
}

impl Packing {
    /// Checks whether a payload can be read with these parameters.
    ///
    /// Any binary scale is accepted whose step `2^E * 10^-D` is finite. A step that underflows to zero gives the reference
    /// everywhere, by the formula. With 0 bits the scales are ignored.
    pub fn check(&self) -> Result<(), PackError> {
        if self.bits > u64::BITS {
            return Err(PackError::Bits { found: self.bits });
        }
        if !self.reference.is_finite() {
            return Err(PackError::Reference { found: self.reference });
        }
        if self.bits == 0 {
            return Ok(());
        }
        check_decimal(self.decimal_scale)?;
        if self.step().is_finite() { Ok(()) } else { Err(self.bad_scale()) }
    }

    /// Checks whether a payload may be written with these parameters: [`Packing::check`], a binary scale in
    /// [`BINARY_SCALES`], and a step that is neither zero nor the inverse of zero, which would lose every value.
    pub fn check_for_writing(&self) -> Result<(), PackError> {
        self.check()?;
        check_decimal(self.decimal_scale)?;
        if !BINARY_SCALES.contains(&self.binary_scale) {
            return Err(PackError::BinaryScale { found: self.binary_scale.into() });
        }
        let per_unit = self.steps_per_unit();
        if self.bits > 0 && (self.step() == 0.0 || per_unit == 0.0 || !per_unit.is_finite()) {
            return Err(self.bad_scale());
        }
        Ok(())
    }

    /// Computes the parameters that pack `values` into `bits` bits.
    ///
    /// With `skip_non_finite` only the finite values count (0 and 0 if there are none); otherwise the first non-finite value is
    /// an error. With 0 bits the reference is the first value, not the minimum.
    pub fn for_values(
        values: &[u8],
        bits: u32,
        decimal_scale: i32,
        skip_non_finite: bool,
    ) -> Result<Self, PackError> {
        if bits > u64::BITS {
            return Err(PackError::Bits { found: bits });
        }
        check_decimal(decimal_scale)?;
        count(values)?;
        let found = if skip_non_finite {
            extent::finite_extent(values)
        } else {
            extent::extent(values).map_err(|()| first_non_finite(values))?
        };
        let mut packing = Self { reference: 0.0, binary_scale: 0, decimal_scale, bits };
        let Some(extent) = found else { return Ok(packing) };
        if bits == 0 {
            packing.reference = extent.first;
            return Ok(packing);
        }
        packing.reference = extent.min;
        let range = (extent.max - extent.min) * power_of_ten(decimal_scale);
        if !range.is_finite() {
            return Err(PackError::Overflow);
        }
        if range != 0.0 {
            packing.binary_scale = exponent_for(range, max_integer(bits))?;
        }
        packing.check_for_writing()?;
        Ok(packing)
    }

    /// Number of bytes of `elements` packed values.
    pub fn packed_len(&self, elements: u64) -> Option<u64> {
        let bits = u128::from(elements) * u128::from(self.bits);
        u64::try_from(bits.div_ceil(8)).ok()
    }

    /// Packs `values` into all of `packed`, which must be [`Packing::packed_len`] bytes long.
    ///
    /// Values outside the range of the integers are clamped. A non-finite value is an error, and the content of `packed` is
    /// then undefined.
    pub fn pack(&self, values: &[u8], packed: &mut [u8]) -> Result<(), PackError> {
        let rule = self.forward(values, packed)?;
        if self.bits == 0 {
            return match finite::first(values, Float::F64, false, false) {
                Some((index, what)) => Err(PackError::NonFinite { index, what }),
                None => Ok(()),
            };
        }
        let all_finite = if is_worth_splitting(values) {
            values
                .par_chunks(PIECE * VALUE)
                .zip(packed.par_chunks_mut(PIECE / 8 * self.bits as usize))
                .map(|(values, packed)| arch::pack(&rule, values, packed))
                .reduce(|| true, |one, other| one && other)
        } else {
            arch::pack(&rule, values, packed)
        };
        if all_finite { Ok(()) } else { Err(first_non_finite(values)) }
    }

    /// Unpacks the values from number `first` on, as many as fill `values`.
    pub fn unpack(&self, packed: &[u8], first: u64, values: &mut [u8]) -> Result<(), PackError> {
        self.unpack_pieces(packed, first, values, |_, _| ())
    }

    /// Unpacks piece by piece and calls `finish` with each piece and its position among `values` while it is in cache.
    fn unpack_pieces(
        &self,
        packed: &[u8],
        first: u64,
        values: &mut [u8],
        finish: impl Fn(u64, &mut [u8]) + Sync,
    ) -> Result<(), PackError> {
        let rule = self.backward(packed, first, values)?;
        let piece = |index: usize, values: &mut [u8]| {
            let start = (index * PIECE) as u64;
            for (index, part) in values.chunks_mut(PART * VALUE).enumerate() {
                let start = start + (index * PART) as u64;
                samples::unpack_from(&rule, packed, first + start, part, arch::unpack);
                finish(start, part);
            }
        };
        if is_worth_splitting(values) {
            values.par_chunks_mut(PIECE * VALUE).enumerate().for_each(|(index, values)| piece(index, values));
        } else {
            values.chunks_mut(PIECE * VALUE).enumerate().for_each(|(index, values)| piece(index, values));
        }
        Ok(())
    }

    /// The step between two neighbouring integers.
    fn step(&self) -> f64 {
        power_of_two(self.binary_scale) * power_of_ten(self.decimal_scale.saturating_neg())
    }

    /// Integers per unit; not always the exact inverse of the step.
    fn steps_per_unit(&self) -> f64 {
        power_of_ten(self.decimal_scale) * power_of_two(self.binary_scale.saturating_neg())
    }

    fn bad_scale(&self) -> PackError {
        let (binary_scale, decimal_scale) = (self.binary_scale, self.decimal_scale);
        PackError::Scale { binary_scale, decimal_scale, step: self.step() }
    }

    /// The conversion to integers, after a check of parameters and lengths.
    fn forward(&self, values: &[u8], packed: &[u8]) -> Result<samples::Forward, PackError> {
        self.check_for_writing()?;
        let found = packed.len() as u64;
        match self.packed_len(count(values)?) {
            Some(expected) if expected == found => {}
            expected => {
                return Err(PackError::Length {
                    what: "a packed payload",
                    expected: expected.unwrap_or(u64::MAX),
                    found,
                });
            }
        }
        Ok(samples::Forward {
            reference: self.reference,
            scale: self.steps_per_unit(),
            max: max_integer(self.bits),
            bits: self.bits,
        })
    }

    /// The conversion to values, after a check of parameters and lengths.
    fn backward(&self, packed: &[u8], first: u64, values: &[u8]) -> Result<samples::Backward, PackError> {
        self.check()?;
        let end = count(values)?.checked_add(first);
        let found = packed.len() as u64;
        match end.and_then(|end| self.packed_len(end)) {
            Some(expected) if expected <= found => {}
            expected => {
                return Err(PackError::Length {
                    what: "a packed payload",
                    expected: expected.unwrap_or(u64::MAX),
                    found,
                });
            }
        }
        Ok(samples::Backward { reference: self.reference, scale: self.step(), bits: self.bits })
    }
}

/// 10 to the power `k`: by squaring, from the lowest bit of the exponent, and inverted at the end if `k` is negative.
///
/// The format defines this value; a correctly rounded power differs in the last bit for some exponents.
pub fn power_of_ten(k: i32) -> f64 {
    let mut left = k.unsigned_abs();
    let (mut square, mut power) = (10.0f64, 1.0f64);
    loop {
        if left & 1 == 1 {
            power *= square;
        }
        left >>= 1;
        if left == 0 {
            break;
        }
        square *= square;
    }
    if k < 0 { 1.0 / power } else { power }
}

/// 2 to the power `k`, exact within the range of doubles, otherwise zero or infinity.
fn power_of_two(k: i32) -> f64 {
    match i64::from(k) {
        ..-1074 => 0.0,
        k @ -1074..-1022 => f64::from_bits(1 << (k + 1074)),
        k @ -1022..=1023 => f64::from_bits((k + 1023).cast_unsigned() << 52),
        _ => f64::INFINITY,
    }
}

/// The maximum integer of `bits` bits.
fn max_integer(bits: u32) -> u64 {
    u64::MAX.checked_shr(u64::BITS - bits.min(u64::BITS)).unwrap_or(0)
}

/// The binary scale that fits `range` into integers up to `max`.
fn exponent_for(range: f64, max: u64) -> Result<i32, PackError> {
    #[expect(clippy::cast_precision_loss, reason = "the format rounds 2^B - 1 to a double")]
    let exponent = (range / max as f64).log2().ceil();
    #[expect(clippy::cast_possible_truncation, reason = "saturation stays outside the range that is checked")]
    let exponent = exponent as i32;
    if BINARY_SCALES.contains(&exponent) {
        Ok(exponent)
    } else {
        Err(PackError::BinaryScale { found: exponent.into() })
    }
}

/// Rejects powers of ten that are infinite, or zero because the inverse is.
fn check_decimal(scale: i32) -> Result<(), PackError> {
    let (power, inverse) = (power_of_ten(scale), power_of_ten(scale.saturating_neg()));
    if power.is_finite() && inverse.is_finite() {
        Ok(())
    } else {
        Err(PackError::DecimalScale { found: scale })
    }
}

/// The number of values in `values`.
fn count(values: &[u8]) -> Result<u64, PackError> {
    let found = values.len() as u64;
    if values.len().is_multiple_of(VALUE) {
        Ok(found / VALUE as u64)
    } else {
        Err(PackError::Length { what: "values", expected: found / VALUE as u64 * VALUE as u64, found })
    }
}

/// The error for values of which at least one is not finite.
fn first_non_finite(values: &[u8]) -> PackError {
    match finite::first(values, Float::F64, false, false) {
        Some((index, what)) => PackError::NonFinite { index, what },
        None => PackError::Overflow,
    }
}

fn is_worth_splitting(values: &[u8]) -> bool {
    values.len() >= WORTH_SPLITTING * VALUE && rayon::current_num_threads() > 1
}
