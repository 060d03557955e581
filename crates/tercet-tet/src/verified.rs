//! [`Verified`]: the set of chunks that have passed their checksum since the file was opened.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A bitmap of verified chunks, with one bit per row of the chunk index.
///
/// Used only for sources whose bytes stay in place: bytes that are fetched again are checked again.
#[derive(Debug, Default)]
pub(crate) struct Verified {
    bits: OnceLock<Vec<AtomicU64>>,
}

impl Verified {
    /// Whether a chunk was verified.
    pub(crate) fn contains(&self, row: u64) -> bool {
        let (word, bit) = word_and_bit(row);
        let bits = self.bits.get().and_then(|bits| bits.get(word));
        bits.is_some_and(|bits| bits.load(Ordering::Relaxed) & bit != 0)
    }

    /// Marks a chunk as verified; `rows` is the number of chunks of the file.
    pub(crate) fn insert(&self, row: u64, rows: u64) {
        // The rows are stored in the file, so their number is limited by its size.
        let words = usize::try_from(rows.div_ceil(64)).unwrap_or(0);
        let (word, bit) = word_and_bit(row);
        let bits = self.bits.get_or_init(|| (0..words).map(|_| AtomicU64::new(0)).collect());
        if let Some(bits) = bits.get(word) {
            bits.fetch_or(bit, Ordering::Relaxed);
        }
    }
}

fn word_and_bit(row: u64) -> (usize, u64) {
    (usize::try_from(row / 64).unwrap_or(usize::MAX), 1 << (row % 64))
}
