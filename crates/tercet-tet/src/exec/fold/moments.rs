//! Mean and variance.

mod spread;

use self::spread::{Found, Spread, about, shift};
use super::lanes::{self, Gather, Panel, SHORT, Strand, Target, disjoint};
use super::sum::across;
use super::{Block, Fold, Rows};
use crate::exec::number::Number;
use crate::exec::simd::{Work, vectorized};

/// Mean and variance: three numbers for each cell, the number of values, their mean and their variance (the mean of
/// the squared differences from it). Without values the latter are NaN, with infinities the variance is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moments {
    /// Whether NaN is left out; else one makes all of its cell NaN.
    pub(crate) skip_nan: bool,
}

/// Moments of cells.
#[derive(Clone, Debug)]
pub(crate) struct MomentCells<T> {
    number: Vec<f64>,
    mean: Vec<f64>,
    /// The sum of squared differences from the mean.
    squares: Vec<f64>,
    /// What `mean` is counted from, for types whose values are no f64; empty for others.
    pivot: Vec<T>,
}

const LANES: usize = 16;

/// Merges moments (number, mean, squares) of the same pivot; `difference` is that of the means.
#[inline(always)]
fn join(into: (&mut f64, &mut f64, &mut f64), later: (f64, f64, f64), difference: f64) {
    let number = *into.0 + later.0;
    let weight = later.0 / number;
    let square = difference * (difference * (*into.0 * weight));
    // Infinite means add up as infinities do.
    let mean = if difference.is_finite() { *into.1 + difference * weight } else { *into.1 + later.1 };
    let is_some = later.0 > 0.0;
    *into.1 = if is_some { mean } else { *into.1 };
    *into.2 = if is_some { *into.2 + later.2 + square } else { *into.2 };
    *into.0 = number;
}

impl<T: Number> MomentCells<T> {
    #[inline(always)]
    fn put(&mut self, at: usize, found: Found) {
        let into = (&mut self.number[at], &mut self.mean[at], &mut self.squares[at]);
        let difference = found.mean - *into.1;
        join(into, (found.number, found.mean, found.squares), difference);
    }

    /// The pivot of a cell that `first` is the first value for, if it has none yet.
    #[inline(always)]
    fn pivot(&self, at: usize, first: T) -> T {
        if T::WIDE && self.number[at] > 0.0 { self.pivot[at] } else { first }
    }

    /// Sets the pivot of a cell before its first value.
    #[inline(always)]
    fn set_pivot(&mut self, at: usize, first: T) {
        if T::WIDE {
            self.pivot[at] = self.pivot(at, first);
        }
    }

    /// Folds values that are too few for lanes.
    #[inline(always)]
    fn short(&mut self, at: usize, values: &[T], skip_nan: bool) {
        let Some(&first) = values.first() else { return };
        self.set_pivot(at, first);
        let pivot = if T::WIDE { self.pivot[at] } else { T::default() };
        let mut found = about(values, pivot, shift(first, pivot), skip_nan);
        if found.cancelled {
            found = about(values, pivot, found.mean, skip_nan);
        }
        self.put(at, found);
    }

    #[inline]
    fn run(&mut self, at: usize, values: &[T], skip_nan: bool) {
        let mut rest = values;
        if values.len() >= SHORT {
            rest = lanes::run::<T, _, LANES>(&mut Measurer { cells: self, skip_nan }, at, values);
        }
        self.short(at, rest, skip_nan);
    }
}

/// Takes moments of lanes into cells.
struct Measurer<'a, T> {
    cells: &'a mut MomentCells<T>,
    skip_nan: bool,
}

