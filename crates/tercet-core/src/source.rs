//! Byte sources: files, memory maps, memory.

use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;

#[cfg(any(unix, windows))]
use crate::Location;
use crate::{Class, Diagnostic, Hint, Span};

mod access;
#[cfg(any(unix, windows))]
mod file;
#[cfg(any(unix, windows))]
mod lazy_file;
mod memory;
#[cfg(any(unix, windows))]
mod mmap;
mod slice;

pub use access::Access;
#[cfg(any(unix, windows))]
pub use file::File;
#[cfg(any(unix, windows))]
pub use lazy_file::LazyFile;
pub use memory::Memory;
#[cfg(any(unix, windows))]
pub use mmap::Mmap;
pub use slice::Slice;

/// Random access to bytes: a file, a memory map, memory, a remote file.
///
/// Like `object_store`, but blocking and for one file. Reads are exact or they fail; there are no short reads.
/// Sources are shared between threads.
pub trait ByteSource: fmt::Debug + Send + Sync {
    /// The name in error messages: the path or the URL.
    fn name(&self) -> &Arc<str>;

    /// The number of bytes. It does not change while the source is open.
    fn len(&self) -> u64;

    /// Whether the length is 0.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads a span. Memory maps and in-memory sources return it without a copy.
    fn read_at(&self, span: Span) -> Result<Bytes, SourceError>;

    /// Reads the bytes from `start` into `out`.
    fn read_into(&self, start: u64, out: &mut [u8]) -> Result<(), SourceError> {
        let span = Span::at(start, out.len() as u64)
            .ok_or(SourceError::PastEnd { span: Span::empty(start), len: self.len() })?;
        out.copy_from_slice(&self.read_at(span)?);
        Ok(())
    }

    /// Reads several spans and returns them in order. Remote sources coalesce close spans and make concurrent
    /// requests.
    fn read_many(&self, spans: &[Span]) -> Result<Vec<Bytes>, SourceError> {
        spans.iter().map(|span| self.read_at(*span)).collect()
    }

    /// The bytes of a span, if the source holds them in memory: a view without a copy.
    fn view(&self, _span: Span) -> Option<&[u8]> {
        None
    }

    /// Whether [`read_at`](Self::read_at) does not copy.
    fn is_zero_copy(&self) -> bool {
        false
    }

    /// Whether the source is remote: readers then read only what they need, not even checksums of other parts.
    fn is_remote(&self) -> bool {
        false
    }
}

impl<S: ByteSource + ?Sized> ByteSource for Arc<S> {
    fn name(&self) -> &Arc<str> {
        (**self).name()
    }
    fn len(&self) -> u64 {
        (**self).len()
    }
    fn read_at(&self, span: Span) -> Result<Bytes, SourceError> {
        (**self).read_at(span)
    }
    fn read_into(&self, start: u64, out: &mut [u8]) -> Result<(), SourceError> {
        (**self).read_into(start, out)
    }
    fn read_many(&self, spans: &[Span]) -> Result<Vec<Bytes>, SourceError> {
        (**self).read_many(spans)
    }
    fn view(&self, span: Span) -> Option<&[u8]> {
        (**self).view(span)
    }
    fn is_zero_copy(&self) -> bool {
        (**self).is_zero_copy()
    }
    fn is_remote(&self) -> bool {
        (**self).is_remote()
    }
}

/// The error of a source that could not be opened or read.
#[derive(Debug)]
#[non_exhaustive]
pub enum SourceError {
    /// The file could not be opened.
    Open(io::Error),
    /// The path does not name a regular file.
    NotAFile {
        /// The kind of entry: a directory, a pipe, a device.
        kind: &'static str,
    },
    /// The bytes could not be read.
    Read {
        /// The requested bytes.
        span: Span,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The span ends after the source: the file became shorter, or the caller did not check.
    PastEnd {
        /// The requested bytes.
        span: Span,
        /// The length of the source.
        len: u64,
    },
    /// The span does not fit into memory.
    TooLarge {
        /// The requested bytes.
        span: Span,
    },
    /// A request for a remote file failed.
    Remote {
        /// The requested bytes; none when the file was opened.
        span: Option<Span>,
        /// The error of the remote source: `tercet_remote::RemoteError`.
        error: Box<dyn Diagnostic + Send + Sync>,
    },
    /// The location is a URL, and this build has no remote sources.
    RemoteDisabled,
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => write!(f, "cannot open: {error}"),
            Self::NotAFile { kind } => write!(f, "cannot open: is {kind}, not a regular file"),
            Self::Read { span, error } => write!(f, "cannot read bytes {span}: {error}"),
            Self::PastEnd { span, len } => write!(f, "cannot read bytes {span}: the file ends at {len}"),
            Self::TooLarge { span } => {
                write!(f, "cannot read bytes {span}: out of memory ({} bytes)", span.len())
            }
            Self::RemoteDisabled => {
                f.write_str("cannot open: this build has no support for URLs (feature `remote`)")
            }
            Self::Remote { span: None, error } => write!(f, "cannot open: {error}"),
            Self::Remote { span: Some(span), error } => write!(f, "cannot read bytes {span}: {error}"),
        }
    }
}

impl std::error::Error for SourceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Open(error) | Self::Read { error, .. } => Some(error),
            Self::NotAFile { .. } | Self::PastEnd { .. } | Self::TooLarge { .. } | Self::RemoteDisabled => {
                None
            }
            Self::Remote { error, .. } => Some(&**error),
        }
    }
}

impl Diagnostic for SourceError {
    fn class(&self) -> Class {
        match self {
            Self::TooLarge { .. } => Class::Limit,
            Self::RemoteDisabled => Class::Unsupported,
            Self::Remote { error, .. } => error.class(),
            _ => Class::Io,
        }
    }
    fn span(&self) -> Option<Span> {
        match self {
            Self::Read { span, .. } | Self::PastEnd { span, .. } | Self::TooLarge { span } => Some(*span),
            Self::Open(_) | Self::NotAFile { .. } | Self::RemoteDisabled => None,
            Self::Remote { span, .. } => *span,
        }
    }
    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Remote { error, .. } => error.hint(),
            _ => None,
        }
    }
    fn is_not_found(&self) -> bool {
        match self {
            Self::Open(error) => error.kind() == io::ErrorKind::NotFound,
            Self::Remote { error, .. } => error.is_not_found(),
            _ => false,
        }
    }
}

/// Opens a file on this machine. A URL is [`SourceError::RemoteDisabled`]; `tercet_remote::open_location` opens both.
#[cfg(any(unix, windows))]
pub fn open_location(location: &Location, access: Access) -> Result<Arc<dyn ByteSource>, SourceError> {
    match location {
        Location::Path(path) => access.open(path),
        Location::Url(_) => Err(SourceError::RemoteDisabled),
    }
}

/// The range of a span in a source of `len` bytes, or the error of a read outside of it.
pub fn check_span(span: Span, len: u64) -> Result<std::ops::Range<usize>, SourceError> {
    if span.end() > len {
        return Err(SourceError::PastEnd { span, len });
    }
    span.to_range().ok_or(SourceError::TooLarge { span })
}

#[cfg(all(test, any(unix, windows)))]
mod tests {
    use super::*;

    #[test]
    fn urls_need_another_crate() {
        let url = Location::from("http://localhost/a.tatami");
        assert!(matches!(open_location(&url, Access::Pread), Err(SourceError::RemoteDisabled)));
    }
}
