//! Progress and cancellation in one trait.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Receives progress and can cancel the operation.
pub trait Progress: Sync {
    /// Reports that `bytes` more bytes are processed.
    fn advance(&self, bytes: u64);
    /// Whether the operation should stop as soon as possible.
    fn is_cancelled(&self) -> bool {
        false
    }
    /// Returns an error if the operation is cancelled.
    fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }
}

/// No progress reports, no cancellation.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn advance(&self, _bytes: u64) {}
}

/// Counts bytes and can be cancelled from another thread.
#[derive(Debug, Default)]
pub struct Counter {
    done: AtomicU64,
    cancelled: AtomicBool,
}

impl Counter {
    /// The bytes processed so far.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Cancels the operation.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

impl Progress for Counter {
    fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }
    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// The error of a cancelled operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Cancelled {}
