//! CPU-specific kernels, and their portable form.
//!
//! The walks ([`unpack`], [`skip`], [`pack`]) are written once, generic over a kernel. A kernel enters them, so that they are
//! compiled for its instructions, and provides the inner loops worth writing by hand.

use super::bits::{Writer, window};
use super::container::Container;
use super::layout::{Fault, Layout};
use super::pack::Packer;
use super::unpack::Scratch;
use super::{pack, skip, unpack};

/// One instruction set.
pub(super) trait Kernel: Copy + Send + Sync {
    /// [`unpack::interval`].
    fn unpack<C: Container>(
        self,
        layout: &Layout,
        stored: &[u8],
        at: u64,
        scratch: &mut Scratch,
        raw: &mut [u8],
    ) -> Result<u64, Fault>;

    /// [`skip::interval`].
    fn skip(self, layout: &Layout, stored: &[u8], at: u64, blocks: usize) -> Result<u64, Fault>;

    /// [`pack::interval`].
    fn pack<C: Container>(self, packer: &mut Packer, raw: &[u8], samples: usize, writer: &mut Writer);

    /// Appends to each of the first `count` values its `split` low bits, which are consecutive from bit `at` on. Values after
    /// them may be changed, up to a multiple of 8.
    fn join(self, stored: &[u8], at: u64, split: u32, count: usize, values: &mut [u32]);

    /// Restores the samples of the mapped differences `mapped`, starting from `last`; updates `last`.
    fn restore<C: Container>(self, layout: &Layout, mapped: &[u32], last: &mut u32, raw: &mut [u8]);

    /// Stores uncompressed samples.
    fn store<C: Container>(self, layout: &Layout, values: &[u32], raw: &mut [u8]);

    /// Loads samples, shifted so that their range starts at 0; `raw` may be longer.
    fn load<C: Container>(self, layout: &Layout, raw: &[u8], samples: &mut [u32]);

    /// Maps the difference of every sample from its predecessor; `before` is that of the first.
    fn map(self, layout: &Layout, before: u32, samples: &[[u32; 8]], values: &mut [[u32; 8]]);

    /// The unary codes of the bits above the low `split` bits, from the top down, and their total number of bits. The word is
    /// invalid if they do not fit it.
    fn quotients(self, values: &[u32; 8], split: u32) -> (u64, u32);

    /// The low `split` bits of every two values together.
    fn low_pairs(self, values: &[u32; 8], split: u32) -> [u64; 4];

    /// The bytes of a number from the bottom up.
    fn widen(self, bytes: u64) -> [u32; 8];

    /// Number of bits of `word` from the top down up to the `nth` one, 1-based; it must have that many ones.
    fn nth_one(self, word: u64, nth: u32) -> u32;
}

/// Portable kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portable;

impl Kernel for Portable {
    fn unpack<C: Container>(
        self,
        layout: &Layout,
        stored: &[u8],
        at: u64,
        scratch: &mut Scratch,
        raw: &mut [u8],
    ) -> Result<u64, Fault> {
        unpack::interval::<Self, C>(self, layout, stored, at, scratch, raw)
    }

    fn skip(self, layout: &Layout, stored: &[u8], at: u64, blocks: usize) -> Result<u64, Fault> {
        skip::interval(self, layout, stored, at, blocks)
    }

    fn pack<C: Container>(self, packer: &mut Packer, raw: &[u8], samples: usize, writer: &mut Writer) {
        pack::interval::<Self, C>(self, packer, raw, samples, writer);
    }

    #[inline(always)]
    fn join(self, stored: &[u8], at: u64, split: u32, count: usize, values: &mut [u32]) {
        let mut from = at;
        for value in &mut values[..count] {
            // Two shifts: a shift by 64 is undefined.
            let below = window(stored, from) >> 1 >> (63 - split);
            *value = (*value << split) | below as u32;
            from += u64::from(split);
        }
    }

    #[inline(always)]
    fn restore<C: Container>(self, layout: &Layout, mapped: &[u32], last: &mut u32, raw: &mut [u8]) {
        for (&mapped, slot) in mapped.iter().zip(raw.chunks_exact_mut(C::BYTES)) {
            *last = unmap(mapped, *last, layout.max);
            C::put(last.wrapping_sub(layout.sign), slot);
        }
    }

    #[inline(always)]
    fn store<C: Container>(self, layout: &Layout, values: &[u32], raw: &mut [u8]) {
        for (&value, slot) in values.iter().zip(raw.chunks_exact_mut(C::BYTES)) {
            C::put((value ^ layout.sign).wrapping_sub(layout.sign), slot);
        }
    }

    #[inline(always)]
    fn load<C: Container>(self, layout: &Layout, raw: &[u8], samples: &mut [u32]) {
        for (sample, slot) in samples.iter_mut().zip(raw.chunks_exact(C::BYTES)) {
            *sample = C::get(slot).wrapping_add(layout.sign) & C::MASK;
        }
    }

    #[inline(always)]
    fn map(self, layout: &Layout, before: u32, samples: &[[u32; 8]], values: &mut [[u32; 8]]) {
        let mut last = before;
        for (value, &next) in values.as_flattened_mut().iter_mut().zip(samples.as_flattened()) {
            *value = map(next, last, layout.max);
            last = next;
        }
    }

    #[inline(always)]
    fn quotients(self, values: &[u32; 8], split: u32) -> (u64, u32) {
        let (mut word, mut bits) = (0, 0u32);
        for value in values {
            bits = bits.wrapping_add(value >> split);
            word |= (1 << 63) >> (bits & 63);
            bits = bits.wrapping_add(1);
        }
        (word, bits)
    }

    #[inline(always)]
    fn low_pairs(self, values: &[u32; 8], split: u32) -> [u64; 4] {
        let low = |value: u32| u64::from(value) & ((1 << split) - 1);
        std::array::from_fn(|pair| low(values[2 * pair]) << split | low(values[2 * pair + 1]))
    }

    #[inline(always)]
    fn widen(self, bytes: u64) -> [u32; 8] {
        bytes.to_le_bytes().map(u32::from)
    }

    #[inline(always)]
    fn nth_one(self, word: u64, nth: u32) -> u32 {
        let mut left = word;
        for _ in 1..nth {
            left ^= (1 << 63) >> left.leading_zeros();
        }
        left.leading_zeros() + 1
    }
}

/// The sample after `last` with the mapped difference `mapped`; ranges start at 0.
#[inline(always)]
pub(super) fn unmap(mapped: u32, last: u32, max: u32) -> u32 {
    let nearer = last.min(max - last);
    let near = last.wrapping_add((mapped >> 1) ^ (mapped & 1).wrapping_neg());
    let far = if nearer == last { mapped } else { max - mapped };
    // Branch-free: the choice looks random, and a misprediction costs more than both sides.
    let mask = u32::from(mapped > nearer * 2).wrapping_neg();
    (far & mask) | (near & !mask)
}

/// The mapped difference of `next` from `last`; ranges start at 0.
#[inline(always)]
pub(super) fn map(next: u32, last: u32, max: u32) -> u32 {
    let nearer = last.min(max.wrapping_sub(last));
    let falls = u32::from(next < last);
    let distance = next.max(last) - next.min(last);
    if distance <= nearer {
        distance.wrapping_mul(2).wrapping_sub(falls)
    } else {
        nearer.wrapping_add(distance)
    }
}
