//! The report of a recovery.

use memchr::memmem;
use serde::Serialize;
use tercet_core::{ByteSource, Span};

use crate::error::ErrorKind;
use crate::wire::ids::{END_MAGIC, FRAME_END, MAGIC, MIN_MESSAGE};

/// The number of unrecognized bytes that are searched for parts of messages.
const MAX_SEARCHED: u64 = 16 << 20;

/// The report of a recovery.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SalvageReport<D = ()> {
    /// The output of the sink: the path of the new file, or its bytes.
    #[serde(skip)]
    pub output: D,
    /// The path or URL of the damaged file.
    #[serde(rename = "path")]
    pub location: String,
    /// The length of the file in bytes.
    pub bytes: u64,
    /// The number of intact messages.
    pub intact_messages: u64,
    /// The number of intact messages with objects without hashes: only their structure was checked.
    pub unverified_messages: u64,
    /// The number of messages in the new file.
    pub kept_messages: u64,
    /// The number of objects in the new file.
    pub kept_objects: u64,
    /// The damaged messages.
    pub messages: Vec<RepairedMessage>,
    /// The byte ranges outside messages.
    #[serde(serialize_with = "spans")]
    pub unrecognized: Vec<Span>,
    /// Ranges in `unrecognized` that contain parts of a message.
    #[serde(serialize_with = "spans")]
    pub partial_messages: Vec<Span>,
    /// Whether the file had an index that does not fit the new file.
    pub index_dropped: bool,
    /// Whether the search stopped early because too many bytes looked like frames.
    pub search_stopped_early: bool,
}

/// The state of a damaged message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum State {
    /// Everything in it is kept.
    Repaired,
    /// A part of it is kept.
    Damaged,
    /// Nothing of it is kept.
    Lost,
}

/// A damaged message.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RepairedMessage {
    /// The number in the file, from 0.
    pub message: u64,
    /// The byte range, as far as it was found.
    #[serde(serialize_with = "span")]
    pub span: Span,
    /// The state.
    pub state: State,
    /// The number of the message in the new file, if any.
    pub output: Option<u64>,
    /// The number of objects kept.
    pub objects_kept: u64,
    /// Objects without a hash that are kept, by their numbers in the new message.
    pub unverified: Vec<u64>,
    /// The losses.
    pub lost: Vec<Loss>,
    /// The repaired damage.
    pub notes: Vec<String>,
}

/// The kind of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Lost {
    /// An object.
    Object,
    /// Objects with unknown numbers.
    Objects,
    /// The metadata of the message.
    Metadata,
    /// The metadata of one object.
    ObjectMetadata,
    /// Unknown bytes.
    Bytes,
}

/// A loss.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Loss {
    /// The kind.
    pub what: Lost,
    /// The number of the object in the damaged message, if known.
    pub object: Option<u64>,
    /// The byte range.
    #[serde(serialize_with = "span")]
    pub span: Span,
    /// The reason.
    pub reason: String,
}

impl<D> SalvageReport<D> {
    /// Whether a message may be lost in a range of [`unrecognized`](Self::unrecognized) bytes: it contains parts of one, or
    /// has room for one.
    pub fn may_lose(&self, unrecognized: Span) -> bool {
        let is_partial =
            || self.partial_messages.binary_search_by_key(&unrecognized.start(), |span| span.start()).is_ok();
        unrecognized.len() >= MIN_MESSAGE || is_partial()
    }

    /// Whether everything in the file is in the new file.
    pub fn is_complete(&self) -> bool {
        let is_kept = self.messages.iter().all(|message| message.lost.is_empty());
        is_kept && !self.unrecognized.iter().any(|span| self.may_lose(*span)) && !self.search_stopped_early
    }

    /// Whether all messages are intact and no bytes are between them.
    pub fn is_intact(&self) -> bool {
        self.messages.is_empty() && self.unrecognized.is_empty()
    }

    /// The report and the output of the sink, separately.
    pub fn into_parts(self) -> (SalvageReport, D) {
        self.replace_output(())
    }

    /// The same report with another output, and its own.
    pub(super) fn replace_output<E>(self, output: E) -> (SalvageReport<E>, D) {
        let Self {
            output: own,
            location,
            bytes,
            intact_messages,
            unverified_messages,
            kept_messages,
            kept_objects,
            messages,
            unrecognized,
            partial_messages,
            index_dropped,
            search_stopped_early,
        } = self;
        let report = SalvageReport {
            output,
            location,
            bytes,
            intact_messages,
            unverified_messages,
            kept_messages,
            kept_objects,
            messages,
            unrecognized,
            partial_messages,
            index_dropped,
            search_stopped_early,
        };
        (report, own)
    }
}

impl SalvageReport {
    pub(super) fn new(source: &dyn ByteSource) -> Self {
        Self {
            output: (),
            location: source.name().to_string(),
            bytes: source.len(),
            intact_messages: 0,
            unverified_messages: 0,
            kept_messages: 0,
            kept_objects: 0,
            messages: Vec::new(),
            unrecognized: Vec::new(),
            partial_messages: Vec::new(),
            index_dropped: false,
            search_stopped_early: false,
        }
    }

    /// Finds unrecognized bytes that contain parts of messages.
    pub(super) fn find_partial_messages(&mut self, source: &dyn ByteSource) -> Result<(), ErrorKind> {
        for span in &self.unrecognized {
            let looked = span.slice(0, span.len().min(MAX_SEARCHED)).unwrap_or(*span);
            let bytes = source.read_at(looked)?;
            let marks: [&[u8]; 3] = [MAGIC, END_MAGIC, FRAME_END];
            let is_cut = span.end() == source.len() && MAGIC.starts_with(&bytes);
            if is_cut || marks.iter().any(|mark| memmem::find(&bytes, mark).is_some()) {
                self.partial_messages.push(*span);
            }
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Bytes {
    start: u64,
    end: u64,
}

impl From<Span> for Bytes {
    fn from(span: Span) -> Self {
        Self { start: span.start(), end: span.end() }
    }
}

fn span<S: serde::Serializer>(span: &Span, serializer: S) -> Result<S::Ok, S::Error> {
    Bytes::from(*span).serialize(serializer)
}

fn spans<S: serde::Serializer>(spans: &[Span], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(spans.iter().map(|span| Bytes::from(*span)))
}
