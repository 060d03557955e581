//! Files of messages.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use rayon::prelude::*;
#[cfg(any(unix, windows))]
use tercet_core::Location;
use tercet_core::limits::check_limit;
use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
#[cfg(all(any(unix, windows), not(feature = "remote")))]
use tercet_core::source::open_location;
use tercet_core::threads::install;
use tercet_core::{ByteSource, CommonError, Progress, Span};
#[cfg(all(any(unix, windows), feature = "remote"))]
use tercet_remote::open_location;

use crate::error::{Error, ErrorKind};
use crate::gaps::Gap;
use crate::index::{self, IndexError, IndexLookup, MessageIndex};
use crate::message::Message;
use crate::options::ReadOptions;
use crate::region::Part;
use crate::scan::{CutTail, Direction, Scan, ScanOptions, scan_first, scan_remote, scan_source};
use crate::verification_cache::VerificationCache;

mod batch;
mod prefetch;

#[cfg(any(unix, windows))]
pub(crate) use batch::Wanted;

/// A file of messages, with random access.
///
/// Opening reads nothing. The first call that needs the positions of messages scans the file: it reads a block around
/// each preamble and postamble, and keeps the list. A [message](Self::message) by number needs only those up to it. A file
/// that ends with an index, or has one in a file beside it (`run.tgm.idx`), is not scanned: the index contains the
/// positions. Indexes are not counted as messages, wherever they are. Clones are cheap and share the list.
///
/// ```
/// use tercet_tgm::{DataObjectDescriptor, DType, EncodeOptions, File, GlobalMetadata, Writer, WriterOptions};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("run.tgm");
/// let descriptor = DataObjectDescriptor::new(DType::F32, [2]);
/// let payload: Vec<u8> = [1.0f32, 2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
/// let mut writer = Writer::create(&path, WriterOptions::new())?;
/// for _ in 0..3 {
///     writer.message(&GlobalMetadata::default(), &[(&descriptor, &payload)], &EncodeOptions::new())?;
/// }
/// writer.finish()?;
///
/// let file = File::open(&path)?;
/// assert_eq!(file.message_count()?, 3);
/// let array = file.message(2)?.object(0)?.decode()?;
/// assert_eq!(array.as_slice::<f32>(), Some(&[1.0, 2.0][..]));
/// # Ok::<(), tercet_tgm::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct File {
    source: Arc<dyn ByteSource>,
    options: ReadOptions,
    /// Verified objects of this file.
    verification_cache: Arc<VerificationCache>,
    scan_options: ScanOptions,
    /// Where an index file is looked for.
    beside: Option<SideFile>,
    /// Shared by all clones.
    tables: Arc<Mutex<Tables>>,
}

/// The index in a file of its own.
#[derive(Clone, Debug)]
enum SideFile {
    /// A file that need not exist.
    #[cfg(any(unix, windows))]
    Path(std::path::PathBuf),
    Source(Arc<dyn ByteSource>),
}

/// The lists of messages that are known.
#[derive(Debug, Default)]
struct Tables {
    all: Option<MessageTable>,
    /// The first messages of a file without an index.
    first: Option<MessageTable>,
}

/// The positions of the messages, and their origin.
#[derive(Clone, Debug)]
struct MessageTable {
    scan: Arc<Scan>,
    message_index: Option<Arc<MessageIndex>>,
    /// The span of an index that is not used, and the reason.
    refused: Option<(Span, Arc<IndexError>)>,
    /// The first gap. An index may have been made after the damage.
    first_gap: Option<Gap>,
}

impl File {
    /// Opens a path, or a URL with the feature `remote`, with default options. Reads no message.
    #[cfg(any(unix, windows))]
    pub fn open(location: impl Into<Location>) -> Result<Self, Error> {
        Self::open_with(location, ReadOptions::new())
    }

