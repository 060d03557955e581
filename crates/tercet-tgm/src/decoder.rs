//! Decoding of messages from a stream that arrives in pieces of any size.

use std::sync::Arc;

use bytes::{Buf as _, Bytes, BytesMut};
use tercet_core::limits::check_limit;
use tercet_core::{Budget, Span};

use crate::consistency::check_hash;
use crate::error::{Error, ErrorKind};
use crate::frame_body::{Body, Contents, budget};
use crate::index_and_hash::{HashFrame, IndexFrame};
use crate::layout::{Collected, Layout};
use crate::metadata::{Entry, GlobalMetadata};
use crate::object::StreamedObject;
use crate::options::ReadOptions;
use crate::wire::frame::{Frame, FrameHeader};
use crate::wire::ids::{FRAME_HEADER_LEN, FrameKind, MAGIC, POSTAMBLE_LEN, PREAMBLE_LEN};
use crate::wire::postamble::Postamble;
use crate::wire::preamble::Preamble;
use crate::wire::walk::{Next, Walk};

mod resync;

use resync::{End, may_be_a_start};

/// The name of a stream in errors.
const NAME: &str = "stream";
/// The length of a preamble.
const PREAMBLE: usize = 24;
/// The length of a frame header.
const FRAME_HEADER: usize = 16;
/// The length of a postamble.
const POSTAMBLE: usize = 24;
const _: () = assert!(PREAMBLE as u64 == PREAMBLE_LEN && POSTAMBLE as u64 == POSTAMBLE_LEN);
const _: () = assert!(FRAME_HEADER as u64 == FRAME_HEADER_LEN);
/// The number of bytes kept until the next frame confirms them: see [`Decoder::held`].
const MAX_HELD: usize = 64 << 10;

/// An event of a stream.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A message starts.
    Start(Preamble),
    /// A metadata frame.
    Metadata {
        /// Whether it is before or after the objects.
        kind: FrameKind,
        /// The metadata.
        metadata: GlobalMetadata,
    },
    /// The index frame: positions of the objects.
    Index(IndexFrame),
    /// The hash frame: hashes of the objects.
    Hashes(HashFrame),
    /// Metadata of the next object.
    Preceder(Entry),
    /// A data object.
    Object(Box<StreamedObject>),
    /// The end of a message. Index, hash lists, flags and postamble agree with its frames.
    End {
        /// The postamble.
        postamble: Postamble,
        /// The metadata of the message: the last copy, with each preceder merged into the entry of its object.
        metadata: GlobalMetadata,
    },
    /// Bytes outside messages. Only decoders that resynchronise skip them.
    Skipped(Span),
}

/// Decodes messages from pieces of a stream.
///
/// Events and errors do not depend on how the stream is split. Memory holds the largest frame and the metadata of one
/// message.
///
/// A decoder that resynchronises also keeps the bytes after a message start inside a frame without a hash, up to the frame
/// limit, until the message of that frame has ended.
///
/// It numbers messages as [`scan`](fn@crate::scan) does: a damaged message keeps its number if its end is found before
/// another message starts; a truncated one has no number.
///
/// ```
/// use tercet_tgm::{Decoder, EncodeOptions, Event, GlobalMetadata, encode_message};
///
/// let bytes = encode_message(&GlobalMetadata::default(), &[], &EncodeOptions::new())?;
/// let mut decoder = Decoder::new();
/// let mut ends = 0;
/// for piece in bytes.chunks(5) {
///     decoder.push(piece);
///     while let Some(event) = decoder.next_event()? {
///         ends += u32::from(matches!(event, Event::End { .. }));
///     }
/// }
/// decoder.finish()?;
/// assert_eq!(ends, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Decoder {
    options: ReadOptions,
    resync: bool,
    buffer: BytesMut,
    /// The name of the stream in errors.
    name: Arc<str>,
    /// The stream offset of the buffer.
    at: u64,
    /// The number of bytes at the start of the buffer that are decoded but not confirmed by a following frame: a preamble,
    /// padding. If the message is truncated there, the next message starts among them.
    held: usize,
    /// Decoded bytes before the buffer that may still contain messages: see [`Decoder::keep_unverified`].
    unverified: BytesMut,
    /// The number of the next message.
    number: u64,
    /// The number of bytes searched again after a frame turned out to be invalid.
    rescanned: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Between messages.
    Between,
    /// In unrecognized bytes, from `since` on. If they are the rest of a message, it ends at `awaited`.
    Lost { since: u64, awaited: Option<End> },
    /// Inside a message.
    Inside(Box<Inside>),
    /// After an error.
    Stopped,
}

