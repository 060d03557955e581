//! Selection of the fastest comparison kernel for this CPU.

#[cfg(target_arch = "x86_64")]
mod avx2;

use super::{Float, lanes};

/// Mask of the numbers of a block (at most 64) whose bits without the sign are above `limit`; the lowest bit is the first.
pub(super) fn above(block: &[u8], float: Float, limit: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if block.len() == lanes::BLOCK * float.lane_width() && is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "the kernel requires AVX2")]
        // SAFETY: the check above ensures that this CPU has AVX2, the only requirement of the kernel.
        return unsafe { avx2::above(block, float.lane_width(), limit) };
    }
    lanes::above(block, float, limit)
}
