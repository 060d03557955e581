//! Zone maps and secondary indexes: what lets a planner skip tiles (`docs/spec/tet.md`, footer version 2).
//!
//! Each tile is looked at once, while it is encoded; what is kept of it does not grow with its size. The texts are
//! made while they are written, because those of a large file are larger than what should be held in memory.

pub(crate) mod read;
mod text;
mod tile;
mod values;

use std::io::Write;

use tercet_core::tensor::OutOfMemory;

use crate::grid::Grid;
use crate::layout::Planned;
use crate::metadata::Metadata;

pub(crate) use tile::{Scan, TileZone};
use tile::{Zone, fill_bits};
use values::Values;

/// What is known of the tiles of all datasets.
#[derive(Debug)]
pub(crate) struct ZoneMaps {
    datasets: Vec<DatasetZones>,
}

/// What is known of the tiles of one dataset.
#[derive(Debug)]
struct DatasetZones {
    name: String,
    grid: Grid,
    /// The bits of the fill value.
    fill: Option<u64>,
    /// In grid order.
    zones: Vec<Zone>,
    /// `None` once there are too many.
    values: Option<Values>,
}

impl ZoneMaps {
    /// Room for every tile of the datasets.
    pub(crate) fn new(datasets: &[Planned], metadata: &Metadata) -> Result<Self, OutOfMemory> {
        let zones = |planned: &Planned| {
            let grid = planned.grid.clone();
            let info = metadata.datasets.get(&planned.name);
            let fill = info.and_then(|info| fill_bits(grid.element(), &info.attrs));
            let tiles = usize::try_from(grid.tiles()).unwrap_or(usize::MAX);
            let zones = room(tiles)?;
            let values = Some(Values::new(tiles)?);
            Ok(DatasetZones { name: planned.name.clone(), grid, fill, zones, values })
        };
        Ok(Self { datasets: datasets.iter().map(zones).collect::<Result<_, _>>()? })
    }

    /// How to look at the tiles of a dataset.
    pub(crate) fn scan(&self, dataset: usize) -> Scan {
        let zones = &self.datasets[dataset];
        Scan { dtype: zones.grid.element(), fill: zones.fill, values: zones.values.is_some() }
    }

    /// Remembers what was seen of a tile.
    pub(crate) fn note(&mut self, dataset: usize, linear: u64, tile: &TileZone) {
        let zones = &mut self.datasets[dataset];
        let number = usize::try_from(linear).unwrap_or(usize::MAX);
        if let Some(slot) = zones.zones.get_mut(number) {
            *slot = tile.zone;
        }
        if let Some(values) = &mut zones.values
            && !tile.values.as_ref().is_some_and(|found| values.note(number, found))
        {
            zones.values = None;
        }
    }

    /// Writes the zone maps.
    pub(crate) fn write_zones(&self, out: impl Write) -> serde_json::Result<()> {
        text::write_zones(&self.datasets, out)
    }

    /// Writes the secondary indexes, if there are any.
    pub(crate) fn write_indexes(&self, metadata: &Metadata, out: impl Write) -> serde_json::Result<()> {
        text::write_indexes(&self.datasets, metadata, out)
    }
}

/// Values for so many tiles.
fn room<T: Clone + Default>(tiles: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut room = Vec::new();
    let bytes = tiles.saturating_mul(size_of::<T>());
    room.try_reserve_exact(tiles).map_err(|_| OutOfMemory { bytes })?;
    room.resize(tiles, T::default());
    Ok(room)
}

#[cfg(test)]
mod tests;
