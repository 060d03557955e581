//! Mean and variance in one visit, without the loss of digits of Σx² − n·mean².

use super::{Block, Fold, Rows};
use crate::exec::number::Number;
use crate::exec::simd::vectorized;

/// `[n, mean, variance]` of the population; with `skip_nan` of the values that are not NaN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moments {
    pub(crate) skip_nan: bool,
}

/// Values that are looked at twice while they are in the first-level cache: for their mean, then for their distances.
const BLOCK: usize = 2048;
/// Independent partial results.
const LANES: usize = 16;
/// Rows of such a block.
const ROWS: usize = 64;

/// The moments of the cells: `n` values with this mean and this sum of squared distances from it. Means count from a
/// pivot, a value of the cell where values are wider than the digits of a float, else 0.
#[derive(Clone, Debug)]
pub(crate) struct MomentCells<T> {
    n: Vec<f64>,
    mean: Vec<f64>,
    squares: Vec<f64>,
    pivot: Vec<T>,
}

/// The moments of some values.
#[derive(Clone, Copy, Debug)]
struct Part {
    n: f64,
    mean: f64,
    squares: f64,
}

impl Part {
    /// Chan's rule.
    #[inline(always)]
    fn and(self, later: Self) -> Self {
        if later.n == 0.0 {
            return self;
        }
        if self.n == 0.0 {
            return later;
        }
        let n = self.n + later.n;
        let distance = later.mean - self.mean;
        let mean = self.mean + distance * (later.n / n);
        let squares = self.squares + later.squares + distance * distance * (self.n * later.n / n);
        Self { n, mean, squares }
    }
}

/// Σ over lanes, in a fixed order.
#[inline(always)]
fn across(lanes: [f64; LANES]) -> f64 {
    lanes.chunks(4).map(|four| (four[0] + four[1]) + (four[2] + four[3])).sum()
}

/// The moments of a block of values, counted from a pivot.
#[inline(always)]
fn block<T: Number, const SKIP: bool>(values: &[T], pivot: T) -> Part {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let distance = |value: T| if T::WIDE { value.minus(pivot) } else { value.to_f64() };
    let (mut sum, mut n) = ([0.0; LANES], [0.0; LANES]);
    for chunk in chunks {
        for lane in 0..LANES {
            let x = distance(chunk[lane]);
            let skip = SKIP && x.is_nan();
            sum[lane] += if skip { 0.0 } else { x };
            if SKIP {
                n[lane] += if skip { 0.0 } else { 1.0 };
            }
        }
    }
    let (mut total, mut count) = (across(sum), across(n));
    for &value in rest {
        let x = distance(value);
        if !(SKIP && x.is_nan()) {
            total += x;
            count += 1.0;
        }
    }
    if !SKIP {
        #[expect(clippy::cast_precision_loss, reason = "a block is small")]
        let len = values.len() as f64;
        count = len;
    }
    if count == 0.0 {
        return Part { n: 0.0, mean: 0.0, squares: 0.0 };
    }
    let mean = total / count;
    let (mut squares, mut drift) = ([0.0; LANES], [0.0; LANES]);
    for chunk in chunks {
        for lane in 0..LANES {
            let x = distance(chunk[lane]) - mean;
            let x = if SKIP && x.is_nan() { 0.0 } else { x };
            squares[lane] += x * x;
            drift[lane] += x;
        }
    }
    let (mut squares, mut drift) = (across(squares), across(drift));
    for &value in rest {
        let x = distance(value) - mean;
        if !(SKIP && x.is_nan()) {
            squares += x * x;
            drift += x;
        }
    }
    // An infinite mean makes every distance NaN; skipped cells must not hide that.
    let squares =
        if mean.is_finite() { (squares - drift * drift / count).max(0.0) + squares * 0.0 } else { f64::NAN };
    Part { n: count, mean, squares }
}

/// The moments of columns of at most `ROWS` rows.
#[inline(always)]
fn columns<T: Number, const SKIP: bool>(
    rows: &Rows<'_, T>,
    first: usize,
    last: usize,
    column: usize,
) -> [Part; LANES] {
    let distance = |value: T| value.to_f64();
    let (mut sum, mut n) = ([0.0; LANES], [0.0; LANES]);
    for row in first..last {
        let Some(values) = rows.values[row * rows.stride + column..].first_chunk::<LANES>() else { break };
        for lane in 0..LANES {
            let x = distance(values[lane]);
            let skip = SKIP && x.is_nan();
            sum[lane] += if skip { 0.0 } else { x };
            n[lane] += if skip { 0.0 } else { 1.0 };
        }
    }
    let mut mean = [0.0; LANES];
    for lane in 0..LANES {
        mean[lane] = if n[lane] == 0.0 { 0.0 } else { sum[lane] / n[lane] };
    }
    let (mut squares, mut drift) = ([0.0; LANES], [0.0; LANES]);
    for row in first..last {
        let Some(values) = rows.values[row * rows.stride + column..].first_chunk::<LANES>() else { break };
        for lane in 0..LANES {
            let x = distance(values[lane]) - mean[lane];
            let x = if SKIP && x.is_nan() { 0.0 } else { x };
            squares[lane] += x * x;
            drift[lane] += x;
        }
    }
    std::array::from_fn(|lane| {
        let (n, mean, squares, drift) = (n[lane], mean[lane], squares[lane], drift[lane]);
        let known = mean.is_finite();
        let squares =
            if known { (squares - drift * drift / n.max(1.0)).max(0.0) + squares * 0.0 } else { f64::NAN };
        Part { n, mean, squares }
    })
}

