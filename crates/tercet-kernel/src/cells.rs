//! [`Cells`]: typed cells, and the [`Accumulator`] implementation for them.

use std::any::Any;
use std::fmt::Debug;

use tercet_core::tensor::OutOfMemory;

use crate::accumulator::{Accumulator, Counts, ROWS, Runs, Statistics};
use crate::compute::{Compute, ComputeType};
use crate::roll::Scan;

/// Runs of typed values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypedRuns<'a, T> {
    pub(crate) values: &'a [T],
    pub(crate) len: usize,
    pub(crate) stride: usize,
    pub(crate) count: usize,
    pub(crate) index: u64,
    pub(crate) index_step: u64,
}

impl<'a, T> TypedRuns<'a, T> {
    /// Values of a run.
    #[inline(always)]
    pub(crate) fn run(&self, run: usize) -> &'a [T] {
        &self.values[run * self.stride..run * self.stride + self.len]
    }
}

/// Typed reduction state for values of one compute type. Every [`Cells`] is an [`Accumulator`].
pub(crate) trait Cells: Debug + Send + Sync + Sized + 'static {
    type Value: Compute;
    /// Settled state of one cell.
    type State: Copy;
    const INDEXED: bool = false;
    const WIDTH: usize = 1;

    fn fresh(&self, cells: usize) -> Result<Self, OutOfMemory>;
    fn clear(&mut self);
    fn len(&self) -> usize;
    fn rows(&mut self, at: usize, rows: &[&[Self::Value]], indices: &[u64]);
    fn runs(&mut self, at: usize, runs: &TypedRuns<'_, Self::Value>);
    fn one(&mut self, at: usize, value: Self::Value, index: u64);
    fn state(&self, cell: usize) -> Self::State;
    fn join(&mut self, cell: usize, later: Self::State);
    /// Merges a cell of another accumulator into a cell of this one.
    #[inline]
    fn merge_cell(&mut self, cell: usize, later: &Self, from: usize) {
        self.join(cell, later.state(from));
    }
    /// Merges one cell into another cell of the same accumulator.
    #[inline]
    fn merge_own(&mut self, cell: usize, from: usize) {
        self.join(cell, self.state(from));
    }
    /// Merges consecutive cells.
    fn merge_cells(&mut self, at: usize, later: &Self, from: usize, count: usize) {
        for i in 0..count {
            self.merge_cell(at + i, later, from + i);
        }
    }
    /// Merges consecutive cells into others of the same accumulator; the two ranges do not overlap.
    fn merge_own_cells(&mut self, at: usize, from: usize, count: usize) {
        for i in 0..count {
            self.merge_own(at + i, from + i);
        }
    }
    /// Whether every cell has the same parameters, so that cells are interchangeable.
    fn is_uniform(&self) -> bool {
        true
    }
    fn settle(&mut self) {}
    fn takes_statistics(&self) -> bool {
        false
    }
    fn fold_statistics(&mut self, at: usize, known: &Statistics) {
        let _ = (at, known);
    }
    fn width(&self) -> usize {
        Self::WIDTH
    }
    fn finish(&self, cell: usize, count: u64, out: &mut [f64]);
}

impl<C: Cells> Accumulator for C {
    fn compute(&self) -> ComputeType {
        C::Value::TYPE
    }

    fn is_indexed(&self) -> bool {
        C::INDEXED
    }

    fn is_uniform(&self) -> bool {
        Cells::is_uniform(self)
    }

    fn fresh(&self, cells: usize) -> Result<Box<dyn Accumulator>, OutOfMemory> {
        Ok(Box::new(Cells::fresh(self, cells)?))
    }

    fn clear(&mut self) {
        Cells::clear(self);
    }

    fn cells(&self) -> usize {
        Cells::len(self)
    }

    fn rows(&mut self, at: usize, rows: &[&[u8]], indices: &[u64]) {
        let mut typed: [&[C::Value]; ROWS] = [&[]; ROWS];
        for (number, rows) in rows.chunks(ROWS).enumerate() {
            for (typed, row) in typed.iter_mut().zip(rows) {
                *typed = bytemuck::cast_slice(row);
            }
            let indices = if C::INDEXED { &indices[number * ROWS..][..rows.len()] } else { &[] };
            Cells::rows(self, at, &typed[..rows.len()], indices);
        }
    }

    fn plane(&mut self, at: usize, rows: &Runs<'_>) {
        let values: &[C::Value] = bytemuck::cast_slice(rows.values);
        let mut typed: [&[C::Value]; ROWS] = [&[]; ROWS];
        for first in (0..rows.count).step_by(ROWS) {
            let count = ROWS.min(rows.count - first);
            for (typed, row) in typed.iter_mut().zip(first..first + count) {
                *typed = &values[row * rows.stride..][..rows.len];
            }
            Cells::rows(self, at, &typed[..count], &[]);
        }
    }

    fn runs(&mut self, at: usize, runs: &Runs<'_>) {
        let &Runs { values, len, stride, count, index, index_step } = runs;
        let values = bytemuck::cast_slice(values);
        Cells::runs(self, at, &TypedRuns { values, len, stride, count, index, index_step });
    }

    fn scatter(&mut self, cells: &[u32], values: &[u8], indices: &[u64]) {
        let values = bytemuck::cast_slice::<u8, C::Value>(values);
        if C::INDEXED {
            for ((&cell, &value), &index) in cells.iter().zip(values).zip(indices) {
                self.one(cell as usize, value, index);
            }
        } else {
            for (&cell, &value) in cells.iter().zip(values) {
                self.one(cell as usize, value, 0);
            }
        }
    }

    fn takes_statistics(&self) -> bool {
        Cells::takes_statistics(self)
    }

    fn fold_statistics(&mut self, at: usize, known: &Statistics) {
        Cells::fold_statistics(self, at, known);
    }

    fn merge(&mut self, at: usize, later: &dyn Accumulator, from: usize, count: usize) {
        // All accumulators of a reduction have the same type.
        if let Some(later) = later.as_any().downcast_ref::<C>() {
            self.merge_cells(at, later, from, count);
        }
    }

    fn settle(&mut self) {
        Cells::settle(self);
    }

    fn scan(&mut self, scan: &Scan, reverse: bool) {
        let line = scan.positions * scan.inner;
        let lines = Cells::len(self).checked_div(line).unwrap_or(0);
        for at in (0..lines).map(|number| number * line) {
            for position in 1..scan.positions {
                let position = if reverse { scan.positions - 1 - position } else { position };
                let other = if reverse { position + 1 } else { position - 1 };
                // Scans start again at every period.
                if position.max(other).is_multiple_of(scan.period) {
                    continue;
                }
                self.merge_own_cells(at + position * scan.inner, at + other * scan.inner, scan.inner);
            }
        }
    }

    fn width(&self) -> usize {
        Cells::width(self)
    }

    fn finish(&mut self, counts: Counts<'_>, out: &mut [f64]) {
        for (cell, out) in out.chunks_exact_mut(Cells::width(self)).enumerate() {
            Cells::finish(self, cell, counts.get(cell), out);
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Allocates a vector of equal states; fails if out of memory.
pub(crate) fn filled<S: Clone>(state: S, cells: usize) -> Result<Vec<S>, OutOfMemory> {
    let mut states = Vec::new();
    let bytes = cells.saturating_mul(size_of::<S>());
    states.try_reserve_exact(cells).map_err(|_| OutOfMemory { bytes })?;
    states.resize(cells, state);
    Ok(states)
}
