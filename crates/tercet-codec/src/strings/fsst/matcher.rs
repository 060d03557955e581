//! The longest symbol that a string begins with.
//!
//! Symbols of two bytes and more are found by their first two: a small table of hashes gives those that may fit, the
//! longest first, and each is compared as one word.

use super::{MAX_SYMBOL_BYTES, Symbol};

const SLOT_BITS: u32 = 11;

/// What a piece of a string becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    Symbol {
        code: u8,
        len: u8,
    },
    /// No symbol begins with this byte.
    Byte(u8),
}

#[derive(Debug)]
pub(super) struct Matcher {
    /// Where the candidates of each hash begin; the next slot begins where they end.
    slots: Box<[u16; (1 << SLOT_BITS) + 1]>,
    candidates: Vec<Candidate>,
    /// The symbols of one byte.
    single: [Match; 256],
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    word: u64,
    mask: u64,
    code: u8,
    len: u8,
}

impl Matcher {
    pub(super) fn new(symbols: &[Symbol]) -> Self {
        let mut single = [Match::Byte(0); 256];
        for (byte, place) in (0..=u8::MAX).zip(&mut single) {
            *place = Match::Byte(byte);
        }
        let mut candidates = Vec::with_capacity(symbols.len());
        for (code, symbol) in (0..=u8::MAX).zip(symbols) {
            let len = symbol.len;
            if len == 1 {
                single[usize::from(symbol.word[0])] = Match::Symbol { code, len };
            } else {
                let mask = u64::MAX >> (64 - 8 * u32::from(len));
                candidates.push(Candidate { word: u64::from_le_bytes(symbol.word), mask, code, len });
            }
        }
        candidates.sort_by_key(|candidate| (slot(candidate.word), std::cmp::Reverse(candidate.len)));
        let mut slots = Box::new([0; (1 << SLOT_BITS) + 1]);
        for candidate in &candidates {
            slots[slot(candidate.word) + 1] += 1;
        }
        for index in 1..slots.len() {
            slots[index] += slots[index - 1];
        }
        Self { slots, candidates, single }
    }

    /// Cuts a string into what `each` gets, from the first byte to the last.
    pub(super) fn cut(&self, string: &[u8], mut each: impl FnMut(Match)) {
        let mut rest = string;
        while let Some(bytes) = rest.first_chunk() {
            let found = self.find(u64::from_le_bytes(*bytes), MAX_SYMBOL_BYTES);
            each(found);
            rest = &rest[found.len()..];
        }
        while !rest.is_empty() {
            let mut bytes = [0; MAX_SYMBOL_BYTES];
            bytes[..rest.len()].copy_from_slice(rest);
            let found = self.find(u64::from_le_bytes(bytes), rest.len());
            each(found);
            rest = &rest[found.len()..];
        }
    }

    /// The longest match at the beginning of `word`, of whose bytes only the first `len`, at least one, are there.
    #[inline]
    fn find(&self, word: u64, len: usize) -> Match {
        let slot = slot(word);
        let (start, end) = (usize::from(self.slots[slot]), usize::from(self.slots[slot + 1]));
        for candidate in &self.candidates[start..end] {
            if (word ^ candidate.word) & candidate.mask == 0 && usize::from(candidate.len) <= len {
                return Match::Symbol { code: candidate.code, len: candidate.len };
            }
        }
        self.single[usize::from(word.to_le_bytes()[0])]
    }
}

impl Match {
    /// The bytes of the string.
    #[inline]
    pub(super) fn len(self) -> usize {
        match self {
            Self::Symbol { len, .. } => usize::from(len),
            Self::Byte(_) => 1,
        }
    }
}

/// The slot of a word that begins with these two bytes.
#[inline]
fn slot(word: u64) -> usize {
    let [low, high, ..] = word.to_le_bytes();
    let hash = u32::from(u16::from_le_bytes([low, high])).wrapping_mul(0x9e37_79b1);
    (hash >> (u32::BITS - SLOT_BITS)) as usize
}
