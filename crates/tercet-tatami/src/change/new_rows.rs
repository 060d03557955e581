//! New rows: buffered, sorted by the sort key, and written in parts of bounded size.

use std::cmp::Ordering;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tercet_core::{Budget, Sink, source};

use super::keys::Keys;
use crate::column::Column;
use crate::error::{Error, ErrorKind};
use crate::file::{File, ReadOptions};
use crate::scalar::Scalar;
use crate::schema::Schema;
use crate::writer::{Writer, WriterOptions, estimated_bytes};

/// Writes the parts.
pub(crate) trait PartWriter {
    /// A written part.
    type Part;

    /// Writes some rows, sorted by the sort key.
    fn write(&mut self, rows: &[Column]) -> Result<Self::Part, Error>;

    /// Adds the location of the output to an error.
    fn error(&self, fault: ErrorKind) -> Error;
}

/// A written part.
#[derive(Debug)]
pub(crate) struct Part<P> {
    pub(crate) output: P,
    /// Rows that a later new row replaced.
    pub(crate) replaced: Vec<u64>,
}

/// All parts, and the keys of their rows.
#[derive(Debug)]
pub(crate) struct Parts<P> {
    pub(crate) keys: Option<Keys>,
    pub(crate) parts: Vec<Part<P>>,
}

/// New rows.
#[derive(Debug)]
pub(crate) struct NewRows<W: PartWriter> {
    schema: Schema,
    /// The column that identifies rows, if they replace others.
    key: Option<usize>,
    keys: Option<Keys>,
    budget: Budget,
    part_bytes: u64,
    buffered: Vec<Column>,
    bytes: u64,
    writer: W,
    parts: Vec<W::Part>,
    /// For each part, the rows that a later new row replaced.
    replaced: Vec<Vec<u64>>,
}

impl<W: PartWriter> NewRows<W> {
    pub(crate) fn new(
        schema: &Schema,
        key: Option<&str>,
        writer: W,
        part_bytes: u64,
        read: &ReadOptions,
    ) -> Result<Self, ErrorKind> {
        let position = |name: &str| {
            let missing = || ErrorKind::NoSuchColumn { name: name.into(), available: schema.some_names() };
            schema.index_of(name).ok_or_else(missing)
        };
        let key = key.map(position).transpose()?;
        let keys = key.map(|key| Keys::new(&schema.fields()[key])).transpose()?;
        Ok(Self {
            schema: schema.clone(),
            key,
            keys,
            budget: Budget::new("the keys of the new rows", read.common.limits.array_bytes),
            part_bytes: part_bytes.max(1),
            buffered: schema.fields().iter().map(Column::empty).collect(),
            bytes: 0,
            writer,
            parts: Vec::new(),
            replaced: Vec::new(),
        })
    }

    /// Adds rows; writes a part when there are enough.
    pub(crate) fn append(&mut self, batch: &[Column]) -> Result<(), Error> {
        self.take(batch)?;
        if self.bytes >= self.part_bytes { self.flush() } else { Ok(()) }
    }

    fn take(&mut self, batch: &[Column]) -> Result<(), Error> {
        let rows = crate::writer::check_batch(&self.schema, batch)
            .map_err(|error| self.writer.error(error.into()))?;
        for ((field, column), buffered) in self.schema.fields().iter().zip(batch).zip(&mut self.buffered) {
            self.bytes = self.bytes.saturating_add(estimated_bytes(field, column));
            buffered.extend_from(column, 0, rows);
        }
        Ok(())
    }

