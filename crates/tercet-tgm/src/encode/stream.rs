//! Streaming encoder: writes a message object by object.

use std::io::{self, Seek, SeekFrom, Write};
use std::sync::Arc;

use tercet_core::checksum::Xxh3;
use tercet_core::threads::install;
use tercet_core::{ByteSource, Span};

use super::assemble::{NAME, ObjectSize, build_hash_frame_cbor, compute_message_flags, put_frame};
use super::error::EncodeError;
use super::input::{EncodedObject, ObjectValues, PreEncoded, RESERVED, check_metadata, check_values};
use super::options::EncodeOptions;
use crate::descriptor::DataObjectDescriptor;
use crate::error::{Error, ErrorKind};
use crate::index_and_hash::IndexFrame;
use crate::metadata::{Entry, GlobalMetadata, preceder_to_value};
use crate::wire::align8;
use crate::wire::ids::{FrameKind, MessageFlags, POSTAMBLE_LEN};
use crate::wire::postamble::Postamble;
use crate::wire::preamble::Preamble;

/// The number of bytes hashed and written at a time, while they are in the cache.
const PIECE: usize = 256 << 10;

/// Writes one message to any `Write`, object by object. Holds the entries of `base` and the positions of the objects in
/// memory, but no payload.
///
/// ```
/// use tercet_tgm::{DataObjectDescriptor, DType, EncodeOptions, GlobalMetadata, Message, StreamingEncoder};
///
/// let descriptor = DataObjectDescriptor::new(DType::I16, [2]);
/// let mut encoder = StreamingEncoder::new(Vec::new(), &GlobalMetadata::default(), EncodeOptions::new())?;
/// encoder.write_preceder([("step".to_owned(), 6.into())].into())?;
/// encoder.write_object(&descriptor, &[1, 0, 254, 255])?;
/// let bytes = encoder.finish()?;
///
/// let message = Message::from_bytes("stream", bytes)?;
/// assert_eq!(message.object(0)?.decode()?.to_vec::<i16>(), Some(vec![1, -2]));
/// assert_eq!(message.metadata().base[0]["step"], 6.into());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StreamingEncoder<W> {
    /// The name of the output in errors.
    name: Arc<str>,
    sink: W,
    options: EncodeOptions,
    metadata: GlobalMetadata,
    /// The number of bytes written.
    len: u64,
    offsets: Vec<u64>,
    lengths: Vec<u64>,
    hashes: Vec<u64>,
    preceder: Option<Entry>,
    footer_hashes: bool,
    footer_index: bool,
    /// A write failed: the message is incomplete.
    failed: bool,
}

impl<W: Write> StreamingEncoder<W> {
    /// Starts a message: writes the preamble and the first metadata frame with `metadata`.
    pub fn new(sink: W, metadata: &GlobalMetadata, options: EncodeOptions) -> Result<Self, Error> {
        Self::named(NAME.into(), sink, metadata, options)
    }

    /// [`new`](Self::new) with the name of the output, which errors have as their location. By default it is `new message`.
    pub fn named(
        name: Arc<str>,
        sink: W,
        metadata: &GlobalMetadata,
        options: EncodeOptions,
    ) -> Result<Self, Error> {
        Self::start(Arc::clone(&name), sink, metadata, options).map_err(|kind| Error::new(name, kind))
    }

    fn start(
        name: Arc<str>,
        sink: W,
        metadata: &GlobalMetadata,
        options: EncodeOptions,
    ) -> Result<Self, ErrorKind> {
        check_metadata(metadata)?;
        let footer_hashes = options.hashes.in_a_stream("the list of hashes")? && options.hash;
        let footer_index = options.index.in_a_stream("the index")?;
        let kinds = [
            (true, FrameKind::HeaderMetadata),
            (true, FrameKind::FooterMetadata),
            // Whether there will be any is not known yet.
            (true, FrameKind::PrecederMetadata),
            (footer_index, FrameKind::FooterIndex),
            (footer_hashes, FrameKind::FooterHash),
        ];
        let kinds = kinds.into_iter().filter(|(is, _)| *is).map(|(_, kind)| kind);
        let flags: MessageFlags = compute_message_flags(kinds, options.hash);
        let mut encoder = Self {
            name,
            sink,
            options,
            metadata: metadata.clone(),
            len: 0,
            offsets: Vec::new(),
            lengths: Vec::new(),
            hashes: Vec::new(),
            preceder: None,
            footer_hashes,
            footer_index,
            failed: false,
        };
        encoder.put(&Preamble { flags, reserved: 0, total_length: 0 }.to_bytes())?;
        encoder.put_frame(FrameKind::HeaderMetadata, &metadata.to_cbor())?;
        Ok(encoder)
    }

