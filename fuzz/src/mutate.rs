//! Deterministic mutation of inputs.

/// Random generator (splitmix64): never changes, so that a seed means the same inputs everywhere.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator for this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 when `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX);
        self.bits().checked_rem(end).and_then(|n| usize::try_from(n).ok()).unwrap_or(0)
    }

    /// A random item.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }
}

/// Maximum size of inputs: larger ones find nothing new and run slowly.
const MAX_LEN: usize = 1 << 20;

/// Numbers near which arithmetic fails: zero, one, signs, powers, ends of ranges.
const NUMBERS: [u64; 18] = [
    0,
    1,
    2,
    7,
    8,
    9,
    0x7f,
    0xff,
    0x100,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fff8,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_fff8,
    0xffff_ffff_ffff_ffff,
];

/// One to four random changes to `base`; `other` is the second parent when two inputs are joined.
pub fn mutate(random: &mut Random, base: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = base.to_vec();
    for _ in 0..=random.below(4) {
        change(random, &mut bytes, other);
    }
    bytes.truncate(MAX_LEN);
    bytes
}

fn change(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    let at = random.below(bytes.len());
    let number = random.pick(&NUMBERS).copied().unwrap_or(0);
    match random.below(9) {
        0 => {
            let bit = random.below(8);
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << bit;
            }
        }
        1 => put(bytes, at, &number.to_le_bytes()[..1]),
        2 => put(bytes, at & !3, &number.to_le_bytes()[..4]),
        3 => put(bytes, at & !7, &number.to_le_bytes()),
        4 => {
            // Off by a little: lengths and offsets that are almost right.
            if let Some(field) = bytes.get(at & !7..).and_then(|tail| tail.first_chunk::<8>()) {
                let near = u64::from_le_bytes(*field).wrapping_add(number % 17).wrapping_sub(8);
                put(bytes, at & !7, &near.to_le_bytes());
            }
        }
        5 => bytes.truncate(at),
        6 => {
            let end = at + random.below(bytes.len() - at);
            bytes.drain(at..end);
        }
        7 => {
            let end = at + random.below(bytes.len() - at);
            let copy = bytes[at..end].to_vec();
            let to = random.below(bytes.len());
            bytes.splice(to..to, copy);
        }
        _ => {
            bytes.truncate(at);
            bytes.extend_from_slice(&other[random.below(other.len())..]);
        }
    }
}

/// Overwrites as much as fits.
fn put(bytes: &mut [u8], at: usize, new: &[u8]) {
    for (byte, new) in bytes.iter_mut().skip(at).zip(new) {
        *byte = *new;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_deterministic() {
        let inputs = |seed| {
            let mut random = Random::new(seed);
            (0..200).map(|_| mutate(&mut random, b"0123456789abcdef", b"other")).collect::<Vec<_>>()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
    }

    #[test]
    fn empty_and_tiny_parents_are_accepted() {
        let mut random = Random::new(7);
        for (base, other) in [(&b""[..], &b""[..]), (b"x", b""), (b"", b"y"), (b"xy", b"z")] {
            for _ in 0..2000 {
                mutate(&mut random, base, other);
            }
        }
    }

    #[test]
    fn input_sizes_are_bounded() {
        let mut random = Random::new(3);
        let mut input = vec![0; MAX_LEN - 1];
        for _ in 0..50 {
            input = mutate(&mut random, &input, &[1; 4096]);
            assert!(input.len() <= MAX_LEN);
        }
    }
}
