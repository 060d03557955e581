//! Where work is cut. Tests use tiny sizes, so that small arrays take every path that large ones take.

/// Tasks with fewer cells are joined with their neighbours.
pub(crate) const FEW_CELLS: u64 = if cfg!(test) { 6 } else { 1 << 10 };
/// Cells of a strip: their states fit the second-level cache.
pub(crate) const STRIP: u64 = if cfg!(test) { 30 } else { 16 << 10 };
/// Cells of a strip of windows, which keep a state for each position.
pub(crate) const WINDOW_STRIP: u64 = if cfg!(test) { 60 } else { 1 << 20 };
/// Strips of windows are cut along the axis of the windows before they have fewer cells than this beside it.
pub(crate) const NARROW_STRIP: u64 = if cfg!(test) { 4 } else { 1 << 10 };
/// Bytes of values that are checked and folded while they are in the second-level cache.
pub(crate) const CACHED: usize = if cfg!(test) { 64 } else { 256 << 10 };
/// Chunks whose rows are folded together.
pub(crate) const BATCH: u64 = if cfg!(test) { 3 } else { 16 };
/// Bytes of decoded chunks that are held for that.
pub(crate) const BATCH_BYTES: u64 = if cfg!(test) { 400 } else { 32 << 20 };
/// Shorter pieces of a chunk are not checked on their own: the whole chunk is checked first.
pub(crate) const SHORT_PIECE: u64 = if cfg!(test) { 8 } else { 4 << 10 };
/// Rows narrower than this are folded several at a time, or turned.
pub(crate) const NARROW: usize = if cfg!(test) { 3 } else { 16 };
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
