//! A source that records reads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tercet_core::{ByteSource, SourceError, Span};

/// Forwards every read to another source and records it.
///
/// The requested bytes are counted: a reader that takes a large slice of a map and uses a few bytes is charged for
/// all. With [`with_copies`](Counting::with_copies) the source reports that reads copy, as for files and object
/// stores.
///
/// ```
/// use tercet_core::{ByteSource, Span, source::Memory};
/// use tercet_testkit::counting::Counting;
///
/// let source = Counting::new(Memory::new("abc", &b"abc"[..]));
/// source.read_at(Span::first(2)).unwrap();
/// assert_eq!((source.reads(), source.bytes()), (1, 2));
/// ```
#[derive(Debug)]
pub struct Counting<S> {
    inner: S,
    copies: bool,
    remote: bool,
    bytes: AtomicU64,
    spans: Mutex<Vec<Span>>,
}

impl<S: ByteSource> Counting<S> {
    /// Counts the reads of `inner` from now on.
    pub fn new(inner: S) -> Self {
        Self { inner, copies: false, remote: false, bytes: AtomicU64::new(0), spans: Mutex::default() }
    }

    /// Reports that reads copy, regardless of the inner source.
    pub fn with_copies(mut self) -> Self {
        self.copies = true;
        self
    }

    /// Reports that the source is remote.
    pub fn with_remote(mut self) -> Self {
        (self.copies, self.remote) = (true, true);
        self
    }

    /// Wraps the source in an `Arc`, to share it with a reader.
    pub fn shared(self) -> Arc<Self> {
        Arc::new(self)
    }

    /// The number of reads so far.
    pub fn reads(&self) -> usize {
        self.log().len()
    }

    /// The bytes requested so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// The spans requested so far, in order.
    pub fn spans(&self) -> Vec<Span> {
        self.log().clone()
    }

    /// Clears the record.
    pub fn reset(&self) {
        self.bytes.store(0, Relaxed);
        self.log().clear();
    }

    fn log(&self) -> MutexGuard<'_, Vec<Span>> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, span: Span) {
        self.bytes.fetch_add(span.len(), Relaxed);
        self.log().push(span);
    }
}

impl<S: ByteSource> ByteSource for Counting<S> {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, span: Span) -> Result<Bytes, SourceError> {
        self.count(span);
        self.inner.read_at(span)
    }

    fn read_into(&self, start: u64, out: &mut [u8]) -> Result<(), SourceError> {
        if let Some(span) = Span::at(start, out.len() as u64) {
            self.count(span);
        }
        self.inner.read_into(start, out)
    }

    fn read_many(&self, spans: &[Span]) -> Result<Vec<Bytes>, SourceError> {
        for span in spans {
            self.count(*span);
        }
        self.inner.read_many(spans)
    }

    fn is_zero_copy(&self) -> bool {
        !self.copies && self.inner.is_zero_copy()
    }

    fn is_remote(&self) -> bool {
        self.remote || self.inner.is_remote()
    }
}
