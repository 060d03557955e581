//! Vectors of sixteen bytes.

#[cfg(target_arch = "x86_64")]
pub(super) use std::arch::x86_64::__m128i as Vector;

#[cfg(not(target_arch = "x86_64"))]
pub(super) type Vector = [u8; 16];

#[cfg(target_arch = "x86_64")]
impl super::blocks::Interleave for Vector {
    #[inline]
    fn interleave(self, other: Self) -> [Self; 2] {
        use std::arch::x86_64::{_mm_unpackhi_epi8, _mm_unpacklo_epi8};

        #[expect(unsafe_code, reason = "the instructions require SSE2")]
        // SAFETY: every machine of this architecture has SSE2.
        unsafe {
            [_mm_unpacklo_epi8(self, other), _mm_unpackhi_epi8(self, other)]
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod ssse3 {
    //! SSSE3 kernels: arbitrary byte permutations of a vector.

    use std::arch::x86_64::{__m128i, _mm_or_si128, _mm_shuffle_epi8};

    use bytemuck::{bytes_of, cast, pod_read_unaligned};

    /// Permutes the bytes of three vectors: byte `i` of vector `k` comes from vector `j` if `moves[k][j][i]` is below 16.
    #[target_feature(enable = "ssse3")]
    pub(in super::super) fn move_bytes(
        from: [&[u8; 16]; 3],
        to: [&mut [u8; 16]; 3],
        moves: &[[[u8; 16]; 3]; 3],
    ) {
        let [a, b, c]: [__m128i; 3] =
            [pod_read_unaligned(from[0]), pod_read_unaligned(from[1]), pod_read_unaligned(from[2])];
        for (to, [of_a, of_b, of_c]) in to.into_iter().zip(moves) {
            let a_and_b = _mm_or_si128(_mm_shuffle_epi8(a, cast(*of_a)), _mm_shuffle_epi8(b, cast(*of_b)));
            to.copy_from_slice(bytes_of(&_mm_or_si128(a_and_b, _mm_shuffle_epi8(c, cast(*of_c)))));
        }
    }
}
