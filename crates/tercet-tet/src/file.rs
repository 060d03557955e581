//! An open file and its datasets.

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use tercet_core::source::Access;
use tercet_core::{ByteSource, DType, ElementType, Limits, Selection, Span};

use crate::catalog::Catalog;
use crate::error::{DatasetError, Error, ErrorKind};
use crate::grid::Grid;
use crate::integrity::{self, IntegrityChecker, IntegrityStatus};
use crate::metadata::{DatasetInfo, HistoryRow, Metadata};
use crate::rows::{RowContext, Rows};
use crate::stats::Stats;
use crate::wire::ids::Codec;
use crate::wire::index::{MemoryBudget, Row};
use crate::wire::superblock::Superblock;

/// How to open a file.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Positional reads or a memory map.
    pub access: Access,
    /// Read without checking checksums; statistics are not used either.
    pub ignore_checksums: bool,
    /// The largest sizes accepted.
    pub limits: Limits,
    /// For repairs: read what can be read, and check chunks by whatever is left of the block.
    pub(crate) recovery: bool,
}

impl ReadOptions {
    /// Positional reads, verified, with default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how bytes are fetched.
    pub fn with_access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Sets whether checksums are ignored.
    pub fn with_ignore_checksums(mut self, ignore: bool) -> Self {
        self.ignore_checksums = ignore;
        self
    }

    /// For repairs: read what can be read.
    #[cfg(any(unix, windows))]
    pub(crate) fn recovery() -> Self {
        Self { ignore_checksums: true, recovery: true, ..Self::default() }
    }

    /// Sets the limits.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Opens a file on disk.
    #[cfg(any(unix, windows))]
    pub fn open(self, path: impl AsRef<Path>) -> Result<File, Error> {
        let path = path.as_ref();
        let source = self.access.open(path);
        let source = source.map_err(|error| Error::new(path.to_string_lossy().into(), error.into()))?;
        let mut file = self.open_source(source)?;
        file.path = Some(path.to_owned());
        Ok(file)
    }

    /// Opens a file whose bytes come from elsewhere.
    pub fn open_source(self, source: Arc<dyn ByteSource>) -> Result<File, Error> {
        let name = source.name().clone();
        File::read(source, self).map_err(|fault| Error::new(name, fault))
    }
}

/// An open `.tet` file: its catalogue, and a way to every chunk.
///
/// Opening reads the superblock, the directory, the index header and the footer, and checks them. Nothing that grows
/// with the number of chunks is read. A `File` can be shared between threads.
#[derive(Debug)]
pub struct File {
    pub(crate) source: Arc<dyn ByteSource>,
    pub(crate) options: ReadOptions,
    pub(crate) catalog: Catalog,
    pub(crate) grids: Vec<Result<Grid, DatasetError>>,
    pub(crate) rows: Rows,
    pub(crate) checker: Option<IntegrityChecker>,
    integrity_status: IntegrityStatus,
    /// Where it is, if it is a file on disk.
    path: Option<PathBuf>,
}

