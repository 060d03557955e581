//! Tasks: a task is a box of output elements and the regions of chunks that contribute to it.

use std::ops::Range;

use super::chunk_lookup::for_each_chunk;
use super::cut::Part;
use super::job::Scope;
use super::sizes::MANY_TASKS;
use super::walk::{AxisRun, Piece, SlotStep};
use crate::error::ErrorKind;
use crate::file::ChunkRef;
use crate::query::resolved::Role;
use crate::wire::ids::MAX_RANK;

/// A box of output elements.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// First slot and number of slots of the box on each output axis.
    pub(crate) axes: Vec<(u64, u64)>,
    /// Extents of the complete output.
    pub(crate) output: Vec<u64>,
}

impl Block {
    /// Number of slots of the box.
    pub(crate) fn len(&self) -> usize {
        self.axes.iter().map(|&(_, count)| to_usize(count)).product()
    }

    /// Maps a slot of the box to its number in the complete output.
    pub(crate) fn global(&self, mut slot: usize) -> usize {
        let (mut global, mut stride) = (0, 1);
        for (&(first, count), &extent) in self.axes.iter().zip(&self.output).rev() {
            let count = to_usize(count);
            let at = to_usize(first).saturating_add(slot % count);
            global += at * stride;
            slot /= count;
            stride *= to_usize(extent);
        }
        global
    }

    /// Coordinates of a slot of the box in the complete output.
    pub(crate) fn coordinates(&self, mut slot: usize) -> Vec<u64> {
        let mut coordinates = vec![0; self.axes.len()];
        for (coordinate, &(first, count)) in coordinates.iter_mut().zip(&self.axes).rev() {
            let count = to_usize(count).max(1);
            *coordinate = first + (slot % count) as u64;
            slot /= count;
        }
        coordinates
    }

    /// Writes the results of the box, `width` numbers per slot, to their positions in the output.
    pub(crate) fn put(&self, width: usize, values: &[f64], output: &mut [f64]) {
        let row = self.axes.last().map_or(1, |&(_, count)| to_usize(count)) * width;
        for (number, values) in values.chunks(row.max(1)).enumerate() {
            let at = self.global(number * (row / width)) * width;
            output[at..at + values.len()].copy_from_slice(values);
        }
    }
}

/// One box of output elements.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// One part of each axis, with the positions that the task reads.
    pub(crate) parts: Vec<Part>,
    /// Positions of the window axis before those of its part, whose states are carried from the task before.
    pub(crate) carried: u64,
}

/// Tasks that follow each other on the window axis and are processed in this order. Their windows overlap; the states
/// of the positions that they share are carried from task to task, so that no position is read again. Without windows,
/// a chain is one task.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    /// Reads the positions that the first task shares with the chain before it.
    pub(crate) lead: Option<Task>,
    pub(crate) tasks: Vec<Task>,
}

/// Minimum number of tasks per chain: the positions that are read again for a lead are a small part of a chain.
const CHAIN: usize = 4;

/// Chains of a plan that was cut into parts. `window` is the axis of rolling windows. If repeated reads cost nothing,
/// long chains are cut, so that several threads process them.
pub(crate) fn chains(parts: &[Vec<Part>], window: Option<usize>, rereads: bool) -> Vec<Chain> {
    let mut columns = vec![Vec::new()];
    for (number, axis) in parts.iter().enumerate() {
        // The parts of the window axis are filled in below.
        let parts = if Some(number) == window { &axis[..axis.len().min(1)] } else { &axis[..] };
        let extended = |column: &Vec<Part>| {
            let column = column.clone();
            parts.iter().map(move |part| [&column[..], std::slice::from_ref(part)].concat())
        };
        columns = columns.iter().flat_map(extended).collect();
    }
    let Some(window) = window else {
        let chain = |parts| Chain { lead: None, tasks: vec![Task { parts, carried: 0 }] };
        return columns.into_iter().map(chain).collect();
    };
    let along = &parts[window];
    // Enough chains for many threads, whatever their number: results do not depend on it.
    let most = if rereads { (along.len() / CHAIN).max(1) } else { 1 };
    let segments = (MANY_TASKS / columns.len().max(1)).clamp(1, most);
    let each = along.len().div_ceil(segments).max(1);
    let mut chains = Vec::with_capacity(columns.len() * segments);
    for column in &columns {
        let task = |part: &Part, positions: Range<u64>, carried: u64| {
            let mut parts = column.clone();
            parts[window] = Part { positions, ..part.clone() };
            Task { parts, carried }
        };
        // End of the positions read so far.
        let mut end = 0u64;
        for segment in along.chunks(each) {
            let mut chain = Chain { lead: None, tasks: Vec::with_capacity(segment.len()) };
            for part in segment {
                let carried = end.saturating_sub(part.positions.start);
                let own = part.positions.start.max(end)..part.positions.end.max(end);
                if chain.tasks.is_empty() && carried > 0 {
                    chain.lead = Some(task(part, part.positions.start..end, 0));
                }
                end = own.end;
                chain.tasks.push(task(part, own, carried));
            }
            chains.push(chain);
        }
    }
    chains
}

