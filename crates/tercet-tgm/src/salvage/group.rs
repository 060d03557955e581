//! Which tokens follow each other without a gap.

use tercet_core::Span;

use super::tokens::Token;
use crate::wire::frame::Frame;
use crate::wire::ids::{FrameKind, PREAMBLE_LEN};
use crate::wire::order::DecodePhase;
use crate::wire::postamble::Postamble;

/// A range of the file.
#[derive(Debug)]
pub(super) enum Item {
    /// A message that is as it was written.
    Whole { span: Span, objects: u64, proven: bool },
    /// A message that is not.
    Broken(Broken),
    /// Bytes that belong to no message.
    Junk(Span),
}

/// What is there of a damaged message, or a range of one: what lies after a gap may belong to the next message,
/// unless both ends of this one are known.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) span: Span,
    /// Where its preamble is, if that is intact.
    pub(super) start: Option<u64>,
    /// Whether preamble and postamble agree on its length: then offsets in it mean what they say.
    pub(super) is_framed: bool,
    /// Whether its postamble is there.
    pub(super) is_ended: bool,
    /// What its postamble says, unless that is known to be right.
    pub(super) postamble: Option<Postamble>,
    pub(super) parts: Vec<Part>,
}

/// A part of a damaged message.
#[derive(Debug)]
pub(super) enum Part {
    /// A frame that is as it was written. Proven means by its hash.
    Frame { frame: Frame, proven: bool },
    /// A frame that is not.
    Damaged { frame: Frame, reason: String },
    /// Bytes that cannot be read.
    Gap(Span),
}

impl Part {
    pub(super) fn span(&self) -> Span {
        match self {
            Self::Frame { frame, .. } | Self::Damaged { frame, .. } => frame.span,
            Self::Gap(span) => *span,
        }
    }
}

/// Puts tokens together.
#[derive(Debug, Default)]
pub(super) struct Groups {
    open: Option<Broken>,
    phase: DecodePhase,
}

impl Groups {
    /// What is complete once this token has come.
    pub(super) fn take(&mut self, token: Token) -> Vec<Item> {
        match token {
            Token::Whole { span, objects, proven } => {
                let mut done = self.finish();
                done.push(Item::Whole { span, objects, proven });
                done
            }
            Token::Preamble { at, end } => {
                let done = self.finish();
                self.begin(at, Some(at), end.is_some());
                done
            }
            Token::Frame { frame, proven } => {
                let (phase, before) = (DecodePhase::for_frame(frame.kind), self.phase);
                // A frame of an earlier phase is one of the next message, whose preamble is damaged. In a message whose
                // ends are known it can only be one whose type is damaged.
                let is_next = |open: &Broken| !open.is_framed && (phase < before || open.has_gap_behind());
                let done = self.finish_if(is_next);
                self.phase = self.phase.max(phase);
                self.add(Part::Frame { frame, proven });
                done
            }
            Token::Damaged { frame, reason } => {
                let done = self.finish_if(|open| !open.is_framed && open.has_gap_behind());
                self.add(Part::Damaged { frame, reason });
                done
            }
            Token::Gap(span) => match &mut self.open {
                Some(_) => {
                    self.add(Part::Gap(span));
                    Vec::new()
                }
                None => vec![Item::Junk(span)],
            },
            Token::Postamble { span, said } => {
                let mut done = self.finish_if(|open| !open.is_framed && open.has_gap_behind());
                let open = match self.open.take() {
                    Some(open) => self.open.insert(open),
                    None if done.is_empty() => return vec![Item::Junk(span)],
                    None => self.begin(span.start(), None, false),
                };
                (open.is_ended, open.postamble) = (true, said);
                open.span = Span::between(open.span.start(), span.end()).unwrap_or(open.span);
                done.extend(self.finish_at(span.start()));
                done
            }
        }
    }

    /// A message that ends with a postamble at `at`: two fragments if that counts from another start.
    fn finish_at(&mut self, at: u64) -> Vec<Item> {
        self.phase = DecodePhase::Header;
        let Some(mut open) = self.open.take() else { return Vec::new() };
        if !open.is_torn(at) {
            return vec![Item::Broken(open)];
        }
        let is_header = |part: &Part| matches!(part, Part::Frame { frame, .. } | Part::Damaged { frame, .. } if DecodePhase::for_frame(frame.kind) == DecodePhase::Header);
        let header = open.parts.iter().take_while(|part| is_header(part)).count();
        let parts = open.parts.split_off(header);
        let from = open.parts.last().map_or(open.span.start() + PREAMBLE_LEN, |part| part.span().end());
        let span = |start, end| Span::between(start, end).unwrap_or(open.span);
        let behind = Broken {
            span: span(from, open.span.end()),
            start: None,
            is_framed: false,
            is_ended: true,
            postamble: open.postamble.take(),
            parts,
        };
        (open.span, open.is_ended) = (span(open.span.start(), from), false);
        vec![Item::Broken(open), Item::Broken(behind)]
    }

