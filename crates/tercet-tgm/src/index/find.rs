//! Finding the index of a file.

use bytes::{Bytes, BytesMut};
use tercet_core::limits::check_limit;
use tercet_core::{Budget, ByteSource, CommonError, SourceError, Span, checksum};

use super::{IndexError, MessageIndex};
use crate::cbor;
use crate::error::ErrorKind;
use crate::message::Message;
use crate::metadata::GlobalMetadata;
use crate::options::ReadOptions;
use crate::region::{Part, Region};
use crate::wire::frame::{FrameHeader, FrameTail};
use crate::wire::ids::{FRAME_HEADER_LEN, FrameFlags, FrameKind, MIN_MESSAGE, POSTAMBLE_LEN, PREAMBLE_LEN};
use crate::wire::postamble::Postamble;

/// The number of bytes at the end of an index that hold all its footer frames.
pub(super) const TAIL: u64 = 64 << 10;
/// The number of bytes at the end of a file that are read first. They hold the footer frames unless there are many keys, and
/// the complete index of a few thousand messages.
const FIRST: u64 = 16 << 10;
/// The maximum number of messages after an index that are skipped to find it.
#[cfg(any(unix, windows))]
const MAX_MESSAGES_AFTER: usize = 4096;

/// The maximum number of unrecognized bytes that are checked before an index is used.
const MAX_GAP_BYTES: u64 = 1 << 20;

/// The result of the search for an index.
#[derive(Debug)]
pub(crate) enum IndexLookup {
    /// No index.
    None,
    /// A valid index.
    Found(Box<MessageIndex>),
    /// A message marked as an index that is not valid.
    Rejected(Span, IndexError),
}

/// Searches for an index at the end of the source. One read for a file without an index, two for a file with one, three
/// if its footer frames are long.
pub(crate) fn find(source: &dyn ByteSource, options: &ReadOptions) -> Result<IndexLookup, ErrorKind> {
    match MessageEnd::read(source, source.len())? {
        Some(message_end) => message_end.message_index(source, options),
        None => Ok(IndexLookup::None),
    }
}

/// The byte range of a message that ends at `end` and is marked as an index, valid or not.
pub(crate) fn marked(
    source: &dyn ByteSource,
    end: u64,
    options: &ReadOptions,
) -> Result<Option<Span>, ErrorKind> {
    let Some(message_end) = MessageEnd::read(source, end)? else { return Ok(None) };
    Ok(message_end.is_marked(source, options)?.then_some(message_end.message))
}

/// Whether a message that cannot be read is an index by one of its metadata frames.
pub(crate) fn has_mark(
    source: &dyn ByteSource,
    message: Span,
    options: &ReadOptions,
) -> Result<bool, ErrorKind> {
    let message_end = MessageEnd::read(source, message.end())?.filter(|end| end.message == message);
    let is_marked = match message_end {
        Some(message_end) => message_end.is_marked(source, options)?,
        None => false,
    };
    Ok(is_marked || first_frame_is_marked(source, message, options)?)
}

/// Whether the first frame of a message is intact metadata with the mark of an index, as it is written before any object.
fn first_frame_is_marked(
    source: &dyn ByteSource,
    message: Span,
    options: &ReadOptions,
) -> Result<bool, ErrorKind> {
    let room = message.len().saturating_sub(PREAMBLE_LEN + POSTAMBLE_LEN);
    let Some(span) = message.slice(PREAMBLE_LEN, room.min(TAIL)) else { return Ok(false) };
    match MetadataFrame::read(&source.read_at(span)?, span.start(), room, options)? {
        MetadataFrame::Intact(FrameKind::HeaderMetadata, metadata) => Ok(metadata.is_message_index()),
        _ => Ok(false),
    }
}

/// A metadata frame.
enum MetadataFrame {
    /// Its hash matches, and it can be parsed.
    Intact(FrameKind, GlobalMetadata),
    Damaged,
    /// Not a metadata frame.
    Other,
}

