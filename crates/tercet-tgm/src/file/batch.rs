//! The same object or range of many messages in one call.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use rayon::prelude::*;
use tercet_core::threads::install;
use tercet_core::{ByteSource, SourceError, Span, Tensor};

use super::File;
use super::prefetch::Prefetched;
use crate::error::{Error, ErrorKind};
use crate::message::{Message, read_numbered_metadata};
use crate::metadata::GlobalMetadata;
use crate::object::Ranges;
use crate::window::REMOTE_BLOCK;
use crate::wire::ids::{FRAME_HEADER_LEN, MessageFlags, PREAMBLE_LEN};
use crate::wire::preamble::Preamble;

/// The maximum number of remote messages that are opened together.
const MAX_MESSAGES: usize = 256;
/// The maximum number of bytes of objects that are read together.
const MAX_BYTES: u64 = 64 << 20;
/// Messages and frames up to this length are read completely.
const SMALL: u64 = 32 << 10;

/// The number of bytes of local messages that are read together.
const SMALL_GROUP: u64 = 128 << 10;

/// What is read of each message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted<'a> {
    Metadata,
    Object(u64),
    Ranges(u64, &'a [Range<u64>]),
}

impl File {
    /// Decodes the same object of several messages, in parallel. Reads of a remote file are coalesced: their number does not
    /// depend on the number of messages, up to 256 messages and 64 MiB.
    ///
    /// ```
    /// use tercet_tgm::{DataObjectDescriptor, DType, EncodeOptions, File, GlobalMetadata, encode_message};
    ///
    /// let descriptor = DataObjectDescriptor::new(DType::U8, [2]);
    /// let mut bytes = Vec::new();
    /// for value in 0..9 {
    ///     let objects: [(&_, &[u8]); 1] = [(&descriptor, &[value, value])];
    ///     bytes.extend(encode_message(&GlobalMetadata::default(), &objects, &EncodeOptions::new())?);
    /// }
    /// let file = File::from_bytes("run", bytes)?;
    /// let arrays = file.decode_object_of(&[8, 0, 3], 0)?;
    /// assert_eq!(arrays.iter().map(|array| array.bytes()[0]).collect::<Vec<_>>(), [8, 0, 3]);
    /// # Ok::<(), tercet_tgm::Error>(())
    /// ```
    pub fn decode_object_of(&self, messages: &[u64], object: u64) -> Result<Vec<Tensor>, Error> {
        self.read_of(messages, Wanted::Object(object), |message| message.object(object)?.decode())
    }

    /// Decodes the same ranges of the same object of several messages, in parallel: see
    /// [`Object::decode_ranges`](crate::Object::decode_ranges). Reads of a remote file are coalesced.
    pub fn decode_ranges_of(
        &self,
        messages: &[u64],
        object: u64,
        ranges: &[Range<u64>],
    ) -> Result<Vec<Ranges>, Error> {
        let wanted = Wanted::Ranges(object, ranges);
        self.read_of(messages, wanted, |message| message.object(object)?.decode_ranges(ranges))
    }

    /// The metadata of several messages, in parallel. Short messages that follow each other are read together; reads of a
    /// remote file are coalesced.
    pub fn metadata_of(&self, messages: &[u64]) -> Result<Vec<GlobalMetadata>, Error> {
        let Some(&last) = messages.iter().max() else { return Ok(Vec::new()) };
        let table = self.message_table_with(last)?;
        // The byte ranges of an index are compared with the messages.
        if self.source.is_remote() || table.message_index.is_some() {
            return self.read_of(messages, Wanted::Metadata, |message| Ok(message.metadata().clone()));
        }
        let mut spans = Vec::with_capacity(messages.len());
        for &index in messages {
            spans.push((index, self.reachable_span(&table, index, self.options)?));
        }
        let one = |group: &&[(u64, Span)]| self.metadata_of_group(group);
        let groups = groups(&spans);
        let run = || groups.par_iter().map(one).collect::<Vec<_>>();
        let mut all = Vec::with_capacity(messages.len());
        for group in install(self.options.common.threads, run) {
            all.extend(group?);
        }
        Ok(all)
    }

    /// The metadata of messages that are read together.
    fn metadata_of_group(&self, group: &[(u64, Span)]) -> Result<Vec<GlobalMetadata>, Error> {
        let block = match group {
            [(_, first), .., (_, last)] => Block::read(&*self.source, first.start(), last.end()),
            _ => Ok(Block { source: &*self.source, start: 0, bytes: Bytes::new() }),
        };
        let block = block.map_err(|error| self.error(error.into()))?;
        let one = |&(index, span): &(u64, Span)| {
            read_numbered_metadata(&block, index, span, &self.options).map_err(|fault| self.error(fault))
        };
        group.iter().map(one).collect()
    }

