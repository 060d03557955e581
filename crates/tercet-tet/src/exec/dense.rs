//! Dense results: writes the selected values of chunks to their positions in an array, copied or transformed.
//!
//! The result is split into bands: contiguous boxes made of complete chunks. Each band is written by one thread. If
//! there are few bands (one wide row of chunks, one large chunk), bands are split into rows. Rows of memory-mapped
//! chunks are independent; decoded chunks are loaded in batches, and all threads write rows of a batch.

use std::cmp::Ordering;
use std::ops::Range;
use std::slice::from_ref;

use rayon::prelude::*;
use tercet_core::tensor::{BoxCopy, CopyError};

use super::chunks::{Check, ChunkBytes, Shifts};
use super::cut::Part;
use super::job::Scope;
use super::task::{Task, to_usize};
use super::visit::{AnyConsumer, Consumer, Visitor};
use super::walk::Piece;
use crate::error::ErrorKind;
use crate::file::ChunkRef;
use crate::query::resolved::Role;
use crate::wire::ids::MAX_RANK;

mod rows;
#[cfg(test)]
mod tests;
mod zero_divisors;

pub(crate) use rows::{DenseWriter, Numbers};

/// Bytes checked and copied at a time: few enough that source and destination stay in the L2 cache.
const SLAB: u64 = if cfg!(test) { 48 } else { 128 << 10 };
/// Bands smaller than this are joined if there are many.
const SMALL_BAND: u64 = if cfg!(test) { 32 } else { 256 << 10 };
/// Minimum bytes of the rows of a band that are given to a thread.
const ROWS: usize = if cfg!(test) { 16 } else { 256 << 10 };
/// Bytes of decoded chunks held at once if there are few bands.
const BATCH: u64 = if cfg!(test) { 100 } else { 16 << 20 };

static KEPT: [Role; MAX_RANK] = [const { Role::Kept }; MAX_RANK];

/// Writes the values of a dense result.
pub(crate) trait Output: Sync {
    /// Creates a consumer that writes to the bytes of a task.
    fn consumer<'o>(&'o self, out: &'o mut [u8]) -> Result<Writer<'o>, ErrorKind>;
    /// Bytes of an element of the result, if it is not of the stored type.
    fn size(&self) -> Option<usize> {
        None
    }
    /// Whether values are copied, so that chunks can be decoded in place.
    fn is_copy(&self) -> bool {
        false
    }
}

type Writer<'o> = Box<AnyConsumer<'o>>;

