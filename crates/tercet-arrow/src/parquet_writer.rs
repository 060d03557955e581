//! Parquet writer that encodes the columns of a row group on all threads, one column per thread.
//!
//! A compressor takes some hundred kilobytes, and so do the unfinished pages of a column. The parquet crate has them for all columns at the same time;
//! here a column has them while it is encoded, so that tables may have thousands of columns.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, RecordBatch};
use arrow_schema::{FieldRef, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves,
};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use rayon::prelude::*;

use crate::parquet_file::types;

/// Maximum rows of a row group.
const GROUP_ROWS: usize = 1 << 20;
/// Bytes of rows in memory that end a row group.
const GROUP_BYTES: usize = 192 << 20;

/// Columns that are encoded before they are written.
const COLUMNS: usize = 64;

/// Writes record batches to a Parquet file.
pub(crate) struct ParquetWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<ColumnEncoder>,
    rows: usize,
    bytes: usize,
    group_bytes: usize,
}

/// Encodes a column.
struct ColumnEncoder {
    field: FieldRef,
    factory: ArrowRowGroupWriterFactory,
    /// The values of the current row group.
    waiting: Vec<ArrayRef>,
}

impl ColumnEncoder {
    /// Encodes the values of a row group.
    fn encode(&mut self) -> Result<Vec<ArrowColumnChunk>> {
        let mut writers = self.factory.create_column_writers(0)?;
        for array in std::mem::take(&mut self.waiting) {
            for (writer, leaf) in writers.iter_mut().zip(compute_leaves(&self.field, &array)?) {
                writer.write(&leaf)?;
            }
        }
        writers.into_iter().map(ArrowColumnWriter::close).collect()
    }
}

impl<W: Write + Send> ParquetWriter<W> {
    pub(crate) fn new(out: W, schema: &SchemaRef, properties: WriterProperties) -> Result<Self> {
        let options = ArrowWriterOptions::new().with_properties(properties);
        let options = options.with_parquet_schema(types::descriptor(schema)?);
        let (file, _) =
            ArrowWriter::try_new_with_options(out, Arc::clone(schema), options)?.into_serialized_writer()?;
        let mut columns = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let one = Arc::new(Schema::new(vec![Arc::clone(field)]));
            let root = types::descriptor(&one)?.root_schema_ptr();
            let properties = Arc::clone(file.properties());
            let factory = ArrowRowGroupWriterFactory::new(
                &SerializedFileWriter::new(io::sink(), root, properties)?,
                one,
            );
            columns.push(ColumnEncoder { field: Arc::clone(field), factory, waiting: Vec::new() });
        }
        Ok(Self { file, columns, rows: 0, bytes: 0, group_bytes: GROUP_BYTES })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut start = 0;
        while start < batch.num_rows() {
            let rows = (batch.num_rows() - start).min(GROUP_ROWS - self.rows);
            for (column, array) in self.columns.iter_mut().zip(batch.columns()) {
                let array = array.slice(start, rows);
                self.bytes += array.to_data().get_slice_memory_size()?;
                column.waiting.push(array);
            }
            self.rows += rows;
            start += rows;
            if self.rows == GROUP_ROWS || self.bytes >= self.group_bytes {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Ends the row group.
    fn flush(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        (self.rows, self.bytes) = (0, 0);
        let mut group = self.file.next_row_group()?;
        for columns in self.columns.chunks_mut(COLUMNS) {
            let encoded: Vec<Result<_>> = columns.par_iter_mut().map(ColumnEncoder::encode).collect();
            for chunks in encoded {
                chunks?.into_iter().try_for_each(|chunk| chunk.append_to_row_group(&mut group))?;
            }
        }
        group.close()?;
        Ok(())
    }

    /// Finishes the file.
    pub(crate) fn finish(mut self) -> Result<W> {
        self.flush()?;
        self.file.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int32Array, StringArray};
    use arrow_schema::{DataType, Field};
    use bytes::Bytes;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;

    #[test]
    fn groups_end_at_their_size_and_hold_all_rows() {
        let fields = vec![Field::new("n", DataType::Int32, false), Field::new("s", DataType::Utf8, true)];
        let schema = Arc::new(Schema::new(fields));
        let mut writer = ParquetWriter::new(Vec::new(), &schema, WriterProperties::default()).unwrap();
        writer.group_bytes = 2000;
        for start in 0..10 {
            let numbers: Int32Array = (start * 100..start * 100 + 100).collect::<Vec<i32>>().into();
            let strings: StringArray = (0..100).map(|row| (row % 3 > 0).then(|| row.to_string())).collect();
            let columns: Vec<ArrayRef> = vec![Arc::new(numbers), Arc::new(strings)];
            writer.write(&RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()).unwrap();
        }
        let bytes = Bytes::from(writer.finish().unwrap());
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
        assert!(reader.metadata().num_row_groups() > 1);
        assert_eq!(reader.schema(), &schema);
        let mut expected = 0;
        for batch in reader.build().unwrap() {
            let batch = batch.unwrap();
            let numbers = batch.column(0).as_any().downcast_ref::<Int32Array>().unwrap();
            for number in numbers.values() {
                assert_eq!(*number, expected);
                expected += 1;
            }
        }
        assert_eq!(expected, 1000);
    }
}
