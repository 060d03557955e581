//! The parser of messages: a walk over their frames.

use tercet_core::{Malformed, Reason, Site, Span};

use super::align8;
use super::frame::{Frame, FrameHeader, FrameTail};
use super::ids::{END_MAGIC, FRAME_HEADER_LEN, FRAME_MAGIC, FrameKind, POSTAMBLE_LEN, PREAMBLE_LEN};
use super::order::Order;
use super::postamble::Postamble;
use super::preamble::Preamble;
use crate::region::{Part, Region};

/// The number of bytes that [`Walk::look`] needs: a postamble, or more than a frame header.
pub(crate) const LOOK_LEN: u64 = 24;

/// The state of a walk over the frames of one message.
///
/// It holds no bytes. The driver passes it the bytes at [`at`](Walk::at) and acts on the result of
/// [`look`](Walk::look), so the same code parses a stream, a file and a buffer.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    message: u64,
    /// The offset of the message in the file.
    base: u64,
    /// The next byte, relative to the message.
    at: u64,
    /// The offset of the postamble, if the length of the message is known.
    end: Option<u64>,
    order: Order,
    frames: u32,
    objects: u32,
    first_footer: Option<u64>,
    skips_unknown: bool,
}

/// The item at the position of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A number of zero bytes outside frames.
    Gap(u64),
    /// A frame.
    Frame(FrameHeader),
    /// The postamble.
    Postamble,
}

impl Walk {
    /// A walk over message number `message`, whose preamble is at `base`.
    pub(crate) fn new(message: u64, base: u64, preamble: &Preamble) -> Self {
        Self {
            message,
            base,
            at: PREAMBLE_LEN,
            end: preamble.known_length().map(|length| length.saturating_sub(POSTAMBLE_LEN)),
            order: Order::default(),
            frames: 0,
            objects: 0,
            first_footer: None,
            skips_unknown: false,
        }
    }

    /// Sets whether frames of unknown types are skipped instead of rejected.
    pub(crate) fn skipping_unknown(mut self, skips: bool) -> Self {
        self.skips_unknown = skips;
        self
    }

    /// The position in the file.
    pub(crate) fn at(&self) -> u64 {
        self.base.saturating_add(self.at)
    }

    /// The number of bytes that `look` needs: fewer than [`LOOK_LEN`] only near the known end of the message.
    pub(crate) fn wants(&self) -> u64 {
        let to_end = self.end.map(|end| end.saturating_add(POSTAMBLE_LEN).saturating_sub(self.at));
        to_end.map_or(LOOK_LEN, |to_end| to_end.min(LOOK_LEN))
    }

    /// The item at this position. `head` are the next [`wants`](Walk::wants) bytes, or fewer at the end of the input.
    pub(crate) fn look(&self, head: &[u8]) -> Result<Next, Malformed<Region>> {
        if self.end == Some(self.at) {
            return Ok(Next::Postamble);
        }
        if head.starts_with(FRAME_MAGIC) {
            let header = FrameHeader::parse(self.here(), self.at(), head)?;
            self.check_fit(&header)?;
            return Ok(Next::Frame(header));
        }
        if self.end.is_none() && head.get(16..24) == Some(END_MAGIC) {
            return Ok(Next::Postamble);
        }
        // Zero bytes between frames are allowed. Anything else may be a frame with a damaged header, and
        // skipping it would lose it silently.
        match head.get(..8) {
            Some(zeros) if zeros.iter().all(|&byte| byte == 0) => Ok(Next::Gap(8)),
            _ => FrameHeader::parse(self.here(), self.at(), head).map(Next::Frame),
        }
    }

    fn check_fit(&self, header: &FrameHeader) -> Result<(), Malformed<Region>> {
        let Some(end) = self.end else { return Ok(()) };
        let room = end.saturating_sub(self.at);
        if header.total_length <= room {
            return Ok(());
        }
        let reason = Reason::OutOfBounds {
            offset: self.at(),
            len: header.total_length,
            end: self.base.saturating_add(end),
            what: "the frames of the message",
        };
        Err(self.fault("total_length", 8, 8, reason))
    }

    /// Skips zero bytes.
    pub(crate) fn skip(&mut self, len: u64) {
        self.at = self.at.saturating_add(len);
    }

    /// Advances to a known position, relative to the message. Never back.
    pub(crate) fn jump(&mut self, to: u64) {
        self.at = self.at.max(to);
    }

    /// The position, relative to the message.
    pub(crate) fn inside(&self) -> u64 {
        self.at
    }

