//! Where the least or the greatest value is.

use super::extreme::{Best, Direction, Greatest, Least, best_of};
use super::lanes::{self, Gather, Panel, SHORT, Strand, Target, disjoint, with_lanes};
use super::{Block, Fold, Rows};
use crate::exec::number::{Number, Rank};

/// The index of the first least or greatest value that is not NaN; −1 if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arg {
    Min,
    Max,
}

/// Best values of cells and where they are.
#[derive(Clone, Debug)]
pub(crate) struct ArgCells<R> {
    best: Vec<R>,
    /// The index of the best value; `NONE` without one.
    index: Vec<u64>,
}

/// Later than any index, so that the first value of a cell always is an improvement.
const NONE: u64 = u64::MAX;

/// Whether a value is better than another one, or as good and earlier.
#[inline(always)]
fn improves<D: Direction, R: Rank>(value: R, index: u64, best: R, at: u64) -> bool {
    D::is_better(value, best) | ((value == best) & (index < at))
}

impl<R: Rank> ArgCells<R> {
    #[inline(always)]
    fn put<D: Direction>(&mut self, at: usize, value: R, index: u64) {
        if improves::<D, _>(value, index, self.best[at], self.index[at]) {
            self.best[at] = value;
            self.index[at] = index;
        }
    }

    #[inline]
    fn run<T: Number<Rank = R>, D: Direction>(&mut self, direction: D, at: usize, values: &[T], index: u64) {
        let mut rest = values;
        if values.len() >= SHORT {
            let mut finder = Finder { cells: self, direction, index, step: 1 };
            rest = with_lanes!(T, |N| lanes::run::<T, _, N>(&mut finder, at, values));
        }
        let mut index = index + (values.len() - rest.len()) as u64;
        for &value in rest {
            self.put::<D>(at, value.rank(), index);
            index += 1;
        }
    }

    fn rows<T: Number<Rank = R>, D: Direction>(&mut self, direction: D, at: usize, rows: &Rows<'_, T>) {
        let mut finder = Finder { cells: self, direction, index: rows.index, step: rows.index_step };
        let done = with_lanes!(T, |N| lanes::rows::<T, _, N>(&mut finder, at, rows));
        for row in done..rows.count {
            let index = rows.index + row as u64 * rows.index_step;
            for (cell, &value) in (at..).zip(rows.row(row)) {
                self.put::<D>(cell, value.rank(), index);
            }
        }
    }

    #[inline(always)]
    fn merge<D: Direction>(into: (&mut [R], &mut [u64]), later: (&[R], &[u64])) {
        let into = into.0.iter_mut().zip(into.1);
        for ((best, at), (&value, &index)) in into.zip(later.0.iter().zip(later.1)) {
            let improves = improves::<D, _>(value, index, *best, *at);
            *best = if improves { value } else { *best };
            *at = if improves { index } else { *at };
        }
    }
}

/// Finds where the best of lanes is, if it is better than that of a cell: rarely, so that most values are only
/// compared.
struct Finder<'a, R, D> {
    cells: &'a mut ArgCells<R>,
    direction: D,
    /// The index of the first value or row, and from one to the next.
    index: u64,
    step: u64,
}

