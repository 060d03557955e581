//! [`Layout`]: datasets, metadata and history of a file, fixed before any byte is written.

use std::collections::BTreeMap;

use tercet_codec::bytes::zstd;
use tercet_core::DType;

use crate::attribute::{self, AttrValue};
use crate::cf::CfEncoding;
use crate::grid::Grid;
use crate::metadata::{Coord, DatasetInfo, HistoryRow, Metadata};
use crate::metadata_limits::{self, COORD_LABELS, INLINE_BYTES, LimitViolation, SPILL_BYTES};
use crate::rounding::{self, Rounder, Rounding, RoundingError};
use crate::stored::Origin;
use crate::wire::block::LongLabels;
use crate::wire::ids::MAX_RANK;
use crate::wire::index::{MemoryBudget, index_len};

mod append;
mod edit;
mod edit_error;
mod error;
mod history;
mod options;
mod repack;

pub use append::{Append, AppendError, Appended};
pub use edit::CoordinateChanges;
pub use edit_error::EditError;
pub use error::LayoutError;
pub use options::{Compression, CompressionChoice, Profile, WriterOptions};
pub use repack::Repack;

/// The length limit of dataset names, in bytes: that of query documents.
const NAME_BYTES: usize = 1024;

/// The datasets, metadata and history of a new file.
///
/// ```
/// use tercet_core::{DType, TensorView};
/// use tercet_tet::{File, Layout, Writer, WriterOptions};
///
/// let mut layout = Layout::new();
/// let grid = layout.dataset("grid", DType::F32, [4, 6], [2, 6])?;
/// layout.dims(grid, ["lat", "lon"])?;
/// layout.attr(grid, "units", "K")?;
///
/// let values: Vec<f32> = (0..24).map(|i| i as f32).collect();
/// let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), layout, WriterOptions::new())?;
/// writer.array(grid, TensorView::from_slice(&[4, 6], &values)?)?;
/// let bytes = writer.finish()?.output;
///
/// let file = File::from_bytes("in memory", bytes)?;
/// assert_eq!(file.dataset("grid")?.read_all()?.as_slice::<f32>(), Some(&values[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Layout {
    pub(crate) datasets: Vec<Planned>,
    pub(crate) metadata: Metadata,
    pub(crate) history: Vec<HistoryRow>,
    pub(crate) budget: MemoryBudget,
    /// Unknown members of the footer of an older file.
    pub(crate) unknown: serde_json::Map<String, serde_json::Value>,
}

/// The ID of a dataset in a [`Layout`] and in the [`Writer`](crate::Writer) made from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DatasetId(pub(crate) usize);

#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) name: String,
    pub(crate) grid: Grid,
    pub(crate) compression: Compression,
    pub(crate) rounding: Option<Rounding>,
    /// The stored dataset with its chunks; `None` for a new dataset.
    pub(crate) origin: Option<Origin>,
}

impl Layout {
    /// A layout without datasets.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a dataset. `chunk_shape` need not divide `shape`.
    pub fn dataset(
        &mut self,
        name: &str,
        dtype: impl Into<DType>,
        shape: impl AsRef<[u64]>,
        chunk_shape: impl AsRef<[u64]>,
    ) -> Result<DatasetId, LayoutError> {
        let (shape, chunk_shape) = (shape.as_ref(), chunk_shape.as_ref());
        let of = || name.to_owned();
        self.check_new_name(name)?;
        if !(1..=MAX_RANK).contains(&shape.len()) {
            return Err(LayoutError::Rank { dataset: of(), rank: shape.len() });
        }
        if chunk_shape.len() != shape.len() {
            return Err(LayoutError::ChunkRank {
                dataset: of(),
                rank: shape.len(),
                found: chunk_shape.len(),
            });
        }
        let dtype = dtype.into();
        let Some(dtype) = dtype.element() else {
            return Err(LayoutError::UnsupportedType { dataset: of(), dtype });
        };
        let grid = Grid::new(dtype, shape, chunk_shape)
            .map_err(|reason| LayoutError::Dataset { dataset: of(), reason })?;
        Ok(self.push(name, grid))
    }

    /// Adds a dataset of an older file; its name is not checked.
    pub(crate) fn push(&mut self, name: &str, grid: Grid) -> DatasetId {
        let name = name.to_owned();
        self.datasets.push(Planned {
            name,
            grid,
            compression: Compression::None,
            rounding: None,
            origin: None,
        });
        DatasetId(self.datasets.len() - 1)
    }

    /// Sets the compression of a dataset.
    pub fn compress(&mut self, dataset: DatasetId, compression: Compression) -> Result<(), LayoutError> {
        if let Compression::Zstd { level } = compression {
            if !zstd::LEVELS.contains(&level) {
                return Err(LayoutError::ZstdLevel { level });
            }
            if !zstd::is_built_in() {
                return Err(LayoutError::NoZstd);
            }
        }
        self.datasets[dataset.0].compression = compression;
        Ok(())
    }

