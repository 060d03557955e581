//! Size thresholds for splitting work. Tests use tiny sizes, so that small arrays take every path of large ones.

/// Tasks with fewer slots are merged with their neighbours.
pub(crate) const FEW_SLOTS: u64 = if cfg!(test) { 6 } else { 1 << 10 };
/// Slots of a strip, if their states are small: they fit in the L2 cache.
pub(crate) const STRIP: u64 = if cfg!(test) { 40 } else { 16 << 10 };
/// Slots of a strip of windows, which keep one state per position.
pub(crate) const WINDOW_STRIP: u64 = if cfg!(test) { 60 } else { 256 << 10 };
/// Minimum number of slots of a strip beside the window axis; below it, strips are cut along the window axis.
pub(crate) const NARROW_STRIP: u64 = if cfg!(test) { 4 } else { 1 << 10 };
/// Bytes of values that are checked and folded while they are in the L2 cache.
pub(crate) const CACHED: usize = if cfg!(test) { 64 } else { 256 << 10 };
/// Bytes of a chunk that are read at once: the kernel copies long ranges faster than short ones.
pub(crate) const READ: u64 = if cfg!(test) { 150 } else { 1 << 20 };
/// Number of chunks whose rows are folded together.
pub(crate) const BATCH: u64 = if cfg!(test) { 3 } else { 16 };
/// Bytes of decoded chunks held for a batch.
pub(crate) const BATCH_BYTES: u64 = if cfg!(test) { 400 } else { 32 << 20 };
/// Pieces shorter than this are not checked separately: the complete chunk is checked first.
pub(crate) const SHORT_PIECE: u64 = if cfg!(test) { 8 } else { 4 << 10 };
/// Rows narrower than this are folded several at a time, or transposed.
pub(crate) const NARROW: usize = if cfg!(test) { 3 } else { 16 };
/// Minimum bytes of chunks per partial result.
pub(crate) const SPLIT: u64 = if cfg!(test) { 100 } else { 4 << 20 };
/// Maximum bytes of states of all partial results of one task.
pub(crate) const SPLIT_STATES: usize = if cfg!(test) { 2000 } else { 48 << 20 };
/// Maximum number of partial results of a task.
pub(crate) const MAX_SPLITS: usize = 256;
/// With this many tasks, no task is split.
pub(crate) const MANY_TASKS: usize = 64;
/// Chunks smaller than this, on average, are read as one span if they are contiguous.
pub(crate) const SMALL_CHUNK: u64 = 64 << 10;
/// Datasets smaller than this are not read in this way.
pub(crate) const LARGE_DATASET: u64 = if cfg!(test) { 256 } else { 1 << 20 };
