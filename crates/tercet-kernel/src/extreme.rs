//! Minimum and maximum.

use tercet_core::tensor::OutOfMemory;

use crate::accumulator::Statistics;
use crate::compute::Compute;
use crate::lanes::{self, Block, Kernel, Target, Tile, by_lanes};
use crate::typed::{TypedAccumulator, TypedRuns, filled};

/// Whether `a` is better than `b`: greater with `MAX`, less without. NaN is never better.
#[inline(always)]
pub(crate) fn is_better<T: Compute, const MAX: bool>(a: T, b: T) -> bool {
    if MAX { a > b } else { a < b }
}

/// The worst value: every value is at least as good.
#[inline(always)]
pub(crate) fn worst<T: Compute, const MAX: bool>() -> T {
    if MAX { T::LOWEST } else { T::HIGHEST }
}

/// The better of two values: `b` if `a` is NaN.
#[inline(always)]
pub(crate) fn better<T: Compute, const MAX: bool>(a: T, b: T) -> T {
    if is_better::<T, MAX>(a, b) { a } else { b }
}

/// The best value of all lanes, none of which is NaN. Not inlined: otherwise the compiler shapes the loop that fills the
/// lanes after this one.
#[inline(never)]
pub(crate) fn best_of<T: Compute, const MAX: bool, const N: usize>(lanes: &[T; N]) -> T {
    let mut lanes = *lanes;
    let mut half = N / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = better::<T, MAX>(lanes[lane + half], lanes[lane]);
        }
        half /= 2;
    }
    lanes[0]
}

/// Minimum or maximum of the values that are not NaN; NaN for an empty slot.
#[derive(Debug)]
pub(crate) struct Extreme<T, const MAX: bool> {
    /// Best value so far; the worst possible value for an empty slot.
    best: Vec<T>,
    /// Whether the slot has a value. Needed only where the best value equals the worst possible value.
    filled: Vec<bool>,
    /// Whether the result is the difference to the nearest f64.
    is_rest: bool,
}

impl<T: Compute, const MAX: bool> Extreme<T, MAX> {
    pub(crate) fn new(slots: usize) -> Result<Self, OutOfMemory> {
        Ok(Self { best: filled(worst::<T, MAX>(), slots)?, filled: filled(false, slots)?, is_rest: false })
    }

    /// The difference between the exact result and the nearest f64.
    pub(crate) fn rest(slots: usize) -> Result<Self, OutOfMemory> {
        Ok(Self { is_rest: true, ..Self::new(slots)? })
    }

    #[inline(always)]
    fn put(&mut self, at: usize, best: T, values: impl Iterator<Item = T>) {
        self.best[at] = better::<T, MAX>(best, self.best[at]);
        self.look(at, values);
    }

    /// Searches for a value that is not NaN, unless the best value already proves that one exists.
    #[inline(always)]
    fn look(&mut self, at: usize, mut values: impl Iterator<Item = T>) {
        if self.best[at] == worst::<T, MAX>() && !self.filled[at] {
            self.filled[at] = values.any(|value| !value.is_nan());
        }
    }

    fn result(&self, slot: usize) -> f64 {
        // Adding +0.0 turns −0.0 into +0.0.
        let is_filled = self.filled[slot] || self.best[slot] != worst::<T, MAX>();
        match (is_filled, self.is_rest) {
            (false, _) => f64::NAN,
            (true, false) => self.best[slot].to_f64() + 0.0,
            (true, true) => self.best[slot].rest(),
        }
    }
}

impl<T: Compute, const MAX: bool> Kernel<T> for Extreme<T, MAX> {
    type Lanes<const N: usize> = [T; N];
    const STEPS: usize = 1024;
    const ROWS: usize = 8;

    #[inline(always)]
    fn start<const N: usize>(&self, _: Target, _: &[T; N]) -> [T; N] {
        [worst::<T, MAX>(); N]
    }

    #[inline(always)]
    fn step<const N: usize>(best: &mut [T; N], values: &[T; N], _: u32) {
        for lane in 0..N {
            best[lane] = better::<T, MAX>(values[lane], best[lane]);
        }
    }

    #[inline(always)]
    fn take_columns<const N: usize>(&mut self, at: usize, lanes: &[T; N], tile: &Tile<'_, T>) {
        let mut doubt = false;
        if let Some(best) = self.best[at..].first_chunk_mut::<N>() {
            for lane in 0..N {
                best[lane] = better::<T, MAX>(lanes[lane], best[lane]);
                doubt |= best[lane] == worst::<T, MAX>();
            }
        }
        if doubt {
            for lane in 0..N {
                self.look(at + lane, tile.column(lane));
            }
        }
    }

