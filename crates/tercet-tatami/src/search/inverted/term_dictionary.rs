//! Writer of the term dictionary, a block tree.

use std::path::Path;

use tercet_codec::bytes::zstd;

use super::part::{Part, Piece};
use super::put_entry;
use crate::error::ErrorKind;
use crate::search::access::{DictionaryIndex, GROUP_TERMS};
use crate::search::terms::{BLOCK_TERMS, Entry, VERSION};
use crate::wire::cursor::{put, put_bytes};

/// Zstandard level of the frames.
const LEVEL: i32 = zstd::DEFAULT_LEVEL;

/// Writes blocks of terms.
#[derive(Debug)]
pub(super) struct TermDictionaryWriter {
    index: Piece,
    frames: Piece,
    terms: u64,
    blocks: u64,
    /// Bytes of the index for each group of terms.
    groups: Vec<u64>,
    /// The open block.
    body: Vec<u8>,
    in_block: u64,
    first: Vec<u8>,
    last: Vec<u8>,
    scratch: Vec<u8>,
}

impl TermDictionaryWriter {
    pub(super) fn new(directory: Option<&Path>) -> Self {
        Self {
            index: Piece::new(directory),
            frames: Piece::new(directory),
            terms: 0,
            blocks: 0,
            groups: Vec::new(),
            body: Vec::new(),
            in_block: 0,
            first: Vec::new(),
            last: Vec::new(),
            scratch: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, term: &[u8], entry: Entry) -> Result<(), ErrorKind> {
        if self.in_block == BLOCK_TERMS {
            self.block()?;
        }
        if self.in_block == 0 {
            self.first.clear();
            self.first.extend_from_slice(term);
            self.last.clear();
        }
        let common = self.last.iter().zip(term).take_while(|(a, b)| a == b).count();
        put(common as u64, &mut self.body);
        put_bytes(&term[common..], &mut self.body);
        put_entry(entry, &mut self.body);
        self.last.truncate(common);
        self.last.extend_from_slice(&term[common..]);
        self.in_block += 1;
        self.terms += 1;
        Ok(())
    }

    fn block(&mut self) -> Result<(), ErrorKind> {
        if self.in_block == 0 {
            return Ok(());
        }
        let (offset, raw) = (self.frames.len(), self.body.len() as u64);
        self.scratch.clear();
        zstd::encode_frame(&self.body, LEVEL, &mut self.scratch)?;
        self.frames.push(&self.scratch)?;
        let stored = self.scratch.len() as u64;
        self.scratch.clear();
        put_bytes(&self.first, &mut self.scratch);
        for number in [offset, stored, raw] {
            put(number, &mut self.scratch);
        }
        self.index.push(&self.scratch)?;
        if self.blocks.is_multiple_of(GROUP_TERMS / BLOCK_TERMS) {
            self.groups.push(0);
        }
        if let Some(group) = self.groups.last_mut() {
            *group += self.scratch.len() as u64;
        }
        self.blocks += 1;
        self.in_block = 0;
        self.body.clear();
        Ok(())
    }

    /// The record, its index, and the number of terms.
    pub(super) fn finish(mut self) -> Result<(Part, DictionaryIndex, u64), ErrorKind> {
        self.block()?;
        let mut front = vec![VERSION];
        for number in [BLOCK_TERMS, self.terms, self.blocks, self.index.len()] {
            put(number, &mut front);
        }
        let index = DictionaryIndex { start: front.len() as u64, groups: self.groups };
        Ok((Part::new(front, vec![self.index, self.frames])?, index, self.terms))
    }
}
