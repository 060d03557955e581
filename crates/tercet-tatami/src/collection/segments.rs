//! Updates of the search segments of a collection.
//!
//! ```text
//! documents of the members ─▶ which are new, changed, gone ─▶ a new member, and deleted rows of the others ─▶ one new manifest
//! ```
//!
//! A change is one new manifest, so a search sees all of it or nothing. The IDs of the live documents are unique: every segment records the
//! mark of its collection, and a search of members with the same mark does not compare IDs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tercet_core::Progress;
use tercet_core::publish::{AtomicFile, FileLock};

use super::log::Record;
use super::{Collection, Member, MemberId};
use crate::error::{Error, ErrorKind};
use crate::file::File;
use crate::scan::RowSelection;
use crate::search::merge::UPDATE_MARK;
use crate::search::{MergeOptions, Segment, merge};
use crate::writer::{WriterOptions, random_uuid};

/// The mark of a segment, if its collection is changed by updates only.
pub(crate) fn mark(file: &File) -> Option<&str> {
    let pairs = &file.footer().pairs;
    pairs.iter().find(|(key, _)| key == UPDATE_MARK).map(|(_, value)| value.as_str())
}

/// An update of the search segments of a collection. Nothing is changed before [`finish`](Self::finish).
#[derive(Debug)]
pub struct SegmentUpdate<'a> {
    collection: &'a mut Collection,
    lock: Option<FileLock>,
    mark: String,
    unlisted: Option<PathBuf>,
}

impl Collection {
    /// Starts an update of search segments. The manifest is locked until it is finished or dropped.
    ///
    /// Fails if a directory without a manifest has `.tatami` files: the manifest would hide them. Files of earlier updates that are no
    /// longer members are removed.
    pub fn update_segments(&mut self) -> Result<SegmentUpdate<'_>, Error> {
        let lock = self.lock_and_refresh()?;
        let listed = |path: &str| self.member(path).is_some();
        let is_file = |name: &std::ffi::OsStr| Path::new(name).extension().is_some_and(|end| end == "tatami");
        let names = self.disk.list(&self.root, &is_file).map_err(|error| self.error(error.into()))?;
        for name in names.iter().filter_map(|name| name.to_str()).filter(|name| !listed(name)) {
            if lock.is_none() {
                return Err(self.error(ErrorKind::UnlistedFile { path: name.into() }));
            }
            if number_of(name).is_some() {
                // Best effort: searches read members only.
                let _ = self.disk.remove(&self.root.join(name));
            }
        }
        let first = self.members().first().map(|member| self.open_member(member)).transpose()?;
        let new = || u128::from_le_bytes(random_uuid()).to_string();
        let mark = first.as_ref().and_then(mark).map_or_else(new, str::to_owned);
        Ok(SegmentUpdate { collection: self, lock, mark, unlisted: None })
    }

    /// Replaces members, which are search segments, by one with their live documents. Readers see the old members or the new one.
    pub fn merge_segments(
        &mut self,
        members: &[Member],
        mut options: WriterOptions,
        progress: &dyn Progress,
    ) -> Result<Member, Error> {
        let mut segments = Vec::with_capacity(members.len());
        for member in members {
            segments.push(opened(&self.open_member(member)?)?);
        }
        // Segments with several marks have none together.
        let first = segments.first().and_then(|first| mark(first.file()));
        let is_one = segments.iter().all(|segment| mark(segment.file()) == first);
        if let Some(mark) = first.filter(|_| is_one) {
            options = options.with_metadata(UPDATE_MARK, mark);
        }
        let path = self.next_path()?;
        let sink = AtomicFile::create_new_on(Arc::clone(&self.disk), &path)
            .map_err(|error| self.error(error.into()))?;
        let options = MergeOptions::default().with_writer(options);
        let output = merge(&segments, sink, options, progress)?.written.output;
        self.exchange(&output, members)
    }

    /// The first free name for a segment.
    fn next_path(&self) -> Result<PathBuf, Error> {
        let is_numbered = |name: &std::ffi::OsStr| name.to_str().and_then(number_of).is_some();
        let names = self.disk.list(&self.root, &is_numbered).map_err(|error| self.error(error.into()))?;
        let last = names.iter().filter_map(|name| number_of(name.to_str()?)).max().unwrap_or(0);
        Ok(self.root.join(format!("docs-{:08}.tatami", last + 1)))
    }
}

impl SegmentUpdate<'_> {
    /// The members.
    pub fn members(&self) -> &[Member] {
        self.collection.members()
    }

    /// Opens a member, which must be a search segment, without its deleted documents.
    pub fn open(&self, member: &Member) -> Result<Segment, Error> {
        opened(&self.collection.open_member(member)?)
    }

    /// Whether the IDs of the live documents of a segment are unique in the collection.
    pub fn has_unique_ids(&self, segment: &Segment) -> bool {
        mark(segment.file()) == Some(&*self.mark)
    }

    /// The path of the next segment.
    pub fn next_path(&mut self) -> Result<PathBuf, Error> {
        let path = self.collection.next_path()?;
        self.unlisted = Some(path.clone());
        Ok(path)
    }

    /// The pair of the footer that marks the segments of this collection.
    pub fn metadata(&self) -> (String, String) {
        (UPDATE_MARK.to_owned(), self.mark.clone())
    }

    /// Adds the segment at [`next_path`](Self::next_path), if one was written, without some of its rows, and deletes rows of members: one
    /// change. Members without live documents are removed.
    pub fn finish(
        mut self,
        added: Option<RowSelection>,
        deleted: &[(MemberId, RowSelection)],
    ) -> Result<(), Error> {
        let mut records = Vec::new();
        for member in self.collection.members() {
            let Some((id, rows)) = deleted.iter().find(|(id, _)| *id == member.id) else { continue };
            let all = member.deleted.union(rows);
            if all.len() >= member.rows {
                records.push(Record::Remove(*id));
            } else if !rows.is_empty() {
                records.push(Record::DeleteRows(*id, rows.clone()));
            }
        }
        if let (Some(dropped), Some(path)) = (added, &self.unlisted) {
            let member = self.collection.describe(path)?;
            let id = member.id;
            records.push(Record::Add(Box::new(member)));
            if !dropped.is_empty() {
                records.push(Record::DeleteRows(id, dropped));
            }
        }
        // From here on the manifest may list the file, even if the change is reported as failed.
        self.unlisted = None;
        let lock = self.lock.take();
        self.collection.commit(lock, &records)
    }
}

impl Drop for SegmentUpdate<'_> {
    fn drop(&mut self) {
        if let Some(path) = &self.unlisted {
            // Best effort: searches read members only.
            let _ = self.collection.disk.remove(path);
        }
    }
}

fn opened(file: &File) -> Result<Segment, Error> {
    file.segment()?.ok_or_else(|| file.error(ErrorKind::NotASegment))
}

/// The number in the name of a segment that was written by an update.
fn number_of(name: &str) -> Option<u64> {
    name.strip_prefix("docs-")?.strip_suffix(".tatami")?.parse().ok()
}