    /// Parses the frame at this position and advances past its padding. `tail` are its last bytes. `None` for a skipped frame
    /// of an unknown type.
    pub(crate) fn take(
        &mut self,
        header: &FrameHeader,
        tail: &[u8],
    ) -> Result<Option<Frame>, Malformed<Region>> {
        let Some(kind) = header.kind() else {
            if !self.skips_unknown {
                let found = header.code.into();
                let reason = Reason::OutOfRange {
                    found,
                    allowed: "a frame type of version 3: 1, 2, 3, 5, 6, 7, 8 or 9",
                };
                return Err(self.fault("type", 2, 2, reason));
            }
            let tail_at = self.tail_at(header)?;
            FrameTail::parse(self.here(), header, tail_at, tail)?;
            self.advance(header)?;
            return Ok(None);
        };
        let region = self.region_of(kind);
        let tail = FrameTail::parse(region, header, self.tail_at(header)?, tail)?;
        self.order.take(kind).map_err(|rule| {
            let site = Site {
                region,
                field: "type",
                span: Span::at(self.at(), FRAME_HEADER_LEN).unwrap_or(Span::empty(self.at())),
            };
            Malformed { site, reason: Reason::Unexpected { rule } }
        })?;
        let overflow = || self.fault("total_length", 8, 8, Reason::Overflow { what: "the end of the frame" });
        let span = Span::at(self.at(), header.total_length).ok_or_else(overflow)?;
        let frame = Frame {
            index: self.frames,
            kind,
            header: *header,
            span,
            hash_slot: tail.hash,
            cbor_offset: tail.cbor_offset.unwrap_or(0),
            object: if matches!(kind, FrameKind::NTensor | FrameKind::PrecederMetadata) {
                self.objects
            } else {
                0
            },
        };
        if self.first_footer.is_none()
            && matches!(kind, FrameKind::FooterHash | FrameKind::FooterIndex | FrameKind::FooterMetadata)
        {
            self.first_footer = Some(self.at);
        }
        self.advance(header)?;
        if kind == FrameKind::NTensor {
            self.objects = self.objects.saturating_add(1);
        }
        Ok(Some(frame))
    }

    /// The offset of the tail of the frame at this position.
    pub(crate) fn tail_at(&self, header: &FrameHeader) -> Result<u64, Malformed<Region>> {
        let before = header.total_length.checked_sub(header.tail_len());
        let at = before.and_then(|before| self.at().checked_add(before));
        at.ok_or_else(|| self.fault("total_length", 8, 8, Reason::Overflow { what: "the end of the frame" }))
    }

    fn advance(&mut self, header: &FrameHeader) -> Result<(), Malformed<Region>> {
        let next = self.at.checked_add(header.total_length).and_then(align8);
        // The padding of the last frame may be missing only if nothing follows it.
        let next = next.filter(|next| next.checked_add(self.base).is_some());
        let next = next.ok_or_else(|| {
            self.fault("total_length", 8, 8, Reason::Overflow { what: "the end of the frame" })
        })?;
        if let Some(end) = self.end.filter(|&end| next > end) {
            let reason = Reason::Mismatch {
                found: next,
                expected: end,
                because: "the padding of the last frame ends where the postamble starts",
            };
            return Err(self.fault("total_length", 8, 8, reason));
        }
        self.at = next;
        self.frames = self.frames.saturating_add(1);
        Ok(())
    }

    /// Ends the walk at the postamble, and checks the frame order.
    pub(crate) fn end(&self, postamble: &[u8]) -> Result<Postamble, Malformed<Region>> {
        let parsed = Postamble::parse(self.message, self.at(), postamble)?;
        self.order.end().map_err(|rule| {
            let site = Site { region: self.here(), field: "type", span: Span::empty(self.at()) };
            Malformed { site, reason: Reason::Unexpected { rule } }
        })?;
        Ok(parsed)
    }

    /// The required `first_footer_offset`: of the first footer frame, or of the postamble.
    pub(crate) fn first_footer(&self) -> u64 {
        self.first_footer.unwrap_or(self.at)
    }

    /// The length of the message that ends with a postamble here.
    pub(crate) fn total(&self) -> u64 {
        self.at.saturating_add(POSTAMBLE_LEN)
    }

    fn region_of(&self, kind: FrameKind) -> Region {
        let part = match kind {
            FrameKind::NTensor => Part::Object { object: self.objects },
            kind => Part::Typed { index: self.frames, kind },
        };
        Region { message: self.message, part }
    }

    fn here(&self) -> Region {
        Region { message: self.message, part: Part::Frame { index: self.frames } }
    }

    /// An error of `len` bytes at `offset` of the frame header at this position.
    fn fault(&self, field: &'static str, offset: u64, len: u64, reason: Reason) -> Malformed<Region> {
        let start = self.at().saturating_add(offset);
        let span = Span::at(start, len).unwrap_or(Span::empty(start));
        Malformed { site: Site { region: self.here(), field, span }, reason }
    }
}
