//! Search options and results.

use std::collections::HashMap;

use serde::Serialize;

use super::cursor::Cursor;
use super::rank::{Norms, Ranking};
use crate::predicate::Mask;

/// How to search.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SearchOptions<'a> {
    /// How many documents are wanted.
    pub k: usize,
    /// How they are ranked.
    pub ranking: Ranking,
    /// Only these documents.
    pub filter: Option<&'a Mask>,
    /// Only documents that score as much as this.
    pub min_score: f32,
    /// The idf of terms, where better known than from this segment: see [`idf`](super::score::idf).
    pub idf_overrides: Option<&'a HashMap<String, f32>>,
    /// Document norms in a cluster.
    pub(super) norms: Option<&'a Norms>,
}

impl<'a> SearchOptions<'a> {
    /// The best `k` of all documents, as the format ranks them.
    pub fn new(k: usize) -> Self {
        Self { k, ranking: Ranking::Native, filter: None, min_score: 0.0, idf_overrides: None, norms: None }
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

    /// Sets the idf of terms.
    pub fn with_idf_overrides(mut self, idf_overrides: &'a HashMap<String, f32>) -> Self {
        self.idf_overrides = Some(idf_overrides);
        self
    }
}

/// A document that was found.
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
    /// The best documents: higher scores first, then lower numbers.
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
    /// Blocks of their lists.
    pub blocks: u64,
    /// Blocks that were decoded.
    pub blocks_decoded: u64,
    /// Blocks that were passed over.
    pub blocks_skipped: u64,
    /// Documents whose score was computed.
    pub documents_scored: u64,
    /// Documents whose text was read to match phrases.
    pub texts_read: u64,
}

impl SearchResult {
    pub(super) fn new(best: Vec<(u32, f32)>, cursors: &[Cursor<'_>], scored: u64, texts_read: u64) -> Self {
        let blocks = cursors.iter().map(Cursor::blocks).sum();
        let blocks_decoded = cursors.iter().map(|cursor| cursor.blocks_decoded).sum();
        let stats = SearchStats {
            terms: cursors.len() as u64,
            blocks,
            blocks_decoded,
            blocks_skipped: blocks - blocks_decoded,
            documents_scored: scored,
            texts_read,
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
    #[serde(rename = "word")]
    pub term: String,
    /// Documents with the term.
    pub documents: u64,
    /// How rare that makes it.
    pub idf: f32,
    /// How often it occurs in the document.
    pub frequency: u32,
    /// The contribution to the score.
    pub score: f32,
}

/// Statistics of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TermStats {
    /// Documents with the term, deleted ones included.
    pub documents: u64,
    /// How often it occurs in one document, at most.
    pub max_frequency: u32,
}
