//! Longest-prefix match of symbols.
//!
//! Symbols of three bytes and more are found by a hash of their first three bytes: the longest of a slot is compared as one
//! word, the others of the slot are chained after it. Shorter ones are found by the first two bytes, without comparison.

use super::{MAX_SYMBOL_BYTES, Symbol};

const SLOT_BITS: u32 = 10;

/// A matched piece of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Match {
    /// The code of the symbol, or the byte itself if there is no symbol.
    pub(super) code: u8,
    /// The number of bytes matched.
    pub(super) len: u8,
    /// Whether there is no symbol.
    pub(super) escaped: bool,
}

impl Match {
    /// A match in 16 bits: the code, the length, and the escape flag.
    fn packed(self) -> u16 {
        u16::from_le_bytes([self.code, self.len | u8::from(self.escaped) << 7])
    }

    #[inline]
    fn unpacked(packed: u16) -> Self {
        let [code, rest] = packed.to_le_bytes();
        Self { code, len: rest & 0x7f, escaped: rest >> 7 != 0 }
    }
}

#[derive(Debug)]
pub(super) struct Matcher {
    /// The first candidate of each hash, 1-based; 0 for none.
    slots: Box<[u8; 1 << SLOT_BITS]>,
    /// The first one is never a match.
    candidates: Box<[Candidate; 256]>,
    /// The symbols of one or two bytes, by the first two bytes of a string.
    short: Vec<u16>,
    /// The symbols of one byte.
    single: [u16; 256],
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    word: u64,
    mask: u64,
    code: u8,
    len: u8,
    /// The next candidate of the slot, which is not longer than this one; 0 for none.
    next: u8,
}

impl Candidate {
    const NONE: Self = Self { word: 1, mask: 0, code: 0, len: u8::MAX, next: 0 };
}

impl Matcher {
    pub(super) fn new(symbols: &[Symbol]) -> Self {
        let mut single = [0; 256];
        for (byte, slot) in (0..=u8::MAX).zip(&mut single) {
            *slot = Match { code: byte, len: 1, escaped: true }.packed();
        }
        let mut long = Vec::with_capacity(symbols.len());
        // In reverse: of equal symbols the first wins.
        let mut coded: Vec<(u8, &Symbol)> = (0..=u8::MAX).zip(symbols).collect();
        coded.reverse();
        for &(code, symbol) in &coded {
            match symbol.len {
                1 => single[usize::from(symbol.word[0])] = Match { code, len: 1, escaped: false }.packed(),
                2 => {}
                len => {
                    let mask = u64::MAX >> (64 - 8 * u32::from(len));
                    let word = u64::from_le_bytes(symbol.word);
                    long.push(Candidate { word, mask, code, len, next: 0 });
                }
            }
        }
        // The low byte of an index is the first byte of the string.
        let mut short = single.repeat(256);
        for (code, symbol) in coded.into_iter().filter(|(_, symbol)| symbol.len == 2) {
            let index = u16::from_le_bytes([symbol.word[0], symbol.word[1]]);
            short[usize::from(index)] = Match { code, len: 2, escaped: false }.packed();
        }
        // Each is chained before the others of its slot: the longest is added last, of equal ones the first symbol.
        long.sort_by_key(|candidate| candidate.len);
        let mut slots = Box::new([0; 1 << SLOT_BITS]);
        let mut candidates = Box::new([Candidate::NONE; 256]);
        for (number, mut candidate) in (1..=u8::MAX).zip(long) {
            let slot = &mut slots[slot(candidate.word)];
            candidate.next = std::mem::replace(slot, number);
            candidates[usize::from(number)] = candidate;
        }
        Self { slots, candidates, short, single }
    }

    /// Splits a string into matches and passes them to `each` in order.
    #[inline]
    pub(super) fn cut(&self, string: &[u8], mut each: impl FnMut(Match)) {
        let mut at = 0;
        while let Some(bytes) = string.get(at..).and_then(<[u8]>::first_chunk) {
            let found = self.find(u64::from_le_bytes(*bytes));
            each(found);
            at += usize::from(found.len);
        }
        // The last bytes are moved to the front of a zeroed word.
        let mut left = string.len() - at;
        let mut word = match string.last_chunk() {
            _ if left == 0 => return,
            Some(bytes) => u64::from_le_bytes(*bytes) >> (8 * (MAX_SYMBOL_BYTES - left)),
            None => short_word(string),
        };
        while left > 0 {
            let found = self.find_last(word, left);
            each(found);
            left -= usize::from(found.len);
            word = word.checked_shr(8 * u32::from(found.len)).unwrap_or(0);
        }
    }

    /// The longest match at the start of `word`.
    #[inline]
    fn find(&self, word: u64) -> Match {
        let mut number = self.slots[slot(word)];
        while number != 0 {
            let candidate = &self.candidates[usize::from(number)];
            if (word ^ candidate.word) & candidate.mask == 0 {
                return Match { code: candidate.code, len: candidate.len, escaped: false };
            }
            number = candidate.next;
        }
        let [first, second, ..] = word.to_le_bytes();
        Match::unpacked(self.short[usize::from(u16::from_le_bytes([first, second]))])
    }

    /// The longest match at the start of `word`, of which only the first `left` bytes, at least one, are valid.
    #[inline]
    fn find_last(&self, word: u64, left: usize) -> Match {
        let mut number = self.slots[slot(word)];
        while number != 0 {
            let candidate = &self.candidates[usize::from(number)];
            if (word ^ candidate.word) & candidate.mask == 0 && usize::from(candidate.len) <= left {
                return Match { code: candidate.code, len: candidate.len, escaped: false };
            }
            number = candidate.next;
        }
        let [first, second, ..] = word.to_le_bytes();
        let packed = if left == 1 {
            self.single[usize::from(first)]
        } else {
            self.short[usize::from(u16::from_le_bytes([first, second]))]
        };
        Match::unpacked(packed)
    }
}

/// Fewer than eight bytes as a word, padded with zeros.
fn short_word(bytes: &[u8]) -> u64 {
    let mut word = [0; MAX_SYMBOL_BYTES];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// The slot of a word that starts with these three bytes.
#[inline]
fn slot(word: u64) -> usize {
    let [first, second, third, ..] = word.to_le_bytes();
    let hash = u32::from_le_bytes([first, second, third, 0]).wrapping_mul(0x9e37_79b1);
    (hash >> (u32::BITS - SLOT_BITS)) as usize
}