impl<T: Number> Measurer<'_, T> {
    /// The moments of consecutive values.
    #[inline(always)]
    fn found<const N: usize>(
        &self,
        kernel: &Spread<T, N, false>,
        lanes: &[[f64; N]; 3],
        groups: &[[T; N]],
    ) -> Found {
        let (mut lanes, mut number) = (*lanes, to_f64(groups.len() * N));
        if self.skip_nan && across(&lanes[0]).is_nan() {
            lanes = lanes::strand(&kernel.skipping(), groups, 1);
            number = across(&lanes[2]);
        }
        Found::new(number, kernel.shift[0], across(&lanes[0]), across(&lanes[1]))
    }

    /// The moments of the columns of a panel, in the order of the lanes; and whether too many digits cancelled out.
    #[inline(always)]
    fn found_each<const N: usize>(
        &self,
        kernel: &Spread<T, N, false>,
        lanes: &[[f64; N]; 3],
        rows: &Rows<'_, T>,
        panel: Panel,
    ) -> ([[f64; N]; 3], bool) {
        let (mut lanes, mut number) = (*lanes, [to_f64(panel.rows); N]);
        if self.skip_nan && lanes[0].iter().any(|sum| sum.is_nan()) {
            lanes = lanes::panel(&kernel.skipping(), rows, panel);
            number = lanes[2];
        }
        let (mut mean, mut squares, mut cancelled) = ([0.0; N], [0.0; N], false);
        for lane in 0..N {
            let found = Found::new(number[lane], kernel.shift[lane], lanes[0][lane], lanes[1][lane]);
            mean[lane] = found.mean;
            squares[lane] = found.squares;
            cancelled |= found.cancelled;
        }
        ([number, mean, squares], cancelled)
    }
}

impl<T: Number, const N: usize> Gather<T, N> for Measurer<'_, T> {
    type Kernel = Spread<T, N, false>;
    const STEPS: usize = 128;
    const NARROW: bool = false;

    #[inline(always)]
    fn kernel(&self, target: Target, first: &[T; N]) -> Spread<T, N, false> {
        let mut kernel = Spread { pivot: [T::default(); N], shift: [0.0; N] };
        for lane in 0..N {
            let (cell, first) = match target {
                Target::One(at) | Target::Columns(at) => (at, first[0]),
                Target::Each(at) => (at + lane, first[lane]),
            };
            kernel.pivot[lane] = self.cells.pivot(cell, first);
            kernel.shift[lane] = shift(first, kernel.pivot[lane]);
        }
        kernel
    }

    #[inline(always)]
    fn take(&mut self, at: usize, lanes: &[[f64; N]; 3], groups: &[[T; N]], _: usize) {
        let mut kernel = self.kernel(Target::One(at), &groups[0]);
        let mut found = self.found(&kernel, lanes, groups);
        if found.cancelled {
            kernel.shift = [found.mean; N];
            found = self.found(&kernel, &lanes::strand(&kernel, groups, 1), groups);
        }
        self.cells.set_pivot(at, groups[0][0]);
        self.cells.put(at, found);
    }

    #[inline(always)]
    fn take_panel(&mut self, at: usize, lanes: &[[f64; N]; 3], rows: &Rows<'_, T>, panel: Panel) {
        let Some(first) = panel.values(rows, 0) else { return };
        let mut kernel = self.kernel(Target::Each(at + panel.column), first);
        let (mut found, cancelled) = self.found_each(&kernel, lanes, rows, panel);
        if cancelled {
            for lane in 0..N {
                kernel.shift[lane] = if found[1][lane].is_finite() { found[1][lane] } else { 0.0 };
            }
            (found, _) = self.found_each(&kernel, &lanes::panel(&kernel, rows, panel), rows, panel);
        }
        for (lane, cell) in (panel.skip..N).zip(panel.cells::<N>(at)) {
            self.cells.set_pivot(cell, first[lane]);
        }
        let range = panel.cells::<N>(at);
        let into = (
            &mut self.cells.number[range.clone()],
            &mut self.cells.mean[range.clone()],
            &mut self.cells.squares[range],
        );
        let later = (&found[0][panel.skip..], &found[1][panel.skip..], &found[2][panel.skip..]);
        Merge { into, later }.work();
    }

    #[inline(always)]
    fn take_strand(&mut self, _: usize, _: &[[f64; N]; 3], _: &Strand<'_, T, N>) {}
}

#[expect(clippy::cast_precision_loss, reason = "the number of values of a block")]
#[inline(always)]
fn to_f64(number: usize) -> f64 {
    number as f64
}

/// Merges numbers, means and squares of cells.
struct Merge<'a> {
    into: (&'a mut [f64], &'a mut [f64], &'a mut [f64]),
    later: (&'a [f64], &'a [f64], &'a [f64]),
}

impl Work for Merge<'_> {
    type Output = ();
    #[inline(always)]
    fn work(self) {
        let into = self.into.0.iter_mut().zip(self.into.1).zip(self.into.2);
        let later = self.later.0.iter().zip(self.later.1).zip(self.later.2);
        for (((number, mean), squares), ((&later, &later_mean), &later_squares)) in into.zip(later) {
            let difference = later_mean - *mean;
            join((number, mean, squares), (later, later_mean, later_squares), difference);
        }
    }
}

