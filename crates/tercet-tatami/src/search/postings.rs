//! Posting lists and their skip tables.
//!
//! ```text
//! postings  uvarint lists │ per list: bytes payload (blocks of 128 documents)
//! skips     uvarint lists │ per list: uvarint documents, blocks │ per block: first, last, max frequency, offset, count
//! block     full: u8 width, 127 packed gaps; short: gaps by group varint │ frequencies (PFOR)
//! ```

use std::collections::HashMap;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use tercet_codec::ints::{self, Scheme};
use tercet_core::{FieldReader, Malformed, Reason, Span};

use super::access::{AccessIndex, PostingLocation};
use super::payload::Payload;
use super::positions::Positions;
use super::rank::WITH_NORMS;
use crate::block_codec::fault;
use crate::error::ErrorKind;
use crate::region::Region;
use crate::wire::cursor::Varints as _;

const POSTINGS: Region = Region::Inverted { part: "postings" };
const SKIPS: Region = Region::Inverted { part: "skip tables" };

/// Documents per block.
pub(crate) const BLOCK_DOCS: usize = 128;

/// All posting lists of a segment.
#[derive(Debug)]
pub(crate) struct Postings {
    payload: Payload,
    skips: Payload,
    directory: Directory,
    opened: RwLock<Opened>,
    pub(super) positions: Option<Positions>,
}

/// Where the lists are.
#[derive(Debug)]
enum Directory {
    Whole(Vec<ListOffsets>),
    Access(Arc<AccessIndex>),
}

/// Parsed lists.
#[derive(Debug, Default)]
struct Opened {
    lists: HashMap<u32, Arc<List>>,
    /// The bytes of all lists.
    bytes: usize,
}

/// Maximum bytes of cached lists.
const MAX_CACHED_BYTES: usize = 64 << 20;

/// Bytes of a parsed block in memory.
const BLOCK_BYTES: usize = 28;

/// A parsed posting list.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) skips: Box<[Skip]>,
    /// The maximum score of each block without idf, for each ranking that the skip table does not bound; 0 if unknown.
    pub(crate) max_scores: [Box<[AtomicU32]>; WITH_NORMS],
    pub(crate) max_frequency: u32,
    /// Its number; `None` for a term in a single document.
    pub(crate) number: Option<u32>,
    documents: u32,
    bytes: Bytes,
}

impl List {
    /// The list of a singleton term.
    pub(crate) fn single(document: u32, frequency: u32) -> Self {
        let skip = Skip { first: document, last: document, max_frequency: frequency, offset: 0, count: 1 };
        let skips = Box::new([skip]);
        Self {
            skips,
            max_scores: Default::default(),
            max_frequency: frequency,
            number: None,
            documents: 1,
            bytes: Bytes::new(),
        }
    }
}

/// Offsets of a list and its skip table.
#[derive(Clone, Copy, Debug)]
struct ListOffsets {
    start: u32,
    len: u32,
    /// Its entry in the skip tables.
    skips: u32,
    skips_len: u32,
}

/// One entry of a skip table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Skip {
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) max_frequency: u32,
    pub(crate) offset: u32,
    pub(crate) count: u32,
}

impl Postings {
    /// Parses the offsets of the lists.
    pub(crate) fn parse(
        span: Span,
        payload: Bytes,
        skips_span: Span,
        skips: Bytes,
    ) -> Result<Self, ErrorKind> {
        let mut fields = FieldReader::new(POSTINGS, span.start(), &payload);
        let mut tables = FieldReader::new(SKIPS, skips_span.start(), &skips);
        let count = fields.count("list_count", 1)?;
        let other = tables.count("list_count", 2)?;
        if count != other {
            let reason = Reason::Mismatch {
                found: other as u64,
                expected: count as u64,
                because: "the number of posting lists",
            };
            return Err(tables.fault("list_count", 1, reason).into());
        }
        let mut lists = Vec::with_capacity(count);
        for _ in 0..count {
            let len = fields.uvarint("list_length")?;
            let start = payload.len() - fields.remaining();
            fields.skip("list", len)?;
            let at = skips.len() - tables.remaining();
            skip_table_len(&mut tables, &skips)?;
            let table = skips.len() - tables.remaining() - at;
            // Record payloads are shorter than 4 GiB.
            let small = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
            let (start, skips, skips_len) = (small(start as u64), small(at as u64), small(table as u64));
            lists.push(ListOffsets { start, len: small(len), skips, skips_len });
        }
        fields.finish()?;
        tables.finish()?;
        let payload = Payload::whole(POSTINGS, span, payload);
        let skips = Payload::whole(SKIPS, skips_span, skips);
        let directory = Directory::Whole(lists);
        Ok(Self { payload, skips, directory, opened: RwLock::default(), positions: None })
    }

    /// Lists that are read one by one.
    pub(crate) fn with_access(payload: Payload, skips: Payload, access: Arc<AccessIndex>) -> Self {
        let directory = Directory::Access(access);
        Self { payload, skips, directory, opened: RwLock::default(), positions: None }
    }

