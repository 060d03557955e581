//! Scanning of a file for messages.

use std::collections::HashSet;

use tercet_core::{ByteSource, Progress, Span};

use crate::error::ErrorKind;
use crate::index;
use crate::window::{Search, Window};
use crate::wire::ids::{END_MAGIC, MAGIC, MIN_MESSAGE, MessageFlags, POSTAMBLE_LEN, PREAMBLE_LEN};
use crate::wire::postamble::Postamble;
use crate::wire::preamble::Preamble;
use crate::wire::walk::{Next, Walk};

/// Messages from this length are read preamble by preamble; shorter ones in blocks.
const LONG_MESSAGE: u64 = 16 << 10;
/// Remote files are scanned from both ends if the first message has this length.
const REMOTE_LONG_MESSAGE: u64 = 64 << 10;
/// The length of a postamble.
const POSTAMBLE_BYTES: usize = 24;
/// The number of zero bytes skipped at a time.
const ZEROS: u64 = 4096;

/// The direction of a scan. All directions find the same messages in an undamaged file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// From the start.
    #[default]
    Forward,
    /// From the end, by the lengths in postambles; stops at the first message without one.
    Backward,
    /// From both ends in turn.
    Bidirectional,
}

/// Options of a scan.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ScanOptions {
    /// The direction.
    pub direction: Direction,
    /// The maximum length of a message found from its postamble.
    pub max_message_bytes: u64,
    /// Whether a [`File`](crate::File) uses the index at its end. Otherwise the index is an ordinary message.
    pub use_index: bool,
    /// Whether a [`File`](crate::File) finds the messages of an undamaged remote file from both ends at once, with half as
    /// many round trips.
    pub remote_rounds: bool,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self {
            direction: Direction::Forward,
            max_message_bytes: 4 << 30,
            use_index: true,
            remote_rounds: true,
        }
    }
}

impl ScanOptions {
    /// Sets the direction.
    pub fn with_direction(mut self, direction: Direction) -> Self {
        self.direction = direction;
        self
    }

    /// Sets whether the index of a file is used.
    pub fn with_index(mut self, uses: bool) -> Self {
        self.use_index = uses;
        self
    }

    /// Sets whether an undamaged remote file is scanned from both ends at once.
    pub fn with_remote_rounds(mut self, rounds: bool) -> Self {
        self.remote_rounds = rounds;
        self
    }

    /// Sets the maximum length of a message found from its postamble.
    pub fn with_max_message_bytes(mut self, bytes: u64) -> Self {
        self.max_message_bytes = bytes;
        self
    }
}

/// The messages of a file in order, and the unrecognized bytes: those outside messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// The byte range of each message.
    pub messages: Vec<Span>,
    /// The byte ranges outside messages, which are skipped.
    pub unrecognized: Vec<Span>,
    /// Messages that are damaged so that their end is a guess: each may be several.
    pub unbounded: Vec<Span>,
    /// Message indexes that a [`File`](crate::File) recognized: they are not counted as messages.
    pub indexes: Vec<Span>,
    /// Messages that may be indexes by their flags.
    pub(crate) candidates: Vec<Span>,
}

/// A message that was found.
#[derive(Clone, Copy, Debug)]
struct ScannedMessage {
    span: Span,
    /// Whether its lengths and frames lead to its end.
    is_bounded: bool,
    /// Whether it may be an index: its preamble has a length and the flags of one.
    is_candidate: bool,
}

/// Whether a preamble may be that of an index. It has two flags; no hash covers them, so one is enough.
fn may_be_index(preamble: &Preamble) -> bool {
    let has = |flag| preamble.flags.contains(flag);
    preamble.known_length().is_some()
        && (has(MessageFlags::PRECEDER_METADATA) || has(MessageFlags::FOOTER_METADATA))
}

impl Scan {
    fn new(found: &[ScannedMessage], len: u64) -> Self {
        let messages: Vec<Span> = found.iter().map(|found| found.span).collect();
        let unbounded = found.iter().filter(|found| !found.is_bounded).map(|found| found.span).collect();
        let candidates = found.iter().filter(|found| found.is_candidate).map(|found| found.span).collect();
        let mut unrecognized = Vec::new();
        let mut at = 0;
        for message in &messages {
            unrecognized.extend(Span::between(at, message.start()).filter(|gap| !gap.is_empty()));
            at = message.end();
        }
        unrecognized.extend(Span::between(at, len).filter(|gap| !gap.is_empty()));
        Self { messages, unrecognized, unbounded, indexes: Vec::new(), candidates }
    }
}

