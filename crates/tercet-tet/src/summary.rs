//! [`Summary`]: the contents of a file without values, as `info --json` prints it.

use std::collections::BTreeMap;

use serde::Serialize;
use tercet_core::ElementType;
use tercet_core::limits::check_limit;

use crate::error::{DatasetError, Error};
use crate::file::File;
use crate::integrity::IntegrityStatus;
use crate::metadata::{HistoryRow, Metadata};
use crate::wire::index::{MemoryBudget, Row};
use crate::wire::superblock::Superblock;

/// The contents of a file without values.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The fields of the first 32 bytes.
    pub superblock: Superblock,
    /// The datasets, in order.
    pub datasets: Vec<DatasetSummary>,
    /// The rows of the chunk index, in order.
    pub chunks: Vec<Row>,
    /// The memory budget for queries.
    pub file_execution: MemoryBudget,
    /// The history rows, oldest first.
    pub history: Vec<HistoryRow>,
    /// Provenance, attributes, axis names and labels.
    pub metadata: Option<Metadata>,
    /// Labels of axes with more than 64 of them: dataset, axis, labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub long_labels: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    /// The version of the footer; `None` without a footer.
    pub footer_version: Option<u32>,
    /// Whether bytes are checked against the integrity block.
    #[serde(rename = "protection")]
    pub integrity_status: IntegrityStatus,
}

/// One dataset of a [`Summary`].
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct DatasetSummary {
    /// The name of the dataset.
    pub name: String,
    /// The tag of the element type.
    pub dtype: u32,
    /// The element type; `None` for an unknown tag.
    pub dtype_name: Option<ElementType>,
    /// The number of axes.
    pub ndim: usize,
    /// The extent of each axis.
    pub shape: Vec<u64>,
    /// The extent of a chunk on each axis.
    pub chunk_shape: Vec<u64>,
    /// The number of chunks; `None` for an invalid dataset.
    pub chunks: Option<u64>,
    /// The bytes of the array; `None` for an invalid dataset.
    pub raw_bytes: Option<u64>,
    /// The error of an invalid dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl File {
    /// The contents of the file without values. Reads the whole chunk index.
    pub fn summary(&self) -> Result<Summary, Error> {
        let bytes = self.chunk_count().saturating_mul(size_of::<Row>() as u64);
        check_limit("the rows of the chunk index", bytes, self.options.limits.table_bytes)
            .map_err(|exceeded| self.error(exceeded.into()))?;
        let mut chunks = Vec::new();
        self.for_each_row(|_, row| chunks.push(*row))?;
        Ok(Summary {
            superblock: *self.superblock(),
            datasets: self.dataset_summaries(),
            chunks,
            file_execution: self.memory_budget(),
            history: self.history().to_vec(),
            metadata: self.metadata().filter(|metadata| !metadata.is_empty()).cloned(),
            long_labels: self.checker.as_ref().map(|checker| checker.labels().clone()).unwrap_or_default(),
            footer_version: self.footer_version(),
            integrity_status: self.integrity_status().clone(),
        })
    }

    /// The datasets of a [`Summary`], without reading the chunk index.
    pub fn dataset_summaries(&self) -> Vec<DatasetSummary> {
        let of = |dataset: crate::Dataset<'_>| {
            let grid = self.grids[dataset.id()].as_ref();
            DatasetSummary {
                name: dataset.name().to_owned(),
                dtype: dataset.dtype_tag(),
                dtype_name: dataset.element(),
                ndim: dataset.shape().len(),
                shape: dataset.shape().to_vec(),
                chunk_shape: dataset.chunk_shape().to_vec(),
                chunks: grid.ok().map(crate::Grid::tiles),
                raw_bytes: grid.ok().map(crate::Grid::bytes),
                problem: grid.err().map(DatasetError::to_string),
            }
        };
        self.datasets().map(of).collect()
    }
}

/// The summary of a file in memory. Short for [`File::from_bytes`] and
/// [`File::summary`].
///
/// ```
/// # use tercet_tet::{Layout, Writer, WriterOptions, read_tet_summary_v1};
/// # let sink = std::io::Cursor::new(Vec::new());
/// # let bytes = Writer::new(sink, Layout::new(), WriterOptions::interop())?.finish()?.output;
/// assert_eq!(read_tet_summary_v1(&bytes)?.superblock.layout_version, 1);
/// # Ok::<(), tercet_tet::Error>(())
/// ```
pub fn read_tet_summary_v1(bytes: &[u8]) -> Result<Summary, Error> {
    File::from_bytes("bytes", bytes.to_vec())?.summary()
}
