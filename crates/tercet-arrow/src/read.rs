//! Reader of Parquet and Arrow IPC files.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, RecordBatch};
use arrow_buffer::ArrowNativeType as _;
use arrow_schema::{DataType, Schema};
use tercet_core::{ByteSource, Class, Span};
use tercet_tatami::{Column, Scan};

use crate::error::{Error, ErrorKind, from_arrow, from_tatami};
use crate::ipc::Batches;
use crate::nested::Flattened;
use crate::options::Options;
use crate::parquet_file;
use crate::table::{StringLayout, Table, chosen, names_of};
use crate::unwind::catch_panic;

/// Maximum rows per batch.
pub(crate) const BATCH_ROWS: usize = 65_536;
/// Target bytes per batch.
pub(crate) const BATCH_BYTES: u64 = 16 << 20;

/// Maximum list elements per batch, unless one row has more.
const BATCH_ELEMENTS: usize = 1 << 22;

/// Table file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Parquet.
    Parquet,
    /// Arrow IPC file format.
    ArrowFile,
    /// Arrow IPC streaming format.
    ArrowStream,
}

/// Detects the format of a file by its first eight bytes.
pub fn detect(head: &[u8]) -> Option<Format> {
    match head {
        [b'P', b'A', b'R', b'1', ..] => Some(Format::Parquet),
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Some(Format::ArrowFile),
        // The length of the schema message is not zero.
        [0xff, 0xff, 0xff, 0xff, len @ .., 0] if len.iter().any(|byte| *byte != 0) => {
            Some(Format::ArrowStream)
        }
        _ => None,
    }
}

/// Reads the rows of a Parquet or Arrow IPC file in batches.
pub struct TableReader {
    table: Table,
    batches: Box<dyn Iterator<Item = Result<RecordBatch, Error>> + Send>,
    /// The rest of a batch that exceeds the batch size.
    left: Option<RecordBatch>,
    max_batch_rows: Option<usize>,
    flattened: Option<Flattened>,
    total: Option<u64>,
    warnings: Vec<String>,
    /// All columns of the file, including those that are not read.
    names: Vec<String>,
    /// Whether a stream ended without an end-of-stream marker.
    is_truncated: Option<Arc<AtomicBool>>,
    row: u64,
    failed: bool,
}

impl std::fmt::Debug for TableReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("table", &self.table).field("row", &self.row).finish_non_exhaustive()
    }
}

impl TableReader {
    /// Opens a file. `batch_rows` sets the rows per batch; by default their size decides.
    pub fn open(
        source: Arc<dyn ByteSource>,
        format: Format,
        options: &Options,
        batch_rows: Option<usize>,
    ) -> Result<Self, Error> {
        let name = Arc::clone(source.name());
        // The checks before each call reject known bad inputs; this catches the unknown ones.
        let opened = catch_panic(|| match format {
            Format::Parquet => parquet_file::open(&name, source, options, batch_rows),
            Format::ArrowFile => arrow(&name, Batches::from_file(source, options.limits)?, options),
            Format::ArrowStream => arrow(&name, Batches::from_stream(source, options.limits)?, options),
        });
        let mut rows = opened.unwrap_or_else(|| Err(decoder_panicked(&name)))?;
        rows.max_batch_rows = batch_rows;
        Ok(rows)
    }

    pub(crate) fn new(
        table: Table,
        names: Vec<String>,
        batches: impl Iterator<Item = Result<RecordBatch, Error>> + Send + 'static,
    ) -> Self {
        let batches = Box::new(batches);
        Self {
            table,
            batches,
            left: None,
            max_batch_rows: None,
            flattened: None,
            total: None,
            warnings: Vec::new(),
            names,
            is_truncated: None,
            row: 0,
            failed: false,
        }
    }

    /// The columns.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Names of all columns of the file, including those that are not read.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether this is a stream that ended without an end-of-stream marker.
    pub fn is_truncated(&self) -> bool {
        self.is_truncated.as_ref().is_some_and(|is_truncated| is_truncated.load(Ordering::Relaxed))
    }

    /// The number of rows, if the file declares it.
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    pub(crate) fn set_flattened(&mut self, flattened: Option<Flattened>) {
        self.flattened = flattened;
    }

    pub(crate) fn set_total(&mut self, rows: u64) {
        self.total = Some(rows);
    }

    /// Problems of the file that do not prevent reading.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub(crate) fn warn(&mut self, message: Option<String>) {
        self.warnings.extend(message);
    }

    fn read(&mut self) -> Option<Result<RecordBatch, Error>> {
        if let Some(batch) = self.left.take() {
            return Some(Ok(batch));
        }
        let name = self.table.name();
        catch_panic(|| self.batches.next()).unwrap_or_else(|| Some(Err(decoder_panicked(name))))
    }

    /// Cuts a batch to the batch size; the rest is kept.
    fn cut(&mut self, batch: RecordBatch) -> RecordBatch {
        let rows = batch.num_rows();
        let bytes = batch.get_array_memory_size() as u64;
        let per_row = (bytes / (rows as u64).max(1)).max(1);
        let by_bytes = usize::try_from(BATCH_BYTES / per_row).unwrap_or(usize::MAX).clamp(1, BATCH_ROWS);
        let most = shared_elements(&batch, self.max_batch_rows.unwrap_or(by_bytes)).max(1);
        if rows <= most {
            return batch;
        }
        self.left = Some(batch.slice(most, rows - most));
        batch.slice(0, most)
    }
}

