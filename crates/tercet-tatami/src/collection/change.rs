//! Changes of the rows of a collection.
//!
//! New rows become new members; rows that they replace, or that a filter deletes, are recorded as deleted in the manifest. One change is
//! one new manifest: readers see all of it or nothing. The manifest is locked during a change, so other writers wait or fail.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tercet_core::Progress;
use tercet_core::publish::{Disk, FileLock};

use super::log::{self, Record, Replay};
use super::{Collection, Member};
use crate::change::{NewRows, PART_BYTES, PartWriter, Parts, RowsDeleted, Upserted, matching};
use crate::column::Column;
use crate::error::{Error, ErrorKind};
use crate::file::File;
use crate::predicate::Expr;
use crate::scan::RowSelection;
use crate::schema::Schema;
use crate::writer::{Writer, WriterOptions};

/// Options of new members.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AppendOptions {
    /// Options of the files. Key-value pairs of the first member are added.
    pub writer: WriterOptions,
    /// Maximum bytes of the rows of a file, before encoding; also the memory for new rows.
    pub file_bytes: u64,
}

impl Default for AppendOptions {
    fn default() -> Self {
        Self { writer: WriterOptions::new(), file_bytes: PART_BYTES }
    }
}

impl AppendOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the options of the files.
    pub fn with_writer(mut self, writer: WriterOptions) -> Self {
        self.writer = writer;
        self
    }

    /// Sets the maximum bytes of the rows of a file.
    pub fn with_file_bytes(mut self, bytes: u64) -> Self {
        self.file_bytes = bytes;
        self
    }
}

/// The result of appending rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Appended {
    /// Rows appended.
    pub rows: u64,
    /// The paths of the new members.
    pub members: Vec<String>,
}

impl Collection {
    /// Starts to append rows. They become members of bounded size, each visible when it is written: an interrupted append leaves
    /// the members written so far.
    pub fn append(&mut self, schema: &Schema, options: AppendOptions) -> Result<Append<'_>, Error> {
        let new = self.new_rows(schema, None, options)?;
        Ok(Append { collection: self, new, done: Appended::default() })
    }

    /// Starts an upsert: new rows replace rows with the same value of the column `key`. The manifest is locked until it is finished or
    /// dropped; nothing is changed before.
    pub fn upsert(
        &mut self,
        key: &str,
        schema: &Schema,
        options: AppendOptions,
    ) -> Result<Upsert<'_>, Error> {
        let lock = self.lock_and_refresh()?;
        let new = self.new_rows(schema, Some(key), options)?;
        Ok(Upsert { collection: self, lock, new })
    }

    /// Deletes the rows that match a filter. If no row matches, the manifest is not changed.
    pub fn delete_rows(&mut self, filter: &Expr, progress: &dyn Progress) -> Result<RowsDeleted, Error> {
        let lock = self.lock_and_refresh()?;
        let mut records = Vec::new();
        let mut deleted = 0;
        for member in self.scan().filter(filter)?.members()? {
            let rows = matching(&self.open_member(&member)?, filter, progress)?;
            if !rows.is_empty() {
                deleted += rows.len();
                records.push(Record::DeleteRows(member.id, rows));
            }
        }
        self.commit(lock, &records)?;
        Ok(RowsDeleted { deleted, rows: self.rows() })
    }

    /// New rows in files of this collection. The columns must be those of the first member.
    fn new_rows(
        &self,
        schema: &Schema,
        key: Option<&str>,
        mut options: AppendOptions,
    ) -> Result<NewRows<MemberFiles>, Error> {
        if let Some(first) = self.members().first().map(|member| self.open_member(member)).transpose()? {
            if first.footer().inverted.is_some() {
                return Err(first.error(ErrorKind::SegmentRows));
            }
            if !super::merge::has_same_columns(schema, first.schema()) {
                let (other, reason) = ((**first.name()).into(), "the columns differ".into());
                return Err(self.error(ErrorKind::SchemaMismatch { other, reason }));
            }
            for pair in first.inner().user_pairs() {
                if !options.writer.metadata.contains(&pair) {
                    options.writer.metadata.push(pair);
                }
            }
        }
        let files = MemberFiles {
            root: self.root.clone(),
            disk: Arc::clone(&self.disk),
            manifest: self.manifest_path(),
            schema: schema.clone(),
            options: options.writer,
            unlisted: Vec::new(),
        };
        NewRows::new(schema, key, files, options.file_bytes, &self.options).map_err(|fault| self.error(fault))
    }

    /// Locks the manifest, if there is one, and reads it again.
    pub(super) fn lock_and_refresh(&mut self) -> Result<Option<FileLock>, Error> {
        let lock = self.lock()?;
        self.replay = match self.read_existing()?.filter(|_| lock.is_some()) {
            Some(bytes) => log::replay_file(&bytes).map_err(|fault| self.error(fault))?,
            None => Replay::default(),
        };
        if lock.is_some() {
            self.check_records()?;
        }
        Ok(lock)
    }

    /// Adds records under the lock of [`lock_and_refresh`](Self::lock_and_refresh).
    pub(super) fn commit(&mut self, lock: Option<FileLock>, records: &[Record]) -> Result<(), Error> {
        if records.is_empty() {
            return Ok(());
        }
        let Some(lock) = lock else {
            // There was no manifest to lock: another program may have created it.
            let changed = self.error(ErrorKind::CollectionChanged);
            let mut changed = Some(changed);
            return self.edit(|replay, _| match changed.take().filter(|_| replay.records > 0) {
                Some(changed) => Err(changed),
                None => Ok(records.to_vec()),
            });
        };
        self.rewrite(lock, records)
    }

    /// Describes a new file as a member.
    pub(super) fn describe(&self, path: &Path) -> Result<Member, Error> {
        let relative = self.relative(path)?;
        Ok(Member::describe(&relative, &File::open_with(path, self.options)?))
    }
}

