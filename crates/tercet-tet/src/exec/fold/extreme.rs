//! The least and the greatest value.

use super::lanes::{self, Gather, Kernel, Panel, SHORT, Strand, Target, disjoint, with_lanes};
use super::{Block, Fold, Rows};
use crate::exec::number::{Number, Rank};
use crate::exec::simd::{Work, vectorized};
use crate::stats::{self, Stats};

/// The least or greatest value that is not NaN; NaN if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extreme {
    Min,
    Max,
}

/// Least or greatest values of cells.
#[derive(Clone, Debug)]
pub(crate) struct ExtremeCells<R> {
    /// What no value is beyond, where there is no value.
    best: Vec<R>,
    /// Whether there is a value.
    filled: Vec<bool>,
}

/// Which of two values is wanted.
pub(super) trait Direction: Copy {
    /// What any value is at least as good as.
    fn worst<R: Rank>() -> R;
    /// Whether `a` is better than `b`. No NaN is.
    fn is_better<R: Rank>(a: R, b: R) -> bool;
}

#[derive(Clone, Copy)]
pub(super) struct Least;
#[derive(Clone, Copy)]
pub(super) struct Greatest;

impl Direction for Least {
    #[inline(always)]
    fn worst<R: Rank>() -> R {
        R::HIGHEST
    }
    #[inline(always)]
    fn is_better<R: Rank>(a: R, b: R) -> bool {
        a < b
    }
}

impl Direction for Greatest {
    #[inline(always)]
    fn worst<R: Rank>() -> R {
        R::LOWEST
    }
    #[inline(always)]
    fn is_better<R: Rank>(a: R, b: R) -> bool {
        a > b
    }
}

/// Runs code for the direction of an extreme.
macro_rules! with_direction {
    ($extreme:expr, |$direction:ident| $body:expr) => {
        match $extreme {
            Extreme::Min => {
                let $direction = Least;
                $body
            }
            Extreme::Max => {
                let $direction = Greatest;
                $body
            }
        }
    };
}

/// Keeps the best value of each lane.
#[derive(Clone, Copy)]
pub(super) struct Best<D>(pub(super) D);

impl<T: Number, D: Direction, const N: usize> Kernel<T, N> for Best<D> {
    type Lanes = [T::Rank; N];
    #[inline(always)]
    fn start(&self) -> [T::Rank; N] {
        [D::worst(); N]
    }
    #[inline(always)]
    fn step(&self, best: &mut [T::Rank; N], values: &[T; N]) {
        for lane in 0..N {
            best[lane] = better::<D, _>(values[lane].rank(), best[lane]);
        }
    }
}

/// The better of two values: `b` if `a` is NaN.
#[inline(always)]
pub(super) fn better<D: Direction, R: Rank>(a: R, b: R) -> R {
    if D::is_better(a, b) { a } else { b }
}

/// The best of all lanes. Not inlined, or the compiler fits the loop that fills the lanes to this one.
#[inline(never)]
pub(super) fn best_of<D: Direction, R: Rank>(lanes: &[R]) -> R {
    lanes.iter().fold(D::worst(), |best, &value| better::<D, _>(value, best))
}

/// Whether a value is not NaN, if the best of all values is `best`. Only the worst possible one leaves a doubt.
#[inline(always)]
fn is_filled<'a, D: Direction, T: Number>(best: T::Rank, mut values: impl Iterator<Item = &'a T>) -> bool {
    !T::FLOAT || best != D::worst() || values.any(|value| !value.is_nan())
}

impl<R: Rank> ExtremeCells<R> {
    #[inline(always)]
    fn put<D: Direction>(&mut self, at: usize, value: R, filled: bool) {
        self.best[at] = better::<D, _>(value, self.best[at]);
        self.filled[at] |= filled;
    }

    #[inline]
    fn run<T: Number<Rank = R>, D: Direction>(&mut self, direction: D, at: usize, values: &[T]) {
        let mut rest = values;
        if values.len() >= SHORT {
            let mut keeper = Keeper { cells: self, direction };
            rest = with_lanes!(T, |N| lanes::run::<T, _, N>(&mut keeper, at, values));
        }
        for &value in rest {
            self.put::<D>(at, value.rank(), !value.is_nan());
        }
    }

    fn rows<T: Number<Rank = R>, D: Direction>(&mut self, direction: D, at: usize, rows: &Rows<'_, T>) {
        let mut keeper = Keeper { cells: self, direction };
        let done = with_lanes!(T, |N| lanes::rows::<T, _, N>(&mut keeper, at, rows));
        lanes::columns(rows, done, |column, _, values| self.run(direction, at + column, values));
    }

    fn finish(&self, cell: usize) -> f64 {
        // Adding +0.0 turns a negative zero into a positive one.
        if self.filled[cell] { self.best[cell].to_f64() + 0.0 } else { f64::NAN }
    }
}

