//! A task: a box of output cells, and the pieces of chunks that go into it.

use std::ops::Range;

use super::cut::Part;
use super::fold::Block;
use super::reach::chunks_of;
use super::sizes::{LARGE_CHUNK, PIECE, ROW};
use super::walk::{CellStep, Lane, Piece};
use crate::plan::ReadPlan;
use crate::query::resolved::{Positions, Role};
use crate::wire::ids::{Codec, MAX_RANK};

/// One box of output cells.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// One part of each axis.
    pub(crate) parts: Vec<Part>,
}

/// A piece of work: some rows of a chunk.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    /// The number of the chunk in the plan.
    pub(crate) chunk: usize,
    /// `None` is all of the chunk.
    pub(crate) rows: Option<Range<u64>>,
    /// Bytes of the unit when decoded.
    pub(crate) bytes: u64,
}

/// How a chunk is cut into rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowCut {
    /// The last axis that rows are counted over.
    pub(crate) axis: usize,
    pub(crate) rows: u64,
    pub(crate) row_bytes: u64,
}

/// The tasks of a plan cut into parts.
pub(crate) fn tasks(parts: &[Vec<Part>]) -> Vec<Task> {
    let mut tasks = vec![Task { parts: Vec::new() }];
    for axis in parts {
        tasks = tasks
            .iter()
            .flat_map(|task| {
                axis.iter().map(|part| {
                    let mut parts = task.parts.clone();
                    parts.push(part.clone());
                    Task { parts }
                })
            })
            .collect();
    }
    tasks
}

/// What is the same for all tasks.
pub(crate) struct Geometry<'a> {
    pub(crate) plan: &'a ReadPlan,
    pub(crate) roles: &'a [Role],
    pub(crate) positions: Option<&'a Positions>,
    /// From one position to the next among the reduced positions, for each axis.
    index: Vec<u64>,
}

impl<'a> Geometry<'a> {
    pub(crate) fn new(plan: &'a ReadPlan, roles: &'a [Role], positions: Option<&'a Positions>) -> Self {
        let rank = plan.grid.rank();
        let mut index = vec![0; rank];
        let mut next = 1u64;
        for axis in (0..rank).rev() {
            let extent = match &roles[axis] {
                Role::Kept => continue,
                // Labels are kept, too: the index is that among the reduced axes.
                Role::Grouped(groups) if groups.size == 0 => continue,
                Role::Reduced => plan.selection.axes()[axis].count(),
                Role::Grouped(groups) => groups.size,
                Role::Rolling(rolling) => rolling.size,
            };
            index[axis] = next;
            next = next.saturating_mul(extent);
        }
        Self { plan, roles, positions, index }
    }

    /// From one position of an axis to the next among the reduced positions.
    pub(crate) fn index_step(&self, axis: usize) -> u64 {
        self.index[axis]
    }

    /// Indices on an axis of windows count from so many positions before its start, because windows may start there.
    pub(crate) fn index_lead(&self, axis: usize) -> u64 {
        match &self.roles[axis] {
            Role::Grouped(groups) => groups.size,
            Role::Rolling(rolling) => rolling.size,
            Role::Reduced | Role::Kept => 0,
        }
    }

    /// The box of cells that a task keeps states for. Windows keep one for each position.
    pub(crate) fn block(&self, task: &Task) -> Block {
        let mut block = Block { axes: Vec::new(), output: Vec::new() };
        for (axis, (part, role)) in task.parts.iter().zip(self.roles).enumerate() {
            let extent = self.plan.selection.axes()[axis].count();
            let cells = if matches!(role, Role::Rolling(_)) { &part.positions } else { &part.cells };
            let output = if matches!(role, Role::Rolling(_)) { Some(extent) } else { role.cells(extent) };
            if let Some(output) = output {
                block.axes.push((cells.start, cells.end - cells.start));
                block.output.push(output);
            }
        }
        block
    }

    /// The pieces of chunks that go into a task, in the order of the plan.
    pub(crate) fn units(&self, task: &Task, whole_chunks: bool) -> Vec<Unit> {
        let ranges: Vec<Range<u64>> = task.parts.iter().map(|part| part.positions.clone()).collect();
        let mut units = Vec::new();
        for chunk in chunks_of(self.plan, &ranges) {
            self.push_units(chunk, whole_chunks, &mut units);
        }
        units
    }

