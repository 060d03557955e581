//! Writing files of messages.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tercet_core::progress::NoProgress;
use tercet_core::publish::{Disk, RealDisk};
use tercet_core::sink::Sink;
use tercet_core::{ByteSource, CommonError, Limits, Progress, Span};

use crate::descriptor::DataObjectDescriptor;
use crate::edit::MessageBuilder;
use crate::encode::{
    EncodeError, EncodeOptions, ObjectValues, Provenance, StreamingEncoder, encode_message_into,
    encode_message_to,
};
use crate::error::{Error, ErrorKind};
use crate::index::{IndexBuilder, IndexKeys};
use crate::message::read_metadata;
use crate::metadata::GlobalMetadata;
use crate::options::ReadOptions;
use crate::scan::{CutTail, ScanOptions, scan_source};

mod append;
mod file_sink;
mod reindex;
mod rotation;
mod view;

pub use file_sink::FileSink;
pub use reindex::{ReindexOptions, ReindexReport};
use tercet_core::source::Slice;
use view::Part;

/// The number of bytes copied at a time.
const PIECE: u64 = 1 << 20;
/// Messages from this length are written in pieces, not assembled in memory.
const LONG_MESSAGE: usize = 4 << 20;

/// How a [`Writer`] creates a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WriterOptions {
    /// Replace an existing file. Otherwise a file that exists, or appears before [`Writer::finish`], is an error.
    pub overwrite: bool,
    /// The keys of the index at the end of the file; `None` writes no index.
    pub index: Option<IndexKeys>,
    /// Whether the index records when and by which program it was written.
    pub provenance: Provenance,
    /// The maximum sizes accepted of messages that are read: to append to a file, or to index messages that are copied.
    pub limits: Limits,
    /// The longest wait for another writer to the same file, when appending.
    pub lock_wait: Duration,
    /// Write an index file beside the file, `run.tgm.idx` for `run.tgm`, if the file has no index at its end. An append
    /// extends it.
    pub index_file: bool,
    /// The size from which [`Writer::append_or_create`] starts a new file.
    pub max_file_size: Option<u64>,
}

/// The default of [`WriterOptions::lock_wait`].
const LOCK_WAIT: Duration = Duration::from_mins(10);

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            overwrite: false,
            index: None,
            provenance: Provenance::default(),
            limits: Limits::default(),
            lock_wait: LOCK_WAIT,
            index_file: false,
            max_file_size: None,
        }
    }
}

impl WriterOptions {
    /// A new file without an index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether an existing file is replaced.
    pub fn with_overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// Sets the keys of the index at the end of the file.
    pub fn with_index(mut self, keys: Option<IndexKeys>) -> Self {
        self.index = keys;
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

    /// Sets whether an index file is written beside the file.
    pub fn with_index_file(mut self, index_file: bool) -> Self {
        self.index_file = index_file;
        self
    }

    /// Sets the size from which [`Writer::append_or_create`] starts a new file.
    pub fn with_max_file_size(mut self, bytes: Option<u64>) -> Self {
        self.max_file_size = bytes;
        self
    }

    /// Sets the longest wait for another writer to the same file, when appending.
    pub fn with_lock_wait(mut self, wait: Duration) -> Self {
        self.lock_wait = wait;
        self
    }
}

/// A finished output.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written<D = PathBuf> {
    /// What the sink returns: the path of the file, symbolic links resolved, or the bytes.
    pub output: D,
    /// The length of the file in bytes.
    pub bytes: u64,
    /// Why the index file could not be written, if it could not. It is stale then: readers ignore it.
    pub index_file_error: Option<String>,
}

