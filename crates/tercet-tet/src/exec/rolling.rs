//! Finishes reductions: merges rolling windows, pads short ones and writes the results.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use tercet_kernel::{Accumulator, Counts, Roll, RollPadding, Runs};

use super::drive::{Driver, States};
use super::predicate::compute_value;
use super::task::{Block, Task, to_usize};
use crate::error::ErrorKind;
use crate::query::resolved::{Groups, Padding, Role, Rolling};

/// Windows that share fewer positions than this are merged position by position.
const FEW: u64 = 4;
/// Padding values folded at a time.
const PADS: usize = 4096;

/// Finishes the slots of a task and writes the results to their positions in the output.
pub(crate) fn finish(
    run: &Driver<'_>,
    task: &Task,
    block: &Block,
    states: &mut States,
    output: &Mutex<Vec<f64>>,
) -> Result<(), ErrorKind> {
    let mut output_axis = 0;
    for (axis, role) in run.visitor.geometry.roles.iter().enumerate() {
        let window = Window { run, task, block, axis, output_axis };
        match role {
            Role::Rolling(rolling) if rolling.separate => {
                window.finish_separate(rolling, states, output);
                return Ok(());
            }
            Role::Rolling(rolling) => return window.finish_rolling(rolling, states, output),
            Role::Grouped(groups) if groups.size > 0 => {
                window.finish_bins(groups, states, output);
                return Ok(());
            }
            Role::Reduced => {}
            Role::Kept | Role::Grouped(_) => output_axis += 1,
        }
    }
    let counts = match &states.counts {
        Some(counts) => Counts::Each(counts),
        None => Counts::Same(per_position(run, None)),
    };
    put(run, block, &mut *states.accumulator, counts, output);
    Ok(())
}

/// Number of values of a slot if no value is missing: the product of the reduced axes except one.
fn per_position(run: &Driver<'_>, except: Option<usize>) -> u64 {
    let axes = run.job.plan.selection.axes().iter().zip(run.visitor.geometry.roles).enumerate();
    let reduced = axes.filter(|(axis, (_, role))| Some(*axis) != except && matches!(role, Role::Reduced));
    reduced.map(|(_, (slice, _))| slice.count()).product()
}

/// Writes results to their positions in the output.
fn put(
    run: &Driver<'_>,
    block: &Block,
    accumulator: &mut dyn Accumulator,
    counts: Counts<'_>,
    output: &Mutex<Vec<f64>>,
) {
    let width = run.reduction.width();
    let mut values = vec![0.0; block.len() * width];
    accumulator.finish(counts, &mut values);
    let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
    block.put(width, &values, &mut output);
}

/// The window axis of a block.
struct Window<'w, 'a> {
    run: &'w Driver<'a>,
    task: &'w Task,
    block: &'w Block,
    axis: usize,
    output_axis: usize,
}

impl Window<'_, '_> {
    /// Numbers of slots of the block outside and inside the window axis.
    fn around(&self) -> (usize, usize) {
        let count = |axes: &[(u64, u64)]| axes.iter().map(|&(_, count)| to_usize(count)).product();
        (count(&self.block.axes[..self.output_axis]), count(&self.block.axes[self.output_axis + 1..]))
    }

    fn per_position(&self) -> u64 {
        per_position(self.run, Some(self.axis))
    }

    fn finish_rolling(
        &self,
        rolling: &Rolling,
        states: &States,
        output: &Mutex<Vec<f64>>,
    ) -> Result<(), ErrorKind> {
        let part = &self.task.parts[self.axis];
        let (outer, inner) = self.around();
        let (first, positions) = self.block.axes[self.output_axis];
        let positions = to_usize(positions);
        let starts: Vec<i128> = part.slots.clone().map(|window| start_of(rolling, window)).collect();
        let real = |start: &i128| real_range(*start, rolling.size, first, positions);
        let windows: Vec<Range<usize>> = starts.iter().map(real).collect();
        let mut block = self.block.clone();
        block.axes[self.output_axis] = (part.slots.start, windows.len() as u64);
        block.output[self.output_axis] = rolling.count;
        let overlap = rolling.size > FEW && rolling.step.saturating_mul(FEW) < rolling.size;
        let size = to_usize(rolling.size);
        let missing: Vec<u64> = windows.iter().map(|real| rolling.size - real.len() as u64).collect();
        let roll = Roll { outer, positions, inner, size, overlap, windows: &windows };
        if let Some(values) = self.roll_values(&rolling.padding, &missing, &roll, &*states.accumulator) {
            let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
            block.put(1, &values, &mut output);
            return Ok(());
        }
        let width = self.run.reduction.width();
        let mut values = vec![0.0; block.len() * width];
        let ends = Ends { padding: &rolling.padding, starts: &starts, missing: &missing };
        let each = self.per_position();
        tercet_kernel::roll(&*states.accumulator, &roll, |rolled, results| {
            let own = rolled.inner.len();
            // Number of values of each window, without padding.
            let counts = match &states.counts {
                None => {
                    WindowCounts::ByWindow(windows.iter().map(|window| each * window.len() as u64).collect())
                }
                Some(counts) => {
                    let at = |line: usize, position: usize, slot: usize| {
                        counts[((rolled.outer.start + line) * positions + position) * inner
                            + rolled.inner.start
                            + slot]
                    };
                    let slots = (0..rolled.outer.len() * windows.len() * own).map(|number| {
                        let (line, slot) = (number / own, number % own);
                        let (line, window) = (line / windows.len(), &windows[line % windows.len()]);
                        window.clone().map(|position| at(line, position, slot)).sum()
                    });
                    WindowCounts::BySlot(slots.collect())
                }
            };
            let mut found = vec![0.0; rolled.outer.len() * windows.len() * own * width];
            self.results(&ends, (rolled.outer.len(), own), (results, counts), &mut found);
            for (line, found) in found.chunks_exact(own * width).enumerate() {
                let line = rolled.outer.start * windows.len() + line;
                let at = (line * inner + rolled.inner.start) * width;
                values[at..at + found.len()].copy_from_slice(found);
            }
            Ok::<(), ErrorKind>(())
        })?;
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        block.put(width, &values, &mut output);
        Ok(())
    }