    #[inline(always)]
    fn take_run<const N: usize>(&mut self, at: usize, lanes: &[T; N], block: &Block<'_, T, N>) {
        self.put(at, best_of::<T, MAX, N>(lanes), block.values());
        self.take_short(at, block.tail, 0);
    }

    #[inline(always)]
    fn take_short(&mut self, at: usize, values: &[T], _: u64) {
        let best = values.iter().fold(worst::<T, MAX>(), |best, &value| better::<T, MAX>(value, best));
        self.put(at, best, values.iter().copied());
    }
}

impl<T: Compute, const MAX: bool> TypedAccumulator for Extreme<T, MAX> {
    type Value = T;
    type State = (T, bool);
    const STREAMING: bool = true;

    fn fresh(&self, slots: usize) -> Result<Self, OutOfMemory> {
        Ok(Self { is_rest: self.is_rest, ..Self::new(slots)? })
    }

    fn clear(&mut self) {
        self.best.fill(worst::<T, MAX>());
        self.filled.fill(false);
    }

    fn len(&self) -> usize {
        self.best.len()
    }

    by_lanes!();

    #[inline]
    fn state(&self, slot: usize) -> (T, bool) {
        (self.best[slot], self.filled[slot])
    }

    #[inline]
    fn join(&mut self, slot: usize, (best, filled): (T, bool)) {
        self.best[slot] = better::<T, MAX>(best, self.best[slot]);
        self.filled[slot] |= filled;
    }

    fn takes_statistics(&self) -> bool {
        true
    }

    fn fold_statistics(&mut self, at: usize, known: &Statistics) {
        if known.nan_count < known.count {
            let best = T::from_value(if MAX { known.range.max } else { known.range.min });
            self.join(at, (best, true));
        }
    }

    fn finish(&self, slot: usize, _: u64, out: &mut [f64]) {
        out[0] = self.result(slot);
    }
}

/// Minimum and maximum of the values that are not NaN: two numbers per slot.
#[derive(Debug)]
pub(crate) struct Range<T> {
    min: Extreme<T, false>,
    max: Extreme<T, true>,
}

impl<T: Compute> Range<T> {
    /// Values per block. Each block is read twice in a row, so it must stay in the L1 cache.
    const PIECE: usize = 2048;

    pub(crate) fn new(slots: usize) -> Result<Self, OutOfMemory> {
        Ok(Self { min: Extreme::new(slots)?, max: Extreme::new(slots)? })
    }
}

impl<T: Compute> TypedAccumulator for Range<T> {
    type Value = T;
    type State = ((T, bool), (T, bool));
    const WIDTH: usize = 2;

    fn fresh(&self, slots: usize) -> Result<Self, OutOfMemory> {
        Self::new(slots)
    }

    fn clear(&mut self) {
        TypedAccumulator::clear(&mut self.min);
        TypedAccumulator::clear(&mut self.max);
    }

    fn len(&self) -> usize {
        self.min.best.len()
    }

    fn rows(&mut self, at: usize, rows: &[&[T]], _: &[u64]) {
        lanes::rows(&mut self.min, at, rows, &[]);
        lanes::rows(&mut self.max, at, rows, &[]);
    }

    fn runs(&mut self, at: usize, runs: &TypedRuns<'_, T>) {
        if runs.len <= Self::PIECE {
            lanes::runs(&mut self.min, at, runs);
            lanes::runs(&mut self.max, at, runs);
            return;
        }
        for run in 0..runs.count {
            for values in runs.run(run).chunks(Self::PIECE) {
                let (len, stride) = (values.len(), values.len());
                let piece = TypedRuns { values, len, stride, count: 1, index: 0, index_step: 0 };
                lanes::runs(&mut self.min, at + run, &piece);
                lanes::runs(&mut self.max, at + run, &piece);
            }
        }
    }

    #[inline]
    fn one(&mut self, at: usize, value: T, _: u64) {
        self.min.take_short(at, &[value], 0);
        self.max.take_short(at, &[value], 0);
    }

    #[inline]
    fn state(&self, slot: usize) -> Self::State {
        (self.min.state(slot), self.max.state(slot))
    }

    #[inline]
    fn join(&mut self, slot: usize, later: Self::State) {
        self.min.join(slot, later.0);
        self.max.join(slot, later.1);
    }

    fn takes_statistics(&self) -> bool {
        true
    }

    fn fold_statistics(&mut self, at: usize, known: &Statistics) {
        TypedAccumulator::fold_statistics(&mut self.min, at, known);
        TypedAccumulator::fold_statistics(&mut self.max, at, known);
    }

    fn finish(&self, slot: usize, _: u64, out: &mut [f64]) {
        (out[0], out[1]) = (self.min.result(slot), self.max.result(slot));
    }
}
