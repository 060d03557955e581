//! Tokens of a damaged file: messages, frames, postambles, gaps.

use std::sync::Arc;

use tercet_core::progress::Cancelled;
use tercet_core::{ByteSource, Class, CommonError, Diagnostic as _, Limits, Progress, Span};

use crate::edit::{check_decodes, check_structure, verify_object};
use crate::error::{Error, ErrorKind};
use crate::frame_body::{Body, budget};
use crate::message::Message;
use crate::object::{Object, verify_frame};
use crate::options::ReadOptions;
use crate::region::{Part, Region};
use crate::verification_cache::VerificationCache;
use crate::window::Window;
use crate::wire::frame::{Frame, FrameHeader, FrameTail};
use crate::wire::ids::{
    END_MAGIC, FRAME_END, FRAME_HEADER_LEN, FRAME_MAGIC, FRAME_VERSION, FrameFlags, FrameKind, MAGIC,
    POSTAMBLE_LEN, PREAMBLE_LEN,
};
use crate::wire::postamble::Postamble;
use crate::wire::preamble::Preamble;

/// The number of bytes that may be hashed for invalid candidates, in addition to four times the length of the file.
const ALLOWANCE: u64 = 64 << 20;
/// The number of zero bytes skipped at a time.
const ZEROS: u64 = 4096;

/// A token.
#[derive(Debug)]
pub(super) enum Token {
    /// An intact message, whether the hashes of all its objects were verified, and whether it is a message index.
    Intact { span: Span, objects: u64, verified: bool, is_index: bool },
    /// The start of a damaged message. `end` is its end, if preamble and postamble agree.
    Preamble { at: u64, end: Option<u64> },
    /// An intact frame, and whether its hash was verified.
    Frame { frame: Frame, verified: bool },
    /// A frame with a valid start and end that is damaged in between.
    Damaged { frame: Frame, reason: String },
    /// The end of a message. The contents are omitted if preamble and postamble agree.
    Postamble { span: Span, postamble: Option<Postamble> },
    /// Other bytes.
    Gap(Span),
}

/// The result of a search for a frame.
enum FrameSearch {
    Intact { frame: Frame, verified: bool },
    Damaged { frame: Frame, reason: String },
    Nothing,
}

/// Finds the tokens of a file in order.
pub(super) struct Tokens<'a> {
    source: &'a Arc<dyn ByteSource>,
    options: ReadOptions,
    progress: &'a dyn Progress,
    window: Window<'a>,
    at: u64,
    reported: u64,
    messages: u64,
    /// The message being searched.
    inside: Inside,
    starts: PatternSearch<'a>,
    frames: PatternSearch<'a>,
    ends: PatternSearch<'a>,
    /// The number of bytes that may still be hashed for invalid candidates.
    allowance: u64,
    gave_up: bool,
}

/// The known facts about a damaged message.
#[derive(Clone, Copy, Debug, Default)]
struct Inside {
    /// The start.
    start: Option<u64>,
    /// The end, if preamble and postamble agree.
    end: Option<u64>,
    /// The offset of a frame: the others start at multiples of 8 from it.
    grid: Option<u64>,
    /// Whether the next token is expected here instead of searched for.
    in_step: bool,
    /// Whether the hash of a frame was verified: then all frames have hashes.
    is_hashed: bool,
    objects: u32,
    frames: u32,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(
        source: &'a Arc<dyn ByteSource>,
        options: ReadOptions,
        progress: &'a dyn Progress,
    ) -> Result<Self, ErrorKind> {
        let len = source.len();
        Ok(Self {
            source,
            options,
            progress,
            window: Window::new(&**source)?,
            at: 0,
            reported: 0,
            messages: 0,
            inside: Inside::default(),
            starts: PatternSearch::new(source, MAGIC)?,
            frames: PatternSearch::new(source, FRAME_MAGIC)?,
            ends: PatternSearch::new(source, END_MAGIC)?,
            allowance: len.saturating_mul(4).saturating_add(ALLOWANCE),
            gave_up: false,
        })
    }

