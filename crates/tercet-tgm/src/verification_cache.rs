//! What was found out about the bytes of an open file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::wire::frame::Frame;

/// What was found out about objects, by the position of their frames, so that it is found out once.
#[derive(Debug, Default)]
pub(crate) struct VerificationCache {
    verified: Mutex<BTreeSet<u64>>,
    /// True starts of the intervals of szip streams, as far as anybody looked.
    intervals: Mutex<BTreeMap<u64, Vec<u64>>>,
    /// Objects whose stored positions were found to be wrong.
    distrusted_offsets: Mutex<BTreeSet<u64>>,
}

impl VerificationCache {
    /// Whether the hash of a frame was compared with its bytes and found right.
    pub(crate) fn is_verified(&self, frame: &Frame) -> bool {
        lock(&self.verified).contains(&frame.span.start())
    }

    pub(crate) fn insert_verified(&self, frame: &Frame) {
        if frame.hash().is_some() {
            lock(&self.verified).insert(frame.span.start());
        }
    }

    /// Whether stored positions of an object were found to be wrong.
    pub(crate) fn has_distrusted_offsets(&self, frame: &Frame) -> bool {
        lock(&self.distrusted_offsets).contains(&frame.span.start())
    }

    pub(crate) fn distrust_offsets(&self, frame: &Frame) {
        lock(&self.distrusted_offsets).insert(frame.span.start());
    }

    /// Starts of intervals that are known; the first is.
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
