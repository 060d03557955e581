//! [`Accumulator`]: states of cells behind dynamic calls.

use std::any::Any;
use std::fmt::Debug;

use tercet_core::tensor::OutOfMemory;

use crate::compute::{ComputeType, Value};

/// The states of the cells of a block, into which values are folded.
///
/// Values come as bytes: aligned values of the accumulator's compute type, in native byte order. The order of calls is
/// part of the result of float sums; nothing else is.
pub trait Accumulator: Debug + Send + Sync + Any {
    /// The type of the values.
    fn compute(&self) -> ComputeType;

    /// Whether the index of values among the reduced positions matters.
    fn is_indexed(&self) -> bool {
        false
    }

    /// Whether a cell can take the values of any other.
    fn is_uniform(&self) -> bool {
        true
    }

    /// An accumulator of the same kind whose cells are empty.
    fn fresh(&self, cells: usize) -> Result<Box<dyn Accumulator>, OutOfMemory>;

    /// Empties all cells.
    fn clear(&mut self);

    /// The number of cells.
    fn cells(&self) -> usize;

    /// Folds rows of equal width into consecutive cells: value `c` of each row into cell `at + c`.
    ///
    /// `indices` has the index of each row if indices matter.
    fn rows(&mut self, at: usize, rows: &[&[u8]], indices: &[u64]);

    /// Folds runs of consecutive values into consecutive cells from `at` on.
    fn runs(&mut self, at: usize, runs: &Runs<'_>);

    /// Folds each value into a cell of its own choice. `indices` has their indices if indices matter.
    fn scatter(&mut self, cells: &[u32], values: &[u8], indices: &[u64]);

    /// Whether known facts about many values can stand for them.
    fn takes_known(&self) -> bool {
        false
    }

    /// Folds many values by what is known of them. Called only if `takes_known`.
    fn known(&mut self, at: usize, known: &Known) {
        let _ = (at, known);
    }

    /// Merges `count` cells of an accumulator of the same kind, from its cell `from` on, into those from `at` on.
    ///
    /// What `later` holds comes after what is there. Both must be settled.
    fn merge(&mut self, at: usize, later: &dyn Accumulator, from: usize, count: usize);

    /// Ends what was deferred, before cells are merged, rolled or finished.
    fn settle(&mut self) {}

    /// Windows over positions: the accumulator holds `outer × positions × inner` settled cells.
    fn roll(&self, roll: &Roll<'_>) -> Result<Box<dyn Accumulator>, OutOfMemory>;

    /// How many numbers the result of a cell has.
    fn width(&self) -> usize {
        1
    }

    /// The results: `width` numbers for each cell. The cells must be settled.
    fn finish(&self, counts: Counts<'_>, out: &mut [f64]);

    /// The accumulator as its own type.
    fn as_any(&self) -> &dyn Any;
}

/// Runs of values.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    /// Starts with the first run.
    pub values: &'a [u8],
    /// Values of a run.
    pub len: usize,
    /// Values from one run to the next.
    pub stride: usize,
    /// How many runs.
    pub count: usize,
    /// The index of the first value, and from one run to the next; within a run it grows by 1.
    pub index: u64,
    /// See `index`.
    pub index_step: u64,
}

/// Windows over positions.
#[derive(Clone, Copy, Debug)]
pub struct Roll<'a> {
    /// Cells above the axis of the windows.
    pub outer: usize,
    /// Positions of the axis.
    pub positions: usize,
    /// Cells below the axis.
    pub inner: usize,
    /// The positions of a full window.
    pub size: usize,
    /// Whether windows share enough positions that partial results are worth sharing.
    pub overlap: bool,
    /// The positions of each window.
    pub windows: &'a [std::ops::Range<usize>],
}

/// How many values each cell got.
#[derive(Clone, Copy, Debug)]
pub enum Counts<'a> {
    /// All as many.
    Same(u64),
    /// For each cell.
    Each(&'a [u64]),
}

impl Counts<'_> {
    /// The values of a cell.
    #[inline]
    pub fn of(&self, cell: usize) -> u64 {
        match self {
            Self::Same(count) => *count,
            Self::Each(counts) => counts[cell],
        }
    }
}

/// What is known of many values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// How many there are.
    pub count: u64,
    /// How many of them are NaN.
    pub nan_count: u64,
    /// The range and sum of the others.
    pub range: KnownRange,
}

/// The range and sum of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownRange {
    /// The least value.
    pub min: Value,
    /// The greatest value.
    pub max: Value,
    /// Whether one of them is infinite, and how many.
    pub infinite: u64,
    /// The sum of integers.
    pub whole: i128,
    /// The sum of floats.
    pub sum: f64,
}
