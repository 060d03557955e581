//! Parquet and Arrow files as rows.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, DataType, Field as ArrowField, FieldRef, Schema as ArrowSchema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Type as Physical;
use tercet_core::{ByteSource, Class, Span};
use tercet_tatami::{Column, Scan};

use crate::error::{Error, Refused, from_arrow, from_parquet};
use crate::ipc;
use crate::options::Options;
use crate::source::Reading;
use crate::table::{Table, Texts, chosen};

/// Rows of a batch, unless they are large.
const BATCH_ROWS: usize = 65_536;
/// Bytes of a batch, unless one row has more.
const BATCH_BYTES: u64 = 16 << 20;

/// What a file of a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Parquet.
    Parquet,
    /// Arrow IPC, the form for files.
    ArrowFile,
    /// Arrow IPC, the form for streams.
    ArrowStream,
}

/// What the first bytes of a file say; eight are enough.
pub fn detect(head: &[u8]) -> Option<Format> {
    match head {
        [b'P', b'A', b'R', b'1', ..] => Some(Format::Parquet),
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Some(Format::ArrowFile),
        // The length of the first message, the schema, is not zero.
        [0xff, 0xff, 0xff, 0xff, len @ .., 0] if len.iter().any(|byte| *byte != 0) => {
            Some(Format::ArrowStream)
        }
        _ => None,
    }
}

/// The rows of a file, batch by batch.
pub struct Rows {
    table: Table,
    batches: Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>,
    /// What is left of a batch that is too large to be handed over at once.
    left: Option<RecordBatch>,
    batch_most: Option<usize>,
    total: Option<u64>,
    row: u64,
    failed: bool,
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("table", &self.table).field("row", &self.row).finish_non_exhaustive()
    }
}

impl Rows {
    /// Opens a file of a format; `batch_rows` is how many rows are handed over at once, otherwise their bytes decide.
    pub fn open(
        source: Arc<dyn ByteSource>,
        format: Format,
        options: &Options,
        batch_rows: Option<usize>,
    ) -> Result<Self, Error> {
        let name = Arc::clone(source.name());
        // The libraries are careful, but not made for bytes that somebody built to hurt.
        let opened = catch_unwind(AssertUnwindSafe(|| match format {
            Format::Parquet => parquet(&name, source, options, batch_rows),
            Format::ArrowFile => arrow_file(&name, &source, options),
            Format::ArrowStream => arrow_stream(&name, &source, options),
        }));
        let mut rows = opened.unwrap_or_else(|_| Err(broken(&name)))?;
        rows.batch_most = batch_rows;
        Ok(rows)
    }

    fn new(
        table: Table,
        batches: impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send + 'static,
    ) -> Self {
        let batches = Box::new(batches);
        Self { table, batches, left: None, batch_most: None, total: None, row: 0, failed: false }
    }

    /// The columns.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The number of rows, where the file tells it in advance.
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    fn read(&mut self) -> Option<Result<RecordBatch, Error>> {
        if let Some(batch) = self.left.take() {
            return Some(Ok(batch));
        }
        let name = self.table.name();
        match catch_unwind(AssertUnwindSafe(|| self.batches.next())) {
            Ok(Some(batch)) => Some(batch.map_err(|error| from_arrow(name, error))),
            Ok(None) => None,
            Err(_) => Some(Err(broken(name))),
        }
    }

    /// The first rows of a batch; the others are kept for later.
    fn cut(&mut self, batch: RecordBatch) -> RecordBatch {
        let rows = batch.num_rows();
        let bytes = batch.get_array_memory_size() as u64;
        let per_row = (bytes / (rows as u64).max(1)).max(1);
        let by_bytes = usize::try_from(BATCH_BYTES / per_row).unwrap_or(usize::MAX).clamp(1, BATCH_ROWS);
        let most = self.batch_most.unwrap_or(by_bytes).max(1);
        if rows <= most {
            return batch;
        }
        self.left = Some(batch.slice(most, rows - most));
        batch.slice(0, most)
    }
}

impl Iterator for Rows {
    type Item = Result<Vec<Column>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let columns = match self.read()? {
            Ok(batch) => {
                let batch = self.cut(batch);
                let columns = self.table.columns(&batch, self.row);
                self.row += batch.num_rows() as u64;
                columns
            }
            Err(error) => Err(error),
        };
        self.failed = columns.is_err();
        Some(columns)
    }
}

fn broken(name: &Arc<str>) -> Error {
    let told = "the file breaks the rules of its format in a way that stopped the reader".to_owned();
    Error::Format { name: Arc::clone(name), class: Class::Malformed, told }
}

