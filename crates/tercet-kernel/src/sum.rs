//! Sums of floats, and the results derived from them: means and norms.

use std::marker::PhantomData;

use tercet_core::tensor::OutOfMemory;

use crate::accumulator::Statistics;
use crate::compute::{Compute, ComputeType};
use crate::lanes::{self, Block, Kernel, Target, Tile, across};
use crate::simd::{Work, vectorized};
use crate::typed::{TypedAccumulator, TypedRuns, filled};

/// Result derived from a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SumResult {
    /// Sum; 0 for no values.
    Total,
    /// Mean: sum divided by the number of values; NaN for no values.
    Mean,
    /// Square root of the sum.
    Root,
    /// Difference between the exact sum of integers and the nearest f64; 0 for floats.
    Rest,
}

/// Terms of the sum: the value, its magnitude, its square, or a part of it.
pub(crate) const PLAIN: u8 = 0;
pub(crate) const MAGNITUDE: u8 = 1;
pub(crate) const SQUARE: u8 = 2;
/// The value times `SCALE`, so that no sum overflows.
pub(crate) const SCALED: u8 = 3;

/// 2^-64
const SCALE: f64 = f64::from_bits((1023 - 64) << 52);

/// Maximum number of rows added without compensation; small enough that rounding stays far below the tolerance.
const PENDING: usize = 256;

/// Sums of values as f64. With `SKIP`, NaN is skipped.
#[derive(Debug)]
pub(crate) struct FloatSum<T, const TERM: u8, const SKIP: bool> {
    /// Uncompensated sums of the latest rows, and the number of those rows.
    partial: Vec<f64>,
    pending: usize,
    /// Range of slots with uncompensated sums.
    dirty: std::ops::Range<usize>,
    /// Sums, and the rounding errors of their additions.
    sum: Vec<f64>,
    lost: Vec<f64>,
    /// Count of values, if some are skipped.
    numbers: Vec<f64>,
    result: SumResult,
    /// Whether all terms are integers below 2^33, so that sums and errors are integers as well.
    exact: bool,
    value: PhantomData<T>,
}

impl<T: Compute, const TERM: u8, const SKIP: bool> FloatSum<T, TERM, SKIP> {
    pub(crate) fn new(result: SumResult, exact: bool, slots: usize) -> Result<Self, OutOfMemory> {
        let zeros = || filled(0.0, slots);
        Ok(Self {
            partial: zeros()?,
            pending: 0,
            dirty: 0..0,
            sum: zeros()?,
            lost: zeros()?,
            numbers: if SKIP { zeros()? } else { Vec::new() },
            result,
            exact,
            value: PhantomData,
        })
    }

    /// Whether sums of finite values can overflow, which is computed again with scaled values.
    const OVERFLOWS: bool = TERM == PLAIN && matches!(T::TYPE, ComputeType::F64);

    #[inline(always)]
    fn add(&mut self, at: usize, x: f64, number: f64) {
        if Self::OVERFLOWS {
            overflowing(&mut self.sum[at], &mut self.lost[at], x);
        } else {
            compensated(&mut self.sum[at], &mut self.lost[at], x);
        }
        if SKIP {
            self.numbers[at] += number;
        }
    }
}

#[inline(always)]
fn term<const TERM: u8>(x: f64) -> f64 {
    match TERM {
        PLAIN => x,
        MAGNITUDE => x.abs(),
        SCALED => x * SCALE,
        _ => x * x,
    }
}

/// Sum and rounding error (two-sum). `sum` stays infinite or NaN, as in plain addition.
#[inline(always)]
pub(crate) fn compensated(sum: &mut f64, lost: &mut f64, x: f64) {
    let next = *sum + x;
    let added = next - *sum;
    let error = (*sum - (next - added)) + (x - added);
    *lost += if error.is_finite() { error } else { 0.0 };
    *sum = next;
}

/// A compensated addition of partial sums, where those that overflowed in both directions are infinite, not NaN.
#[inline(always)]
fn overflowing(sum: &mut f64, lost: &mut f64, x: f64) {
    let expected = unless_opposite(*sum, x, *sum + x);
    compensated(sum, lost, x);
    *sum = expected;
}

/// The result of an addition; infinity for infinities of opposite signs.
#[inline(always)]
fn unless_opposite(a: f64, b: f64, result: f64) -> f64 {
    if result.is_nan() && !a.is_nan() && !b.is_nan() { f64::INFINITY } else { result }
}

impl<T: Compute, const TERM: u8, const SKIP: bool> Kernel<T> for FloatSum<T, TERM, SKIP> {
    /// Sums and counts.
    type Lanes<const N: usize> = [[f64; N]; 2];
    const HEAVY: bool = SKIP;
    const ROWS: usize = 8;
    /// Few additions without compensation, so that sums are as accurate as numpy's pairwise ones.
    const STEPS: usize = 32;

    #[inline(always)]
    fn start<const N: usize>(&self, _: Target, _: &[T; N]) -> [[f64; N]; 2] {
        [[0.0; N]; 2]
    }

