//! Damaged copies of bytes.

use std::fmt;
use std::ops::Range;

/// The bit masks applied to every byte: all bits, then each bit alone.
pub const MASKS: [u8; 9] = [0xff, 0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80];

/// One changed byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flip {
    /// The offset of the byte.
    pub offset: usize,
    /// The inverted bits.
    pub mask: u8,
}

impl fmt::Display for Flip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {} ^ {:#04x}", self.offset, self.mask)
    }
}

/// Every proper prefix of the bytes, the empty one first.
pub fn truncations(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    (0..bytes.len()).map(|len| &bytes[..len])
}

/// Every change of one byte, for each of [`MASKS`]: nine per byte.
pub fn all_flips(bytes: &[u8]) -> impl Iterator<Item = Flip> + use<> {
    (0..bytes.len()).flat_map(|offset| MASKS.map(|mask| Flip { offset, mask }))
}

/// Every copy with one changed byte, with the offset of the byte. Each item is a copy: for small files.
pub fn flips(bytes: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>)> {
    all_flips(bytes).map(|flip| {
        let mut copy = bytes.to_vec();
        copy[flip.offset] ^= flip.mask;
        (flip.offset, copy)
    })
}

/// Calls `check` with every change of one byte, in one copy that is changed and restored in place.
pub fn for_each_flip(bytes: &[u8], mut check: impl FnMut(Flip, &[u8])) {
    let mut copy = bytes.to_vec();
    for flip in all_flips(bytes) {
        let _trying = crate::TrialContext(flip.to_string());
        copy[flip.offset] ^= flip.mask;
        check(flip, &copy);
        copy[flip.offset] ^= flip.mask;
    }
}

/// A copy with the bytes at `offset` overwritten by `with`.
///
/// # Panics
///
/// When `with` passes the end.
pub fn patched(bytes: &[u8], offset: usize, with: &[u8]) -> Vec<u8> {
    let mut copy = bytes.to_vec();
    copy[offset..offset + with.len()].copy_from_slice(with);
    copy
}

/// A copy in which `with` replaces `range`: removes, inserts or replaces.
///
/// # Panics
///
/// When the range passes the end.
pub fn spliced(bytes: &[u8], range: Range<usize>, with: &[u8]) -> Vec<u8> {
    [&bytes[..range.start], with, &bytes[range.end..]].concat()
}

/// A copy with `range` set to zero, like a lost disk block.
///
/// # Panics
///
/// When the range passes the end.
pub fn zeroed(bytes: &[u8], range: Range<usize>) -> Vec<u8> {
    let mut copy = bytes.to_vec();
    copy[range].fill(0);
    copy
}

/// A copy with the bytes of two ranges exchanged; the ranges may differ in length.
///
/// # Panics
///
/// When the second range does not start after the first, or passes the end.
pub fn swapped(bytes: &[u8], first: Range<usize>, second: Range<usize>) -> Vec<u8> {
    let between = &bytes[first.end..second.start];
    [&bytes[..first.start], &bytes[second.clone()], between, &bytes[first], &bytes[second.end..]].concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_truncation_is_a_shorter_prefix() {
        let lengths: Vec<usize> = truncations(b"abc").map(<[u8]>::len).collect();
        assert_eq!(lengths, [0, 1, 2]);
        assert!(truncations(b"abc").all(|cut| b"abc".starts_with(cut)));
    }

    #[test]
    fn flips_change_one_byte_and_are_all_different() {
        let all: BTreeSet<Vec<u8>> = flips(b"abc").map(|(_, bytes)| bytes).collect();
        assert_eq!(all.len(), 27);
        for (offset, bytes) in flips(b"abc") {
            let changed: Vec<usize> = (0..3).filter(|&i| bytes[i] != b"abc"[i]).collect();
            assert_eq!(changed, [offset]);
        }
    }

    #[test]
    fn flips_in_place_are_the_same_flips() {
        let mut in_place = Vec::new();
        for_each_flip(b"abc", |flip, bytes| in_place.push((flip.offset, bytes.to_vec())));
        assert!(in_place.into_iter().eq(flips(b"abc")));
    }

    #[test]
    fn patches_splices_and_swaps_apply_at_their_offsets() {
        assert_eq!(patched(b"abcdef", 2, b"XY"), b"abXYef");
        assert_eq!(spliced(b"abcdef", 1..3, b""), b"adef");
        assert_eq!(spliced(b"abcdef", 3..3, b"--"), b"abc--def");
        assert_eq!(zeroed(b"abcdef", 1..3), b"a\0\0def");
        assert_eq!(swapped(b"abcdef", 0..1, 3..5), b"debcaf");
    }
}
