//! Argmin and argmax: the index of the minimum or maximum.

use tercet_core::tensor::OutOfMemory;

use crate::compute::Compute;
use crate::extreme::{best_of, better, is_better, worst};
use crate::lanes::{Block, Kernel, Target, Tile, by_lanes};
use crate::sum::to_f64;
use crate::typed::{TypedAccumulator, filled};

/// Index of an empty slot, greater than any real index: the first value of a slot always replaces it.
const NONE: u64 = u64::MAX;

/// Argmin or argmax: index of the first minimum or maximum that is not NaN; −1 if all values are NaN.
#[derive(Debug)]
pub(crate) struct Arg<T, const MAX: bool> {
    best: Vec<T>,
    /// Index of the best value; `NONE` for an empty slot.
    index: Vec<u64>,
}

impl<T: Compute, const MAX: bool> Arg<T, MAX> {
    pub(crate) fn new(slots: usize) -> Result<Self, OutOfMemory> {
        Ok(Self { best: filled(worst::<T, MAX>(), slots)?, index: filled(NONE, slots)? })
    }

    #[inline(always)]
    fn put(&mut self, at: usize, value: T, index: u64) {
        let (best, earlier) = (&mut self.best[at], &mut self.index[at]);
        if is_better::<T, MAX>(value, *best) || value == *best && index < *earlier {
            (*best, *earlier) = (value, index);
        }
    }
}

impl<T: Compute, const MAX: bool> Kernel<T> for Arg<T, MAX> {
    /// Best values and the step numbers at which they occurred.
    type Lanes<const N: usize> = ([T; N], [T::Ordinal; N]);
    const HEAVY: bool = true;
    const STEPS: usize = 128;
    const ROWS: usize = 16;

    #[inline(always)]
    fn start<const N: usize>(&self, _: Target, _: &[T; N]) -> Self::Lanes<N> {
        ([worst::<T, MAX>(); N], [T::NO_ORDINAL; N])
    }

    #[inline(always)]
    fn step<const N: usize>((best, place): &mut Self::Lanes<N>, values: &[T; N], number: u32) {
        let number = T::ordinal(number);
        for lane in 0..N {
            let improves = is_better::<T, MAX>(values[lane], best[lane]);
            place[lane] = if improves { number } else { place[lane] };
            best[lane] = better::<T, MAX>(values[lane], best[lane]);
        }
    }

    #[inline(always)]
    fn take_columns<const N: usize>(
        &mut self,
        at: usize,
        (best, place): &Self::Lanes<N>,
        tile: &Tile<'_, T>,
    ) {
        // Rarely true: most values are worse than those before them.
        let mut changes = false;
        if let Some(so_far) = self.best[at..].first_chunk::<N>() {
            for lane in 0..N {
                changes |= is_better::<T, MAX>(best[lane], so_far[lane]) | (best[lane] == so_far[lane]);
            }
        }
        if !changes {
            return;
        }
        for lane in 0..N {
            if place[lane] != T::NO_ORDINAL {
                let row = usize::try_from(place[lane].into()).unwrap_or(usize::MAX);
                self.put(at + lane, best[lane], tile.indices[row]);
            } else if self.best[at + lane] == worst::<T, MAX>() {
                // All values are NaN, or the best value equals the worst possible value.
                let found = tile.column(lane).position(|value| value == worst::<T, MAX>());
                if let Some(row) = found {
                    self.put(at + lane, worst::<T, MAX>(), tile.indices[row]);
                }
            }
        }
    }

    #[inline(always)]
    fn take_run<const N: usize>(&mut self, at: usize, (best, _): &Self::Lanes<N>, block: &Block<'_, T, N>) {
        let best = best_of::<T, MAX, N>(best);
        let best = block.tail.iter().fold(best, |best, &value| better::<T, MAX>(value, best));
        let (so_far, earlier) = (self.best[at], self.index[at]);
        // Rarely taken: most values are only compared.
        if (is_better::<T, MAX>(best, so_far) || best == so_far && block.index < earlier)
            && let Some(place) = block.values().position(|value| value == best)
        {
            self.put(at, best, block.index + place as u64);
        }
    }

    #[inline(always)]
    fn take_short(&mut self, at: usize, values: &[T], index: u64) {
        for (&value, index) in values.iter().zip(index..) {
            self.put(at, value, index);
        }
    }
}

impl<T: Compute, const MAX: bool> TypedAccumulator for Arg<T, MAX> {
    type Value = T;
    type State = (T, u64);
    const INDEXED: bool = true;

    fn fresh(&self, slots: usize) -> Result<Self, OutOfMemory> {
        Self::new(slots)
    }

    fn clear(&mut self) {
        self.best.fill(worst::<T, MAX>());
        self.index.fill(NONE);
    }

    fn len(&self) -> usize {
        self.best.len()
    }

    by_lanes!();

    #[inline]
    fn state(&self, slot: usize) -> (T, u64) {
        (self.best[slot], self.index[slot])
    }

    #[inline]
    fn join(&mut self, slot: usize, (best, index): (T, u64)) {
        self.put(slot, best, index);
    }

    fn finish(&self, slot: usize, _: u64, out: &mut [f64]) {
        out[0] = if self.index[slot] == NONE { -1.0 } else { to_f64(self.index[slot]) };
    }
}
