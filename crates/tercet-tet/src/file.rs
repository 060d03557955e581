//! [`File`] and [`Dataset`]: opening, catalog, chunk lookup.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

#[cfg(any(unix, windows))]
use tercet_core::Location;
pub use tercet_core::ReadOptions;
use tercet_core::source::Memory;
#[cfg(all(any(unix, windows), not(feature = "remote")))]
use tercet_core::source::open_location;
use tercet_core::{ByteSource, DType, ElementType, Selection, Span, threads};

#[cfg(all(any(unix, windows), feature = "remote"))]
use tercet_remote::open_location;

use crate::catalog::Catalog;
use crate::error::{DatasetError, Error, ErrorKind};
use crate::grid::Grid;
use crate::integrity::{self, Integrity, IntegrityChecker, IntegrityStatus};
use crate::metadata::{DatasetInfo, HistoryRow, LabelledAxis, Metadata, only};
use crate::rows::{RowContext, Rows};
use crate::stats::Stats;
use crate::verified::Verified;
use crate::wire::block::LongLabels;
use crate::wire::ids::Codec;
use crate::wire::index::{MemoryBudget, Row};
use crate::wire::superblock::Superblock;

/// Labels of an axis, with their keys.
type LabelsByKey<'a> = Vec<(&'a str, &'a [String])>;

/// An open `.tet` file.
///
/// Opening reads and checks the superblock, the directory, the index header and the footer. Nothing that grows with
/// the number of chunks is read. A `File` can be shared between threads. Clones share what was read and verified.
#[derive(Clone, Debug)]
pub struct File {
    pub(crate) source: Arc<dyn ByteSource>,
    pub(crate) options: ReadOptions,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) grids: Arc<[Result<Grid, DatasetError>]>,
    pub(crate) rows: Arc<Rows>,
    pub(crate) checker: Option<Arc<IntegrityChecker>>,
    pub(crate) verified: Arc<Verified>,
    pub(crate) integrity_status: Arc<IntegrityStatus>,
    /// Labels of axes with more than 64 of them, from the integrity block.
    pub(crate) long_labels: Arc<LongLabels>,
    /// The path of a file on disk.
    path: Option<Arc<Path>>,
}

/// The parts of a file that are read when it is opened.
pub(crate) struct Opened {
    pub(crate) catalog: Catalog,
    pub(crate) grids: Vec<Result<Grid, DatasetError>>,
    pub(crate) rows: Rows,
    pub(crate) integrity: Integrity,
}

impl Opened {
    pub(crate) fn read(
        source: &dyn ByteSource,
        options: &ReadOptions,
        mode: Mode,
    ) -> Result<Self, ErrorKind> {
        let limits = &options.limits;
        let catalog = match mode {
            Mode::Read => Catalog::read(source, limits)?,
            Mode::Recovery => Catalog::read(source, limits)?.with_lost_block(source, limits)?,
            Mode::WithoutFooter => Catalog::read_head(source, limits)?,
        };
        let integrity = integrity::open(&catalog, source, limits, options.verify, mode)?;
        let grids = catalog.grids();
        let rows = Rows::new(&catalog, &grids);
        Ok(Self { catalog, grids, rows, integrity })
    }
}

impl File {
    /// Opens a file: a path, or a URL with the feature `remote`.
    ///
    /// ```no_run
    /// let file = tercet_tet::File::open("era5.tet")?;
    /// for dataset in file.datasets() {
    ///     println!("{} {:?}", dataset.name(), dataset.shape());
    /// }
    /// # Ok::<(), tercet_tet::Error>(())
    /// ```
    #[cfg(any(unix, windows))]
    pub fn open(location: impl Into<Location>) -> Result<Self, Error> {
        Self::open_with(location, ReadOptions::new())
    }

    /// Opens a file with options.
    #[cfg(any(unix, windows))]
    pub fn open_with(location: impl Into<Location>, options: ReadOptions) -> Result<Self, Error> {
        Self::open_mode(&location.into(), options, Mode::Read)
    }

