//! Open files, at most a number of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tercet::Container;
use tercet::core::{ByteSource, Span};

use super::Stamp;

/// An open file.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) stamp: Stamp,
    pub(crate) source: Arc<dyn ByteSource>,
    pub(crate) container: Container,
    checks: Mutex<Checks>,
}

/// What is known about checksums.
#[derive(Debug, Default)]
struct Checks {
    /// The result of the verification of the whole file, and its damaged bytes.
    whole: Option<(bool, Vec<Span>)>,
    /// Chunks by dataset and number.
    chunks: HashMap<(usize, u64), ChunkCheck>,
}

/// The result of reading a chunk.
#[derive(Clone, Debug)]
pub(crate) enum ChunkCheck {
    Ok,
    Damaged(String),
}

impl Opened {
    pub(crate) fn new(stamp: Stamp, source: Arc<dyn ByteSource>, container: Container) -> Self {
        Self { stamp, source, container, checks: Mutex::default() }
    }

    fn checks(&self) -> MutexGuard<'_, Checks> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the verification of the whole file.
    pub(crate) fn set_verified(&self, is_ok: bool, damaged: Vec<Span>) {
        self.checks().whole = Some((is_ok, damaged));
    }

    /// The result of the last verification of the whole file, and its damaged bytes.
    pub(crate) fn verified(&self) -> Option<(bool, Vec<Span>)> {
        self.checks().whole.clone()
    }

    pub(crate) fn set_chunk(&self, dataset: usize, number: u64, check: ChunkCheck) {
        self.checks().chunks.insert((dataset, number), check);
    }

    pub(crate) fn chunk(&self, dataset: usize, number: u64) -> Option<ChunkCheck> {
        self.checks().chunks.get(&(dataset, number)).cloned()
    }
}

/// Open files by ID, the least recently used one is closed first.
#[derive(Debug)]
pub(super) struct Cache {
    capacity: usize,
    files: Mutex<Files>,
}

#[derive(Debug, Default)]
struct Files {
    by_id: HashMap<String, (u64, Arc<Opened>)>,
    clock: u64,
}

impl Cache {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), files: Mutex::default() }
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, id: &str, stamp: &Stamp) -> Option<Arc<Opened>> {
        let mut files = self.files();
        files.clock += 1;
        let clock = files.clock;
        let (used, opened) = files.by_id.get_mut(id)?;
        if opened.stamp != *stamp {
            return None;
        }
        *used = clock;
        Some(Arc::clone(opened))
    }

    pub(super) fn insert(&self, id: &str, opened: Arc<Opened>) {
        let mut files = self.files();
        files.clock += 1;
        let clock = files.clock;
        files.by_id.insert(id.to_owned(), (clock, opened));
        while files.by_id.len() > self.capacity {
            let oldest = files.by_id.iter().min_by_key(|(_, (used, _))| *used).map(|(id, _)| id.clone());
            let Some(oldest) = oldest else { return };
            files.by_id.remove(&oldest);
        }
    }

    pub(super) fn retain(&self, keep: impl Fn(&str, &Stamp) -> bool) {
        self.files().by_id.retain(|id, (_, opened)| keep(id, &opened.stamp));
    }

    pub(super) fn len(&self) -> usize {
        self.files().by_id.len()
    }
}
