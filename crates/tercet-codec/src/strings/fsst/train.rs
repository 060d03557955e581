//! Training of symbol tables.
//!
//! A sample is encoded repeatedly: first without symbols, then with those that would have saved the most bytes. Each round
//! chooses the next table from the symbols used and from the concatenations of symbols that follow each other. After a few
//! rounds the symbols have grown to the repetitions of the strings.

use super::matcher::Matcher;
use super::{MAX_SYMBOL_BYTES, MAX_SYMBOLS, Symbol};

/// Maximum sample size in bytes.
const SAMPLE_BYTES: usize = 1 << 15;
/// Minimum sample size in bytes; in between, a fraction of the input.
const MIN_SAMPLE_BYTES: usize = 1 << 13;
const SAMPLED_PART: usize = 16;

/// Long strings are sampled in pieces of this length.
const PIECE: usize = 512;

const ROUNDS: usize = 5;
/// First round that uses all of the sample.
const FULL_ROUND: usize = 4;

/// Pieces below this count are ignored.
const MIN_COUNT: u64 = 3;

/// A byte without symbol costs two: even symbols of one byte are worth their code.
const BYTE_WEIGHT: u64 = 8;

/// Number of pieces: bytes, then symbols.
const PIECES: usize = 512;
const FIRST_SYMBOL: usize = 256;

pub(super) fn symbols<'a>(strings: impl Iterator<Item = &'a [u8]>) -> Vec<Symbol> {
    let sample = sample(&strings.collect::<Vec<_>>());
    let mut symbols = Vec::new();
    let mut counts = Counts::new();
    for round in 1..=ROUNDS {
        // The first tables are approximations anyway.
        let some = (sample.len() * round.min(FULL_ROUND)).div_ceil(FULL_ROUND);
        counts.count(&sample[..some], &symbols);
        symbols = counts.best(&symbols, round < ROUNDS);
    }
    counts.count(&sample, &symbols);
    let mut index = 0..symbols.len();
    symbols.retain(|_| index.next().is_some_and(|index| counts.used[FIRST_SYMBOL + index]));
    symbols.sort_by(|one, other| one.bytes().cmp(other.bytes()));
    symbols
}

