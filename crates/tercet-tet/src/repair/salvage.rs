//! Salvage: copies the intact chunks of a damaged file into a new file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use serde::Serialize;
use tercet_codec::CodecError;
use tercet_core::publish::{AtomicFile, Disk, RealDisk};
use tercet_core::{
    ByteSource, Class, CommonError, Diagnostic as _, ElementType, Progress, Scalar as _, Sink, SourceError,
    with_element,
};

use crate::Region;
use crate::error::{ChunkError, Error, ErrorKind};
use crate::file::{Dataset, File, Mode, ReadOptions};
use crate::grid::Grid;
use crate::layout::{Compression, DatasetId, Layout, WriterOptions};
use crate::metadata::HistoryRow;
use crate::rewrite::describe;
use crate::stored::{check_rows, copy_chunks};
use crate::wire::ids::Codec;
use crate::writer::{Encoder, PRODUCER, Writer, room};

/// How to salvage a file.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SalvageOptions {
    /// The value of elements in missing chunks. Without it those chunks stay missing, and reading them is an error.
    pub fill: Option<f64>,
    /// Use a catalog whose checksum fails: names, types and shapes of datasets may be wrong.
    pub accept_catalog: bool,
    /// How the damaged file is read: limits, access, threads. Checksums are always compared.
    pub read: ReadOptions,
}

impl SalvageOptions {
    /// No fill value, default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of elements in missing chunks.
    pub fn with_fill(mut self, fill: f64) -> Self {
        self.fill = Some(fill);
        self
    }

    /// Sets whether a catalog is used whose checksum fails.
    pub fn with_accept_catalog(mut self, accept: bool) -> Self {
        self.accept_catalog = accept;
        self
    }

    /// Sets how the damaged file is read.
    pub fn with_read(mut self, read: ReadOptions) -> Self {
        self.read = read;
        self
    }
}

/// The result of a salvage.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SalvageReport<D> {
    /// The path or URL of the damaged file.
    #[serde(rename = "path")]
    pub location: String,
    /// The output of the sink: the path of the new file, or its bytes.
    #[serde(skip)]
    pub output: D,
    /// The number of chunks copied.
    pub kept: u64,
    /// Chunks that could not be copied.
    #[serde(rename = "holes")]
    pub missing: Vec<MissingChunk>,
    /// Datasets that cannot be copied, each with the reason.
    pub lost_datasets: Vec<String>,
    /// Other losses: the footer, the integrity block.
    pub notes: Vec<String>,
    /// The value of elements in missing chunks; `None` if those chunks stay missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill: Option<f64>,
}

impl<D> SalvageReport<D> {
    /// Whether everything in the file is in the new file: chunks, datasets, the footer and the integrity block.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.lost_datasets.is_empty() && self.notes.is_empty()
    }

    /// The report and the output of the sink, separately.
    pub fn into_parts(self) -> (SalvageReport<()>, D) {
        let Self { location, output, kept, missing, lost_datasets, notes, fill } = self;
        (SalvageReport { location, output: (), kept, missing, lost_datasets, notes, fill }, output)
    }
}

/// A chunk that could not be copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingChunk {
    /// The name of the dataset.
    pub dataset: String,
    /// The grid coordinates of the chunk.
    pub chunk: Vec<u64>,
    /// The error.
    pub reason: String,
}

/// Copies the intact chunks of a damaged file into a new file.
///
/// An error means that the copy is not complete: the output cannot be written, memory or a limit is too small.
pub fn salvage<S: Sink>(
    source: Arc<dyn ByteSource>,
    sink: S,
    options: SalvageOptions,
    progress: &dyn Progress,
) -> Result<SalvageReport<S::Output>, Error> {
    Salvage::open(source, options)?.write("output", || Ok(sink), progress)
}

/// Salvages the file at `path` into a new file at `out`.
///
/// An existing file is an error unless `overwrite` is set. The damaged file is never replaced.
pub fn salvage_file(
    path: &Path,
    out: &Path,
    overwrite: bool,
    options: SalvageOptions,
    progress: &dyn Progress,
) -> Result<SalvageReport<PathBuf>, Error> {
    salvage_file_on(Arc::new(RealDisk), path, out, overwrite, options, progress)
}