    #[inline(always)]
    fn step<const N: usize>([sum, numbers]: &mut [[f64; N]; 2], values: &[T; N], _: u32) {
        for lane in 0..N {
            let x = values[lane].to_f64();
            if SKIP {
                let skip = x.is_nan();
                sum[lane] += if skip { 0.0 } else { term::<TERM>(x) };
                numbers[lane] += if skip { 0.0 } else { 1.0 };
            } else {
                sum[lane] += term::<TERM>(x);
            }
        }
    }

    #[inline(always)]
    fn take_columns<const N: usize>(&mut self, at: usize, [sum, numbers]: &[[f64; N]; 2], _: &Tile<'_, T>) {
        if let Some(partial) = self.partial[at..].first_chunk_mut::<N>() {
            for lane in 0..N {
                let next = partial[lane] + sum[lane];
                let result =
                    if Self::OVERFLOWS { unless_opposite(partial[lane], sum[lane], next) } else { next };
                partial[lane] = result;
            }
        }
        if SKIP && let Some(total) = self.numbers[at..].first_chunk_mut::<N>() {
            for lane in 0..N {
                total[lane] += numbers[lane];
            }
        }
    }

    #[inline(always)]
    fn take_run<const N: usize>(
        &mut self,
        at: usize,
        [sum, numbers]: &[[f64; N]; 2],
        block: &Block<'_, T, N>,
    ) {
        let [mut rest, mut number] = [[0.0; 1]; 2];
        for &value in block.tail {
            let mut lanes = [rest, number];
            Self::step(&mut lanes, &[value], 0);
            [rest, number] = lanes;
        }
        let number = if SKIP { across(numbers) + number[0] } else { 0.0 };
        let mut total = across(sum) + rest[0];
        if Self::OVERFLOWS && total.is_nan() && !sum.iter().chain(&rest).any(|part| part.is_nan()) {
            total = f64::INFINITY;
        }
        self.add(at, total, number);
    }

    #[inline(always)]
    fn take_short(&mut self, at: usize, values: &[T], _: u64) {
        let mut lanes = [[0.0; 1]; 2];
        for &value in values {
            Self::step(&mut lanes, &[value], 0);
        }
        self.add(at, lanes[0][0], lanes[1][0]);
    }
}

/// Adds deferred sums to the compensated sums.
struct AddDeferred<'a> {
    partial: &'a mut [f64],
    sum: &'a mut [f64],
    lost: &'a mut [f64],
    overflows: bool,
}

impl Work for AddDeferred<'_> {
    type Output = ();
    #[inline(always)]
    fn work(self) {
        for ((partial, sum), lost) in self.partial.iter_mut().zip(self.sum).zip(self.lost) {
            if self.overflows {
                overflowing(sum, lost, *partial);
            } else {
                compensated(sum, lost, *partial);
            }
            *partial = 0.0;
        }
    }
}

/// Two ranges of `count` numbers that do not overlap: the one at `at` to change, the one at `from` to read.
fn two(numbers: &mut [f64], at: usize, from: usize, count: usize) -> (&mut [f64], &[f64]) {
    if at < from {
        let (low, high) = numbers.split_at_mut(from);
        (&mut low[at..at + count], &high[..count])
    } else {
        let (low, high) = numbers.split_at_mut(at);
        (&mut high[..count], &low[from..from + count])
    }
}

/// Adds compensated sums to others.
struct Merge<'a> {
    sum: &'a mut [f64],
    lost: &'a mut [f64],
    later: (&'a [f64], &'a [f64]),
    overflows: bool,
}

impl Work for Merge<'_> {
    type Output = ();
    #[inline(always)]
    fn work(self) {
        let later = self.later.0.iter().zip(self.later.1);
        for ((sum, lost), (&x, &more)) in self.sum.iter_mut().zip(self.lost).zip(later) {
            if self.overflows {
                overflowing(sum, lost, x);
            } else {
                compensated(sum, lost, x);
            }
            *lost += more;
        }
    }
}

impl<T: Compute, const TERM: u8, const SKIP: bool> TypedAccumulator for FloatSum<T, TERM, SKIP> {
    type Value = T;
    type State = [f64; 3];
    const STREAMING: bool = !SKIP;

    fn fresh(&self, slots: usize) -> Result<Self, OutOfMemory> {
        Self::new(self.result, self.exact, slots)
    }

    fn clear(&mut self) {
        for states in [&mut self.partial, &mut self.sum, &mut self.lost, &mut self.numbers] {
            states.fill(0.0);
        }
        self.pending = 0;
    }

    fn len(&self) -> usize {
        self.sum.len()
    }