    /// Results of reductions that keep the values of every position.
    fn roll_values(
        &self,
        padding: &Padding,
        missing: &[u64],
        roll: &Roll<'_>,
        accumulator: &dyn Accumulator,
    ) -> Option<Vec<f64>> {
        let (compute, dtype) = (accumulator.compute(), self.run.element);
        let pad = padding.value.and_then(|value| compute_value(value, dtype, compute));
        let value = pad.as_ref().map(|pad| &pad[..compute.size()]);
        let each = self.per_position();
        let counts: Vec<u64> = missing.iter().map(|missing| missing.saturating_mul(each)).collect();
        accumulator.roll_values(roll, &RollPadding { value, counts: &counts, min_count: padding.min_count })
    }

    /// Windows that were reduced one by one.
    fn finish_separate(&self, rolling: &Rolling, states: &mut States, output: &Mutex<Vec<f64>>) {
        let part = &self.task.parts[self.axis];
        let extent = self.run.job.plan.selection.axes()[self.axis].count();
        let starts: Vec<i128> = part.slots.clone().map(|window| start_of(rolling, window)).collect();
        let real = |start: &i128| real_range(*start, rolling.size, 0, to_usize(extent)).len() as u64;
        let missing: Vec<u64> = starts.iter().map(|start| rolling.size - real(start)).collect();
        let full = (part.positions.end - part.positions.start).saturating_mul(self.per_position());
        let counts = states.counts.take().unwrap_or_else(|| vec![full; self.block.len()]);
        let states = (&mut *states.accumulator, counts);
        self.end(&Ends { padding: &rolling.padding, starts: &starts, missing: &missing }, states, output);
    }

    fn finish_bins(&self, groups: &Groups, states: &mut States, output: &Mutex<Vec<f64>>) {
        let part = &self.task.parts[self.axis];
        let extent = groups.numbers.len() as u64;
        // If the first bin is short, bins are aligned to the end of the axis.
        let ends_aligned = groups.numbers.partition_point(|&group| group == 0) as u64 != groups.size;
        let start_of = |bin: u64| {
            let from_end =
                i128::from(extent) - i128::from(u64::from(groups.count) - bin) * i128::from(groups.size);
            if ends_aligned { from_end } else { i128::from(bin) * i128::from(groups.size) }
        };
        let starts: Vec<i128> = part.slots.clone().map(start_of).collect();
        let real = |start: &i128| real_range(*start, groups.size, 0, to_usize(extent)).len() as u64;
        let missing: Vec<u64> = starts.iter().map(|start| groups.size - real(start)).collect();
        let padding = groups.padding.unwrap_or(Padding { value: None, min_count: 1 });
        let counts = states.counts.take().unwrap_or_else(|| vec![0; self.block.len()]);
        let states = (&mut *states.accumulator, counts);
        self.end(&Ends { padding: &padding, starts: &starts, missing: &missing }, states, output);
    }

    /// Finishes windows or bins of all slots of the block and writes their results.
    fn end(
        &self,
        ends: &Ends<'_>,
        (accumulator, counts): (&mut dyn Accumulator, Vec<u64>),
        output: &Mutex<Vec<f64>>,
    ) {
        let width = self.run.reduction.width();
        let mut values = vec![0.0; self.block.len() * width];
        self.results(ends, self.around(), (accumulator, WindowCounts::BySlot(counts)), &mut values);
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        self.block.put(width, &values, &mut output);
    }

