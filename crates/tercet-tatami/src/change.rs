//! Changes of the rows of a file: upsert and delete.
//!
//! A file is never changed in place. A change writes a new file and replaces the old one atomically; other writers wait for its lock.
//! Changes of collections are in [`collection`](crate::collection).
//!
//! | file | contents |
//! |---|---|
//! | `new_rows.rs` | rows to add: buffered, sorted, written in parts |
//! | `keys.rs` | the keys of the new rows, and the old rows that they replace |

mod keys;
mod new_rows;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tercet_core::Progress;
use tercet_core::publish::{Disk, FileLock, PublishError, RealDisk};

use new_rows::TemporaryParts;
pub(crate) use new_rows::{NewRows, PartWriter, Parts};

use crate::collection::merge_files;
use crate::column::Column;
use crate::error::{Error, ErrorKind};
use crate::file::{Access, File, ReadOptions};
use crate::logical_type::LogicalType;
use crate::predicate::Expr;
use crate::scan::RowSelection;
use crate::schema::Schema;
use crate::writer::WriterOptions;

/// Maximum bytes of new rows in memory; see [`UpsertOptions`].
pub(crate) const PART_BYTES: u64 = 128 << 20;

/// Options of an upsert.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UpsertOptions {
    /// Options for reading the old rows.
    pub read: ReadOptions,
    /// Options of the new file. Key-value pairs of the old file are kept.
    pub writer: WriterOptions,
    /// Maximum bytes of new rows in memory, before encoding.
    pub part_bytes: u64,
}

impl Default for UpsertOptions {
    fn default() -> Self {
        let read = ReadOptions::new().with_access(Access::Pread);
        Self { read, writer: WriterOptions::new(), part_bytes: PART_BYTES }
    }
}

impl UpsertOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the options for reading the old rows.
    pub fn with_read(mut self, read: ReadOptions) -> Self {
        self.read = read;
        self
    }

    /// Sets the options of the new file.
    pub fn with_writer(mut self, writer: WriterOptions) -> Self {
        self.writer = writer;
        self
    }

    /// Sets the maximum bytes of new rows in memory.
    pub fn with_part_bytes(mut self, bytes: u64) -> Self {
        self.part_bytes = bytes;
        self
    }
}

/// The result of an upsert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Upserted {
    /// New rows, without those that a later new row replaced.
    pub upserted: u64,
    /// Old rows that were replaced.
    pub replaced: u64,
    /// New rows that a later new row with the same key replaced.
    pub duplicates: u64,
    /// Rows after the upsert.
    pub rows: u64,
}

/// The result of a deletion of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RowsDeleted {
    /// Rows deleted by this call.
    pub deleted: u64,
    /// Rows left.
    pub rows: u64,
}

/// An upsert into a file: new rows replace old rows with the same key.
///
/// The file is locked until the upsert is finished or dropped. Nothing is changed before [`finish`](Self::finish).
#[derive(Debug)]
pub struct FileUpsert {
    lock: FileLock,
    path: PathBuf,
    file: File,
    options: UpsertOptions,
    new: NewRows<TemporaryParts>,
}

impl FileUpsert {
    /// Locks and opens a file. `key` is a column whose values identify the rows.
    pub fn open(path: &Path, key: &str, options: UpsertOptions) -> Result<Self, Error> {
        Self::open_on(Arc::new(RealDisk), path, key, options)
    }

    /// Locks and opens a file on another disk.
    pub fn open_on(
        disk: Arc<dyn Disk>,
        path: &Path,
        key: &str,
        options: UpsertOptions,
    ) -> Result<Self, Error> {
        let (lock, file) = open_locked(disk, path, options.read)?;
        if file.footer().inverted.is_some() {
            return Err(file.error(ErrorKind::SegmentRows));
        }
        // New rows have the logical types of the file; its other pairs are added when it is rewritten.
        let mut writer = options.writer.clone();
        let annotated: Vec<String> =
            file.schema().fields().iter().map(|field| LogicalType::key(&field.name)).collect();
        writer.metadata.retain(|(key, _)| !annotated.contains(key));
        let annotations = file.footer().pairs.iter().filter(|(key, _)| annotated.contains(key));
        writer.metadata.extend(annotations.cloned());
        let parts = TemporaryParts::new(path, (**file.schema()).clone(), writer);
        let new = NewRows::new(file.schema(), Some(key), parts, options.part_bytes, &options.read)
            .map_err(|fault| file.error(fault))?;
        Ok(Self { lock, path: path.to_owned(), file, options, new })
    }

