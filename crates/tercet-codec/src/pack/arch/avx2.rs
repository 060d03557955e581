//! AVX2 kernels: four values at a time, widths up to 52 bits.

use std::arch::x86_64::{
    __m128i, __m256d, __m256i, _CMP_UNORD_Q, _MM_FROUND_NO_EXC, _MM_FROUND_TO_ZERO, _mm_set1_epi32,
    _mm_setr_epi8, _mm_shuffle_epi8, _mm_xor_si128, _mm256_add_pd, _mm256_and_si256, _mm256_andnot_pd,
    _mm256_castpd_si256, _mm256_castsi256_pd, _mm256_cmp_pd, _mm256_cvtpd_epi32, _mm256_cvttpd_epi32,
    _mm256_max_pd, _mm256_min_pd, _mm256_movemask_pd, _mm256_mul_pd, _mm256_or_pd, _mm256_or_si256,
    _mm256_round_pd, _mm256_set_m128i, _mm256_set1_epi64x, _mm256_set1_pd, _mm256_setzero_pd,
    _mm256_shuffle_epi8, _mm256_srlv_epi64, _mm256_sub_pd, _mm256_xor_si256,
};

use bytemuck::{bytes_of, cast, pod_read_unaligned};

use super::super::VALUE;
use super::super::samples::{self, ALMOST_HALF, Backward, BitWriter, Forward};

/// Maximum width of these kernels: up to it, integers and doubles are converted by adding 2^52, whose last bit counts
/// ones.
pub(super) const MAX_BITS: u32 = 52;

/// 2^52.
const ANCHOR: f64 = 4_503_599_627_370_496.0;

/// Values per loop iteration.
const GROUP: usize = 8;

/// Converts four values at a time to integers. With `NOTE`, non-finite values count as +0.0 and are recorded.
struct Quantiser<'a, const NOTE: bool> {
    reference: __m256d,
    scale: __m256d,
    max: __m256d,
    almost_half: __m256d,
    /// The difference of every value and itself: NaN if the value is not finite.
    differences: __m256d,
    /// For every four values: non-finite ones in the lower half, NaN in the upper half.
    seen: std::slice::IterMut<'a, u8>,
}

impl<'a, const NOTE: bool> Quantiser<'a, NOTE> {
    #[target_feature(enable = "avx2")]
    fn new(rule: &Forward, seen: &'a mut [u8]) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "exact up to 52 bits")]
        let max = rule.max as f64;
        Self {
            reference: _mm256_set1_pd(rule.reference),
            scale: _mm256_set1_pd(rule.scale),
            max: _mm256_set1_pd(max),
            almost_half: _mm256_set1_pd(ALMOST_HALF),
            differences: _mm256_setzero_pd(),
            seen: seen.iter_mut(),
        }
    }

    /// The integers of four values, still with their fraction.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn rounded(&mut self, bytes: &[u8]) -> __m256d {
        let mut values: __m256d = pod_read_unaligned(bytes);
        let differences = _mm256_sub_pd(values, values);
        if NOTE {
            let bad = _mm256_cmp_pd::<_CMP_UNORD_Q>(differences, differences);
            let nan = _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_UNORD_Q>(values, values));
            if let Some(seen) = self.seen.next() {
                *seen = (_mm256_movemask_pd(bad) | nan << 4).to_le_bytes()[0];
            }
            values = _mm256_andnot_pd(bad, values);
        } else {
            self.differences = _mm256_or_pd(self.differences, differences);
        }
        let scaled = _mm256_mul_pd(_mm256_sub_pd(values, self.reference), self.scale);
        let clamped = _mm256_max_pd(_mm256_min_pd(scaled, self.max), _mm256_setzero_pd());
        _mm256_add_pd(clamped, self.almost_half)
    }

    /// The integers of four values of up to 31 bits.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn narrow(&mut self, bytes: &[u8]) -> __m128i {
        _mm256_cvttpd_epi32(self.rounded(bytes))
    }

    /// The integers of four values of up to 32 bits.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn words(&mut self, bytes: &[u8]) -> __m128i {
        // The CPU converts to signed integers only: shift the range by half and back.
        let integers = self.cut(bytes);
        let below = _mm256_cvtpd_epi32(_mm256_sub_pd(integers, _mm256_set1_pd(2_147_483_648.0)));
        _mm_xor_si128(below, _mm_set1_epi32(i32::MIN))
    }

    /// The integers of four values of up to 52 bits.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn wide(&mut self, bytes: &[u8]) -> [u64; 4] {
        let anchored = _mm256_add_pd(self.cut(bytes), _mm256_set1_pd(ANCHOR));
        let anchor = _mm256_castpd_si256(_mm256_set1_pd(ANCHOR));
        cast::<__m256i, _>(_mm256_xor_si256(_mm256_castpd_si256(anchored), anchor))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn cut(&mut self, bytes: &[u8]) -> __m256d {
        _mm256_round_pd::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(self.rounded(bytes))
    }

    #[target_feature(enable = "avx2")]
    fn all_finite(&self) -> bool {
        _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_UNORD_Q>(self.differences, self.differences)) == 0
    }
}

