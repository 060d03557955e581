//! Exact sums of 64-bit integers.

use tercet_core::tensor::OutOfMemory;

use crate::accumulator::Statistics;
use crate::compute::Compute;
use crate::lanes::{self, Block, Kernel, Target, Tile};
use crate::sum::{MAGNITUDE, PLAIN, SumResult, integer_result};
use crate::typed::{TypedAccumulator, TypedRuns, filled};

/// An integer that is added in two halves, so that lanes cannot overflow.
pub(crate) trait Whole: Compute {
    /// Splits into the lower 32 bits and the upper bits.
    fn halves(self) -> (u64, i64);
    /// Magnitude (absolute value).
    fn magnitude(self) -> u64;
}

impl Whole for i64 {
    #[inline(always)]
    fn halves(self) -> (u64, i64) {
        (self.cast_unsigned() & 0xffff_ffff, self >> 32)
    }
    #[inline(always)]
    fn magnitude(self) -> u64 {
        self.unsigned_abs()
    }
}

impl Whole for u64 {
    #[inline(always)]
    fn halves(self) -> (u64, i64) {
        (self & 0xffff_ffff, (self >> 32).cast_signed())
    }
    #[inline(always)]
    fn magnitude(self) -> u64 {
        self
    }
}

/// Maximum number of pending rows: sums of halves stay below 2^62.
const PENDING: usize = 1 << 28;

/// Exact sums of integers. Squares are of values below 2^32.
#[derive(Debug)]
pub(crate) struct IntegerSum<T, const TERM: u8> {
    /// Sums of the halves of the latest rows, and the number of those rows.
    low: Vec<u64>,
    high: Vec<i64>,
    pending: usize,
    sum: Vec<i128>,
    result: SumResult,
    value: std::marker::PhantomData<T>,
}

impl<T: Whole, const TERM: u8> IntegerSum<T, TERM> {
    pub(crate) fn new(result: SumResult, slots: usize) -> Result<Self, OutOfMemory> {
        Ok(Self {
            low: filled(0, slots)?,
            high: filled(0, slots)?,
            pending: 0,
            sum: filled(0, slots)?,
            result,
            value: std::marker::PhantomData,
        })
    }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "squares are taken of values below 2^32")]
fn halves<T: Whole, const TERM: u8>(value: T) -> (u64, i64) {
    match TERM {
        PLAIN => value.halves(),
        MAGNITUDE => value.magnitude().halves(),
        _ => {
            let root = u64::from(value.magnitude() as u32);
            (root * root).halves()
        }
    }
}

impl<T: Whole, const TERM: u8> Kernel<T> for IntegerSum<T, TERM> {
    type Lanes<const N: usize> = ([u64; N], [i64; N]);
    const HEAVY: bool = true;
    const STEPS: usize = 4096;

    #[inline(always)]
    fn start<const N: usize>(&self, _: Target, _: &[T; N]) -> ([u64; N], [i64; N]) {
        ([0; N], [0; N])
    }

    #[inline(always)]
    fn step<const N: usize>((low, high): &mut ([u64; N], [i64; N]), values: &[T; N], _: u32) {
        for lane in 0..N {
            let (more_low, more_high) = halves::<T, TERM>(values[lane]);
            low[lane] = low[lane].wrapping_add(more_low);
            high[lane] = high[lane].wrapping_add(more_high);
        }
    }

    #[inline(always)]
    fn take_columns<const N: usize>(
        &mut self,
        at: usize,
        (low, high): &([u64; N], [i64; N]),
        _: &Tile<'_, T>,
    ) {
        let into = (self.low[at..].first_chunk_mut::<N>(), self.high[at..].first_chunk_mut::<N>());
        if let (Some(into_low), Some(into_high)) = into {
            for lane in 0..N {
                into_low[lane] = into_low[lane].wrapping_add(low[lane]);
                into_high[lane] = into_high[lane].wrapping_add(high[lane]);
            }
        }
    }

    #[inline(always)]
    fn take_run<const N: usize>(
        &mut self,
        at: usize,
        (low, high): &([u64; N], [i64; N]),
        block: &Block<'_, T, N>,
    ) {
        for lane in 0..N {
            self.sum[at] += joined(low[lane], high[lane]);
        }
        self.take_short(at, block.tail, 0);
    }

    #[inline(always)]
    fn take_short(&mut self, at: usize, values: &[T], _: u64) {
        for &value in values {
            let (low, high) = halves::<T, TERM>(value);
            self.sum[at] += joined(low, high);
        }
    }
}

#[inline(always)]
fn joined(low: u64, high: i64) -> i128 {
    i128::from(low) + (i128::from(high) << 32)
}

impl<T: Whole, const TERM: u8> TypedAccumulator for IntegerSum<T, TERM> {
    type Value = T;
    type State = i128;

    fn fresh(&self, slots: usize) -> Result<Self, OutOfMemory> {
        Self::new(self.result, slots)
    }

    fn clear(&mut self) {
        self.low.fill(0);
        self.high.fill(0);
        self.sum.fill(0);
        self.pending = 0;
    }

    fn len(&self) -> usize {
        self.sum.len()
    }

    fn rows(&mut self, at: usize, rows: &[&[T]], _: &[u64]) {
        if self.pending + rows.len() > PENDING {
            TypedAccumulator::settle(self);
        }
        self.pending += rows.len();
        lanes::rows(self, at, rows, &[]);
    }

    fn runs(&mut self, at: usize, runs: &TypedRuns<'_, T>) {
        lanes::runs(self, at, runs);
    }

    #[inline]
    fn one(&mut self, at: usize, value: T, _: u64) {
        self.take_short(at, &[value], 0);
    }

    fn settle(&mut self) {
        if self.pending > 0 {
            self.pending = 0;
            for ((low, high), sum) in self.low.iter_mut().zip(&mut self.high).zip(&mut self.sum) {
                *sum += joined(std::mem::take(low), std::mem::take(high));
            }
        }
    }

    #[inline]
    fn state(&self, slot: usize) -> i128 {
        self.sum[slot]
    }

    #[inline]
    fn join(&mut self, slot: usize, later: i128) {
        self.sum[slot] += later;
    }

    fn takes_statistics(&self) -> bool {
        TERM == PLAIN
    }

    fn fold_statistics(&mut self, at: usize, known: &Statistics) {
        self.sum[at] += known.range.whole;
    }

    fn finish(&self, slot: usize, count: u64, out: &mut [f64]) {
        out[0] = integer_result(self.result, self.sum[slot], count);
    }
}
