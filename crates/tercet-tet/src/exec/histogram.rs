//! Histograms: one visit for the range unless it is given, and one for the counts.

use std::sync::Arc;

use tercet_kernel::{Op, TINY_RANGE, bin_width};

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
    let ranges: Arc<[[f64; 2]]> = match range {
        Some((min, max)) => [[min, max]].into(),
        None => finite_ranges(job, operation)?,
    };
    let first = ranges.first().copied();
    let op = Op::Histogram { bins: bins as usize, ranges };
    let Folded { values, elements, skipped } = drive::fold(job, &op, &operation.roles)?;
    let edges = first.filter(|range| !range[0].is_nan()).map(|[min, max]| edges(min, max, bins));
    Ok(Histogram { counts: values, edges, elements, skipped })
}

/// Range of the finite values of each output element; NaN if no value is finite.
fn finite_ranges(job: &Job<'_>, operation: &Operation) -> Result<Arc<[[f64; 2]]>, ErrorKind> {
    let as_ranges = |values: &[f64]| Arc::from(values.as_chunks::<2>().0);
    let ranges: Arc<[[f64; 2]]> = as_ranges(&drive::fold(job, &Op::Range, &operation.roles)?.values);
    if ranges.iter().flatten().any(|bound| bound.is_infinite()) {
        return Ok(as_ranges(&drive::fold(job, &Op::FiniteRange, &operation.roles)?.values));
    }
    Ok(ranges)
}

fn edges(min: f64, max: f64, bins: u32) -> Vec<f64> {
    let width = bin_width(min, max, f64::from(bins));
    let inner = (1..bins).map(|bin| if max - min < TINY_RANGE { max } else { min + f64::from(bin) * width });
    std::iter::once(min).chain(inner).chain([max]).collect()
}
