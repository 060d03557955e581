//! Sums and what is made of them: means and norms.

use std::ops::AddAssign;

use super::lanes::{self, Gather, Kernel, Panel, SHORT, Strand, Target, disjoint, with_lanes};
use super::{Block, Fold, Rows};
use crate::exec::number::{Addend, Number};
use crate::exec::simd::{Work, vectorized};
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

/// How many values of a lane are added without compensation: so few that rounding stays far below the tolerance.
const STEPS: usize = 256;

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
    #[inline(always)]
    fn start(&self) -> Self::Lanes {
        [[Lane::<T, M>::default(); N]; 2]
    }
    #[inline(always)]
    fn step(&self, [low, high]: &mut Self::Lanes, values: &[T; N]) {
        for lane in 0..N {
            let term = M::of(values[lane]);
            low[lane] += term.low();
            if M::Of::<T>::SPLIT {
                high[lane] += term.high();
            }
        }
    }
}

/// Adds up floats as they are, without those that are NaN if so wanted, and counts them.
#[derive(Clone, Copy)]
struct AddFloats<M> {
    term: std::marker::PhantomData<M>,
    skip_nan: bool,
}

impl<T: Number, M: Term, const N: usize> Kernel<T, N> for AddFloats<M> {
    type Lanes = [[f64; N]; 2];
    #[inline(always)]
    fn start(&self) -> Self::Lanes {
        [[0.0; N]; 2]
    }
    #[inline(always)]
    fn step(&self, [sum, numbers]: &mut Self::Lanes, values: &[T; N]) {
        for lane in 0..N {
            let value = values[lane].to_f64();
            let skip = self.skip_nan & value.is_nan();
            sum[lane] += if skip { 0.0 } else { M::careful(value) };
            numbers[lane] += if skip { 0.0 } else { 1.0 };
        }
    }
}

/// Whether addends are wrong for some of the values.
#[inline(always)]
fn is_irregular<T: Number>(values: &[T]) -> bool {
    T::HALF && vectorized(Peak(values)) >= T::IRREGULAR
}

/// The greatest of what tells whether addends are wrong.
struct Peak<'a, T>(&'a [T]);

impl<T: Number> Work for Peak<'_, T> {
    type Output = u16;
    #[inline(always)]
    fn work(self) -> u16 {
        let mut peak = 0;
        for value in self.0 {
            peak = value.peak().max(peak);
        }
        peak
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

/// The sum of lanes, in a fixed order. Not inlined, or the compiler fits the loop that fills the lanes to this one.
#[inline(never)]
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

#[inline(always)]
pub(super) fn add<N: Copy + AddAssign>(into: &mut [N], later: &[N]) {
    for (into, later) in into.iter_mut().zip(later) {
        *into += *later;
    }
}

/// Merges sums of floats.
struct MergeFloats<'a> {
    into: (&'a mut [f64], &'a mut [f64]),
    later: (&'a [f64], &'a [f64]),
}

impl Work for MergeFloats<'_> {
    type Output = ();
    #[inline(always)]
    fn work(self) {
        compensate(self.into.0, self.into.1, self.later.0);
        add(self.into.1, self.later.1);
    }
}

impl MergeFloats<'_> {
    #[inline(always)]
    fn merge(self) {
        if self.later.0.len() < SHORT { self.work() } else { vectorized(self) }
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
        let mut rest = values;
        if values.len() >= SHORT {
            let careful = is_irregular(values);
            let mut adder = Adder { cells: self, term, skip_nan, careful };
            rest = with_lanes!(T, |N| lanes::run::<T, _, N>(&mut adder, at, values));
        }
        self.short::<T, M>(at, rest, skip_nan);
    }

    fn rows<T: Number, M: Term>(&mut self, term: M, at: usize, rows: &Rows<'_, T>, skip_nan: bool) {
        let careful = if rows.stride == rows.width {
            is_irregular(&rows.values[..rows.count * rows.width])
        } else {
            (0..rows.count).any(|row| is_irregular(rows.row(row)))
        };
        let mut adder = Adder { cells: self, term, skip_nan, careful };
        let done = with_lanes!(T, |N| lanes::rows::<T, _, N>(&mut adder, at, rows));
        lanes::columns(rows, done, |column, _, values| self.run(term, at + column, values, skip_nan));
    }
}

