//! The good chunks of a damaged file, in a new one.

use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use serde::Serialize;
use tercet_core::publish::{AtomicFile, Disk, RealDisk};
use tercet_core::{Class, Diagnose as _, ElementType, Progress, Scalar as _, with_element};

use crate::error::{Error, ErrorKind};
use crate::file::{Dataset, File, ReadOptions};
use crate::grid::Grid;
use crate::layout::{Compression, DatasetId, Layout, WriterOptions};
use crate::metadata::HistoryRow;
use crate::rewrite::{check_rows, copy_chunk};
use crate::wire::ids::Codec;
use crate::writer::{Encoder, Writer, room};

/// How to treat chunks that cannot be saved.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SalvageOptions {
    /// The value their elements get. Without it they are left out: reading them from the new file is an error.
    pub fill: Option<f64>,
}

impl SalvageOptions {
    /// Sets the value for elements that cannot be saved.
    pub fn with_fill(mut self, fill: f64) -> Self {
        self.fill = Some(fill);
        self
    }
}

/// What was saved and what was not.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SalvageReport {
    /// The damaged file.
    pub path: String,
    /// The new file.
    pub output: String,
    /// Chunks saved.
    pub kept: u64,
    /// Chunks lost.
    #[serde(rename = "holes")]
    pub missing: Vec<MissingChunk>,
    /// Datasets lost as a whole.
    pub lost_datasets: Vec<String>,
    /// Other things lost: the footer, the integrity_status of the old file.
    pub notes: Vec<String>,
    /// What the elements of lost chunks are now; absent if those chunks are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill: Option<f64>,
}

/// A chunk that could not be saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingChunk {
    /// Its dataset.
    pub dataset: String,
    /// Its grid coordinates.
    pub chunk: Vec<u64>,
    /// Reason.
    pub reason: String,
}

/// Writes the good chunks of a damaged file to a new file `out`.
pub fn salvage(
    path: &Path,
    out: &Path,
    options: SalvageOptions,
    progress: &dyn Progress,
) -> Result<SalvageReport, Error> {
    salvage_on(Arc::new(RealDisk), path, out, options, progress)
}

/// Salvages through a file layer of the caller's.
pub fn salvage_on(
    disk: Arc<dyn Disk>,
    path: &Path,
    out: &Path,
    options: SalvageOptions,
    progress: &dyn Progress,
) -> Result<SalvageReport, Error> {
    // What is lost now may be had back by better means later.
    if let (Ok(from), Ok(to)) = (path.canonicalize(), out.canonicalize())
        && from == to
    {
        return Err(Error::new(out.to_string_lossy().into(), ErrorKind::OutputIsInput));
    }
    let mut notes = Vec::new();
    let file = open_damaged(path, &mut notes)?;
    let mut report = SalvageReport {
        path: path.to_string_lossy().into(),
        output: out.to_string_lossy().into(),
        kept: 0,
        missing: Vec::new(),
        lost_datasets: Vec::new(),
        notes,
        fill: options.fill,
    };
    let (mut layout, kept) = plan_layout(&file, &mut report);
    let lost = find_missing(&file, &kept, &mut report, progress)?;
    layout.history.push(
        HistoryRow::now("salvage", "tet repair")
            .with_param("kept_chunks", report.kept.to_string())
            .with_param("lost_chunks", report.missing.len().to_string()),
    );
    let name = out.to_string_lossy().into_owned();
    let start = || -> Result<Writer<AtomicFile>, ErrorKind> {
        layout.check(WriterOptions::new())?;
        let atomic_file = AtomicFile::create_on(disk, out)?;
        let missing = if options.fill.is_some() { &[][..] } else { &lost };
        Writer::new(layout, &name, atomic_file, WriterOptions::new(), missing)
    };
    let mut writer = start().map_err(|fault| Error::new(name.as_str().into(), fault))?;
    write_chunks(&file, &kept, &lost, options, &mut writer, progress)?;
    writer.seal()?;
    Ok(report)
}

/// Opens a file as well as it can be: with all checks, with those of its chunks, without its footer.
fn open_damaged(path: &Path, notes: &mut Vec<String>) -> Result<File, Error> {
    let Err(error) = ReadOptions::new().open(path) else {
        // A sound catalogue may stand before a damaged index, whose rows have to be looked at one by one.
        return ReadOptions::recovery().open(path);
    };
    if error.class() == Class::Corrupt {
        notes.push(format!("damaged beyond its chunks: {}", one_line(error.kind())));
        return ReadOptions::recovery().open(path);
    }
    if crate::verify::is_about_footer(error.kind()) {
        notes.push(format!("footer lost: {}", one_line(error.kind())));
        return File::open_headless(path);
    }
    Err(error)
}

