//! [`SearchSets`]: search segments that are searched as one, and stay open between searches.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use tercet::tatami::File;
use tercet::tatami::search::{Searcher, Segment};

use crate::admission::Work;
use crate::catalog::{Entry, EntryKind};
use crate::failure::Failure;
use crate::state::Shared;

/// The time between two looks at a set that is opened.
const POLL: Duration = Duration::from_millis(2);

/// The segments of some entries.
#[derive(Debug)]
pub(crate) struct SearchSet {
    /// The IDs and versions of the entries.
    key: Vec<(String, String)>,
    pub(crate) searcher: Searcher,
    /// The entry and the path of each segment.
    pub(crate) files: Vec<SegmentFile>,
    /// The segments with all documents: the searcher hides older versions.
    all: Vec<Segment>,
}

impl SearchSet {
    /// The segments with all versions of documents, as the format defines the search.
    pub(crate) fn plain(&self) -> &[Segment] {
        if self.searcher.older_versions() == 0 { self.searcher.segments() } else { &self.all }
    }

    /// The segment of a file of its own, if this set has it.
    fn segment_of(&self, id: &str, version: &str) -> Option<&Segment> {
        let is_it = |file: &SegmentFile| file.id == id && file.version.as_deref() == Some(version);
        self.all.get(self.files.iter().position(is_it)?)
    }

    fn len(&self) -> usize {
        self.files.len()
    }
}

/// Where a segment comes from.
#[derive(Clone, Debug)]
pub(crate) struct SegmentFile {
    /// The ID of the file, if it is listed itself.
    pub(crate) id: String,
    pub(crate) path: String,
    /// The version of the file; `None` for a member of a collection, whose rows the collection may delete.
    version: Option<String>,
}

/// The sets that are open, at most a number of segments, and at least the one that is used.
#[derive(Debug)]
pub(crate) struct SearchSets {
    capacity: usize,
    /// The last used set is the last one.
    sets: Mutex<Vec<Arc<SearchSet>>>,
    /// Held while a set is opened, so that it is opened once.
    opening: Mutex<()>,
    /// The number of segments that were opened.
    opened: AtomicU64,
}

