//! [`Rewrite`]: appends and drops datasets.
//!
//! The index of a file is stored before its payloads, so adding or removing a dataset moves everything. A change is
//! therefore a new file that replaces the old one atomically; a crash leaves the old one. Chunks are copied as
//! they are stored and checked: damage is reported, never copied under a new checksum.

use std::path::Path;
use std::sync::Arc;

use tercet_core::publish::{AtomicFile, Disk, FileLock, RealDisk};
use tercet_core::{ByteSource as _, ElementType, Progress, Sink};

use crate::error::{DatasetError, Error, ErrorKind};
use crate::file::{Dataset, File, Mode, ReadOptions};
use crate::grid::Grid;
use crate::integrity::IntegrityStatus;
use crate::layout::{Layout, WriterOptions};
use crate::metadata::HistoryRow;
use crate::stats::Stats;
use crate::wire::ids::Codec;
use crate::writer::{Encoded, Encoder, Writer};

/// A change of a file. The file is locked until the writer is finished or dropped.
#[derive(Debug)]
pub struct Rewrite {
    lock: FileLock,
    old: File,
    /// For each kept dataset, its position in the old file.
    kept: Vec<usize>,
    layout: Layout,
}

impl Rewrite {
    /// Locks and opens a file. A file that another process is changing is an error, and so is a damaged catalog.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_on(Arc::new(RealDisk), path.as_ref())
    }

    /// Locks and opens a file on another [`Disk`], for tests.
    pub fn open_on(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, Error> {
        Self::open_mode(disk, path, Mode::Read)
    }

    /// Locks a file and opens it for reading or for recovery.
    pub(crate) fn open_mode(disk: Arc<dyn Disk>, path: &Path, mode: Mode) -> Result<Self, Error> {
        let lock = FileLock::acquire_on(disk, path)
            .map_err(|error| Error::new(path.to_string_lossy().into(), error.into()))?;
        let old = File::open_mode(&path.into(), ReadOptions::new(), mode)?;
        if let IntegrityStatus::Partial { problems } = old.integrity_status() {
            let problems = problems.join("; ").into();
            return Err(old.error(ErrorKind::PartialIntegrityBlock { problems }));
        }
        let mut layout = Layout::new();
        for dataset in old.datasets() {
            // An invalid dataset can be dropped; `start` fails if it is kept.
            let unusable =
                || Grid::new(ElementType::U8, &[1], &[1]).map_err(|reason| old.error(bad(&dataset, reason)));
            let grid = dataset.grid().cloned().or_else(|_| unusable())?;
            layout.push(dataset.name(), grid);
        }
        describe(&mut layout, &old);
        let kept = (0..old.datasets().len()).collect();
        Ok(Self { lock, old, kept, layout })
    }

    /// The current file.
    pub fn file(&self) -> &File {
        &self.old
    }

    /// Drops a dataset. Call this before datasets are added.
    pub fn drop_dataset(&mut self, name: &str) -> Result<(), Error> {
        let found = self.kept.iter().position(|&id| self.old.catalog.records[id].name == name);
        let Some(position) = found else {
            return Err(self.old.dataset(name).err().unwrap_or_else(|| {
                // It is dropped already.
                self.old.error(ErrorKind::NoSuchDataset { name: name.into(), available: "".into() })
            }));
        };
        self.kept.remove(position);
        self.layout.datasets.remove(position);
        let twin = self.layout.datasets.iter().any(|planned| planned.name == name);
        if !twin {
            self.layout.metadata.datasets.remove(name);
        }
        Ok(())
    }

    /// The layout of the new file, to add datasets.
    pub fn layout(&mut self) -> &mut Layout {
        &mut self.layout
    }

    /// Starts the new file and copies the kept chunks, checked. The caller then writes the added datasets and
    /// finishes the writer. The new file has no zone maps.
    pub fn start(
        self,
        history: HistoryRow,
        options: WriterOptions,
        progress: &dyn Progress,
    ) -> Result<Writer<AtomicFile>, Error> {
        let Self { lock, old, kept, mut layout } = self;
        for &id in &kept {
            Dataset { file: &old, id }.grid()?;
        }
        // Zone maps need the values of the kept chunks, which are copied without decoding.
        let options = options.with_zone_maps(false);
        if options.record_history {
            layout.history.push(history);
        }
        let name = old.name().to_owned();
        let prepared = layout.check(options).map_err(ErrorKind::from).and_then(|()| {
            for &id in &kept {
                check_rows(&Dataset { file: &old, id })?;
            }
            let missing = missing(&old, &kept)?;
            mark_compressed(&old, &kept, &mut layout);
            let atomic_file = lock.replace()?;
            Writer::with_missing(layout, &name, atomic_file, options, &missing)
        });
        let mut writer = prepared.map_err(|fault| old.error(fault))?;
        copy_chunks(&old, &kept, &mut writer, |_, _, _| None, progress)?;
        Ok(writer)
    }
}

