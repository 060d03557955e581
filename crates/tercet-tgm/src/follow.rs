//! Whole messages out of bytes that keep coming.

use tercet_core::Span;

use crate::decoder::{Decoder, Event};
use crate::error::ErrorKind;
use crate::metadata::GlobalMetadata;
use crate::options::ReadOptions;
use crate::wire::ids::PREAMBLE_LEN;
use crate::wire::preamble::Preamble;

/// A message that came by whole: its postamble was seen, and every hash it carries was compared.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FollowedMessage {
    /// Its number, from 0; as [`scan`](fn@crate::scan) counts.
    pub number: u64,
    /// Its bytes in the stream.
    pub span: Span,
    /// Its first 24 bytes, as they were when they came by.
    pub preamble: Preamble,
    /// The number of its objects.
    pub objects: u64,
    /// Its metadata as a whole, as [`Message::metadata`](crate::Message::metadata) has it.
    pub metadata: GlobalMetadata,
}

/// What a [`Follower`] has to say.
#[derive(Debug)]
#[non_exhaustive]
pub enum FollowEvent {
    /// A message is whole.
    Message(Box<FollowedMessage>),
    /// A message is damaged, or was cut off. It is passed over.
    Damaged {
        /// The number it has, or would have.
        number: u64,
        /// Where it starts.
        start: u64,
        /// What is wrong with it.
        fault: ErrorKind,
    },
    /// Bytes that were passed over.
    Skipped {
        /// Where they are.
        span: Span,
        /// Whether they are after a message that was found damaged, and may be the rest of it.
        after_damage: bool,
    },
}

/// Follows a stream that grows: bytes in, a report for each message that became whole out.
///
/// It does no I/O, so a file that is polled, a pipe and a socket are followed by the same code. The reports are the
/// same however the stream is cut. Damage never ends it: the next message that is whole is found.
///
/// A frame that was cut off takes in what is written after it, as far as its length says; so whole messages that
/// follow are reported once that many bytes came, or at the end. Memory is that of a [`Decoder`]: the largest frame,
/// and the metadata of one message.
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
    begun: Option<Begun>,
    /// Whether the last thing reported was damage.
    after_damage: bool,
    is_finished: bool,
}

/// A message that is not whole yet.
#[derive(Clone, Copy, Debug)]
struct Begun {
    start: u64,
    preamble: Preamble,
    objects: u64,
}

impl Default for Follower {
    fn default() -> Self {
        Self::new()
    }
}

impl Follower {
    /// Follows a stream from its first byte, and checks everything.
    pub fn new() -> Self {
        Self::with_options(ReadOptions::new())
    }

    /// Reads with these options.
    pub fn with_options(options: ReadOptions) -> Self {
        let decoder = Decoder::with_options(options).with_resync(true);
        Self { decoder, begun: None, after_damage: false, is_finished: false }
    }

    /// Counts bytes and messages from here on: for a stream whose first `at` bytes, with `number` messages, are known.
    pub fn starting_at(mut self, at: u64, number: u64) -> Self {
        self.decoder = self.decoder.with_start(at, number);
        self
    }

    /// Takes the next bytes of the stream. Ask for reports before there are more: what is not reported is kept.
    pub fn push(&mut self, bytes: &[u8]) {
        self.decoder.push(bytes);
    }

    /// The next report, or `None` if more bytes are needed.
    pub fn next_event(&mut self) -> Option<FollowEvent> {
        loop {
            let before = self.decoder.position();
            let event = match self.decoder.next_event() {
                Ok(Some(event)) => event,
                Ok(None) => return None,
                Err(fault) => return Some(self.damaged(before, fault)),
            };
            if let Some(report) = self.take(event) {
                return Some(report);
            }
        }
    }

    /// Ends the stream: to be called, after the last `next_event`, until there is no report any more.
    ///
    /// A message that is not whole is reported as damaged, with [`ErrorKind::CutStream`]; whole messages that its lengths
    /// took in come after it.
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
                Err(fault) => return Some(self.damaged(before, fault)),
            }
        }
        None
    }

    /// The message that has begun and is not whole yet: where it starts, and its first 24 bytes.
    pub fn pending(&self) -> Option<(u64, Preamble)> {
        self.begun.map(|begun| (begun.start, begun.preamble))
    }

    fn take(&mut self, event: Event) -> Option<FollowEvent> {
        match event {
            Event::Start(preamble) => {
                let start = self.decoder.position().saturating_sub(PREAMBLE_LEN);
                self.begun = Some(Begun { start, preamble, objects: 0 });
                None
            }
            Event::Object(_) => {
                self.begun.as_mut()?.objects += 1;
                None
            }
            Event::End { metadata, .. } => {
                let Begun { start, preamble, objects } = self.begun.take()?;
                let span = Span::between(start, self.decoder.position())?;
                let number = self.decoder.message_number().saturating_sub(1);
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
            Event::Metadata { .. } | Event::Index(_) | Event::Hashes(_) | Event::Preceder(_) => None,
        }
    }

    /// A message that starts where it began, or at `at` if its preamble says nonsense.
    fn damaged(&mut self, at: u64, fault: ErrorKind) -> FollowEvent {
        let start = self.begun.take().map_or(at, |begun| begun.start);
        self.after_damage = true;
        FollowEvent::Damaged { number: self.decoder.message_number(), start, fault }
    }
}
