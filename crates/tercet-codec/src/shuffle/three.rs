//! Elements of three bytes, the result of packing to 24 bits: sixteen at a time on CPUs with SSSE3.

use super::Planes;
#[cfg(target_arch = "x86_64")]
use super::arch::ssse3::move_bytes;

/// Source byte of every byte of three planes, as `[plane][vector][position]`.
#[cfg(target_arch = "x86_64")]
const SPLIT: [[[u8; 16]; 3]; 3] = {
    // Positions without a source become zero.
    let mut moves = [[[0x80; 16]; 3]; 3];
    let mut byte = 0;
    while byte < 48 {
        moves[byte % 3][byte / 16][byte / 3] = (byte % 16).to_le_bytes()[0];
        byte += 1;
    }
    moves
};

/// Source byte of every byte of three vectors of elements, as `[vector][plane][position]`.
#[cfg(target_arch = "x86_64")]
const JOIN: [[[u8; 16]; 3]; 3] = {
    let mut moves = [[[0x80; 16]; 3]; 3];
    let mut byte = 0;
    while byte < 48 {
        moves[byte / 16][byte % 3][byte % 16] = (byte / 3).to_le_bytes()[0];
        byte += 1;
    }
    moves
};

/// Shuffles elements to three planes and returns the number of elements done.
pub(super) fn split(raw: &[u8], planes: &mut [&mut [u8]]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if let [a, b, c] = planes
        && is_x86_feature_detected!("ssse3")
    {
        let blocks = raw.as_chunks::<16>().0.as_chunks::<3>().0;
        let planes = a.as_chunks_mut().0.iter_mut().zip(b.as_chunks_mut().0).zip(c.as_chunks_mut().0);
        for ([one, two, three], ((a, b), c)) in blocks.iter().zip(planes) {
            #[expect(unsafe_code, reason = "the kernel requires SSSE3")]
            // SAFETY: SSSE3, the only requirement of the kernel, was detected above.
            unsafe {
                move_bytes([one, two, three], [a, b, c], &SPLIT);
            }
        }
        return blocks.len() * 16;
    }
    let _ = (raw, planes);
    0
}

/// Unshuffles elements from three planes and returns the number of elements done.
pub(super) fn join(planes: &Planes<'_>, out: &mut [u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("ssse3") {
        let blocks = out.as_chunks_mut::<16>().0.as_chunks_mut::<3>().0;
        let done = blocks.len() * 16;
        let [a, b, c] = [0, 1, 2].map(|byte| planes.plane(byte, done).as_chunks().0);
        for ([one, two, three], ((a, b), c)) in blocks.iter_mut().zip(a.iter().zip(b).zip(c)) {
            #[expect(unsafe_code, reason = "the kernel requires SSSE3")]
            // SAFETY: SSSE3, the only requirement of the kernel, was detected above.
            unsafe {
                move_bytes([a, b, c], [one, two, three], &JOIN);
            }
        }
        return done;
    }
    let _ = (planes, out);
    0
}
