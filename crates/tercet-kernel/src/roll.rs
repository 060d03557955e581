//! Rolling windows: merges the slots of positions to the slots of windows.

use std::ops::Range;

use tercet_core::tensor::OutOfMemory;

use crate::accumulator::Accumulator;

/// Rolling windows over positions.
#[derive(Clone, Copy, Debug)]
pub struct Roll<'a> {
    /// Product of the extents of the axes before the window axis, in slots.
    pub outer: usize,
    /// Positions of the window axis.
    pub positions: usize,
    /// Product of the extents of the axes after the window axis, in slots.
    pub inner: usize,
    /// Positions of a full window.
    pub size: usize,
    /// Whether windows overlap enough to share partial results.
    pub overlap: bool,
    /// Range of positions of each window; starts and ends are ascending.
    pub windows: &'a [Range<usize>],
}

/// Padding of rolling windows.
#[derive(Clone, Copy, Debug)]
pub struct RollPadding<'a> {
    /// Padding value, of the compute type.
    pub value: Option<&'a [u8]>,
    /// Number of padding values per window.
    pub counts: &'a [u64],
    /// Windows with fewer other values have no result.
    pub min_count: u64,
}

/// Lines of positions whose slots are scanned: `lines × positions × inner` slots.
#[derive(Clone, Copy, Debug)]
pub struct Scan {
    /// Positions of a line.
    pub positions: usize,
    /// Slots of a position.
    pub inner: usize,
    /// Number of positions after which a scan starts again.
    pub period: usize,
}

/// Windows that are ready: the slots of all windows of some lines, for a range of inner slots.
#[derive(Clone, Debug)]
pub struct Rolled {
    /// Lines.
    pub outer: Range<usize>,
    /// Slots after the window axis.
    pub inner: Range<usize>,
}

/// Slots that are rolled together: their states stay in the cache.
const TOGETHER: usize = if cfg!(test) { 40 } else { 16 << 10 };

/// Merges positions to windows. `slots` has `outer × positions × inner` settled slots; `ready` receives accumulators
/// with `lines × windows × inner` slots.
///
/// Overlapping windows share work: every window is the end of one run of `size` positions and the start of the next.
pub fn roll<E: From<OutOfMemory>>(
    slots: &dyn Accumulator,
    roll: &Roll<'_>,
    mut ready: impl FnMut(&Rolled, &mut dyn Accumulator) -> Result<(), E>,
) -> Result<(), E> {
    let line = roll.positions.max(roll.windows.len()).max(1);
    let width = (TOGETHER / line).clamp(1, roll.inner.max(1));
    let lines = if width == roll.inner { (TOGETHER / (line * width)).max(1) } else { 1 };
    let mut buffers = Buffers::default();
    let same = |one: &Range<usize>, next: &Range<usize>| continues(one, next, roll.size);
    let runs = roll.windows.chunk_by(same).map(|run| (run[0].clone(), run.len()));
    let runs: Vec<(Range<usize>, usize)> = if roll.overlap { runs.collect() } else { Vec::new() };
    for outer in (0..roll.outer).step_by(lines) {
        let outer = outer..(outer + lines).min(roll.outer);
        for inner in (0..roll.inner).step_by(width) {
            let rolled = Rolled { outer: outer.clone(), inner: inner..(inner + width).min(roll.inner) };
            let merged = buffers.merge(slots, (roll, &runs), &rolled)?;
            ready(&rolled, merged)?;
        }
    }
    Ok(())
}

/// Accumulators that are reused.
#[derive(Default)]
struct Buffers {
    starts: Option<Box<dyn Accumulator>>,
    ends: Option<Box<dyn Accumulator>>,
    windows: Option<Box<dyn Accumulator>>,
}

/// An empty accumulator with this number of slots.
fn empty<'b>(
    buffer: &'b mut Option<Box<dyn Accumulator>>,
    like: &dyn Accumulator,
    slots: usize,
) -> Result<&'b mut Box<dyn Accumulator>, OutOfMemory> {
    match buffer.take().filter(|kept| kept.slots() == slots) {
        Some(mut kept) => {
            kept.clear();
            Ok(buffer.insert(kept))
        }
        None => Ok(buffer.insert(like.fresh(slots)?)),
    }
}

impl Buffers {
    /// Merges positions to windows. `runs` are the first windows and the lengths of runs of windows that are made alike.
    fn merge(
        &mut self,
        slots: &dyn Accumulator,
        (roll, runs): (&Roll<'_>, &[(Range<usize>, usize)]),
        rolled: &Rolled,
    ) -> Result<&mut dyn Accumulator, OutOfMemory> {
        let (lines, width) = (rolled.outer.len(), rolled.inner.len());
        let windows = empty(&mut self.windows, slots, lines * roll.windows.len() * width)?;
        if !roll.overlap {
            for (line, outer) in rolled.outer.clone().enumerate() {
                for (window, positions) in roll.windows.iter().enumerate() {
                    let at = (line * roll.windows.len() + window) * width;
                    for position in positions.clone() {
                        let from = (outer * roll.positions + position) * roll.inner + rolled.inner.start;
                        windows.merge(at, slots, from, width);
                    }
                }
            }
            windows.settle();
            return Ok(&mut **windows);
        }
        let scan = Scan { positions: roll.positions, inner: width, period: roll.size };
        let count = lines * roll.positions * width;
        let starts = empty(&mut self.starts, slots, count)?;
        let ends = empty(&mut self.ends, slots, count)?;
        for into in [&mut *starts, &mut *ends] {
            if width == roll.inner {
                into.merge(0, slots, rolled.outer.start * roll.positions * roll.inner, count);
            } else {
                for position in 0..roll.positions {
                    let from = (rolled.outer.start * roll.positions + position) * roll.inner;
                    into.merge(position * width, slots, from + rolled.inner.start, width);
                }
            }
            into.settle();
        }
        starts.scan(&scan, false);
        ends.scan(&scan, true);
        for line in 0..lines {
            let mut at = line * roll.windows.len() * width;
            for (first, count) in runs {
                let slots = count * width;
                let from = |position: usize| (line * roll.positions + position) * width;
                let shape = Shape::new(first, roll.size);
                if shape != Shape::Start && !first.is_empty() {
                    windows.merge(at, &**ends, from(first.start), slots);
                }
                if shape != Shape::End && !first.is_empty() {
                    windows.merge(at, &**starts, from(first.end - 1), slots);
                }
                at += slots;
            }
        }
        windows.settle();
        Ok(&mut **windows)
    }
}

/// What a window is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// The start of a run of positions.
    Start,
    /// The end of a run.
    End,
    /// The end of a run and the start of the next.
    Both,
}

impl Shape {
    fn new(window: &Range<usize>, size: usize) -> Self {
        let same_run = window.start / size == window.end.saturating_sub(1) / size;
        match (window.start.is_multiple_of(size), same_run) {
            (true, true) => Self::Start,
            (_, true) => Self::End,
            _ => Self::Both,
        }
    }
}

/// Whether the next window is one position later and made in the same way.
fn continues(one: &Range<usize>, next: &Range<usize>, size: usize) -> bool {
    next.start == one.start + 1
        && next.end == one.end + 1
        && !one.is_empty()
        && Shape::new(one, size) == Shape::new(next, size)
}
