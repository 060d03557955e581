//! A recording disk, and every state in which a power cut could leave it.
//!
//! Writes are durable only after a sync: bytes after [`DiskFile::sync_all`], names after [`Disk::sync_directory`].
//! Later changes may survive, be lost, or survive in part, and bytes and names are independent: a file can have
//! its new name and none of its bytes.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tercet_core::publish::{Disk, DiskFile, Entry, Permissions, RealDisk};

mod replay;

use replay::Model;
pub use replay::{Cut, Survivors};

/// Runs a scenario on a recording disk, and `check` on every state that a power cut during or after it could
/// leave; returns the number of different states.
///
/// The scenario runs in a new directory that `prepare` fills durably. A cut with [`Cut::complete`] comes after the
/// whole scenario: everything that it reported as durable must be there.
///
/// # Panics
///
/// When the directory cannot be made.
pub fn for_each_cut(
    prepare: impl FnOnce(&Path),
    scenario: impl FnOnce(Arc<dyn Disk>, &Path),
    check: impl FnMut(&Cut),
) -> usize {
    let directory = tempfile::tempdir().unwrap_or_else(|error| panic!("no directory to work in: {error}"));
    prepare(directory.path());
    let recorder = Recorder::new(directory.path()).unwrap_or_else(|error| panic!("cannot read: {error}"));
    scenario(recorder.disk(), directory.path());
    recorder.for_each_cut(check)
}

/// A change of the disk that a power cut can undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A file was created.
    Create {
        /// The number of the file, in the order of first appearance.
        file: usize,
        /// The path in the recorded directory.
        path: PathBuf,
    },
    /// Bytes were written.
    Write {
        /// The number of the file.
        file: usize,
        /// The offset in the file.
        offset: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A file was truncated or extended.
    SetLen {
        /// The number of the file.
        file: usize,
        /// The new length.
        len: u64,
    },
    /// The bytes of a file were synced.
    SyncFile {
        /// The number of the file.
        file: usize,
    },
    /// A file was renamed.
    Rename {
        /// The old path.
        from: PathBuf,
        /// The new path.
        to: PathBuf,
    },
    /// A file was removed.
    Remove {
        /// The path.
        path: PathBuf,
    },
    /// The names in a directory were synced.
    SyncDirectory {
        /// The directory.
        directory: PathBuf,
    },
}

/// A real directory and the history of its changes through [`disk`](Recorder::disk).
#[derive(Clone, Debug)]
pub struct Recorder {
    directory: PathBuf,
    before: BTreeMap<PathBuf, Vec<u8>>,
    history: Arc<Mutex<History>>,
}

#[derive(Debug, Default)]
struct History {
    events: Vec<Event>,
    /// The file that each path names now.
    names: BTreeMap<PathBuf, usize>,
    n_files: usize,
}

impl Recorder {
    /// Starts a history with the current files of the directory.
    pub fn new(directory: &Path) -> io::Result<Self> {
        let mut before = BTreeMap::new();
        read_files(directory, Path::new(""), &mut before)?;
        let names: BTreeMap<PathBuf, usize> = before.keys().cloned().zip(0..).collect();
        let history = History { events: Vec::new(), n_files: names.len(), names };
        Ok(Self { directory: directory.to_owned(), before, history: Arc::new(Mutex::new(history)) })
    }

    /// The recording disk.
    pub fn disk(&self) -> Arc<dyn Disk> {
        Arc::new(self.clone())
    }

    /// The history so far.
    pub fn events(&self) -> Vec<Event> {
        self.history().events.clone()
    }

    /// Calls `check` with every state that a power cut at any moment could leave; returns their number.
    pub fn for_each_cut(&self, mut check: impl FnMut(&Cut)) -> usize {
        let events = self.events();
        let mut model = Model::new(&self.before);
        let mut seen = HashSet::new();
        for after in 0..=events.len() {
            let last = after.checked_sub(1).and_then(|last| events.get(last));
            if let Some(event) = last {
                model.apply(event);
            }
            for cut in model.cuts(after, after == events.len(), last) {
                let mut hasher = DefaultHasher::new();
                (cut.complete, &cut.files).hash(&mut hasher);
                if seen.insert(hasher.finish()) {
                    let _trying = crate::TrialContext(cut.to_string());
                    check(&cut);
                }
            }
        }
        seen.len()
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inside(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.directory).unwrap_or(path).to_owned()
    }

