//! Maps a part of the selection to the chunks of the plan.

use std::ops::Range;

use tercet_core::Selection;
use tercet_core::tensor::AxisSlice;

use crate::plan::ReadPlan;

/// Numbers of the chunks that hold selected positions of these ranges, one range per axis, in the order of the plan.
/// Chunks pruned by a filter are not in the plan.
pub(crate) fn chunks_of(plan: &ReadPlan, ranges: &[Range<u64>]) -> Vec<usize> {
    let slices = plan.selection.axes();
    if ranges.iter().any(Range::is_empty) {
        return Vec::new();
    }
    if slices.iter().zip(ranges).all(|(slice, range)| *range == (0..slice.count())) {
        return (0..plan.chunks.len()).collect();
    }
    let clipped = slices.iter().zip(ranges).map(|(slice, range)| clip(*slice, range)).collect();
    // A part of a selection is always a valid selection.
    let Ok(part) = Selection::new(clipped, plan.grid.shape()) else { return Vec::new() };
    let tiles = plan.grid.touched(&part);
    // Tiles are compared axis by axis, which is the order of the grid.
    tiles.iter().filter_map(|tile| plan.chunks.binary_search_by(|chunk| chunk.tile.cmp(tile)).ok()).collect()
}

/// Converts a range of the selected positions of a slice to a slice of the array.
pub(crate) fn clip(slice: AxisSlice, range: &Range<u64>) -> AxisSlice {
    let start = slice.start + range.start * slice.step;
    let last = slice.start + (range.end - 1) * slice.step;
    AxisSlice { start, stop: last + 1, step: slice.step }
}