/// A message at the end of a file that is incomplete: its writer was stopped, or the file was truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct CutTail {
    /// The number of the message.
    pub message: u64,
    /// Its bytes in the file.
    pub span: Span,
    /// The length of the complete message, if it is known.
    pub expected: Option<u64>,
}

impl std::fmt::Display for CutTail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let found = tercet_core::num::grouped(self.span.len());
        write!(f, "file ends inside message {}: {found}", self.message)?;
        match self.expected {
            Some(expected) => write!(f, " of {} bytes", tercet_core::num::grouped(expected)),
            None => f.write_str(" bytes"),
        }
    }
}

impl Scan {
    /// Moves the indexes among the messages to `indexes`: those of files that were concatenated, or to which another
    /// program appended.
    pub(crate) fn separate_indexes(
        &mut self,
        source: &dyn ByteSource,
        options: &crate::options::ReadOptions,
    ) -> Result<(), ErrorKind> {
        for span in std::mem::take(&mut self.candidates) {
            match crate::message::read_metadata(source, span, options) {
                Ok(metadata) if metadata.is_message_index() => self.indexes.push(span),
                Err(ErrorKind::Common(tercet_core::CommonError::Source(error))) => return Err(error.into()),
                // One of the two copies of the mark may be damaged.
                Err(_) if index::has_mark(source, span, options)? => self.indexes.push(span),
                // A damaged message is reported when it is read.
                _ => {}
            }
        }
        let indexes = &self.indexes;
        let is_index =
            |message: &Span| indexes.binary_search_by_key(&message.start(), |span| span.start()).is_ok();
        self.messages.retain(|message| !is_index(message));
        Ok(())
    }

    /// The incomplete message at the end of the scanned source, if any.
    pub fn cut_tail(&self, source: &dyn ByteSource) -> Result<Option<CutTail>, ErrorKind> {
        let Some(last) = self.unrecognized.last().filter(|last| last.end() == source.len()) else {
            return Ok(None);
        };
        // Padding is not part of the message.
        let padding = last.start().next_multiple_of(8) - last.start();
        let head =
            source.read_at(Span::at(last.start(), last.len().min(PREAMBLE_LEN + 7)).unwrap_or(*last))?;
        let skipped = head.iter().take(usize::try_from(padding).unwrap_or(0)).take_while(|&&byte| byte == 0);
        let skipped = skipped.count();
        let head = head.get(skipped..).unwrap_or_default();
        let Some(span) = Span::between(last.start() + skipped as u64, last.end()) else { return Ok(None) };
        let message = self.messages.len() as u64;
        let expected = match Preamble::parse(0, span.start(), head) {
            Ok(preamble) => preamble.known_length(),
            Err(_) if span.is_empty() || span.len() >= PREAMBLE_LEN => return Ok(None),
            Err(_) => {
                let shared = head.len().min(MAGIC.len());
                return Ok((head.get(..shared) == MAGIC.get(..shared)).then_some(CutTail {
                    message,
                    span,
                    expected: None,
                }));
            }
        };
        // A message that fits is damaged, not cut. So is one with an end: its length is wrong.
        let end = source.read_at(Span::between(span.end().saturating_sub(8), span.end()).unwrap_or(span))?;
        let is_ended = &end[..] == END_MAGIC;
        Ok(match expected {
            // A power cut can leave zeros in place of the last bytes.
            Some(length) if length == span.len() && end.iter().all(|&byte| byte == 0) => {
                Some(CutTail { message, span, expected: None })
            }
            Some(length) if length <= span.len() || is_ended => None,
            None if is_ended => None,
            expected => Some(CutTail { message, span, expected }),
        })
    }
}

/// Finds the messages in a buffer.
///
/// ```
/// assert!(tercet_tgm::scan(b"no message here").is_empty());
/// ```
pub fn scan(buffer: &[u8]) -> Vec<Span> {
    let source = tercet_core::source::Slice::new("buffer", buffer);
    scan_source(&source, ScanOptions::default(), &tercet_core::progress::NoProgress)
        .map(|scan| scan.messages)
        .unwrap_or_default()
}

