//! Writer of Parquet and Arrow IPC files.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef, TimeUnit};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use tercet_core::Class;
use tercet_tatami::{Column, Values};

use crate::arrow_type::{unsupported, value_type};
use crate::dictionary::Dictionary;
use crate::error::{Error, ErrorKind, UnsupportedColumn, ValueError};
use crate::from_arrow::RowError;
use crate::parquet_file::types;
use crate::parquet_writer::ParquetWriter;
use crate::read::Format;
use crate::table::{StringLayout, Table};

/// Maximum bytes of strings per column that are written at once.
const PIECE_BYTES: u64 = 64 << 20;

/// Bytes of batches held back until the dictionaries of an Arrow file are complete: many programs do not support delta dictionaries.
const HELD_BYTES: usize = 64 << 20;

/// Writes a table to a Parquet or Arrow IPC file.
pub struct TableWriter<W: Write + Send> {
    name: Arc<str>,
    table: Table,
    schema: SchemaRef,
    writer: FormatWriter<W>,
    dictionaries: Vec<Dictionary>,
    held: Option<BufferedBatches>,
    /// The conversion that Parquet requires for each column.
    changes: Vec<Option<Change>>,
    rows: u64,
}

/// Batches held back.
#[derive(Default)]
struct BufferedBatches {
    batches: Vec<RecordBatch>,
    bytes: usize,
}

/// Conversion of values for Parquet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// Times of day in seconds become milliseconds.
    Millis,
    /// Millisecond dates become days, so they must be midnight.
    Days,
}

enum FormatWriter<W: Write + Send> {
    Parquet(Box<ParquetWriter<W>>),
    File(Box<FileWriter<W>>),
    Stream(Box<StreamWriter<W>>),
}

/// A finished file.
#[derive(Debug)]
#[non_exhaustive]
pub struct Written<W> {
    /// The output.
    pub output: W,
    /// Number of rows.
    pub rows: u64,
}