    /// The columns of the file, which new rows must have.
    pub fn schema(&self) -> &Schema {
        self.file.schema()
    }

    /// The file as it is.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Adds new rows. Of new rows with the same key, the last one wins.
    pub fn append(&mut self, batch: &[Column]) -> Result<(), Error> {
        self.new.append(batch)
    }

    /// Writes the new file and replaces the old one. Without new rows, the file is not changed.
    pub fn finish(self, progress: &dyn Progress) -> Result<Upserted, Error> {
        let Self { lock, path, file, options, new } = self;
        let Parts { keys, parts } = new.finish()?;
        let keys = keys.unwrap_or_default();
        if keys.is_empty() {
            return Ok(Upserted { rows: file.rows(), ..Upserted::default() });
        }
        let replaced = keys.matching_rows(&file, progress)?;
        let (mut files, mut upserted, mut duplicates) = (vec![file.without_rows(&replaced)], 0, 0);
        for part in parts {
            let deleted = RowSelection::from(part.replaced);
            upserted += part.output.rows() - deleted.len();
            duplicates += deleted.len();
            files.push(part.output.without_rows(&deleted));
        }
        let rows = rewrite(lock, &path, &files, options.writer, progress)?;
        Ok(Upserted { upserted, replaced: replaced.len(), duplicates, rows })
    }
}

/// Deletes the rows of a file that match a filter: writes a new file and replaces the old one. If no row matches, the file is not
/// changed. Documents of search segments are deleted by [`search::delete`](crate::search::delete).
pub fn delete_rows(
    path: &Path,
    filter: &Expr,
    read: ReadOptions,
    writer: WriterOptions,
    progress: &dyn Progress,
) -> Result<RowsDeleted, Error> {
    delete_rows_on(Arc::new(RealDisk), path, filter, read, writer, progress)
}

/// Deletes rows of a file on another disk.
pub fn delete_rows_on(
    disk: Arc<dyn Disk>,
    path: &Path,
    filter: &Expr,
    read: ReadOptions,
    writer: WriterOptions,
    progress: &dyn Progress,
) -> Result<RowsDeleted, Error> {
    let (lock, file) = open_locked(disk, path, read)?;
    if file.footer().inverted.is_some() {
        return Err(file.error(ErrorKind::SegmentRows));
    }
    let deleted = matching(&file, filter, progress)?;
    if deleted.is_empty() {
        return Ok(RowsDeleted { deleted: 0, rows: file.rows() });
    }
    let rows = rewrite(lock, path, &[file.without_rows(&deleted)], writer, progress)?;
    Ok(RowsDeleted { deleted: deleted.len(), rows })
}

/// The rows of a file that match a filter.
pub(crate) fn matching(file: &File, filter: &Expr, progress: &dyn Progress) -> Result<RowSelection, Error> {
    let mut rows = Vec::new();
    for batch in file.scan().column_positions(&[])?.filter(filter)?.batches() {
        progress.check().map_err(|cancelled| file.error(cancelled.into()))?;
        rows.extend(batch?.rows);
    }
    Ok(rows.into())
}

fn open_locked(disk: Arc<dyn Disk>, path: &Path, read: ReadOptions) -> Result<(FileLock, File), Error> {
    let lock = FileLock::acquire_on(disk, path).map_err(|error| {
        // A missing file is reported like by every other reader.
        match (File::open_with(path, read), error) {
            (Err(missing), PublishError::Io { .. }) => missing,
            (_, error) => Error::new(path.display().to_string().into(), error.into()),
        }
    })?;
    let file = File::open_with(path, read.with_access(Access::Pread))?;
    Ok((lock, file))
}

/// Replaces a locked file by the rows of some files; returns their number.
fn rewrite(
    lock: FileLock,
    path: &Path,
    files: &[File],
    writer: WriterOptions,
    progress: &dyn Progress,
) -> Result<u64, Error> {
    let named = |fault: ErrorKind| Error::new(path.display().to_string().into(), fault);
    let sink = lock.replace().map_err(|error| named(error.into()))?;
    // The pairs of the old file only: parts have none.
    let mut writer = writer;
    let old = files.first().map_or_else(Vec::new, |file| file.inner().user_pairs());
    for pair in old {
        if !writer.metadata.contains(&pair) {
            writer.metadata.push(pair);
        }
    }
    let written = merge_files(files, sink, writer, progress)
        .map_err(|error| if error.location() == "output" { named(error.into_kind()) } else { error })?;
    Ok(written.rows)
}
