//! AVX2 kernels: eight values at a time.

use std::arch::x86_64::{
    __m128i, __m256i, _mm256_and_si256, _mm256_set_m128i, _mm256_set1_epi32, _mm256_shuffle_epi8,
    _mm256_srlv_epi32,
};

use bytemuck::{cast, pod_read_unaligned};

use super::super::bitpack::{BLOCK, GROUP, MAX_WINDOW, Sink, window};

/// Maximum width: with the preceding bits of their first byte such values fit into four bytes.
pub(super) const MAX_BITS: u32 = 25;

/// Positions of the values of a group. Its halves are loaded separately, the second from the byte in which it starts.
#[derive(Clone, Copy)]
struct Layout {
    /// For each value, the four bytes of its half that contain it.
    bytes: [u8; 4 * GROUP],
    /// The number of preceding bits in the first of them.
    shifts: [u32; GROUP],
}

#[expect(clippy::cast_possible_truncation, reason = "positions in a vector")]
const LAYOUTS: [Layout; MAX_BITS as usize + 1] = {
    let mut layouts = [Layout { bytes: [0; 4 * GROUP], shifts: [0; GROUP] }; MAX_BITS as usize + 1];
    let mut width = 1;
    while width < layouts.len() {
        let mut index = 0;
        while index < GROUP {
            let half_start = if index < GROUP / 2 { 0 } else { half(width) };
            let bit = index * width - 8 * half_start;
            layouts[width].shifts[index] = (bit % 8) as u32;
            let mut byte = 0;
            while byte < 4 {
                layouts[width].bytes[4 * index + byte] = (bit / 8 + byte) as u8;
                byte += 1;
            }
            index += 1;
        }
        width += 1;
    }
    layouts
};

/// The byte in which the second half of a group starts.
const fn half(width: usize) -> usize {
    GROUP / 2 * width / 8
}

/// Passes `n` values of at most [`MAX_BITS`] bits to `sink`.
#[target_feature(enable = "avx2")]
pub(super) fn unpack(width: u32, packed: &[u8], n: usize, sink: &mut impl Sink) {
    let layout = LAYOUTS[width as usize];
    let (bytes, shifts): (__m256i, __m256i) = (cast(layout.bytes), cast(layout.shifts));
    let mask = _mm256_set1_epi32((1 << width) - 1);
    let width_bytes = width as usize;
    let mut spare = [0; MAX_WINDOW];
    let mut values = [0u32; BLOCK];
    for first in (0..n).step_by(BLOCK) {
        let window = window(width, packed, first, &mut spare);
        for (group, values) in values.as_chunks_mut::<GROUP>().0.iter_mut().enumerate() {
            let start = group * width_bytes;
            let low: __m128i = pod_read_unaligned(&window[start..start + 16]);
            let high: __m128i = pod_read_unaligned(&window[start + half(width_bytes)..][..16]);
            let apart = _mm256_shuffle_epi8(_mm256_set_m128i(high, low), bytes);
            *values = cast(_mm256_and_si256(_mm256_srlv_epi32(apart, shifts), mask));
        }
        sink.take(&values[..(n - first).min(BLOCK)]);
    }
}
