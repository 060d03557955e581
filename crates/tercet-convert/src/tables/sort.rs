//! Sorting of tables larger than memory: sorted runs in temporary files, then a merge.
//!
//! Runs are `.tatami` files without a name, next to the output: they vanish with the process.

use std::cmp::Ordering;
use std::fs;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tercet_core::source;
use tercet_core::{Class, Diagnostic, Sink};
use tercet_tatami::format::Codec;
use tercet_tatami::scan::Batches;
use tercet_tatami::{Column, Field, File, ReadOptions, Schema, Type, Values, Writer, WriterOptions};

/// Bytes of rows that are sorted in memory.
const RUN_BYTES: usize = 64 << 20;
/// Bytes of rows in memory while runs are merged.
const MERGE_BYTES: u64 = 96 << 20;

/// Error of a sort.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SortError {
    /// A temporary file could not be made.
    #[error("cannot create a temporary file: {0}")]
    Temporary(io::Error),
    /// A run could not be written or read.
    #[error(transparent)]
    Run(#[from] tercet_tatami::Error),
    /// The column has no order.
    #[error("cannot sort by a {0} column")]
    Key(&'static str),
}

impl Diagnostic for SortError {
    fn class(&self) -> Class {
        match self {
            Self::Temporary(_) => Class::Io,
            Self::Run(error) => error.class(),
            Self::Key(_) => Class::Request,
        }
    }
}

/// Sorts rows by a column. Rows with equal keys keep their order; NaN and nulls are last.
#[derive(Debug)]
pub struct Sorter {
    schema: Schema,
    key: usize,
    directory: Option<PathBuf>,
    run_bytes: usize,
    /// The rows of the current run.
    waiting: Vec<Column>,
    bytes: usize,
    runs: Vec<File>,
}

impl Sorter {
    /// Sorts the rows of a schema by the column at `key`. Temporary files are in `directory`, or that of the system.
    pub fn new(schema: &Schema, key: usize, directory: Option<&Path>) -> Result<Self, SortError> {
        // A run has plain columns without roles.
        let plain = |field: &Field| {
            let kind = if field.kind == Type::BlobRef { Type::Bytes } else { field.kind };
            let mut out = match field.kind {
                Type::List => Field::list(field.name.clone(), field.scalar()),
                _ => Field::new(field.name.clone(), kind),
            };
            out.nullable = true;
            out
        };
        let fields: Vec<Field> = schema.fields().iter().map(plain).collect();
        if fields.get(key).is_some_and(|field| field.kind == Type::List) {
            return Err(SortError::Key("list"));
        }
        let waiting = fields.iter().map(Column::empty).collect();
        let schema = Schema::new(fields).map_err(|_| SortError::Key("missing"))?;
        let directory = directory.map(Path::to_path_buf);
        Ok(Self { schema, key, directory, run_bytes: RUN_BYTES, waiting, bytes: 0, runs: Vec::new() })
    }

    /// Sets the bytes of rows that are sorted in memory.
    pub fn with_run_bytes(mut self, bytes: usize) -> Self {
        self.run_bytes = bytes;
        self
    }

    /// Adds rows.
    pub fn push(&mut self, columns: &[Column]) -> Result<(), SortError> {
        for (mine, theirs) in self.waiting.iter_mut().zip(columns) {
            mine.extend_from(theirs, 0, theirs.len());
            self.bytes += size(theirs);
        }
        if self.bytes >= self.run_bytes {
            self.spill()?;
        }
        Ok(())
    }

    /// The number of runs in temporary files.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    fn take_sorted(&mut self) -> Vec<Column> {
        self.bytes = 0;
        let rows = self.waiting.first().map_or(0, Column::len);
        let order = sorted(&self.waiting[self.key], rows);
        let empty = self.schema.fields().iter().map(Column::empty);
        let waiting = std::mem::replace(&mut self.waiting, empty.collect());
        waiting.into_iter().map(|column| column.take(&order)).collect()
    }

    /// Writes the rows in memory as a run.
    fn spill(&mut self) -> Result<(), SortError> {
        let columns = self.take_sorted();
        let file = match &self.directory {
            Some(directory) => tempfile::tempfile_in(directory),
            None => tempfile::tempfile(),
        };
        let sink = Unnamed(BufWriter::with_capacity(1 << 18, file.map_err(SortError::Temporary)?));
        let options = WriterOptions::new().with_codec(Codec::None).with_row_group_max_rows(16_384);
        let mut writer = Writer::new(sink, self.schema.clone(), options)?.with_name("temporary file");
        let rows = columns.first().map_or(0, Column::len);
        for start in (0..rows).step_by(16_384) {
            let end = rows.min(start + 16_384);
            let part: Vec<Column> = columns.iter().map(|column| column.slice(start, end)).collect();
            writer.append(&part)?;
        }
        let file = writer.finish()?.output;
        let source = source::File::from_handle("temporary file", file)
            .map_err(|error| SortError::Temporary(io::Error::other(error)))?;
        // Its own bytes of a moment ago.
        self.runs.push(File::from_source(Arc::new(source), ReadOptions::new())?);
        Ok(())
    }

    /// Passes all rows on in order.
    pub fn finish<E: From<SortError>>(
        mut self,
        mut each: impl FnMut(Vec<Column>) -> Result<(), E>,
    ) -> Result<(), E> {
        const ROWS: usize = 65_536;
        if self.runs.is_empty() {
            let columns = self.take_sorted();
            let rows = columns.first().map_or(0, Column::len);
            for start in (0..rows).step_by(ROWS) {
                let end = rows.min(start + ROWS);
                each(columns.iter().map(|column| column.slice(start, end)).collect())?;
            }
            return Ok(());
        }
        if self.waiting.first().is_some_and(|column| !column.is_empty()) {
            self.spill()?;
        }
        self.merge(each)
    }

    fn merge<E: From<SortError>>(self, mut each: impl FnMut(Vec<Column>) -> Result<(), E>) -> Result<(), E> {
        let columns: Vec<usize> = (0..self.schema.len()).collect();
        let bytes = MERGE_BYTES / self.runs.len() as u64;
        let mut heads = Vec::new();
        for file in &self.runs {
            let rows = file.estimate_batch_rows(&columns, bytes).clamp(1, 65_536);
            let scan = file.scan().column_positions(&columns).map_err(SortError::Run)?;
            let mut head = Head { batches: scan.with_batch_rows(rows).batches(), next: None, columns: None };
            head.refill()?;
            heads.push(head);
        }
        loop {
            // The least key after which another batch of its run may have smaller ones than the other runs.
            let mut bound: Option<(usize, &Column, usize)> = None;
            for (run, head) in heads.iter().enumerate() {
                if let (Some(columns), Some(_)) = (&head.columns, &head.next) {
                    let key = &columns[self.key];
                    let last = key.len().saturating_sub(1);
                    let is_less = |(_, other, row): (usize, &Column, usize)| {
                        compare(key, last, other, row) == Ordering::Less
                    };
                    if bound.is_none_or(is_less) {
                        bound = Some((run, key, last));
                    }
                }
            }
            let cut = |run: usize, key: &Column| match bound {
                None => key.len(),
                Some((at, other, row)) => partition(key, |mine| {
                    let order = compare(key, mine, other, row);
                    // Equal keys of later runs wait for those of this one.
                    order == Ordering::Less || order == Ordering::Equal && run <= at
                }),
            };
            let cuts: Vec<usize> = heads
                .iter()
                .enumerate()
                .map(|(run, head)| head.columns.as_ref().map_or(0, |columns| cut(run, &columns[self.key])))
                .collect();
            let mut out: Vec<Column> = self.schema.fields().iter().map(Column::empty).collect();
            for (head, cut) in heads.iter_mut().zip(cuts) {
                head.take(cut, &mut out)?;
            }
            let rows = out.first().map_or(0, Column::len);
            if rows == 0 {
                return Ok(());
            }
            let order = sorted(&out[self.key], rows);
            each(out.into_iter().map(|column| column.take(&order)).collect())?;
        }
    }
}

