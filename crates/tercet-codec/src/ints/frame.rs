//! Bit packing with a frame of reference: the width, the minimum, and the residuals.
//!
//! `u8 width`, `varint base`, then the packed residuals. Without values only the width 1.

use super::bitpack::{self, Above, MAX_BITS, bits, packed_len};
use super::{Integer, check_room, failed, reserve};
use crate::{CodecError, varint};

pub(super) const CODEC: &str = "bitpack_for";

/// The frame of a stream without values.
pub(super) const EMPTY: u8 = 1;

/// The header of a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) width: u32,
    pub(super) base: u64,
}

impl Frame {
    /// The frame of values from `low` to `high`, as 64-bit patterns.
    pub(super) fn between(low: u64, high: u64) -> Self {
        Self { width: bits(high.wrapping_sub(low)), base: low }
    }

    /// Length of a stream of `n` values, at least one, in this frame.
    pub(super) fn encoded_len(self, n: usize) -> u64 {
        packed_len(n, self.width).saturating_add(1 + varint::len(self.base) as u64)
    }

    #[expect(clippy::cast_possible_truncation, reason = "at most 64")]
    pub(super) fn put(self, out: &mut Vec<u8>) {
        out.push(self.width as u8);
        varint::put(self.base, out);
    }

    /// Splits a stream into frame, `n` packed values and the length of both.
    pub(super) fn get<'a>(
        codec: &'static str,
        bytes: &'a [u8],
        n: usize,
    ) -> Result<(Self, &'a [u8], usize), CodecError> {
        let (width, rest) = take_width(codec, bytes, MAX_BITS)?;
        let (base, used) = varint::get(rest).map_err(|error| failed(codec, format!("no base: {error}")))?;
        let packed = &rest[used..];
        let packed_bytes = check_room(codec, packed, n, width)?;
        Ok((Self { width, base }, packed, 1 + used + packed_bytes))
    }
}

/// The width at the start of `bytes`, and the bytes after it.
pub(super) fn take_width<'a>(
    codec: &'static str,
    bytes: &'a [u8],
    most: u32,
) -> Result<(u32, &'a [u8]), CodecError> {
    match bytes.split_first() {
        None => Err(failed(codec, "no bytes: the width is missing".to_owned())),
        Some((&width, rest)) if (1..=most).contains(&u32::from(width)) => Ok((u32::from(width), rest)),
        Some((width, _)) => Err(failed(codec, format!("a width of {width} bits instead of 1 to {most}"))),
    }
}

/// Rejects everything but the encoding of no values.
pub(super) fn take_empty(codec: &'static str, bytes: &[u8]) -> Result<usize, CodecError> {
    match bytes.first() {
        Some(&EMPTY) => Ok(1),
        Some(other) => Err(failed(codec, format!("an empty list must be byte {EMPTY}, found {other}"))),
        None => Err(failed(codec, format!("an empty list must be byte {EMPTY}"))),
    }
}

pub(super) fn encode<T: Integer>(values: &[T], extent: Option<(T, T)>, out: &mut Vec<u8>) {
    let Some((low, high)) = extent else {
        out.push(EMPTY);
        return;
    };
    let frame = Frame::between(low.widen(), high.widen());
    frame.put(out);
    bitpack::pack_with(frame.width, values.len(), out, |first, block| {
        for (residual, value) in block.iter_mut().zip(&values[first..]) {
            *residual = value.widen().wrapping_sub(frame.base);
        }
    });
}

pub(super) fn decode<T: Integer>(bytes: &[u8], n: usize, out: &mut Vec<T>) -> Result<usize, CodecError> {
    if n == 0 {
        return take_empty(CODEC, bytes);
    }
    let (frame, packed, used) = Frame::get(CODEC, bytes, n)?;
    reserve(CODEC, out, n)?;
    bitpack::unpack(frame.width, packed, n, &mut Above { base: frame.base, out });
    Ok(used)
}
