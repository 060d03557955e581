//! Memory-mapped files.
#![expect(unsafe_code, reason = "mapping a file is unsafe by nature; the one place it is done")]

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::file::open_regular;
use super::{ByteSource, SourceError, check_span};
use crate::Span;

/// A memory-mapped file: reads are slices of the map, without a copy.
///
/// # When the file changes
///
/// The map shows the current contents of the file. A program that overwrites the file in place changes the bytes
/// of existing slices. A program that *truncates* it makes the next access to the lost pages kill this process
/// with `SIGBUS`. A file replaced by rename, as by every writer of this library, is safe: the map keeps the old
/// file. For files that others may truncate use [`File`](super::File).
#[derive(Clone, Debug)]
pub struct Mmap {
    name: Arc<str>,
    bytes: Bytes,
}

impl Mmap {
    /// Maps a regular file. Directories, pipes and devices are refused.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SourceError> {
        let (file, name, len) = open_regular(path.as_ref())?;
        if len == 0 {
            // An empty file cannot be mapped.
            return Ok(Self { name, bytes: Bytes::new() });
        }
        if usize::try_from(len).is_err() {
            return Err(SourceError::TooLarge { span: Span::first(len) });
        }
        // SAFETY: the map is read-only and private to this value. Concurrent changes of the file are possible and
        // documented above; nothing here assumes that bytes read twice are equal, and no reference to the map is
        // turned into a type with invalid bit patterns.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(SourceError::Open)?;
        Ok(Self { name, bytes: Bytes::from_owner(map) })
    }
}

impl ByteSource for Mmap {
    fn name(&self) -> &Arc<str> {
        &self.name
    }
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn read_at(&self, span: Span) -> Result<Bytes, SourceError> {
        Ok(self.bytes.slice(check_span(span, self.len())?))
    }
    fn view(&self, span: Span) -> Option<&[u8]> {
        self.bytes.get(span.to_range()?)
    }
    fn is_zero_copy(&self) -> bool {
        true
    }
}