/// Adds lanes to cells.
struct Adder<'a, M> {
    cells: &'a mut SumCells,
    term: M,
    skip_nan: bool,
    careful: bool,
}

impl<T: Number, M: Term, const N: usize> Gather<T, N> for Adder<'_, M> {
    type Kernel = Add<M>;
    const STEPS: usize = if M::Of::<T>::STEPS < STEPS { M::Of::<T>::STEPS } else { STEPS };
    const NARROW: bool = true;

    #[inline(always)]
    fn kernel(&self, _: Target, _: &[T; N]) -> Add<M> {
        Add(self.term)
    }

    #[inline(always)]
    fn take(&mut self, at: usize, [low, high]: &Sums<T, M, N>, groups: &[[T; N]], _: usize) {
        let mut count = groups.len() * N;
        if M::Of::<T>::EXACT {
            for lane in 0..N {
                self.cells.whole[at] += M::Of::<T>::whole(low[lane], high[lane], groups.len());
            }
        } else {
            let mut sum = across(&floats::<T, M, N>(low));
            if self.careful || self.skip_nan && sum.is_nan() {
                let [sums, numbers] = lanes::strand(&self.add_floats(), groups, 1);
                sum = across(&sums);
                count = small(across(&numbers));
            }
            self.cells.add(at, sum);
        }
        self.cells.count[at] += count as u64;
    }

    #[inline(always)]
    fn take_panel(&mut self, at: usize, [low, high]: &Sums<T, M, N>, rows: &Rows<'_, T>, panel: Panel) {
        let range = panel.cells::<N>(at);
        for count in &mut self.cells.count[range.clone()] {
            *count += panel.rows as u64;
        }
        if M::Of::<T>::EXACT {
            for (lane, whole) in (panel.skip..N).zip(&mut self.cells.whole[range]) {
                *whole += M::Of::<T>::whole(low[lane], high[lane], panel.rows);
            }
            return;
        }
        let mut totals = floats::<T, M, N>(low);
        if self.careful || self.skip_nan && totals.iter().any(|sum| sum.is_nan()) {
            let [sums, numbers] = lanes::panel(&self.add_floats(), rows, panel);
            totals = sums;
            for (lane, count) in (panel.skip..N).zip(&mut self.cells.count[range.clone()]) {
                *count -= (panel.rows - small(numbers[lane])) as u64;
            }
        }
        let (sum, lost) = (&mut self.cells.sum[range.clone()], &mut self.cells.lost[range]);
        if let (Some(sum), Some(lost)) = (sum.first_chunk_mut::<N>(), lost.first_chunk_mut::<N>()) {
            compensate(sum, lost, &totals);
        } else {
            compensate(sum, lost, &totals[panel.skip..]);
        }
    }

    #[inline(always)]
    fn take_strand(&mut self, at: usize, [low, high]: &Sums<T, M, N>, strand: &Strand<'_, T, N>) {
        let mut totals = floats::<T, M, N>(low);
        let mut counts = [strand.steps(); N];
        if !M::Of::<T>::EXACT && (self.careful || self.skip_nan && totals.iter().any(|sum| sum.is_nan())) {
            let [sums, numbers] = lanes::strand(&self.add_floats(), strand.groups, strand.width);
            totals = sums;
            counts = numbers.map(small);
        }
        for lane in 0..N {
            let cell = at + strand.column(lane);
            self.cells.count[cell] += counts[lane] as u64;
            if M::Of::<T>::EXACT {
                self.cells.whole[cell] += M::Of::<T>::whole(low[lane], high[lane], counts[lane]);
            } else {
                self.cells.add(cell, totals[lane]);
            }
        }
    }
}

impl<M: Term> Adder<'_, M> {
    #[inline(always)]
    fn add_floats(&self) -> AddFloats<M> {
        AddFloats { term: std::marker::PhantomData::<M>, skip_nan: self.skip_nan }
    }
}

/// What lanes of floats add up to.
#[inline(always)]
fn floats<T: Number, M: Term, const N: usize>(low: &[Lane<T, M>; N]) -> [f64; N] {
    let mut totals = [0.0; N];
    for lane in 0..N {
        totals[lane] = M::Of::<T>::float(low[lane]);
    }
    totals
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
            MergeFloats { into: (sum, lost), later: (&later.sum[from.clone()], &later.lost[from]) }.merge();
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
            MergeFloats { into: (sum, lost), later: (later_sum, later_lost) }.merge();
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