    /// Opens a path, or a URL with the feature `remote`. Reads no message.
    #[cfg(any(unix, windows))]
    pub fn open_with(location: impl Into<Location>, options: ReadOptions) -> Result<Self, Error> {
        let location = location.into();
        let source = open_location(&location, options.common.access)
            .map_err(|error| Error::new(location.to_string().into(), error.into()))?;
        let file = Self::from_source(source, options)?;
        Ok(match location.as_path() {
            Some(path) => file.with_index_file_of(path),
            None => file,
        })
    }

    /// Uses the index file beside a path, `run.tgm.idx` for `run.tgm`, if it exists and is not stale. [`open`](Self::open)
    /// does so for files on this machine.
    #[cfg(any(unix, windows))]
    pub fn with_index_file_of(mut self, path: &std::path::Path) -> Self {
        self.beside = Some(SideFile::Path(index::index_file_path(path)));
        self.tables = Arc::default();
        self
    }

    /// Opens a byte source. Reads nothing.
    pub fn from_source(source: Arc<dyn ByteSource>, options: ReadOptions) -> Result<Self, Error> {
        Ok(Self {
            source,
            options,
            verification_cache: Arc::default(),
            scan_options: ScanOptions::default(),
            beside: None,
            tables: Arc::default(),
        })
    }

    /// Uses an index file, such as that of a remote file, if it is not stale.
    pub fn with_index_file(mut self, index_file: Arc<dyn ByteSource>) -> Self {
        self.beside = Some(SideFile::Source(index_file));
        self.tables = Arc::default();
        self
    }

    /// Opens a buffer. `name` appears in errors.
    pub fn from_bytes(name: &str, bytes: impl Into<Bytes>) -> Result<Self, Error> {
        Self::from_source(Arc::new(Memory::new(name, bytes)), ReadOptions::new())
    }

    /// Sets how messages are found.
    pub fn with_scan_options(mut self, options: ScanOptions) -> Self {
        self.scan_options = options;
        self.tables = Arc::default();
        self
    }

    /// Sets the read options. The list of messages is kept.
    pub fn with_options(mut self, options: ReadOptions) -> Self {
        self.options = options;
        self.verification_cache = Arc::default();
        self
    }

    /// The path or URL, as it was opened.
    pub fn name(&self) -> &Arc<str> {
        self.source.name()
    }

    /// The length of the file in bytes.
    pub fn len(&self) -> u64 {
        self.source.len()
    }

    /// Whether the file is empty.
    pub fn is_empty(&self) -> bool {
        self.source.is_empty()
    }

    /// The byte ranges of the messages, and the unrecognized bytes. The file is scanned once.
    pub fn scan(&self) -> Result<Arc<Scan>, Error> {
        self.scan_with(&NoProgress)
    }

    /// Like [`scan`](Self::scan), with progress.
    pub fn scan_with(&self, progress: &dyn Progress) -> Result<Arc<Scan>, Error> {
        Ok(self.message_table(progress)?.scan)
    }

    /// The index at the end of the file or in its index file, if it is valid and the options allow its use.
    pub fn index(&self) -> Result<Option<Arc<MessageIndex>>, Error> {
        Ok(self.message_table_with(0)?.message_index)
    }

    /// The reason why the index at the end of the file, or in its index file, is not used, if any. The file is then scanned
    /// instead.
    pub fn rejected_index(&self) -> Result<Option<Arc<IndexError>>, Error> {
        Ok(self.message_table_with(0)?.refused.map(|(_, reason)| reason))
    }

    /// The byte range of the index at the end of the file, whether it is used or not.
    pub fn index_span(&self) -> Result<Option<Span>, Error> {
        let message_table = self.message_table_with(0)?;
        let used = message_table.message_index.map(|message_index| message_index.span());
        Ok(used.or(message_table.refused.map(|(span, _)| span)).filter(|span| !span.is_empty()))
    }

