//! Parquet, by arrow-rs: Zstandard, dictionaries, statistics of chunks and pages, page index.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch, Scalar, StringArray, UInt64Array};
use arrow::array::{BooleanArray, Int64Array};
use arrow::compute::kernels::cmp;
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::{DataType, Int64Type, Schema, SchemaRef};
use arrow::error::ArrowError;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowFilter, RowSelection,
};
use parquet::arrow::arrow_writer::{ArrowColumnChunk, compute_leaves};
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::properties::WriterProperties;
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnPath;
use rayon::prelude::*;

use super::data::Case;
use super::{GROUP_ROWS, Key, LEVEL};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Writer properties; `page_rows` sets the rows per page instead of the library's choice.
fn properties(case: &Case, page_rows: Option<usize>) -> Outcome<WriterProperties> {
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
        .set_max_row_group_row_count(Some(GROUP_ROWS));
    if let Some(rows) = page_rows {
        builder = builder.set_data_page_row_count_limit(rows);
    }
    for index in &case.bloom {
        let path = ColumnPath::new(vec![case.schema.field(*index).name().clone()]);
        builder = builder
            .set_column_bloom_filter_enabled(path.clone(), true)
            .set_column_bloom_filter_fpp(path.clone(), 0.01)
            .set_column_bloom_filter_max_ndv(path, GROUP_ROWS as u64);
    }
    Ok(builder.build())
}

/// The rows as the bytes of a file. With more than one thread, columns of a row group are encoded in parallel.
pub fn write(case: &Case, page_rows: Option<usize>, threads: u64) -> Outcome<Vec<u8>> {
    let schema = Arc::clone(&case.schema);
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties(case, page_rows)?))?;
    if threads == 1 {
        for batch in &case.batches {
            writer.write(batch)?;
        }
        return Ok(writer.into_inner()?);
    }
    let (mut file, factory) = writer.into_serialized_writer()?;
    for (group, batch) in case.batches.iter().enumerate() {
        let columns = factory.create_column_writers(group)?;
        let fields = case.schema.fields();
        let chunks: Vec<ArrowColumnChunk> = columns
            .into_par_iter()
            .zip(batch.columns().par_iter().zip(fields.par_iter()))
            .map(|(mut writer, (array, field))| -> Outcome<ArrowColumnChunk> {
                for leaf in compute_leaves(field, array)? {
                    writer.write(&leaf)?;
                }
                Ok(writer.close()?)
            })
            .collect::<Outcome<_>>()?;
        let mut out = file.next_row_group()?;
        for chunk in chunks {
            chunk.append_to_row_group(&mut out)?;
        }
        out.close()?;
    }
    Ok(file.into_inner()?)
}

/// An open file: metadata and page index are in memory, the bytes are mapped.
#[derive(Debug)]
pub struct Peer {
    bytes: Bytes,
    metadata: ArrowReaderMetadata,
    /// Minimum and maximum key of each row group, and its pages.
    groups: Vec<(Key, Key, Vec<KeyPage>)>,
}

/// A page of the key.
#[derive(Debug)]
struct KeyPage {
    min: Key,
    max: Key,
    rows: Range<usize>,
}

/// Maps a file.
pub fn map(path: &Path) -> Outcome<Bytes> {
    let file = std::fs::File::open(path)?;
    // SAFETY: nothing changes the file while the benchmark runs.
    let map = unsafe { memmap2::Mmap::map(&file)? };
    Ok(Bytes::from_owner(map))
}

impl Peer {
    /// Opens a file; `views` returns strings as views into decoded pages instead of one buffer per batch.
    pub fn open(path: &Path, key: Option<usize>, views: bool) -> Outcome<Self> {
        let bytes = map(path)?;
        let options = || ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
        let mut metadata = ArrowReaderMetadata::load(&bytes, options())?;
        if views {
            let schema = with_views(metadata.schema());
            metadata = ArrowReaderMetadata::load(&bytes, options().with_schema(schema))?;
        }
        let groups = match key {
            Some(key) => key_pages(&metadata, key)?,
            None => Vec::new(),
        };
        Ok(Self { bytes, metadata, groups })
    }

    fn group_rows(&self, group: usize) -> usize {
        self.metadata.metadata().row_group(group).num_rows() as usize
    }

