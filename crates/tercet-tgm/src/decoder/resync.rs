//! The way back into a stream after damage.

use bytes::BytesMut;
use memchr::memmem;

use super::{Decoder, PREAMBLE, State};
use crate::wire::ids::{END_MAGIC, MAGIC};

// What may be the start of either is kept while a decoder searches.
const _: () = assert!(MAGIC.len() == END_MAGIC.len());

/// How often the bytes of a stream may be searched again, and how many whatever its length: see [`Decoder::look_again`].
const LOOKS_PER_BYTE: u64 = 4;
const FREE_LOOKS: u64 = 1 << 20;

/// Where a damaged message ends, if it was not cut off.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// At this byte, as its preamble says.
    At(u64),
    /// Somewhere before the next message.
    Anywhere,
}

impl Decoder {
    /// Starts to search for the next message.
    pub(super) fn lose(&mut self) {
        if self.held >= PREAMBLE && self.buffer.starts_with(MAGIC) {
            // Past the magic, so that a search does not find it again.
            self.consume(MAGIC.len() as u64);
        }
        self.held = 0;
        let doubtful = std::mem::take(&mut self.doubtful);
        if self.may_look_again(doubtful.len()) {
            self.put_back(doubtful);
        }
        let awaited = match &self.state {
            State::Inside(inside) => Some(match inside.frames.known_end() {
                Some(end) => End::At(end),
                None => End::Anywhere,
            }),
            _ => None,
        };
        self.state = State::Lost { since: self.at, awaited };
    }

    /// Goes to the next magic. Passes over each byte once: only what may be the start of a magic is kept.
    ///
    /// A message whose end comes by was damaged, and keeps its number; one that has no end was cut off.
    pub(super) fn search(&mut self, since: u64, awaited: Option<End>) -> bool {
        let found = memmem::find(&self.buffer, MAGIC);
        let passed = found.unwrap_or(self.buffer.len());
        let bytes = &self.buffer[..passed];
        let ended = match awaited {
            Some(End::At(end)) => {
                let inside = end.checked_sub(self.at).and_then(|end| usize::try_from(end).ok());
                inside.and_then(|end| bytes.get(..end)).is_some_and(|bytes| bytes.ends_with(END_MAGIC))
            }
            Some(End::Anywhere) => memmem::find(bytes, END_MAGIC).is_some(),
            None => false,
        };
        if ended {
            self.number += 1;
            self.state = State::Lost { since, awaited: None };
        }
        let keep = if found.is_some() { 0 } else { (MAGIC.len() - 1).min(passed) };
        self.consume((passed - keep) as u64);
        found.is_some()
    }

    /// Takes back the bytes of a frame that is not what it says. It may have been cut off, so that its length took in
    /// what was written after it: messages that are whole.
    ///
    /// Frames inside frames could make that a search without end, so there is a bound on the bytes taken back.
    pub(super) fn look_again(&mut self, frame: BytesMut) {
        // They were cut apart just now: joining them copies nothing.
        if self.may_look_again(frame.len()) {
            self.put_back(frame);
        } else {
            self.doubtful.clear();
        }
    }

    /// The same for a frame whose bytes were given away.
    pub(super) fn look_again_at_a_copy(&mut self, frame: &[u8]) {
        if self.may_look_again(frame.len().saturating_add(self.buffer.len())) {
            self.put_back(BytesMut::from(frame));
        } else {
            self.doubtful.clear();
        }
    }

    /// Keeps the bytes of a frame that no hash proves right, from the start of a message among them on, with all that
    /// follows up to the end of the message it belongs to. That one may have been cut off, and its frame may happen to
    /// end where one of the message after it ends: only what comes later shows it.
    pub(super) fn doubt(&mut self, frame: &[u8], is_proved: bool) {
        if !self.doubtful.is_empty() {
            self.doubtful.extend_from_slice(frame);
        } else if self.resync
            && !is_proved
            && let Some(start) = memmem::find(frame, MAGIC)
        {
            self.doubtful.extend_from_slice(&frame[start..]);
        }
        if self.doubtful.len() as u64 > self.options.limits.chunk_bytes {
            self.doubtful = BytesMut::new();
        }
    }

    fn put_back(&mut self, mut frame: BytesMut) {
        self.at -= frame.len() as u64;
        frame.unsplit(std::mem::take(&mut self.buffer));
        self.buffer = frame;
    }

    fn may_look_again(&mut self, cost: usize) -> bool {
        let came = self.at.saturating_add(self.buffer.len() as u64);
        let total = self.looked_again.saturating_add(cost as u64);
        let may = self.resync && total <= came.saturating_mul(LOOKS_PER_BYTE).saturating_add(FREE_LOOKS);
        if may {
            self.looked_again = total;
        }
        may
    }
}

/// Whether a message may start with these bytes, which are all there are.
pub(super) fn may_be_a_start(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC) || MAGIC.starts_with(bytes)
}