/// Finds the messages of a source. Reads blocks around preambles and postambles only.
///
/// Bytes between messages are searched for the next one, each byte once: the time is linear. Messages without a length
/// are parsed frame by frame, so an end magic inside a payload does not end them.
pub fn scan_source(
    source: &dyn ByteSource,
    options: ScanOptions,
    progress: &dyn Progress,
) -> Result<Scan, ErrorKind> {
    let mut scanner = Scanner::new(source)?;
    let len = source.len();
    let mut found = Vec::new();
    match options.direction {
        Direction::Forward => {
            let mut at = 0;
            while let Some(message) = scanner.forward(at, len)? {
                progress.check()?;
                progress.advance(message.span.end() - at);
                at = message.span.end();
                found.push(message);
            }
            progress.advance(len - at);
        }
        Direction::Backward => {
            let mut end = len;
            while let Some(message) = scanner.backward(0, end, options.max_message_bytes)? {
                progress.check()?;
                progress.advance(message.span.len());
                end = message.span.start();
                found.push(message);
            }
            found.reverse();
        }
        Direction::Bidirectional => scanner.both_ends(options, progress, &mut found)?,
    }
    Ok(Scan::new(&found, len))
}

/// Finds the first `count` messages of a source, and stops after the last of them.
pub(crate) fn scan_first(
    source: &dyn ByteSource,
    count: usize,
    progress: &dyn Progress,
) -> Result<Scan, ErrorKind> {
    let mut scanner = Scanner::new(source)?;
    let (mut at, mut found) = (0, Vec::new());
    while found.len() < count {
        let Some(message) = scanner.forward(at, source.len())? else {
            return Ok(Scan::new(&found, source.len()));
        };
        progress.check()?;
        progress.advance(message.span.end() - at);
        at = message.span.end();
        found.push(message);
    }
    Ok(Scan::new(&found, at))
}

/// Finds the messages of an undamaged remote source from both ends at once, with one request for two messages. `None` if
/// there are other bytes between messages, or messages without a length, or the first one is short: the source is then scanned
/// from its start, where one request reads many short messages.
pub(crate) fn scan_remote(
    source: &dyn ByteSource,
    progress: &dyn Progress,
) -> Result<Option<Scan>, ErrorKind> {
    let len = source.len();
    if len < MIN_MESSAGE {
        return Ok(None);
    }
    let between = |start: u64, end: u64| Span::between(start, end).unwrap_or(Span::empty(start));
    let ends = source.read_many(&[between(0, PREAMBLE_LEN), between(len - POSTAMBLE_LEN, len)])?;
    let [mut head, mut tail] = <[_; 2]>::try_from(ends).unwrap_or_default();
    let (mut at, mut end) = (0, len);
    let (mut front, mut back) = (Vec::new(), Vec::new());
    while at < end {
        progress.check()?;
        let Ok(first) = Preamble::parse(0, at, &head) else { return Ok(None) };
        let length = first.known_length().filter(|length| at > 0 || *length >= REMOTE_LONG_MESSAGE);
        let Some(first_end) = length.and_then(|length| at.checked_add(length)) else { return Ok(None) };
        let Some(last_length) = stored_length(&tail) else { return Ok(None) };
        let Some(last_start) = end.checked_sub(last_length).filter(|start| *start >= at) else {
            return Ok(None);
        };
        let message = |start, end, preamble: &Preamble| ScannedMessage {
            span: between(start, end),
            is_bounded: true,
            is_candidate: may_be_index(preamble),
        };
        if last_start == at {
            if first_end != end {
                return Ok(None);
            }
            front.push(message(at, end, &first));
            progress.advance(end - at);
            break;
        }
        if first_end > last_start || first_end - at < MIN_MESSAGE || last_length < MIN_MESSAGE {
            return Ok(None);
        }
        // The end of the first message with the next preamble, and the start of the last one with the postamble before it.
        let seams = [first_end, last_start].map(|seam| between(seam - POSTAMBLE_LEN, seam + PREAMBLE_LEN));
        let read = source.read_many(&seams)?;
        let [after_first, before_last] = <[_; 2]>::try_from(read).unwrap_or_default();
        let (first_tail, next_head) = after_first.split_at_checked(POSTAMBLE_BYTES).unwrap_or_default();
        let (previous_tail, last_head) = before_last.split_at_checked(POSTAMBLE_BYTES).unwrap_or_default();
        let is_first_ended = Postamble::parse(0, first_end - POSTAMBLE_LEN, first_tail)
            .is_ok_and(|postamble| [0, first_end - at].contains(&postamble.total_length));
        let Ok(last) = Preamble::parse(0, last_start, last_head) else { return Ok(None) };
        if !is_first_ended || ![0, last_length].contains(&last.total_length) {
            return Ok(None);
        }
        front.push(message(at, first_end, &first));
        back.push(message(last_start, end, &last));
        progress.advance(first_end - at + last_length);
        (head, tail) = (after_first.slice_ref(next_head), before_last.slice_ref(previous_tail));
        (at, end) = (first_end, last_start);
    }
    front.extend(back.into_iter().rev());
    Ok(Some(Scan::new(&front, len)))
}