/// Packs `values` and returns whether all of them are finite.
#[target_feature(enable = "avx2")]
pub(super) fn pack(rule: &Forward, values: &[u8], packed: &mut [u8]) -> bool {
    pack_with(rule, Quantiser::<false>::new(rule, &mut []), values, packed)
}

/// Packs whole groups of values with +0.0 for non-finite ones, which are recorded in `seen`.
#[target_feature(enable = "avx2")]
pub(super) fn pack_noting(rule: &Forward, values: &[u8], packed: &mut [u8], seen: &mut [u8]) {
    pack_with(rule, Quantiser::<true>::new(rule, seen), values, packed);
}

#[target_feature(enable = "avx2")]
fn pack_with<const NOTE: bool>(
    rule: &Forward,
    mut quantiser: Quantiser<'_, NOTE>,
    values: &[u8],
    packed: &mut [u8],
) -> bool {
    let (whole, rest) = values.split_at(values.len() / (GROUP * VALUE) * GROUP * VALUE);
    let mut out = match rule.bits {
        8 => pack_8(&mut quantiser, whole, packed),
        16 => pack_16(&mut quantiser, whole, packed),
        24 => pack_24(&mut quantiser, whole, packed),
        32 => pack_32(&mut quantiser, whole, packed),
        bits @ ..=16 => pack_bits::<NOTE, 4>(&mut quantiser, bits, whole, packed),
        bits @ ..=32 => pack_bits::<NOTE, 2>(&mut quantiser, bits, whole, packed),
        bits => pack_bits::<NOTE, 1>(&mut quantiser, bits, whole, packed),
    };
    let rest = samples::pack_into(rule, rest, &mut out);
    out.finish();
    quantiser.all_finite() && rest
}

/// The loop for widths of whole bytes: a group becomes `$out` bytes. Returns a writer for the bytes after them.
macro_rules! byte_loop {
    ($values:ident => $packed:ident as [$out:literal], $each:expr) => {{
        let groups = $values.as_chunks::<{ GROUP * VALUE }>().0;
        let (done, rest) = $packed.split_at_mut(groups.len() * $out);
        for (values, packed) in groups.iter().zip(done.as_chunks_mut::<$out>().0) {
            let [low, high] = $each(values);
            packed[..$out / 2].copy_from_slice(&bytes_of(&low)[..$out / 2]);
            packed[$out / 2..].copy_from_slice(&bytes_of(&high)[..$out / 2]);
        }
        BitWriter::new(rest)
    }};
}

#[target_feature(enable = "avx2")]
fn pack_8<'a, const NOTE: bool>(
    quantiser: &mut Quantiser<'_, NOTE>,
    values: &[u8],
    packed: &'a mut [u8],
) -> BitWriter<'a> {
    let first = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    byte_loop!(values => packed as [8], |values: &[u8; 64]| {
        let (low, high) = (quantiser.narrow(&values[..32]), quantiser.narrow(&values[32..]));
        [_mm_shuffle_epi8(low, first), _mm_shuffle_epi8(high, first)]
    })
}

#[target_feature(enable = "avx2")]
fn pack_16<'a, const NOTE: bool>(
    quantiser: &mut Quantiser<'_, NOTE>,
    values: &[u8],
    packed: &'a mut [u8],
) -> BitWriter<'a> {
    let swap = _mm_setr_epi8(1, 0, 5, 4, 9, 8, 13, 12, -1, -1, -1, -1, -1, -1, -1, -1);
    byte_loop!(values => packed as [16], |values: &[u8; 64]| {
        let (low, high) = (quantiser.narrow(&values[..32]), quantiser.narrow(&values[32..]));
        [_mm_shuffle_epi8(low, swap), _mm_shuffle_epi8(high, swap)]
    })
}

#[target_feature(enable = "avx2")]
fn pack_24<'a, const NOTE: bool>(
    quantiser: &mut Quantiser<'_, NOTE>,
    values: &[u8],
    packed: &'a mut [u8],
) -> BitWriter<'a> {
    let swap = _mm_setr_epi8(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1);
    byte_loop!(values => packed as [24], |values: &[u8; 64]| {
        let (low, high) = (quantiser.narrow(&values[..32]), quantiser.narrow(&values[32..]));
        [_mm_shuffle_epi8(low, swap), _mm_shuffle_epi8(high, swap)]
    })
}

