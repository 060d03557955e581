//! Softmax denominators.

use std::marker::PhantomData;

use tercet_core::tensor::OutOfMemory;

use crate::compute::Compute;
use crate::typed::{TypedAccumulator, TypedRuns, filled};

/// Softmax denominator, two numbers per slot: the maximum of the values that are not NaN (NaN if all are), and the sum
/// of exp(x − maximum) over the finite values. The sum is 0 if the maximum is infinite.
#[derive(Debug)]
pub(crate) struct SoftmaxTotal<T> {
    /// Maximum; NaN for an empty slot.
    greatest: Vec<f64>,
    /// Finite maximum, −∞ without one; and the sum of exp(x − maximum).
    top: Vec<f64>,
    total: Vec<f64>,
    value: PhantomData<T>,
}

/// Values per block. The maximum is updated once per block.
const PIECE: usize = 1024;

/// Rescales a sum of exponentials relative to `top` to another maximum that is not lower.
#[inline(always)]
fn rescaled(total: f64, top: f64, to: f64) -> f64 {
    if top == to || total == 0.0 { total } else { total * (top - to).exp() }
}

impl<T: Compute> SoftmaxTotal<T> {
    pub(crate) fn new(slots: usize) -> Result<Self, OutOfMemory> {
        Ok(Self {
            greatest: filled(f64::NAN, slots)?,
            top: filled(f64::NEG_INFINITY, slots)?,
            total: filled(0.0, slots)?,
            value: PhantomData,
        })
    }

    fn piece(&mut self, at: usize, values: impl Iterator<Item = f64> + Clone) {
        let (mut greatest, mut top) = (f64::NAN, f64::NEG_INFINITY);
        for x in values.clone() {
            // `max` skips NaN.
            greatest = greatest.max(x);
            top = if x > top && x.is_finite() { x } else { top };
        }
        let finite = values.filter(|x| x.is_finite());
        self.join(at, (greatest, top, finite.map(|x| (x - top).exp()).sum()));
    }
}

impl<T: Compute> TypedAccumulator for SoftmaxTotal<T> {
    type Value = T;
    type State = (f64, f64, f64);
    const WIDTH: usize = 2;

    fn fresh(&self, slots: usize) -> Result<Self, OutOfMemory> {
        Self::new(slots)
    }

    fn clear(&mut self) {
        self.greatest.fill(f64::NAN);
        self.top.fill(f64::NEG_INFINITY);
        self.total.fill(0.0);
    }

    fn len(&self) -> usize {
        self.top.len()
    }

    fn rows(&mut self, at: usize, rows: &[&[T]], _: &[u64]) {
        for column in 0..rows.first().map_or(0, |row| row.len()) {
            self.piece(at + column, rows.iter().map(|row| row[column].to_f64()));
        }
    }

    fn runs(&mut self, at: usize, runs: &TypedRuns<'_, T>) {
        for run in 0..runs.count {
            for piece in runs.run(run).chunks(PIECE) {
                self.piece(at + run, piece.iter().map(|value| value.to_f64()));
            }
        }
    }

    fn one(&mut self, at: usize, value: T, _: u64) {
        self.piece(at, std::iter::once(value.to_f64()));
    }

    fn state(&self, slot: usize) -> (f64, f64, f64) {
        (self.greatest[slot], self.top[slot], self.total[slot])
    }

    fn join(&mut self, slot: usize, (greatest, top, total): (f64, f64, f64)) {
        self.greatest[slot] = self.greatest[slot].max(greatest);
        let higher = self.top[slot].max(top);
        let own = rescaled(self.total[slot], self.top[slot], higher);
        self.total[slot] = own + rescaled(total, top, higher);
        self.top[slot] = higher;
    }

    fn finish(&self, slot: usize, _: u64, out: &mut [f64]) {
        let greatest = self.greatest[slot];
        out[0] = greatest + 0.0;
        out[1] = if greatest.is_infinite() { 0.0 } else { self.total[slot] };
    }
}
