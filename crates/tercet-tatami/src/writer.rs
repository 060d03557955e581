//! Writer of files.
//!
//! ```text
//! batch ─▶ check ─▶ row group ─▶ pages ─▶ sink
//!              └──▶ blob values ─▶ runs ─▶ spool ─┐
//!                   bloom filters ───────▶ spool ─┴▶ after the row groups
//! ```
//!
//! Memory is bounded: one row group is buffered (at most [`row_group_max_bytes`](WriterOptions)), records that follow the row
//! groups are spooled to temporary files, and pages are encoded in parallel on the current rayon pool. The output is the same
//! for any number of threads.
//!
//! ```
//! use std::io::Cursor;
//! use tercet_tatami::{Column, Field, Schema, Type, Values, Writer, WriterOptions};
//!
//! let schema = Schema::new(vec![Field::new("city", Type::String), Field::new("people", Type::UInt32)])?;
//! let mut writer = Writer::new(Cursor::new(Vec::new()), schema, WriterOptions::new())?;
//! writer.append(&[
//!     Column::new(Values::Bytes(["Bonn", "Ulm"].iter().collect())),
//!     Column::new(Values::UInt32(vec![331_000, 126_000])),
//! ])?;
//! let written = writer.finish()?;
//! assert_eq!(written.rows, 2);
//! assert_eq!(&written.output[..4], b"TAT1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch_validation;
mod blobs;
mod chunk;
mod close;
mod compress;
mod flush;
mod group;
mod options;
mod provenance;
mod spool;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use tercet_core::Sink;
#[cfg(any(unix, windows))]
use tercet_core::publish::{AtomicFile, Disk, RealDisk};

use crate::column::Column;
use crate::error::{Error, ErrorKind, OptionsError};
use crate::logical_type::{Annotation, LogicalType};
use crate::schema::{Field, Schema, SchemaError, Type};
use crate::search::inverted::Inverted;
use crate::wire::footer;
use crate::wire::header;
use crate::wire::ids::Codec;
use batch_validation::Order;
use blobs::BlobRuns;
use chunk::ColumnWriter;
pub(crate) use compress::{Choice, Compressor};
use group::Group;
pub use options::{Profile, Provenance, WriterOptions};
#[cfg(any(unix, windows))]
pub(crate) use provenance::random_uuid;

/// Validates a batch and returns its number of rows.
#[cfg(any(unix, windows))]
pub(crate) fn check_batch(schema: &Schema, batch: &[Column]) -> Result<usize, crate::error::BatchError> {
    batch_validation::batch(schema, batch)
}

/// The estimated size of a column in memory.
#[cfg(any(unix, windows))]
pub(crate) fn estimated_bytes(field: &Field, column: &Column) -> u64 {
    group::estimate(field, column, &(0..column.len()))
}
pub(crate) use spool::Spool;

/// Writes rows to a sink.
///
/// [`finish`](Self::finish) publishes the file; dropping the writer discards it.
#[derive(Debug)]
pub struct Writer<S> {
    /// The location shown in errors.
    name: Arc<str>,
    sink: S,
    schema: Schema,
    options: WriterOptions,
    /// Offset of the next byte in the sink.
    at: u64,
    /// Rows appended so far.
    rows: u64,
    group: Group,
    columns: Vec<ColumnWriter>,
    blobs: Vec<BlobRuns>,
    order: Option<Order>,
    /// The length of the lists of each column, from its annotation.
    fixed_lengths: Vec<Option<u64>>,
    groups: Vec<footer::Group>,
    blooms: Spool,
    /// Offsets are relative to the spool until the file is finished.
    indexes: Vec<footer::IndexEntry>,
    totals: Totals,
    /// The inverted region of a search segment.
    inverted: Option<Inverted>,
    /// The page headers of the document columns of a search segment.
    page_headers: Option<Vec<u8>>,
    /// A write failed: the output is incomplete.
    broken: bool,
}

/// Maximum values of a row group in memory, of all columns; more than 128 columns have shorter groups.
const GROUP_VALUES: usize = 1 << 24;

/// Bytes of pages, runs and dictionaries.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    raw: u64,
    stored: u64,
}

/// A written file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written<D> {
    /// The output of the sink: the path of a file, or its bytes.
    pub output: D,
    /// Number of rows.
    pub rows: u64,
    /// Number of row groups.
    pub groups: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Required features; see [`requires`](crate::format::requires).
    pub requires: u64,
}

