//! Where bytes come from.

use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;

use crate::{Class, Diagnose, Span};

#[cfg(any(unix, windows))]
mod file;
mod memory;
#[cfg(any(unix, windows))]
mod mmap;

#[cfg(any(unix, windows))]
pub use file::File;
pub use memory::Memory;
#[cfg(any(unix, windows))]
pub use mmap::Mmap;

/// Bytes that can be read at any position: a file, a map, memory.
///
/// Reads are exact or they fail; there are no short reads. Sources are shared between threads.
pub trait ByteSource: fmt::Debug + Send + Sync {
    /// The name printed in every message about these bytes.
    fn name(&self) -> &Arc<str>;

    /// The number of bytes. It does not change while the source is open.
    fn len(&self) -> u64;

    /// Whether there is no byte at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of a span. Mapped and in-memory sources return them without a copy.
    fn read_at(&self, span: Span) -> Result<Bytes, SourceError>;

    /// Fills `out` with the bytes that start at `start`.
    fn read_into(&self, start: u64, out: &mut [u8]) -> Result<(), SourceError> {
        let span = Span::at(start, out.len() as u64)
            .ok_or(SourceError::PastEnd { span: Span::empty(start), len: self.len() })?;
        out.copy_from_slice(&self.read_at(span)?);
        Ok(())
    }

    /// Whether [`read_at`](Self::read_at) costs no copy.
    fn is_zero_copy(&self) -> bool {
        false
    }

    /// Whether bytes come from afar: what is not needed is then not read, not even to check it.
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
    fn is_zero_copy(&self) -> bool {
        (**self).is_zero_copy()
    }
    fn is_remote(&self) -> bool {
        (**self).is_remote()
    }
}

/// Bytes that could not be had.
#[derive(Debug)]
#[non_exhaustive]
pub enum SourceError {
    /// The file could not be opened.
    Open(io::Error),
    /// The path names something that has no bytes at fixed positions.
    NotAFile {
        /// What it is: a directory, a pipe, a device.
        kind: &'static str,
    },
    /// The bytes could not be read.
    Read {
        /// The bytes asked for.
        span: Span,
        /// What the operating system said.
        error: io::Error,
    },
    /// The span leaves the source: the file became shorter, or the caller did not check.
    PastEnd {
        /// The bytes asked for.
        span: Span,
        /// The length of the source.
        len: u64,
    },
    /// The span does not fit into memory.
    TooLarge {
        /// The bytes asked for.
        span: Span,
    },
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => write!(f, "cannot open: {error}"),
            Self::NotAFile { kind } => write!(f, "cannot open: is {kind}, not a regular file"),
            Self::Read { span, error } => write!(f, "cannot read bytes {span}: {error}"),
            Self::PastEnd { span, len } => write!(f, "cannot read bytes {span}: the file ends at {len}"),
            Self::TooLarge { span } => {
                write!(f, "cannot read bytes {span}: more than there is memory for")
            }
        }
    }
}

impl std::error::Error for SourceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Open(error) | Self::Read { error, .. } => Some(error),
            Self::NotAFile { .. } | Self::PastEnd { .. } | Self::TooLarge { .. } => None,
        }
    }
}

impl Diagnose for SourceError {
    fn class(&self) -> Class {
        match self {
            Self::TooLarge { .. } => Class::Limit,
            _ => Class::Io,
        }
    }
    fn span(&self) -> Option<Span> {
        match self {
            Self::Read { span, .. } | Self::PastEnd { span, .. } | Self::TooLarge { span } => Some(*span),
            Self::Open(_) | Self::NotAFile { .. } => None,
        }
    }
}

/// The usable range of a span inside `len` bytes.
fn range_within(span: Span, len: u64) -> Result<std::ops::Range<usize>, SourceError> {
    if span.end() > len {
        return Err(SourceError::PastEnd { span, len });
    }
    span.to_range().ok_or(SourceError::TooLarge { span })
}
