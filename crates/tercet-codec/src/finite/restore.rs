//! Canonical non-finite patterns, restored by mask.

use rayon::prelude::*;

use super::lanes::{BLOCK, infinity};
use super::{Float, NonFinite, PIECE, is_worth_splitting};

/// Writes the canonical pattern of `what` over every element of `bytes` whose bit is set: the first element has bit
/// `first` of `mask`. Elements outside the mask, and bytes after the last whole element, are unchanged.
pub fn restore(bytes: &mut [u8], float: Float, what: NonFinite, mask: &[u8], first: u64) {
    let pattern = pattern(float, what);
    let piece = |(index, piece): (usize, &mut [u8])| {
        if let Some(first) = first.checked_add((index * PIECE) as u64) {
            restore_piece(piece, float, pattern, mask, first);
        }
    };
    if is_worth_splitting(bytes) {
        bytes.par_chunks_mut(PIECE * float.width()).enumerate().for_each(piece);
    } else {
        bytes.chunks_mut(PIECE * float.width()).enumerate().for_each(piece);
    }
}

/// The bits of a non-finite number.
pub(crate) fn pattern(float: Float, what: NonFinite) -> u64 {
    let infinity = infinity(float);
    let sign = 1 << (float.lane_width() * 8 - 1);
    match what {
        // The highest bit of the fraction is the one below the exponent.
        NonFinite::Nan => infinity | (infinity & infinity.wrapping_neg()) >> 1,
        NonFinite::PosInf => infinity,
        NonFinite::NegInf => infinity | sign,
    }
}

/// Single-threaded version.
pub(crate) fn restore_piece(piece: &mut [u8], float: Float, pattern: u64, mask: &[u8], first: u64) {
    for (index, block) in piece.chunks_mut(BLOCK * float.width()).enumerate() {
        match first.checked_add((index * BLOCK) as u64).and_then(|at| word_at(mask, at)) {
            Some(0) => {}
            Some(word) => write(block, float, word.reverse_bits(), pattern),
            None => return,
        }
    }
}

/// The 64 bits from bit `at` on, the first as highest bit; zeros past the end of the mask. `None` if `at` is past the
/// end.
fn word_at(mask: &[u8], at: u64) -> Option<u64> {
    let (byte, skip) = (usize::try_from(at / 8).ok()?, (at % 8) as u32);
    let rest = mask.get(byte..).filter(|rest| !rest.is_empty())?;
    let word = match rest.first_chunk() {
        Some(word) => u64::from_be_bytes(*word),
        None => rest.iter().rev().fold(0, |word, &byte| word >> 8 | u64::from(byte) << 56),
    };
    let next = rest.get(8).map_or(0, |&byte| u64::from(byte) << skip >> 8);
    Some(word << skip | next)
}

/// Writes `pattern` into all numbers of the elements whose bit in `word` is set; the lowest bit is the first element.
pub(super) fn write(block: &mut [u8], float: Float, word: u64, pattern: u64) {
    #[expect(clippy::cast_possible_truncation, reason = "patterns are as wide as their numbers")]
    match float {
        Float::F16 | Float::Bf16 => spread(block, word, (pattern as u16).to_le_bytes()),
        Float::F32 => spread(block, word, (pattern as u32).to_le_bytes()),
        Float::F64 => spread(block, word, pattern.to_le_bytes()),
        Float::C64 => spread(block, word, (pattern << 32 | pattern).to_le_bytes()),
        Float::C128 => spread(block, word, (u128::from(pattern) << 64 | u128::from(pattern)).to_le_bytes()),
    }
}

fn spread<const WIDTH: usize>(block: &mut [u8], word: u64, pattern: [u8; WIDTH]) {
    let elements = block.as_chunks_mut::<WIDTH>().0;
    if word == u64::MAX {
        elements.fill(pattern);
        return;
    }
    let mut left = word;
    while left != 0 {
        // Four at a time: their number is hard to predict, and writing the last one again costs less than a branch
        // misprediction.
        for turn in 0..4 {
            match elements.get_mut(left.trailing_zeros() as usize) {
                Some(element) => *element = pattern,
                None => return,
            }
            let rest = left & (left - 1);
            left = if rest == 0 && turn < 3 { left } else { rest };
        }
    }
}