impl<W: Write + Send> std::fmt::Debug for TableWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sink").field("name", &self.name).field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<W: Write + Send> TableWriter<W> {
    /// Starts a file; `name` is used in error messages.
    pub fn new(format: Format, name: &Arc<str>, table: &Table, out: W) -> Result<Self, Error> {
        let mut schema = table.arrow_schema(StringLayout::LargeUtf8);
        let mut changes = vec![None; schema.fields().len()];
        let writer = match format {
            Format::Parquet => {
                let missing: Vec<UnsupportedColumn> = schema
                    .fields()
                    .iter()
                    .filter(|field| !is_in_parquet(field.data_type()))
                    .map(|field| unsupported(field))
                    .collect();
                if !missing.is_empty() {
                    return Err(Error::new(Arc::clone(name), ErrorKind::NotInParquet { columns: missing }));
                }
                changes = schema.fields().iter().map(|field| change(field.data_type())).collect();
                schema = types::parquet_arrow_schema(&schema);
                let writer = ParquetWriter::new(out, &schema, properties(&schema));
                FormatWriter::Parquet(Box::new(writer.map_err(|error| parquet_write_error(name, error))?))
            }
            Format::ArrowFile => {
                // The file format allows delta dictionaries, but no replacement.
                let options = IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta);
                let writer = FileWriter::try_new_with_options(out, &schema, options);
                FormatWriter::File(Box::new(writer.map_err(|error| arrow_write_error(name, error))?))
            }
            Format::ArrowStream => {
                let writer =
                    StreamWriter::try_new(out, &schema).map_err(|error| arrow_write_error(name, error))?;
                FormatWriter::Stream(Box::new(writer))
            }
        };
        let dictionaries = vec![Dictionary::default(); schema.fields().len()];
        let waits = format == Format::ArrowFile && schema.fields().iter().any(|field| is_dictionary(field));
        let held = waits.then(BufferedBatches::default);
        let (name, table) = (Arc::clone(name), table.clone());
        Ok(Self { name, table, schema, writer, dictionaries, held, changes, rows: 0 })
    }

    /// Appends rows: one column per column of the table. Rows with many string bytes are written in pieces: strings that share bytes
    /// in memory do not share them in a file.
    pub fn append(&mut self, columns: Vec<Column>) -> Result<(), Error> {
        let rows = columns.first().map_or(0, Column::len);
        let bytes = columns.iter().map(|column| text_bytes(&column.values)).max().unwrap_or(0);
        let pieces = usize::try_from(bytes.div_ceil(PIECE_BYTES)).unwrap_or(usize::MAX).clamp(1, rows.max(1));
        if pieces == 1 {
            return self.append_piece(columns);
        }
        let most = rows.div_ceil(pieces);
        for start in (0..rows).step_by(most) {
            let cut = |column: &Column| column.slice(start, rows.min(start + most));
            self.append_piece(columns.iter().map(cut).collect())?;
        }
        Ok(())
    }

    fn append_piece(&mut self, mut columns: Vec<Column>) -> Result<(), Error> {
        for (index, change) in self.changes.iter().enumerate() {
            let (Some(change), Some(column)) = (change, columns.get_mut(index)) else { continue };
            changed(column, *change).map_err(|(row, reason)| self.value_error(index, row, reason))?;
        }
        if matches!(self.writer, FormatWriter::File(_))
            || !self.schema.fields().iter().any(|field| is_dictionary(field))
        {
            let batch = self.table.batch_with(&self.schema, columns, self.rows, &mut self.dictionaries)?;
            return self.write(&batch);
        }
        self.append_replacing(columns)
    }

    /// Writes rows with the current dictionaries while their keys suffice; then starts new dictionaries.
    fn append_replacing(&mut self, columns: Vec<Column>) -> Result<(), Error> {
        let rows = columns.first().map_or(0, Column::len);
        let kept = columns.clone();
        match self.table.batch_with(&self.schema, columns, self.rows, &mut self.dictionaries) {
            Err(error) if is_key_overflow(&error) => {}
            made => return self.write(&made?),
        }
        self.dictionaries.fill(Dictionary::default());
        match self.table.batch_with(&self.schema, kept.clone(), self.rows, &mut self.dictionaries) {
            Err(error) if is_key_overflow(&error) && rows > 1 => {
                let part = |from, to| kept.iter().map(|column| column.slice(from, to)).collect();
                let (first, second) = (part(0, rows / 2), part(rows / 2, rows));
                drop(kept);
                self.dictionaries.fill(Dictionary::default());
                self.append_replacing(first)?;
                self.append_replacing(second)
            }
            made => self.write(&made?),
        }
    }

    fn value_error(&self, index: usize, row: usize, reason: ValueError) -> Error {
        let column = self.schema.fields().get(index).map_or_else(String::new, |field| field.name().clone());
        let kind = ErrorKind::Value { column, row: self.rows + row as u64, reason };
        Error::new(Arc::clone(self.table.name()), kind)
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        self.rows += batch.num_rows() as u64;
        let Some(held) = &mut self.held else { return self.write_now(batch) };
        held.bytes = held.bytes.saturating_add(batch.get_array_memory_size());
        held.batches.push(batch.clone());
        if held.bytes > HELD_BYTES { self.release() } else { Ok(()) }
    }

    /// Writes the batches held back, with complete dictionaries.
    fn release(&mut self) -> Result<(), Error> {
        for batch in self.held.take().unwrap_or_default().batches {
            let columns = batch.columns().iter().zip(&self.dictionaries);
            let columns = columns.map(|(array, dictionary)| dictionary.completed(array)).collect();
            let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns);
            self.write_now(&batch.map_err(|error| arrow_write_error(&self.name, error))?)?;
        }
        Ok(())
    }

    fn write_now(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        match &mut self.writer {
            FormatWriter::Parquet(writer) => {
                writer.write(batch).map_err(|error| parquet_write_error(&self.name, error))
            }
            FormatWriter::File(writer) => {
                writer.write(batch).map_err(|error| arrow_write_error(&self.name, error))
            }
            FormatWriter::Stream(writer) => {
                writer.write(batch).map_err(|error| arrow_write_error(&self.name, error))
            }
        }
    }

    /// Finishes the file.
    pub fn finish(mut self) -> Result<Written<W>, Error> {
        self.release()?;
        let Self { name, writer, rows, .. } = self;
        let output = match writer {
            FormatWriter::Parquet(writer) => {
                writer.finish().map_err(|error| parquet_write_error(&name, error))?
            }
            FormatWriter::File(writer) => {
                writer.into_inner().map_err(|error| arrow_write_error(&name, error))?
            }
            FormatWriter::Stream(writer) => {
                writer.into_inner().map_err(|error| arrow_write_error(&name, error))?
            }
        };
        Ok(Written { output, rows })
    }
}

/// Whether the values, or the list elements, are dictionary-encoded.
fn is_dictionary(field: &Field) -> bool {
    match field.data_type() {
        DataType::Dictionary(..) => true,
        DataType::LargeList(element) | DataType::FixedSizeList(element, _) => is_dictionary(element),
        _ => false,
    }
}

/// The conversion that Parquet requires for a type.
fn change(kind: &DataType) -> Option<Change> {
    match value_type(kind) {
        DataType::Time32(TimeUnit::Second) => Some(Change::Millis),
        DataType::Date64 => Some(Change::Days),
        DataType::LargeList(element) | DataType::FixedSizeList(element, _) => change(element.data_type()),
        _ => None,
    }
}

