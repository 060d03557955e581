//! How a table is found.
//!
//! A sample is coded again and again: with no symbols at first, then with those that would have saved the most. Each time
//! the pieces that were met, and what pieces that follow each other make together, are what the next table is chosen from.
//! After a few rounds symbols have grown to what the strings repeat.

use super::matcher::{Match, Matcher};
use super::{MAX_SYMBOL_BYTES, MAX_SYMBOLS, Symbol};

/// The most bytes that are looked at.
const SAMPLE_BYTES: usize = 1 << 15;

/// Long strings are sampled in pieces of this many bytes.
const PIECE: usize = 512;

const ROUNDS: usize = 5;

/// What is met less often is chance.
const LEAST_COUNT: u32 = 3;

/// A byte that has no symbol costs two: even those that save little are worth one.
const BYTE_WEIGHT: u64 = 8;

/// Pieces are numbered: bytes as themselves, symbols behind them.
const PIECES: usize = 512;
const FIRST_SYMBOL: usize = 256;

pub(super) fn symbols<'a>(strings: impl Iterator<Item = &'a [u8]>) -> Vec<Symbol> {
    let sample = sample(&strings.collect::<Vec<_>>());
    let mut symbols = Vec::new();
    let mut counts = Counts::new();
    for round in 1..=ROUNDS {
        counts.count(&sample, &symbols);
        symbols = counts.best(&symbols, round < ROUNDS);
    }
    counts.count(&sample, &symbols);
    let mut index = 0..symbols.len();
    symbols.retain(|_| index.next().is_some_and(|index| counts.used[FIRST_SYMBOL + index]));
    symbols.sort_by(|one, other| one.bytes().cmp(other.bytes()));
    symbols
}

/// Pieces of the strings from all over, the same for the same strings.
fn sample<'a>(strings: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let total: usize = strings.iter().map(|string| string.len()).sum();
    let one_of = total.div_ceil(SAMPLE_BYTES).max(1) as u64;
    let mut left = SAMPLE_BYTES;
    let pieces = strings.iter().flat_map(|string| string.chunks(PIECE));
    let mut sample = Vec::new();
    for (piece, number) in pieces.zip(0u64..) {
        // By a hash of the number and not by the number, which may keep step with the strings.
        let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        if left == 0 || !hash.is_multiple_of(one_of) {
            continue;
        }
        let piece = &piece[..piece.len().min(left)];
        left -= piece.len();
        sample.push(piece);
    }
    sample
}

/// How often pieces were met, and one after the other.
struct Counts {
    single: Vec<u32>,
    pairs: Vec<u32>,
    /// The pieces that a string was cut into; those that were only considered are not.
    used: Vec<bool>,
}

impl Counts {
    fn new() -> Self {
        Self { single: vec![0; PIECES], pairs: vec![0; PIECES * PIECES], used: vec![false; PIECES] }
    }

    fn count(&mut self, sample: &[&[u8]], symbols: &[Symbol]) {
        self.single.fill(0);
        self.pairs.fill(0);
        self.used.fill(false);
        let matcher = Matcher::new(symbols);
        for string in sample {
            let mut before = None;
            matcher.cut(string, |found| {
                let (piece, first_byte) = match found {
                    Match::Symbol { code, .. } => {
                        let code = usize::from(code);
                        (FIRST_SYMBOL + code, usize::from(symbols[code].word[0]))
                    }
                    Match::Byte(byte) => (usize::from(byte), usize::from(byte)),
                };
                self.used[piece] = true;
                self.met(before, piece);
                if found.len() > 1 {
                    // A symbol may also grow by a byte, or be cut down to one.
                    self.met(before, first_byte);
                }
                before = Some(piece);
            });
        }
    }

    fn met(&mut self, before: Option<usize>, piece: usize) {
        self.single[piece] += 1;
        if let Some(before) = before {
            self.pairs[before * PIECES + piece] += 1;
        }
    }

    /// The symbols that save the most, if `with_pairs` also those made of two pieces.
    fn best(&self, symbols: &[Symbol], with_pairs: bool) -> Vec<Symbol> {
        let symbol = |piece: usize| match u8::try_from(piece) {
            Ok(byte) => Symbol { word: [byte, 0, 0, 0, 0, 0, 0, 0], len: 1 },
            Err(_) => symbols[piece - FIRST_SYMBOL],
        };
        let mut candidates = Vec::new();
        for first in 0..FIRST_SYMBOL + symbols.len() {
            if self.single[first] < LEAST_COUNT {
                continue;
            }
            let head = symbol(first);
            let weight = if head.len == 1 { BYTE_WEIGHT } else { u64::from(head.len) };
            candidates.push((head, u64::from(self.single[first]) * weight));
            if !with_pairs || usize::from(head.len) == MAX_SYMBOL_BYTES {
                continue;
            }
            let followers = &self.pairs[first * PIECES..][..FIRST_SYMBOL + symbols.len()];
            for (second, &count) in followers.iter().enumerate() {
                if count >= LEAST_COUNT {
                    let joined = join(head, symbol(second));
                    candidates.push((joined, u64::from(count) * u64::from(joined.len)));
                }
            }
        }
        // The same bytes can be made of several pairs.
        candidates.sort_by_key(|(symbol, _)| (symbol.word, symbol.len));
        candidates.dedup_by(|(later, more), (earlier, gain)| {
            let is_same = later == earlier;
            if is_same {
                *gain += *more;
            }
            is_same
        });
        // Still in the order of their bytes where they save the same: sorting is stable.
        candidates.sort_by_key(|(_, gain)| std::cmp::Reverse(*gain));
        candidates.into_iter().take(MAX_SYMBOLS).map(|(symbol, _)| symbol).collect()
    }
}

/// What both make together, up to the most bytes of a symbol.
fn join(head: Symbol, tail: Symbol) -> Symbol {
    let mut joined = head;
    for byte in tail.bytes().iter().take(MAX_SYMBOL_BYTES - usize::from(head.len)) {
        joined.word[usize::from(joined.len)] = *byte;
        joined.len += 1;
    }
    joined
}
