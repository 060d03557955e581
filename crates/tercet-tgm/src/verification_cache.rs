//! Cache of verified objects of an open file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::wire::frame::Frame;

/// Verified objects and szip offsets, by the position of their frames.
#[derive(Debug, Default)]
pub(crate) struct VerificationCache {
    verified: Mutex<BTreeSet<u64>>,
    /// The correct offsets of szip intervals, as far as they were computed.
    intervals: Mutex<BTreeMap<u64, Vec<u64>>>,
    /// Objects whose stored szip offsets are wrong.
    distrusted_offsets: Mutex<BTreeSet<u64>>,
}

impl VerificationCache {
    /// Whether the hash of a frame was verified.
    pub(crate) fn is_verified(&self, frame: &Frame) -> bool {
        lock(&self.verified).contains(&frame.span.start())
    }

    pub(crate) fn insert_verified(&self, frame: &Frame) {
        if frame.hash().is_some() {
            lock(&self.verified).insert(frame.span.start());
        }
    }

    /// Whether the stored szip offsets of an object are wrong.
    pub(crate) fn has_distrusted_offsets(&self, frame: &Frame) -> bool {
        lock(&self.distrusted_offsets).contains(&frame.span.start())
    }

    pub(crate) fn distrust_offsets(&self, frame: &Frame) {
        lock(&self.distrusted_offsets).insert(frame.span.start());
    }

    /// The known offsets of intervals; at least the first.
    pub(crate) fn intervals(&self, frame: &Frame) -> Vec<u64> {
        lock(&self.intervals).get(&frame.span.start()).cloned().unwrap_or_else(|| vec![0])
    }

    pub(crate) fn insert_intervals(&self, frame: &Frame, starts: Vec<u64>) {
        let mut intervals = lock(&self.intervals);
        let known = intervals.entry(frame.span.start()).or_default();
        if starts.len() > known.len() {
            *known = starts;
        }
    }
}

fn lock<T>(known: &Mutex<T>) -> MutexGuard<'_, T> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}
