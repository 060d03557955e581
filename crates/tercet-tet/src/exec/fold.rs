//! What every reduction is: the state of many cells that values are folded into.

pub(crate) mod arg;
pub(crate) mod extreme;
mod lanes;
pub(crate) mod moments;
pub(crate) mod product;
pub(crate) mod single;
pub(crate) mod softmax;
pub(crate) mod sum;
pub(crate) mod tally;
#[cfg(test)]
mod tests;

use super::number::Number;
use crate::stats::Stats;

/// A reduction. The driver ([`super::drive`]) walks the chunks once, gives each output cell its values and merges
/// the states of different chunks in the order of the plan, so that the result does not depend on threads.
///
/// The state of all cells of a block is one value, so that a kernel can keep it as parallel arrays.
pub(crate) trait Fold: Sync {
    /// Whether `index` matters: then runs are never joined across a gap in the index.
    const INDEXED: bool = false;

    /// The state of the cells of a block.
    type Cells<T: Number>: Clone + Send + Sync;

    /// Bytes of state for one cell.
    fn cell_bytes<T: Number>(&self) -> usize;

    /// The state of empty cells.
    fn start<T: Number>(&self, block: &Block) -> Self::Cells<T>;

    /// Folds consecutive values into one cell. `index` is that of the first value among the reduced positions, the
    /// next ones follow by 1.
    fn run<T: Number>(&self, cells: &mut Self::Cells<T>, at: usize, values: &[T], index: u64);

    /// Folds rows of values into consecutive cells: value `c` of each row into cell `at + c`.
    fn rows<T: Number>(&self, cells: &mut Self::Cells<T>, at: usize, rows: &Rows<'_, T>);

    /// Folds one value into one cell.
    fn one<T: Number>(&self, cells: &mut Self::Cells<T>, at: usize, value: T, index: u64);

    /// Merges `count` cells of `later`, from its cell `from` on, into those from `at` on. What `later` holds comes
    /// after what is there in the order of the plan.
    fn merge<T: Number>(
        &self,
        into: (&mut Self::Cells<T>, usize),
        later: (&Self::Cells<T>, usize),
        count: usize,
    );

    /// Merges `count` cells from `from` on into those from `at` on, which do not overlap.
    fn merge_within<T: Number>(&self, cells: &mut Self::Cells<T>, at: usize, from: usize, count: usize);

    /// Whether the statistics of a chunk can replace its values.
    fn takes_stats(&self) -> bool {
        false
    }

    /// Folds a whole chunk into one cell by its statistics. Called only if `takes_stats`.
    fn absorb<T: Number>(&self, cells: &mut Self::Cells<T>, at: usize, stats: &Stats) {
        let _ = (cells, at, stats);
    }

    /// How many numbers the result of one cell has.
    fn width(&self) -> usize {
        1
    }

    /// The results: `width` numbers for each cell.
    fn finish<T: Number>(&self, cells: Self::Cells<T>) -> Vec<f64>;
}

/// Rows of values that lie `stride` values apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a, T> {
    /// Starts with the first row; long enough for all of them.
    pub(crate) values: &'a [T],
    /// Values of a row.
    pub(crate) width: usize,
    /// From one row to the next.
    pub(crate) stride: usize,
    /// How many rows.
    pub(crate) count: usize,
    /// The index of the first row among the reduced positions, and from one row to the next.
    pub(crate) index: u64,
    pub(crate) index_step: u64,
}

impl<'a, T> Rows<'a, T> {
    /// Row number `row`.
    pub(crate) fn row(&self, row: usize) -> &'a [T] {
        &self.values[row * self.stride..row * self.stride + self.width]
    }
}

/// A box of output cells that one task computes.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// For each output axis the first cell and the number of cells of the box.
    pub(crate) axes: Vec<(u64, u64)>,
    /// The extents of the whole output.
    pub(crate) output: Vec<u64>,
}

impl Block {
    /// The number of cells of the box.
    pub(crate) fn len(&self) -> usize {
        self.axes.iter().map(|&(_, count)| usize::try_from(count).unwrap_or(usize::MAX)).product()
    }

    /// The number of a cell of the box in the whole output.
    pub(crate) fn global(&self, mut cell: usize) -> usize {
        let (mut global, mut stride) = (0, 1);
        for (&(first, count), &extent) in self.axes.iter().zip(&self.output).rev() {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            let at = usize::try_from(first).unwrap_or(usize::MAX).saturating_add(cell % count);
            global += at * stride;
            cell /= count;
            stride *= usize::try_from(extent).unwrap_or(usize::MAX);
        }
        global
    }
}
