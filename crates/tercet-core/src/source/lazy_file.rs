//! A file that is open only while it is read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use super::file::open_regular;
use super::{ByteSource, File, SourceError};
use crate::Span;

/// A file that is open only while it is read: a program can take part in thousands of them, although the system lets it
/// hold only some open at a time.
///
/// It has to stay the file that it was: if it is replaced or changed meanwhile, reading fails.
#[derive(Debug)]
pub struct LazyFile {
    path: PathBuf,
    name: Arc<str>,
    state: State,
}

/// What tells one state of a file from another.
#[derive(Debug, PartialEq, Eq)]
struct State {
    len: u64,
    modified: Option<SystemTime>,
    /// Device and number, where files have one.
    place: Option<(u64, u64)>,
}

impl State {
    fn of(handle: &fs::File) -> io::Result<Self> {
        let meta = handle.metadata()?;
        #[cfg(unix)]
        let place = {
            use std::os::unix::fs::MetadataExt as _;
            Some((meta.dev(), meta.ino()))
        };
        #[cfg(not(unix))]
        let place = None;
        Ok(Self { len: meta.len(), modified: meta.modified().ok(), place })
    }
}

impl LazyFile {
    /// Looks at a regular file. Directories, pipes and devices are refused without reading from them.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SourceError> {
        let path = path.as_ref();
        let (handle, name, _) = open_regular(path)?;
        let state = State::of(&handle).map_err(SourceError::Open)?;
        Ok(Self { path: path.to_owned(), name, state })
    }

    /// The file, open for a moment.
    fn now(&self) -> Result<File, SourceError> {
        let (handle, ..) = open_regular(&self.path)?;
        if State::of(&handle).map_err(SourceError::Open)? != self.state {
            return Err(SourceError::Open(io::Error::other("the file was changed while it was read")));
        }
        File::from_handle(&self.name, handle)
    }
}

impl ByteSource for LazyFile {
    fn name(&self) -> &Arc<str> {
        &self.name
    }
    fn len(&self) -> u64 {
        self.state.len
    }
    fn read_at(&self, span: Span) -> Result<Bytes, SourceError> {
        self.now()?.read_at(span)
    }
    fn read_into(&self, start: u64, out: &mut [u8]) -> Result<(), SourceError> {
        self.now()?.read_into(start, out)
    }
}