/// Visitor of chunks whose values are all kept. All tasks together must cover the selection.
pub(crate) fn visitor(scope: Scope<'_>) -> Visitor<'_> {
    let mut visitor = Visitor::new(scope, &KEPT[..scope.grid.rank()]);
    visitor.chunks.expect_pieces(true);
    visitor
}

/// Writes a box of the selection, one range of positions per axis, to a buffer of its size.
pub(crate) fn write(
    visitor: &Visitor<'_>,
    ranges: &[Range<u64>],
    out: &mut [u8],
    output: &dyn Output,
) -> Result<(), ErrorKind> {
    let scope = &visitor.geometry.scope;
    let bands = Bands::new(scope, ranges, output.size().unwrap_or(scope.grid.element().size()));
    let mut listed = None;
    if scope.threads() > 1 && bands.count() < 2 * scope.threads() {
        let whole = task(ranges.iter().cloned());
        let mut chunks: Vec<Listed> = Vec::new();
        visitor.geometry.for_each_chunk(&whole, |coords, stored| {
            chunks.push((*coords, stored));
            Ok(())
        })?;
        let mapped = chunks.iter().all(|(_, stored)| visitor.chunks.is_mapped(stored));
        // Complete chunks are decoded in place, by one thread each.
        if mapped || !output.is_copy() || chunks.len() > bands.count() {
            let rows = bands.rows(out, scope.threads())?;
            if !mapped || !are_independent(visitor, &chunks, &rows) {
                return write_batches(visitor, (&whole, &chunks), rows, output);
            }
            return spread(scope, rows, |shifts, (task, out)| {
                write_task(visitor, &task, Some(&chunks), (output, out), shifts)
            });
        }
        listed = Some(chunks);
    }
    spread(scope, bands.split(out)?, |shifts, (number, out)| {
        write_task(visitor, &task(bands.ranges(number)), listed.as_deref(), (output, out), shifts)
    })
}

/// A chunk that was looked up.
type Listed = ([u64; MAX_RANK], ChunkRef);

/// Whether rows of mapped chunks are checked piece by piece: otherwise each thread would check complete chunks.
fn are_independent(visitor: &Visitor<'_>, chunks: &[Listed], rows: &[(Task, &mut [u8])]) -> bool {
    let [(task, _), _, ..] = rows else { return true };
    let mut regions =
        chunks.iter().filter_map(|(coords, stored)| visitor.geometry.region(task, coords, *stored));
    regions.all(|region| region.is_whole || visitor.chunks.is_joined(&region))
}

/// Writes one task. Its chunks are among those that were listed, or looked up one by one.
fn write_task(
    visitor: &Visitor<'_>,
    task: &Task,
    listed: Option<&[Listed]>,
    (output, out): (&dyn Output, &mut [u8]),
    shifts: &mut Shifts,
) -> Result<(), ErrorKind> {
    let block = visitor.geometry.block(task);
    let mut writer = output.consumer(out)?;
    let mut visit =
        |coords: &[u64; MAX_RANK], stored: ChunkRef| match visitor.geometry.region(task, coords, stored) {
            Some(region) => visitor.visit((task, &block), &region, &mut *writer, shifts),
            None => Ok(()),
        };
    match listed {
        Some(chunks) => chunks.iter().try_for_each(|(coords, stored)| visit(coords, *stored)),
        None => visitor.geometry.for_each_chunk(task, visit),
    }
}

/// Writes rows of chunks that several threads need: loads a batch of chunks, then writes their part of all rows.
fn write_batches(
    visitor: &Visitor<'_>,
    (whole, chunks): (&Task, &[Listed]),
    rows: Vec<(Task, &mut [u8])>,
    output: &dyn Output,
) -> Result<(), ErrorKind> {
    let scope = &visitor.geometry.scope;
    let mut writers = Vec::with_capacity(rows.len());
    for (task, out) in rows {
        let block = visitor.geometry.block(&task);
        writers.push((task, block, output.consumer(out)?));
    }
    // The first chunk is the largest, or nearly so.
    let bytes = chunks.first().map_or(1, |(_, stored)| stored.raw_len).max(1);
    let region = |task: &Task, (coords, stored): &Listed| visitor.geometry.region(task, coords, *stored);
    for batch in chunks.chunks(to_usize(BATCH / bytes).max(scope.threads())) {
        let load = |chunk| {
            scope.progress.check()?;
            region(whole, chunk).map(|region| Ok(visitor.chunks.load(&region, true)?.0)).transpose()
        };
        let held: Vec<Option<ChunkBytes>> =
            batch.par_iter().with_max_len(1).map(load).collect::<Result<_, ErrorKind>>()?;
        writers.par_iter_mut().with_max_len(1).try_for_each(|(task, block, writer)| {
            for (chunk, held) in batch.iter().zip(&held) {
                if let (Some(region), Some(held)) = (region(task, chunk), held) {
                    let loaded = (from_ref(held), &mut [Check::None][..]);
                    visitor.pass((task, block), from_ref(&region), loaded, &mut **writer)?;
                }
            }
            Ok::<(), ErrorKind>(())
        })?;
        for held in held.into_iter().flatten() {
            visitor.chunks.release(held);
        }
    }
    Ok(())
}

/// Runs every task, on all threads if the scope is parallel.
fn spread<I: Send>(
    scope: &Scope<'_>,
    tasks: Vec<I>,
    work: impl Fn(&mut Shifts, I) -> Result<(), ErrorKind> + Sync + Send,
) -> Result<(), ErrorKind> {
    if scope.parallel && tasks.len() > 1 {
        return tasks.into_par_iter().with_max_len(1).try_for_each_init(Shifts::default, work);
    }
    let mut shifts = Shifts::default();
    tasks.into_iter().try_for_each(|task| work(&mut shifts, task))
}

fn task(ranges: impl Iterator<Item = Range<u64>>) -> Task {
    let part = |range: Range<u64>| Part { slots: range.clone(), positions: range, keep: None };
    Task { parts: ranges.map(part).collect(), carried: 0 }
}

fn len(range: &Range<u64>) -> u64 {
    range.end - range.start
}

/// Bands: contiguous boxes of a dense result.
struct Bands {
    /// Ranges of positions of each axis; a band is one range of each axis.
    cuts: Vec<Vec<Range<u64>>>,
    /// Bytes of an element.
    size: usize,
}

impl Bands {
    /// Splits a box into bands that share no chunk.
    ///
    /// A box is contiguous in the result if it has one position on the axes before the one that is cut, and all
    /// positions on the axes after it.
    fn new(scope: &Scope<'_>, ranges: &[Range<u64>], size: usize) -> Self {
        let positions = |axis: usize| {
            scope.grid.chunk_positions(axis, scope.selection.axes()[axis]).min(len(&ranges[axis]))
        };
        let below = |axis: usize| ranges[axis + 1..].iter().map(len).product::<u64>() * size as u64;
        let last = (0..ranges.len() - 1).take_while(|&axis| positions(axis) == 1).count();
        let axis = (0..last).find(|&axis| below(axis) <= SMALL_BAND).unwrap_or(last);
        let count = to_usize(SMALL_BAND / (positions(axis) * below(axis))).max(1);
        let cuts = ranges.iter().enumerate().map(|(number, range)| match number.cmp(&axis) {
            Ordering::Less => chunk_ranges(scope, number, range, 1),
            Ordering::Equal => chunk_ranges(scope, number, range, count),
            Ordering::Greater => vec![range.clone()],
        });
        Self { cuts: cuts.collect(), size }
    }

    fn count(&self) -> usize {
        self.cuts.iter().map(Vec::len).product()
    }

    /// The positions of a band on each axis.
    fn ranges(&self, number: usize) -> impl Iterator<Item = Range<u64>> + '_ {
        let mut below = self.count();
        self.cuts.iter().map(move |cuts| {
            below /= cuts.len();
            cuts[number / below % cuts.len()].clone()
        })
    }

    /// Splits a result into its bands.
    fn split<'o>(&self, out: &'o mut [u8]) -> Result<Vec<(usize, &'o mut [u8])>, CopyError> {
        let mut rest = out;
        let band = |number| {
            let bytes = to_usize(self.ranges(number).map(|range| len(&range)).product::<u64>()) * self.size;
            let (band, later) = std::mem::take(&mut rest).split_at_mut_checked(bytes).ok_or(CopyError)?;
            rest = later;
            Ok((number, band))
        };
        (0..self.count()).map(band).collect()
    }

    /// Splits a result into rows of bands, a few for each thread.
    fn rows<'o>(&self, out: &'o mut [u8], threads: usize) -> Result<Vec<(Task, &'o mut [u8])>, CopyError> {
        let mut tasks = Vec::new();
        for (number, out) in self.split(out)? {
            let ranges: Vec<Range<u64>> = self.ranges(number).collect();
            let axis = ranges.iter().position(|range| len(range) > 1).unwrap_or(0);
            let Range { start, end } = ranges[axis];
            let row = out.len() / to_usize(end - start);
            let rows = to_usize(end - start).div_ceil(4 * threads).max(ROWS / row.max(1));
            for (first, out) in (start..end).step_by(rows).zip(out.chunks_mut(rows * row)) {
                let mut ranges = ranges.clone();
                ranges[axis] = first..(first + rows as u64).min(end);
                tasks.push((task(ranges.into_iter()), out));
            }
        }
        Ok(tasks)
    }
}

