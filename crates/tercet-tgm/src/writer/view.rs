//! Sources over bytes that are being written.

use std::sync::Arc;

use bytes::Bytes;
use tercet_core::{ByteSource, SourceError, Span};

/// A part of a source.
#[derive(Debug)]
pub(super) struct Part<'a> {
    source: &'a dyn ByteSource,
    span: Span,
}

impl<'a> Part<'a> {
    pub(super) fn new(source: &'a dyn ByteSource, span: Span) -> Self {
        Self { source, span }
    }
}

impl ByteSource for Part<'_> {
    fn name(&self) -> &Arc<str> {
        self.source.name()
    }
    fn len(&self) -> u64 {
        self.span.len()
    }
    fn read_at(&self, span: Span) -> Result<Bytes, SourceError> {
        let inside = self.span.slice(span.start(), span.len());
        self.source.read_at(inside.ok_or(SourceError::PastEnd { span, len: self.len() })?)
    }
    fn is_zero_copy(&self) -> bool {
        self.source.is_zero_copy()
    }
    fn is_remote(&self) -> bool {
        self.source.is_remote()
    }
}

/// Borrowed bytes; reads copy, but they are short.
#[derive(Debug)]
pub(super) struct Slice<'a> {
    name: Arc<str>,
    bytes: &'a [u8],
}

impl<'a> Slice<'a> {
    pub(super) fn new(name: Arc<str>, bytes: &'a [u8]) -> Self {
        Self { name, bytes }
    }
}

impl ByteSource for Slice<'_> {
    fn name(&self) -> &Arc<str> {
        &self.name
    }
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn read_at(&self, span: Span) -> Result<Bytes, SourceError> {
        let bytes = span.to_range().and_then(|range| self.bytes.get(range));
        bytes.map(Bytes::copy_from_slice).ok_or(SourceError::PastEnd { span, len: self.len() })
    }
}
