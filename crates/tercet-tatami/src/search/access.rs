//! The access index: where in the inverted region a query finds its bytes, and their checksums.
//!
//! ```text
//! root     sizes │ per 1024 terms: first term, sizes │ per 4096 documents: minimum length, width │ checksums of blocks of 16 KiB
//! entries  per posting list: uvarint length, length of its skip table, occurrences of the term less its documents
//! lengths  per 4096 documents: their lengths less the minimum, packed
//! ```
//!
//! The footer has the checksum of the root. A segment without it is read as a whole.

mod write;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tercet_codec::ints;
use tercet_core::checksum::{Mismatch, crc32c};
use tercet_core::{CommonError, FieldReader, Malformed, Reason, Span};

use super::payload::Payload;
use super::rank::Lengths;
use super::segment::Segment;
use crate::block_codec::fault;
use crate::error::{Error, ErrorKind};
use crate::file::{File, Inner};
use crate::region::Region;
use crate::wire::cursor::Varints as _;
use crate::wire::footer::{AccessSection, Inverted};
use crate::wire::ids::{Kind, file_flags};
use crate::wire::page::HEADER_LEN;
pub(crate) use write::{AccessWriter, BlockSums, DictionaryIndex, LengthsWriter, ListLengths};

pub(crate) const REGION: Region = Region::Inverted { part: "access index" };

/// The version of the record.
pub(crate) const VERSION: u8 = 1;
/// Bytes per checksum.
pub(crate) const BLOCK_BYTES: u64 = 16 << 10;
/// Terms per group.
pub(crate) const GROUP_TERMS: u64 = 1024;
/// Documents per block of lengths.
pub(crate) const LENGTHS: usize = 4096;

/// An open access index.
#[derive(Debug)]
pub(crate) struct AccessIndex {
    pub(crate) documents: u64,
    pub(crate) total_length: u64,
    pub(crate) terms: u64,
    pub(crate) frames_start: u64,
    pub(crate) groups: Vec<TermGroup>,
    /// The minimum length, the width and the offset in `rest` of each block of lengths.
    pub(crate) lengths: Vec<LengthBlock>,
    /// Entries of the lists and lengths of the documents.
    rest: Payload,
    lists: u32,
    block_bytes: u64,
    sums: [Bytes; 3],
}

/// Terms that follow each other, and their lists.
#[derive(Debug)]
pub(crate) struct TermGroup {
    pub(crate) first_term: Bytes,
    /// The offset and length of its part of the index of the term dictionary.
    pub(crate) index: (u64, u64),
    first_list: u32,
    lists: u32,
    postings_start: u64,
    skips_start: u64,
    entries: (u64, u64),
    places: OnceLock<Box<[PostingLocation]>>,
}

/// Where a posting list is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PostingLocation {
    /// Offset and length in the postings.
    pub(crate) start: u64,
    pub(crate) len: u64,
    /// Offset and length in the skip tables.
    pub(crate) skips: u64,
    pub(crate) skips_len: u64,
    /// The occurrences of the term less its documents.
    pub(crate) surplus: u64,
}

/// A block of document lengths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LengthBlock {
    pub(crate) min: u32,
    width: u8,
    offset: u64,
    len: u64,
}

impl AccessIndex {
    /// Opens the access index of a segment; `None` without one, or if it is that of another inverted region: other programs keep
    /// sections that they do not know.
    pub(crate) fn open(inner: &Inner, inverted: &Inverted) -> Result<Option<Self>, ErrorKind> {
        let Some(section) = &inner.footer.access else { return Ok(None) };
        let start = section.offset.saturating_add(HEADER_LEN);
        let span = inner.body_span(REGION, start, section.length)?;
        if section.root_length > section.length {
            let reason = Reason::OutOfRange {
                found: section.root_length,
                allowed: "at most the length of the record",
            };
            return Err(fault(REGION, "root_length", start, 0, reason));
        }
        let root_span = inner.body_span(REGION, start, section.root_length)?;
        tercet_core::limits::check_limit(
            "the access index",
            section.root_length,
            inner.options.common.limits.metadata_bytes,
        )?;
        let root = inner.source.read_at(root_span)?;
        if inner.options.common.verify {
            Mismatch::check_crc32c(section.root_crc, crc32c(&root))
                .map_err(|mismatch| CommonError::Checksum { region: REGION, span: root_span, mismatch })?;
        }
        let rest = Span::between(root_span.end(), span.end()).unwrap_or(Span::empty(span.end()));
        Self::parse(inner, inverted, root_span.start(), &root, rest)
    }