/// Copies everything but the datasets into the layout of a new file: budget, history, metadata, labels.
pub(crate) fn describe(layout: &mut Layout, old: &File) {
    layout.budget = old.memory_budget();
    layout.history = old.history().to_vec();
    layout.metadata = old.metadata().cloned().unwrap_or_default();
    layout.unknown =
        old.catalog.footer.as_ref().map(|footer| footer.json.unknown.clone()).unwrap_or_default();
    layout.put_long_labels(&old.long_labels);
}

/// Fails for a dataset with far more tiles than the index has rows: visiting each tile would take too long. Damaged
/// extents make such grids.
pub(crate) fn check_rows(dataset: &Dataset<'_>) -> Result<(), ErrorKind> {
    let tiles = dataset.checked_grid()?.tiles();
    let rows = dataset.file.rows.count();
    if tiles > rows.saturating_mul(64).saturating_add(1 << 16) {
        let reason = DatasetError::FewRows { tiles, rows };
        return Err(bad(dataset, reason));
    }
    Ok(())
}

fn bad(dataset: &Dataset<'_>, reason: DatasetError) -> ErrorKind {
    ErrorKind::BadDataset { dataset: dataset.name().into(), reason }
}

/// The missing chunks of the old file, as row numbers of the new one.
fn missing(old: &File, kept: &[usize]) -> Result<Vec<u64>, ErrorKind> {
    let tiles = kept.iter().map(|&id| old.grids[id].as_ref().map_or(0, Grid::tiles));
    // A complete file has no missing chunks.
    if old.rows.is_complete() && kept.len() == old.grids.len() {
        return Ok(Vec::new());
    }
    let mut missing = Vec::new();
    let mut base = 0;
    for (&id, tiles) in kept.iter().zip(tiles) {
        let dataset = Dataset { file: old, id };
        let grid = dataset.checked_grid()?;
        for linear in 0..tiles {
            // Every other error is reported when the chunk is copied.
            if let Err(ErrorKind::MissingChunk { .. }) =
                dataset.find_chunk(&grid.coords(linear)[..grid.rank()])
            {
                missing.push(base + linear);
            }
        }
        base += tiles;
    }
    Ok(missing)
}

/// Marks kept datasets with compressed chunks, so that the writer does not compute offsets of raw chunks.
fn mark_compressed(old: &File, kept: &[usize], layout: &mut Layout) {
    for (&id, planned) in kept.iter().zip(&mut layout.datasets) {
        let dataset = Dataset { file: old, id };
        let compressed = (0..planned.grid.tiles()).any(|linear| {
            let tile = planned.grid.coords(linear);
            dataset
                .find_chunk(&tile[..planned.grid.rank()])
                .is_ok_and(|chunk_ref| chunk_ref.codec == Codec::Zstd)
        });
        if compressed {
            planned.compression =
                crate::Compression::Zstd { level: tercet_codec::bytes::zstd::DEFAULT_LEVEL };
        }
    }
}

/// Copies the stored chunks of the kept datasets, as far as they are present in the new file. `substitute` returns the
/// decoded bytes of a chunk that is not copied, by its row number in the new file, element type and length.
pub(crate) fn copy_chunks<S: Sink>(
    old: &File,
    kept: &[usize],
    writer: &mut Writer<S>,
    substitute: impl Fn(u64, ElementType, u64) -> Option<Result<Vec<u8>, ErrorKind>> + Sync,
    progress: &dyn Progress,
) -> Result<(), Error> {
    for (position, &id) in kept.iter().enumerate() {
        let dataset = Dataset { file: old, id };
        let target = crate::DatasetId(position);
        let grid = dataset.grid()?;
        let base = writer.base(target);
        let present: Vec<u64> =
            (0..grid.tiles()).filter(|&linear| !writer.is_missing(base + linear)).collect();
        let make = |encoder: &Encoder, linear: u64| {
            let tile = grid.coords(linear);
            let tile = &tile[..grid.rank()];
            let row = base + linear;
            let encoded = match substitute(row, grid.element(), grid.tile_bytes(tile)) {
                None => copy_chunk(&dataset, tile, encoder, row),
                Some(raw) => raw.map(|raw| {
                    let stats = Stats::compute(grid.element(), &raw).encode();
                    encoder.keep(row, Codec::Raw, raw, stats, None)
                }),
            };
            encoded.map_err(|fault| old.error(fault))
        };
        writer.pump(target, present.into_iter(), make, progress)?;
    }
    Ok(())
}

/// A stored chunk with its statistics: from the old block if there is one, else computed from the decoded chunk.
fn copy_chunk(
    dataset: &Dataset<'_>,
    tile: &[u64],
    encoder: &Encoder,
    row: u64,
) -> Result<Encoded, ErrorKind> {
    let chunk_ref = dataset.find_chunk(tile)?;
    let stored = dataset.fetch(tile, &chunk_ref)?;
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
            dataset.decode(tile, &chunk_ref, &stored, &mut raw)?;
            Stats::compute(encoder.dtype, &raw).encode()
        }
        None => [0; 48],
    };
    let stored = if file.source.is_zero_copy() { stored.to_vec() } else { stored.into() };
    Ok(encoder.keep(row, chunk_ref.codec, stored, stats, crc))
}
