//! Adding and removing the index of an existing file.

use std::path::Path;
use std::sync::Arc;

use tercet_core::publish::{Disk, FileLock, RealDisk};
use tercet_core::source::File as Source;
use tercet_core::{ByteSource, Class, Diagnostic as _, Limits, Progress, Span};

use super::view::Part;
use super::{Writer, WriterOptions};
use crate::encode::Provenance;
use crate::error::{Error, ErrorKind};
use crate::file::File;
use crate::index::{self, IndexBuilder, IndexKeys, IndexLookup, MessageIndex};
use crate::options::ReadOptions;
use crate::scan::ScanOptions;

/// Options of reindexing.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ReindexOptions {
    /// The keys. By default those of the existing index, or all keys without one.
    pub keys: Option<IndexKeys>,
    /// Whether every message is read, instead of extending the existing index.
    pub rebuild: bool,
    /// Whether the index records when and by which program it was written.
    pub provenance: Provenance,
    /// The largest sizes accepted of the messages that are read.
    pub limits: Limits,
}

impl ReindexOptions {
    /// Extends the existing index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the keys.
    pub fn with_keys(mut self, keys: Option<IndexKeys>) -> Self {
        self.keys = keys;
        self
    }

    /// Sets whether every message is read.
    pub fn with_rebuild(mut self, rebuild: bool) -> Self {
        self.rebuild = rebuild;
        self
    }

    /// Sets whether the index records when and by which program it was written.
    pub fn with_provenance(mut self, provenance: Provenance) -> Self {
        self.provenance = provenance;
        self
    }

    /// Sets the largest sizes accepted.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    fn reading(&self) -> ReadOptions {
        ReadOptions::new().with_limits(self.limits)
    }

    fn writing(&self) -> WriterOptions {
        WriterOptions::new().with_provenance(self.provenance.clone()).with_limits(self.limits)
    }
}

/// The result of reindexing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReindexReport {
    /// The number of messages, without the index.
    pub messages: u64,
    /// The number of messages read.
    pub entered: u64,
    /// The keys of the index.
    pub keys: Vec<String>,
    /// Whether the file is unchanged, because its index is up to date.
    pub is_unchanged: bool,
}

impl Writer {
    /// Adds an index to a file, replacing an existing one.
    ///
    /// Messages in the old index are not read again, unless the keys differ. A message that cannot be read is an
    /// error, because the index could not list it.
    pub fn reindex(
        path: impl AsRef<Path>,
        how: &ReindexOptions,
        progress: &dyn Progress,
    ) -> Result<ReindexReport, Error> {
        Self::reindex_on(Arc::new(RealDisk), path, how, progress)
    }

    /// [`reindex`](Self::reindex) on another disk.
    pub fn reindex_on(
        disk: Arc<dyn Disk>,
        path: impl AsRef<Path>,
        how: &ReindexOptions,
        progress: &dyn Progress,
    ) -> Result<ReindexReport, Error> {
        let (path, keys) = (path.as_ref(), how.keys.as_ref());
        let name: Arc<str> = path.to_string_lossy().into();
        let named = |fault: ErrorKind| Error::new(Arc::clone(&name), fault);
        if let Some(Err(reason)) = keys.map(index::check_keys) {
            return Err(named(ErrorKind::CannotIndex { reason: reason.into() }));
        }
        let (lock, source) = hold(disk, path).map_err(named)?;
        let old = index::find_last(&*source, &how.reading()).map_err(named)?;
        let is_kept = |old: &MessageIndex| {
            !how.rebuild && old.is_current() && keys.is_none_or(|keys| has_keys(old, keys))
        };
        let kept = old.filter(|(old, _)| is_kept(old));
        if let Some((old, after)) = &kept
            && after.is_empty()
        {
            let messages = old.scan().messages.len() as u64;
            let keys = old.keys().map(str::to_owned).collect();
            return Ok(ReindexReport { messages, entered: 0, keys, is_unchanged: true });
        }
        let sink = lock.replace().map_err(|error| named(error.into()))?;
        let mut writer = Self::new(sink.into(), how.writing()).with_name(&name);
        let mut before = 0;
        if let Some((old, after)) = kept {
            let resumed = IndexBuilder::resume(&old);
            let resumed = resumed
                .map_err(|error| named(ErrorKind::CannotIndex { reason: error.to_string().into() }))?;
            before = resumed.len() as u64;
            writer.copy(&*source, Span::first(old.span().start()), progress).map_err(named)?;
            writer.message_index = Some(resumed);
            for span in after {
                writer.copy(&*source, span, progress).map_err(named)?;
            }
        } else {
            writer.message_index = Some(IndexBuilder::new(keys.unwrap_or(&IndexKeys::All)));
            writer.copy_messages(&source, progress)?;
        }
        let message_index = writer.message_index.as_ref();
        let messages = message_index.map_or(0, |message_index| message_index.len() as u64);
        let keys = message_index.map(|message_index| message_index.keys().map(str::to_owned).collect());
        if messages == 0 {
            return Err(named(ErrorKind::CannotIndex { reason: "the file holds no message".into() }));
        }
        writer.finish()?;
        let (entered, keys) = (messages - before, keys.unwrap_or_default());
        Ok(ReindexReport { messages, entered, keys, is_unchanged: false })
    }

