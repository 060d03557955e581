//! Posting lists and their skip tables.
//!
//! ```text
//! postings  uvarint lists │ per list: bytes payload (blocks of 128 documents)
//! skips     uvarint lists │ per list: uvarint documents, blocks │ per block: first, last, max frequency, offset, count
//! block     full: u8 width, 127 packed gaps; short: gaps by group varint │ frequencies (PFOR)
//! ```

use bytes::Bytes;
use tercet_codec::ints::{self, Scheme};
use tercet_core::{Fields, Malformed, Span, Why};

use crate::fault::Fault;
use crate::record::fault;
use crate::region::Region;
use crate::wire::cursor::Varints as _;

const POSTINGS: Region = Region::Inverted { part: "postings" };
const SKIPS: Region = Region::Inverted { part: "skip tables" };

/// The documents of a block.
pub(crate) const BLOCK_DOCS: usize = 128;

/// All posting lists of a segment.
#[derive(Debug)]
pub(crate) struct Postings {
    payload: Bytes,
    skips: Bytes,
    span: Span,
    skips_span: Span,
    lists: Vec<List>,
}

/// Where the parts of a list are.
#[derive(Clone, Copy, Debug)]
struct List {
    start: u32,
    len: u32,
    /// Its entry in the skip tables.
    skips: u32,
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
    /// Reads where the lists are.
    pub(crate) fn parse(span: Span, payload: Bytes, skips_span: Span, skips: Bytes) -> Result<Self, Fault> {
        let mut fields = Fields::new(POSTINGS, span.start(), &payload);
        let mut tables = Fields::new(SKIPS, skips_span.start(), &skips);
        let count = fields.count("list_count", 1)?;
        let other = tables.count("list_count", 2)?;
        if count != other {
            let why = Why::Disagrees {
                found: other as u64,
                expected: count as u64,
                because: "the number of posting lists",
            };
            return Err(tables.fault("list_count", 1, why).into());
        }
        let mut lists = Vec::with_capacity(count);
        for _ in 0..count {
            let len = fields.uvarint("list_length")?;
            let start = payload.len() - fields.remaining();
            fields.skip("list", len)?;
            let at = skips.len() - tables.remaining();
            pass_over(&mut tables)?;
            // Payloads of records have less than 2³² bytes.
            let small = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
            lists.push(List { start: small(start as u64), len: small(len), skips: small(at as u64) });
        }
        fields.finish()?;
        tables.finish()?;
        Ok(Self { payload, skips, span, skips_span, lists })
    }

    /// The blocks of a list, which must hold `documents` documents below `limit`.
    pub(crate) fn skips(&self, list: u32, documents: u32, limit: u64) -> Result<Vec<Skip>, Fault> {
        let Some(entry) = self.lists.get(list as usize) else {
            let why = Why::OutOfRange { found: list.into(), allowed: "the number of a posting list" };
            return Err(fault(POSTINGS, "list_index", self.span.start(), 0, why));
        };
        let start = self.skips_span.start() + u64::from(entry.skips);
        let mut fields = Fields::new(SKIPS, start, &self.skips[entry.skips as usize..]);
        let total = fields.uvarint("doc_count")?;
        if total != u64::from(documents) {
            let because = "the document frequency of the word";
            let why = Why::Disagrees { found: total, expected: documents.into(), because };
            return Err(fields.fault("doc_count", 1, why).into());
        }
        let count = fields.count("block_count", 5)?;
        let mut out: Vec<Skip> = Vec::with_capacity(count);
        let mut sum = 0;
        for _ in 0..count {
            let mut next = |field| {
                let value = fields.uvarint(field)?;
                u32::try_from(value)
                    .map_err(|_| fields.fault(field, 1, Why::OutOfRange { found: value, allowed: "32 bits" }))
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
                && skip.offset <= entry.len;
            if !ordered {
                let rule = "the blocks of a list are in order, within it and within the documents";
                return Err(fields.fault("block", 5, Why::Misplaced { rule }).into());
            }
            sum += u64::from(skip.count);
            out.push(skip);
        }
        if sum != total {
            let why = Why::Disagrees { found: sum, expected: total, because: "the documents of the list" };
            return Err(fields.fault("count", 1, why).into());
        }
        Ok(out)
    }

    /// Decodes the documents and frequencies of a block.
    pub(crate) fn block(
        &self,
        list: u32,
        skip: &Skip,
        documents: &mut Vec<u32>,
        frequencies: &mut Vec<u32>,
    ) -> Result<(), Fault> {
        let entry = self.lists[list as usize];
        let start = entry.start as usize;
        let bytes = &self.payload[start + skip.offset as usize..start + entry.len as usize];
        let broken = |error| Fault::Codec { region: POSTINGS, span: self.span, error: Box::new(error) };
        let count = skip.count as usize;
        documents.clear();
        frequencies.clear();
        let mut gaps: Vec<u32> = Vec::with_capacity(BLOCK_DOCS);
        let used = if count == BLOCK_DOCS {
            let Some((width, packed)) = bytes.split_first() else {
                let why = Why::Truncated { need: 1, have: 0 };
                return Err(fault(POSTINGS, "width", self.span.start(), 0, why));
            };
            let len = (usize::from(*width) * (count - 1)).div_ceil(8);
            let Some(packed) = packed.get(..len).filter(|_| *width <= 32) else {
                let why = Why::Truncated { need: len as u64, have: packed.len() as u64 };
                return Err(fault(POSTINGS, "gaps", self.span.start(), 0, why));
            };
            ints::unpack_bits(u32::from(*width), packed, count - 1, &mut gaps).map_err(broken)?;
            1 + len
        } else if count == 1 {
            0
        } else {
            ints::decode_prefix(Scheme::GroupVarint, bytes, count - 1, &mut gaps).map_err(broken)?
        };
        ints::decode_prefix(Scheme::Pfor, &bytes[used..], count, frequencies).map_err(broken)?;
        let mut document = skip.first;
        documents.push(document);
        let mut ordered = true;
        for gap in gaps {
            ordered &= gap > 0;
            document = document.wrapping_add(gap);
            documents.push(document);
        }
        let grows = documents.is_sorted() && ordered;
        let bounded = frequencies.iter().all(|frequency| (1..=skip.max_frequency).contains(frequency));
        if !grows || document != skip.last || !bounded {
            let rule = "a block holds what its skip table says";
            return Err(fault(POSTINGS, "block", self.span.start(), 0, Why::Misplaced { rule }));
        }
        Ok(())
    }
}

/// Passes over the table of one list.
fn pass_over(fields: &mut Fields<'_, Region>) -> Result<(), Malformed<Region>> {
    fields.uvarint("doc_count")?;
    let blocks = fields.count("block_count", 5)?;
    for _ in 0..5 * blocks {
        fields.uvarint("block")?;
    }
    Ok(())
}
