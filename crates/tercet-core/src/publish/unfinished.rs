//! Temporary files and directories of the unfinished writers of this process.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Disk;

static UNFINISHED: Mutex<Unfinished> =
    Mutex::new(Unfinished { files: BTreeMap::new(), directories: BTreeMap::new(), next: 0 });

#[derive(Debug)]
struct Unfinished {
    files: BTreeMap<u64, (Arc<dyn Disk>, PathBuf)>,
    directories: BTreeMap<u64, PathBuf>,
    next: u64,
}

impl Unfinished {
    fn next(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
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
    for path in unfinished.directories.values() {
        let _ = std::fs::remove_dir_all(path);
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
        let id = unfinished.next();
        unfinished.files.insert(id, (Arc::clone(disk), path.to_owned()));
        Self(id)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        lock().files.remove(&self.0);
    }
}

/// A directory of temporary files beside a target. It is removed when it is dropped, or by [`remove_unfinished`].
#[derive(Debug)]
pub struct TempDirectory {
    directory: tempfile::TempDir,
    id: u64,
}

impl TempDirectory {
    /// Creates a directory in `parent`, with a hidden name that contains `name`.
    pub fn create_in(parent: &Path, name: &str) -> io::Result<Self> {
        let prefix = format!(".{name}.tercet-");
        // Created under the lock: a process that is about to exit creates no more directories.
        let mut unfinished = lock();
        let directory = tempfile::Builder::new().prefix(&prefix).suffix(".tmp").tempdir_in(parent)?;
        let id = unfinished.next();
        unfinished.directories.insert(id, directory.path().to_owned());
        Ok(Self { directory, id })
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for TempDirectory {
    fn drop(&mut self) {
        lock().directories.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::TempDirectory;
    use crate::publish::AtomicFile;

    #[test]
    fn temporary_directories_are_known_until_they_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let directory = TempDirectory::create_in(parent.path(), "out.nc").unwrap();
        let path = directory.path().to_owned();
        AtomicFile::create(&path.join("out.nc")).unwrap().publish().unwrap();
        assert!(path.file_name().unwrap().to_str().unwrap().starts_with(".out.nc.tercet-"));
        assert!(super::lock().directories.values().any(|known| *known == path));
        drop(directory);
        assert!(!super::lock().directories.values().any(|known| *known == path));
        assert!(!path.exists());
    }

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
