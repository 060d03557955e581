//! Many messages in a file.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use rayon::prelude::*;
use tercet_core::limits::check_limit;
use tercet_core::progress::NoProgress;
use tercet_core::source::Memory;
use tercet_core::{ByteSource, CommonError, Progress, Span};
#[cfg(any(unix, windows))]
use tercet_core::{Location, SourceError};

use crate::error::{Error, ErrorKind};
use crate::index::{self, IndexError, IndexLookup, MessageIndex};
use crate::message::Message;
use crate::options::ReadOptions;
use crate::region::Part;
use crate::scan::{Scan, ScanOptions, scan_source};
use crate::verification_cache::VerificationCache;

/// A file of messages, any of which can be read without reading the others.
///
/// Opening it reads nothing. The first call that needs to know where messages are finds them, by one pass that reads
/// a block around each preamble and postamble; the list is kept. A file that ends with an index is not passed over: the
/// index states where they are, and is not one of them. Clones are cheap and share
/// the list.
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
    /// What was found out about objects.
    verification_cache: Arc<VerificationCache>,
    scan_options: ScanOptions,
    /// Shared by all clones.
    message_table: Arc<Mutex<Option<MessageTable>>>,
}

/// Where the messages are, and how that is known.
#[derive(Clone, Debug)]
struct MessageTable {
    scan: Arc<Scan>,
    message_index: Option<Arc<MessageIndex>>,
    /// An index that is there but not used, and why.
    refused: Option<(Span, Arc<IndexError>)>,
}

impl File {
    /// Opens a file with default options. Reads nothing.
    #[cfg(any(unix, windows))]
    pub fn open(location: impl Into<Location>) -> Result<Self, Error> {
        Self::open_with(location, ReadOptions::new())
    }

    /// Opens a file. Reads nothing.
    #[cfg(any(unix, windows))]
    pub fn open_with(location: impl Into<Location>, options: ReadOptions) -> Result<Self, Error> {
        let location = location.into();
        let source = match &location {
            Location::Path(path) => options.access.open(path),
            Location::Url(_) => Err(SourceError::RemoteDisabled),
        };
        let source = source.map_err(|error| Error::new(location.to_string().into(), error.into()))?;
        Self::from_source(source, options)
    }

    /// Opens the messages of a byte source. Reads nothing.
    pub fn from_source(source: Arc<dyn ByteSource>, options: ReadOptions) -> Result<Self, Error> {
        Ok(Self {
            source,
            options,
            verification_cache: Arc::default(),
            scan_options: ScanOptions::default(),
            message_table: Arc::default(),
        })
    }

    /// Opens the messages of a buffer. `name` appears in errors.
    pub fn from_bytes(name: &str, bytes: impl Into<Bytes>) -> Result<Self, Error> {
        Self::from_source(Arc::new(Memory::new(name, bytes)), ReadOptions::new())
    }

    /// Looks for messages in another way.
    pub fn with_scan_options(mut self, options: ScanOptions) -> Self {
        self.scan_options = options;
        self.message_table = Arc::default();
        self
    }

    /// Reads with other options. Where messages are does not depend on them, so that is not looked for again.
    pub fn with_options(mut self, options: ReadOptions) -> Self {
        self.options = options;
        self.verification_cache = Arc::default();
        self
    }

    /// The name, as it was opened.
    pub fn name(&self) -> &Arc<str> {
        self.source.name()
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.source.len()
    }

    /// Whether the file holds no byte.
    pub fn is_empty(&self) -> bool {
        self.source.is_empty()
    }

    /// Where the messages are, and the bytes that belong to none. Found once.
    pub fn scan(&self) -> Result<Arc<Scan>, Error> {
        self.scan_with(&NoProgress)
    }

    /// Like [`scan`](Self::scan), with progress.
    pub fn scan_with(&self, progress: &dyn Progress) -> Result<Arc<Scan>, Error> {
        Ok(self.message_table(progress)?.scan)
    }

    /// The index at the end of the file, if there is one that checks out and the options do not forbid its use.
    pub fn index(&self) -> Result<Option<Arc<MessageIndex>>, Error> {
        Ok(self.message_table(&NoProgress)?.message_index)
    }

    /// Reason the index at the end of the file is not used, if there is one that is not. The file was passed over instead.
    pub fn rejected_index(&self) -> Result<Option<Arc<IndexError>>, Error> {
        Ok(self.message_table(&NoProgress)?.refused.map(|(_, reason)| reason))
    }

    /// Where the index at the end of the file is, whether it is used or not.
    pub fn index_span(&self) -> Result<Option<Span>, Error> {
        let message_table = self.message_table(&NoProgress)?;
        let used = message_table.message_index.map(|message_index| message_index.span());
        Ok(used.or(message_table.refused.map(|(span, _)| span)))
    }

