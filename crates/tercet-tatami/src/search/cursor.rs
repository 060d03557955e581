//! Cursors over posting lists.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;

use super::positions::{BlockStarts, Positions};
use super::postings::{BLOCK_DOCS, List, Postings, Skip};
use super::rank::TermScorer;
use super::terms::Entry;
use crate::error::ErrorKind;

/// Position after the last document.
pub(super) const END: u32 = u32::MAX;

/// Maximum number of blocks whose bounds are combined to bound a document range.
const MAX_BOUND_BLOCKS: usize = 8;

/// No block.
const NONE: usize = usize::MAX;

/// A forward cursor over a posting list. Skipped blocks are not decoded, and frequencies only when a score is needed.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    postings: &'a Postings,
    list: Arc<List>,
    scorer: TermScorer<'a>,
    pub(super) idf: f32,
    /// Upper bound of all scores, before rounding.
    pub(super) bound: f32,
    /// The current block: the first that ends at or after the requested document.
    block: usize,
    /// The blocks with decoded documents, frequencies and scores.
    documents_of: usize,
    frequencies_of: usize,
    scores_of: usize,
    /// The position of the frequencies of that block.
    frequencies_at: usize,
    /// The position in the decoded block.
    at: usize,
    arrays: Box<Arrays>,
    scratch: Vec<u32>,
    /// The starts of the blocks of positions, and the last block that was read.
    starts: Option<BlockStarts>,
    position_block: Option<(usize, Bytes)>,
    pub(super) blocks_decoded: u64,
}

#[derive(Debug)]
struct Arrays {
    documents: [u32; BLOCK_DOCS],
    frequencies: [u32; BLOCK_DOCS],
    scores: [f32; BLOCK_DOCS],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(
        postings: &'a Postings,
        entry: Entry,
        idf: f32,
        limit: u64,
        scorer: TermScorer<'a>,
    ) -> Result<Self, ErrorKind> {
        let zeros =
            Arrays { documents: [0; BLOCK_DOCS], frequencies: [0; BLOCK_DOCS], scores: [0.0; BLOCK_DOCS] };
        let mut arrays = Box::new(zeros);
        let (list, decoded) = match entry {
            Entry::List { list, documents } => (postings.open(list, documents, limit)?, NONE),
            Entry::Singleton { document, frequency } => {
                arrays.documents[0] = document;
                arrays.frequencies[0] = frequency;
                (Arc::new(List::single(document, frequency)), 0)
            }
        };
        let last = list.skips.last().map_or(0, |skip| skip.last);
        let bound = scorer.bound(idf, list.max_frequency, 0, last);
        Ok(Self {
            postings,
            list,
            scorer,
            idf,
            bound,
            block: 0,
            documents_of: decoded,
            frequencies_of: decoded,
            scores_of: NONE,
            frequencies_at: 0,
            at: 0,
            arrays,
            scratch: Vec::new(),
            starts: None,
            position_block: None,
            blocks_decoded: 0,
        })
    }

    /// The number of blocks.
    pub(super) fn blocks(&self) -> u64 {
        self.list.skips.len() as u64
    }

    fn skip(&self) -> Option<&Skip> {
        self.list.skips.get(self.block)
    }

    /// Moves to the block that may contain `target`, without decoding it.
    #[inline]
    fn shallow(&mut self, target: u32) {
        let skips = &self.list.skips;
        if skips.get(self.block).is_none_or(|skip| skip.last >= target) {
            return;
        }
        // Most skips are short.
        let mut step = 1;
        let mut low = self.block;
        while skips.get(low + step).is_some_and(|skip| skip.last < target) {
            low += step;
            step *= 2;
        }
        let high = (low + step).min(skips.len());
        self.block = low + 1 + skips[low + 1..high].partition_point(|skip| skip.last < target);
        self.at = 0;
    }

    /// A lower bound of the first document from `target` on; exact if the block is decoded.
    #[inline]
    pub(super) fn lower(&mut self, target: u32) -> u32 {
        self.shallow(target);
        let Some(skip) = self.skip() else { return END };
        if self.documents_of == self.block {
            self.pass(target);
            return self.arrays.documents[self.at];
        }
        skip.first.max(target)
    }

