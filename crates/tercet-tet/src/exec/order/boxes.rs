//! Splits the output into boxes of cells (output elements) whose values fit in memory.
//!
//! Boxes follow the tiles of kept axes, so that a chunk is decoded for one box only, wherever that fits.

use std::ops::Range;

use super::region::{Cells, Region, counts_of};
use super::to_usize;
use crate::exec::job::Job;
use crate::exec::task::Block;
use crate::query::resolved::{Groups, Role, Rolling};

/// Boxes smaller than this are merged with their neighbours.
const SMALL: u128 = 1 << 20;

/// Cuts of the cells of one axis.
pub(super) struct Axis<'a> {
    pub(super) role: &'a Role,
    /// Number of selected positions, and the number of included ones.
    pub(super) extent: u64,
    pub(super) counted: u64,
    /// For kept axes: the first position of each touched tile, and the maximum number of positions of a tile.
    edges: Vec<u64>,
    tile: u64,
    /// For groups: the size of each group.
    sizes: Vec<GroupSize>,
    is_sorted: bool,
    /// Cells per box.
    part: u64,
}

/// Number of positions of a group, and the number of included ones.
#[derive(Clone, Copy, Default)]
struct GroupSize {
    positions: u64,
    counted: u64,
}

impl<'a> Axis<'a> {
    pub(super) fn new(job: &Job<'_>, axis: usize, role: &'a Role) -> Self {
        let slice = job.plan.selection.axes()[axis];
        let chunk = job.plan.grid.chunk_shape()[axis];
        let extent = slice.count();
        let counts = counts_of(job.resolved.positions.as_ref(), axis);
        let counted = counts.map_or(extent, |counts| counts.iter().filter(|&&counts| counts).count() as u64);
        let tile = chunk.div_ceil(slice.step).min(extent);
        let mut this = Self {
            role,
            extent,
            counted,
            edges: Vec::new(),
            tile,
            sizes: Vec::new(),
            is_sorted: true,
            part: 1,
        };
        match role {
            Role::Reduced => {}
            Role::Kept => {
                let mut position = 0;
                while position < extent {
                    this.edges.push(position);
                    let (_, high) = job.plan.grid.window(axis, (slice.start + position * slice.step) / chunk);
                    position = high.saturating_sub(slice.start).div_ceil(slice.step).max(position + 1);
                }
                this.part = tile;
            }
            Role::Grouped(groups) => {
                this.sizes = vec![GroupSize::default(); groups.count as usize];
                for (position, &group) in groups.cells.iter().enumerate() {
                    let size = &mut this.sizes[group as usize];
                    size.positions += 1;
                    size.counted += u64::from(counts.is_none_or(|counts| counts[position]));
                }
                this.is_sorted = groups.cells.is_sorted();
                this.part = u64::from(groups.count);
            }
            Role::Rolling(rolling) => this.part = rolling.count,
        }
        this
    }

    /// Number of cells of the axis.
    fn cells(&self) -> u64 {
        self.role.cells(self.extent).unwrap_or(1)
    }

    /// Maximum number of included positions of a box of `part` cells, with padding.
    fn keys(&self, part: u64) -> u128 {
        match self.role {
            Role::Reduced => u128::from(self.counted),
            Role::Kept => u128::from(part),
            Role::Grouped(groups) => {
                let key_count = |size: &GroupSize| size.counted + missing(groups, *size);
                let most = self.sizes.iter().map(key_count).max().unwrap_or(0);
                let all: u64 = self.sizes.iter().map(key_count).sum();
                (u128::from(most) * u128::from(part)).min(u128::from(all))
            }
            Role::Rolling(rolling) => {
                u128::from(window_positions(rolling, part)).min(u128::from(self.extent))
            }
        }
    }

    /// Maximum number of values of one cell.
    pub(super) fn cell_keys(&self) -> u128 {
        self.keys(1)
    }

    /// Number of padding positions of a group.
    pub(super) fn missing(&self, group: u64) -> u64 {
        match self.role {
            Role::Grouped(groups) => missing(groups, self.sizes[to_usize(group)]),
            _ => 0,
        }
    }