    /// Where a list is.
    pub(crate) fn place(&self, list: u32) -> Result<PostingLocation, ErrorKind> {
        match &self.directory {
            Directory::Access(access) => access.place(list),
            Directory::Whole(lists) => {
                let Some(entry) = lists.get(list as usize) else {
                    let reason =
                        Reason::OutOfRange { found: list.into(), allowed: "the number of a posting list" };
                    return Err(fault(POSTINGS, "list_index", self.payload.span().start(), 0, reason));
                };
                Ok(PostingLocation {
                    start: entry.start.into(),
                    len: entry.len.into(),
                    skips: entry.skips.into(),
                    skips_len: entry.skips_len.into(),
                    surplus: 0,
                })
            }
        }
    }

    /// The occurrences of a term with this list and number of documents, if they are recorded.
    pub(crate) fn recorded_occurrences(&self, list: u32, documents: u32) -> Result<Option<u64>, ErrorKind> {
        match &self.directory {
            Directory::Access(access) => {
                Ok(Some(access.place(list)?.surplus.saturating_add(documents.into())))
            }
            Directory::Whole(_) => Ok(None),
        }
    }

    /// The skip table of a list, which must have `documents` documents below `limit`.
    fn skips(&self, place: &PostingLocation, documents: u32, limit: u64) -> Result<Vec<Skip>, ErrorKind> {
        let bytes = self.skips.read(place.skips, place.skips_len)?;
        let mut fields = FieldReader::new(SKIPS, self.skips.span().start() + place.skips, &bytes);
        let total = fields.uvarint("doc_count")?;
        if total != u64::from(documents) {
            let because = "the document frequency of the term";
            let reason = Reason::Mismatch { found: total, expected: documents.into(), because };
            return Err(fields.fault("doc_count", 1, reason).into());
        }
        let count = fields.count("block_count", 5)?;
        let mut out: Vec<Skip> = Vec::with_capacity(count);
        let mut sum = 0;
        for _ in 0..count {
            let mut next = |field| {
                let value = fields.uvarint(field)?;
                u32::try_from(value).map_err(|_| {
                    fields.fault(field, 1, Reason::OutOfRange { found: value, allowed: "32 bits" })
                })
            };
            let skip = Skip {
                first: next("first_doc")?,
                last: next("last_doc")?,
                max_frequency: next("max_freq")?,
                offset: next("offset")?,
                count: next("count")?,
            };
            let ordered = out.last().is_none_or(|last| last.last < skip.first)
                && skip.first <= skip.last
                && u64::from(skip.last) < limit
                && (1..=BLOCK_DOCS).contains(&(skip.count as usize))
                && u64::from(skip.offset) <= place.len;
            if !ordered {
                let rule = "the blocks of a list are in order, within it and within the documents";
                return Err(fields.fault("block", 5, Reason::Unexpected { rule }).into());
            }
            sum += u64::from(skip.count);
            out.push(skip);
        }
        if sum != total {
            let reason =
                Reason::Mismatch { found: sum, expected: total, because: "the documents of the list" };
            return Err(fields.fault("count", 1, reason).into());
        }
        fields.finish()?;
        Ok(out)
    }

    /// A list with `documents` documents below `limit`. Parsed lists are cached.
    pub(crate) fn open(&self, list: u32, documents: u32, limit: u64) -> Result<Arc<List>, ErrorKind> {
        let known = self.opened.read().unwrap_or_else(PoisonError::into_inner).lists.get(&list).cloned();
        if let Some(known) = known.filter(|known| known.documents == documents) {
            return Ok(known);
        }
        let place = self.place(list)?;
        let skips = self.skips(&place, documents, limit)?;
        let max_scores = std::array::from_fn(|_| skips.iter().map(|_| AtomicU32::new(0)).collect());
        let max_frequency = skips.iter().map(|skip| skip.max_frequency).max().unwrap_or(0);
        let bytes = self.payload.read(place.start, place.len)?;
        let number = Some(list);
        let new = List { skips: skips.into(), max_scores, max_frequency, number, documents, bytes };
        let new = Arc::new(new);
        let mut opened = self.opened.write().unwrap_or_else(PoisonError::into_inner);
        if opened.bytes >= MAX_CACHED_BYTES {
            *opened = Opened::default();
        }
        // Lists of a payload in memory are parts of it.
        let own = if matches!(self.directory, Directory::Whole(_)) { 0 } else { new.bytes.len() };
        opened.bytes += new.skips.len() * BLOCK_BYTES + own;
        opened.lists.insert(list, Arc::clone(&new));
        Ok(new)
    }

    fn corrupt_block(&self, error: tercet_codec::CodecError) -> ErrorKind {
        ErrorKind::Codec { region: POSTINGS, span: self.payload.span(), error: Box::new(error) }
    }

