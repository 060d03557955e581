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
    fn view(&self, span: Span) -> Option<&[u8]> {
        self.source.view(self.span.slice(span.start(), span.len())?)
    }
    fn is_zero_copy(&self) -> bool {
        self.source.is_zero_copy()
    }
    fn is_remote(&self) -> bool {
        self.source.is_remote()
    }
}
