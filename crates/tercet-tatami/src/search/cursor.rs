//! A walk over the documents of one word.

use super::postings::{Postings, Skip};
use super::score;
use super::terms::Entry;
use crate::fault::Fault;

/// Behind the last document.
pub(super) const END: u32 = u32::MAX;

/// Forward over a posting list, a block at a time; blocks that are passed over are not decoded.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    postings: &'a Postings,
    list: u32,
    skips: Vec<Skip>,
    /// The block that the cursor is in.
    block: usize,
    decoded: bool,
    documents: Vec<u32>,
    frequencies: Vec<u32>,
    at: usize,
    idf: f32,
    /// No document scores more.
    pub(super) bound: f32,
    pub(super) blocks_decoded: u64,
    document: u32,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(postings: &'a Postings, entry: Entry, idf: f32, limit: u64) -> Result<Self, Fault> {
        let (list, skips, documents, frequencies) = match entry {
            Entry::List { list, documents } => {
                (list, postings.skips(list, documents, limit)?, Vec::new(), Vec::new())
            }
            Entry::Singleton { document, frequency } => {
                let skip =
                    Skip { first: document, last: document, max_frequency: frequency, offset: 0, count: 1 };
                (0, vec![skip], vec![document], vec![frequency])
            }
        };
        let most = skips.iter().map(|skip| skip.max_frequency).max().unwrap_or(0);
        let document = skips.first().map_or(END, |skip| skip.first);
        Ok(Self {
            postings,
            list,
            skips,
            block: 0,
            decoded: !documents.is_empty(),
            documents,
            frequencies,
            at: 0,
            idf,
            bound: score::term(idf, most),
            blocks_decoded: 0,
            document,
        })
    }

    /// The document that the cursor stands on. It may stand on the first one of a block that is not decoded.
    pub(super) const fn document(&self) -> u32 {
        self.document
    }

    /// Moves to the first document that is not before `target`.
    pub(super) fn seek(&mut self, target: u32) -> Result<u32, Fault> {
        if self.document >= target {
            return Ok(self.document);
        }
        if self.skips.get(self.block).is_some_and(|skip| skip.last < target) {
            let left = &self.skips[self.block..];
            self.block += left.partition_point(|skip| skip.last < target);
            (self.decoded, self.at) = (false, 0);
        }
        let Some(skip) = self.skips.get(self.block) else {
            self.document = END;
            return Ok(END);
        };
        if skip.first >= target {
            // The first document of a block is known without decoding it.
            self.at = 0;
            self.document = skip.first;
            return Ok(self.document);
        }
        self.decode()?;
        self.at += self.documents[self.at..].partition_point(|document| *document < target);
        self.document = self.documents[self.at];
        Ok(self.document)
    }

    /// Moves to the next document.
    pub(super) fn advance(&mut self) -> Result<u32, Fault> {
        match self.document {
            END => Ok(END),
            document => self.seek(document + 1),
        }
    }

    fn decode(&mut self) -> Result<(), Fault> {
        if self.decoded {
            return Ok(());
        }
        let skip = self.skips[self.block];
        self.postings.block(self.list, &skip, &mut self.documents, &mut self.frequencies)?;
        self.decoded = true;
        self.blocks_decoded += 1;
        Ok(())
    }

    /// The score of the document that the cursor stands on.
    pub(super) fn score(&mut self) -> Result<f32, Fault> {
        self.decode()?;
        Ok(score::term(self.idf, self.frequencies[self.at]))
    }

    /// How often the word occurs in the document that the cursor stands on.
    pub(super) fn frequency(&mut self) -> Result<u32, Fault> {
        self.decode()?;
        Ok(self.frequencies[self.at])
    }

    /// The last document of the block that the cursor stands in, and the best score there.
    pub(super) fn block_bound(&self) -> (u32, f32) {
        self.skips
            .get(self.block)
            .map_or((END, 0.0), |skip| (skip.last, score::term(self.idf, skip.max_frequency)))
    }

    /// The blocks of the list.
    pub(super) fn blocks(&self) -> u64 {
        self.skips.len() as u64
    }
}
