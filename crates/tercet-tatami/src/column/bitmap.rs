//! Bitmaps: one bit per row.

/// Bits, least significant first, as in the format and in Arrow. Unused high bits are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bitmap {
    bytes: Vec<u8>,
    len: usize,
}

impl Bitmap {
    /// An empty bitmap.
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), len: 0 }
    }

    /// A bitmap of equal bits.
    pub fn filled(len: usize, bit: bool) -> Self {
        let mut out = Self::new();
        out.push_many(bit, len);
        out
    }

    /// The bits of bytes; `None` if there are too few bytes or an unused bit is set.
    pub fn from_bytes(bytes: &[u8], len: usize) -> Option<Self> {
        if bytes.len() != len.div_ceil(8) {
            return None;
        }
        if !len.is_multiple_of(8) && bytes.last().is_some_and(|last| last >> (len % 8) != 0) {
            return None;
        }
        Some(Self { bytes: bytes.to_vec(), len })
    }

    /// The bits as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of bits.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bits.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// One bit; false past the end.
    pub fn get(&self, index: usize) -> bool {
        index < self.len && self.bytes[index / 8] >> (index % 8) & 1 == 1
    }

    /// Appends a bit.
    pub fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(8) {
            self.bytes.push(0);
        }
        if bit {
            self.bytes[self.len / 8] |= 1 << (self.len % 8);
        }
        self.len += 1;
    }

    /// Sets one bit; nothing past the end.
    pub fn set(&mut self, index: usize, bit: bool) {
        if index < self.len {
            let mask = 1 << (index % 8);
            let byte = &mut self.bytes[index / 8];
            *byte = if bit { *byte | mask } else { *byte & !mask };
        }
    }

    /// Appends equal bits.
    pub fn push_many(&mut self, bit: bool, count: usize) {
        let end = self.len + count;
        while self.len < end && !self.len.is_multiple_of(8) {
            self.push(bit);
        }
        let full_bytes = (end - self.len) / 8;
        self.bytes.resize(self.bytes.len() + full_bytes, if bit { 0xff } else { 0 });
        self.len += full_bytes * 8;
        while self.len < end {
            self.push(bit);
        }
    }

    /// Appends bits `from..to` of `other`.
    pub fn extend_from(&mut self, other: &Self, from: usize, to: usize) {
        if self.len.is_multiple_of(8) && from.is_multiple_of(8) {
            self.bytes.extend_from_slice(&other.bytes[from / 8..to.div_ceil(8)]);
            self.len += to - from;
            if !self.len.is_multiple_of(8)
                && let Some(last) = self.bytes.last_mut()
            {
                *last &= (1 << (self.len % 8)) - 1;
            }
            return;
        }
        for index in from..to {
            self.push(other.get(index));
        }
    }

    /// The number of set bits.
    pub fn ones(&self) -> usize {
        self.bytes.iter().map(|byte| byte.count_ones() as usize).sum()
    }

    /// The number of set bits in `from..to`.
    pub fn ones_in(&self, from: usize, to: usize) -> usize {
        let (first, last) = (from.div_ceil(8).min(to / 8), to / 8);
        if from / 8 == to / 8 || first * 8 < from {
            return (from..to).filter(|index| self.get(*index)).count();
        }
        let head = (from..first * 8).filter(|index| self.get(*index)).count();
        let tail = (last * 8..to).filter(|index| self.get(*index)).count();
        let middle: usize = self.bytes[first..last].iter().map(|byte| byte.count_ones() as usize).sum();
        head + middle + tail
    }

    /// The positions of the set bits.
    pub fn positions(&self) -> impl Iterator<Item = usize> + '_ {
        self.bytes.iter().enumerate().flat_map(|(at, byte)| {
            let mut left = *byte;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.wrapping_sub(1);
                (bit < 8).then_some(at * 8 + bit)
            })
        })
    }
}

impl FromIterator<bool> for Bitmap {
    fn from_iter<I: IntoIterator<Item = bool>>(bits: I) -> Self {
        let mut out = Self::new();
        bits.into_iter().for_each(|bit| out.push(bit));
        out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bitmaps_equal_vectors_of_bools(
            bits in prop::collection::vec(any::<bool>(), 0..100),
            more in 0usize..40,
            cut in any::<(prop::sample::Index, prop::sample::Index)>(),
        ) {
            let mut map: Bitmap = bits.iter().copied().collect();
            let mut list = bits.clone();
            map.push_many(true, more);
            list.extend(std::iter::repeat_n(true, more));
            let (a, b) = (cut.0.index(list.len() + 1), cut.1.index(list.len() + 1));
            let (from, to) = (a.min(b), a.max(b));
            prop_assert_eq!(map.ones_in(from, to), list[from..to].iter().filter(|bit| **bit).count());
            let copy = map.clone();
            map.extend_from(&copy, from, to);
            list.extend_from_within(from..to);
            prop_assert_eq!(map.len(), list.len());
            prop_assert!(list.iter().enumerate().all(|(at, bit)| map.get(at) == *bit));
            prop_assert_eq!(map.ones(), list.iter().filter(|bit| **bit).count());
            let set: Vec<usize> = (0..list.len()).filter(|at| list[*at]).collect();
            prop_assert_eq!(map.positions().collect::<Vec<_>>(), set);
            prop_assert_eq!(Bitmap::from_bytes(map.as_bytes(), map.len()), Some(map));
        }
    }

    #[test]
    fn set_unused_bits_are_rejected() {
        assert_eq!(Bitmap::from_bytes(&[0b1000], 3), None);
        assert_eq!(Bitmap::from_bytes(&[0, 0], 8), None);
        assert!(Bitmap::from_bytes(&[0b111], 3).is_some());
    }
}
