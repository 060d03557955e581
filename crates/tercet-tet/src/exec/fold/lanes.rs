//! Walks over values in lanes: a fixed number of independent partial results, so that no chain of dependent
//! operations slows a loop down and results do not depend on the machine.

use std::ops::Range;

use super::Rows;
use crate::exec::number::Number;
use crate::exec::simd::{Work, vectorized};

/// Runs code for the number of lanes that suits a type: whole registers, but not more of them than there are.
macro_rules! with_lanes {
    ($T:ty, |$N:ident| $body:expr) => {
        if <$T as Number>::HALF {
            const $N: usize = 16;
            $body
        } else {
            const $N: usize = 32;
            $body
        }
    };
}
pub(super) use with_lanes;

/// Fewer values than this are not worth a dispatch.
pub(super) const SHORT: usize = 32;
/// Rows that are folded in registers before cells are touched.
const ROWS: usize = 64;

/// A computation in `N` lanes. All methods must be `#[inline(always)]`, with loops over `0..N`.
pub(super) trait Kernel<T: Number, const N: usize> {
    /// Partial results, an array for each.
    type Lanes: Copy;
    /// Lanes that took no value.
    fn start(&self) -> Self::Lanes;
    /// Gives each lane a value.
    fn step(&self, lanes: &mut Self::Lanes, values: &[T; N]);
}

/// Cells that take lanes. All methods must be `#[inline(always)]`.
pub(super) trait Gather<T: Number, const N: usize> {
    type Kernel: Kernel<T, N>;
    /// How many values a lane can take.
    const STEPS: usize;
    /// Whether lanes of narrow rows are taken.
    const NARROW: bool;
    /// The computation for the next values of a target, of which `first` are the first.
    fn kernel(&self, target: Target, first: &[T; N]) -> Self::Kernel;
    /// Takes the lanes of consecutive values, of which `before` came before, into one cell.
    fn take(&mut self, at: usize, lanes: &Lanes<T, Self, N>, groups: &[[T; N]], before: usize);
    /// Takes the lanes of a panel into the cells of its columns; column 0 belongs to cell `at`.
    fn take_panel(&mut self, at: usize, lanes: &Lanes<T, Self, N>, rows: &Rows<'_, T>, panel: Panel);
    /// Takes the lanes of one strand of a ribbon.
    fn take_strand(&mut self, at: usize, lanes: &Lanes<T, Self, N>, strand: &Strand<'_, T, N>);
}

/// Where the values of lanes go.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    /// Those of all lanes into one cell.
    One(usize),
    /// Those of each lane into a cell of its own, the first of which this is.
    Each(usize),
    /// Those of each lane into the cell of its column; column 0 belongs to this one.
    Columns(usize),
}

/// The lanes of a gathering.
pub(super) type Lanes<T, G, const N: usize> = <<G as Gather<T, N>>::Kernel as Kernel<T, N>>::Lanes;

/// Folds consecutive values into one cell, as far as they fill lanes, and returns the rest.
#[inline(always)]
pub(super) fn run<'v, T: Number, G: Gather<T, N>, const N: usize>(
    gather: &mut G,
    at: usize,
    values: &'v [T],
) -> &'v [T] {
    let (groups, rest) = values.as_chunks::<N>();
    vectorized(Long { gather, at, groups });
    rest
}

/// Folds rows into cells, as far as they fill lanes, and returns the number of the first row that is left.
#[inline(always)]
pub(super) fn rows<T: Number, G: Gather<T, N>, const N: usize>(
    gather: &mut G,
    at: usize,
    rows: &Rows<'_, T>,
) -> usize {
    if rows.width >= N {
        vectorized(Wide::<T, G, N> { gather, at, rows });
        return rows.count;
    }
    if rows.stride != rows.width || rows.width == 0 || !G::NARROW {
        return 0;
    }
    let fill = rows.count / N * N;
    let (groups, _) = rows.values[..fill * rows.width].as_chunks::<N>();
    vectorized(Narrow { gather, at, groups, width: rows.width });
    fill
}

/// Consecutive values of one cell.
struct Long<'a, T, G, const N: usize> {
    gather: &'a mut G,
    at: usize,
    groups: &'a [[T; N]],
}

impl<T: Number, G: Gather<T, N>, const N: usize> Work for Long<'_, T, G, N> {
    type Output = ();
    #[inline(always)]
    fn work(self) {
        for (block, groups) in self.groups.chunks(G::STEPS).enumerate() {
            let kernel = self.gather.kernel(Target::One(self.at), &groups[0]);
            let lanes = strand(&kernel, groups, 1);
            self.gather.take(self.at, &lanes, groups, block * G::STEPS * N);
        }
    }
}

/// Rows that are at least `N` wide.
struct Wide<'a, T, G, const N: usize> {
    gather: &'a mut G,
    at: usize,
    rows: &'a Rows<'a, T>,
}

impl<T: Number, G: Gather<T, N>, const N: usize> Work for Wide<'_, T, G, N> {
    type Output = ();
    #[inline(always)]
    fn work(self) {
        for at in Panels::<N>::new(self.rows, G::STEPS) {
            if let Some(first) = at.values(self.rows, 0) {
                let kernel = self.gather.kernel(Target::Each(self.at + at.column), first);
                let lanes = panel(&kernel, self.rows, at);
                self.gather.take_panel(self.at, &lanes, self.rows, at);
            }
        }
    }
}