    fn skip_mismatch(&self) -> ErrorKind {
        let rule = "a block agrees with its skip table entry";
        fault(POSTINGS, "block", self.payload.span().start(), 0, Reason::Unexpected { rule })
    }

    /// Decodes the documents of a block and returns the position of its frequencies.
    pub(crate) fn documents(
        &self,
        list: &List,
        skip: &Skip,
        gaps: &mut Vec<u32>,
        out: &mut [u32; BLOCK_DOCS],
    ) -> Result<usize, ErrorKind> {
        let bytes = &list.bytes[skip.offset as usize..];
        let count = skip.count as usize;
        out[0] = skip.first;
        let mut used = 0;
        if count > 1 {
            gaps.clear();
            used = self.gaps(bytes, count, gaps)?;
            let (mut document, mut sum, mut grows) = (skip.first, u64::from(skip.first), true);
            for (slot, gap) in out[1..count].iter_mut().zip(&*gaps) {
                grows &= *gap > 0;
                sum += u64::from(*gap);
                document = document.wrapping_add(*gap);
                *slot = document;
            }
            if !grows || sum != u64::from(skip.last) {
                return Err(self.skip_mismatch());
            }
        } else if skip.first != skip.last {
            return Err(self.skip_mismatch());
        }
        Ok(skip.offset as usize + used)
    }

    fn gaps(&self, bytes: &[u8], count: usize, gaps: &mut Vec<u32>) -> Result<usize, ErrorKind> {
        if count < BLOCK_DOCS {
            return ints::decode_prefix(Scheme::GroupVarint, bytes, count - 1, gaps)
                .map_err(|error| self.corrupt_block(error));
        }
        let Some((width, packed)) = bytes.split_first() else {
            let reason = Reason::Truncated { need: 1, have: 0 };
            return Err(fault(POSTINGS, "width", self.payload.span().start(), 0, reason));
        };
        if *width > 32 {
            let reason = Reason::OutOfRange { found: (*width).into(), allowed: "at most 32 bits" };
            return Err(fault(POSTINGS, "width", self.payload.span().start(), 0, reason));
        }
        let used = ints::unpack_bits(u32::from(*width), packed, count - 1, gaps);
        Ok(1 + used.map_err(|error| self.corrupt_block(error))?)
    }

    /// Decodes the frequencies of a block at this position of the list.
    pub(crate) fn frequencies(
        &self,
        list: &List,
        skip: &Skip,
        at: usize,
        values: &mut Vec<u32>,
        out: &mut [u32; BLOCK_DOCS],
    ) -> Result<(), ErrorKind> {
        let bytes = list.bytes.get(at..).unwrap_or_default();
        let count = skip.count as usize;
        values.clear();
        ints::decode_prefix(Scheme::Pfor, bytes, count, values).map_err(|error| self.corrupt_block(error))?;
        let (mut least, mut most) = (u32::MAX, 0);
        for (slot, value) in out.iter_mut().zip(&*values) {
            *slot = *value;
            least = least.min(*value);
            most = most.max(*value);
        }
        if least == 0 || most > skip.max_frequency {
            return Err(self.skip_mismatch());
        }
        Ok(())
    }
}

/// Skips the table of one list in `skips`.
fn skip_table_len(fields: &mut FieldReader<'_, Region>, skips: &[u8]) -> Result<(), Malformed<Region>> {
    fields.uvarint("doc_count")?;
    let blocks = fields.count("block_count", 5)?;
    let rest = &skips[skips.len() - fields.remaining()..];
    let Some(len) = varints_len(rest, 5 * blocks) else {
        let (need, have) = (rest.len() as u64 + 1, rest.len() as u64);
        return Err(fields.fault("block", have, Reason::Truncated { need, have }));
    };
    fields.skip("block", len as u64)
}

/// The length of this many varints, which end with a byte without continuation bit. Skip tables are decoded when a list
/// is opened: a segment has far more lists than a search needs.
pub(in crate::search) fn varints_len(bytes: &[u8], count: usize) -> Option<usize> {
    let (mut at, mut left) = (0, count);
    while let Some(word) = bytes[at..].first_chunk::<8>() {
        let ends = (!u64::from_le_bytes(*word) & 0x8080_8080_8080_8080).count_ones() as usize;
        if ends >= left {
            break;
        }
        left -= ends;
        at += 8;
    }
    while left > 0 {
        left -= usize::from(*bytes.get(at)? < 0x80);
        at += 1;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_varints_have_the_decoded_length() {
        let mut bytes = Vec::new();
        let mut ends = vec![0];
        for shift in 0..200u32 {
            crate::wire::cursor::put(1 << (shift * 7 % 64), &mut bytes);
            ends.push(bytes.len());
        }
        for (count, end) in ends.iter().enumerate() {
            assert_eq!(varints_len(&bytes, count), Some(*end));
            assert_eq!(varints_len(&bytes[..*end], count), Some(*end));
            let cut = end.saturating_sub(1);
            assert_eq!(varints_len(&bytes[..cut], count), (count == 0).then_some(0));
        }
    }
}