impl<T: Number, D: Direction, const N: usize> Gather<T, N> for Finder<'_, T::Rank, D> {
    type Kernel = Best<D>;
    const STEPS: usize = 128;
    const NARROW: bool = false;

    #[inline(always)]
    fn kernel(&self, _: Target, _: &[T; N]) -> Best<D> {
        Best(self.direction)
    }

    #[inline(always)]
    fn take(&mut self, at: usize, lanes: &[T::Rank; N], groups: &[[T; N]], before: usize) {
        let best = best_of::<D, _>(lanes);
        let first = self.index + before as u64;
        if improves::<D, _>(best, first, self.cells.best[at], self.cells.index[at])
            && let Some(place) = groups.as_flattened().iter().position(|value| value.rank() == best)
        {
            self.cells.put::<D>(at, best, first + place as u64);
        }
    }

    #[inline(always)]
    fn take_panel(&mut self, at: usize, lanes: &[T::Rank; N], rows: &Rows<'_, T>, panel: Panel) {
        let first = self.index + panel.row as u64 * self.step;
        for lane in panel.skip..N {
            let cell = at + panel.column + lane;
            if improves::<D, _>(lanes[lane], first, self.cells.best[cell], self.cells.index[cell]) {
                let column = rows.values[panel.row * rows.stride + panel.column + lane..].iter();
                let mut column = column.step_by(rows.stride.max(1)).take(panel.rows);
                if let Some(row) = column.position(|value| value.rank() == lanes[lane]) {
                    self.cells.put::<D>(cell, lanes[lane], first + row as u64 * self.step);
                }
            }
        }
    }

    #[inline(always)]
    fn take_strand(&mut self, _: usize, _: &[T::Rank; N], _: &Strand<'_, T, N>) {}
}

/// Runs code for the direction of a search.
macro_rules! with_direction {
    ($arg:expr, |$direction:ident| $body:expr) => {
        match $arg {
            Arg::Min => {
                let $direction = Least;
                $body
            }
            Arg::Max => {
                let $direction = Greatest;
                $body
            }
        }
    };
}

impl Arg {
    #[inline(always)]
    fn merge_slices<R: Rank>(self, best: (&mut [R], &[R]), index: (&mut [u64], &[u64])) {
        match self {
            Self::Min => ArgCells::merge::<Least>((best.0, index.0), (best.1, index.1)),
            Self::Max => ArgCells::merge::<Greatest>((best.0, index.0), (best.1, index.1)),
        }
    }
}

impl Fold for Arg {
    const INDEXED: bool = true;

    type Cells<T: Number> = ArgCells<T::Rank>;

    fn cell_bytes<T: Number>(&self) -> usize {
        size_of::<T::Rank>() + 8
    }

    fn start<T: Number>(&self, block: &Block) -> ArgCells<T::Rank> {
        let worst = match self {
            Self::Min => Least::worst(),
            Self::Max => Greatest::worst(),
        };
        ArgCells { best: vec![worst; block.len()], index: vec![NONE; block.len()] }
    }

    #[inline]
    fn run<T: Number>(&self, cells: &mut ArgCells<T::Rank>, at: usize, values: &[T], index: u64) {
        with_direction!(self, |direction| cells.run(direction, at, values, index));
    }

    fn rows<T: Number>(&self, cells: &mut ArgCells<T::Rank>, at: usize, rows: &Rows<'_, T>) {
        with_direction!(self, |direction| cells.rows(direction, at, rows));
    }

    #[inline]
    fn one<T: Number>(&self, cells: &mut ArgCells<T::Rank>, at: usize, value: T, index: u64) {
        self.run(cells, at, &[value], index);
    }

    fn merge<T: Number>(
        &self,
        (into, at): (&mut ArgCells<T::Rank>, usize),
        (later, from): (&ArgCells<T::Rank>, usize),
        count: usize,
    ) {
        let (to, from) = (at..at + count, from..from + count);
        let best = (&mut into.best[to.clone()], &later.best[from.clone()]);
        self.merge_slices(best, (&mut into.index[to], &later.index[from]));
    }

    fn merge_within<T: Number>(&self, cells: &mut ArgCells<T::Rank>, at: usize, from: usize, count: usize) {
        let best = disjoint(&mut cells.best, at, from, count);
        self.merge_slices(best, disjoint(&mut cells.index, at, from, count));
    }

    fn finish<T: Number>(&self, cells: ArgCells<T::Rank>) -> Vec<f64> {
        #[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^53 positions")]
        let place = |index: u64| if index == NONE { -1.0 } else { index as f64 };
        cells.index.into_iter().map(place).collect()
    }
}