/// Keeps the best of lanes and cells.
struct Keeper<'a, R, D> {
    cells: &'a mut ExtremeCells<R>,
    direction: D,
}

impl<T: Number, D: Direction, const N: usize> Gather<T, N> for Keeper<'_, T::Rank, D> {
    type Kernel = Best<D>;
    const STEPS: usize = 1024;
    const NARROW: bool = true;

    #[inline(always)]
    fn kernel(&self, _: Target, _: &[T; N]) -> Best<D> {
        Best(self.direction)
    }

    #[inline(always)]
    fn take(&mut self, at: usize, lanes: &[T::Rank; N], groups: &[[T; N]], _: usize) {
        let best = best_of::<D, _>(lanes);
        self.cells.put::<D>(at, best, is_filled::<D, T>(best, groups.as_flattened().iter()));
    }

    #[inline(always)]
    fn take_panel(&mut self, at: usize, lanes: &[T::Rank; N], rows: &Rows<'_, T>, panel: Panel) {
        let range = panel.cells::<N>(at);
        let (best, filled) = (&mut self.cells.best[range.clone()], &mut self.cells.filled[range]);
        if let (Some(best), Some(filled)) = (best.first_chunk_mut::<N>(), filled.first_chunk_mut::<N>()) {
            for lane in 0..N {
                best[lane] = better::<D, _>(lanes[lane], best[lane]);
            }
            if lanes.iter().all(|&lane| !T::FLOAT || lane != D::worst()) {
                *filled = [true; N];
                return;
            }
        }
        for lane in panel.skip..N {
            let column = rows.values[panel.row * rows.stride + panel.column + lane..].iter();
            let column = column.step_by(rows.stride.max(1)).take(panel.rows);
            let filled = is_filled::<D, T>(lanes[lane], column);
            self.cells.put::<D>(at + panel.column + lane, lanes[lane], filled);
        }
    }

    #[inline(always)]
    fn take_strand(&mut self, at: usize, lanes: &[T::Rank; N], strand: &Strand<'_, T, N>) {
        for lane in 0..N {
            let values = strand.groups.iter().step_by(strand.width).map(|values| &values[lane]);
            let filled = is_filled::<D, T>(lanes[lane], values);
            self.cells.put::<D>(at + strand.column(lane), lanes[lane], filled);
        }
    }
}

/// Merges values of cells.
struct Merge<'a, R, D> {
    direction: D,
    into: &'a mut [R],
    later: &'a [R],
}

impl<R: Rank, D: Direction> Work for Merge<'_, R, D> {
    type Output = ();
    #[inline(always)]
    fn work(self) {
        let _ = self.direction;
        for (into, &later) in self.into.iter_mut().zip(self.later) {
            *into = better::<D, _>(later, *into);
        }
    }
}

impl Extreme {
    #[inline(always)]
    fn merge_slices<R: Rank>(self, best: (&mut [R], &[R]), filled: (&mut [bool], &[bool])) {
        let (into, later) = best;
        for (into, later) in filled.0.iter_mut().zip(filled.1) {
            *into |= later;
        }
        with_direction!(self, |direction| {
            let merge = Merge { direction, into, later };
            if merge.later.len() < SHORT { merge.work() } else { vectorized(merge) }
        });
    }
}

impl Fold for Extreme {
    type Cells<T: Number> = ExtremeCells<T::Rank>;

    fn cell_bytes<T: Number>(&self) -> usize {
        size_of::<T::Rank>() + 1
    }

    fn start<T: Number>(&self, block: &Block) -> ExtremeCells<T::Rank> {
        let worst = with_direction!(self, |direction| Kernel::<T, 1>::start(&Best(direction))[0]);
        ExtremeCells { best: vec![worst; block.len()], filled: vec![false; block.len()] }
    }

    #[inline]
    fn run<T: Number>(&self, cells: &mut ExtremeCells<T::Rank>, at: usize, values: &[T], _: u64) {
        with_direction!(self, |direction| cells.run(direction, at, values));
    }

    fn rows<T: Number>(&self, cells: &mut ExtremeCells<T::Rank>, at: usize, rows: &Rows<'_, T>) {
        with_direction!(self, |direction| cells.rows(direction, at, rows));
    }

    #[inline]
    fn one<T: Number>(&self, cells: &mut ExtremeCells<T::Rank>, at: usize, value: T, index: u64) {
        self.run(cells, at, &[value], index);
    }

    fn merge<T: Number>(
        &self,
        (into, at): (&mut ExtremeCells<T::Rank>, usize),
        (later, from): (&ExtremeCells<T::Rank>, usize),
        count: usize,
    ) {
        let (to, from) = (at..at + count, from..from + count);
        let best = (&mut into.best[to.clone()], &later.best[from.clone()]);
        self.merge_slices(best, (&mut into.filled[to], &later.filled[from]));
    }

