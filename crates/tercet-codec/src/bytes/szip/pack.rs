//! Interval encoder.
//!
//! Every block takes the shortest option. Among equally short splits the one nearest to the split of the previous block
//! wins, also across intervals: this is the search order of other writers, and makes our streams equal to theirs. Blocks of
//! zeros do not change the remembered split.

use super::bits::{MAX_PUT, Writer};
use super::container::Container;
use super::kernel::Kernel;
use super::layout::{Layout, MAX_PAIR, SEGMENT};

/// State between blocks.
#[derive(Debug)]
pub(super) struct Packer {
    layout: Layout,
    /// The best split of the previous block.
    split: u32,
    /// Whether the sum of the values of a block may exceed 32 bits.
    wide: bool,
    /// The sample before the block; its range starts at 0.
    before: u32,
    /// The samples of the block, padded with the last one.
    samples: Vec<[u32; 8]>,
    /// The values to encode, in groups of eight, padded with zeros; a reference counts as zero.
    values: Vec<[u32; 8]>,
    /// Whether a sample has more bits than declared.
    misfit: bool,
}

impl Packer {
    pub(super) fn new(layout: &Layout, split: u32) -> Self {
        let eights = vec![[0; 8]; layout.block.div_ceil(8)];
        let wide = u64::from(layout.max) * layout.block as u64 > u64::from(u32::MAX);
        Self {
            layout: *layout,
            split,
            wide,
            before: 0,
            samples: eights.clone(),
            values: eights,
            misfit: false,
        }
    }

    /// Whether a sample has more bits than declared; the output is invalid then.
    pub(super) fn misfit(&self) -> bool {
        self.misfit
    }

    /// Maximum bytes of `samples` samples of an interval.
    pub(super) fn max_bytes(layout: &Layout, samples: usize) -> usize {
        // Every block uncompressed, with its ID or the start of a run; one whole run of zeros.
        samples.div_ceil(layout.block) * (layout.block * layout.bits as usize / 8 + 3) + 16
    }

    /// Loads and maps a block of which `have` samples exist; `before` must be the sample before.
    #[inline(always)]
    fn load<K: Kernel, C: Container>(&mut self, kernel: K, raw: &[u8], have: usize, first: bool) {
        let Self { layout, before, samples, values, .. } = self;
        let all = samples.as_flattened_mut();
        kernel.load::<C>(layout, raw, &mut all[..have]);
        let last = all[have - 1];
        all[have..].fill(last);
        if C::MASK != layout.max {
            self.misfit |= all.iter().fold(0, |all, sample| all | sample) > layout.max;
        }
        if layout.preprocess {
            let before = if first { all[0] } else { *before };
            kernel.map(layout, before, samples, values);
        } else {
            for (values, samples) in values.iter_mut().zip(samples) {
                *values = samples.map(|sample| sample ^ layout.sign);
            }
            values.as_flattened_mut()[layout.block..].fill(0);
        }
        *before = last;
    }

    /// Whether all values are zero.
    #[inline(always)]
    fn is_zero(&self) -> bool {
        let mut any = [0; 8];
        for eight in &self.values {
            for lane in 0..8 {
                any[lane] |= eight[lane];
            }
        }
        any == [0; 8]
    }

    /// The unary bits of a block without its ones.
    #[inline(always)]
    fn quotients(&self, split: u32) -> u64 {
        if self.wide {
            return self.values.as_flattened().iter().map(|&value| u64::from(value >> split)).sum();
        }
        let mut sums = [0u32; 8];
        for eight in &self.values {
            for lane in 0..8 {
                sums[lane] = sums[lane].wrapping_add(eight[lane] >> split);
            }
        }
        sums.iter().sum::<u32>().into()
    }