    /// Pads the windows of some lines and finishes them.
    fn results(
        &self,
        ends: &Ends<'_>,
        (lines, inner): (usize, usize),
        (accumulator, counts): (&mut dyn Accumulator, WindowCounts),
        values: &mut [f64],
    ) {
        let windows = ends.starts.len();
        let width = self.run.reduction.width();
        let indexed = self.run.reduction.is_indexed();
        let padded = ends.padding.value.is_some() && ends.missing.iter().any(|&missing| missing > 0);
        if let WindowCounts::ByWindow(counts) = &counts
            && !padded
            && !indexed
            && counts.iter().all(|&count| Some(&count) == counts.first() && count >= ends.padding.min_count)
        {
            accumulator.finish(Counts::Same(counts.first().copied().unwrap_or(0)), values);
            return;
        }
        let counts: Vec<u64> = match counts {
            WindowCounts::BySlot(counts) => counts,
            WindowCounts::ByWindow(counts) => {
                let line = counts.iter().flat_map(|&count| std::iter::repeat_n(count, inner));
                (0..lines).flat_map(|_| line.clone()).collect()
            }
        };
        let mut all = counts.clone();
        for (window, &missing) in ends.missing.iter().enumerate() {
            let which = (window, windows);
            let in_front = ends.starts[window] < 0;
            self.pad(ends.padding, (missing, in_front), accumulator, &mut all, (lines, inner), which);
        }
        accumulator.settle();
        accumulator.finish(Counts::Each(&all), values);
        let geometry = &self.run.visitor.geometry;
        let (step, lead) = (i128::from(geometry.index_step(self.axis)), geometry.index_lead(self.axis));
        let are_indices = self.run.reduction.are_indices();
        let are_counts =
            if self.run.job.as_reference { vec![false; width] } else { self.run.reduction.are_counts() };
        // Windows with too few values have no result but their number of values; indices are relative to the start of their window.
        for (slot, values) in values.chunks_mut(width).enumerate() {
            let start = ends.starts[slot / inner % windows];
            #[expect(clippy::cast_precision_loss, reason = "indices are far below 2^53")]
            let shift = ((start + i128::from(lead)) * step) as f64;
            let too_few = counts[slot] < ends.padding.min_count;
            let kinds = are_indices.iter().zip(&are_counts);
            for (value, (is_index, is_count)) in values.iter_mut().zip(kinds) {
                *value = match (too_few && !is_count, is_index) {
                    (true, true) => -1.0,
                    (true, false) => f64::NAN,
                    (false, true) if *value >= 0.0 => *value - shift,
                    (false, _) => *value,
                };
            }
        }
    }

    /// Folds padding values into a window.
    fn pad(
        &self,
        padding: &Padding,
        (missing, in_front): (u64, bool),
        accumulator: &mut dyn Accumulator,
        counts: &mut [u64],
        (lines, inner): (usize, usize),
        (window, windows): (usize, usize),
    ) {
        let compute = accumulator.compute();
        let dtype = self.run.element;
        let value = padding.value.filter(|_| missing > 0);
        let Some(value) = value.and_then(|value| compute_value(value, dtype, compute)) else { return };
        let geometry = &self.run.visitor.geometry;
        let extent = self.run.job.plan.selection.axes()[self.axis].count();
        // Windows that start before the axis start earlier by the number of missing positions.
        let lead = geometry.index_lead(self.axis);
        let position = if in_front { lead.saturating_sub(missing) } else { lead + extent };
        let index = position.saturating_mul(geometry.index_step(self.axis));
        let times = missing.saturating_mul(self.per_position());
        let mut words = vec![0u64; PADS];
        let bytes = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..PADS * compute.size()];
        for value_bytes in bytes.chunks_exact_mut(compute.size()) {
            value_bytes.copy_from_slice(&value[..compute.size()]);
        }
        for line in 0..lines {
            for i in 0..inner {
                let at = (line * windows + window) * inner + i;
                counts[at] = counts[at].saturating_add(times);
                // Among equal values the first one wins.
                let mut left = if accumulator.is_indexed() { times.min(1) } else { times };
                while left > 0 {
                    let len = to_usize(left.min(PADS as u64));
                    let values = &bytes[..len * compute.size()];
                    accumulator.runs(at, &Runs { values, len, stride: len, count: 1, index, index_step: 0 });
                    left -= len as u64;
                }
            }
        }
    }
}

/// How windows end: padding, first positions, numbers of missing positions.
struct Ends<'a> {
    padding: &'a Padding,
    starts: &'a [i128],
    missing: &'a [u64],
}

/// Number of values of windows, without padding.
enum WindowCounts {
    /// The same for all slots of a window.
    ByWindow(Vec<u64>),
    BySlot(Vec<u64>),
}

/// First position of a window, possibly before the axis.
fn start_of(rolling: &Rolling, window: u64) -> i128 {
    i128::from(rolling.first) + i128::from(window) * i128::from(rolling.step)
}

/// Positions of a window that are on the axis, relative to the first position of the part.
fn real_range(start: i128, size: u64, first: u64, positions: usize) -> Range<usize> {
    let clip = |at: i128| {
        let at = (at - i128::from(first)).clamp(0, positions as i128);
        usize::try_from(at).unwrap_or(0)
    };
    clip(start)..clip(start + i128::from(size))
}
