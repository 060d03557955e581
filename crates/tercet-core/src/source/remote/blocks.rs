//! Blocks of a file that are kept in memory.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

use crate::Span;

/// Blocks that are read ahead at first.
const FIRST_AHEAD: u64 = 2;
/// The most that is read ahead.
const MOST_AHEAD: u64 = 1 << 20;

/// Blocks of equal size at multiples of it, the least recently used of which make place for new ones.
#[derive(Debug)]
pub(super) struct Blocks {
    size: u64,
    /// How many are kept.
    most: usize,
    held: HashMap<u64, Held>,
    /// The blocks by when they were used last.
    by_use: BTreeMap<u64, u64>,
    uses: u64,
    /// Blocks that are read ahead of what is asked for.
    ahead: u64,
    /// The block behind the last one that was fetched.
    next: u64,
}

#[derive(Debug)]
struct Held {
    bytes: Bytes,
    used: u64,
}

impl Blocks {
    /// Blocks of `size` bytes, of which `bytes` are kept in all.
    pub(super) fn new(size: u64, bytes: u64) -> Self {
        let size = size.max(1);
        let most = usize::try_from(bytes / size).unwrap_or(usize::MAX);
        Self { size, most, held: HashMap::new(), by_use: BTreeMap::new(), uses: 0, ahead: 0, next: 0 }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Whether nothing is kept: then reads are not rounded out to blocks either.
    pub(super) fn is_off(&self) -> bool {
        self.most == 0
    }

    pub(super) fn get(&mut self, number: u64) -> Option<Bytes> {
        let held = self.held.get_mut(&number)?;
        self.uses += 1;
        self.by_use.remove(&held.used);
        self.by_use.insert(self.uses, number);
        held.used = self.uses;
        Some(held.bytes.clone())
    }

    pub(super) fn has(&self, number: u64) -> bool {
        self.held.contains_key(&number)
    }

    /// Keeps the blocks that lie wholly inside bytes that were fetched from `start` on. `len` is the length of the file,
    /// whose last block may be shorter.
    pub(super) fn keep(&mut self, start: u64, bytes: &Bytes, len: u64) {
        let end = start + bytes.len() as u64;
        for number in start.div_ceil(self.size)..end.div_ceil(self.size) {
            let from = number * self.size;
            let to = (from + self.size).min(len);
            let range =
                Span::between(from.saturating_sub(start), to.saturating_sub(start)).and_then(Span::to_range);
            let Some(block) = range.and_then(|range| bytes.get(range)) else { continue };
            // A copy, so that a small block does not keep the large answer it came with.
            self.put(number, Bytes::copy_from_slice(block));
        }
    }

    fn put(&mut self, number: u64, bytes: Bytes) {
        if self.most == 0 {
            return;
        }
        self.uses += 1;
        if let Some(old) = self.held.insert(number, Held { bytes, used: self.uses }) {
            self.by_use.remove(&old.used);
        }
        self.by_use.insert(self.uses, number);
        while self.held.len() > self.most {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            self.held.remove(&oldest);
        }
    }

    /// How many blocks to fetch behind `missing`, a run of blocks. Who reads on where the last fetch ended gets twice as
    /// many each time; who jumps gets none.
    pub(super) fn read_ahead(&mut self, first: u64, end: u64) -> u64 {
        let most = (MOST_AHEAD / self.size).min(self.most as u64 / 4);
        self.ahead = if first == self.next { (self.ahead * 2).max(FIRST_AHEAD).min(most) } else { 0 };
        self.next = end + self.ahead;
        self.ahead
    }

    /// Says that blocks up to `next` were fetched, so that who reads on there is known to read on.
    pub(super) fn go_on_from(&mut self, next: u64) {
        self.next = next;
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.held.values().map(|held| held.bytes.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut blocks = Blocks::new(4, 12);
        let bytes = Bytes::from_static(b"aaaabbbbccccdd");
        blocks.keep(0, &bytes.slice(..12), 14);
        assert_eq!(blocks.get(0).unwrap(), "aaaa");
        blocks.keep(12, &bytes.slice(12..), 14);
        assert!(!blocks.has(1) && blocks.has(0) && blocks.has(2));
        assert_eq!(blocks.get(3).unwrap(), "dd");
        assert!(blocks.bytes() <= 12);
        // Again and again the same block is one block.
        (0..9).for_each(|_| blocks.keep(0, &bytes.slice(..4), 14));
        assert!(blocks.has(2) && blocks.has(3) && blocks.by_use.len() == 3);
    }

    #[test]
    fn only_whole_blocks_are_kept() {
        let mut blocks = Blocks::new(4, 100);
        blocks.keep(2, &Bytes::from_static(b"aabbbbc"), 20);
        assert!(!blocks.has(0) && blocks.has(1) && !blocks.has(2));
        assert_eq!(blocks.get(1).unwrap(), "bbbb");
        blocks.keep(5, &Bytes::from_static(b"x"), 6);
        assert_eq!(blocks.get(1).unwrap(), "bbbb");
    }

    #[test]
    fn reading_ahead_doubles_and_starts_again_after_a_jump() {
        let mut blocks = Blocks::new(16 << 10, 32 << 20);
        let mut at = 0;
        let mut ahead = Vec::new();
        for _ in 0..9 {
            ahead.push(blocks.read_ahead(at, at + 1));
            at += 1 + ahead.last().unwrap();
        }
        assert_eq!(ahead, [2, 4, 8, 16, 32, 64, 64, 64, 64]);
        assert_eq!(blocks.read_ahead(5000, 5001), 0);
        assert_eq!(blocks.read_ahead(5001, 5002), 2);
        let mut off = Blocks::new(16 << 10, 0);
        assert!(off.is_off());
        assert_eq!(off.read_ahead(0, 1), 0);
    }
}