    /// Opens a file from any source of bytes.
    pub fn from_source(source: Arc<dyn ByteSource>, options: ReadOptions) -> Result<Self, Error> {
        Self::from_source_mode(source, options, Mode::Read)
    }

    /// Opens a file in memory. Errors show `name`.
    pub fn from_bytes(name: &str, bytes: impl Into<bytes::Bytes>) -> Result<Self, Error> {
        Self::from_source(Arc::new(Memory::new(name, bytes)), ReadOptions::new())
    }

    #[cfg(any(unix, windows))]
    pub(crate) fn open_mode(location: &Location, options: ReadOptions, mode: Mode) -> Result<Self, Error> {
        let source = open_location(location, options.access)
            .map_err(|error| Error::new(location.to_string().into(), error.into()))?;
        let mut file = Self::from_source_mode(source, options, mode)?;
        file.path = location.as_path().map(Arc::from);
        Ok(file)
    }

    pub(crate) fn from_source_mode(
        source: Arc<dyn ByteSource>,
        options: ReadOptions,
        mode: Mode,
    ) -> Result<Self, Error> {
        let name = source.name().clone();
        Self::read(source, options, mode).map_err(|kind| Error::new(name, kind))
    }

    fn read(source: Arc<dyn ByteSource>, options: ReadOptions, mode: Mode) -> Result<Self, ErrorKind> {
        let options = options.with_limits(options.limits.for_file(source.len()));
        let Opened { catalog, grids, rows, integrity } = Opened::read(&source, &options, mode)?;
        let Integrity { checker, status, labels } = integrity;
        Ok(Self {
            source,
            options,
            catalog: catalog.into(),
            grids: grids.into(),
            rows: rows.into(),
            checker: checker.map(Arc::new),
            verified: Arc::default(),
            integrity_status: status.into(),
            long_labels: labels.into(),
            path: None,
        })
    }

    /// The path or URL of the file.
    pub fn name(&self) -> &str {
        self.source.name()
    }

    /// The path of the file; `None` if it was not opened by path.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The length of the file in bytes.
    pub fn len(&self) -> u64 {
        self.catalog.file_len
    }

    /// Whether the file has no bytes: never, for an open file.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The fields of the first 32 bytes.
    pub fn superblock(&self) -> &Superblock {
        &self.catalog.superblock
    }

    /// The number of chunks of all datasets.
    pub fn chunk_count(&self) -> u64 {
        self.rows.count()
    }

    /// The memory budget for queries, from the index header. A share of more than 100 % counts as 100 %.
    pub fn memory_budget(&self) -> MemoryBudget {
        self.catalog.index.budget.clamped()
    }

    /// Whether bytes are checked against the integrity block.
    pub fn integrity_status(&self) -> &IntegrityStatus {
        &self.integrity_status
    }

    /// The history rows, oldest first.
    pub fn history(&self) -> &[HistoryRow] {
        self.catalog.history()
    }

    /// Provenance, attributes, axis names and labels; `None` without a footer.
    ///
    /// Labels of axes with more than 64 of them are in the integrity block: [`Dataset::labels`] finds both.
    pub fn metadata(&self) -> Option<&Metadata> {
        self.catalog.footer.as_ref().map(|footer| &footer.metadata)
    }

    /// Members of the footer that this version does not know.
    pub(crate) fn unknown_members(&self) -> serde_json::Map<String, serde_json::Value> {
        self.catalog.footer.as_ref().map(|footer| footer.json.unknown.clone()).unwrap_or_default()
    }

    /// The version of the footer, if there is one.
    pub fn footer_version(&self) -> Option<u32> {
        self.catalog.footer.as_ref().map(|footer| footer.tail.history_version)
    }

    /// The end of the payloads: the end of the file, or the start of the footer.
    pub fn payload_end(&self) -> u64 {
        self.catalog.payload_end
    }

