//! AVX2 kernels: a mask is the sign bits of a comparison.

use std::arch::x86_64::{
    __m256i, _mm256_and_si256, _mm256_castsi256_pd, _mm256_castsi256_ps, _mm256_cmpgt_epi16,
    _mm256_cmpgt_epi32, _mm256_cmpgt_epi64, _mm256_movemask_epi8, _mm256_movemask_pd, _mm256_movemask_ps,
    _mm256_packs_epi16, _mm256_permute4x64_epi64, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_set1_epi64x,
};

use bytemuck::pod_read_unaligned;

/// Mask of the numbers of `width` bytes whose bits without the sign are above `limit`. Numbers after the 64th are ignored.
#[target_feature(enable = "avx2")]
pub(super) fn above(block: &[u8], width: usize, limit: u64) -> u64 {
    match width {
        2 => above_16(block, limit),
        4 => above_32(block, limit),
        _ => above_64(block, limit),
    }
}

#[target_feature(enable = "avx2")]
#[expect(clippy::cast_possible_truncation, reason = "limits are as wide as the numbers")]
fn above_16(block: &[u8], limit: u64) -> u64 {
    let (magnitude, limit) = (_mm256_set1_epi16(i16::MAX), _mm256_set1_epi16(limit as i16));
    let mut word = 0;
    for (index, bytes) in block.as_chunks::<64>().0.iter().take(2).enumerate() {
        let low: __m256i = pod_read_unaligned(&bytes[..32]);
        let high: __m256i = pod_read_unaligned(&bytes[32..]);
        let low = _mm256_cmpgt_epi16(_mm256_and_si256(low, magnitude), limit);
        let high = _mm256_cmpgt_epi16(_mm256_and_si256(high, magnitude), limit);
        // Packing interleaves the halves of the two vectors: 0 2 1 3.
        let joined = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi16(low, high));
        word |= u64::from(_mm256_movemask_epi8(joined).cast_unsigned()) << (32 * index);
    }
    word
}

#[target_feature(enable = "avx2")]
#[expect(clippy::cast_possible_truncation, reason = "limits are as wide as the numbers")]
fn above_32(block: &[u8], limit: u64) -> u64 {
    let (magnitude, limit) = (_mm256_set1_epi32(i32::MAX), _mm256_set1_epi32(limit as i32));
    let mut word = 0;
    for (index, bytes) in block.as_chunks::<32>().0.iter().take(8).enumerate() {
        let above = _mm256_cmpgt_epi32(_mm256_and_si256(pod_read_unaligned(bytes), magnitude), limit);
        word |= u64::from(_mm256_movemask_ps(_mm256_castsi256_ps(above)).cast_unsigned()) << (8 * index);
    }
    word
}

#[target_feature(enable = "avx2")]
fn above_64(block: &[u8], limit: u64) -> u64 {
    let (magnitude, limit) = (_mm256_set1_epi64x(i64::MAX), _mm256_set1_epi64x(limit.cast_signed()));
    let mut word = 0;
    for (index, bytes) in block.as_chunks::<32>().0.iter().take(16).enumerate() {
        let above = _mm256_cmpgt_epi64(_mm256_and_si256(pod_read_unaligned(bytes), magnitude), limit);
        word |= u64::from(_mm256_movemask_pd(_mm256_castsi256_pd(above)).cast_unsigned()) << (4 * index);
    }
    word
}
