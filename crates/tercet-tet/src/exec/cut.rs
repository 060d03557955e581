//! Splits a fold into tasks: boxes of output elements that fit in memory.
//!
//! The cuts depend only on the plan, never on the number of threads. Partial results are merged in the order of the
//! plan, so the result is bit-identical for any number of threads.

use std::ops::Range;
use std::sync::Arc;

use tercet_core::tensor::AxisSlice;

use super::sizes::{FEW_SLOTS, NARROW_STRIP, WINDOW_STRIP};
use crate::plan::ReadPlan;
use crate::query::resolved::{Groups, Positions, Role, Rolling};

/// A part of one axis: selected positions and their output slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) positions: Range<u64>,
    /// Slots; window numbers for windows, `0..1` for reduced axes.
    pub(crate) slots: Range<u64>,
    /// Mask of the positions of the axis that belong to the slots; `None` if all positions of the part do.
    pub(crate) keep: Option<Arc<[bool]>>,
}

/// Limits on the cuts of an output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Whether repeated reads of chunks cost nothing, so that chunks may be cut into strips.
    pub(crate) strips: bool,
    /// Number of states per strip.
    pub(crate) strip: u64,
    /// Maximum number of states per task.
    pub(crate) most: u64,
}

/// Cuts every axis into parts; a task is one part of each axis.
pub(crate) fn cut(
    plan: &ReadPlan,
    roles: &[Role],
    positions: Option<&Positions>,
    limits: Limits,
) -> Vec<Vec<Part>> {
    let mut axes: Vec<Axis<'_>> =
        roles.iter().enumerate().map(|(axis, role)| Axis::new(plan, axis, role)).collect();
    for axis in (0..axes.len()).rev() {
        while states(&axes) < FEW_SLOTS / 2 && axes[axis].grow() {}
    }
    let window = axes.iter().position(|axis| matches!(axis.role, Role::Rolling(_)));
    let strip = if window.is_some() { WINDOW_STRIP } else { limits.strip };
    let (strip, most) = (strip.min(limits.most), limits.most.max(1));
    if limits.strips {
        // Windows overlap, so the other axes are cut first.
        let beside = |axes: &[Axis<'_>]| match window {
            Some(window) => states(axes) / axes[window].states().max(1),
            None => u64::MAX,
        };
        for axis in (0..axes.len()).filter(|&axis| Some(axis) != window) {
            while states(&axes) > strip && beside(&axes) > NARROW_STRIP && axes[axis].shrink() {}
        }
    }
    for axis in window.into_iter().chain(0..axes.len()) {
        while states(&axes) > most && axes[axis].shrink() {}
    }
    // Groups that are not sorted are divided last: every part visits all positions.
    for axis in 0..axes.len() {
        while states(&axes) > most && axes[axis].divide() {}
    }
    let mask =
        |axis: usize| positions.filter(|positions| positions.axis == axis).map(|mask| &mask.counts[..]);
    axes.iter().enumerate().map(|(number, axis)| axis.parts(mask(number))).collect()
}

/// Whether some chunks have values of several tasks.
pub(crate) fn splits_chunks(plan: &ReadPlan, parts: &[Vec<Part>]) -> bool {
    parts.iter().enumerate().any(|(axis, parts)| {
        let slice = plan.selection.axes()[axis];
        let chunk_of = |position: u64| (slice.start + position * slice.step) / plan.grid.chunk_shape()[axis];
        let mut pairs = parts.iter().zip(parts.iter().skip(1));
        pairs.any(|(part, next)| {
            !part.positions.is_empty() && chunk_of(part.positions.end - 1) >= chunk_of(next.positions.start)
        })
    })
}

/// Maximum number of states of a task.
fn states(axes: &[Axis<'_>]) -> u64 {
    axes.iter().map(Axis::states).fold(1, u64::saturating_mul)
}

struct Axis<'a> {
    role: &'a Role,
    slice: AxisSlice,
    /// Extent of a chunk.
    chunk: u64,
    /// Number of selected positions.
    extent: u64,
    /// First position of each touched chunk.
    edges: Vec<u64>,
    /// Maximum number of positions of a chunk.
    chunk_positions: u64,
    /// Chunks per part, for axes that keep positions separate.
    chunks: u64,
    /// Positions per part, if chunks are cut.
    positions: Option<u64>,
    /// Windows per part.
    windows: u64,
    /// Groups per part, for groups that are not sorted.
    groups: u64,
}