/// Region: the part of a chunk that a task reads, as positions of the chunk on each axis, including the gaps of steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    /// Grid coordinates of the chunk.
    pub(crate) coords: [u64; MAX_RANK],
    pub(crate) stored: ChunkRef,
    /// Extents of the chunk; 1 past the rank.
    shape: [u64; MAX_RANK],
    window: [(u64, u64); MAX_RANK],
    /// Whether the region is the complete chunk.
    pub(crate) is_whole: bool,
    /// Whether the region has the first selected position of the chunk.
    pub(crate) is_first: bool,
    /// Whether the complete chunk is selected, by all tasks together.
    pub(crate) is_selected: bool,
}

impl Region {
    /// Bytes of the chunk.
    pub(crate) fn chunk_bytes(&self, size: usize) -> u64 {
        self.shape.iter().product::<u64>() * size as u64
    }

    /// First byte of the region in its chunk, and the one after its last.
    pub(crate) fn byte_range(&self, size: usize) -> (u64, u64) {
        let (mut first, mut last, mut stride) = (0, 0, size as u64);
        for (&(low, high), &extent) in self.window.iter().zip(&self.shape).rev() {
            first += low * stride;
            last += (high - 1) * stride;
            stride *= extent;
        }
        (first, last + size as u64)
    }

    /// Bytes from the first to the last value, including those between that are not selected.
    pub(crate) fn span_bytes(&self, size: usize) -> u64 {
        let (start, end) = self.byte_range(size);
        end - start
    }

    /// Bytes from the first to the last selected value of a row of the outermost axis that the region cuts.
    pub(crate) fn run_bytes(&self, size: usize) -> u64 {
        let axis = self.last_cut();
        let (low, high) = self.window[axis];
        self.shape[axis + 1..].iter().product::<u64>() * (high - low) * size as u64
    }

    /// Byte ranges of the chunk without unselected bytes between them, in order.
    pub(crate) fn runs(&self, size: usize) -> impl Iterator<Item = (u64, u64)> {
        let axis = self.last_cut();
        let mut strides = [size as u64; MAX_RANK];
        for axis in (0..MAX_RANK - 1).rev() {
            strides[axis] = strides[axis + 1] * self.shape[axis + 1];
        }
        let (low, high) = self.window[axis];
        let count: u64 = self.window[..axis].iter().map(|(low, high)| high - low).product();
        (0..count).map(move |mut number| {
            let mut start = low * strides[axis];
            for above in (0..axis).rev() {
                let (low, high) = self.window[above];
                start += (low + number % (high - low)) * strides[above];
                number /= high - low;
            }
            (start, start + (high - low) * strides[axis])
        })
    }

    /// Innermost axis with unselected positions; the outermost axis if every position is selected.
    fn last_cut(&self) -> usize {
        let is_cut = |axis: &usize| self.window[*axis] != (0, self.shape[*axis]);
        (0..MAX_RANK).rev().find(is_cut).unwrap_or(0)
    }

    /// Maximum bytes from the first to the last selected value.
    pub(crate) fn bytes(&self, size: usize) -> u64 {
        self.window.iter().map(|(low, high)| high - low).product::<u64>() * size as u64
    }

    /// Outermost axis with several selected positions, and the bytes of one position.
    pub(crate) fn outermost(&self, size: usize) -> Option<(usize, u64)> {
        let axis = (0..MAX_RANK).find(|&axis| self.window[axis].1 - self.window[axis].0 > 1)?;
        Some((axis, self.shape[axis + 1..].iter().product::<u64>() * size as u64))
    }

