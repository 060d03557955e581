//! Which tokens belong to which message.

use tercet_core::Span;

use super::tokens::Token;
use crate::wire::frame::Frame;
use crate::wire::order::DecodePhase;

/// A stretch of the file.
#[derive(Debug)]
pub(super) enum Item {
    /// A message that is as it was written.
    Whole { span: Span, objects: u64 },
    /// A message that is not.
    Broken(Broken),
    /// Bytes that belong to no message.
    Junk(Span),
}

/// What is there of a damaged message.
#[derive(Debug)]
pub(super) struct Broken {
    /// Its number in the file, from 0.
    pub(super) number: u64,
    pub(super) span: Span,
    /// Where its preamble stands, if that is intact.
    pub(super) start: Option<u64>,
    /// Whether preamble and postamble agree on its length: then offsets in it mean what they say.
    pub(super) is_framed: bool,
    /// Whether its postamble is there.
    pub(super) is_ended: bool,
    pub(super) parts: Vec<Part>,
}

/// A part of a damaged message.
#[derive(Debug)]
pub(super) enum Part {
    /// A frame that is as it was written. Proven means by its hash.
    Frame { frame: Frame, proven: bool },
    /// A frame that is not.
    Damaged { frame: Frame, why: String },
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
    messages: u64,
    open: Option<Broken>,
    phase: DecodePhase,
}

impl Groups {
    /// What is complete once this token has come.
    pub(super) fn take(&mut self, token: Token) -> Vec<Item> {
        match token {
            Token::Whole { span, objects } => {
                let mut done = self.finish();
                self.messages += 1;
                done.push(Item::Whole { span, objects });
                done
            }
            Token::Preamble { at, end } => {
                let done = self.finish();
                self.begin(at, Some(at), end.is_some());
                done
            }
            Token::Frame { frame, proven } => {
                let phase = DecodePhase::of(frame.kind);
                // A frame of an earlier phase is one of the next message, whose preamble is damaged. In a message whose
                // ends are known it can only be one whose type is damaged.
                let is_other =
                    |open: &Broken| !open.is_framed && (phase < self.phase || open.differs(proven));
                let is_next = self.open.as_ref().is_some_and(is_other);
                let done = if is_next { self.finish() } else { Vec::new() };
                self.phase = self.phase.max(phase);
                self.add(Part::Frame { frame, proven });
                done
            }
            Token::Damaged { frame, why } => {
                self.add(Part::Damaged { frame, why });
                Vec::new()
            }
            Token::Gap(span) => match &mut self.open {
                Some(_) => {
                    self.add(Part::Gap(span));
                    Vec::new()
                }
                None => vec![Item::Junk(span)],
            },
            Token::Postamble(span) => match &mut self.open {
                Some(open) => {
                    open.is_ended = true;
                    open.span = Span::between(open.span.start(), span.end()).unwrap_or(open.span);
                    self.finish()
                }
                None => vec![Item::Junk(span)],
            },
        }
    }

    /// What is left at the end.
    pub(super) fn finish(&mut self) -> Vec<Item> {
        self.phase = DecodePhase::Header;
        self.open.take().map(|open| Item::Broken(open.distrusted())).into_iter().collect()
    }

    fn begin(&mut self, at: u64, start: Option<u64>, is_framed: bool) -> &mut Broken {
        let number = self.messages;
        self.messages += 1;
        self.phase = DecodePhase::Header;
        let span = Span::at(at, if start.is_some() { 24 } else { 0 }).unwrap_or(Span::empty(at));
        self.open.insert(Broken { number, span, start, is_framed, is_ended: false, parts: Vec::new() })
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
    /// Whether its last frame has a hash and this one does not, or the other way round, with lost bytes in between.
    fn differs(&self, proven: bool) -> bool {
        let is_lost = self.parts.last().is_some_and(|part| matches!(part, Part::Gap(_)));
        let frame = |part: &Part| match part {
            Part::Frame { proven, .. } => Some(*proven),
            _ => None,
        };
        is_lost && self.parts.iter().rev().find_map(frame).is_some_and(|before| before != proven)
    }

    /// Writers hash all frames of a message or none: beside one that its hash proves, one without proves nothing.
    fn distrusted(mut self) -> Self {
        if !self.parts.iter().any(|part| matches!(part, Part::Frame { proven: true, .. })) {
            return self;
        }
        for part in &mut self.parts {
            if let Part::Frame { frame, proven: false } = part {
                let why = "it carries no hash, but the other frames of the message do".to_owned();
                *part = Part::Damaged { frame: *frame, why };
            }
        }
        self
    }
}
