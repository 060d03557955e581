//! Slots for requests, and the deadline of each.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tercet::core::Progress;

use crate::failure::Failure;

/// A number of slots, taken without waiting.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    taken: Arc<AtomicUsize>,
    most: usize,
}

/// A slot, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Slot(Arc<AtomicUsize>);

impl Slots {
    pub(crate) fn new(most: usize) -> Self {
        Self { taken: Arc::default(), most }
    }

    /// Takes a slot; `None` if all are taken.
    pub(crate) fn take(&self) -> Option<Slot> {
        let more = |taken: usize| (taken < self.most).then_some(taken + 1);
        let taken = self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        taken.ok().map(|_| Slot(Arc::clone(&self.taken)))
    }

    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The work for one request: when it must end, and whether someone waits for it. The libraries ask it while they work.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    deadline: Option<Instant>,
    /// Set when the client is gone.
    abandoned: Arc<AtomicBool>,
    /// Set when the server ends and waits no longer.
    stopped: Arc<AtomicBool>,
}

impl Work {
    pub(crate) fn new(timeout: Option<Duration>, stopped: Arc<AtomicBool>) -> Self {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        Self { deadline, abandoned: Arc::default(), stopped }
    }

    /// The same work without a deadline, for a stream.
    pub(crate) fn without_deadline(&self) -> Self {
        Self { deadline: None, ..self.clone() }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    /// An error if the work should end.
    pub(crate) fn check_deadline(&self) -> Result<(), Failure> {
        if !self.is_cancelled() {
            return Ok(());
        }
        if self.abandoned.load(Ordering::Relaxed) {
            return Err(Failure::cancelled());
        }
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Failure::shutting_down());
        }
        Err(Failure::deadline())
    }
}

impl Progress for Work {
    fn advance(&self, _bytes: u64) {}

    fn is_cancelled(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
            || self.stopped.load(Ordering::Relaxed)
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_given_back() {
        let slots = Slots::new(2);
        let (one, two) = (slots.take(), slots.take());
        assert!(one.is_some() && two.is_some() && slots.take().is_none());
        drop(one);
        assert_eq!(slots.taken(), 1);
        assert!(slots.take().is_some());
    }

    #[test]
    fn work_ends_for_a_reason() {
        let stopped = Arc::new(AtomicBool::new(false));
        let late = Work::new(Some(Duration::ZERO), Arc::clone(&stopped));
        assert_eq!(late.check_deadline().unwrap_err().code, "deadline");
        assert!(late.without_deadline().check_deadline().is_ok());
        let work = Work::new(None, Arc::clone(&stopped));
        assert!(work.check_deadline().is_ok());
        stopped.store(true, Ordering::Relaxed);
        assert_eq!(work.check_deadline().unwrap_err().code, "shutting_down");
        work.abandon();
        assert_eq!(work.check_deadline().unwrap_err().code, "cancelled");
    }
}
