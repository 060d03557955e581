//! ZFP: lossy blocks of four doubles.
//!
//! A stream is the raw zfp 1.0 bit stream of a one-dimensional double field, in 64-bit words, without any header: the
//! number of values and the mode must be known from elsewhere. All bytes of values are little-endian `f64`.
//!
//! At a fixed rate every block takes the same number of bits, so that any block can be found and [`decode_range`]
//! reads only what it needs. In the other modes a block begins where the one before it ends.
//!
//! One deliberate difference from the C library: blocks whose largest magnitude is below 2^-962 are written right,
//! whereas C spoils them by an overflow of its scale factor; C reads what is written here. Subnormal values come back as
//! zeros from either.

#[cfg(feature = "zfp")]
mod blocks;

use crate::CodecError;

const CODEC: &str = "zfp";

/// The most bits of one block that libzfp's own parameters allow.
const MAX_BLOCK_BITS: f64 = 16_658.0;

/// The bits of a block that says no more than its exponent.
const LEAST_BLOCK_BITS: u64 = 12;

/// How much a stream keeps of its values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Zfp {
    /// This many bits per value, rounded to whole bits per block of four and raised to the 12 of an empty block.
    FixedRate(f64),
    /// This many bit planes of each block; 0 and whatever exceeds 64 mean all 64.
    FixedPrecision(u32),
    /// The largest absolute error.
    FixedAccuracy(f64),
}

impl Zfp {
    /// Refuses what zfp cannot do, or does without a defined result.
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

    /// The largest error that the mode promises.
    #[cfg(feature = "zfp")]
    fn tolerance(&self) -> Option<f64> {
        match *self {
            Self::FixedAccuracy(tolerance) => Some(tolerance),
            _ => None,
        }
    }

    /// Bits of every block of four values, where all have the same.
    pub fn bits_per_block(&self) -> Option<u64> {
        match *self {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked to be small"
            )]
            Self::FixedRate(rate) => Some(((4.0 * rate + 0.5).floor() as u64).max(LEAST_BLOCK_BITS)),
            _ => None,
        }
    }

    /// Bytes of a stream of so many values, where that does not depend on them.
    pub fn stored_len(&self, values: u64) -> Option<u64> {
        let bits = values.div_ceil(4).checked_mul(self.bits_per_block()?)?;
        Some(bits.div_ceil(64) * 8)
    }
}

/// Whether this build can encode and decode.
pub const fn is_built_in() -> bool {
    cfg!(feature = "zfp")
}

/// Appends the compressed form of `values` to `out`.
///
/// Values that are not finite are refused: zfp gives them no meaning, and they would spoil their neighbours. So are
/// values that would come back as something not finite, or farther away than the tolerance that was asked for.
#[cfg(feature = "zfp")]
pub fn encode(values: &[u8], mode: &Zfp, out: &mut Vec<u8>) -> Result<(), CodecError> {
    let config = blocks::config(mode)?;
    let values = blocks::doubles(values)?;
    if let Some(index) = blocks::first_not_finite(&values) {
        let detail = format!("value {index} is {}: only finite values have a zfp form", values[index]);
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

/// Whether a block can lose what its mode promises: its numbers share an exponent and have 64 bits, so that large
/// neighbours take the digits of small ones, and the largest can leave the range of doubles on the way back.
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

/// Decodes the values from `first` on of a stream that holds `total`, as many as `values` has room for.
///
/// Costs only the blocks touched at a fixed rate, and all blocks up to the last one in the other modes.
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

/// Appends the compressed form of `values` to `out`.
#[cfg(not(feature = "zfp"))]
pub fn encode(_values: &[u8], _mode: &Zfp, _out: &mut Vec<u8>) -> Result<(), CodecError> {
    Err(CodecError::NotBuilt { codec: CODEC, feature: "zfp" })
}

/// Decodes all of `stored` into `values`.
#[cfg(not(feature = "zfp"))]
pub fn decode(_stored: &[u8], _mode: &Zfp, _values: &mut [u8]) -> Result<(), CodecError> {
    Err(CodecError::NotBuilt { codec: CODEC, feature: "zfp" })
}

/// Decodes the values from `first` on of a stream that holds `total`, as many as `values` has room for.
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
