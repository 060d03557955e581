//! AVX2: eight samples at a time.
//!
//! The walks are compiled again with these instructions enabled; the inner loops below are written by hand because the
//! compiler vectorizes none of them: it cannot see that unpacking is a shuffle and two shifts, nor that a running sum is
//! three additions.

use core::arch::x86_64::{
    __m128i, __m256i, _mm_cvtsi32_si128, _mm_cvtsi64_si128, _mm256_add_epi32, _mm256_and_si256,
    _mm256_andnot_si256, _mm256_blend_epi32, _mm256_blendv_epi8, _mm256_castsi128_si256,
    _mm256_castsi256_si128, _mm256_cmpeq_epi32, _mm256_cvtepu8_epi32, _mm256_cvtepu32_epi64,
    _mm256_extract_epi32, _mm256_extracti128_si256, _mm256_inserti128_si256, _mm256_max_epu32,
    _mm256_min_epu32, _mm256_movemask_epi8, _mm256_mullo_epi32, _mm256_or_si256, _mm256_permute2x128_si256,
    _mm256_permutevar8x32_epi32, _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_setr_epi32,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_shuffle_epi32, _mm256_sll_epi32, _mm256_sll_epi64,
    _mm256_slli_epi32, _mm256_slli_si256, _mm256_sllv_epi32, _mm256_srl_epi32, _mm256_srli_epi32,
    _mm256_srli_epi64, _mm256_srlv_epi64, _mm256_sub_epi32, _mm256_xor_si256, _pdep_u64,
};

use super::bits::Writer;
use super::container::Container;
use super::kernel::{Kernel, Portable};
use super::layout::{Fault, Layout};
use super::pack::Packer;
use super::unpack::Scratch;
use super::{pack, skip, unpack};

/// Proof that the CPU has AVX2, BMI and POPCNT; only [`Avx2::new`] creates it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

impl Avx2 {
    /// Detects the CPU features.
    pub(super) fn new() -> Option<Self> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        has.then_some(Self(()))
    }
}

#[allow(unsafe_code, reason = "the functions require detected CPU features")]
impl Kernel for Avx2 {
    fn unpack<C: Container>(
        self,
        layout: &Layout,
        stored: &[u8],
        at: u64,
        scratch: &mut Scratch,
        raw: &mut [u8],
    ) -> Result<u64, Fault> {
        // SAFETY: `self` proves that the CPU has the instructions; the same holds below.
        unsafe { unpack_interval::<C>(self, layout, stored, at, scratch, raw) }
    }

    fn skip(self, layout: &Layout, stored: &[u8], at: u64, blocks: usize) -> Result<u64, Fault> {
        // SAFETY: as above.
        unsafe { skip_interval(self, layout, stored, at, blocks) }
    }

    fn pack<C: Container>(self, packer: &mut Packer, raw: &[u8], samples: usize, writer: &mut Writer) {
        // SAFETY: as above.
        unsafe { pack_interval::<C>(self, packer, raw, samples, writer) }
    }

    #[inline(always)]
    fn join(self, stored: &[u8], at: u64, split: u32, count: usize, values: &mut [u32]) {
        // SAFETY: as above.
        unsafe { join(stored, at, split, count, values) }
    }

    #[inline(always)]
    fn restore<C: Container>(self, layout: &Layout, mapped: &[u32], last: &mut u32, raw: &mut [u8]) {
        // SAFETY: as above.
        unsafe { restore::<C>(layout, mapped, last, raw) }
    }

    #[inline(always)]
    fn store<C: Container>(self, layout: &Layout, values: &[u32], raw: &mut [u8]) {
        // SAFETY: as above.
        unsafe { store::<C>(layout, values, raw) }
    }

    #[inline(always)]
    fn load<C: Container>(self, layout: &Layout, raw: &[u8], samples: &mut [u32]) {
        // SAFETY: as above.
        unsafe { load::<C>(layout, raw, samples) }
    }

    #[inline(always)]
    fn map(self, layout: &Layout, before: u32, samples: &[[u32; 8]], values: &mut [[u32; 8]]) {
        // SAFETY: as above.
        unsafe { map(layout, before, samples, values) }
    }

    #[inline(always)]
    fn quotients(self, values: &[u32; 8], split: u32) -> (u64, u32) {
        // SAFETY: as above.
        unsafe { quotients(values, split) }
    }

    #[inline(always)]
    fn low_pairs(self, values: &[u32; 8], split: u32) -> [u64; 4] {
        // SAFETY: as above.
        unsafe { low_pairs(values, split) }
    }

