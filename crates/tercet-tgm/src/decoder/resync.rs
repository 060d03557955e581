//! Resynchronisation of a decoder after damage.

use bytes::BytesMut;
use memchr::memmem;

use super::{Decoder, PREAMBLE, State};
use crate::wire::ids::{END_MAGIC, MAGIC};

// The search keeps the bytes that may be the start of either magic.
const _: () = assert!(MAGIC.len() == END_MAGIC.len());

/// Bounds on the bytes that are searched again, per byte of the stream and in total: see [`Decoder::rescan`].
const RESCANS_PER_BYTE: u64 = 4;
const FREE_RESCANS: u64 = 1 << 20;

/// The end of a damaged message that is not truncated.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// At this offset, according to its preamble.
    At(u64),
    /// Somewhere before the next message.
    Anywhere,
}

impl Decoder {
    /// Starts the search for the next message.
    pub(super) fn start_search(&mut self) {
        if self.held >= PREAMBLE && self.buffer.starts_with(MAGIC) {
            // Skip the magic, so that the search does not find it again.
            self.consume(MAGIC.len() as u64);
        }
        self.held = 0;
        let unverified = std::mem::take(&mut self.unverified);
        if self.may_rescan(unverified.len()) {
            self.put_back(unverified);
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

    /// Advances to the next magic. Scans each byte once and keeps only what may be the start of a magic.
    ///
    /// A message whose end is found was damaged and keeps its number; one without an end was truncated.
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

    /// Puts the bytes of an invalid frame back into the buffer. A truncated frame may contain complete messages that were
    /// written after it, within its length.
    ///
    /// Nested frames could make this search quadratic, so the number of bytes put back is bounded.
    pub(super) fn rescan(&mut self, frame: BytesMut) {
        // Frame and buffer are adjacent in memory: joining them copies nothing.
        if self.may_rescan(frame.len()) {
            self.put_back(frame);
        } else {
            self.unverified.clear();
        }
    }

    /// Like [`rescan`](Self::rescan), for a frame whose bytes were handed out.
    pub(super) fn rescan_copy(&mut self, frame: &[u8]) {
        if self.may_rescan(frame.len().saturating_add(self.buffer.len())) {
            self.put_back(BytesMut::from(frame));
        } else {
            self.unverified.clear();
        }
    }

    /// Keeps the bytes of a frame without a hash from the first message start in it, and everything up to the end of
    /// its message. The message may be truncated, and its frame may happen to end where a frame of the next message
    /// ends; only later bytes show it.
    pub(super) fn keep_unverified(&mut self, frame: &[u8], is_verified: bool) {
        if !self.unverified.is_empty() {
            self.unverified.extend_from_slice(frame);
        } else if self.resync
            && !is_verified
            && let Some(start) = memmem::find(frame, MAGIC)
        {
            self.unverified.extend_from_slice(&frame[start..]);
        }
        if self.unverified.len() as u64 > self.options.common.limits.chunk_bytes {
            self.unverified = BytesMut::new();
        }
    }

    fn put_back(&mut self, mut frame: BytesMut) {
        self.at -= frame.len() as u64;
        frame.unsplit(std::mem::take(&mut self.buffer));
        self.buffer = frame;
    }

    fn may_rescan(&mut self, cost: usize) -> bool {
        let came = self.at.saturating_add(self.buffer.len() as u64);
        let total = self.rescanned.saturating_add(cost as u64);
        let may = self.resync && total <= came.saturating_mul(RESCANS_PER_BYTE).saturating_add(FREE_RESCANS);
        if may {
            self.rescanned = total;
        }
        may
    }
}

/// Whether a message may start with these bytes, which may be only its first ones.
pub(super) fn may_be_a_start(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC) || MAGIC.starts_with(bytes)
}