    /// Splits into regions of `each` positions of an axis.
    pub(crate) fn parts(&self, axis: usize, each: u64) -> impl Iterator<Item = Self> {
        let (low, high) = self.window[axis];
        (low..high).step_by(to_usize(each.max(1))).map(move |start| {
            let mut part = self.clone();
            part.window[axis] = (start, (start + each).min(high));
            part.is_whole = false;
            part.is_first &= start == low;
            part
        })
    }

    /// Whether another region is the same part of a chunk of the same shape.
    fn is_like(&self, other: &Self) -> bool {
        self.shape == other.shape && self.window == other.window && self.is_whole == other.is_whole
    }
}

/// A slab: a contiguous piece of a chunk that is folded at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slab {
    window: [(u64, u64); MAX_RANK],
    /// Start, in bytes of the chunk.
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// Geometry shared by all tasks.
pub(crate) struct Geometry<'a> {
    pub(crate) scope: Scope<'a>,
    pub(crate) roles: &'a [Role],
    /// Stride of each axis among the reduced positions.
    index: Vec<u64>,
}

impl<'a> Geometry<'a> {
    pub(crate) fn new(scope: Scope<'a>, roles: &'a [Role]) -> Self {
        let rank = scope.grid.rank();
        let mut index = vec![0; rank];
        let mut next = 1u64;
        for axis in (0..rank).rev() {
            let extent = match &roles[axis] {
                Role::Kept => continue,
                // Labels are kept as well: the index counts the reduced axes only.
                Role::Grouped(groups) if groups.size == 0 => continue,
                Role::Reduced => scope.selection.axes()[axis].count(),
                Role::Grouped(groups) => groups.size,
                Role::Rolling(rolling) => rolling.size,
            };
            index[axis] = next;
            next = next.saturating_mul(extent);
        }
        Self { scope, roles, index }
    }

    /// Stride of an axis among the reduced positions.
    pub(crate) fn index_step(&self, axis: usize) -> u64 {
        self.index[axis]
    }

    /// Lead of the indices on a window axis: indices start this many positions before the axis, because windows may
    /// start there.
    pub(crate) fn index_lead(&self, axis: usize) -> u64 {
        match &self.roles[axis] {
            Role::Grouped(groups) => groups.size,
            Role::Rolling(rolling) => rolling.size,
            Role::Reduced | Role::Kept => 0,
        }
    }

    /// The box of slots that a task keeps states for. Windows keep one state per position.
    pub(crate) fn block(&self, task: &Task) -> Block {
        let mut block = Block { axes: Vec::new(), output: Vec::new() };
        for (axis, (part, role)) in task.parts.iter().zip(self.roles).enumerate() {
            let extent = self.scope.selection.axes()[axis].count();
            let by_position = matches!(role, Role::Rolling(rolling) if !rolling.separate);
            let slots = if by_position {
                part.positions.start - task.carried..part.positions.end
            } else {
                part.slots.clone()
            };
            let output = if by_position { Some(extent) } else { role.output_len(extent) };
            if let Some(output) = output {
                block.axes.push((slots.start, slots.end - slots.start));
                block.output.push(output);
            }
        }
        block
    }

    /// Regions of the chunks that contribute to a task, in grid order.
    pub(crate) fn regions(&self, task: &Task) -> Result<Vec<Region>, ErrorKind> {
        let mut regions = Vec::new();
        self.for_each_chunk(task, |coords, stored| {
            regions.extend(self.region(task, coords, stored));
            Ok(())
        })?;
        Ok(regions)
    }

    /// Visits the chunks of a task, in grid order.
    pub(crate) fn for_each_chunk(
        &self,
        task: &Task,
        visit: impl FnMut(&[u64; MAX_RANK], ChunkRef) -> Result<(), ErrorKind>,
    ) -> Result<(), ErrorKind> {
        let ranges: Vec<Range<u64>> = task.parts.iter().map(|part| part.positions.clone()).collect();
        for_each_chunk(&self.scope, &ranges, visit)
    }

