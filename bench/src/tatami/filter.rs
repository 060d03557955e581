//! Rows in a range, by arrow-rs as its documentation advises: row groups by statistics, pages by the page index, then a row filter, so that
//! the other columns are decoded for matching rows only.

use std::ops::Range;
use std::path::Path;

use arrow::array::{Array as _, AsArray as _, BooleanArray, Int32Array, Int64Array, RecordBatch, Scalar};
use arrow::compute::and;
use arrow::compute::kernels::cmp;
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use arrow::error::ArrowError;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowFilter,
    RowSelection,
};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;
use rayon::prelude::*;

use super::peer::map;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A column and the range of its values, both ends included.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub column: usize,
    pub low: i64,
    pub high: i64,
}

/// An open file.
#[derive(Debug)]
struct Open {
    bytes: Bytes,
    metadata: ArrowReaderMetadata,
}

impl Open {
    fn new(path: &Path) -> Outcome<Self> {
        let bytes = map(path)?;
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
        let metadata = ArrowReaderMetadata::load(&bytes, options)?;
        Ok(Self { bytes, metadata })
    }

    /// The minimum and the maximum of a row group.
    fn bounds(&self, group: usize, column: usize) -> Option<(i64, i64)> {
        match self.metadata.metadata().row_group(group).column(column).statistics()? {
            Statistics::Int64(bounds) => Some((*bounds.min_opt()?, *bounds.max_opt()?)),
            Statistics::Int32(bounds) => Some(((*bounds.min_opt()?).into(), (*bounds.max_opt()?).into())),
            _ => None,
        }
    }

    /// Rows of a group in pages that can contain a matching value.
    fn pages(&self, group: usize, wanted: Wanted) -> Option<Vec<Range<usize>>> {
        let metadata = self.metadata.metadata();
        let index = metadata.column_index()?.get(group)?.get(wanted.column)?;
        let places = metadata.offset_index()?.get(group)?.get(wanted.column)?.page_locations();
        let rows = metadata.row_group(group).num_rows();
        let mut out = Vec::new();
        for (page, place) in places.iter().enumerate() {
            let (min, max) = match index {
                ColumnIndexMetaData::INT64(bounds) => (*bounds.min_value(page)?, *bounds.max_value(page)?),
                ColumnIndexMetaData::INT32(bounds) => {
                    ((*bounds.min_value(page)?).into(), (*bounds.max_value(page)?).into())
                }
                _ => return None,
            };
            let end = places.get(page + 1).map_or(rows, |next| next.first_row_index);
            if max >= wanted.low && min <= wanted.high {
                out.push(place.first_row_index as usize..end as usize);
            }
        }
        Some(out)
    }

    fn group(&self, group: usize, wanted: Wanted, columns: &[usize]) -> Outcome<Vec<RecordBatch>> {
        let schema = self.metadata.parquet_schema();
        let mask = ProjectionMask::roots(schema, columns.iter().copied());
        let tested = ProjectionMask::roots(schema, [wanted.column]);
        let filter = ArrowPredicateFn::new(tested, move |batch: RecordBatch| check_limit(&batch, wanted));
        let mut builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.bytes.clone(), self.metadata.clone())
                .with_row_groups(vec![group])
                .with_projection(mask)
                .with_batch_size(8192)
                .with_row_filter(RowFilter::new(vec![Box::new(filter)]));
        if let Some(pages) = self.pages(group, wanted) {
            let rows = self.metadata.metadata().row_group(group).num_rows() as usize;
            builder =
                builder.with_row_selection(RowSelection::from_consecutive_ranges(pages.into_iter(), rows));
        }
        Ok(builder.build()?.collect::<Result<_, _>>()?)
    }
}

fn check_limit(batch: &RecordBatch, wanted: Wanted) -> Result<BooleanArray, ArrowError> {
    let column = batch.column(0);
    let number = |value: i64| -> Box<dyn arrow::array::Datum> {
        match column.data_type() {
            DataType::Int32 => Box::new(Scalar::new(Int32Array::from(vec![value as i32]))),
            _ => Box::new(Scalar::new(Int64Array::from(vec![value]))),
        }
    };
    and(&cmp::gt_eq(column, &*number(wanted.low))?, &cmp::lt_eq(column, &*number(wanted.high))?)
}

/// Opens a file and reads the rows of a range, row groups on all threads of the pool.
pub fn rows(path: &Path, wanted: Wanted, columns: &[usize]) -> Outcome<Vec<RecordBatch>> {
    let open = Open::new(path)?;
    let groups: Vec<usize> = (0..open.metadata.metadata().num_row_groups())
        .filter(|group| {
            open.bounds(*group, wanted.column)
                .is_none_or(|(min, max)| max >= wanted.low && min <= wanted.high)
        })
        .collect();
    let found: Vec<Vec<RecordBatch>> =
        groups.par_iter().map(|group| open.group(*group, wanted, columns)).collect::<Outcome<_>>()?;
    Ok(found.into_iter().flatten().collect())
}

/// Opens a file and counts the rows of a range. Row groups inside the range are counted by their statistics.
pub fn count(path: &Path, wanted: Wanted) -> Outcome<u64> {
    let open = Open::new(path)?;
    (0..open.metadata.metadata().num_row_groups())
        .into_par_iter()
        .map(|group| -> Outcome<u64> {
            let all = open.metadata.metadata().row_group(group).num_rows() as u64;
            match open.bounds(group, wanted.column) {
                Some((min, max)) if max < wanted.low || min > wanted.high => return Ok(0),
                Some((min, max)) if min >= wanted.low && max <= wanted.high => return Ok(all),
                _ => {}
            }
            let tested = ProjectionMask::roots(open.metadata.parquet_schema(), [wanted.column]);
            let reader =
                ParquetRecordBatchReaderBuilder::new_with_metadata(open.bytes.clone(), open.metadata.clone())
                    .with_row_groups(vec![group])
                    .with_projection(tested)
                    .with_batch_size(8192)
                    .build()?;
            let mut count = 0;
            for batch in reader {
                count += check_limit(&batch?, wanted)?.true_count() as u64;
            }
            Ok(count)
        })
        .try_reduce(|| 0, |a, b| Ok(a + b))
}

/// Counts the rows of a range by reading the column, like a program that does not count by statistics.
pub fn count_by_values(path: &Path, wanted: Wanted) -> Outcome<u64> {
    let found = rows(path, wanted, &[wanted.column])?;
    Ok(found.iter().map(|batch| batch.num_rows() as u64).sum())
}

/// The sum of the numbers of some batches, to compare results.
pub fn sum(batches: &[RecordBatch]) -> i128 {
    let numbers = batches.iter().flat_map(RecordBatch::columns).map(|array| match array.data_type() {
        DataType::Int64 => {
            array.as_primitive::<Int64Type>().values().iter().map(|value| i128::from(*value)).sum()
        }
        DataType::Int32 => {
            array.as_primitive::<Int32Type>().values().iter().map(|value| i128::from(*value)).sum()
        }
        DataType::Utf8 => {
            array.as_string::<i32>().iter().flatten().map(|text| text.len() as i128).sum::<i128>()
        }
        _ => array.len() as i128,
    });
    numbers.sum()
}