    /// The datasets, in order.
    pub fn datasets(&self) -> impl ExactSizeIterator<Item = Dataset<'_>> {
        (0..self.catalog.records.len()).map(|id| Dataset { file: self, id })
    }

    /// The first dataset of this name.
    pub fn dataset(&self, name: &str) -> Result<Dataset<'_>, Error> {
        let found = self.catalog.records.iter().position(|record| record.name == name);
        let id = found.ok_or_else(|| {
            let names: Vec<_> = self
                .catalog
                .records
                .iter()
                .take(8)
                .map(|record| tercet_core::escape::name(&record.name))
                .collect();
            let more = if self.catalog.records.len() > 8 { ", …" } else { "" };
            let available = format!("{}{more}", names.join(", ")).into();
            let records = self.catalog.records.iter().map(|record| record.name.as_str());
            let nearest = crate::query::error::closest(name, records).map(String::into_boxed_str);
            self.error(ErrorKind::NoSuchDataset { name: name.into(), available, nearest })
        })?;
        Ok(Dataset { file: self, id })
    }

    /// Visits every row of the chunk index in order. The rows are not validated.
    pub fn for_each_row(&self, mut visit: impl FnMut(u64, &Row)) -> Result<(), Error> {
        let each = |number, row: Row| {
            visit(number, &row);
            Ok(())
        };
        self.rows.for_each(&self.row_context(), each).map_err(|fault| self.error(fault))
    }

    /// Row `number` of the chunk index, not validated.
    pub fn row(&self, number: u64) -> Result<Row, Error> {
        self.rows.get(&self.row_context(), number).map_err(|fault| self.error(fault))
    }

    pub(crate) fn row_context(&self) -> RowContext<'_> {
        RowContext {
            source: &self.source,
            checker: self.checker.as_deref(),
            limits: &self.options.limits,
            grids: &self.grids,
        }
    }

    /// Runs `work` on the threads of [`ReadOptions`].
    pub(crate) fn on_threads<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        threads::install(self.options.threads, work)
    }

    pub(crate) fn error(&self, fault: ErrorKind) -> Error {
        Error::new(self.source.name().clone(), fault)
    }
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Read,
    /// For repairs: nothing is checked when opening; chunks are checked by what is left of the integrity block.
    Recovery,
    /// For a damaged footer: as if there were none.
    WithoutFooter,
}

/// One array of a file.
#[derive(Clone, Copy, Debug)]
pub struct Dataset<'a> {
    pub(crate) file: &'a File,
    pub(crate) id: usize,
}

/// The stored bytes of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRef {
    /// The number of the row in the chunk index.
    pub row: u64,
    /// The stored bytes.
    pub span: Span,
    /// The codec of the stored bytes.
    pub codec: Codec,
    /// The number of bytes when decoded.
    pub raw_len: u64,
}

