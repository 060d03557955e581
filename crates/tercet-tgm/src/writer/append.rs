//! Appending to a file in place.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tercet_core::limits::check_limit;
use tercet_core::publish::{Disk, FileLock, PublishError, RealDisk, WaitError};
use tercet_core::source::File as Source;
use tercet_core::{ByteSource as _, CommonError, Diagnostic as _, Limits, Progress, Span};

use super::{Writer, WriterOptions, reindex, rotation};
use crate::error::{Error, ErrorKind};
use crate::index::{self, IndexBuilder, IndexLookup};
use crate::options::ReadOptions;
use crate::scan::{CutTail, ScanOptions, scan_source};
use crate::wire::ids::{MIN_MESSAGE, POSTAMBLE_LEN, PREAMBLE_LEN};
use crate::wire::postamble::Postamble;
use crate::wire::preamble::Preamble;

impl Writer {
    /// Appends to a file in place: bytes that are already in it do not change, and the time does not depend on its length.
    ///
    /// The file is locked until [`finish`](Writer::finish); other appenders wait. A reader finds the old end or complete
    /// messages. Without `finish`, and after an error, the file is truncated to its old end. An incomplete message, which
    /// a stopped writer left at the end, is removed: see [`cut_tail`](Writer::cut_tail). Other bytes after the last message
    /// are kept, also zeros: they are a gap, and readers report it. An index at the end is extended and written again at the
    /// new end.
    pub fn append(path: impl AsRef<Path>, progress: &dyn Progress) -> Result<Self, Error> {
        Self::append_with(path, WriterOptions::new(), progress)
    }

    /// [`append`](Self::append) with options: provenance, limits, lock wait and index file apply. The file has an index if it
    /// had one; an index file is extended, and created with [`WriterOptions::index_file`].
    pub fn append_with(
        path: impl AsRef<Path>,
        options: WriterOptions,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        Self::append_on(Arc::new(RealDisk), path, options, progress)
    }

    /// Appends to a file on another disk.
    #[expect(clippy::needless_pass_by_value, reason = "the signature of the other constructors")]
    pub fn append_on(
        disk: Arc<dyn Disk>,
        path: impl AsRef<Path>,
        options: WriterOptions,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let path = path.as_ref();
        let name: Arc<str> = path.to_string_lossy().into();
        let start = || {
            let lock = wait_for(&disk, path, options.lock_wait, progress)?;
            let source = Source::open(path)?;
            let index_file = options.index_file || disk.entry(&index::index_file_path(path)).is_ok();
            let OldEnd { at, message_index, replaced, cut_tail } =
                OldEnd::find(&source, options.limits, progress)?;
            let sink = lock.extend(source.len(), at, replaced);
            let mut writer = Self::new(sink.into(), options.with_index(None)).with_name(&name);
            // An index at the end is the one that readers use.
            writer.index_file = (index_file && message_index.is_none()).then(|| path.to_owned());
            writer.message_index = message_index;
            writer.cut_tail = cut_tail;
            Ok(writer)
        };
        start().map_err(|fault: ErrorKind| Error::new(Arc::clone(&name), fault))
    }
}

impl Writer {
    /// Appends to a file, or creates it; with [`WriterOptions::max_file_size`], a file that has reached this size is renamed
    /// first, and a new one is created: see [`rotated`](Writer::rotated). For producers that run for a long time.
    ///
    /// Of several writers that create the same file, all but one get [`PublishError::Exists`] at
    /// [`finish`](Writer::finish), and can append again.
    ///
    /// ```
    /// use tercet_core::progress::NoProgress;
    /// use tercet_tgm::{EncodeOptions, File, GlobalMetadata, Writer, WriterOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("run.tgm");
    /// let options = WriterOptions::new().with_max_file_size(Some(1000));
    /// for _ in 0..9 {
    ///     let mut writer = Writer::append_or_create(&path, options.clone(), &NoProgress)?;
    ///     writer.message(&GlobalMetadata::default(), &[], &EncodeOptions::new())?;
    ///     writer.finish()?;
    /// }
    /// let full = File::open(directory.path().join("run-000000.tgm"))?;
    /// assert!(full.len() >= 1000 && full.message_count()? < 9);
    /// # Ok::<(), tercet_tgm::Error>(())
    /// ```
    pub fn append_or_create(
        path: impl AsRef<Path>,
        options: WriterOptions,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        Self::append_or_create_on(Arc::new(RealDisk), path, options, progress)
    }

