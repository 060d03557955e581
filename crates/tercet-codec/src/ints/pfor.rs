//! Patched frame of reference: values of few bits, with exceptions.
//!
//! `u8 width`, `u8 exceptions`, for each exception in ascending order `u8 position` and `varint value`, then the packed low
//! bits of all values, including exceptions. At most 256 values below 2^32.

use super::bitpack::{self, Above, bits, packed_len};
use super::frame::take_width;
use super::{Integer, check_room, failed, reserve};
use crate::{CodecError, varint};

pub(super) const CODEC: &str = "pfor";

/// Maximum number of values: positions are bytes.
pub(super) const MAX_VALUES: usize = 256;

/// Maximum value.
pub(super) const MAX_INTEGER: u64 = u32::MAX as u64;

/// Maximum width.
const MAX_BITS: u32 = 32;

/// The best width for `values`, and the length of the stream. The values must be within the limits of the scheme.
pub(super) fn cheapest<T: Integer>(values: &[T]) -> (u32, u64) {
    // The cost of an exception depends only on its width.
    let mut with_bits = [0u64; MAX_BITS as usize + 1];
    for value in values {
        with_bits[bits(value.widen()) as usize] += 1;
    }
    let mut best = (MAX_BITS, packed_len(values.len(), MAX_BITS));
    let (mut exceptions, mut exception_bytes) = (0, 0);
    for width in (1..MAX_BITS).rev() {
        let wider = width + 1;
        exceptions += with_bits[wider as usize];
        exception_bytes += with_bits[wider as usize] * (1 + u64::from(wider.div_ceil(7)));
        let len = packed_len(values.len(), width) + exception_bytes;
        // From the widest down: on a tie the narrower wins. The number of exceptions is a byte.
        if len <= best.1 && u8::try_from(exceptions).is_ok() {
            best = (width, len);
        }
    }
    (best.0, best.1 + 2)
}

/// Appends `values`, which must be within the limits of the scheme.
pub(super) fn encode<T: Integer>(values: &[T], out: &mut Vec<u8>) {
    let (width, _) = cheapest(values);
    let mask = u64::MAX >> (64 - width);
    out.push(u8::narrow(u64::from(width)));
    let count_at = out.len();
    out.push(0);
    for (position, value) in (0..=u8::MAX).zip(values) {
        if value.widen() > mask {
            out[count_at] += 1;
            out.push(position);
            varint::put(value.widen(), out);
        }
    }
    bitpack::pack_with(width, values.len(), out, |first, block| {
        for (low, value) in block.iter_mut().zip(&values[first..]) {
            *low = value.widen() & mask;
        }
    });
}

pub(super) fn decode<T: Integer>(bytes: &[u8], n: usize, out: &mut Vec<T>) -> Result<usize, CodecError> {
    if n > MAX_VALUES {
        return Err(failed(CODEC, format!("{n} values exceed the maximum of {MAX_VALUES}")));
    }
    let (width, rest) = take_width(CODEC, bytes, MAX_BITS)?;
    let Some((&count, rest)) = rest.split_first() else {
        return Err(failed(CODEC, "the bytes end before the number of exceptions".to_owned()));
    };
    // Read twice: to find the packed values, and again to patch the exceptions.
    let mut body = rest;
    let mut free = 0;
    for _ in 0..count {
        let (position, _) = take_exception(&mut body)?;
        if position < free || position >= n {
            let detail = format!("an exception at {position}; expected {free} to {n}");
            return Err(failed(CODEC, detail));
        }
        free = position + 1;
    }
    let packed = check_room(CODEC, body, n, width)?;
    reserve(CODEC, out, n)?;
    let start = out.len();
    bitpack::unpack(width, body, n, &mut Above { base: 0, out });
    let mut exceptions = rest;
    for _ in 0..count {
        let (position, value) = take_exception(&mut exceptions)?;
        out[start + position] = T::narrow(value);
    }
    Ok(bytes.len() - body.len() + packed)
}

/// Reads the position and the value of the next exception and advances `bytes`.
fn take_exception(bytes: &mut &[u8]) -> Result<(usize, u64), CodecError> {
    let Some((&position, rest)) = bytes.split_first() else {
        return Err(failed(CODEC, "the bytes end before an exception".to_owned()));
    };
    let (value, used) =
        varint::get(rest).map_err(|error| failed(CODEC, format!("the exception at {position}: {error}")))?;
    if value > MAX_INTEGER {
        return Err(failed(CODEC, format!("the exception at {position} is {value}, more than 32 bits")));
    }
    *bytes = &rest[used..];
    Ok((usize::from(position), value))
}