impl<S: Sink> Writer<S> {
    /// Starts a file in a sink. Errors show the name `output`; see [`with_name`](Self::with_name).
    pub fn new(sink: S, schema: Schema, options: WriterOptions) -> Result<Self, Error> {
        let name: Arc<str> = "output".into();
        Self::start(Arc::clone(&name), sink, None, schema, options).map_err(|kind| Error::new(name, kind))
    }

    /// Sets the location shown in errors.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Starts a file with temporary files in `directory`.
    fn start(
        name: Arc<str>,
        mut sink: S,
        directory: Option<&Path>,
        schema: Schema,
        options: WriterOptions,
    ) -> Result<Self, ErrorKind> {
        check_options(&schema, &options)?;
        let zeros = [0; 64];
        sink.write_all(&zeros)?;
        let is_blob = |(_, field): &(usize, &Field)| field.kind == Type::BlobRef;
        let blob_columns: Vec<usize> =
            schema.fields().iter().enumerate().filter(is_blob).map(|(index, _)| index).collect();
        let blobs = blob_columns
            .iter()
            .map(|column| BlobRuns::new(*column, blob_columns.len(), directory, &options))
            .collect();
        let fixed_len = |field: &Field| {
            let annotation = Annotation::for_field(field, &options.metadata)?;
            annotation.fixed_len.and_then(|len| u64::try_from(len).ok()).filter(|_| field.kind == Type::List)
        };
        let fixed_lengths = schema.fields().iter().map(fixed_len).collect();
        Ok(Self {
            name,
            sink,
            at: header::LEN,
            rows: 0,
            group: Group::new(&schema),
            columns: schema
                .fields()
                .iter()
                .map(|field| ColumnWriter::new(field, &options, schema.len()))
                .collect(),
            blobs,
            order: schema.sort_key().filter(|_| options.require_sorted).map(Order::new),
            fixed_lengths,
            groups: Vec::new(),
            blooms: Spool::new(directory),
            indexes: Vec::new(),
            totals: Totals::default(),
            inverted: None,
            page_headers: None,
            broken: false,
            schema,
            options,
        })
    }

    /// The columns of the file.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Declares columns non-nullable that had no nulls. Call it before [`finish`](Self::finish): pages do not depend on it,
    /// so that nullability need not be known in advance.
    pub fn declare_present(&mut self, is_present: impl Fn(usize) -> bool) {
        let mut fields = self.schema.fields().to_vec();
        for (index, field) in fields.iter_mut().enumerate() {
            field.nullable &= !is_present(index);
        }
        // The names and roles are unchanged.
        if let Ok(schema) = Schema::new(fields) {
            self.schema = schema;
        }
    }

    /// The number of rows appended so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Appends rows: one column per field of the schema, all of the same length. A batch that does not match the schema is
    /// rejected entirely; the writer remains usable.
    pub fn append(&mut self, batch: &[Column]) -> Result<(), Error> {
        self.append_batch(batch).map_err(|kind| self.error(kind))
    }

    pub(crate) fn append_batch(&mut self, batch: &[Column]) -> Result<(), ErrorKind> {
        self.check_usable()?;
        let rows = batch_validation::batch(&self.schema, batch)?;
        batch_validation::fixed_lengths(&self.schema, &self.fixed_lengths, batch)?;
        if let Some(order) = &mut self.order {
            order.check(&self.schema, batch, self.rows)?;
        }
        self.broken = true;
        self.take(batch, rows)?;
        self.broken = false;
        Ok(())
    }