    /// [`append_or_create`](Self::append_or_create) on another disk.
    #[expect(clippy::needless_pass_by_value, reason = "the signature of the other constructors")]
    pub fn append_or_create_on(
        disk: Arc<dyn Disk>,
        path: impl AsRef<Path>,
        options: WriterOptions,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let path = path.as_ref();
        let until = Instant::now() + options.lock_wait;
        let named = |fault: ErrorKind| Error::new(path.to_string_lossy().into(), fault);
        let mut rotated = None;
        loop {
            if let Some(max) = options.max_file_size {
                let full = rotation::rotate(&disk, path, max, options.lock_wait, progress).map_err(named)?;
                rotated = full.or(rotated);
            }
            let appended = Self::append_on(Arc::clone(&disk), path, options.clone(), progress);
            let mut writer = match appended {
                Err(error) if error.is_not_found() => {
                    match Self::create_on(Arc::clone(&disk), path, options.clone().with_overwrite(false)) {
                        // Another writer creates the file: wait for it.
                        Err(error) if is_created_by_another(&error) && Instant::now() < until => {
                            progress.check().map_err(|stop| named(stop.into()))?;
                            std::thread::sleep(CREATED_INTERVAL);
                            continue;
                        }
                        created => created?,
                    }
                }
                appended => appended?,
            };
            writer.rotated = rotated;
            return Ok(writer);
        }
    }
}

/// Interval of attempts to append to a file that another writer creates.
const CREATED_INTERVAL: Duration = Duration::from_millis(5);

/// Whether the file to be created was created by another writer meanwhile.
fn is_created_by_another(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Common(CommonError::Publish(PublishError::Exists { .. } | PublishError::Busy { .. }))
    )
}

/// Locks a file, and waits for other writers.
pub(super) fn wait_for(
    disk: &Arc<dyn Disk>,
    path: &Path,
    wait: Duration,
    progress: &dyn Progress,
) -> Result<FileLock, ErrorKind> {
    FileLock::wait_on(disk, path, wait, progress).map_err(|error| match error {
        WaitError::Cancelled(cancelled) => ErrorKind::from(cancelled),
        WaitError::Publish(error) => error.into(),
        other => std::io::Error::other(other).into(),
    })
}

/// The place in a file where the next message starts.
struct OldEnd {
    at: u64,
    /// The index to extend.
    message_index: Option<IndexBuilder>,
    /// The bytes of the old index.
    replaced: Vec<u8>,
    cut_tail: Option<CutTail>,
}

impl OldEnd {
    fn find(source: &Source, limits: Limits, progress: &dyn Progress) -> Result<Self, ErrorKind> {
        let reading = ReadOptions::new().with_limits(limits);
        let end = |at| Self { at, message_index: None, replaced: Vec::new(), cut_tail: None };
        let (span, message_index) = match index::find(source, &reading)? {
            IndexLookup::Found(old) => (old.span(), IndexBuilder::resume(&old).ok()),
            IndexLookup::Rejected(span, error) => match error.into_limit() {
                Some(fault) => return Err(fault),
                // Its length is not to be trusted: the bytes stay.
                None if !starts_message(source, span)? => return Ok(end(source.len())),
                None => (span, None),
            },
            IndexLookup::None if ends_with_message(source)? => return Ok(end(source.len())),
            IndexLookup::None => {
                let scan = scan_source(source, ScanOptions::default(), progress)?;
                let cut_tail = scan.cut_tail(source)?;
                let at = cut_tail.map_or(source.len(), |cut| cut.span.start());
                return Ok(Self { cut_tail, ..end(at) });
            }
        };
        check_limit("the index", span.len(), limits.metadata_bytes)?;
        let replaced = source.read_at(span)?.to_vec();
        let message_index = match message_index {
            Some(message_index) => Some(message_index),
            None => reindex::index_messages(source, span.start(), &reading)?,
        };
        Ok(Self { message_index, replaced, ..end(span.start()) })
    }
}

/// Whether a file is empty, or ends with a message whose postamble has its length.
fn ends_with_message(source: &Source) -> Result<bool, ErrorKind> {
    let len = source.len();
    let Some(tail_at) = len.checked_sub(POSTAMBLE_LEN) else { return Ok(len == 0) };
    let tail = source.read_at(Span::between(tail_at, len).unwrap_or(Span::empty(len)))?;
    let Ok(postamble) = Postamble::parse(0, tail_at, &tail) else { return Ok(false) };
    let start = len.checked_sub(postamble.total_length).filter(|_| postamble.total_length >= MIN_MESSAGE);
    match start.and_then(|start| Span::between(start, len)) {
        Some(span) => starts_message(source, span),
        None => Ok(false),
    }
}

/// Whether the preamble of a message of this length is at the start of the range.
fn starts_message(source: &Source, span: Span) -> Result<bool, ErrorKind> {
    let Some(head) = span.slice(0, PREAMBLE_LEN) else { return Ok(false) };
    let preamble = Preamble::parse(0, span.start(), &source.read_at(head)?);
    Ok(preamble.is_ok_and(|preamble| [0, span.len()].contains(&preamble.total_length)))
}
