//! Row masks.

/// One bit per row, in 64-bit words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    words: Vec<u64>,
    len: usize,
}

impl Mask {
    /// A mask of equal bits.
    pub fn filled(len: usize, bit: bool) -> Self {
        let mut out = Self { words: vec![if bit { u64::MAX } else { 0 }; len.div_ceil(64)], len };
        out.trim();
        out
    }

    /// A mask of `len` rows. `bit` is called once per row, in order.
    #[inline]
    pub fn from_fn(len: usize, mut bit: impl FnMut(usize) -> bool) -> Self {
        let mut words = Vec::with_capacity(len.div_ceil(64));
        let mut at = 0;
        while at < len {
            let count = (len - at).min(64);
            let mut word = 0;
            for index in 0..count {
                word |= u64::from(bit(at + index)) << index;
            }
            words.push(word);
            at += count;
        }
        Self { words, len }
    }

    /// The bits of a validity bitmap; all set without one.
    pub(crate) fn from_validity(validity: Option<&crate::column::Bitmap>, len: usize) -> Self {
        let Some(validity) = validity else { return Self::filled(len, true) };
        let words = validity
            .as_bytes()
            .chunks(8)
            .map(|bytes| {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                u64::from_le_bytes(word)
            })
            .collect();
        Self { words, len }
    }

    fn trim(&mut self) {
        if !self.len.is_multiple_of(64)
            && let Some(last) = self.words.last_mut()
        {
            *last &= (1 << (self.len % 64)) - 1;
        }
    }

    /// The number of rows.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no rows.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of selected rows.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether a row is selected.
    pub fn get(&self, row: usize) -> bool {
        row < self.len && self.words[row / 64] >> (row % 64) & 1 == 1
    }

    /// Selects a row. A row after the last one is ignored.
    #[inline]
    pub(crate) fn set(&mut self, row: usize) {
        if row < self.len {
            self.words[row / 64] |= 1 << (row % 64);
        }
    }

    /// The first selected row from `row` on.
    pub(crate) fn next_from(&self, row: usize) -> Option<usize> {
        let mut at = row / 64;
        let mut word = *self.words.get(at)? & u64::MAX << (row % 64);
        while word == 0 {
            at += 1;
            word = *self.words.get(at)?;
        }
        Some(at * 64 + word.trailing_zeros() as usize).filter(|row| *row < self.len)
    }

    /// The positions of the selected rows.
    pub fn positions(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(at * 64 + bit)
            })
        })
    }

    /// Some rows.
    pub(crate) fn part(&self, rows: std::ops::Range<usize>) -> Self {
        Self::from_fn(rows.len(), |row| self.get(rows.start + row))
    }

    /// Intersection.
    pub(crate) fn and(mut self, other: &Self) -> Self {
        self.words.iter_mut().zip(&other.words).for_each(|(mine, theirs)| *mine &= theirs);
        self
    }

    /// Union.
    pub(crate) fn or(mut self, other: &Self) -> Self {
        self.words.iter_mut().zip(&other.words).for_each(|(mine, theirs)| *mine |= theirs);
        self
    }

    /// Complement.
    pub(crate) fn not(mut self) -> Self {
        self.words.iter_mut().for_each(|word| *word = !*word);
        self.trim();
        self
    }
}