    fn message_table(&self, progress: &dyn Progress) -> Result<MessageTable, Error> {
        let mut known = self.message_table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(message_table) = &*known {
            return Ok(message_table.clone());
        }
        let message_table = self.read_message_table(progress).map_err(|fault| self.error(fault))?;
        Ok(known.insert(message_table).clone())
    }

    fn read_message_table(&self, progress: &dyn Progress) -> Result<MessageTable, ErrorKind> {
        let found = if self.scan_options.use_index {
            index::find(&*self.source, &self.options)?
        } else {
            IndexLookup::None
        };
        if let IndexLookup::Found(message_index) = found {
            progress.advance(self.len());
            let scan = Arc::clone(message_index.scan());
            return Ok(MessageTable { scan, message_index: Some(Arc::from(message_index)), refused: None });
        }
        let mut scan = scan_source(&*self.source, self.scan_options, progress)?;
        let refused = match found {
            IndexLookup::Rejected(span, error) => {
                // It is no message for anybody, whether it can be used or not.
                scan.messages.pop_if(|last| *last == span);
                Some((span, Arc::new(error)))
            }
            _ => None,
        };
        Ok(MessageTable { scan: Arc::new(scan), message_index: None, refused })
    }

    /// The number of messages.
    pub fn message_count(&self) -> Result<u64, Error> {
        Ok(self.scan()?.messages.len() as u64)
    }

    /// Where a message is.
    pub fn message_span(&self, index: u64) -> Result<Span, Error> {
        let scan = self.scan()?;
        let span = usize::try_from(index).ok().and_then(|index| scan.messages.get(index).copied());
        let count = scan.messages.len() as u64;
        span.ok_or_else(|| self.error(ErrorKind::NoSuchMessage { index, count }))
    }

    /// The bytes of a message, as they are.
    pub fn read_message(&self, index: u64) -> Result<Bytes, Error> {
        let span = self.message_span(index)?;
        let read = || {
            check_limit("the message", span.len(), self.options.limits.array_bytes)?;
            Ok(self.source.read_at(span)?)
        };
        read().map_err(|fault: ErrorKind| self.error(fault))
    }

    /// A message, with its framing and metadata checked.
    pub fn message(&self, index: u64) -> Result<Message, Error> {
        let span = self.message_span(index)?;
        let verification_cache = Arc::clone(&self.verification_cache);
        let opened =
            Message::open_known(Arc::clone(&self.source), index, span, self.options, verification_cache);
        if self.message_table(&NoProgress)?.message_index.is_none() {
            return opened;
        }
        // The places come from the index, not from the messages.
        let is_there = match &opened {
            Ok(message) => message.span() == span,
            Err(error) => {
                !matches!(error.kind(), ErrorKind::Common(CommonError::Malformed(fault)) if fault.site.region.part == Part::Preamble)
            }
        };
        if is_there { opened } else { Err(self.error(ErrorKind::StaleIndex { message: index, span })) }
    }

    /// All messages in turn. One that is damaged is an error in its place and does not end the walk.
    ///
    /// Messages are opened ahead, on all threads: the first alone, then more and more at a time, so that a caller that looks
    /// at all of them waits for few, and a caller that looks at the first does not wait for others.
    pub fn messages(&self) -> Result<Messages<'_>, Error> {
        Ok(Messages {
            file: self,
            next: 0,
            count: self.message_count()?,
            batch: Vec::new().into_iter(),
            ahead: 1,
        })
    }

    /// The byte source.
    pub fn source(&self) -> &Arc<dyn ByteSource> {
        &self.source
    }

    /// How it is read.
    pub fn options(&self) -> &ReadOptions {
        &self.options
    }

    fn error(&self, fault: ErrorKind) -> Error {
        Error::new(self.name().clone(), fault)
    }
}

/// The most messages that are opened ahead, and the most bytes they may have together: what their metadata takes in
/// memory depends on these.
const MAX_AHEAD: u64 = 512;
const MAX_BYTES_AHEAD: u64 = 1 << 20;

/// The messages of a file in turn: see [`File::messages`].
#[derive(Debug)]
pub struct Messages<'a> {
    file: &'a File,
    /// The first message that is not opened yet.
    next: u64,
    count: u64,
    batch: std::vec::IntoIter<Result<Message, Error>>,
    /// How many are opened at a time.
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
        let mut bytes = self.file.message_span(self.next).map_or(0, Span::len);
        while end < most {
            bytes = bytes.saturating_add(self.file.message_span(end).map_or(0, Span::len));
            if bytes > MAX_BYTES_AHEAD {
                break;
            }
            end += 1;
        }
        let numbers: Vec<u64> = (self.next..end).collect();
        let opened: Vec<_> =
            numbers.into_par_iter().with_min_len(8).map(|index| self.file.message(index)).collect();
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