/// The current batch of a run.
struct Head {
    batches: Batches,
    /// The batch after it.
    next: Option<Vec<Column>>,
    columns: Option<Vec<Column>>,
}

impl Head {
    fn read(&mut self) -> Result<Option<Vec<Column>>, SortError> {
        Ok(self.batches.next().transpose()?.map(|batch| batch.columns))
    }

    fn refill(&mut self) -> Result<(), SortError> {
        if self.columns.is_none() {
            self.columns = match self.next.take() {
                Some(columns) => Some(columns),
                None => self.read()?,
            };
        }
        if self.next.is_none() {
            self.next = self.read()?;
        }
        Ok(())
    }

    /// Moves the first rows to `out`.
    fn take(&mut self, rows: usize, out: &mut [Column]) -> Result<(), SortError> {
        let Some(columns) = &mut self.columns else { return Ok(()) };
        let len = columns.first().map_or(0, Column::len);
        for (out, column) in out.iter_mut().zip(columns.iter()) {
            out.extend_from(column, 0, rows);
        }
        if rows < len {
            for column in columns.iter_mut() {
                *column = column.slice(rows, len);
            }
            return Ok(());
        }
        self.columns = None;
        self.refill()
    }
}

/// The rows in order of the key.
fn sorted(key: &Column, rows: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows).collect();
    order.sort_by(|a, b| compare(key, *a, key, *b));
    order
}

/// The number of leading rows that match a predicate.
fn partition(key: &Column, holds: impl Fn(usize) -> bool) -> usize {
    let (mut from, mut to) = (0, key.len());
    while from < to {
        let middle = from.midpoint(to);
        if holds(middle) { from = middle + 1 } else { to = middle }
    }
    from
}