    /// Advances in the decoded block to `target`, which is not after its end.
    #[inline]
    fn pass(&mut self, target: u32) {
        let count = self.list.skips[self.block].count as usize;
        let left = &self.arrays.documents[self.at..count];
        if left[0] >= target {
            return;
        }
        // Linear search first: most steps are short.
        let near = left.len().min(8);
        match left[..near].iter().position(|document| *document >= target) {
            Some(further) => self.at += further,
            None => self.at += near + left[near..].partition_point(|document| *document < target),
        }
    }

    /// The first and last document of the current block.
    pub(super) fn extent(&self) -> (u32, u32) {
        self.skip().map_or((END, END), |skip| (skip.first, skip.last))
    }

    /// Moves to the first document from `target` on.
    #[inline]
    pub(super) fn seek(&mut self, target: u32) -> Result<u32, ErrorKind> {
        self.shallow(target);
        let Some(skip) = self.skip() else { return Ok(END) };
        if self.documents_of != self.block && skip.first >= target {
            return Ok(skip.first);
        }
        self.decode()?;
        self.pass(target);
        Ok(self.arrays.documents[self.at])
    }

    /// Whether the list contains a document. Requests must ascend.
    #[inline]
    pub(super) fn find(&mut self, document: u32) -> Result<bool, ErrorKind> {
        self.shallow(document);
        if self.skip().is_none_or(|skip| skip.first > document) {
            return Ok(false);
        }
        self.decode()?;
        self.pass(document);
        Ok(self.arrays.documents[self.at] == document)
    }

    /// Decodes the documents of the block.
    #[inline]
    pub(super) fn decode(&mut self) -> Result<(), ErrorKind> {
        if self.documents_of == self.block {
            return Ok(());
        }
        let skip = self.list.skips[self.block];
        self.frequencies_at =
            self.postings.documents(&self.list, &skip, &mut self.scratch, &mut self.arrays.documents)?;
        self.documents_of = self.block;
        self.at = 0;
        self.blocks_decoded += 1;
        Ok(())
    }

    fn decode_frequencies(&mut self) -> Result<(), ErrorKind> {
        self.decode()?;
        if self.frequencies_of != self.block {
            let skip = self.list.skips[self.block];
            let at = self.frequencies_at;
            let (scratch, out) = (&mut self.scratch, &mut self.arrays.frequencies);
            self.postings.frequencies(&self.list, &skip, at, scratch, out)?;
            self.frequencies_of = self.block;
        }
        Ok(())
    }

    /// The frequency of the term in the document found by [`find`](Self::find).
    pub(super) fn frequency(&mut self) -> Result<u32, ErrorKind> {
        self.decode_frequencies()?;
        Ok(self.arrays.frequencies[self.at])
    }

    /// The positions of the document found by [`find`](Self::find), without those of its block, and how many of these are before it.
    pub(super) fn position_block(&mut self, positions: &Positions) -> Result<(Bytes, u64), ErrorKind> {
        self.decode_frequencies()?;
        let starts = match (&self.starts, self.list.number) {
            (Some(starts), _) => Arc::clone(starts),
            (None, Some(list)) => positions.starts(list, self.list.skips.len())?,
            (None, None) => return Ok((Bytes::new(), 0)),
        };
        let block = match &self.position_block {
            Some((number, block)) if *number == self.block => block.clone(),
            _ => {
                let block = positions.block(&starts, self.block)?;
                self.position_block = Some((self.block, block.clone()));
                block
            }
        };
        self.starts = Some(starts);
        let before = self.arrays.frequencies[..self.at].iter().map(|frequency| u64::from(*frequency)).sum();
        Ok((block, before))
    }

    /// Decodes the positions of the document found by [`find`](Self::find); false if they are not recorded.
    pub(super) fn positions(&mut self, out: &mut Vec<u32>) -> Result<bool, ErrorKind> {
        let postings = self.postings;
        let Some(positions) = &postings.positions else { return Ok(false) };
        if self.list.number.is_none() {
            return Ok(false);
        }
        let frequency = self.frequency()?;
        let (block, before) = self.position_block(positions)?;
        positions.decode(positions.slice(&block, before, frequency)?, out)?;
        Ok(true)
    }

    /// Calls `each` with the documents of every block. The cursor is then at the end.
    pub(super) fn each_block(&mut self, mut each: impl FnMut(&[u32])) -> Result<(), ErrorKind> {
        while let Some(skip) = self.skip() {
            let count = skip.count as usize;
            self.decode()?;
            each(&self.arrays.documents[..count]);
            self.block += 1;
            self.at = 0;
        }
        Ok(())
    }