    /// The number of objects written.
    pub fn object_count(&self) -> u64 {
        self.offsets.len() as u64
    }

    /// The number of bytes written.
    pub fn bytes_written(&self) -> u64 {
        self.len
    }

    /// The metadata so far.
    #[cfg(any(unix, windows))]
    pub(crate) fn metadata(&self) -> &GlobalMetadata {
        &self.metadata
    }

    /// Sets metadata of the next object. Its keys override those of the object's entry in `base`.
    pub fn write_preceder(&mut self, entry: Entry) -> Result<(), Error> {
        self.put_preceder(entry).map_err(|kind| self.error(kind))
    }

    fn error(&self, kind: ErrorKind) -> Error {
        Error::new(Arc::clone(&self.name), kind)
    }

    fn put_preceder(&mut self, entry: Entry) -> Result<(), ErrorKind> {
        if self.preceder.is_some() {
            return Err(EncodeError::DuplicatePreceder.into());
        }
        if entry.contains_key(RESERVED) {
            return Err(EncodeError::Reserved { path: "the preceder".into() }.into());
        }
        check_values(&entry, 3, |key| format!("the preceder: {key}"))?;
        self.put_frame(FrameKind::PrecederMetadata, &crate::cbor::encode(&preceder_to_value(&entry)))?;
        self.preceder = Some(entry);
        Ok(())
    }

    /// Encodes and writes an object.
    pub fn write_object(&mut self, descriptor: &DataObjectDescriptor, values: &[u8]) -> Result<(), Error> {
        let (object, options) = (self.object_count(), &self.options);
        let ready = install(options.threads, || EncodedObject::prepare(object, descriptor, values, options));
        ready.map_err(|error| self.error(error.into())).and_then(|ready| self.put_object(&ready))
    }

    /// Encodes and writes an object whose values are in a source: an object without a pipeline needs no memory for them.
    pub fn write_object_from(
        &mut self,
        descriptor: &DataObjectDescriptor,
        source: &dyn ByteSource,
        span: Span,
    ) -> Result<(), Error> {
        let (object, options) = (self.object_count(), &self.options);
        let values = ObjectValues::Source(source, span);
        let prepare = || EncodedObject::prepare_from(&self.name, object, descriptor, values, options, false);
        let ready = install(options.threads, prepare)?;
        self.put_object(&ready)
    }

    /// Writes an object whose payload is already encoded.
    pub fn write_pre_encoded(&mut self, object: PreEncoded<'_>) -> Result<(), Error> {
        let ready = EncodedObject::pre_encoded(self.object_count(), object.descriptor, object.payload);
        ready.map_err(|error| self.error(error.into())).and_then(|ready| self.put_object(&ready))
    }

    /// Ends the message. The preamble has no length, because a stream cannot seek.
    pub fn finish(mut self) -> Result<W, Error> {
        self.put_footer(false).map_err(|kind| self.error(kind))?;
        Ok(self.sink)
    }

    /// The sink.
    #[cfg(feature = "async")]
    pub(crate) fn sink_mut(&mut self) -> &mut W {
        &mut self.sink
    }

    /// Ends the message and returns its length, which the caller writes into the preamble.
    pub(crate) fn finish_counted(mut self) -> Result<(W, u64), Error> {
        let total = self.put_footer(true).map_err(|kind| self.error(kind))?;
        Ok((self.sink, total))
    }