/// Salvages a file on another [`Disk`], for tests.
pub fn salvage_file_on(
    disk: Arc<dyn Disk>,
    path: &Path,
    out: &Path,
    overwrite: bool,
    options: SalvageOptions,
    progress: &dyn Progress,
) -> Result<SalvageReport<PathBuf>, Error> {
    // The damaged file is kept: what is lost now may be recovered later by other means.
    if let (Ok(from), Ok(to)) = (path.canonicalize(), out.canonicalize())
        && from == to
    {
        return Err(Error::new(out.to_string_lossy().into(), ErrorKind::OutputIsInput));
    }
    let source = options.read.access.open(path);
    let source = source.map_err(|error| Error::new(path.to_string_lossy().into(), error.into()))?;
    let create = || {
        let file =
            if overwrite { AtomicFile::create_on(disk, out) } else { AtomicFile::create_new_on(disk, out) };
        Ok(file?)
    };
    Salvage::open(source, options)?.write(&out.to_string_lossy(), create, progress)
}

/// A damaged file and what is known to be lost.
struct Salvage {
    file: File,
    options: SalvageOptions,
    report: SalvageReport<()>,
}

impl Salvage {
    fn open(source: Arc<dyn ByteSource>, options: SalvageOptions) -> Result<Self, Error> {
        let mut notes = Vec::new();
        let file = open_damaged(source, options, &mut notes)?;
        let report = SalvageReport {
            location: file.name().to_owned(),
            output: (),
            kept: 0,
            missing: Vec::new(),
            lost_datasets: Vec::new(),
            notes,
            fill: options.fill,
        };
        Ok(Self { file, options, report })
    }

    /// Reads every chunk, then creates the sink and copies the intact ones.
    fn write<S: Sink>(
        self,
        name: &str,
        sink: impl FnOnce() -> Result<S, ErrorKind>,
        progress: &dyn Progress,
    ) -> Result<SalvageReport<S::Output>, Error> {
        let Self { file, options, mut report } = self;
        let (mut layout, kept) = plan_layout(&file, &mut report);
        let lost = file.on_threads(|| find_missing(&file, &kept, &mut report, progress))?;
        layout.history.push(
            HistoryRow::now("salvage", PRODUCER)
                .with_param("kept_chunks", report.kept.to_string())
                .with_param("lost_chunks", report.missing.len().to_string()),
        );
        let start = || -> Result<Writer<S>, ErrorKind> {
            layout.check(WriterOptions::new())?;
            let missing = if options.fill.is_some() { &[][..] } else { &lost };
            Writer::with_missing(layout, name, sink()?, WriterOptions::new(), missing)
        };
        let mut writer = start().map_err(|kind| Error::new(name.into(), kind))?;
        for (position, &id) in kept.iter().enumerate() {
            let dataset = Dataset { file: &file, id };
            let grid = dataset.grid()?;
            let filled = |encoder: &Encoder, row: u64, coords: &[u64]| {
                let fill = options.fill.filter(|_| lost.binary_search(&row).is_ok())?;
                let raw = room(grid.chunk_bytes_at(coords)).map_err(|fault| file.error(fault));
                Some(raw.map(|mut raw| {
                    fill_with(grid.element(), fill, &mut raw);
                    let stats = crate::Stats::compute(grid.element(), &raw).encode();
                    encoder.keep(row, Codec::Raw, raw, stats, None)
                }))
            };
            copy_chunks(&dataset, DatasetId(position), &mut writer, filled, progress)?;
        }
        let SalvageReport { location, kept, missing, lost_datasets, notes, fill, .. } = report;
        let output = writer.finish()?.output;
        Ok(SalvageReport { location, output, kept, missing, lost_datasets, notes, fill })
    }
}

