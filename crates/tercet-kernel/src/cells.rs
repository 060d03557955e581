//! [`Cells`]: typed cells, and the [`Accumulator`] implementation for them.

use std::any::Any;
use std::fmt::Debug;

use tercet_core::tensor::OutOfMemory;

use crate::accumulator::{Accumulator, Counts, Known, Roll, Runs};
use crate::compute::{Compute, ComputeType};

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
    /// Whether every cell has the same parameters, so that cells are interchangeable.
    fn is_uniform(&self) -> bool {
        true
    }
    fn settle(&mut self) {}
    fn takes_known(&self) -> bool {
        false
    }
    fn known(&mut self, at: usize, known: &Known) {
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
        /// Maximum number of rows per batch.
        const MOST: usize = 64;
        let mut typed: [&[C::Value]; MOST] = [&[]; MOST];
        for (number, rows) in rows.chunks(MOST).enumerate() {
            for (typed, row) in typed.iter_mut().zip(rows) {
                *typed = bytemuck::cast_slice(row);
            }
            let indices = if C::INDEXED { &indices[number * MOST..][..rows.len()] } else { &[] };
            Cells::rows(self, at, &typed[..rows.len()], indices);
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

    fn takes_known(&self) -> bool {
        Cells::takes_known(self)
    }

    fn known(&mut self, at: usize, known: &Known) {
        Cells::known(self, at, known);
    }

    fn merge(&mut self, at: usize, later: &dyn Accumulator, from: usize, count: usize) {
        // All accumulators of a reduction have the same type.
        if let Some(later) = later.as_any().downcast_ref::<C>() {
            merge(self, at, later, from, count);
        }
    }

    fn settle(&mut self) {
        Cells::settle(self);
    }

    fn roll(&self, roll: &Roll<'_>) -> Result<Box<dyn Accumulator>, OutOfMemory> {
        let mut out = Cells::fresh(self, roll.outer * roll.windows.len() * roll.inner)?;
        let shared = if roll.overlap { Some(Shared::new(self, roll)?) } else { None };
        for outer in 0..roll.outer {
            let line = outer * roll.positions;
            for (window, positions) in roll.windows.iter().enumerate() {
                let at = (outer * roll.windows.len() + window) * roll.inner;
                match &shared {
                    Some(shared) => shared.window(&mut out, at, line, positions.clone(), roll),
                    None => {
                        for position in positions.clone() {
                            merge(&mut out, at, self, (line + position) * roll.inner, roll.inner);
                        }
                    }
                }
            }
        }
        Ok(Box::new(out))
    }

    fn width(&self) -> usize {
        Cells::width(self)
    }

    fn finish(&mut self, counts: Counts<'_>, out: &mut [f64]) {
        for (cell, out) in out.chunks_exact_mut(Cells::width(self)).enumerate() {
            Cells::finish(self, cell, counts.of(cell), out);
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[inline]
fn merge<C: Cells>(into: &mut C, at: usize, later: &C, from: usize, count: usize) {
    for i in 0..count {
        into.merge_cell(at + i, later, from + i);
    }
}

/// Prefixes and suffixes of runs of `size` positions. Every window is a suffix of one run plus a prefix of the next.
struct Shared<C> {
    prefixes: C,
    suffixes: C,
}

impl<C: Cells> Shared<C> {
    fn new(cells: &C, roll: &Roll<'_>) -> Result<Self, OutOfMemory> {
        let (positions, inner, size) = (roll.positions, roll.inner, roll.size);
        let mut prefixes = cells.fresh(cells.len())?;
        let mut suffixes = cells.fresh(cells.len())?;
        for outer in 0..roll.outer {
            let line = outer * positions;
            for position in 0..positions {
                let at = (line + position) * inner;
                for cell in at..at + inner {
                    if position % size != 0 {
                        prefixes.merge_own(cell, cell - inner);
                    }
                    prefixes.merge_cell(cell, cells, cell);
                }
            }
            for position in (0..positions).rev() {
                let at = (line + position) * inner;
                for cell in at..at + inner {
                    suffixes.merge_cell(cell, cells, cell);
                    if (position + 1) % size != 0 && position + 1 < positions {
                        suffixes.merge_own(cell, cell + inner);
                    }
                }
            }
        }
        Ok(Self { prefixes, suffixes })
    }

    fn window(
        &self,
        out: &mut C,
        at: usize,
        line: usize,
        positions: std::ops::Range<usize>,
        roll: &Roll<'_>,
    ) {
        let Some(last) = positions.end.checked_sub(1).filter(|_| !positions.is_empty()) else { return };
        let (first, inner, size) = (positions.start, roll.inner, roll.size);
        if first % size == 0 && first / size == last / size {
            return merge(out, at, &self.prefixes, (line + last) * inner, inner);
        }
        merge(out, at, &self.suffixes, (line + first) * inner, inner);
        if first / size != last / size {
            merge(out, at, &self.prefixes, (line + last) * inner, inner);
        }
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