impl File {
    /// Opens a file on disk.
    ///
    /// ```no_run
    /// let file = tercet_tet::File::open("era5.tet")?;
    /// for dataset in file.datasets() {
    ///     println!("{} {:?}", dataset.name(), dataset.shape());
    /// }
    /// # Ok::<(), tercet_tet::Error>(())
    /// ```
    #[cfg(any(unix, windows))]
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        ReadOptions::default().open(path)
    }

    /// Opens a file that is in memory.
    pub fn from_bytes(name: &str, bytes: impl Into<bytes::Bytes>) -> Result<Self, Error> {
        ReadOptions::default().open_source(Arc::new(tercet_core::source::Memory::new(name, bytes)))
    }

    fn read(source: Arc<dyn ByteSource>, options: ReadOptions) -> Result<Self, ErrorKind> {
        let catalog = Catalog::read(&source, &options.limits)?;
        let (checker, integrity_status) = integrity::open(&catalog, &source, &options)?;
        let grids = catalog.grids();
        let rows = Rows::new(&catalog, &grids);
        Ok(Self { source, options, catalog, grids, rows, checker, integrity_status, path: None })
    }

    /// Opens a file whose footer is damaged, as if it had none.
    #[cfg(any(unix, windows))]
    pub(crate) fn open_headless(path: &Path) -> Result<Self, Error> {
        let error = |fault: ErrorKind| Error::new(path.to_string_lossy().into(), fault);
        let source = tercet_core::source::File::open(path).map_err(|source| error(source.into()))?;
        let options = ReadOptions::new();
        let catalog = Catalog::read_head(&source, &options.limits).map_err(error)?;
        let grids = catalog.grids();
        let rows = Rows::new(&catalog, &grids);
        let source = Arc::new(source);
        Ok(Self {
            source,
            options,
            catalog,
            grids,
            rows,
            checker: None,
            integrity_status: IntegrityStatus::Absent,
            path: None,
        })
    }

    /// The name of the file, as it was opened.
    pub fn name(&self) -> &str {
        self.source.name()
    }

    /// The path of the file, as it was opened; `None` for bytes from elsewhere.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The length of the file in bytes.
    pub fn len(&self) -> u64 {
        self.catalog.file_len
    }

    /// Whether the file holds no dataset.
    pub fn is_empty(&self) -> bool {
        self.catalog.records.is_empty()
    }

    /// The fields of the first 32 bytes.
    pub fn superblock(&self) -> &Superblock {
        &self.catalog.superblock
    }

    /// The number of chunks of all datasets.
    pub fn chunk_count(&self) -> u64 {
        self.rows.count()
    }

    /// The author's advice on memory.
    pub fn memory_budget(&self) -> MemoryBudget {
        self.catalog.index.budget
    }

    /// How well the file can tell that it changed.
    pub fn integrity_status(&self) -> &IntegrityStatus {
        &self.integrity_status
    }

    /// What happened to the file, oldest first.
    pub fn history(&self) -> &[HistoryRow] {
        self.catalog.history()
    }

    /// Provenance, attributes, axis names and labels; `None` without a footer.
    ///
    /// Axes with more than 64 labels keep them in the integrity block: [`Dataset::labels`] finds both.
    pub fn metadata(&self) -> Option<&Metadata> {
        self.catalog.footer.as_ref().map(|footer| &footer.metadata)
    }

    /// The version of the footer, if there is one.
    pub fn footer_version(&self) -> Option<u32> {
        self.catalog.footer.as_ref().map(|footer| footer.tail.history_version)
    }

    /// Where payloads end: the end of the file, or the start of the footer.
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
            self.error(ErrorKind::NoSuchDataset { name: name.into(), available })
        })?;
        Ok(Dataset { file: self, id })
    }

    /// Visits every row of the chunk index in order. Rows are as they stand in the file, not yet checked.
    pub fn for_each_row(&self, mut visit: impl FnMut(u64, &Row)) -> Result<(), Error> {
        let each = |number, row: Row| {
            visit(number, &row);
            Ok(())
        };
        self.rows.for_each(&self.row_context(), each).map_err(|fault| self.error(fault))
    }

    /// Row number `number` of the chunk index, as it stands in the file.
    pub fn row(&self, number: u64) -> Result<Row, Error> {
        self.rows.get(&self.row_context(), number).map_err(|fault| self.error(fault))
    }

    pub(crate) fn row_context(&self) -> RowContext<'_> {
        RowContext {
            source: &self.source,
            checker: self.checker.as_ref(),
            limits: &self.options.limits,
            grids: &self.grids,
        }
    }

    pub(crate) fn error(&self, fault: ErrorKind) -> Error {
        Error::new(self.source.name().clone(), fault)
    }
}

/// One array of a file.
#[derive(Clone, Copy, Debug)]
pub struct Dataset<'a> {
    pub(crate) file: &'a File,
    pub(crate) id: usize,
}

/// Where a chunk is and how it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRef {
    /// The number of its row in the chunk index.
    pub row: u64,
    /// Its stored bytes.
    pub span: Span,
    /// How they are stored.
    pub codec: Codec,
    /// Its bytes when decoded.
    pub raw_len: u64,
}

