//! Search options and results.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;
use tercet_core::Progress;
use tercet_core::progress::{Cancelled, NoProgress};

use super::cursor::Cursor;
use super::rank::{Norms, Ranking};
use crate::predicate::Mask;

/// Whether a search should stop.
#[derive(Clone, Copy)]
pub(super) struct Cancel<'a>(&'a dyn Progress);

impl<'a> Cancel<'a> {
    pub(super) fn new(progress: &'a dyn Progress) -> Self {
        Self(progress)
    }

    /// Fails if the search is cancelled.
    pub(super) fn check(self) -> Result<(), Cancelled> {
        self.0.check()
    }
}

impl Default for Cancel<'_> {
    fn default() -> Self {
        Self(&NoProgress)
    }
}

impl fmt::Debug for Cancel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cancel")
    }
}

/// Options of a search.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SearchOptions<'a> {
    /// Number of hits to return.
    pub k: usize,
    /// Ranking function.
    pub ranking: Ranking,
    /// Restriction to some documents.
    pub filter: Option<&'a Mask>,
    /// Minimum score of hits.
    pub min_score: f32,
    /// The idf of terms, if not that of the segment; see [`idf`](super::score::idf).
    pub idf_overrides: Option<&'a HashMap<String, f32>>,
    /// Document norms in a cluster.
    pub(super) norms: Option<&'a Norms>,
    /// Tested while the search runs.
    pub(super) cancel: Cancel<'a>,
}

impl<'a> SearchOptions<'a> {
    /// The top `k` of all documents with the native ranking.
    pub fn new(k: usize) -> Self {
        Self {
            k,
            ranking: Ranking::Native,
            filter: None,
            min_score: 0.0,
            idf_overrides: None,
            norms: None,
            cancel: Cancel::default(),
        }
    }

    /// Sets the ranking.
    pub fn with_ranking(mut self, ranking: Ranking) -> Self {
        self.ranking = ranking;
        self
    }

    /// Restricts the search to some documents; see [`Segment::filter`](super::Segment::filter).
    pub fn with_filter(mut self, filter: Option<&'a Mask>) -> Self {
        self.filter = filter;
        self
    }

    /// Sets the minimum score.
    pub fn with_min_score(mut self, min_score: f32) -> Self {
        self.min_score = min_score;
        self
    }

    /// Sets what can cancel the search; it is asked for each block of postings, and before texts are read.
    pub fn with_progress(mut self, progress: &'a dyn Progress) -> Self {
        self.cancel = Cancel::new(progress);
        self
    }

    /// Sets the idf of terms.
    pub fn with_idf_overrides(mut self, idf_overrides: &'a HashMap<String, f32>) -> Self {
        self.idf_overrides = Some(idf_overrides);
        self
    }
}

/// A search hit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Its row in the file.
    pub document: u32,
    /// The score.
    pub score: f32,
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SearchResult {
    /// The hits, by descending score, then by document number.
    pub hits: Vec<Hit>,
    /// Statistics of the search.
    pub stats: SearchStats,
}

/// Statistics of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SearchStats {
    /// Query terms that are in the dictionary.
    pub terms: u64,
    /// Posting blocks of these terms.
    pub blocks: u64,
    /// Decoded blocks.
    pub blocks_decoded: u64,
    /// Skipped blocks.
    pub blocks_skipped: u64,
    /// Scored documents.
    pub documents_scored: u64,
    /// Documents whose text was read for phrases.
    pub documents_read: u64,
}

impl SearchResult {
    pub(super) fn new(
        best: Vec<(u32, f32)>,
        cursors: &[Cursor<'_>],
        scored: u64,
        documents_read: u64,
    ) -> Self {
        let blocks = cursors.iter().map(Cursor::blocks).sum();
        let blocks_decoded = cursors.iter().map(|cursor| cursor.blocks_decoded).sum();
        let stats = SearchStats {
            terms: cursors.len() as u64,
            blocks,
            blocks_decoded,
            blocks_skipped: blocks - blocks_decoded,
            documents_scored: scored,
            documents_read,
        };
        let hits = best.into_iter().map(|(document, score)| Hit { document, score }).collect();
        Self { hits, stats }
    }
}

/// The stored fields of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StoredFields {
    /// The document ID.
    pub doc_id: String,
    /// The URL.
    pub url: String,
    /// Its title.
    pub title: String,
}

/// The contribution of a term to the score of a document.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TermExplanation {
    /// The term.
    pub term: String,
    /// Documents with the term.
    pub documents: u64,
    /// Inverse document frequency.
    pub idf: f32,
    /// Term frequency in the document.
    pub frequency: u32,
    /// The contribution to the score.
    pub score: f32,
}

/// Statistics of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TermStats {
    /// Documents with the term, including deleted ones.
    pub documents: u64,
    /// Maximum frequency in a document.
    pub max_frequency: u32,
}
