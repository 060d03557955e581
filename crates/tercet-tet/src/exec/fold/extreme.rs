//! The least and the greatest value.

use super::{Block, Fold, Rows};
use crate::exec::number::{Number, Rank};
use crate::exec::simd::vectorized;
use crate::stats::{self, Stats};

/// The least or the greatest value that is not NaN; NaN if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extreme {
    /// The least.
    Min,
    /// The greatest.
    Max,
}

/// The best value of each cell, and whether there was one.
#[derive(Clone, Debug)]
pub(crate) struct ExtremeCells<R> {
    best: Vec<R>,
    seen: Vec<bool>,
}

/// Independent partial results.
const LANES: usize = 32;
/// Rows that are folded in registers before the cells are touched.
const ROWS: usize = 64;

/// A direction, known when the loop is compiled.
trait Direction {
    fn worst<R: Rank>() -> R;
    /// The better of two; NaN never is.
    fn better<R: Rank>(new: R, old: R) -> R;
}

struct Down;
struct Up;

impl Direction for Down {
    fn worst<R: Rank>() -> R {
        R::HIGHEST
    }
    #[inline(always)]
    fn better<R: Rank>(new: R, old: R) -> R {
        if new < old { new } else { old }
    }
}

impl Direction for Up {
    fn worst<R: Rank>() -> R {
        R::LOWEST
    }
    #[inline(always)]
    fn better<R: Rank>(new: R, old: R) -> R {
        if new > old { new } else { old }
    }
}

/// The best of some values. The worst value of all may be one of them, or stand for none.
#[inline(always)]
fn best_of<T: Number, D: Direction>(values: &[T]) -> T::Rank {
    let mut best = [D::worst::<T::Rank>(); LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            best[lane] = D::better(chunk[lane].rank(), best[lane]);
        }
    }
    let best = best.into_iter().reduce(|a, b| D::better(b, a)).unwrap_or(D::worst());
    rest.iter().fold(best, |best, value| D::better(value.rank(), best))
}

fn run<T: Number, D: Direction>(cells: &mut ExtremeCells<T::Rank>, at: usize, values: &[T]) {
    let best =
        if values.len() < LANES { best_of::<T, D>(values) } else { vectorized(|| best_of::<T, D>(values)) };
    cells.best[at] = D::better(best, cells.best[at]);
    if !cells.seen[at] {
        cells.seen[at] = best != D::worst() || values.iter().any(|value| !value.is_nan());
    }
}

fn rows<T: Number, D: Direction>(cells: &mut ExtremeCells<T::Rank>, at: usize, rows: &Rows<'_, T>) {
    let best = &mut cells.best[at..at + rows.width];
    vectorized(|| {
        for first in (0..rows.count).step_by(ROWS) {
            let last = (first + ROWS).min(rows.count);
            for (chunk, best) in best.chunks_mut(LANES).enumerate() {
                let column = chunk * LANES;
                if let Ok(best) = <&mut [T::Rank; LANES]>::try_from(&mut *best) {
                    let mut lanes = *best;
                    for row in first..last {
                        let values = &rows.values[row * rows.stride + column..];
                        let Some(values) = values.first_chunk::<LANES>() else { break };
                        for lane in 0..LANES {
                            lanes[lane] = D::better(values[lane].rank(), lanes[lane]);
                        }
                    }
                    *best = lanes;
                    continue;
                }
                for row in first..last {
                    let values = &rows.values[row * rows.stride + column..];
                    for (best, value) in best.iter_mut().zip(values) {
                        *best = D::better(value.rank(), *best);
                    }
                }
            }
        }
    });
    for column in 0..rows.width {
        if !cells.seen[at + column] {
            let mut values = (0..rows.count).map(|row| rows.values[row * rows.stride + column]);
            cells.seen[at + column] =
                cells.best[at + column] != D::worst() || values.any(|value| !value.is_nan());
        }
    }
}

impl Fold for Extreme {
    type Cells<T: Number> = ExtremeCells<T::Rank>;

    fn cell_bytes<T: Number>(&self) -> usize {
        size_of::<T::Rank>() + 1
    }

    fn start<T: Number>(&self, block: &Block) -> Self::Cells<T> {
        let worst = match self {
            Self::Min => T::Rank::HIGHEST,
            Self::Max => T::Rank::LOWEST,
        };
        ExtremeCells { best: vec![worst; block.len()], seen: vec![false; block.len()] }
    }

    fn run<T: Number>(&self, cells: &mut Self::Cells<T>, at: usize, values: &[T], _: u64) {
        match self {
            Self::Min => run::<T, Down>(cells, at, values),
            Self::Max => run::<T, Up>(cells, at, values),
        }
    }

    fn rows<T: Number>(&self, cells: &mut Self::Cells<T>, at: usize, values: &Rows<'_, T>) {
        match self {
            Self::Min => rows::<T, Down>(cells, at, values),
            Self::Max => rows::<T, Up>(cells, at, values),
        }
    }

    fn one<T: Number>(&self, cells: &mut Self::Cells<T>, at: usize, value: T, index: u64) {
        self.run(cells, at, &[value], index);
    }

