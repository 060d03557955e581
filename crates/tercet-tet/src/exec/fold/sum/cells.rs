//! Sums of cells, and how values and lanes are added to them.

use std::ops::AddAssign;

use super::terms::{Add, AddFloats, Lane, Sums, Term, is_irregular};
use crate::exec::fold::Rows;
use crate::exec::fold::lanes::{self, Gather, Panel, SHORT, Strand, Target, with_lanes};
use crate::exec::number::{Addend, Number};
use crate::exec::simd::{Work, vectorized};

/// How many values of a lane are added without compensation: so few that rounding stays far below the tolerance.
const STEPS: usize = 256;

/// Sums of cells.
#[derive(Clone, Debug)]
pub(crate) struct SumCells {
    /// Exact sums; empty where sums are floats.
    pub(super) whole: Vec<i128>,
    /// Sums of floats and what their additions lost; empty where sums are exact.
    pub(super) sum: Vec<f64>,
    pub(super) lost: Vec<f64>,
    /// How many values went in.
    pub(super) count: Vec<u64>,
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
pub(in crate::exec::fold) fn across<const N: usize>(lanes: &[f64; N]) -> f64 {
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
pub(in crate::exec::fold) fn add<N: Copy + AddAssign>(into: &mut [N], later: &[N]) {
    for (into, later) in into.iter_mut().zip(later) {
        *into += *later;
    }
}

/// Merges sums of floats.
pub(super) struct MergeFloats<'a> {
    pub(super) into: (&'a mut [f64], &'a mut [f64]),
    pub(super) later: (&'a [f64], &'a [f64]),
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
    pub(super) fn merge(self) {
        if self.later.0.len() < SHORT { self.work() } else { vectorized(self) }
    }
}

impl SumCells {
    pub(super) fn new(cells: usize, exact: bool) -> Self {
        let (whole, float) = if exact { (cells, 0) } else { (0, cells) };
        Self { whole: vec![0; whole], sum: vec![0.0; float], lost: vec![0.0; float], count: vec![0; cells] }
    }

    #[inline(always)]
    pub(super) fn add(&mut self, at: usize, x: f64) {
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
    pub(super) fn run<T: Number, M: Term>(&mut self, term: M, at: usize, values: &[T], skip_nan: bool) {
        let mut rest = values;
        if values.len() >= SHORT {
            let careful = is_irregular(values);
            let mut adder = Adder { cells: self, term, skip_nan, careful };
            rest = with_lanes!(T, |N| lanes::run::<T, _, N>(&mut adder, at, values));
        }
        self.short::<T, M>(at, rest, skip_nan);
    }

    pub(super) fn rows<T: Number, M: Term>(
        &mut self,
        term: M,
        at: usize,
        rows: &Rows<'_, T>,
        skip_nan: bool,
    ) {
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

/// A small integer that is an f64.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of values of a block")]
fn small(number: f64) -> usize {
    number as usize
}