#[derive(Debug)]
struct Inside {
    walk: Walk,
    frames: Collected,
    contents: Contents,
    /// The memory budget for the metadata of the message.
    budget: Budget,
    /// The number of padding bytes still to be skipped.
    skip: u64,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// A decoder that verifies everything and stops at the first error.
    pub fn new() -> Self {
        Self::with_options(ReadOptions::new())
    }

    /// A decoder with these options.
    pub fn with_options(options: ReadOptions) -> Self {
        let (buffer, unverified, state) = (BytesMut::new(), BytesMut::new(), State::Between);
        let name = NAME.into();
        Self {
            options,
            resync: false,
            buffer,
            name,
            at: 0,
            held: 0,
            unverified,
            number: 0,
            rescanned: 0,
            state,
        }
    }

    /// Sets the name of the stream, which errors have as their location. By default it is `stream`.
    pub fn with_name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// The name of the stream.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Sets the position of the first byte and the number of the first message, for a stream that starts between two messages.
    pub fn with_start(mut self, at: u64, number: u64) -> Self {
        (self.at, self.number) = (at, number);
        self
    }

    /// Sets whether the decoder continues with the next message after unrecognized bytes or an error.
    pub fn with_resync(mut self, resync: bool) -> Self {
        self.resync = resync;
        self
    }

    /// Appends bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        if !matches!(self.state, State::Stopped) {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// The number of bytes not decoded yet.
    pub fn buffered(&self) -> usize {
        self.rest().len()
    }

    /// The stream offset of the first byte not decoded yet.
    pub fn position(&self) -> u64 {
        self.at + self.held as u64
    }

    /// The number of the current message, or of the next one.
    pub fn message_number(&self) -> u64 {
        self.number
    }

    /// The next frame, if its header has arrived: the number of its bytes that have arrived, and its length. `None` for
    /// a frame that will be rejected.
    #[cfg(feature = "async")]
    pub(crate) fn next_frame(&self) -> Option<(usize, usize)> {
        let State::Inside(inside) = &self.state else { return None };
        let rest = self.rest().get(usize::try_from(inside.skip).ok()?..)?;
        let head = rest.get(..usize::try_from(inside.walk.wants()).ok()?)?;
        match inside.walk.look(head) {
            Ok(Next::Frame(header)) => Some((rest.len(), self.frame_len(&header).ok()?)),
            _ => None,
        }
    }

    /// The next event, or `None` if more bytes are needed.
    pub fn next_event(&mut self) -> Result<Option<Event>, Error> {
        self.advance().map_err(|kind| self.error(kind))
    }

    fn error(&self, kind: ErrorKind) -> Error {
        Error::new(Arc::clone(&self.name), kind)
    }

    fn advance(&mut self) -> Result<Option<Event>, ErrorKind> {
        if let State::Lost { since, awaited } = self.state {
            if !self.search(since, awaited) {
                return Ok(None);
            }
            self.state = State::Between;
            if let Some(skipped) = Span::between(since, self.at).filter(|span| !span.is_empty()) {
                return Ok(Some(Event::Skipped(skipped)));
            }
        }
        let event = match self.state {
            State::Between => self.begin(),
            State::Inside(_) => self.next_frame_event(),
            State::Stopped | State::Lost { .. } => return Err(ErrorKind::DecoderStopped),
        };
        event.inspect_err(|_| {
            if self.resync {
                self.start_search();
            } else {
                self.state = State::Stopped;
                self.buffer = BytesMut::new();
            }
        })
    }

    /// Ends the stream, which must not be inside a message.
    ///
    /// Call it after the last [`next_event`](Self::next_event). A decoder that resynchronises continues after a truncated
    /// message, because complete messages may follow inside the length of a truncated frame: call `next_event` again, then
    /// `finish` again, until it returns `Ok(None)`.
    pub fn finish(&mut self) -> Result<Option<Event>, Error> {
        self.end_stream().map_err(|kind| self.error(kind))
    }

