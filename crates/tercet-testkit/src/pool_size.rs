//! A source that records in which thread pool it is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;
use tercet_core::source::Memory;
use tercet_core::{ByteSource, SourceError, Span};

/// Bytes in memory, and the size of the thread pool in which they were read last.
#[derive(Debug)]
pub struct PoolSize {
    memory: Memory,
    threads: AtomicUsize,
}

impl PoolSize {
    /// A source of these bytes. Reads copy.
    pub fn new(name: &str, bytes: impl Into<Bytes>) -> Arc<Self> {
        Arc::new(Self { memory: Memory::new(name, bytes), threads: AtomicUsize::new(0) })
    }

    /// The size of the pool of the last read since the last call; 0 without a read.
    pub fn take(&self) -> usize {
        self.threads.swap(0, Relaxed)
    }
}

impl ByteSource for PoolSize {
    fn name(&self) -> &Arc<str> {
        self.memory.name()
    }

    fn len(&self) -> u64 {
        self.memory.len()
    }

    fn read_at(&self, span: Span) -> Result<Bytes, SourceError> {
        self.threads.store(rayon::current_num_threads(), Relaxed);
        self.memory.read_at(span)
    }
}
