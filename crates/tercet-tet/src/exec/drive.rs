//! The one visit of a plan: chunks in, output cells out.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tercet_core::limits::check_limit;
use tercet_core::tensor::OutOfMemory;
use tercet_core::{ByteSource as _, checksum, with_element};

use super::cut::cut;
use super::fold::tally::Tally;
use super::fold::{Block, Fold};
use super::job::Job;
use super::number::Number;
use super::predicate::Predicate;
use super::sizes::{CACHED, MANY_TASKS, MOST_SPLITS, SPLIT, SPLIT_STATES};
use super::task::{Geometry, Task, Unit, tasks, to_usize};
use super::walk::walk;
use super::{memory, rolling, scan};
use crate::error::ErrorKind;
use crate::plan::PlannedChunk;
use crate::query::resolved::{Groups, Padding, Role, Rolling};
use crate::stats::Stats;
use crate::wire::ids::Codec;

/// The result of a fold.
#[derive(Debug)]
pub(crate) struct Folded {
    /// `width` numbers for each output cell, row-major.
    pub(crate) values: Vec<f64>,
    /// Cells of the selection that entered, after filters.
    pub(crate) elements: u64,
}

/// Folds what a job's plan selects into the output cells that the roles of the axes make.
pub(crate) fn fold<F: Fold>(job: &Job<'_>, fold: &F, roles: &[Role]) -> Result<Folded, ErrorKind> {
    let mut folded = with_element!(job.plan.grid.element(), |T| Run::<T, F>::new(job, fold, roles).all())?;
    let chosen = job.resolved.filter.is_some() || job.resolved.positions.is_some();
    if let Some(least) = least_count(roles).filter(|_| chosen) {
        // Only cells that pass count for a window, and no state knows how many did.
        let bare: Vec<Role> = roles.iter().map(without_padding).collect();
        let counts =
            with_element!(job.plan.grid.element(), |T| Run::<T, Tally>::new(job, &Tally::Count, &bare)
                .all())?;
        let nothing = if F::INDEXED { -1.0 } else { f64::NAN };
        for (cell, count) in folded.values.chunks_mut(fold.width()).zip(counts.values) {
            if count < least {
                cell.fill(nothing);
            }
        }
    }
    Ok(folded)
}

/// How many cells a window must have, if there are windows.
#[expect(clippy::cast_precision_loss, reason = "at most the size of a window")]
fn least_count(roles: &[Role]) -> Option<f64> {
    roles.iter().find_map(|role| match role {
        Role::Rolling(rolling) => Some(rolling.padding.min_count as f64),
        Role::Grouped(groups) => groups.padding.map(|padding| padding.min_count as f64),
        Role::Reduced | Role::Kept => None,
    })
}

/// The same windows, of which only real cells are counted.
fn without_padding(role: &Role) -> Role {
    let nothing = Padding { value: None, min_count: 0 };
    match role {
        Role::Rolling(rolling) => Role::Rolling(Rolling { padding: nothing, ..rolling.clone() }),
        Role::Grouped(groups) => {
            Role::Grouped(Groups { padding: groups.padding.map(|_| nothing), ..groups.clone() })
        }
        Role::Reduced | Role::Kept => role.clone(),
    }
}

/// One fold of one element type.
pub(crate) struct Run<'a, T: Number, F: Fold> {
    pub(crate) job: &'a Job<'a>,
    pub(crate) fold: &'a F,
    pub(crate) geometry: Geometry<'a>,
    predicate: Option<Predicate<T>>,
    /// Whether statistics may replace chunks.
    statistics: bool,
    /// For each chunk of the plan: whether its checksum was right.
    verified: Vec<AtomicU64>,
    /// Checksums of pieces of large chunks.
    pieces: Mutex<Vec<(usize, Range<u64>, u32)>>,
}

/// Memory that is used again from unit to unit.
pub(crate) struct Scratch<T> {
    /// A decoded chunk.
    bytes: Vec<u64>,
    /// Values that were not aligned.
    pub(crate) values: Vec<T>,
    row: Vec<T>,
}

