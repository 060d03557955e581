//! Remote messages, whose objects are located by the index frame.
//!
//! Reading head and tail of every frame costs two requests per object. With the index there are none until an object
//! is requested; its frame is then compared with the index.

use std::sync::OnceLock;

use tercet_core::{ByteSource, Malformed, Reason, Site, Span};

use crate::consistency::ALGORITHM;
use crate::error::{Contradiction, ErrorKind};
use crate::frame_body::{Contents, budget};
use crate::index_and_hash::{HashFrame, IndexFrame};
use crate::layout::Layout;
use crate::message::read_frame;
use crate::options::ReadOptions;
use crate::region::{Part, Region};
use crate::window::Window;
use crate::wire::align8;
use crate::wire::frame::{Frame, FrameHeader, FrameTail};
use crate::wire::ids::{FRAME_HEADER_LEN, FrameKind, MessageFlags, POSTAMBLE_LEN, PREAMBLE_LEN};
use crate::wire::order::DecodePhase;
use crate::wire::postamble::Postamble;
use crate::wire::preamble::Preamble;
use crate::wire::walk::{Next, Walk};

/// Frames up to this length are read completely: remote sources cache what they read.
const SMALL_FRAME: u64 = 32 << 10;

/// A message of which all frames except the objects are read.
#[derive(Clone, Debug)]
pub(crate) struct IndexedMessage {
    number: u64,
    span: Span,
    flags: MessageFlags,
    /// Frames before the objects.
    header_frames: u32,
    index: IndexFrame,
    /// The list of hashes, with its frame.
    hashes: Option<(Frame, HashFrame)>,
    /// All frames, once they were requested.
    layout: OnceLock<Layout>,
}

/// The state of opening a message.
struct Opening<'a, 'w> {
    window: &'a mut Window<'w>,
    span: Span,
    walk: Walk,
    /// Frames before the objects.
    header_frames: u32,
    /// The start and the end of the objects, relative to the message.
    body: (u64, u64),
    has_footer_metadata: bool,
    contents: Contents,
}

