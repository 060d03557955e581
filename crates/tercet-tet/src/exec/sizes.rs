//! Where work is cut. Tests use tiny sizes, so that small arrays take every path that large ones take.

/// States of cells smaller than this, in bytes, are worked on together with their neighbours.
pub(crate) const SMALL_BLOCK: usize = if cfg!(test) { 200 } else { 512 << 10 };
/// Bytes of states that one task may hold.
pub(crate) const LARGE_BLOCK: usize = if cfg!(test) { 1000 } else { 48 << 20 };
/// Raw chunks of more bytes are worked on in several pieces.
pub(crate) const LARGE_CHUNK: u64 = if cfg!(test) { 128 } else { 8 << 20 };
/// The bytes of such a piece.
pub(crate) const PIECE: u64 = if cfg!(test) { 64 } else { 4 << 20 };
/// Rows are at most this long where the chunk's shape allows it.
pub(crate) const ROW: u64 = if cfg!(test) { 24 } else { 64 << 10 };
/// Bytes that are checked and folded while they are in the second-level cache.
pub(crate) const CACHED: u64 = if cfg!(test) { 32 } else { 256 << 10 };
/// Bytes of chunks that one partial result is made of, at least.
pub(crate) const SPLIT: u64 = if cfg!(test) { 100 } else { 4 << 20 };
/// Bytes of states that the partial results of one task may take together.
pub(crate) const SPLIT_STATES: usize = if cfg!(test) { 2000 } else { 48 << 20 };
/// The most partial results of a task.
pub(crate) const MOST_SPLITS: usize = 256;
/// With so many tasks no task is split.
pub(crate) const MANY_TASKS: usize = 64;
/// Chunks smaller than this, on average, are folded together if they lie together.
pub(crate) const SMALL_CHUNK: u64 = 64 << 10;
/// Datasets smaller than this are not worth that.
pub(crate) const LARGE_DATASET: u64 = if cfg!(test) { 256 } else { 1 << 20 };