    fn rows(&mut self, at: usize, rows: &[&[T]], _: &[u64]) {
        if self.pending + rows.len() > PENDING {
            TypedAccumulator::settle(self);
        }
        let slots = at..at + rows.first().map_or(0, |row| row.len());
        self.dirty = if self.pending == 0 {
            slots
        } else {
            self.dirty.start.min(slots.start)..self.dirty.end.max(slots.end)
        };
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
            let slots = self.dirty.clone();
            let partial = &mut self.partial[slots.clone()];
            vectorized(AddDeferred {
                partial,
                sum: &mut self.sum[slots.clone()],
                lost: &mut self.lost[slots],
                overflows: Self::OVERFLOWS,
            });
        }
    }

    #[inline]
    fn state(&self, slot: usize) -> [f64; 3] {
        [self.sum[slot], self.lost[slot], if SKIP { self.numbers[slot] } else { 0.0 }]
    }

    #[inline]
    fn join(&mut self, slot: usize, [sum, lost, number]: [f64; 3]) {
        self.add(slot, sum, number);
        self.lost[slot] += lost;
    }

    fn merge_slots(&mut self, at: usize, later: &Self, from: usize, count: usize) {
        let (own, other) = (at..at + count, from..from + count);
        let (sum, lost) = (&mut self.sum[own.clone()], &mut self.lost[own.clone()]);
        let later_sums = (&later.sum[other.clone()], &later.lost[other.clone()]);
        vectorized(Merge { sum, lost, later: later_sums, overflows: Self::OVERFLOWS });
        if SKIP {
            let numbers = self.numbers[own].iter_mut().zip(&later.numbers[other]);
            numbers.for_each(|(number, more)| *number += more);
        }
    }

    fn merge_own_slots(&mut self, at: usize, from: usize, count: usize) {
        if count < 4 {
            (0..count).for_each(|i| self.merge_own(at + i, from + i));
            return;
        }
        let (sum, later) = two(&mut self.sum, at, from, count);
        let (lost, later_lost) = two(&mut self.lost, at, from, count);
        vectorized(Merge { sum, lost, later: (later, later_lost), overflows: Self::OVERFLOWS });
        if SKIP {
            let (numbers, later) = two(&mut self.numbers, at, from, count);
            numbers.iter_mut().zip(later).for_each(|(number, more)| *number += more);
        }
    }

    fn takes_statistics(&self) -> bool {
        TERM == PLAIN
    }

    fn fold_statistics(&mut self, at: usize, known: &Statistics) {
        let skipped = if SKIP { known.nan_count } else { 0 };
        let number = to_f64(known.count.saturating_sub(skipped));
        if self.exact {
            // Sum of integers as a pair of floats.
            let high = nearest(known.range.whole);
            #[expect(clippy::cast_possible_truncation, reason = "sums of 64-bit counts of 32-bit integers")]
            let low = nearest(known.range.whole - high as i128);
            self.add(at, high, number);
            self.lost[at] += low;
        } else if known.nan_count > skipped {
            self.add(at, f64::NAN, number);
        } else {
            self.add(at, known.range.sum, number);
        }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole numbers in range")]
    fn finish(&self, slot: usize, count: u64, out: &mut [f64]) {
        let count = if SKIP { self.numbers[slot] as u64 } else { count };
        let (sum, lost) = (self.sum[slot], self.lost[slot]);
        out[0] = if self.exact {
            integer_result(self.result, sum as i128 + lost as i128, count)
        } else {
            float_result(self.result, if sum.is_finite() { sum + lost } else { sum }, count)
        };
        if TERM == SCALED {
            out[0] /= SCALE;
        }
    }
}

/// Result of a sum of floats. Adding +0.0 turns −0.0 into +0.0.
pub(crate) fn float_result(result: SumResult, sum: f64, count: u64) -> f64 {
    match result {
        SumResult::Mean if count == 0 => f64::NAN,
        SumResult::Mean => sum / to_f64(count) + 0.0,
        SumResult::Root => sum.sqrt(),
        SumResult::Total => sum + 0.0,
        SumResult::Rest => 0.0,
    }
}

/// Result of a sum of integers, rounded once.
pub(crate) fn integer_result(result: SumResult, sum: i128, count: u64) -> f64 {
    match result {
        SumResult::Mean if count == 0 => f64::NAN,
        SumResult::Mean => quotient(sum, count),
        SumResult::Root => nearest(sum).sqrt(),
        SumResult::Total => nearest(sum),
        SumResult::Rest => rest(sum, nearest(sum)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "the nearest")]
fn nearest(whole: i128) -> f64 {
    whole as f64
}

/// Difference between an integer of less than 107 bits and the nearest f64: exact.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "few digits are left")]
pub(crate) fn rest(whole: i128, nearest: f64) -> f64 {
    (whole - nearest as i128) as f64
}

#[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^53 values")]
pub(crate) fn to_f64(count: u64) -> f64 {
    count as f64
}

/// Quotient, rounded to the nearest f64.
#[expect(clippy::cast_precision_loss, reason = "the one rounding")]
fn quotient(sum: i128, count: u64) -> f64 {
    let magnitude = sum.unsigned_abs();
    if magnitude == 0 {
        return 0.0;
    }
    // At least 64 bits of quotient. The last bit is sticky: it is set if the remainder is nonzero, so the conversion
    // rounds correctly.
    let shift = magnitude.leading_zeros();
    let (high, rest) = ((magnitude << shift) / u128::from(count), (magnitude << shift) % u128::from(count));
    let digits = high | u128::from(rest != 0);
    let scale = f64::from_bits(u64::from(1023 - shift) << 52);
    let quotient = digits as f64 * scale;
    if sum < 0 { -quotient } else { quotient }
}
