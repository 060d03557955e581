//! Region: a box of output elements, described by the positions of each axis of the selection and their cells.

use std::ops::Range;

use tercet_core::tensor::AxisSlice;

use super::to_usize;
use crate::query::resolved::Positions;

/// A box of output elements.
#[derive(Clone, Debug)]
pub(super) struct Region<'a> {
    pub(super) parts: Vec<Part<'a>>,
}

/// One axis of a region.
#[derive(Clone, Debug)]
pub(super) struct Part<'a> {
    /// Range of selected positions that contains all positions of the region.
    pub(super) positions: Range<u64>,
    pub(super) cells: Cells<'a>,
    /// Stride from one cell of this axis to the next.
    stride: usize,
}

/// Maps a position to a cell of its axis.
#[derive(Clone, Debug)]
pub(super) enum Cells<'a> {
    /// All positions of the part belong to one cell.
    One,
    /// Each position belongs to a separate cell.
    Each,
    /// Each position belongs to the cell of its group, if that is in the range.
    Groups(&'a [u32], Range<u32>),
}

impl Cells<'_> {
    fn count(&self, positions: &Range<u64>) -> usize {
        match self {
            Self::One => 1,
            Self::Each => to_usize(positions.end - positions.start),
            Self::Groups(_, range) => (range.end - range.start) as usize,
        }
    }
}

impl<'a> Region<'a> {
    pub(super) fn new(axes: Vec<(Range<u64>, Cells<'a>)>) -> Self {
        let mut stride = 1;
        let mut parts: Vec<Part<'a>> = Vec::with_capacity(axes.len());
        for (positions, cells) in axes.into_iter().rev() {
            let count = cells.count(&positions);
            parts.push(Part { positions, cells, stride });
            stride *= count;
        }
        parts.reverse();
        Self { parts }
    }

    /// Number of cells.
    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|part| part.cells.count(&part.positions)).product()
    }

    /// Range of positions on each axis.
    pub(super) fn ranges(&self) -> Vec<Range<u64>> {
        self.parts.iter().map(|part| part.positions.clone()).collect()
    }
}

/// The values of a tile along one axis that belong to a region.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Stride from one selected position to the next, in values.
    pub(super) stride: usize,
    pub(super) pieces: Vec<Piece>,
    /// Whether all values belong to one cell, for any region.
    pub(super) is_one: bool,
}

/// Consecutive positions of a lane that belong to one cell, or to consecutive cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Offset of the first value from the start of the tile.
    pub(super) offset: usize,
    pub(super) count: usize,
    /// Cell of the first position.
    pub(super) cell: usize,
    /// Stride of cells from one position to the next.
    pub(super) step: usize,
}

impl Lane {
    /// The part of the axis that overlaps the tile `window`, whose values are `value_stride` apart.
    pub(super) fn new(
        part: &Part<'_>,
        slice: AxisSlice,
        window: (u64, u64),
        value_stride: usize,
        counts: Option<&[bool]>,
    ) -> Self {
        let stride = to_usize(slice.step).saturating_mul(value_stride);
        let mut lane = Self { stride, pieces: Vec::new(), is_one: matches!(part.cells, Cells::One) };
        let Some((first, count)) = slice.hits(window.0, window.1) else { return lane };
        let (first, end) = (first.max(part.positions.start), (first + count).min(part.positions.end));
        if first >= end {
            return lane;
        }
        let offset_of = |position: u64| {
            to_usize(slice.start + position * slice.step - window.0).saturating_mul(value_stride)
        };
        let mut push = |from: u64, count: usize, cell: usize, step: usize| {
            lane.pieces.push(Piece { offset: offset_of(from), count, cell: cell * part.stride, step });
        };
        let counted = |at: u64| counts.is_none_or(|counts| counts[to_usize(at)]);
        let each = if matches!(part.cells, Cells::Each) { part.stride } else { 0 };
        let mut at = first;
        while at < end {
            let same = |position: u64| match &part.cells {
                Cells::Groups(groups, _) => groups[to_usize(position)] == groups[to_usize(at)],
                _ => true,
            };
            let alike = |position: u64| counted(position) == counted(at) && same(position);
            // Complete axes are the common case: they are not visited position by position.
            let plain = counts.is_none() && !matches!(part.cells, Cells::Groups(..));
            let until = if plain { end } else { (at + 1..end).find(|&p| !alike(p)).unwrap_or(end) };
            let cell = match &part.cells {
                Cells::One => Some(0),
                Cells::Each => Some(to_usize(at - part.positions.start)),
                Cells::Groups(groups, range) => {
                    let group = groups[to_usize(at)];
                    range.contains(&group).then(|| (group - range.start) as usize)
                }
            };
            if let Some(cell) = cell.filter(|_| counted(at)) {
                push(at, to_usize(until - at), cell, each);
            }
            at = until;
        }
        lane
    }

    /// Number of positions.
    pub(super) fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.count).sum()
    }
}

/// Mask of the included positions of an axis; `None` if all are included.
pub(super) fn counts_of(positions: Option<&Positions>, axis: usize) -> Option<&[bool]> {
    positions.filter(|positions| positions.axis == axis).map(|positions| &positions.counts[..])
}