    fn merge<T: Number>(
        &self,
        (into, at): (&mut Self::Cells<T>, usize),
        (later, from): (&Self::Cells<T>, usize),
        count: usize,
    ) {
        for i in 0..count {
            let best = &mut into.best[at + i];
            *best = match self {
                Self::Min => Down::better(later.best[from + i], *best),
                Self::Max => Up::better(later.best[from + i], *best),
            };
            into.seen[at + i] |= later.seen[from + i];
        }
    }

    fn merge_within<T: Number>(&self, cells: &mut Self::Cells<T>, at: usize, from: usize, count: usize) {
        for i in 0..count {
            let (later, best) = (cells.best[from + i], cells.best[at + i]);
            cells.best[at + i] = match self {
                Self::Min => Down::better(later, best),
                Self::Max => Up::better(later, best),
            };
            cells.seen[at + i] |= cells.seen[from + i];
        }
    }

    fn takes_stats(&self) -> bool {
        true
    }

    fn absorb<T: Number>(&self, cells: &mut Self::Cells<T>, at: usize, stats: &Stats) {
        let bound = match (stats.range, self) {
            (stats::Range::Float { min, .. }, Self::Min) => Bound::Float(min),
            (stats::Range::Float { max, .. }, Self::Max) => Bound::Float(max),
            (stats::Range::Signed { min, .. }, Self::Min) => Bound::Whole(min.into()),
            (stats::Range::Signed { max, .. }, Self::Max) => Bound::Whole(max.into()),
            (stats::Range::Unsigned { min, .. }, Self::Min) => Bound::Whole(min.into()),
            (stats::Range::Unsigned { max, .. }, Self::Max) => Bound::Whole(max.into()),
        };
        if let Some(value) = bound.value::<T>() {
            self.one(cells, at, value, 0);
        }
    }

    fn finish<T: Number>(&self, cells: Self::Cells<T>) -> Vec<f64> {
        let cells = cells.best.iter().zip(cells.seen);
        // Adding +0.0 turns a negative zero into a positive one.
        cells.map(|(best, seen)| if seen { best.to_f64() + 0.0 } else { f64::NAN }).collect()
    }
}

/// A minimum or maximum of statistics.
enum Bound {
    Float(f64),
    Whole(i128),
}

impl Bound {
    /// As an element, which it was.
    fn value<T: Number>(self) -> Option<T> {
        use crate::query::operation::Scalar;
        match self {
            Self::Float(value) if value.is_nan() => None,
            Self::Float(value) => crate::exec::predicate::fill_value(Scalar::Float(value)),
            Self::Whole(value) => crate::exec::predicate::fill_value(Scalar::Whole(value)),
        }
    }
}

/// `[min, max]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range;

impl Fold for Range {
    type Cells<T: Number> = [ExtremeCells<T::Rank>; 2];

    fn cell_bytes<T: Number>(&self) -> usize {
        2 * Extreme::Min.cell_bytes::<T>()
    }
    fn start<T: Number>(&self, block: &Block) -> Self::Cells<T> {
        [Extreme::Min.start::<T>(block), Extreme::Max.start::<T>(block)]
    }
    fn run<T: Number>(&self, [min, max]: &mut Self::Cells<T>, at: usize, values: &[T], index: u64) {
        Extreme::Min.run(min, at, values, index);
        Extreme::Max.run(max, at, values, index);
    }
    fn rows<T: Number>(&self, [min, max]: &mut Self::Cells<T>, at: usize, rows: &Rows<'_, T>) {
        Extreme::Min.rows(min, at, rows);
        Extreme::Max.rows(max, at, rows);
    }
    fn one<T: Number>(&self, [min, max]: &mut Self::Cells<T>, at: usize, value: T, index: u64) {
        Extreme::Min.one(min, at, value, index);
        Extreme::Max.one(max, at, value, index);
    }
    fn merge<T: Number>(
        &self,
        ([min, max], at): (&mut Self::Cells<T>, usize),
        ([later_min, later_max], from): (&Self::Cells<T>, usize),
        count: usize,
    ) {
        Extreme::Min.merge::<T>((min, at), (later_min, from), count);
        Extreme::Max.merge::<T>((max, at), (later_max, from), count);
    }
    fn merge_within<T: Number>(&self, [min, max]: &mut Self::Cells<T>, at: usize, from: usize, count: usize) {
        Extreme::Min.merge_within::<T>(min, at, from, count);
        Extreme::Max.merge_within::<T>(max, at, from, count);
    }
    fn takes_stats(&self) -> bool {
        true
    }
    fn absorb<T: Number>(&self, [min, max]: &mut Self::Cells<T>, at: usize, stats: &Stats) {
        Extreme::Min.absorb::<T>(min, at, stats);
        Extreme::Max.absorb::<T>(max, at, stats);
    }
    fn width(&self) -> usize {
        2
    }
    fn finish<T: Number>(&self, [min, max]: Self::Cells<T>) -> Vec<f64> {
        let (min, max) = (Extreme::Min.finish::<T>(min), Extreme::Max.finish::<T>(max));
        min.into_iter().zip(max).flat_map(|(min, max)| [min, max]).collect()
    }
}
