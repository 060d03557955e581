//! Parts of a result that are computed one after the other, because all of it needs too much memory at once.

use std::ops::Range;

use tercet_core::Selection;
use tercet_core::tensor::{AxisSlice, OutOfMemory};

use crate::error::ErrorKind;
use crate::exec::job::Job;
use crate::query::resolved::Role;

/// A part of the selected positions: a range of each axis.
#[derive(Debug)]
pub(super) struct Part(Vec<Range<u64>>);

impl Part {
    /// The selected positions of the part.
    pub(super) fn selection(&self, whole: &Selection) -> Result<Selection, ErrorKind> {
        let axes = whole.axes().iter().zip(&self.0).map(|(slice, range)| {
            let last = slice.start + (range.end - 1) * slice.step;
            AxisSlice { start: slice.start + range.start * slice.step, stop: last + 1, step: slice.step }
        });
        let ends: Vec<u64> = whole.axes().iter().map(|slice| slice.stop).collect();
        Ok(Selection::new(axes.collect(), &ends)?)
    }

    /// Where the results of the part are in an array of results of these axes.
    pub(super) fn output_ranges(&self, roles: &[Role], axes: &[usize], shape: &[u64]) -> Vec<Range<u64>> {
        let ranges = axes.iter().zip(shape).map(|(&axis, &extent)| match roles[axis] {
            Role::Kept => self.0[axis].clone(),
            _ => 0..extent,
        });
        ranges.collect()
    }
}

/// Cuts the kept axes into parts of at most `most` results, if possible; `whole` is not cut. Parts consist of complete chunks
/// unless a single chunk has too many results.
pub(super) fn parts(job: &Job<'_>, roles: &[Role], whole: usize, most: u64) -> Vec<Part> {
    let axes = job.plan.selection.axes();
    let included = job.resolved.positions.as_ref().map(|positions| positions.axis);
    let can_be_cut =
        |axis: &usize| matches!(roles[*axis], Role::Kept) && *axis != whole && Some(*axis) != included;
    let mut extents: Vec<u64> = axes.iter().map(|slice| slice.count()).collect();
    let results = roles.iter().zip(&extents).filter_map(|(role, &extent)| role.output_len(extent));
    let mut results = results.fold(1, u64::saturating_mul);
    // First down to the extent of a chunk on each axis, then down to single positions.
    for is_chunk in [true, false] {
        for axis in (0..axes.len()).filter(can_be_cut) {
            if results <= most {
                break;
            }
            let least =
                if is_chunk { job.plan.grid.chunk_shape()[axis].div_ceil(axes[axis].step) } else { 1 };
            let others = results / extents[axis].max(1);
            let extent = (most / others.max(1)).clamp(least.min(extents[axis]), extents[axis]).max(1);
            results = others.saturating_mul(extent);
            extents[axis] = extent;
        }
    }
    let mut parts = vec![Vec::new()];
    for (axis, slice) in axes.iter().enumerate() {
        let ranges = ranges(*slice, job.plan.grid.chunk_shape()[axis], extents[axis]);
        let longer = |part: &Vec<Range<u64>>| {
            let part = part.clone();
            ranges.clone().into_iter().map(move |range| [&part[..], &[range]].concat()).collect::<Vec<_>>()
        };
        parts = parts.iter().flat_map(longer).collect();
    }
    parts.into_iter().map(Part).collect()
}

/// Ranges of at most `most` positions. A range that crosses the edge of a chunk ends at one, but the last one.
fn ranges(slice: AxisSlice, chunk: u64, most: u64) -> Vec<Range<u64>> {
    let count = slice.count();
    let mut ranges = Vec::new();
    let mut start = 0;
    while start < count {
        let mut end = start.saturating_add(most).min(count);
        let last_chunk = (slice.start + (end - 1) * slice.step) / chunk * chunk;
        let edge = last_chunk.saturating_sub(slice.start).div_ceil(slice.step);
        let is_edge = end == count || (slice.start + end * slice.step) / chunk * chunk > last_chunk;
        if !is_edge && edge > start {
            end = edge;
        }
        ranges.push(start..end);
        start = end;
    }
    ranges
}

/// Results that are all 0.
pub(super) fn zeros(len: usize) -> Result<Vec<f64>, OutOfMemory> {
    let values = bytemuck::allocation::try_zeroed_slice_box(len);
    Ok(values.map_err(|()| OutOfMemory { bytes: len.saturating_mul(8) })?.into_vec())
}

/// Copies the results of a part into an array of all results.
pub(super) fn scatter(shape: &[u64], ranges: &[Range<u64>], part: &[f64], whole: &mut [f64]) {
    let number = |position: u64| usize::try_from(position).unwrap_or(usize::MAX);
    match (shape, ranges) {
        ([], _) | (_, []) => whole.copy_from_slice(part),
        ([_], [range]) => whole[number(range.start)..number(range.end)].copy_from_slice(part),
        ([extent, shape @ ..], [range, ranges @ ..]) => {
            let rows = whole.chunks_exact_mut(whole.len() / number(*extent)).skip(number(range.start));
            let len = part.len() / number(range.end - range.start);
            for (whole, part) in rows.zip(part.chunks_exact(len)) {
                scatter(shape, ranges, part, whole);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_end_at_chunks_if_they_can() {
        let slice = |start, stop, step| AxisSlice { start, stop, step };
        assert_eq!(ranges(slice(0, 10, 1), 4, 4), [0..4, 4..8, 8..10]);
        assert_eq!(ranges(slice(0, 10, 1), 4, 7), [0..4, 4..10]);
        assert_eq!(ranges(slice(0, 10, 1), 4, 9), [0..8, 8..10]);
        assert_eq!(ranges(slice(1, 10, 1), 4, 4), [0..3, 3..7, 7..9]);
        assert_eq!(ranges(slice(0, 10, 1), 4, 3), [0..3, 3..4, 4..7, 7..10]);
        assert_eq!(ranges(slice(0, 10, 3), 4, 2), [0..2, 2..4]);
        assert_eq!(ranges(slice(5, 7, 1), 1, 1), [0..1, 1..2]);
    }

    #[test]
    fn parts_are_copied_to_their_places() {
        let mut whole = vec![0.0; 12];
        scatter(&[2, 3, 2], &[1..2, 1..3, 0..2], &[1.0, 2.0, 3.0, 4.0], &mut whole);
        assert_eq!(whole, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0]);
        scatter(&[2, 3, 2], &[0..2, 0..1, 1..2], &[5.0, 6.0], &mut whole);
        assert_eq!((whole[1], whole[7]), (5.0, 6.0));
        let mut one = vec![0.0];
        scatter(&[], &[], &[7.0], &mut one);
        assert_eq!(one, [7.0]);
    }
}
