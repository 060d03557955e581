//! The frame layout of a message, read from frame headers.

use tercet_core::limits::check_limit;
use tercet_core::{Malformed, Reason, Site, Span};

use crate::error::ErrorKind;
use crate::options::ReadOptions;
use crate::region::{Part, Region};
use crate::window::Window;
use crate::wire::frame::Frame;
use crate::wire::ids::{FrameKind, MessageFlags, POSTAMBLE_LEN, PREAMBLE_LEN};
use crate::wire::postamble::Postamble;
use crate::wire::preamble::Preamble;
use crate::wire::walk::{Next, Walk};

/// The byte layout of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The number of the message in its file.
    pub number: u64,
    /// The byte range of the message.
    pub span: Span,
    /// The preamble.
    pub preamble: Preamble,
    /// The frames, in file order.
    pub frames: Vec<Frame>,
    /// The postamble.
    pub postamble: Postamble,
    /// The offset of the first footer frame, or of the postamble, from the start of the message.
    pub first_footer: u64,
    /// The positions of the data objects in `frames`.
    objects: Vec<u32>,
}

impl Layout {
    /// Reads the layout of the message that starts at the start of `span` and ends inside it. Reads headers and tails of
    /// frames only.
    pub(crate) fn read(
        window: &mut Window<'_>,
        number: u64,
        span: Span,
        options: &ReadOptions,
    ) -> Result<Self, ErrorKind> {
        Self::follow(window, number, span, options, &mut None)
    }

    /// Like [`read`](Self::read); frames before an error are kept.
    pub(crate) fn follow(
        window: &mut Window<'_>,
        number: u64,
        span: Span,
        options: &ReadOptions,
        kept: &mut Option<Collected>,
    ) -> Result<Self, ErrorKind> {
        let base = span.start();
        let end = span.end().min(window.len());
        let room = |at: u64, len: u64| len.min(end.saturating_sub(at));
        let preamble = Preamble::parse(number, base, window.get(base, room(base, PREAMBLE_LEN))?)?;
        if let Some(length) = preamble.known_length() {
            let have = end.saturating_sub(base);
            if length > have {
                return Err(truncated(number, base, length, have).into());
            }
        }
        let mut walk = Walk::new(number, base, &preamble).skipping_unknown(options.skip_unknown_frames);
        let collected = kept.insert(Collected::new(number, base, preamble));
        loop {
            let at = walk.at();
            let head = window.get(at, room(at, walk.wants()))?;
            match walk.look(head)? {
                Next::Gap(len) => walk.skip(len),
                Next::Postamble => {
                    let postamble = walk.end(window.get(at, room(at, POSTAMBLE_LEN))?)?;
                    return Ok(collected.finish(&walk, postamble));
                }
                Next::Frame(header) => {
                    let tail_at = walk.tail_at(&header)?;
                    let tail = window.peek(tail_at, room(tail_at, header.tail_len()))?;
                    if let Some(frame) = walk.take(&header, &tail)? {
                        collected.push(frame, options)?;
                    }
                }
            }
        }
    }

    /// The number of data objects.
    pub fn object_count(&self) -> u64 {
        self.objects.len() as u64
    }

    /// The frame of a data object.
    pub fn object(&self, index: u64) -> Result<&Frame, ErrorKind> {
        let position = usize::try_from(index).ok().and_then(|index| self.objects.get(index));
        let frame = position.and_then(|&position| self.frames.get(position as usize));
        let count = self.object_count();
        frame.ok_or(ErrorKind::NoSuchObject { message: self.number, index, count })
    }

    /// The frames of the data objects.
    pub fn objects(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter().filter(|frame| frame.kind == FrameKind::NTensor)
    }

    /// The byte range of the preamble.
    pub fn preamble_span(&self) -> Span {
        Span::at(self.span.start(), PREAMBLE_LEN).unwrap_or(self.span)
    }

    /// The byte range of the postamble.
    pub fn postamble_span(&self) -> Span {
        Span::between(self.span.end().saturating_sub(POSTAMBLE_LEN), self.span.end()).unwrap_or(self.span)
    }
}

/// The frames found so far.
#[derive(Debug)]
pub(crate) struct Collected {
    number: u64,
    base: u64,
    preamble: Preamble,
    frames: Vec<Frame>,
    objects: Vec<u32>,
}

impl Collected {
    pub(crate) fn new(number: u64, base: u64, preamble: Preamble) -> Self {
        Self { number, base, preamble, frames: Vec::new(), objects: Vec::new() }
    }

    pub(crate) fn preamble(&self) -> &Preamble {
        &self.preamble
    }

    /// The end of the message according to its preamble.
    pub(crate) fn known_end(&self) -> Option<u64> {
        self.preamble.known_length().and_then(|length| self.base.checked_add(length))
    }

    pub(crate) fn frames(&self) -> &[Frame] {
        &self.frames
    }

    pub(crate) fn push(&mut self, frame: Frame, options: &ReadOptions) -> Result<(), ErrorKind> {
        let bytes = (self.frames.len() as u64 + 1).saturating_mul(size_of::<Frame>() as u64);
        check_limit("the list of frames", bytes, options.common.limits.table_bytes)?;
        if frame.kind == FrameKind::NTensor {
            self.objects.push(u32::try_from(self.frames.len()).unwrap_or(u32::MAX));
        }
        self.frames.push(frame);
        Ok(())
    }

    /// Rejects a frame without a hash if the preamble announces hashes for all frames.
    pub(crate) fn check_announced_hash(&self, frame: &Frame) -> Result<(), ErrorKind> {
        if frame.hash().is_none() && self.preamble.flags.contains(MessageFlags::HASHES_PRESENT) {
            return Err(ErrorKind::MissingHash { region: frame.region(self.number), span: frame.span });
        }
        Ok(())
    }

    /// The layout of a message, once the postamble is reached.
    pub(crate) fn finish(&mut self, walk: &Walk, postamble: Postamble) -> Layout {
        Layout {
            number: self.number,
            span: Span::at(self.base, walk.total()).unwrap_or(Span::empty(self.base)),
            preamble: self.preamble,
            frames: std::mem::take(&mut self.frames),
            postamble,
            first_footer: walk.first_footer(),
            objects: std::mem::take(&mut self.objects),
        }
    }
}

fn truncated(message: u64, base: u64, need: u64, have: u64) -> Malformed<Region> {
    let span = Span::at(base.saturating_add(16), 8).unwrap_or(Span::empty(base));
    let site = Site { region: Region { message, part: Part::Preamble }, field: "total_length", span };
    Malformed { site, reason: Reason::Truncated { need, have } }
}
