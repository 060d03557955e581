//! Buffer pool for decoded payloads.
//!
//! Freed memory is returned to the kernel and faulted in again page by page, a fifth of the time of a scan. A file keeps a few
//! unreferenced payload buffers for reuse.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// Maximum number of pooled buffers …
const MAX_BUFFERS: usize = 16;
/// … and size of each.
const MAX_BYTES: usize = 2 << 20;
/// Smaller buffers are cheap to allocate.
const MIN_BYTES: usize = 64 << 10;

/// Free buffers.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    waiting: Mutex<Vec<Vec<u8>>>,
}

impl Pool {
    /// An empty buffer, with capacity for `len` bytes if one is free.
    pub(crate) fn take(&self, len: usize) -> Vec<u8> {
        if !(MIN_BYTES..=MAX_BYTES).contains(&len) {
            return Vec::new();
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = waiting.iter().position(|buffer| buffer.capacity() >= len);
        fitting.map(|at| waiting.swap_remove(at)).unwrap_or_default()
    }

    /// Converts a buffer to `Bytes` that return it to the pool when dropped.
    pub(crate) fn lend(self: &Arc<Self>, buffer: Vec<u8>) -> Bytes {
        if !(MIN_BYTES..=MAX_BYTES).contains(&buffer.capacity()) {
            return Bytes::from(buffer);
        }
        Bytes::from_owner(PooledBuffer { buffer, pool: Arc::clone(self) })
    }
}

/// A buffer that returns to the pool when dropped.
struct PooledBuffer {
    buffer: Vec<u8>,
    pool: Arc<Pool>,
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        let mut waiting = self.pool.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < MAX_BUFFERS {
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.clear();
            waiting.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_return_when_the_last_slice_is_dropped() {
        let pool = Arc::new(Pool::default());
        assert_eq!(pool.take(MIN_BYTES).capacity(), 0);
        let lent = pool.lend(vec![7; MIN_BYTES]);
        let slice = lent.slice(5..9);
        drop(lent);
        assert_eq!(pool.take(MIN_BYTES).capacity(), 0);
        assert_eq!(&slice[..], [7; 4]);
        drop(slice);
        assert_eq!(pool.take(MIN_BYTES + 1).capacity(), 0, "too short");
        let again = pool.take(MIN_BYTES);
        assert!(again.is_empty() && again.capacity() >= MIN_BYTES);
    }

    #[test]
    fn number_and_size_of_buffers_are_bounded() {
        let pool = Arc::new(Pool::default());
        let lent: Vec<Bytes> = (0..MAX_BUFFERS + 3).map(|_| pool.lend(vec![1; MIN_BYTES])).collect();
        drop(lent);
        drop(pool.lend(vec![0; MAX_BYTES + 1]));
        drop(pool.lend(vec![0; 10]));
        let waiting = pool.waiting.lock().unwrap();
        assert_eq!(waiting.len(), MAX_BUFFERS);
        assert!(waiting.iter().all(|buffer| buffer.capacity() <= MAX_BYTES));
    }
}