impl<'a> Dataset<'a> {
    /// Its name.
    pub fn name(&self) -> &'a str {
        &self.file.catalog.records[self.id].name
    }

    /// Its position in the directory.
    pub fn id(&self) -> usize {
        self.id
    }

    /// The tag of its element type, known or not.
    pub fn dtype_tag(&self) -> u32 {
        self.file.catalog.records[self.id].dtype_tag
    }

    /// Its element type, if that is known.
    pub fn dtype(&self) -> Option<DType> {
        self.element().map(DType::from)
    }

    pub(crate) fn element(&self) -> Option<ElementType> {
        crate::wire::ids::dtype_of(self.dtype_tag())
    }

    /// Its extents.
    pub fn shape(&self) -> &'a [u64] {
        &self.file.catalog.records[self.id].shape
    }

    /// The extents of its chunks.
    pub fn chunk_shape(&self) -> &'a [u64] {
        &self.file.catalog.records[self.id].chunk_shape
    }

    /// Its tiling, or why it cannot be used.
    pub fn grid(&self) -> Result<&'a Grid, Error> {
        self.checked_grid().map_err(|fault| self.file.error(fault))
    }

    pub(crate) fn checked_grid(&self) -> Result<&'a Grid, ErrorKind> {
        let bad =
            |reason: &DatasetError| ErrorKind::BadDataset { dataset: self.name().into(), reason: *reason };
        self.file.grids[self.id].as_ref().map_err(bad)
    }

    /// Its attributes, axis names and labels.
    pub fn info(&self) -> Option<&'a DatasetInfo> {
        self.file.metadata()?.datasets.get(self.name())
    }

    /// The name of an axis, if the axes have names.
    pub fn axis_name(&self, axis: usize) -> Option<&'a str> {
        let names = &self.info()?.dim_names;
        if names.len() == self.shape().len() { names.get(axis).map(String::as_str) } else { None }
    }

    /// The labels of an axis, one for each position.
    pub fn labels(&self, axis: usize) -> Option<&'a [String]> {
        let extent = *self.shape().get(axis)?;
        let short = self.info().and_then(|info| info.labels(axis, self.shape().len(), extent));
        short.or_else(|| {
            let long = self.file.checker.as_ref()?.labels().get(self.name())?;
            let by_name = self.axis_name(axis).and_then(|name| long.get(name));
            let labels = by_name.or_else(|| long.get(&axis.to_string()))?;
            (labels.len() as u64 == extent).then_some(&labels[..])
        })
    }

    /// A selection in the words of [`Selection::parse`].
    pub fn select(&self, text: &str) -> Result<Selection, Error> {
        Selection::parse(text, self.shape()).map_err(|error| self.file.error(error.into()))
    }

    /// Where a chunk is and how it is stored.
    pub fn chunk_ref(&self, tile: &[u64]) -> Result<ChunkRef, Error> {
        self.find_chunk(tile).map_err(|fault| self.file.error(fault))
    }

    pub(crate) fn find_chunk(&self, tile: &[u64]) -> Result<ChunkRef, ErrorKind> {
        let grid = self.checked_grid()?;
        if grid.linear(tile).is_none() {
            return Err(ErrorKind::NoSuchChunk { dataset: self.name().into(), tile: tile.into() });
        }
        let file = self.file;
        // Datasets are counted with 32 bits in the file.
        let id = u32::try_from(self.id).unwrap_or(u32::MAX);
        let found = file.rows.find(&file.row_context(), id, grid, tile)?;
        let Some((number, row)) = found else {
            return Err(ErrorKind::MissingChunk { dataset: self.name().into(), tile: tile.into() });
        };
        let trusted = file.checker.as_ref().is_none_or(|checker| checker.is_trusted(number));
        if !trusted && !file.rows.is_canonical(id, grid, tile, number) {
            return Err(ErrorKind::MissingChunk { dataset: self.name().into(), tile: tile.into() });
        }
        let (codec, span) = row.check(number, file.rows.row_start(number), file.catalog.payload_end)?;
        let expected = grid.tile_bytes(tile);
        if row.raw_byte_len != expected {
            let reason = crate::error::ChunkError::RawLength { expected, found: row.raw_byte_len };
            return Err(self.chunk_fault(tile, number, span, reason));
        }
        Ok(ChunkRef { row: number, span, codec, raw_len: expected })
    }

    /// The statistics of a chunk, if the file has them.
    pub fn chunk_stats(&self, tile: &[u64]) -> Result<Option<Stats>, Error> {
        let stats = || {
            let (Some(checker), grid) = (&self.file.checker, self.checked_grid()?) else { return Ok(None) };
            let chunk_ref = self.find_chunk(tile)?;
            let bytes = checker.row_stats(&self.file.source, chunk_ref.row)?;
            Ok(bytes.map(|bytes| Stats::decode(grid.element(), &bytes)))
        };
        stats().map_err(|fault| self.file.error(fault))
    }

    pub(crate) fn chunk_fault(
        &self,
        tile: &[u64],
        row: u64,
        span: Span,
        reason: crate::error::ChunkError,
    ) -> ErrorKind {
        ErrorKind::Chunk { dataset: self.name().into(), tile: tile.into(), row, span, reason }
    }
}
