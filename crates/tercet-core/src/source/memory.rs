//! Bytes in memory.

use std::sync::Arc;

use bytes::Bytes;

use super::{ByteSource, SourceError, check_span};
use crate::Span;

/// A source over bytes in memory. Reads do not copy.
#[derive(Clone, Debug)]
pub struct Memory {
    name: Arc<str>,
    bytes: Bytes,
}

impl Memory {
    /// A source named `name` over `bytes`.
    pub fn new(name: &str, bytes: impl Into<Bytes>) -> Self {
        Self { name: Arc::from(name), bytes: bytes.into() }
    }
}

impl ByteSource for Memory {
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
