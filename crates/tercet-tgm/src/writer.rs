//! Files of messages, written.

use std::io::{self, Seek as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tercet_core::progress::NoProgress;
use tercet_core::publish::{AtomicFile, Disk, RealDisk};
use tercet_core::{ByteSource, Progress, Span};

use crate::descriptor::DataObjectDescriptor;
use crate::edit::MessageBuilder;
use crate::encode::{EncodeError, EncodeOptions, Provenance, StreamingEncoder, encode_message_into};
use crate::error::{Error, ErrorKind};
use crate::index::{self, IndexBuilder, IndexKeys, IndexLookup};
use crate::message::read_metadata;
use crate::metadata::GlobalMetadata;
use crate::options::ReadOptions;
use crate::scan::{ScanOptions, scan_source};

mod reindex;
mod view;

pub use reindex::{ReindexOptions, ReindexReport};
use view::{Part, Slice};

/// Bytes copied at a time.
const PIECE: u64 = 1 << 20;

/// Writes messages, one behind the other. The file appears whole when [`finish`](Writer::finish) is called; without
/// it, or after a crash, nothing changed.
///
/// To write to a socket or a pipe use [`encode_message_into`] or [`StreamingEncoder`], which take any `Write`.
#[derive(Debug)]
pub struct Writer {
    name: Arc<str>,
    sink: AtomicFile,
    buffer: Vec<u8>,
    /// What the catalogue will say, if the file gets one.
    message_index: Option<IndexBuilder>,
    /// Whether the catalogue says when and by what it was written.
    provenance: Provenance,
    /// Whether every message that was started is finished.
    is_whole: bool,
}

impl Writer {
    /// Starts a file, in the place of one that may be there.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::create_on(Arc::new(RealDisk), path)
    }

    /// Starts a file where none is. One that appears until [`finish`](Writer::finish) is not replaced.
    pub fn create_new(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let name: Arc<str> = path.to_string_lossy().into();
        match AtomicFile::create_new(path) {
            Ok(sink) => Ok(Self::on(name, sink)),
            Err(error) => Err(Error::new(name, error.into())),
        }
    }

    /// Starts a file on another disk.
    pub fn create_on(disk: Arc<dyn Disk>, path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let name: Arc<str> = path.to_string_lossy().into();
        match AtomicFile::create_on(disk, path) {
            Ok(sink) => Ok(Self::on(name, sink)),
            Err(error) => Err(Error::new(name, error.into())),
        }
    }

    fn on(name: Arc<str>, sink: AtomicFile) -> Self {
        let (message_index, provenance) = (None, Provenance::default());
        Self { name, sink, buffer: Vec::new(), message_index, provenance, is_whole: true }
    }

    /// Ends the file with a catalogue of its messages. Only for a writer that has not written any yet.
    pub fn with_index(mut self, keys: &IndexKeys) -> Self {
        self.message_index = Some(IndexBuilder::new(keys));
        self
    }

    /// What the catalogue says about when and by what it was written.
    pub fn with_provenance(mut self, provenance: Provenance) -> Self {
        self.provenance = provenance;
        self
    }

    /// Starts a file with the bytes of the one that is there, to add messages to it. Nobody else can change it
    /// meanwhile. A catalogue at its end goes on: it will be at the end again, and tell of the new messages too. Bytes that belong to no message are kept; whoever does not want them behind a message looks first.
    pub fn append(path: impl AsRef<Path>, progress: &dyn Progress) -> Result<Self, Error> {
        Self::append_on(Arc::new(RealDisk), path, progress)
    }

    /// Adds messages to a file of another disk.
    pub fn append_on(
        disk: Arc<dyn Disk>,
        path: impl AsRef<Path>,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let path = path.as_ref();
        let name: Arc<str> = path.to_string_lossy().into();
        let start = || {
            let (lock, source) = reindex::hold(disk, path)?;
            let mut writer = Self::on(Arc::clone(&name), lock.replace()?);
            let (end, message_index) = match index::find(&*source, &ReadOptions::new())? {
                IndexLookup::None => (source.len(), None),
                IndexLookup::Found(old) => (old.span().start(), IndexBuilder::resume(&old).ok()),
                IndexLookup::Rejected(span, _) => (span.start(), None),
            };
            writer.copy(&*source, Span::first(end), progress)?;
            writer.message_index = match message_index {
                None if end < source.len() => Some(reindex::index_messages(&source, end)?),
                message_index => message_index,
            };
            Ok(writer)
        };
        start().map_err(|fault: ErrorKind| Error::new(Arc::clone(&name), fault))
    }

    /// Writes a message in one piece.
    pub fn message(
        &mut self,
        metadata: &GlobalMetadata,
        objects: &[(&DataObjectDescriptor, &[u8])],
        options: &EncodeOptions,
    ) -> Result<(), Error> {
        self.must_be_whole()?;
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

    fn position(&mut self) -> Result<u64, ErrorKind> {
        Ok(self.sink.stream_position()?)
    }

    /// Writes a message object by object: `fill` gets the encoder, and the message ends when it returns.
    ///
    /// If it fails, there is half a message, so nothing can be written behind it and the file does not appear.
    pub fn stream<E: From<Error>>(
        &mut self,
        metadata: &GlobalMetadata,
        options: EncodeOptions,
        fill: impl FnOnce(&mut StreamingEncoder<&mut AtomicFile>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.must_be_whole()?;
        let name = Arc::clone(&self.name);
        let fail = |fault| E::from(Error::new(Arc::clone(&name), fault));
        let at = self.position().map_err(fail)?;
        self.is_whole = false;
        let mut encoder = StreamingEncoder::new(&mut self.sink, metadata, options).map_err(fail)?;
        fill(&mut encoder)?;
        // What goes into the last metadata frame: also what the objects brought along.
        let metadata = self.message_index.is_some().then(|| encoder.metadata().clone());
        encoder.finish_with_length().map_err(fail)?;
        let end = self.position().map_err(fail)?;
        if let (Some(message_index), Some(metadata)) = (&mut self.message_index, metadata) {
            message_index.push(Span::between(at, end).unwrap_or(Span::empty(at)), &metadata);
        }
        self.is_whole = true;
        Ok(())
    }

    /// Writes messages that are bytes already.
    pub fn raw(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.must_be_whole()?;
        let written = self.enter_bytes(bytes).and_then(|()| Ok(self.sink.write_all(bytes)?));
        written.map_err(|fault| self.error(fault))
    }

    /// Writes a message that is made of stored objects, which are copied piece by piece.
    ///
    /// If it fails, there is half a message, so nothing can be written behind it and the file does not appear.
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

    /// Copies bytes of a source: messages, and what may stand between them.
    pub fn copy_from(
        &mut self,
        source: &dyn ByteSource,
        span: Span,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        self.copy(source, span, progress).map_err(|fault| match fault {
            // What cannot be read is not the file that is written.
            ErrorKind::Source(_) => Error::new(source.name().clone(), fault),
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

    /// Enters messages that are about to be written into the catalogue.
    fn enter_bytes(&mut self, bytes: &[u8]) -> Result<(), ErrorKind> {
        let source = Slice::new(Arc::clone(&self.name), bytes);
        self.enter(&source, Span::first(bytes.len() as u64))
    }

    /// Enters messages that are about to be copied into the catalogue.
    fn enter(&mut self, source: &dyn ByteSource, span: Span) -> Result<(), ErrorKind> {
        let to = self.position()?;
        let Some(message_index) = &mut self.message_index else { return Ok(()) };
        let part = Part::new(source, span);
        let options = ReadOptions::new();
        for found in scan_source(&part, ScanOptions::default(), &NoProgress)?.messages {
            let metadata = read_metadata(&part, found, &options)?;
            let at = to.saturating_add(found.start());
            message_index.push(Span::at(at, found.len()).unwrap_or(Span::empty(at)), &metadata);
        }
        Ok(())
    }

    /// Makes the file durable and gives it its name; answers the path behind all symbolic links.
    pub fn finish(mut self) -> Result<PathBuf, Error> {
        self.must_be_whole()?;
        if let Some(message_index) =
            self.message_index.take().filter(|message_index| !message_index.is_empty())
        {
            let written = message_index.write(&mut self.sink, self.provenance.clone());
            written.map_err(|fault| self.error(fault))?;
        }
        let name = Arc::clone(&self.name);
        self.sink.publish().map_err(|error| Error::new(name, error.into()))
    }

    fn must_be_whole(&self) -> Result<(), Error> {
        if self.is_whole { Ok(()) } else { Err(self.error(EncodeError::Unfinished.into())) }
    }

    fn error(&self, fault: ErrorKind) -> Error {
        Error::new(Arc::clone(&self.name), fault)
    }
}
