//! Recovery of damaged files.
//!
//! An intact message is copied byte for byte. Of any other message every object with an intact frame and a matching
//! hash is kept, with all intact metadata; payloads and masks keep their bytes. After a damaged length the next frame
//! is searched for by what no payload contains by chance: a header with a known type, a length that ends with the end
//! marker of a frame, and a matching hash.
//!
//! The time is linear in the length of the file: the search only moves forward, and the bytes hashed for invalid
//! candidates are counted and bounded.
//!
//! | file | contents |
//! |---|---|
//! | `tokens` | bytes → intact messages, preambles, frames, postambles, gaps |
//! | `group` | tokens → fragments of adjacent frames |
//! | `join` | fragments → damaged messages |
//! | `number` | the object numbers of frames |
//! | `rebuild` | a damaged message → a new one, and its losses |

mod group;
mod join;
mod number;
mod rebuild;
mod report;
mod tokens;

use std::fmt;
use std::io::Write;
use std::sync::Arc;

use tercet_core::num::counted;
use tercet_core::progress::NoProgress;
use tercet_core::sink::Sink;
use tercet_core::{Budget, ByteSource, Progress, Span, escape};

pub use report::{Loss, Lost, RepairedMessage, SalvageReport, State};

use crate::edit::MessageBuilder;
use crate::encode::EncodeOptions;
use crate::error::{Error, ErrorKind};
use crate::index;
use crate::message::Message;
use crate::options::ReadOptions;
#[cfg(any(unix, windows))]
use crate::writer::Writer;
use group::{Groups, Item};
use join::Fragment;
use tokens::{Token, Tokens};

/// The memory of one entry of the report.
const ENTRY_BYTES: u64 = 1024;
/// The number of bytes copied at a time.
const PIECE: u64 = 1 << 20;

/// How a file is salvaged.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SalvageOptions {
    /// How the damaged file is read.
    pub read: ReadOptions,
    /// How damaged messages are rewritten. A rewritten message has hashes only if all of its objects had.
    pub encode: EncodeOptions,
}

impl SalvageOptions {
    /// Default limits; rewritten messages record when and by which program they were written.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how the damaged file is read.
    pub fn with_read(mut self, read: ReadOptions) -> Self {
        self.read = read;
        self
    }

    /// Sets how damaged messages are rewritten.
    pub fn with_encode(mut self, encode: EncodeOptions) -> Self {
        self.encode = encode;
        self
    }
}

/// Copies the intact parts of a file to `sink`: intact messages byte for byte, the intact objects of damaged messages
/// in rewritten messages. The report lists what was repaired and what was lost.
///
/// [`plan`] does the same in two steps, for callers that decide by the report whether anything is written.
///
/// ```
/// use std::io::Cursor;
/// use std::sync::Arc;
///
/// use tercet_core::progress::NoProgress;
/// use tercet_core::source::Memory;
/// use tercet_tgm::salvage::{SalvageOptions, salvage};
/// use tercet_tgm::{EncodeOptions, GlobalMetadata, encode_message};
///
/// let message = encode_message(&GlobalMetadata::default(), &[], &EncodeOptions::new())?;
/// let damaged = [&message[..], b"junk", &message[..]].concat();
/// let source = Arc::new(Memory::new("run.tgm", damaged));
/// let report = salvage(source, Cursor::new(Vec::new()), SalvageOptions::new(), &NoProgress)?;
/// assert_eq!((report.intact_messages, report.is_complete()), (2, true));
/// assert_eq!(report.output, [&message[..], &message[..]].concat());
/// # Ok::<(), tercet_tgm::Error>(())
/// ```
#[expect(clippy::needless_pass_by_value, reason = "all formats have the same signature")]
pub fn salvage<S: Sink>(
    source: Arc<dyn ByteSource>,
    mut sink: S,
    options: SalvageOptions,
    progress: &dyn Progress,
) -> Result<SalvageReport<S::Output>, Error> {
    let found = plan(&source, &options, progress)?;
    found.write_to(&mut sink, progress)?;
    let output = sink.finish().map_err(|error| Error::new("output".into(), error.into()))?;
    Ok(found.report.replace_output(output).0)
}

/// The plan of a recovery: what is kept and what is lost.
#[derive(Debug)]
pub struct SalvagePlan {
    /// The report.
    pub report: SalvageReport,
    source: Arc<dyn ByteSource>,
    pieces: Vec<Piece>,
    /// The number of messages so far, intact or not, without message indexes.
    messages: u64,
}