    /// The part of a chunk that a task reads; `None` if it is empty.
    pub(crate) fn region(&self, task: &Task, coords: &[u64; MAX_RANK], stored: ChunkRef) -> Option<Region> {
        let mut region = Region {
            coords: *coords,
            stored,
            shape: [1; MAX_RANK],
            window: [(0, 1); MAX_RANK],
            is_whole: true,
            is_first: true,
            is_selected: true,
        };
        for (axis, part) in task.parts.iter().enumerate() {
            let slice = self.scope.selection.axes()[axis];
            let (low, high) = self.scope.grid.window(axis, coords[axis]);
            let (first, count) = slice.hits(low, high)?;
            region.shape[axis] = high - low;
            region.is_selected &= slice.step == 1 && count == high - low;
            region.is_first &= first >= part.positions.start;
            let (first, end) = (first.max(part.positions.start), (first + count).min(part.positions.end));
            if first >= end {
                return None;
            }
            let position = |number: u64| slice.start + number * slice.step - low;
            region.window[axis] = (position(first), position(end - 1) + 1);
            region.is_whole &= region.window[axis] == (0, high - low);
        }
        region.is_whole &= region.is_selected;
        Some(region)
    }

    /// Number of leading regions that are folded together: the same part of chunks that follow each other on the
    /// reduced axes.
    pub(crate) fn batch(&self, regions: &[Region], most: u64) -> usize {
        let Some(first) = regions.first() else { return 0 };
        let axes = first.window.iter().zip(self.roles);
        let reduced = axes.filter(|(_, role)| matches!(role, Role::Reduced));
        let rows: u64 = reduced.map(|((low, high), _)| high - low).product();
        let most = to_usize((most / rows.max(1)).max(1));
        let is_behind = |region: &Region| {
            let axes = first.coords.iter().zip(&region.coords).zip(self.roles);
            region.is_like(first)
                && axes.clone().all(|((a, b), role)| matches!(role, Role::Reduced) || a == b)
        };
        1 + regions[1..].iter().take(most - 1).take_while(|region| is_behind(region)).count()
    }

    /// Splits a region into slabs of limited size, in the order of the chunk. If slabs must be contiguous, they contain
    /// no unselected bytes.
    pub(crate) fn slabs<E>(
        &self,
        region: &Region,
        most: u64,
        contiguous: bool,
        mut visit: impl FnMut(&Slab) -> Result<(), E>,
    ) -> Result<(), E> {
        let size = self.scope.grid.element().size() as u64;
        let rank = self.scope.grid.rank();
        let mut strides = [size; MAX_RANK];
        for axis in (0..rank - 1).rev() {
            strides[axis] = strides[axis + 1] * region.shape[axis + 1];
        }
        let below = |axis: usize| strides[axis];
        let by_size = (0..rank).find(|&axis| below(axis) <= most).unwrap_or(rank - 1);
        let axis = if contiguous { by_size.max(region.last_cut()) } else { by_size };
        let step = (most / below(axis).max(1)).max(1);
        let mut slab = Slab { window: region.window, start: 0, end: 0 };
        for (window, &(low, _)) in slab.window.iter_mut().zip(&region.window[..axis]) {
            *window = (low, low + 1);
        }
        loop {
            let (low, high) = region.window[axis];
            let mut start = low;
            while start < high {
                slab.window[axis] = (start, (start + step).min(high));
                start += step;
                let windows = slab.window[..rank].iter().zip(&strides);
                slab.start = windows.clone().map(|((low, _), stride)| low * stride).sum();
                slab.end = windows.map(|((_, high), stride)| (high - 1) * stride).sum::<u64>() + size;
                visit(&slab)?;
            }
            // Advance to the next position of the axes above.
            let mut above = axis;
            loop {
                let Some(next) = above.checked_sub(1) else { return Ok(()) };
                above = next;
                let place = slab.window[above].0 + self.scope.selection.axes()[above].step;
                if place < region.window[above].1 {
                    slab.window[above] = (place, place + 1);
                    break;
                }
                let low = region.window[above].0;
                slab.window[above] = (low, low + 1);
            }
        }
    }

    /// The single slot that a chunk is folded into, if the chunk is entirely inside the task, with step 1 on every
    /// axis; else `None`.
    pub(crate) fn single_slot(&self, task: &Task, block: &Block, region: &Region) -> Option<usize> {
        let mut slot = 0;
        let mut axes = block.axes.iter();
        for (axis, part) in task.parts.iter().enumerate() {
            let slice = self.scope.selection.axes()[axis];
            let (low, high) = self.scope.grid.window(axis, region.coords[axis]);
            let (first, count) = slice.hits(low, high)?;
            let inside = first >= part.positions.start && first + count <= part.positions.end;
            if slice.step != 1 || count != high - low || !inside {
                return None;
            }
            let slot_of = |position: u64| match &self.roles[axis] {
                Role::Reduced => None,
                Role::Kept | Role::Rolling(_) => Some(position),
                Role::Grouped(groups) => Some(u64::from(groups.numbers[usize::try_from(position).ok()?])),
            };
            if let Some(own) = slot_of(first) {
                if !(first..first + count).all(|position| slot_of(position) == Some(own)) {
                    return None;
                }
                let &(start, extent) = axes.next()?;
                let own = own.checked_sub(start).filter(|&own| own < extent)?;
                slot = slot * usize::try_from(extent).ok()? + usize::try_from(own).ok()?;
            }
        }
        Some(slot)
    }