    /// The sum of all frequencies. The cursor is then at the end.
    pub(super) fn sum_frequencies(&mut self) -> Result<u64, ErrorKind> {
        let mut sum = 0;
        while let Some(skip) = self.skip() {
            let count = skip.count as usize;
            self.decode_frequencies()?;
            sum +=
                self.arrays.frequencies[..count].iter().map(|frequency| u64::from(*frequency)).sum::<u64>();
            self.block += 1;
            self.at = 0;
        }
        Ok(sum)
    }

    /// The score of the document found by [`find`](Self::find).
    #[inline]
    pub(super) fn score(&mut self) -> Result<f32, ErrorKind> {
        if self.scores_of == self.block {
            return Ok(self.arrays.scores[self.at]);
        }
        let frequency = self.frequency()?;
        self.scorer.score(self.idf, self.arrays.documents[self.at], frequency)
    }

    /// The documents from `start` to `end` and their scores, within the current block.
    pub(super) fn scored(&mut self, start: u32, end: u32) -> Result<(&[u32], &[f32]), ErrorKind> {
        self.decode_frequencies()?;
        let count = self.list.skips[self.block].count as usize;
        if self.scores_of != self.block {
            let Arrays { documents, frequencies, scores } = &mut *self.arrays;
            let best = self.scorer.scores(
                self.idf,
                &documents[..count],
                &frequencies[..count],
                &mut scores[..count],
            )?;
            if let (Some(best), Some(known)) = (best, self.max_scores().get(self.block)) {
                known.store(best.to_bits(), Ordering::Relaxed);
            }
            self.scores_of = self.block;
        }
        self.pass(start);
        let documents = &self.arrays.documents[self.at..count];
        let len = match documents.last() {
            Some(last) if *last <= end => documents.len(),
            _ => documents.partition_point(|document| *document <= end),
        };
        Ok((&documents[..len], &self.arrays.scores[self.at..self.at + len]))
    }

    /// The cached bounds of blocks; empty if there are none for this search.
    fn max_scores(&self) -> &[AtomicU32] {
        self.scorer.cached_max_scores().map_or(&[], |slot| &self.list.max_scores[slot])
    }

    fn bound_of(&self, block: usize) -> f32 {
        let skip = &self.list.skips[block];
        let best = self.max_scores().get(block).map_or(0, |best: &AtomicU32| best.load(Ordering::Relaxed));
        if best != 0 {
            return self.idf * f32::from_bits(best);
        }
        self.scorer.bound(self.idf, skip.max_frequency, skip.first, skip.last)
    }

    /// A score that at least `k` documents of the list reach, from the cached bounds of earlier searches; 0 if unknown.
    pub(super) fn reached_by(&self, k: usize) -> f32 {
        let max_scores = self.max_scores();
        if k == 0 || max_scores.len() < k {
            return 0.0;
        }
        // Scores are not negative, so their bits sort like their values.
        let mut max_scores: Vec<u32> = max_scores.iter().map(|best| best.load(Ordering::Relaxed)).collect();
        let (_, kth, _) = max_scores.select_nth_unstable_by(k - 1, |a, b| b.cmp(a));
        self.idf * f32::from_bits(*kth)
    }

    /// Moves to the next block whose best score is not `not_competitive`.
    pub(super) fn next_block(
        &mut self,
        mut block: usize,
        not_competitive: impl Fn(f32) -> bool,
    ) -> Option<usize> {
        while block < self.list.skips.len() {
            if !not_competitive(self.bound_of(block)) {
                self.block = block;
                return Some(block);
            }
            block += 1;
        }
        None
    }

    /// The best score of the current block.
    #[inline]
    pub(super) fn block_bound(&self) -> f32 {
        if self.block < self.list.skips.len() { self.bound_of(self.block) } else { 0.0 }
    }

    /// An upper bound of the scores from `start` to `end`.
    pub(super) fn bound_between(&mut self, start: u32, end: u32) -> f32 {
        if self.lower(start) > end {
            return 0.0;
        }
        let mut best = 0.0f32;
        for block in self.block..self.list.skips.len() {
            if self.list.skips[block].first > end {
                break;
            }
            if block - self.block >= MAX_BOUND_BLOCKS {
                return self.bound;
            }
            best = best.max(self.bound_of(block));
        }
        best
    }
}
