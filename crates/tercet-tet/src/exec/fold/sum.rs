//! Sums and what is made of them: means and norms.

use std::ops::AddAssign;

use super::lanes::{self, Kernel, SHORT, disjoint, with_lanes};
use super::{Block, Fold, Rows};
use crate::exec::number::{Addend, Number};
use crate::exec::simd::vectorized;
use crate::stats::{Range, Stats};

/// A sum: exact for integers, compensated for floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sum {
    /// Σx; 0 for no values.
    Total,
    /// Σx/n; NaN for no values.
    Mean,
    /// Σx/n of the values that are not NaN.
    NanMean,
    /// Σ|x|
    NormL1,
    /// √Σx²
    NormL2,
}

/// Sums of cells.
#[derive(Clone, Debug)]
pub(crate) struct SumCells {
    /// Exact sums; empty where sums are floats.
    whole: Vec<i128>,
    /// Sums of floats and what their additions lost; empty where sums are exact.
    sum: Vec<f64>,
    lost: Vec<f64>,
    /// How many values went in.
    count: Vec<u64>,
}

/// What is made of a value before it is added.
trait Term: Copy {
    type Of<T: Number>: Addend;
    fn of<T: Number>(value: T) -> Self::Of<T>;
    /// Likewise for a float, whatever it is.
    fn careful(value: f64) -> f64;
}

#[derive(Clone, Copy)]
struct Plain;
#[derive(Clone, Copy)]
struct Magnitude;
#[derive(Clone, Copy)]
struct Square;

impl Term for Plain {
    type Of<T: Number> = T::Plain;
    #[inline(always)]
    fn of<T: Number>(value: T) -> T::Plain {
        value.plain()
    }
    #[inline(always)]
    fn careful(value: f64) -> f64 {
        value
    }
}

impl Term for Magnitude {
    type Of<T: Number> = T::Magnitude;
    #[inline(always)]
    fn of<T: Number>(value: T) -> T::Magnitude {
        value.magnitude()
    }
    #[inline(always)]
    fn careful(value: f64) -> f64 {
        value.abs()
    }
}

impl Term for Square {
    type Of<T: Number> = T::Square;
    #[inline(always)]
    fn of<T: Number>(value: T) -> T::Square {
        value.square()
    }
    #[inline(always)]
    fn careful(value: f64) -> f64 {
        value * value
    }
}

type Lane<T, M> = <<M as Term>::Of<T> as Addend>::Lane;

/// Adds up terms.
#[derive(Clone, Copy)]
struct Add<M>(M);

/// The lower and upper parts of sums.
type Sums<T, M, const N: usize> = [[Lane<T, M>; N]; 2];

impl<T: Number, M: Term, const N: usize> Kernel<T, N> for Add<M> {
    type Lanes = Sums<T, M, N>;
    const STEPS: usize = <M::Of<T> as Addend>::STEPS;
    #[inline(always)]
    fn start(self) -> Self::Lanes {
        [[Lane::<T, M>::default(); N]; 2]
    }
    #[inline(always)]
    fn step(self, [low, high]: &mut Self::Lanes, values: &[T; N]) {
        for lane in 0..N {
            let term = M::of(values[lane]);
            low[lane] += term.low();
            high[lane] += term.high();
        }
    }
}

/// The greatest of what tells whether addends are wrong.
#[derive(Clone, Copy)]
struct Peak;

impl<T: Number, const N: usize> Kernel<T, N> for Peak {
    type Lanes = [u16; N];
    const STEPS: usize = usize::MAX;
    #[inline(always)]
    fn start(self) -> [u16; N] {
        [0; N]
    }
    #[inline(always)]
    fn step(self, peaks: &mut [u16; N], values: &[T; N]) {
        for lane in 0..N {
            peaks[lane] = peaks[lane].max(values[lane].peak());
        }
    }
}

/// Whether addends are wrong.
#[inline(always)]
fn is_irregular<T: Number, const N: usize>(peaks: &[u16; N]) -> bool {
    peaks.iter().any(|&peak| peak >= T::IRREGULAR)
}

/// Adds up floats as they are, without those that are NaN if so wanted, and counts them.
#[derive(Clone, Copy)]
struct AddFloats<M> {
    term: std::marker::PhantomData<M>,
    skip_nan: bool,
}

impl<T: Number, M: Term, const N: usize> Kernel<T, N> for AddFloats<M> {
    type Lanes = [[f64; N]; 2];
    const STEPS: usize = 256;
    #[inline(always)]
    fn start(self) -> Self::Lanes {
        [[0.0; N]; 2]
    }
    #[inline(always)]
    fn step(self, [sum, numbers]: &mut Self::Lanes, values: &[T; N]) {
        for lane in 0..N {
            let value = values[lane].to_f64();
            let skip = self.skip_nan & value.is_nan();
            sum[lane] += if skip { 0.0 } else { M::careful(value) };
            numbers[lane] += if skip { 0.0 } else { 1.0 };
        }
    }
}

