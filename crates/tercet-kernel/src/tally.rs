//! Counts of values of a kind: NaN, infinite, equal to a number.

use tercet_core::tensor::OutOfMemory;

use crate::accumulator::Statistics;
use crate::cells::{Cells, TypedRuns, filled};
use crate::compute::{Compute, ComputeType};
use crate::lanes::{self, Block, Kernel, Target, Tile};
use crate::sum::to_f64;

/// Kinds of values: NaN, infinities, both, values equal to a number.
pub(crate) const NAN: u8 = 0;
pub(crate) const INFINITE: u8 = 1;
pub(crate) const NOT_FINITE: u8 = 2;
pub(crate) const EQUAL: u8 = 3;

/// Count of the values of one kind.
#[derive(Debug)]
pub(crate) struct Tally<T, const KIND: u8> {
    counts: Vec<u64>,
    /// Number that values are compared with.
    number: T,
    /// Whether only zero versus nonzero is guaranteed, which statistics can provide.
    any: bool,
}

impl<T: Compute, const KIND: u8> Tally<T, KIND> {
    pub(crate) fn new(number: T, any: bool, cells: usize) -> Result<Self, OutOfMemory> {
        Ok(Self { counts: filled(0, cells)?, number, any })
    }

    #[inline(always)]
    fn matches(number: T, value: T) -> bool {
        match KIND {
            NAN => value.is_nan(),
            INFINITE => value.is_infinite(),
            NOT_FINITE => value.is_nan() | value.is_infinite(),
            _ => value == number,
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts of a few hundred")]
#[inline(always)]
fn count<T: Compute>(lane: T) -> u64 {
    lane.to_f64() as u64
}

impl<T: Compute, const KIND: u8> Kernel<T> for Tally<T, KIND> {
    /// Counts, and the number to compare with.
    type Lanes<const N: usize> = ([T; N], T);
    const ROWS: usize = 8;

    #[inline(always)]
    fn start<const N: usize>(&self, _: Target, _: &[T; N]) -> ([T; N], T) {
        ([T::default(); N], self.number)
    }

    #[inline(always)]
    fn step<const N: usize>((counts, number): &mut ([T; N], T), values: &[T; N], _: u32) {
        for lane in 0..N {
            counts[lane] = counts[lane].plus(T::one_if(Self::matches(*number, values[lane])));
        }
    }

    #[inline(always)]
    fn take_columns<const N: usize>(&mut self, at: usize, (lanes, _): &([T; N], T), _: &Tile<'_, T>) {
        if let Some(counts) = self.counts[at..].first_chunk_mut::<N>() {
            for lane in 0..N {
                counts[lane] += count(lanes[lane]);
            }
        }
    }

    #[inline(always)]
    fn take_run<const N: usize>(&mut self, at: usize, (lanes, _): &([T; N], T), block: &Block<'_, T, N>) {
        for lane in 0..N {
            self.counts[at] += count(lanes[lane]);
        }
        self.take_short(at, block.tail, 0);
    }

    #[inline(always)]
    fn take_short(&mut self, at: usize, values: &[T], _: u64) {
        for &value in values {
            self.counts[at] += u64::from(Self::matches(self.number, value));
        }
    }
}

impl<T: Compute, const KIND: u8> Cells for Tally<T, KIND> {
    type Value = T;
    type State = u64;

    fn fresh(&self, cells: usize) -> Result<Self, OutOfMemory> {
        Self::new(self.number, self.any, cells)
    }

    fn clear(&mut self) {
        self.counts.fill(0);
    }

    fn len(&self) -> usize {
        self.counts.len()
    }

    fn rows(&mut self, at: usize, rows: &[&[T]], _: &[u64]) {
        lanes::rows(self, at, rows, &[]);
    }

    fn runs(&mut self, at: usize, runs: &TypedRuns<'_, T>) {
        lanes::runs(self, at, runs);
    }

    #[inline]
    fn one(&mut self, at: usize, value: T, _: u64) {
        self.take_short(at, &[value], 0);
    }

    #[inline]
    fn state(&self, cell: usize) -> u64 {
        self.counts[cell]
    }

    #[inline]
    fn join(&mut self, cell: usize, later: u64) {
        self.counts[cell] += later;
    }

    fn takes_statistics(&self) -> bool {
        match KIND {
            NAN => true,
            INFINITE | NOT_FINITE => self.any,
            _ => false,
        }
    }

    fn fold_statistics(&mut self, at: usize, known: &Statistics) {
        self.counts[at] += match KIND {
            NAN => known.nan_count,
            INFINITE => known.range.infinite,
            NOT_FINITE => known.range.infinite + known.nan_count,
            _ => 0,
        };
    }

    fn finish(&self, cell: usize, _: u64, out: &mut [f64]) {
        out[0] = to_f64(self.counts[cell]);
    }
}

/// Count of all values, or always 0. Values are not read.
#[derive(Debug)]
pub(crate) struct Count {
    pub(crate) cells: usize,
    pub(crate) compute: ComputeType,
    /// Whether the count is always 0.
    pub(crate) never: bool,
}

mod count_accumulator {
    use std::any::Any;

    use tercet_core::tensor::OutOfMemory;

    use super::Count;
    use crate::accumulator::{Accumulator, Counts, Runs, Statistics};
    use crate::compute::ComputeType;
    use crate::roll::Scan;
    use crate::sum::to_f64;

    impl Accumulator for Count {
        fn compute(&self) -> ComputeType {
            self.compute
        }
        fn fresh(&self, cells: usize) -> Result<Box<dyn Accumulator>, OutOfMemory> {
            Ok(Box::new(Self { cells, ..*self }))
        }
        fn clear(&mut self) {}
        fn cells(&self) -> usize {
            self.cells
        }
        fn rows(&mut self, _: usize, _: &[&[u8]], _: &[u64]) {}
        fn runs(&mut self, _: usize, _: &Runs<'_>) {}
        fn scatter(&mut self, _: &[u32], _: &[u8], _: &[u64]) {}
        fn takes_statistics(&self) -> bool {
            true
        }
        fn fold_statistics(&mut self, _: usize, _: &Statistics) {}
        fn merge(&mut self, _: usize, _: &dyn Accumulator, _: usize, _: usize) {}
        fn scan(&mut self, _: &Scan, _: bool) {}
        fn finish(&mut self, counts: Counts<'_>, out: &mut [f64]) {
            for (cell, out) in out.iter_mut().enumerate() {
                *out = if self.never { 0.0 } else { to_f64(counts.get(cell)) };
            }
        }
        fn as_any(&self) -> &dyn Any {
            self
        }
    }
}
