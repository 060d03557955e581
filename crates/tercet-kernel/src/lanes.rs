//! Lane-wise loops over values: a fixed number of independent partial results, so that no chain of dependent operations
//! limits throughput.

use crate::compute::Compute;
use crate::simd::{Work, vectorized};
use crate::typed::TypedRuns;

/// Runs shorter than this are folded without lanes.
const SHORT: usize = 32;
/// Runs up to this length are folded with few lanes, because lanes are folded at the end of every run.
const MEDIUM: usize = 256;

/// Accumulators that support lane-wise folding. All methods must be `#[inline(always)]`, with loops over `0..N`.
pub(crate) trait Kernel<T: Compute> {
    /// Partial results, one array per quantity.
    type Lanes<const N: usize>: Copy;
    /// Maximum number of values per lane in a run.
    const STEPS: usize = 256;
    /// Maximum number of rows folded at once. Few rows are read in their order, as memory likes it; many rows touch the
    /// states of their slots less often.
    const ROWS: usize = 64;
    /// Whether lane state is large enough that half the number of lanes fills the registers.
    const HEAVY: bool = false;
    /// Creates empty lanes. Lanes of columns belong to the slots starting at `at`, lanes of a run to slot `at`.
    fn start<const N: usize>(&self, target: Target, first: &[T; N]) -> Self::Lanes<N>;
    /// Folds one value into each lane; `number` counts the steps.
    fn step<const N: usize>(lanes: &mut Self::Lanes<N>, values: &[T; N], number: u32);
    /// Folds lanes of columns into their slots.
    fn take_columns<const N: usize>(&mut self, at: usize, lanes: &Self::Lanes<N>, tile: &Tile<'_, T>);
    /// Folds the lanes of a run, and the tail that did not fill the lanes, into one slot.
    fn take_run<const N: usize>(&mut self, at: usize, lanes: &Self::Lanes<N>, block: &Block<'_, T, N>);
    /// Folds a few values into one slot.
    fn take_short(&mut self, at: usize, values: &[T], index: u64);
}

/// The methods of a `TypedAccumulator` that is a kernel.
macro_rules! by_lanes {
    () => {
        fn rows(&mut self, at: usize, rows: &[&[T]], indices: &[u64]) {
            crate::lanes::rows(self, at, rows, indices);
        }

        fn runs(&mut self, at: usize, runs: &crate::typed::TypedRuns<'_, T>) {
            crate::lanes::runs(self, at, runs);
        }

        #[inline]
        fn one(&mut self, at: usize, value: T, index: u64) {
            self.take_short(at, &[value], index);
        }
    };
}
pub(crate) use by_lanes;

/// Target slots of lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// All lanes belong to one slot.
    One(usize),
    /// Each lane belongs to a separate slot; this is the first.
    Each(usize),
}

/// A tile: some columns of rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tile<'a, T> {
    pub(crate) rows: &'a [&'a [T]],
    /// Index of each row, if the reduction is indexed.
    pub(crate) indices: &'a [u64],
    /// First column.
    pub(crate) column: usize,
}

impl<T: Compute> Tile<'_, T> {
    /// Values of a column; `lane` is the column number in the tile.
    pub(crate) fn column(&self, lane: usize) -> impl Iterator<Item = T> {
        self.rows.iter().map(move |row| row[self.column + lane])
    }

    /// Folds the tile into lanes.
    #[inline(always)]
    pub(crate) fn fill<const N: usize, K: Kernel<T>>(&self, mut lanes: K::Lanes<N>) -> K::Lanes<N> {
        let mut number = 0;
        for row in self.rows {
            if let Some(values) = row[self.column..].first_chunk() {
                K::step(&mut lanes, values, number);
            }
            number += 1;
        }
        lanes
    }
}

/// Consecutive values of one slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'a, T, const N: usize> {
    pub(crate) groups: &'a [[T; N]],
    /// Tail of fewer than `N` values.
    pub(crate) tail: &'a [T],
    /// Index of the first value.
    pub(crate) index: u64,
}

