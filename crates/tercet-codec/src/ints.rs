//! Integer codecs: the streams of columns and lists.
//!
//! A stream does not store its number of values; the reader knows it. Every [`Scheme`] but [`Plain`](Scheme::Plain)
//! converts values to unsigned 64-bit numbers first, sign-extended, and truncates them after decoding, so that all types
//! share one implementation.
//!
//! ```
//! use tercet_codec::ints::{self, CASCADE, Scheme};
//!
//! let values = [1000u32, 1003, 1001];
//! let (scheme, bytes) = ints::choose(&values, &CASCADE);
//! assert_eq!((scheme, bytes), (Scheme::BitpackFor, 4));
//!
//! let mut stream = Vec::new();
//! ints::encode(scheme, &values, &mut stream)?;
//! assert_eq!(stream, [0x02, 0xe8, 0x07, 0x1c]);
//!
//! let mut back = Vec::<u32>::new();
//! ints::decode(scheme, &stream, 3, &mut back)?;
//! assert_eq!(back, values);
//! # Ok::<(), tercet_codec::CodecError>(())
//! ```

mod arch;
mod bitpack;
mod choose;
mod delta;
mod frame;
mod group;
mod integer;
mod pfor;
mod rle;
#[cfg(test)]
mod tests;

pub use choose::{CASCADE, choose};
pub use integer::Integer;

use crate::CodecError;
use choose::Measured;

/// Integer encoding scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Little-endian, in the width of the type.
    Plain,
    /// Run-length encoding with literal groups.
    Rle,
    /// Frame of reference: the minimum, then residuals in the width of the maximum.
    BitpackFor,
    /// The first value, then zigzagged differences as [`BitpackFor`](Self::BitpackFor).
    Delta,
    /// Group varint: one to four bytes each; values below 2^32.
    GroupVarint,
    /// Patched frame of reference: few bits for most values, more for exceptions; at most 256 values below 2^32.
    Pfor,
}

impl Scheme {
    /// The name in error messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => PLAIN,
            Self::Rle => rle::CODEC,
            Self::BitpackFor => frame::CODEC,
            Self::Delta => delta::CODEC,
            Self::GroupVarint => group::CODEC,
            Self::Pfor => pfor::CODEC,
        }
    }
}

const PLAIN: &str = "plain";
const BITPACK: &str = "bitpack";

/// Appends the stream of `values` to `out`. Fails if the scheme does not accept them, see [`encoded_len`].
pub fn encode<T: Integer>(scheme: Scheme, values: &[T], out: &mut Vec<u8>) -> Result<(), CodecError> {
    match scheme {
        Scheme::Plain if cfg!(target_endian = "little") => {
            out.extend_from_slice(bytemuck::cast_slice(values));
        }
        Scheme::Plain => {
            for value in values {
                out.extend_from_slice(bytemuck::bytes_of(&value.swap_if_big_endian()));
            }
        }
        Scheme::Rle => rle::encode(values, bitpack::bits(Measured::new(values).widest()), out),
        Scheme::BitpackFor => frame::encode(values, arch::extent(values), out),
        Scheme::Delta => delta::encode(values, arch::frame_of_differences(values), out),
        Scheme::GroupVarint => {
            refuse_above(group::CODEC, group::MAX_INTEGER, values)?;
            group::encode(values, out);
        }
        Scheme::Pfor => {
            if values.len() > pfor::MAX_VALUES {
                let detail = format!("{} values exceed the maximum of {}", values.len(), pfor::MAX_VALUES);
                return Err(CodecError::Encode { codec: pfor::CODEC, detail });
            }
            refuse_above(pfor::CODEC, pfor::MAX_INTEGER, values)?;
            pfor::encode(values, out);
        }
    }
    Ok(())
}

/// Number of bytes that [`encode`] appends, without encoding; `None` if the scheme does not accept the values.
pub fn encoded_len<T: Integer>(scheme: Scheme, values: &[T]) -> Option<u64> {
    Measured::new(values).encoded_len(scheme)
}

/// Appends the `n` values of a stream to `out`. The stream ends where `bytes` end.
///
/// Memory is bounded by `bytes`, except for runs, which take few bytes for any number of values: there `n` is the only
/// bound. After an error `out` is unchanged.
pub fn decode<T: Integer>(
    scheme: Scheme,
    bytes: &[u8],
    n: usize,
    out: &mut Vec<T>,
) -> Result<(), CodecError> {
    let start = out.len();
    let used = decode_prefix(scheme, bytes, n, out)?;
    if used == bytes.len() {
        return Ok(());
    }
    out.truncate(start);
    let detail = format!("{n} values end after {used} of {} bytes", bytes.len());
    Err(failed(scheme.name(), detail))
}

/// Appends the `n` values of the stream at the start of `bytes` to `out`, and returns its length; otherwise like
/// [`decode`].
pub fn decode_prefix<T: Integer>(
    scheme: Scheme,
    bytes: &[u8],
    n: usize,
    out: &mut Vec<T>,
) -> Result<usize, CodecError> {
    let start = out.len();
    let used = match scheme {
        Scheme::Plain => decode_plain(bytes, n, out),
        Scheme::Rle => rle::decode(bytes, n, out),
        Scheme::BitpackFor => frame::decode(bytes, n, out),
        Scheme::Delta => delta::decode(bytes, n, out),
        Scheme::GroupVarint => group::decode(bytes, n, out),
        Scheme::Pfor => pfor::decode(bytes, n, out),
    };
    if used.is_err() {
        out.truncate(start);
    }
    used
}

