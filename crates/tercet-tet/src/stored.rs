//! Stored chunks of existing files: copied, checked, into a new file.
//!
//! A dataset of a [`Layout`] can have an [`Origin`]: its chunks come from another file. They are copied as they are stored
//! and checked: damage is reported, never copied under a new checksum. A dataset that grows along an axis keeps the
//! chunks that stay complete; only a chunk that is clipped at the old edge is decoded and encoded again.

use std::sync::Arc;

use tercet_core::tensor::BoxCopy;
use tercet_core::{ByteSource as _, Progress, Sink};

use crate::error::{DatasetError, Error, ErrorKind};
use crate::file::{Dataset, File};
use crate::grid::Grid;
use crate::integrity::IntegrityStatus;
use crate::layout::{Compression, DatasetId, EditError, Layout, LayoutError, Planned};
use crate::read::dense_strides;
use crate::stats::Stats;
use crate::wire::ids::Codec;
use crate::writer::{Encoded, Encoder, Writer, room};

/// The stored dataset that a dataset of a new file is copied from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) file: Arc<File>,
    pub(crate) id: usize,
    /// The axis along which the new dataset is longer.
    pub(crate) grown: Option<usize>,
    /// Whether the values are decoded and encoded again, in the chunks of the new grid.
    pub(crate) recoded: bool,
}

impl Origin {
    pub(crate) fn dataset(&self) -> Dataset<'_> {
        Dataset { file: &self.file, id: self.id }
    }

    /// How the chunk at `coords` of the new grid is made.
    fn part(&self, grid: &Grid, coords: &[u64]) -> Part {
        let Some(axis) = self.grown else { return Part::Stored };
        let old = self.dataset().shape()[axis];
        let (low, high) = grid.window(axis, coords[axis]);
        if high <= old {
            Part::Stored
        } else if low >= old {
            Part::New { axis, old }
        } else {
            Part::Mixed { axis, old }
        }
    }
}

/// How a chunk of a new file is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Copied as it is stored.
    Stored,
    /// From new values.
    New { axis: usize, old: u64 },
    /// From stored values up to position `old`, and new values after it.
    Mixed { axis: usize, old: u64 },
}

/// A box of the values that are appended to a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewValues<'a> {
    /// The dataset in the layout of the new file.
    pub dataset: DatasetId,
    /// The first position of the box on each axis, in the appended array.
    pub start: &'a [u64],
    /// The extent of the box on each axis.
    pub extents: &'a [u64],
}

/// Fails for a file whose integrity block is partly unusable: a copy could not keep it.
pub(crate) fn check_block(file: &File) -> Result<(), Error> {
    if let IntegrityStatus::Partial { problems } = file.integrity_status() {
        let problems = problems.join("; ").into();
        return Err(file.error(ErrorKind::PartialIntegrityBlock { problems }));
    }
    Ok(())
}

/// Fails for a dataset with far more chunks than the index has rows: visiting each chunk would take too long. Damaged
/// extents make such grids.
pub(crate) fn check_rows(dataset: &Dataset<'_>) -> Result<(), ErrorKind> {
    let chunks = dataset.checked_grid()?.chunk_count();
    let rows = dataset.file.rows.count();
    if chunks > rows.saturating_mul(64).saturating_add(1 << 16) {
        let reason = DatasetError::FewRows { chunks, rows };
        return Err(ErrorKind::BadDataset { dataset: dataset.name().into(), reason });
    }
    Ok(())
}

/// Checks the stored datasets of a layout; returns the rows of the new file that stay without a chunk.
pub(crate) fn prepare(layout: &mut Layout) -> Result<Vec<u64>, Error> {
    let mut missing = Vec::new();
    let mut base = 0;
    for planned in &mut layout.datasets {
        if let Some(origin) = planned.origin.as_ref().filter(|origin| !origin.recoded) {
            let dataset = origin.dataset();
            let failed = |fault| origin.file.error(fault);
            check_rows(&dataset).map_err(failed)?;
            if !origin.file.rows.is_complete() {
                find_missing(origin, &planned.grid, base, &mut missing);
            }
            // The writer must not compute the offsets of raw chunks.
            if matches!(planned.compression, Compression::None | Compression::Auto) {
                let level = tercet_codec::bytes::zstd::DEFAULT_LEVEL;
                let zstd = is_compressed(&dataset).map_err(failed)?;
                planned.compression = if zstd { Compression::Zstd { level } } else { Compression::None };
            }
        }
        base += planned.grid.chunk_count();
    }
    Ok(missing)
}