#[target_feature(enable = "avx2")]
fn pack_32<'a, const NOTE: bool>(
    quantiser: &mut Quantiser<'_, NOTE>,
    values: &[u8],
    packed: &'a mut [u8],
) -> BitWriter<'a> {
    let swap = _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
    byte_loop!(values => packed as [32], |values: &[u8; 64]| {
        let (low, high) = (quantiser.words(&values[..32]), quantiser.words(&values[32..]));
        [_mm_shuffle_epi8(low, swap), _mm_shuffle_epi8(high, swap)]
    })
}

/// Any width: integers are made four at a time and written `JOIN` at a time, which fit into 64 bits.
#[target_feature(enable = "avx2")]
fn pack_bits<'a, const NOTE: bool, const JOIN: usize>(
    quantiser: &mut Quantiser<'_, NOTE>,
    bits: u32,
    values: &[u8],
    packed: &'a mut [u8],
) -> BitWriter<'a> {
    let mut out = BitWriter::new(packed);
    for group in values.as_chunks::<{ 4 * VALUE }>().0 {
        for integers in quantiser.wide(group).as_chunks::<JOIN>().0 {
            let (mut joined, mut joined_bits) = (0, 0);
            for integer in integers {
                joined = joined << bits | integer;
                joined_bits += bits;
            }
            out.push(joined, joined_bits);
        }
    }
    out
}

/// Positions of the eight integers of a group: two in each of four windows of 16 bytes.
struct Layout {
    /// First byte of each window.
    starts: [usize; 4],
    /// For two windows each: the bytes of every integer, swapped to native order.
    bytes: [__m256i; 2],
    /// For two windows each: the bits after every integer.
    spare: [__m256i; 2],
}

impl Layout {
    #[target_feature(enable = "avx2")]
    fn new(bits: u32) -> Self {
        let bits = bits as usize;
        let (mut starts, mut bytes, mut spare) = ([0; 4], [[0x80u8; 8]; GROUP], [0u64; GROUP]);
        for index in 0..GROUP {
            let start = index / 2 * 2 * bits / 8;
            starts[index / 2] = start;
            let (first, skipped) = (index * bits / 8 - start, index * bits % 8);
            // Bytes from the one with the last bit down to the first.
            let used = (skipped + bits).div_ceil(8);
            for (byte, slot) in bytes[index][..used].iter_mut().enumerate() {
                *slot = (first + used - 1 - byte).to_le_bytes()[0];
            }
            spare[index] = (used * 8 - skipped - bits) as u64;
        }
        Self { starts, bytes: cast(bytes), spare: cast(spare) }
    }
}

/// Unpacks values that start on a whole byte of `packed`.
#[target_feature(enable = "avx2")]
pub(super) fn unpack(rule: &Backward, packed: &[u8], values: &mut [u8]) {
    let layout = Layout::new(rule.bits);
    let step = rule.bits as usize;
    let reach = layout.starts[3] + 16;
    // The windows of the last groups may extend past the end.
    let fitting = packed.len().checked_sub(reach).map_or(0, |room| room / step + 1);
    let whole = (values.len() / (GROUP * VALUE)).min(fitting);
    let (groups, rest) = values.split_at_mut(whole * GROUP * VALUE);
    let mask = _mm256_set1_epi64x(i64::MAX >> (63 - rule.bits));
    let anchor = _mm256_set1_pd(ANCHOR);
    let (reference, scale) = (_mm256_set1_pd(rule.reference), _mm256_set1_pd(rule.scale));
    let mut at = 0;
    for group in groups.as_chunks_mut::<{ GROUP * VALUE }>().0 {
        let window = &packed[at..at + reach];
        for (half, out) in group.as_chunks_mut::<{ 4 * VALUE }>().0.iter_mut().enumerate() {
            let (low, high) = (layout.starts[2 * half], layout.starts[2 * half + 1]);
            let (low, high) = (&window[low..low + 16], &window[high..high + 16]);
            let pair = _mm256_set_m128i(pod_read_unaligned(high), pod_read_unaligned(low));
            let swapped = _mm256_shuffle_epi8(pair, layout.bytes[half]);
            let integers = _mm256_and_si256(_mm256_srlv_epi64(swapped, layout.spare[half]), mask);
            let anchored = _mm256_or_si256(integers, _mm256_castpd_si256(anchor));
            let numbers = _mm256_sub_pd(_mm256_castsi256_pd(anchored), anchor);
            let found = _mm256_add_pd(reference, _mm256_mul_pd(scale, numbers));
            out.copy_from_slice(bytes_of(&found));
        }
        at += step;
    }
    samples::unpack(rule, &packed[at..], rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_integer_is_in_its_window() {
        for bits in 1..=MAX_BITS as usize {
            for index in 0..GROUP {
                let start = index / 2 * 2 * bits / 8;
                let (first, end) = (index * bits / 8, ((index + 1) * bits).div_ceil(8));
                assert!(
                    start <= first && end <= start + 16 && end - first <= 8,
                    "{bits} bits, value {index}"
                );
            }
        }
    }
}