struct Scanner<'a> {
    ahead: Window<'a>,
    backward: Window<'a>,
    starts: Search,
    ends: Search,
    /// Frames from which a walk without a known length did not reach a postamble.
    dead_ends: HashSet<u64>,
}

impl<'a> Scanner<'a> {
    fn new(source: &'a dyn ByteSource) -> Result<Self, ErrorKind> {
        Ok(Self {
            ahead: Window::new(source)?,
            backward: Window::backward(source)?,
            starts: Search::new(MAGIC),
            ends: Search::new(END_MAGIC),
            dead_ends: HashSet::new(),
        })
    }

    /// The next message that starts at `from` or later and ends at `limit` or earlier.
    fn forward(&mut self, from: u64, limit: u64) -> Result<Option<ScannedMessage>, ErrorKind> {
        let mut at = from;
        loop {
            if at.checked_add(MIN_MESSAGE).is_none_or(|end| end > limit) {
                return Ok(None);
            }
            let head = self.ahead.get(at, PREAMBLE_LEN)?;
            if let Ok(preamble) = Preamble::parse(0, at, head) {
                let end = match preamble.known_length() {
                    Some(length) => self.known_end(at, length, limit)?,
                    None => self.walked_end(at, &preamble, limit)?,
                };
                let is_candidate = may_be_index(&preamble);
                let found = end.and_then(|(end, is_bounded)| {
                    Some(ScannedMessage { span: Span::between(at, end)?, is_bounded, is_candidate })
                });
                if found.is_some() {
                    return Ok(found);
                }
            }
            match self.starts.next(&mut self.ahead, at + 1)? {
                Some(next) => at = next,
                None => return Ok(None),
            }
        }
    }

    /// The end of a message with a length, if it ends with a valid postamble, and whether the postamble agrees.
    fn known_end(&mut self, at: u64, length: u64, limit: u64) -> Result<Option<(u64, bool)>, ErrorKind> {
        let Some(end) = at.checked_add(length).filter(|&end| end <= limit) else { return Ok(None) };
        let tail_at = end - POSTAMBLE_LEN;
        let is_long = length > LONG_MESSAGE;
        // The preamble of the next message follows: one read for both.
        let after = if is_long { PREAMBLE_LEN } else { 0 };
        let tail = self.ahead.peek(tail_at, POSTAMBLE_LEN + after)?;
        let postamble = tail.get(..POSTAMBLE_BYTES).filter(|postamble| postamble.ends_with(END_MAGIC));
        let Some(agrees) = postamble.map(|bytes| stored_length(bytes).is_none_or(|stored| stored == length))
        else {
            return Ok(None);
        };
        if is_long {
            self.ahead.keep(tail_at, tail);
        }
        Ok(Some((end, agrees)))
    }