/// Narrow rows without gaps: `width` groups of values hold `N` rows.
struct Narrow<'a, T, G, const N: usize> {
    gather: &'a mut G,
    at: usize,
    groups: &'a [[T; N]],
    width: usize,
}

impl<T: Number, G: Gather<T, N>, const N: usize> Work for Narrow<'_, T, G, N> {
    type Output = ();
    #[inline(always)]
    fn work(self) {
        for groups in self.groups.chunks(G::STEPS.min(4 * ROWS) * self.width) {
            let kernel = self.gather.kernel(Target::Columns(self.at), &groups[0]);
            let mut sets = [kernel.start(); N];
            for groups in groups.chunks_exact(self.width) {
                for (lanes, values) in sets.iter_mut().zip(groups) {
                    kernel.step(lanes, values);
                }
            }
            for (set, lanes) in sets[..self.width].iter().enumerate() {
                let strand = Strand { groups: &groups[set..], first: set * N, width: self.width };
                self.gather.take_strand(self.at, lanes, &strand);
            }
        }
    }
}

/// Every `width`th group of values of narrow rows: their lanes always belong to the same columns.
pub(super) struct Strand<'a, T, const N: usize> {
    pub(super) groups: &'a [[T; N]],
    /// The number of the first lane.
    first: usize,
    pub(super) width: usize,
}

impl<T, const N: usize> Strand<'_, T, N> {
    /// The column of a lane.
    #[inline(always)]
    pub(super) fn column(&self, lane: usize) -> usize {
        (self.first + lane) % self.width
    }

    /// How many values each lane took.
    #[inline(always)]
    pub(super) fn steps(&self) -> usize {
        self.groups.len().div_ceil(self.width)
    }
}

/// The lanes of every `width`th group of values.
#[inline(always)]
pub(super) fn strand<T: Number, K: Kernel<T, N>, const N: usize>(
    kernel: &K,
    groups: &[[T; N]],
    width: usize,
) -> K::Lanes {
    let mut lanes = kernel.start();
    for values in groups.iter().step_by(width) {
        kernel.step(&mut lanes, values);
    }
    lanes
}

/// A block of rows and columns whose values go into lanes, one for each column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Panel {
    /// The column of the first lane.
    pub(super) column: usize,
    /// Lanes that do not count, because the panel before had their columns.
    pub(super) skip: usize,
    /// The first row.
    pub(super) row: usize,
    /// How many rows.
    pub(super) rows: usize,
}

impl Panel {
    /// The values of one of its rows.
    #[inline(always)]
    pub(super) fn values<'a, T, const N: usize>(&self, rows: &Rows<'a, T>, row: usize) -> Option<&'a [T; N]> {
        rows.values[(self.row + row) * rows.stride + self.column..].first_chunk()
    }

    /// The cells of the lanes that count, if column 0 belongs to cell `at`.
    #[inline(always)]
    pub(super) fn cells<const N: usize>(&self, at: usize) -> Range<usize> {
        at + self.column + self.skip..at + self.column + N
    }
}

/// The panels of rows that are at least `N` wide. Those at the end of the rows overlap.
struct Panels<const N: usize> {
    width: usize,
    count: usize,
    most: usize,
    column: usize,
    row: usize,
}

impl<const N: usize> Panels<N> {
    /// Panels of at most `most` rows.
    fn new<T>(rows: &Rows<'_, T>, most: usize) -> Self {
        Self { width: rows.width, count: rows.count, most: most.min(ROWS), column: 0, row: 0 }
    }
}

impl<const N: usize> Iterator for Panels<N> {
    type Item = Panel;
    #[inline(always)]
    fn next(&mut self) -> Option<Panel> {
        if self.column == self.width {
            self.column = 0;
            self.row += self.most;
        }
        if self.row >= self.count {
            return None;
        }
        let column = self.column.min(self.width - N);
        let skip = self.column - column;
        self.column = column + N;
        Some(Panel { column, skip, row: self.row, rows: self.most.min(self.count - self.row) })
    }
}

/// The lanes of a panel.
#[inline(always)]
pub(super) fn panel<T: Number, K: Kernel<T, N>, const N: usize>(
    kernel: &K,
    rows: &Rows<'_, T>,
    at: Panel,
) -> K::Lanes {
    let mut lanes = kernel.start();
    for row in 0..at.rows {
        if let Some(values) = at.values(rows, row) {
            kernel.step(&mut lanes, values);
        }
    }
    lanes
}

/// The columns of narrow rows from row `from` on, one after the other, gathered in pieces.
pub(super) fn columns<T: Number>(rows: &Rows<'_, T>, from: usize, mut each: impl FnMut(usize, usize, &[T])) {
    if from == rows.count {
        return;
    }
    let mut piece = [T::default(); 256];
    for first in (from..rows.count).step_by(piece.len()) {
        let piece = &mut piece[..256.min(rows.count - first)];
        for column in 0..rows.width {
            let values = rows.values[first * rows.stride + column..].iter().step_by(rows.stride.max(1));
            piece.iter_mut().zip(values).for_each(|(to, from)| *to = *from);
            each(column, first, piece);
        }
    }
}

/// Two ranges of cells that do not overlap: one to be changed by the other.
#[inline]
pub(super) fn disjoint<C>(cells: &mut [C], at: usize, from: usize, count: usize) -> (&mut [C], &[C]) {
    if at < from {
        let (low, high) = cells.split_at_mut(from);
        (&mut low[at..at + count], &high[..count])
    } else {
        let (low, high) = cells.split_at_mut(at);
        (&mut high[..count], &low[from..from + count])
    }
}