    /// The shortest split nearest to `from`, and its number of bits without the ID.
    ///
    /// The length is convex in the split, so one direction suffices: while there are as many quotient bits as values, no smaller
    /// split is shorter, otherwise no larger one.
    #[inline(always)]
    fn best_split(&self, count: usize, from: u32, max: u32) -> (u32, u64) {
        let count = count as u64;
        let mut split = from;
        let mut quotients = self.quotients(split);
        let mut best = quotients + count * u64::from(split + 1);
        if quotients >= count {
            while quotients >= count && split < max {
                quotients = self.quotients(split + 1);
                let bits = quotients + count * u64::from(split + 2);
                if bits >= best {
                    break;
                }
                (split, best) = (split + 1, bits);
            }
        } else {
            while quotients < count && split > 0 {
                quotients = self.quotients(split - 1);
                let bits = quotients + count * u64::from(split);
                if bits >= best {
                    break;
                }
                (split, best) = (split - 1, bits);
            }
        }
        (split, best)
    }

    /// The minimum and the maximum of the shortest splits of the block at the start of `raw`, which follows the sample `last` or
    /// starts an interval; `None` if it is all zero or there is no choice.
    pub(super) fn splits<K: Kernel, C: Container>(
        &mut self,
        kernel: K,
        last: Option<&[u8]>,
        raw: &[u8],
    ) -> Option<(u32, u32)> {
        let max = self.layout.max_split()?;
        if let Some(last) = last {
            kernel.load::<C>(&self.layout, last, std::slice::from_mut(&mut self.before));
        }
        self.load::<K, C>(kernel, raw, self.layout.block.min(raw.len() / C::BYTES), last.is_none());
        if self.is_zero() {
            return None;
        }
        let count = self.layout.block - usize::from(self.layout.preprocess && last.is_none());
        Some((self.best_split(count, 0, max).0, self.best_split(count, max, max).0))
    }
}

/// Encodes the first `samples` samples of `raw` as one interval. [`Packer::max_bytes`] must be reserved.
#[inline(always)]
pub(super) fn interval<K: Kernel, C: Container>(
    kernel: K,
    packer: &mut Packer,
    raw: &[u8],
    samples: usize,
    writer: &mut Writer,
) {
    let layout = packer.layout;
    let blocks = samples.div_ceil(layout.block);
    // A local copy stays in registers.
    let mut local = std::mem::take(writer);
    let bits = &mut local;
    let mut zeros = 0;
    let mut reference = 0;
    for index in 0..blocks {
        let done = index * layout.block;
        packer.load::<K, C>(kernel, &raw[done * C::BYTES..], layout.block.min(samples - done), index == 0);
        if packer.misfit {
            break;
        }
        let first = layout.preprocess && index == 0;
        if first {
            reference = packer.samples[0][0] ^ layout.sign;
        }
        let zero = packer.is_zero();
        zeros += u64::from(zero);
        let closes = index + 1 == blocks || (index + 1) % SEGMENT == 0;
        if zeros > 0 && (!zero || closes) {
            // Five means that the rest of the segment is zero, so longer runs that are not the rest are one more.
            let code = if zeros < 5 {
                zeros - 1
            } else if zero {
                4
            } else {
                zeros
            };
            let end = index + usize::from(zero);
            let from_start = layout.preprocess && end as u64 == zeros;
            put_zeros(&layout, bits, code, from_start.then_some(reference));
            zeros = 0;
        }
        if zero {
            continue;
        }
        put_block(kernel, packer, bits, first.then_some(reference));
    }
    *writer = local;
}

/// Writes a run of zero blocks.
#[inline(always)]
fn put_zeros(layout: &Layout, writer: &mut Writer, code: u64, reference: Option<u32>) {
    writer.put(0, layout.id_bits + 1);
    put_reference(layout, writer, reference);
    writer.put_unary(code);
}

