//! Temporary files of the unfinished writers of this process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Disk;

static UNFINISHED: Mutex<Unfinished> = Mutex::new(Unfinished { files: BTreeMap::new(), next: 0 });

#[derive(Debug)]
struct Unfinished {
    files: BTreeMap<u64, (Arc<dyn Disk>, PathBuf)>,
    next: u64,
}

fn lock() -> MutexGuard<'static, Unfinished> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the temporary files of all unfinished writers of this process, for a program that exits without dropping
/// them: by a signal.
///
/// Best effort: a file that another thread is creating at this moment may be left; the next writer to the same target
/// removes it. As long as the returned value lives, other threads wait before they write to a new temporary file.
pub fn remove_unfinished() -> NoWriters {
    let unfinished = lock();
    for (disk, path) in unfinished.files.values() {
        let _ = disk.remove(path);
    }
    NoWriters(unfinished)
}

/// Keeps other threads from writing to new temporary files, until the process exits.
#[derive(Debug)]
#[must_use = "other threads go on once this is dropped"]
pub struct NoWriters(#[expect(dead_code, reason = "held, not read")] MutexGuard<'static, Unfinished>);

/// The entry of a temporary file; dropping it removes the entry, not the file.
#[derive(Debug)]
pub(super) struct Entry(u64);

impl Entry {
    /// Enters a temporary file.
    pub(super) fn new(disk: &Arc<dyn Disk>, path: &Path) -> Self {
        let mut unfinished = lock();
        let id = unfinished.next;
        unfinished.next += 1;
        unfinished.files.insert(id, (Arc::clone(disk), path.to_owned()));
        Self(id)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        lock().files.remove(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use crate::publish::AtomicFile;

    #[test]
    fn files_of_unfinished_writers_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let count = || std::fs::read_dir(directory.path()).unwrap().count();
        let mut unfinished = AtomicFile::create(&directory.path().join("a")).unwrap();
        unfinished.write_all(b"a").unwrap();
        AtomicFile::create(&directory.path().join("b")).unwrap().publish().unwrap();
        assert_eq!(count(), 2);
        // Other tests of this process have writers, too: only one file is looked for.
        let temporary = unfinished.temporary().to_owned();
        let is_known = super::lock().files.values().any(|(_, path)| *path == temporary);
        assert!(is_known);
        drop(unfinished);
        assert!(!super::lock().files.values().any(|(_, path)| *path == temporary));
        assert_eq!(count(), 1);
    }
}
