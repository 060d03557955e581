//! Messages from a stream, whatever pieces it comes in.

use bytes::{Buf as _, Bytes, BytesMut};
use memchr::memmem;
use tercet_core::limits::within;
use tercet_core::{Budget, Span};

use crate::body::{Body, Contents, budget};
use crate::check::check_hash;
use crate::fault::Fault;
use crate::layout::{Collected, Layout};
use crate::lists::{HashFrame, IndexFrame};
use crate::metadata::{Entry, GlobalMetadata};
use crate::object::StreamedObject;
use crate::options::ReadOptions;
use crate::wire::ids::{FrameKind, MAGIC, POSTAMBLE_LEN, PREAMBLE_LEN};
use crate::wire::postamble::Postamble;
use crate::wire::preamble::Preamble;
use crate::wire::walk::{Next, Walk};

/// Bytes of a preamble.
const PREAMBLE: usize = 24;
/// Bytes of a postamble.
const POSTAMBLE: usize = 24;
const _: () = assert!(PREAMBLE as u64 == PREAMBLE_LEN && POSTAMBLE as u64 == POSTAMBLE_LEN);

/// What comes by in a stream.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A message starts.
    Start(Preamble),
    /// A metadata frame.
    Metadata {
        /// Whether it stands before or behind the objects.
        kind: FrameKind,
        /// What it says.
        metadata: GlobalMetadata,
    },
    /// The places of the objects.
    Index(IndexFrame),
    /// The hashes of the objects.
    Hashes(HashFrame),
    /// Metadata of the object that comes next.
    Preceder(Entry),
    /// A data object.
    Object(Box<StreamedObject>),
    /// A message ended, and everything it said about itself was true.
    End {
        /// Its last bytes.
        postamble: Postamble,
        /// Its metadata as a whole: the last copy, what preceded each object merged into its entry.
        metadata: GlobalMetadata,
    },
    /// Bytes that belong to no message. Only decoders that resynchronise pass over them.
    Skipped(Span),
}

/// Decodes messages from pieces of a stream.
///
/// The events, and the errors, are the same however the stream is cut. Memory is that of the largest frame and of the
/// metadata of one message.
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
    /// Where in the stream the buffer starts.
    at: u64,
    /// The number of the next message.
    number: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Between messages.
    Between,
    /// In bytes that belong to no message, which started here.
    Lost { since: u64 },
    /// Inside a message.
    Inside(Box<Inside>),
    /// After an error.
    GivenUp,
}

#[derive(Debug)]
struct Inside {
    walk: Walk,
    frames: Collected,
    contents: Contents,
    /// For all metadata of the message together.
    budget: Budget,
    /// Padding that is still to come.
    skip: u64,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// A decoder that checks everything and stops at the first error.
    pub fn new() -> Self {
        Self::with_options(ReadOptions::new())
    }

    /// A decoder that reads with these options.
    pub fn with_options(options: ReadOptions) -> Self {
        Self { options, resync: false, buffer: BytesMut::new(), at: 0, number: 0, state: State::Between }
    }

