//! Bytes of a remote file that are read ahead for many messages at once.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use tercet_core::{ByteSource, SourceError, Span};

/// The number of blocks that may start between a block and bytes inside it.
const MAX_OVERLAPS: usize = 4;

/// A source with bytes that are already read. Other bytes are read from the inner source.
#[derive(Debug)]
pub(super) struct Prefetched {
    inner: Arc<dyn ByteSource>,
    blocks: RwLock<BTreeMap<u64, Bytes>>,
}

impl Prefetched {
    pub(super) fn new(inner: Arc<dyn ByteSource>) -> Self {
        Self { inner, blocks: RwLock::default() }
    }

    /// Reads spans that are not read yet, in one call.
    pub(super) fn prefetch(&self, spans: &[Span]) -> Result<(), SourceError> {
        let missing: Vec<Span> =
            spans.iter().copied().filter(|span| !span.is_empty() && self.find(*span).is_none()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let read = self.inner.read_many(&missing)?;
        let mut blocks = self.blocks.write().unwrap_or_else(PoisonError::into_inner);
        for (span, bytes) in missing.into_iter().zip(read) {
            let block = blocks.entry(span.start()).or_default();
            if block.len() < bytes.len() {
                *block = bytes;
            }
        }
        Ok(())
    }

    /// Releases the bytes.
    pub(super) fn clear(&self) {
        self.blocks.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn find(&self, span: Span) -> Option<Bytes> {
        let blocks = self.blocks.read().unwrap_or_else(PoisonError::into_inner);
        blocks.range(..=span.start()).rev().take(MAX_OVERLAPS).find_map(|(start, block)| {
            let from = usize::try_from(span.start() - start).ok()?;
            let to = from.checked_add(span.len_usize()?).filter(|to| *to <= block.len())?;
            Some(block.slice(from..to))
        })
    }
}

impl ByteSource for Prefetched {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, span: Span) -> Result<Bytes, SourceError> {
        self.find(span).map_or_else(|| self.inner.read_at(span), Ok)
    }

    fn read_many(&self, spans: &[Span]) -> Result<Vec<Bytes>, SourceError> {
        match spans.iter().map(|span| self.find(*span)).collect() {
            Some(found) => Ok(found),
            None => self.inner.read_many(spans),
        }
    }

    fn is_remote(&self) -> bool {
        true
    }
}