impl<'a> Dataset<'a> {
    /// The name of the dataset.
    pub fn name(&self) -> &'a str {
        &self.file.catalog.records[self.id].name
    }

    /// The position in the directory, from 0.
    pub fn id(&self) -> usize {
        self.id
    }

    /// The tag of the element type, known or not.
    pub fn dtype_tag(&self) -> u32 {
        self.file.catalog.records[self.id].dtype_tag
    }

    /// The element type; `None` for an unknown tag.
    pub fn dtype(&self) -> Option<DType> {
        self.element().map(DType::from)
    }

    pub(crate) fn element(&self) -> Option<ElementType> {
        crate::wire::ids::dtype_of(self.dtype_tag())
    }

    /// The extent of each axis.
    pub fn shape(&self) -> &'a [u64] {
        &self.file.catalog.records[self.id].shape
    }

    /// The extent of a chunk on each axis.
    pub fn chunk_shape(&self) -> &'a [u64] {
        &self.file.catalog.records[self.id].chunk_shape
    }

    /// The chunk grid. An invalid dataset record is an error.
    pub fn grid(&self) -> Result<&'a Grid, Error> {
        self.checked_grid().map_err(|fault| self.file.error(fault))
    }

    pub(crate) fn checked_grid(&self) -> Result<&'a Grid, ErrorKind> {
        let bad =
            |reason: &DatasetError| ErrorKind::BadDataset { dataset: self.name().into(), reason: *reason };
        self.file.grids[self.id].as_ref().map_err(bad)
    }

    /// Attributes, axis names and labels.
    pub fn info(&self) -> Option<&'a DatasetInfo> {
        self.file.metadata()?.datasets.get(self.name())
    }

    /// The name of an axis; `None` if the axes have no names.
    pub fn axis_name(&self, axis: usize) -> Option<&'a str> {
        let names = &self.info()?.dim_names;
        if names.len() == self.shape().len() { names.get(axis).map(String::as_str) } else { None }
    }

    /// The number of an axis, by its name, or by its number as text.
    pub fn axis(&self, name: &str) -> Result<usize, Error> {
        let rank = self.shape().len();
        let mut named = (0..rank).filter(|&axis| self.axis_name(axis) == Some(name));
        match (named.next(), named.next()) {
            (Some(axis), None) => return Ok(axis),
            (Some(_), Some(_)) => {
                let detail = format!("several axes have the name `{}`", tercet_core::escape::name(name));
                let dataset = self.name().into();
                return Err(self.file.error(ErrorKind::Compute { dataset, detail: detail.into() }));
            }
            (None, _) => {}
        }
        // Negative numbers count from the last axis.
        let number =
            name.parse::<isize>().ok().map(|axis| if axis < 0 { axis + rank.cast_signed() } else { axis });
        if let Some(axis) = number.and_then(|axis| usize::try_from(axis).ok()).filter(|&axis| axis < rank) {
            return Ok(axis);
        }
        let names: Vec<&str> = (0..rank).filter_map(|axis| self.axis_name(axis)).collect();
        let listed: Vec<String> = match names[..] {
            [] => (0..rank).map(|axis| axis.to_string()).collect(),
            _ => names.iter().map(|name| tercet_core::escape::name(name).into_owned()).collect(),
        };
        let nearest = crate::query::error::closest(name, names.iter().copied()).map(String::into_boxed_str);
        let (dataset, available) = (self.name().into(), listed.join(", ").into());
        Err(self.file.error(ErrorKind::NoSuchAxis { dataset, axis: name.into(), available, nearest }))
    }

    /// The labels of an axis, one per position: those under its name or number. Without them, and without a coordinate
    /// dataset, the only labels of its length, unless they are those of another axis.
    pub fn labels(&self, axis: usize) -> Option<&'a [String]> {
        let (labelled, candidates) = self.label_candidates(axis)?;
        let keys: Vec<&str> = candidates.iter().map(|(key, _)| *key).collect();
        let other = || {
            let only = only(&keys).filter(|key| !labelled.is_another(key))?;
            self.coordinate_dataset(axis).is_none().then_some(only)
        };
        let key = labelled.own(&keys).or_else(other)?;
        candidates.into_iter().find(|(other, _)| *other == key).map(|(_, labels)| labels)
    }

    /// The labels of an axis by the rules of the format for queries: without its own, the only labels of its length.
    pub(crate) fn query_labels(&self, axis: usize) -> Option<&'a [String]> {
        let (labelled, candidates) = self.label_candidates(axis)?;
        let keys: Vec<&str> = candidates.iter().map(|(key, _)| *key).collect();
        let key = labelled.own(&keys).or_else(|| only(&keys))?;
        candidates.into_iter().find(|(other, _)| *other == key).map(|(_, labels)| labels)
    }

    /// The labels of an axis for a query document: by the rules of the format for queries of the reference, else its own, or
    /// its coordinates as text.
    pub(crate) fn document_labels(
        &self,
        axis: usize,
        as_reference: bool,
    ) -> Result<Option<Cow<'a, [String]>>, Error> {
        let labels = if as_reference { self.query_labels(axis) } else { self.labels(axis) };
        if as_reference || labels.is_some() {
            return Ok(labels.map(Cow::Borrowed));
        }
        let coordinates = self.coordinates(axis)?;
        Ok(coordinates.map(|all| (0..all.len()).map(|position| all.text(position)).collect()))
    }

    /// All labels with the length of an axis, by key.
    fn label_candidates(&self, axis: usize) -> Option<(LabelledAxis<'a>, LabelsByKey<'a>)> {
        let rank = self.shape().len();
        let extent = *self.shape().get(axis)?;
        let info = self.info();
        let names = info.map(|info| info.axis_names(rank)).unwrap_or_default();
        let mut candidates: Vec<_> = info.into_iter().flat_map(|info| info.fitting(extent)).collect();
        let long = self.file.long_labels.get(self.name()).into_iter().flatten();
        let is_known = |key: &str| info.is_some_and(|info| info.coords.contains_key(key));
        let long = long.filter(|(key, labels)| labels.len() as u64 == extent && !is_known(key));
        candidates.extend(long.map(|(key, labels)| (key.as_str(), &labels[..])));
        Some((LabelledAxis { axis, rank, names }, candidates))
    }

    /// Parses a selection for this dataset, see [`Selection::parse`].
    pub fn selection(&self, text: &str) -> Result<Selection, Error> {
        Selection::parse(text, self.shape()).map_err(|error| self.file.error(error.into()))
    }

    /// Looks a chunk up in the index.
    pub fn chunk_ref(&self, coords: &[u64]) -> Result<ChunkRef, Error> {
        self.find_chunk(coords).map_err(|fault| self.file.error(fault))
    }

    pub(crate) fn find_chunk(&self, coords: &[u64]) -> Result<ChunkRef, ErrorKind> {
        let grid = self.checked_grid()?;
        if grid.linear(coords).is_none() {
            return Err(ErrorKind::NoSuchChunk { dataset: self.name().into(), coords: coords.into() });
        }
        let file = self.file;
        // Datasets are counted with 32 bits in the file.
        let id = u32::try_from(self.id).unwrap_or(u32::MAX);
        let found = file.rows.find(&file.row_context(), id, grid, coords)?;
        let Some((number, row)) = found else {
            return Err(ErrorKind::MissingChunk { dataset: self.name().into(), coords: coords.into() });
        };
        let trusted = file.checker.as_ref().is_none_or(|checker| checker.is_trusted(number));
        if !trusted && !file.rows.is_canonical(id, grid, coords, number) {
            return Err(ErrorKind::MissingChunk { dataset: self.name().into(), coords: coords.into() });
        }
        let (codec, span) = row.check(number, file.rows.row_start(number), file.catalog.payload_end)?;
        let expected = grid.chunk_bytes_at(coords);
        if row.raw_byte_len != expected {
            let reason = crate::error::ChunkError::RawLength { expected, found: row.raw_byte_len };
            return Err(self.chunk_fault(coords, number, span, reason));
        }
        Ok(ChunkRef { row: number, span, codec, raw_len: expected })
    }

    /// The statistics of a chunk; `None` if the file has none.
    pub fn chunk_stats(&self, coords: &[u64]) -> Result<Option<Stats>, Error> {
        let stats = || {
            let (Some(checker), grid) = (&self.file.checker, self.checked_grid()?) else { return Ok(None) };
            let chunk_ref = self.find_chunk(coords)?;
            let bytes = checker.row_stats(&self.file.source, chunk_ref.row)?;
            Ok(bytes.map(|bytes| Stats::decode(grid.element(), &bytes)))
        };
        stats().map_err(|fault| self.file.error(fault))
    }

    pub(crate) fn chunk_fault(
        &self,
        coords: &[u64],
        row: u64,
        span: Span,
        reason: crate::error::ChunkError,
    ) -> ErrorKind {
        ErrorKind::Chunk { dataset: self.name().into(), coords: coords.into(), row, span, reason }
    }
}
