//! Zone maps and secondary indexes, by which a planner skips chunks (`docs/spec/tet.md`, footer version 2).
//!
//! Each chunk is scanned once, while it is encoded; its entry does not grow with its size. The JSON is
//! serialized while it is written, because that of a large file does not fit in memory.

mod chunk;
pub(crate) mod read;
mod text;
mod values;

use std::io::Write;

use tercet_core::tensor::OutOfMemory;

use crate::grid::Grid;
use crate::layout::Planned;
use crate::metadata::Metadata;

pub(crate) use chunk::{ChunkZone, Scan};
use chunk::{Zone, fill_bits};
use values::Values;

/// The zone maps of all datasets.
#[derive(Debug)]
pub(crate) struct ZoneMaps {
    datasets: Vec<DatasetZones>,
}

/// The zone maps of one dataset.
#[derive(Debug)]
struct DatasetZones {
    name: String,
    grid: Grid,
    /// The bits of the fill value.
    fill: Option<u64>,
    /// One entry per chunk, in grid order.
    zones: Vec<Zone>,
    /// The distinct values; `None` if there are too many.
    values: Option<Values>,
}

impl ZoneMaps {
    /// Empty entries for every chunk of the datasets.
    pub(crate) fn new(datasets: &[Planned], metadata: &Metadata) -> Result<Self, OutOfMemory> {
        let zones = |planned: &Planned| {
            let grid = planned.grid.clone();
            let info = metadata.datasets.get(&planned.name);
            let fill = info.and_then(|info| fill_bits(grid.element(), &info.attrs));
            let chunks = usize::try_from(grid.chunk_count()).unwrap_or(usize::MAX);
            let zones = room(chunks)?;
            let values = Some(Values::new(chunks)?);
            Ok(DatasetZones { name: planned.name.clone(), grid, fill, zones, values })
        };
        Ok(Self { datasets: datasets.iter().map(zones).collect::<Result<_, _>>()? })
    }

    /// The scanner for the chunks of a dataset.
    pub(crate) fn scan(&self, dataset: usize) -> Scan {
        let zones = &self.datasets[dataset];
        Scan { dtype: zones.grid.element(), fill: zones.fill, values: zones.values.is_some() }
    }

    /// Records the entry of a chunk.
    pub(crate) fn note(&mut self, dataset: usize, linear: u64, chunk: &ChunkZone) {
        let zones = &mut self.datasets[dataset];
        let number = usize::try_from(linear).unwrap_or(usize::MAX);
        if let Some(slot) = zones.zones.get_mut(number) {
            *slot = chunk.zone;
        }
        if let Some(values) = &mut zones.values
            && !chunk.values.as_ref().is_some_and(|found| values.note(number, found))
        {
            zones.values = None;
        }
    }

    /// Writes the zone maps.
    pub(crate) fn write_zones(&self, out: impl Write) -> serde_json::Result<()> {
        text::write_zones(&self.datasets, out)
    }

    /// Writes the secondary indexes; nothing without any.
    pub(crate) fn write_indexes(&self, metadata: &Metadata, out: impl Write) -> serde_json::Result<()> {
        text::write_indexes(&self.datasets, metadata, out)
    }
}

/// Default values for all chunks.
fn room<T: Clone + Default>(chunks: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut room = Vec::new();
    let bytes = chunks.saturating_mul(size_of::<T>());
    room.try_reserve_exact(chunks).map_err(|_| OutOfMemory { bytes })?;
    room.resize(chunks, T::default());
    Ok(room)
}

#[cfg(test)]
mod tests;