impl<T: Number> MomentCells<T> {
    #[inline(always)]
    fn part(&self, at: usize) -> Part {
        Part { n: self.n[at], mean: self.mean[at], squares: self.squares[at] }
    }

    #[inline(always)]
    fn put(&mut self, at: usize, part: Part) {
        (self.n[at], self.mean[at], self.squares[at]) = (part.n, part.mean, part.squares);
    }

    fn run<const SKIP: bool>(&mut self, at: usize, values: &[T]) {
        for values in values.chunks(BLOCK) {
            if T::WIDE && self.n[at] == 0.0 {
                self.pivot[at] = values[0];
            }
            let pivot = self.pivot[at];
            let part = if values.len() < LANES {
                block::<T, SKIP>(values, pivot)
            } else {
                vectorized(|| block::<T, SKIP>(values, pivot))
            };
            self.put(at, self.part(at).and(part));
        }
    }

    fn rows<const SKIP: bool>(&mut self, at: usize, rows: &Rows<'_, T>) {
        // Wide values need the pivot of their own cell.
        let whole = if T::WIDE { 0 } else { rows.width / LANES * LANES };
        vectorized(|| {
            for first in (0..rows.count).step_by(ROWS) {
                let last = (first + ROWS).min(rows.count);
                for column in (0..whole).step_by(LANES) {
                    let parts = columns::<T, SKIP>(rows, first, last, column);
                    for (lane, part) in parts.into_iter().enumerate() {
                        self.put(at + column + lane, self.part(at + column + lane).and(part));
                    }
                }
            }
        });
        let mut gathered = Vec::new();
        for column in whole..rows.width {
            for first in (0..rows.count).step_by(BLOCK) {
                gathered.clear();
                let range = first..(first + BLOCK).min(rows.count);
                gathered.extend(range.map(|row| rows.values[row * rows.stride + column]));
                self.run::<SKIP>(at + column, &gathered);
            }
        }
    }

    /// The moments of a cell of `later`, counted from the pivot of a cell here.
    #[inline(always)]
    fn moved(part: Part, own: T, pivot: T) -> Part {
        if T::WIDE { Part { mean: part.mean + own.minus(pivot), ..part } } else { part }
    }

    #[inline(always)]
    fn merge_cell(&mut self, at: usize, later: Part, pivot: T) {
        if T::WIDE && self.n[at] == 0.0 {
            self.pivot[at] = pivot;
        }
        let later = Self::moved(later, pivot, self.pivot[at]);
        self.put(at, self.part(at).and(later));
    }
}

impl Fold for Moments {
    type Cells<T: Number> = MomentCells<T>;

    fn cell_bytes<T: Number>(&self) -> usize {
        24 + size_of::<T>()
    }

    fn start<T: Number>(&self, block: &Block) -> MomentCells<T> {
        let cells = block.len();
        let zeros = || vec![0.0; cells];
        MomentCells { n: zeros(), mean: zeros(), squares: zeros(), pivot: vec![T::default(); cells] }
    }

    fn run<T: Number>(&self, cells: &mut MomentCells<T>, at: usize, values: &[T], _: u64) {
        if self.skip_nan && T::FLOAT {
            cells.run::<true>(at, values);
        } else {
            cells.run::<false>(at, values);
        }
    }

    fn rows<T: Number>(&self, cells: &mut MomentCells<T>, at: usize, rows: &Rows<'_, T>) {
        if self.skip_nan && T::FLOAT {
            cells.rows::<true>(at, rows);
        } else {
            cells.rows::<false>(at, rows);
        }
    }

    fn one<T: Number>(&self, cells: &mut MomentCells<T>, at: usize, value: T, index: u64) {
        self.run(cells, at, &[value], index);
    }

    fn merge<T: Number>(
        &self,
        (into, at): (&mut MomentCells<T>, usize),
        (later, from): (&MomentCells<T>, usize),
        count: usize,
    ) {
        for i in 0..count {
            into.merge_cell(at + i, later.part(from + i), later.pivot[from + i]);
        }
    }

    fn merge_within<T: Number>(&self, cells: &mut MomentCells<T>, at: usize, from: usize, count: usize) {
        for i in 0..count {
            let (part, pivot) = (cells.part(from + i), cells.pivot[from + i]);
            cells.merge_cell(at + i, part, pivot);
        }
    }

    fn width(&self) -> usize {
        3
    }

    fn finish<T: Number>(&self, cells: MomentCells<T>) -> Vec<f64> {
        let cell = |at: usize| {
            let Part { n, mean, squares } = cells.part(at);
            if n == 0.0 {
                return [0.0, f64::NAN, f64::NAN];
            }
            let mean = if T::WIDE { cells.pivot[at].to_f64() + mean } else { mean };
            [n, mean + 0.0, squares / n + 0.0]
        };
        (0..cells.n.len()).flat_map(cell).collect()
    }
}