/// Compares two rows of columns of one type: values, then NaN, then nulls.
fn compare(a: &Column, i: usize, b: &Column, j: usize) -> Ordering {
    match (a.is_present(i), b.is_present(j)) {
        (true, true) => {}
        (mine, theirs) => return theirs.cmp(&mine),
    }
    match (&a.values, &b.values) {
        (Values::Bool(a), Values::Bool(b)) => a[i].cmp(&b[j]),
        (Values::Int8(a), Values::Int8(b)) => a[i].cmp(&b[j]),
        (Values::Int16(a), Values::Int16(b)) => a[i].cmp(&b[j]),
        (Values::Int32(a), Values::Int32(b)) => a[i].cmp(&b[j]),
        (Values::Int64(a), Values::Int64(b)) => a[i].cmp(&b[j]),
        (Values::UInt8(a), Values::UInt8(b)) => a[i].cmp(&b[j]),
        (Values::UInt16(a), Values::UInt16(b)) => a[i].cmp(&b[j]),
        (Values::UInt32(a), Values::UInt32(b)) => a[i].cmp(&b[j]),
        (Values::UInt64(a), Values::UInt64(b)) => a[i].cmp(&b[j]),
        (Values::Float32(a), Values::Float32(b)) => floats(f64::from(a[i]), f64::from(b[j])),
        (Values::Float64(a), Values::Float64(b)) => floats(a[i], b[j]),
        (Values::Bytes(a), Values::Bytes(b)) => a.get(i).cmp(b.get(j)),
        _ => Ordering::Equal,
    }
}

fn floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// The approximate size of a column in memory.
fn size(column: &Column) -> usize {
    match &column.values {
        Values::Bytes(strings) => {
            strings.len() * 12 + usize::try_from(strings.total_bytes()).unwrap_or(usize::MAX)
        }
        Values::List(lists) => lists.ends.len() * 8 + size(&lists.elements),
        Values::Bool(_) | Values::Int8(_) | Values::UInt8(_) => column.len(),
        Values::Int16(_) | Values::UInt16(_) => column.len() * 2,
        Values::Int32(_) | Values::UInt32(_) | Values::Float32(_) => column.len() * 4,
        _ => column.len() * 8,
    }
}

/// A temporary file without a name.
struct Unnamed(BufWriter<fs::File>);

impl Write for Unnamed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Seek for Unnamed {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

impl Sink for Unnamed {
    type Output = fs::File;

    fn finish(self) -> io::Result<fs::File> {
        self.0.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

#[cfg(test)]
mod tests {
    use tercet_tatami::Strings;

    use super::*;

    /// Rows of a key and a number, sorted with runs of a few kilobytes, equal a stable sort in memory.
    #[test]
    fn runs_are_merged_in_a_stable_order() {
        let schema =
            Schema::new(vec![Field::new("key", Type::String).with_nulls(), Field::new("row", Type::Int64)])
                .unwrap();
        let mut random = 0x1234_5678_9abc_def1_u64;
        let mut next = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        let keys: Vec<Option<String>> =
            (0..30_000).map(|_| (next() % 11 > 0).then(|| format!("{}", next() % 700))).collect();
        for run_bytes in [1 << 14, 1 << 30] {
            let mut sorter = Sorter::new(&schema, 0, None).unwrap().with_run_bytes(run_bytes);
            for (batch, some) in keys.chunks(1000).enumerate() {
                let mut strings = Strings::new();
                for key in some {
                    strings.push(key.as_deref().unwrap_or("").as_bytes());
                }
                let validity = some.iter().map(Option::is_some).collect();
                let rows = (0..some.len()).map(|row| i64::try_from(row + batch * 1000).unwrap()).collect();
                let key = Column::new(Values::Bytes(strings)).with_validity(validity);
                sorter.push(&[key, Column::new(Values::Int64(rows))]).unwrap();
            }
            assert_eq!(sorter.runs() > 5, run_bytes < 1 << 20);
            let mut found = Vec::new();
            let done: Result<(), SortError> = sorter.finish(|columns| {
                let Values::Int64(rows) = &columns[1].values else { panic!("rows were expected") };
                found.extend_from_slice(rows);
                Ok(())
            });
            done.unwrap();
            let mut expected: Vec<i64> = (0..i64::try_from(keys.len()).unwrap()).collect();
            expected.sort_by_key(|row| {
                let key = &keys[usize::try_from(*row).unwrap()];
                (key.is_none(), key.clone())
            });
            assert_eq!(found, expected, "{run_bytes}");
        }
    }

    #[test]
    fn nan_and_nulls_are_last() {
        let key = Column::new(Values::Float64(vec![f64::NAN, 1.0, 0.0, -1.0]));
        let key = key.with_validity([true, true, false, true].into_iter().collect());
        assert_eq!(sorted(&key, 4), [3, 1, 0, 2]);
    }
}
