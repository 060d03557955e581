//! Reader of Parquet files. Metadata is validated before parquet allocates.

use std::sync::Arc;

use arrow_schema::{DataType, Field as ArrowField, FieldRef, Fields, Schema as ArrowSchema};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::basic::Type as Physical;
use parquet::file::metadata::ParquetMetaData;
use tercet_core::{ByteSource, Class, Span};

use crate::error::{Error, ErrorKind, UnsupportedColumn, from_arrow, from_parquet};
use crate::options::Options;
use crate::read::{BATCH_BYTES, BATCH_ROWS, TableReader, flat_names, flat_schema};
use crate::source::SourceReader;
use crate::table::{Table, chosen};
use crate::unwind::catch_panic;

mod page_check;
mod pages;
mod thrift;
pub(crate) mod types;

use pages::{Checked, Groups};
use thrift::{Item, Stop, walk};
use types::EmbeddedSchema;

/// Length of the metadata length and the magic.
const TAIL_LEN: u64 = 8;
/// Fixed-size value length that is always accepted, even in a shorter file.
const FREE_WIDTH: u64 = 1 << 16;

/// Opens a file.
pub(crate) fn open(
    name: &Arc<str>,
    source: Arc<dyn ByteSource>,
    options: &Options,
    batch_rows: Option<usize>,
) -> Result<TableReader, Error> {
    check_metadata(&*source)?;
    let reading = SourceReader::new(source);
    let below = reading.clone();
    let wrong = |error| below.failure().unwrap_or_else(|| from_parquet(name, error));
    let (metadata, warning) = load(&reading)?;
    let mut rejected: Vec<UnsupportedColumn> = Vec::new();
    for column in metadata.parquet_schema().columns() {
        let root = column.path().parts().first().cloned().unwrap_or_default();
        if column.physical_type() == Physical::INT96 && !rejected.iter().any(|known| known.column == root) {
            rejected.push(UnsupportedColumn { column: root, type_name: "INT96".to_owned() });
        }
    }
    let fields = types::complete(metadata.schema().fields(), metadata.metadata());
    let schema = ArrowSchema::new_with_metadata(fields.clone(), metadata.schema().metadata().clone());
    let names = flat_names(name, &schema, options);
    let chosen = chosen(name, &schema, options)?;
    let mask = || match &chosen {
        Some(chosen) => ProjectionMask::roots(metadata.parquet_schema(), chosen.iter().copied()),
        None => ProjectionMask::all(),
    };
    let schema = match &chosen {
        Some(chosen) => schema.project(chosen).map_err(|error| from_arrow(name, error))?,
        None => schema,
    };
    rejected.retain(|rejected| schema.index_of(&rejected.column).is_ok());
    let (schema, flattened) = flat_schema(name, schema, &names, options)?;
    let table = Table::from_arrow_rejecting(name, &schema, options, rejected)?;
    let levels = |hint: &Fields| parquet_to_arrow_field_levels(metadata.parquet_schema(), mask(), Some(hint));
    let levels = levels(&hinted(&fields)).or_else(|_| levels(&fields)).map_err(wrong)?;
    let groups = Groups {
        reader: Arc::new(Checked { reading, most: options.limits.chunk_bytes }),
        metadata: Arc::clone(metadata.metadata()),
    };
    let rows = total_rows(&groups.metadata);
    let batch_rows = fitting_rows(&groups.metadata, rows, batch_rows);
    let reader = ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, batch_rows, None);
    let reader = reader.map_err(wrong)?;
    let from_file = Arc::clone(name);
    let batches = reader.map(move |batch| {
        batch.map_err(|error| below.failure().unwrap_or_else(|| from_arrow(&from_file, error)))
    });
    let mut out = TableReader::new(table, names, batches);
    out.set_total(rows);
    out.set_flattened(flattened);
    out.warn(warning);
    Ok(out)
}