    /// The end of a message without a length, and whether its frames lead to it.
    fn walked_end(
        &mut self,
        at: u64,
        preamble: &Preamble,
        limit: u64,
    ) -> Result<Option<(u64, bool)>, ErrorKind> {
        let mut walk = Walk::new(0, at, preamble).skipping_unknown(true);
        let mut passed = Vec::new();
        let mut has_gaps = false;
        let broken = loop {
            let here = walk.at();
            if here.checked_add(POSTAMBLE_LEN).is_none_or(|end| end > limit) || self.dead_ends.contains(&here)
            {
                break here;
            }
            match walk.look(self.ahead.get(here, walk.wants())?) {
                Ok(Next::Postamble) => {
                    let end = here + POSTAMBLE_LEN;
                    // Zeros may have replaced the end of this message and the start of the next one.
                    let stored = stored_length(&self.ahead.peek(here, POSTAMBLE_LEN)?);
                    return Ok(Some((end, stored.map_or(!has_gaps, |stored| stored == end - at))));
                }
                Ok(Next::Gap(_)) => {
                    has_gaps = true;
                    // Only the entry points into a run of zeros are remembered.
                    passed.push(here);
                    walk.skip(self.zeros(here, limit)?);
                }
                Ok(Next::Frame(header)) => {
                    let Ok(tail_at) = walk.tail_at(&header) else { break here };
                    if tail_at.checked_add(header.tail_len()).is_none_or(|end| end > limit) {
                        break here;
                    }
                    passed.push(here);
                    let tail = self.ahead.peek(tail_at, header.tail_len())?;
                    if walk.take(&header, &tail).is_err() {
                        break here;
                    }
                }
                Err(_) => break here,
            }
        };
        self.dead_ends.extend(passed);
        // Damaged inside. It is counted if it ends before another message starts.
        let end = self.ends.next(&mut self.ahead, broken)?;
        let Some(end) = end.map(|end| end + END_MAGIC.len() as u64).filter(|&end| end <= limit) else {
            return Ok(None);
        };
        // The padding before it may be missing, and its bytes be the start of that message.
        let next = self.starts.next(&mut self.ahead, broken.saturating_sub(7).max(at + 1))?;
        let whole = end - at >= MIN_MESSAGE && next.is_none_or(|next| end <= next);
        Ok(whole.then_some((end, false)))
    }

    /// The number of zero bytes here, in steps of 8; at least 8.
    fn zeros(&mut self, at: u64, limit: u64) -> Result<u64, ErrorKind> {
        let mut end = at + 8;
        while end + POSTAMBLE_LEN <= limit {
            let bytes = self.ahead.get(end, ZEROS.min(limit - end))?;
            let zeros = bytes.iter().take_while(|&&byte| byte == 0).count() as u64 & !7;
            end += zeros;
            if zeros < ZEROS {
                break;
            }
        }
        Ok(end - at)
    }

    /// The message that ends at `end` and starts at `from` or later.
    fn backward(&mut self, from: u64, end: u64, longest: u64) -> Result<Option<ScannedMessage>, ErrorKind> {
        if end < from.saturating_add(MIN_MESSAGE) {
            return Ok(None);
        }
        let tail_at = end - POSTAMBLE_LEN;
        let tail = self.backward.get(tail_at, POSTAMBLE_LEN)?;
        let Ok(postamble) = Postamble::parse(0, tail_at, tail) else { return Ok(None) };
        let length = postamble.total_length;
        if length < MIN_MESSAGE || length > longest || length > end - from {
            return Ok(None);
        }
        let at = end - length;
        let head = self.backward.peek(at, PREAMBLE_LEN)?;
        let preamble = Preamble::parse(0, at, &head).ok();
        let agrees = preamble.is_some_and(|preamble| [0, length].contains(&preamble.total_length));
        let is_candidate = preamble.is_some_and(|preamble| may_be_index(&preamble));
        let span = agrees.then(|| Span::between(at, end)).flatten();
        Ok(span.map(|span| ScannedMessage { span, is_bounded: true, is_candidate }))
    }

    fn both_ends(
        &mut self,
        options: ScanOptions,
        progress: &dyn Progress,
        found: &mut Vec<ScannedMessage>,
    ) -> Result<(), ErrorKind> {
        let (mut at, mut end) = (0, self.ahead.len());
        let mut back = Vec::new();
        let mut looks_back = true;
        while let Some(message) = self.forward(at, end)? {
            progress.check()?;
            progress.advance(message.span.end() - at);
            at = message.span.end();
            found.push(message);
            if looks_back {
                match self.backward(at, end, options.max_message_bytes)? {
                    Some(message) => {
                        progress.advance(message.span.len());
                        end = message.span.start();
                        back.push(message);
                    }
                    None => looks_back = false,
                }
            }
        }
        found.extend(back.into_iter().rev());
        Ok(())
    }
}

/// The length of the message in a postamble, if it is stored.
fn stored_length(postamble: &[u8]) -> Option<u64> {
    let postamble = Postamble::parse(0, 0, postamble).ok()?;
    Some(postamble.total_length).filter(|length| *length != 0)
}
