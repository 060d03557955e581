//! Bit packing: value 0 is in the lowest bits of the first byte, the next values follow without gaps.
//!
//! Eight values take as many bytes as the width has bits, so the position of each value of such a group is known at
//! compile time: there is one branch-free kernel per width. The last group is padded with zeros.

use super::{Integer, arch};

/// Values packed and unpacked together.
pub(super) const BLOCK: usize = 64;

/// Maximum width.
pub(super) const MAX_BITS: u32 = 64;

/// Values that take a whole number of bytes at any width.
pub(super) const GROUP: usize = 8;

/// Bytes that a kernel may read past its last value.
pub(super) const SLACK: usize = 16;

/// Maximum bytes of a block, including the slack.
pub(super) const MAX_WINDOW: usize = BLOCK * size_of::<u64>() + SLACK;

/// Number of bits of `value`; at least 1.
pub(super) const fn bits(value: u64) -> u32 {
    64 - (value | 1).leading_zeros()
}

/// Number of bytes of `n` values of `width` bits; [`u64::MAX`] on overflow.
pub(super) fn packed_len(n: usize, width: u32) -> u64 {
    let bits = n as u128 * u128::from(width);
    u64::try_from(bits.div_ceil(8)).unwrap_or(u64::MAX)
}

/// Appends `n` values of `width` bits (1 to 64). `fill` writes a block of them, given the number of its first; no value may
/// have more bits.
pub(super) fn pack_with(width: u32, n: usize, out: &mut Vec<u8>, mut fill: impl FnMut(usize, &mut [u64])) {
    let pack = PACK[width as usize - 1];
    let block_bytes = GROUP * width as usize;
    let mut values = [0; BLOCK];
    let mut packed = [0; BLOCK * size_of::<u64>()];
    out.reserve(usize::try_from(packed_len(n, width)).unwrap_or(0));
    for first in (0..n).step_by(BLOCK) {
        let count = (n - first).min(BLOCK);
        fill(first, &mut values[..count]);
        values[count..].fill(0);
        pack(&values, &mut packed[..block_bytes]);
        let len = if count == BLOCK { block_bytes } else { (count * width as usize).div_ceil(8) };
        out.extend_from_slice(&packed[..len]);
    }
}

/// Destination of unpacked values, a block at a time.
pub(super) trait Sink {
    fn take<W: Copy + Into<u64>>(&mut self, block: &[W]);
}

/// Appends values to `out`, each plus `base`.
pub(super) struct Above<'a, T> {
    pub(super) base: u64,
    pub(super) out: &'a mut Vec<T>,
}

impl<T: Integer> Sink for Above<'_, T> {
    #[inline]
    fn take<W: Copy + Into<u64>>(&mut self, block: &[W]) {
        let base = self.base;
        self.out.extend(block.iter().map(|&residual| T::narrow(base.wrapping_add(residual.into()))));
    }
}

/// Passes `n` values of `width` bits (1 to 64) to `sink`. `packed` holds all of them; trailing bytes are ignored.
pub(super) fn unpack(width: u32, packed: &[u8], n: usize, sink: &mut impl Sink) {
    if !arch::unpack(width, packed, n, sink) {
        unpack_portable(width, packed, n, sink);
    }
}

/// Portable version.
pub(super) fn unpack_portable(width: u32, packed: &[u8], n: usize, sink: &mut impl Sink) {
    let unpack = UNPACK[width as usize - 1];
    let mut values = [0; BLOCK];
    let mut spare = [0; MAX_WINDOW];
    for first in (0..n).step_by(BLOCK) {
        unpack(window(width, packed, first, &mut spare), &mut values);
        sink.take(&values[..(n - first).min(BLOCK)]);
    }
}

/// The value at `index` of values of `width` bits (1 to 64) in `packed`, which must contain it.
pub(super) fn one(width: u32, packed: &[u8], index: usize) -> u64 {
    let bit = index as u128 * u128::from(width);
    let (start, shift) = (usize::try_from(bit / 8).unwrap_or(usize::MAX), (bit % 8) as u32);
    let len = (shift + width).div_ceil(8) as usize;
    let mut bytes = [0; 16];
    bytes[..len].copy_from_slice(&packed[start..start + len]);
    #[expect(clippy::cast_possible_truncation, reason = "the upper bits belong to the next values")]
    let wide = (u128::from_le_bytes(bytes) >> shift) as u64;
    wide & u64::MAX >> (MAX_BITS - width)
}

/// The bytes of the block that starts with value `first`, plus [`SLACK`]; a copy in `spare` near the end of `packed`.
#[inline]
pub(super) fn window<'a>(
    width: u32,
    packed: &'a [u8],
    first: usize,
    spare: &'a mut [u8; MAX_WINDOW],
) -> &'a [u8] {
    let rest = &packed[first / GROUP * width as usize..];
    let block_bytes = GROUP * width as usize;
    if let Some(window) = rest.get(..block_bytes + SLACK) {
        return window;
    }
    let len = rest.len().min(block_bytes);
    spare[..len].copy_from_slice(&rest[..len]);
    &spare[..block_bytes + SLACK]
}

type Pack = fn(&[u64; BLOCK], &mut [u8]);
type Unpack = fn(&[u8], &mut [u64; BLOCK]);

fn pack_block<const W: usize>(values: &[u64; BLOCK], packed: &mut [u8]) {
    for (values, packed) in values.as_chunks::<GROUP>().0.iter().zip(packed.as_chunks_mut::<W>().0) {
        let mut words = [0; GROUP + 1];
        for (index, &value) in values.iter().enumerate() {
            let (word, shift) = (index * W / 64, index * W % 64);
            words[word] |= value << shift;
            // In two steps: a shift by 64 bits is undefined.
            words[word + 1] |= value >> 1 >> (63 - shift);
        }
        let words = words.map(u64::to_le_bytes);
        packed.copy_from_slice(&words.as_flattened()[..W]);
    }
}

fn unpack_block<const W: usize>(packed: &[u8], values: &mut [u64; BLOCK]) {
    let mask = u64::MAX >> (64 - W);
    for (group, values) in values.as_chunks_mut::<GROUP>().0.iter_mut().enumerate() {
        let packed = &packed[group * W..][..W + SLACK];
        for (index, value) in values.iter_mut().enumerate() {
            let (byte, shift) = (index * W / 8, index * W % 8);
            let mut word = [0; 8];
            word.copy_from_slice(&packed[byte..byte + 8]);
            let mut bits = u64::from_le_bytes(word) >> shift;
            if shift + W > 64 {
                bits |= u64::from(packed[byte + 8]) << (64 - shift);
            }
            *value = bits & mask;
        }
    }
}

macro_rules! kernels {
    ($($width:literal)*) => {
        /// The kernel of width `w` is at `w - 1`.
        const PACK: [Pack; MAX_BITS as usize] = [$(pack_block::<$width>),*];
        const UNPACK: [Unpack; MAX_BITS as usize] = [$(unpack_block::<$width>),*];
    };
}

kernels! {
    1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
    33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64
}
