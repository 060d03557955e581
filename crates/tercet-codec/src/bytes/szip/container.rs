//! Samples in memory: one to four bytes, either byte order.

/// Memory layout of a sample.
pub(super) trait Container: Copy + Send + Sync {
    /// Bytes of a sample.
    const BYTES: usize;
    /// Whether the most significant byte comes first.
    const MSB: bool;
    /// All bits of a sample's bytes.
    const MASK: u32 = u32::MAX >> (32 - 8 * Self::BYTES as u32);

    /// The sample in `bytes`, zero-extended.
    #[inline(always)]
    fn get(bytes: &[u8]) -> u32 {
        let mut whole = [0; 4];
        if Self::MSB {
            whole[4 - Self::BYTES..].copy_from_slice(bytes);
            u32::from_be_bytes(whole)
        } else {
            whole[..Self::BYTES].copy_from_slice(bytes);
            u32::from_le_bytes(whole)
        }
    }

    /// Stores the low bits of `sample`.
    #[inline(always)]
    fn put(sample: u32, bytes: &mut [u8]) {
        if Self::MSB {
            bytes.copy_from_slice(&sample.to_be_bytes()[4 - Self::BYTES..]);
        } else {
            bytes.copy_from_slice(&sample.to_le_bytes()[..Self::BYTES]);
        }
    }
}

/// `N` bytes, big-endian or little-endian.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<const N: usize, const MSB: bool>;

impl<const N: usize, const MSB: bool> Container for Bytes<N, MSB> {
    const BYTES: usize = N;
    const MSB: bool = MSB;
}

/// Fills `bytes` with copies of one sample.
#[inline(always)]
pub(super) fn fill<C: Container>(sample: u32, bytes: &mut [u8]) {
    for slot in bytes.chunks_exact_mut(C::BYTES) {
        C::put(sample, slot);
    }
}
