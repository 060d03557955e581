//! Writer of the inverted region: sorted terms with sorted documents to three records.
//!
//! ```text
//! begin(term) push(document, frequency) push … ─▶ lists.rs            blocks of 128 documents ─▶ postings, skip tables
//!                                              ─▶ term_dictionary.rs  blocks of 64 terms      ─▶ term dictionary
//! ```
//!
//! The head of a record is written last, so records are spooled to temporary files; one stored posting list is in memory.

mod part;
mod posting_lists;
mod term_dictionary;

use std::path::Path;

use super::access::{AccessWriter, DictionaryIndex, LengthsWriter};
use super::live::Live;
use super::positions::{PositionsWriter, WrittenPositions};
use super::terms::Entry;
use crate::error::ErrorKind;
pub(crate) use part::{Part, Piece};
use posting_lists::Lists;
use term_dictionary::TermDictionaryWriter;

/// Writes the terms of a segment and their postings.
///
/// Terms must be in byte order, documents in numeric order.
#[derive(Debug)]
pub(crate) struct InvertedWriter {
    dictionary: TermDictionaryWriter,
    lists: Lists,
    access: AccessWriter,
    positions: Option<PositionsWriter>,
    term: Vec<u8>,
    /// Whether a term is open; it may be empty.
    open: bool,
}

/// A complete inverted region.
#[derive(Debug)]
pub(crate) struct Inverted {
    pub(crate) dictionary: Part,
    pub(crate) postings: Part,
    pub(crate) skips: Part,
    pub(crate) terms: u64,
    /// The maximum document number plus one.
    pub(crate) documents: u64,
    pub(crate) live: Option<Live>,
    pub(crate) access: AccessWriter,
    pub(crate) positions: Option<WrittenPositions>,
    pub(crate) index: DictionaryIndex,
    /// The lengths of the documents; without them, no access index is written.
    pub(crate) lengths: Option<LengthsWriter>,
}

impl InvertedWriter {
    /// Starts a region with temporary files in `directory`.
    pub(crate) fn new(directory: Option<&Path>) -> Self {
        Self {
            dictionary: TermDictionaryWriter::new(directory),
            lists: Lists::new(directory),
            access: AccessWriter::default(),
            positions: None,
            term: Vec::new(),
            open: false,
        }
    }

    /// Writes positions too: each document is added with [`push_with`](Self::push_with).
    pub(crate) fn with_positions(mut self, directory: Option<&Path>) -> Self {
        self.positions = Some(PositionsWriter::new(directory));
        self
    }

    /// Starts the next term.
    pub(crate) fn begin(&mut self, term: &[u8]) -> Result<(), ErrorKind> {
        let is_later = !self.open || *term > *self.term;
        self.end()?;
        if !is_later {
            return Err(invalid_input("terms are not in order"));
        }
        self.term.clear();
        self.term.extend_from_slice(term);
        self.open = true;
        Ok(())
    }

    /// Adds a document of the term.
    #[inline]
    pub(crate) fn push(&mut self, document: u32, frequency: u32) -> Result<(), ErrorKind> {
        debug_assert!(self.open, "document without a term");
        self.lists.push(document, frequency)
    }

    /// Adds a document of the term and the gaps between its positions, if they are written.
    #[inline]
    pub(crate) fn push_with(&mut self, document: u32, frequency: u32, gaps: &[u8]) -> Result<(), ErrorKind> {
        self.push(document, frequency)?;
        if let Some(positions) = &mut self.positions {
            positions.push(gaps);
        }
        Ok(())
    }

    /// Ends the term. A term without documents is dropped.
    fn end(&mut self) -> Result<(), ErrorKind> {
        if let Some((entry, lengths)) = self.lists.end()? {
            self.access.term(&self.term, lengths);
            if let Some(positions) = &mut self.positions {
                positions.end(lengths.is_some())?;
            }
            self.dictionary.push(&self.term, entry)?;
        }
        Ok(())
    }

    /// Ends the region.
    pub(crate) fn finish(mut self, live: Option<Live>) -> Result<Inverted, ErrorKind> {
        self.end()?;
        let documents = self.lists.documents;
        let (postings, skips) = self.lists.finish()?;
        let (dictionary, index, terms) = self.dictionary.finish()?;
        let access = self.access;
        let positions = self.positions.map(PositionsWriter::finish).transpose()?;
        let lengths = None;
        Ok(Inverted {
            dictionary,
            postings,
            skips,
            terms,
            documents,
            live,
            access,
            positions,
            index,
            lengths,
        })
    }
}

/// Appends the dictionary entry of a term.
fn put_entry(entry: Entry, out: &mut Vec<u8>) {
    use crate::wire::cursor::put;

    put(entry.documents().into(), out);
    match entry {
        Entry::Singleton { document, frequency } => {
            out.push(1);
            put(document.into(), out);
            put(frequency.into(), out);
        }
        Entry::List { list, .. } => {
            out.push(0);
            put(list.into(), out);
        }
    }
}

/// Error for invalid input of the caller.
fn invalid_input(what: &'static str) -> ErrorKind {
    ErrorKind::from(std::io::Error::other(what))
}

#[cfg(test)]
mod tests;
