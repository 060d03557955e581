//! The term dictionary.
//!
//! ```text
//! block tree   u8 2 │ uvarint block_size, terms, blocks, index_len │ index │ zstd frames of 64 terms each
//! flat         uvarint terms │ term, entry │ term, entry …
//! ```

use std::cmp::Ordering;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use tercet_codec::bytes::zstd;
use tercet_core::limits::check_limit;
use tercet_core::{FieldReader, Malformed, Reason, Span};

use super::access::{AccessIndex, DictionaryIndex, GROUP_TERMS};
use super::payload::Payload;
use crate::block_codec::fault;
use crate::error::ErrorKind;
use crate::region::Region;
use crate::wire::cursor::Varints as _;

/// Terms per block.
pub(crate) const BLOCK_TERMS: u64 = 64;

/// The version of the block tree.
pub(crate) const VERSION: u8 = 2;

const REGION: Region = Region::Inverted { part: "term dictionary" };

/// The postings of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Singleton: one document, stored inline.
    Singleton { document: u32, frequency: u32 },
    /// A posting list.
    List { documents: u32, list: u32 },
}

impl Entry {
    /// The number of documents with the term.
    pub(crate) const fn documents(self) -> u32 {
        match self {
            Self::Singleton { .. } => 1,
            Self::List { documents, .. } => documents,
        }
    }
}

/// Terms and their entries.
pub(crate) type TermEntries = Vec<(Vec<u8>, Entry)>;

/// The term dictionary of a segment.
#[derive(Debug)]
pub(crate) struct Terms {
    payload: Payload,
    layout: DictionaryLayout,
    pub(crate) count: u64,
    chunk_bytes: u64,
}

#[derive(Debug)]
enum DictionaryLayout {
    Tree { groups: Vec<Group>, blocks_per_group: usize, frames_start: u64, held: AtomicU64 },
    Flat { entries: Vec<(Bytes, Entry)> },
}

/// Blocks that follow each other. Without an access index, all blocks are one group.
#[derive(Debug)]
struct Group {
    first: Bytes,
    /// The offset and length of its part of the index.
    index: (u64, u64),
    /// The number of its blocks.
    count: u64,
    blocks: OnceLock<Vec<Block>>,
}

#[derive(Debug)]
struct Block {
    first: Bytes,
    offset: u64,
    stored: u64,
    raw: u64,
    /// Its decoded terms, cached.
    terms: OnceLock<BlockTerms>,
}

/// The decoded terms of a block.
#[derive(Debug)]
struct BlockTerms {
    terms: Vec<u8>,
    entries: Vec<(u32, Entry)>,
}

/// Maximum bytes of cached decoded blocks.
const MAX_CACHED_BYTES: u64 = 64 << 20;

impl BlockTerms {
    fn push(&mut self, entry_term: &[u8], entry: Entry) {
        self.terms.extend_from_slice(entry_term);
        // Blocks are within the chunk limit.
        self.entries.push((u32::try_from(self.terms.len()).unwrap_or(u32::MAX), entry));
    }

    fn text(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.entries[before].0);
        &self.terms[start as usize..self.entries[index].0 as usize]
    }

    fn get(&self, term: &[u8]) -> Option<Entry> {
        let (mut low, mut high) = (0, self.entries.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.text(middle).cmp(term) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Some(self.entries[middle].1),
            }
        }
        None
    }

    fn bytes(&self) -> u64 {
        (self.terms.len() + self.entries.len() * size_of::<(u32, Entry)>()) as u64
    }
}

impl Terms {
    /// Parses the record: a block tree or the older flat form.
    pub(crate) fn parse(
        span: Span,
        payload: &Bytes,
        tree: bool,
        chunk_bytes: u64,
    ) -> Result<Self, ErrorKind> {
        let fields = FieldReader::new(REGION, span.start(), payload);
        let (layout, count) = if tree { tree_form(fields, payload)? } else { flat_form(fields, payload)? };
        Ok(Self { payload: Payload::whole(REGION, span, payload.clone()), layout, count, chunk_bytes })
    }

