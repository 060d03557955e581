//! [`Accumulator`]: dynamically dispatched reduction state for a block of slots.

use std::any::Any;
use std::fmt::Debug;

use tercet_core::tensor::OutOfMemory;

use crate::compute::{ComputeType, Value};
use crate::roll::{Roll, RollPadding, Scan};

/// Rows that are folded by one call.
pub(crate) const ROWS: usize = 64;

/// Reduction state of a block of slots. A slot is one output element.
///
/// Values are passed as bytes: aligned values of the accumulator's compute type, in native byte order. The result of a
/// float sum depends on the order of calls; no other result does.
pub trait Accumulator: Debug + Send + Sync + Any {
    /// Compute type of the values.
    fn compute(&self) -> ComputeType;

    /// Whether the reduction uses the index of a value among the reduced positions.
    fn is_indexed(&self) -> bool {
        false
    }

    /// Whether every slot has the same parameters, so that slots are interchangeable.
    fn is_uniform(&self) -> bool {
        true
    }

    /// Whether results depend on values, not only on their number.
    fn reads_values(&self) -> bool {
        true
    }

    /// Whether runs of values are folded as fast as memory delivers them.
    fn is_streaming(&self) -> bool {
        false
    }

    /// Creates an accumulator of the same kind with empty slots.
    fn fresh(&self, slots: usize) -> Result<Box<dyn Accumulator>, OutOfMemory>;

    /// Resets all slots to empty.
    fn clear(&mut self);

    /// Number of slots.
    fn slots(&self) -> usize;

    /// Folds rows of equal width into consecutive slots: value `c` of each row into slot `at + c`.
    ///
    /// `indices` has the index of each row if the reduction is indexed.
    fn rows(&mut self, at: usize, rows: &[&[u8]], indices: &[u64]);

    /// Folds many short rows at the same distance: like [`rows`](Self::rows), with the runs as rows. Not for indexed
    /// reductions.
    fn plane(&mut self, at: usize, rows: &Runs<'_>) {
        let size = self.compute().size();
        let mut slices: [&[u8]; ROWS] = [&[]; ROWS];
        for first in (0..rows.count).step_by(ROWS) {
            let count = ROWS.min(rows.count - first);
            for (slice, row) in slices.iter_mut().zip(first..first + count) {
                let start = row * rows.stride * size;
                *slice = &rows.values[start..start + rows.len * size];
            }
            self.rows(at, &slices[..count], &[]);
        }
    }

    /// Folds runs of consecutive values into consecutive slots, starting at `at`.
    fn runs(&mut self, at: usize, runs: &Runs<'_>);

    /// Scatters values: folds each value into the slot given by `slots`. `indices` has their indices if the reduction
    /// is indexed.
    fn scatter(&mut self, slots: &[u32], values: &[u8], indices: &[u64]);

    /// Whether statistics can replace the values they describe.
    fn takes_statistics(&self) -> bool {
        false
    }

    /// Folds many values by their statistics. Called only if `takes_statistics`.
    fn fold_statistics(&mut self, at: usize, known: &Statistics) {
        let _ = (at, known);
    }

    /// Merges `count` slots of an accumulator of the same kind, starting at its slot `from`, into the slots starting at
    /// `at`.
    ///
    /// The values of `later` come after the values already folded. Both accumulators must be settled.
    fn merge(&mut self, at: usize, later: &dyn Accumulator, from: usize, count: usize);

    /// Settles deferred work before slots are merged, rolled or finished.
    fn settle(&mut self) {}

    /// Merges every slot with that of the position before it, which was merged before; in reverse with that of the
    /// position after it.
    fn scan(&mut self, scan: &Scan, reverse: bool);

    /// Results of rolling windows, `outer × windows × inner`, for reductions that do not merge slots.
    fn roll_values(&self, roll: &Roll<'_>, padding: &RollPadding<'_>) -> Option<Vec<f64>> {
        let _ = (roll, padding);
        None
    }

    /// Number of results per slot.
    fn width(&self) -> usize {
        1
    }

    /// Writes the results: `width` numbers per slot. The slots must be settled; values may be reordered.
    fn finish(&mut self, counts: Counts<'_>, out: &mut [f64]);

    /// Returns `self` as `Any`, for downcasts.
    fn as_any(&self) -> &dyn Any;
}

/// Runs of consecutive values.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    /// Values, starting with the first run.
    pub values: &'a [u8],
    /// Values per run.
    pub len: usize,
    /// Stride from one run to the next, in values.
    pub stride: usize,
    /// Number of runs.
    pub count: usize,
    /// Index of the first value. Within a run the index grows by 1.
    pub index: u64,
    /// Increment of the index from one run to the next.
    pub index_step: u64,
}

/// Number of values per slot.
#[derive(Clone, Copy, Debug)]
pub enum Counts<'a> {
    /// The same number for all slots.
    Same(u64),
    /// One number per slot.
    Each(&'a [u64]),
}

impl Counts<'_> {
    /// Number of values of a slot.
    #[inline]
    pub fn get(&self, slot: usize) -> u64 {
        match self {
            Self::Same(count) => *count,
            Self::Each(counts) => counts[slot],
        }
    }
}

/// Statistics of many values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Number of values.
    pub count: u64,
    /// Number of NaN values.
    pub nan_count: u64,
    /// Range and sum of the values that are not NaN.
    pub range: StatisticsRange,
}

/// Range and sum of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StatisticsRange {
    /// Minimum.
    pub min: Value,
    /// Maximum.
    pub max: Value,
    /// Number of infinite values.
    pub infinite: u64,
    /// Sum of integers.
    pub whole: i128,
    /// Sum of floats.
    pub sum: f64,
}