    /// The number of row groups.
    pub fn group_count(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    fn builder(&self, group: usize, columns: &[usize]) -> ParquetRecordBatchReaderBuilder<Bytes> {
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), columns.iter().copied());
        ParquetRecordBatchReaderBuilder::new_with_metadata(self.bytes.clone(), self.metadata.clone())
            .with_row_groups(vec![group])
            .with_projection(mask)
    }

    /// Batches of some columns of a row group.
    pub fn scan(
        &self,
        group: usize,
        columns: &[usize],
        batch_rows: usize,
    ) -> Outcome<ParquetRecordBatchReader> {
        Ok(self.builder(group, columns).with_batch_size(batch_rows).build()?)
    }

    /// The row group and the rows of the pages that can contain a key. Statistics of long strings are truncated, so that they may
    /// match more than one page.
    fn candidates(&self, key: &Key) -> Option<(usize, Range<usize>)> {
        let group = self.groups.partition_point(|(_, max, _)| max < key);
        let (_, _, pages) = self.groups.get(group).filter(|(min, ..)| min <= key)?;
        let first = pages.partition_point(|page| page.max < *key);
        let end = pages.partition_point(|page| page.min <= *key);
        (first < end).then(|| (group, pages[first].rows.start..pages[end - 1].rows.end))
    }

    /// Position of a key: row group, row in it. Statistics and page index leave a page or two, whose keys are read.
    pub fn find(&self, column: usize, key: &Key) -> Outcome<Option<(usize, usize)>> {
        let Some((group, rows)) = self.candidates(key) else { return Ok(None) };
        let selection =
            RowSelection::from_consecutive_ranges(std::iter::once(rows.clone()), self.group_rows(group));
        let reader = self
            .builder(group, &[column])
            .with_batch_size(rows.len())
            .with_row_selection(selection)
            .build()?;
        let mut before = rows.start;
        for batch in reader {
            let batch = batch?;
            let (at, found) = position(batch.column(0), key);
            if found {
                return Ok(Some((group, before + at)));
            }
            before += batch.num_rows();
        }
        Ok(None)
    }

    /// The first row of a key: `find`, then a reader for that row.
    pub fn fetch(&self, key_column: usize, key: &Key, columns: &[usize]) -> Outcome<Option<RecordBatch>> {
        let Some((group, row)) = self.find(key_column, key)? else { return Ok(None) };
        self.rows_of_group(group, &[row], columns).map(Some)
    }

    /// The same by a row filter on the page that can contain the key.
    pub fn fetch_filtered(
        &self,
        key_column: usize,
        key: &Key,
        columns: &[usize],
    ) -> Outcome<Option<RecordBatch>> {
        let Some((group, rows)) = self.candidates(key) else { return Ok(None) };
        let selection =
            RowSelection::from_consecutive_ranges(std::iter::once(rows.clone()), self.group_rows(group));
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), [key_column]);
        let wanted = key.clone();
        let filter = ArrowPredicateFn::new(mask, move |batch: RecordBatch| equal(batch.column(0), &wanted));
        let mut reader = self
            .builder(group, columns)
            .with_batch_size(rows.len())
            .with_row_selection(selection)
            .with_row_filter(RowFilter::new(vec![Box::new(filter)]))
            .with_limit(1)
            .build()?;
        Ok(reader.next().transpose()?)
    }

    fn rows_of_group(&self, group: usize, rows: &[usize], columns: &[usize]) -> Outcome<RecordBatch> {
        let ranges = rows.iter().map(|row| *row..row + 1);
        let selection = RowSelection::from_consecutive_ranges(ranges, self.group_rows(group));
        let builder = self.builder(group, columns);
        let schema = Arc::new(builder.schema().project(&sorted(columns))?);
        let reader = builder.with_batch_size(rows.len()).with_row_selection(selection).build()?;
        let batches: Vec<RecordBatch> = reader.collect::<Result<_, _>>()?;
        match <[RecordBatch; 1]>::try_from(batches) {
            Ok([batch]) => Ok(batch),
            Err(batches) => Ok(concat_batches(&schema, &batches)?),
        }
    }

    /// Rows by number, in the requested order. Only the pages that contain them are read. With more than one thread, row groups
    /// and halves of the columns are read in parallel.
    pub fn take(&self, rows: &[u64], columns: &[usize], threads: usize) -> Outcome<Vec<ArrayRef>> {
        let mut wanted: Vec<(u64, u64)> = rows.iter().copied().zip(0..).collect();
        wanted.sort_unstable();
        let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
        for (row, _) in &wanted {
            // All row groups but the last have the same number of rows.
            let (group, row) = (*row as usize / GROUP_ROWS, *row as usize % GROUP_ROWS);
            match groups.last_mut().filter(|(last, _)| *last == group) {
                Some((_, rows)) => rows.push(row),
                None => groups.push((group, vec![row])),
            }
        }
        let mut order = vec![0; rows.len()];
        for (index, (_, place)) in wanted.iter().enumerate() {
            order[*place as usize] = index as u64;
        }
        let order = UInt64Array::from(order);
        let part = |columns: &[usize]| -> Outcome<RecordBatch> {
            let read = |(group, rows): &(usize, Vec<usize>)| self.rows_of_group(*group, rows, columns);
            let batches: Vec<RecordBatch> = if threads > 1 {
                groups.par_iter().map(read).collect::<Outcome<_>>()?
            } else {
                groups.iter().map(read).collect::<Outcome<_>>()?
            };
            let whole = concat_batches(&batches[0].schema(), &batches)?;
            Ok(take_record_batch(&whole, &order)?)
        };
        let parts: Vec<&[usize]> = columns.chunks(columns.len().div_ceil(threads)).collect();
        let batches: Vec<RecordBatch> = if threads > 1 {
            parts.par_iter().map(|columns| part(columns)).collect::<Outcome<_>>()?
        } else {
            parts.iter().map(|columns| part(columns)).collect::<Outcome<_>>()?
        };
        Ok(batches.iter().flat_map(|batch| batch.columns().to_vec()).collect())
    }
}

