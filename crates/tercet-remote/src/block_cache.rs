//! An LRU cache of file blocks, with read-ahead.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

use tercet_core::Span;
use tercet_core::num::saturating_usize;

/// The first read-ahead, in blocks.
const FIRST_READ_AHEAD: u64 = 2;
/// The largest read-ahead, in bytes.
const MAX_READ_AHEAD: u64 = 1 << 20;

/// Blocks of equal size, aligned to it. The least recently used block is evicted first.
#[derive(Debug)]
pub(crate) struct BlockCache {
    size: u64,
    /// The largest number of blocks.
    capacity: usize,
    entries: HashMap<u64, Entry>,
    /// Block numbers by their last use.
    by_use: BTreeMap<u64, u64>,
    uses: u64,
    /// The last read-ahead, in blocks.
    ahead: u64,
    /// The block after the last one that was fetched.
    next: u64,
}

#[derive(Debug)]
struct Entry {
    bytes: Bytes,
    used: u64,
}

impl BlockCache {
    /// A cache of `capacity_bytes` in blocks of `size` bytes.
    pub(crate) fn new(size: u64, capacity_bytes: u64) -> Self {
        let size = size.max(1);
        let capacity = saturating_usize(capacity_bytes / size);
        Self { size, capacity, entries: HashMap::new(), by_use: BTreeMap::new(), uses: 0, ahead: 0, next: 0 }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Whether the cache holds no block; reads are then not rounded to blocks.
    pub(crate) fn is_disabled(&self) -> bool {
        self.capacity == 0
    }

    pub(crate) fn get(&mut self, number: u64) -> Option<Bytes> {
        let entry = self.entries.get_mut(&number)?;
        self.uses += 1;
        self.by_use.remove(&entry.used);
        self.by_use.insert(self.uses, number);
        entry.used = self.uses;
        Some(entry.bytes.clone())
    }

    pub(crate) fn contains(&self, number: u64) -> bool {
        self.entries.contains_key(&number)
    }

    /// Inserts the blocks that are inside bytes fetched at `start`. `len` is the length of the file: its last block
    /// may be shorter.
    pub(crate) fn insert(&mut self, start: u64, bytes: &Bytes, len: u64) {
        let end = start + bytes.len() as u64;
        for number in start.div_ceil(self.size)..end.div_ceil(self.size) {
            let from = number * self.size;
            let to = (from + self.size).min(len);
            let range =
                Span::between(from.saturating_sub(start), to.saturating_sub(start)).and_then(Span::to_range);
            let Some(block) = range.and_then(|range| bytes.get(range)) else { continue };
            // A copy, so that a small block does not keep a large response in memory.
            self.insert_block(number, Bytes::copy_from_slice(block));
        }
    }

    fn insert_block(&mut self, number: u64, bytes: Bytes) {
        if self.capacity == 0 {
            return;
        }
        self.uses += 1;
        if let Some(old) = self.entries.insert(number, Entry { bytes, used: self.uses }) {
            self.by_use.remove(&old.used);
        }
        self.by_use.insert(self.uses, number);
        while self.entries.len() > self.capacity {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            self.entries.remove(&oldest);
        }
    }

    /// The number of blocks to fetch after the missing blocks `first..end`. It doubles while reads are sequential and
    /// is 0 after a jump.
    pub(crate) fn read_ahead(&mut self, first: u64, end: u64) -> u64 {
        let max = (MAX_READ_AHEAD / self.size).min(self.capacity as u64 / 4);
        self.ahead = if first == self.next { (self.ahead * 2).max(FIRST_READ_AHEAD).min(max) } else { 0 };
        self.next = end + self.ahead;
        self.ahead
    }

    /// Records that the blocks before `next` were fetched: a read at `next` is sequential.
    pub(crate) fn set_next(&mut self, next: u64) {
        self.next = next;
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.entries.values().map(|entry| entry.bytes.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_block_is_evicted() {
        let mut blocks = BlockCache::new(4, 12);
        let bytes = Bytes::from_static(b"aaaabbbbccccdd");
        blocks.insert(0, &bytes.slice(..12), 14);
        assert_eq!(blocks.get(0).unwrap(), "aaaa");
        blocks.insert(12, &bytes.slice(12..), 14);
        assert!(!blocks.contains(1) && blocks.contains(0) && blocks.contains(2));
        assert_eq!(blocks.get(3).unwrap(), "dd");
        assert!(blocks.bytes() <= 12);
        // A block that is inserted again replaces itself.
        (0..9).for_each(|_| blocks.insert(0, &bytes.slice(..4), 14));
        assert!(blocks.contains(2) && blocks.contains(3) && blocks.by_use.len() == 3);
    }

    #[test]
    fn only_whole_blocks_are_cached() {
        let mut blocks = BlockCache::new(4, 100);
        blocks.insert(2, &Bytes::from_static(b"aabbbbc"), 20);
        assert!(!blocks.contains(0) && blocks.contains(1) && !blocks.contains(2));
        assert_eq!(blocks.get(1).unwrap(), "bbbb");
        blocks.insert(5, &Bytes::from_static(b"x"), 6);
        assert_eq!(blocks.get(1).unwrap(), "bbbb");
    }

    #[test]
    fn read_ahead_doubles_and_restarts_after_a_jump() {
        let mut blocks = BlockCache::new(16 << 10, 32 << 20);
        let mut at = 0;
        let mut ahead = Vec::new();
        for _ in 0..9 {
            ahead.push(blocks.read_ahead(at, at + 1));
            at += 1 + ahead.last().unwrap();
        }
        assert_eq!(ahead, [2, 4, 8, 16, 32, 64, 64, 64, 64]);
        assert_eq!(blocks.read_ahead(5000, 5001), 0);
        assert_eq!(blocks.read_ahead(5001, 5002), 2);
        let mut off = BlockCache::new(16 << 10, 0);
        assert!(off.is_disabled());
        assert_eq!(off.read_ahead(0, 1), 0);
    }
}
