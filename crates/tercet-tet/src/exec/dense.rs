//! Dense results: writes chunks to their positions in an array, copied or transformed.
//!
//! The result is split into bands: contiguous pieces made of complete rows of chunks. Each band is written by one
//! thread. The values of a chunk are read once, right after its checksum has brought them into the cache. If there are
//! few bands (one wide row of chunks, one large chunk), all threads work on one band, each on some of its rows.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use pulp::Arch;
use rayon::prelude::*;
use tercet_core::tensor::CopyError;
use tercet_core::{ByteSource as _, Selection, checksum};

use super::drive::as_values;
use super::job::Job;
use super::number::Number;
use super::predicate::Predicate;
use crate::error::ErrorKind;
use crate::grid::Grid;
use crate::query::resolved::Role;
use crate::read::{Band, bands};
use crate::wire::ids::{Codec, MAX_RANK};

mod axes;
mod rows;
mod zero_divisors;

use axes::{At, AxisMap, AxisRun, Window};
use rows::ChunkRows;
use zero_divisors::ZeroDivisors;

/// Chunks larger than this are checked by several threads.
const LARGE_CHUNK: u64 = 8 << 20;
const PIECE_BYTES: usize = 2 << 20;
/// Bytes of chunks held at once if there are fewer bands than threads.
const BATCH_BYTES: u64 = 16 << 20;
/// Minimum number of elements in a piece of rows that is given to a thread.
const PIECE_CELLS: u64 = 64 << 10;

/// Statistics of the cells (output elements of the first pass) that a transform uses.
#[derive(Debug)]
pub(crate) struct Numbers {
    pub(crate) shift: Vec<f64>,
    /// Divisors; NaN where a division is impossible. Empty if nothing is divided.
    pub(crate) divisor: Vec<f64>,
}

/// Rows of values that are processed one after the other; all strides are in elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plane {
    pub(crate) rows: usize,
    pub(crate) width: usize,
    /// Stride from one row to the next.
    pub(crate) from_row: usize,
    pub(crate) to_row: usize,
    pub(crate) cell_row: usize,
    /// Stride of cells from one value to the next: 0 or 1.
    pub(crate) cell_column: usize,
}

/// Borrowed statistics of all cells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellNumbers<'a> {
    pub(crate) shift: &'a [f64],
    pub(crate) divisor: &'a [f64],
}

/// Kernel: the operation on rows of values. The last argument is the cell of the first value.
pub(crate) type Kernel<T> = fn(Arch, (&[T], &mut [T]), Plane, CellNumbers<'_>, usize);

/// The selection as a dense array, filled with copied or transformed chunks.
pub(crate) struct DenseWriter<'a> {
    job: &'a Job<'a>,
    numbers: &'a Numbers,
    /// Whether any cell has an impossible divisor.
    has_zero_divisors: bool,
    space: AxisMap<'a>,
    /// Tile numbers of the plan's chunks, ascending.
    linear: Vec<u64>,
    /// Whether the bytes of each chunk were already checked.
    checked: Vec<AtomicBool>,
    bad: ZeroDivisors,
}

type Coordinates = [u64; MAX_RANK];

/// State shared by the threads while they write elements of one type.
struct RowTransform<'s, T: Number> {
    arch: Arch,
    kernel: Kernel<T>,
    predicate: Option<&'s Predicate<T>>,
    /// Value that replaces filtered-out values.
    blank: T,
}

impl<'a> DenseWriter<'a> {
    /// Creates a dense for values whose cells are defined by `roles`.
    pub(crate) fn new(job: &'a Job<'a>, numbers: &'a Numbers, roles: &[Role]) -> Self {
        let (grid, rank) = (&job.plan.grid, job.plan.grid.rank());
        let linear: Vec<u64> = job
            .plan
            .chunks
            .iter()
            .map(|chunk| grid.linear(&chunk.tile[..rank]).unwrap_or(u64::MAX))
            .collect();
        let checked = linear.iter().map(|_| AtomicBool::new(false)).collect();
        let has_zero_divisors = numbers.divisor.iter().any(|divisor| divisor.is_nan());
        let space = AxisMap::new(job.plan, roles, job.resolved.positions.as_ref(), has_zero_divisors);
        Self { job, numbers, has_zero_divisors, space, linear, checked, bad: ZeroDivisors::default() }
    }

    /// Whether chunks can be read several times without decoding them each time.
    #[cfg(any(unix, windows))]
    pub(crate) fn can_split(&self) -> bool {
        let raw = self.job.plan.chunks.iter().all(|chunk| chunk.stored.codec == Codec::Raw);
        raw && self.job.dataset.file.source.is_zero_copy()
    }

    /// Number of finite values with an impossible divisor, and the first of their indices.
    pub(crate) fn into_zero_divisors(self) -> (u64, Vec<u64>) {
        self.bad.into_reported()
    }

