//! Worker threads: one for each kind of work, so that a verification does not delay the tree.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use tercet::core::progress::Counter;

use crate::read::{Files, Job, Reply};

/// A kind of work. Jobs of a kind are done one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// The items of the tree: every job is done.
    Tree,
    /// The attributes of the selected item: only the last job matters.
    Describe,
    /// The view: only the last job matters.
    View,
    /// Verification, counts, byte layouts: only the last job matters.
    Long,
}

impl Lane {
    pub(crate) const ALL: [Self; 4] = [Self::Tree, Self::Describe, Self::View, Self::Long];

    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

/// A job with its number, and how it is cancelled.
type Order = (u64, Job, Arc<Counter>);

/// The result of a job.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) lane: Lane,
    pub(crate) number: u64,
    pub(crate) reply: Result<Reply, String>,
}

/// The threads.
#[derive(Debug)]
pub(crate) struct Workers {
    lanes: Vec<(Sender<Order>, Arc<Counter>)>,
    done: Receiver<Done>,
}

impl Workers {
    pub(crate) fn start() -> std::io::Result<Self> {
        let files = Arc::new(Files::default());
        let (results, done) = channel();
        let mut lanes = Vec::new();
        for lane in Lane::ALL {
            let (orders, received) = channel();
            let (files, results) = (Arc::clone(&files), results.clone());
            let work = move || work(lane, &received, &files, &results);
            thread::Builder::new().name(format!("{lane:?}").to_lowercase()).spawn(work)?;
            lanes.push((orders, Arc::default()));
        }
        Ok(Self { lanes, done })
    }

    /// Starts a job. Except in the tree, it replaces earlier ones of its kind.
    pub(crate) fn start_job(&mut self, lane: Lane, number: u64, job: Job) {
        if lane != Lane::Tree {
            self.cancel(lane);
        }
        let (orders, current) = &mut self.lanes[lane.index()];
        *current = Arc::default();
        // A thread ends only with the program.
        let _ = orders.send((number, job, Arc::clone(current)));
    }

    pub(crate) fn cancel(&self, lane: Lane) {
        self.lanes[lane.index()].1.cancel();
    }

    /// The bytes that the current job has processed.
    pub(crate) fn progress(&self, lane: Lane) -> u64 {
        self.lanes[lane.index()].1.done()
    }

    pub(crate) fn next_result(&self) -> Option<Done> {
        self.done.try_recv().ok()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.lanes.iter().for_each(|(_, current)| current.cancel());
    }
}

fn work(lane: Lane, orders: &Receiver<Order>, files: &Files, results: &Sender<Done>) {
    while let Ok(mut order) = orders.recv() {
        if lane != Lane::Tree {
            while let Ok(later) = orders.try_recv() {
                order = later;
            }
        }
        let (number, job, progress) = order;
        // A bug in a library must not end the browser.
        let reply = catch_unwind(AssertUnwindSafe(|| files.run(&job, &*progress)));
        let reply = reply.unwrap_or_else(|_| Err("internal error: the work panicked".to_owned()));
        if results.send(Done { lane, number, reply }).is_err() {
            return;
        }
    }
}
