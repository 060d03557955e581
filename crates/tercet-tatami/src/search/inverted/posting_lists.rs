//! Writer of posting lists and skip tables.

use std::path::Path;

use tercet_codec::ints::{self, Scheme};

use super::invalid_input;
use super::part::{Part, Piece};
use crate::error::ErrorKind;
use crate::search::access::ListLengths;
use crate::search::postings::{BLOCK_DOCS, Skip};
use crate::search::terms::Entry;
use crate::wire::cursor::put;

/// Writes posting lists.
#[derive(Debug)]
pub(super) struct Lists {
    postings: Piece,
    tables: Piece,
    count: u32,
    /// The encoded full blocks of the current list.
    stored: Vec<u8>,
    skips: Vec<Skip>,
    /// Documents and frequencies of the open block.
    block: Vec<u32>,
    frequencies: Vec<u32>,
    gaps: Vec<u32>,
    scratch: Vec<u8>,
    /// Occurrences of the current term.
    occurrences: u64,
    /// The maximum document number of all lists plus one.
    pub(super) documents: u64,
}

impl Lists {
    pub(super) fn new(directory: Option<&Path>) -> Self {
        Self {
            postings: Piece::new(directory),
            tables: Piece::new(directory),
            count: 0,
            stored: Vec::new(),
            skips: Vec::new(),
            block: Vec::with_capacity(BLOCK_DOCS),
            frequencies: Vec::with_capacity(BLOCK_DOCS),
            gaps: Vec::with_capacity(BLOCK_DOCS),
            scratch: Vec::new(),
            occurrences: 0,
            documents: 0,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, document: u32, frequency: u32) -> Result<(), ErrorKind> {
        let last = self.block.last().copied();
        if last.is_some_and(|last| last >= document) || frequency == 0 || document == u32::MAX {
            return Err(invalid_input("documents of a term are not in order"));
        }
        // Deferred until it is known whether this is the only document of the term.
        if self.block.len() == BLOCK_DOCS {
            self.block()?;
        }
        self.block.push(document);
        self.frequencies.push(frequency);
        self.occurrences += u64::from(frequency);
        Ok(())
    }

    /// Writes the open block.
    fn block(&mut self) -> Result<(), ErrorKind> {
        let (Some(first), Some(last)) = (self.block.first(), self.block.last()) else { return Ok(()) };
        let offset = u32::try_from(self.stored.len()).map_err(|_| invalid_input(TOO_LONG))?;
        self.skips.push(Skip {
            first: *first,
            last: *last,
            max_frequency: self.frequencies.iter().copied().max().unwrap_or(0),
            offset,
            count: u32::try_from(self.block.len()).unwrap_or(u32::MAX),
        });
        self.gaps.clear();
        self.gaps.extend(self.block.windows(2).map(|pair| pair[1] - pair[0]));
        if self.block.len() == BLOCK_DOCS {
            let all = self.gaps.iter().fold(0, |all, gap| all | gap);
            let width = u32::BITS - all.leading_zeros();
            self.stored.push(u8::try_from(width).unwrap_or(u8::MAX));
            ints::pack_bits(width, &self.gaps, &mut self.stored)?;
        } else if !self.gaps.is_empty() {
            ints::encode(Scheme::GroupVarint, &self.gaps, &mut self.stored)?;
        }
        ints::encode(Scheme::Pfor, &self.frequencies, &mut self.stored)?;
        self.block.clear();
        self.frequencies.clear();
        Ok(())
    }

    /// Ends a list and returns its entry and lengths; `None` without documents.
    pub(super) fn end(&mut self) -> Result<Option<(Entry, Option<ListLengths>)>, ErrorKind> {
        let Some(&last) = self.block.last() else { return Ok(None) };
        let occurrences = std::mem::take(&mut self.occurrences);
        self.documents = self.documents.max(u64::from(last) + 1);
        if self.skips.is_empty() && self.block.len() == 1 {
            let entry = Entry::Singleton { document: last, frequency: self.frequencies[0] };
            self.block.clear();
            self.frequencies.clear();
            return Ok(Some((entry, None)));
        }
        self.block()?;
        let documents: u32 = self.skips.iter().map(|skip| skip.count).sum();
        self.scratch.clear();
        put(self.stored.len() as u64, &mut self.scratch);
        self.postings.push(&self.scratch)?;
        self.postings.push(&self.stored)?;
        let payload = self.stored.len() as u64;
        self.stored.clear();
        self.scratch.clear();
        put(documents.into(), &mut self.scratch);
        put(self.skips.len() as u64, &mut self.scratch);
        for skip in self.skips.drain(..) {
            for number in [skip.first, skip.last, skip.max_frequency, skip.offset, skip.count] {
                put(number.into(), &mut self.scratch);
            }
        }
        self.tables.push(&self.scratch)?;
        let entry = Entry::List { documents, list: self.count };
        self.count = self.count.checked_add(1).ok_or_else(|| invalid_input("too many posting lists"))?;
        let skips = self.scratch.len() as u64;
        let lengths = ListLengths { payload, skips, surplus: occurrences - u64::from(documents) };
        Ok(Some((entry, Some(lengths))))
    }

    /// The records of the lists and of their skip tables.
    pub(super) fn finish(self) -> Result<(Part, Part), ErrorKind> {
        let mut front = Vec::new();
        put(self.count.into(), &mut front);
        let postings = Part::new(front.clone(), vec![self.postings])?;
        Ok((postings, Part::new(front, vec![self.tables])?))
    }
}

const TOO_LONG: &str = "a posting list exceeds 4 GiB";