/// Pieces from all over the strings; deterministic.
fn sample<'a>(strings: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let total: usize = strings.iter().map(|string| string.len()).sum();
    let most = (total / SAMPLED_PART).clamp(MIN_SAMPLE_BYTES, SAMPLE_BYTES);
    let one_of = total.div_ceil(most).max(1) as u64;
    let mut left = most;
    let pieces = strings.iter().flat_map(|string| string.chunks(PIECE));
    let mut sample = Vec::new();
    for (piece, number) in pieces.zip(0u64..) {
        // Selected by a hash of the number: a fixed stride may be in step with the strings.
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

/// Counts of pieces and of pairs of pieces. A sample has at most as many pieces as bytes.
struct Counts {
    single: Vec<u16>,
    pairs: Vec<u16>,
    /// The non-zero positions of `pairs`.
    met: Vec<u32>,
    /// The pieces of the string, without candidates that were not used.
    used: Vec<bool>,
}

impl Counts {
    fn new() -> Self {
        Self {
            single: vec![0; PIECES],
            pairs: vec![0; PIECES * PIECES],
            met: Vec::new(),
            used: vec![false; PIECES],
        }
    }

    fn count(&mut self, sample: &[&[u8]], symbols: &[Symbol]) {
        self.single.fill(0);
        self.used.fill(false);
        for pair in self.met.drain(..) {
            self.pairs[pair as usize] = 0;
        }
        let matcher = Matcher::new(symbols);
        for string in sample {
            let mut before = None;
            matcher.cut(string, |found| {
                let (piece, first_byte) = if found.escaped {
                    (usize::from(found.code), found.code)
                } else {
                    let code = usize::from(found.code);
                    (FIRST_SYMBOL + code, symbols[code].word[0])
                };
                self.used[piece] = true;
                self.meet(before, piece);
                if found.len > 1 {
                    // A symbol may also grow by one byte, or shrink to one.
                    self.meet(before, usize::from(first_byte));
                }
                before = Some(piece);
            });
        }
    }

    fn meet(&mut self, before: Option<usize>, piece: usize) {
        self.single[piece] += 1;
        if let Some(before) = before {
            let pair = before * PIECES + piece;
            let count = &mut self.pairs[pair];
            if *count == 0 {
                self.met.push(u32::try_from(pair).unwrap_or(u32::MAX));
            }
            *count += 1;
        }
    }

    /// The symbols that save the most bytes; with `with_pairs` also concatenations of two pieces.
    fn best(&self, symbols: &[Symbol], with_pairs: bool) -> Vec<Symbol> {
        let symbol = |piece: usize| match u8::try_from(piece) {
            Ok(byte) => Symbol { word: [byte, 0, 0, 0, 0, 0, 0, 0], len: 1 },
            Err(_) => symbols[piece - FIRST_SYMBOL],
        };
        let mut gains = Gains::new(FIRST_SYMBOL + self.met.len());
        for piece in 0..FIRST_SYMBOL + symbols.len() {
            let count = u64::from(self.single[piece]);
            if count >= MIN_COUNT {
                let symbol = symbol(piece);
                gains.add(symbol, count * if symbol.len == 1 { BYTE_WEIGHT } else { u64::from(symbol.len) });
            }
        }
        for pair in self.met.iter().filter(|_| with_pairs).map(|pair| *pair as usize) {
            let (first, second) = (pair / PIECES, pair % PIECES);
            let count = u64::from(self.pairs[pair]);
            let head = symbol(first);
            let rare = count < MIN_COUNT || u64::from(self.single[first]) < MIN_COUNT;
            if !rare && usize::from(head.len) < MAX_SYMBOL_BYTES {
                let joined = join(head, symbol(second));
                gains.add(joined, count * u64::from(joined.len));
            }
        }
        gains.best()
    }
}

/// Symbols and their savings. Several pairs can yield the same bytes.
struct Gains {
    found: Vec<(Symbol, u64)>,
    /// Open addressing: the number of a symbol, 1-based, or 0 for an empty slot. At most half full.
    slots: Vec<u32>,
}

impl Gains {
    fn new(most: usize) -> Self {
        Self { found: Vec::new(), slots: vec![0; (most * 2).next_power_of_two()] }
    }

    fn add(&mut self, symbol: Symbol, gain: u64) {
        let last = self.slots.len() - 1;
        let hash =
            (u64::from_le_bytes(symbol.word) ^ u64::from(symbol.len)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut slot = usize::try_from(hash >> 40).unwrap_or(0) & last;
        while let Some(number) = (self.slots[slot] as usize).checked_sub(1) {
            if self.found[number].0 == symbol {
                self.found[number].1 += gain;
                return;
            }
            slot = (slot + 1) & last;
        }
        self.found.push((symbol, gain));
        self.slots[slot] = u32::try_from(self.found.len()).unwrap_or(u32::MAX);
    }

    /// The symbols with the largest savings; ties are in the order of their bytes.
    fn best(mut self) -> Vec<Symbol> {
        let key = |(symbol, gain): &(Symbol, u64)| (std::cmp::Reverse(*gain), symbol.word, symbol.len);
        if self.found.len() > MAX_SYMBOLS {
            self.found.select_nth_unstable_by_key(MAX_SYMBOLS, key);
            self.found.truncate(MAX_SYMBOLS);
        }
        self.found.sort_unstable_by_key(key);
        self.found.into_iter().map(|(symbol, _)| symbol).collect()
    }
}

/// The concatenation of both, up to the maximum length of a symbol.
fn join(head: Symbol, tail: Symbol) -> Symbol {
    let len = (head.len + tail.len).min(8);
    let word = u64::from_le_bytes(head.word) | u64::from_le_bytes(tail.word) << (8 * u32::from(head.len));
    Symbol { word: word.to_le_bytes(), len }
}