    #[inline(always)]
    fn widen(self, bytes: u64) -> [u32; 8] {
        // SAFETY: as above.
        unsafe { widen(bytes) }
    }

    #[inline(always)]
    fn nth_one(self, word: u64, nth: u32) -> u32 {
        // SAFETY: as above.
        unsafe { nth_one(word, nth) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn unpack_interval<C: Container>(
    kernel: Avx2,
    layout: &Layout,
    stored: &[u8],
    at: u64,
    scratch: &mut Scratch,
    raw: &mut [u8],
) -> Result<u64, Fault> {
    unpack::interval::<Avx2, C>(kernel, layout, stored, at, scratch, raw)
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn skip_interval(kernel: Avx2, layout: &Layout, stored: &[u8], at: u64, blocks: usize) -> Result<u64, Fault> {
    skip::interval(kernel, layout, stored, at, blocks)
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn pack_interval<C: Container>(
    kernel: Avx2,
    packer: &mut Packer,
    raw: &[u8],
    samples: usize,
    writer: &mut Writer,
) {
    pack::interval::<Avx2, C>(kernel, packer, raw, samples, writer);
}

/// Low bits in groups of eight: eight values of `split` bits are `split` bytes, so every group starts at the same bit of a
/// byte and one shuffle serves them all. Two halves of sixteen bytes hold four values each.
#[target_feature(enable = "avx2")]
#[inline]
fn join(stored: &[u8], at: u64, split: u32, count: usize, values: &mut [u32]) {
    let groups = count.div_ceil(8);
    let first = (at >> 3) as usize;
    let phase = at as u32 & 7;
    let half = phase + 4 * split;
    let half_bytes = (half >> 3) as usize;
    // 25 bits after any bit of a byte are within four bytes.
    if split > 25 || first + (groups - 1) * split as usize + half_bytes + 16 > stored.len() {
        return Portable.join(stored, at, split, count, values);
    }
    let step = split.cast_signed();
    let (low, high) = (phase.cast_signed(), (half & 7).cast_signed());
    let starts = _mm256_setr_epi32(
        low,
        low + step,
        low + 2 * step,
        low + 3 * step,
        high,
        high + step,
        high + 2 * step,
        high + 3 * step,
    );
    let bytes = _mm256_srli_epi32::<3>(starts);
    let order = _mm256_add_epi32(
        _mm256_mullo_epi32(bytes, _mm256_set1_epi32(0x0101_0101)),
        _mm256_set1_epi32(0x0001_0203),
    );
    let shift = _mm256_and_si256(starts, _mm256_set1_epi32(7));
    let down = _mm_cvtsi32_si128(32 - step);
    let up = _mm_cvtsi32_si128(step);
    for (group, out) in values.chunks_exact_mut(8).take(groups).enumerate() {
        let byte = first + group * split as usize;
        let low: __m128i = bytemuck::pod_read_unaligned(&stored[byte..byte + 16]);
        let high: __m128i = bytemuck::pod_read_unaligned(&stored[byte + half_bytes..byte + half_bytes + 16]);
        let both = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high);
        let below = _mm256_srl_epi32(_mm256_sllv_epi32(_mm256_shuffle_epi8(both, order), shift), down);
        put_eight(_mm256_or_si256(_mm256_sll_epi32(eight(out), up), below), out);
    }
}

/// Assumes that every difference is in the range where it is plain and signed, so that a running sum restores the samples,
/// then verifies it: the first difference is checked against a correct sample, and each one that passes makes the next
/// sample correct.
#[target_feature(enable = "avx2")]
#[inline]
fn restore<C: Container>(layout: &Layout, mapped: &[u32], last: &mut u32, raw: &mut [u8]) {
    let max = _mm256_set1_epi32(layout.max.cast_signed());
    let sign = _mm256_set1_epi32(layout.sign.cast_signed());
    let one = _mm256_set1_epi32(1);
    let mut carry = _mm256_set1_epi32(last.cast_signed());
    let groups = mapped.chunks_exact(8);
    let rest = groups.remainder();
    let mut slots = raw.chunks_exact_mut(8 * C::BYTES);
    for (group, out) in groups.zip(&mut slots) {
        let values = eight(group);
        let falls = _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_and_si256(values, one));
        let delta = _mm256_xor_si256(_mm256_srli_epi32::<1>(values), falls);
        let samples = _mm256_add_epi32(running_sum(delta), carry);
        let before = _mm256_sub_epi32(samples, delta);
        let nearer = _mm256_min_epu32(before, _mm256_sub_epi32(max, before));
        let limit = _mm256_slli_epi32::<1>(nearer);
        let fits = _mm256_cmpeq_epi32(_mm256_max_epu32(values, limit), limit);
        if _mm256_movemask_epi8(fits) == -1 {
            carry = _mm256_permutevar8x32_epi32(samples, _mm256_set1_epi32(7));
            put_samples::<C>(_mm256_sub_epi32(samples, sign), out);
        } else {
            let mut from = lowest(carry);
            Portable.restore::<C>(layout, group, &mut from, out);
            carry = _mm256_set1_epi32(from.cast_signed());
        }
    }
    *last = lowest(carry);
    Portable.restore::<C>(layout, rest, last, slots.into_remainder());
}

#[target_feature(enable = "avx2")]
#[inline]
fn store<C: Container>(layout: &Layout, values: &[u32], raw: &mut [u8]) {
    let sign = _mm256_set1_epi32(layout.sign.cast_signed());
    let groups = values.chunks_exact(8);
    let rest = groups.remainder();
    let mut slots = raw.chunks_exact_mut(8 * C::BYTES);
    for (group, out) in groups.zip(&mut slots) {
        put_samples::<C>(_mm256_sub_epi32(_mm256_xor_si256(eight(group), sign), sign), out);
    }
    Portable.store::<C>(layout, rest, slots.into_remainder());
}

#[target_feature(enable = "avx2")]
#[inline]
fn load<C: Container>(layout: &Layout, raw: &[u8], samples: &mut [u32]) {
    let sign = _mm256_set1_epi32(layout.sign.cast_signed());
    let mask = _mm256_set1_epi32(C::MASK.cast_signed());
    let order = const { spread(C::BYTES, C::MSB) };
    let order: __m256i = bytemuck::cast([order, order]);
    let half = 4 * C::BYTES;
    let mut done = 0;
    let (groups, _) = samples.as_chunks_mut::<8>();
    for group in groups {
        // Loads sixteen bytes, however many are used.
        let from = done * C::BYTES;
        let Some(bytes) = raw.get(from..from + half + 16) else { break };
        let low: __m128i = bytemuck::pod_read_unaligned(&bytes[..16]);
        let high: __m128i = bytemuck::pod_read_unaligned(&bytes[half..half + 16]);
        let both = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high);
        let values = _mm256_add_epi32(_mm256_shuffle_epi8(both, order), sign);
        put_eight(_mm256_and_si256(values, mask), group);
        done += 8;
    }
    Portable.load::<C>(layout, &raw[done * C::BYTES..], &mut samples[done..]);
}

#[target_feature(enable = "avx2")]
#[inline]
fn map(layout: &Layout, before: u32, samples: &[[u32; 8]], values: &mut [[u32; 8]]) {
    let max = _mm256_set1_epi32(layout.max.cast_signed());
    let turn = _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6);
    let mut carry = _mm256_set1_epi32(before.cast_signed());
    for (samples, out) in samples.iter().zip(values) {
        // Shifted in registers: a load across preceding stores would stall.
        let next = eight(samples);
        let turned = _mm256_permutevar8x32_epi32(next, turn);
        let last = _mm256_blend_epi32::<1>(turned, carry);
        carry = turned;
        let nearer = _mm256_min_epu32(last, _mm256_sub_epi32(max, last));
        let higher = _mm256_max_epu32(last, next);
        let distance = _mm256_sub_epi32(higher, _mm256_min_epu32(last, next));
        // All ones, which is −1, where the samples do not rise.
        let falls = _mm256_cmpeq_epi32(higher, last);
        let level = _mm256_cmpeq_epi32(last, next);
        let near = _mm256_add_epi32(_mm256_slli_epi32::<1>(distance), _mm256_andnot_si256(level, falls));
        let far = _mm256_add_epi32(nearer, distance);
        let plain = _mm256_cmpeq_epi32(_mm256_min_epu32(distance, nearer), distance);
        put_eight(_mm256_blendv_epi8(far, near, plain), out);
    }
}

/// Every code ends with a one at the running sum of the lengths.
#[target_feature(enable = "avx2")]
#[inline]
fn quotients(values: &[u32; 8], split: u32) -> (u64, u32) {
    let above = _mm256_srl_epi32(eight(values), _mm_cvtsi32_si128(split.cast_signed()));
    let ends = running_sum(_mm256_add_epi32(above, _mm256_set1_epi32(1)));
    let positions = _mm256_sub_epi32(ends, _mm256_set1_epi32(1));
    let top = _mm256_set1_epi64x(i64::MIN);
    let low = _mm256_srlv_epi64(top, _mm256_cvtepu32_epi64(_mm256_castsi256_si128(positions)));
    let high = _mm256_srlv_epi64(top, _mm256_cvtepu32_epi64(_mm256_extracti128_si256::<1>(positions)));
    let words: [u64; 4] = bytemuck::cast(_mm256_or_si256(low, high));
    let bits = _mm256_extract_epi32::<7>(ends).cast_unsigned();
    (words[0] | words[1] | words[2] | words[3], bits)
}

#[target_feature(enable = "avx2")]
#[inline]
fn low_pairs(values: &[u32; 8], split: u32) -> [u64; 4] {
    let mask = _mm256_set1_epi64x((1 << split) - 1);
    let first = _mm256_and_si256(eight(values), mask);
    let second = _mm256_and_si256(_mm256_srli_epi64::<32>(eight(values)), mask);
    bytemuck::cast(_mm256_or_si256(_mm256_sll_epi64(first, _mm_cvtsi32_si128(split.cast_signed())), second))
}

#[target_feature(enable = "avx2")]
#[inline]
fn running_sum(values: __m256i) -> __m256i {
    let pairs = _mm256_add_epi32(values, _mm256_slli_si256::<4>(values));
    let fours = _mm256_add_epi32(pairs, _mm256_slli_si256::<8>(pairs));
    let half = _mm256_shuffle_epi32::<0xff>(_mm256_permute2x128_si256::<0x08>(fours, fours));
    _mm256_add_epi32(fours, half)
}

#[target_feature(enable = "avx2")]
#[inline]
fn widen(bytes: u64) -> [u32; 8] {
    bytemuck::cast(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(bytes.cast_signed())))
}