    fn log(&self, event: Event) {
        self.history().events.push(event);
    }

    fn file(&self, inner: Box<dyn DiskFile>, number: usize) -> Box<dyn DiskFile> {
        Box::new(RecordedFile { inner, number, position: 0, recorder: self.clone() })
    }
}

fn read_files(directory: &Path, inside: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) -> io::Result<()> {
    for item in fs::read_dir(directory.join(inside))? {
        let item = item?;
        let path = inside.join(item.file_name());
        let kind = item.file_type()?;
        if kind.is_dir() {
            read_files(directory, &path, into)?;
        } else if kind.is_file() {
            #[expect(clippy::disallowed_methods, reason = "a snapshot of real files")]
            into.insert(path.clone(), fs::read(directory.join(&path))?);
        }
    }
    Ok(())
}

impl Disk for Recorder {
    fn entry(&self, path: &Path) -> io::Result<Entry> {
        RealDisk.entry(path)
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        RealDisk.read_link(path)
    }

    fn create_new(&self, path: &Path, like: Option<&Permissions>) -> io::Result<Box<dyn DiskFile>> {
        let inner = RealDisk.create_new(path, like)?;
        let path = self.inside(path);
        let mut history = self.history();
        let file = history.n_files;
        history.n_files += 1;
        history.names.insert(path.clone(), file);
        history.events.push(Event::Create { file, path });
        drop(history);
        Ok(self.file(inner, file))
    }

    fn open_existing(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let inner = RealDisk.open_existing(path)?;
        let path = self.inside(path);
        let file = self.history().names.get(&path).copied();
        let file = file.ok_or_else(|| io::Error::other("a file that the recorder has not seen"))?;
        Ok(self.file(inner, file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)?;
        let (from, to) = (self.inside(from), self.inside(to));
        let mut history = self.history();
        if let Some(file) = history.names.remove(&from) {
            history.names.insert(to.clone(), file);
        }
        history.events.push(Event::Rename { from, to });
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)?;
        let path = self.inside(path);
        let mut history = self.history();
        history.names.remove(&path);
        history.events.push(Event::Remove { path });
        Ok(())
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        RealDisk.sync_directory(directory)?;
        self.log(Event::SyncDirectory { directory: self.inside(directory) });
        Ok(())
    }

    fn list(&self, directory: &Path, wanted: &dyn Fn(&OsStr) -> bool) -> io::Result<Vec<OsString>> {
        RealDisk.list(directory, wanted)
    }
}

struct RecordedFile {
    inner: Box<dyn DiskFile>,
    number: usize,
    position: u64,
    recorder: Recorder,
}

impl fmt::Debug for RecordedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedFile").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Write for RecordedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(bytes)?;
        let (file, offset) = (self.number, self.position);
        self.recorder.log(Event::Write { file, offset, bytes: bytes[..n].to_vec() });
        self.position += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Seek for RecordedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = self.inner.seek(to)?;
        Ok(self.position)
    }
}

impl DiskFile for RecordedFile {
    fn entry(&self) -> io::Result<Entry> {
        self.inner.entry()
    }

    fn sync_all(&mut self) -> io::Result<()> {
        self.inner.sync_all()?;
        self.recorder.log(Event::SyncFile { file: self.number });
        Ok(())
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)?;
        self.recorder.log(Event::SetLen { file: self.number, len });
        Ok(())
    }

    fn try_lock(&mut self) -> io::Result<bool> {
        self.inner.try_lock()
    }

    fn set_permissions(&mut self, permissions: &Permissions) -> io::Result<()> {
        self.inner.set_permissions(permissions)
    }
}
