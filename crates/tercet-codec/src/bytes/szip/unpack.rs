//! Interval decoder.

use super::bits::{unary, window, window_upwards};
use super::container::{Container, fill};
use super::kernel::Kernel;
use super::layout::{Fault, Layout, PAIRS};

/// Scratch memory of one thread.
#[derive(Debug)]
pub(super) struct Scratch {
    /// The values of a block, and slack.
    values: Vec<u32>,
    /// The pair codes of a block, and slack.
    codes: Vec<u32>,
    /// The samples of a block that is only needed in part.
    samples: Vec<u8>,
}

impl Scratch {
    pub(super) fn new(layout: &Layout) -> Self {
        // Inner loops process groups of eight, and may start with the second value.
        let room = layout.block.next_multiple_of(8) + 8;
        Self { values: vec![0; room], codes: vec![0; room], samples: vec![0; layout.block * 4] }
    }
}

/// Decodes the interval at bit `at` into all of `raw`, or as much of it as there is room for; returns the bit after the last
/// block, without padding.
#[inline(always)]
pub(super) fn interval<K: Kernel, C: Container>(
    kernel: K,
    layout: &Layout,
    stored: &[u8],
    at: u64,
    scratch: &mut Scratch,
    raw: &mut [u8],
) -> Result<u64, Fault> {
    let bits = stored.len() as u64 * 8;
    let block_bytes = layout.block * C::BYTES;
    let (mut at, mut rest, mut index, mut last) = (at, raw, 0, 0);
    while !rest.is_empty() {
        let reference = layout.preprocess && index == 0;
        match block(kernel, layout, stored, at, index, reference, scratch)? {
            Block::Values { end } if end <= bits => {
                at = end;
                index += 1;
                if reference {
                    // The reference is the start of the first difference, which is zero.
                    last = scratch.values[0] ^ layout.sign;
                    scratch.values[0] = 0;
                }
                let values = &scratch.values[..layout.block];
                let whole = rest.len() >= block_bytes;
                let out = if whole {
                    rest.split_off_mut(..block_bytes).unwrap_or_default()
                } else {
                    &mut scratch.samples[..block_bytes]
                };
                if layout.preprocess {
                    kernel.restore::<C>(layout, values, &mut last, out);
                } else {
                    kernel.store::<C>(layout, values, out);
                }
                if !whole {
                    let wanted = std::mem::take(&mut rest);
                    wanted.copy_from_slice(&scratch.samples[..wanted.len()]);
                }
            }
            Block::Zeros { end, count, first } if end <= bits => {
                at = end;
                index += count;
                if reference {
                    last = first ^ layout.sign;
                }
                let out = rest.split_off_mut(..rest.len().min(count * block_bytes)).unwrap_or_default();
                let sample = if layout.preprocess { last.wrapping_sub(layout.sign) } else { 0 };
                fill::<C>(sample, out);
            }
            _ => return Err(Fault::Ended),
        }
    }
    Ok(at)
}

/// Content of a block.
enum Block {
    /// Values in the scratch memory; a reference is the first of them.
    Values { end: u64 },
    /// Zeros in this many blocks, after the reference.
    Zeros { end: u64, count: usize, first: u32 },
}

/// Reads the block at bit `at`.
#[inline(always)]
fn block<K: Kernel>(
    kernel: K,
    layout: &Layout,
    stored: &[u8],
    at: u64,
    index: usize,
    reference: bool,
    scratch: &mut Scratch,
) -> Result<Block, Fault> {
    let head = window(stored, at);
    let id = (head >> (64 - layout.id_bits)) as u32;
    let mut at = at + u64::from(layout.id_bits);
    if id == layout.raw_id() {
        for value in &mut scratch.values[..layout.block] {
            *value = sample(layout, stored, at);
            at += u64::from(layout.bits);
        }
        return Ok(Block::Values { end: at });
    }
    let pairs = id == 0 && head << layout.id_bits >> 63 == 1;
    at += u64::from(id == 0);
    let mut first = 0;
    if reference {
        first = sample(layout, stored, at);
        at += u64::from(layout.bits);
    }
    if id > 0 {
        let skipped = usize::from(reference);
        let count = layout.block - skipped;
        let split = id - 1;
        let values = &mut scratch.values[skipped..];
        let low = quotients(kernel, stored, at, count, values)?;
        let max = layout.max >> split;
        // The codes together are seldom longer than one of them may be.
        if low - at > u64::from(max) && values[..count].iter().any(|&value| value > max) {
            return Err(Fault::Value);
        }
        kernel.join(stored, low, split, count, values);
        // There are IDs for more low bits than a sample has.
        if split > layout.bits && values[..count].iter().any(|&value| value > layout.max) {
            return Err(Fault::Value);
        }
        if reference {
            scratch.values[0] = first;
        }
        Ok(Block::Values { end: low + u64::from(split) * count as u64 })
    } else if pairs {
        let end = quotients(kernel, stored, at, layout.block / 2, &mut scratch.codes)?;
        spread_pairs(layout, &scratch.codes, &mut scratch.values[..layout.block])?;
        if reference {
            scratch.values[0] = first;
        }
        Ok(Block::Values { end })
    } else {
        let (zeros, end) = unary(stored, at).ok_or(Fault::Ended)?;
        Ok(Block::Zeros { end, count: layout.run(zeros, index)?, first })
    }
}

