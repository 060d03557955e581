//! Samples and parameters for tests.

use super::super::{Szip, flags};

/// Pseudo-random numbers (xorshift).
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 8
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(super) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// Kinds of samples of [`samples`].
pub(super) const KINDS: u64 = 8;

/// The bytes of `count` samples of one kind.
pub(super) fn samples(szip: &Szip, count: usize, kind: u64, dice: &mut Dice) -> Vec<u8> {
    let range = 1u64 << szip.bits();
    let mut walk = dice.below(range);
    let step = dice.pick(&[2, 4, 30, 1000, 1 << 20]);
    let mut raw = Vec::new();
    for index in 0..count as u64 {
        let value = match kind % KINDS {
            0 => dice.next(),
            1 => walk,
            2 => {
                walk = walk.wrapping_add(dice.below(step)).wrapping_sub(step / 2);
                walk
            }
            // Runs of zero blocks of all lengths.
            3 => u64::from(dice.below(300) == 0) * dice.below(5),
            4 => {
                walk ^= u64::from(dice.below(400) == 0) * dice.below(range);
                walk
            }
            // Splits that are equally short.
            5 => (index % 2) * step / 2,
            6 => {
                walk = if dice.below(20) == 0 { dice.pick(&[0, range - 1, range / 2]) } else { walk };
                walk.wrapping_add(dice.below(2))
            }
            _ => dice.below(3),
        };
        let mut value = (value % range).cast_signed();
        if szip.flags() & flags::SIGNED != 0 && value >= range.cast_signed() / 2 {
            value -= range.cast_signed();
        }
        let bytes = szip.sample_bytes();
        if szip.flags() & flags::MSB != 0 {
            raw.extend_from_slice(&value.to_be_bytes()[8 - bytes..]);
        } else {
            raw.extend_from_slice(&value.to_le_bytes()[..bytes]);
        }
    }
    raw
}

/// Some parameters that can be written.
pub(super) fn parameters(dice: &mut Dice) -> Szip {
    let bits = if dice.below(3) == 0 { dice.pick(&[8, 16, 24, 32]) } else { 1 + dice.below(32) as u32 };
    let mut flags = dice.below(16);
    if bits <= 4 && dice.below(2) == 0 {
        flags |= flags::RESTRICTED;
    }
    let mut block = dice.pick(&[8, 16, 32, 64]);
    if dice.below(5) == 0 {
        flags |= flags::ANY_BLOCK;
        block = dice.pick(&[2, 4, 6, 10, 14, 18, 100]);
    }
    let rsi = dice.pick(&[1, 2, 3, 5, 64, 66, 130, 4096]);
    Szip::new(bits, block, rsi, flags).unwrap()
}
