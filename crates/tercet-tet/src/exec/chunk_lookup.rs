//! Maps a part of the selection to chunks.

use std::ops::Range;

use tercet_core::Selection;
use tercet_core::tensor::AxisSlice;

use super::job::Scope;
use crate::error::ErrorKind;
use crate::file::ChunkRef;
use crate::wire::ids::MAX_RANK;

/// Visits the chunks that hold selected positions of these ranges, one range per axis, in grid order. Chunks pruned by
/// a filter are not in a plan.
pub(crate) fn for_each_chunk(
    scope: &Scope<'_>,
    ranges: &[Range<u64>],
    mut visit: impl FnMut(&[u64; MAX_RANK], ChunkRef) -> Result<(), ErrorKind>,
) -> Result<(), ErrorKind> {
    let slices = scope.selection.axes();
    if ranges.iter().any(Range::is_empty) {
        return Ok(());
    }
    if let Some(planned) = scope.planned
        && slices.iter().zip(ranges).all(|(slice, range)| *range == (0..slice.count()))
    {
        return planned.iter().try_for_each(|chunk| visit(&scope.grid.coords(chunk.number), chunk.stored));
    }
    let clipped = slices.iter().zip(ranges).map(|(slice, range)| clip(*slice, range)).collect();
    let part = Selection::new(clipped, scope.grid.shape())?;
    for number in scope.grid.touched_numbers(&part) {
        let coords = scope.grid.coords(number);
        match scope.planned {
            Some(planned) => {
                if let Ok(found) = planned.binary_search_by_key(&number, |chunk| chunk.number) {
                    visit(&coords, planned[found].stored)?;
                }
            }
            None => visit(&coords, scope.dataset.find_chunk(&coords[..scope.grid.rank()])?)?,
        }
    }
    Ok(())
}

/// Converts a range of the selected positions of a slice to a slice of the array.
fn clip(slice: AxisSlice, range: &Range<u64>) -> AxisSlice {
    let start = slice.start + range.start * slice.step;
    let last = slice.start + (range.end - 1) * slice.step;
    AxisSlice { start, stop: last + 1, step: slice.step }
}