    fn end_stream(&mut self) -> Result<Option<Event>, ErrorKind> {
        let end = self.at + self.buffer.len() as u64;
        match self.state {
            State::Between if self.buffer.is_empty() => Ok(None),
            State::Between if self.resync && !may_be_a_start(&self.buffer) => {
                let since = self.at;
                self.consume(end - since);
                Ok(Span::between(since, end).map(Event::Skipped))
            }
            State::Lost { since, .. } => {
                self.at = end;
                self.buffer.clear();
                self.state = State::Between;
                Ok(Span::between(since, end).filter(|span| !span.is_empty()).map(Event::Skipped))
            }
            State::Stopped => Err(ErrorKind::DecoderStopped),
            State::Between | State::Inside(_) => {
                let cut = ErrorKind::TruncatedStream { message: self.number, at: end };
                if !self.resync {
                    self.state = State::Stopped;
                    return Err(cut);
                }
                if matches!(self.state, State::Between) {
                    // Skip the magic, so that the search does not find it again.
                    self.consume(MAGIC.len() as u64);
                }
                self.start_search();
                Err(cut)
            }
        }
    }

    /// The bytes not decoded yet.
    fn rest(&self) -> &[u8] {
        self.buffer.get(self.held..).unwrap_or_default()
    }

    fn begin(&mut self) -> Result<Option<Event>, ErrorKind> {
        let head = self.buffer.get(..MAGIC.len());
        if self.resync && head.is_some_and(|head| head != MAGIC) {
            self.state = State::Lost { since: self.at, awaited: None };
            return self.advance();
        }
        let Some(head) = self.buffer.get(..PREAMBLE) else { return Ok(None) };
        let preamble = match Preamble::parse(self.number, self.at, head) {
            Ok(preamble) => preamble,
            Err(error) => {
                // Skip the magic, so that the search does not find it again.
                self.consume(if self.resync { MAGIC.len() as u64 } else { 0 });
                return Err(error.into());
            }
        };
        let walk =
            Walk::new(self.number, self.at, &preamble).skipping_unknown(self.options.skip_unknown_frames);
        let frames = Collected::new(self.number, self.at, preamble);
        self.held = PREAMBLE;
        self.state = State::Inside(Box::new(Inside {
            walk,
            frames,
            contents: Contents::default(),
            budget: budget(&self.options),
            skip: 0,
        }));
        Ok(Some(Event::Start(preamble)))
    }

    fn next_frame_event(&mut self) -> Result<Option<Event>, ErrorKind> {
        loop {
            let rest = self.rest().len();
            let State::Inside(inside) = &mut self.state else { return Ok(None) };
            if inside.skip > 0 {
                let here = usize::try_from(inside.skip).unwrap_or(usize::MAX).min(rest);
                inside.skip -= here as u64;
                let more = inside.skip > 0;
                self.hold(here);
                if more {
                    return Ok(None);
                }
                continue;
            }
            let wants = usize::try_from(inside.walk.wants()).unwrap_or(usize::MAX);
            let Some(head) = self.buffer.get(self.held..self.held.saturating_add(wants)) else {
                return Ok(None);
            };
            match inside.walk.look(head)? {
                Next::Gap(len) => {
                    inside.walk.skip(len);
                    inside.skip = len;
                }
                Next::Postamble => return self.end().map(Some),
                Next::Frame(header) => {
                    // Rejected before its bytes are collected.
                    let len = self.frame_len(&header)?;
                    if rest < len {
                        return Ok(None);
                    }
                    if let Some(event) = self.take_frame(&header, len)? {
                        return Ok(Some(event));
                    }
                }
            }
        }
    }

    /// The length of a frame, if it is within the limits.
    fn frame_len(&self, header: &FrameHeader) -> Result<usize, ErrorKind> {
        let limits = &self.options.common.limits;
        let limit = match header.kind() {
            Some(FrameKind::NTensor) => limits.chunk_bytes,
            _ => limits.metadata_bytes,
        };
        Ok(check_limit("a frame", header.total_length, limit)?)
    }

