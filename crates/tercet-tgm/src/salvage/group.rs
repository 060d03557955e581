//! Grouping of tokens into fragments of messages.

use tercet_core::Span;

use super::tokens::Token;
use crate::wire::frame::Frame;
use crate::wire::ids::{FrameKind, PREAMBLE_LEN};
use crate::wire::order::DecodePhase;
use crate::wire::postamble::Postamble;

/// A range of the file.
#[derive(Debug)]
pub(super) enum Item {
    /// An intact message.
    Intact { span: Span, objects: u64, verified: bool, is_index: bool },
    /// A damaged message.
    Broken(Broken),
    /// Bytes outside messages.
    Unrecognized(Span),
}

/// A damaged message, or a part of one: the bytes after a gap may belong to the next message, unless both ends of this
/// one are known.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) span: Span,
    /// The offset of its preamble, if it is intact.
    pub(super) start: Option<u64>,
    /// Whether preamble and postamble agree on its length, so that offsets in it are valid.
    pub(super) is_framed: bool,
    /// Whether its postamble was found.
    pub(super) is_ended: bool,
    /// The contents of its postamble, unless they are known to be correct.
    pub(super) postamble: Option<Postamble>,
    pub(super) parts: Vec<Part>,
}

/// A part of a damaged message.
#[derive(Debug)]
pub(super) enum Part {
    /// An intact frame, and whether its hash was verified.
    Frame { frame: Frame, verified: bool },
    /// A damaged frame.
    Damaged { frame: Frame, reason: String },
    /// Unreadable bytes.
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

/// Groups tokens.
#[derive(Debug, Default)]
pub(super) struct Groups {
    open: Option<Broken>,
    phase: DecodePhase,
}

impl Groups {
    /// The items that this token completes.
    pub(super) fn take(&mut self, token: Token) -> Vec<Item> {
        match token {
            Token::Intact { span, objects, verified, is_index } => {
                let mut done = self.finish();
                done.push(Item::Intact { span, objects, verified, is_index });
                done
            }
            Token::Preamble { at, end } => {
                let done = self.finish();
                self.begin(at, Some(at), end.is_some());
                done
            }
            Token::Frame { frame, verified } => {
                let (phase, before) = (DecodePhase::for_frame(frame.kind), self.phase);
                // A frame of an earlier phase belongs to the next message, whose preamble is damaged. In a message with known
                // ends its type must be damaged.
                let is_next = |open: &Broken| !open.is_framed && (phase < before || open.ends_with_gap());
                let done = self.finish_if(is_next);
                self.phase = self.phase.max(phase);
                self.add(Part::Frame { frame, verified });
                done
            }
            Token::Damaged { frame, reason } => {
                let done = self.finish_if(|open| !open.is_framed && open.ends_with_gap());
                self.add(Part::Damaged { frame, reason });
                done
            }
            Token::Gap(span) => match &mut self.open {
                Some(_) => {
                    self.add(Part::Gap(span));
                    Vec::new()
                }
                None => vec![Item::Unrecognized(span)],
            },
            Token::Postamble { span, postamble } => {
                let mut done = self.finish_if(|open| !open.is_framed && open.ends_with_gap());
                let open = match self.open.take() {
                    Some(open) => self.open.insert(open),
                    None if done.is_empty() => return vec![Item::Unrecognized(span)],
                    None => self.begin(span.start(), None, false),
                };
                (open.is_ended, open.postamble) = (true, postamble);
                open.span = Span::between(open.span.start(), span.end()).unwrap_or(open.span);
                done.extend(self.finish_at(span.start()));
                done
            }
        }
    }

    /// A message that ends with a postamble at `at`: two fragments if the postamble counts from another start.
    fn finish_at(&mut self, at: u64) -> Vec<Item> {
        self.phase = DecodePhase::Header;
        let Some(mut open) = self.open.take() else { return Vec::new() };
        if !open.spans_two_messages(at) {
            return vec![Item::Broken(open)];
        }
        let is_header = |part: &Part| matches!(part, Part::Frame { frame, .. } | Part::Damaged { frame, .. } if DecodePhase::for_frame(frame.kind) == DecodePhase::Header);
        let header = open.parts.iter().take_while(|part| is_header(part)).count();
        let parts = open.parts.split_off(header);
        let from = open.parts.last().map_or(open.span.start() + PREAMBLE_LEN, |part| part.span().end());
        let span = |start, end| Span::between(start, end).unwrap_or(open.span);
        let second = Broken {
            span: span(from, open.span.end()),
            start: None,
            is_framed: false,
            is_ended: true,
            postamble: open.postamble.take(),
            parts,
        };
        (open.span, open.is_ended) = (span(open.span.start(), from), false);
        vec![Item::Broken(open), Item::Broken(second)]
    }

    fn finish_if(&mut self, is_done: impl FnOnce(&Broken) -> bool) -> Vec<Item> {
        if self.open.as_ref().is_some_and(is_done) { self.finish() } else { Vec::new() }
    }

    /// The remaining items at the end.
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
    /// Whether the following bytes are not known to belong to it.
    fn ends_with_gap(&self) -> bool {
        self.parts.last().is_some_and(|part| matches!(part, Part::Gap(_)))
    }

    /// Whether start and postamble at `at` count from different offsets: bytes are missing between them, and it
    /// may consist of two messages.
    fn spans_two_messages(&self, at: u64) -> bool {
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
                // The offset of the first footer frame is unknown.
                Part::Damaged { .. } | Part::Gap(_) => return false,
            }
        }
        start.checked_add(first_footer_offset) != Some(footer)
    }

    /// The objects, intact or not, in file order.
    pub(super) fn objects(&self) -> impl DoubleEndedIterator<Item = &Frame> {
        self.parts.iter().filter_map(|part| match part {
            Part::Frame { frame, .. } | Part::Damaged { frame, .. } => {
                Some(frame).filter(|frame| frame.kind == FrameKind::NTensor)
            }
            Part::Gap(_) => None,
        })
    }

    /// The first and the last phase of the intact frames.
    pub(super) fn phases(&self) -> Option<(DecodePhase, DecodePhase)> {
        let phases = self.parts.iter().filter_map(|part| match part {
            Part::Frame { frame, .. } => Some(DecodePhase::for_frame(frame.kind)),
            _ => None,
        });
        Some((phases.clone().min()?, phases.max()?))
    }

    /// Appends a later fragment of the same message.
    pub(super) fn extend(&mut self, next: Self) {
        self.span = Span::between(self.span.start(), next.span.end()).unwrap_or(self.span);
        self.parts.extend(next.parts);
        (self.is_ended, self.postamble) = (next.is_ended, next.postamble);
    }

    /// Writers hash all frames of a message or none: if one hash was verified, a frame without a hash is damaged.
    pub(super) fn distrusted(mut self) -> Self {
        if !self.parts.iter().any(|part| matches!(part, Part::Frame { verified: true, .. })) {
            return self;
        }
        for part in &mut self.parts {
            if let Part::Frame { frame, verified: false } = part {
                let reason = "it has no hash, but the other frames of the message have one".to_owned();
                *part = Part::Damaged { frame: *frame, reason };
            }
        }
        self
    }
}
