//! [`Writer`]: chunks in any order, then index and footer.

use std::collections::BTreeMap;
use std::io::SeekFrom;
use std::num::NonZeroUsize;
#[cfg(any(unix, windows))]
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use tercet_codec::bytes::zstd;
use tercet_core::progress::NoProgress;
#[cfg(any(unix, windows))]
use tercet_core::publish::{AtomicFile, Disk, RealDisk};
#[cfg(any(unix, windows))]
use tercet_core::source;
use tercet_core::tensor::BoxCopy;
use tercet_core::{Progress, Shape, Sink, TensorView, threads};

use crate::error::{Error, ErrorKind};
#[cfg(any(unix, windows))]
use crate::file::{File, ReadOptions};
use crate::grid::Grid;
use crate::layout::{Compression, CompressionChoice, DatasetId, Layout, LayoutError, Profile, WriterOptions};
use crate::metadata::HistoryRow;
use crate::read::dense_strides;
use crate::rounding::Rounder;
use crate::stored;
use crate::wire::directory::{self, Record};
use crate::wire::ids::{FLAG_FOOTER, MAX_RANK, RECORDS_AT, align8, dtype_tag};
use crate::wire::index::{Row, index_len};
use crate::wire::superblock::Superblock;
use crate::zones::ZoneMaps;

mod chunks;
#[cfg(any(unix, windows))]
mod dense;
mod encode;
mod footer;
pub(crate) mod sample;

pub use chunks::{ChunkEncoder, EncodedChunk};
use encode::UNWRITTEN;
pub(crate) use encode::{Encoded, Encoder, MISSING, RowStates};

/// Writes the chunks of a [`Layout`] to a sink.
///
/// Chunks may be written in any order. Raw chunks are stored in canonical order; if any dataset is compressed, all
/// chunks are stored in the order of writing. Memory does not grow with the data: about 70 bytes are kept
/// per chunk (40 more with zone maps), and two chunks per thread.
#[derive(Debug)]
pub struct Writer<S> {
    pub(crate) name: Arc<str>,
    pub(crate) sink: S,
    pub(crate) layout: Layout,
    pub(crate) options: WriterOptions,
    /// The bytes before the index.
    pub(crate) directory: Vec<u8>,
    pub(crate) index_offset: u64,
    pub(crate) rows: RowStates,
    /// `None` also if a chunk was copied without its values.
    pub(crate) zones: Option<ZoneMaps>,
    /// The number of rows without a chunk.
    missing: usize,
    /// The first row of each dataset.
    bases: Vec<u64>,
    /// The position of the sink.
    at: u64,
    /// The end of the last payload so far.
    pub(crate) end: u64,
    /// The dataset of the last payload.
    last: Option<DatasetId>,
    placement: Placement,
    rounders: Vec<Option<Rounder>>,
    choices: BTreeMap<usize, CompressionChoice>,
    /// The number of threads that encode chunks; `None` is the current pool.
    pub(crate) threads: Option<NonZeroUsize>,
}

/// The offsets of payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placement {
    /// Known from the start: all chunks are raw.
    Fixed,
    /// In the order of writing.
    Append,
}

/// The source of history rows that this crate adds.
pub(crate) const PRODUCER: &str = concat!("tercet ", env!("CARGO_PKG_VERSION"));

/// Smaller chunks are encoded in batches per thread.
const BATCH_BYTES: u64 = 1 << 20;

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written<D> {
    /// The output of the sink: the path of a file, or its bytes.
    pub output: D,
    /// The number of chunks.
    pub chunks: u64,
    /// The length of the file in bytes.
    pub bytes: u64,
}

#[cfg(any(unix, windows))]
impl Writer<AtomicFile> {
    /// Starts a file at `path`. The file appears, complete, when the writer is finished.
    ///
    /// An existing file is an error unless [`WriterOptions::overwrite`] is set. That holds for a file that appears
    /// before this one is finished, too.
    pub fn create(path: impl AsRef<Path>, layout: Layout, options: WriterOptions) -> Result<Self, Error> {
        Self::create_on(Arc::new(RealDisk), path.as_ref(), layout, options)
    }