impl MetadataFrame {
    /// Parses the frame at the start of `bytes`, at offset `at` of the file; it is at most `room` bytes long.
    fn read(bytes: &[u8], at: u64, room: u64, options: &ReadOptions) -> Result<Self, ErrorKind> {
        let region = Region { message: 0, part: Part::Frame { index: 0 } };
        let Ok(header) = FrameHeader::parse(region, at, bytes) else { return Ok(Self::Damaged) };
        let kind = match header.kind() {
            Some(kind @ (FrameKind::HeaderMetadata | FrameKind::FooterMetadata)) => kind,
            Some(_) => return Ok(Self::Other),
            None => return Ok(Self::Damaged),
        };
        let inside = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let tail_at = header.total_length - header.tail_len();
        let (Some(body), Some(tail)) = (
            bytes.get(inside(FRAME_HEADER_LEN)..inside(tail_at)),
            bytes.get(inside(tail_at)..inside(header.total_length)).filter(|_| header.total_length <= room),
        ) else {
            return Ok(Self::Damaged);
        };
        let Ok(tail) = FrameTail::parse(region, &header, at.saturating_add(tail_at), tail) else {
            return Ok(Self::Damaged);
        };
        if header.flags.contains(FrameFlags::HASH_PRESENT) && checksum::xxh3(body) != tail.hash {
            return Ok(Self::Damaged);
        }
        let budget = Budget::new("metadata", options.common.limits.metadata_bytes);
        match cbor::decode(body, &budget) {
            Ok((value, _)) => {
                let metadata = GlobalMetadata::from_value(value);
                Ok(metadata.map_or(Self::Damaged, |metadata| Self::Intact(kind, metadata)))
            }
            Err(cbor::CborError { reason: cbor::CborErrorKind::Limit(limit), .. }) => Err(limit.into()),
            Err(_) => Ok(Self::Damaged),
        }
    }
}

/// Searches for the last index, skipping messages after it; returns the byte ranges of the index and of the messages
/// after it.
#[cfg(any(unix, windows))]
pub(crate) fn find_last(
    source: &dyn ByteSource,
    options: &ReadOptions,
) -> Result<Option<(MessageIndex, Vec<Span>)>, ErrorKind> {
    let mut after = Vec::new();
    let mut end = source.len();
    while after.len() <= MAX_MESSAGES_AFTER {
        let Some(message_end) = MessageEnd::read(source, end)? else { return Ok(None) };
        match message_end.message_index(source, options)? {
            IndexLookup::Found(message_index) => {
                after.reverse();
                return Ok(Some((*message_index, after)));
            }
            IndexLookup::Rejected(_, error) => return error.into_limit().map_or(Ok(None), Err),
            IndexLookup::None => after.push(message_end.message),
        }
        end = message_end.message.start();
    }
    Ok(None)
}

/// The last bytes of a message whose postamble has a length.
pub(super) struct MessageEnd {
    pub(super) message: Span,
    /// The offset of the first footer frame.
    footer: u64,
    tail: Bytes,
    tail_at: u64,
}

impl MessageEnd {
    /// Reads the last bytes before `end`. `None` unless they are the end of a message whose postamble has a length.
    pub(super) fn read(source: &dyn ByteSource, end: u64) -> Result<Option<Self>, SourceError> {
        let tail_at = end.saturating_sub(FIRST);
        let Some(span) = Span::between(tail_at, end).filter(|_| end >= MIN_MESSAGE) else { return Ok(None) };
        let tail = source.read_at(span)?;
        let last = tail.len().saturating_sub(usize::try_from(POSTAMBLE_LEN).unwrap_or_default());
        let postamble = Postamble::parse(0, end - POSTAMBLE_LEN, tail.get(last..).unwrap_or_default()).ok();
        let Some(postamble) = postamble else { return Ok(None) };
        let length = postamble.total_length;
        let start = end.checked_sub(length).filter(|_| length >= MIN_MESSAGE);
        let message = start.and_then(|start| Span::between(start, end));
        let Some(message) = message else { return Ok(None) };
        let footer = message.start().saturating_add(postamble.first_footer_offset);
        let mut message_end = Self { message, footer, tail, tail_at };
        if footer < tail_at && footer >= end.saturating_sub(TAIL) {
            message_end.reach(source, footer)?;
        }
        Ok(Some(message_end))
    }

    /// Reads the bytes before the tail, from `start` on.
    fn reach(&mut self, source: &dyn ByteSource, start: u64) -> Result<(), SourceError> {
        let Some(before) = Span::between(start, self.tail_at).filter(|before| !before.is_empty()) else {
            return Ok(());
        };
        let mut joined = BytesMut::from(&source.read_at(before)?[..]);
        joined.extend_from_slice(&self.tail);
        (self.tail, self.tail_at) = (joined.freeze(), start);
        Ok(())
    }

