//! Elements with an impossible divisor.

use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Maximum number of reported indices.
const MAX_REPORTED: usize = 256;

/// Number of such elements, and the lowest indices. The lowest indices are kept, so the order in which threads find
/// them does not matter.
pub(super) struct ZeroDivisors {
    count: AtomicU64,
    first: Mutex<BinaryHeap<u64>>,
    /// Upper limit: only lower indices are kept.
    below: AtomicU64,
}

impl Default for ZeroDivisors {
    fn default() -> Self {
        Self { count: AtomicU64::new(0), first: Mutex::default(), below: AtomicU64::new(u64::MAX) }
    }
}

impl ZeroDivisors {
    /// Counts the elements with these indices.
    pub(super) fn note(&self, indices: impl Iterator<Item = u64>) {
        let mut count = 0;
        for index in indices {
            count += 1;
            self.keep(index);
        }
        self.count.fetch_add(count, Ordering::Relaxed);
    }

    /// Count, and the lowest indices, ascending.
    pub(super) fn into_reported(self) -> (u64, Vec<u64>) {
        let first = self.first.into_inner().unwrap_or_else(PoisonError::into_inner);
        (self.count.into_inner(), first.into_sorted_vec())
    }

    fn keep(&self, index: u64) {
        if index >= self.below.load(Ordering::Relaxed) {
            return;
        }
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.push(index);
        if first.len() > MAX_REPORTED {
            first.pop();
        }
        if let (MAX_REPORTED, Some(&highest)) = (first.len(), first.peek()) {
            self.below.store(highest, Ordering::Relaxed);
        }
    }
}