/// Loads the metadata. If the embedded Arrow schema is damaged, the Parquet types are used, with a warning.
fn load(reading: &SourceReader) -> Result<(ArrowReaderMetadata, Option<String>), Error> {
    let wrong = |error| reading.failure().unwrap_or_else(|| from_parquet(reading.name(), error));
    let plain = || ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let loaded = ArrowReaderMetadata::load(reading, plain()).map_err(wrong)?;
    let metadata = Arc::clone(loaded.metadata());
    let with_arrow = match types::embedded_schema(&metadata) {
        None => return Ok((loaded, None)),
        Some(EmbeddedSchema::Valid(_)) => {
            catch_panic(|| ArrowReaderMetadata::try_new(metadata, ArrowReaderOptions::new()))
                .and_then(Result::ok)
        }
        Some(EmbeddedSchema::Malformed) => None,
    };
    let warning = "malformed Arrow schema (`ARROW:schema`): using the Parquet types";
    Ok(with_arrow.map_or_else(|| (loaded, Some(warning.to_owned())), |metadata| (metadata, None)))
}

/// Validates the footer: the bytes of all listed elements must exist.
fn check_metadata(source: &dyn ByteSource) -> Result<(), Error> {
    let wrong = |message: String| {
        Err(Error::new(Arc::clone(source.name()), ErrorKind::Format { class: Class::Malformed, message }))
    };
    let read = |span: Option<Span>| match span {
        Some(span) => source
            .read_at(span)
            .map(Some)
            .map_err(|error| Error::new(Arc::clone(source.name()), error.into())),
        None => Ok(None),
    };
    let tail = source.len().checked_sub(TAIL_LEN);
    let Some(bytes) = read(tail.and_then(|start| Span::at(start, TAIL_LEN)))? else {
        return wrong("truncated Parquet file".to_owned());
    };
    let (Some(tail), Some((len, b"PAR1"))) = (tail, bytes.split_first_chunk::<4>()) else {
        // Not Parquet, or encrypted: the parquet crate reports it.
        return Ok(());
    };
    let len = u64::from(u32::from_le_bytes(*len));
    let Some(bytes) = read(tail.checked_sub(len).and_then(|start| Span::at(start, len)))? else {
        return wrong(format!("metadata of {len} bytes in a file of {} bytes", source.len()));
    };
    let (mut nodes, widest) = (0, source.len().max(FREE_WIDTH));
    let walked = walk(&bytes, &mut |path, item| match (path, item) {
        ([2], Item::List(count)) => {
            nodes = count;
            Ok(())
        }
        // The children of a group, and the length of fixed-size values.
        ([2, 5], Item::Number(count)) if u64::try_from(count).is_ok_and(|count| count > nodes) => {
            Err(format!("a group of {count} columns in a schema of {nodes}"))
        }
        ([2, 2], Item::Number(width)) if u64::try_from(width).is_ok_and(|width| width > widest) => {
            Err(format!("values of {width} bytes in a file of {}", source.len()))
        }
        _ => Ok(()),
    });
    match walked {
        Ok(_) => Ok(()),
        Err(Stop::Short) => wrong("truncated metadata".to_owned()),
        Err(Stop::Wrong(message)) => wrong(format!("malformed metadata: {message}")),
    }
}

fn total_rows(metadata: &ParquetMetaData) -> u64 {
    let rows = metadata.row_groups().iter().map(|group| u64::try_from(group.num_rows()).unwrap_or(0));
    rows.fold(0, u64::saturating_add)
}

/// Rows per batch: as requested, or by size. Fixed-size values take their length even if null.
fn fitting_rows(metadata: &ParquetMetaData, rows: u64, requested: Option<usize>) -> usize {
    let inside = |per_row: u64| usize::try_from(BATCH_BYTES / per_row.max(1)).unwrap_or(usize::MAX).max(1);
    let bytes = metadata.row_groups().iter().map(|group| u64::try_from(group.total_byte_size()).unwrap_or(0));
    let bytes = bytes.fold(0, u64::saturating_add);
    let columns = metadata.file_metadata().schema_descr().columns();
    let fixed = columns.iter().filter(|column| column.physical_type() == Physical::FIXED_LEN_BYTE_ARRAY);
    let fixed = fixed.map(|column| u64::try_from(column.type_length()).unwrap_or(0));
    let fixed = inside(fixed.fold(0, u64::saturating_add));
    let usual = inside(bytes / rows.max(1)).min(BATCH_ROWS);
    let all = usize::try_from(rows).unwrap_or(usize::MAX).max(1);
    requested.unwrap_or(usual).max(1).min(fixed).min(all)
}

/// The same fields with strings as views, which share the bytes of pages, and lists with 64-bit offsets.
fn hinted(fields: &Fields) -> Fields {
    fields.iter().map(|field| hinted_field(field)).collect()
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
