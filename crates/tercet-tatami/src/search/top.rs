//! The k best.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Keeps the best documents: higher scores first, then lower numbers.
#[derive(Debug)]
pub(super) struct Top {
    heap: BinaryHeap<Ranked>,
    k: usize,
}

/// A document and its score; the worst is the greatest, so that it is on top of the heap.
#[derive(Clone, Copy, Debug)]
struct Ranked {
    score: f32,
    document: u32,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.document.cmp(&other.document))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}

impl Top {
    pub(super) fn new(k: usize) -> Self {
        Self { heap: BinaryHeap::with_capacity(k.min(1 << 16)), k }
    }

    /// Whether there are k.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.heap.len() >= self.k
    }

    /// The score that the next document must exceed; 0 until there are k.
    #[inline]
    pub(super) fn threshold(&self) -> f32 {
        if self.heap.len() < self.k { 0.0 } else { self.heap.peek().map_or(0.0, |worst| worst.score) }
    }

    /// Adds a document if it is good enough. Documents come in numeric order.
    pub(super) fn push(&mut self, document: u32, score: f32) {
        if self.heap.len() < self.k {
            self.heap.push(Ranked { score, document });
        } else if score > self.threshold() {
            self.heap.pop();
            self.heap.push(Ranked { score, document });
        }
    }

    /// The best first.
    pub(super) fn into_sorted(self) -> Vec<(u32, f32)> {
        self.heap.into_sorted_vec().into_iter().map(|ranked| (ranked.document, ranked.score)).collect()
    }
}
