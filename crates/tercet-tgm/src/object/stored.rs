//! Stored bytes: a view of a source in memory, or bytes that were read.

use std::ops::{Deref, Range};

use bytes::Bytes;
use tercet_core::{ByteSource, SourceError, Span};

/// Bytes of a source. Sources in memory lend them, others read them.
#[derive(Clone, Debug)]
pub(super) enum StoredBytes<'a> {
    View(&'a [u8]),
    Read(Bytes),
}

impl<'a> StoredBytes<'a> {
    pub(super) fn read(source: &'a dyn ByteSource, span: Span) -> Result<Self, SourceError> {
        match source.view(span) {
            Some(view) => Ok(Self::View(view)),
            None => source.read_at(span).map(Self::Read),
        }
    }

    /// A part; a range outside is cut off.
    pub(super) fn slice(&self, range: Range<usize>) -> Self {
        let end = range.end.min(self.len());
        let range = range.start.min(end)..end;
        match self {
            Self::View(view) => Self::View(&view[range]),
            Self::Read(bytes) => Self::Read(bytes.slice(range)),
        }
    }
}

impl Deref for StoredBytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::View(view) => view,
            Self::Read(bytes) => bytes,
        }
    }
}