/// Writes the loaded block in its shortest form.
#[inline(always)]
fn put_block<K: Kernel>(kernel: K, packer: &mut Packer, writer: &mut Writer, reference: Option<u32>) {
    let layout = packer.layout;
    let skipped = usize::from(reference.is_some());
    let count = layout.block - skipped;
    let raw_bits = count as u64 * u64::from(layout.bits);
    let (split, split_bits) = match layout.max_split() {
        Some(max) => packer.best_split(count, packer.split, max),
        None => (0, u64::MAX),
    };
    packer.split = split;
    let all = &packer.values.as_flattened()[..layout.block];
    let values = &all[skipped..];
    // Pairs pay off for small values only; from split 2 on the values are too large.
    let pair_bits = if split < 2 { pair_bits(all) } else { u64::MAX };
    if pair_bits <= split_bits && pair_bits < raw_bits {
        writer.put(1, layout.id_bits + 1);
        put_reference(&layout, writer, reference);
        for pair in all.chunks_exact(2) {
            writer.put_unary(pair_code(pair));
        }
    } else if split_bits < raw_bits {
        writer.put(u64::from(split + 1), layout.id_bits);
        put_reference(&layout, writer, reference);
        put_quotients(kernel, writer, values, split);
        put_low(kernel, writer, values, split);
    } else {
        writer.put(u64::from(layout.raw_id()), layout.id_bits);
        put_reference(&layout, writer, reference);
        for &value in values {
            writer.put(value.into(), layout.bits);
        }
    }
}

#[inline(always)]
fn put_reference(layout: &Layout, writer: &mut Writer, reference: Option<u32>) {
    if let Some(reference) = reference {
        writer.put(reference.into(), layout.bits);
    }
}

/// The code of two values in the second extension.
#[inline(always)]
fn pair_code(pair: &[u32]) -> u64 {
    let sum = u64::from(pair[0]) + u64::from(pair[1]);
    sum * (sum + 1) / 2 + u64::from(pair[1])
}

/// Number of bits of a block in the second extension without the ID.
fn pair_bits(values: &[u32]) -> u64 {
    let mut bits = 1;
    for pair in values.chunks_exact(2) {
        // Checked first: the code of two large values overflows.
        if pair[0].max(pair[1]) > MAX_PAIR as u32 || pair_code(pair) > MAX_PAIR {
            return u64::MAX;
        }
        bits += pair_code(pair) + 1;
    }
    bits
}

/// Writes the unary codes of the bits above the low `split` bits.
#[inline(always)]
fn put_quotients<K: Kernel>(kernel: K, writer: &mut Writer, values: &[u32], split: u32) {
    let (eights, rest) = values.as_chunks::<8>();
    for group in eights.chunks(2) {
        let (mut word, mut bits) = kernel.quotients(&group[0], split);
        if let [_, second] = group {
            let (next, more) = kernel.quotients(second, split);
            word |= next.unbounded_shr(bits);
            bits += more;
        }
        if bits <= MAX_PUT {
            writer.put(word >> (64 - bits), bits);
        } else {
            for value in group.as_flattened() {
                writer.put_unary(u64::from(value >> split));
            }
        }
    }
    for value in rest {
        writer.put_unary(u64::from(value >> split));
    }
}

/// Writes the low `split` bits of every value, as many at a time as fit.
#[inline(always)]
fn put_low<K: Kernel>(kernel: K, writer: &mut Writer, values: &[u32], split: u32) {
    if split == 0 {
        return;
    }
    let (eights, rest) = if split <= MAX_PUT / 2 { values.as_chunks::<8>() } else { (&[][..], values) };
    for eight in eights {
        let [first, second, third, fourth] = kernel.low_pairs(eight, split);
        if split <= MAX_PUT / 4 {
            let (front, back) = (first << (2 * split) | second, third << (2 * split) | fourth);
            if split <= MAX_PUT / 8 {
                writer.put(front << (4 * split) | back, 8 * split);
            } else {
                writer.put(front, 4 * split);
                writer.put(back, 4 * split);
            }
        } else {
            for pair in [first, second, third, fourth] {
                writer.put(pair, 2 * split);
            }
        }
    }
    let mask = (1 << split) - 1;
    for value in rest {
        writer.put(u64::from(value & mask), split);
    }
}