/// Adds the missing chunks of a stored dataset, as row numbers of the new file.
fn find_missing(origin: &Origin, grid: &Grid, base: u64, missing: &mut Vec<u64>) {
    let dataset = origin.dataset();
    for linear in 0..grid.chunk_count() {
        let coords = grid.coords(linear);
        let coords = &coords[..grid.rank()];
        // Every other error is reported when the chunk is copied; a mixed chunk needs its stored values.
        if origin.part(grid, coords) == Part::Stored
            && let Err(ErrorKind::MissingChunk { .. }) = dataset.find_chunk(coords)
        {
            missing.push(base + linear);
        }
    }
}

/// Whether a chunk of a dataset is compressed.
fn is_compressed(dataset: &Dataset<'_>) -> Result<bool, ErrorKind> {
    let grid = dataset.checked_grid()?;
    Ok((0..grid.chunk_count()).any(|linear| {
        let coords = grid.coords(linear);
        let chunk_ref = dataset.find_chunk(&coords[..grid.rank()]);
        chunk_ref.is_ok_and(|chunk_ref| chunk_ref.codec == Codec::Zstd)
    }))
}

/// Writes the chunks of one dataset in the order of their rows, on the threads of the stored file: those that `make` returns, and copies of the
/// stored ones. `make` gets the row number and the grid coordinates in the new file.
pub(crate) fn copy_chunks<S: Sink, E: From<Error> + Send>(
    dataset: &Dataset<'_>,
    target: DatasetId,
    writer: &mut Writer<S>,
    make: impl Fn(&Encoder, u64, &[u64]) -> Option<Result<Encoded, E>> + Sync,
    progress: &dyn Progress,
) -> Result<(), E> {
    dataset.grid()?;
    writer.threads = dataset.file.options.threads;
    let grid = writer.grid(target).clone();
    let base = writer.base(target);
    let present: Vec<u64> =
        (0..grid.chunk_count()).filter(|&linear| !writer.is_missing(base + linear)).collect();
    let chunk = |encoder: &Encoder, linear: u64| {
        let coords = grid.coords(linear);
        let coords = &coords[..grid.rank()];
        let row = base + linear;
        make(encoder, row, coords).unwrap_or_else(|| {
            copy_chunk(dataset, coords, encoder, row).map_err(|fault| dataset.file.error(fault).into())
        })
    };
    writer.pump(target, present.into_iter(), chunk, progress)
}

/// A stored chunk with its statistics: from the old block if there is one, else computed from the decoded chunk.
fn copy_chunk(
    dataset: &Dataset<'_>,
    coords: &[u64],
    encoder: &Encoder,
    row: u64,
) -> Result<Encoded, ErrorKind> {
    let chunk_ref = dataset.find_chunk(coords)?;
    let stored = dataset.fetch(coords, &chunk_ref)?;
    let file = dataset.file;
    let mut known = None;
    if let Some(checker) = &file.checker {
        known = checker.row_stats(&file.source, chunk_ref.row)?;
    }
    let crc = dataset.expected_crc(&chunk_ref)?;
    let stats = match known {
        Some(stats) => stats,
        // Without a checksum only decoding can show that the chunk is intact.
        None if encoder.wants_statistics() || crc.is_none() => {
            let mut raw = dataset.room(&chunk_ref)?;
            dataset.decode(coords, &chunk_ref, &stored, &mut raw)?;
            Stats::compute(encoder.dtype, &raw).encode()
        }
        None => [0; 48],
    };
    let stored = if file.source.is_zero_copy() { stored.to_vec() } else { stored.into() };
    Ok(encoder.keep(row, chunk_ref.codec, stored, stats, crc))
}

impl<S: Sink> Writer<S> {
    /// Copies the chunks of all datasets that were added with [`Layout::copy_dataset`], checked, as they are stored.
    ///
    /// Call it before other datasets are written, so that the chunks of compressed files stay in the order of the index.
    pub fn copy_stored(&mut self, progress: &dyn Progress) -> Result<(), Error> {
        let grows = |planned: &&Planned| planned.origin.as_ref().is_some_and(|origin| origin.grown.is_some());
        if let Some(planned) = self.layout.datasets.iter().find(grows) {
            let dataset = planned.name.clone();
            return Err(self.error(LayoutError::from(EditError::NoValues { dataset }).into()));
        }
        self.copy_and_grow(|_, _| Ok::<(), Error>(()), progress)
    }

