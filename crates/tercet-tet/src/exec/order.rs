//! Order statistics: exact medians and quantiles of any array, in bounded memory.
//!
//! Values become unsigned keys with the same order ([`key`]). The output is cut into boxes of cells (output elements)
//! whose keys fit in memory ([`boxes`]). The chunks of a box are visited once ([`walk`]), their keys are gathered by
//! cell ([`columns`]), and the wanted key of each cell is selected. Cells that do not fit in memory use counting
//! ([`counting`]); windows slide along their axis ([`rolling`]). Every method is exact, so the choice of method does
//! not affect the result.

mod boxes;
mod columns;
mod counting;
pub(crate) mod key;
mod region;
mod rolling;
mod walk;

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use tercet_core::limits::check_limit;
use tercet_core::tensor::OutOfMemory;
use tercet_core::{ByteSource as _, with_element};

use self::boxes::{Boxes, Cost, clip, owned, window_start};
use self::columns::{Columns, Starts, spread};
use self::counting::Pads;
use self::key::{Ordinal, select};
use self::region::{Cells, Region};
use self::rolling::{Line, Question, Window};
use self::walk::{Scratch, Walk};
use super::job::Job;
use super::predicate::fill_value;
use super::reach::chunks_of;
use super::task::{Block, to_usize};
use crate::error::ErrorKind;
use crate::query::operation::Scalar;
use crate::query::resolved::{Operation, Padding, Role, Rolling};
use crate::wire::ids::Codec;

/// Quantiles of all output elements.
#[derive(Debug)]
pub(crate) struct Ordered {
    /// One value per output element, row-major; NaN if it has no values or a NaN.
    pub(crate) values: Vec<f64>,
    /// Number of selected elements that were used, after filters.
    pub(crate) elements: u64,
}

/// Quantile `q` of every output element: position q·(n − 1) of its sorted values, with linear interpolation.
pub(crate) fn quantile(job: &Job<'_>, operation: &Operation, q: f64) -> Result<Ordered, ErrorKind> {
    quantile_in(job, operation, q, &Room::of(job))
}

fn quantile_in(job: &Job<'_>, operation: &Operation, q: f64, room: &Room) -> Result<Ordered, ErrorKind> {
    with_element!(job.plan.grid.element(), |T| Run::<T>::new(job, &operation.roles, q, *room)?.all())
}

/// Memory beyond the budget that is always assumed to be available.
const SPARE: u64 = 128 << 20;
/// Bytes of the keys of one box. A larger box is not faster: a box is processed cell by cell.
const BOX: u64 = 32 << 20;
/// Bytes of the counters of one pass.
const COUNTERS: u64 = 64 << 20;
/// Bytes of the keys collected after counting.
const COLLECTED: u64 = 64 << 20;
/// A single box larger than this is counted, so that all threads can share the work.
const ALONE: usize = 1 << 20;
/// Bytes per cell of a box: its result, its length, its start.
const PER_CELL: u128 = 24;
/// Bytes per value of a line of windows: sorted, ranked and counted.
const PER_WINDOW_KEY: usize = 24;

/// Memory limits of the parts of an execution, in bytes.
#[derive(Clone, Copy, Debug)]
struct Room {
    /// Keys of a box.
    task: usize,
    /// Keys collected after counting.
    collected: usize,
    /// Number of cells that are counted together.
    cells: u64,
}

impl Room {
    fn of(job: &Job<'_>) -> Self {
        let threads = if job.parallel { rayon::current_num_threads() as u64 } else { 1 };
        let share = job.budget.saturating_add(SPARE) / threads.max(1);
        // If chunks must be decoded or read again, a box should hold all cells of a column of chunks.
        let is_coded = job.plan.chunks.iter().any(|chunk| chunk.stored.codec != Codec::Raw)
            || !job.dataset.file.source.is_zero_copy();
        let task = share.min(if is_coded { BOX.max(job.budget / (2 * threads.max(1))) } else { BOX });
        let cells = COUNTERS / (counting::CELL_BYTES as u64 * (threads + 1));
        Self {
            task: to_usize(task),
            collected: to_usize(job.budget.clamp(4 << 20, COLLECTED)),
            cells: cells.max(1),
        }
    }
}