    /// Number of values of a cell along this axis, without padding.
    pub(super) fn room(&self, cell: u64) -> u64 {
        match self.role {
            Role::Reduced => self.counted,
            Role::Kept | Role::Rolling(_) => 1,
            Role::Grouped(_) => self.sizes[to_usize(cell)].counted,
        }
    }

    fn shrink(&mut self, floor: u64) -> bool {
        let smaller = self.part.div_ceil(2).max(floor);
        let shrunk = smaller < self.part;
        self.part = smaller.min(self.part);
        shrunk
    }

    /// Ranges of cells of the boxes.
    fn ranges(&self) -> Vec<Range<u64>> {
        let cut = |all: Range<u64>, part: u64| {
            let starts = all.clone().step_by(to_usize(part.max(1)));
            starts.map(move |start| start..(start + part).min(all.end))
        };
        if !matches!(self.role, Role::Kept) {
            return cut(0..self.cells(), self.part).collect();
        }
        let tiles = to_usize((self.part / self.tile).max(1));
        let starts: Vec<u64> = self.edges.iter().copied().step_by(tiles).collect();
        let ends = starts.iter().skip(1).copied().chain([self.extent]);
        let whole = starts.iter().zip(ends).map(|(&start, end)| start..end);
        if self.part >= self.tile {
            whole.collect()
        } else {
            whole.flat_map(|tile| cut(tile, self.part)).collect()
        }
    }

    /// The part of a region with these cells. Windows overlap, so they have no such part: a region has cells for their
    /// positions instead.
    pub(super) fn part(&self, cells: &Range<u64>) -> (Range<u64>, Cells<'a>) {
        match self.role {
            Role::Reduced => (0..self.extent, Cells::One),
            Role::Kept => (cells.clone(), Cells::Each),
            Role::Grouped(groups) => {
                let group = |cell: u64| u32::try_from(cell).unwrap_or(u32::MAX);
                let range = group(cells.start)..group(cells.end);
                let first = |group: u32| groups.cells.partition_point(|&cell| cell < group) as u64;
                let positions =
                    if self.is_sorted { first(range.start)..first(range.end) } else { 0..self.extent };
                (positions, Cells::Groups(&groups.cells, range))
            }
            Role::Rolling(rolling) => (positions(rolling, cells, self.extent), Cells::Each),
        }
    }
}

/// Number of padding positions that fill a group.
fn missing(groups: &Groups, size: GroupSize) -> u64 {
    match groups.padding {
        Some(padding) if padding.value.is_some() => groups.size.saturating_sub(size.positions),
        _ => 0,
    }
}

/// Number of positions covered by `windows` consecutive windows.
fn window_positions(rolling: &Rolling, windows: u64) -> u64 {
    rolling.size.saturating_add((windows.max(1) - 1).saturating_mul(rolling.step))
}

/// Start of a window; before the axis with padding in front.
pub(super) fn window_start(rolling: &Rolling, window: u64) -> i128 {
    i128::from(rolling.first) + i128::from(window) * i128::from(rolling.step)
}

/// Clips `start` to `end` to the positions of the axis.
pub(super) fn clip(start: i128, end: i128, extent: u64) -> Range<u64> {
    let clip = |at: i128| u64::try_from(at.clamp(0, i128::from(extent))).unwrap_or(0);
    clip(start)..clip(end)
}

/// Positions owned by a range of windows: from the first position of its first window to that of the next range. The
/// owned positions of all boxes partition the axis.
pub(super) fn owned(rolling: &Rolling, windows: &Range<u64>, extent: u64) -> Range<u64> {
    let start = if windows.start == 0 { 0 } else { window_start(rolling, windows.start) };
    let end =
        if windows.end >= rolling.count { i128::from(extent) } else { window_start(rolling, windows.end) };
    clip(start, end, extent)
}

/// Positions that a range of windows reads or owns.
fn positions(rolling: &Rolling, windows: &Range<u64>, extent: u64) -> Range<u64> {
    let owned = owned(rolling, windows, extent);
    let last = window_start(rolling, windows.end.saturating_sub(1));
    let seen = clip(window_start(rolling, windows.start), last + i128::from(rolling.size), extent);
    owned.start.min(seen.start)..owned.end.max(seen.end)
}