    /// Writes `part`, whose first position is `origin` in the selection, to a dense buffer of its size. Filtered-out
    /// values are replaced with `blank` before the kernel is applied.
    pub(crate) fn write_part<T: Number>(
        &self,
        kernel: Kernel<T>,
        blank: T,
        (part, origin): (&Selection, &[u64]),
        out: &mut [u8],
    ) -> Result<(), ErrorKind> {
        let resolved = self.job.resolved;
        let predicate = resolved.filter.as_ref().map(|filter| Predicate::<T>::new(filter, resolved.fill));
        let transform = RowTransform { arch: Arch::new(), kernel, predicate: predicate.as_ref(), blank };
        let grid = &self.job.plan.grid;
        let tiles = grid.touched(part);
        let out = bytemuck::try_cast_slice_mut::<u8, T>(out).map_err(|_| CopyError)?;
        // Split the result into one slice per band; bands are contiguous, without gaps.
        let mut work = Vec::new();
        let mut rest = &mut *out;
        for band in bands(grid, part, &tiles) {
            let (mine, others) = rest.split_at_mut_checked(band.bytes / size_of::<T>()).ok_or(CopyError)?;
            let place = OutputRange::of(&band, grid, (part, origin), &tiles);
            work.push((place, &tiles[band.tiles], mine));
            rest = others;
        }
        if self.job.parallel && work.len() < 2 * rayon::current_num_threads() {
            for (place, tiles, out) in work {
                self.together(&transform, &place, tiles, out)?;
            }
        } else {
            let one =
                |scratch: &mut Vec<T>, (place, tiles, out): (OutputRange<'_>, &[Coordinates], &mut [T])| {
                    for tile in tiles {
                        self.put(&transform, &place, (tile, self.load(tile)?.as_ref()), out, scratch);
                    }
                    Ok(())
                };
            self.spread(work, one)?;
        }
        if cfg!(target_endian = "big") {
            for value in out {
                *value = value.swap_le();
            }
        }
        Ok(())
    }

