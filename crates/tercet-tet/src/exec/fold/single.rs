//! Folds whose cells are worked on one value at a time.

use super::{Block, Fold, Rows};
use crate::exec::number::Number;

/// A reduction of one cell.
pub(crate) trait Single: Sync {
    /// Whether the index matters.
    const INDEXED: bool = false;
    /// How many numbers the result has.
    const WIDTH: usize = 1;
    /// The state of one cell.
    type State<T: Number>: Copy + Send + Sync;
    /// The state of an empty cell.
    fn start<T: Number>(&self) -> Self::State<T>;
    /// Folds a value in.
    fn add<T: Number>(&self, state: &mut Self::State<T>, value: T, index: u64);
    /// Folds consecutive values in.
    fn add_all<T: Number>(&self, state: &mut Self::State<T>, values: &[T], index: u64) {
        for (&value, index) in values.iter().zip(index..) {
            self.add(state, value, index);
        }
    }
    /// Merges another cell in.
    fn merge<T: Number>(&self, state: &mut Self::State<T>, later: &Self::State<T>);
    /// The result.
    fn finish<T: Number>(&self, state: &Self::State<T>, put: &mut dyn FnMut(f64));
}

impl<S: Single> Fold for S {
    const INDEXED: bool = S::INDEXED;
    type Cells<T: Number> = Vec<S::State<T>>;

    fn cell_bytes<T: Number>(&self) -> usize {
        size_of::<S::State<T>>()
    }

    fn start<T: Number>(&self, block: &Block) -> Self::Cells<T> {
        vec![Single::start::<T>(self); block.len()]
    }

    fn run<T: Number>(&self, cells: &mut Self::Cells<T>, at: usize, values: &[T], index: u64) {
        let mut state = cells[at];
        self.add_all(&mut state, values, index);
        cells[at] = state;
    }

    fn rows<T: Number>(&self, cells: &mut Self::Cells<T>, at: usize, rows: &Rows<'_, T>) {
        let cells = &mut cells[at..at + rows.width];
        for row in 0..rows.count {
            let index = rows.index + row as u64 * rows.index_step;
            for (state, &value) in cells.iter_mut().zip(rows.row(row)) {
                self.add(state, value, index);
            }
        }
    }

    fn one<T: Number>(&self, cells: &mut Self::Cells<T>, at: usize, value: T, index: u64) {
        self.add(&mut cells[at], value, index);
    }

    fn merge<T: Number>(
        &self,
        (into, at): (&mut Self::Cells<T>, usize),
        (later, from): (&Self::Cells<T>, usize),
        count: usize,
    ) {
        for (state, later) in into[at..at + count].iter_mut().zip(&later[from..from + count]) {
            Single::merge::<T>(self, state, later);
        }
    }

    fn merge_within<T: Number>(&self, cells: &mut Self::Cells<T>, at: usize, from: usize, count: usize) {
        for i in 0..count {
            let later = cells[from + i];
            Single::merge::<T>(self, &mut cells[at + i], &later);
        }
    }

    fn width(&self) -> usize {
        S::WIDTH
    }

    fn finish<T: Number>(&self, cells: Self::Cells<T>) -> Vec<f64> {
        let mut values = Vec::with_capacity(cells.len() * S::WIDTH);
        for state in &cells {
            Single::finish::<T>(self, state, &mut |value| values.push(value));
        }
        values
    }
}