/// One line, and one more for every loss.
impl fmt::Display for SalvagePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = &self.report;
        let (messages, objects) =
            (counted(report.kept_messages, "message"), counted(report.kept_objects, "object"));
        write!(f, "{}: keep {messages} with {objects}", escape::name(&report.location))?;
        for message in &report.messages {
            for loss in &message.lost {
                let object = loss.object.map(|object| format!(", object {object}")).unwrap_or_default();
                let reason = loss.reason.replace("\n  ", ": ");
                let reason = escape::name(&reason);
                write!(f, "\nlose bytes {} of message {}{object}: {reason}", loss.span, message.message)?;
            }
        }
        let mut lost = report.unrecognized.iter().filter(|span| report.may_lose(**span));
        lost.try_for_each(|span| write!(f, "\nlose bytes {span} outside messages"))
    }
}

/// A part of the new file.
#[derive(Debug)]
enum Piece {
    /// Intact messages.
    Intact(Span),
    /// A rewritten message.
    Rewritten(MessageBuilder),
}

/// Searches a file for everything that is intact, and writes nothing.
pub fn plan(
    source: &Arc<dyn ByteSource>,
    options: &SalvageOptions,
    progress: &dyn Progress,
) -> Result<SalvagePlan, Error> {
    let SalvageOptions { read: reading, encode: writing } = options;
    let reading = *reading;
    let named = |fault: ErrorKind| Error::new(source.name().clone(), fault);
    let mut tokens = Tokens::new(source, reading, progress).map_err(named)?;
    let mut groups = Groups::default();
    let (report, pieces) = (SalvageReport::new(&**source), Vec::new());
    let mut found = SalvagePlan { report, source: Arc::clone(source), pieces, messages: 0 };
    // Fragments that may belong to one message.
    let mut chain: Vec<Fragment> = Vec::new();
    let mut add = |item: Item| {
        let is_next = match &item {
            Item::Broken(broken) => {
                broken.start.is_some() || chain.iter().any(|fragment| fragment.broken.is_ended)
            }
            Item::Intact { .. } | Item::Unrecognized(_) => true,
        };
        if is_next {
            found.repair(std::mem::take(&mut chain), &reading, writing)?;
        }
        match item {
            Item::Broken(broken) => {
                let contents =
                    rebuild::read_contents(source, found.messages, &broken, &reading).map_err(named)?;
                chain.push(Fragment { broken, contents });
            }
            Item::Intact { span, objects, verified, is_index } => {
                if !is_index {
                    found.report.unverified_messages += u64::from(!verified);
                    found.count_intact(objects);
                }
                found.keep(span);
            }
            Item::Unrecognized(span) => found.report.unrecognized.push(span),
        }
        Ok(())
    };
    let budget = Budget::new("the report of damaged messages", reading.common.limits.table_bytes);
    while let Some(token) = tokens.next().map_err(named)? {
        if !matches!(token, Token::Intact { .. }) {
            budget.reserve(ENTRY_BYTES).map_err(|over| named(over.into()))?;
        }
        groups.take(token).into_iter().try_for_each(&mut add)?;
    }
    groups.finish().into_iter().try_for_each(&mut add)?;
    found.repair(chain, &reading, writing)?;
    found.drop_index(&reading).map_err(named)?;
    found.report.search_stopped_early = tokens.gave_up();
    found.report.find_partial_messages(&**source).map_err(named)?;
    Ok(found)
}

impl SalvagePlan {
    /// Counts an intact message. Indexes are not counted.
    fn count_intact(&mut self, objects: u64) {
        self.messages += 1;
        self.report.intact_messages += 1;
        self.report.kept_objects += objects;
        self.report.kept_messages += 1;
    }

    /// Keeps the bytes of an intact message.
    fn keep(&mut self, span: Span) {
        match self.pieces.last_mut() {
            Some(Piece::Intact(before)) if before.end() == span.start() => {
                *before = Span::between(before.start(), span.end()).unwrap_or(*before);
            }
            _ => self.pieces.push(Piece::Intact(span)),
        }
    }