    fn finish_if(&mut self, is_done: impl FnOnce(&Broken) -> bool) -> Vec<Item> {
        if self.open.as_ref().is_some_and(is_done) { self.finish() } else { Vec::new() }
    }

    /// What is left at the end.
    pub(super) fn finish(&mut self) -> Vec<Item> {
        self.phase = DecodePhase::Header;
        self.open.take().map(Item::Broken).into_iter().collect()
    }

    fn begin(&mut self, at: u64, start: Option<u64>, is_framed: bool) -> &mut Broken {
        self.phase = DecodePhase::Header;
        let span = Span::at(at, if start.is_some() { 24 } else { 0 }).unwrap_or(Span::empty(at));
        let (is_ended, postamble) = (false, None);
        self.open.insert(Broken { span, start, is_framed, is_ended, postamble, parts: Vec::new() })
    }

    fn add(&mut self, part: Part) {
        let span = part.span();
        let phase = self.phase;
        let open = match self.open.take() {
            Some(open) => self.open.insert(open),
            None => self.begin(span.start(), None, false),
        };
        open.span = Span::between(open.span.start(), span.end()).unwrap_or(open.span);
        open.parts.push(part);
        self.phase = self.phase.max(phase);
    }
}

impl Broken {
    /// Whether what comes next is not known to belong to it.
    fn has_gap_behind(&self) -> bool {
        self.parts.last().is_some_and(|part| matches!(part, Part::Gap(_)))
    }

    /// Whether its start and its end, a postamble at `at`, count from different places: bytes are missing in between, and it
    /// may be made of two messages.
    fn is_torn(&self, at: u64) -> bool {
        let (Some(start), Some(postamble)) = (self.start, self.postamble) else { return false };
        let Postamble { first_footer_offset, total_length } = postamble;
        if total_length > 0 && start.checked_add(total_length) != Some(self.span.end()) {
            return true;
        }
        let mut footer = at;
        for part in self.parts.iter().rev() {
            match part {
                Part::Frame { frame, .. } if DecodePhase::for_frame(frame.kind) == DecodePhase::Footer => {
                    footer = frame.span.start();
                }
                Part::Frame { .. } => break,
                // Where the first footer frame was is unknown.
                Part::Damaged { .. } | Part::Gap(_) => return false,
            }
        }
        start.checked_add(first_footer_offset) != Some(footer)
    }

    /// Its objects, intact or not, in the order of their bytes.
    pub(super) fn objects(&self) -> impl DoubleEndedIterator<Item = &Frame> {
        self.parts.iter().filter_map(|part| match part {
            Part::Frame { frame, .. } | Part::Damaged { frame, .. } => {
                Some(frame).filter(|frame| frame.kind == FrameKind::NTensor)
            }
            Part::Gap(_) => None,
        })
    }

    /// The first and the last phase of its intact frames.
    pub(super) fn phases(&self) -> Option<(DecodePhase, DecodePhase)> {
        let phases = self.parts.iter().filter_map(|part| match part {
            Part::Frame { frame, .. } => Some(DecodePhase::for_frame(frame.kind)),
            _ => None,
        });
        Some((phases.clone().min()?, phases.max()?))
    }

    /// Takes in what belongs to it further after.
    pub(super) fn extend(&mut self, next: Self) {
        self.span = Span::between(self.span.start(), next.span.end()).unwrap_or(self.span);
        self.parts.extend(next.parts);
        (self.is_ended, self.postamble) = (next.is_ended, next.postamble);
    }

    /// Writers hash all frames of a message or none: beside one that its hash proves, one without proves nothing.
    pub(super) fn distrusted(mut self) -> Self {
        if !self.parts.iter().any(|part| matches!(part, Part::Frame { proven: true, .. })) {
            return self;
        }
        for part in &mut self.parts {
            if let Part::Frame { frame, proven: false } = part {
                let reason = "it carries no hash, but the other frames of the message do".to_owned();
                *part = Part::Damaged { frame: *frame, reason };
            }
        }
        self
    }
}
