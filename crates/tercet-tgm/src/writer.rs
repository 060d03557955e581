//! Files of messages, written.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tercet_core::publish::{Disk, Exclusive, RealDisk, Staged};
use tercet_core::{ByteSource, Progress, Span};

use crate::descriptor::DataObjectDescriptor;
use crate::edit::Draft;
use crate::encode::{EncodeError, EncodeOptions, StreamingEncoder, encode_message_into};
use crate::fault::{Error, Fault};
use crate::metadata::GlobalMetadata;

/// Bytes copied at a time.
const PIECE: u64 = 1 << 20;

/// Writes messages, one behind the other. The file appears whole when [`finish`](Writer::finish) is called; without
/// it, or after a crash, nothing changed.
///
/// To write to a socket or a pipe use [`encode_message_into`] or [`StreamingEncoder`], which take any `Write`.
#[derive(Debug)]
pub struct Writer {
    name: Arc<str>,
    sink: Staged,
    buffer: Vec<u8>,
    /// Whether every message that was started is finished.
    is_whole: bool,
}

impl Writer {
    /// Starts a file, in the place of one that may be there.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::create_on(Arc::new(RealDisk), path)
    }

    /// Starts a file on another disk.
    pub fn create_on(disk: Arc<dyn Disk>, path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let name: Arc<str> = path.to_string_lossy().into();
        match Staged::create_on(disk, path) {
            Ok(sink) => Ok(Self { name, sink, buffer: Vec::new(), is_whole: true }),
            Err(error) => Err(Error::new(name, error.into())),
        }
    }

    /// Starts a file with the bytes of the one that is there, to add messages to it. Nobody else can change it
    /// meanwhile. Bytes that belong to no message are kept; whoever does not want them behind a message looks first.
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
            let lock = Exclusive::acquire_on(disk, path)?;
            let source = tercet_core::source::File::open(path)?;
            let mut writer =
                Self { name: Arc::clone(&name), sink: lock.replace()?, buffer: Vec::new(), is_whole: true };
            writer.copy(&source, Span::first(source.len()), progress)?;
            Ok(writer)
        };
        start().map_err(|fault: Fault| Error::new(Arc::clone(&name), fault))
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
        let made = made.map_err(Error::into_fault).and_then(|()| Ok(self.sink.write_all(&buffer)?));
        self.buffer = buffer;
        made.map_err(|fault| self.error(fault))
    }

    /// Writes a message object by object: `fill` gets the encoder, and the message ends when it returns.
    ///
    /// If it fails, there is half a message, so nothing can be written behind it and the file does not appear.
    pub fn stream<E: From<Error>>(
        &mut self,
        metadata: &GlobalMetadata,
        options: EncodeOptions,
        fill: impl FnOnce(&mut StreamingEncoder<&mut Staged>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.must_be_whole()?;
        let name = Arc::clone(&self.name);
        let fail = |fault| E::from(Error::new(Arc::clone(&name), fault));
        self.is_whole = false;
        let mut encoder = StreamingEncoder::new(&mut self.sink, metadata, options).map_err(fail)?;
        fill(&mut encoder)?;
        encoder.finish_with_length().map_err(fail)?;
        self.is_whole = true;
        Ok(())
    }

    /// Writes messages that are bytes already.
    pub fn raw(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.must_be_whole()?;
        self.sink.write_all(bytes).map_err(|error| self.error(error.into()))
    }

    /// Writes a message that is made of stored objects, which are copied piece by piece.
    ///
    /// If it fails, there is half a message, so nothing can be written behind it and the file does not appear.
    pub fn draft(&mut self, draft: &Draft, progress: &dyn Progress) -> Result<(), Error> {
        self.must_be_whole()?;
        self.is_whole = false;
        let name = Arc::clone(&self.name);
        let sink = &mut self.sink;
        draft.send(progress, &mut |bytes| {
            sink.write_all(bytes).map_err(|error| Error::new(Arc::clone(&name), error.into()))
        })?;
        self.is_whole = true;
        Ok(())
    }

    /// Copies bytes of a source.
    pub fn copy_from(
        &mut self,
        source: &dyn ByteSource,
        span: Span,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        self.copy(source, span, progress).map_err(|fault| match fault {
            // What cannot be read is not the file that is written.
            Fault::Source(_) => Error::new(source.name().clone(), fault),
            fault => self.error(fault),
        })
    }

    fn copy(&mut self, source: &dyn ByteSource, span: Span, progress: &dyn Progress) -> Result<(), Fault> {
        let mut at = span.start();
        while at < span.end() {
            progress.check()?;
            let len = (span.end() - at).min(PIECE);
            let piece = Span::at(at, len).unwrap_or(Span::empty(at));
            self.sink.write_all(&source.read_at(piece)?).map_err(|error: io::Error| Fault::from(error))?;
            progress.advance(len);
            at += len;
        }
        Ok(())
    }

    /// Makes the file durable and gives it its name; answers the path behind all symbolic links.
    pub fn finish(self) -> Result<PathBuf, Error> {
        self.must_be_whole()?;
        let name = Arc::clone(&self.name);
        self.sink.publish().map_err(|error| Error::new(name, error.into()))
    }

    fn must_be_whole(&self) -> Result<(), Error> {
        if self.is_whole { Ok(()) } else { Err(self.error(EncodeError::Unfinished.into())) }
    }

    fn error(&self, fault: Fault) -> Error {
        Error::new(Arc::clone(&self.name), fault)
    }
}
