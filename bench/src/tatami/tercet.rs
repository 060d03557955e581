//! `.tatami`, by this project's library.

use std::io::Cursor;
use std::path::Path;

use arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch};
use arrow::datatypes::{DataType, Int32Type, Int64Type, TimestampMicrosecondType, UInt16Type};
use tercet_tatami::{Column, ErrorKind, Field, File, Scalar, Schema, Type, Values, Writer, WriterOptions};

use super::data::Case;
use super::{GROUP_ROWS, Key, LEVEL};

/// Writer options: the defaults, except for the rows of a page, the bytes of a run of blobs, and that row groups end by rows
/// only, like those of the peer.
pub fn options(page_rows: u32, run_bytes: u64) -> WriterOptions {
    WriterOptions::new()
        .with_level(LEVEL)
        .with_row_group_max_rows(GROUP_ROWS as u64)
        .with_row_group_max_bytes(1 << 40)
        .with_page_max_values(page_rows)
        .with_blob_run_target_bytes(run_bytes)
}

/// The columns of a case.
pub fn schema(case: &Case) -> Schema {
    let fields = case.schema.fields().iter().enumerate().map(|(index, field)| {
        let kind = match field.data_type() {
            DataType::Int32 => Type::Int32,
            DataType::Int64 => Type::Int64,
            DataType::UInt16 => Type::UInt16,
            DataType::Timestamp(..) => Type::TimestampMicros,
            DataType::Utf8 => Type::String,
            DataType::Binary if case.blob == Some(index) => Type::BlobRef,
            DataType::Binary => Type::Bytes,
            other => panic!("no column type for {other}"),
        };
        let mut out = Field::new(field.name().as_str(), kind);
        if case.key == Some(index) {
            out = out.with_sort_key();
        }
        if case.bloom.contains(&index) {
            out = out.with_bloom();
        }
        out
    });
    Schema::new(fields.collect()).expect("columns that a file can have")
}

/// The rows of a batch as columns.
pub fn columns(batch: &RecordBatch) -> Vec<Column> {
    batch.columns().iter().map(|array| Column::new(values(array))).collect()
}

fn values(array: &ArrayRef) -> Values {
    match array.data_type() {
        DataType::Int32 => Values::Int32(array.as_primitive::<Int32Type>().values().to_vec()),
        DataType::Int64 => Values::Int64(array.as_primitive::<Int64Type>().values().to_vec()),
        DataType::UInt16 => Values::UInt16(array.as_primitive::<UInt16Type>().values().to_vec()),
        DataType::Timestamp(..) => {
            Values::Int64(array.as_primitive::<TimestampMicrosecondType>().values().to_vec())
        }
        DataType::Utf8 => Values::Bytes(array.as_string::<i32>().iter().flatten().collect()),
        DataType::Binary => Values::Bytes(array.as_binary::<i32>().iter().flatten().collect()),
        other => panic!("no values for {other}"),
    }
}

/// The rows as the bytes of a file.
pub fn write(schema: Schema, batches: &[Vec<Column>], options: WriterOptions) -> Result<Vec<u8>, ErrorKind> {
    let mut writer = Writer::new(Cursor::new(Vec::new()), schema, options)?;
    for batch in batches {
        writer.append(batch)?;
    }
    Ok(writer.finish()?.output)
}

/// A key as the library expects it.
pub fn scalar(key: &Key) -> Scalar {
    match key {
        Key::Number(key) => Scalar::Int64(*key),
        Key::Text(key) => Scalar::Bytes(key.clone()),
    }
}

/// The value of a column in one row, as a key.
pub fn key(column: &Column, row: usize) -> Key {
    match &column.values {
        Values::Int64(values) => Key::Number(values[row]),
        Values::Bytes(values) => Key::Text(values.get(row).to_vec()),
        other => panic!("no key of {}", other.type_name()),
    }
}

/// Opens a file.
pub fn open(path: &Path) -> File {
    File::open(path).unwrap_or_else(|error| panic!("{error}"))
}