/// The sum and what the addition lost: `sum` stays infinite or NaN once it is, as plain addition has it.
#[inline(always)]
fn compensated(sum: &mut f64, lost: &mut f64, x: f64) {
    let next = *sum + x;
    let added = next - *sum;
    let error = (*sum - (next - added)) + (x - added);
    *lost += if error.is_finite() { error } else { 0.0 };
    *sum = next;
}

/// Adds cell by cell.
#[inline(always)]
fn compensate(sum: &mut [f64], lost: &mut [f64], x: &[f64]) {
    for ((sum, lost), &x) in sum.iter_mut().zip(lost).zip(x) {
        compensated(sum, lost, x);
    }
}

/// The sum of lanes, in a fixed order.
#[inline(always)]
pub(super) fn across<const N: usize>(lanes: &[f64; N]) -> f64 {
    let mut lanes = *lanes;
    let mut half = N / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

#[inline]
fn add<N: Copy + AddAssign>(into: &mut [N], later: &[N]) {
    for (into, later) in into.iter_mut().zip(later) {
        *into += *later;
    }
}

#[inline]
fn merge_floats((sum, lost): (&mut [f64], &mut [f64]), (later_sum, later_lost): (&[f64], &[f64])) {
    if sum.len() < SHORT {
        compensate(sum, lost, later_sum);
        add(lost, later_lost);
    } else {
        vectorized(|| {
            compensate(sum, lost, later_sum);
            add(lost, later_lost);
        });
    }
}

impl SumCells {
    fn new(cells: usize, exact: bool) -> Self {
        let (whole, float) = if exact { (cells, 0) } else { (0, cells) };
        Self { whole: vec![0; whole], sum: vec![0.0; float], lost: vec![0.0; float], count: vec![0; cells] }
    }

    #[inline(always)]
    fn add(&mut self, at: usize, x: f64) {
        compensated(&mut self.sum[at], &mut self.lost[at], x);
    }

    /// Folds values that are too few for lanes.
    #[inline(always)]
    fn short<T: Number, M: Term>(&mut self, at: usize, values: &[T], skip_nan: bool) {
        if M::Of::<T>::EXACT {
            let (mut low, mut high) = (Lane::<T, M>::default(), Lane::<T, M>::default());
            for &value in values {
                low += M::of(value).low();
                high += M::of(value).high();
            }
            self.whole[at] += M::Of::<T>::whole(low, high, values.len());
            self.count[at] += values.len() as u64;
        } else {
            let (mut sum, mut numbers) = (0.0, 0);
            for value in
                values.iter().map(|value| value.to_f64()).filter(|value| !(skip_nan && value.is_nan()))
            {
                sum += M::careful(value);
                numbers += 1;
            }
            self.add(at, sum);
            self.count[at] += numbers;
        }
    }

    #[inline]
    fn run<T: Number, M: Term>(&mut self, term: M, at: usize, values: &[T], skip_nan: bool) {
        if values.len() < SHORT {
            return self.short::<T, M>(at, values, skip_nan);
        }
        let rest = with_lanes!(T, |N| vectorized(|| self.long::<T, M, N>(term, at, values, skip_nan)));
        self.short::<T, M>(at, rest, skip_nan);
    }

    /// Folds the values that fill `N` lanes and returns the rest.
    #[inline(always)]
    fn long<'v, T: Number, M: Term, const N: usize>(
        &mut self,
        term: M,
        at: usize,
        values: &'v [T],
        skip_nan: bool,
    ) -> &'v [T] {
        lanes::run(Add(term), values, |[low, high]: &Sums<T, M, N>, block: &[[T; N]]| {
            let mut count = block.len() * N;
            if M::Of::<T>::EXACT {
                let totals = low.iter().zip(high);
                let totals = totals.map(|(&low, &high)| M::Of::<T>::whole(low, high, block.len()));
                self.whole[at] += totals.sum::<i128>();
            } else {
                let mut sum = across(&low.map(M::Of::<T>::float));
                if skip_nan && sum.is_nan() || T::HALF && is_irregular::<T, N>(&lanes::every(Peak, block, 1))
                {
                    let careful = AddFloats { term: std::marker::PhantomData::<M>, skip_nan };
                    lanes::run(careful, block.as_flattened(), |[sums, numbers]: &[[f64; N]; 2], _| {
                        sum = across(sums);
                        count = small(across(numbers));
                    });
                }
                self.add(at, sum);
            }
            self.count[at] += count as u64;
        })
    }

    fn rows<T: Number, M: Term>(&mut self, term: M, at: usize, rows: &Rows<'_, T>, skip_nan: bool) {
        let mut done = 0;
        with_lanes!(T, |N| {
            if rows.width >= N {
                return vectorized(|| self.panels::<T, M, N>(term, at, rows, skip_nan));
            }
            if rows.stride == rows.width && rows.count >= N && !skip_nan {
                done = vectorized(|| self.ribbon::<T, M, N>(term, at, rows));
            }
        });
        lanes::columns(rows, done, |column, _, values| self.run(term, at + column, values, skip_nan));
    }

    #[inline(always)]
    fn panels<T: Number, M: Term, const N: usize>(
        &mut self,
        term: M,
        at: usize,
        rows: &Rows<'_, T>,
        skip_nan: bool,
    ) {
        self.count[at..at + rows.width].iter_mut().for_each(|count| *count += rows.count as u64);
        lanes::panels(Add(term), rows, |panel, [low, high]: &Sums<T, M, N>| {
            let cells = at + panel.column + panel.skip..at + panel.column + N;
            if M::Of::<T>::EXACT {
                for (lane, whole) in (panel.skip..N).zip(&mut self.whole[cells]) {
                    *whole += M::Of::<T>::whole(low[lane], high[lane], panel.rows);
                }
                return;
            }
            let mut totals = low.map(M::Of::<T>::float);
            if skip_nan && totals.iter().any(|sum| sum.is_nan())
                || T::HALF && is_irregular::<T, N>(&lanes::panel(Peak, rows, panel))
            {
                let careful = AddFloats { term: std::marker::PhantomData::<M>, skip_nan };
                let [sums, numbers]: [[f64; N]; 2] = lanes::panel(careful, rows, panel);
                totals = sums;
                for (lane, count) in (panel.skip..N).zip(&mut self.count[cells.clone()]) {
                    *count -= (panel.rows - small(numbers[lane])) as u64;
                }
            }
            let (sum, lost) = (&mut self.sum[cells.clone()], &mut self.lost[cells]);
            if let (Some(sum), Some(lost)) = (sum.first_chunk_mut::<N>(), lost.first_chunk_mut::<N>()) {
                compensate(sum, lost, &totals);
            } else {
                compensate(sum, lost, &totals[panel.skip..]);
            }
        });
    }

    /// Folds narrow rows without gaps, as many as fill the lanes, and returns how many these are.
    #[inline(always)]
    fn ribbon<T: Number, M: Term, const N: usize>(
        &mut self,
        term: M,
        at: usize,
        rows: &Rows<'_, T>,
    ) -> usize {
        lanes::ribbon(Add(term), rows, |columns, block: &[[T; N]], [low, high]: &Sums<T, M, N>, steps| {
            let mut totals = low.map(M::Of::<T>::float);
            if T::HALF && is_irregular::<T, N>(&lanes::every(Peak, block, rows.width)) {
                let careful = AddFloats { term: std::marker::PhantomData::<M>, skip_nan: false };
                totals = lanes::every(careful, block, rows.width)[0];
            }
            for (lane, column) in columns.enumerate() {
                self.count[at + column] += steps as u64;
                if M::Of::<T>::EXACT {
                    self.whole[at + column] += M::Of::<T>::whole(low[lane], high[lane], steps);
                } else {
                    self.add(at + column, totals[lane]);
                }
            }
        })
    }
}