/// Rows that are appended to a collection.
#[derive(Debug)]
pub struct Append<'a> {
    collection: &'a mut Collection,
    new: NewRows<MemberFiles>,
    done: Appended,
}

impl Append<'_> {
    /// Appends rows.
    pub fn append(&mut self, batch: &[Column]) -> Result<(), Error> {
        self.new.append(batch)?;
        self.publish()
    }

    /// Publishes the rest.
    pub fn finish(mut self) -> Result<Appended, Error> {
        self.new.flush()?;
        self.publish()?;
        Ok(self.done)
    }

    /// Adds the written files to the manifest.
    fn publish(&mut self) -> Result<(), Error> {
        for path in self.new.take_parts() {
            // The manifest may list the file, even if the change is reported as failed.
            self.new.writer_mut().keep(&path);
            for member in self.collection.add(&[&path])? {
                self.done.rows += member.rows;
                self.done.members.push(member.path);
            }
        }
        Ok(())
    }
}

/// Rows that replace others.
#[derive(Debug)]
pub struct Upsert<'a> {
    collection: &'a mut Collection,
    lock: Option<FileLock>,
    new: NewRows<MemberFiles>,
}

impl Upsert<'_> {
    /// Adds new rows. Of new rows with the same key, the last one wins.
    pub fn append(&mut self, batch: &[Column]) -> Result<(), Error> {
        self.new.append(batch)
    }

    /// Adds the new members and deletes the replaced rows, in one change.
    pub fn finish(self, progress: &dyn Progress) -> Result<Upserted, Error> {
        let Self { collection, lock, new } = self;
        let (Parts { keys, parts }, mut files) = new.finish_with_writer()?;
        let keys = keys.unwrap_or_default();
        let mut done = Upserted::default();
        let mut records = Vec::new();
        for member in collection.members() {
            let rows = keys.matching_rows(&collection.open_member(member)?, progress)?;
            if !rows.is_empty() {
                done.replaced += rows.len();
                records.push(Record::DeleteRows(member.id, rows));
            }
        }
        for part in &parts {
            let member = collection.describe(&part.output)?;
            let duplicates = RowSelection::from(part.replaced.clone());
            done.duplicates += duplicates.len();
            done.upserted += member.rows - duplicates.len();
            let id = member.id;
            records.push(Record::Add(Box::new(member)));
            if !duplicates.is_empty() {
                records.push(Record::DeleteRows(id, duplicates));
            }
        }
        // From here on the manifest may list the files, even if the change is reported as failed.
        for part in &parts {
            files.keep(&part.output);
        }
        collection.commit(lock, &records)?;
        done.rows = collection.rows();
        Ok(done)
    }
}

/// Writes parts as files of a collection. Files that do not become members are removed.
#[derive(Debug)]
pub(super) struct MemberFiles {
    root: PathBuf,
    disk: Arc<dyn Disk>,
    manifest: PathBuf,
    schema: Schema,
    options: WriterOptions,
    unlisted: Vec<PathBuf>,
}

impl MemberFiles {
    /// Keeps a file, which may be a member now.
    fn keep(&mut self, path: &Path) {
        self.unlisted.retain(|file| file != path);
    }

    /// The first free name after those in the directory.
    fn next_path(&self) -> Result<PathBuf, Error> {
        let names = self.disk.list(&self.root, &|name| number_of(name.to_str()).is_some());
        let names = names.map_err(|error| self.error(error.into()))?;
        let last = names.iter().filter_map(|name| number_of(name.to_str())).max().unwrap_or(0);
        Ok(self.root.join(format!("rows-{:08}.tatami", last + 1)))
    }
}

/// The number in the name of a file that was written by a change.
fn number_of(name: Option<&str>) -> Option<u64> {
    name?.strip_prefix("rows-")?.strip_suffix(".tatami")?.parse().ok()
}

impl PartWriter for MemberFiles {
    type Part = PathBuf;

    fn write(&mut self, rows: &[Column]) -> Result<PathBuf, Error> {
        let path = self.next_path()?;
        let options = self.options.clone().with_overwrite(false);
        let mut writer = Writer::create_on(Arc::clone(&self.disk), &path, self.schema.clone(), options)?;
        writer.append(rows)?;
        let path = writer.finish()?.output;
        self.unlisted.push(path.clone());
        Ok(path)
    }

    fn error(&self, fault: ErrorKind) -> Error {
        Error::new(self.manifest.display().to_string().into(), fault)
    }
}

impl Drop for MemberFiles {
    fn drop(&mut self) {
        for path in &self.unlisted {
            // Best effort: readers only read members.
            let _ = self.disk.remove(path);
        }
    }
}