/// Appends the values at `positions`, each below `n`, of a stream of `n` values to `out`. The stream ends where `bytes` end.
///
/// Fixed-width values are read in place; other streams are decoded completely. After an error `out` is unchanged.
pub fn pick<T: Integer>(
    scheme: Scheme,
    bytes: &[u8],
    n: usize,
    positions: &[usize],
    out: &mut Vec<T>,
) -> Result<(), CodecError> {
    if let Some(wrong) = positions.iter().find(|position| **position >= n) {
        return Err(failed(scheme.name(), format!("no value {wrong} among {n}")));
    }
    let ends = |used: usize| {
        if used == bytes.len() {
            return Ok(());
        }
        Err(failed(scheme.name(), format!("{n} values end after {used} of {} bytes", bytes.len())))
    };
    match scheme {
        Scheme::Plain => {
            let width = size_of::<T>();
            ends(check_room(PLAIN, bytes, n, u32::try_from(8 * width).unwrap_or(u32::MAX))?)?;
            out.extend(positions.iter().map(|position| {
                let value = &bytes[position * width..][..width];
                bytemuck::pod_read_unaligned::<T>(value).swap_if_big_endian()
            }));
        }
        Scheme::BitpackFor if n > 0 => {
            let (frame, packed, used) = frame::Frame::get(frame::CODEC, bytes, n)?;
            ends(used)?;
            out.extend(positions.iter().map(|position| {
                T::narrow(frame.base.wrapping_add(bitpack::one(frame.width, packed, *position)))
            }));
        }
        _ => {
            let mut all: Vec<T> = Vec::new();
            decode(scheme, bytes, n, &mut all)?;
            out.extend(positions.iter().map(|position| all[*position]));
        }
    }
    Ok(())
}

fn decode_plain<T: Integer>(bytes: &[u8], n: usize, out: &mut Vec<T>) -> Result<usize, CodecError> {
    let width = u32::try_from(8 * size_of::<T>()).unwrap_or(u32::MAX);
    let used = check_room(PLAIN, bytes, n, width)?;
    reserve(PLAIN, out, n)?;
    let values = bytes[..used].chunks_exact(size_of::<T>());
    out.extend(values.map(|value| bytemuck::pod_read_unaligned::<T>(value).swap_if_big_endian()));
    Ok(used)
}

/// Appends bit-packed `values` of `width` bits (1 to 64), the first in the lowest bits of the first byte. Fails if one of
/// them needs more.
pub fn pack_bits<T: Integer>(width: u32, values: &[T], out: &mut Vec<u8>) -> Result<(), CodecError> {
    check_width(width)?;
    refuse_above(BITPACK, u64::MAX >> (bitpack::MAX_BITS - width), values)?;
    bitpack::pack_with(width, values.len(), out, |first, block| {
        for (wide, value) in block.iter_mut().zip(&values[first..]) {
            *wide = value.widen();
        }
    });
    Ok(())
}

/// Appends `n` values of `width` bits (1 to 64) at the start of `bytes` to `out`, and returns their length.
pub fn unpack_bits<T: Integer>(
    width: u32,
    bytes: &[u8],
    n: usize,
    out: &mut Vec<T>,
) -> Result<usize, CodecError> {
    check_width(width)?;
    let used = check_room(BITPACK, bytes, n, width)?;
    reserve(BITPACK, out, n)?;
    bitpack::unpack(width, bytes, n, &mut bitpack::Above { base: 0, out });
    Ok(used)
}

fn check_width(width: u32) -> Result<(), CodecError> {
    if (1..=bitpack::MAX_BITS).contains(&width) {
        return Ok(());
    }
    Err(CodecError::Parameter {
        codec: BITPACK,
        name: "values of",
        found: format!("{width} bits"),
        allowed: "they have 1 to 64",
    })
}

/// Rejects values above `max`.
fn refuse_above<T: Integer>(codec: &'static str, max: u64, values: &[T]) -> Result<(), CodecError> {
    let Some((low, high)) = arch::extent(values) else { return Ok(()) };
    let worst = if low.widen() > high.widen() { low } else { high };
    if worst.widen() <= max {
        return Ok(());
    }
    Err(CodecError::Encode { codec, detail: format!("{worst:?} is not from 0 to {max}") })
}

/// The bytes of `n` values of `width` bits, if `bytes` contain them.
fn check_room(codec: &'static str, bytes: &[u8], n: usize, width: u32) -> Result<usize, CodecError> {
    let wanted = bitpack::packed_len(n, width);
    match usize::try_from(wanted) {
        Ok(len) if len <= bytes.len() => Ok(len),
        _ => {
            let left = bytes.len();
            Err(failed(codec, format!("{n} values of {width} bits take {wanted} bytes, but {left} are left")))
        }
    }
}

/// Reserves memory for `n` more values.
fn reserve<T: Integer>(codec: &'static str, out: &mut Vec<T>, n: usize) -> Result<(), CodecError> {
    let bytes = (n as u64).saturating_mul(size_of::<T>() as u64);
    out.try_reserve(n).map_err(|_| CodecError::OutOfMemory { codec, bytes })
}

fn failed(codec: &'static str, detail: String) -> CodecError {
    CodecError::Decode { codec, detail }
}