    /// Copies the chunks of all stored datasets and writes the new chunks of those that grow. `values` fills a buffer
    /// with a box of new values (row-major, little-endian); it is called from several threads.
    pub(crate) fn copy_and_grow<E: From<Error> + Send>(
        &mut self,
        values: impl Fn(&NewValues<'_>, &mut [u8]) -> Result<(), E> + Sync,
        progress: &dyn Progress,
    ) -> Result<(), E> {
        for position in 0..self.layout.datasets.len() {
            let Some(origin) = self.layout.datasets[position].origin.clone() else { continue };
            let target = DatasetId(position);
            let grid = self.grid(target).clone();
            if origin.recoded {
                self.threads = origin.file.options.threads;
                let values = |coords: &[u64], out: &mut [u8]| {
                    origin.dataset().read_chunk_of(&grid, coords, out).map_err(E::from)
                };
                self.fill(target, values, progress)?;
                continue;
            }
            let name = self.name.clone();
            let make = |encoder: &Encoder, row: u64, coords: &[u64]| {
                let raw = match origin.part(&grid, coords) {
                    Part::Stored => return None,
                    Part::New { axis, old } => new_chunk(&grid, coords, (axis, old), target, &name, &values),
                    Part::Mixed { axis, old } => {
                        mixed_chunk(&origin, &grid, coords, (axis, old), target, &name, &values)
                    }
                };
                let encode =
                    |raw| encoder.encode(row, raw).map_err(|fault| E::from(Error::new(name.clone(), fault)));
                Some(raw.and_then(encode))
            };
            copy_chunks(&origin.dataset(), target, self, make, progress)?;
        }
        Ok(())
    }
}

/// The values of a chunk after the old edge.
fn new_chunk<E: From<Error>>(
    grid: &Grid,
    coords: &[u64],
    (axis, old): (usize, u64),
    dataset: DatasetId,
    name: &Arc<str>,
    values: &impl Fn(&NewValues<'_>, &mut [u8]) -> Result<(), E>,
) -> Result<Vec<u8>, E> {
    let mut start: Vec<u64> = (0..grid.rank()).map(|axis| grid.window(axis, coords[axis]).0).collect();
    start[axis] -= old;
    let extents = grid.chunk_shape_at(coords);
    let mut raw = room(grid.chunk_bytes_at(coords)).map_err(|fault| Error::new(name.clone(), fault))?;
    values(&NewValues { dataset, start: &start, extents: &extents }, &mut raw)?;
    Ok(raw)
}

/// The values of a chunk across the old edge: the stored ones, then the new ones.
fn mixed_chunk<E: From<Error>>(
    origin: &Origin,
    grid: &Grid,
    coords: &[u64],
    (axis, old): (usize, u64),
    target: DatasetId,
    name: &Arc<str>,
    values: &impl Fn(&NewValues<'_>, &mut [u8]) -> Result<(), E>,
) -> Result<Vec<u8>, E> {
    let failed = |fault| Error::new(name.clone(), fault);
    let size = grid.element().size();
    let shape = grid.chunk_shape_at(coords);
    let strides = dense_strides(&shape, size);
    let mut raw = room(grid.chunk_bytes_at(coords)).map_err(failed)?;
    let mut put = |from: &[u8], extents: &[u64], position: u64| {
        let usize_of = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let counts: Vec<usize> = extents.iter().map(|&extent| usize_of(extent)).collect();
        let at = usize_of(position) * strides[axis];
        let copy = BoxCopy::new(size, &counts, (0, &dense_strides(extents, size)), (at, &strides));
        copy.run(from, &mut raw).map_err(|error| failed(error.into()))
    };
    let dataset = origin.dataset();
    let stored = || {
        let chunk_ref = dataset.find_chunk(coords)?;
        let mut stored = dataset.room(&chunk_ref)?;
        dataset.load(coords, &chunk_ref, &mut stored)?;
        Ok((stored, dataset.checked_grid()?.chunk_shape_at(coords)))
    };
    let (stored, stored_shape) = stored().map_err(|fault| origin.file.error(fault))?;
    put(&stored, &stored_shape, 0)?;
    drop(stored);

    let kept = stored_shape[axis];
    let mut start: Vec<u64> = (0..grid.rank()).map(|axis| grid.window(axis, coords[axis]).0).collect();
    start[axis] = 0;
    let mut extents = shape.clone();
    extents[axis] -= kept;
    debug_assert_eq!(grid.window(axis, coords[axis]).0 + kept, old, "the stored chunk ends at the old edge");
    let bytes = extents.iter().product::<u64>() * size as u64;
    let mut new = room(bytes).map_err(failed)?;
    values(&NewValues { dataset: target, start: &start, extents: &extents }, &mut new)?;
    put(&new, &extents, kept)?;
    Ok(raw)
}