impl<T> Default for Scratch<T> {
    fn default() -> Self {
        Self { bytes: Vec::new(), values: Vec::new(), row: Vec::new() }
    }
}

impl<'a, T: Number, F: Fold> Run<'a, T, F> {
    fn new(job: &'a Job<'a>, fold: &'a F, roles: &'a [Role]) -> Self {
        let resolved = job.resolved;
        let predicate = resolved.filter.as_ref().map(|filter| Predicate::new(filter, resolved.fill));
        let geometry = Geometry::new(job.plan, roles, resolved.positions.as_ref());
        let plain = predicate.is_none() && resolved.positions.is_none();
        let statistics = job.statistics && plain && fold.takes_stats();
        let words = job.plan.chunks.len().div_ceil(64);
        let verified = (0..words).map(|_| AtomicU64::new(0)).collect();
        Self { job, fold, geometry, predicate, statistics, verified, pieces: Mutex::default() }
    }

    fn all(self) -> Result<Folded, ErrorKind> {
        let shape = self.job.plan.selection.shape();
        let roles = self.geometry.roles;
        let output: Vec<u64> =
            roles.iter().zip(shape.iter()).filter_map(|(role, &extent)| role.cells(extent)).collect();
        let width = self.fold.width();
        let cells = output.iter().try_fold(width as u64, |cells, &extent| cells.checked_mul(extent));
        let bytes = cells.and_then(|cells| cells.checked_mul(8)).unwrap_or(u64::MAX);
        let bytes = check_limit("the result", bytes, self.job.dataset.file.options.limits.array_bytes)?;
        memory::must_be_there(bytes as u64)?;
        let mut values: Vec<f64> = Vec::new();
        values.try_reserve_exact(bytes / 8).map_err(|_| OutOfMemory { bytes })?;
        values.resize(bytes / 8, 0.0);
        if scan::applies(self.job, roles, F::INDEXED, self.statistics) {
            let (result, elements) = scan::all(&self)?;
            values.copy_from_slice(&result);
            return Ok(Folded { values, elements });
        }
        let parts = cut(self.job.plan, roles, self.fold.cell_bytes::<T>());
        let tasks = tasks(&parts);
        let values = Mutex::new(values);
        let splits = tasks.len() < MANY_TASKS;
        let entered = self.job.each(&tasks, |task| self.task(task, splits, &values))?;
        self.check_pieces()?;
        let values = values.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok(Folded { values, elements: entered.iter().sum() })
    }

    fn task(&self, task: &Task, split: bool, output: &Mutex<Vec<f64>>) -> Result<u64, ErrorKind> {
        let geometry = &self.geometry;
        let block = geometry.block(task);
        let zero_copy = self.job.dataset.file.source.is_zero_copy();
        let units = geometry.units(task, !zero_copy);
        let states = block.len().saturating_mul(self.fold.cell_bytes::<T>()).max(1);
        let most = if split { (SPLIT_STATES / states).clamp(1, MOST_SPLITS) } else { 1 };
        let splits = split_units(&units, most);
        let partials = self.job.each(&splits, |range| {
            let mut cells = self.fold.start::<T>(&block);
            let mut scratch = Scratch::default();
            let mut entered = 0;
            for unit in &units[range.clone()] {
                entered += self.unit(task, &block, unit, &mut cells, &mut scratch)?;
            }
            Ok((cells, entered))
        })?;
        let mut partials = partials.into_iter();
        let (mut cells, mut entered) = match partials.next() {
            Some(first) => first,
            None => (self.fold.start::<T>(&block), 0),
        };
        for (later, more) in partials {
            self.fold.merge((&mut cells, 0), (&later, 0), block.len());
            entered += more;
        }
        rolling::finish(self, task, &block, cells, output);
        Ok(entered)
    }