    fn parse(
        inner: &Inner,
        inverted: &Inverted,
        start: u64,
        root: &Bytes,
        rest: Span,
    ) -> Result<Option<Self>, ErrorKind> {
        let mut fields = FieldReader::new(REGION, start, root);
        let version = fields.byte("version")?;
        if version != VERSION {
            // Later versions are other records.
            return Ok(None);
        }
        let block_bytes = fields.uvarint("block_bytes")?;
        if !block_bytes.is_power_of_two() || !(1 << 10..=1 << 24).contains(&block_bytes) {
            let reason =
                Reason::OutOfRange { found: block_bytes, allowed: "a power of two, 1 KiB to 16 MiB" };
            return Err(fields.fault("block_bytes", 1, reason).into());
        }
        let mut parts = [(0, 0); 3];
        for part in &mut parts {
            *part = (fields.uvarint("part_offset")?, fields.uvarint("part_length")?);
        }
        let described = [
            (inverted.term_dict_offset, inverted.term_dict_length),
            (inverted.postings_offset, inverted.postings_length),
            (inverted.skips_offset, inverted.skips_length),
        ];
        let terms = fields.uvarint("terms")?;
        let documents = fields.uvarint("documents")?;
        if parts != described || (terms, documents) != (inverted.num_terms, inverted.num_docs) {
            return Ok(None);
        }
        let total_length = fields.uvarint("total_length")?;
        let index_start = fields.uvarint("index_start")?;
        let frames_start = fields.uvarint("frames_start")?;
        let groups = groups(&mut fields, root, index_start)?;
        let lists = groups.last().map_or(0, |group| group.first_list.saturating_add(group.lists));
        let entries_end = groups.last().map_or(0, |group| group.entries.0.saturating_add(group.entries.1));
        let lengths = lengths(&mut fields, documents, entries_end)?;
        let sums = |fields: &mut FieldReader<'_, Region>, len: u64| {
            let count = len.div_ceil(block_bytes).saturating_mul(4);
            Ok::<_, Malformed<Region>>(root.slice_ref(fields.take("checksums", count)?))
        };
        let sums = [
            sums(&mut fields, parts[0].1)?,
            sums(&mut fields, parts[1].1)?,
            sums(&mut fields, parts[2].1)?,
            sums(&mut fields, rest.len())?,
        ];
        let [dictionary, postings, skips, of_rest] = sums;
        fields.finish()?;
        let rest = Payload::in_blocks(
            REGION,
            rest,
            Arc::clone(&inner.source),
            block_bytes,
            inner.options.common.verify.then_some(of_rest),
        );
        Ok(Some(Self {
            documents,
            total_length,
            terms,
            frames_start,
            groups,
            lengths,
            rest,
            lists,
            block_bytes,
            sums: [dictionary, postings, skips],
        }))
    }

    /// The payload of the term dictionary (0), the postings (1) or the skip tables (2), read in blocks.
    pub(crate) fn part(
        &self,
        inner: &Inner,
        number: usize,
        (name, offset, len): (&'static str, u64, u64),
    ) -> Result<Payload, ErrorKind> {
        let region = Region::Inverted { part: name };
        let span = inner.body_span(region, offset.saturating_add(HEADER_LEN), len)?;
        let sums = inner.options.common.verify.then(|| self.sums[number].clone());
        Ok(Payload::in_blocks(region, span, Arc::clone(&inner.source), self.block_bytes, sums))
    }

    /// Where a posting list is.
    pub(crate) fn place(&self, list: u32) -> Result<PostingLocation, ErrorKind> {
        if list >= self.lists {
            let reason = Reason::OutOfRange { found: list.into(), allowed: "the number of a posting list" };
            return Err(fault(REGION, "list_index", self.rest.span().start(), 0, reason));
        }
        let at = self.groups.partition_point(|group| group.first_list <= list).saturating_sub(1);
        let group = &self.groups[at];
        let places = if let Some(places) = group.places.get() {
            places
        } else {
            let places = self.places(group)?;
            group.places.get_or_init(|| places)
        };
        Ok(places.get((list - group.first_list) as usize).copied().unwrap_or_default())
    }

    fn places(&self, group: &TermGroup) -> Result<Box<[PostingLocation]>, ErrorKind> {
        let bytes = self.rest.read(group.entries.0, group.entries.1)?;
        let mut fields = FieldReader::new(REGION, self.rest.span().start() + group.entries.0, &bytes);
        let mut out = Vec::with_capacity((group.lists as usize).min(bytes.len()));
        let (mut start, mut skips) = (group.postings_start, group.skips_start);
        for _ in 0..group.lists {
            let len = fields.uvarint("list_length")?;
            let skips_len = fields.uvarint("skips_length")?;
            let surplus = fields.uvarint("surplus")?;
            start = start.saturating_add(tercet_codec::varint::len(len) as u64);
            out.push(PostingLocation { start, len, skips, skips_len, surplus });
            start = start.saturating_add(len);
            skips = skips.saturating_add(skips_len);
        }
        fields.finish()?;
        Ok(out.into())
    }

    /// Blocks of lengths to read together with one: of a remote file, all if they are not long, and some neighbours otherwise.
    pub(crate) fn blocks_with(&self, block: usize) -> std::ops::Range<usize> {
        if !self.rest.is_remote() {
            return block..block + 1;
        }
        let bytes: u64 = self.lengths.iter().map(|block| block.len).sum();
        if bytes <= MAX_LENGTHS_AT_ONCE {
            return 0..self.lengths.len();
        }
        let first = block / LENGTH_WINDOW * LENGTH_WINDOW;
        first..self.lengths.len().min(first + LENGTH_WINDOW)
    }

    /// The lengths of the documents of some blocks.
    pub(crate) fn lengths_of(&self, blocks: std::ops::Range<usize>) -> Result<Vec<Vec<u32>>, ErrorKind> {
        let some = self.lengths.get(blocks.clone()).unwrap_or_default();
        let (Some(first), Some(last)) = (some.first(), some.last()) else { return Ok(Vec::new()) };
        let bytes = self.rest.read(first.offset, last.offset + last.len - first.offset)?;
        let mut out = Vec::with_capacity(some.len());
        for (block, entry) in blocks.zip(some) {
            let count = self.documents_of(block);
            let mut lengths: Vec<u32> = Vec::new();
            if entry.width == 0 {
                lengths.resize(count, 0);
            } else {
                let at = usize::try_from(entry.offset - first.offset).unwrap_or(usize::MAX);
                let unpacked = ints::unpack_bits(entry.width.into(), &bytes[at..], count, &mut lengths);
                unpacked.map_err(|error| ErrorKind::Codec {
                    region: REGION,
                    span: self.rest.span(),
                    error: Box::new(error),
                })?;
            }
            for length in &mut lengths {
                *length = length.saturating_add(entry.min);
            }
            out.push(lengths);
        }
        Ok(out)
    }

    fn documents_of(&self, block: usize) -> usize {
        let before = (block * LENGTHS) as u64;
        usize::try_from(self.documents.saturating_sub(before)).unwrap_or(0).min(LENGTHS)
    }
}