    /// The first slot and the number of slots of a region, if its values are consecutive slots in the order of the
    /// chunk.
    pub(crate) fn single_run(&self, task: &Task, block: &Block, region: &Region) -> Option<(usize, usize)> {
        let slab = Slab { window: region.window, start: 0, end: 0 };
        let mut piece = self.piece(task, block, region, &slab)?;
        piece.join(false);
        match piece.axes[..] {
            [] => Some((piece.slot, 1)),
            [AxisRun { count, stride: 1, slots: SlotStep::Each(1), keep: None, .. }] => {
                Some((piece.slot, count))
            }
            _ => None,
        }
    }

    /// The part of a slab that a task reads; `None` if it is empty. Offsets are relative to the first value of the
    /// slab.
    pub(crate) fn piece<'p>(
        &'p self,
        task: &'p Task,
        block: &Block,
        region: &Region,
        slab: &Slab,
    ) -> Option<Piece<'p>> {
        let grid = self.scope.grid;
        let rank = grid.rank();
        let mut piece = Piece { axes: Vec::with_capacity(rank), offset: 0, slot: 0, index: 0, cold: false };
        let mut value_stride = [1usize; MAX_RANK];
        for axis in (0..rank.saturating_sub(1)).rev() {
            value_stride[axis] = value_stride[axis + 1] * to_usize(region.shape[axis + 1]);
        }
        let mut slot_stride = [1usize; MAX_RANK];
        for axis in (0..block.axes.len().saturating_sub(1)).rev() {
            slot_stride[axis] = slot_stride[axis + 1] * to_usize(block.axes[axis + 1].1);
        }
        let mut output = 0;
        for (axis, slice) in self.scope.selection.axes().iter().enumerate() {
            let part = &task.parts[axis].positions;
            let (chunk_low, _) = grid.window(axis, region.coords[axis]);
            let (low, high) = slab.window[axis];
            let (low, high) = (chunk_low + low, chunk_low + high);
            let (first, count) = slice.hits(low, high)?;
            let (first, end) = (first.max(part.start), (first + count).min(part.end));
            if first >= end {
                return None;
            }
            let position = slice.start + first * slice.step - low;
            piece.offset += to_usize(position) * value_stride[axis];
            let (from, to) = (to_usize(first), to_usize(end));
            let positions = self.scope.positions.filter(|keep| keep.axis == axis);
            let keep = task.parts[axis].keep.as_deref().or(positions.map(|keep| &keep.counts[..]));
            let is_reversed = self.scope.reversed.get(axis) == Some(&true);
            let mut run = AxisRun {
                first,
                count: to - from,
                stride: to_usize(slice.step).saturating_mul(value_stride[axis]),
                slots: SlotStep::Same,
                index: if is_reversed { self.index[axis].wrapping_neg() } else { self.index[axis] },
                keep: keep.map(|keep| &keep[from..to]),
            };
            let role = &self.roles[axis];
            if !matches!(role, Role::Reduced) {
                let (start, stride) = (block.axes[output].0, slot_stride[output]);
                output += 1;
                match role {
                    Role::Grouped(groups) => {
                        let first = u32::try_from(start).unwrap_or(u32::MAX);
                        run.slots = SlotStep::Group { groups: &groups.numbers[from..to], first, stride };
                    }
                    // A task has one window.
                    Role::Rolling(rolling) if rolling.separate => {}
                    _ => {
                        run.slots = SlotStep::Each(stride);
                        piece.slot += to_usize(first - start) * stride;
                    }
                }
            }
            let place = if is_reversed { slice.count() - 1 - first } else { first };
            piece.index += (place + self.index_lead(axis)) * self.index[axis];
            piece.axes.push(run);
        }
        Some(piece)
    }
}

/// Converts to `usize`. Chunks and blocks are in memory, so their sizes fit; a saturated value fails the bounds check of
/// the slice it indexes.
pub(crate) fn to_usize(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