    fn unit(
        &self,
        task: &Task,
        block: &Block,
        unit: &Unit,
        cells: &mut F::Cells<T>,
        scratch: &mut Scratch<T>,
    ) -> Result<u64, ErrorKind> {
        self.job.progress.check()?;
        let chunk = &self.job.plan.chunks[unit.chunk];
        if let Some((cell, stats)) = self.stats(task, block, unit.chunk)? {
            // The first piece of a large chunk stands for all of it.
            if unit.rows.as_ref().is_some_and(|rows| rows.start > 0) {
                return Ok(0);
            }
            self.fold.absorb(cells, cell, &stats);
            self.job.by_statistics.fetch_add(1, Ordering::Relaxed);
            return Ok(stats.count);
        }
        let rows = self.geometry.rows_of(unit.chunk);
        let range = unit.rows.clone().unwrap_or(0..rows.rows);
        let mut row_scratch = std::mem::take(&mut scratch.row);
        let mut entered = 0;
        let in_axis = {
            let grid = &self.job.plan.grid;
            let (low, high) = grid.window(rows.axis, chunk.tile[rows.axis]);
            high - low
        };
        let step = (CACHED / rows.row_bytes.max(1)).max(1);
        let mut fold_rows = |values: &[u8], range: Range<u64>, aligned: &mut Vec<T>| {
            let Some(mut piece) = self.geometry.piece(task, block, unit.chunk, &range) else { return };
            piece.join(F::INDEXED);
            let values = as_values(values, aligned);
            entered += walk(self.fold, cells, values, &piece, self.predicate.as_ref(), &mut row_scratch);
        };
        let cuts = row_cuts(range.clone(), in_axis, step);
        self.bytes(unit, chunk, scratch, |bytes, aligned, look| {
            for cut in cuts {
                let from = to_usize((cut.start - range.start) * rows.row_bytes);
                let to = to_usize((cut.end - range.start) * rows.row_bytes);
                let part = &bytes[from..to];
                look(part);
                fold_rows(part, cut, aligned);
            }
        })?;
        scratch.row = row_scratch;
        Ok(entered)
    }

    /// Gives the bytes of a unit to `visit`, which must call `look` on all of them in order, and checks them.
    ///
    /// What was folded of bytes that turn out to be damaged is never seen: the whole execution fails.
    pub(crate) fn bytes(
        &self,
        unit: &Unit,
        chunk: &PlannedChunk,
        scratch: &mut Scratch<T>,
        visit: impl FnOnce(&[u8], &mut Vec<T>, &mut dyn FnMut(&[u8])),
    ) -> Result<(), ErrorKind> {
        let dataset = &self.job.dataset;
        let source = &dataset.file.source;
        let place = &chunk.stored;
        let tile = &chunk.tile[..self.job.plan.grid.rank()];
        let expected = if self.is_verified(unit.chunk) { None } else { dataset.expected_crc(place)? };
        if place.codec == Codec::Raw && source.is_zero_copy() {
            let rows = self.geometry.rows_of(unit.chunk);
            let span = match &unit.rows {
                Some(range) => {
                    place.span.slice(range.start * rows.row_bytes, unit.bytes).unwrap_or(place.span)
                }
                None => place.span,
            };
            let stored = source.read_at(span)?;
            let mut crc = 0;
            visit(&stored, &mut scratch.values, &mut |part| {
                if expected.is_some() {
                    crc = checksum::crc32c_append(crc, part);
                }
            });
            self.job.count(span.len());
            let Some(expected) = expected else { return Ok(()) };
            match &unit.rows {
                None => {
                    dataset.check_crc(tile, place, expected, crc)?;
                    self.set_verified(unit.chunk);
                }
                Some(range) => {
                    let mut pieces = self.pieces.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    pieces.push((unit.chunk, range.clone(), crc));
                }
            }
            return Ok(());
        }
        let len = check_limit("a chunk", place.raw_len, dataset.file.options.limits.chunk_bytes)?;
        let mut room = std::mem::take(&mut scratch.bytes);
        if room.len() < len.div_ceil(8) {
            room.try_reserve_exact(len.div_ceil(8)).map_err(|_| OutOfMemory { bytes: len })?;
            room.resize(len.div_ceil(8), 0);
        }
        let bytes = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut room)[..len];
        dataset.load(tile, place, bytes)?;
        self.job.count(place.span.len());
        visit(bytes, &mut scratch.values, &mut |_| {});
        scratch.bytes = room;
        Ok(())
    }

    /// The statistics of a chunk and the cell that all of it goes into, if they can replace its values.
    fn stats(&self, task: &Task, block: &Block, chunk: usize) -> Result<Option<(usize, Stats)>, ErrorKind> {
        if !self.statistics {
            return Ok(None);
        }
        let Some(cell) = self.geometry.single_cell(task, block, chunk) else { return Ok(None) };
        let stats = self.job.stats(&self.job.plan.chunks[chunk])?;
        Ok(stats.map(|stats| (cell, stats)))
    }

    pub(crate) fn is_verified(&self, chunk: usize) -> bool {
        self.verified[chunk / 64].load(Ordering::Relaxed) & (1 << (chunk % 64)) != 0
    }

    pub(crate) fn set_verified(&self, chunk: usize) {
        self.verified[chunk / 64].fetch_or(1 << (chunk % 64), Ordering::Relaxed);
    }

    /// Checks the chunks that were read in pieces, all of which must have been looked at.
    fn check_pieces(&self) -> Result<(), ErrorKind> {
        let mut pieces =
            std::mem::take(&mut *self.pieces.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        pieces.sort_by_key(|(chunk, range, _)| (*chunk, range.start));
        pieces.dedup_by_key(|(chunk, range, _)| (*chunk, range.start));
        for pieces in pieces.chunk_by(|a, b| a.0 == b.0) {
            let chunk = pieces[0].0;
            let rows = self.geometry.rows_of(chunk);
            let PlannedChunk { tile, stored: place, .. } = &self.job.plan.chunks[chunk];
            let dataset = &self.job.dataset;
            let Some(expected) = dataset.expected_crc(place)? else { continue };
            let (mut crc, mut end) = (0, 0);
            for (_, range, piece) in pieces {
                if range.start != end {
                    break;
                }
                let len = (range.end - range.start) * rows.row_bytes;
                crc = checksum::crc32c_combine(crc, *piece, len);
                end = range.end;
            }
            let tile = &tile[..self.job.plan.grid.rank()];
            if end != rows.rows {
                // A task wanted only some of the pieces.
                crc = checksum::crc32c(&dataset.file.source.read_at(place.span)?);
            }
            dataset.check_crc(tile, place, expected, crc)?;
        }
        Ok(())
    }
}