/// The output, cut into boxes.
pub(super) struct Boxes<'a> {
    pub(super) axes: Vec<Axis<'a>>,
    /// Extents of the output.
    pub(super) output: Vec<u64>,
    ranges: Vec<Vec<Range<u64>>>,
}

/// Cost of a box: bytes per value, and per cell (for windows: per position).
#[derive(Clone, Copy)]
pub(super) struct Cost {
    pub(super) key: u128,
    pub(super) cell: u128,
    pub(super) most: u128,
}

impl<'a> Boxes<'a> {
    pub(super) fn new(job: &Job<'_>, roles: &'a [Role]) -> Self {
        let axes: Vec<Axis<'a>> =
            roles.iter().enumerate().map(|(axis, role)| Axis::new(job, axis, role)).collect();
        let output = axes.iter().filter_map(|axis| axis.role.cells(axis.extent)).collect();
        Self { axes, output, ranges: Vec::new() }
    }

    /// Maximum number of values of one output element.
    pub(super) fn cell_keys(&self) -> u128 {
        self.axes.iter().map(Axis::cell_keys).product()
    }

    /// Cuts the output so that the cost of a box stays within its limit, if the smallest boxes do.
    pub(super) fn cut(&mut self, cost: Cost) {
        let rank = self.axes.len();
        let over = |axes: &[Axis<'_>]| bytes(axes, cost) > cost.most;
        // Windows, and groups that follow each other, can be split at little cost.
        for axis in 0..rank {
            let floor = match self.axes[axis].role {
                Role::Rolling(rolling) => (rolling.size.saturating_mul(4) / rolling.step).max(1),
                Role::Grouped(_) if self.axes[axis].is_sorted => 1,
                _ => continue,
            };
            while over(&self.axes) && self.axes[axis].shrink(floor) {}
        }
        for kept in [true, false] {
            for axis in 0..rank {
                while matches!(self.axes[axis].role, Role::Kept) == kept
                    && over(&self.axes)
                    && self.axes[axis].shrink(1)
                {}
            }
        }
        for axis in (0..rank).rev() {
            while self.axes[axis].part < self.axes[axis].cells()
                && bytes(&self.axes, cost) * 2 <= cost.most.min(SMALL)
            {
                self.axes[axis].part = (self.axes[axis].part * 2).min(self.axes[axis].cells());
            }
        }
        self.ranges = self.axes.iter().map(Axis::ranges).collect();
    }

    /// Number of boxes.
    pub(super) fn count(&self) -> usize {
        self.ranges.iter().map(Vec::len).product()
    }

    /// Cells of a box on each axis.
    pub(super) fn cells(&self, mut number: usize) -> Vec<Range<u64>> {
        let mut cells = vec![0..1; self.axes.len()];
        for (slot, ranges) in cells.iter_mut().zip(&self.ranges).rev() {
            *slot = ranges[number % ranges.len()].clone();
            number /= ranges.len();
        }
        cells
    }

    /// Region of a box.
    pub(super) fn region(&self, cells: &[Range<u64>]) -> Region<'a> {
        Region::new(self.axes.iter().zip(cells).map(|(axis, cells)| axis.part(cells)).collect())
    }

    /// Block of a box: its position in the output.
    pub(super) fn block(&self, cells: &[Range<u64>]) -> Block {
        let kept = self.axes.iter().zip(cells).filter(|(axis, _)| !matches!(axis.role, Role::Reduced));
        let axes = kept.map(|(_, cells)| (cells.start, cells.end - cells.start)).collect();
        Block { axes, output: self.output.clone() }
    }
}

/// Cost of a box with the current cuts of the axes.
fn bytes(axes: &[Axis<'_>], cost: Cost) -> u128 {
    let mut keys = 1u128;
    let mut cells = 1u128;
    for axis in axes {
        keys = keys.saturating_mul(axis.keys(axis.part));
        cells = cells.saturating_mul(match axis.role {
            Role::Reduced => 1,
            Role::Kept | Role::Grouped(_) => u128::from(axis.part),
            Role::Rolling(_) => axis.keys(axis.part),
        });
    }
    keys.saturating_mul(cost.key).saturating_add(cells.saturating_mul(cost.cell))
}