    /// Starts a file at `path` on another [`Disk`], for tests.
    pub fn create_on(
        disk: Arc<dyn Disk>,
        path: &Path,
        layout: Layout,
        options: WriterOptions,
    ) -> Result<Self, Error> {
        let name = path.to_string_lossy();
        let error = |kind: ErrorKind| Error::new(name.as_ref().into(), kind);
        layout.check(options).map_err(|layout| error(layout.into()))?;
        let file = if options.overwrite {
            AtomicFile::create_on(disk, path)
        } else {
            AtomicFile::create_new_on(disk, path)
        };
        Self::start(file.map_err(|publish| error(publish.into()))?, &name, layout, options)
    }

    /// Like [`finish`](Self::finish), but reads the complete file first and passes it to `check`. If that fails, the file
    /// does not appear, and an existing one is unchanged.
    pub fn finish_checked<E: From<Error>>(
        mut self,
        options: ReadOptions,
        check: impl FnOnce(&File) -> Result<(), E>,
    ) -> Result<Written<PathBuf>, E> {
        let written = self.check_complete().and_then(|()| footer::write(&mut self));
        let bytes = written.map_err(|kind| self.error(kind))?;
        let chunks = self.row_count();
        let handle = self.sink.reader().map_err(|error| Error::new(self.name.clone(), error.into()))?;
        let source = source::File::from_handle(&self.name, handle);
        let source = source.map_err(|error| Error::new(self.name.clone(), error.into()))?;
        check(&File::from_source(Arc::new(source), options)?)?;
        match self.sink.publish() {
            Ok(output) => Ok(Written { output, chunks, bytes }),
            Err(error) => Err(Error::new(self.name, error.into()).into()),
        }
    }
}

impl<S: Sink> Writer<S> {
    /// Starts a file in a sink.
    pub fn new(sink: S, layout: Layout, options: WriterOptions) -> Result<Self, Error> {
        Self::start(sink, "output", layout, options)
    }