/// Verifies the access index of a file: its checksums, and with `deep` that it is what a writer makes of the inverted region.
pub(crate) fn check(file: &File, section: &AccessSection, deep: bool) -> Result<(), ErrorKind> {
    let inner = file.inner();
    let record = inner.record(REGION, section.offset, Kind::Index)?;
    if record.span.len() != section.length {
        let because = "the length in the footer";
        let reason = Reason::Mismatch { found: record.span.len(), expected: section.length, because };
        return Err(fault(REGION, "stored_size", section.offset + 12, 4, reason));
    }
    let Some(inverted) = &inner.footer.inverted else { return Ok(()) };
    let Some(access) = AccessIndex::open(inner, inverted)? else { return Ok(()) };
    access.rest.read(0, access.rest.span().len())?;
    let parts = [
        ("term dictionary", inverted.term_dict_offset, inverted.term_dict_length),
        ("postings", inverted.postings_offset, inverted.postings_length),
        ("skip tables", inverted.skips_offset, inverted.skips_length),
    ];
    let mut sums: [Vec<u8>; 3] = Default::default();
    for (number, part) in parts.into_iter().enumerate() {
        let payload = access.part(inner, number, part)?;
        let mut all = BlockSums::default();
        all.update(&payload.read(0, payload.span().len())?);
        sums[number] = all.finish();
    }
    if !deep || !inner.header.has(file_flags::ROLE_SEARCH_SEG) {
        return Ok(());
    }
    let whole = Segment::open(file, false)?;
    let mut writer = AccessWriter::default();
    for block in 0.. {
        let Some(terms) = whole.terms.terms(block)? else { break };
        for (term, entry) in terms {
            let lengths = whole.place(entry)?.map(|place| -> Result<_, ErrorKind> {
                let surplus = whole.occurrences(entry)?.saturating_sub(entry.documents().into());
                Ok(ListLengths { payload: place.len, skips: place.skips_len, surplus })
            });
            writer.term(&term, lengths.transpose()?);
        }
    }
    let mut lengths = LengthsWriter::default();
    for length in Lengths::read(file).map_err(Error::into_kind)?.all()? {
        lengths.push(length)?;
    }
    let (expected, root) = writer.finish(inverted, &whole.terms.dictionary_index()?, lengths, &sums)?;
    if expected != record.stored || root as u64 != section.root_length {
        let rule = "the access index agrees with the inverted region";
        return Err(fault(REGION, "root", record.span.start(), 0, Reason::Unexpected { rule }));
    }
    Ok(())
}

