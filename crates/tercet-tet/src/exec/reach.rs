//! Which chunks of a plan hold a part of its selection.

use std::ops::Range;

use tercet_core::tensor::AxisSlice;

use crate::plan::ReadPlan;
use crate::wire::ids::MAX_RANK;

/// The numbers of the chunks that hold selected positions of these ranges, one range for each axis, in the order of
/// the plan. Chunks that a filter left out are not in the plan.
pub(crate) fn chunks_of(plan: &ReadPlan, ranges: &[Range<u64>]) -> Vec<usize> {
    let slices = plan.selection.axes();
    if ranges.iter().any(Range::is_empty) {
        return Vec::new();
    }
    if slices.iter().zip(ranges).all(|(slice, range)| *range == (0..slice.count())) {
        return (0..plan.chunks.len()).collect();
    }
    let mut tiles = vec![[0u64; MAX_RANK]];
    for (axis, (slice, range)) in slices.iter().zip(ranges).enumerate() {
        let slice = clip(*slice, range);
        let chunk = plan.grid.chunk_shape()[axis];
        let hit: Vec<u64> = if slice.step > chunk {
            (0..slice.count()).map(|n| (slice.start + n * slice.step) / chunk).collect()
        } else {
            (slice.start / chunk..=slice.last() / chunk).collect()
        };
        let place = |tile: &[u64; MAX_RANK], coordinate: u64| {
            let mut tile = *tile;
            tile[axis] = coordinate;
            tile
        };
        tiles = tiles.iter().flat_map(|tile| hit.iter().map(move |&c| place(tile, c))).collect();
    }
    // Tiles are compared axis by axis, which is the order of the grid.
    tiles.iter().filter_map(|tile| plan.chunks.binary_search_by(|chunk| chunk.tile.cmp(tile)).ok()).collect()
}

/// A range of the selected positions of a slice, as a slice of the array.
pub(crate) fn clip(slice: AxisSlice, range: &Range<u64>) -> AxisSlice {
    let start = slice.start + range.start * slice.step;
    let last = slice.start + (range.end - 1) * slice.step;
    AxisSlice { start, stop: last + 1, step: slice.step }
}
