//! Limits on allocations for declared sizes.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// The maximum declared sizes that a reader accepts.
///
/// A declared size is compared with these limits before memory is allocated. The defaults suit files of many
/// gigabytes on a workstation; a server lowers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of structure (directories, footers, metadata) held at once.
    pub metadata_bytes: u64,
    /// Bytes of one decoded chunk, message or page.
    pub chunk_bytes: u64,
    /// Bytes of one decoded array or column.
    pub array_bytes: u64,
    /// Bytes of lookup tables built for files that are not in canonical order.
    pub table_bytes: u64,
    /// Bytes that a chunk or array of a small file may decode to; see [`for_file`](Self::for_file).
    pub small_file_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            metadata_bytes: 2 << 30,
            chunk_bytes: 8 << 30,
            array_bytes: 1 << 40,
            table_bytes: 4 << 30,
            small_file_bytes: 1 << 30,
        }
    }
}

impl Limits {
    /// Small limits for untrusted input in a shared process: 16 MiB of structure, 64 MiB of data.
    pub const fn small() -> Self {
        Self {
            metadata_bytes: 16 << 20,
            chunk_bytes: 64 << 20,
            array_bytes: 64 << 20,
            table_bytes: 16 << 20,
            small_file_bytes: 64 << 20,
        }
    }

    /// One limit for all purposes.
    pub const fn uniform(bytes: u64) -> Self {
        Self {
            metadata_bytes: bytes,
            chunk_bytes: bytes,
            array_bytes: bytes,
            table_bytes: bytes,
            small_file_bytes: bytes,
        }
    }

    /// The limits for a file of `len` bytes.
    ///
    /// A few hundred bytes can declare an array of terabytes that decodes without an error: one that is constant, or
    /// compresses perfectly. So a chunk or array has at most [`small_file_bytes`](Self::small_file_bytes), or
    /// [`MAX_EXPANSION`](Self::MAX_EXPANSION) times the length of the file if that is more.
    pub fn for_file(mut self, len: u64) -> Self {
        let most = len.saturating_mul(Self::MAX_EXPANSION).max(self.small_file_bytes);
        self.chunk_bytes = self.chunk_bytes.min(most);
        self.array_bytes = self.array_bytes.min(most);
        self
    }

    /// The ratio of decoded bytes to the length of the file that [`for_file`](Self::for_file) always accepts.
    pub const MAX_EXPANSION: u64 = 1024;

    /// Sets the limit for structure.
    pub const fn with_metadata_bytes(mut self, bytes: u64) -> Self {
        self.metadata_bytes = bytes;
        self
    }

    /// Sets the limit for one decoded chunk.
    pub const fn with_chunk_bytes(mut self, bytes: u64) -> Self {
        self.chunk_bytes = bytes;
        self
    }

    /// Sets the limit for one decoded array.
    pub const fn with_array_bytes(mut self, bytes: u64) -> Self {
        self.array_bytes = bytes;
        self
    }

    /// Sets the limit for lookup tables.
    pub const fn with_table_bytes(mut self, bytes: u64) -> Self {
        self.table_bytes = bytes;
        self
    }

    /// Sets the limit for chunks and arrays of small files.
    pub const fn with_small_file_bytes(mut self, bytes: u64) -> Self {
        self.small_file_bytes = bytes;
        self
    }
}

/// The error of a size that exceeds a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitExceeded {
    /// The purpose of the memory.
    pub what: &'static str,
    /// Bytes requested.
    pub requested: u64,
    /// Bytes allowed.
    pub allowed: u64,
}

impl fmt::Display for LimitExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} needs {} bytes, but the limit is {}", self.what, self.requested, self.allowed)
    }
}

impl std::error::Error for LimitExceeded {}

/// A memory budget from which allocations of declared sizes are reserved.
///
/// ```
/// use tercet_core::Budget;
///
/// let budget = Budget::new("metadata", 100);
/// assert_eq!(budget.reserve(60).unwrap(), 60);
/// assert!(budget.reserve(60).is_err());
/// budget.release(60);
/// assert!(budget.reserve(100).is_ok());
/// ```
#[derive(Debug)]
pub struct Budget {
    what: &'static str,
    allowed: u64,
    spent: AtomicU64,
}

impl Budget {
    /// A budget of `allowed` bytes for `what`.
    pub const fn new(what: &'static str, allowed: u64) -> Self {
        Self { what, allowed, spent: AtomicU64::new(0) }
    }

    /// Reserves `bytes` and returns them as a `usize`.
    pub fn reserve(&self, bytes: u64) -> Result<usize, LimitExceeded> {
        let take = |spent: u64| spent.checked_add(bytes).filter(|&sum| sum <= self.allowed);
        let exceeded = |spent: u64| LimitExceeded {
            what: self.what,
            requested: spent.saturating_add(bytes),
            allowed: self.allowed,
        };
        self.spent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).map_err(exceeded)?;
        usize::try_from(bytes).map_err(|_| LimitExceeded {
            what: self.what,
            requested: bytes,
            allowed: usize::MAX as u64,
        })
    }

    /// Bytes that can still be reserved.
    pub fn left(&self) -> u64 {
        self.allowed.saturating_sub(self.spent.load(Ordering::Relaxed))
    }

    /// Releases `bytes` that were reserved.
    pub fn release(&self, bytes: u64) {
        let less = |spent: u64| Some(spent.saturating_sub(bytes));
        // The closure always returns a value, so the update cannot fail.
        let _ = self.spent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

/// Checks a single size against a limit.
pub fn check_limit(what: &'static str, bytes: u64, allowed: u64) -> Result<usize, LimitExceeded> {
    Budget::new(what, allowed).reserve(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_have_lower_limits() {
        let default = Limits::default();
        for (len, most) in [(0, 1 << 30), (300, 1 << 30), (1 << 20, 1 << 30), (4 << 20, 4 << 30)] {
            let limits = default.for_file(len);
            assert_eq!((limits.chunk_bytes, limits.array_bytes), (most, most), "{len}");
            assert_eq!(limits.metadata_bytes, default.metadata_bytes);
        }
        let large = default.for_file(1 << 40);
        assert_eq!((large.chunk_bytes, large.array_bytes), (default.chunk_bytes, default.array_bytes));
        assert_eq!(default.for_file(u64::MAX), default);
        assert_eq!(Limits::uniform(5 << 30).for_file(300).chunk_bytes, 5 << 30);
        assert_eq!(Limits::small().for_file(0), Limits::small());
    }

    #[test]
    fn reservations_add_up() {
        let budget = Budget::new("tables", 10);
        budget.reserve(6).unwrap();
        let error = budget.reserve(5).unwrap_err();
        assert_eq!((error.requested, error.allowed), (11, 10));
        budget.reserve(4).unwrap();
        assert!(budget.reserve(u64::MAX).is_err());
    }
}