/// A small whole number that is an f64.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of values of a block")]
fn small(number: f64) -> usize {
    number as usize
}

impl Sum {
    /// Whether sums of this type are exact.
    fn is_exact<T: Number>(self) -> bool {
        match self {
            Self::Total | Self::Mean | Self::NanMean => T::Plain::EXACT,
            Self::NormL1 => T::Magnitude::EXACT,
            Self::NormL2 => T::Square::EXACT,
        }
    }

    fn result(self, whole: Option<i128>, sum: f64, count: u64) -> f64 {
        match (self, whole) {
            (Self::Mean | Self::NanMean, _) if count == 0 => f64::NAN,
            (Self::Mean | Self::NanMean, Some(whole)) => quotient(whole, count),
            (Self::Mean | Self::NanMean, None) => sum / to_f64(count) + 0.0,
            (Self::NormL2, Some(whole)) => nearest(whole).sqrt(),
            (Self::NormL2, None) => sum.sqrt(),
            (Self::Total | Self::NormL1, Some(whole)) => nearest(whole),
            // Adding +0.0 turns a negative zero into a positive one.
            (Self::Total | Self::NormL1, None) => sum + 0.0,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "the nearest")]
fn nearest(whole: i128) -> f64 {
    whole as f64
}

#[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^53 values")]
pub(super) fn to_f64(count: u64) -> f64 {
    count as f64
}

/// The f64 nearest to the quotient.
#[expect(clippy::cast_precision_loss, reason = "the one rounding")]
fn quotient(sum: i128, count: u64) -> f64 {
    let magnitude = sum.unsigned_abs();
    if magnitude == 0 {
        return 0.0;
    }
    // At least 64 bits of quotient, the last of which also tells whether anything follows: the conversion then
    // rounds as if it knew all digits.
    let shift = magnitude.leading_zeros();
    let (high, rest) = ((magnitude << shift) / u128::from(count), (magnitude << shift) % u128::from(count));
    let digits = high | u128::from(rest != 0);
    let scale = f64::from_bits(u64::from(1023 - shift) << 52);
    let quotient = digits as f64 * scale;
    if sum < 0 { -quotient } else { quotient }
}

/// Calls a method for the term of a sum.
macro_rules! with_term {
    ($sum:expr, |$term:ident| $body:expr) => {
        match $sum {
            Sum::Total | Sum::Mean | Sum::NanMean => {
                let $term = Plain;
                $body
            }
            Sum::NormL1 => {
                let $term = Magnitude;
                $body
            }
            Sum::NormL2 => {
                let $term = Square;
                $body
            }
        }
    };
}

impl Fold for Sum {
    type Cells<T: Number> = SumCells;

