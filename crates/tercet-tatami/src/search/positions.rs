//! The positions of terms in documents, an optional record: phrases are found without reading texts.
//!
//! ```text
//! data     per posting list, per block of 128 documents: for each document the gaps between positions, as varints
//! entries  per posting list: uvarint blocks │ per block: uvarint bytes
//! singles  per term in a single document, in order: uvarint bytes, gaps; read by merges only
//! root     sizes │ per 64 posting lists: uvarint bytes of data, of entries │ checksums of blocks of 16 KiB
//! ```
//!
//! Positions count the terms of body, title, anchor text and URL. Fields are [`GAP`] apart, and so are the terms of an anchor text, which no
//! phrase matches.

use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use tercet_codec::varint;
use tercet_core::checksum::{Mismatch, crc32c};
use tercet_core::{CommonError, FieldReader, Reason};

use super::access::{BLOCK_BYTES, BlockSums};
use super::inverted::{Part, Piece};
use super::payload::Payload;
use super::postings::{BLOCK_DOCS, varints_len};
use super::query::Phrase;
use super::segment::Segment;
use crate::block_codec::fault;
use crate::error::ErrorKind;
use crate::file::{File, Inner};
use crate::region::Region;
use crate::wire::cursor::{Varints as _, put};
use crate::wire::footer::{AccessSection, Inverted};
use crate::wire::ids::Kind;
use crate::wire::page::HEADER_LEN;

const REGION: Region = Region::Inverted { part: "positions" };

/// The version of the record.
const VERSION: u8 = 1;
/// The distance between two fields of a document.
pub(super) const GAP: u32 = 1 << 14;
/// Posting lists per group.
const GROUP_LISTS: u32 = 64;

/// Open positions of a segment.
#[derive(Debug)]
pub(crate) struct Positions {
    data: Payload,
    entries: Payload,
    singles: Payload,
    /// The start of the data and of the entries of each group.
    groups: Vec<(u64, u64)>,
    lists: u32,
}

/// Where the blocks of a posting list are: their starts, and the end of the last one.
pub(super) type BlockStarts = Arc<[u64]>;

impl Positions {
    /// Opens the positions of a segment; `None` without them, or if they belong to another inverted region.
    pub(super) fn open(inner: &Inner, inverted: &Inverted) -> Result<Option<Self>, ErrorKind> {
        let Some(section) = &inner.footer.positions else { return Ok(None) };
        let start = section.offset.saturating_add(HEADER_LEN);
        let span = inner.body_span(REGION, start, section.length)?;
        let Some(rest) = section.length.checked_sub(section.root_length) else {
            let reason = Reason::OutOfRange {
                found: section.root_length,
                allowed: "at most the length of the record",
            };
            return Err(fault(REGION, "root_length", start, 0, reason));
        };
        tercet_core::limits::check_limit(
            "the positions",
            section.root_length,
            inner.options.common.limits.metadata_bytes,
        )?;
        let root_span = inner.body_span(REGION, span.start() + rest, section.root_length)?;
        let root = inner.source.read_at(root_span)?;
        if inner.options.common.verify {
            Mismatch::check_crc32c(section.root_crc, crc32c(&root))
                .map_err(|mismatch| CommonError::Checksum { region: REGION, span: root_span, mismatch })?;
        }
        let mut fields = FieldReader::new(REGION, root_span.start(), &root);
        let version = fields.byte("version")?;
        let block_bytes = fields.uvarint("block_bytes")?;
        let of = [fields.uvarint("postings_offset")?, fields.uvarint("postings_length")?];
        if version != VERSION || of != [inverted.postings_offset, inverted.postings_length] {
            return Ok(None);
        }
        if block_bytes != BLOCK_BYTES {
            let reason = Reason::OutOfRange { found: block_bytes, allowed: "16384" };
            return Err(fields.fault("block_bytes", 1, reason).into());
        }
        let lists = fields.uvarint("list_count")?;
        let data = fields.uvarint("data_length")?;
        let entries = fields.uvarint("entries_length")?;
        let count = fields.count("group_count", 2)?;
        let lists = u32::try_from(lists).ok().filter(|lists| lists.div_ceil(GROUP_LISTS) as usize == count);
        let singles = rest.checked_sub(data).and_then(|left| left.checked_sub(entries));
        let (Some(lists), Some(singles)) = (lists, singles) else {
            let reason = Reason::OutOfRange { found: data, allowed: "the length of the record" };
            return Err(fields.fault("data_length", 1, reason).into());
        };
        let mut groups = Vec::with_capacity(count);
        let (mut at, mut entry) = (0u64, 0u64);
        for _ in 0..count {
            groups.push((at, entry));
            at = at.saturating_add(fields.uvarint("group_data")?);
            entry = entry.saturating_add(fields.uvarint("group_entries")?);
        }
        let lengths = [data, entries, singles];
        let sums_len: u64 = lengths.iter().map(|len| len.div_ceil(BLOCK_BYTES) * 4).sum();
        if fields.remaining() as u64 != sums_len || (at, entry) != (data, entries) {
            let because = "the length of the record";
            let reason = Reason::Mismatch { found: fields.remaining() as u64, expected: sums_len, because };
            return Err(fields.fault("checksums", 1, reason).into());
        }
        let mut sums = root.slice(root.len() - fields.remaining()..);
        let mut from = start;
        let mut part = |len: u64| -> Result<Payload, ErrorKind> {
            let span = inner.body_span(REGION, from, len)?;
            from += len;
            let own = sums.split_to(usize::try_from(len.div_ceil(BLOCK_BYTES) * 4).unwrap_or(0));
            let own = inner.options.common.verify.then_some(own);
            Ok(Payload::in_blocks(REGION, span, Arc::clone(&inner.source), BLOCK_BYTES, own))
        };
        let (data, entries, singles) = (part(data)?, part(entries)?, part(singles)?);
        Ok(Some(Self { data, entries, singles, groups, lists }))
    }