impl<'a> Axis<'a> {
    fn new(plan: &ReadPlan, axis: usize, role: &'a Role) -> Self {
        let slice = plan.selection.axes()[axis];
        let extent = slice.count();
        let mut edges = Vec::new();
        let mut position = 0;
        while position < extent && matches!(role, Role::Kept | Role::Grouped(_)) {
            edges.push(position);
            position = plan.grid.next_chunk(axis, slice, position);
        }
        let chunk_positions = plan.grid.chunk_positions(axis, slice);
        let windows = match role {
            Role::Rolling(rolling) => rolling.count,
            _ => 0,
        };
        let chunk = plan.grid.chunk_shape()[axis];
        Self {
            role,
            slice,
            chunk,
            extent,
            edges,
            chunk_positions,
            chunks: 1,
            positions: None,
            windows,
            groups: u64::MAX,
        }
    }

    /// Number of states of a task along this axis.
    fn states(&self) -> u64 {
        match self.role {
            Role::Reduced => 1,
            Role::Kept => {
                self.positions.unwrap_or(self.chunk_positions.saturating_mul(self.chunks)).min(self.extent)
            }
            Role::Grouped(groups) if is_sorted(groups) && groups.size > 0 => {
                let groups_of_chunk =
                    self.chunk_positions.saturating_mul(self.chunks).div_ceil(groups.size) + 1;
                groups_of_chunk.min(u64::from(groups.count))
            }
            Role::Grouped(groups) => u64::from(groups.count).min(self.groups),
            Role::Rolling(rolling) if rolling.separate => 1,
            Role::Rolling(rolling) => {
                (rolling.size + (self.windows - 1).saturating_mul(rolling.step)).min(self.extent)
            }
        }
    }

    fn grow(&mut self) -> bool {
        match self.role {
            Role::Kept | Role::Grouped(_) if self.chunks < self.edges.len() as u64 => {
                self.chunks *= 2;
                true
            }
            _ => false,
        }
    }

    fn shrink(&mut self) -> bool {
        match self.role {
            Role::Kept | Role::Grouped(_) if self.chunks > 1 => {
                self.chunks /= 2;
                true
            }
            Role::Kept if self.states() > 1 => {
                self.positions = Some(self.states().div_ceil(2));
                true
            }
            // A part holds the positions of its first window, even if it has few windows. With fewer windows per part
            // than a window has positions, chunks would be visited for more and more parts.
            Role::Rolling(rolling) if self.windows > (rolling.size / rolling.step).max(1) => {
                self.windows = self.windows.div_ceil(2);
                true
            }
            _ => false,
        }
    }

    /// Divides groups that are not sorted.
    fn divide(&mut self) -> bool {
        match self.role {
            Role::Grouped(groups) if !is_sorted(groups) && self.states() > 1 => {
                self.groups = self.states().div_ceil(2);
                true
            }
            _ => false,
        }
    }

    /// Parts of the axis; `mask` has its included positions.
    fn parts(&self, mask: Option<&[bool]>) -> Vec<Part> {
        match self.role {
            Role::Reduced => vec![Part { positions: 0..self.extent, slots: 0..1, keep: None }],
            Role::Kept => {
                let parts = self.chunk_ranges().into_iter().flat_map(|range| self.split(range));
                parts.map(|positions| Part { slots: positions.clone(), positions, keep: None }).collect()
            }
            Role::Grouped(groups) if is_sorted(groups) => group_parts(groups, &self.chunk_ranges()),
            Role::Grouped(groups) => {
                let (count, each) = (u64::from(groups.count), self.states().max(1));
                let starts = (0..count).step_by(usize::try_from(each).unwrap_or(usize::MAX));
                starts.map(|start| unsorted_part(groups, start..(start + each).min(count), mask)).collect()
            }
            Role::Rolling(rolling) if rolling.separate => {
                (0..rolling.count).map(|first| window_part(rolling, first..first + 1, self.extent)).collect()
            }
            Role::Rolling(rolling) => {
                let mut parts = Vec::new();
                let mut first = 0;
                while first < rolling.count {
                    let part = self.window_part(rolling, first);
                    first = part.slots.end;
                    parts.push(part);
                }
                parts
            }
        }
    }

    /// Windows from `first` on. The part ends with a chunk if it has several, so that no chunk is decoded for two parts.
    fn window_part(&self, rolling: &Rolling, first: u64) -> Part {
        let end = (first + self.windows).min(rolling.count);
        let part = window_part(rolling, first..end, self.extent);
        let last = part.positions.end;
        if end == rolling.count || last <= part.positions.start + 2 * self.chunk_positions {
            return part;
        }
        let chunk_start = (self.slice.start + last * self.slice.step) / self.chunk * self.chunk;
        let edge = chunk_start.saturating_sub(self.slice.start).div_ceil(self.slice.step);
        let surplus = last.saturating_sub(edge).div_ceil(rolling.step);
        if surplus * 2 > end - first { part } else { window_part(rolling, first..end - surplus, self.extent) }
    }

