//! The same object or range of many messages in one call.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use tercet_core::threads::install;
use tercet_core::{ByteSource as _, Span, Tensor};

use super::File;
use super::prefetch::Prefetched;
use crate::error::{Error, ErrorKind};
use crate::message::Message;
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

    /// The metadata of several messages, in parallel. Reads of a remote file are coalesced.
    pub fn metadata_of(&self, messages: &[u64]) -> Result<Vec<GlobalMetadata>, Error> {
        self.read_of(messages, Wanted::Metadata, |message| Ok(message.metadata().clone()))
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