impl IndexedMessage {
    /// Reads the frames before and after the objects. `None` for a message without an index, and for an invalid message, whose
    /// error is found by reading all frames.
    pub(crate) fn open(
        window: &mut Window<'_>,
        number: u64,
        span: Span,
        options: &ReadOptions,
    ) -> Result<Option<(Self, Contents)>, ErrorKind> {
        let preamble = Preamble::parse(number, span.start(), window.get(span.start(), PREAMBLE_LEN)?)?;
        let flags = preamble.flags;
        let has_index =
            flags.contains(MessageFlags::HEADER_INDEX) || flags.contains(MessageFlags::FOOTER_INDEX);
        let has_length = preamble.known_length().is_none_or(|length| length == span.len());
        if !has_index || !has_length || span.len() < PREAMBLE_LEN + POSTAMBLE_LEN {
            return Ok(None);
        }
        let walk = Walk::new(number, span.start(), &preamble);
        let body = (PREAMBLE_LEN, span.len() - POSTAMBLE_LEN);
        let contents = Contents::default();
        let has_footer_metadata = false;
        let mut opening =
            Opening { window, span, walk, header_frames: 0, body, has_footer_metadata, contents };
        if !opening.read(number, flags, options)? {
            return Ok(None);
        }
        Ok(opening.finish(number, flags))
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn span(&self) -> Span {
        self.span
    }

    pub(crate) fn object_count(&self) -> u64 {
        self.index.offsets.len() as u64
    }

    /// The layout of all frames.
    pub(crate) fn layout(
        &self,
        source: &dyn ByteSource,
        options: &ReadOptions,
    ) -> Result<&Layout, ErrorKind> {
        if let Some(layout) = self.layout.get() {
            return Ok(layout);
        }
        let mut window = Window::up_to(source, self.span.end())?;
        let layout = Layout::read(&mut window, self.number, self.span, options)?;
        Ok(self.layout.get_or_init(|| layout))
    }

    /// The byte range of an object, as listed in the index.
    pub(crate) fn object_span(&self, index: u64) -> Option<Span> {
        let position = usize::try_from(index).ok()?;
        let (offset, length) = self.index.offsets.get(position).zip(self.index.lengths.get(position))?;
        Span::at(self.span.start().checked_add(*offset)?, *length)
    }

    /// The frame of an object, compared with index and hash list.
    pub(crate) fn object(
        &self,
        source: &dyn ByteSource,
        options: &ReadOptions,
        index: u64,
    ) -> Result<Frame, ErrorKind> {
        let count = self.object_count();
        let none = || ErrorKind::NoSuchObject { message: self.number, index, count };
        let position = usize::try_from(index).map_err(|_| none())?;
        let entry = self.index.offsets.get(position).zip(self.index.lengths.get(position));
        let (&offset, &length) = entry.ok_or_else(none)?;
        let object = u32::try_from(index).map_err(|_| none())?;
        let region = Region { message: self.number, part: Part::Object { object } };
        let start = self.span.start().saturating_add(offset);
        let span = Span::at(start, length).unwrap_or(Span::empty(start));
        let (head, tail) = ends(source, span)?;
        let header = FrameHeader::parse(region, start, &head)?;
        if header.kind() != Some(FrameKind::NTensor) {
            let reason = Reason::OutOfRange {
                found: header.code.into(),
                allowed: "9, an object, according to the index",
            };
            let span = Span::at(start.saturating_add(2), 2).unwrap_or(span);
            return Err(Malformed { site: Site { region, field: "type", span }, reason }.into());
        }
        if header.total_length != length {
            let what = Contradiction::Index {
                list: "lengths",
                object: index,
                found: length,
                expected: header.total_length,
            };
            return Err(ErrorKind::Contradiction { region, span, what });
        }
        let tail = FrameTail::parse(region, &header, span.end() - header.tail_len(), &tail)?;
        let frame = Frame {
            index: self.header_frames.saturating_add(object),
            kind: FrameKind::NTensor,
            header,
            span,
            hash_slot: tail.hash,
            cbor_offset: tail.cbor_offset.unwrap_or(0),
            object,
        };
        self.check_hash_of(&frame, position, options)?;
        Ok(frame)
    }

    fn check_hash_of(&self, frame: &Frame, position: usize, options: &ReadOptions) -> Result<(), ErrorKind> {
        if options.common.verify {
            check_announced_hash(self.number, self.flags, frame)?;
        }
        let Some((list_frame, list)) = self.hashes.as_ref().filter(|_| options.strict) else {
            return Ok(());
        };
        let expected = frame.hash_slot;
        match list.hashes.get(position) {
            Some(found) if *found != format!("{expected:016x}") => {
                let (object, found) = (frame.object.into(), found.as_str().into());
                let what = Contradiction::Hash { object, found, expected };
                let (region, span) = (list_frame.region(self.number), list_frame.body());
                Err(ErrorKind::Contradiction { region, span, what })
            }
            _ => Ok(()),
        }
    }
}

/// The first and the last bytes of the frame of an object.
fn ends(source: &dyn ByteSource, span: Span) -> Result<(bytes::Bytes, bytes::Bytes), ErrorKind> {
    let tail_len = FrameKind::NTensor.tail_len();
    let from_end = span.len().saturating_sub(tail_len);
    if span.len() <= SMALL_FRAME {
        let all = source.read_at(span)?;
        let inside = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(all.len());
        return Ok((all.slice(..inside(FRAME_HEADER_LEN)), all.slice(inside(from_end)..)));
    }
    let head = span.slice(0, FRAME_HEADER_LEN).unwrap_or(span);
    let tail = span.slice(from_end, tail_len).unwrap_or(span);
    // Both in one request.
    let mut ends = source.read_many(&[head, tail])?.into_iter();
    Ok((ends.next().unwrap_or_default(), ends.next().unwrap_or_default()))
}

fn check_announced_hash(message: u64, flags: MessageFlags, frame: &Frame) -> Result<(), ErrorKind> {
    if frame.hash().is_none() && flags.contains(MessageFlags::HASHES_PRESENT) {
        return Err(ErrorKind::MissingHash { region: frame.region(message), span: frame.span });
    }
    Ok(())
}

impl Opening<'_, '_> {
    /// Reads the frames around the objects. `false` if all frames must be read.
    fn read(&mut self, number: u64, flags: MessageFlags, options: &ReadOptions) -> Result<bool, ErrorKind> {
        let budget = budget(options);
        let footers =
            [MessageFlags::FOOTER_INDEX, MessageFlags::FOOTER_METADATA, MessageFlags::FOOTER_HASHES];
        let has_footers = footers.into_iter().any(|flag| flags.contains(flag));
        let mut metadata_frames = 0;
        let mut is_footer = false;
        loop {
            let at = self.walk.at();
            let room = self.span.end().saturating_sub(at).min(self.walk.wants());
            let header = match self.walk.look(self.window.get(at, room)?) {
                Ok(Next::Gap(len)) => {
                    self.walk.skip(len);
                    continue;
                }
                Ok(Next::Postamble) => return Ok(true),
                Ok(Next::Frame(header)) => header,
                Err(_) => return Ok(false),
            };
            let Some(kind) = header.kind() else { return Ok(false) };
            match DecodePhase::for_frame(kind) {
                DecodePhase::Body if is_footer => return Ok(false),
                DecodePhase::Body if has_footers => {
                    is_footer = true;
                    let Some(footer) = self.first_footer(number)? else { return Ok(false) };
                    self.body = (self.walk.inside(), footer);
                    self.walk.jump(footer);
                    continue;
                }
                DecodePhase::Body => {
                    self.body.0 = self.walk.inside();
                    return Ok(true);
                }
                DecodePhase::Header => self.header_frames += 1,
                DecodePhase::Footer => {}
            }
            let is_metadata = matches!(kind, FrameKind::HeaderMetadata | FrameKind::FooterMetadata);
            metadata_frames += u32::from(is_metadata);
            self.has_footer_metadata |= kind == FrameKind::FooterMetadata;
            // Two copies of one kind contradict each other.
            if metadata_frames > 1 + u32::from(self.has_footer_metadata) {
                return Ok(false);
            }
            let Ok(tail_at) = self.walk.tail_at(&header) else { return Ok(false) };
            let tail = self.window.peek(tail_at, header.tail_len())?;
            let Ok(Some(frame)) = self.walk.take(&header, &tail) else { return Ok(false) };
            if options.common.verify {
                check_announced_hash(number, flags, &frame)?;
            }
            read_frame(self.window, number, &frame, options, &budget, &mut self.contents)?;
        }
    }