    /// Removes the indexes of a file; returns whether it had any. Of the options, the limits apply.
    pub fn remove_index(
        path: impl AsRef<Path>,
        how: &ReindexOptions,
        progress: &dyn Progress,
    ) -> Result<bool, Error> {
        Self::remove_index_on(Arc::new(RealDisk), path, how, progress)
    }

    /// [`Self::remove_index`] on another disk.
    pub fn remove_index_on(
        disk: Arc<dyn Disk>,
        path: impl AsRef<Path>,
        how: &ReindexOptions,
        progress: &dyn Progress,
    ) -> Result<bool, Error> {
        let path = path.as_ref();
        let name: Arc<str> = path.to_string_lossy().into();
        let named = |fault: ErrorKind| Error::new(Arc::clone(&name), fault);
        let (lock, source) = hold(disk, path).map_err(named)?;
        let sink = lock.replace().map_err(|error| named(error.into()))?;
        let mut writer = Self::new(sink.into(), how.writing()).with_name(&name);
        writer.copy_messages(&source, progress)?;
        let is_changed = writer.position().map_err(named)? < source.len();
        if is_changed {
            writer.finish()?;
        }
        Ok(is_changed)
    }

    /// Copies a file without its indexes, and adds its messages to the new index.
    fn copy_messages(&mut self, source: &Arc<Source>, progress: &dyn Progress) -> Result<(), Error> {
        let bytes = Arc::clone(source) as Arc<dyn ByteSource>;
        let options = ScanOptions::default().with_index(false);
        let file = File::from_source(bytes, self.reading)?.with_scan_options(options);
        // A damaged index is not a readable message either.
        let damaged = match index::find(&**source, file.options()) {
            Ok(IndexLookup::Rejected(span, _)) => Some(span),
            Err(fault) if fault.class() == Class::Limit => return Err(self.error(fault)),
            _ => None,
        };
        let mut message_index = self.message_index.take();
        let (mut at, mut to) = (0, 0);
        for (message, &span) in file.messages()?.zip(&file.scan()?.messages) {
            progress.check().map_err(|stop| self.error(stop.into()))?;
            let is_message_index = match &message {
                Ok(message) => message.metadata().is_message_index(),
                Err(_) => false,
            };
            if is_message_index || damaged == Some(span) {
                self.copy_from(&**source, between(at, span.start()), progress)?;
                to += span.start() - at;
                at = span.end();
                continue;
            }
            let message = message?;
            if let Some(message_index) = &mut message_index {
                let start = to + (span.start() - at);
                message_index
                    .push(Span::at(start, span.len()).unwrap_or(Span::empty(start)), message.metadata());
            }
        }
        self.copy_from(&**source, between(at, source.len()), progress)?;
        self.message_index = message_index;
        Ok(())
    }
}

/// Opens a locked file.
pub(super) fn hold(disk: Arc<dyn Disk>, path: &Path) -> Result<(FileLock, Arc<Source>), ErrorKind> {
    let lock = FileLock::acquire_on(disk, path)?;
    Ok((lock, Arc::new(Source::open(path)?)))
}

/// Rebuilds the index of the messages before `end`.
pub(super) fn index_messages(
    source: &Source,
    end: u64,
    reading: &ReadOptions,
) -> Result<IndexBuilder, ErrorKind> {
    let mut message_index = IndexBuilder::new(&IndexKeys::All);
    let part = Part::new(source, Span::first(end));
    for found in
        crate::scan::scan_source(&part, ScanOptions::default(), &tercet_core::progress::NoProgress)?.messages
    {
        message_index.push(found, &crate::message::read_metadata(&part, found, reading)?);
    }
    Ok(message_index)
}

fn has_keys(old: &MessageIndex, keys: &IndexKeys) -> bool {
    match keys {
        IndexKeys::All => old.has_all_keys(),
        IndexKeys::Only(keys) => !old.has_all_keys() && old.keys().eq(keys.iter().map(String::as_str)),
    }
}

fn between(start: u64, end: u64) -> Span {
    Span::between(start, end).unwrap_or(Span::empty(start))
}