    fn cell_bytes<T: Number>(&self) -> usize {
        24
    }

    fn start<T: Number>(&self, block: &Block) -> SumCells {
        SumCells::new(block.len(), self.is_exact::<T>())
    }

    #[inline]
    fn run<T: Number>(&self, cells: &mut SumCells, at: usize, values: &[T], _: u64) {
        let skip_nan = T::FLOAT && *self == Self::NanMean;
        with_term!(self, |term| cells.run(term, at, values, skip_nan));
    }

    fn rows<T: Number>(&self, cells: &mut SumCells, at: usize, rows: &Rows<'_, T>) {
        let skip_nan = T::FLOAT && *self == Self::NanMean;
        with_term!(self, |term| cells.rows(term, at, rows, skip_nan));
    }

    #[inline]
    fn one<T: Number>(&self, cells: &mut SumCells, at: usize, value: T, index: u64) {
        self.run(cells, at, &[value], index);
    }

    fn merge<T: Number>(
        &self,
        (into, at): (&mut SumCells, usize),
        (later, from): (&SumCells, usize),
        count: usize,
    ) {
        let (to, from) = (at..at + count, from..from + count);
        add(&mut into.count[to.clone()], &later.count[from.clone()]);
        if self.is_exact::<T>() {
            add(&mut into.whole[to], &later.whole[from]);
        } else {
            let (sum, lost) = (&mut into.sum[to.clone()], &mut into.lost[to]);
            merge_floats((sum, lost), (&later.sum[from.clone()], &later.lost[from]));
        }
    }

    fn merge_within<T: Number>(&self, cells: &mut SumCells, at: usize, from: usize, count: usize) {
        let (into, later) = disjoint(&mut cells.count, at, from, count);
        add(into, later);
        if self.is_exact::<T>() {
            let (into, later) = disjoint(&mut cells.whole, at, from, count);
            add(into, later);
        } else {
            let (sum, later_sum) = disjoint(&mut cells.sum, at, from, count);
            let (lost, later_lost) = disjoint(&mut cells.lost, at, from, count);
            merge_floats((sum, lost), (later_sum, later_lost));
        }
    }

    fn takes_stats(&self) -> bool {
        matches!(self, Self::Total | Self::Mean | Self::NanMean)
    }

    fn absorb<T: Number>(&self, cells: &mut SumCells, at: usize, stats: &Stats) {
        let skipped = if *self == Self::NanMean { stats.nan_count } else { 0 };
        cells.count[at] += stats.count.saturating_sub(skipped);
        match stats.range {
            Range::Signed { sum, .. } | Range::Unsigned { sum, .. } => cells.whole[at] += sum,
            Range::Float { .. } if stats.nan_count > skipped => cells.add(at, f64::NAN),
            Range::Float { sum, .. } => cells.add(at, sum),
        }
    }

    fn finish<T: Number>(&self, cells: SumCells) -> Vec<f64> {
        let counts = cells.count.iter().enumerate();
        if self.is_exact::<T>() {
            return counts.map(|(cell, &count)| self.result(Some(cells.whole[cell]), 0.0, count)).collect();
        }
        let total = |sum: f64, lost: f64| if sum.is_finite() { sum + lost } else { sum };
        counts
            .map(|(cell, &count)| self.result(None, total(cells.sum[cell], cells.lost[cell]), count))
            .collect()
    }
}
