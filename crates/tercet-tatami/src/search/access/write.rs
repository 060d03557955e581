//! Writer of the access index.

use tercet_codec::ints;
use tercet_core::checksum::crc32c;

use super::{BLOCK_BYTES, GROUP_TERMS, LENGTHS, VERSION};
use crate::error::ErrorKind;
use crate::wire::cursor::{put, put_bytes};
use crate::wire::footer::Inverted;

/// Collects the groups of terms and the entries of their lists, while the inverted region is written.
#[derive(Debug, Default)]
pub(crate) struct AccessWriter {
    terms: u64,
    groups: Vec<Group>,
    entries: Vec<u8>,
}

#[derive(Debug, Default)]
struct Group {
    first_term: Vec<u8>,
    lists: u64,
    postings: u64,
    skips: u64,
    entries: u64,
}

/// The lengths of a posting list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListLengths {
    /// Its payload.
    pub(crate) payload: u64,
    /// Its skip table.
    pub(crate) skips: u64,
    /// The occurrences of the term less its documents.
    pub(crate) surplus: u64,
}

impl AccessWriter {
    /// Adds a term, and its list if it has one.
    pub(crate) fn term(&mut self, term: &[u8], list: Option<ListLengths>) {
        if self.terms.is_multiple_of(GROUP_TERMS) {
            self.groups.push(Group { first_term: term.to_vec(), ..Group::default() });
        }
        self.terms += 1;
        let (Some(group), Some(list)) = (self.groups.last_mut(), list) else { return };
        let before = self.entries.len();
        for number in [list.payload, list.skips, list.surplus] {
            put(number, &mut self.entries);
        }
        group.lists += 1;
        group.postings += tercet_codec::varint::len(list.payload) as u64 + list.payload;
        group.skips += list.skips;
        group.entries += (self.entries.len() - before) as u64;
    }

    /// The payload of the record and the length of its root. `sums` are the checksums of term dictionary, postings and skip tables.
    pub(crate) fn finish(
        &self,
        inverted: &Inverted,
        index: &DictionaryIndex,
        lengths: LengthsWriter,
        sums: &[Vec<u8>; 3],
    ) -> Result<(Vec<u8>, usize), ErrorKind> {
        let lengths = lengths.finish()?;
        let mut out = vec![VERSION];
        let numbers = [
            BLOCK_BYTES,
            inverted.term_dict_offset,
            inverted.term_dict_length,
            inverted.postings_offset,
            inverted.postings_length,
            inverted.skips_offset,
            inverted.skips_length,
            inverted.num_terms,
            inverted.num_docs,
            lengths.total,
            index.start,
            index.start + index.groups.iter().sum::<u64>(),
            self.groups.len() as u64,
        ];
        for number in numbers {
            put(number, &mut out);
        }
        for (group, index_len) in self.groups.iter().zip(&index.groups) {
            put_bytes(&group.first_term, &mut out);
            for number in [*index_len, group.lists, group.postings, group.skips, group.entries] {
                put(number, &mut out);
            }
        }
        put(lengths.blocks.len() as u64, &mut out);
        for (min, width) in &lengths.blocks {
            put((*min).into(), &mut out);
            out.push(*width);
        }
        for sums in sums {
            out.extend_from_slice(sums);
        }
        let mut rest = BlockSums::default();
        rest.update(&self.entries);
        rest.update(&lengths.packed);
        out.extend_from_slice(&rest.finish());
        let root = out.len();
        out.extend_from_slice(&self.entries);
        out.extend_from_slice(&lengths.packed);
        Ok((out, root))
    }
}

/// The index of a term dictionary: its offset in the payload, and the bytes of the entries of each group of terms.
#[derive(Clone, Debug, Default)]
pub(crate) struct DictionaryIndex {
    pub(crate) start: u64,
    pub(crate) groups: Vec<u64>,
}

/// Packs the lengths of documents.
#[derive(Debug, Default)]
pub(crate) struct LengthsWriter {
    open: Vec<u32>,
    /// The minimum and the width of each block.
    blocks: Vec<(u32, u8)>,
    packed: Vec<u8>,
    total: u64,
}

impl LengthsWriter {
    /// Adds the length of the next document.
    pub(crate) fn push(&mut self, length: u32) -> Result<(), ErrorKind> {
        self.total += u64::from(length);
        self.open.push(length);
        if self.open.len() == LENGTHS { self.block() } else { Ok(()) }
    }

    fn block(&mut self) -> Result<(), ErrorKind> {
        let Some(min) = self.open.iter().copied().min() else { return Ok(()) };
        self.open.iter_mut().for_each(|length| *length -= min);
        let all = self.open.iter().fold(0, |all, length| all | length);
        let width = u32::BITS - all.leading_zeros();
        if width > 0 {
            ints::pack_bits(width, &self.open, &mut self.packed)?;
        }
        self.blocks.push((min, u8::try_from(width).unwrap_or(u8::MAX)));
        self.open.clear();
        Ok(())
    }

    /// Closes the last block.
    fn finish(mut self) -> Result<Self, ErrorKind> {
        self.block()?;
        Ok(self)
    }
}

/// The checksums of the blocks of a payload.
#[derive(Debug, Default)]
pub(crate) struct BlockSums {
    sums: Vec<u8>,
    open: Vec<u8>,
}

impl BlockSums {
    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        let block = usize::try_from(BLOCK_BYTES).unwrap_or(usize::MAX);
        while !bytes.is_empty() {
            let (here, rest) = bytes.split_at(bytes.len().min(block - self.open.len()));
            self.open.extend_from_slice(here);
            bytes = rest;
            if self.open.len() == block {
                self.close();
            }
        }
    }

    fn close(&mut self) {
        self.sums.extend_from_slice(&crc32c(&self.open).to_le_bytes());
        self.open.clear();
    }

    /// The CRC-32C of each block, little-endian.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        if !self.open.is_empty() {
            self.close();
        }
        self.sums
    }
}