fn one_line(fault: &ErrorKind) -> String {
    fault.to_string().replace("\n ", ":")
}

/// The layout of the new file and, for each of its datasets, the position in the old one.
fn plan_layout(file: &File, report: &mut SalvageReport) -> (Layout, Vec<usize>) {
    let mut layout = Layout::new();
    let mut kept = Vec::new();
    for dataset in file.datasets() {
        match check_rows(&dataset).and_then(|()| dataset.checked_grid()) {
            Ok(grid) => {
                let id = layout.push(dataset.name(), grid.clone());
                // Chunks are copied as they are stored, raw or not: none has a place from the start.
                layout.datasets[id.0].compression =
                    Compression::Zstd { level: tercet_codec::bytes::zstd::DEFAULT_LEVEL };
                kept.push(dataset.id());
            }
            Err(fault) => report.lost_datasets.push(fault.to_string()),
        }
    }
    layout.budget = file.memory_budget();
    layout.history = file.history().to_vec();
    layout.metadata = file.metadata().cloned().unwrap_or_default();
    if let Some(block) = file.catalog.block() {
        layout.put_long_labels(&block.labels);
    }
    (layout, kept)
}

/// Tries every chunk; gives the rows of the new file that cannot be had. The fill value must suit the datasets with
/// missing, and no others.
fn find_missing(
    file: &File,
    kept: &[usize],
    report: &mut SalvageReport,
    progress: &dyn Progress,
) -> Result<Vec<u64>, Error> {
    let mut lost = Vec::new();
    let mut base = 0;
    for &id in kept {
        let dataset = Dataset { file, id };
        let grid = dataset.grid()?;
        let tiles: Vec<u64> = (0..grid.tiles()).collect();
        for batch in tiles.chunks(256) {
            progress.check().map_err(|cancelled| file.error(cancelled.into()))?;
            let bad: Vec<(u64, String)> =
                batch.par_iter().filter_map(|&linear| try_chunk(&dataset, grid, linear)).collect();
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
        base += grid.tiles();
    }
    Ok(lost)
}

fn try_chunk(dataset: &Dataset<'_>, grid: &Grid, linear: u64) -> Option<(u64, String)> {
    let tile = grid.coords(linear);
    let chunk = dataset.chunk(&tile[..grid.rank()]);
    chunk.err().map(|error| (linear, one_line(error.kind())))
}

fn write_chunks(
    file: &File,
    kept: &[usize],
    lost: &[u64],
    options: SalvageOptions,
    writer: &mut Writer<AtomicFile>,
    progress: &dyn Progress,
) -> Result<(), Error> {
    for (position, &id) in kept.iter().enumerate() {
        let dataset = Dataset { file, id };
        let grid = dataset.grid()?;
        let base = writer.base(DatasetId(position));
        let is_lost = |linear: u64| lost.binary_search(&(base + linear)).is_ok();
        let wanted = (0..grid.tiles()).filter(|&linear| options.fill.is_some() || !is_lost(linear));
        let make = |encoder: &Encoder, linear: u64| {
            let tile = grid.coords(linear);
            let tile = &tile[..grid.rank()];
            let made = if let (true, Some(fill)) = (is_lost(linear), options.fill) {
                room(grid.tile_bytes(tile)).map(|mut raw| {
                    fill_with(grid.element(), fill, &mut raw);
                    let stats = crate::Stats::compute(grid.element(), &raw).encode();
                    encoder.keep(base + linear, Codec::Raw, raw, stats, None)
                })
            } else {
                copy_chunk(&dataset, tile, encoder, base + linear)
            };
            made.map_err(|fault| file.error(fault))
        };
        writer.pump(DatasetId(position), wanted, make, progress)?;
    }
    Ok(())
}

/// Whether a value can be an element of this type.
fn check_fill(dtype: ElementType, fill: f64) -> Result<(), ()> {
    let mut element = [0; 8];
    fill_with(dtype, fill, &mut element[..dtype.size()]);
    let stats = crate::Stats::compute(dtype, &element[..dtype.size()]);
    #[expect(clippy::cast_precision_loss, reason = "compared with a float that must be the same number")]
    let back = match stats.range {
        crate::Range::Signed { min, .. } => min as f64,
        crate::Range::Unsigned { min, .. } => min as f64,
        // A float type holds every float, rounded.
        crate::Range::Float { .. } => return Ok(()),
    };
    // Adding zero makes -0.0 equal to 0.
    if back.to_bits() == (fill + 0.0).to_bits() { Ok(()) } else { Err(()) }
}

/// Fills a tile with one value, converted to its element type.
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
        // The conversion of the library rounds twice, over an f32.
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
