//! [`Catalog`]: the listed files below a directory, and those of them that are open.
//!
//! A client names a file by its ID, never by a path: only what a scan found can be opened. On Linux the system itself refuses
//! links that lead elsewhere, also if they appear between the scan and the request.

mod cache;
mod listing;
mod opening;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

pub(crate) use cache::{ChunkCheck, Opened};
pub(crate) use listing::{Entry, EntryKind, Snapshot};
pub(crate) use opening::Stamp;

use tercet::Container;
use tercet::core::source;
use tercet::tatami::Collection;

use crate::failure::Failure;
use cache::Cache;
use opening::Root;

/// The files below a directory.
#[derive(Debug)]
pub(crate) struct Catalog {
    root: Root,
    /// The only file that is listed.
    only: Option<PathBuf>,
    snapshot: RwLock<Arc<Snapshot>>,
    /// Held while the directory is scanned.
    scanning: Mutex<()>,
    cache: Cache,
}

impl Catalog {
    /// Lists a directory, or the directory of a file with this file alone.
    pub(crate) fn open(path: &Path, capacity: usize) -> std::io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        let is_directory = metadata.is_dir();
        if !is_directory && !metadata.is_file() {
            let what = "neither a directory nor a regular file";
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, what));
        }
        let path = path.canonicalize()?;
        let (root, only) = match (is_directory, path.parent(), path.file_name()) {
            (false, Some(parent), Some(name)) => (parent.to_owned(), Some(PathBuf::from(name))),
            _ => (path, None),
        };
        let root = Root::open(root)?;
        let catalog = Self {
            root,
            only,
            snapshot: RwLock::default(),
            scanning: Mutex::new(()),
            cache: Cache::new(capacity),
        };
        catalog.rescan();
        Ok(catalog)
    }

    /// The name of the served directory.
    pub(crate) fn root_name(&self) -> String {
        self.root
            .path()
            .file_name()
            .map_or_else(|| "/".to_owned(), |name| name.to_string_lossy().into_owned())
    }

    /// Whether a single file is served.
    pub(crate) fn is_single(&self) -> bool {
        self.only.is_some()
    }

    /// The files as they were found last.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks for new, changed and removed files; returns the time that it took.
    pub(crate) fn rescan(&self) -> Duration {
        let _one = self.scanning.lock().unwrap_or_else(PoisonError::into_inner);
        let started = Instant::now();
        let before = self.snapshot();
        let now = listing::scan(&self.root, self.only.as_deref(), &before);
        if now.generation != before.generation {
            self.cache.retain(|id, stamp| now.get(id).is_some_and(|entry| entry.stamp == *stamp));
            *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(now);
        }
        started.elapsed()
    }

    /// The entry with an ID.
    pub(crate) fn entry(&self, id: &str) -> Result<Arc<Entry>, Failure> {
        let found = self.snapshot().get(id).cloned();
        found.ok_or_else(|| Failure::not_found(format!("no file with the ID `{id}`")))
    }

    /// Opens a file, as it is now. A file that was not changed since is opened once.
    pub(crate) fn opened(&self, entry: &Entry) -> Result<Arc<Opened>, Failure> {
        if entry.kind == EntryKind::Collection {
            return Err(Failure::wrong_format(format!("{} is a collection, not a file", shown(&entry.path))));
        }
        let (handle, stamp) =
            self.root.open_file(&entry.real).map_err(|error| Self::failure(entry, &error))?;
        if let Some(opened) = self.cache.get(&entry.id, &stamp) {
            return Ok(opened);
        }
        let source = source::File::from_handle(&entry.path, handle)
            .map_err(|error| Failure::from(tercet::Error::new(entry.path.as_str().into(), error)))?;
        let source: Arc<dyn tercet::core::ByteSource> = Arc::new(source);
        let container = Container::from_source(Arc::clone(&source), read_options())?;
        let container = match container {
            // An index file beside it is used.
            Container::Tgm(file) if self.root.open_file(&index_file(&entry.real)).is_ok() => {
                Container::Tgm(file.with_index_file_of(&self.root.path().join(&entry.real)))
            }
            container => container,
        };
        let opened = Arc::new(Opened::new(stamp, source, container));
        self.cache.insert(&entry.id, Arc::clone(&opened));
        Ok(opened)
    }

    /// Opens a file for raw reads; the bytes need not be those of a container.
    pub(crate) fn raw(&self, entry: &Entry) -> Result<(Arc<source::File>, Stamp), Failure> {
        if entry.kind == EntryKind::Collection {
            return Err(Failure::wrong_format(format!("{} is a collection, not a file", shown(&entry.path))));
        }
        let (handle, stamp) =
            self.root.open_file(&entry.real).map_err(|error| Self::failure(entry, &error))?;
        let source = source::File::from_handle(&entry.path, handle)
            .map_err(|error| Failure::from(tercet::Error::new(entry.path.as_str().into(), error)))?;
        Ok((Arc::new(source), stamp))
    }

    /// Opens a `.tgm` file, as it is now, apart from the files that stay open.
    pub(crate) fn message_file(&self, entry: &Entry) -> Result<tercet::tgm::File, Failure> {
        let (source, _) = self.raw(entry)?;
        match Container::from_source(source, read_options())? {
            Container::Tgm(file) => Ok(file),
            _ => Err(Failure::wrong_format(format!("{} is not a .tgm file", shown(&entry.path)))),
        }
    }

    /// Opens a collection, as it is now.
    pub(crate) fn collection(&self, entry: &Entry) -> Result<Collection, Failure> {
        let collection = Collection::open_with(self.root.path().join(&entry.real), read_options().into())?;
        collection.check_records()?;
        Ok(collection)
    }

    /// The path of a listed file, for a library that follows it.
    pub(crate) fn path(&self, entry: &Entry) -> Result<PathBuf, Failure> {
        self.root.open_file(&entry.real).map_err(|error| Self::failure(entry, &error))?;
        Ok(self.root.path().join(&entry.real))
    }

    /// A text without the path of the served directory.
    pub(crate) fn without_root(&self, text: &str) -> String {
        let root = self.root.path().to_string_lossy();
        if root.len() < 2 {
            text.to_owned()
        } else {
            text.replace(&format!("{root}/"), "").replace(&*root, ".")
        }
    }

    /// The number of open files.
    pub(crate) fn open_count(&self) -> usize {
        self.cache.len()
    }

    fn failure(entry: &Entry, error: &std::io::Error) -> Failure {
        let name = shown(&entry.path);
        match error.kind() {
            std::io::ErrorKind::NotFound => Failure::not_found(format!("{name}: the file was removed")),
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::InvalidInput => {
                Failure::not_found(format!("{name}: cannot be opened"))
            }
            _ => Failure::internal(format!("{name}: {error}")),
        }
    }
}

/// How files are read.
pub(crate) fn read_options() -> tercet::ReadOptions {
    tercet::ReadOptions::new()
}

/// A name for a message.
pub(crate) fn shown(name: &str) -> std::borrow::Cow<'_, str> {
    tercet::core::escape::name(name)
}

fn index_file(path: &Path) -> PathBuf {
    tercet::tgm::index_file_path(path)
}