impl Iterator for TableReader {
    type Item = Result<Vec<Column>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let columns = match self.read()? {
            Ok(batch) => {
                let batch = self.cut(batch);
                let columns = match &self.flattened {
                    Some(flattened) => {
                        flattened.arrays(&batch).and_then(|arrays| self.table.columns_of(&arrays, self.row))
                    }
                    None => self.table.columns(&batch, self.row),
                };
                self.row += batch.num_rows() as u64;
                columns
            }
            Err(error) => Err(error),
        };
        self.failed = columns.is_err();
        Some(columns)
    }
}

/// The number of rows whose lists have at most [`BATCH_ELEMENTS`] elements together, up to `most`. List views may share elements,
/// so that a few bytes can describe more elements than fit into memory.
fn shared_elements(batch: &RecordBatch, most: usize) -> usize {
    fn check_limit(sizes: impl Iterator<Item = usize>, most: usize) -> usize {
        let mut sum = 0_usize;
        sizes.take(most).take_while(|size| (sum = sum.saturating_add(*size), sum <= BATCH_ELEMENTS).1).count()
    }
    batch.columns().iter().fold(most, |most, array| match array.data_type() {
        DataType::ListView(_) => {
            check_limit(array.as_list_view::<i32>().value_sizes().iter().map(|size| size.as_usize()), most)
        }
        DataType::LargeListView(_) => {
            check_limit(array.as_list_view::<i64>().value_sizes().iter().map(|size| size.as_usize()), most)
        }
        _ => most,
    })
}

fn decoder_panicked(name: &Arc<str>) -> Error {
    let message = "malformed file: the decoder panicked".to_owned();
    Error::new(Arc::clone(name), ErrorKind::Format { class: Class::Malformed, message })
}

fn arrow(name: &Arc<str>, batches: Batches, options: &Options) -> Result<TableReader, Error> {
    let names = flat_names(name, batches.schema(), options);
    let is_truncated = batches.is_truncated();
    let mut rows = if let Some(chosen) = chosen(name, batches.schema(), options)? {
        let schema = batches.schema().project(&chosen).map_err(|error| from_arrow(name, error))?;
        let (schema, flattened) = flat_schema(name, schema, &names, options)?;
        let table = Table::from_arrow(name, &schema, options)?;
        let from_file = Arc::clone(name);
        let project =
            move |batch: RecordBatch| batch.project(&chosen).map_err(|error| from_arrow(&from_file, error));
        let mut rows = TableReader::new(table, names, batches.map(move |batch| batch.and_then(&project)));
        rows.set_flattened(flattened);
        rows
    } else {
        let (schema, flattened) = flat_schema(name, batches.schema().as_ref().clone(), &names, options)?;
        let table = Table::from_arrow(name, &schema, options)?;
        let mut rows = TableReader::new(table, names, batches);
        rows.set_flattened(flattened);
        rows
    };
    rows.is_truncated = Some(is_truncated);
    Ok(rows)
}

/// The names of all columns, and of the members of structs that become columns.
pub(crate) fn flat_names(name: &Arc<str>, schema: &Schema, options: &Options) -> Vec<String> {
    let all = Options { columns: None, ..options.clone() };
    match Flattened::new(name, schema, &all) {
        Some(flattened) => names_of(&flattened.schema(schema)),
        None => names_of(schema),
    }
}

/// The schema without nested columns, and how they are read. `names` are those of all columns.
pub(crate) fn flat_schema(
    name: &Arc<str>,
    schema: Schema,
    names: &[String],
    options: &Options,
) -> Result<(Schema, Option<Flattened>), Error> {
    let Some(flattened) = Flattened::new(name, &schema, options) else { return Ok((schema, None)) };
    let flat = flattened.schema(&schema);
    if flat.fields().is_empty() && !schema.fields().is_empty() {
        return Err(Error::new(Arc::clone(name), ErrorKind::NoSuchColumns { columns: names.to_vec() }));
    }
    Ok((flat, Some(flattened)))
}

/// The result of a scan as Arrow record batches of bounded size.
pub fn batches(
    scan: &Scan,
    layout: StringLayout,
) -> Result<impl Iterator<Item = Result<RecordBatch, Error>> + use<>, Error> {
    let table = Table::from_file(scan.file(), scan.positions())?;
    let schema = table.arrow_schema(layout);
    let rows = scan.file().estimate_batch_rows(scan.positions(), BATCH_BYTES).min(BATCH_ROWS as u64);
    let batches = scan.clone().with_batch_rows(rows).batches();
    Ok(batches.map(move |batch| {
        let batch = batch.map_err(from_tatami)?;
        let first = batch.rows.first().copied().unwrap_or(0);
        table.batch(&schema, batch.columns, first)
    }))
}

/// Reads the first bytes of a source, for [`detect`].
pub fn head(source: &dyn ByteSource) -> Result<bytes::Bytes, Error> {
    let span = Span::first(source.len().min(8));
    source.read_at(span).map_err(|error| Error::new(Arc::clone(source.name()), error.into()))
}