impl SearchSets {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(1),
            sets: Mutex::default(),
            opening: Mutex::new(()),
            opened: AtomicU64::new(0),
        }
    }

    fn sets(&self) -> MutexGuard<'_, Vec<Arc<SearchSet>>> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of open segments.
    pub(crate) fn open_count(&self) -> usize {
        self.sets().iter().map(|set| set.len()).sum()
    }

    /// The number of segments that were opened since the start.
    pub(crate) fn opened_count(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// The number of segments and of documents that are searched by default. Nothing is opened for it.
    pub(crate) fn size(shared: &Shared) -> (u64, u64) {
        let snapshot = shared.catalog.snapshot();
        let mut size = (0u64, 0u64);
        for entry in snapshot.searchable() {
            let segments = match entry.kind {
                EntryKind::Collection => {
                    let is_member = |other: &&Arc<Entry>| other.collection.as_ref() == Some(&entry.id);
                    snapshot.entries.iter().filter(is_member).count() as u64
                }
                _ => 1,
            };
            size = (size.0 + segments, size.1 + entry.facts.documents.unwrap_or(0));
        }
        size
    }

    /// The segments of some entries, or of all. A file that is removed while it is opened is not part of the set.
    pub(crate) fn get(&self, shared: &Shared, ids: &[&str], work: &Work) -> Result<Arc<SearchSet>, Failure> {
        // Once more with a new list, if a file of the old one is gone.
        for attempt in 0..3 {
            let entries = Self::entries(shared, ids)?;
            let key: Vec<_> = entries.iter().map(|entry| (entry.id.clone(), entry.stamp.version())).collect();
            if let Some(set) = self.known(&key) {
                return Ok(set);
            }
            let _one = self.wait_to_open(work)?;
            if let Some(set) = self.known(&key) {
                return Ok(set);
            }
            work.check_deadline()?;
            // The deadline of this request ends its response. The set is opened to the end: the next request searches it.
            match self.open(shared, &entries, key, &Work::new(None, Arc::clone(&shared.stopped))) {
                Ok(set) => {
                    let set = Arc::new(set);
                    self.keep(&set);
                    return Ok(set);
                }
                Err(failure) if attempt < 2 && failure.status == axum::http::StatusCode::NOT_FOUND => {
                    shared.catalog.rescan();
                }
                Err(failure) => return Err(failure),
            }
        }
        Err(Failure::not_found("the searched files were removed"))
    }

    /// Waits until no other set is opened, or until the deadline.
    fn wait_to_open(&self, work: &Work) -> Result<MutexGuard<'_, ()>, Failure> {
        loop {
            match self.opening.try_lock() {
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(error)) => return Ok(error.into_inner()),
                Err(TryLockError::WouldBlock) => {
                    work.check_deadline()?;
                    std::thread::sleep(POLL);
                }
            }
        }
    }

    fn entries(shared: &Shared, ids: &[&str]) -> Result<Vec<Arc<Entry>>, Failure> {
        let snapshot = shared.catalog.snapshot();
        if ids.is_empty() {
            return Ok(snapshot.searchable().cloned().collect());
        }
        let mut entries = Vec::with_capacity(ids.len());
        for id in ids {
            let entry = shared.catalog.entry(id)?;
            if !entry.facts.is_searchable {
                let path = crate::catalog::shown(&entry.path);
                let failure = Failure::wrong_format(format!("{path}: not a search segment"));
                return Err(failure.with_hint("create one with `tatami index`"));
            }
            entries.push(entry);
        }
        Ok(entries)
    }

    fn known(&self, key: &[(String, String)]) -> Option<Arc<SearchSet>> {
        let mut sets = self.sets();
        let at = sets.iter().position(|set| set.key == key)?;
        let set = sets.remove(at);
        sets.push(Arc::clone(&set));
        Some(set)
    }

    fn keep(&self, set: &Arc<SearchSet>) {
        let mut sets = self.sets();
        // Older versions of the same files are not searched again.
        sets.retain(|other| {
            let ids = |set: &SearchSet| set.key.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
            ids(other) != ids(set)
        });
        sets.push(Arc::clone(set));
        let mut total: usize = sets.iter().map(|set| set.len()).sum();
        // The last one is the set that is used now.
        while total > self.capacity && sets.len() > 1 {
            total -= sets.remove(0).len();
        }
    }
}