/// Converts the values of a column, or of its list elements.
fn changed(column: &mut Column, change: Change) -> Result<(), RowError> {
    const DAY: i64 = 86_400_000;
    match (&mut column.values, change) {
        (Values::List(lists), _) => {
            let done = changed(&mut lists.elements, change);
            done.map_err(|(at, reason)| {
                let row = lists.ends.iter().position(|end| (at as u64) < *end);
                (row.unwrap_or(0), reason)
            })
        }
        (Values::Int32(values), Change::Millis) => {
            for (row, value) in values.iter_mut().enumerate() {
                let seconds = i64::from(*value);
                *value = value
                    .checked_mul(1000)
                    .ok_or((row, ValueError::TimestampOverflow { value: seconds, unit: "s" }))?;
            }
            Ok(())
        }
        (Values::Int64(values), Change::Days) => {
            let is_day = |millis: i64| millis % DAY == 0 && i32::try_from(millis / DAY).is_ok();
            match values.iter().position(|millis| !is_day(*millis)) {
                Some(row) => Err((row, ValueError::NotADate { millis: values[row] })),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Bytes of the strings of a column.
fn text_bytes(values: &Values) -> u64 {
    match values {
        Values::Bytes(strings) => strings.total_bytes(),
        Values::List(lists) => text_bytes(&lists.elements.values),
        _ => 0,
    }
}

fn properties(schema: &SchemaRef) -> WriterProperties {
    // Schema metadata is also written as Parquet metadata, for readers without Arrow.
    let mut pairs: Vec<KeyValue> =
        schema.metadata().iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
    pairs.sort_by(|a, b| a.key.cmp(&b.key));
    WriterProperties::builder()
        .set_coerce_types(true)
        .set_key_value_metadata(Some(pairs).filter(|pairs| !pairs.is_empty()))
        .set_created_by(concat!("tercet ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .build()
}

/// Whether Parquet has the type: its decimals have no negative scale.
fn is_in_parquet(kind: &DataType) -> bool {
    match kind {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => *scale >= 0,
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::ListView(element)
        | DataType::LargeListView(element)
        | DataType::FixedSizeList(element, _) => is_in_parquet(element.data_type()),
        DataType::Dictionary(_, values) => is_in_parquet(values),
        _ => true,
    }
}

/// Whether the keys of a dictionary do not suffice.
fn is_key_overflow(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Value { reason: ValueError::DictionaryKeyOverflow { .. }, .. })
}

fn parquet_write_error(name: &Arc<str>, error: ParquetError) -> Error {
    let kind = match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => (*error).into(),
            Err(error) => ErrorKind::Format { class: Class::Io, message: error.to_string() },
        },
        error => ErrorKind::Format { class: Class::Unsupported, message: error.to_string() },
    };
    Error::new(Arc::clone(name), kind)
}

fn arrow_write_error(name: &Arc<str>, error: ArrowError) -> Error {
    let kind = match error {
        ArrowError::IoError(_, error) => error.into(),
        error => ErrorKind::Format { class: Class::Unsupported, message: error.to_string() },
    };
    Error::new(Arc::clone(name), kind)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use arrow_array::cast::AsArray as _;
    use arrow_array::types::Int8Type;
    use arrow_ipc::reader::FileReader;
    use arrow_schema::Schema;
    use tercet_tatami::Strings;

    use super::*;
    use crate::options::Options;

    #[test]
    fn types_missing_in_parquet_are_listed() {
        let list = DataType::List(Arc::new(Field::new("item", DataType::Decimal128(4, -1), true)));
        let fields = [("a", DataType::Decimal128(5, -2)), ("b", DataType::Int8), ("c", list)];
        let schema: Vec<Field> = fields.map(|(name, kind)| Field::new(name, kind, true)).into();
        let table = Table::from_arrow(&"in".into(), &Schema::new(schema), &Options::new()).unwrap();
        let error = TableWriter::new(Format::Parquet, &"out".into(), &table, Vec::new()).unwrap_err();
        let ErrorKind::NotInParquet { columns } = error.kind() else { panic!("{error}") };
        assert_eq!(columns.iter().map(|missing| &*missing.column).collect::<Vec<_>>(), ["a", "c"]);
        assert!(TableWriter::new(Format::ArrowFile, &"out".into(), &table, Vec::new()).is_ok());
    }

    #[test]
    fn held_back_batches_have_the_same_values() {
        let kind = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
        let schema = Schema::new(vec![Field::new("coded", kind, false)]);
        let table = Table::from_arrow(&"coded".into(), &schema, &Options::new()).unwrap();
        let batches = [["a", "b"], ["b", "c"], ["a", "d"]];
        for waits in [true, false] {
            let mut writer = TableWriter::new(Format::ArrowFile, &"out".into(), &table, Vec::new()).unwrap();
            writer.held = writer.held.filter(|_| waits);
            for batch in batches {
                let mut strings = Strings::new();
                for text in batch {
                    strings.push(text.as_bytes());
                }
                writer.append(vec![Column::new(Values::Bytes(strings))]).unwrap();
            }
            let written = writer.finish().unwrap();
            assert_eq!(written.rows, 6);
            for (batch, expected) in
                FileReader::try_new(Cursor::new(written.output), None).unwrap().zip(batches)
            {
                let batch = batch.unwrap();
                let coded = batch.column(0).as_dictionary::<Int8Type>();
                let values = coded.values().as_string::<i64>();
                let strings: Vec<&str> = coded
                    .keys()
                    .values()
                    .iter()
                    .map(|key| values.value(usize::try_from(*key).unwrap()))
                    .collect();
                assert_eq!(strings, expected, "{waits}");
            }
        }
    }
}