    /// Where the blocks of a list are, which has this many.
    pub(super) fn starts(&self, list: u32, blocks: usize) -> Result<BlockStarts, ErrorKind> {
        let group = (list / GROUP_LISTS) as usize;
        let Some((data, entries)) = self.groups.get(group).copied().filter(|_| list < self.lists) else {
            let reason = Reason::OutOfRange { found: list.into(), allowed: "the number of a posting list" };
            return Err(self.fault("list", reason));
        };
        let end = self.groups.get(group + 1).map_or(self.entries.span().len(), |next| next.1);
        let bytes = self.entries.read(entries, end.saturating_sub(entries))?;
        let mut fields = FieldReader::new(REGION, self.entries.span().start() + entries, &bytes);
        let mut at = data;
        for number in list / GROUP_LISTS * GROUP_LISTS..=list {
            let count = fields.count("block_count", 1)?;
            if number == list && count != blocks {
                let because = "the blocks of the posting list";
                let reason = Reason::Mismatch { found: count as u64, expected: blocks as u64, because };
                return Err(fields.fault("block_count", 1, reason).into());
            }
            let mut starts = Vec::with_capacity(if number == list { count + 1 } else { 0 });
            for _ in 0..count {
                if number == list {
                    starts.push(at);
                }
                at = at.saturating_add(fields.uvarint("block_length")?);
            }
            if number == list {
                starts.push(at);
                return Ok(starts.into());
            }
        }
        Ok(Arc::new([]))
    }

    /// The bytes of a block.
    pub(super) fn block(&self, starts: &BlockStarts, block: usize) -> Result<Bytes, ErrorKind> {
        match starts.get(block..block + 2) {
            Some([start, end]) => self.data.read(*start, end.saturating_sub(*start)),
            _ => Err(self.disagrees()),
        }
    }

    /// The bytes of a document after `before` positions of its block, for `count` positions.
    pub(super) fn slice<'b>(&self, block: &'b [u8], before: u64, count: u32) -> Result<&'b [u8], ErrorKind> {
        let skip = |bytes: &[u8], count: u64| varints_len(bytes, usize::try_from(count).ok()?);
        let start = skip(block, before).ok_or_else(|| self.disagrees())?;
        let here = &block[start..];
        let len = skip(here, count.into()).ok_or_else(|| self.disagrees())?;
        Ok(&here[..len])
    }

    /// Decodes gaps.
    pub(super) fn decode(&self, mut bytes: &[u8], out: &mut Vec<u32>) -> Result<(), ErrorKind> {
        out.clear();
        let mut position = 0u32;
        while !bytes.is_empty() {
            let gap = varint::get(bytes).ok().and_then(|(gap, used)| Some((u32::try_from(gap).ok()?, used)));
            let (gap, used) = gap.ok_or_else(|| self.disagrees())?;
            position = position.saturating_add(gap);
            out.push(position);
            bytes = &bytes[used..];
        }
        Ok(())
    }

    fn disagrees(&self) -> ErrorKind {
        self.fault(
            "block",
            Reason::Unexpected { rule: "a block agrees with the frequencies of its documents" },
        )
    }

    fn fault(&self, field: &'static str, reason: Reason) -> ErrorKind {
        fault(REGION, field, self.data.span().start(), 0, reason)
    }

    /// The positions of terms in single documents, in the order of the terms.
    pub(super) fn singles(&self) -> Singles<'_> {
        Singles { positions: self, at: 0, window: Bytes::new() }
    }
}

