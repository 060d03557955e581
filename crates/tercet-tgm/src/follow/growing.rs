//! Growing files: local and remote.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tercet_core::{ByteSource, SourceError, Span, source};

/// The ID of a file: device and inode number.
pub(super) type FileId = (u64, u64);

/// The modification time of a file, or the `ETag` of a remote file.
pub(super) type Stamp = Option<String>;

/// The location of a growing file: a path or a URL.
pub(super) trait FileLocation: Send {
    /// The ID of the current file, if it exists.
    fn file_id(&self) -> Result<Option<FileId>, SourceError>;

    /// Opens the current file, if it exists.
    fn open(&self) -> Result<Option<Box<dyn GrowingFile>>, SourceError>;
}

/// An open growing file. It stays the same file when it is replaced at its location.
pub(super) trait GrowingFile: Send {
    /// The ID of the open file.
    fn file_id(&self) -> FileId;

    /// The current length and modification stamp.
    fn stat(&self) -> Result<(u64, Stamp), SourceError>;

    /// The current length.
    fn len(&self) -> Result<u64, SourceError> {
        Ok(self.stat()?.0)
    }

    /// Reads bytes at `at`; fewer at the end of the file.
    fn read_at(&self, at: u64, out: &mut [u8]) -> Result<usize, SourceError>;

    /// A byte source of the current content.
    fn snapshot(&self) -> Result<Arc<dyn ByteSource>, SourceError>;
}

/// A local path.
#[derive(Clone, Debug)]
pub(super) struct LocalPath(PathBuf);

impl LocalPath {
    pub(super) fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }
}

impl FileLocation for LocalPath {
    fn file_id(&self) -> Result<Option<FileId>, SourceError> {
        match fs::metadata(&self.0) {
            Ok(meta) => Ok(Some(file_id_of(&meta))),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(SourceError::Open(error)),
        }
    }

    fn open(&self) -> Result<Option<Box<dyn GrowingFile>>, SourceError> {
        // Check the type first: opening a pipe would block.
        let opened = source::File::open(&self.0).and_then(|_| {
            let handle = fs::OpenOptions::new().read(true).open(&self.0).map_err(SourceError::Open)?;
            let file_id = file_id_of(&handle.metadata().map_err(SourceError::Open)?);
            Ok(LocalFile { name: self.0.to_string_lossy().into_owned(), handle, file_id })
        });
        match opened {
            Ok(file) => Ok(Some(Box::new(file))),
            Err(SourceError::Open(error)) if is_absence(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// An open local file.
#[derive(Debug)]
struct LocalFile {
    name: String,
    handle: fs::File,
    file_id: FileId,
}

impl GrowingFile for LocalFile {
    fn file_id(&self) -> FileId {
        self.file_id
    }

    fn stat(&self) -> Result<(u64, Stamp), SourceError> {
        let meta = self.handle.metadata().map_err(SourceError::Open)?;
        let since = meta.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        Ok((meta.len(), since.map(|since| since.as_nanos().to_string())))
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> Result<usize, SourceError> {
        let mut filled = 0;
        while let Some(rest) = out.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match read_some(&self.handle, rest, at + filled as u64) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let span = Span::at(at, out.len() as u64).unwrap_or(Span::empty(at));
                    return Err(SourceError::Read { span, error });
                }
            }
        }
        Ok(filled)
    }

    fn snapshot(&self) -> Result<Arc<dyn ByteSource>, SourceError> {
        let handle = self.handle.try_clone().map_err(SourceError::Open)?;
        Ok(Arc::new(source::File::from_handle(&self.name, handle)?))
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(unix)]
fn file_id_of(meta: &fs::Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt as _;
    (meta.dev(), meta.ino())
}

/// Without inode numbers, the creation time identifies a file.
#[cfg(not(unix))]
fn file_id_of(meta: &fs::Metadata) -> FileId {
    let since = meta.created().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    since.map_or((0, 0), |since| (since.as_secs(), since.subsec_nanos().into()))
}

#[cfg(unix)]
fn read_some(file: &fs::File, out: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, out, at)
}

#[cfg(windows)]
fn read_some(file: &fs::File, out: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, out, at)
}
