//! What was found in a damaged file.

use memchr::memmem;
use serde::Serialize;
use tercet_core::{ByteSource, Span};

use crate::error::ErrorKind;
use crate::wire::ids::{END_MAGIC, FRAME_END, MAGIC};

/// Bytes of junk that are looked at for remains of messages.
const LOOKED_AT: u64 = 16 << 20;

/// What was found in a file.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SalvageReport {
    /// The name of the file.
    pub file: String,
    /// Its bytes.
    pub bytes: u64,
    /// Messages that are as they were written.
    pub intact_messages: u64,
    /// Those of them with objects that have no hash: only their structure was checked.
    pub unproven_messages: u64,
    /// Messages of the new file.
    pub kept_messages: u64,
    /// Objects of the new file.
    pub kept_objects: u64,
    /// Every message that was not intact.
    pub messages: Vec<RepairedMessage>,
    /// Bytes that belong to no message.
    #[serde(serialize_with = "spans")]
    pub junk: Vec<Span>,
    /// Those of them in which there are remains of a message.
    #[serde(serialize_with = "spans")]
    pub remains: Vec<Span>,
    /// Whether the file had an index, which would not be right for the new one.
    #[serde(rename = "catalogue_left_out")]
    pub index_dropped: bool,
    /// Whether this many bytes looked like frames and were none that others were not looked at.
    pub search_given_up: bool,
}

/// How well a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum State {
    /// It was damaged, and everything it held is kept.
    Repaired,
    /// It was damaged, and a part of it is kept.
    Damaged,
    /// Nothing of it is kept.
    Lost,
}

/// A message that was damaged.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RepairedMessage {
    /// Its number in the file, from 0.
    pub message: u64,
    /// Its bytes, as far as they were found.
    #[serde(serialize_with = "span")]
    pub span: Span,
    /// How well it is.
    pub state: State,
    /// The number of the message in the new file, if there is one.
    pub output: Option<u64>,
    /// Objects that are kept.
    pub objects_kept: u64,
    /// Objects that are kept although no hash proves them, by their numbers in the new message.
    pub unproven: Vec<u64>,
    /// What is lost.
    pub lost: Vec<Loss>,
    /// What was damaged and could be rebuilt.
    pub notes: Vec<String>,
}

/// What kind of thing is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Lost {
    /// An object.
    Object,
    /// Objects, and no one knows which.
    Objects,
    /// The metadata of the message.
    Metadata,
    /// The metadata of one object.
    ObjectMetadata,
    /// Bytes that may have been anything.
    Bytes,
}

/// Something that is lost.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Loss {
    /// What kind of thing.
    pub what: Lost,
    /// The number of the object in the damaged message, where that is known.
    pub object: Option<u64>,
    /// Its bytes.
    #[serde(serialize_with = "span")]
    pub span: Span,
    /// Reason.
    pub reason: String,
}

impl SalvageReport {
    pub(super) fn new(source: &dyn ByteSource) -> Self {
        Self {
            file: source.name().to_string(),
            bytes: source.len(),
            intact_messages: 0,
            unproven_messages: 0,
            kept_messages: 0,
            kept_objects: 0,
            messages: Vec::new(),
            junk: Vec::new(),
            remains: Vec::new(),
            index_dropped: false,
            search_given_up: false,
        }
    }

    /// Whether something that was in the file is not in the new one.
    pub fn has_losses(&self) -> bool {
        let lost = self.messages.iter().any(|message| !message.lost.is_empty());
        lost || !self.remains.is_empty() || self.search_given_up
    }

    /// Whether every message is as it was written, and nothing is between them.
    pub fn is_intact(&self) -> bool {
        self.messages.is_empty() && self.junk.is_empty()
    }

    /// Finds out in which bytes of no message there are remains of one.
    pub(super) fn tell_remains(&mut self, source: &dyn ByteSource) -> Result<(), ErrorKind> {
        for junk in &self.junk {
            let looked = junk.slice(0, junk.len().min(LOOKED_AT)).unwrap_or(*junk);
            let bytes = source.read_at(looked)?;
            let marks: [&[u8]; 3] = [MAGIC, END_MAGIC, FRAME_END];
            let is_cut = junk.end() == source.len() && MAGIC.starts_with(&bytes);
            if is_cut || marks.iter().any(|mark| memmem::find(&bytes, mark).is_some()) {
                self.remains.push(*junk);
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