/// Cuts positions of an axis into ranges of `count` chunks.
fn chunk_ranges(scope: &Scope<'_>, axis: usize, range: &Range<u64>, count: usize) -> Vec<Range<u64>> {
    let mut edges = Vec::new();
    let mut position = range.start;
    while position < range.end {
        edges.push(position);
        position = scope.grid.next_chunk(axis, scope.selection.axes()[axis], position);
    }
    let ends = edges.iter().copied().skip(count).step_by(count).chain([range.end]);
    edges.iter().copied().step_by(count).zip(ends).map(|(start, end)| start..end).collect()
}

/// Copies the elements of the selection by their bytes.
pub(crate) struct Copy {
    /// Bytes of an element.
    pub(crate) size: usize,
}

struct CopyWriter<'o> {
    out: &'o mut [u8],
    size: usize,
}

impl Output for Copy {
    fn consumer<'o>(&'o self, out: &'o mut [u8]) -> Result<Writer<'o>, ErrorKind> {
        Ok(Box::new(CopyWriter { out, size: self.size }))
    }
    fn is_copy(&self) -> bool {
        true
    }
}

impl Consumer<'_> for CopyWriter<'_> {
    fn slab_bytes(&self) -> u64 {
        SLAB
    }

    fn piece(&mut self, bytes: &[u8], piece: Piece<'_>) -> Result<(), ErrorKind> {
        let (size, rank) = (self.size, piece.axes.len());
        let (mut counts, mut from, mut to) = ([0; MAX_RANK], [0; MAX_RANK], [0; MAX_RANK]);
        for (axis, run) in piece.axes.iter().enumerate() {
            counts[axis] = run.count;
            // A step beyond the array has one position: its stride is not used.
            from[axis] = run.stride.saturating_mul(size);
            to[axis] = run.slots.offset(1).saturating_mul(size);
        }
        let (from, to) = ((piece.offset * size, &from[..rank]), (piece.slot * size, &to[..rank]));
        Ok(BoxCopy::new(size, &counts[..rank], from, to).run(bytes, self.out)?)
    }

    fn target(&mut self, slot: usize, count: usize) -> Option<&mut [u8]> {
        self.out.get_mut(slot * self.size..(slot + count) * self.size)
    }
}
