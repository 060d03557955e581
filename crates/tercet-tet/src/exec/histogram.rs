//! Histograms: a visit for the range unless it is given, and one for the counts.

use super::drive::{self, Folded};
use super::fold::extreme::Range;
use super::fold::single::Single;
use super::fold::{Block, Fold, Rows};
use super::job::Job;
use super::number::Number;
use crate::error::ErrorKind;
use crate::query::resolved::Operation;

/// Counts of all output cells.
#[derive(Debug)]
pub(crate) struct Histogram {
    /// For each output cell the counts of its bins.
    pub(crate) counts: Vec<f64>,
    /// Where bins begin and where the last one ends; without a finite cell there are none.
    pub(crate) edges: Option<Vec<f64>>,
    pub(crate) elements: u64,
}

/// Ranges smaller than this are a single value.
const TINY: f64 = f64::EPSILON;

/// Counts cells in bins of equal width between `range`, or between the least and the greatest finite cell.
pub(crate) fn histogram(
    job: &Job<'_>,
    operation: &Operation,
    bins: u32,
    range: Option<(f64, f64)>,
) -> Result<Histogram, ErrorKind> {
    let ranges = match range {
        Some((min, max)) => vec![[min, max]],
        None => finite_ranges(job, operation)?,
    };
    let counts = Counts { bins: bins as usize, ranges: &ranges };
    let Folded { values, elements } = drive::fold(job, &counts, &operation.roles)?;
    let edges = ranges.first().filter(|range| !range[0].is_nan()).map(|&[min, max]| edges(min, max, bins));
    Ok(Histogram { counts: values, edges, elements })
}

/// The range of the finite cells of each output cell; NaN where there is none.
fn finite_ranges(job: &Job<'_>, operation: &Operation) -> Result<Vec<[f64; 2]>, ErrorKind> {
    let as_ranges = |values: &[f64]| values.as_chunks::<2>().0.to_vec();
    let ranges = as_ranges(&drive::fold(job, &Range, &operation.roles)?.values);
    if ranges.iter().flatten().any(|bound| bound.is_infinite()) {
        return Ok(as_ranges(&drive::fold(job, &FiniteRange, &operation.roles)?.values));
    }
    Ok(ranges)
}

fn edges(min: f64, max: f64, bins: u32) -> Vec<f64> {
    let width = width(min, max, f64::from(bins));
    let inner = (1..bins).map(|bin| if max - min < TINY { max } else { min + f64::from(bin) * width });
    std::iter::once(min).chain(inner).chain([max]).collect()
}

/// The width of a bin, also where the range is larger than the largest float.
fn width(min: f64, max: f64, bins: f64) -> f64 {
    let range = max - min;
    if range.is_finite() { range / bins } else { max / bins - min / bins }
}

/// `[min, max]` of the finite values; NaN if there is none.
struct FiniteRange;

impl Single for FiniteRange {
    const WIDTH: usize = 2;
    type State<T: Number> = (f64, f64);

    fn start<T: Number>(&self) -> (f64, f64) {
        (f64::INFINITY, f64::NEG_INFINITY)
    }
    fn add<T: Number>(&self, (min, max): &mut (f64, f64), value: T, _: u64) {
        let value = value.to_f64();
        if value.is_finite() {
            (*min, *max) = (min.min(value), max.max(value));
        }
    }
    fn merge<T: Number>(&self, (min, max): &mut (f64, f64), later: &(f64, f64)) {
        (*min, *max) = (min.min(later.0), max.max(later.1));
    }
    fn finish<T: Number>(&self, &(min, max): &(f64, f64), put: &mut dyn FnMut(f64)) {
        let there = min <= max;
        put(if there { min } else { f64::NAN });
        put(if there { max } else { f64::NAN });
    }
}

/// Counts in bins.
struct Counts<'r> {
    bins: usize,
    /// One for each output cell, or one for all.
    ranges: &'r [[f64; 2]],
}

/// The bins of one output cell.
#[derive(Clone, Copy, Debug)]
struct Bins {
    min: f64,
    width: f64,
    /// All finite values are one value, or there is none: then only infinities have a side.
    single: bool,
    last: usize,
}

impl Bins {
    /// The bin of a value that is not NaN: those outside the range go into the end bins.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "casts saturate: values below go into the first bin, values above into the last"
    )]
    fn of(&self, value: f64) -> usize {
        if self.single {
            return if value == f64::INFINITY { self.last } else { 0 };
        }
        let bin = ((value - self.min) / self.width) as usize;
        bin.min(self.last)
    }
}

/// The counts of a block of output cells.
#[derive(Clone, Debug)]
struct CountCells {
    counts: Vec<u64>,
    bins: Vec<Bins>,
}

impl Fold for Counts<'_> {
    type Cells<T: Number> = CountCells;

    fn cell_bytes<T: Number>(&self) -> usize {
        self.bins * 8 + size_of::<Bins>()
    }

    fn start<T: Number>(&self, block: &Block) -> CountCells {
        #[expect(clippy::cast_precision_loss, reason = "at most 4096 bins")]
        let of = |[min, max]: [f64; 2]| Bins {
            min,
            width: width(min, max, self.bins as f64),
            single: min.is_nan() || max - min < TINY,
            last: self.bins - 1,
        };
        let range = |cell: usize| match self.ranges {
            [all] => *all,
            each => each[block.global(cell)],
        };
        let cells = block.len();
        CountCells {
            counts: vec![0; cells * self.bins],
            bins: (0..cells).map(|cell| of(range(cell))).collect(),
        }
    }

    fn run<T: Number>(&self, cells: &mut CountCells, at: usize, values: &[T], _: u64) {
        let bins = cells.bins[at];
        let counts = &mut cells.counts[at * self.bins..(at + 1) * self.bins];
        for value in values.iter().map(|value| value.to_f64()).filter(|value| !value.is_nan()) {
            counts[bins.of(value)] += 1;
        }
    }

    fn rows<T: Number>(&self, cells: &mut CountCells, at: usize, rows: &Rows<'_, T>) {
        for row in 0..rows.count {
            for (column, &value) in rows.row(row).iter().enumerate() {
                self.run(cells, at + column, &[value], 0);
            }
        }
    }

    fn one<T: Number>(&self, cells: &mut CountCells, at: usize, value: T, index: u64) {
        self.run(cells, at, &[value], index);
    }

    fn merge<T: Number>(
        &self,
        (into, at): (&mut CountCells, usize),
        (later, from): (&CountCells, usize),
        count: usize,
    ) {
        let into = &mut into.counts[at * self.bins..(at + count) * self.bins];
        let later = &later.counts[from * self.bins..(from + count) * self.bins];
        into.iter_mut().zip(later).for_each(|(into, later)| *into += later);
    }

    fn merge_within<T: Number>(&self, cells: &mut CountCells, at: usize, from: usize, count: usize) {
        for i in 0..count * self.bins {
            cells.counts[at * self.bins + i] += cells.counts[from * self.bins + i];
        }
    }

    fn width(&self) -> usize {
        self.bins
    }

    #[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^53 values")]
    fn finish<T: Number>(&self, cells: CountCells) -> Vec<f64> {
        cells.counts.into_iter().map(|count| count as f64).collect()
    }
}
