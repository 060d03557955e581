//! Covariance and correlation matrices of the columns of a table, in one visit.

use std::ops::Range;

use tercet_core::tensor::OutOfMemory;
use tercet_core::with_element;
use tercet_kernel::Covariance;

use super::dense;
use super::drive::as_values;
use super::job::{Job, Scope};
use super::number::Number;
use super::predicate::Predicate;
use super::task::to_usize;
use super::visit::Visitor;
use crate::error::ErrorKind;
use crate::query::resolved::Operation;

/// A square matrix with one number per pair of variables.
#[derive(Debug)]
pub(crate) struct Matrix {
    /// Values, row-major.
    pub(crate) values: Vec<f64>,
    /// Number of variables.
    pub(crate) order: usize,
    pub(crate) elements: u64,
}

/// Bytes of a band of observations, as f64.
const BAND: u64 = if cfg!(test) { 256 } else { 8 << 20 };
/// Arrays of the size of a band that a thread holds: stored, aligned, decoded and transposed values.
const COPIES: u64 = 4;
/// Maximum number of partial results.
const SEGMENTS: usize = 8;

/// Covariance or correlation matrix of the variables. `operation` reduces the axis of the observations.
pub(crate) fn matrix(job: &Job<'_>, operation: &Operation, correlation: bool) -> Result<Matrix, ErrorKind> {
    let axis = operation.axes.first().copied().unwrap_or(0);
    let axes = job.plan.selection.axes();
    let (observations, variables) = (axes[axis].count(), axes[1 - axis].count());
    let order = to_usize(variables);
    let bands = bands(job, axis, observations, variables);
    let chunk_of =
        |position: u64| (axes[axis].start + position * axes[axis].step) / job.plan.grid.chunk_shape()[axis];
    // Chunks longer than a band are decoded once for all of them.
    let continues = |band: &(u64, u64)| band.0 > 0 && chunk_of(band.0 - 1) == chunk_of(band.0);
    let kept = if bands.iter().any(continues) { job.budget / 4 } else { 0 };
    let visitor = |kept: u64| {
        // The segments are distributed to the threads, so that each reads what it needs.
        let mut visitor = dense::visitor(Scope { parallel: false, ..job.scope() });
        visitor.chunks.keep_decoded(kept);
        visitor
    };
    let covariance = |bands: &[(u64, u64)], visitor: &Visitor<'_>| {
        with_element!(job.plan.grid.element(), |T| {
            let mut total = Covariance::new(order);
            for band in bands {
                job.progress.check()?;
                total.merge(&band_covariance::<T>(job, visitor, axis, *band)?);
            }
            Ok(total)
        })
    };
    // Values that are not finite may be damaged ones: checksums first.
    let shared = visitor(kept);
    let threads = to_usize(job.budget / 2 / (COPIES * band_bytes(job))).max(1);
    let bytes: u64 = job.plan.chunks.iter().map(|chunk| chunk.stored.raw_len).sum();
    let partials =
        if kept == 0 || shared.chunks.are_mapped() || shared.chunks.keeps(bytes, job.plan.chunks.len()) {
            let segments = segments(&bands, SEGMENTS, |_| true);
            let found = job.each_with(threads, &segments, || (), |(), bands| covariance(bands, &shared));
            shared.chunks.finish().and(found)?
        } else {
            // Which chunks are decoded again must not depend on the threads: segments share neither chunks nor memory. Each
            // has memory for the chunks of one band.
            let rows = chunk_of(observations - 1) - chunk_of(0) + 1;
            let most = to_usize(kept / bytes.div_ceil(rows).max(1)).clamp(1, SEGMENTS);
            let segments = segments(&bands, most, |band| !continues(band));
            job.each_with(
                threads,
                &segments,
                || (),
                |(), bands| {
                    let visitor = visitor(kept / segments.len() as u64);
                    let found = covariance(bands, &visitor);
                    visitor.chunks.finish().and(found)
                },
            )?
        };
    let mut total = Covariance::new(order);
    for partial in &partials {
        total.merge(partial);
    }
    let values = if correlation { total.correlations() } else { total.covariances() };
    Ok(Matrix { values, order, elements: job.plan.element_count() })
}

