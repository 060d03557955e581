//! Moments: count, mean and variance.
//!
//! A mean is a pair of floats; the second holds the rounding error of the first. Squares are of differences from the
//! current mean. Variances therefore keep their precision if the mean is far from zero.

use tercet_core::tensor::OutOfMemory;

use crate::compute::Compute;
use crate::lanes::{Block, Kernel, Target, Tile, across, by_lanes};
use crate::sum::compensated;
use crate::typed::{TypedAccumulator, filled};

/// Cancellation limit. Squared differences are from the current mean; if their sum exceeds the true sum of squares by
/// more than this factor, they are computed again from the mean of the block. Each factor of 2 costs a bit.
const CANCELLED: f64 = 1.125;

/// Count, mean and variance of each slot: three numbers. Infinities make the variance NaN.
///
/// With `SKIP`, NaN values are skipped; otherwise one NaN makes all results of its slot NaN.
#[derive(Debug)]
pub(crate) struct Moments<T, const SKIP: bool> {
    number: Vec<f64>,
    /// Mean, relative to the pivot.
    mean: Vec<f64>,
    rest: Vec<f64>,
    /// Sum of squared differences from the mean, and the rounding error of its additions.
    squares: Vec<f64>,
    lost: Vec<f64>,
    /// Pivot that means are relative to, for integers; empty for floats.
    pivot: Vec<T>,
}

/// Moments: count, mean, rest of the mean, squares, rest of the squares.
type Parts = (f64, f64, f64, f64, f64);

/// Settled state of a slot: moments and pivot.
pub(crate) type State<T> = (Parts, T);

/// Moments of one block of values: the mean is `shift + off`.
#[derive(Clone, Copy, Debug)]
struct BlockMoments {
    number: f64,
    shift: f64,
    off: f64,
    squares: f64,
    lost: f64,
    /// Whether too many digits cancelled.
    cancelled: bool,
}

impl BlockMoments {
    /// Computes moments from the count, the sum of differences from `shift`, the sum of their squares and its rounding
    /// error.
    #[inline(always)]
    fn new(number: f64, shift: f64, sum: f64, (squares, lost): (f64, f64)) -> Self {
        let off = sum / number;
        let (about_mean, rounded) = two_sum(squares, -(sum * off));
        // Squares of values beyond 2^512 overflow; their differences from the mean may not.
        let cancelled = (about_mean * CANCELLED < squares) | about_mean.is_nan();
        let lost = lost + rounded;
        let lost = if lost.is_finite() { lost } else { 0.0 };
        let (about_mean, lost) = if about_mean < 0.0 { (0.0, 0.0) } else { (about_mean, lost) };
        Self { number, shift, off, squares: about_mean, lost, cancelled }
    }

    #[inline(always)]
    fn parts(&self) -> Parts {
        (self.number, self.shift, self.off, self.squares, self.lost)
    }

    #[inline(always)]
    fn mean(&self) -> f64 {
        let mean = self.shift + self.off;
        if mean.is_finite() { mean } else { 0.0 }
    }
}

impl<T: Compute, const SKIP: bool> Moments<T, SKIP> {
    pub(crate) fn new(slots: usize) -> Result<Self, OutOfMemory> {
        let zeros = || filled(0.0, slots);
        let pivot = filled(T::default(), if T::FLOAT { 0 } else { slots })?;
        let (number, mean, rest) = (zeros()?, zeros()?, zeros()?);
        Ok(Self { number, mean, rest, squares: zeros()?, lost: zeros()?, pivot })
    }

    /// Pivot of a slot.
    #[inline(always)]
    fn pivot(&self, at: usize, first: T) -> T {
        if T::FLOAT {
            T::default()
        } else if self.number[at] > 0.0 {
            self.pivot[at]
        } else {
            first
        }
    }

    /// Shift of a slot: the current mean, or the first value of an empty slot.
    #[inline(always)]
    fn shift(&self, at: usize, first: T, pivot: T) -> f64 {
        let first = if T::FLOAT { first.to_f64() } else { first.minus(pivot) };
        let shift = if self.number[at] > 0.0 { self.mean[at] } else { first };
        if shift.is_finite() { shift } else { 0.0 }
    }

