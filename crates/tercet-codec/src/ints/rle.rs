//! Run-length encoding with literal groups.
//!
//! `u8 width`, then groups until all values are present. A group is a varint, then packed values up to a whole byte: an
//! odd number `2 * count + 1` is a run, followed by its value; an even one `2 * count` is followed by that many literals.
//! Runs of fewer than eight values are stored as literals.

use super::bitpack::{self, Above, MAX_BITS, packed_len};
use super::frame::{EMPTY, take_empty, take_width};
use super::{Integer, check_room, failed, reserve};
use crate::{CodecError, varint};

pub(super) const CODEC: &str = "rle";

/// Minimum length of a run.
const SHORTEST_RUN: usize = 8;

/// Values of one group.
#[derive(Clone, Copy, Debug)]
enum Group<'a, T> {
    Run(T, usize),
    Literals(&'a [T]),
}

/// Splits values into groups.
struct Groups<'a, T> {
    values: &'a [T],
    /// Start of the next group.
    at: usize,
    /// The run after the last literals.
    run: Option<usize>,
}

impl<'a, T: Integer> Groups<'a, T> {
    fn new(values: &'a [T]) -> Self {
        Self { values, at: 0, run: None }
    }

    /// Start and end of the next long run, if there is one.
    fn next_run(&self) -> Option<(usize, usize)> {
        // A run of eight contains four values at a multiple of four: most other values need no comparison.
        const STEP: usize = SHORTEST_RUN / 2;
        let values = self.values;
        let mut at = self.at.next_multiple_of(STEP);
        while let Some(&[a, b, c, d]) = values.get(at..at + STEP) {
            if a != d || a != b || a != c {
                at += STEP;
                continue;
            }
            let is_other = |value: &T| *value != a;
            let start =
                values[self.at..at].iter().rposition(is_other).map_or(self.at, |other| self.at + other + 1);
            let end = values[at..].iter().position(is_other).map_or(values.len(), |other| at + other);
            if end - start >= SHORTEST_RUN {
                return Some((start, end));
            }
            at = end.next_multiple_of(STEP);
        }
        None
    }
}

impl<'a, T: Integer> Iterator for Groups<'a, T> {
    type Item = Group<'a, T>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        if let Some(end) = self.run.take() {
            self.at = end;
            return Some(Group::Run(self.values[at], end - at));
        }
        let (start, end) = self.next_run().unwrap_or((self.values.len(), self.values.len()));
        if start > at {
            self.at = start;
            self.run = (end > start).then_some(end);
            return Some(Group::Literals(&self.values[at..start]));
        }
        self.at = end;
        (end > start).then(|| Group::Run(self.values[start], end - start))
    }
}

/// Length of the groups of `values`, whose widest has `width` bits.
pub(super) fn encoded_len<T: Integer>(values: &[T], width: u32) -> u64 {
    let mut len = 1u64;
    for group in Groups::new(values) {
        let (count, packed) = match group {
            Group::Run(_, count) => (count, packed_len(1, width)),
            Group::Literals(literals) => (literals.len(), packed_len(literals.len(), width)),
        };
        len = len.saturating_add(varint::len((count as u64) << 1) as u64).saturating_add(packed);
    }
    len
}

#[expect(clippy::cast_possible_truncation, reason = "at most 64")]
pub(super) fn encode<T: Integer>(values: &[T], width: u32, out: &mut Vec<u8>) {
    if values.is_empty() {
        out.push(EMPTY);
        return;
    }
    out.push(width as u8);
    for group in Groups::new(values) {
        match group {
            Group::Run(value, count) => {
                varint::put((count as u64) << 1 | 1, out);
                let len = width.div_ceil(8) as usize;
                out.extend_from_slice(&value.widen().to_le_bytes()[..len]);
            }
            Group::Literals(literals) => {
                varint::put((literals.len() as u64) << 1, out);
                bitpack::pack_with(width, literals.len(), out, |first, block| {
                    for (wide, value) in block.iter_mut().zip(&literals[first..]) {
                        *wide = value.widen();
                    }
                });
            }
        }
    }
}

pub(super) fn decode<T: Integer>(bytes: &[u8], n: usize, out: &mut Vec<T>) -> Result<usize, CodecError> {
    if n == 0 {
        return take_empty(CODEC, bytes);
    }
    let (width, mut rest) = take_width(CODEC, bytes, MAX_BITS)?;
    let mut left = n;
    while left > 0 {
        let (control, used) = varint::get(rest)
            .map_err(|error| failed(CODEC, format!("no group at value {}: {error}", n - left)))?;
        rest = &rest[used..];
        let count = match usize::try_from(control >> 1) {
            Ok(0) => return Err(failed(CODEC, format!("an empty group at value {}", n - left))),
            Ok(count) if count <= left => count,
            _ => {
                let found = control >> 1;
                return Err(failed(CODEC, format!("a group of {found} values where {left} of {n} are left")));
            }
        };
        let is_run = control & 1 == 1;
        let packed = check_room(CODEC, rest, if is_run { 1 } else { count }, width)?;
        reserve(CODEC, out, count)?;
        if is_run {
            let mut word = [0; 8];
            word[..packed].copy_from_slice(&rest[..packed]);
            let wide = u64::from_le_bytes(word) & u64::MAX >> (MAX_BITS - width);
            out.resize(out.len() + count, T::narrow(wide));
        } else {
            bitpack::unpack(width, rest, count, &mut Above { base: 0, out });
        }
        rest = &rest[packed..];
        left -= count;
    }
    Ok(bytes.len() - rest.len())
}