    /// Calls `work` for several messages, in parallel, after reading what it needs of a remote file; the results are in order.
    pub(crate) fn read_of<T: Send>(
        &self,
        messages: &[u64],
        wanted: Wanted<'_>,
        work: impl Fn(&Message) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        if !self.source.is_remote() {
            return self.each_message(messages, work);
        }
        // All messages are found at once.
        if let Some(&last) = messages.iter().max() {
            self.message_span(last)?;
        }
        let mut results = Vec::with_capacity(messages.len());
        for group in messages.chunks(MAX_MESSAGES) {
            let prefetched = Arc::new(Prefetched::new(Arc::clone(&self.source)));
            // It shares the list of messages and the cache.
            let file = Self { source: Arc::clone(&prefetched) as _, ..self.clone() };
            file.prefetch_messages(&prefetched, group)?;
            let opened = file.each_message(group, |message| Ok(message.clone()))?;
            let mut rest = &opened[..];
            while !rest.is_empty() {
                let (part, after) = rest.split_at(wanted.count_within(rest, MAX_BYTES));
                wanted.prefetch(&prefetched, part)?;
                let one = |message: &Message| work(message);
                let run = || part.par_iter().map(one).collect::<Vec<_>>();
                for result in install(self.options.common.threads, run) {
                    results.push(result?);
                }
                prefetched.clear();
                rest = after;
            }
        }
        Ok(results)
    }

    /// The bytes of a message that are read when it is opened with others.
    pub(super) fn len_ahead(&self, span: Span) -> u64 {
        if self.source.is_remote() { span.len().min(SMALL) } else { span.len() }
    }

    /// A remote file with the frames around the objects of several messages in memory. `None` if they are not read together:
    /// then each message is opened, and reports its error.
    pub(super) fn with_prefetched(&self, messages: &[u64]) -> Option<Self> {
        if !self.source.is_remote() || messages.len() < 2 {
            return None;
        }
        let prefetched = Arc::new(Prefetched::new(Arc::clone(&self.source)));
        let file = Self { source: Arc::clone(&prefetched) as _, ..self.clone() };
        file.prefetch_messages(&prefetched, messages).ok()?;
        Some(file)
    }

    /// Reads the frames around the objects of several messages.
    fn prefetch_messages(&self, prefetched: &Prefetched, messages: &[u64]) -> Result<(), Error> {
        let spans: Vec<Span> =
            messages.iter().map(|&message| self.message_span(message)).collect::<Result<_, _>>()?;
        let head = |span: &Span| match span.len() {
            0..=SMALL => *span,
            _ => span.slice(0, REMOTE_BLOCK).unwrap_or(*span),
        };
        let read = || {
            prefetched.prefetch(&spans.iter().map(head).collect::<Vec<_>>())?;
            let mut tails = Vec::new();
            for span in spans.iter().filter(|span| span.len() > SMALL) {
                let preamble = prefetched.read_at(span.slice(0, PREAMBLE_LEN).unwrap_or(*span))?;
                let preamble = Preamble::parse(0, span.start(), &preamble);
                if preamble.is_ok_and(|preamble| has_footer(preamble.flags)) {
                    tails.extend(span.slice(span.len() - REMOTE_BLOCK, REMOTE_BLOCK));
                }
            }
            prefetched.prefetch(&tails)
        };
        read().map_err(|error| self.error(error.into()))
    }

    /// Calls `work` for several messages, in parallel; the results are in order.
    fn each_message<T: Send>(
        &self,
        messages: &[u64],
        work: impl Fn(&Message) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let one = |&index: &u64| self.message(index).and_then(|message| work(&message));
        let run = || messages.par_iter().with_min_len(4).map(one).collect::<Vec<_>>();
        install(self.options.common.threads, run).into_iter().collect()
    }
}

/// Messages that follow each other, in groups of at most [`SMALL_GROUP`] bytes.
fn groups(spans: &[(u64, Span)]) -> Vec<&[(u64, Span)]> {
    let mut groups = Vec::new();
    let mut rest = spans;
    while let Some((_, first)) = rest.first() {
        let mut end = first.end();
        let follows = |(_, span): &&(u64, Span)| {
            let is_near = span.start() >= end && span.end() - first.start() <= SMALL_GROUP;
            end = end.max(span.end());
            is_near
        };
        let count = 1 + rest.iter().skip(1).take_while(follows).count();
        let (group, after) = rest.split_at(count);
        groups.push(group);
        rest = after;
    }
    groups
}

/// A source of which a part is in memory.
#[derive(Debug)]
struct Block<'a> {
    source: &'a dyn ByteSource,
    start: u64,
    bytes: Bytes,
}