/// The uncoded sample at bit `at`.
#[inline(always)]
fn sample(layout: &Layout, stored: &[u8], at: u64) -> u32 {
    (window(stored, at) >> (64 - layout.bits)) as u32
}

/// Reads `count` unary codes; returns the bit after them. Values after them may be changed, up to a multiple of 8.
///
/// A window mostly holds sixteen codes, without a branch for each.
#[inline(always)]
fn quotients<K: Kernel>(
    kernel: K,
    stored: &[u8],
    at: u64,
    count: usize,
    values: &mut [u32],
) -> Result<u64, Fault> {
    let (mut at, mut left) = (at, count);
    let (mut eights, _) = values.as_chunks_mut::<8>();
    while left > 0 {
        let [first, rest @ ..] = eights else { return Err(Fault::Value) };
        let mut ones = window_upwards(stored, at);
        let here = ones.count_ones() as usize;
        let wanted = left.min(8);
        if here < wanted {
            at = long_quotients(stored, at, &mut first[..wanted])?;
            (eights, left) = (rest, left - wanted);
            continue;
        }
        let (codes, ends) = eight_codes(&mut ones, 0);
        *first = kernel.widen(codes);
        if here < left.min(16) || left <= 8 {
            at += (ends >> (8 * (wanted - 1))) & 0xff;
            (eights, left) = (rest, left - wanted);
            continue;
        }
        let [second, rest @ ..] = rest else { return Err(Fault::Value) };
        let wanted = (left - 8).min(8);
        let (codes, ends) = eight_codes(&mut ones, ends >> 56);
        *second = kernel.widen(codes);
        at += (ends >> (8 * (wanted - 1))) & 0xff;
        (eights, left) = (rest, left - 8 - wanted);
    }
    Ok(at)
}

/// Reads eight unary codes from the bottom up, the first of which starts at bit `start`; returns them and their ends, a byte
/// each. If there are fewer, the others are invalid.
#[inline(always)]
fn eight_codes(ones: &mut u64, start: u64) -> (u64, u64) {
    let mut positions = 0;
    for byte in 0..8 {
        positions |= u64::from(ones.trailing_zeros()) << (8 * byte);
        *ones &= ones.wrapping_sub(1);
    }
    let ends = positions + 0x0101_0101_0101_0101;
    // No byte borrows from the next: every code ends after the one before.
    (positions.wrapping_sub((ends << 8) | start), ends)
}

/// Reads unary codes one by one; returns the bit after them.
#[cold]
fn long_quotients(stored: &[u8], at: u64, values: &mut [u32]) -> Result<u64, Fault> {
    let mut at = at;
    for value in values {
        let (code, end) = unary(stored, at).ok_or(Fault::Ended)?;
        *value = u32::try_from(code).map_err(|_| Fault::Value)?;
        at = end;
    }
    Ok(at)
}

/// Decodes the pair codes of the second extension.
#[inline(always)]
fn spread_pairs(layout: &Layout, codes: &[u32], values: &mut [u32]) -> Result<(), Fault> {
    for (pair, &code) in values.chunks_exact_mut(2).zip(codes) {
        let &(first, second) = PAIRS.get(code as usize).ok_or(Fault::Pair)?;
        pair.copy_from_slice(&[first.into(), second.into()]);
        if pair[0] > layout.max || pair[1] > layout.max {
            return Err(Fault::Value);
        }
    }
    Ok(())
}
