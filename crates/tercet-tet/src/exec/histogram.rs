//! Histograms: one visit for the range unless it is given, and one for the counts.

use std::sync::Arc;

use tercet_kernel::{Op, Outliers, TINY_RANGE, bin_width};

use super::drive::{self, Folded};
use super::job::Job;
use crate::error::ErrorKind;
use crate::query::resolved::Operation;

/// Histogram counts of all output elements.
#[derive(Debug)]
pub(crate) struct Histogram {
    /// Counts of the bins of each output element.
    pub(crate) counts: Vec<f64>,
    /// Bin edges; `None` if no element is finite.
    pub(crate) edges: Option<Vec<f64>>,
    /// Number of values below and above the range, if they are in no bin.
    pub(crate) outside: Option<[u64; 2]>,
    pub(crate) elements: u64,
    pub(crate) skipped: u64,
}

/// Counts elements in bins of equal width over `range`, or over the minimum and maximum of the finite elements.
pub(crate) fn histogram(
    job: &Job<'_>,
    operation: &Operation,
    bins: u32,
    range: Option<(f64, f64)>,
) -> Result<Histogram, ErrorKind> {
    let mut ranges: Arc<[[f64; 2]]> = match range {
        Some((min, max)) => [[min, max]].into(),
        None => finite_ranges(job, operation)?,
    };
    let outliers = job.outliers;
    if outliers == Outliers::Separate {
        ranges = ranges.iter().copied().map(widened).collect();
    }
    let first = ranges.first().copied();
    let op = Op::Histogram { bins: bins as usize, ranges, outliers };
    let Folded { values: mut counts, elements, skipped, .. } = drive::fold(job, &op, &operation.roles)?;
    let outside = (outliers == Outliers::Separate).then(|| take_outside(&mut counts, bins as usize));
    let edges = first.filter(|range| !range[0].is_nan()).map(|[min, max]| edges(min, max, bins, outliers));
    Ok(Histogram { counts, edges, outside, elements, skipped })
}

/// The range of a single value, made wider as by NumPy; other ranges as they are.
fn widened([min, max]: [f64; 2]) -> [f64; 2] {
    if min < max || min.is_nan() { [min, max] } else { [min - 0.5, max + 0.5] }
}

/// Removes the two numbers after the bins of each output element; returns their sums.
fn take_outside(counts: &mut Vec<f64>, bins: usize) -> [u64; 2] {
    let mut outside = [0.0; 2];
    for slot in counts.chunks_exact(bins + 2) {
        outside[0] += slot[bins];
        outside[1] += slot[bins + 1];
    }
    let mut number = 0..;
    counts.retain(|_| number.next().is_some_and(|number: usize| number % (bins + 2) < bins));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts are whole numbers")]
    outside.map(|count| count as u64)
}

/// Range of the finite values of each output element; NaN if no value is finite. Statistics of chunks have the range of all
/// values, which is that of the finite ones if both of its bounds are.
fn finite_ranges(job: &Job<'_>, operation: &Operation) -> Result<Arc<[[f64; 2]]>, ErrorKind> {
    let as_ranges = |values: &[f64]| Arc::from(values.as_chunks::<2>().0);
    let resolved = job.resolved;
    let is_plain =
        resolved.filter.is_none() && resolved.positions.is_none() && resolved.values.decode.is_none();
    let is_free = is_plain && job.statistics && job.has_statistics();
    if is_free || !job.element().is_float() {
        let ranges: Arc<[[f64; 2]]> = as_ranges(&drive::fold(job, &Op::Range, &operation.roles)?.values);
        if !ranges.iter().flatten().any(|bound| bound.is_infinite()) {
            return Ok(ranges);
        }
    }
    Ok(as_ranges(&drive::fold(job, &Op::FiniteRange, &operation.roles)?.values))
}

fn edges(min: f64, max: f64, bins: u32, outliers: Outliers) -> Vec<f64> {
    let width = bin_width(min, max, f64::from(bins));
    let is_single = outliers == Outliers::InEndBins && max - min < TINY_RANGE;
    let inner = (1..bins).map(|bin| if is_single { max } else { min + f64::from(bin) * width });
    std::iter::once(min).chain(inner).chain([max]).collect()
}
