//! [`Summary`]: the contents of a file without values, as `info --json` prints it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use tercet_core::limits::check_limit;
use tercet_core::{ByteSource, ElementType, SourceError, Span};

use crate::catalog::Catalog;
use crate::cf::CfEncoding;
use crate::error::{DatasetError, Error, ErrorKind};
use crate::file::{Dataset, File, Mode, Opened, ReadOptions};
use crate::grid::Grid;
use crate::integrity::IntegrityStatus;
use crate::metadata::{HistoryRow, Metadata};
use crate::rows::{RowContext, Rows};
use crate::wire::block::LongLabels;
use crate::wire::directory::Record;
use crate::wire::ids::dtype_of;
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
    /// Missing values and packing, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<CfEncoding>,
    /// Where axes have their coordinates, by axis name or number.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub coordinates: BTreeMap<String, CoordinateSource>,
}

/// Where an axis has its coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CoordinateSource {
    /// In the labels of the axis.
    Labels,
    /// In the 1-D dataset named like the axis.
    Dataset,
}

impl Dataset<'_> {
    /// Where axes have their coordinates, by axis name or number.
    pub fn coordinate_sources(&self) -> BTreeMap<String, CoordinateSource> {
        let source = |axis: usize| {
            let name = self.axis_name(axis).map_or_else(|| axis.to_string(), str::to_owned);
            if self.labels(axis).is_some() {
                return Some((name, CoordinateSource::Labels));
            }
            // A coordinate dataset is its own coordinate.
            let coordinate = self.coordinate_dataset(axis).filter(|other| other.id() != self.id());
            coordinate.map(|_| (name, CoordinateSource::Dataset))
        };
        (0..self.shape().len()).filter_map(source).collect()
    }
}

impl File {
    /// The contents of the file without values. Reads the whole chunk index.
    pub fn summary(&self) -> Result<Summary, Error> {
        let opened = View {
            catalog: &self.catalog,
            grids: &self.grids,
            rows: &self.rows,
            context: self.row_context(),
            integrity_status: &self.integrity_status,
            long_labels: &self.long_labels,
        };
        let mut summary = opened.summary().map_err(|kind| self.error(kind))?;
        summary.datasets = self.dataset_summaries();
        Ok(summary)
    }

    /// The datasets of a [`Summary`], without reading the chunk index.
    pub fn dataset_summaries(&self) -> Vec<DatasetSummary> {
        let summaries = dataset_summaries(&self.catalog, &self.grids);
        let described = summaries.into_iter().zip(self.datasets()).map(|(summary, dataset)| {
            let encoding = dataset.read_cf_encoding().ok().filter(|encoding| !encoding.is_empty());
            DatasetSummary { encoding, coordinates: dataset.coordinate_sources(), ..summary }
        });
        described.collect()
    }
}

/// The parts of an opened file that a summary needs.
struct View<'a> {
    catalog: &'a Catalog,
    grids: &'a [Result<Grid, DatasetError>],
    rows: &'a Rows,
    context: RowContext<'a>,
    integrity_status: &'a IntegrityStatus,
    long_labels: &'a LongLabels,
}

impl View<'_> {
    fn summary(&self) -> Result<Summary, ErrorKind> {
        let bytes = self.rows.count().saturating_mul(size_of::<Row>() as u64);
        check_limit("the rows of the chunk index", bytes, self.context.limits.table_bytes)?;
        let mut chunks = Vec::new();
        self.rows.for_each(&self.context, |_, row| {
            chunks.push(row);
            Ok(())
        })?;
        let footer = self.catalog.footer.as_ref();
        let metadata = footer.map(|footer| &footer.metadata).filter(|metadata| !metadata.is_empty());
        Ok(Summary {
            superblock: self.catalog.superblock,
            datasets: dataset_summaries(self.catalog, self.grids),
            chunks,
            file_execution: self.catalog.index.budget.clamped(),
            history: self.catalog.history().to_vec(),
            metadata: metadata.cloned(),
            long_labels: self.long_labels.clone(),
            footer_version: footer.map(|footer| footer.tail.history_version),
            integrity_status: self.integrity_status.clone(),
        })
    }
}

fn dataset_summaries(catalog: &Catalog, grids: &[Result<Grid, DatasetError>]) -> Vec<DatasetSummary> {
    let summarize = |(record, grid): (&Record, &Result<Grid, DatasetError>)| DatasetSummary {
        name: record.name.clone(),
        dtype: record.dtype_tag,
        dtype_name: dtype_of(record.dtype_tag),
        ndim: record.shape.len(),
        shape: record.shape.clone(),
        chunk_shape: record.chunk_shape.clone(),
        chunks: grid.as_ref().ok().map(Grid::chunk_count),
        raw_bytes: grid.as_ref().ok().map(Grid::bytes),
        problem: grid.as_ref().err().map(DatasetError::to_string),
        encoding: None,
        coordinates: BTreeMap::new(),
    };
    catalog.records.iter().zip(grids).map(summarize).collect()
}

/// Bytes that belong to the caller. Every read copies the requested span, and nothing else.
#[derive(Debug)]
struct Borrowed<'a> {
    name: Arc<str>,
    bytes: &'a [u8],
}

impl ByteSource for Borrowed<'_> {
    fn name(&self) -> &Arc<str> {
        &self.name
    }
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn read_at(&self, span: Span) -> Result<Bytes, SourceError> {
        let part = span.to_range().and_then(|range| self.bytes.get(range));
        let past_end = SourceError::PastEnd { span, len: self.len() };
        part.map(Bytes::copy_from_slice).ok_or(past_end)
    }
}

/// The summary of a file in memory, for example of a memory map. Catalog, chunk index and footer are read; payloads
/// are neither read nor copied.
///
/// ```
/// # use tercet_tet::{Layout, Writer, WriterOptions, read_tet_summary_v1};
/// # let sink = std::io::Cursor::new(Vec::new());
/// # let bytes = Writer::new(sink, Layout::new(), WriterOptions::interop())?.finish()?.output;
/// assert_eq!(read_tet_summary_v1(&bytes)?.superblock.layout_version, 1);
/// # Ok::<(), tercet_tet::Error>(())
/// ```
pub fn read_tet_summary_v1(bytes: &[u8]) -> Result<Summary, Error> {
    let source = Borrowed { name: "bytes".into(), bytes };
    let options = ReadOptions::new();
    let read = || {
        let Opened { catalog, grids, rows, integrity } = Opened::read(&source, &options, Mode::Read)?;
        let checker = integrity.checker.as_ref();
        let opened = View {
            catalog: &catalog,
            grids: &grids,
            rows: &rows,
            context: RowContext { source: &source, checker, limits: &options.limits, grids: &grids },
            integrity_status: &integrity.status,
            long_labels: &integrity.labels,
        };
        opened.summary()
    };
    read().map_err(|kind| Error::new(source.name.clone(), kind))
}
