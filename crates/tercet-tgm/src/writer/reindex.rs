//! Adding and removing the index of an existing file.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tercet_core::limits::check_limit;
use tercet_core::progress::NoProgress;
use tercet_core::publish::{Disk, FileLock, RealDisk};
use tercet_core::sink::Sink as _;
use tercet_core::source::File as Source;
use tercet_core::{ByteSource, Limits, Progress, Span};

use super::view::Part;
use super::{Writer, WriterOptions};
use crate::encode::Provenance;
use crate::error::{Error, ErrorKind};
use crate::file::File;
use crate::gaps::Gap;
use crate::index::{self, IndexBuilder, IndexKeys, IndexLookup, MessageIndex};
use crate::message::read_metadata;
use crate::options::ReadOptions;
use crate::scan::{CutTail, Scan, ScanOptions, scan_source};

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
    /// The maximum sizes accepted of the messages that are read.
    pub limits: Limits,
    /// Whether the index is a file of its own beside the file, `run.tgm.idx` for `run.tgm`, which does not change then.
    pub index_file: bool,
    /// Whether a file with [gaps](File::gaps) is indexed. Messages may be lost in them, so that later ones have other
    /// numbers.
    pub allow_gaps: bool,
    /// The longest wait for another writer to the same file, before an index file is written. By default none.
    pub lock_wait: Duration,
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

    /// Sets the maximum sizes accepted.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets whether the index is a file of its own.
    pub fn with_index_file(mut self, index_file: bool) -> Self {
        self.index_file = index_file;
        self
    }

    /// Sets whether a file with gaps is indexed.
    pub fn with_allow_gaps(mut self, allow: bool) -> Self {
        self.allow_gaps = allow;
        self
    }

    /// Sets the longest wait for another writer to the same file, before an index file is written.
    pub fn with_lock_wait(mut self, wait: Duration) -> Self {
        self.lock_wait = wait;
        self
    }

    /// Rejects a gap before `end` unless gaps are allowed. `source` starts at byte `start` of the file.
    fn check_gaps(
        &self,
        scan: &Scan,
        source: &dyn ByteSource,
        start: u64,
        end: u64,
    ) -> Result<(), ErrorKind> {
        if self.allow_gaps {
            return Ok(());
        }
        match scan.first_gap(source)?.filter(|gap| gap.span.start() < end) {
            Some(gap) => {
                let span = between(start + gap.span.start(), start + gap.span.end());
                Err(ErrorKind::IndexedGap { gap: Gap { span, ..gap } })
            }
            None => Ok(()),
        }
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
    /// error, because the index could not list it, and so is a [gap](File::gaps), unless the options allow it.
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
        if how.index_file {
            return Self::reindex_file(disk, path, how, progress).map_err(named);
        }
        let (lock, source) = hold(disk, path).map_err(named)?;
        let old = index::find_last(&*source, &how.reading()).map_err(named)?;
        let is_kept = |old: &MessageIndex| {
            !how.rebuild && old.is_current() && keys.is_none_or(|keys| has_keys(old, keys))
        };
        let kept = old.filter(|(old, _)| is_kept(old));
        if let Some((old, _)) = &kept {
            how.check_gaps(old.scan(), &*source, 0, old.span().start()).map_err(named)?;
        }
        if let Some((old, after)) = &kept
            && after.is_empty()
        {
            let messages = old.scan().messages.len() as u64;
            let keys = old.keys().map(str::to_owned).collect();
            return Ok(ReindexReport { messages, entered: 0, keys, is_unchanged: true });
        }
        let mut before = 0;
        let mut writer;
        if let Some((old, after)) = kept {
            let sink = lock.replace().map_err(|error| named(error.into()))?;
            writer = Self::new(sink.into(), how.writing()).with_name(&name);
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
            let message_index = IndexBuilder::new(keys.unwrap_or(&IndexKeys::All));
            match Self::index_in_place(&source, message_index, how, progress)? {
                // Only the index is written.
                Some(Indexed { cut_tail: Some(cut), .. }) => {
                    return Err(named(ErrorKind::IndexedTail { cut }));
                }
                Some(Indexed { message_index, end, replaced, .. }) => {
                    let sink = lock.extend(source.len(), end, replaced);
                    writer = Self::new(sink.into(), how.writing()).with_name(&name);
                    writer.message_index = Some(message_index);
                }
                None => {
                    let sink = lock.replace().map_err(|error| named(error.into()))?;
                    writer = Self::new(sink.into(), how.writing()).with_name(&name);
                    writer.message_index = Some(IndexBuilder::new(keys.unwrap_or(&IndexKeys::All)));
                    writer.copy_messages(&source, progress)?;
                }
            }
        }
        let message_index = writer.message_index.as_ref();
        let messages = message_index.map_or(0, |message_index| message_index.len() as u64);
        let keys = message_index.map(|message_index| message_index.keys().map(str::to_owned).collect());
        if messages == 0 {
            return Err(named(no_message()));
        }
        writer.finish()?;
        let (entered, keys) = (messages - before, keys.unwrap_or_default());
        Ok(ReindexReport { messages, entered, keys, is_unchanged: false })
    }

    /// Reads the messages of a file for an index at its end. `None` if another index is among the messages: the file is
    /// then written again without it.
    fn index_in_place(
        source: &Arc<Source>,
        mut message_index: IndexBuilder,
        how: &ReindexOptions,
        progress: &dyn Progress,
    ) -> Result<Option<Indexed>, Error> {
        let bytes = Arc::clone(source) as Arc<dyn ByteSource>;
        let options = ScanOptions::default().with_index(false);
        let file = File::from_source(bytes, how.reading())?.with_scan_options(options);
        let named = |fault: ErrorKind| Error::new(Arc::clone(source.name()), fault);
        let last = last_index(source, file.options()).map_err(named)?;
        let cut_tail = file.cut_tail()?;
        let end = last.map_or(source.len(), Span::start);
        let checked = cut_tail.map_or(end, |cut| cut.span.start().min(end));
        how.check_gaps(&*file.scan()?, &**source, 0, checked).map_err(named)?;
        for (message, &span) in file.messages()?.zip(&file.scan()?.messages) {
            progress.check().map_err(|stop| named(stop.into()))?;
            if last == Some(span) {
                continue;
            }
            let message = message?;
            if message.metadata().is_message_index() {
                return Ok(None);
            }
            message_index.push(span, message.metadata());
            progress.advance(span.len());
        }
        let replaced = match last {
            Some(last) => {
                check_limit("the index", last.len(), how.limits.metadata_bytes)
                    .map_err(|error| named(error.into()))?;
                source.read_at(last).map_err(|error| named(error.into()))?.to_vec()
            }
            None => Vec::new(),
        };
        Ok(Some(Indexed { message_index, end, replaced, cut_tail }))
    }

    /// Writes the index file of a file, or extends it.
    fn reindex_file(
        disk: Arc<dyn Disk>,
        path: &Path,
        how: &ReindexOptions,
        progress: &dyn Progress,
    ) -> Result<ReindexReport, ErrorKind> {
        let lock = super::append::wait_for(&disk, path, how.lock_wait, progress)?;
        let source = Source::open(path)?;
        if last_index(&source, &how.reading())?.is_some() {
            let reason = "the file ends with an index; remove it first".into();
            return Err(ErrorKind::CannotIndex { reason });
        }
        let index_path = index::index_file_path(path);
        let old = Source::open(&index_path).ok();
        let old = old.and_then(|old| index::covered(&old, &source, &how.reading()));
        let is_kept = |old: &MessageIndex| {
            !how.rebuild && old.is_current() && how.keys.as_ref().is_none_or(|keys| has_keys(old, keys))
        };
        let kept = old.filter(|(old, _)| is_kept(old));
        if let Some((old, covered)) = &kept {
            how.check_gaps(old.scan(), &source, 0, *covered)?;
        }
        let kept = kept.and_then(|(old, covered)| Some((IndexBuilder::resume(&old).ok()?, covered)));
        let (mut message_index, covered) =
            kept.unwrap_or_else(|| (IndexBuilder::new(how.keys.as_ref().unwrap_or(&IndexKeys::All)), 0));
        let before = message_index.len() as u64;
        let is_unchanged = covered == source.len() && before > 0;
        if !is_unchanged {
            index_messages_from(&source, covered, &mut message_index, how, progress)?;
        }
        let messages = message_index.len() as u64;
        if messages == 0 {
            return Err(no_message());
        }
        let keys = message_index.keys().map(str::to_owned).collect();
        if !is_unchanged {
            let coverage = index::Coverage::all(&source)?;
            let mut sink = super::FileSink::create_on(disk, &index_path, true)?;
            coverage.write(message_index, &mut sink, how.provenance.clone())?;
            sink.finish()?;
        }
        drop(lock);
        Ok(ReindexReport { messages, entered: messages - before, keys, is_unchanged })
    }

    /// Removes the indexes of a file and its index file; returns whether it had any. Of the options, the limits apply.
    pub fn remove_index(
        path: impl AsRef<Path>,
        how: &ReindexOptions,
        progress: &dyn Progress,
    ) -> Result<bool, Error> {
        Self::remove_index_on(Arc::new(RealDisk), path, how, progress)
    }

    /// [`Self::remove_index`] on another disk.
    #[expect(clippy::needless_pass_by_value, reason = "the signature of the other constructors")]
    pub fn remove_index_on(
        disk: Arc<dyn Disk>,
        path: impl AsRef<Path>,
        how: &ReindexOptions,
        progress: &dyn Progress,
    ) -> Result<bool, Error> {
        let path = path.as_ref();
        let name: Arc<str> = path.to_string_lossy().into();
        let named = |fault: ErrorKind| Error::new(Arc::clone(&name), fault);
        let (lock, source) = hold(Arc::clone(&disk), path).map_err(named)?;
        let had_file = match disk.remove(&index::index_file_path(path)) {
            Ok(()) => true,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
            Err(error) => return Err(named(error.into())),
        };
        let in_place = IndexBuilder::new(&IndexKeys::Only(Vec::new()));
        let how = &how.clone().with_allow_gaps(true);
        if let Some(Indexed { end, replaced, .. }) = Self::index_in_place(&source, in_place, how, progress)? {
            let has_index = end < source.len();
            if has_index {
                let sink = lock.extend(source.len(), end, replaced);
                Self::new(super::FileSink::from(sink), how.writing()).with_name(&name).finish()?;
            }
            return Ok(has_index || had_file);
        }
        let sink = lock.replace().map_err(|error| named(error.into()))?;
        let mut writer = Self::new(sink.into(), how.writing()).with_name(&name);
        writer.copy_messages(&source, progress)?;
        let is_changed = writer.position().map_err(named)? < source.len();
        if is_changed {
            writer.finish()?;
        }
        Ok(is_changed || had_file)
    }

    /// Copies a file without its indexes, and adds its messages to the new index.
    fn copy_messages(&mut self, source: &Arc<Source>, progress: &dyn Progress) -> Result<(), Error> {
        let bytes = Arc::clone(source) as Arc<dyn ByteSource>;
        let options = ScanOptions::default().with_index(false);
        let file = File::from_source(bytes, self.reading)?.with_scan_options(options);
        // A damaged index is not a readable message either.
        let damaged = last_index(source, file.options()).map_err(|fault| self.error(fault))?;
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

/// The messages of a file for an index in place.
struct Indexed {
    message_index: IndexBuilder,
    /// The end of the messages, where the index starts.
    end: u64,
    /// The bytes of the old index.
    replaced: Vec<u8>,
    /// An incomplete message at the end.
    cut_tail: Option<CutTail>,
}

fn no_message() -> ErrorKind {
    ErrorKind::CannotIndex { reason: "the file holds no message".into() }
}

/// The byte range of the index at the end of a file, valid or not.
fn last_index(source: &Source, options: &ReadOptions) -> Result<Option<Span>, ErrorKind> {
    Ok(match index::find(source, options)? {
        IndexLookup::Found(index) => Some(index.span()),
        IndexLookup::Rejected(_, error) if error.is_limit() => {
            return error.into_limit().map_or(Ok(None), Err);
        }
        IndexLookup::Rejected(span, _) => Some(span),
        IndexLookup::None => None,
    })
}

/// Opens a locked file.
pub(super) fn hold(disk: Arc<dyn Disk>, path: &Path) -> Result<(FileLock, Arc<Source>), ErrorKind> {
    let lock = FileLock::acquire_on(disk, path)?;
    Ok((lock, Arc::new(Source::open(path)?)))
}

/// Rebuilds the index of the messages before `end`. `None` if another index is among them: an index cannot list messages on
/// both sides of it.
pub(super) fn index_messages(
    source: &Source,
    end: u64,
    reading: &ReadOptions,
) -> Result<Option<IndexBuilder>, ErrorKind> {
    let mut message_index = IndexBuilder::new(&IndexKeys::All);
    let part = Part::new(source, Span::first(end));
    for found in scan_source(&part, ScanOptions::default(), &NoProgress)?.messages {
        let metadata = read_metadata(&part, found, reading)?;
        if metadata.is_message_index() {
            return Ok(None);
        }
        message_index.push(found, &metadata);
    }
    Ok(Some(message_index))
}

/// Adds the messages from `start` on to an index. Other indexes are skipped.
fn index_messages_from(
    source: &Source,
    start: u64,
    message_index: &mut IndexBuilder,
    how: &ReindexOptions,
    progress: &dyn Progress,
) -> Result<(), ErrorKind> {
    let part = Part::new(source, between(start, source.len()));
    let scan = scan_source(&part, ScanOptions::default(), progress)?;
    if let Some(mut cut) = scan.cut_tail(&part)? {
        cut.message += message_index.len() as u64;
        cut.span = between(start + cut.span.start(), start + cut.span.end());
        return Err(ErrorKind::IndexedTail { cut });
    }
    how.check_gaps(&scan, &part, start, part.len())?;
    for found in scan.messages {
        progress.check()?;
        let metadata = read_metadata(&part, found, &how.reading())?;
        if !metadata.is_message_index() {
            message_index.push(between(start + found.start(), start + found.end()), &metadata);
        }
    }
    Ok(())
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
