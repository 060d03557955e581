//! Top-k heap.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The k best documents, by descending score, then by document number.
#[derive(Debug)]
pub(super) struct Top {
    heap: BinaryHeap<Ranked>,
    k: usize,
}

/// A scored document, ordered in reverse, so that the worst is on top of the heap.
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

    /// Whether there are k documents.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.heap.len() >= self.k
    }

    /// The score that the next document must exceed; 0 until the heap is full.
    #[inline]
    pub(super) fn threshold(&self) -> f32 {
        if self.heap.len() < self.k { 0.0 } else { self.heap.peek().map_or(0.0, |worst| worst.score) }
    }

    /// Adds a document if its score exceeds the threshold. Documents must ascend.
    pub(super) fn push(&mut self, document: u32, score: f32) {
        if self.heap.len() < self.k {
            self.heap.push(Ranked { score, document });
        } else if score > self.threshold() {
            self.heap.pop();
            self.heap.push(Ranked { score, document });
        }
    }

    /// The documents, best first.
    pub(super) fn into_sorted(self) -> Vec<(u32, f32)> {
        self.heap.into_sorted_vec().into_iter().map(|ranked| (ranked.document, ranked.score)).collect()
    }
}