/// Splits bands into at most `most` segments of similar length, before bands that may begin one.
fn segments(bands: &[(u64, u64)], most: usize, begins: impl Fn(&(u64, u64)) -> bool) -> Vec<&[(u64, u64)]> {
    let each = bands.len().div_ceil(most).max(1);
    let mut segments = Vec::with_capacity(most);
    let mut start = 0;
    for (end, band) in bands.iter().enumerate().skip(1) {
        if end - start >= each && begins(band) {
            segments.push(&bands[start..end]);
            start = end;
        }
    }
    segments.push(&bands[start..]);
    segments
}

/// Bytes of a band as f64, of which two at least fit in half of the budget with the memory that they need.
fn band_bytes(job: &Job<'_>) -> u64 {
    BAND.min(job.budget / (4 * COPIES)).max(1)
}

/// Ranges of observations that fit in memory; complete chunks where those fit.
fn bands(job: &Job<'_>, axis: usize, observations: u64, variables: u64) -> Vec<(u64, u64)> {
    let most = (band_bytes(job) / (variables * 8)).max(1);
    let slice = job.plan.selection.axes()[axis];
    let chunk = job.plan.grid.chunk_shape()[axis];
    let mut bands = Vec::new();
    let mut start = 0;
    while start < observations {
        let mut end = (start + most).min(observations);
        // Back to a chunk boundary, if the band crosses one.
        let last_chunk = (slice.start + (end - 1) * slice.step) / chunk * chunk;
        let edge = last_chunk.saturating_sub(slice.start).div_ceil(slice.step);
        if end < observations && edge > start {
            end = edge;
        }
        bands.push((start, end));
        start = end;
    }
    bands
}

/// Moments of a band of observations.
fn band_covariance<T: Number>(
    job: &Job<'_>,
    visitor: &Visitor<'_>,
    axis: usize,
    (start, end): (u64, u64),
) -> Result<Covariance, ErrorKind> {
    let mut ranges: Vec<Range<u64>> =
        job.plan.selection.axes().iter().map(|slice| 0..slice.count()).collect();
    let order = to_usize(ranges[1 - axis].end);
    ranges[axis] = start..end;
    let rows = to_usize(end - start);
    let mut bytes = vec![0; rows * order * size_of::<T>()];
    dense::write(visitor, &ranges, &mut bytes, &dense::Copy { size: size_of::<T>() })?;
    let count = rows * order;
    let mut values: Vec<f64> = Vec::new();
    values.try_reserve_exact(count).map_err(|_| OutOfMemory { bytes: count * 8 })?;
    if let Some(decode) = &job.resolved.values.decode {
        values.resize(count, 0.0);
        decode.gather(T::ELEMENT, &bytes, 1, &mut values);
    } else {
        let mut aligned = Vec::new();
        let missing = job.resolved.missing_filter(T::ELEMENT);
        let missing = missing.map(|filter| Predicate::<T>::new(&filter, job.resolved.fills()));
        let is_missing = |value: T| missing.as_ref().is_some_and(|missing| !missing.passes(value));
        let number = |&value: &T| if is_missing(value) { f64::NAN } else { value.to_f64() };
        values.extend(as_values::<T>(&bytes, &mut aligned).iter().map(number));
    }
    // Observations are stored one after the other.
    let table = if axis == 0 {
        values
    } else {
        (0..rows)
            .flat_map(|row| (0..order).map(move |of| (row, of)))
            .map(|(row, of)| values[of * rows + row])
            .collect()
    };
    if let Some(at) = table.iter().position(|value| !value.is_finite()) {
        let (row, of) = (start + (at / order) as u64, (at % order) as u64);
        let position = if axis == 0 { [row, of] } else { [of, row] };
        return Err(ErrorKind::NotFinite { dataset: job.dataset.name().into(), position: position.into() });
    }
    Ok(Covariance::from_table(table, order))
}