    /// Sets the name of the output in errors.
    pub fn with_name(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    fn start(sink: S, name: &str, mut layout: Layout, options: WriterOptions) -> Result<Self, Error> {
        if options.record_history && options.profile == Profile::Native && layout.history.is_empty() {
            layout.history.push(HistoryRow::now("create", PRODUCER));
        }
        let error = |kind| Error::new(name.into(), kind);
        layout.check(options).map_err(|layout| error(layout.into()))?;
        let missing = stored::prepare(&mut layout)?;
        Self::with_missing(layout, name, sink, options, &missing).map_err(error)
    }

    /// A writer for a checked layout. `missing` lists the canonical numbers of rows that stay without a chunk.
    pub(crate) fn with_missing(
        layout: Layout,
        name: &str,
        sink: S,
        options: WriterOptions,
        missing: &[u64],
    ) -> Result<Self, ErrorKind> {
        let records: Vec<Record> = layout
            .datasets
            .iter()
            .map(|planned| Record {
                name: planned.name.clone(),
                dtype_tag: dtype_tag(planned.grid.element()),
                shape: planned.grid.shape().to_vec(),
                chunk_shape: planned.grid.chunk_shape().to_vec(),
            })
            .collect();
        let blob = directory::encode(&records).ok_or(LayoutError::TooLarge)?;
        let index_offset = align8(RECORDS_AT + blob.len() as u64).ok_or(LayoutError::TooLarge)?;
        let mut bases = Vec::with_capacity(records.len());
        let mut total = 0;
        for planned in &layout.datasets {
            bases.push(total);
            total += planned.grid.chunk_count();
        }
        let count = usize::try_from(total).map_err(|_| LayoutError::TooLarge)?;
        let mut rows = RowStates::new(count, options)?;
        for &row in missing {
            rows.codecs[usize::try_from(row).unwrap_or(usize::MAX)] = MISSING;
        }
        let zones =
            options.zone_maps.then(|| ZoneMaps::new(&layout.datasets, &layout.metadata)).transpose()?;
        let rounders = layout.rounders()?;
        let kept_rows = total - missing.len() as u64;
        let start = if records.is_empty() {
            crate::wire::ids::SUPERBLOCK_LEN
        } else {
            index_offset + index_len(kept_rows).ok_or(LayoutError::TooLarge)?
        };
        let raw = layout.datasets.iter().all(|planned| planned.compression == Compression::None);
        let placement = if raw && missing.is_empty() { Placement::Fixed } else { Placement::Append };
        let mut writer = Self {
            name: name.into(),
            sink,
            layout,
            options,
            directory: blob,
            index_offset,
            rows,
            zones,
            missing: missing.len(),
            bases,
            at: 0,
            end: start,
            last: None,
            placement,
            rounders,
            choices: BTreeMap::new(),
            threads: None,
        };
        if placement == Placement::Fixed {
            writer.fix_places();
        }
        Ok(writer)
    }

    /// Computes the offsets of all chunks of a raw file.
    fn fix_places(&mut self) {
        let mut offset = self.end;
        let mut row = 0;
        for planned in &self.layout.datasets {
            offset = aligned(offset, self.options);
            for linear in 0..planned.grid.chunk_count() {
                let coords = planned.grid.coords(linear);
                self.rows.offsets[row] = offset;
                offset += planned.grid.chunk_bytes_at(&coords[..planned.grid.rank()]);
                row += 1;
            }
        }
        self.end = offset;
    }

    /// The chunk grid of a dataset.
    pub fn grid(&self, dataset: DatasetId) -> &Grid {
        &self.layout.datasets[dataset.0].grid
    }

    /// Writes one chunk. The view has the extents of the chunk, clipped at the edge of the array.
    pub fn chunk(&mut self, dataset: DatasetId, coords: &[u64], view: TensorView<'_>) -> Result<(), Error> {
        let encoded = self.chunk_encoder(dataset, Some(view))?.encode(coords, view)?;
        self.put_chunk(&encoded)
    }

    /// Writes a whole dataset from an array in memory, on all threads.
    pub fn array(&mut self, dataset: DatasetId, view: TensorView<'_>) -> Result<(), Error> {
        let grid = self.grid(dataset).clone();
        if view.dtype() != grid.element() || view.shape() != grid.shape() {
            let expected = Box::new((grid.dtype(), Shape::from(grid.shape())));
            let found = Box::new((view.dtype(), Shape::from(view.shape())));
            let dataset = self.layout.datasets[dataset.0].name.clone();
            return Err(self.error(LayoutError::ChunkShape { dataset, expected, found }.into()));
        }
        let strides = dense_strides(grid.shape(), grid.element().size());
        let name = self.name.clone();
        let cut = |coords: &[u64], out: &mut [u8]| {
            cut_chunk(&grid, coords, (view.bytes(), &strides), out)
                .map_err(|fault| Error::new(name.clone(), fault))
        };
        self.fill(dataset, cut, &NoProgress)
    }

    /// Writes a whole dataset on all threads: `fill` is called for every chunk, from several threads, with the
    /// chunk's coordinates and a buffer for its elements (row-major, little-endian). With [`Compression::Auto`], chunks of
    /// the sample are requested twice.
    pub fn fill<E: From<Error> + Send>(
        &mut self,
        dataset: DatasetId,
        fill: impl Fn(&[u64], &mut [u8]) -> Result<(), E> + Sync,
        progress: &dyn Progress,
    ) -> Result<(), E> {
        let count = self.grid(dataset).chunk_count();
        self.fill_chunks(dataset, 0..count, |_| Ok(None), fill, progress)
    }

    /// Writes some chunks of a dataset, in an order that suits the source: `numbers` counts chunks in row-major order. `stored`
    /// is called first: the Zstandard frames of the values of a chunk are stored as they are, after they were decoded once for
    /// the statistics. `fill` is called for the other chunks, as by [`fill`](Self::fill).
    ///
    /// Frames are decoded and encoded again if the dataset is rounded, or not compressed. [`Compression::Auto`] is decided by the chunks of
    /// the first call.
    pub fn fill_chunks<E: From<Error> + Send>(
        &mut self,
        dataset: DatasetId,
        numbers: impl Iterator<Item = u64> + Clone,
        stored: impl Fn(&[u64]) -> Result<Option<Vec<u8>>, E> + Sync,
        fill: impl Fn(&[u64], &mut [u8]) -> Result<(), E> + Sync,
        progress: &dyn Progress,
    ) -> Result<(), E> {
        let grid = self.grid(dataset).clone();
        let base = self.bases[dataset.0];
        let name = self.name.clone();
        let failed = |fault: ErrorKind| E::from(Error::new(name.clone(), fault));
        let values = |linear: u64| -> Result<Vec<u8>, E> {
            let coords = grid.coords(linear);
            let coords = &coords[..grid.rank()];
            let mut raw = room(grid.chunk_bytes_at(coords)).map_err(failed)?;
            fill(coords, &mut raw)?;
            Ok(raw)
        };
        if self.layout.datasets[dataset.0].compression == Compression::Auto {
            let positions = sample::positions(&grid, numbers.clone().count() as u64);
            let at = |position: u64| numbers.clone().nth(usize::try_from(position).ok()?);
            let chunks: Vec<u64> = positions.into_iter().filter_map(at).collect();
            self.choose(dataset, &chunks, values)?;
        }
        let make = |this: &Encoder, linear: u64| {
            if this.carries() {
                let coords = grid.coords(linear);
                let coords = &coords[..grid.rank()];
                if let Some(frames) = stored(coords)?
                    && let Some(encoded) = this.carry(base + linear, frames, grid.chunk_bytes_at(coords))
                {
                    return Ok(encoded);
                }
            }
            this.encode(base + linear, values(linear)?).map_err(failed)
        };
        self.pump(dataset, numbers, make, progress)
    }

    /// The compression that was chosen for a dataset with [`Compression::Auto`]; `None` before its values are written.
    pub fn compression_choice(&self, dataset: DatasetId) -> Option<CompressionChoice> {
        self.choices.get(&dataset.0).copied()
    }

    /// Chooses the compression of a dataset from a sample of its chunks.
    fn choose<E: From<Error> + Send>(
        &mut self,
        dataset: DatasetId,
        chunks: &[u64],
        values: impl Fn(u64) -> Result<Vec<u8>, E> + Sync,
    ) -> Result<(), E> {
        let rounder = self.rounders[dataset.0].as_ref();
        let element = self.grid(dataset).element();
        let name = self.name.clone();
        let measure = |&linear: &u64| {
            let failed = |fault: ErrorKind| E::from(Error::new(name.clone(), fault));
            let mut raw = values(linear)?;
            let piece = sample::piece(&mut raw, element.size());
            if let Some(rounder) = rounder {
                rounder.apply(piece).map_err(failed)?;
            }
            let compressed = sample::compressed_len(piece, zstd::DEFAULT_LEVEL).map_err(failed)?;
            Ok((piece.len() as u64, compressed))
        };
        let all = || chunks.par_iter().map(measure).collect::<Result<Vec<_>, E>>();
        let sizes = threads::install(self.threads, all)?;
        let sum = |(bytes, compressed), (more, less)| (bytes + more, compressed + less);
        let (sample_bytes, compressed_bytes) = sizes.into_iter().fold((0u64, 0u64), sum);
        let compression = sample::choose(sample_bytes, compressed_bytes, rounder.is_some());
        self.layout.datasets[dataset.0].compression = compression;
        self.choices.insert(dataset.0, CompressionChoice { compression, sample_bytes, compressed_bytes });
        Ok(())
    }

    /// Encodes chunks on all threads and writes them in order; a batch is encoded while the previous one is written.
    /// Progress counts decoded bytes.
    pub(crate) fn pump<E: From<Error> + Send>(
        &mut self,
        dataset: DatasetId,
        numbers: impl Iterator<Item = u64>,
        make: impl Fn(&Encoder, u64) -> Result<Encoded, E> + Sync,
        progress: &dyn Progress,
    ) -> Result<(), E>
    where
        S: Sink,
    {
        let encoder = self.encoder(dataset);
        let batch_len = self.batch_len(dataset);
        let (grid, base) = (self.grid(dataset).clone(), self.base(dataset));
        let mut numbers = numbers.peekable();
        let mut ready: Vec<Encoded> = Vec::new();
        while numbers.peek().is_some() || !ready.is_empty() {
            if let Err(cancelled) = progress.check() {
                return Err(self.error(cancelled.into()).into());
            }
            let batch: Vec<u64> = numbers.by_ref().take(batch_len).collect();
            let writing = std::mem::take(&mut ready);
            let encode =
                || batch.par_iter().map(|&linear| make(&encoder, linear)).collect::<Result<Vec<_>, E>>();
            let threads = self.threads;
            let produce = || threads::install(threads, encode);
            // The sink stays on this thread: it is not necessarily `Send`.
            let (made, written) = in_place_join(produce, || {
                for encoded in writing {
                    self.put(dataset, &encoded)?;
                    let coords = grid.coords(encoded.row - base);
                    progress.advance(grid.chunk_bytes_at(&coords[..grid.rank()]));
                }
                Ok(())
            });
            written.map_err(|fault: ErrorKind| E::from(self.error(fault)))?;
            ready = made?;
        }
        Ok(())
    }

    /// Chunks in a batch: one per thread, or enough small ones that scheduling costs little.
    fn batch_len(&self, dataset: DatasetId) -> usize {
        let grid = self.grid(dataset);
        // The first chunk is the largest: chunks are clipped at the far edges.
        let bytes = grid.chunk_bytes_at(&[0; MAX_RANK][..grid.rank()]).max(1);
        let small = usize::try_from(BATCH_BYTES / bytes).unwrap_or(1);
        threads::install(self.threads, rayon::current_num_threads).max(1) * small.clamp(1, 1024)
    }

    fn encoder(&self, dataset: DatasetId) -> Encoder {
        let planned = &self.layout.datasets[dataset.0];
        Encoder {
            dtype: planned.grid.element(),
            compression: planned.compression,
            checksums: self.options.has_block(),
            statistics: self.options.has_block() && self.options.statistics,
            zones: self.zones.as_ref().map(|zones| zones.scan(dataset.0)),
            rounder: self.rounders[dataset.0].clone(),
        }
    }

    /// Writes an encoded chunk and records its row.
    pub(crate) fn put(&mut self, dataset: DatasetId, encoded: &Encoded) -> Result<(), ErrorKind> {
        let row = usize::try_from(encoded.row).unwrap_or(usize::MAX);
        if self.rows.codecs[row] != UNWRITTEN {
            let planned = &self.layout.datasets[dataset.0];
            let coords = planned.grid.coords(encoded.row - self.bases[dataset.0]);
            let coords = coords[..planned.grid.rank()].to_vec();
            return Err(LayoutError::ChunkTwice { dataset: planned.name.clone(), coords }.into());
        }
        let len = encoded.stored.len() as u64;
        let offset = match self.placement {
            Placement::Fixed => self.rows.offsets[row],
            Placement::Append => {
                let starts = self.last != Some(dataset);
                let offset = if starts { aligned(self.end, self.options) } else { self.end };
                self.write_at(self.end, &[0; 8][..usize::try_from(offset - self.end).unwrap_or(0)])?;
                self.end = offset + len;
                offset
            }
        };
        self.write_at(offset, &encoded.stored)?;
        self.last = Some(dataset);
        self.rows.offsets[row] = offset;
        self.rows.stored[row] = len;
        self.rows.codecs[row] = u8::try_from(encoded.codec.id()).unwrap_or(UNWRITTEN);
        if let Some(crc) = self.rows.crcs.get_mut(row) {
            *crc = encoded.crc;
        }
        if let Some(stats) = self.rows.stats.get_mut(row) {
            *stats = encoded.stats;
        }
        match (&mut self.zones, &encoded.zone) {
            (Some(zones), Some(zone)) => zones.note(dataset.0, encoded.row - self.bases[dataset.0], zone),
            // Readers would skip a chunk that is missing from the zone maps.
            _ => self.zones = None,
        }
        Ok(())
    }

    pub(crate) fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), ErrorKind> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.at != offset {
            self.sink.seek(SeekFrom::Start(offset))?;
        }
        self.sink.write_all(bytes)?;
        self.at = offset + bytes.len() as u64;
        Ok(())
    }

    /// Writes the index, the columns and the footer. A file on disk appears now, complete.
    pub fn finish(mut self) -> Result<Written<S::Output>, Error> {
        let written = self.check_complete().and_then(|()| footer::write(&mut self));
        let bytes = written.map_err(|kind| self.error(kind))?;
        let chunks = self.row_count();
        match self.sink.finish() {
            Ok(output) => Ok(Written { output, chunks, bytes }),
            Err(error) => Err(Error::new(self.name, error.into())),
        }
    }

    fn check_complete(&self) -> Result<(), ErrorKind> {
        let mut unwritten = (0u64..).zip(&self.rows.codecs).filter(|(_, codec)| **codec == UNWRITTEN);
        let Some((first, _)) = unwritten.next() else { return Ok(()) };
        let missing = 1 + unwritten.count() as u64;
        let dataset = self.bases.partition_point(|&base| base <= first) - 1;
        let planned = &self.layout.datasets[dataset];
        let coords = planned.grid.coords(first - self.bases[dataset])[..planned.grid.rank()].to_vec();
        Err(LayoutError::Unwritten { dataset: planned.name.clone(), coords, missing }.into())
    }

    pub(crate) fn superblock(&self) -> Superblock {
        let flags = if self.has_footer() { FLAG_FOOTER } else { 0 };
        if self.layout.datasets.is_empty() {
            return Superblock { flags, ..Superblock::empty() };
        }
        let rows = self.row_count();
        Superblock {
            // The layout was checked: there are fewer than 2³² datasets and the index length does not overflow.
            dataset_count: u32::try_from(self.layout.datasets.len()).unwrap_or(u32::MAX),
            flags,
            chunk_index_offset: self.index_offset,
            chunk_index_length: index_len(rows).unwrap_or(u64::MAX),
            ..Superblock::empty()
        }
    }

    pub(crate) fn has_footer(&self) -> bool {
        self.options.has_block()
            || self.zones.is_some()
            || !self.layout.history.is_empty()
            || !self.layout.metadata.is_empty()
            || !self.layout.unknown.is_empty()
    }

    /// The number of rows of the index.
    pub(crate) fn row_count(&self) -> u64 {
        (self.rows.codecs.len() - self.missing) as u64
    }

    /// The row with a canonical number; `None` if it has no chunk.
    pub(crate) fn row_at(&self, number: usize) -> Option<Row> {
        let codec = *self.rows.codecs.get(number)?;
        if codec == MISSING {
            return None;
        }
        let dataset = self.bases.partition_point(|&base| base <= number as u64) - 1;
        let grid = &self.layout.datasets[dataset].grid;
        let chunk_index: [u64; MAX_RANK] = grid.coords(number as u64 - self.bases[dataset]);
        Some(Row {
            dataset_id: dataset as u64,
            chunk_index,
            payload_offset: self.rows.offsets[number],
            raw_byte_len: grid.chunk_bytes_at(&chunk_index[..grid.rank()]),
            stored_byte_len: self.rows.stored[number],
            codec: codec.into(),
        })
    }

    pub(crate) fn error(&self, fault: ErrorKind) -> Error {
        Error::new(self.name.clone(), fault)
    }

    /// Whether the row with this canonical number has no chunk.
    pub(crate) fn is_missing(&self, row: u64) -> bool {
        usize::try_from(row).is_ok_and(|row| self.rows.codecs.get(row) == Some(&MISSING))
    }

    /// The first canonical row of a dataset.
    pub(crate) fn base(&self, dataset: DatasetId) -> u64 {
        self.bases[dataset.0]
    }
}

