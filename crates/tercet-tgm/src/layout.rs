//! The frames of one message, found by walking over their headers.

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

/// Where everything in a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The number of the message in its file.
    pub number: u64,
    /// Its bytes.
    pub span: Span,
    /// Its first 24 bytes.
    pub preamble: Preamble,
    /// Its frames, in the order of their bytes.
    pub frames: Vec<Frame>,
    /// Its last 24 bytes.
    pub postamble: Postamble,
    /// Where the first footer frame is, or else the postamble; counted from the start of the message.
    pub first_footer: u64,
    /// Positions in `frames` of the data objects.
    objects: Vec<u32>,
}

impl Layout {
    /// Walks over the message that starts where `span` starts and ends inside it. Reads headers and tails of frames,
    /// not what is between them.
    pub(crate) fn read(
        window: &mut Window<'_>,
        number: u64,
        span: Span,
        options: &ReadOptions,
    ) -> Result<Self, ErrorKind> {
        Self::follow(window, number, span, options, &mut None)
    }

    /// Like [`read`](Self::read); what was found before a fault is kept.
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

    /// Where the preamble is.
    pub fn preamble_span(&self) -> Span {
        Span::at(self.span.start(), PREAMBLE_LEN).unwrap_or(self.span)
    }

    /// Where the postamble is.
    pub fn postamble_span(&self) -> Span {
        Span::between(self.span.end().saturating_sub(POSTAMBLE_LEN), self.span.end()).unwrap_or(self.span)
    }
}

/// The frames of a message while they are found.
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

    /// Where the message ends, as its preamble says.
    pub(crate) fn known_end(&self) -> Option<u64> {
        self.preamble.known_length().and_then(|length| self.base.checked_add(length))
    }

    pub(crate) fn frames(&self) -> &[Frame] {
        &self.frames
    }

    pub(crate) fn push(&mut self, frame: Frame, options: &ReadOptions) -> Result<(), ErrorKind> {
        let bytes = (self.frames.len() as u64 + 1).saturating_mul(size_of::<Frame>() as u64);
        check_limit("the list of frames", bytes, options.limits.table_bytes)?;
        if frame.kind == FrameKind::NTensor {
            self.objects.push(u32::try_from(self.frames.len()).unwrap_or(u32::MAX));
        }
        self.frames.push(frame);
        Ok(())
    }

    /// Refuses a frame without a hash in a message that promises one for every frame.
    pub(crate) fn check_promise(&self, frame: &Frame) -> Result<(), ErrorKind> {
        if frame.hash().is_none() && self.preamble.flags.contains(MessageFlags::HASHES_PRESENT) {
            return Err(ErrorKind::MissingHash { region: frame.region(self.number), span: frame.span });
        }
        Ok(())
    }

    /// The layout of a message whose walk ended at its postamble.
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
