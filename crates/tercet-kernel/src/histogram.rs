//! Histograms with bins of equal width, and the range of finite values.

use std::marker::PhantomData;

use tercet_core::tensor::OutOfMemory;

use crate::compute::Compute;
use crate::simd::{Work, vectorized};
use crate::sum::to_f64;
use crate::typed::{TypedAccumulator, TypedRuns, filled};

/// Ranges narrower than this count as a single value.
pub const TINY_RANGE: f64 = f64::EPSILON;

/// Bin width. Does not overflow if the range exceeds the largest float.
pub fn bin_width(min: f64, max: f64, bins: f64) -> f64 {
    let range = max - min;
    if range.is_finite() { range / bins } else { max / bins - min / bins }
}

/// Range `[min, max]` of the finite values; NaN if no value is finite.
#[derive(Debug)]
pub(crate) struct FiniteRange<T> {
    range: Vec<[f64; 2]>,
    value: PhantomData<T>,
}

impl<T: Compute> FiniteRange<T> {
    pub(crate) fn new(slots: usize) -> Result<Self, OutOfMemory> {
        Ok(Self { range: filled([f64::INFINITY, f64::NEG_INFINITY], slots)?, value: PhantomData })
    }
}

/// Computes the range of the finite values of a run.
struct RangeOf<'a, T>(&'a [T]);

impl<T: Compute> Work for RangeOf<'_, T> {
    type Output = [f64; 2];

    #[inline(always)]
    fn work(self) -> [f64; 2] {
        const LANES: usize = 16;
        let (mut min, mut max) = ([f64::INFINITY; LANES], [f64::NEG_INFINITY; LANES]);
        let (blocks, rest) = self.0.as_chunks::<LANES>();
        for block in blocks {
            for lane in 0..LANES {
                let value = block[lane].to_f64();
                // NaN is not smaller than infinity either.
                let is_finite = value.abs() < f64::INFINITY;
                let (low, high) = if is_finite { (value, value) } else { (f64::INFINITY, f64::NEG_INFINITY) };
                min[lane] = if low < min[lane] { low } else { min[lane] };
                max[lane] = if high > max[lane] { high } else { max[lane] };
            }
        }
        let rest = rest.iter().map(|value| value.to_f64()).filter(|value| value.is_finite());
        rest.for_each(|value| (min[0], max[0]) = (min[0].min(value), max[0].max(value)));
        let min = min.iter().copied().fold(f64::INFINITY, f64::min);
        [min, max.iter().copied().fold(f64::NEG_INFINITY, f64::max)]
    }
}

impl<T: Compute> TypedAccumulator for FiniteRange<T> {
    type Value = T;
    type State = [f64; 2];
    const WIDTH: usize = 2;

    fn fresh(&self, slots: usize) -> Result<Self, OutOfMemory> {
        Self::new(slots)
    }

    fn clear(&mut self) {
        self.range.fill([f64::INFINITY, f64::NEG_INFINITY]);
    }

    fn len(&self) -> usize {
        self.range.len()
    }

    fn rows(&mut self, at: usize, rows: &[&[T]], _: &[u64]) {
        for row in rows {
            for (slot, &value) in (at..).zip(*row) {
                self.one(slot, value, 0);
            }
        }
    }

    fn runs(&mut self, at: usize, runs: &TypedRuns<'_, T>) {
        for run in 0..runs.count {
            let range = vectorized(RangeOf(runs.run(run)));
            self.join(at + run, range);
        }
    }

    #[inline]
    fn one(&mut self, at: usize, value: T, _: u64) {
        let value = value.to_f64();
        if value.is_finite() {
            self.join(at, [value, value]);
        }
    }

    #[inline]
    fn state(&self, slot: usize) -> [f64; 2] {
        self.range[slot]
    }

    #[inline]
    fn join(&mut self, slot: usize, [min, max]: [f64; 2]) {
        let range = &mut self.range[slot];
        *range = [range[0].min(min), range[1].max(max)];
    }

    fn finish(&self, slot: usize, _: u64, out: &mut [f64]) {
        let [min, max] = self.range[slot];
        // Adding +0.0 turns −0.0 into +0.0.
        out.copy_from_slice(&if min <= max { [min + 0.0, max + 0.0] } else { [f64::NAN; 2] });
    }
}

/// Where values outside of the range of a histogram are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outliers {
    /// In the first and the last bin. Ranges narrower than [`TINY_RANGE`] count as a single value.
    InEndBins,
    /// In two more numbers after the bins: below and above the range. A value belongs to the bin whose edges enclose it;
    /// the last bin includes its upper edge.
    Separate,
}

impl Outliers {
    /// Number of counts beside the bins.
    pub(crate) fn width(self) -> usize {
        match self {
            Self::InEndBins => 0,
            Self::Separate => 2,
        }
    }
}

/// Histogram counts: one number per bin for each slot. NaN is not counted.
#[derive(Debug)]
pub(crate) struct Histogram<T> {
    counts: Vec<u64>,
    bins: Vec<Bins>,
    /// Numbers per slot: of the bins, and of the outliers.
    per_slot: usize,
    outliers: Outliers,
    value: PhantomData<T>,
}

/// Bins of one slot.
#[derive(Clone, Copy, Debug)]
struct Bins {
    min: f64,
    max: f64,
    width: f64,
    /// Whether all finite values are equal, or no value is finite. Then only infinities fall into the end bins.
    single: bool,
    last: usize,
}