    fn message_table(&self, progress: &dyn Progress) -> Result<MessageTable, Error> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = &tables.all {
            return Ok(table.clone());
        }
        let table = self.find_index().and_then(|found| self.read_message_table(found, progress));
        Ok(tables.all.insert(table.map_err(|fault| self.error(fault))?).clone())
    }

    /// A list of messages with this one, if it exists. A file without an index is scanned up to the message.
    fn message_table_with(&self, index: u64) -> Result<MessageTable, Error> {
        let wanted = usize::try_from(index).unwrap_or(usize::MAX);
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let has = |table: &&MessageTable| table.scan.messages.len() > wanted;
        if let Some(table) = tables.all.as_ref().or(tables.first.as_ref().filter(has)) {
            return Ok(table.clone());
        }
        let (table, is_all) =
            self.read_table_with(wanted, tables.first.as_ref()).map_err(|fault| self.error(fault))?;
        let known = if is_all { &mut tables.all } else { &mut tables.first };
        Ok(known.insert(table).clone())
    }

    /// A list of messages with this one, and whether it has all messages.
    fn read_table_with(
        &self,
        wanted: usize,
        first: Option<&MessageTable>,
    ) -> Result<(MessageTable, bool), ErrorKind> {
        // A file of which the first messages are known has no index.
        let found = if first.is_some() { IndexLookup::None } else { self.find_index()? };
        let is_forward = self.scan_options.direction == Direction::Forward;
        if !matches!(found, IndexLookup::None) || !is_forward || !self.is_near(wanted)? {
            return Ok((self.read_message_table(found, &NoProgress)?, true));
        }
        // Twice as many as before, so that the time for all messages one by one is linear.
        let mut count = first
            .map_or(0, |first| first.scan.messages.len())
            .saturating_mul(2)
            .max(wanted.saturating_add(1));
        loop {
            let mut scan = scan_first(&*self.source, count, &NoProgress)?;
            let is_all = scan.messages.len() < count;
            if self.scan_options.use_index {
                scan.separate_indexes(&*self.source, &self.options)?;
            }
            if is_all || scan.messages.len() > wanted {
                let first_gap = scan.first_gap(&*self.source)?;
                let table =
                    MessageTable { scan: Arc::new(scan), message_index: None, refused: None, first_gap };
                return Ok((table, is_all));
            }
            count = count.saturating_mul(2);
        }
    }

    /// Whether it is faster to find only the messages up to this one: not in the second half of a remote file, which is
    /// scanned from both ends. The first message is the estimate for all.
    fn is_near(&self, wanted: usize) -> Result<bool, ErrorKind> {
        if !self.source.is_remote() {
            return Ok(true);
        }
        let first =
            scan_first(&*self.source, 1, &NoProgress)?.messages.first().map_or(0, |first| first.len());
        Ok(first.saturating_mul(wanted as u64) < self.len() / 2)
    }

    /// The index at the end of the file, or else in its index file.
    fn find_index(&self) -> Result<IndexLookup, ErrorKind> {
        if !self.scan_options.use_index {
            return Ok(IndexLookup::None);
        }
        match index::find(&*self.source, &self.options)? {
            IndexLookup::None => self.find_side_file(),
            found => Ok(found),
        }
    }

    fn find_side_file(&self) -> Result<IndexLookup, ErrorKind> {
        match &self.beside {
            None => Ok(IndexLookup::None),
            #[cfg(any(unix, windows))]
            Some(SideFile::Path(path)) => match tercet_core::source::File::open(path) {
                Ok(side_file) => index::read_side_file(&side_file, &*self.source, &self.options),
                // The file can be read without it.
                Err(_) => Ok(IndexLookup::None),
            },
            Some(SideFile::Source(side_file)) => {
                index::read_side_file(side_file, &*self.source, &self.options)
            }
        }
    }

    fn read_message_table(
        &self,
        found: IndexLookup,
        progress: &dyn Progress,
    ) -> Result<MessageTable, ErrorKind> {
        if let IndexLookup::Found(message_index) = found {
            progress.advance(self.len());
            let scan = Arc::clone(message_index.scan());
            let first_gap = scan.first_gap(&*self.source)?;
            let message_index = Some(Arc::from(message_index));
            return Ok(MessageTable { scan, message_index, refused: None, first_gap });
        }
        let is_forward = self.scan_options.direction == Direction::Forward;
        let remote =
            if is_forward && self.source.is_remote() { scan_remote(&*self.source, progress)? } else { None };
        let mut scan = match remote {
            Some(scan) => scan,
            None => scan_source(&*self.source, self.scan_options, progress)?,
        };
        let refused = match found {
            IndexLookup::Rejected(span, error) => {
                // It is not a message, even if it is not used.
                scan.messages.pop_if(|last| *last == span);
                Some((span, Arc::new(error)))
            }
            _ => None,
        };
        if self.scan_options.use_index {
            scan.separate_indexes(&*self.source, &self.options)?;
        }
        let first_gap = scan.first_gap(&*self.source)?;
        Ok(MessageTable { scan: Arc::new(scan), message_index: None, refused, first_gap })
    }

    /// The gaps between messages, in order.
    pub fn gaps(&self) -> Result<Vec<Gap>, Error> {
        self.scan()?.gaps(&*self.source).map_err(|fault| self.error(fault))
    }

    /// The incomplete message at the end of the file, if any.
    pub fn cut_tail(&self) -> Result<Option<CutTail>, Error> {
        self.scan()?.cut_tail(&*self.source).map_err(|fault| self.error(fault))
    }

    /// The number of messages.
    pub fn message_count(&self) -> Result<u64, Error> {
        Ok(self.scan()?.messages.len() as u64)
    }

    /// The byte range of a message.
    pub fn message_span(&self, index: u64) -> Result<Span, Error> {
        self.span_in(&self.message_table_with(index)?, index)
    }

    fn span_in(&self, table: &MessageTable, index: u64) -> Result<Span, Error> {
        let messages = &table.scan.messages;
        let span = usize::try_from(index).ok().and_then(|index| messages.get(index).copied());
        let count = messages.len() as u64;
        span.ok_or_else(|| match table.scan.cut_tail(&*self.source) {
            Ok(Some(cut)) if cut.message == index => self.error(ErrorKind::CutMessage { cut }),
            Ok(_) => self.error(ErrorKind::NoSuchMessage { index, count }),
            Err(fault) => self.error(fault),
        })
    }

    /// The bytes of a message.
    pub fn read_message(&self, index: u64) -> Result<Bytes, Error> {
        let span = self.message_span(index)?;
        let read = || {
            check_limit("the message", span.len(), self.options.common.limits.array_bytes)?;
            Ok(self.source.read_at(span)?)
        };
        read().map_err(|fault: ErrorKind| self.error(fault))
    }

    /// A message; its framing and metadata are verified.
    ///
    /// A message after a [gap](Self::gaps) is an error, unless the options allow it: another message may be lost before it, so
    /// that it has another number than in the undamaged file. [`messages`](Self::messages) returns all messages.
    pub fn message(&self, index: u64) -> Result<Message, Error> {
        self.message_with(index, self.options)
    }

    /// Like [`message`](Self::message), with other read options.
    pub(crate) fn message_with(&self, index: u64, options: ReadOptions) -> Result<Message, Error> {
        let table = self.message_table_with(index)?;
        let span = self.reachable_span(&table, index, options)?;
        self.open_message(index, span, options, table.message_index.is_some())
    }

    /// The byte range of a message that is not after a gap, or after one that is allowed.
    fn reachable_span(&self, table: &MessageTable, index: u64, options: ReadOptions) -> Result<Span, Error> {
        let span = self.span_in(table, index)?;
        match table.first_gap.filter(|gap| !options.allow_gaps && gap.span.start() < span.start()) {
            Some(gap) => Err(self.error(ErrorKind::AfterGap { index, gap })),
            None => Ok(span),
        }
    }

    /// Opens a message, whatever is before it. `is_indexed`: its byte range is that of an index.
    fn open_message(
        &self,
        index: u64,
        span: Span,
        options: ReadOptions,
        is_indexed: bool,
    ) -> Result<Message, Error> {
        let verification_cache = Arc::clone(&self.verification_cache);
        let opened = Message::open_known(Arc::clone(&self.source), index, span, options, verification_cache);
        if !is_indexed {
            return opened;
        }
        // The byte ranges come from the index, not from the messages.
        let is_at_span = match &opened {
            Ok(message) => message.span() == span,
            Err(error) => {
                !matches!(error.kind(), ErrorKind::Common(CommonError::Malformed(fault)) if fault.site.region.part == Part::Preamble)
            }
        };
        if is_at_span { opened } else { Err(self.error(ErrorKind::StaleIndex { message: index, span })) }
    }

    /// Iterates over all messages. A damaged message is an error item and does not end the iteration.
    ///
    /// Messages are opened ahead and in parallel: one at first, then twice as many each time, so that the first message is
    /// returned immediately and later ones are ready when needed.
    pub fn messages(&self) -> Result<Messages<'_>, Error> {
        Ok(Messages {
            file: self,
            next: 0,
            count: self.message_count()?,
            is_indexed: self.index()?.is_some(),
            batch: Vec::new().into_iter(),
            ahead: 1,
        })
    }

    /// The byte source.
    pub fn source(&self) -> &Arc<dyn ByteSource> {
        &self.source
    }

    /// The read options.
    pub fn options(&self) -> &ReadOptions {
        &self.options
    }

    fn error(&self, fault: ErrorKind) -> Error {
        Error::new(self.name().clone(), fault)
    }
}