    /// Whether cancellation matters. It does not if the difference of the means, which is merged as well, is weighted
    /// with more values than the block has.
    #[inline(always)]
    fn is_doubtful(&self, at: usize, found: &BlockMoments) -> bool {
        found.cancelled & (self.number[at] < found.number)
    }

    /// Merges a block into a slot.
    #[inline(always)]
    fn put(&mut self, at: usize, found: BlockMoments) {
        self.add(at, found.parts());
    }

    /// Merges moments into a slot.
    #[inline(always)]
    fn add(&mut self, at: usize, later: Parts) {
        let means = (&mut self.number[at], &mut self.mean[at], &mut self.rest[at]);
        join(means, (&mut self.squares[at], &mut self.lost[at]), later);
    }

    fn measure<const N: usize>(
        &self,
        at: usize,
        lanes: &Lanes<T, N>,
        block: &Block<'_, T, N>,
    ) -> BlockMoments {
        let mut found = Self::found_run(lanes, block);
        if self.is_doubtful(at, &found) {
            let again = Lanes::new([lanes.pivot[0]; N], [found.mean(); N]);
            found = Self::found_run(&block.fill::<Self>(again), block);
        }
        found
    }

    #[inline(always)]
    fn found_run<const N: usize>(lanes: &Lanes<T, N>, block: &Block<'_, T, N>) -> BlockMoments {
        let mut tail = Lanes::new([lanes.pivot[0]], [lanes.shift[0]]);
        for &value in block.tail {
            Self::step(&mut tail, &[value], 0);
        }
        let sum = across(&lanes.sum) + tail.sum[0];
        let (mut squares, mut lost) = (tail.squares[0], tail.lost[0]);
        for lane in 0..N {
            compensated(&mut squares, &mut lost, lanes.squares[lane]);
            lost += lanes.lost[lane];
        }
        let number = if SKIP {
            across(&lanes.number) + tail.number[0]
        } else {
            crate::sum::to_f64(block.len() as u64)
        };
        BlockMoments::new(number, lanes.shift[0], sum, (squares, lost))
    }

    fn take_few(&mut self, at: usize, values: impl Iterator<Item = T> + Clone) {
        let Some(first) = values.clone().next() else { return };
        let pivot = self.pivot(at, first);
        let about = |shift: f64| {
            let mut lanes = Lanes::new([pivot], [shift]);
            let mut number = 0.0;
            for value in values.clone() {
                Self::step(&mut lanes, &[value], 0);
                number += 1.0;
            }
            lanes.found(0, if SKIP { lanes.number[0] } else { number })
        };
        let mut found = about(self.shift(at, first, pivot));
        if self.is_doubtful(at, &found) {
            found = about(found.mean());
        }
        self.set_pivot(at, pivot);
        self.put(at, found);
    }

    #[inline(always)]
    fn set_pivot(&mut self, at: usize, pivot: T) {
        if !T::FLOAT {
            self.pivot[at] = pivot;
        }
    }
}

/// Sum and rounding error.
#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let added = sum - a;
    (sum, (a - (sum - added)) + (b - added))
}

/// Square of `x + rest`, in two parts.
#[inline(always)]
fn square(x: f64, rest: f64) -> (f64, f64) {
    // The high half of the digits, whose square is exact.
    let high = f64::from_bits(x.to_bits() & !0x7ff_ffff);
    let (low, square) = (x - high, x * x);
    let off = ((high * high - square) + 2.0 * high * low) + low * low + 2.0 * x * rest;
    (square, if off.is_finite() { off } else { 0.0 })
}