    fn push_units(&self, chunk: usize, whole_chunks: bool, units: &mut Vec<Unit>) {
        let place = &self.plan.chunks[chunk].stored;
        let bytes = place.raw_len;
        if whole_chunks || place.codec != Codec::Raw || bytes <= LARGE_CHUNK {
            units.push(Unit { chunk, rows: None, bytes });
            return;
        }
        let RowCut { rows, row_bytes, .. } = self.rows_of(chunk);
        let step = (PIECE / row_bytes).max(1);
        for start in (0..rows).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
            let end = (start + step).min(rows);
            units.push(Unit { chunk, rows: Some(start..end), bytes: (end - start) * row_bytes });
        }
    }

    /// How a chunk is cut into rows: positions of its leading axes, counted together, so that a row is short.
    pub(crate) fn rows_of(&self, chunk: usize) -> RowCut {
        let grid = &self.plan.grid;
        let shape = grid.tile_shape(&self.plan.chunks[chunk].tile[..grid.rank()]);
        let bytes_below =
            |axis: usize| shape[axis + 1..].iter().product::<u64>() * grid.element().size() as u64;
        let axis = (0..shape.len()).find(|&axis| bytes_below(axis) <= ROW).unwrap_or(shape.len() - 1);
        RowCut { axis, rows: shape[..=axis].iter().product(), row_bytes: bytes_below(axis) }
    }

    /// Whether a chunk lies wholly in a task, step 1 on every axis, and all of it goes into one cell: which one.
    pub(crate) fn single_cell(&self, task: &Task, block: &Block, chunk: usize) -> Option<usize> {
        let tile = &self.plan.chunks[chunk].tile;
        let mut cell = 0;
        let mut axes = block.axes.iter();
        for (axis, part) in task.parts.iter().enumerate() {
            let slice = self.plan.selection.axes()[axis];
            let (low, high) = self.plan.grid.window(axis, tile[axis]);
            let (first, count) = slice.hits(low, high)?;
            let inside = first >= part.positions.start && first + count <= part.positions.end;
            if slice.step != 1 || count != high - low || !inside {
                return None;
            }
            let cell_of = |position: u64| match &self.roles[axis] {
                Role::Reduced => None,
                Role::Kept | Role::Rolling(_) => Some(position),
                Role::Grouped(groups) => Some(u64::from(groups.cells[usize::try_from(position).ok()?])),
            };
            if let Some(own) = cell_of(first) {
                if !(first..first + count).all(|position| cell_of(position) == Some(own)) {
                    return None;
                }
                let &(start, extent) = axes.next()?;
                cell = cell * usize::try_from(extent).ok()? + usize::try_from(own - start).ok()?;
            }
        }
        Some(cell)
    }

    /// The part of a chunk's rows that a task wants; `None` if it is empty.
    ///
    /// Rows must not cross the axes above theirs. Offsets count from the first value of the rows.
    pub(crate) fn piece(
        &self,
        task: &Task,
        block: &Block,
        chunk: usize,
        rows: &Range<u64>,
    ) -> Option<Piece<'a>> {
        let grid = &self.plan.grid;
        let rank = grid.rank();
        let tile = &self.plan.chunks[chunk].tile;
        let shape = grid.tile_shape(&tile[..rank]);
        let row_axis = self.rows_of(chunk).axis;
        // The rows lie at one place of the axes above.
        let mut above = rows.start / shape[row_axis];
        let mut places = [0; MAX_RANK];
        for axis in (0..row_axis).rev() {
            places[axis] = above % shape[axis];
            above /= shape[axis];
        }
        let first_row = rows.start % shape[row_axis];
        let mut piece = Piece { lanes: Vec::with_capacity(rank), offset: 0, cell: 0, index: 0 };
        let mut value_stride = vec![1usize; rank];
        for axis in (0..rank.saturating_sub(1)).rev() {
            value_stride[axis] = value_stride[axis + 1] * to_usize(shape[axis + 1]);
        }
        let mut cell_stride = vec![1usize; block.axes.len()];
        for axis in (0..block.axes.len().saturating_sub(1)).rev() {
            cell_stride[axis] = cell_stride[axis + 1] * to_usize(block.axes[axis + 1].1);
        }
        let mut output = 0;
        for axis in 0..rank {
            let slice = self.plan.selection.axes()[axis];
            let part = &task.parts[axis].positions;
            let (mut low, mut high) = grid.window(axis, tile[axis]);
            if axis < row_axis {
                low += places[axis];
                high = low + 1;
            } else if axis == row_axis {
                low += first_row;
                high = low + (rows.end - rows.start);
            }
            let (first, count) = slice.hits(low, high)?;
            let (first, end) = (first.max(part.start), (first + count).min(part.end));
            if first >= end {
                return None;
            }
            let position = slice.start + first * slice.step - low;
            piece.offset += to_usize(position) * value_stride[axis];
            let (from, to) = (to_usize(first), to_usize(end));
            let mut lane = Lane {
                count: to - from,
                stride: to_usize(slice.step).saturating_mul(value_stride[axis]),
                cells: CellStep::Same,
                index: self.index[axis],
                keep: self.positions.filter(|keep| keep.axis == axis).map(|keep| &keep.counts[from..to]),
            };
            let role = &self.roles[axis];
            if !matches!(role, Role::Reduced) {
                let (start, stride) = (block.axes[output].0, cell_stride[output]);
                output += 1;
                if let Role::Grouped(groups) = role {
                    let first = u32::try_from(start).unwrap_or(u32::MAX);
                    lane.cells = CellStep::Group { groups: &groups.cells[from..to], first, stride };
                } else {
                    lane.cells = CellStep::Each(stride);
                    piece.cell += to_usize(first - start) * stride;
                }
            }
            piece.index += (first + self.index_lead(axis)) * self.index[axis];
            piece.lanes.push(lane);
        }
        Some(piece)
    }
}

/// Tiles and blocks are in memory, so their sizes fit; whatever would not is refused by the slices it indexes.
pub(crate) fn to_usize(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