    /// Writes the buffered rows as a part.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        let empty = || self.schema.fields().iter().map(Column::empty).collect();
        let mut rows: Vec<Column> = std::mem::replace(&mut self.buffered, empty());
        self.bytes = 0;
        let count = rows.first().map_or(0, Column::len);
        if count == 0 {
            return Ok(());
        }
        let order = self.schema.sort_key().and_then(|key| sorted(&rows[key]));
        self.note_keys(&rows, order.as_deref())?;
        if let Some(order) = order {
            for column in &mut rows {
                *column = column.take(&order);
            }
        }
        let output = self.writer.write(&rows)?;
        self.parts.push(output);
        Ok(())
    }

    /// Notes the keys of the rows of the next part, which are stored in another order if `order` is given.
    fn note_keys(&mut self, rows: &[Column], order: Option<&[usize]>) -> Result<(), Error> {
        self.replaced.push(Vec::new());
        let (Some(key), Some(keys)) = (self.key, &mut self.keys) else { return Ok(()) };
        let (part, column) = (self.parts.len(), &rows[key]);
        let mut stored: Vec<u64> = (0..column.len() as u64).collect();
        for (position, row) in (0..).zip(order.unwrap_or_default()) {
            stored[*row] = position;
        }
        for (row, position) in stored.into_iter().enumerate() {
            let inserted = match column.scalar(row) {
                Some(scalar) => keys.insert(scalar, (part, position), &self.budget),
                None => Err(ErrorKind::NullKey { column: (*self.schema.fields()[key].name).into() }),
            };
            if let Some((part, row)) = inserted.map_err(|fault| self.writer.error(fault))? {
                self.replaced[part].push(row);
            }
        }
        Ok(())
    }

    /// The parts written since the last call. For rows without keys.
    pub(crate) fn take_parts(&mut self) -> Vec<W::Part> {
        std::mem::take(&mut self.parts)
    }

    /// The writer of the parts.
    pub(crate) fn writer_mut(&mut self) -> &mut W {
        &mut self.writer
    }

    /// Writes the last part.
    pub(crate) fn finish(self) -> Result<Parts<W::Part>, Error> {
        Ok(self.finish_with_writer()?.0)
    }

    /// Writes the last part, and returns the writer too.
    pub(crate) fn finish_with_writer(mut self) -> Result<(Parts<W::Part>, W), Error> {
        self.flush()?;
        let parts = self.parts.into_iter().zip(self.replaced);
        let parts = parts.map(|(output, replaced)| Part { output, replaced }).collect();
        Ok((Parts { keys: self.keys, parts }, self.writer))
    }
}

/// The order of rows by key, if they are not sorted: nulls and NaN first, equal keys in the given order.
fn sorted(keys: &Column) -> Option<Vec<usize>> {
    let scalars: Vec<Option<Scalar>> =
        (0..keys.len()).map(|row| keys.scalar(row).filter(|key| !key.is_nan())).collect();
    let order = |a: &Option<Scalar>, b: &Option<Scalar>| match (a, b) {
        (Some(a), Some(b)) => a.order(b).unwrap_or(Ordering::Equal),
        (a, b) => a.is_some().cmp(&b.is_some()),
    };
    if scalars.is_sorted_by(|a, b| order(a, b).is_le()) {
        return None;
    }
    let mut rows: Vec<usize> = (0..scalars.len()).collect();
    rows.sort_by(|a, b| order(&scalars[*a], &scalars[*b]));
    Some(rows)
}

/// Writes parts to unnamed temporary files, in the directory of the file that is changed.
#[derive(Debug)]
pub(crate) struct TemporaryParts {
    target: PathBuf,
    schema: Schema,
    options: WriterOptions,
}

impl TemporaryParts {
    pub(super) fn new(target: &Path, schema: Schema, options: WriterOptions) -> Self {
        Self { target: target.to_owned(), schema, options }
    }
}

impl PartWriter for TemporaryParts {
    type Part = File;

    fn write(&mut self, rows: &[Column]) -> Result<File, Error> {
        let directory = self.target.parent().filter(|path| !path.as_os_str().is_empty());
        let file = tempfile::tempfile_in(directory.unwrap_or(Path::new(".")));
        let file = file.map_err(|error| self.error(error.into()))?;
        let mut writer =
            Writer::new(TemporaryFile(BufWriter::new(file)), self.schema.clone(), self.options.clone())?;
        writer.append(rows)?;
        let handle = writer.finish()?.output;
        let source = source::File::from_handle(&self.target.display().to_string(), handle);
        File::from_source(Arc::new(source.map_err(|error| self.error(error.into()))?), ReadOptions::new())
    }

    fn error(&self, fault: ErrorKind) -> Error {
        Error::new(self.target.display().to_string().into(), fault)
    }
}

/// An unnamed file.
#[derive(Debug)]
struct TemporaryFile(BufWriter<std::fs::File>);

impl Write for TemporaryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Seek for TemporaryFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

impl Sink for TemporaryFile {
    type Output = std::fs::File;

    fn finish(self) -> io::Result<std::fs::File> {
        self.0.into_inner().map_err(io::IntoInnerError::into_error)
    }
}
