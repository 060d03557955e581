//! Elements of 2, 4, 8 and 16 bytes, sixteen at a time.
//!
//! Sixteen elements of `S` bytes fill `S` vectors. Number all their bytes: the upper four bits of the number are the
//! element, the others the byte in the element. Interleaving the first half of the vectors with the second rotates every
//! number left by one bit. Four such steps move the bits of the element to the lower end, which is the shuffled order; as
//! many steps as there are other bits move them back.

use bytemuck::{Pod, bytes_of, pod_read_unaligned};

use super::Planes;

/// Bytes of a vector, and elements of a block.
const LANES: usize = 16;

/// Sixteen bytes.
pub(super) trait Interleave: Pod {
    /// `a0 b0 a1 b1 ...`: the first and the second half.
    fn interleave(self, other: Self) -> [Self; 2];
}

impl Interleave for [u8; LANES] {
    fn interleave(self, other: Self) -> [Self; 2] {
        let mut halves = [[0; LANES]; 2];
        for (index, (a, b)) in self.into_iter().zip(other).enumerate() {
            let at = 2 * index % LANES;
            halves[index / 8][at..at + 2].copy_from_slice(&[a, b]);
        }
        halves
    }
}

/// Rotates the number of every byte by one bit.
#[inline]
fn rotate<V: Interleave, const S: usize>(vectors: &[V; S]) -> [V; S] {
    let mut rotated = *vectors;
    for index in 0..S / 2 {
        [rotated[2 * index], rotated[2 * index + 1]] = vectors[index].interleave(vectors[index + S / 2]);
    }
    rotated
}

/// Shuffles whole blocks and returns the number of elements done.
pub(super) fn split<V: Interleave, const S: usize>(raw: &[u8], planes: &mut [&mut [u8]]) -> usize {
    let blocks = raw.chunks_exact(S * LANES);
    let done = blocks.len() * LANES;
    for (index, block) in blocks.enumerate() {
        let mut vectors = [V::zeroed(); S];
        for (vector, bytes) in vectors.iter_mut().zip(block.as_chunks::<LANES>().0) {
            *vector = pod_read_unaligned(bytes);
        }
        for _ in 0..4 {
            vectors = rotate(&vectors);
        }
        for (plane, vector) in planes.iter_mut().zip(&vectors) {
            plane[index * LANES..][..LANES].copy_from_slice(bytes_of(vector));
        }
    }
    done
}

/// Unshuffles whole blocks and returns the number of elements done.
pub(super) fn join<V: Interleave, const S: usize>(planes: &Planes<'_>, out: &mut [u8]) -> usize {
    let blocks = out.chunks_exact_mut(S * LANES);
    let done = blocks.len() * LANES;
    let planes: [&[u8]; S] = std::array::from_fn(|byte| planes.plane(byte, done));
    for (index, block) in blocks.enumerate() {
        let mut vectors = [V::zeroed(); S];
        for (vector, plane) in vectors.iter_mut().zip(&planes) {
            *vector = pod_read_unaligned(&plane[index * LANES..][..LANES]);
        }
        for _ in 0..S.ilog2() {
            vectors = rotate(&vectors);
        }
        for (bytes, vector) in block.as_chunks_mut::<LANES>().0.iter_mut().zip(&vectors) {
            bytes.copy_from_slice(bytes_of(vector));
        }
    }
    done
}
