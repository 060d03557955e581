//! [`State`]: what all requests share.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use tercet::core::escape;

use crate::admission::Slots;
use crate::catalog::Catalog;
use crate::index::SearchSets;
use crate::metrics::Metrics;
use crate::options::Options;

/// What all requests share: the listed files, the open ones, and the limits. Clones share it.
#[derive(Clone, Debug)]
pub struct State(Arc<Owner>);

/// Ends the scanning thread when the last [`State`] is dropped.
#[derive(Debug)]
struct Owner {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) catalog: Catalog,
    pub(crate) searches: SearchSets,
    /// Requests that are worked on.
    pub(crate) slots: Slots,
    /// Downloads and event streams.
    pub(crate) streams: Slots,
    pub(crate) metrics: Metrics,
    /// Set when the server accepts no more requests.
    pub(crate) is_draining: AtomicBool,
    /// Set when work must end now.
    pub(crate) stopped: Arc<AtomicBool>,
    wake: (Mutex<bool>, Condvar),
}

/// Why a directory or file cannot be served.
#[derive(Debug)]
pub struct OpenError {
    path: String,
    error: std::io::Error,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: cannot be served: {}", escape::name(&self.path), self.error)
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// What is served.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Overview {
    /// The number of listed files and collections.
    pub files: usize,
    /// The number of search segments.
    pub segments: u64,
    /// The number of their documents that are not deleted.
    pub documents: u64,
    /// The ID of the file, if a single one is served.
    pub file: Option<String>,
    /// The first listed file that cannot be opened: its path and the error.
    pub problem: Option<(String, String)>,
}

impl State {
    /// Lists a directory, or a single file.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let failed = |error| OpenError { path: path.to_string_lossy().into_owned(), error };
        let shared = Arc::new(Shared {
            catalog: Catalog::open(path, options.cache).map_err(failed)?,
            searches: SearchSets::new(options.cache),
            slots: Slots::new(options.max_in_flight),
            streams: Slots::new(options.max_streams),
            metrics: Metrics::default(),
            is_draining: AtomicBool::new(false),
            stopped: Arc::default(),
            wake: (Mutex::new(false), Condvar::new()),
            options,
        });
        let weak = Arc::downgrade(&shared);
        // Without the thread the list stays as it is; files that are listed are still read as they are.
        let _ = std::thread::Builder::new().name("catalog".to_owned()).spawn(move || watch(&weak));
        Ok(Self(Arc::new(Owner { shared })))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// Looks for new, changed and removed files now.
    pub fn rescan(&self) {
        self.0.shared.catalog.rescan();
    }

    /// What is served.
    pub fn overview(&self) -> Overview {
        let snapshot = self.0.shared.catalog.snapshot();
        let (segments, documents) = crate::index::SearchSets::size(self.shared());
        let problem = snapshot.entries.iter().find_map(|entry| {
            let problem = entry.facts.problem.as_ref()?;
            Some((entry.path.clone(), problem.clone()))
        });
        let single =
            self.0.shared.catalog.is_single().then(|| snapshot.entries.first().map(|entry| entry.id.clone()));
        Overview { files: snapshot.entries.len(), segments, documents, file: single.flatten(), problem }
    }

    /// The paths of listed `.tatami` files in the directory itself that are not search segments.
    pub fn files_without_index(&self) -> Vec<String> {
        let snapshot = self.0.shared.catalog.snapshot();
        let is_other = |entry: &&Arc<crate::catalog::Entry>| {
            entry.kind == crate::catalog::EntryKind::Tatami
                && !entry.facts.is_searchable
                && !entry.path.contains('/')
        };
        snapshot.entries.iter().filter(is_other).map(|entry| entry.path.clone()).collect()
    }

    /// Accepts no more requests; health checks fail from now on.
    pub(crate) fn drain(&self) {
        self.0.shared.is_draining.store(true, Ordering::SeqCst);
    }

    /// Ends all work.
    pub(crate) fn stop(&self) {
        self.0.shared.stopped.store(true, Ordering::SeqCst);
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let (ended, wake) = &self.shared.wake;
        *ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        wake.notify_all();
    }
}

/// Looks for new files again and again. A scan takes at most a twentieth of the time.
fn watch(state: &Weak<Shared>) {
    let mut pause = None;
    while let Some(shared) = state.upgrade() {
        let (ended, wake) = &shared.wake;
        let pause_now = pause.unwrap_or(shared.options.rescan).max(shared.options.rescan);
        let guard = ended.lock().unwrap_or_else(PoisonError::into_inner);
        let (guard, _) = wake.wait_timeout(guard, pause_now).unwrap_or_else(PoisonError::into_inner);
        if *guard {
            return;
        }
        drop(guard);
        let took = shared.catalog.rescan();
        pause = Some(took.saturating_mul(20).min(Duration::from_mins(1)));
    }
}