/// Writes messages to a file or another sink. A new file appears complete when [`finish`](Writer::finish) is called;
/// without it, or after a crash, nothing has changed. [`append`](Writer::append) extends a file in place.
///
/// A message for a socket or a pipe is written by [`encode_message_into`] or [`StreamingEncoder`], which take any
/// `Write`.
///
/// ```
/// use std::io::Cursor;
///
/// use tercet_tgm::{EncodeOptions, File, GlobalMetadata, Writer, WriterOptions};
///
/// let mut writer = Writer::new(Cursor::new(Vec::new()), WriterOptions::new());
/// writer.message(&GlobalMetadata::default(), &[], &EncodeOptions::new())?;
/// let bytes = writer.finish()?.output;
/// assert_eq!(File::from_bytes("memory", bytes)?.message_count()?, 1);
/// # Ok::<(), tercet_tgm::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer<S = FileSink> {
    name: Arc<str>,
    sink: S,
    buffer: Vec<u8>,
    /// The index, if the file gets one.
    message_index: Option<IndexBuilder>,
    /// Whether the index records when and by which program it was written.
    provenance: Provenance,
    /// How messages are read that are copied or appended to.
    reading: ReadOptions,
    /// Whether every message is complete.
    is_whole: bool,
    /// The incomplete message that an append removes.
    cut_tail: Option<CutTail>,
    /// The path of the file, if it gets an index file.
    index_file: Option<PathBuf>,
    /// The path of the full file that was renamed.
    rotated: Option<PathBuf>,
}

impl Writer {
    /// Creates a file.
    pub fn create(path: impl AsRef<Path>, options: WriterOptions) -> Result<Self, Error> {
        Self::create_on(Arc::new(RealDisk), path, options)
    }

    /// Creates a file on another disk.
    pub fn create_on(
        disk: Arc<dyn Disk>,
        path: impl AsRef<Path>,
        options: WriterOptions,
    ) -> Result<Self, Error> {
        let path = path.as_ref();
        let sink = FileSink::create_on(disk, path, options.overwrite);
        let name = path.to_string_lossy();
        let index_file = (options.index_file && options.index.is_none()).then(|| path.to_owned());
        match sink {
            Ok(sink) => Ok(Self { index_file, ..Self::new(sink, options).with_name(&name) }),
            Err(error) => Err(Error::new(name.into(), error.into())),
        }
    }
}

impl Writer {
    /// Whether the file is new. Otherwise messages are appended to a file.
    pub fn is_new(&self) -> bool {
        self.sink.is_new()
    }
}

impl<S: Sink> Writer<S> {
    /// Writes to a sink. Errors show the name `output`; see [`with_name`](Self::with_name).
    pub fn new(sink: S, options: WriterOptions) -> Self {
        Self {
            name: "output".into(),
            sink,
            buffer: Vec::new(),
            message_index: options.index.as_ref().map(IndexBuilder::new),
            provenance: options.provenance,
            reading: ReadOptions::new().with_limits(options.limits),
            is_whole: true,
            cut_tail: None,
            index_file: None,
            rotated: None,
        }
    }