    /// Adds the location of the output to an error.
    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        Error::new(Arc::clone(&self.name), kind)
    }

    fn take(&mut self, batch: &[Column], rows: usize) -> Result<(), ErrorKind> {
        let max_rows = usize::try_from(self.options.row_group_max_rows.max(1)).unwrap_or(usize::MAX);
        // The first row of a page is stored in 32 bits.
        let mut max_rows = max_rows.min(1 << 31);
        if self.options.is_native() {
            // Empty strings and nulls take memory in every column.
            max_rows = max_rows.min((GROUP_VALUES / self.schema.len().max(1)).max(1));
        }
        let mut start = 0;
        while start < rows {
            let most = start..rows.min(start + (max_rows - self.group.rows));
            let fitting_rows = self.fitting_rows(batch, most);
            if !fitting_rows.is_empty() {
                for blobs in &mut self.blobs {
                    blobs.extend(&batch[blobs.column], fitting_rows.clone())?;
                }
                self.group.extend(&self.schema, batch, fitting_rows.clone());
                self.rows += fitting_rows.len() as u64;
                start = fitting_rows.end;
            }
            let is_full =
                self.group.rows >= max_rows || self.group.bytes >= self.options.row_group_max_bytes.max(1);
            // Without rows, the next row does not fit into the group.
            if is_full || fitting_rows.is_empty() {
                self.flush(false)?;
            }
        }
        Ok(())
    }

    /// The number of rows of a batch that fit into the group. In the native profile a group ends before a row that would exceed
    /// its maximum size; in the interop profile it ends at the end of a batch.
    fn fitting_rows(&self, batch: &[Column], most: Range<usize>) -> Range<usize> {
        if !self.options.is_native() {
            return most;
        }
        let room = self.options.row_group_max_bytes.saturating_sub(self.group.bytes);
        let is_first = self.group.rows == 0;
        let rows = group::rows_that_fit(&self.schema, batch, most.clone(), room, is_first);
        most.start..most.start + rows
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ErrorKind> {
        self.sink.write_all(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn check_usable(&self) -> Result<(), ErrorKind> {
        if self.broken {
            return Err(ErrorKind::from(std::io::Error::other("a previous write failed")));
        }
        Ok(())
    }

    /// Sets a key-value pair of the metadata, which replaces that of the options.
    pub(crate) fn set_metadata(&mut self, key: &str, value: &str) {
        self.options.metadata.retain(|(known, _)| known != key);
        self.options.metadata.push((key.to_owned(), value.to_owned()));
    }

    /// Copies the page headers of the document columns into a record of their own.
    pub(crate) fn with_page_headers(mut self) -> Self {
        self.page_headers = self.options.is_native().then(Vec::new);
        self
    }

    /// Makes the file a search segment of its rows.
    pub(crate) fn attach(&mut self, inverted: Inverted) {
        self.inverted = Some(inverted);
    }

    /// Finishes the file. A file on disk is published under its name.
    pub fn finish(self) -> Result<Written<S::Output>, Error> {
        let name = Arc::clone(&self.name);
        self.close().map_err(|kind| Error::new(name, kind))
    }

    fn close(mut self) -> Result<Written<S::Output>, ErrorKind> {
        self.check_usable()?;
        self.flush(true)?;
        close::close(self)
    }
}

#[cfg(any(unix, windows))]
impl Writer<AtomicFile> {
    /// Starts a file on disk, published atomically by [`finish`](Self::finish); see [`AtomicFile`]. An existing file is
    /// replaced only with [`WriterOptions::overwrite`].
    pub fn create(path: impl AsRef<Path>, schema: Schema, options: WriterOptions) -> Result<Self, Error> {
        Self::create_on(Arc::new(RealDisk), path.as_ref(), schema, options)
    }

    /// Starts a file on another disk.
    pub fn create_on(
        disk: Arc<dyn Disk>,
        path: &Path,
        schema: Schema,
        options: WriterOptions,
    ) -> Result<Self, Error> {
        let name: Arc<str> = path.display().to_string().into();
        let create = if options.overwrite { AtomicFile::create_on } else { AtomicFile::create_new_on };
        let start = || {
            let atomic_file = create(disk, path)?;
            let directory = atomic_file.path().parent().map(Path::to_path_buf);
            Self::start(Arc::clone(&name), atomic_file, directory.as_deref(), schema, options)
        };
        start().map_err(|kind: ErrorKind| Error::new(Arc::clone(&name), kind))
    }
}

fn check_options(schema: &Schema, options: &WriterOptions) -> Result<(), ErrorKind> {
    match options.codec {
        Codec::None | Codec::Zstd => {}
        Codec::Lz4 if options.is_native() => {}
        codec @ Codec::Lz4 => return Err(OptionsError::CodecInterop { codec }.into()),
        codec => return Err(OptionsError::Codec { codec }.into()),
    }
    let logical_types = LogicalType::for_fields(schema.fields(), &options.metadata);
    if let Some(key) = schema.sort_key()
        && let (Some(Some(LogicalType::Decimal { .. })), Some(field)) =
            (logical_types.get(key), schema.fields().get(key))
        && field.kind == Type::Bytes
    {
        return Err(OptionsError::SortedDecimals { name: (*field.name).into() }.into());
    }
    let list = schema.fields().iter().find(|field| field.kind == Type::List);
    if let Some(field) = list.filter(|_| !options.is_native()) {
        return Err(SchemaError::ListInterop { name: field.name.clone() }.into());
    }
    Ok(())
}