impl SearchSets {
    /// Opens the segments of entries. Those of files that another set has open, and that did not change, are shared with it.
    fn open(
        &self,
        shared: &Shared,
        entries: &[Arc<Entry>],
        key: Vec<(String, String)>,
        work: &Work,
    ) -> Result<SearchSet, Failure> {
        let others = self.sets().clone();
        let (mut all, mut files) = (Vec::new(), Vec::new());
        let add = |file: &File, from: SegmentFile| {
            let Some(segment) = file.segment()? else {
                let path = crate::catalog::shown(&from.path);
                return Err(Failure::wrong_format(format!("{path}: not a search segment")));
            };
            self.opened.fetch_add(1, Ordering::Relaxed);
            Ok((segment, from))
        };
        for entry in entries {
            work.check_deadline()?;
            if entry.kind == EntryKind::Collection {
                let snapshot = shared.catalog.snapshot();
                let collection = shared.catalog.collection(entry)?;
                for member in collection.members() {
                    work.check_deadline()?;
                    let path = if entry.path == "." {
                        member.path.clone()
                    } else {
                        format!("{}/{}", entry.path, member.path)
                    };
                    let listed = snapshot.entries.iter().find(|other| other.path == path);
                    let id = listed.map_or_else(|| entry.id.clone(), |listed| listed.id.clone());
                    let from = SegmentFile { id, path, version: None };
                    let (segment, from) = add(&collection.open_member(member)?, from)?;
                    all.push(segment);
                    files.push(from);
                }
                continue;
            }
            let version = entry.stamp.version();
            let known = others.iter().find_map(|set| set.segment_of(&entry.id, &version));
            let (id, path) = (entry.id.clone(), entry.path.clone());
            if let Some(known) = known {
                all.push(known.share());
                files.push(SegmentFile { id, path, version: Some(version) });
                continue;
            }
            let (source, stamp) = shared.catalog.raw(entry)?;
            let file = File::from_source(source, crate::catalog::read_options().into())?;
            let (segment, from) = add(&file, SegmentFile { id, path, version: Some(stamp.version()) })?;
            all.push(segment);
            files.push(from);
        }
        let searcher = Searcher::new(all.iter().map(Segment::share).collect())?;
        Ok(SearchSet { key, searcher, files, all })
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests create real files")]
mod tests {
    use std::time::Instant;

    use tercet::tatami::search::{Document, SegmentBuilder, SegmentOptions};

    use super::*;
    use crate::options::Options;
    use crate::state::State;

    fn segments(directory: &std::path::Path, count: usize) {
        for number in 0..count {
            let path = directory.join(format!("{number}.tatami"));
            let mut builder = SegmentBuilder::create(path, SegmentOptions::new()).unwrap();
            let url = format!("https://example.org/{number}");
            builder.add(&Document::new(&url, "Title").with_body(b"memory")).unwrap();
            builder.finish().unwrap();
        }
    }

    fn work(timeout: Option<Duration>) -> Work {
        Work::new(timeout, Arc::default())
    }

    #[test]
    fn a_set_with_more_segments_than_the_cache_stays_open() {
        let directory = tempfile::tempdir().unwrap();
        segments(directory.path(), 3);
        let state = State::open(directory.path(), Options::new().with_cache(2)).unwrap();
        let sets = &state.shared().searches;
        let first = sets.get(state.shared(), &[], &work(None)).unwrap();
        assert_eq!(sets.open_count(), 3);
        let second = sets.get(state.shared(), &[], &work(None)).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        // Another set replaces it.
        let id = state.shared().catalog.snapshot().entries[0].id.clone();
        sets.get(state.shared(), &[&id], &work(None)).unwrap();
        assert_eq!(sets.open_count(), 1);
    }

    #[test]
    fn only_changed_segments_are_opened_again() {
        let directory = tempfile::tempdir().unwrap();
        segments(directory.path(), 3);
        let state = State::open(directory.path(), Options::new()).unwrap();
        let sets = &state.shared().searches;
        let before = sets.get(state.shared(), &[], &work(None)).unwrap();
        assert_eq!((sets.opened_count(), before.searcher.documents()), (3, 3));
        // One is replaced by a version of a document that another one has, one is removed, and one is new.
        let path = |name: &str| directory.path().join(name);
        let mut builder = SegmentBuilder::create(path("new"), SegmentOptions::new()).unwrap();
        builder.add(&Document::new("https://example.org/0", "Newer").with_body(b"memory")).unwrap();
        builder.finish().unwrap();
        std::fs::rename(path("new"), path("1.tatami")).unwrap();
        std::fs::remove_file(path("2.tatami")).unwrap();
        std::fs::copy(path("0.tatami"), path("3.tatami")).unwrap();
        state.rescan();
        let now = sets.get(state.shared(), &[], &work(None)).unwrap();
        assert_eq!(sets.opened_count(), 5);
        assert_eq!((now.searcher.segments().len(), now.searcher.documents()), (3, 1));
        // What a searcher hides is hidden from no other one.
        assert_eq!(before.searcher.documents(), 3);
        assert_eq!(now.plain().iter().map(Segment::live_document_count).sum::<u64>(), 3);
        let id = now.files[0].id.clone();
        let one = sets.get(state.shared(), &[&id], &work(None)).unwrap();
        assert_eq!((sets.opened_count(), one.searcher.documents()), (5, 1));
    }

    #[test]
    fn a_set_is_opened_to_the_end_also_after_the_deadline() {
        let directory = tempfile::tempdir().unwrap();
        segments(directory.path(), 60);
        let state = State::open(directory.path(), Options::new()).unwrap();
        let started = Instant::now();
        SearchSets::new(64).get(state.shared(), &[], &work(None)).unwrap();
        let took = started.elapsed();
        let sets = &state.shared().searches;
        // The response may be late; the next one is not.
        let _ = sets.get(state.shared(), &[], &work(Some(took / 4)));
        assert_eq!(sets.open_count(), 60);
        // A request that has no time left opens nothing, and does not wait for others.
        let other = SearchSets::new(64);
        assert_eq!(other.get(state.shared(), &[], &work(Some(Duration::ZERO))).unwrap_err().code, "deadline");
        let _held = other.opening.lock().unwrap();
        let late = other.get(state.shared(), &[], &work(Some(Duration::from_millis(20))));
        assert_eq!(late.unwrap_err().code, "deadline");
    }
}
