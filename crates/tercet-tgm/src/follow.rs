//! Following of growing files and streams: complete messages out of bytes that arrive.

use bytes::Bytes;
use tercet_core::Span;

use crate::decoder::{Decoder, Event};
use crate::error::ErrorKind;
use crate::metadata::GlobalMetadata;
use crate::options::ReadOptions;
use crate::wire::ids::PREAMBLE_LEN;
use crate::wire::preamble::Preamble;

#[cfg(any(unix, windows))]
mod consumed;
#[cfg(any(unix, windows))]
mod file;
#[cfg(any(unix, windows))]
mod growing;
#[cfg(all(any(unix, windows), feature = "remote"))]
mod remote;
#[cfg(any(unix, windows))]
mod stream;
#[cfg(any(unix, windows))]
mod watch;

#[cfg(any(unix, windows))]
pub use file::{Follow, FollowOptions};

/// A complete message: its postamble has arrived, and all its hashes are verified.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FollowedMessage {
    /// The number, from 0, as in a [`File`](crate::File). An index has that of the next message.
    pub number: u64,
    /// The byte range in the stream.
    pub span: Span,
    /// The preamble as it arrived.
    pub preamble: Preamble,
    /// The number of objects.
    pub objects: u64,
    /// The metadata, as in [`Message::metadata`](crate::Message::metadata).
    pub metadata: GlobalMetadata,
}

/// An event of a [`Follower`], or of a file that is followed.
#[derive(Debug)]
#[non_exhaustive]
pub enum FollowEvent {
    /// A complete message.
    Message(Box<FollowedMessage>),
    /// A damaged or truncated message, which is skipped.
    Damaged {
        /// The number of the message.
        number: u64,
        /// The offset of the message.
        start: u64,
        /// The error.
        fault: ErrorKind,
    },
    /// Skipped bytes.
    Skipped {
        /// The byte range.
        span: Span,
        /// Whether they follow a damaged message and may be the rest of it.
        after_damage: bool,
    },
    /// The file was opened for the first time.
    Opened {
        /// Its first bytes, at most 512.
        head: Bytes,
    },
    /// The file does not exist; the follower waits for it.
    Waiting {
        /// Whether it existed before.
        was_removed: bool,
    },
    /// The file was changed other than by growing.
    Changed {
        /// The change.
        change: FileChange,
        /// Whether reading continues after the last complete message. Otherwise the file is read from its start.
        resumed: bool,
    },
    /// All complete messages are reported; the follower waits for more bytes.
    CaughtUp,
}

/// A change of a file other than growing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileChange {
    /// It became shorter.
    Truncated,
    /// Its bytes changed.
    Rewritten,
    /// Another file has its name.
    Replaced,
}

/// Follows a growing stream: takes bytes, returns an event for each complete message.
///
/// It does no I/O, so the same code follows a polled file, a pipe and a socket. The events do not depend on how the
/// stream is split. Damage does not end it: the next complete message is found.
///
/// A truncated frame includes the bytes after it, up to its length, so complete messages among them are reported only
/// after that many bytes, or at the end. Memory use is that of a [`Decoder`]: the largest frame and the metadata of
/// one message.
///
/// ```
/// use tercet_tgm::{EncodeOptions, Follower, GlobalMetadata, FollowEvent, encode_message};
///
/// let message = encode_message(&GlobalMetadata::default(), &[], &EncodeOptions::new())?;
/// let mut follower = Follower::new();
/// follower.push(&message);
/// follower.push(&message[..30]);
/// assert!(matches!(follower.next_event(), Some(FollowEvent::Message(first)) if first.number == 0));
/// assert!(follower.next_event().is_none(), "half a message is never reported");
/// follower.push(&message[30..]);
/// assert!(matches!(follower.next_event(), Some(FollowEvent::Message(second)) if second.number == 1));
/// assert!(follower.finish().is_none(), "nothing is left over");
/// # Ok::<(), tercet_tgm::Error>(())
/// ```
#[derive(Debug)]
pub struct Follower {
    decoder: Decoder,
    begun: Option<PartialMessage>,
    /// Whether the last event was damage.
    after_damage: bool,
    is_finished: bool,
    /// The number of message indexes, which are not numbered.
    indexes: u64,
}

/// An incomplete message.
#[derive(Clone, Copy, Debug)]
struct PartialMessage {
    start: u64,
    preamble: Preamble,
    objects: u64,
    /// Whether it is a message index, once its metadata has arrived.
    is_index: Option<bool>,
}

