//! From the states of cells to results: windows are put together, short ones are padded, and numbers come out.

use std::sync::Mutex;

use super::drive::Run;
use super::fold::{Block, Fold};
use super::number::Number;
use super::predicate::fill_value;
use super::task::{Task, to_usize};
use crate::query::resolved::{Groups, Padding, Role, Rolling};

/// Windows that share fewer positions than this are put together position by position.
const FEW: u64 = 4;
/// Padding cells folded at a time.
const PADS: usize = 4096;

/// Finishes the cells of a task and writes the results to their places.
pub(crate) fn finish<T: Number, F: Fold>(
    run: &Run<'_, T, F>,
    task: &Task,
    block: &Block,
    cells: F::Cells<T>,
    output: &Mutex<Vec<f64>>,
) {
    let mut output_axis = 0;
    for (axis, role) in run.geometry.roles.iter().enumerate() {
        let window = Window { run, task, block, axis, output_axis };
        match role {
            Role::Rolling(rolling) => return window.finish_rolling(rolling, &cells, output),
            Role::Grouped(groups) if groups.size > 0 => return window.finish_bins(groups, cells, output),
            Role::Reduced => {}
            Role::Kept | Role::Grouped(_) => output_axis += 1,
        }
    }
    put(block, run.fold.width(), &run.fold.finish(cells), output);
}

/// The axis of windows in a block.
struct Window<'w, 'a, T: Number, F: Fold> {
    run: &'w Run<'a, T, F>,
    task: &'w Task,
    block: &'w Block,
    axis: usize,
    output_axis: usize,
}

impl<T: Number, F: Fold> Window<'_, '_, T, F> {
    /// Cells of the block outside and inside the axis of windows.
    fn around(&self) -> (usize, usize) {
        let count = |axes: &[(u64, u64)]| axes.iter().map(|&(_, count)| to_usize(count)).product();
        (count(&self.block.axes[..self.output_axis]), count(&self.block.axes[self.output_axis + 1..]))
    }

    /// Cells of one position: what else is reduced.
    fn per_position(&self) -> u64 {
        let axes = self.run.job.plan.selection.axes().iter().zip(self.run.geometry.roles).enumerate();
        let reduced = axes.filter(|(axis, (_, role))| *axis != self.axis && matches!(role, Role::Reduced));
        reduced.map(|(_, (slice, _))| slice.count()).product()
    }

    fn finish_rolling(&self, rolling: &Rolling, cells: &F::Cells<T>, output: &Mutex<Vec<f64>>) {
        let fold = self.run.fold;
        let part = &self.task.parts[self.axis];
        let (outer, inner) = self.around();
        let positions = to_usize(part.positions.end - part.positions.start);
        let windows = to_usize(part.cells.end - part.cells.start);
        let mut block = self.block.clone();
        block.axes[self.output_axis] = (part.cells.start, windows as u64);
        block.output[self.output_axis] = rolling.count;
        let mut results = fold.start::<T>(&block);
        let size = to_usize(rolling.size);
        let sums = (rolling.size > FEW && rolling.step.saturating_mul(FEW) < rolling.size)
            .then(|| Sums::<T, F>::new(fold, cells, (outer, positions, inner), size));
        for window in 0..windows {
            let start = start_of(rolling, part.cells.start + window as u64);
            let real = real_range(start, rolling.size, part.positions.start, positions);
            for o in 0..outer {
                let at = (o * windows + window) * inner;
                let line = o * positions;
                match &sums {
                    Some(sums) => sums.merge(fold, (&mut results, at), line, real.clone(), (size, inner)),
                    None => real.clone().for_each(|position| {
                        fold.merge::<T>((&mut results, at), (cells, (line + position) * inner), inner);
                    }),
                }
            }
            let missing = rolling.size - real.len() as u64;
            self.pad(&rolling.padding, missing, start < 0, &mut results, window, windows);
        }
        let mut values = fold.finish::<T>(results);
        let starts: Vec<i128> = (part.cells.clone()).map(|window| start_of(rolling, window)).collect();
        let real = |window: usize| {
            real_range(starts[window], rolling.size, part.positions.start, positions).len() as u64
        };
        self.correct(&mut values, &rolling.padding, &starts, real);
        put(&block, fold.width(), &values, output);
    }

    fn finish_bins(&self, groups: &Groups, mut cells: F::Cells<T>, output: &Mutex<Vec<f64>>) {
        let part = &self.task.parts[self.axis];
        let extent = groups.cells.len() as u64;
        let bins = to_usize(part.cells.end - part.cells.start);
        // Short at the front, if at all: then bins end where the axis ends.
        let ends_aligned = groups.cells.partition_point(|&cell| cell == 0) as u64 != groups.size;
        let start_of = |bin: u64| {
            let from_end =
                i128::from(extent) - i128::from(u64::from(groups.count) - bin) * i128::from(groups.size);
            if ends_aligned { from_end } else { i128::from(bin) * i128::from(groups.size) }
        };
        let starts: Vec<i128> = part.cells.clone().map(start_of).collect();
        let real = |bin: usize| real_range(starts[bin], groups.size, 0, to_usize(extent)).len() as u64;
        let padding = groups.padding.unwrap_or(Padding { value: None, min_count: 1 });
        for (bin, &start) in starts.iter().enumerate() {
            self.pad(&padding, groups.size - real(bin), start < 0, &mut cells, bin, bins);
        }
        let mut values = self.run.fold.finish(cells);
        self.correct(&mut values, &padding, &starts, real);
        put(self.block, self.run.fold.width(), &values, output);
    }

