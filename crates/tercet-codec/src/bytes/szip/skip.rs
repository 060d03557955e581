//! Skipping an interval without decoding its samples.

use super::bits::{unary, window};
use super::kernel::Kernel;
use super::layout::{Fault, Layout};

/// The bit after the interval of `blocks` blocks at bit `at`, without padding.
#[inline(always)]
pub(super) fn interval<K: Kernel>(
    kernel: K,
    layout: &Layout,
    stored: &[u8],
    at: u64,
    blocks: usize,
) -> Result<u64, Fault> {
    let bits = stored.len() as u64 * 8;
    let id_bits = u64::from(layout.id_bits);
    let (mut at, mut index) = (at, 0);
    while index < blocks {
        let head = window(stored, at);
        let id = (head >> (64 - layout.id_bits)) as u32;
        let reference = layout.preprocess && index == 0;
        let first_bits = if reference { u64::from(layout.bits) } else { 0 };
        at += id_bits;
        if id == layout.raw_id() {
            at += u64::from(layout.bits) * layout.block as u64;
            index += 1;
        } else if id > 0 {
            let count = layout.block - usize::from(reference);
            at = skip_ones(kernel, stored, at + first_bits, count as u64)?;
            at += u64::from(id - 1) * count as u64;
            index += 1;
        } else if head << layout.id_bits >> 63 == 1 {
            at = skip_ones(kernel, stored, at + 1 + first_bits, layout.block as u64 / 2)?;
            index += 1;
        } else {
            let (zeros, end) = unary(stored, at + 1 + first_bits).ok_or(Fault::Ended)?;
            at = end;
            index += layout.run(zeros, index)?;
        }
        if at > bits {
            return Err(Fault::Ended);
        }
    }
    Ok(at)
}

/// The bit after the `count`th one from bit `at` on.
#[inline(always)]
fn skip_ones<K: Kernel>(kernel: K, stored: &[u8], at: u64, count: u64) -> Result<u64, Fault> {
    let (mut at, mut left) = (at, count);
    loop {
        let word = window(stored, at);
        let here = u64::from(word.count_ones());
        if here >= left {
            return Ok(at + u64::from(kernel.nth_one(word, left as u32)));
        }
        left -= here;
        at += 64 - (at & 7);
        if at >= stored.len() as u64 * 8 {
            return Err(Fault::Ended);
        }
    }
}
