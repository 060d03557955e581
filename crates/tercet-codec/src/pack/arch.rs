//! Selection of the fastest packing kernels for this CPU.

#[cfg(target_arch = "x86_64")]
mod avx2;

use super::samples::{self, Backward, Forward};

/// Packs `values` and returns whether all of them are finite. `packed` starts on a whole byte and has room for all.
pub(super) fn pack(rule: &Forward, values: &[u8], packed: &mut [u8]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if rule.bits <= avx2::MAX_BITS && is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "the kernel requires AVX2")]
        // SAFETY: the check above ensures that this CPU has AVX2, the only requirement of the kernel.
        return unsafe { avx2::pack(rule, values, packed) };
    }
    samples::pack(rule, values, packed)
}

/// Packs `values`, a multiple of eight, with +0.0 for non-finite ones, if this CPU has a kernel for it; otherwise does
/// nothing. `seen` gets a byte for every four values, see [`crate::finite::add_masks`].
pub(super) fn pack_noting(rule: &Forward, values: &[u8], packed: &mut [u8], seen: &mut [u8]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if rule.bits <= avx2::MAX_BITS && is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "the kernel requires AVX2")]
        // SAFETY: the check above ensures that this CPU has AVX2, the only requirement of the kernel.
        unsafe {
            avx2::pack_noting(rule, values, packed, seen);
        }
        return true;
    }
    let _ = (rule, values, packed, seen);
    false
}

/// Unpacks values that start on a whole byte of `packed`.
pub(super) fn unpack(rule: &Backward, packed: &[u8], values: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if rule.bits <= avx2::MAX_BITS && is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "the kernel requires AVX2")]
        // SAFETY: the check above ensures that this CPU has AVX2, the only requirement of the kernel.
        return unsafe { avx2::unpack(rule, packed, values) };
    }
    samples::unpack(rule, packed, values);
}