/// Merges moments.
#[inline(always)]
fn join(
    (number, mean, rest): (&mut f64, &mut f64, &mut f64),
    (squares, lost): (&mut f64, &mut f64),
    later: Parts,
) {
    let all = *number + later.0;
    let weight = later.0 / all;
    let (difference, off) = two_sum(later.1, -*mean);
    let (difference, off) = two_sum(difference, off + (later.2 - *rest));
    let (between, between_off) = square(difference, off);
    let between_weight = *number * later.0 / all;
    let is_finite = difference.is_finite();
    // Infinite means follow the addition rules of infinities.
    let off = if is_finite { *rest + difference * weight } else { later.1 + later.2 };
    // An empty slot takes the mean as it is: the sum of both parts would lose the digits of the second.
    let is_first = (*number == 0.0) & is_finite;
    let (mean_so_far, off) = if is_first { (later.1, later.2) } else { (*mean, off) };
    let sum = mean_so_far + off;
    let rounded = mean_so_far - (sum - off) + (off - (sum - (sum - off)));
    let is_some = later.0 > 0.0;
    *rest = if !is_some {
        *rest
    } else if is_finite & sum.is_finite() {
        rounded
    } else {
        0.0
    };
    *mean = if is_some { sum } else { *mean };
    compensated(squares, lost, if is_some { later.3 } else { 0.0 });
    let is_joined = is_some & !is_first;
    compensated(squares, lost, if is_joined { between * between_weight } else { 0.0 });
    *lost += if is_joined { between_off * between_weight } else { 0.0 };
    *lost += if is_some { later.4 } else { 0.0 };
    *number = all;
}

/// Sums of differences from `pivot + shift` and of their squares; counts of values if NaN is skipped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes<T, const N: usize> {
    pivot: [T; N],
    shift: [f64; N],
    sum: [f64; N],
    squares: [f64; N],
    /// Rounding errors of the sums of squares.
    lost: [f64; N],
    number: [f64; N],
}

impl<T: Compute, const N: usize> Lanes<T, N> {
    #[inline(always)]
    fn new(pivot: [T; N], shift: [f64; N]) -> Self {
        let zeros = [0.0; N];
        Self { pivot, shift, sum: zeros, squares: zeros, lost: zeros, number: zeros }
    }

    /// Moments of a lane with `number` values.
    #[inline(always)]
    fn found(&self, lane: usize, number: f64) -> BlockMoments {
        BlockMoments::new(number, self.shift[lane], self.sum[lane], (self.squares[lane], self.lost[lane]))
    }

    #[inline(always)]
    fn add(&mut self, lane: usize, difference: f64) {
        self.sum[lane] += difference;
        let (squares, lost) = two_sum(self.squares[lane], difference * difference);
        self.squares[lane] = squares;
        self.lost[lane] += lost;
    }
}

impl<T: Compute, const SKIP: bool> Kernel<T> for Moments<T, SKIP> {
    type Lanes<const N: usize> = Lanes<T, N>;
    const HEAVY: bool = true;
    const STEPS: usize = 128;

    #[inline(always)]
    fn start<const N: usize>(&self, target: Target, first: &[T; N]) -> Lanes<T, N> {
        let (mut pivot, mut shift) = ([T::default(); N], [0.0; N]);
        match target {
            Target::One(at) => {
                pivot = [self.pivot(at, first[0]); N];
                shift = [self.shift(at, first[0], pivot[0]); N];
            }
            Target::Each(at) => {
                for lane in 0..N {
                    pivot[lane] = self.pivot(at + lane, first[lane]);
                    shift[lane] = self.shift(at + lane, first[lane], pivot[lane]);
                }
            }
        }
        Lanes::new(pivot, shift)
    }

    #[inline(always)]
    fn step<const N: usize>(lanes: &mut Lanes<T, N>, values: &[T; N], _: u32) {
        for lane in 0..N {
            let x = if T::FLOAT { values[lane].to_f64() } else { values[lane].minus(lanes.pivot[lane]) };
            let difference = x - lanes.shift[lane];
            if SKIP {
                let skip = x.is_nan();
                let difference = if skip { 0.0 } else { difference };
                lanes.add(lane, difference);
                lanes.number[lane] += if skip { 0.0 } else { 1.0 };
            } else {
                lanes.add(lane, difference);
            }
        }
    }

