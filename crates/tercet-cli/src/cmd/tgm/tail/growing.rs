//! Things that grow.

use std::fs;
use std::io;
use std::path;
use std::sync::Arc;

use tercet::core::{ByteSource, SourceError, Span, source};

/// What tells a thing from another one that takes its place: device and number of a file, the tag of an address.
pub(super) type Identity = (u64, u64);

/// When a thing was changed: the time of a file, the version of an address.
pub(super) type Stamp = Option<String>;

/// A place where something that grows is expected: a path, an address.
pub(super) trait Place {
    /// What is there now, if anything is.
    fn identity(&self) -> Result<Option<Identity>, SourceError>;

    /// Opens what is there now, if anything is.
    fn open(&self) -> Result<Option<Box<dyn Growing>>, SourceError>;
}

/// Bytes that become more. They stay what they are when something else takes their place.
pub(super) trait Growing {
    /// Which one it is.
    fn identity(&self) -> Identity;

    /// How many bytes there are now, and something that is another if any of them changed.
    fn look(&self) -> Result<(u64, Stamp), SourceError>;

    /// How many bytes there are now.
    fn len(&self) -> Result<u64, SourceError> {
        Ok(self.look()?.0)
    }

    /// Reads bytes that start at `at`; fewer than asked for where they end.
    fn read_at(&self, at: u64, out: &mut [u8]) -> Result<usize, SourceError>;

    /// The bytes that are there now.
    fn snapshot(&self) -> Result<Arc<dyn ByteSource>, SourceError>;
}

/// A path on this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path<'a>(&'a path::Path);

impl<'a> Path<'a> {
    pub(super) fn new(path: &'a path::Path) -> Self {
        Self(path)
    }
}

impl Place for Path<'_> {
    fn identity(&self) -> Result<Option<Identity>, SourceError> {
        match fs::metadata(self.0) {
            Ok(meta) => Ok(Some(identity_of(&meta))),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(SourceError::Open(error)),
        }
    }

    fn open(&self) -> Result<Option<Box<dyn Growing>>, SourceError> {
        // Looks before it opens: opening a pipe would wait for somebody who writes to it.
        let opened = source::File::open(self.0).and_then(|_| {
            let handle = fs::OpenOptions::new().read(true).open(self.0).map_err(SourceError::Open)?;
            let identity = identity_of(&handle.metadata().map_err(SourceError::Open)?);
            Ok(LocalFile { name: self.0.to_string_lossy().into_owned(), handle, identity })
        });
        match opened {
            Ok(file) => Ok(Some(Box::new(file))),
            Err(SourceError::Open(error)) if is_absence(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A file that is open, whatever became of its name.
#[derive(Debug)]
struct LocalFile {
    name: String,
    handle: fs::File,
    identity: Identity,
}

impl Growing for LocalFile {
    fn identity(&self) -> Identity {
        self.identity
    }

    fn look(&self) -> Result<(u64, Stamp), SourceError> {
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
fn identity_of(meta: &fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    (meta.dev(), meta.ino())
}

/// Files have no number that the standard library tells: a new one has another time of creation.
#[cfg(not(unix))]
fn identity_of(meta: &fs::Metadata) -> Identity {
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
