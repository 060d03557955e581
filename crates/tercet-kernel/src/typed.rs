//! [`TypedAccumulator`]: typed slots, and the [`Accumulator`] implementation for them.

use std::any::Any;
use std::fmt::Debug;

use tercet_core::tensor::OutOfMemory;

use crate::accumulator::{Accumulator, Counts, ROWS, Runs, Statistics};
use crate::compute::{Compute, ComputeType};
use crate::roll::Scan;

/// Slots that a vector loop does not pay for.
const FEW_SLOTS: usize = 8;

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

/// Typed reduction state for values of one compute type. Every [`TypedAccumulator`] is an [`Accumulator`].
pub(crate) trait TypedAccumulator: Debug + Send + Sync + Sized + 'static {
    type Value: Compute;
    /// Settled state of one slot.
    type State: Copy;
    const INDEXED: bool = false;
    /// Whether runs of values are folded as fast as memory delivers them.
    const STREAMING: bool = false;
    const WIDTH: usize = 1;

    fn fresh(&self, slots: usize) -> Result<Self, OutOfMemory>;
    fn clear(&mut self);
    fn len(&self) -> usize;
    fn rows(&mut self, at: usize, rows: &[&[Self::Value]], indices: &[u64]);
    fn runs(&mut self, at: usize, runs: &TypedRuns<'_, Self::Value>);
    fn one(&mut self, at: usize, value: Self::Value, index: u64);
    fn state(&self, slot: usize) -> Self::State;
    fn join(&mut self, slot: usize, later: Self::State);
    /// Merges a slot of another accumulator into a slot of this one.
    #[inline]
    fn merge_slot(&mut self, slot: usize, later: &Self, from: usize) {
        self.join(slot, later.state(from));
    }
    /// Merges one slot into another slot of the same accumulator.
    #[inline]
    fn merge_own(&mut self, slot: usize, from: usize) {
        self.join(slot, self.state(from));
    }
    /// Merges consecutive slots.
    fn merge_slots(&mut self, at: usize, later: &Self, from: usize, count: usize) {
        for i in 0..count {
            self.merge_slot(at + i, later, from + i);
        }
    }
    /// Merges consecutive slots into others of the same accumulator; the two ranges do not overlap.
    fn merge_own_slots(&mut self, at: usize, from: usize, count: usize) {
        for i in 0..count {
            self.merge_own(at + i, from + i);
        }
    }
    /// Whether every slot has the same parameters, so that slots are interchangeable.
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
    fn finish(&self, slot: usize, count: u64, out: &mut [f64]);
}

impl<C: TypedAccumulator> Accumulator for C {
    fn compute(&self) -> ComputeType {
        C::Value::TYPE
    }

    fn is_indexed(&self) -> bool {
        C::INDEXED
    }

    fn is_uniform(&self) -> bool {
        TypedAccumulator::is_uniform(self)
    }

    fn is_streaming(&self) -> bool {
        C::STREAMING
    }

    fn fresh(&self, slots: usize) -> Result<Box<dyn Accumulator>, OutOfMemory> {
        Ok(Box::new(TypedAccumulator::fresh(self, slots)?))
    }

    fn clear(&mut self) {
        TypedAccumulator::clear(self);
    }

    fn slots(&self) -> usize {
        TypedAccumulator::len(self)
    }

    fn rows(&mut self, at: usize, rows: &[&[u8]], indices: &[u64]) {
        let mut typed: [&[C::Value]; ROWS] = [&[]; ROWS];
        for (number, rows) in rows.chunks(ROWS).enumerate() {
            for (typed, row) in typed.iter_mut().zip(rows) {
                *typed = bytemuck::cast_slice(row);
            }
            let indices = if C::INDEXED { &indices[number * ROWS..][..rows.len()] } else { &[] };
            TypedAccumulator::rows(self, at, &typed[..rows.len()], indices);
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
            TypedAccumulator::rows(self, at, &typed[..count], &[]);
        }
    }

    fn runs(&mut self, at: usize, runs: &Runs<'_>) {
        let &Runs { values, len, stride, count, index, index_step } = runs;
        let values = bytemuck::cast_slice(values);
        TypedAccumulator::runs(self, at, &TypedRuns { values, len, stride, count, index, index_step });
    }

    fn scatter(&mut self, slots: &[u32], values: &[u8], indices: &[u64]) {
        let values = bytemuck::cast_slice::<u8, C::Value>(values);
        if C::INDEXED {
            for ((&slot, &value), &index) in slots.iter().zip(values).zip(indices) {
                self.one(slot as usize, value, index);
            }
        } else {
            for (&slot, &value) in slots.iter().zip(values) {
                self.one(slot as usize, value, 0);
            }
        }
    }

    fn takes_statistics(&self) -> bool {
        TypedAccumulator::takes_statistics(self)
    }

    fn fold_statistics(&mut self, at: usize, known: &Statistics) {
        TypedAccumulator::fold_statistics(self, at, known);
    }

    fn merge(&mut self, at: usize, later: &dyn Accumulator, from: usize, count: usize) {
        // All accumulators of a reduction have the same type.
        if let Some(later) = later.as_any().downcast_ref::<C>() {
            self.merge_slots(at, later, from, count);
        }
    }

    fn settle(&mut self) {
        TypedAccumulator::settle(self);
    }

    fn scan(&mut self, scan: &Scan, reverse: bool) {
        let line = scan.positions * scan.inner;
        let lines = TypedAccumulator::len(self).checked_div(line).unwrap_or(0);
        // Steps of a line depend on each other. Where they are short, those of all lines are taken together.
        let together = if scan.inner < FEW_SLOTS { lines } else { 1 };
        for first in (0..lines).step_by(together.max(1)) {
            for position in 1..scan.positions {
                let position = if reverse { scan.positions - 1 - position } else { position };
                let other = if reverse { position + 1 } else { position - 1 };
                // Scans start again at every period.
                if position.max(other).is_multiple_of(scan.period) {
                    continue;
                }
                for at in (first..first + together).map(|number| number * line) {
                    self.merge_own_slots(at + position * scan.inner, at + other * scan.inner, scan.inner);
                }
            }
        }
    }

    fn width(&self) -> usize {
        TypedAccumulator::width(self)
    }

    fn finish(&mut self, counts: Counts<'_>, out: &mut [f64]) {
        for (slot, out) in out.chunks_exact_mut(TypedAccumulator::width(self)).enumerate() {
            TypedAccumulator::finish(self, slot, counts.get(slot), out);
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Allocates a vector of equal states; fails if out of memory.
pub(crate) fn filled<S: Clone>(state: S, slots: usize) -> Result<Vec<S>, OutOfMemory> {
    let mut states = Vec::new();
    let bytes = slots.saturating_mul(size_of::<S>());
    states.try_reserve_exact(slots).map_err(|_| OutOfMemory { bytes })?;
    states.resize(slots, state);
    Ok(states)
}