    /// Writes one band with all threads: loads a batch of its chunks, then distributes its rows.
    fn together<T: Number>(
        &self,
        transform: &RowTransform<'_, T>,
        place: &OutputRange<'_>,
        tiles: &[Coordinates],
        out: &mut [T],
    ) -> Result<(), ErrorKind> {
        let grid = &self.job.plan.grid;
        let axis = place.counts.iter().position(|&count| count > 1).unwrap_or(0);
        let row: u64 = place.counts[axis + 1..].iter().product();
        let threads = rayon::current_num_threads().max(1) as u64;
        let rows = place.counts[axis].div_ceil(4 * threads).max(PIECE_CELLS / row.max(1)).max(1);
        let piece_len = usize::try_from(rows.saturating_mul(row)).unwrap_or(usize::MAX);
        // The first tile is the largest of a band, or nearly so.
        let tile_bytes = tiles.first().map_or(1, |tile| grid.tile_bytes(&tile[..grid.rank()])).max(1);
        let batch = usize::try_from((BATCH_BYTES / tile_bytes).max(threads)).unwrap_or(usize::MAX);
        for tiles in tiles.chunks(batch) {
            let loaded: Vec<Option<Loaded<T>>> = tiles
                .par_iter()
                .with_max_len(1)
                .map(|tile| self.load(tile))
                .collect::<Result<_, ErrorKind>>()?;
            let pieces: Vec<(u64, &mut [T])> =
                (0..).step_by(usize_of(rows)).zip(out.chunks_mut(piece_len)).collect();
            self.spread(pieces, |scratch, (first, out)| {
                let place = place.rows(axis, first, rows);
                for (tile, raw) in tiles.iter().zip(&loaded) {
                    self.put(transform, &place, (tile, raw.as_ref()), out, scratch);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Runs every task, on all threads if the job is parallel.
    fn spread<T: Number, I: Send>(
        &self,
        tasks: Vec<I>,
        work: impl Fn(&mut Vec<T>, I) -> Result<(), ErrorKind> + Sync + Send,
    ) -> Result<(), ErrorKind> {
        if self.job.parallel && tasks.len() > 1 {
            return tasks.into_par_iter().with_max_len(1).try_for_each_init(Vec::new, work);
        }
        let mut scratch = Vec::new();
        tasks.into_iter().try_for_each(|task| work(&mut scratch, task))
    }

    /// Loads the values of a chunk; `None` if the plan pruned it because no element passes.
    fn load<T: Number>(&self, tile: &Coordinates) -> Result<Option<Loaded<T>>, ErrorKind> {
        Ok(self.fetch(tile)?.map(Loaded::new))
    }

    fn fetch(&self, tile: &Coordinates) -> Result<Option<Bytes>, ErrorKind> {
        let (job, plan) = (self.job, self.job.plan);
        let number = plan.grid.linear(&tile[..plan.grid.rank()]);
        let Some(number) = number.and_then(|number| self.linear.binary_search(&number).ok()) else {
            return Ok(None);
        };
        let place = &plan.chunks[number].stored;
        let in_place = place.codec == Codec::Raw && job.dataset.file.source.is_zero_copy();
        if in_place && self.checked[number].load(Ordering::Relaxed) {
            return Ok(Some(job.dataset.file.source.read_at(place.span)?));
        }
        if in_place && job.parallel && place.raw_len > LARGE_CHUNK {
            job.progress.check()?;
            let stored = job.dataset.file.source.read_at(place.span)?;
            if let Some(expected) = job.dataset.expected_crc(place)? {
                let pieces: Vec<(u32, usize)> = stored
                    .par_chunks(PIECE_BYTES)
                    .map(|piece| (checksum::crc32c(piece), piece.len()))
                    .collect();
                let join = |crc, (next, len)| checksum::crc32c_combine(crc, next, len as u64);
                let crc = pieces.into_iter().fold(0, join);
                job.dataset.check_crc(&tile[..plan.grid.rank()], place, expected, crc)?;
            }
            job.count(place.span.len());
            self.checked[number].store(true, Ordering::Relaxed);
            return Ok(Some(stored));
        }
        let raw = job.tile(number)?;
        self.checked[number].store(true, Ordering::Relaxed);
        Ok(Some(raw))
    }

    /// Transforms the part of a chunk that overlaps a place.
    fn put<T: Number>(
        &self,
        transform: &RowTransform<'_, T>,
        place: &OutputRange<'_>,
        (tile, loaded): (&Coordinates, Option<&Loaded<T>>),
        out: &mut [T],
        scratch: &mut Vec<T>,
    ) {
        let Some((mut lanes, at)) = self.space.lanes(tile, &place.window(), &place.strides) else { return };
        self.space.join(&mut lanes);
        AxisMap::finish(&mut lanes);
        let values = loaded.map(Loaded::values);
        ChunkRows { dense: self, transform, values, out, row: scratch }.descend(&lanes, at);
    }
}

/// A loaded chunk.
struct Loaded<T> {
    bytes: Bytes,
    /// Copied values, if they could not be used in place.
    copy: Vec<T>,
}

impl<T: Number> Loaded<T> {
    fn new(bytes: Bytes) -> Self {
        let mut copy = Vec::new();
        let _ = as_values::<T>(&bytes, &mut copy);
        Self { bytes, copy }
    }

    fn values(&self) -> &[T] {
        if self.copy.is_empty() {
            bytemuck::try_cast_slice(&self.bytes).unwrap_or_default()
        } else {
            &self.copy
        }
    }
}

/// A contiguous piece of the result, with its position.
struct OutputRange<'p> {
    part: &'p Selection,
    /// First position of the part, in the selection.
    origin: &'p [u64],
    /// First position of the piece, in the part, and its extents.
    first: Coordinates,
    counts: Vec<u64>,
    /// Strides in elements.
    strides: Vec<usize>,
}

impl<'p> OutputRange<'p> {
    fn of(
        band: &Band,
        grid: &Grid,
        (part, origin): (&'p Selection, &'p [u64]),
        tiles: &[Coordinates],
    ) -> Self {
        let mut first = [0; MAX_RANK];
        let counts = band.origin_and_counts(grid, part, tiles, &mut first);
        let strides = crate::read::dense_strides(&counts, 1);
        Self { part, origin, first, counts, strides }
    }

    /// A range of positions of an axis; the axes before it have one position each.
    fn rows(&self, axis: usize, from: u64, count: u64) -> Self {
        let mut rows = Self { counts: self.counts.clone(), strides: self.strides.clone(), ..*self };
        rows.counts[axis] = count.min(self.counts[axis].saturating_sub(from));
        rows.first[axis] += from;
        rows
    }

    fn window(&self) -> Window<'_> {
        let positions =
            self.first.iter().zip(&self.counts).map(|(&first, &count)| first..first + count).collect();
        Window { part: self.part, origin: self.origin, positions }
    }
}

impl DenseWriter<'_> {
    fn cell_numbers(&self) -> CellNumbers<'_> {
        let shift = &self.numbers.shift[..];
        // Without a division the second number is not read.
        let divisor = if self.numbers.divisor.is_empty() { shift } else { &self.numbers.divisor[..] };
        CellNumbers { shift, divisor }
    }

    /// Counts the finite values of a row with an impossible divisor.
    fn count_zero_divisors<T: Number>(&self, values: &[T], row: &AxisRun<'_>, at: At) {
        let bad = |i: usize| self.numbers.divisor[at.cell + i * row.cell].is_nan();
        if row.cell == 0 && !bad(0) {
            return;
        }
        let finite = |value: T| !value.is_nan() && !value.is_infinite();
        let found = values.iter().enumerate().filter(|&(i, &value)| finite(value) && bad(i));
        self.bad.note(found.map(|(i, _)| at.index + i as u64 * row.index));
    }
}

fn usize_of(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