/// The maximum number of messages opened ahead, and the maximum of their total length in bytes. They bound the memory for
/// metadata.
const MAX_AHEAD: u64 = 512;
const MAX_BYTES_AHEAD: u64 = 1 << 20;

/// Iterator over the messages of a file: see [`File::messages`].
#[derive(Debug)]
pub struct Messages<'a> {
    file: &'a File,
    /// The number of the next message to open.
    next: u64,
    count: u64,
    /// Whether the byte ranges come from an index.
    is_indexed: bool,
    batch: std::vec::IntoIter<Result<Message, Error>>,
    /// The number of messages to open at a time.
    ahead: u64,
}

impl Iterator for Messages<'_> {
    type Item = Result<Message, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(message) = self.batch.next() {
            return Some(message);
        }
        let most = self.next.saturating_add(self.ahead).min(self.count);
        let mut end = self.next.saturating_add(1).min(self.count);
        let len = |number| self.file.message_span(number).map_or(0, |span| self.file.len_ahead(span));
        let mut bytes = len(self.next);
        while end < most {
            bytes = bytes.saturating_add(len(end));
            if bytes > MAX_BYTES_AHEAD {
                break;
            }
            end += 1;
        }
        let numbers: Vec<u64> = (self.next..end).collect();
        let prefetched = self.file.with_prefetched(&numbers);
        let file = prefetched.as_ref().unwrap_or(self.file);
        let open = |index| {
            let span = file.message_span(index)?;
            file.open_message(index, span, file.options, self.is_indexed)
        };
        let open = || numbers.into_par_iter().with_min_len(8).map(open).collect();
        let opened: Vec<_> = install(self.file.options.common.threads, open);
        self.batch = opened.into_iter();
        self.next = end;
        self.ahead = (self.ahead * 2).min(MAX_AHEAD);
        self.batch.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left =
            usize::try_from(self.count - self.next).unwrap_or(usize::MAX).saturating_add(self.batch.len());
        (left, Some(left))
    }
}