/// Opens a damaged file: without checksums of the catalog, and without its footer if that cannot be parsed.
fn open_damaged(
    source: Arc<dyn ByteSource>,
    salvage: SalvageOptions,
    notes: &mut Vec<String>,
) -> Result<File, Error> {
    let options = salvage.read.with_verify(true);
    let Err(error) = File::from_source(source.clone(), options) else {
        // The catalog is intact, but rows of the index may be damaged: each is checked on its own.
        return File::from_source_mode(source, options, Mode::Recovery);
    };
    if is_catalog_checksum(error.kind()) && !salvage.accept_catalog {
        // A new file would give the damaged names, types and shapes valid checksums.
        return Err(error);
    }
    if error.class() == Class::Corrupt {
        notes.push(format!("damaged beyond its chunks: {}", one_line(error.kind())));
        return File::from_source_mode(source, options, Mode::Recovery);
    }
    if crate::verify::is_about_footer(error.kind()) {
        notes.push(format!("footer lost: {}", one_line(error.kind())));
        return File::from_source_mode(source, options, Mode::WithoutFooter);
    }
    Err(error)
}

/// Whether the checksum of the catalog fails.
fn is_catalog_checksum(fault: &ErrorKind) -> bool {
    matches!(fault, ErrorKind::Common(CommonError::Checksum { region: Region::Catalog, .. }))
}

fn one_line(fault: &ErrorKind) -> String {
    fault.to_string().replace("\n ", ":")
}

/// The layout of the new file and, for each of its datasets, the position in the old one.
fn plan_layout(file: &File, report: &mut SalvageReport<()>) -> (Layout, Vec<usize>) {
    let mut layout = Layout::new();
    let mut kept = Vec::new();
    for dataset in file.datasets() {
        match check_rows(&dataset).and_then(|()| dataset.checked_grid()) {
            Ok(grid) => {
                let id = layout.push(dataset.name(), grid.clone());
                // Chunks are copied as they are stored, raw or not: offsets are not known from the start.
                layout.datasets[id.0].compression =
                    Compression::Zstd { level: tercet_codec::bytes::zstd::DEFAULT_LEVEL };
                kept.push(dataset.id());
            }
            Err(fault) => report.lost_datasets.push(fault.to_string()),
        }
    }
    describe(&mut layout, file);
    (layout, kept)
}

/// Reads every chunk; returns the rows of the new file that are missing. The fill value must be a value of the
/// datasets with missing chunks, and of no others.
fn find_missing(
    file: &File,
    kept: &[usize],
    report: &mut SalvageReport<()>,
    progress: &dyn Progress,
) -> Result<Vec<u64>, Error> {
    let mut lost = Vec::new();
    let mut base = 0;
    for &id in kept {
        let dataset = Dataset { file, id };
        let grid = dataset.grid()?;
        let chunks: Vec<u64> = (0..grid.chunk_count()).collect();
        for batch in chunks.chunks(256) {
            progress.check().map_err(|cancelled| file.error(cancelled.into()))?;
            let bad: Result<Vec<(u64, String)>, Error> = batch
                .par_iter()
                .filter_map(|&linear| try_chunk(&dataset, grid, linear).transpose())
                .collect();
            let bad = bad?;
            report.kept += (batch.len() - bad.len()) as u64;
            for (linear, reason) in bad {
                let chunk = grid.coords(linear)[..grid.rank()].to_vec();
                report.missing.push(MissingChunk { dataset: dataset.name().to_owned(), chunk, reason });
                lost.push(base + linear);
            }
        }
        if let (Some(fill), Some(_)) = (report.fill, lost.last().filter(|&&row| row >= base)) {
            check_fill(grid.element(), fill)
                .map_err(|()| file.error(ErrorKind::FillValue { dtype: grid.element(), fill }))?;
        }
        base += grid.chunk_count();
    }
    Ok(lost)
}

