//! Classification of 64 elements at a time.

use super::{Float, NonFinite, arch};

/// Elements, or numbers, per block: one bit of a word each.
pub(super) const BLOCK: usize = 64;

/// Non-finite positions of a block by kind; the lowest bit is the first element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kinds {
    pub(super) nan: u64,
    pub(super) pos_inf: u64,
    pub(super) neg_inf: u64,
}

impl Kinds {
    /// The positions of all kinds.
    pub(super) fn any(self) -> u64 {
        self.nan | self.pos_inf | self.neg_inf
    }

    /// Without the kinds that are allowed.
    pub(super) fn without(self, nan: bool, inf: bool) -> Self {
        let keep = |word: u64, allowed: bool| if allowed { 0 } else { word };
        Self { nan: keep(self.nan, nan), pos_inf: keep(self.pos_inf, inf), neg_inf: keep(self.neg_inf, inf) }
    }

    /// The first position and its kind.
    pub(super) fn first(self) -> Option<(usize, NonFinite)> {
        let position = self.any().trailing_zeros();
        let at = 1u64.checked_shl(position)?;
        let what = match at {
            at if self.nan & at != 0 => NonFinite::Nan,
            at if self.pos_inf & at != 0 => NonFinite::PosInf,
            _ => NonFinite::NegInf,
        };
        Some((position as usize, what))
    }

    /// Complex elements from their parts: `low` are the parts of the first 32 elements, `high` those of the others.
    fn from_pairs(low: Self, high: Self) -> Self {
        let join = |low, high| join_pairs(low) | join_pairs(high) << 32;
        let nan = join(low.nan, high.nan);
        let pos_inf = join(low.pos_inf, high.pos_inf) & !nan;
        let neg_inf = join(low.neg_inf, high.neg_inf) & !nan & !pos_inf;
        Self { nan, pos_inf, neg_inf }
    }
}

/// One bit for every two bits of `word`, set if one of the two is.
fn join_pairs(word: u64) -> u64 {
    let mut bits = (word | word >> 1) & 0x5555_5555_5555_5555;
    bits = (bits | bits >> 1) & 0x3333_3333_3333_3333;
    bits = (bits | bits >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits >> 4) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits >> 8) & 0x0000_ffff_0000_ffff;
    (bits | bits >> 16) & 0xffff_ffff
}

/// The lower halves of all bytes, joined.
#[expect(clippy::cast_possible_truncation, reason = "all bits are in the lower half")]
pub(super) fn join_halves(bytes: u128) -> u64 {
    let mut bits = bytes & (u128::MAX / 0xff * 0x0f);
    bits = (bits | bits >> 4) & (u128::MAX / 0xffff * 0xff);
    bits = (bits | bits >> 8) & (u128::MAX / 0xffff_ffff * 0xffff);
    bits = (bits | bits >> 16) & (u128::MAX / 0xffff_ffff_ffff_ffff * 0xffff_ffff);
    (bits | bits >> 32) as u64
}

/// Classifies the elements of a block, at most 64.
pub(super) fn kinds(block: &[u8], float: Float) -> Kinds {
    if float.parts() == 1 {
        return kinds_of_numbers(block, float);
    }
    let (low, high) = block.split_at(block.len().min(BLOCK * float.lane_width()));
    Kinds::from_pairs(kinds_of_numbers(low, float), kinds_of_numbers(high, float))
}

fn kinds_of_numbers(block: &[u8], float: Float) -> Kinds {
    let infinity = infinity(float);
    let not_finite = arch::above(block, float, infinity - 1);
    if not_finite == 0 {
        return Kinds::default();
    }
    tell_apart(block, float, not_finite, arch::above(block, float, infinity))
}

/// Splits the non-finite numbers into kinds, given the positions of NaN.
pub(super) fn tell_apart(block: &[u8], float: Float, not_finite: u64, nan: u64) -> Kinds {
    let (infinite, width) = (not_finite & !nan, float.lane_width());
    let (mut neg_inf, mut left) = (0, infinite);
    while left != 0 {
        let position = left.trailing_zeros() as usize;
        // The sign is the highest bit of the last byte.
        neg_inf |= u64::from(block[position * width + width - 1] >> 7) << position;
        left &= left - 1;
    }
    Kinds { nan, pos_inf: infinite & !neg_inf, neg_inf }
}

/// The bits of positive infinity. Larger values, apart from the sign, are NaN.
pub(super) fn infinity(float: Float) -> u64 {
    match float {
        Float::F16 => 0x7c00,
        Float::Bf16 => 0x7f80,
        Float::F32 | Float::C64 => f32::INFINITY.to_bits().into(),
        Float::F64 | Float::C128 => f64::INFINITY.to_bits(),
    }
}

/// Mask of the numbers of a block whose bits without the sign are above `limit`; portable.
pub(super) fn above(block: &[u8], float: Float, limit: u64) -> u64 {
    fn collect<const WIDTH: usize>(block: &[u8], is_above: impl Fn([u8; WIDTH]) -> bool) -> u64 {
        let numbers = block.as_chunks::<WIDTH>().0.iter().enumerate().take(BLOCK);
        numbers.fold(0, |word, (index, bytes)| word | u64::from(is_above(*bytes)) << index)
    }
    match float.lane_width() {
        2 => collect(block, |bytes| u64::from(u16::from_le_bytes(bytes) & (u16::MAX >> 1)) > limit),
        4 => collect(block, |bytes| u64::from(u32::from_le_bytes(bytes) & (u32::MAX >> 1)) > limit),
        _ => collect(block, |bytes| u64::from_le_bytes(bytes) & (u64::MAX >> 1) > limit),
    }
}
