//! Walks over values in lanes: a fixed number of independent partial results, so that no chain of dependent
//! operations slows the loop down and the result does not depend on the machine.

use super::Rows;
use crate::exec::number::Number;

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
/// Rows that are folded in registers before the cells are touched.
const ROWS: usize = 64;

/// A computation in `N` lanes.
pub(super) trait Kernel<T: Number, const N: usize>: Copy {
    /// Partial results, an array for each.
    type Lanes: Copy;
    /// How many values a lane can take.
    const STEPS: usize;
    /// Lanes that took no value.
    fn start(self) -> Self::Lanes;
    /// Gives each lane a value. Must be `#[inline(always)]` with loops over `0..N`.
    fn step(self, lanes: &mut Self::Lanes, values: &[T; N]);
}

/// Gives consecutive values to the lanes in turn; `sink` gets the lanes of each block with its values. What does not
/// fill the lanes is left to the caller.
#[inline(always)]
pub(super) fn run<T: Number, K: Kernel<T, N>, const N: usize>(
    kernel: K,
    values: &[T],
    mut sink: impl FnMut(&K::Lanes, &[[T; N]]),
) -> &[T] {
    let (chunks, rest) = values.as_chunks::<N>();
    for block in chunks.chunks(K::STEPS) {
        sink(&take(kernel, block), block);
    }
    rest
}

/// The lanes of one block.
#[inline(always)]
fn take<T: Number, K: Kernel<T, N>, const N: usize>(kernel: K, block: &[[T; N]]) -> K::Lanes {
    let mut lanes = kernel.start();
    for values in block {
        kernel.step(&mut lanes, values);
    }
    lanes
}

/// A block of rows and columns whose values went into lanes, one for each column.
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

/// Gives the values of each column to its lane, for rows at least as wide as there are lanes. The panels at the end
/// of the rows overlap.
#[inline(always)]
pub(super) fn panels<T: Number, K: Kernel<T, N>, const N: usize>(
    kernel: K,
    rows: &Rows<'_, T>,
    mut sink: impl FnMut(Panel, &K::Lanes),
) {
    let most = K::STEPS.min(ROWS);
    for row in (0..rows.count).step_by(most) {
        let count = most.min(rows.count - row);
        let mut next = 0;
        while next < rows.width {
            let column = next.min(rows.width - N);
            let at = Panel { column, skip: next - column, row, rows: count };
            sink(at, &panel(kernel, rows, at));
            next = column + N;
        }
    }
}

/// The lanes of one panel.
#[inline(always)]
pub(super) fn panel<T: Number, K: Kernel<T, N>, const N: usize>(
    kernel: K,
    rows: &Rows<'_, T>,
    at: Panel,
) -> K::Lanes {
    let mut lanes = kernel.start();
    let values = &rows.values[at.row * rows.stride + at.column..];
    for row in 0..at.rows {
        if let Some(values) = values[row * rows.stride..].first_chunk::<N>() {
            kernel.step(&mut lanes, values);
        }
    }
    lanes
}

/// Rows without gaps that are narrower than the lanes: `N` rows fill as many sets of lanes as a row is wide, over and
/// over. For each set `sink` gets the columns of its lanes, the values from its first on, the lanes, and how many
/// values each took. Returns how many rows were taken.
#[inline(always)]
pub(super) fn ribbon<T: Number, K: Kernel<T, N>, const N: usize>(
    kernel: K,
    rows: &Rows<'_, T>,
    mut sink: impl FnMut(&mut dyn Iterator<Item = usize>, &[[T; N]], &K::Lanes, usize),
) -> usize {
    let width = rows.width;
    let groups = rows.count / N;
    let (chunks, _) = rows.values[..groups * N * width].as_chunks::<N>();
    let mut lanes = [kernel.start(); N];
    let lanes = &mut lanes[..width];
    for block in chunks.chunks(K::STEPS.min(4 * ROWS) * width) {
        lanes.fill(kernel.start());
        for group in block.chunks_exact(width) {
            for (lanes, values) in lanes.iter_mut().zip(group) {
                kernel.step(lanes, values);
            }
        }
        for (set, lanes) in lanes.iter().enumerate() {
            let mut columns = (set * N..(set + 1) * N).map(|value| value % width);
            sink(&mut columns, &block[set..], lanes, block.len() / width);
        }
    }
    groups * N
}

/// The lanes of every `width`th set of values.
#[inline(always)]
pub(super) fn every<T: Number, K: Kernel<T, N>, const N: usize>(
    kernel: K,
    values: &[[T; N]],
    width: usize,
) -> K::Lanes {
    let mut lanes = kernel.start();
    for values in values.iter().step_by(width) {
        kernel.step(&mut lanes, values);
    }
    lanes
}

/// Narrow rows with gaps: the columns one after the other, gathered in pieces. `sink` gets the column, the number of
/// the first row, and the values.
pub(super) fn columns<T: Number>(rows: &Rows<'_, T>, from: usize, mut sink: impl FnMut(usize, usize, &[T])) {
    let mut piece = [T::default(); 256];
    for first in (from..rows.count).step_by(piece.len()) {
        let piece = &mut piece[..256.min(rows.count - first)];
        for column in 0..rows.width {
            let values = rows.values[first * rows.stride + column..].iter().step_by(rows.stride.max(1));
            piece.iter_mut().zip(values).for_each(|(to, from)| *to = *from);
            sink(column, first, piece);
        }
    }
}

/// Two ranges of cells that do not overlap: the first to be changed by the second.
#[inline]
pub(super) fn disjoint<N>(all: &mut [N], at: usize, from: usize, count: usize) -> (&mut [N], &[N]) {
    if at < from {
        let (low, high) = all.split_at_mut(from);
        (&mut low[at..at + count], &high[..count])
    } else {
        let (low, high) = all.split_at_mut(at);
        (&mut high[..count], &low[from..from + count])
    }
}
