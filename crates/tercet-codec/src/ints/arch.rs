//! Selection of the fastest kernels for this CPU.
//!
//! Passes over all values are plain loops: with AVX2 the compiler vectorizes them twice as wide, and 64-bit comparisons
//! even wider. Unpacking has a kernel.

#[cfg(target_arch = "x86_64")]
mod avx2;

use super::bitpack::Sink;
use super::frame::Frame;
use super::{Integer, choose, delta, group};

macro_rules! pass {
    ($(#[$doc:meta])* $name:ident -> $out:ty, $plain:path) => {
        $(#[$doc])*
        pub(super) fn $name<T: Integer>(values: &[T]) -> $out {
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                #[target_feature(enable = "avx2")]
                fn with_avx2<T: Integer>(values: &[T]) -> $out {
                    $plain(values)
                }
                #[expect(unsafe_code, reason = "the pass requires AVX2")]
                // SAFETY: the check above ensures that this CPU has AVX2, the only requirement of the pass.
                return unsafe { with_avx2(values) };
            }
            $plain(values)
        }
    };
}

pass! {
    /// The minimum and the maximum.
    extent -> Option<(T, T)>, choose::extent
}

pass! {
    /// The frame of the zigzagged differences.
    frame_of_differences -> Option<Frame>, delta::frame_of
}

pass! {
    /// Length of the group varint stream in bytes.
    group_varint_len -> u64, group::encoded_len
}

/// Unpacks `n` values like [`bitpack::unpack_portable`](super::bitpack::unpack_portable), if this CPU has a kernel for their
/// width; otherwise does nothing.
pub(super) fn unpack(width: u32, packed: &[u8], n: usize, sink: &mut impl Sink) -> bool {
    #[cfg(target_arch = "x86_64")]
    if width <= avx2::MAX_BITS && is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "the kernel requires AVX2")]
        // SAFETY: the check above ensures that this CPU has AVX2, the only requirement of the kernel.
        unsafe {
            avx2::unpack(width, packed, n, sink);
        }
        return true;
    }
    let _ = (width, packed, n, sink);
    false
}