impl Default for Follower {
    fn default() -> Self {
        Self::new()
    }
}

impl Follower {
    /// Follows a stream from its first byte and verifies everything.
    pub fn new() -> Self {
        Self::with_options(ReadOptions::new())
    }

    /// Sets the read options.
    pub fn with_options(options: ReadOptions) -> Self {
        let decoder = Decoder::with_options(options).with_resync(true);
        Self { decoder, begun: None, after_damage: false, is_finished: false, indexes: 0 }
    }

    /// Sets the position of the first byte and the number of the first message: the stream before them is known.
    pub fn starting_at(mut self, at: u64, number: u64) -> Self {
        self.decoder = self.decoder.with_start(at, number);
        self
    }

    /// Appends bytes of the stream. Call [`next_event`](Self::next_event) before the next call, because undecoded bytes are kept.
    pub fn push(&mut self, bytes: &[u8]) {
        self.decoder.push(bytes);
    }

    /// The next event, or `None` if more bytes are needed.
    pub fn next_event(&mut self) -> Option<FollowEvent> {
        loop {
            let before = self.decoder.position();
            let event = match self.decoder.next_event() {
                Ok(Some(event)) => event,
                Ok(None) => return None,
                Err(error) => return Some(self.damaged(before, error.into_kind())),
            };
            if let Some(report) = self.take(event) {
                return Some(report);
            }
        }
    }

    /// Ends the stream. Call it after the last `next_event` until it returns `None`.
    ///
    /// An incomplete message is reported as damaged, with [`ErrorKind::TruncatedStream`]; complete messages inside its
    /// length follow.
    pub fn finish(&mut self) -> Option<FollowEvent> {
        while !self.is_finished {
            if let Some(report) = self.next_event() {
                return Some(report);
            }
            let before = self.decoder.position();
            match self.decoder.finish() {
                Ok(Some(event)) => {
                    if let Some(report) = self.take(event) {
                        return Some(report);
                    }
                }
                Ok(None) => self.is_finished = true,
                Err(error) => return Some(self.damaged(before, error.into_kind())),
            }
        }
        None
    }

    /// The incomplete message, if any: its offset and preamble.
    pub fn pending(&self) -> Option<(u64, Preamble)> {
        self.begun.map(|begun| (begun.start, begun.preamble))
    }

    /// Whether the incomplete message is a message index; `None` if there is none, or its metadata has not arrived.
    #[cfg(any(unix, windows))]
    fn pending_index(&self) -> Option<bool> {
        self.begun.and_then(|begun| begun.is_index)
    }

    fn take(&mut self, event: Event) -> Option<FollowEvent> {
        match event {
            Event::Start(preamble) => {
                let start = self.decoder.position().saturating_sub(PREAMBLE_LEN);
                self.begun = Some(PartialMessage { start, preamble, objects: 0, is_index: None });
                None
            }
            Event::Metadata { metadata, .. } => {
                self.begun.as_mut()?.is_index = Some(metadata.is_message_index());
                None
            }
            Event::Object(_) => {
                self.begun.as_mut()?.objects += 1;
                None
            }
            Event::End { metadata, .. } => {
                let PartialMessage { start, preamble, objects, .. } = self.begun.take()?;
                let span = Span::between(start, self.decoder.position())?;
                let number = self.number().saturating_sub(1);
                self.indexes += u64::from(metadata.is_message_index());
                self.after_damage = false;
                Some(FollowEvent::Message(Box::new(FollowedMessage {
                    number,
                    span,
                    preamble,
                    objects,
                    metadata,
                })))
            }
            Event::Skipped(span) => {
                let after_damage = std::mem::take(&mut self.after_damage);
                Some(FollowEvent::Skipped { span, after_damage })
            }
            Event::Index(_) | Event::Hashes(_) | Event::Preceder(_) => None,
        }
    }

    /// The number of the next message.
    fn number(&self) -> u64 {
        self.decoder.message_number().saturating_sub(self.indexes)
    }

    /// A damaged message; `at` is its offset if its preamble is invalid.
    fn damaged(&mut self, at: u64, fault: ErrorKind) -> FollowEvent {
        let start = self.begun.take().map_or(at, |begun| begun.start);
        self.after_damage = true;
        FollowEvent::Damaged { number: self.number(), start, fault }
    }
}