impl Bins {
    /// Bin of a value that is not NaN. Values outside the range fall into the first or the last bin.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "casts saturate: values below go into the first bin, values above into the last"
    )]
    fn bin(&self, value: f64) -> usize {
        if self.single {
            return if value == f64::INFINITY { self.last } else { 0 };
        }
        let bin = ((value - self.min) / self.width) as usize;
        bin.min(self.last)
    }

    /// Bin of a value that is not NaN; the two numbers after the bins are those of values below and above the range.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the number of bins")]
    fn enclosing(&self, value: f64) -> usize {
        // The range is NaN if no value is finite.
        if !(self.min..=self.max).contains(&value) {
            return self.last + if value > self.min || value == f64::INFINITY { 2 } else { 1 };
        }
        if self.single {
            return 0;
        }
        let edge = |bin: usize| self.min + to_f64(bin as u64) * self.width;
        let distance = value - self.min;
        let distance = if distance.is_finite() {
            distance / self.width
        } else {
            value / self.width - self.min / self.width
        };
        let bin = (distance as usize).min(self.last);
        // The quotient is rounded; the edges decide.
        if bin > 0 && value < edge(bin) {
            bin - 1
        } else if bin < self.last && value >= edge(bin + 1) {
            bin + 1
        } else {
            bin
        }
    }
}

impl<T: Compute> Histogram<T> {
    /// Creates a histogram. `range` returns the range of a slot.
    pub(crate) fn new(
        bins: usize,
        outliers: Outliers,
        range: &dyn Fn(usize) -> [f64; 2],
        slots: usize,
    ) -> Result<Self, OutOfMemory> {
        let of = |[min, max]: [f64; 2]| Bins {
            min,
            max,
            width: bin_width(min, max, to_f64(bins as u64)),
            single: match outliers {
                Outliers::InEndBins => min.is_nan() || max - min < TINY_RANGE,
                Outliers::Separate => bin_width(min, max, to_f64(bins as u64)) <= 0.0,
            },
            last: bins.saturating_sub(1),
        };
        let mut own = filled(of([f64::NAN; 2]), slots)?;
        for (slot, own) in own.iter_mut().enumerate() {
            *own = of(range(slot));
        }
        let per_slot = bins + outliers.width();
        let counts = filled(0, slots.saturating_mul(per_slot))?;
        Ok(Self { counts, bins: own, per_slot, outliers, value: PhantomData })
    }

    #[inline(always)]
    fn run(&mut self, at: usize, values: &[T]) {
        let bins = self.bins[at];
        let counts = &mut self.counts[at * self.per_slot..(at + 1) * self.per_slot];
        let values = values.iter().map(|value| value.to_f64()).filter(|value| !value.is_nan());
        match self.outliers {
            Outliers::InEndBins => values.for_each(|value| counts[bins.bin(value)] += 1),
            Outliers::Separate => values.for_each(|value| counts[bins.enclosing(value)] += 1),
        }
    }
}

impl<T: Compute> TypedAccumulator for Histogram<T> {
    type Value = T;
    /// Unused: counts are merged by slot, not by state.
    type State = ();

    fn fresh(&self, slots: usize) -> Result<Self, OutOfMemory> {
        let mut bins = self.bins.clone();
        bins.resize(slots, Bins { min: f64::NAN, max: f64::NAN, width: 0.0, single: true, last: 0 });
        let counts = filled(0, slots.saturating_mul(self.per_slot))?;
        Ok(Self { counts, bins, per_slot: self.per_slot, outliers: self.outliers, value: PhantomData })
    }

    fn clear(&mut self) {
        self.counts.fill(0);
    }

    fn len(&self) -> usize {
        self.bins.len()
    }

    fn rows(&mut self, at: usize, rows: &[&[T]], _: &[u64]) {
        for row in rows {
            for (slot, value) in (at..).zip(*row) {
                self.run(slot, std::slice::from_ref(value));
            }
        }
    }

    fn runs(&mut self, at: usize, runs: &TypedRuns<'_, T>) {
        for run in 0..runs.count {
            self.run(at + run, runs.run(run));
        }
    }

    fn one(&mut self, at: usize, value: T, _: u64) {
        self.run(at, &[value]);
    }

    fn state(&self, _: usize) {}

    fn join(&mut self, _: usize, (): ()) {}

    fn merge_slot(&mut self, slot: usize, later: &Self, from: usize) {
        let later = &later.counts[from * self.per_slot..(from + 1) * self.per_slot];
        let own = &mut self.counts[slot * self.per_slot..(slot + 1) * self.per_slot];
        own.iter_mut().zip(later).for_each(|(own, later)| *own += later);
    }

    fn merge_own(&mut self, slot: usize, from: usize) {
        for bin in 0..self.per_slot {
            self.counts[slot * self.per_slot + bin] += self.counts[from * self.per_slot + bin];
        }
    }

    fn is_uniform(&self) -> bool {
        false
    }

    fn width(&self) -> usize {
        self.per_slot
    }

    fn finish(&self, slot: usize, _: u64, out: &mut [f64]) {
        let counts = &self.counts[slot * self.per_slot..(slot + 1) * self.per_slot];
        for (out, &count) in out.iter_mut().zip(counts) {
            *out = to_f64(count);
        }
    }
}
