//! Borrowed bytes.

use std::sync::Arc;

use bytes::Bytes;

use super::{ByteSource, SourceError, check_span};
use crate::Span;

/// A source over borrowed bytes. [`view`](ByteSource::view) does not copy; [`read_at`](ByteSource::read_at) copies the
/// span.
#[derive(Clone, Debug)]
pub struct Slice<'a> {
    name: Arc<str>,
    bytes: &'a [u8],
}

impl<'a> Slice<'a> {
    /// A source named `name` over `bytes`.
    pub fn new(name: &str, bytes: &'a [u8]) -> Self {
        Self { name: Arc::from(name), bytes }
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
        Ok(Bytes::copy_from_slice(&self.bytes[check_span(span, self.len())?]))
    }
    fn read_into(&self, start: u64, out: &mut [u8]) -> Result<(), SourceError> {
        let span = Span::at(start, out.len() as u64)
            .ok_or(SourceError::PastEnd { span: Span::empty(start), len: self.len() })?;
        out.copy_from_slice(&self.bytes[check_span(span, self.len())?]);
        Ok(())
    }
    fn view(&self, span: Span) -> Option<&[u8]> {
        self.bytes.get(span.to_range()?)
    }
}