/// Runs one closure on the thread pool and the other on this thread.
pub(crate) fn in_place_join<A: Send, B>(
    pooled: impl FnOnce() -> A + Send,
    here: impl FnOnce() -> B,
) -> (A, B) {
    let mut made = None;
    let written = rayon::in_place_scope(|scope| {
        scope.spawn(|_| made = Some(pooled()));
        here()
    });
    // A panic in the pool is propagated by the scope, so the value is present.
    (made.unwrap_or_else(|| unreachable!("the scope ends after its tasks")), written)
}

/// Copies a chunk out of a dense array.
pub(crate) fn cut_chunk(
    grid: &Grid,
    coords: &[u64],
    (from, strides): (&[u8], &[usize]),
    out: &mut [u8],
) -> Result<(), ErrorKind> {
    let shape = grid.chunk_shape_at(coords);
    let to_strides = dense_strides(&shape, grid.element().size());
    let usize_of = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let counts: Vec<usize> = shape.iter().map(|&extent| usize_of(extent)).collect();
    let start =
        (0..grid.rank()).map(|axis| usize_of(grid.window(axis, coords[axis]).0) * strides[axis]).sum();
    Ok(BoxCopy::new(grid.element().size(), &counts, (start, strides), (0, &to_strides)).run(from, out)?)
}

fn aligned(offset: u64, options: WriterOptions) -> u64 {
    match options.profile {
        // The layout was checked: sizes do not overflow.
        Profile::Native => align8(offset).unwrap_or(offset),
        Profile::Interop => offset,
    }
}

pub(crate) fn room(bytes: u64) -> Result<Vec<u8>, ErrorKind> {
    let len = usize::try_from(bytes).map_err(|_| tercet_core::tensor::OutOfMemory { bytes: usize::MAX })?;
    let mut room = Vec::new();
    room.try_reserve_exact(len).map_err(|_| tercet_core::tensor::OutOfMemory { bytes: len })?;
    room.resize(len, 0);
    Ok(room)
}
