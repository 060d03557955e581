//! Progress and cancellation in one trait.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Receives progress and may ask the work to stop.
pub trait Progress: Sync {
    /// `bytes` more bytes are done.
    fn advance(&self, bytes: u64);
    /// Whether the work should stop at the next opportunity.
    fn is_cancelled(&self) -> bool {
        false
    }
    /// An error if the work should stop.
    fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }
}

/// Nobody is watching.
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
    /// The bytes done so far.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Asks the work to stop.
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

/// The work was asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Cancelled {}