    /// Sets the name of the output in errors.
    pub fn with_name(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// Sets whether the index records when and by which program it was written.
    pub fn with_provenance(mut self, provenance: Provenance) -> Self {
        self.provenance = provenance;
        self
    }

    /// The incomplete message at the old end of a file that is appended to. It was left by a writer that was stopped, and
    /// is removed.
    pub fn cut_tail(&self) -> Option<CutTail> {
        self.cut_tail
    }

    /// The path to which [`append_or_create`](Writer::append_or_create) renamed the full file.
    pub fn rotated(&self) -> Option<&Path> {
        self.rotated.as_deref()
    }

    /// The offset in the file at which the next message starts.
    pub fn offset(&mut self) -> Result<u64, Error> {
        self.position().map_err(|fault| self.error(fault))
    }

    /// Writes a complete message.
    pub fn message(
        &mut self,
        metadata: &GlobalMetadata,
        objects: &[(&DataObjectDescriptor, &[u8])],
        options: &EncodeOptions,
    ) -> Result<(), Error> {
        self.must_be_whole()?;
        let len = objects.iter().fold(0_usize, |len, (_, values)| len.saturating_add(values.len()));
        if len > LONG_MESSAGE {
            let objects: Vec<_> =
                objects.iter().map(|(of, values)| (*of, ObjectValues::Bytes(values))).collect();
            return self.message_from(metadata, &objects, options);
        }
        self.buffer.clear();
        let mut buffer = std::mem::take(&mut self.buffer);
        let made = encode_message_into(metadata, objects, options, &mut buffer);
        let made = made.map_err(Error::into_kind).and_then(|()| {
            self.enter_bytes(&buffer)?;
            Ok(self.sink.write_all(&buffer)?)
        });
        self.buffer = buffer;
        made.map_err(|fault| self.error(fault))
    }

    /// Writes a complete message without a copy of its payloads. Values in a source, of an object without a pipeline, are
    /// never in memory as a whole: they are read twice, to be checked and hashed, and to be copied.
    pub fn message_from(
        &mut self,
        metadata: &GlobalMetadata,
        objects: &[(&DataObjectDescriptor, ObjectValues<'_>)],
        options: &EncodeOptions,
    ) -> Result<(), Error> {
        self.must_be_whole()?;
        let at = self.position().map_err(|fault| self.error(fault))?;
        let name = Arc::clone(&self.name);
        let sink = &mut self.sink;
        let mut is_whole = true;
        let written = encode_message_to(&name, metadata, objects, options, |piece| {
            is_whole = false;
            sink.write_all(piece)
        });
        // Nothing was written if the message cannot be encoded.
        self.is_whole = is_whole || written.is_ok();
        let metadata = written?;
        let end = self.position().map_err(|fault| self.error(fault))?;
        if let Some(message_index) = &mut self.message_index {
            message_index.push(Span::between(at, end).unwrap_or(Span::empty(at)), &metadata);
        }
        Ok(())
    }

    fn position(&mut self) -> Result<u64, ErrorKind> {
        Ok(self.sink.stream_position()?)
    }

    /// Writes a message object by object: `fill` gets the encoder, and the message ends when it returns.
    ///
    /// If it fails, the message is incomplete: nothing can be written after it, and the file does not appear.
    pub fn stream<E: From<Error>>(
        &mut self,
        metadata: &GlobalMetadata,
        options: EncodeOptions,
        fill: impl FnOnce(&mut StreamingEncoder<&mut S>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.must_be_whole()?;
        let name = Arc::clone(&self.name);
        let fail = |fault| E::from(Error::new(Arc::clone(&name), fault));
        let at = self.position().map_err(fail)?;
        self.is_whole = false;
        let mut encoder = StreamingEncoder::named(Arc::clone(&name), &mut self.sink, metadata, options)?;
        fill(&mut encoder)?;
        // The metadata of the last metadata frame, including preceders.
        let metadata = self.message_index.is_some().then(|| encoder.metadata().clone());
        encoder.finish_with_length()?;
        let end = self.position().map_err(fail)?;
        if let (Some(message_index), Some(metadata)) = (&mut self.message_index, metadata) {
            message_index.push(Span::between(at, end).unwrap_or(Span::empty(at)), &metadata);
        }
        self.is_whole = true;
        Ok(())
    }

    /// Writes encoded messages.
    pub fn raw(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.must_be_whole()?;
        let written = self.enter_bytes(bytes).and_then(|()| Ok(self.sink.write_all(bytes)?));
        written.map_err(|fault| self.error(fault))
    }

    /// Writes a message of stored objects, which are copied in pieces.
    ///
    /// If it fails, the message is incomplete: nothing can be written after it, and the file does not appear.
    pub fn write(&mut self, message: &MessageBuilder, progress: &dyn Progress) -> Result<(), Error> {
        self.must_be_whole()?;
        let at = self.position().map_err(|fault| self.error(fault))?;
        self.is_whole = false;
        let name = Arc::clone(&self.name);
        let sink = &mut self.sink;
        message.send(progress, &mut |bytes| {
            sink.write_all(bytes).map_err(|error| Error::new(Arc::clone(&name), error.into()))
        })?;
        if let Some(message_index) = &mut self.message_index {
            message_index.push(Span::at(at, message.len()).unwrap_or(Span::empty(at)), message.metadata());
        }
        self.is_whole = true;
        Ok(())
    }

    /// Copies bytes of a source: messages and unrecognized bytes.
    pub fn copy_from(
        &mut self,
        source: &dyn ByteSource,
        span: Span,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        self.copy(source, span, progress).map_err(|fault| match fault {
            // A read error concerns the source, not the file being written.
            ErrorKind::Common(CommonError::Source(_)) => Error::new(source.name().clone(), fault),
            fault => self.error(fault),
        })
    }

    fn copy(
        &mut self,
        source: &dyn ByteSource,
        span: Span,
        progress: &dyn Progress,
    ) -> Result<(), ErrorKind> {
        self.enter(source, span)?;
        let mut at = span.start();
        while at < span.end() {
            progress.check()?;
            let len = (span.end() - at).min(PIECE);
            let piece = Span::at(at, len).unwrap_or(Span::empty(at));
            self.sink
                .write_all(&source.read_at(piece)?)
                .map_err(|error: io::Error| ErrorKind::from(error))?;
            progress.advance(len);
            at += len;
        }
        Ok(())
    }

    /// Adds encoded messages to the index.
    fn enter_bytes(&mut self, bytes: &[u8]) -> Result<(), ErrorKind> {
        let source = Slice::new(&self.name, bytes);
        self.enter(&source, Span::first(bytes.len() as u64))
    }

    /// Adds copied messages to the index.
    fn enter(&mut self, source: &dyn ByteSource, span: Span) -> Result<(), ErrorKind> {
        let to = self.position()?;
        let Some(message_index) = &mut self.message_index else { return Ok(()) };
        let part = Part::new(source, span);
        let options = self.reading;
        for found in scan_source(&part, ScanOptions::default(), &NoProgress)?.messages {
            let metadata = read_metadata(&part, found, &options)?;
            let at = to.saturating_add(found.start());
            message_index.push(Span::at(at, found.len()).unwrap_or(Span::empty(at)), &metadata);
        }
        Ok(())
    }

    /// Writes the index, syncs the file, and renames a new file to its target.
    pub fn finish(mut self) -> Result<Written<S::Output>, Error> {
        self.must_be_whole()?;
        if let Some(message_index) =
            self.message_index.take().filter(|message_index| !message_index.is_empty())
        {
            // A file that grows in place has complete messages before its index changes.
            let written = self.sink.checkpoint().map_err(ErrorKind::from);
            let provenance = self.provenance.clone();
            let written = written.and_then(|()| message_index.write(&mut self.sink, provenance));
            written.map_err(|fault| self.error(fault))?;
        }
        let bytes = self.position().map_err(|fault| self.error(fault))?;
        let name = Arc::clone(&self.name);
        let output = self.sink.finish().map_err(|error| Error::new(name, error.into()))?;
        let index_file_error = self.index_file.and_then(|path| {
            let how = ReindexOptions::new()
                .with_index_file(true)
                .with_lock_wait(LOCK_WAIT)
                .with_provenance(self.provenance)
                .with_limits(self.reading.common.limits);
            Writer::<FileSink>::reindex(&path, &how, &NoProgress).err().map(|error| error.to_string())
        });
        Ok(Written { output, bytes, index_file_error })
    }

    fn must_be_whole(&self) -> Result<(), Error> {
        if self.is_whole { Ok(()) } else { Err(self.error(EncodeError::Unfinished.into())) }
    }

    fn error(&self, fault: ErrorKind) -> Error {
        Error::new(Arc::clone(&self.name), fault)
    }
}
