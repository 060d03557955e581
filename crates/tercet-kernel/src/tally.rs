//! Counts of values of a kind: NaN, infinite, equal to a number.

use tercet_core::tensor::OutOfMemory;

use crate::accumulator::Statistics;
use crate::compute::{Compute, ComputeType};
use crate::lanes::{Block, Kernel, Target, Tile, by_lanes};
use crate::sum::to_f64;
use crate::typed::{TypedAccumulator, filled};

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
    pub(crate) fn new(number: T, any: bool, slots: usize) -> Result<Self, OutOfMemory> {
        Ok(Self { counts: filled(0, slots)?, number, any })
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

impl<T: Compute, const KIND: u8> Kernel<T> for Tally<T, KIND> {
    /// Counts, and the number to compare with.
    type Lanes<const N: usize> = ([T::Ordinal; N], T);
    const ROWS: usize = 8;

    #[inline(always)]
    fn start<const N: usize>(&self, _: Target, _: &[T; N]) -> Self::Lanes<N> {
        ([T::ordinal(0); N], self.number)
    }

    #[inline(always)]
    fn step<const N: usize>((counts, number): &mut Self::Lanes<N>, values: &[T; N], _: u32) {
        for lane in 0..N {
            counts[lane] = T::next_if(counts[lane], Self::matches(*number, values[lane]));
        }
    }

    #[inline(always)]
    fn take_columns<const N: usize>(&mut self, at: usize, (lanes, _): &Self::Lanes<N>, _: &Tile<'_, T>) {
        if let Some(counts) = self.counts[at..].first_chunk_mut::<N>() {
            for lane in 0..N {
                counts[lane] += lanes[lane].into();
            }
        }
    }

    #[inline(always)]
    fn take_run<const N: usize>(&mut self, at: usize, (lanes, _): &Self::Lanes<N>, block: &Block<'_, T, N>) {
        let mut count = 0;
        for lane in 0..N {
            count += lanes[lane].into();
        }
        self.counts[at] += count;
        self.take_short(at, block.tail, 0);
    }

    #[inline(always)]
    fn take_short(&mut self, at: usize, values: &[T], _: u64) {
        for &value in values {
            self.counts[at] += u64::from(Self::matches(self.number, value));
        }
    }
}

impl<T: Compute, const KIND: u8> TypedAccumulator for Tally<T, KIND> {
    type Value = T;
    type State = u64;

    fn fresh(&self, slots: usize) -> Result<Self, OutOfMemory> {
        Self::new(self.number, self.any, slots)
    }

    fn clear(&mut self) {
        self.counts.fill(0);
    }

    fn len(&self) -> usize {
        self.counts.len()
    }

    by_lanes!();

    #[inline]
    fn state(&self, slot: usize) -> u64 {
        self.counts[slot]
    }

    #[inline]
    fn join(&mut self, slot: usize, later: u64) {
        self.counts[slot] += later;
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

    fn finish(&self, slot: usize, _: u64, out: &mut [f64]) {
        out[0] = to_f64(self.counts[slot]);
    }
}

/// Count of all values, or always 0. Values are not read.
#[derive(Debug)]
pub(crate) struct Count {
    pub(crate) slots: usize,
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
        fn reads_values(&self) -> bool {
            false
        }
        fn fresh(&self, slots: usize) -> Result<Box<dyn Accumulator>, OutOfMemory> {
            Ok(Box::new(Self { slots, ..*self }))
        }
        fn clear(&mut self) {}
        fn slots(&self) -> usize {
            self.slots
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
            for (slot, out) in out.iter_mut().enumerate() {
                *out = if self.never { 0.0 } else { to_f64(counts.get(slot)) };
            }
        }
        fn as_any(&self) -> &dyn Any {
            self
        }
    }
}