    fn put_object(&mut self, object: &EncodedObject<'_>) -> Result<(), Error> {
        let hashed = self.options.hash;
        let parts = &object.parts;
        let size = ObjectSize { payload: object.payload_len(), cbor: parts.cbor.len() as u64 };
        let header = size.header(hashed);
        let offset = self.len;
        let end = offset.checked_add(header.total_length).and_then(align8);
        if end.is_none_or(|end| end > 1 << 63) {
            return Err(self.error(EncodeError::TooLarge.into()));
        }
        let number = self.offsets.len();
        let mut entry = self.metadata.base.get(number).cloned().unwrap_or_default();
        entry.extend(self.preceder.clone().unwrap_or_default());
        object.enrich(number as u64, &mut entry).map_err(|error| self.error(error.into()))?;
        let mut hash = Xxh3::new();
        let mut put = |encoder: &mut Self, piece: &[u8]| {
            if hashed {
                hash.update(piece);
            }
            encoder.put(piece).map_err(|kind| encoder.error(kind))
        };
        self.put(&header.to_bytes()).map_err(|kind| self.error(kind))?;
        if let Some(streamed) = &object.streamed {
            // Values that cannot be read leave the message incomplete.
            let copied = streamed.copy(|piece| put(self, piece));
            self.failed |= copied.is_err();
            copied?;
        }
        for piece in parts.payload.chunks(PIECE).chain([&*parts.cbor]) {
            put(self, piece)?;
        }
        let hash = if hashed { hash.digest() } else { 0 };
        let mut tail: Vec<u8> = size.tail(hash).to_bytes().collect();
        let unpadded = self.len + tail.len() as u64;
        let padding = align8(unpadded).map_or(0, |next| next - unpadded);
        tail.extend(std::iter::repeat_n(0, usize::try_from(padding).unwrap_or_default()));
        self.put(&tail).map_err(|kind| self.error(kind))?;
        self.offsets.push(offset);
        self.lengths.push(header.total_length);
        self.hashes.push(hash);
        self.preceder = None;
        match self.metadata.base.get_mut(number) {
            Some(kept) => *kept = entry,
            None => self.metadata.base.push(entry),
        }
        Ok(())
    }

    /// Writes footer frames and postamble; returns the length of the message.
    fn put_footer(&mut self, with_length: bool) -> Result<u64, ErrorKind> {
        if self.preceder.is_some() {
            return Err(EncodeError::DanglingPreceder.into());
        }
        let first_footer_offset = self.len;
        self.metadata.base.truncate(self.offsets.len());
        self.metadata.reserved = self.options.provenance.section();
        let metadata = self.metadata.to_cbor();
        self.put_frame(FrameKind::FooterMetadata, &metadata)?;
        if self.footer_hashes && !self.offsets.is_empty() {
            self.put_frame(FrameKind::FooterHash, &build_hash_frame_cbor(&self.hashes))?;
        }
        if self.footer_index {
            let (offsets, lengths) = (self.offsets.clone(), self.lengths.clone());
            self.put_frame(FrameKind::FooterIndex, &IndexFrame { offsets, lengths }.to_cbor())?;
        }
        let total = self.len + POSTAMBLE_LEN;
        let total_length = if with_length { total } else { 0 };
        self.put(&Postamble { first_footer_offset, total_length }.to_bytes())?;
        self.sink.flush().map_err(ErrorKind::from)?;
        Ok(total)
    }

    fn put_frame(&mut self, kind: FrameKind, body: &[u8]) -> Result<(), ErrorKind> {
        let mut frame = Vec::with_capacity(body.len() + 40);
        put_frame(&mut frame, 0, kind, body, self.options.hash);
        self.put(&frame)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), ErrorKind> {
        if self.failed {
            return Err(EncodeError::Unfinished.into());
        }
        self.failed = true;
        self.sink.write_all(bytes).map_err(ErrorKind::from)?;
        self.failed = false;
        self.len += bytes.len() as u64;
        Ok(())
    }
}

impl<W: Write + Seek> StreamingEncoder<W> {
    /// Ends the message and seeks back to write its length into the preamble.
    pub fn finish_with_length(self) -> Result<W, Error> {
        let name = Arc::clone(&self.name);
        let (mut sink, total) = self.finish_counted()?;
        let go = |sink: &mut W| -> io::Result<()> {
            let end = sink.stream_position()?;
            let start = end.checked_sub(total).ok_or(io::ErrorKind::InvalidInput)?;
            sink.seek(SeekFrom::Start(start + 16))?;
            sink.write_all(&total.to_be_bytes())?;
            sink.seek(SeekFrom::Start(end))?;
            sink.flush()
        };
        go(&mut sink).map_err(|error| Error::new(name, error.into()))?;
        Ok(sink)
    }
}