    /// Rounds the values of a float dataset when they are written, and records it in the attributes
    /// `quantization_algorithm` and `quantization_nsb` or `quantization_max_error`.
    ///
    /// Call it after the attributes of missing values are set: they decide which values are kept.
    pub fn round(&mut self, dataset: DatasetId, rounding: Rounding) -> Result<(), LayoutError> {
        self.rounder_for(dataset, rounding)?;
        self.datasets[dataset.0].rounding = Some(rounding);
        self.set_attr(dataset, rounding::ALGORITHM, &rounding::BITROUND.into())?;
        let (key, other, value) = match rounding {
            Rounding::KeepBits(bits) => {
                (rounding::KEPT_BITS, rounding::MAX_ERROR, AttrValue::from(i64::from(bits)))
            }
            Rounding::MaxError(error) => (rounding::MAX_ERROR, rounding::KEPT_BITS, AttrValue::from(error)),
        };
        self.info(dataset).attrs.remove(other);
        self.set_attr(dataset, key, &value)
    }

    /// The rounding of each dataset.
    pub(crate) fn rounders(&self) -> Result<Vec<Option<Rounder>>, LayoutError> {
        let rounder = |(position, planned): (usize, &Planned)| {
            planned.rounding.map(|rounding| self.rounder_for(DatasetId(position), rounding)).transpose()
        };
        self.datasets.iter().enumerate().map(rounder).collect()
    }

    fn rounder_for(&self, dataset: DatasetId, rounding: Rounding) -> Result<Rounder, LayoutError> {
        let planned = &self.datasets[dataset.0];
        let attrs = self.dataset_info(dataset).map(|info| &info.attrs);
        let encoding = attrs.map_or_else(|| Ok(CfEncoding::default()), CfEncoding::from_attrs);
        let rounder = encoding
            .map_err(|detail| RoundingError::Attribute { detail })
            .and_then(|encoding| Rounder::new(rounding, planned.grid.element(), &encoding));
        let failed =
            |reason| LayoutError::Rounding { dataset: planned.name.clone(), reason: Box::new(reason) };
        rounder.map_err(failed)
    }

    /// Sets an attribute of a dataset to a text, without checks. [`set_attr`](Self::set_attr) sets typed values.
    pub fn attr(&mut self, dataset: DatasetId, key: &str, value: &str) -> Result<(), LayoutError> {
        let info = self.info(dataset);
        info.attrs.insert(key.to_owned(), value.to_owned());
        attribute::record(&mut info.unknown, key, None);
        self.check_metadata()
    }

    /// Sets the axis names of a dataset. Labels stay with their axes.
    pub fn dims<'n>(
        &mut self,
        dataset: DatasetId,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<(), LayoutError> {
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let rank = self.datasets[dataset.0].grid.rank();
        if names.len() != rank {
            let dataset = self.datasets[dataset.0].name.clone();
            return Err(LayoutError::DimNames { dataset, rank, found: names.len() });
        }
        self.set_dims(dataset, names)
    }

    /// Sets the labels of an axis, one per position. `axis` is a name or a number.
    ///
    /// More than 64 labels are stored in the integrity block: other readers allow no more elsewhere.
    pub fn labels(&mut self, dataset: DatasetId, axis: &str, labels: Vec<String>) -> Result<(), LayoutError> {
        let number = self.axis(dataset, axis)?;
        let planned = &self.datasets[dataset.0];
        let extent = planned.grid.shape()[number];
        if labels.len() as u64 != extent {
            let (dataset, axis) = (planned.name.clone(), axis.to_owned());
            return Err(LayoutError::LabelCount { dataset, axis, extent, found: labels.len() });
        }
        let axis_name = self.axis_name(dataset, number).map(str::to_owned);
        // A number can be the name of another axis.
        let is_other = self.axis(dataset, &number.to_string()).is_ok_and(|found| found != number);
        let coords = &mut self.info(dataset).coords;
        // The axis may have labels under its name or its number.
        for key in [axis_name, Some(number.to_string()).filter(|_| !is_other)].into_iter().flatten() {
            coords.remove(&key);
        }
        coords.insert(axis.to_owned(), Coord::new(labels));
        self.check_metadata()
    }

    /// Adds a history row.
    pub fn history(&mut self, row: HistoryRow) -> Result<(), LayoutError> {
        self.history.push(row);
        refuse(metadata_limits::check_history(&self.history))
    }

    /// Sets the program, its version and the creation time (Unix seconds).
    pub fn file_info(&mut self, tool: &str, library_version: &str, created_at: u64) {
        let file = &mut self.metadata.file;
        tool.clone_into(&mut file.tool);
        library_version.clone_into(&mut file.library_version);
        file.created_at = created_at.to_string();
    }