    /// Whether frames may have been missed because too many bytes looked like frames.
    pub(super) fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// The next token; `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<Token>, ErrorKind> {
        self.progress.check().map_err(|stop: Cancelled| ErrorKind::from(stop))?;
        self.progress.advance(self.at.saturating_sub(self.reported));
        self.reported = self.reported.max(self.at);
        loop {
            let (at, limit) = (self.at, self.limit());
            if at >= self.source.len() {
                return Ok(None);
            }
            if self.inside.end.is_some_and(|end| at >= end - POSTAMBLE_LEN) {
                return Ok(Some(self.end_message(None)));
            }
            let head: Vec<u8> = self.window.get(at, PREAMBLE_LEN)?.to_vec();
            if self.inside.end.is_none()
                && let Ok(preamble) = Preamble::parse(self.messages, at, &head)
            {
                return self.message(at, &preamble).map(Some);
            }
            if head.starts_with(FRAME_MAGIC) {
                match self.look(at, limit, !self.inside.in_step)? {
                    FrameSearch::Intact { frame, verified } => return Ok(Some(self.take(frame, verified))),
                    FrameSearch::Damaged { frame, reason } if self.inside.in_step => {
                        self.pass(&frame);
                        return Ok(Some(Token::Damaged { frame, reason }));
                    }
                    _ => {}
                }
            }
            if let Some(postamble) = self.postamble(at, &head) {
                return Ok(Some(self.end_message(Some(postamble))));
            }
            let is_zero = head.get(..8).is_some_and(|zeros| zeros.iter().all(|&byte| byte == 0));
            if self.inside.in_step && is_zero {
                self.skip_zeros(limit)?;
                if self.inside.end.is_some() {
                    continue;
                }
                // The format allows them between frames, but here they may have been the end of the message.
                return Ok(Some(Token::Gap(Span::between(at, self.at).unwrap_or(Span::empty(at)))));
            }
            let next = self.search(at + 1, limit)?;
            self.at = next;
            self.inside.in_step = false;
            return Ok(Some(Token::Gap(Span::between(at, next).unwrap_or(Span::empty(at)))));
        }
    }

    /// The offset at which frames must have ended.
    fn limit(&self) -> u64 {
        self.inside.end.map_or(self.source.len(), |end| end - POSTAMBLE_LEN)
    }

    /// A message that starts here: intact, or to be searched.
    fn message(&mut self, at: u64, preamble: &Preamble) -> Result<Token, ErrorKind> {
        let number = self.messages;
        self.messages += 1;
        let rest = Span::between(at, self.source.len()).unwrap_or(Span::empty(at));
        let opened = Message::open(Arc::clone(self.source), number, rest, self.options).and_then(|message| {
            let mut verified = true;
            for object in message.objects() {
                let object = object?;
                verify_object(&object)?;
                check_decodes(&object)?;
                verified &= object.frame().hash().is_some();
            }
            let is_index = message.metadata().is_message_index();
            Ok((message.span(), message.object_count(), verified, is_index))
        });
        if let Ok((span, objects, verified, is_index)) = damage_or(opened)? {
            self.at = span.end();
            self.inside = Inside::default();
            self.messages -= u64::from(is_index);
            return Ok(Token::Intact { span, objects, verified, is_index });
        }
        let end = match preamble.known_length().and_then(|length| at.checked_add(length)) {
            Some(end) if end <= self.source.len() => {
                let tail_at = end - POSTAMBLE_LEN;
                let tail = self.window.peek(tail_at, POSTAMBLE_LEN)?;
                let postamble = Postamble::parse(number, tail_at, &tail).ok();
                postamble.filter(|there| there.total_length == preamble.total_length).map(|_| end)
            }
            _ => None,
        };
        self.at = at + PREAMBLE_LEN;
        self.inside = Inside { start: Some(at), end, grid: Some(at), in_step: true, ..Inside::default() };
        Ok(Token::Preamble { at, end })
    }

    /// Searches for a frame. A frame at an unexpected offset must have a matching hash.
    fn look(&mut self, at: u64, limit: u64, searching: bool) -> Result<FrameSearch, ErrorKind> {
        let here = Region {
            message: self.messages.saturating_sub(1),
            part: Part::Frame { index: self.inside.frames },
        };
        let header = FrameHeader::parse(here, at, self.window.get(at, FRAME_HEADER_LEN)?);
        let Some((header, kind)) = header.ok().and_then(|header| Some((header, header.kind()?))) else {
            return Ok(FrameSearch::Nothing);
        };
        let Some(span) = Span::at(at, header.total_length).filter(|span| span.end() <= limit) else {
            return Ok(FrameSearch::Nothing);
        };
        let tail_at = span.end() - kind.tail_len();
        let tail = self.window.peek(tail_at, kind.tail_len())?;
        if !tail.ends_with(FRAME_END) {
            return Ok(FrameSearch::Nothing);
        }
        let mut frame = Frame {
            index: self.inside.frames,
            kind,
            header,
            span,
            hash_slot: 0,
            cbor_offset: 0,
            object: self.inside.objects,
        };
        match FrameTail::parse(frame.region(here.message), &header, tail_at, &tail) {
            Ok(tail) => {
                frame.hash_slot = tail.hash;
                frame.cbor_offset = tail.cbor_offset.unwrap_or(0);
            }
            Err(error) => return Ok(FrameSearch::Damaged { frame, reason: error.to_string() }),
        }
        if searching {
            // A frame without a hash can only belong to another message of which nothing else is intact.
            let may_lack = !self.inside.is_hashed || self.inside.end.is_none();
            let is_plausible = frame.hash().is_some() || (may_lack && is_as_written(&frame));
            if !is_plausible || !self.may_spend(span.len()) {
                return Ok(FrameSearch::Nothing);
            }
        }
        let checked = match self.check(here.message, &frame, searching) {
            // The hash was verified first: the size is as written.
            Err(error) if frame.hash().is_some() && error.class() == Class::Limit => {
                return Err(error.into_kind());
            }
            // Bytes of a payload may look like a frame, and declare any size.
            Err(error)
                if searching && error.class() == Class::Limit && !is_lowered(&self.options.common.limits) =>
            {
                return Ok(FrameSearch::Nothing);
            }
            checked => checked,
        };
        Ok(match damage_or(checked)? {
            Ok(verified) => FrameSearch::Intact { frame, verified },
            Err(error) => FrameSearch::Damaged { frame, reason: error.kind().to_string() },
        })
    }

    /// Whether a frame is intact, and whether its hash was verified.
    fn check(&self, message: u64, frame: &Frame, searching: bool) -> Result<bool, Error> {
        let named = |fault: ErrorKind| Error::new(self.source.name().clone(), fault);
        let verified = frame.hash().is_some();
        if !verified && self.inside.is_hashed && !searching {
            return Err(named(ErrorKind::MissingHash { region: frame.region(message), span: frame.span }));
        }
        verify_frame(&**self.source, message, frame).map_err(named)?;
        if frame.kind == FrameKind::NTensor {
            let verification_cache = VerificationCache::default();
            let object = Object::open(&**self.source, &self.options, &verification_cache, message, *frame);
            let object = object.map_err(named)?;
            check_structure(&object)?;
            check_decodes(&object)?;
        } else {
            body(&**self.source, message, frame, &self.options).map_err(named)?;
        }
        Ok(verified)
    }

    /// Reserves bytes for hashing during the search.
    fn may_spend(&mut self, bytes: u64) -> bool {
        let rest = self.allowance.checked_sub(bytes);
        self.allowance = rest.unwrap_or(self.allowance);
        self.gave_up |= rest.is_none();
        rest.is_some()
    }

    /// Advances after an intact frame.
    fn take(&mut self, frame: Frame, verified: bool) -> Token {
        if !self.inside.in_step {
            self.inside.grid = Some(frame.span.start());
            // It may belong to the next message.
            self.inside.start = None;
            self.inside.is_hashed &= verified;
        }
        self.inside.is_hashed |= verified;
        self.pass(&frame);
        Token::Frame { frame, verified }
    }

    /// Advances after a frame and its padding.
    fn pass(&mut self, frame: &Frame) {
        let grid = self.inside.grid.unwrap_or(frame.span.start());
        let end = frame.span.end();
        let over = end.saturating_sub(grid) % 8;
        self.at = if over == 0 { end } else { end.saturating_add(8 - over) }.min(self.source.len());
        self.inside.in_step = true;
        self.inside.frames = self.inside.frames.saturating_add(1);
        if frame.kind == FrameKind::NTensor {
            self.inside.objects = self.inside.objects.saturating_add(1);
        }
    }

    fn end_message(&mut self, postamble: Option<Postamble>) -> Token {
        let at = self.at;
        let end = self.inside.end.unwrap_or(at.saturating_add(POSTAMBLE_LEN)).min(self.source.len());
        self.at = end;
        self.inside = Inside::default();
        Token::Postamble { span: Span::between(at, end).unwrap_or(Span::empty(at)), postamble }
    }

    /// The postamble at this offset, if it is consistent. Its magic alone occurs in payloads.
    fn postamble(&self, at: u64, head: &[u8]) -> Option<Postamble> {
        if self.inside.end.is_some() {
            // It must be at the end that the preamble declares.
            return None;
        }
        let postamble = Postamble::parse(0, at, head).ok()?;
        self.is_plausible(at, postamble).then_some(postamble)
    }

    fn is_plausible(&self, at: u64, postamble: Postamble) -> bool {
        let Postamble { first_footer_offset: footer, total_length: total } = postamble;
        let end = at.saturating_add(POSTAMBLE_LEN);
        if let Some(start) = self.inside.start.filter(|_| !self.inside.in_step) {
            let room = at.saturating_sub(start);
            return (PREAMBLE_LEN..=room).contains(&footer)
                && (total == 0 || total == end.saturating_sub(start));
        }
        // Right after a frame it is a postamble, even if it belongs to another message.
        let is_step = footer.is_multiple_of(8) && total.is_multiple_of(8);
        let is_inside = (PREAMBLE_LEN..=at).contains(&footer) && total <= end;
        is_step && (self.inside.in_step || is_inside) && (total == 0 || total > footer)
    }

    /// Skips zero bytes between frames; at least 8.
    fn skip_zeros(&mut self, limit: u64) -> Result<(), ErrorKind> {
        self.at += 8;
        while self.at < limit {
            let bytes = self.window.get(self.at, ZEROS.min(limit - self.at))?;
            // No part of a message starts with 8 zero bytes.
            let zeros = bytes.iter().take_while(|&&byte| byte == 0).count() as u64 & !7;
            self.at += zeros;
            if zeros < ZEROS {
                break;
            }
        }
        Ok(())
    }

    /// The offset of the next candidate at or after `from`; `limit` if there is none.
    fn search(&mut self, from: u64, limit: u64) -> Result<u64, ErrorKind> {
        let mut at = from;
        while at < limit {
            self.progress.check().map_err(ErrorKind::from)?;
            let frame = self.frames.next(at)?;
            let start = if self.inside.end.is_some() { None } else { self.starts.next(at)? };
            let end = self.ends.next(at)?;
            let Some(next) = [frame, start, end].into_iter().flatten().min().filter(|&next| next < limit)
            else {
                return Ok(limit);
            };
            if start == Some(next) && self.is_start(next)? {
                return Ok(next);
            }
            if frame == Some(next)
                && let FrameSearch::Intact { .. } = self.look(next, limit, true)?
            {
                return Ok(next);
            }
            // A postamble starts 16 bytes before its magic; those bytes were already scanned.
            if end == Some(next)
                && let Some(tail_at) = next.checked_sub(16).filter(|&tail_at| tail_at >= from)
            {
                let head = self.window.get(tail_at, POSTAMBLE_LEN)?.to_vec();
                if self.postamble(tail_at, &head).is_some() {
                    return Ok(tail_at);
                }
            }
            at = next + 1;
        }
        Ok(limit)
    }

    /// Whether a message starts here: a preamble with a valid successor.
    fn is_start(&mut self, at: u64) -> Result<bool, ErrorKind> {
        let head = self.window.get(at, PREAMBLE_LEN + POSTAMBLE_LEN)?;
        let Some((preamble, rest)) = head.split_at_checked(24) else { return Ok(false) };
        let follows = rest.is_empty() || rest.starts_with(FRAME_MAGIC) || rest.ends_with(END_MAGIC);
        Ok(follows && Preamble::parse(0, at, preamble).is_ok())
    }
}