    /// Folds padding cells into a window.
    fn pad(
        &self,
        padding: &Padding,
        missing: u64,
        in_front: bool,
        cells: &mut F::Cells<T>,
        window: usize,
        windows: usize,
    ) {
        let Some(value) = padding.value.filter(|_| missing > 0).and_then(fill_value::<T>) else { return };
        let (outer, inner) = self.around();
        let geometry = &self.run.geometry;
        let extent = self.run.job.plan.selection.axes()[self.axis].count();
        // Windows that start before the axis do so by as many positions as are missing.
        let lead = geometry.index_lead(self.axis);
        let position = if in_front { lead.saturating_sub(missing) } else { lead + extent };
        let index = position.saturating_mul(geometry.index_step(self.axis));
        let times = missing.saturating_mul(self.per_position());
        for o in 0..outer {
            for i in 0..inner {
                let at = (o * windows + window) * inner + i;
                if F::INDEXED {
                    // All are equal, and the first one wins.
                    self.run.fold.one(cells, at, value, index);
                    continue;
                }
                let values = [value; PADS];
                let mut left = times;
                while left > 0 {
                    let some = to_usize(left.min(PADS as u64));
                    self.run.fold.run(cells, at, &values[..some], index);
                    left -= some as u64;
                }
            }
        }
    }

    /// Windows with too few positions have no result; indices count from the start of their window.
    fn correct(&self, values: &mut [f64], padding: &Padding, starts: &[i128], real: impl Fn(usize) -> u64) {
        let (_, inner) = self.around();
        let width = self.run.fold.width();
        let geometry = &self.run.geometry;
        let (step, lead) = (i128::from(geometry.index_step(self.axis)), geometry.index_lead(self.axis));
        for (line, values) in values.chunks_mut(inner * width).enumerate() {
            let window = line % starts.len();
            if real(window).saturating_mul(self.per_position()) < padding.min_count {
                values.fill(if F::INDEXED { -1.0 } else { f64::NAN });
            } else if F::INDEXED {
                for value in values.iter_mut().filter(|value| **value >= 0.0) {
                    #[expect(clippy::cast_precision_loss, reason = "indices are far below 2^53")]
                    let shift = ((starts[window] + i128::from(lead)) * step) as f64;
                    *value -= shift;
                }
            }
        }
    }
}

/// The first position of a window, which may lie before the axis.
fn start_of(rolling: &Rolling, window: u64) -> i128 {
    i128::from(rolling.first) + i128::from(window) * i128::from(rolling.step)
}

/// The positions of a window that are there, counted from the first one at hand.
fn real_range(start: i128, size: u64, first: u64, positions: usize) -> std::ops::Range<usize> {
    let clip = |at: i128| {
        let at = (at - i128::from(first)).clamp(0, positions as i128);
        usize::try_from(at).unwrap_or(0)
    };
    clip(start)..clip(start + i128::from(size))
}

/// Prefixes and suffixes of runs of `size` positions: every window is a suffix of one run and a prefix of the next.
struct Sums<T: Number, F: Fold> {
    prefixes: F::Cells<T>,
    suffixes: F::Cells<T>,
}

impl<T: Number, F: Fold> Sums<T, F> {
    fn new(
        fold: &F,
        cells: &F::Cells<T>,
        (outer, positions, inner): (usize, usize, usize),
        size: usize,
    ) -> Self {
        let (mut prefixes, mut suffixes) = (cells.clone(), cells.clone());
        for o in 0..outer {
            let line = o * positions;
            for position in (0..positions).filter(|position| position % size != 0) {
                let at = (line + position) * inner;
                fold.merge_within::<T>(&mut prefixes, at, at - inner, inner);
            }
            for position in (0..positions - 1).rev().filter(|position| (position + 1) % size != 0) {
                let at = (line + position) * inner;
                fold.merge_within::<T>(&mut suffixes, at, at + inner, inner);
            }
        }
        Self { prefixes, suffixes }
    }

    fn merge(
        &self,
        fold: &F,
        into: (&mut F::Cells<T>, usize),
        line: usize,
        real: std::ops::Range<usize>,
        (size, inner): (usize, usize),
    ) {
        let (cells, at) = into;
        if real.is_empty() {
            return;
        }
        let last = real.end - 1;
        if real.start.is_multiple_of(size) && real.start / size == last / size {
            return fold.merge::<T>((cells, at), (&self.prefixes, (line + last) * inner), inner);
        }
        fold.merge::<T>((cells, at), (&self.suffixes, (line + real.start) * inner), inner);
        if real.start / size != last / size {
            fold.merge::<T>((cells, at), (&self.prefixes, (line + last) * inner), inner);
        }
    }
}

/// Writes the results of a block to their places.
fn put(block: &Block, width: usize, values: &[f64], output: &Mutex<Vec<f64>>) {
    let row = block.axes.last().map_or(1, |&(_, count)| to_usize(count)) * width;
    let mut output = output.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for (number, values) in values.chunks(row.max(1)).enumerate() {
        let at = block.global(number * (row / width)) * width;
        output[at..at + values.len()].copy_from_slice(values);
    }
}