fn sorted(columns: &[usize]) -> Vec<usize> {
    let mut sorted = columns.to_vec();
    sorted.sort_unstable();
    sorted
}

fn with_views(schema: &SchemaRef) -> SchemaRef {
    let field = |field: &arrow::datatypes::FieldRef| match field.data_type() {
        DataType::Utf8 => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View)),
        _ => Arc::clone(field),
    };
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

/// The first position without a smaller key, and whether it has this one.
fn position(keys: &ArrayRef, key: &Key) -> (usize, bool) {
    match key {
        Key::Number(key) => {
            let keys = keys.as_primitive::<Int64Type>().values();
            let at = keys.partition_point(|value| value < key);
            (at, keys.get(at) == Some(key))
        }
        Key::Text(key) => {
            let keys = keys.as_string::<i32>();
            let (mut low, mut high) = (0, keys.len());
            while low < high {
                let middle = usize::midpoint(low, high);
                if keys.value(middle).as_bytes() < &key[..] {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            (low, low < keys.len() && keys.value(low).as_bytes() == &key[..])
        }
    }
}

fn equal(keys: &ArrayRef, key: &Key) -> Result<BooleanArray, ArrowError> {
    match key {
        Key::Number(key) => cmp::eq(keys, &Scalar::new(Int64Array::from(vec![*key]))),
        Key::Text(key) => {
            let text = String::from_utf8_lossy(key);
            cmp::eq(keys, &Scalar::new(StringArray::from(vec![text.as_ref()])))
        }
    }
}

/// Statistics and page index of the key.
fn key_pages(metadata: &ArrowReaderMetadata, key: usize) -> Outcome<Vec<(Key, Key, Vec<KeyPage>)>> {
    let metadata = metadata.metadata();
    let (Some(columns), Some(offsets)) = (metadata.column_index(), metadata.offset_index()) else {
        return Err("no page index".into());
    };
    let mut groups = Vec::new();
    for (index, group) in metadata.row_groups().iter().enumerate() {
        let (min, max) = match group.column(key).statistics() {
            Some(Statistics::Int64(bounds)) => match (bounds.min_opt(), bounds.max_opt()) {
                (Some(min), Some(max)) => (Key::Number(*min), Key::Number(*max)),
                _ => return Err("no bounds".into()),
            },
            Some(Statistics::ByteArray(bounds)) => match (bounds.min_bytes_opt(), bounds.max_bytes_opt()) {
                (Some(min), Some(max)) => (Key::Text(min.to_vec()), Key::Text(max.to_vec())),
                _ => return Err("no bounds".into()),
            },
            _ => return Err("no statistics".into()),
        };
        let places = offsets[index][key].page_locations();
        let mut pages = Vec::new();
        for (page, place) in places.iter().enumerate() {
            let end = places.get(page + 1).map_or(group.num_rows(), |next| next.first_row_index);
            let (min, max) = match &columns[index][key] {
                ColumnIndexMetaData::INT64(bounds) => (
                    Key::Number(*bounds.min_value(page).ok_or("no bounds")?),
                    Key::Number(*bounds.max_value(page).ok_or("no bounds")?),
                ),
                ColumnIndexMetaData::BYTE_ARRAY(bounds) => (
                    Key::Text(bounds.min_value(page).ok_or("no bounds")?.to_vec()),
                    Key::Text(bounds.max_value(page).ok_or("no bounds")?.to_vec()),
                ),
                _ => return Err("no bounds of the key's type".into()),
            };
            pages.push(KeyPage { min, max, rows: place.first_row_index as usize..end as usize });
        }
        groups.push((min, max, pages));
    }
    Ok(groups)
}

/// Opens a file and reads one column: the metadata without page index, the default of the library.
pub fn read_column(path: &Path, column: usize) -> Outcome<RecordBatch> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(map(path)?)?;
    let mask = ProjectionMask::roots(builder.parquet_schema(), [column]);
    let schema = Arc::new(builder.schema().project(&[column])?);
    let reader = builder.with_projection(mask).with_batch_size(1 << 16).build()?;
    let batches: Vec<RecordBatch> = reader.collect::<Result<_, _>>()?;
    Ok(concat_batches(&schema, &batches)?)
}