/// Whether a frame without a hash has the version and flags that writers set; nothing else confirms it.
fn is_as_written(frame: &Frame) -> bool {
    let flags = frame.header.flags.0;
    let known = if frame.kind == FrameKind::NTensor { FrameFlags::DESCRIPTOR_AFTER.0 } else { 0 };
    frame.header.version == FRAME_VERSION && flags & !known == 0 && frame.hash_slot == 0
}

/// The contents of a frame that is not an object.
pub(super) fn body(
    source: &dyn ByteSource,
    message: u64,
    frame: &Frame,
    options: &ReadOptions,
) -> Result<Body, ErrorKind> {
    tercet_core::limits::check_limit(
        "a metadata frame",
        frame.span.len(),
        options.common.limits.metadata_bytes,
    )?;
    let bytes = source.read_at(frame.body())?;
    Ok(Body::parse(message, frame, &bytes, &budget(options))?.0)
}

/// Distinguishes damage from errors that end the recovery: I/O errors, cancellation, lack of memory, and limits. What
/// exceeds a limit may be intact.
pub(super) fn damage_or<T>(result: Result<T, Error>) -> Result<Result<T, Error>, ErrorKind> {
    let Err(error) = result else { return Ok(result) };
    let is_not_damage = match error.kind() {
        ErrorKind::Common(
            CommonError::Source(_) | CommonError::Cancelled(_) | CommonError::OutOfMemory(_),
        ) => true,
        kind => kind.class() == Class::Limit,
    };
    if is_not_damage { Err(error.into_kind()) } else { Ok(Err(error)) }
}

fn is_lowered(limits: &Limits) -> bool {
    let default = Limits::default();
    limits.metadata_bytes < default.metadata_bytes
        || limits.chunk_bytes < default.chunk_bytes
        || limits.array_bytes < default.array_bytes
}

/// The next occurrence of a pattern. Offsets only grow, and every byte is scanned once.
struct PatternSearch<'a> {
    needle: &'static [u8],
    window: Window<'a>,
    found: Option<u64>,
    /// The last requested offset; unknown before the first request.
    last_from: Option<u64>,
}

impl<'a> PatternSearch<'a> {
    fn new(source: &'a Arc<dyn ByteSource>, needle: &'static [u8]) -> Result<Self, ErrorKind> {
        Ok(Self { needle, window: Window::new(&**source)?, found: None, last_from: None })
    }

    fn next(&mut self, from: u64) -> Result<Option<u64>, ErrorKind> {
        let is_known = self.last_from.is_some_and(|last| last <= from);
        if !is_known || self.found.is_some_and(|found| found < from) {
            self.found = self.window.find(self.needle, from, self.window.len())?;
        }
        self.last_from = Some(from);
        Ok(self.found)
    }
}