/// Cuts rows into steps that do not cross the axes above theirs, of which one place has `in_axis` rows.
fn row_cuts(range: Range<u64>, in_axis: u64, step: u64) -> impl Iterator<Item = Range<u64>> {
    let mut start = range.start;
    std::iter::from_fn(move || {
        if start >= range.end {
            return None;
        }
        let place_end = (start / in_axis + 1) * in_axis;
        let cut = start..(start + step).min(place_end).min(range.end);
        start = cut.end;
        Some(cut)
    })
}

/// Cuts units into at most `most` runs of similar size.
fn split_units(units: &[Unit], most: usize) -> Vec<Range<usize>> {
    let bytes: u64 = units.iter().map(|unit| unit.bytes).sum();
    let each = (bytes / most as u64).max(SPLIT);
    let mut splits = Vec::new();
    let (mut start, mut sum) = (0, 0);
    for (number, unit) in units.iter().enumerate() {
        sum += unit.bytes;
        if sum >= each {
            splits.push(start..number + 1);
            (start, sum) = (number + 1, 0);
        }
    }
    if start < units.len() {
        splits.push(start..units.len());
    }
    splits
}

/// The values of little-endian bytes: in place, or copied where they are not aligned.
pub(crate) fn as_values<'v, T: Number>(bytes: &'v [u8], aligned: &'v mut Vec<T>) -> &'v [T] {
    if cfg!(target_endian = "little")
        && let Ok(values) = bytemuck::try_cast_slice(bytes)
    {
        return values;
    }
    aligned.clear();
    let chunks = bytes.chunks_exact(size_of::<T>());
    aligned.extend(chunks.map(|chunk| bytemuck::pod_read_unaligned::<T>(chunk).swap_le()));
    aligned
}

#[cfg(test)]
mod tests;