/// One execution for one element type.
struct Run<'a, T: Ordinal> {
    walk: Walk<'a, T>,
    boxes: Boxes<'a>,
    q: f64,
    room: Room,
    /// Values per position of windows or bins: the product of the other reduced axes.
    per_position: u64,
    pad: Option<T::Key>,
    min_count: u64,
}

impl<'a, T: Ordinal> Run<'a, T> {
    fn new(job: &'a Job<'a>, roles: &'a [Role], q: f64, room: Room) -> Result<Self, ErrorKind> {
        let boxes = Boxes::new(job, roles);
        let padding = roles.iter().find_map(|role| match role {
            Role::Grouped(groups) => groups.padding,
            Role::Rolling(rolling) => Some(rolling.padding),
            Role::Reduced | Role::Kept => None,
        });
        let Padding { value, min_count } = padding.unwrap_or(Padding { value: None, min_count: 0 });
        let pad = value.map(|value| pad_key::<T>(value)).transpose()?;
        let reduced = boxes.axes.iter().filter(|axis| matches!(axis.role, Role::Reduced));
        let per_position = reduced.map(|axis| axis.extent).product();
        Ok(Self { walk: Walk::new(job), boxes, q, room, per_position, pad, min_count })
    }

    fn all(mut self) -> Result<Ordered, ErrorKind> {
        let job = self.walk.job;
        let cells = self.boxes.output.iter().try_fold(8u64, |bytes, &extent| bytes.checked_mul(extent));
        let limit = job.dataset.file.options.limits.array_bytes;
        let bytes = check_limit("the result", cells.unwrap_or(u64::MAX), limit)?;
        let mut values: Vec<f64> = Vec::new();
        values.try_reserve_exact(bytes / 8).map_err(|_| OutOfMemory { bytes })?;
        values.resize(bytes / 8, f64::NAN);
        let output = Mutex::new(values);
        let window = self.boxes.axes.iter().enumerate().find_map(|(axis, cut)| match cut.role {
            Role::Rolling(rolling) => Some((axis, rolling)),
            _ => None,
        });
        let key = size_of::<T::Key>() + if window.is_some() { PER_WINDOW_KEY } else { 0 };
        let cell_bytes = self.boxes.cell_keys().saturating_mul(key as u128);
        let cost = Cost { key: key as u128, cell: PER_CELL, most: self.room.task as u128 };
        let fits = cell_bytes.saturating_add(PER_CELL) <= cost.most;
        if fits {
            self.boxes.cut(cost);
        }
        let alone = self.boxes.count() == 1 && cell_bytes > ALONE as u128;
        let elements = match window {
            Some((axis, rolling)) if fits => self.rolling(axis, rolling, &output)?,
            Some((axis, rolling)) => self.rolling_counted(axis, rolling, &output)?,
            None if fits && !alone => self.held(&output)?,
            None => self.counted(&output)?,
        };
        Ok(Ordered { values: output.into_inner().unwrap_or_else(PoisonError::into_inner), elements })
    }

    /// Processes every box with its keys in memory.
    fn held(&self, output: &Mutex<Vec<f64>>) -> Result<u64, ErrorKind> {
        let numbers: Vec<usize> = (0..self.boxes.count()).collect();
        let entered = self.walk.job.each(&numbers, |&number| {
            let cells = self.boxes.cells(number);
            let region = self.boxes.region(&cells);
            let pads = self.pads(&cells);
            let mut columns = Columns::<T>::new(region.len(), self.starts(&cells, &pads))?;
            self.gather(&region, &mut columns)?;
            let mut entered = 0;
            let results: Vec<f64> = (0..region.len())
                .map(|cell| {
                    let real = columns.len(cell) as u64;
                    entered += real;
                    if real < self.min_count {
                        return f64::NAN;
                    }
                    if let Some(key) = self.pad {
                        columns.pad(cell, key, to_usize(pads[cell]));
                    }
                    select::<T>(columns.cell(cell), self.q)
                })
                .collect();
            put(&self.boxes.block(&cells), &results, output);
            Ok(entered)
        })?;
        Ok(entered.iter().sum())
    }