    /// The offset of the footer frames in the postamble.
    fn first_footer(&mut self, number: u64) -> Result<Option<u64>, ErrorKind> {
        let at = self.span.end() - POSTAMBLE_LEN;
        let postamble = Postamble::parse(number, at, &self.window.peek(at, POSTAMBLE_LEN)?)?;
        let footer = postamble.first_footer_offset;
        let fits = footer >= self.walk.inside() && footer <= self.span.len() - POSTAMBLE_LEN;
        Ok(Some(footer).filter(|_| fits && footer % 8 == 0))
    }

    fn finish(self, number: u64, flags: MessageFlags) -> Option<(IndexedMessage, Contents)> {
        let index = self.contents.index()?.clone();
        let is_dense = fill(&index, self.body)?;
        // Bytes between the objects may be preceders, whose contents are known only if footer metadata repeats them.
        if !is_dense && !self.has_footer_metadata {
            return None;
        }
        let hashes = self.contents.hash_lists().find(|(_, list)| list.algorithm == ALGORITHM);
        let hashes = hashes.map(|(frame, list)| (*frame, list.clone()));
        if hashes.as_ref().is_some_and(|(_, list)| list.hashes.len() != index.offsets.len()) {
            return None;
        }
        let (span, header_frames, layout) = (self.span, self.header_frames, OnceLock::new());
        Some((IndexedMessage { number, span, flags, header_frames, index, hashes, layout }, self.contents))
    }
}

/// Whether the objects of an index fill the bytes between header and footer. `None` if they do not fit.
fn fill(index: &IndexFrame, (start, end): (u64, u64)) -> Option<bool> {
    let (mut at, mut is_dense) = (start, true);
    let least = FRAME_HEADER_LEN + FrameKind::NTensor.tail_len();
    for (&offset, &length) in index.offsets.iter().zip(&index.lengths) {
        if offset < at || length < least {
            return None;
        }
        is_dense &= offset == at;
        at = offset.checked_add(length).and_then(align8).filter(|at| *at <= end)?;
    }
    Some(is_dense && at == end)
}