/// Bytes of lengths that are read at once from a remote file.
const MAX_LENGTHS_AT_ONCE: u64 = 640 << 10;
/// Blocks of lengths that are read at once if all together are longer.
const LENGTH_WINDOW: usize = 32;

fn groups(
    fields: &mut FieldReader<'_, Region>,
    root: &Bytes,
    index_start: u64,
) -> Result<Vec<TermGroup>, Malformed<Region>> {
    let count = fields.count("group_count", 6)?;
    let mut out: Vec<TermGroup> = Vec::with_capacity(count);
    let (mut index, mut list, mut entries) = (index_start, 0u32, 0u64);
    let (mut postings, mut skips) = (0u64, 0u64);
    for _ in 0..count {
        let first_term = root.slice_ref(fields.bytes("first_term")?);
        if out.last().is_some_and(|last| last.first_term >= first_term) {
            let reason = Reason::Unexpected { rule: "the terms of the dictionary are in order" };
            return Err(fields.fault("first_term", first_term.len() as u64, reason));
        }
        let index_len = fields.uvarint("index_length")?;
        let lists = fields.uvarint("list_count")?;
        let postings_len = fields.uvarint("postings_length")?;
        let skips_len = fields.uvarint("skips_length")?;
        let entries_len = fields.uvarint("entries_length")?;
        // Each entry has three bytes or more.
        let Some(lists) = u32::try_from(lists).ok().filter(|lists| u64::from(*lists) <= entries_len / 3)
        else {
            let reason = Reason::OutOfRange { found: lists, allowed: "the number of entries" };
            return Err(fields.fault("list_count", 1, reason));
        };
        out.push(TermGroup {
            first_term,
            index: (index, index_len),
            first_list: list,
            lists,
            postings_start: postings,
            skips_start: skips,
            entries: (entries, entries_len),
            places: OnceLock::new(),
        });
        index = index.saturating_add(index_len);
        list = list.saturating_add(lists);
        postings = postings.saturating_add(postings_len);
        skips = skips.saturating_add(skips_len);
        entries = entries.saturating_add(entries_len);
    }
    // Both records start with the number of lists.
    let head = tercet_codec::varint::len(list.into()) as u64;
    for group in &mut out {
        group.postings_start = group.postings_start.saturating_add(head);
        group.skips_start = group.skips_start.saturating_add(head);
    }
    Ok(out)
}

fn lengths(
    fields: &mut FieldReader<'_, Region>,
    documents: u64,
    start: u64,
) -> Result<Vec<LengthBlock>, Malformed<Region>> {
    let count = fields.count("length_blocks", 2)?;
    let expected = documents.div_ceil(LENGTHS as u64);
    if count as u64 != expected {
        let because = "the documents of the segment";
        return Err(fields.fault(
            "length_blocks",
            1,
            Reason::Mismatch { found: count as u64, expected, because },
        ));
    }
    let mut out = Vec::with_capacity(count);
    let mut offset = start;
    for block in 0..count {
        let min = fields.uvarint("min_length")?;
        let width = fields.byte("width")?;
        let Some(min) = u32::try_from(min).ok().filter(|_| width <= 32) else {
            let reason = Reason::OutOfRange { found: min, allowed: "32 bits" };
            return Err(fields.fault("min_length", 1, reason));
        };
        let here = (documents - (block * LENGTHS) as u64).min(LENGTHS as u64);
        let len = (here * u64::from(width)).div_ceil(8);
        out.push(LengthBlock { min, width, offset, len });
        offset = offset.saturating_add(len);
    }
    Ok(out)
}