    /// Whether its last metadata frame marks it as an index, or its first one if that is damaged. Metadata that exceeds the
    /// limits is an error: an index would count as a message.
    pub(super) fn is_marked(
        &self,
        source: &dyn ByteSource,
        options: &ReadOptions,
    ) -> Result<bool, ErrorKind> {
        let last = self.message.end() - POSTAMBLE_LEN;
        let Some(room) = last.checked_sub(self.footer).filter(|room| *room > 0) else { return Ok(false) };
        let Some(at) = self.footer.checked_sub(self.tail_at) else { return Ok(false) };
        let frame = usize::try_from(at).ok().and_then(|at| self.tail.get(at..)).unwrap_or_default();
        match MetadataFrame::read(frame, self.footer, room, options)? {
            MetadataFrame::Intact(FrameKind::FooterMetadata, metadata) => Ok(metadata.is_marked()),
            MetadataFrame::Intact(..) | MetadataFrame::Other => Ok(false),
            MetadataFrame::Damaged => first_frame_is_marked(source, self.message, options),
        }
    }

    /// The message as an index, if it is marked as one. One more read if it is longer than the tail.
    fn message_index(
        &self,
        source: &dyn ByteSource,
        options: &ReadOptions,
    ) -> Result<IndexLookup, ErrorKind> {
        if !self.is_marked(source, options)? {
            return Ok(IndexLookup::None);
        }
        let message = self.open(source, options);
        let message_index = message.and_then(|message| MessageIndex::read(self.message, message));
        match message_index.and_then(|message_index| check_complete(source, message_index)) {
            Ok(message_index) => Ok(IndexLookup::Found(Box::new(message_index))),
            // An I/O error does not make the index invalid.
            Err(IndexError::Message(fault))
                if matches!(*fault, ErrorKind::Common(CommonError::Source(_))) =>
            {
                Err(*fault)
            }
            Err(error) => Ok(IndexLookup::Rejected(self.message, error)),
        }
    }

    /// The complete message, read and verified.
    pub(super) fn open(&self, source: &dyn ByteSource, options: &ReadOptions) -> Result<Message, IndexError> {
        let refused = |fault: ErrorKind| IndexError::Message(Box::new(fault));
        let len = check_limit("the index", self.message.len(), options.common.limits.metadata_bytes);
        let mut bytes = BytesMut::with_capacity(len.map_err(|error| refused(error.into()))?);
        let inside = usize::try_from(self.message.start().saturating_sub(self.tail_at)).unwrap_or(usize::MAX);
        if let Some(before) = Span::between(self.message.start(), self.tail_at) {
            bytes.extend_from_slice(&source.read_at(before).map_err(|error| refused(error.into()))?);
        }
        bytes.extend_from_slice(self.tail.get(inside..).unwrap_or_default());
        let checked = options.with_verify(true).with_strict(true);
        Ok(Message::from_bytes_with(source.name(), bytes.freeze(), checked)?)
    }
}

/// Rejects an index that omits messages, such as that of a file that was appended to another: its byte ranges would be
/// those of other messages.
pub(super) fn check_complete(
    source: &dyn ByteSource,
    message_index: MessageIndex,
) -> Result<MessageIndex, IndexError> {
    let mut rest = MAX_GAP_BYTES;
    for &span in &message_index.scan().unrecognized {
        rest = rest.checked_sub(span.len()).ok_or(IndexError::Incomplete { span, is_seen: false })?;
        let bytes = source.read_at(span).map_err(|error| IndexError::Message(Box::new(error.into())))?;
        if !crate::scan::scan(&bytes).is_empty() {
            return Err(IndexError::Incomplete { span, is_seen: true });
        }
    }
    Ok(message_index)
}

#[cfg(test)]
mod tests {
    use tercet_core::source::Memory;
    use tercet_testkit::counting::Counting;

    use super::*;
    use crate::encode::{EncodeOptions, Provenance, encode_message};
    use crate::index::{IndexBuilder, IndexKeys};

    /// The index and every message after it cost one read each.
    #[test]
    fn every_tail_is_read_once() {
        let options = EncodeOptions::new().with_provenance(Provenance::Off);
        let message = encode_message(&GlobalMetadata::default(), &[], &options).unwrap();
        let mut message_index = IndexBuilder::new(&IndexKeys::All);
        message_index.push(Span::first(message.len() as u64), &GlobalMetadata::default());
        let mut bytes = std::io::Cursor::new(message.clone());
        bytes.set_position(message.len() as u64);
        message_index.write(&mut bytes, Provenance::Off).unwrap();
        let mut bytes = bytes.into_inner();
        for _ in 0..3 {
            bytes.extend(&message);
        }
        let source = Counting::new(Memory::new("m", bytes));
        let (message_index, after) = find_last(&source, &ReadOptions::new()).unwrap().expect("an index");
        assert_eq!(message_index.scan().messages, [Span::first(message.len() as u64)]);
        assert_eq!(after.len(), 3);
        assert_eq!(source.reads(), 4, "{:?}", source.spans());
    }
}