    fn gather(&self, region: &Region<'_>, columns: &mut Columns<T>) -> Result<(), ErrorKind> {
        let mut scratch = Scratch::default();
        for chunk in chunks_of(self.walk.job.plan, &region.ranges()) {
            self.walk.chunk(region, chunk, columns, &mut scratch)?;
        }
        Ok(())
    }

    /// Number of padding values per cell of a box; empty without padding.
    fn pads(&self, cells: &[Range<u64>]) -> Vec<u64> {
        if self.pad.is_none() {
            return Vec::new();
        }
        self.of_cells(cells, |axis, cell| match axis.role {
            Role::Grouped(_) => axis.missing(cell),
            _ => 1,
        })
        .into_iter()
        .map(|missing| missing.saturating_mul(self.per_position))
        .collect()
    }

    /// Start of the keys of each cell of a box.
    fn starts(&self, cells: &[Range<u64>], pads: &[u64]) -> Starts {
        if !self.boxes.axes.iter().any(|axis| matches!(axis.role, Role::Grouped(_))) {
            let keys: u64 = self.boxes.axes.iter().map(|axis| axis.room(0)).product();
            return Starts::Even(spread(to_usize(keys)));
        }
        let rooms = self.of_cells(cells, boxes::Axis::room);
        let mut starts = Vec::with_capacity(rooms.len() + 1);
        let mut end = 0;
        starts.push(end);
        for (cell, room) in rooms.into_iter().enumerate() {
            end += to_usize(room + pads.get(cell).copied().unwrap_or(0));
            starts.push(end);
        }
        Starts::Listed(starts)
    }

