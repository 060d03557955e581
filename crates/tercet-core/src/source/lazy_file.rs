//! Files that are open only during a read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use super::file::open_regular;
use super::{ByteSource, File, SourceError};
use crate::Span;

/// A file that is open only during a read, for thousands of files under a limit on open files.
///
/// If the file is replaced or changed, reading fails.
#[derive(Debug)]
pub struct LazyFile {
    path: PathBuf,
    name: Arc<str>,
    version: FileVersion,
}

/// The version of a file: length, modification time and ID.
#[derive(Debug, PartialEq, Eq)]
struct FileVersion {
    len: u64,
    modified: Option<SystemTime>,
    /// Device and inode, where the system has them.
    id: Option<(u64, u64)>,
}

impl FileVersion {
    fn read(handle: &fs::File) -> io::Result<Self> {
        let meta = handle.metadata()?;
        #[cfg(unix)]
        let id = {
            use std::os::unix::fs::MetadataExt as _;
            Some((meta.dev(), meta.ino()))
        };
        #[cfg(not(unix))]
        let id = None;
        Ok(Self { len: meta.len(), modified: meta.modified().ok(), id })
    }
}

impl LazyFile {
    /// Checks a regular file. Directories, pipes and devices are refused without reading from them.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SourceError> {
        let path = path.as_ref();
        let (handle, name, _) = open_regular(path)?;
        let version = FileVersion::read(&handle).map_err(SourceError::Open)?;
        Ok(Self { path: path.to_owned(), name, version })
    }

    /// Opens the file for a read and checks its version.
    fn open_now(&self) -> Result<File, SourceError> {
        let (handle, ..) = open_regular(&self.path)?;
        if FileVersion::read(&handle).map_err(SourceError::Open)? != self.version {
            return Err(SourceError::Open(io::Error::other("the file changed while it was read")));
        }
        File::from_handle(&self.name, handle)
    }
}

impl ByteSource for LazyFile {
    fn name(&self) -> &Arc<str> {
        &self.name
    }
    fn len(&self) -> u64 {
        self.version.len
    }
    fn read_at(&self, span: Span) -> Result<Bytes, SourceError> {
        self.open_now()?.read_at(span)
    }
    fn read_into(&self, start: u64, out: &mut [u8]) -> Result<(), SourceError> {
        self.open_now()?.read_into(start, out)
    }
}