/// Reads the positions of terms in single documents one after another.
pub(super) struct Singles<'a> {
    positions: &'a Positions,
    at: u64,
    window: Bytes,
}

impl Singles<'_> {
    /// Those of the next term.
    pub(super) fn next_gaps(&mut self) -> Result<Bytes, ErrorKind> {
        self.fill(varint::MAX_BYTES as u64)?;
        let (len, used) = varint::get(&self.window).map_err(|_| self.positions.disagrees())?;
        self.take(used)?;
        self.fill(len)?;
        let len = usize::try_from(len).map_err(|_| self.positions.disagrees())?;
        if len > self.window.len() {
            return Err(self.positions.disagrees());
        }
        let out = self.window.slice(..len);
        self.take(len)?;
        Ok(out)
    }

    /// Reads ahead until there are this many bytes, or the end is reached.
    fn fill(&mut self, len: u64) -> Result<(), ErrorKind> {
        if (self.window.len() as u64) < len {
            let left = self.positions.singles.span().len() - self.at;
            self.window = self.positions.singles.read(self.at, left.min(len.max(4 * BLOCK_BYTES)))?;
        }
        Ok(())
    }

    fn take(&mut self, len: usize) -> Result<(), ErrorKind> {
        if len > self.window.len() {
            return Err(self.positions.disagrees());
        }
        self.window = self.window.slice(len..);
        self.at += len as u64;
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.at == self.positions.singles.span().len()
    }
}

/// Whether terms at these positions are a phrase: in order, with at most [`Phrase::slop`] others between them.
pub(super) fn contain(positions: &[Vec<u32>], phrase: &Phrase) -> bool {
    let Some((first, rest)) = positions.split_first() else { return true };
    first.iter().any(|start| {
        let end = rest.iter().try_fold(*start, |before, found| {
            found.get(found.partition_point(|position| *position <= before)).copied()
        });
        end.is_some_and(|end| u64::from(end - start) <= rest.len() as u64 + u64::from(phrase.slop))
    })
}

/// Whether positions decide a phrase. Positions of the body and of other fields are not distinguished.
pub(super) fn decide(phrase: &Phrase) -> bool {
    let span = phrase.terms.len() as u64 + u64::from(phrase.slop);
    phrase.field != Some(super::query::DocField::Body) && span < u64::from(GAP)
}

/// Writes the positions while the inverted region is written.
#[derive(Debug)]
pub(crate) struct PositionsWriter {
    data: Summed,
    entries: Vec<u8>,
    singles: Summed,
    groups: Vec<(u64, u64)>,
    lists: u32,
    /// The open block.
    block: Vec<u8>,
    documents: usize,
    /// The closed blocks of the open list, and their lengths.
    stored: Vec<u8>,
    lengths: Vec<u64>,
}

impl PositionsWriter {
    pub(super) fn new(directory: Option<&Path>) -> Self {
        Self {
            data: Summed::new(directory),
            entries: Vec::new(),
            singles: Summed::new(directory),
            groups: Vec::new(),
            lists: 0,
            block: Vec::new(),
            documents: 0,
            stored: Vec::new(),
            lengths: Vec::new(),
        }
    }

    /// Adds the gaps of the next document of the term.
    pub(super) fn push(&mut self, gaps: &[u8]) {
        if self.documents == BLOCK_DOCS {
            self.end_block();
        }
        self.documents += 1;
        self.block.extend_from_slice(gaps);
    }

    fn end_block(&mut self) {
        self.lengths.push(self.block.len() as u64);
        self.stored.append(&mut self.block);
        self.documents = 0;
    }