    /// Goes on with the next message after junk or an error, instead of giving up.
    pub fn with_resync(mut self, resync: bool) -> Self {
        self.resync = resync;
        self
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        if !matches!(self.state, State::GivenUp) {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Bytes that were taken but not yet decoded.
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// The next event, or `None` if it needs more bytes.
    pub fn next_event(&mut self) -> Result<Option<Event>, Fault> {
        if let State::Lost { since } = self.state {
            if !self.search() {
                return Ok(None);
            }
            self.state = State::Between;
            if let Some(skipped) = Span::between(since, self.at).filter(|span| !span.is_empty()) {
                return Ok(Some(Event::Skipped(skipped)));
            }
        }
        let event = match self.state {
            State::Between => self.begin(),
            State::Inside(_) => self.go_on(),
            State::GivenUp | State::Lost { .. } => return Err(Fault::GivenUp),
        };
        event.inspect_err(|_| {
            if matches!(self.state, State::Inside(_)) {
                self.number += 1;
            }
            if self.resync {
                self.state = State::Lost { since: self.at };
            } else {
                self.state = State::GivenUp;
                self.buffer = BytesMut::new();
            }
        })
    }

    /// Ends the stream. It must not end inside a message.
    pub fn finish(&mut self) -> Result<Option<Event>, Fault> {
        let end = self.at + self.buffer.len() as u64;
        match self.state {
            State::Between if self.buffer.is_empty() => Ok(None),
            State::Lost { since } => {
                self.at = end;
                self.buffer.clear();
                self.state = State::Between;
                Ok(Span::between(since, end).filter(|span| !span.is_empty()).map(Event::Skipped))
            }
            State::GivenUp => Err(Fault::GivenUp),
            State::Between | State::Inside(_) => {
                self.state = State::GivenUp;
                Err(Fault::CutStream { message: self.number, at: end })
            }
        }
    }

    fn begin(&mut self) -> Result<Option<Event>, Fault> {
        let head = self.buffer.get(..MAGIC.len());
        if self.resync && head.is_some_and(|head| head != MAGIC) {
            self.state = State::Lost { since: self.at };
            return self.next_event();
        }
        let Some(head) = self.buffer.get(..PREAMBLE) else { return Ok(None) };
        let preamble = match Preamble::parse(self.number, self.at, head) {
            Ok(preamble) => preamble,
            Err(error) => {
                // Past the magic, so that a search does not find it again.
                self.consume(if self.resync { MAGIC.len() as u64 } else { 0 });
                return Err(error.into());
            }
        };
        let walk =
            Walk::new(self.number, self.at, &preamble).skipping_unknown(self.options.skip_unknown_frames);
        let frames = Collected::new(self.number, self.at, preamble);
        self.consume(PREAMBLE_LEN);
        self.state = State::Inside(Box::new(Inside {
            walk,
            frames,
            contents: Contents::default(),
            budget: budget(&self.options),
            skip: 0,
        }));
        Ok(Some(Event::Start(preamble)))
    }

    /// Goes to the next magic. Passes over each byte once: only what may be the start of a magic is kept.
    fn search(&mut self) -> bool {
        if let Some(found) = memmem::find(&self.buffer, MAGIC) {
            self.consume(found as u64);
            return true;
        }
        let keep = (MAGIC.len() - 1).min(self.buffer.len());
        self.consume((self.buffer.len() - keep) as u64);
        false
    }

    fn go_on(&mut self) -> Result<Option<Event>, Fault> {
        loop {
            let State::Inside(inside) = &mut self.state else { return Ok(None) };
            if inside.skip > 0 {
                let here = inside.skip.min(self.buffer.len() as u64);
                inside.skip -= here;
                let more = inside.skip > 0;
                self.consume(here);
                if more {
                    return Ok(None);
                }
                continue;
            }
            let wants = usize::try_from(inside.walk.wants()).unwrap_or(usize::MAX);
            let Some(head) = self.buffer.get(..wants) else { return Ok(None) };
            match inside.walk.look(head)? {
                Next::Gap(len) => {
                    inside.walk.skip(len);
                    inside.skip = len;
                }
                Next::Postamble => return self.end().map(Some),
                Next::Frame(header) => {
                    // Refused before its bytes are collected.
                    let limits = &self.options.limits;
                    let limit = match header.kind() {
                        Some(FrameKind::NTensor) => limits.chunk_bytes,
                        _ => limits.metadata_bytes,
                    };
                    let len = within("a frame", header.total_length, limit)?;
                    if self.buffer.len() < len {
                        return Ok(None);
                    }
                    let tail_at = len - usize::try_from(header.tail_len()).unwrap_or(len);
                    let start = inside.walk.at();
                    let frame = inside.walk.take(&header, &self.buffer[tail_at..len])?;
                    inside.skip = inside.walk.at() - start - header.total_length;
                    let bytes = self.buffer.split_to(len).freeze();
                    self.at += header.total_length;
                    if let Some(frame) = frame {
                        return self.frame(frame, &bytes.slice(16..tail_at)).map(Some);
                    }
                }
            }
        }
    }

    fn frame(&mut self, frame: crate::wire::frame::Frame, body: &Bytes) -> Result<Event, Fault> {
        let (number, options) = (self.number, self.options);
        let State::Inside(inside) = &mut self.state else { return Err(Fault::GivenUp) };
        inside.frames.push(frame, &options)?;
        if options.verify {
            check_hash(number, &frame, body)?;
            inside.frames.check_promise(&frame)?;
        }
        if frame.kind == FrameKind::NTensor {
            return StreamedObject::parse(number, frame, body, &options)
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

    fn end(&mut self) -> Result<Event, Fault> {
        let State::Inside(inside) = &mut self.state else { return Err(Fault::GivenUp) };
        let bytes = &self.buffer[..POSTAMBLE];
        let postamble = inside.walk.end(bytes)?;
        let layout: Layout = inside.frames.finish(&inside.walk, postamble);
        inside.contents.check(&layout, &self.options)?;
        let metadata = inside.contents.take_metadata(layout.number, layout.span, layout.object_count())?;
        self.consume(POSTAMBLE_LEN);
        self.number += 1;
        self.state = State::Between;
        Ok(Event::End { postamble, metadata })
    }

    fn consume(&mut self, len: u64) {
        let len = usize::try_from(len).unwrap_or(usize::MAX).min(self.buffer.len());
        self.buffer.advance(len);
        self.at += len as u64;
    }
}