    #[inline(always)]
    fn take_columns<const N: usize>(&mut self, at: usize, lanes: &Lanes<T, N>, tile: &Tile<'_, T>) {
        let rows = crate::sum::to_f64(tile.rows.len() as u64);
        let number = |lane: usize| if SKIP { lanes.number[lane] } else { rows };
        let mut cancelled = false;
        for lane in 0..N {
            cancelled |= self.is_doubtful(at + lane, &lanes.found(lane, number(lane)));
        }
        let mut again = *lanes;
        if cancelled {
            for lane in 0..N {
                again.shift[lane] = lanes.found(lane, number(lane)).mean();
            }
            again = tile.fill::<N, Self>(Lanes::new(lanes.pivot, again.shift));
        }
        for lane in 0..N {
            self.set_pivot(at + lane, lanes.pivot[lane]);
        }
        // Arrays of all states, so that the loop is vectorized.
        let states = (
            self.number[at..].first_chunk_mut::<N>(),
            self.mean[at..].first_chunk_mut::<N>(),
            self.rest[at..].first_chunk_mut::<N>(),
            self.squares[at..].first_chunk_mut::<N>(),
            self.lost[at..].first_chunk_mut::<N>(),
        );
        let (Some(numbers), Some(means), Some(rests), Some(squares), Some(lost)) = states else { return };
        for lane in 0..N {
            let found = again.found(lane, number(lane));
            let means = (&mut numbers[lane], &mut means[lane], &mut rests[lane]);
            join(means, (&mut squares[lane], &mut lost[lane]), found.parts());
        }
    }

    #[inline(always)]
    fn take_run<const N: usize>(&mut self, at: usize, lanes: &Lanes<T, N>, block: &Block<'_, T, N>) {
        let found = self.measure(at, lanes, block);
        self.set_pivot(at, lanes.pivot[0]);
        self.put(at, found);
    }

    #[inline(always)]
    fn take_short(&mut self, at: usize, values: &[T], _: u64) {
        self.take_few(at, values.iter().copied());
    }
}

impl<T: Compute, const SKIP: bool> TypedAccumulator for Moments<T, SKIP> {
    type Value = T;
    type State = State<T>;
    const WIDTH: usize = 3;

    fn fresh(&self, slots: usize) -> Result<Self, OutOfMemory> {
        Self::new(slots)
    }

    fn clear(&mut self) {
        for states in [&mut self.number, &mut self.mean, &mut self.rest, &mut self.squares, &mut self.lost] {
            states.fill(0.0);
        }
        self.pivot.fill(T::default());
    }

    fn len(&self) -> usize {
        self.number.len()
    }

    by_lanes!();

    #[inline]
    fn state(&self, slot: usize) -> State<T> {
        let pivot = if T::FLOAT { T::default() } else { self.pivot[slot] };
        let parts =
            (self.number[slot], self.mean[slot], self.rest[slot], self.squares[slot], self.lost[slot]);
        (parts, pivot)
    }

    #[inline]
    fn join(&mut self, slot: usize, ((number, mean, rest, squares, lost), pivot): State<T>) {
        if number == 0.0 {
            return;
        }
        let own = self.pivot(slot, pivot);
        self.set_pivot(slot, own);
        let from_pivot = if T::FLOAT { 0.0 } else { pivot.minus(own) };
        // The mean of floats has no pivot, and may be infinite.
        let (mean, off) = if T::FLOAT { (mean, 0.0) } else { two_sum(from_pivot, mean) };
        self.add(slot, (number, mean, rest + off, squares, lost));
    }

    fn finish(&self, slot: usize, _: u64, out: &mut [f64]) {
        let number = self.number[slot];
        if number == 0.0 {
            out.copy_from_slice(&[0.0, f64::NAN, f64::NAN]);
            return;
        }
        let mean = self.mean[slot] + self.rest[slot];
        let mean = if T::FLOAT { mean } else { self.pivot[slot].to_f64() + mean };
        let squares = self.squares[slot];
        let squares = if squares.is_finite() { squares + self.lost[slot] } else { squares };
        out.copy_from_slice(&[number, mean + 0.0, squares / number]);
    }
}
