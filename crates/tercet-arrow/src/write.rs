//! Rows as Parquet and Arrow files.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use tercet_core::Class;
use tercet_tatami::{Column, Values};

use crate::error::Error;
use crate::read::Format;
use crate::table::{Table, Texts};

/// Rows and bytes of a row group of Parquet.
const GROUP_ROWS: usize = 1 << 20;
const GROUP_BYTES: usize = 128 << 20;

/// Bytes of texts in one column that are written together.
const PIECE_BYTES: u64 = 64 << 20;

/// A file of a table that is being written.
pub struct Sink<W: Write + Send> {
    name: Arc<str>,
    table: Table,
    schema: SchemaRef,
    writer: Kind<W>,
    rows: u64,
}

enum Kind<W: Write + Send> {
    Parquet(Box<ArrowWriter<W>>),
    File(Box<FileWriter<W>>),
    Stream(Box<StreamWriter<W>>),
}

/// A file that was written.
#[derive(Debug)]
#[non_exhaustive]
pub struct Written<W> {
    /// Where its bytes went.
    pub output: W,
    /// Its rows.
    pub rows: u64,
}

impl<W: Write + Send> std::fmt::Debug for Sink<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sink").field("name", &self.name).field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<W: Write + Send> Sink<W> {
    /// Starts a file; `name` is what messages call it.
    pub fn new(format: Format, name: &Arc<str>, table: &Table, out: W) -> Result<Self, Error> {
        let mut schema = table.arrow_schema(Texts::Large);
        let writer = match format {
            Format::Parquet => {
                schema = without_seconds(&schema);
                let options = ArrowWriterOptions::new().with_properties(properties());
                let writer = ArrowWriter::try_new_with_options(out, Arc::clone(&schema), options);
                Kind::Parquet(Box::new(writer.map_err(|error| of_parquet(name, error))?))
            }
            Format::ArrowFile => {
                let writer = FileWriter::try_new(out, &schema).map_err(|error| of_arrow(name, error))?;
                Kind::File(Box::new(writer))
            }
            Format::ArrowStream => {
                let writer = StreamWriter::try_new(out, &schema).map_err(|error| of_arrow(name, error))?;
                Kind::Stream(Box::new(writer))
            }
        };
        Ok(Self { name: Arc::clone(name), table: table.clone(), schema, writer, rows: 0 })
    }

    /// Adds rows: one column for each of the table. Rows with many bytes are written a few at a time: texts that share their
    /// bytes in memory do not do so in a file.
    pub fn push(&mut self, columns: Vec<Column>) -> Result<(), Error> {
        let rows = columns.first().map_or(0, Column::len);
        let bytes = columns.iter().map(|column| text_bytes(&column.values)).max().unwrap_or(0);
        let pieces = usize::try_from(bytes.div_ceil(PIECE_BYTES)).unwrap_or(usize::MAX).clamp(1, rows.max(1));
        if pieces == 1 {
            return self.push_piece(columns);
        }
        let most = rows.div_ceil(pieces);
        for start in (0..rows).step_by(most) {
            let cut = |column: &Column| column.part(start, rows.min(start + most));
            self.push_piece(columns.iter().map(cut).collect())?;
        }
        Ok(())
    }

    fn push_piece(&mut self, columns: Vec<Column>) -> Result<(), Error> {
        let batch = self.table.batch(&self.schema, columns, self.rows)?;
        self.rows += batch.num_rows() as u64;
        match &mut self.writer {
            Kind::Parquet(writer) => writer.write(&batch).map_err(|error| of_parquet(&self.name, error)),
            Kind::File(writer) => writer.write(&batch).map_err(|error| of_arrow(&self.name, error)),
            Kind::Stream(writer) => writer.write(&batch).map_err(|error| of_arrow(&self.name, error)),
        }
    }

    /// Completes the file.
    pub fn finish(self) -> Result<Written<W>, Error> {
        let Self { name, writer, rows, .. } = self;
        let output = match writer {
            Kind::Parquet(writer) => writer.into_inner().map_err(|error| of_parquet(&name, error))?,
            Kind::File(writer) => writer.into_inner().map_err(|error| of_arrow(&name, error))?,
            Kind::Stream(writer) => writer.into_inner().map_err(|error| of_arrow(&name, error))?,
        };
        Ok(Written { output, rows })
    }
}

/// Parquet tells times in milliseconds, microseconds and nanoseconds only; as seconds they would be plain numbers to most readers.
fn without_seconds(schema: &SchemaRef) -> SchemaRef {
    fn told(kind: &DataType) -> DataType {
        match kind {
            DataType::Timestamp(TimeUnit::Second, zone) => {
                DataType::Timestamp(TimeUnit::Millisecond, zone.clone())
            }
            DataType::LargeList(element) => DataType::LargeList(field(element)),
            other => other.clone(),
        }
    }
    fn field(field: &Field) -> FieldRef {
        Arc::new(field.clone().with_data_type(told(field.data_type())))
    }
    Arc::new(Schema::new(schema.fields().iter().map(|each| field(each)).collect::<Vec<_>>()))
}

/// Bytes of texts that a column has, each counted where it is used.
fn text_bytes(values: &Values) -> u64 {
    match values {
        Values::Bytes(strings) => strings.total_bytes(),
        Values::List(lists) => text_bytes(&lists.elements.values),
        _ => 0,
    }
}

fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_created_by(concat!("tercet ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_max_row_group_bytes(Some(GROUP_BYTES))
        .build()
}

fn of_parquet(name: &Arc<str>, error: ParquetError) -> Error {
    let name = Arc::clone(name);
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => Error::Write { name, error: *error },
            Err(error) => Error::Format { name, class: Class::Io, told: error.to_string() },
        },
        error => Error::Format { name, class: Class::Unsupported, told: error.to_string() },
    }
}

fn of_arrow(name: &Arc<str>, error: ArrowError) -> Error {
    let name = Arc::clone(name);
    match error {
        ArrowError::IoError(_, error) => Error::Write { name, error },
        error => Error::Format { name, class: Class::Unsupported, told: error.to_string() },
    }
}