    /// Ranges of positions, each covering `chunks` chunks.
    fn chunk_ranges(&self) -> Vec<Range<u64>> {
        let step = usize::try_from(self.chunks).unwrap_or(usize::MAX);
        let starts: Vec<u64> = self.edges.iter().copied().step_by(step).collect();
        let ends = starts.iter().skip(1).copied().chain([self.extent]);
        starts.iter().zip(ends).map(|(&start, end)| start..end).collect()
    }

    fn split(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let Some(positions) = self.positions else { return vec![range] };
        let step = usize::try_from(positions).unwrap_or(usize::MAX);
        let starts = range.clone().step_by(step);
        starts.map(|start| start..(start + positions).min(range.end)).collect()
    }
}

/// Whether groups are sorted along the axis, as bins are.
pub(crate) fn is_sorted(groups: &Groups) -> bool {
    groups.size > 0
}

/// Assigns each bin to the range of positions that holds its first position.
fn group_parts(groups: &Groups, ranges: &[Range<u64>]) -> Vec<Part> {
    let numbers = &groups.numbers;
    let first_position = |group: u64| numbers.partition_point(|&number| u64::from(number) < group) as u64;
    let mut parts = Vec::new();
    let mut group = 0;
    for range in ranges {
        // The groups that start before the end of the range.
        let at = usize::try_from(range.end).unwrap_or(usize::MAX).min(numbers.len());
        let end = numbers[..at].last().map_or(0, |&number| u64::from(number) + 1);
        if end > group {
            let positions = first_position(group)..first_position(end);
            parts.push(Part { positions, slots: group..end, keep: None });
            group = end;
        }
    }
    parts
}

/// The positions of some groups that are not sorted along the axis.
fn unsorted_part(groups: &Groups, part: Range<u64>, mask: Option<&[bool]>) -> Part {
    let extent = groups.numbers.len() as u64;
    if part == (0..u64::from(groups.count)) {
        return Part { positions: 0..extent, slots: part, keep: None };
    }
    let belongs = |(position, group): (usize, &u32)| {
        part.contains(&u64::from(*group)) && mask.is_none_or(|mask| mask[position])
    };
    let keep: Arc<[bool]> = groups.numbers.iter().enumerate().map(belongs).collect();
    let first = keep.iter().position(|&keep| keep).unwrap_or(0) as u64;
    let end = keep.iter().rposition(|&keep| keep).map_or(first, |last| last as u64 + 1);
    Part { positions: first..end, slots: part, keep: Some(keep) }
}

/// The positions covered by a range of windows.
fn window_part(rolling: &Rolling, windows: Range<u64>, extent: u64) -> Part {
    let start = |window: u64| i128::from(rolling.first) + i128::from(window) * i128::from(rolling.step);
    let clip = |position: i128| u64::try_from(position.max(0)).unwrap_or(u64::MAX).min(extent);
    let last = windows.end.saturating_sub(1);
    Part {
        positions: clip(start(windows.start))..clip(start(last) + i128::from(rolling.size)),
        slots: windows,
        keep: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::resolved::Padding;

    #[test]
    fn no_position_goes_to_many_parts_of_wide_windows() {
        for (size, step) in [(1000, 1), (1000, 7), (1000, 1000), (10, 1), (2, 1), (1, 1), (1, 3)] {
            let (extent, padding) = (10_000, Padding { value: None, min_count: 1 });
            let count = (extent - size) / step + 1;
            let role = Role::Rolling(Rolling { size, step, first: 0, count, padding, separate: false });
            let mut axis = Axis {
                role: &role,
                slice: AxisSlice { start: 0, stop: extent, step: 1 },
                chunk: 100,
                extent,
                edges: Vec::new(),
                chunk_positions: 100,
                chunks: 1,
                positions: None,
                windows: count,
                groups: 1,
            };
            while axis.shrink() {}
            let parts = axis.parts(None);
            assert_eq!(parts.iter().map(|part| part.slots.end - part.slots.start).sum::<u64>(), count);
            let visits: u64 = parts.iter().map(|part| part.positions.end - part.positions.start).sum();
            assert!(visits <= 4 * extent, "{size} {step}: {visits} visits of {extent} positions");
        }
    }
}
