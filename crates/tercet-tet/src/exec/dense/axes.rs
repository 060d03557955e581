//! Maps a chunk to its position in the result, with one run per axis, joined where several form one run.

use std::ops::Range;

use tercet_core::Selection;

use crate::plan::ReadPlan;
use crate::query::resolved::{self, Role};
use crate::read::dense_strides;
use crate::wire::ids::MAX_RANK;

/// The positions of one axis, with strides in elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct AxisRun<'a> {
    pub(super) count: usize,
    /// Stride in the chunk.
    pub(super) from: usize,
    /// Stride in the result.
    pub(super) to: usize,
    /// Stride among the cells of the statistics.
    pub(super) cell: usize,
    /// Stride in the complete selection.
    pub(super) index: u64,
    /// Mask of included positions; `None` includes all.
    pub(super) keep: Option<&'a [bool]>,
}

impl AxisRun<'_> {
    /// A single position.
    pub(super) const SINGLE: Self = Self { count: 1, from: 1, to: 1, cell: 0, index: 0, keep: None };
}

/// A position in a chunk, with the corresponding positions in the result, the cells and the selection.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) cell: usize,
    pub(super) index: u64,
    /// Whether no element here is included.
    pub(super) dead: bool,
}

impl At {
    /// Advances by `i` positions.
    #[inline]
    pub(super) fn step(self, lane: &AxisRun<'_>, i: usize) -> Self {
        Self {
            from: self.from + i * lane.from,
            to: self.to + i * lane.to,
            cell: self.cell + i * lane.cell,
            index: self.index + i as u64 * lane.index,
            dead: self.dead,
        }
    }
}

/// A box of a part of the selection.
pub(super) struct Window<'w> {
    pub(super) part: &'w Selection,
    /// First position of the part, in the selection.
    pub(super) origin: &'w [u64],
    /// Positions of the part on each axis.
    pub(super) positions: Vec<Range<u64>>,
}

/// Maps positions of the selection to cells and indices.
pub(super) struct AxisMap<'a> {
    plan: &'a ReadPlan,
    positions: Option<&'a resolved::Positions>,
    cells: Vec<usize>,
    indices: Vec<u64>,
    /// Whether indices are needed.
    indexed: bool,
}

impl<'a> AxisMap<'a> {
    pub(super) fn new(
        plan: &'a ReadPlan,
        roles: &[Role],
        positions: Option<&'a resolved::Positions>,
        indexed: bool,
    ) -> Self {
        let shape = plan.selection.shape();
        let (mut cells, mut indices) = (vec![0; shape.rank()], vec![0; shape.rank()]);
        let (mut cell, mut index) = (1usize, 1u64);
        for axis in (0..shape.rank()).rev() {
            if roles[axis] == Role::Kept {
                cells[axis] = cell;
                cell = cell.saturating_mul(usize_of(shape[axis]));
            }
            indices[axis] = index;
            index = index.saturating_mul(shape[axis]);
        }
        Self { plan, positions, cells, indices, indexed }
    }

    /// Lanes of the part of a tile that overlaps a window, for a dense result with these strides; `None` if it is
    /// empty.
    pub(super) fn lanes(
        &self,
        tile: &[u64; MAX_RANK],
        window: &Window<'_>,
        strides: &[usize],
    ) -> Option<(Vec<AxisRun<'a>>, At)> {
        let grid = &self.plan.grid;
        let tile_strides = dense_strides(&grid.tile_shape(&tile[..grid.rank()]), 1);
        let mut lanes = Vec::with_capacity(grid.rank() + 1);
        let mut at = At { from: 0, to: 0, cell: 0, index: 0, dead: false };
        for (axis, slice) in window.part.axes().iter().enumerate() {
            let (low, high) = grid.window(axis, tile[axis]);
            let (first, count) = slice.hits(low, high)?;
            let wanted = &window.positions[axis];
            let (first, end) = (first.max(wanted.start), (first + count).min(wanted.end));
            let count = end.checked_sub(first).filter(|&count| count > 0)?;
            let number = window.origin[axis] + first;
            at.from += usize_of(slice.start + first * slice.step - low) * tile_strides[axis];
            at.to += usize_of(first - wanted.start) * strides[axis];
            at.cell += usize_of(number) * self.cells[axis];
            at.index += number * self.indices[axis];
            let keep = self.positions.filter(|keep| keep.axis == axis);
            lanes.push(AxisRun {
                count: usize_of(count),
                from: usize_of(slice.step).saturating_mul(tile_strides[axis]),
                to: strides[axis],
                cell: self.cells[axis],
                index: self.indices[axis],
                keep: keep.map(|keep| &keep.counts[usize_of(number)..usize_of(number + count)]),
            });
        }
        Some((lanes, at))
    }

    /// Joins axes that form one run in the chunk, in the result and among the cells.
    pub(super) fn join(&self, lanes: &mut Vec<AxisRun<'a>>) {
        let mut joined: Vec<AxisRun<'a>> = Vec::with_capacity(lanes.len() + 1);
        for &inner in lanes.iter().filter(|lane| lane.count > 1 || lane.keep.is_some()) {
            match joined.last_mut() {
                Some(outer) if self.is_run(outer, &inner) => {
                    *outer = AxisRun { count: outer.count * inner.count, ..inner };
                }
                _ => joined.push(inner),
            }
        }
        *lanes = joined;
    }

    fn is_run(&self, outer: &AxisRun<'_>, inner: &AxisRun<'_>) -> bool {
        let one_run = |outer: usize, inner_step: usize| outer == inner_step.saturating_mul(inner.count);
        one_run(outer.from, inner.from)
            && one_run(outer.to, inner.to)
            && one_run(outer.cell, inner.cell)
            && (!self.indexed || outer.index == inner.index.saturating_mul(inner.count as u64))
            && outer.keep.is_none()
            && inner.keep.is_none()
    }

    /// Ensures that the last lane is a row of the result, with one cell for all values or one per value.
    pub(super) fn finish(lanes: &mut Vec<AxisRun<'a>>) {
        if lanes.last().is_none_or(|last| last.to != 1 || last.cell > 1) {
            lanes.push(AxisRun::SINGLE);
        }
    }
}

/// Converts to `usize`. Chunks and results are in memory, so their sizes fit; a saturated value fails the bounds check
/// of the slice it indexes.
fn usize_of(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