    /// Rebuilds damaged messages.
    fn repair(
        &mut self,
        chain: Vec<Fragment>,
        reading: &ReadOptions,
        writing: &EncodeOptions,
    ) -> Result<(), Error> {
        for mut fragment in join::join(chain) {
            let number = self.messages;
            self.messages += 1;
            let other_message = fragment.take_objects_of_another_message();
            for fragment in std::iter::once(fragment).chain(other_message) {
                let (repaired, draft) = rebuild::rebuild(&self.source, number, fragment, reading, writing)?;
                self.add(repaired, draft);
            }
        }
        Ok(())
    }

    fn add(&mut self, mut repaired: RepairedMessage, draft: Option<MessageBuilder>) {
        if draft.as_ref().is_some_and(|draft| draft.metadata().is_message_index()) {
            self.report.index_dropped = true;
            self.messages = repaired.message;
            return;
        }
        self.report.kept_objects += repaired.objects_kept;
        if let Some(draft) = draft {
            repaired.output = Some(self.report.kept_messages);
            self.report.kept_messages += 1;
            self.pieces.push(Piece::Rewritten(draft));
        }
        self.report.messages.push(repaired);
    }

    /// Drops an index at the end, unless all messages before it are in place.
    fn drop_index(&mut self, reading: &ReadOptions) -> Result<(), ErrorKind> {
        let is_untouched = self.pieces.len() == 1 && self.report.unrecognized.is_empty();
        let Some(Piece::Intact(last)) = self.pieces.last_mut().filter(|_| !is_untouched) else {
            return Ok(());
        };
        let Some(message_index) = index::marked(&*self.source, last.end(), reading)? else { return Ok(()) };
        let opened = Message::open(Arc::clone(&self.source), 0, message_index, *reading);
        let opened = opened.map_err(Error::into_kind)?;
        match Span::between(last.start(), message_index.start()).filter(|before| !before.is_empty()) {
            Some(before) => *last = before,
            None => drop(self.pieces.pop()),
        }
        let report = &mut self.report;
        // An index without a version was counted as a message.
        if !opened.metadata().is_message_index() {
            report.intact_messages = report.intact_messages.saturating_sub(1);
            report.kept_messages = report.kept_messages.saturating_sub(1);
            report.kept_objects = report.kept_objects.saturating_sub(opened.object_count());
        }
        report.index_dropped = true;
        Ok(())
    }

    /// Whether there is anything to write. An empty file is kept completely.
    pub fn is_worth_writing(&self) -> bool {
        !self.pieces.is_empty() || self.source.is_empty()
    }

    /// The length of the new file in bytes.
    pub fn len(&self) -> u64 {
        let len = |piece: &Piece| match piece {
            Piece::Intact(span) => span.len(),
            Piece::Rewritten(draft) => draft.len(),
        };
        self.pieces.iter().map(len).sum()
    }

    /// Whether the new file would be empty.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Writes the output with a writer, which can add an index.
    #[cfg(any(unix, windows))]
    pub fn write<S: Sink>(&self, writer: &mut Writer<S>, progress: &dyn Progress) -> Result<(), Error> {
        for piece in &self.pieces {
            match piece {
                Piece::Intact(span) => writer.copy_from(&*self.source, *span, progress)?,
                Piece::Rewritten(draft) => writer.write(draft, progress)?,
            }
        }
        Ok(())
    }

    /// Writes the output to a sink.
    pub fn write_to(&self, sink: &mut dyn Write, progress: &dyn Progress) -> Result<(), Error> {
        for piece in &self.pieces {
            match piece {
                Piece::Intact(span) => self.copy(*span, sink, progress)?,
                Piece::Rewritten(message) => message.write_to(sink, progress)?,
            }
        }
        Ok(())
    }

    fn copy(&self, span: Span, sink: &mut dyn Write, progress: &dyn Progress) -> Result<(), Error> {
        let failed = |fault: ErrorKind| Error::new(self.source.name().clone(), fault);
        let mut at = span.start();
        while at < span.end() {
            progress.check().map_err(|stopped| failed(stopped.into()))?;
            let piece = Span::clamped(at, (span.end() - at).min(PIECE));
            let bytes = self.source.read_at(piece).map_err(|error| failed(error.into()))?;
            sink.write_all(&bytes).map_err(|error| Error::new("output".into(), error.into()))?;
            progress.advance(piece.len());
            at = piece.end();
        }
        Ok(())
    }

    /// The output in memory.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        self.write_to(&mut out, &NoProgress)?;
        Ok(out)
    }
}