impl<'a> Block<'a> {
    fn read(source: &'a dyn ByteSource, start: u64, end: u64) -> Result<Self, SourceError> {
        let bytes = source.read_at(Span::between(start, end).unwrap_or(Span::empty(start)))?;
        Ok(Self { source, start, bytes })
    }
}

impl ByteSource for Block<'_> {
    fn name(&self) -> &Arc<str> {
        self.source.name()
    }

    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read_at(&self, span: Span) -> Result<Bytes, SourceError> {
        let inside = |at: u64| usize::try_from(at.checked_sub(self.start)?).ok();
        let range = inside(span.start()).zip(inside(span.end())).filter(|(_, end)| *end <= self.bytes.len());
        range.map_or_else(|| self.source.read_at(span), |(start, end)| Ok(self.bytes.slice(start..end)))
    }
}

fn has_footer(flags: MessageFlags) -> bool {
    let footers = [MessageFlags::FOOTER_INDEX, MessageFlags::FOOTER_METADATA, MessageFlags::FOOTER_HASHES];
    footers.into_iter().any(|flag| flags.contains(flag))
}

impl Wanted<'_> {
    /// The number of messages, at least one, whose objects have at most `bytes` bytes.
    fn count_within(self, messages: &[Message], bytes: u64) -> usize {
        let Self::Object(object) = self else { return messages.len() };
        let mut total = 0_u64;
        let fits = |message: &&Message| {
            total = total.saturating_add(message.object_span(object).map_or(0, Span::len));
            total <= bytes
        };
        messages.iter().take_while(fits).count().max(1)
    }

    /// Reads what the messages need.
    fn prefetch(self, prefetched: &Prefetched, messages: &[Message]) -> Result<(), Error> {
        let named = |error: ErrorKind| Error::new(Arc::clone(prefetched.name()), error);
        let spans = |object| messages.iter().filter_map(move |message| message.object_span(object));
        match self {
            Self::Metadata => Ok(()),
            Self::Object(object) => {
                let spans: Vec<Span> = spans(object).collect();
                prefetched.prefetch(&spans).map_err(|error| named(error.into()))
            }
            Self::Ranges(object, ranges) => {
                let ends = |span: Span| match span.len() {
                    0..=SMALL => [Some(span), None],
                    len => [span.slice(0, FRAME_HEADER_LEN), span.slice(len - REMOTE_BLOCK, REMOTE_BLOCK)],
                };
                let ends: Vec<Span> = spans(object).flat_map(ends).flatten().collect();
                prefetched.prefetch(&ends).map_err(|error| named(error.into()))?;
                let mut parts = Vec::new();
                for message in messages {
                    // An error is reported when the ranges are decoded.
                    if let Ok(object) = message.object(object) {
                        parts.extend(object.range_spans(ranges).unwrap_or_default());
                    }
                }
                prefetched.prefetch(&parts).map_err(|error| named(error.into()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EncodeOptions, encode_message};

    #[test]
    fn groups_are_short_and_in_order() {
        let span = |start, end| Span::between(start, end).unwrap();
        let spans: Vec<(u64, Span)> =
            [(0, 100), (100, 200), (SMALL_GROUP, 3 * SMALL_GROUP), (200, 300), (400, 500)]
                .into_iter()
                .zip(0..)
                .map(|((start, end), index)| (index, span(start, end)))
                .collect();
        let lens: Vec<usize> = groups(&spans).into_iter().map(<[_]>::len).collect();
        assert_eq!(lens, [2, 1, 2]);
    }

    /// Any order, repetitions and numbers beyond the end.
    #[test]
    fn metadata_of_messages_is_that_of_each() {
        let mut bytes = Vec::new();
        for step in 0..300_u64 {
            let extra = [
                ("step".to_owned(), step.into()),
                ("x".to_owned(), "y".repeat(step as usize * 7).as_str().into()),
            ];
            let metadata = GlobalMetadata { extra: extra.into(), ..GlobalMetadata::default() };
            bytes.extend(encode_message(&metadata, &[], &EncodeOptions::new()).unwrap());
        }
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        let file = File::open(file.path()).unwrap();
        let wanted: Vec<u64> = (0..300).chain([5, 299, 0, 7, 8]).collect();
        let found = file.metadata_of(&wanted).unwrap();
        for (index, metadata) in wanted.iter().zip(&found) {
            assert_eq!(metadata, file.message(*index).unwrap().metadata());
        }
        assert!(file.metadata_of(&[]).unwrap().is_empty());
        assert!(file.metadata_of(&[3, 300]).is_err());
        // A damaged message is named.
        let at = file.message_span(7).unwrap().start() as usize + 45;
        bytes[at] ^= 1;
        let damaged = File::from_bytes("damaged", bytes).unwrap();
        let error = damaged.metadata_of(&wanted).unwrap_err();
        assert!(error.to_string().contains("message 7"), "{error}");
    }
}