/// The one is found from below, because the scatter instruction counts from there.
#[target_feature(enable = "bmi2,lzcnt,popcnt")]
#[inline]
fn nth_one(word: u64, nth: u32) -> u32 {
    _pdep_u64(1 << (word.count_ones() - nth), word).leading_zeros() + 1
}

/// Stores the low bytes of eight samples.
#[target_feature(enable = "avx2")]
#[inline]
fn put_samples<C: Container>(samples: __m256i, out: &mut [u8]) {
    let order = const { gather(C::BYTES, C::MSB) };
    let order: __m256i = bytemuck::cast([order, order]);
    let packed = _mm256_shuffle_epi8(samples, order);
    // Each half holds four samples now, at its low end.
    let together = _mm256_permutevar8x32_epi32(packed, bytemuck::cast(const { halves(C::BYTES) }));
    let bytes: [u8; 32] = bytemuck::cast(together);
    out.copy_from_slice(&bytes[..8 * C::BYTES]);
}

/// The order that moves the second half after the first `words` words.
const fn halves(words: usize) -> [u32; 8] {
    let mut order = [0; 8];
    let mut at = 0;
    while at < words {
        order[at] = at as u32;
        order[words + at] = 4 + at as u32;
        at += 1;
    }
    order
}

/// The shuffle that packs four numbers into four samples of `bytes` bytes.
const fn gather(bytes: usize, msb: bool) -> [u8; 16] {
    let mut order = [0x80; 16];
    let mut at = 0;
    while at < 4 * bytes {
        let (sample, byte) = (at / bytes, at % bytes);
        order[at] = (4 * sample + if msb { bytes - 1 - byte } else { byte }) as u8;
        at += 1;
    }
    order
}

/// The shuffle that expands four samples of `bytes` bytes to four numbers.
const fn spread(bytes: usize, msb: bool) -> [u8; 16] {
    let mut order = [0x80; 16];
    let mut at = 0;
    while at < 16 {
        let (sample, byte) = (at / 4, at % 4);
        if byte < bytes {
            order[at] = (bytes * sample + if msb { bytes - 1 - byte } else { byte }) as u8;
        }
        at += 1;
    }
    order
}

#[target_feature(enable = "avx2")]
#[inline]
fn eight(values: &[u32]) -> __m256i {
    bytemuck::pod_read_unaligned(bytemuck::cast_slice(values))
}

#[target_feature(enable = "avx2")]
#[inline]
fn put_eight(values: __m256i, out: &mut [u32]) {
    out.copy_from_slice(&bytemuck::cast::<_, [u32; 8]>(values));
}

#[target_feature(enable = "avx2")]
#[inline]
fn lowest(values: __m256i) -> u32 {
    bytemuck::cast::<_, [u32; 8]>(values)[0]
}
