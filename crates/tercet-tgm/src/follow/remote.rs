//! Growing remote files.
//!
//! The file is opened again at every poll: its `ETag` changes when it grows. So a replaced file is recognised by its bytes,
//! not by its `ETag`.

use std::cell::RefCell;
use std::sync::Arc;

use tercet_core::{ByteSource, Diagnostic as _, SourceError, Span};
use tercet_remote::{Remote, RemoteError, RemoteOptions};

use super::growing::{FileId, FileLocation, GrowingFile, Stamp};

/// Remote files have no ID.
const FILE_ID: FileId = (0, 0);
/// Bytes read at every poll.
const BLOCK: u64 = 512;
/// Retries for a file that changes while it is read.
const TRIES: usize = 5;

/// The URL of a growing file.
#[derive(Clone)]
pub(super) struct RemoteFile {
    url: Box<str>,
}

impl RemoteFile {
    pub(super) fn new(url: &str) -> Self {
        Self { url: url.into() }
    }

    /// Opens the current version. Without a block cache: every byte is read once.
    fn now(&self) -> Result<Option<Remote>, SourceError> {
        let mut options = RemoteOptions::default();
        (options.block_bytes, options.cache_bytes, options.grows) = (BLOCK, BLOCK, true);
        match Remote::open(&self.url, &options) {
            Ok(remote) => Ok(Some(remote)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn open_existing(&self) -> Result<Remote, SourceError> {
        let gone = || SourceError::Remote { span: None, error: Box::new(RemoteError::NotFound) };
        self.now()?.ok_or_else(gone)
    }
}

impl FileLocation for RemoteFile {
    fn file_id(&self) -> Result<Option<FileId>, SourceError> {
        Ok(self.now()?.map(|_| FILE_ID))
    }

    fn open(&self) -> Result<Option<Box<dyn GrowingFile>>, SourceError> {
        let open_file = |remote| Snapshot { location: self.clone(), remote: RefCell::new(remote) };
        Ok(self.now()?.map(|remote| Box::new(open_file(remote)) as Box<dyn GrowingFile>))
    }
}

/// The version of the last poll.
struct Snapshot {
    location: RemoteFile,
    remote: RefCell<Remote>,
}

impl GrowingFile for Snapshot {
    fn file_id(&self) -> FileId {
        FILE_ID
    }

    fn stat(&self) -> Result<(u64, Stamp), SourceError> {
        // A missing file keeps its length: the location is checked, too.
        if let Some(remote) = self.location.now()? {
            self.remote.replace(remote);
        }
        let remote = self.remote.borrow();
        let stamp = match remote.version() {
            Some(version) => version.to_owned(),
            // Without an ETag, compare the first bytes.
            None => format!("{:?}", remote.read_at(Span::first(remote.len().min(BLOCK)))?),
        };
        Ok((remote.len(), Some(stamp)))
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> Result<usize, SourceError> {
        let mut tries = 1;
        loop {
            let (len, wanted) = (self.remote.borrow().len(), out.len() as u64);
            let here = wanted.min(len.saturating_sub(at));
            let Some(span) = Span::at(at, here).filter(|_| here > 0) else { return Ok(0) };
            let read = self.remote.borrow().read_at(span);
            match read {
                Ok(bytes) => {
                    out[..bytes.len()].copy_from_slice(&bytes);
                    return Ok(bytes.len());
                }
                Err(error)
                    if RemoteError::from_source(&error) == Some(&RemoteError::Changed) && tries < TRIES =>
                {
                    tries += 1;
                    self.remote.replace(self.location.open_existing()?);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn snapshot(&self) -> Result<Arc<dyn ByteSource>, SourceError> {
        Ok(Arc::new(self.location.open_existing()?))
    }
}