impl<T: Compute, const N: usize> Block<'_, T, N> {
    /// Folds the values into lanes.
    #[inline(always)]
    pub(crate) fn fill<K: Kernel<T>>(&self, mut lanes: K::Lanes<N>) -> K::Lanes<N> {
        let mut number = 0;
        for values in self.groups {
            K::step(&mut lanes, values, number);
            number += 1;
        }
        lanes
    }

    /// Iterates over all values.
    pub(crate) fn values(&self) -> impl Iterator<Item = T> {
        self.groups.as_flattened().iter().chain(self.tail).copied()
    }

    /// Number of values.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.groups.len() * N + self.tail.len()
    }
}

/// Folds rows into slots.
pub(crate) fn rows<T: Compute, K: Kernel<T>>(kernel: &mut K, at: usize, rows: &[&[T]], indices: &[u64]) {
    for (number, rows) in rows.chunks(K::ROWS).enumerate() {
        let indices = indices.get(number * K::ROWS..).unwrap_or_default();
        vectorized(Columns { kernel: &mut *kernel, at, rows, indices });
    }
}

/// Folds runs into slots.
pub(crate) fn runs<T: Compute, K: Kernel<T>>(kernel: &mut K, at: usize, runs: &TypedRuns<'_, T>) {
    if runs.len < SHORT {
        for run in 0..runs.count {
            kernel.take_short(at + run, runs.run(run), runs.index + run as u64 * runs.index_step);
        }
        return;
    }
    vectorized(Long { kernel, at, runs });
}

struct Columns<'a, T, K> {
    kernel: &'a mut K,
    at: usize,
    rows: &'a [&'a [T]],
    indices: &'a [u64],
}

impl<T: Compute, K: Kernel<T>> Columns<'_, T, K> {
    #[inline(always)]
    fn panels<const N: usize>(&mut self, mut column: usize, width: usize) -> usize {
        while column + N <= width {
            let tile = Tile { rows: self.rows, indices: self.indices, column };
            if let Some(first) = self.rows[0][column..].first_chunk() {
                let lanes = self.kernel.start::<N>(Target::Each(self.at + column), first);
                let lanes = tile.fill::<N, K>(lanes);
                self.kernel.take_columns(self.at + column, &lanes, &tile);
            }
            column += N;
        }
        column
    }
}

impl<T: Compute, K: Kernel<T>> Work for Columns<'_, T, K> {
    type Output = ();
    #[inline(always)]
    fn work(mut self) {
        let width = self.rows.first().map_or(0, |row| row.len());
        let column = if K::HEAVY { self.panels::<16>(0, width) } else { self.panels::<32>(0, width) };
        let column = self.panels::<8>(column, width);
        self.panels::<1>(column, width);
    }
}

struct Long<'a, T, K> {
    kernel: &'a mut K,
    at: usize,
    runs: &'a TypedRuns<'a, T>,
}

impl<T: Compute, K: Kernel<T>> Long<'_, T, K> {
    #[inline(always)]
    fn blocks<const N: usize>(self) {
        for run in 0..self.runs.count {
            let mut index = self.runs.index + run as u64 * self.runs.index_step;
            for values in self.runs.run(run).chunks(K::STEPS * N) {
                let (groups, tail) = values.as_chunks::<N>();
                let block = Block { groups, tail, index };
                if let Some(first) = groups.first() {
                    let lanes = self.kernel.start::<N>(Target::One(self.at + run), first);
                    let lanes = block.fill::<K>(lanes);
                    self.kernel.take_run(self.at + run, &lanes, &block);
                } else {
                    self.kernel.take_short(self.at + run, tail, index);
                }
                index += values.len() as u64;
            }
        }
    }
}

impl<T: Compute, K: Kernel<T>> Work for Long<'_, T, K> {
    type Output = ();
    #[inline(always)]
    fn work(self) {
        if self.runs.len <= MEDIUM {
            self.blocks::<8>();
        } else if K::HEAVY {
            self.blocks::<16>();
        } else {
            self.blocks::<32>();
        }
    }
}

/// Sum of lanes, in a fixed order. Not inlined: otherwise the compiler shapes the loop that fills the lanes after this
/// one.
#[inline(never)]
pub(crate) fn across<const N: usize>(lanes: &[f64; N]) -> f64 {
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
