//! Delta encoding: the first value, then zigzagged differences in a frame of reference.

use super::bitpack::{self, BLOCK, Sink};
use super::frame::{EMPTY, Frame, take_empty};
use super::{Integer, reserve};
use crate::{CodecError, varint};

pub(super) const CODEC: &str = "delta";

/// Zigzag encoding: small numbers for small differences of either sign.
#[inline]
pub(super) fn zigzag(difference: u64) -> u64 {
    let sign = (difference.cast_signed() >> 63).cast_unsigned();
    difference << 1 ^ sign
}

#[inline]
fn unzigzag(zigzag: u64) -> u64 {
    zigzag >> 1 ^ (zigzag & 1).wrapping_neg()
}

/// The frame of the zigzagged differences; `None` if there are fewer than two values.
#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled again for each instruction set")]
pub(super) fn frame_of<T: Integer>(values: &[T]) -> Option<Frame> {
    let [_, following @ ..] = values else { return None };
    if following.is_empty() {
        return None;
    }
    let (mut low, mut high) = (u64::MAX, 0);
    for (before, value) in values.iter().zip(following) {
        let zigzag = zigzag(value.widen().wrapping_sub(before.widen()));
        low = low.min(zigzag);
        high = high.max(zigzag);
    }
    Some(Frame::between(low, high))
}

pub(super) fn encoded_len<T: Integer>(values: &[T], frame: Option<Frame>) -> u64 {
    match (values.first(), frame) {
        (None, _) => 0,
        (Some(first), None) => varint::len(first.widen()) as u64 + 1,
        (Some(first), Some(frame)) => {
            frame.encoded_len(values.len() - 1).saturating_add(varint::len(first.widen()) as u64)
        }
    }
}

pub(super) fn encode<T: Integer>(values: &[T], frame: Option<Frame>, out: &mut Vec<u8>) {
    let Some(first) = values.first() else { return };
    varint::put(first.widen(), out);
    let Some(frame) = frame else {
        out.push(EMPTY);
        return;
    };
    frame.put(out);
    bitpack::pack_with(frame.width, values.len() - 1, out, |first, block| {
        let pairs = values[first..].iter().zip(&values[first + 1..]);
        for (residual, (before, value)) in block.iter_mut().zip(pairs) {
            let difference = value.widen().wrapping_sub(before.widen());
            *residual = zigzag(difference).wrapping_sub(frame.base);
        }
    });
}

pub(super) fn decode<T: Integer>(bytes: &[u8], n: usize, out: &mut Vec<T>) -> Result<usize, CodecError> {
    let Some(differences) = n.checked_sub(1) else { return Ok(0) };
    let (value, used) =
        varint::get(bytes).map_err(|error| super::failed(CODEC, format!("no first value: {error}")))?;
    let rest = &bytes[used..];
    if differences == 0 {
        let tail = take_empty(CODEC, rest)?;
        reserve(CODEC, out, n)?;
        out.push(T::narrow(value));
        return Ok(used + tail);
    }
    let (frame, packed, tail) = Frame::get(CODEC, rest, differences)?;
    reserve(CODEC, out, n)?;
    out.push(T::narrow(value));
    bitpack::unpack(frame.width, packed, differences, &mut Sums { base: frame.base, sum: value, out });
    Ok(used + tail)
}

/// Appends the running sum of zigzagged differences, each plus `base`, to `out`.
struct Sums<'a, T> {
    base: u64,
    sum: u64,
    out: &'a mut Vec<T>,
}

impl<T: Integer> Sink for Sums<'_, T> {
    #[inline]
    fn take<W: Copy + Into<u64>>(&mut self, block: &[W]) {
        let mut values = [T::zeroed(); BLOCK];
        // Kept in a register inside the loop.
        let mut sum = self.sum;
        for (value, &residual) in values.iter_mut().zip(block) {
            sum = sum.wrapping_add(unzigzag(self.base.wrapping_add(residual.into())));
            *value = T::narrow(sum);
        }
        self.out.extend_from_slice(&values[..block.len()]);
        self.sum = sum;
    }
}