    /// One number per cell of a box: the product of the numbers of its axes.
    fn of_cells(&self, cells: &[Range<u64>], of: impl Fn(&boxes::Axis<'a>, u64) -> u64) -> Vec<u64> {
        let mut products = vec![1u64];
        for (axis, cells) in self.boxes.axes.iter().zip(cells) {
            let own: Vec<u64> = cells.clone().map(|cell| of(axis, cell)).collect();
            products = products
                .iter()
                .flat_map(|product| own.iter().map(move |own| product.saturating_mul(*own)))
                .collect();
        }
        products
    }

    /// Processes every box by counting, one after the other, each with all threads.
    fn counted(&mut self, output: &Mutex<Vec<f64>>) -> Result<u64, ErrorKind> {
        self.boxes.cut(Cost { key: 0, cell: 1, most: u128::from(self.room.cells) });
        let mut entered = 0;
        for number in 0..self.boxes.count() {
            let cells = self.boxes.cells(number);
            let region = self.boxes.region(&cells);
            let pads = self.pad.map(|key| Pads { key, counts: self.pads(&cells) });
            entered += self.count(&region, pads.as_ref(), &self.boxes.block(&cells), output)?;
        }
        Ok(entered)
    }

    fn count(
        &self,
        region: &Region<'_>,
        pads: Option<&Pads<T::Key>>,
        block: &Block,
        output: &Mutex<Vec<f64>>,
    ) -> Result<u64, ErrorKind> {
        self.walk.job.progress.check()?;
        let mut counted = counting::count(&self.walk, region, pads, self.q, self.room.collected)?;
        for (value, &real) in counted.values.iter_mut().zip(&counted.real) {
            if real < self.min_count {
                *value = f64::NAN;
            }
        }
        put(block, &counted.values, output);
        Ok(counted.real.iter().sum())
    }

    /// Rolling windows with their lines in memory.
    fn rolling(&self, axis: usize, rolling: &Rolling, output: &Mutex<Vec<f64>>) -> Result<u64, ErrorKind> {
        let extent = self.boxes.axes[axis].extent;
        let question = Question { q: self.q, pad: self.pad, min_count: self.min_count };
        let numbers: Vec<usize> = (0..self.boxes.count()).collect();
        let entered = self.walk.job.each(&numbers, |&number| {
            let cells = self.boxes.cells(number);
            let region = self.boxes.region(&cells);
            let mut columns = Columns::<T>::new(region.len(), self.starts(&cells, &[]))?;
            self.gather(&region, &mut columns)?;
            let read = region.parts[axis].positions.clone();
            let own = owned(rolling, &cells[axis], extent);
            let windows: Vec<Window> = cells[axis]
                .clone()
                .map(|window| {
                    let real = real(rolling, window, extent);
                    let pads = (rolling.size - (real.end - real.start)).saturating_mul(self.per_position);
                    let start = real.start.max(read.start) - read.start;
                    let positions =
                        to_usize(start)..to_usize((real.end.max(read.start) - read.start).max(start));
                    Window { positions, pads }
                })
                .collect();
            let kept = |axes: std::ops::Range<usize>| -> usize {
                let axes = self.boxes.axes[axes.clone()].iter().zip(&cells[axes]);
                axes.filter(|(axis, _)| matches!(axis.role, Role::Kept))
                    .map(|(_, cells)| to_usize(cells.end - cells.start))
                    .product()
            };
            let (outer, inner) = (kept(0..axis), kept(axis + 1..cells.len()));
            let positions = to_usize(read.end - read.start);
            let mut results = vec![f64::NAN; outer * windows.len() * inner];
            let mut line = Line::new();
            let mut entered = 0;
            for o in 0..outer {
                for i in 0..inner {
                    line.clear();
                    for position in 0..positions {
                        let cell = (o * positions + position) * inner + i;
                        if own.contains(&(read.start + position as u64)) {
                            entered += columns.len(cell) as u64;
                        }
                        line.push(columns.cell(cell));
                    }
                    rolling::slide::<T>(&line, &windows, question, |window, value| {
                        results[(o * windows.len() + window) * inner + i] = value;
                    });
                }
            }
            put(&self.boxes.block(&cells), &results, output);
            Ok(entered)
        })?;
        Ok(entered.iter().sum())
    }

    /// Rolling windows that do not fit in memory: each is counted separately.
    fn rolling_counted(
        &mut self,
        axis: usize,
        rolling: &Rolling,
        output: &Mutex<Vec<f64>>,
    ) -> Result<u64, ErrorKind> {
        let extent = self.boxes.axes[axis].extent;
        self.boxes.cut(Cost { key: 0, cell: 1, most: 1 });
        for number in 0..self.boxes.count() {
            let cells = self.boxes.cells(number);
            let real = real(rolling, cells[axis].start, extent);
            let missing = (rolling.size - (real.end - real.start)).saturating_mul(self.per_position);
            let parts = self.boxes.axes.iter().zip(&cells).enumerate().map(|(number, (cut, cells))| {
                if number == axis { (real.clone(), Cells::One) } else { cut.part(cells) }
            });
            let region = Region::new(parts.collect());
            let pads = self.pad.map(|key| Pads { key, counts: vec![missing; region.len()] });
            self.count(&region, pads.as_ref(), &self.boxes.block(&cells), output)?;
        }
        // Windows overlap or skip elements, so the elements are counted separately.
        let all = self.boxes.axes.iter().map(|axis| (0..axis.extent, Cells::One)).collect();
        Ok(counting::count(&self.walk, &Region::new(all), None, self.q, self.room.collected)?
            .real
            .iter()
            .sum())
    }
}

/// Positions of a window that are on the axis.
fn real(rolling: &Rolling, window: u64, extent: u64) -> Range<u64> {
    let start = window_start(rolling, window);
    clip(start, start + i128::from(rolling.size), extent)
}

/// Key of a padding value.
fn pad_key<T: Ordinal>(value: Scalar) -> Result<T::Key, ErrorKind> {
    let unfit = || ErrorKind::FillValue { dtype: T::ELEMENT, fill: value.to_f64() };
    fill_value::<T>(value).map(Ordinal::key).ok_or_else(unfit)
}

/// Writes the results of a box to their positions in the output.
fn put(block: &Block, values: &[f64], output: &Mutex<Vec<f64>>) {
    let row = block.axes.last().map_or(1, |&(_, count)| to_usize(count)).max(1);
    let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
    for (number, values) in values.chunks(row).enumerate() {
        let at = block.global(number * row);
        output[at..at + values.len()].copy_from_slice(values);
    }
}

#[cfg(test)]
mod tests;
