//! Group varint: four values and their lengths.
//!
//! A control byte has two bits for each of four values, the lowest for the first: its length minus one. The values follow,
//! little-endian. The last group may have fewer values; nothing is stored for the others.

use super::{Integer, failed, reserve};
use crate::CodecError;

pub(super) const CODEC: &str = "group_varint";

/// Maximum value: four bytes.
pub(super) const MAX_INTEGER: u64 = u32::MAX as u64;

const GROUP: usize = 4;

/// Maximum bytes of a group.
const MAX_BYTES: usize = 1 + GROUP * 4;

/// For each control byte, the offsets of the values of its group and the end of the last.
const BEGINS: [[u8; GROUP + 1]; 256] = {
    let mut begins = [[1; GROUP + 1]; 256];
    let mut control = 0;
    while control < begins.len() {
        let mut index = 0;
        while index < GROUP {
            let further = control.to_le_bytes()[0] >> (2 * index) & 3;
            begins[control][index + 1] = begins[control][index] + 1 + further;
            index += 1;
        }
        control += 1;
    }
    begins
};

/// Length of the stream of `values`, none of which is above [`MAX_INTEGER`].
#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled again for each instruction set")]
pub(super) fn encoded_len<T: Integer>(values: &[T]) -> u64 {
    let mut further = 0;
    for value in values {
        let value = value.widen();
        further += u64::from(value > 0xff) + u64::from(value > 0xffff) + u64::from(value > 0xff_ffff);
    }
    values.len() as u64 + values.len().div_ceil(GROUP) as u64 + further
}

/// Appends `values`, none of which is above [`MAX_INTEGER`].
pub(super) fn encode<T: Integer>(values: &[T], out: &mut Vec<u8>) {
    for values in values.chunks(GROUP) {
        let mut group = [0; MAX_BYTES];
        let mut len = 1;
        for (index, value) in values.iter().enumerate() {
            let value = u32::narrow(value.widen());
            let further = value.checked_ilog2().unwrap_or(0) / 8;
            group[0] |= u8::narrow(u64::from(further)) << (2 * index);
            group[len..len + 4].copy_from_slice(&value.to_le_bytes());
            len += 1 + further as usize;
        }
        // Copying a fixed length and truncating is faster than copying a variable length.
        out.extend_from_slice(&group);
        out.truncate(out.len() - MAX_BYTES + len);
    }
}

pub(super) fn decode<T: Integer>(bytes: &[u8], n: usize, out: &mut Vec<T>) -> Result<usize, CodecError> {
    let least = n.saturating_add(n.div_ceil(GROUP));
    if bytes.len() < least {
        let detail = format!("{} bytes cannot hold {n} values, which take at least {least}", bytes.len());
        return Err(failed(CODEC, detail));
    }
    reserve(CODEC, out, n)?;
    let mut at = 0;
    let mut left = n;
    while left >= GROUP
        && let Some(group) = bytes.get(at..at + MAX_BYTES)
    {
        let begins = &BEGINS[usize::from(group[0])];
        let values: [T; GROUP] = std::array::from_fn(|index| {
            let begin = usize::from(begins[index]);
            let mut word = [0; 4];
            word.copy_from_slice(&group[begin..begin + 4]);
            let unused = 8 * (begin + 4 - usize::from(begins[index + 1]));
            T::narrow(u64::from(u32::from_le_bytes(word) << unused >> unused))
        });
        out.extend_from_slice(&values);
        at += usize::from(begins[GROUP]);
        left -= GROUP;
    }
    // Groups near the end are read value by value.
    while left > 0 {
        let Some(&control) = bytes.get(at) else { return Err(ends(n, left)) };
        at += 1;
        for index in 0..left.min(GROUP) {
            let len = usize::from(control >> (2 * index) & 3) + 1;
            let Some(value) = bytes.get(at..at + len) else { return Err(ends(n, left - index)) };
            let mut word = [0; 8];
            word[..len].copy_from_slice(value);
            out.push(T::narrow(u64::from_le_bytes(word)));
            at += len;
        }
        left -= left.min(GROUP);
    }
    Ok(at)
}

fn ends(n: usize, left: usize) -> CodecError {
    failed(CODEC, format!("truncated before value {} of {n}", n - left))
}