    /// Sets all metadata, for example that of another file.
    pub fn metadata(&mut self, metadata: Metadata) -> Result<(), LayoutError> {
        self.metadata = metadata;
        self.check_metadata()
    }

    /// Sets the memory budget for queries.
    pub fn memory_budget(&mut self, budget: MemoryBudget) -> Result<(), LayoutError> {
        if budget.percent_bps > MemoryBudget::MAX_PERCENT_BPS {
            return Err(LayoutError::BudgetPercent { bps: budget.percent_bps });
        }
        self.budget = budget;
        Ok(())
    }

    /// The number of chunks of all datasets.
    pub fn chunk_count(&self) -> u64 {
        self.datasets.iter().map(|planned| planned.grid.chunk_count()).sum()
    }

    /// The chunk grid of a dataset.
    pub fn grid(&self, dataset: DatasetId) -> &Grid {
        &self.datasets[dataset.0].grid
    }

    fn info(&mut self, dataset: DatasetId) -> &mut DatasetInfo {
        self.metadata.datasets.entry(self.datasets[dataset.0].name.clone()).or_default()
    }

    fn check_metadata(&self) -> Result<(), LayoutError> {
        refuse(metadata_limits::check_metadata(&self.metadata, false))
    }

    /// Checks all limits of the format.
    pub(crate) fn check(&self, options: WriterOptions) -> Result<(), LayoutError> {
        refuse(metadata_limits::check_history(&self.history))?;
        refuse(metadata_limits::check_metadata(&self.metadata, !options.has_block()))?;
        if u32::try_from(self.datasets.len()).is_err() {
            return Err(LayoutError::TooManyDatasets { found: self.datasets.len() });
        }
        let mut rows = Some(0u64);
        let mut bytes = Some(0u64);
        for planned in &self.datasets {
            rows = rows.and_then(|rows| rows.checked_add(planned.grid.chunk_count()));
            bytes = bytes.and_then(|bytes| bytes.checked_add(planned.grid.bytes()));
        }
        let index = rows.and_then(index_len);
        if index.zip(bytes).and_then(|(index, bytes)| index.checked_add(bytes)).is_none() {
            return Err(LayoutError::TooLarge);
        }
        self.check_footer_size(options)
    }

    fn check_footer_size(&self, options: WriterOptions) -> Result<(), LayoutError> {
        let history = json_len(&self.history) + json_len(&self.unknown) + 256;
        if history > INLINE_BYTES {
            return Err(LayoutError::HistorySize { found: history, allowed: INLINE_BYTES });
        }
        // At most four columns in base64 and their names.
        let columns =
            usize::try_from(options.inline_column_bytes).unwrap_or(usize::MAX / 16) * 4 * 4 / 3 + 512;
        let block = if options.has_block() { columns } else { 0 };
        let metadata = json_len(&self.metadata) + block;
        if metadata > SPILL_BYTES {
            return Err(LayoutError::MetadataSize { found: metadata, allowed: SPILL_BYTES });
        }
        Ok(())
    }

    /// Moves labels of an older integrity block into the metadata.
    #[cfg(any(unix, windows))]
    pub(crate) fn put_long_labels(&mut self, long: &LongLabels) {
        for (name, axes) in long {
            let coords = &mut self.metadata.datasets.entry(name.clone()).or_default().coords;
            for (axis, labels) in axes {
                coords.entry(axis.clone()).or_insert_with(|| Coord::new(labels.clone()));
            }
        }
    }

    /// Takes axes with more than 64 labels out of the metadata.
    pub(crate) fn take_long_labels(&mut self) -> LongLabels {
        let mut long = LongLabels::new();
        for (name, info) in &mut self.metadata.datasets {
            let split = |axis: &String| info.coords[axis].labels.len() > COORD_LABELS;
            let axes: Vec<String> = info.coords.keys().filter(|axis| split(axis)).cloned().collect();
            let mut taken = BTreeMap::new();
            for axis in axes {
                if let Some(coord) = info.coords.remove(&axis) {
                    taken.insert(axis, coord.labels);
                }
            }
            if !taken.is_empty() {
                long.insert(name.clone(), taken);
            }
        }
        long
    }
}

/// The length of a value as JSON.
fn json_len(value: &impl serde::Serialize) -> usize {
    // These types have string keys and finite numbers: serialization cannot fail.
    serde_json::to_vec(value).map_or(usize::MAX / 4, |text| text.len())
}

fn refuse(violations: Vec<LimitViolation>) -> Result<(), LayoutError> {
    match violations.into_iter().next() {
        Some(violation) => Err(LayoutError::Metadata(Box::new(violation))),
        None => Ok(()),
    }
}