    /// Decodes a frame that has arrived completely. `None` for a skipped frame of an unknown type.
    fn take_frame(&mut self, header: &FrameHeader, len: usize) -> Result<Option<Event>, ErrorKind> {
        let tail_at = len - usize::try_from(header.tail_len()).unwrap_or(len);
        let State::Inside(inside) = &mut self.state else { return Err(ErrorKind::DecoderStopped) };
        let start = inside.walk.at();
        let frame = inside.walk.take(header, &self.buffer[self.held + tail_at..self.held + len])?;
        inside.skip = inside.walk.at() - start - header.total_length;
        self.consume(self.held as u64);
        self.held = 0;
        let bytes = self.buffer.split_to(len);
        self.at += header.total_length;
        let Some(frame) = frame else {
            self.keep_unverified(&bytes, false);
            return Ok(None);
        };
        if let Err(fault) = self.check_frame(&frame, &bytes[FRAME_HEADER..tail_at]) {
            self.rescan(bytes);
            return Err(fault);
        }
        let bytes = bytes.freeze();
        let event = self.parse_frame(frame, &bytes.slice(FRAME_HEADER..tail_at));
        let is_verified = self.options.common.verify && frame.hash().is_some();
        if event.is_ok() {
            self.keep_unverified(&bytes, is_verified);
        } else if !is_verified || !self.unverified.is_empty() {
            self.rescan_copy(&bytes);
        }
        event.map(Some)
    }

    /// Skips bytes that no frame has confirmed yet.
    fn hold(&mut self, len: usize) {
        self.held += len;
        if self.held > MAX_HELD {
            // A run of zeros this long contains no message start.
            self.consume(self.held as u64);
            self.held = 0;
        }
    }

    fn check_frame(&mut self, frame: &Frame, body: &[u8]) -> Result<(), ErrorKind> {
        let State::Inside(inside) = &mut self.state else { return Err(ErrorKind::DecoderStopped) };
        inside.frames.push(*frame, &self.options)?;
        if self.options.common.verify {
            check_hash(self.number, frame, body)?;
            inside.frames.check_announced_hash(frame)?;
        }
        Ok(())
    }

    fn parse_frame(&mut self, frame: Frame, body: &Bytes) -> Result<Event, ErrorKind> {
        let (name, number, options) = (&self.name, self.number, self.options);
        let State::Inside(inside) = &mut self.state else { return Err(ErrorKind::DecoderStopped) };
        if frame.kind == FrameKind::NTensor {
            return StreamedObject::parse(name, number, frame, body, &options)
                .map(|object| Event::Object(Box::new(object)));
        }
        let (body, _) = Body::parse(number, &frame, body, &inside.budget)?;
        inside.contents.add(number, &frame, body.clone());
        Ok(match body {
            Body::Metadata(metadata) => Event::Metadata { kind: frame.kind, metadata },
            Body::Preceder(entry) => Event::Preceder(entry),
            Body::Index(index) => Event::Index(index),
            Body::Hashes(hashes) => Event::Hashes(hashes),
        })
    }

    fn end(&mut self) -> Result<Event, ErrorKind> {
        let State::Inside(inside) = &mut self.state else { return Err(ErrorKind::DecoderStopped) };
        let bytes = &self.buffer[self.held..self.held + POSTAMBLE];
        let postamble = inside.walk.end(bytes)?;
        let layout: Layout = inside.frames.finish(&inside.walk, postamble);
        inside.contents.check(&layout, &self.options)?;
        let metadata = inside.contents.take_metadata(layout.number, layout.span, layout.object_count())?;
        self.consume(self.held as u64 + POSTAMBLE_LEN);
        self.held = 0;
        self.unverified.clear();
        self.number += 1;
        self.state = State::Between;
        Ok(Event::End { postamble, metadata })
    }

    fn consume(&mut self, len: u64) {
        let len = usize::try_from(len).unwrap_or(usize::MAX).min(self.buffer.len());
        if !self.unverified.is_empty() {
            self.unverified.extend_from_slice(&self.buffer[..len]);
        }
        self.buffer.advance(len);
        self.at += len as u64;
    }
}