    fn merge_within<T: Number>(
        &self,
        cells: &mut ExtremeCells<T::Rank>,
        at: usize,
        from: usize,
        count: usize,
    ) {
        let best = disjoint(&mut cells.best, at, from, count);
        self.merge_slices(best, disjoint(&mut cells.filled, at, from, count));
    }

    fn takes_stats(&self) -> bool {
        true
    }

    fn absorb<T: Number>(&self, cells: &mut ExtremeCells<T::Rank>, at: usize, stats: &Stats) {
        if stats.nan_count < stats.count {
            let (min, max) = range_of::<T>(stats);
            match self {
                Self::Min => cells.put::<Least>(at, min, true),
                Self::Max => cells.put::<Greatest>(at, max, true),
            }
        }
    }

    fn finish<T: Number>(&self, cells: ExtremeCells<T::Rank>) -> Vec<f64> {
        (0..cells.best.len()).map(|cell| cells.finish(cell)).collect()
    }
}

/// The least and greatest value of a chunk, by its statistics.
fn range_of<T: Number>(stats: &Stats) -> (T::Rank, T::Rank) {
    // What no value of the type is cannot be the statistics of one.
    let whole = |value| T::Rank::nearest_i128(value).unwrap_or_default();
    match stats.range {
        stats::Range::Signed { min, max, .. } => (whole(i128::from(min)), whole(i128::from(max))),
        stats::Range::Unsigned { min, max, .. } => (whole(i128::from(min)), whole(i128::from(max))),
        stats::Range::Float { min, max, .. } => (T::Rank::nearest_f64(min), T::Rank::nearest_f64(max)),
    }
}

/// The least and the greatest value that are not NaN: two numbers for each cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range;

/// Least and greatest values of cells.
#[derive(Clone, Debug)]
pub(crate) struct RangeCells<R> {
    min: ExtremeCells<R>,
    max: ExtremeCells<R>,
}

impl Range {
    /// How many values are looked at twice in a row, so that they are still in the nearest cache.
    const PIECE: usize = 2048;
}

impl Fold for Range {
    type Cells<T: Number> = RangeCells<T::Rank>;

    fn cell_bytes<T: Number>(&self) -> usize {
        2 * Extreme::Min.cell_bytes::<T>()
    }

    fn start<T: Number>(&self, block: &Block) -> RangeCells<T::Rank> {
        RangeCells { min: Extreme::Min.start::<T>(block), max: Extreme::Max.start::<T>(block) }
    }

    #[inline]
    fn run<T: Number>(&self, cells: &mut RangeCells<T::Rank>, at: usize, values: &[T], _: u64) {
        for piece in values.chunks(Self::PIECE) {
            cells.min.run(Least, at, piece);
            cells.max.run(Greatest, at, piece);
        }
    }

    fn rows<T: Number>(&self, cells: &mut RangeCells<T::Rank>, at: usize, rows: &Rows<'_, T>) {
        cells.min.rows(Least, at, rows);
        cells.max.rows(Greatest, at, rows);
    }

    #[inline]
    fn one<T: Number>(&self, cells: &mut RangeCells<T::Rank>, at: usize, value: T, index: u64) {
        self.run(cells, at, &[value], index);
    }

    fn merge<T: Number>(
        &self,
        (into, at): (&mut RangeCells<T::Rank>, usize),
        (later, from): (&RangeCells<T::Rank>, usize),
        count: usize,
    ) {
        Extreme::Min.merge::<T>((&mut into.min, at), (&later.min, from), count);
        Extreme::Max.merge::<T>((&mut into.max, at), (&later.max, from), count);
    }

    fn merge_within<T: Number>(&self, cells: &mut RangeCells<T::Rank>, at: usize, from: usize, count: usize) {
        Extreme::Min.merge_within::<T>(&mut cells.min, at, from, count);
        Extreme::Max.merge_within::<T>(&mut cells.max, at, from, count);
    }

    fn takes_stats(&self) -> bool {
        true
    }

    fn absorb<T: Number>(&self, cells: &mut RangeCells<T::Rank>, at: usize, stats: &Stats) {
        Extreme::Min.absorb::<T>(&mut cells.min, at, stats);
        Extreme::Max.absorb::<T>(&mut cells.max, at, stats);
    }

    fn width(&self) -> usize {
        2
    }

    fn finish<T: Number>(&self, cells: RangeCells<T::Rank>) -> Vec<f64> {
        (0..cells.min.best.len()).flat_map(|cell| [cells.min.finish(cell), cells.max.finish(cell)]).collect()
    }
}