/// Reads a chunk; returns its number and the error if it is damaged.
fn try_chunk(dataset: &Dataset<'_>, grid: &Grid, linear: u64) -> Result<Option<(u64, String)>, Error> {
    let coords = grid.coords(linear);
    let coords = &coords[..grid.rank()];
    match dataset.chunk(coords) {
        Ok(_) => Ok(None),
        // The chunk may be intact: a copy without it would lose data.
        Err(error) if is_out_of_resources(&error, grid.chunk_bytes_at(coords), dataset) => Err(error),
        Err(error) => Ok(Some((linear, one_line(error.kind())))),
    }
}

/// Whether a chunk cannot be read for lack of memory, a limit or a connection, so that it may be intact. A stored length
/// far beyond the decoded length is damage.
fn is_out_of_resources(error: &Error, chunk_bytes: u64, dataset: &Dataset<'_>) -> bool {
    match error.kind() {
        ErrorKind::Common(CommonError::OutOfMemory(_) | CommonError::Source(SourceError::Remote { .. })) => {
            true
        }
        ErrorKind::Common(CommonError::Limit(_)) => chunk_bytes > dataset.file.options.limits.chunk_bytes,
        ErrorKind::Common(CommonError::Source(SourceError::TooLarge { span })) => {
            span.len() <= chunk_bytes.saturating_add(chunk_bytes / 128).saturating_add(1024)
        }
        ErrorKind::Chunk { reason: ChunkError::Codec(error), .. } => {
            matches!(**error, CodecError::OutOfMemory { .. })
        }
        _ => false,
    }
}

/// Checks that a value is representable in this type.
fn check_fill(dtype: ElementType, fill: f64) -> Result<(), ()> {
    let mut element = [0; 8];
    fill_with(dtype, fill, &mut element[..dtype.size()]);
    let stats = crate::Stats::compute(dtype, &element[..dtype.size()]);
    #[expect(clippy::cast_precision_loss, reason = "compared with a float that must be the same number")]
    let back = match stats.range {
        crate::Range::Signed { min, .. } => min as f64,
        crate::Range::Unsigned { min, .. } => min as f64,
        // A float is rounded to the element type.
        crate::Range::Float { .. } => return Ok(()),
    };
    // Adding zero makes -0.0 equal to 0.
    if back.to_bits() == (fill + 0.0).to_bits() { Ok(()) } else { Err(()) }
}

/// Fills a chunk with one value, converted to its element type.
fn fill_with(dtype: ElementType, fill: f64, raw: &mut [u8]) {
    with_element!(dtype, |T| {
        let element = <T as FromF64>::from_f64(fill).swap_le();
        for slot in raw.chunks_exact_mut(size_of::<T>()) {
            slot.copy_from_slice(bytemuck::bytes_of(&element));
        }
    });
}

trait FromF64 {
    fn from_f64(value: f64) -> Self;
}

macro_rules! from_f64 {
    ($($type:ty),*) => {$(
        impl FromF64 for $type {
            #[expect(clippy::allow_attributes, reason = "not every type loses digits")]
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked by `check_fill`")]
            fn from_f64(value: f64) -> Self {
                value as Self
            }
        }
    )*};
}

from_f64!(f32, f64, i16, i32, i64, u8, u16, u32, u64);

impl FromF64 for tercet_core::tensor::f16 {
    fn from_f64(value: f64) -> Self {
        // `f16::from_f64` rounds twice, through f32.
        crate::exec::to_half(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_precision_fill_is_rounded_once() {
        // A little more than the middle between 1 and the next half, which is 1 + 2⁻¹⁰; as an f32 it is the middle.
        let fill = 1.0 + f64::from(f32::EPSILON) * 4096.0 + f64::EPSILON;
        let mut element = [0; 2];
        fill_with(ElementType::F16, fill, &mut element);
        assert_eq!(u16::from_le_bytes(element), 0x3c01);
        fill_with(ElementType::F16, -fill, &mut element);
        assert_eq!(u16::from_le_bytes(element), 0xbc01);
        fill_with(ElementType::F16, f64::NAN, &mut element);
        assert!(tercet_core::tensor::f16::from_le_bytes(element).is_nan());
    }
}