impl Merge<'_> {
    #[inline(always)]
    fn merge(self) {
        if self.later.0.len() < SHORT { self.work() } else { vectorized(self) }
    }
}

impl<T: Number> MomentCells<T> {
    /// Merges a cell of a type with pivots.
    #[inline(always)]
    fn put_about(&mut self, at: usize, later: (f64, f64, f64), pivot: T) {
        self.set_pivot(at, pivot);
        let from_pivot = pivot.minus(self.pivot[at]);
        let into = (&mut self.number[at], &mut self.mean[at], &mut self.squares[at]);
        let difference = from_pivot + (later.1 - *into.1);
        join(into, (later.0, from_pivot + later.1, later.2), difference);
    }

    fn result(&self, cell: usize) -> [f64; 3] {
        let number = self.number[cell];
        if number == 0.0 {
            return [0.0, f64::NAN, f64::NAN];
        }
        let mean = if T::WIDE { self.pivot[cell].to_f64() + self.mean[cell] } else { self.mean[cell] };
        [number, mean + 0.0, self.squares[cell] / number]
    }
}

impl Fold for Moments {
    type Cells<T: Number> = MomentCells<T>;

    fn cell_bytes<T: Number>(&self) -> usize {
        if T::WIDE { 32 } else { 24 }
    }

    fn start<T: Number>(&self, block: &Block) -> MomentCells<T> {
        let zeros = || vec![0.0; block.len()];
        let pivot = vec![T::default(); if T::WIDE { block.len() } else { 0 }];
        MomentCells { number: zeros(), mean: zeros(), squares: zeros(), pivot }
    }

    #[inline]
    fn run<T: Number>(&self, cells: &mut MomentCells<T>, at: usize, values: &[T], _: u64) {
        cells.run(at, values, self.skip_nan);
    }

    fn rows<T: Number>(&self, cells: &mut MomentCells<T>, at: usize, rows: &Rows<'_, T>) {
        let mut measurer = Measurer { cells: &mut *cells, skip_nan: self.skip_nan };
        let done = lanes::rows::<T, _, LANES>(&mut measurer, at, rows);
        lanes::columns(rows, done, |column, _, values| cells.run(at + column, values, self.skip_nan));
    }

    #[inline]
    fn one<T: Number>(&self, cells: &mut MomentCells<T>, at: usize, value: T, _: u64) {
        cells.short(at, &[value], self.skip_nan);
    }

    fn merge<T: Number>(
        &self,
        (into, at): (&mut MomentCells<T>, usize),
        (later, from): (&MomentCells<T>, usize),
        count: usize,
    ) {
        if T::WIDE {
            for (at, from) in (at..at + count).zip(from..) {
                let numbers = (later.number[from], later.mean[from], later.squares[from]);
                into.put_about(at, numbers, later.pivot[from]);
            }
            return;
        }
        let (to, from) = (at..at + count, from..from + count);
        let into = (&mut into.number[to.clone()], &mut into.mean[to.clone()], &mut into.squares[to]);
        let later = (&later.number[from.clone()], &later.mean[from.clone()], &later.squares[from]);
        Merge { into, later }.merge();
    }

    fn merge_within<T: Number>(&self, cells: &mut MomentCells<T>, at: usize, from: usize, count: usize) {
        if T::WIDE {
            for (at, from) in (at..at + count).zip(from..) {
                let numbers = (cells.number[from], cells.mean[from], cells.squares[from]);
                cells.put_about(at, numbers, cells.pivot[from]);
            }
            return;
        }
        let (number, later_number) = disjoint(&mut cells.number, at, from, count);
        let (mean, later_mean) = disjoint(&mut cells.mean, at, from, count);
        let (squares, later_squares) = disjoint(&mut cells.squares, at, from, count);
        Merge { into: (number, mean, squares), later: (later_number, later_mean, later_squares) }.merge();
    }

    fn width(&self) -> usize {
        3
    }

    fn finish<T: Number>(&self, cells: MomentCells<T>) -> Vec<f64> {
        (0..cells.number.len()).flat_map(|cell| cells.result(cell)).collect()
    }
}