fn parquet(
    name: &Arc<str>,
    source: Arc<dyn ByteSource>,
    options: &Options,
    batch_rows: Option<usize>,
) -> Result<Rows, Error> {
    let wrong = |error| from_parquet(name, error);
    let reading = Reading::new(source);
    let plain = || ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = match ArrowReaderMetadata::load(&reading, ArrowReaderOptions::new()) {
        Ok(metadata) => metadata,
        // What the file says about Arrow beside its own types may be wrong; then its own types count.
        Err(error) => ArrowReaderMetadata::load(&reading, plain()).map_err(|_| wrong(error))?,
    };
    let mut refused: Vec<Refused> = Vec::new();
    for column in metadata.parquet_schema().columns() {
        let root = column.path().parts().first().cloned().unwrap_or_default();
        if column.physical_type() == Physical::INT96 && !refused.iter().any(|known| known.column == root) {
            refused.push(Refused { column: root, kind: "INT96".to_owned() });
        }
    }
    let chosen = chosen(metadata.schema(), options);
    let table = match &chosen {
        Some(chosen) => {
            let schema = metadata.schema().project(chosen).map_err(|error| from_arrow(name, error))?;
            refused.retain(|refused| schema.index_of(&refused.column).is_ok());
            Table::from_arrow_refusing(name, &schema, options, refused)?
        }
        None => Table::from_arrow_refusing(name, metadata.schema(), options, refused)?,
    };
    let hinted = ArrowReaderOptions::new().with_schema(hinted(metadata.schema()));
    let metadata = ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), hinted).unwrap_or(metadata);
    let groups = metadata.metadata().row_groups();
    let rows: u64 = groups.iter().map(|group| u64::try_from(group.num_rows()).unwrap_or(0)).sum();
    let bytes: u64 = groups.iter().map(|group| u64::try_from(group.total_byte_size()).unwrap_or(0)).sum();
    let by_bytes = usize::try_from(BATCH_BYTES / (bytes / rows.max(1)).max(1)).unwrap_or(usize::MAX);
    let batch_rows = batch_rows.unwrap_or(by_bytes.clamp(1, BATCH_ROWS));
    let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(reading, metadata);
    if let Some(chosen) = chosen {
        let mask = ProjectionMask::roots(builder.parquet_schema(), chosen);
        builder = builder.with_projection(mask);
    }
    let reader = builder.with_batch_size(batch_rows).build().map_err(wrong)?;
    let mut out = Rows::new(table, reader);
    out.total = Some(rows);
    Ok(out)
}

/// The same columns with texts as views, which share the bytes of pages, and lists that can have any number of elements.
fn hinted(schema: &ArrowSchema) -> SchemaRef {
    let fields: Vec<FieldRef> = schema.fields().iter().map(|field| hinted_field(field)).collect();
    Arc::new(ArrowSchema::new_with_metadata(fields, schema.metadata().clone()))
}

fn hinted_field(field: &ArrowField) -> FieldRef {
    Arc::new(field.clone().with_data_type(hinted_type(field.data_type())))
}

fn hinted_type(kind: &DataType) -> DataType {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::Dictionary(_, values) => hinted_type(values),
        DataType::List(element) | DataType::LargeList(element) => DataType::LargeList(hinted_field(element)),
        other => other.clone(),
    }
}

fn arrow_file(name: &Arc<str>, source: &Arc<dyn ByteSource>, options: &Options) -> Result<Rows, Error> {
    ipc::check_file(source)?;
    let open = |columns| {
        let reader = FileReader::try_new_buffered(Reading::new(Arc::clone(source)), columns);
        reader.map_err(|error| from_arrow(name, error))
    };
    let reader = open(None)?;
    match chosen(&reader.schema(), options) {
        Some(chosen) => {
            // The schema of a reader is that of the file, whatever it reads of it.
            let schema = reader.schema().project(&chosen).map_err(|error| from_arrow(name, error))?;
            Ok(Rows::new(Table::from_arrow(name, &schema, options)?, open(Some(chosen))?))
        }
        None => Ok(Rows::new(Table::from_arrow(name, &reader.schema(), options)?, reader)),
    }
}

fn arrow_stream(name: &Arc<str>, source: &Arc<dyn ByteSource>, options: &Options) -> Result<Rows, Error> {
    ipc::check_stream(source)?;
    let open = |columns| {
        let reader = StreamReader::try_new_buffered(Reading::new(Arc::clone(source)), columns);
        reader.map_err(|error| from_arrow(name, error))
    };
    let reader = open(None)?;
    match chosen(&reader.schema(), options) {
        Some(chosen) => {
            // The schema of a reader is that of the file, whatever it reads of it.
            let schema = reader.schema().project(&chosen).map_err(|error| from_arrow(name, error))?;
            Ok(Rows::new(Table::from_arrow(name, &schema, options)?, open(Some(chosen))?))
        }
        None => Ok(Rows::new(Table::from_arrow(name, &reader.schema(), options)?, reader)),
    }
}

/// The answer of a scan as Arrow batches, none of them larger than some megabytes unless one row is.
pub fn batches(
    scan: &Scan,
    texts: Texts,
) -> Result<impl Iterator<Item = Result<RecordBatch, Error>> + use<>, Error> {
    let table = Table::of_file(scan.file(), scan.positions())?;
    let schema = table.arrow_schema(texts);
    let rows = scan.file().rows_within(scan.positions(), BATCH_BYTES).min(BATCH_ROWS as u64);
    let batches = scan.clone().with_batch_rows(rows).batches();
    Ok(batches.map(move |batch| {
        let batch = batch?;
        let first = batch.rows.first().copied().unwrap_or(0);
        table.batch(&schema, batch.columns, first)
    }))
}

/// The first bytes of a source, to [`detect`] what it is.
pub fn head(source: &dyn ByteSource) -> Result<bytes::Bytes, Error> {
    let span = Span::first(source.len().min(8));
    source.read_at(span).map_err(|error| Error::Source { name: Arc::clone(source.name()), error })
}