    /// Ends the term, which has a posting list or a single document.
    pub(super) fn end(&mut self, is_list: bool) -> io::Result<()> {
        if !is_list {
            let mut front = Vec::new();
            put(self.block.len() as u64, &mut front);
            self.singles.push(&front)?;
            self.singles.push(&self.block)?;
            self.block.clear();
            self.documents = 0;
            return Ok(());
        }
        self.end_block();
        if self.lists.is_multiple_of(GROUP_LISTS) {
            self.groups.push((0, 0));
        }
        self.lists += 1;
        let before = self.entries.len();
        put(self.lengths.len() as u64, &mut self.entries);
        for len in self.lengths.drain(..) {
            put(len, &mut self.entries);
        }
        if let Some(group) = self.groups.last_mut() {
            group.0 += self.stored.len() as u64;
            group.1 += (self.entries.len() - before) as u64;
        }
        self.data.push(&self.stored)?;
        self.stored.clear();
        Ok(())
    }

    /// The record without its root.
    pub(super) fn finish(self) -> io::Result<WrittenPositions> {
        let mut entries = Summed::new(None);
        entries.push(&self.entries)?;
        let (lists, groups) = (self.lists, self.groups);
        Ok(WrittenPositions { parts: [self.data, entries, self.singles], lists, groups })
    }
}

/// Positions that wait for the offsets of the inverted region.
#[derive(Debug)]
pub(crate) struct WrittenPositions {
    /// Data, entries and singles.
    parts: [Summed; 3],
    lists: u32,
    groups: Vec<(u64, u64)>,
}

impl WrittenPositions {
    /// The record, and the length and the checksum of its root.
    pub(crate) fn into_record(self, inverted: &Inverted) -> io::Result<(Part, u64, u32)> {
        let mut root = vec![VERSION];
        let [data, entries, _] = &self.parts;
        let numbers = [
            BLOCK_BYTES,
            inverted.postings_offset,
            inverted.postings_length,
            self.lists.into(),
            data.piece.len(),
            entries.piece.len(),
            self.groups.len() as u64,
        ];
        let groups = self.groups.iter().flat_map(|(data, entries)| [*data, *entries]);
        for number in numbers.into_iter().chain(groups) {
            put(number, &mut root);
        }
        let mut pieces = Vec::with_capacity(4);
        for Summed { piece, sums } in self.parts {
            root.extend_from_slice(&sums.finish());
            pieces.push(piece);
        }
        let (len, crc) = (root.len() as u64, crc32c(&root));
        let mut tail = Piece::new(None);
        tail.push(&root)?;
        pieces.push(tail);
        Ok((Part::new(Vec::new(), pieces)?, len, crc))
    }
}

/// Spooled bytes with the checksums of their blocks.
#[derive(Debug)]
struct Summed {
    piece: Piece,
    sums: BlockSums,
}

impl Summed {
    fn new(directory: Option<&Path>) -> Self {
        Self { piece: Piece::new(directory), sums: BlockSums::default() }
    }

    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sums.update(bytes);
        self.piece.push(bytes)
    }
}

/// Verifies the positions of a file: their checksums, and with `deep` that every block has the positions of its documents, in order.
pub(crate) fn check(file: &File, section: &AccessSection, deep: bool) -> Result<(), ErrorKind> {
    let inner = file.inner();
    let record = inner.record(REGION, section.offset, Kind::Index)?;
    if record.span.len() != section.length {
        let because = "the length in the footer";
        let reason = Reason::Mismatch { found: record.span.len(), expected: section.length, because };
        return Err(fault(REGION, "stored_size", section.offset + 12, 4, reason));
    }
    let Some(inverted) = &inner.footer.inverted else { return Ok(()) };
    let Some(positions) = Positions::open(inner, inverted)? else { return Ok(()) };
    for part in [&positions.data, &positions.entries, &positions.singles] {
        part.read(0, part.span().len())?;
    }
    if !deep {
        return Ok(());
    }
    let segment = Segment::open(file, false)?;
    let mut singles = positions.singles();
    let mut decoded = Vec::new();
    for block in 0.. {
        let Some(terms) = segment.terms.terms(block)? else { break };
        for (_, entry) in terms {
            segment.each_position(entry, &positions, &mut singles, |_, frequency, gaps| {
                positions.decode(gaps, &mut decoded)?;
                let ascend = decoded.windows(2).all(|two| two[0] < two[1]);
                if decoded.len() as u64 != u64::from(frequency) || !ascend {
                    return Err(positions.disagrees());
                }
                Ok(())
            })?;
        }
    }
    if !singles.is_done() {
        return Err(positions.disagrees());
    }
    Ok(())
}