    /// A block tree that is read in parts.
    pub(crate) fn with_access(payload: Payload, access: &AccessIndex, chunk_bytes: u64) -> Self {
        let blocks_per_group = GROUP_TERMS / BLOCK_TERMS;
        let mut left = access.terms.div_ceil(BLOCK_TERMS);
        let mut groups = Vec::with_capacity(access.groups.len());
        for group in &access.groups {
            let count = left.min(blocks_per_group);
            left -= count;
            let (first, index) = (group.first_term.clone(), group.index);
            groups.push(Group { first, index, count, blocks: OnceLock::new() });
        }
        let layout = DictionaryLayout::Tree {
            groups,
            blocks_per_group: usize::try_from(blocks_per_group).unwrap_or(1),
            frames_start: access.frames_start,
            held: AtomicU64::new(0),
        };
        Self { payload, layout, count: access.terms, chunk_bytes }
    }

    /// The blocks of a group.
    fn blocks<'a>(&self, group: &'a Group) -> Result<&'a [Block], ErrorKind> {
        if let Some(blocks) = group.blocks.get() {
            return Ok(blocks);
        }
        let bytes = self.payload.read(group.index.0, group.index.1)?;
        let start = self.payload.span().start() + group.index.0;
        let mut index = FieldReader::new(REGION, start, &bytes);
        let blocks = index_entries(&mut index, &bytes, group.count)?;
        if blocks.first().is_none_or(|first| first.first != group.first) {
            let rule = "the index of the dictionary agrees with the access index";
            return Err(fault(REGION, "first_term", start, 0, Reason::Unexpected { rule }));
        }
        Ok(group.blocks.get_or_init(|| blocks))
    }

    /// The block that may contain a term.
    fn block_with(&self, groups: &'_ [Group], term: &[u8]) -> Result<Option<(usize, usize)>, ErrorKind> {
        let at = groups.partition_point(|group| group.first[..] <= *term);
        let Some(group) = at.checked_sub(1) else { return Ok(None) };
        let blocks = self.blocks(&groups[group])?;
        let block = blocks.partition_point(|block| block.first[..] <= *term);
        Ok(block.checked_sub(1).map(|block| (group, block)))
    }

    /// The entry of a term.
    pub(crate) fn get(&self, term: &[u8]) -> Result<Option<Entry>, ErrorKind> {
        match &self.layout {
            DictionaryLayout::Flat { entries } => {
                let found = entries.binary_search_by(|(entry_term, _)| entry_term[..].cmp(term));
                Ok(found.ok().map(|at| entries[at].1))
            }
            DictionaryLayout::Tree { groups, held, .. } => {
                let Some((group, block)) = self.block_with(groups, term)? else { return Ok(None) };
                let block = &self.blocks(&groups[group])?[block];
                if let Some(terms) = block.terms.get() {
                    return Ok(terms.get(term));
                }
                let mut terms = BlockTerms { terms: Vec::new(), entries: Vec::new() };
                let mut sorted = true;
                self.walk(block, &mut |entry_term, entry| {
                    let last = terms.entries.len().checked_sub(1).map(|last| terms.text(last));
                    sorted &= last.is_none_or(|last| last < entry_term);
                    terms.push(entry_term, entry);
                    true
                })?;
                if !sorted {
                    let rule = "the terms of the dictionary are in order";
                    let start = self.payload.span().start();
                    return Err(fault(REGION, "suffix", start, 0, Reason::Unexpected { rule }));
                }
                let found = terms.get(term);
                let bytes = terms.bytes();
                if held.fetch_add(bytes, Relaxed) + bytes > MAX_CACHED_BYTES
                    || block.terms.set(terms).is_err()
                {
                    held.fetch_sub(bytes, Relaxed);
                }
                Ok(found)
            }
        }
    }

    /// The index of a block tree, as its writer describes it.
    pub(crate) fn dictionary_index(&self) -> Result<DictionaryIndex, ErrorKind> {
        let mut out = DictionaryIndex::default();
        let DictionaryLayout::Tree { groups, frames_start, .. } = &self.layout else { return Ok(out) };
        let mut all = Vec::new();
        for group in groups {
            all.extend(self.blocks(group)?.iter().map(Block::index_len));
        }
        let per_group = usize::try_from(GROUP_TERMS / BLOCK_TERMS).unwrap_or(1);
        out.groups = all.chunks(per_group).map(|group| group.iter().sum()).collect();
        out.start = frames_start - all.iter().sum::<u64>().min(*frames_start);
        Ok(out)
    }

    /// Calls `each` with every term, in order.
    pub(crate) fn for_each(&self, each: &mut dyn FnMut(&[u8], Entry)) -> Result<(), ErrorKind> {
        match &self.layout {
            DictionaryLayout::Flat { entries } => {
                for (entry_term, entry) in entries {
                    each(entry_term, *entry);
                }
            }
            DictionaryLayout::Tree { groups, .. } => {
                for group in groups {
                    for block in self.blocks(group)? {
                        self.walk(block, &mut |entry_term, entry| {
                            each(entry_term, entry);
                            true
                        })?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Calls `each` with every term that starts with `prefix`, in order, until it returns false.
    pub(crate) fn with_prefix(
        &self,
        prefix: &[u8],
        each: &mut dyn FnMut(&[u8], Entry) -> bool,
    ) -> Result<(), ErrorKind> {
        // Terms before the prefix are passed; the first one after it ends the walk.
        let more = std::cell::Cell::new(true);
        let mut visit = |term: &[u8], entry| {
            more.set(if term.starts_with(prefix) { each(term, entry) } else { term < prefix });
            more.get()
        };
        match &self.layout {
            DictionaryLayout::Flat { entries } => {
                let start = entries.partition_point(|(term, _)| term[..] < *prefix);
                let _ = entries[start..].iter().all(|(term, entry)| visit(term, *entry));
            }
            DictionaryLayout::Tree { groups, .. } => {
                let (group, mut block) = self.block_with(groups, prefix)?.unwrap_or((0, 0));
                for group in groups.get(group..).unwrap_or_default() {
                    for block in &self.blocks(group)?[block..] {
                        self.walk(block, &mut visit)?;
                        if !more.get() {
                            return Ok(());
                        }
                    }
                    block = 0;
                }
            }
        }
        Ok(())
    }

    /// The terms of a block, in order; `None` after the last block.
    pub(crate) fn terms(&self, block: usize) -> Result<Option<TermEntries>, ErrorKind> {
        let mut out = Vec::new();
        match &self.layout {
            DictionaryLayout::Flat { entries } if block == 0 => {
                out.extend(entries.iter().map(|(entry_term, entry)| (entry_term.to_vec(), *entry)));
            }
            DictionaryLayout::Flat { .. } => return Ok(None),
            DictionaryLayout::Tree { groups, blocks_per_group, .. } => {
                let Some(group) = groups.get(block / blocks_per_group) else { return Ok(None) };
                let Some(block) = self.blocks(group)?.get(block % blocks_per_group) else { return Ok(None) };
                self.walk(block, &mut |entry_term, entry| {
                    out.push((entry_term.to_vec(), entry));
                    true
                })?;
            }
        }
        Ok(Some(out))
    }

    /// Decodes a block and visits its terms until `each` returns false.
    fn walk(&self, block: &Block, each: &mut dyn FnMut(&[u8], Entry) -> bool) -> Result<(), ErrorKind> {
        let DictionaryLayout::Tree { frames_start, .. } = &self.layout else { return Ok(()) };
        let frame = self.payload.read(frames_start.saturating_add(block.offset), block.stored)?;
        let mut body = vec![0; check_limit("a block of the term dictionary", block.raw, self.chunk_bytes)?];
        let span = self.payload.span();
        let codec = |error| ErrorKind::Codec { region: REGION, span, error: Box::new(error) };
        zstd::decode(&frame, &mut body).map_err(codec)?;
        let mut fields = FieldReader::new(REGION, span.start(), &body);
        let mut entry_term: Vec<u8> = Vec::new();
        while fields.remaining() > 0 {
            let common = fields.uvarint("common_prefix")?;
            let suffix = fields.bytes("suffix")?;
            let kept = usize::try_from(common).ok().filter(|kept| *kept <= entry_term.len());
            let Some(kept) = kept else {
                let reason =
                    Reason::OutOfRange { found: common, allowed: "at most the length of the previous term" };
                return Err(fields.fault("common_prefix", 1, reason).into());
            };
            entry_term.truncate(kept);
            entry_term.extend_from_slice(suffix);
            let entry = entry(&mut fields)?;
            if !each(&entry_term, entry) {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn entry(fields: &mut FieldReader<'_, Region>) -> Result<Entry, Malformed<Region>> {
    let small = |fields: &mut FieldReader<'_, Region>, field| {
        let value = fields.uvarint(field)?;
        u32::try_from(value).map_err(|_| {
            fields.fault(field, 1, Reason::OutOfRange { found: value, allowed: "a 32-bit number" })
        })
    };
    let documents = small(fields, "doc_freq")?;
    match fields.byte("entry_kind")? {
        1 => Ok(Entry::Singleton {
            document: small(fields, "document")?,
            frequency: small(fields, "frequency")?,
        }),
        0 => Ok(Entry::List { documents, list: small(fields, "list_index")? }),
        other => {
            let reason = Reason::OutOfRange { found: other.into(), allowed: "0 (list) or 1 (singleton)" };
            Err(fields.fault("entry_kind", 1, reason))
        }
    }
}

fn tree_form(
    mut fields: FieldReader<'_, Region>,
    payload: &Bytes,
) -> Result<(DictionaryLayout, u64), Malformed<Region>> {
    let version = fields.byte("version")?;
    if version != VERSION {
        return Err(fields.fault("version", 1, Reason::UnknownVersion { found: version.into(), known: "2" }));
    }
    fields.uvarint("block_size")?;
    let count = fields.uvarint("num_terms")?;
    let wanted = fields.uvarint("num_blocks")?;
    let index_len = fields.uvarint("index_length")?;
    let start = fields.position();
    let index_start = (payload.len() - fields.remaining()) as u64;
    let mut index = FieldReader::new(REGION, start, fields.take("index", index_len)?);
    let frames_start = (payload.len() - fields.remaining()) as u64;
    let blocks = index_entries(&mut index, payload, wanted)?;
    let group = Group {
        first: blocks.first().map_or(Bytes::new(), |block| block.first.clone()),
        index: (index_start, index_len),
        count: wanted,
        blocks: blocks.into(),
    };
    let (groups, held) = (vec![group], AtomicU64::new(0));
    Ok((DictionaryLayout::Tree { groups, blocks_per_group: usize::MAX, frames_start, held }, count))
}

/// The entries of the index; `bytes` contains them.
fn index_entries(
    index: &mut FieldReader<'_, Region>,
    bytes: &Bytes,
    wanted: u64,
) -> Result<Vec<Block>, Malformed<Region>> {
    let mut blocks: Vec<Block> = Vec::new();
    while index.remaining() > 0 {
        let first = bytes.slice_ref(index.bytes("first_term")?);
        if blocks.last().is_some_and(|last| last.first >= first) {
            let reason = Reason::Unexpected { rule: "the terms of the dictionary are in order" };
            return Err(index.fault("first_term", first.len() as u64, reason));
        }
        blocks.push(Block {
            first,
            offset: index.uvarint("block_offset")?,
            stored: index.uvarint("block_stored")?,
            raw: index.uvarint("block_raw")?,
            terms: OnceLock::new(),
        });
    }
    if blocks.len() as u64 != wanted {
        let because = "the declared number of blocks";
        let reason = Reason::Mismatch { found: blocks.len() as u64, expected: wanted, because };
        return Err(index.fault("index", 0, reason));
    }
    Ok(blocks)
}

impl Block {
    /// The length of its entry in the index.
    fn index_len(&self) -> u64 {
        let numbers = [self.first.len() as u64, self.offset, self.stored, self.raw];
        let varints: usize = numbers.into_iter().map(tercet_codec::varint::len).sum();
        (varints + self.first.len()) as u64
    }
}

fn flat_form(
    mut fields: FieldReader<'_, Region>,
    payload: &Bytes,
) -> Result<(DictionaryLayout, u64), Malformed<Region>> {
    let count = fields.count("num_terms", 4)?;
    let mut entries: Vec<(Bytes, Entry)> = Vec::with_capacity(count);
    for _ in 0..count {
        let entry_term = payload.slice_ref(fields.bytes("term")?);
        if entries.last().is_some_and(|(last, _)| *last >= entry_term) {
            let reason = Reason::Unexpected { rule: "the terms of the dictionary are in order" };
            return Err(fields.fault("term", entry_term.len() as u64, reason));
        }
        entries.push((entry_term, entry(&mut fields)?));
    }
    Ok((DictionaryLayout::Flat { entries }, count as u64))
}
