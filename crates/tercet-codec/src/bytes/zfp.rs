//! ZFP: lossy blocks of four doubles.
//!
//! A stream is the raw zfp 1.0 bit stream of a one-dimensional double field, in 64-bit words, without header: the number of
//! values and the mode must be known. Values are little-endian `f64`.
//!
//! At a fixed rate every block takes the same number of bits, so [`decode_range`] reads only the blocks it needs. In the
//! other modes a block starts where the one before it ends.
//!
//! One deliberate difference from the C library: blocks whose largest magnitude is below 2^-962 are encoded correctly,
//! whereas C corrupts them by an overflow of its scale factor; C decodes the result. Subnormal values decode to zeros in
//! both.

#[cfg(feature = "zfp")]
mod blocks;

use crate::CodecError;

const CODEC: &str = "zfp";

/// Maximum bits of one block in libzfp.
const MAX_BLOCK_BITS: f64 = 16_658.0;

/// Bits of a block that stores only its exponent.
const MIN_BLOCK_BITS: u64 = 12;

/// Compression mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Zfp {
    /// Fixed rate: bits per value, rounded to whole bits per block of four and raised to the 12 of an empty block.
    FixedRate(f64),
    /// Fixed precision: bit planes of each block; 0 and values above 64 mean all 64.
    FixedPrecision(u32),
    /// Fixed accuracy: maximum absolute error.
    FixedAccuracy(f64),
}

impl Zfp {
    /// Rejects parameters that zfp does not support, or for which its result is undefined.
    pub fn check(&self) -> Result<(), CodecError> {
        let refused = |name, found: f64, allowed| {
            Err(CodecError::Parameter { codec: CODEC, name, found: found.to_string(), allowed })
        };
        match *self {
            Self::FixedRate(rate) if !(rate > 0.0 && (4.0 * rate).round() <= MAX_BLOCK_BITS) => {
                refused("rate", rate, "above 0, at most 4164.5 bits per value")
            }
            Self::FixedAccuracy(tolerance) if !(tolerance > 0.0 && tolerance.is_finite()) => {
                refused("tolerance", tolerance, "finite, above 0")
            }
            Self::FixedRate(_) | Self::FixedPrecision(_) | Self::FixedAccuracy(_) => Ok(()),
        }
    }

    /// The maximum error that the mode guarantees.
    #[cfg(feature = "zfp")]
    fn tolerance(&self) -> Option<f64> {
        match *self {
            Self::FixedAccuracy(tolerance) => Some(tolerance),
            _ => None,
        }
    }

    /// Bits per block of four values, at a fixed rate.
    pub fn bits_per_block(&self) -> Option<u64> {
        match *self {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked to be small"
            )]
            Self::FixedRate(rate) => Some(((4.0 * rate + 0.5).floor() as u64).max(MIN_BLOCK_BITS)),
            _ => None,
        }
    }

    /// Length of a stream of `values` values, at a fixed rate.
    pub fn stored_len(&self, values: u64) -> Option<u64> {
        let bits = values.div_ceil(4).checked_mul(self.bits_per_block()?)?;
        Some(bits.div_ceil(64) * 8)
    }
}

/// Whether this build can encode and decode.
pub const fn is_built_in() -> bool {
    cfg!(feature = "zfp")
}

/// Compresses `values` and appends them to `out`.
///
/// Non-finite values are rejected: zfp does not define them, and they would corrupt their neighbours. So are values that
/// would decode to a non-finite value, or outside the requested tolerance.
#[cfg(feature = "zfp")]
pub fn encode(values: &[u8], mode: &Zfp, out: &mut Vec<u8>) -> Result<(), CodecError> {
    let config = blocks::config(mode)?;
    let values = blocks::doubles(values)?;
    if let Some(index) = blocks::first_not_finite(&values) {
        let detail = format!("value {index} is {}: zfp supports finite values only", values[index]);
        return Err(CodecError::Encode { codec: CODEC, detail });
    }
    if values.is_empty() {
        return Ok(());
    }
    let start = out.len();
    blocks::append(&config, &values, out)?;
    if needs_proof(mode, &values) {
        blocks::prove(&config, &out[start..], &values, mode.tolerance())?;
    }
    Ok(())
}

/// Whether a block can violate the guarantee of its mode: its values share an exponent in 64 bits, so that large neighbours
/// take the digits of small ones, and the largest can exceed the range of doubles when decoded.
#[cfg(feature = "zfp")]
fn needs_proof(mode: &Zfp, values: &[f64]) -> bool {
    let largest = values.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
    let is_coarse = |tolerance: f64| largest > tolerance * f64::from(1u32 << 26) * f64::from(1u32 << 26);
    largest > 1e300 || mode.tolerance().is_some_and(is_coarse)
}

/// Decodes all of `stored` into `values`.
#[cfg(feature = "zfp")]
pub fn decode(stored: &[u8], mode: &Zfp, values: &mut [u8]) -> Result<(), CodecError> {
    let total = blocks::count(values.len())?;
    decode_range(stored, mode, total as u64, 0, values)
}

/// Decodes the values from `first` on of a stream of `total` values, as many as `values` has room for.
///
/// Decodes only the blocks touched at a fixed rate, and all blocks up to the last one in the other modes.
#[cfg(feature = "zfp")]
pub fn decode_range(
    stored: &[u8],
    mode: &Zfp,
    total: u64,
    first: u64,
    values: &mut [u8],
) -> Result<(), CodecError> {
    let config = blocks::config(mode)?;
    let wanted = blocks::count(values.len())?;
    let range = match first.checked_add(wanted as u64) {
        Some(end) if end <= total => first..end,
        _ => {
            let detail = format!("{wanted} values from {first} on in a stream of {total}");
            return Err(CodecError::Decode { codec: CODEC, detail });
        }
    };
    blocks::check_length(&config, total, stored.len())?;
    if range.is_empty() {
        return Ok(());
    }
    blocks::read(&config, stored, range, values)
}

/// Compresses `values` and appends them to `out`.
#[cfg(not(feature = "zfp"))]
pub fn encode(_values: &[u8], _mode: &Zfp, _out: &mut Vec<u8>) -> Result<(), CodecError> {
    Err(CodecError::NotBuilt { codec: CODEC, feature: "zfp" })
}

/// Decodes all of `stored` into `values`.
#[cfg(not(feature = "zfp"))]
pub fn decode(_stored: &[u8], _mode: &Zfp, _values: &mut [u8]) -> Result<(), CodecError> {
    Err(CodecError::NotBuilt { codec: CODEC, feature: "zfp" })
}

/// Decodes the values from `first` on of a stream of `total` values, as many as `values` has room for.
#[cfg(not(feature = "zfp"))]
pub fn decode_range(
    _stored: &[u8],
    _mode: &Zfp,
    _total: u64,
    _first: u64,
    _values: &mut [u8],
) -> Result<(), CodecError> {
    Err(CodecError::NotBuilt { codec: CODEC, feature: "zfp" })
}

#[cfg(test)]
mod tests;
