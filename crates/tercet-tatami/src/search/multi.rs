//! Search over several segments.
//!
//! | | statistics | searched segments |
//! |---|---|---|
//! | [`SegmentSet`] | each segment's own | all |
//! | [`Cluster`] | global | in order of decreasing bound, until no other can have a better document |
//!
//! The scores of a [`Cluster`] without deleted documents equal those of one segment with all documents.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use tercet_core::Progress;
use tercet_core::progress::NoProgress;

use super::analyzer::Analyzer;
use super::expand::{check_columns, expanded};
use super::options::{Hit, SearchOptions, SearchStats, TermExplanation};
use super::query::{Part, Query, Scored, TermQuery};
use super::rank::{self, Norms, Ranking, WITH_NORMS};
use super::segment::{Effort, Matches, Segment};
use super::{columns, score};
use crate::error::Error;
use crate::predicate::Mask;
use crate::scalar::Scalar;

/// A hit in one of several segments.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct GlobalHit {
    /// The segment, by its position.
    pub segment: usize,
    /// Its row in that segment.
    pub document: u32,
    /// The document ID.
    pub doc_id: Vec<u8>,
    /// The score.
    pub score: f32,
}

/// Statistics of a search over several segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct MultiSearchStats {
    /// Segments with a term of the query.
    pub candidates: u64,
    /// Segments that were searched.
    pub visited: u64,
    /// The k-th best score; 0 if there are fewer hits.
    pub threshold: f32,
    /// Posting blocks of the query terms in the searched segments.
    pub blocks: u64,
    /// Decoded blocks.
    pub blocks_decoded: u64,
    /// Scored documents.
    pub documents_scored: u64,
    /// Documents whose text was read for phrases.
    pub documents_read: u64,
}

impl MultiSearchStats {
    fn add(&mut self, one: &SearchStats) {
        self.blocks += one.blocks;
        self.blocks_decoded += one.blocks_decoded;
        self.documents_scored += one.documents_scored;
        self.documents_read += one.documents_read;
    }
}

/// Segments with separate statistics.
#[derive(Debug)]
pub struct SegmentSet<'a> {
    segments: &'a [Segment],
}

impl<'a> SegmentSet<'a> {
    /// A set of segments.
    pub const fn new(segments: &'a [Segment]) -> Self {
        Self { segments }
    }

    /// The top `k` documents for the terms of a text; the best one of documents with the same ID.
    pub fn search(&self, text: &str, k: usize) -> Result<Vec<GlobalHit>, Error> {
        let query = Query::terms(text);
        let several = self.segments.len() > 1;
        let wanted = if several { k.saturating_mul(2) } else { k };
        let mut all = Vec::new();
        for (at, segment) in self.segments.iter().enumerate() {
            let found = segment.find(&query, &SearchOptions::new(wanted))?;
            all.extend(named(at, segment, &found.hits)?);
        }
        if several {
            all.sort_by(order);
            let mut seen = std::collections::HashSet::new();
            all.retain(|hit| seen.insert(hit.doc_id.clone()));
            all.truncate(k);
        }
        Ok(all)
    }
}

/// Segments with global statistics.
#[derive(Clone, Debug)]
pub struct Cluster<'a> {
    segments: &'a [Segment],
    statistics: Arc<Statistics>,
}

/// The statistics of the segments of a cluster.
#[derive(Debug)]
pub(super) struct Statistics {
    documents: u64,
    /// Document norms of each segment, computed on first use.
    norms: [OnceLock<Vec<Norms>>; WITH_NORMS],
    /// Segments with the same analyzer, which are compared by global statistics.
    groups: Vec<AnalyzerGroup>,
}

/// Segments with the same analyzer.
#[derive(Debug)]
struct AnalyzerGroup {
    analyzer: Analyzer,
    /// Positions.
    segments: Vec<usize>,
    /// Live documents, including duplicates.
    documents: u64,
}

/// A query in terms of a group of segments, with their statistics.
#[derive(Debug)]
struct GroupQuery {
    query: TermQuery,
    known: HashMap<String, TermSummary>,
    idf_overrides: HashMap<String, f32>,
}

/// Global statistics of a term.
#[derive(Debug, Default)]
struct TermSummary {
    /// Documents of all segments with the term.
    found: u64,
    /// The maximum frequency in each segment of the group; 0 if the term does not occur.
    most: Vec<u32>,
    /// Occurrences in all documents, if the ranking needs them.
    occurrences: u64,
}

impl<'a> Cluster<'a> {
    /// A cluster of segments.
    pub fn new(segments: &'a [Segment]) -> Self {
        let mut groups: Vec<AnalyzerGroup> = Vec::new();
        for (at, segment) in segments.iter().enumerate() {
            let analyzer = segment.analyzer();
            let known = groups.iter().position(|group| group.analyzer == analyzer);
            let index = known.unwrap_or_else(|| {
                groups.push(AnalyzerGroup { analyzer, segments: Vec::new(), documents: 0 });
                groups.len() - 1
            });
            groups[index].segments.push(at);
            groups[index].documents += segment.live_document_count();
        }
        let documents = groups.iter().map(|group| group.documents).sum();
        let statistics = Arc::new(Statistics { documents, norms: Default::default(), groups });
        Self { segments, statistics }
    }

    /// A cluster of the segments of another one, whose statistics it shares.
    pub(super) fn with_statistics(segments: &'a [Segment], statistics: &Arc<Statistics>) -> Self {
        Self { segments, statistics: Arc::clone(statistics) }
    }

    /// The statistics, for [`with_statistics`](Self::with_statistics).
    pub(super) fn statistics(&self) -> &Arc<Statistics> {
        &self.statistics
    }

    /// The documents that match a query, by segment, as far as the effort allows.
    pub(super) fn matching(
        &self,
        query: &Query,
        filters: Option<&[Mask]>,
        effort: &mut Effort<'_>,
    ) -> Result<Vec<Matches>, Error> {
        let mut out: Vec<Option<Matches>> = self.segments.iter().map(|_| None).collect();
        for group in &self.statistics.groups {
            let query = self.expanded(group, query)?;
            for at in &group.segments {
                let filter = filters.and_then(|filters| filters.get(*at));
                out[*at] = Some(self.segments[*at].matching(&query, filter, effort)?);
            }
        }
        Ok(out.into_iter().flatten().collect())
    }

    /// The number of documents that match a query, and whether it is exact; otherwise there are at least as many.
    pub(super) fn count(
        &self,
        query: &Query,
        filters: Option<&[Mask]>,
        effort: &mut Effort<'_>,
    ) -> Result<(u64, bool), Error> {
        let (mut count, mut is_exact) = (0, true);
        for group in &self.statistics.groups {
            let query = self.expanded(group, query)?;
            for at in &group.segments {
                let filter = filters.and_then(|filters| filters.get(*at));
                if let Some(known) = self.segments[*at].known_count(&query, filter)? {
                    count += known;
                    continue;
                }
                let found = self.segments[*at].matching(&query, filter, effort)?;
                count += found.rows.count() as u64;
                is_exact &= found.is_complete;
            }
        }
        Ok((count, is_exact))
    }

    /// The query in terms of a group.
    fn expanded(&self, group: &AnalyzerGroup, query: &Query) -> Result<TermQuery, Error> {
        let segments: Vec<&Segment> = group.segments.iter().map(|at| &self.segments[*at]).collect();
        let query = expanded(query, &segments).and_then(|query| {
            check_columns(&query, self.segments)?;
            Ok(query)
        });
        query.map_err(|kind| segments[0].file().error(kind))
    }

    /// The analyzers of the segments. With several, the terms of a query differ by segment, and the idf of a term is that of the
    /// segments with the same analyzer.
    pub fn analyzers(&self) -> Vec<Analyzer> {
        self.statistics.groups.iter().map(|group| group.analyzer).collect()
    }

    /// The number of live documents, including duplicates.
    pub fn documents(&self) -> u64 {
        self.statistics.documents
    }

    /// The top `k` documents for the terms of a text, as the format defines: each segment returns 2k documents, so ties are
    /// broken by low document numbers, and many documents with one ID displace others.
    pub fn search(&self, text: &str, k: usize) -> Result<(Vec<GlobalHit>, MultiSearchStats), Error> {
        self.search_with(text, k, &NoProgress)
    }

    /// The same; `progress` can cancel it.
    pub fn search_with(
        &self,
        text: &str,
        k: usize,
        progress: &dyn Progress,
    ) -> Result<(Vec<GlobalHit>, MultiSearchStats), Error> {
        self.find_in(&Query::terms(text), &SearchOptions::new(k).with_progress(progress), None, false)
    }

    /// The top documents for a query, optionally restricted to a mask per segment.
    ///
    /// Ties are broken by document ID.
    ///
    /// Rankings other than the native one search all segments, and use the mean document length of the cluster.
    pub fn find(
        &self,
        query: &Query,
        options: &SearchOptions<'_>,
        filters: Option<&[Mask]>,
    ) -> Result<(Vec<GlobalHit>, MultiSearchStats), Error> {
        self.find_in(query, options, filters, true)
    }

    fn find_in(
        &self,
        query: &Query,
        options: &SearchOptions<'_>,
        filters: Option<&[Mask]>,
        all_equal: bool,
    ) -> Result<(Vec<GlobalHit>, MultiSearchStats), Error> {
        let k = options.k;
        let queries = self.group_queries(query, options)?;
        let norms = self.norms(options.ranking)?;
        let mut stats = MultiSearchStats::default();
        let mut order: Vec<(f32, usize, &GroupQuery)> = Vec::new();
        for (group, query) in self.statistics.groups.iter().zip(&queries) {
            let terms: Vec<&Scored> = query.query.scored().collect();
            // Matches of all documents and of columns have no terms.
            let matches_all = query.query.any(&|part| matches!(part, Part::All | Part::Column(_)));
            for (position, at) in group.segments.iter().enumerate() {
                let most = |term: &str| query.known.get(term).map_or(0, |known| known.most[position]);
                if !matches_all && terms.iter().all(|scored| most(&scored.term) == 0) {
                    continue;
                }
                // Added in query order, like scores, so that no score of the segment exceeds the bound by rounding.
                let idf = |scored: &Scored| {
                    query.idf_overrides.get(scored.weight_term()).copied().unwrap_or(0.0) * scored.boost
                };
                let held = terms.iter().filter(|scored| most(&scored.term) > 0);
                let bound =
                    held.fold(0.0f32, |sum, scored| sum + score::term(idf(scored), most(&scored.term)));
                let native = options.ranking == Ranking::Native;
                order.push((if native { bound } else { f32::INFINITY }, *at, query));
            }
        }
        stats.candidates = order.len() as u64;
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut best = Best::new(k);
        for (bound, at, query) in order.into_iter().take_while(|_| k > 0) {
            let min_score = best.threshold();
            if bound < min_score {
                break;
            }
            let segment = &self.segments[at];
            let mut options = options.with_min_score(min_score).with_idf_overrides(&query.idf_overrides);
            options.k = k.saturating_mul(2);
            options.filter = filters.and_then(|filters| filters.get(at));
            options.norms = norms.and_then(|norms| norms.get(at));
            loop {
                let found = segment.find_terms(&query.query, &options)?;
                stats.add(&found.stats);
                let is_cut = found.hits.len() == options.k;
                let last = found.hits.last().map_or(0.0, |hit| hit.score);
                for hit in named(at, segment, &found.hits)? {
                    best.push(hit);
                }
                // Documents after the cut may tie with the last hit and have a smaller ID, or may have been displaced by
                // duplicates.
                if !all_equal || !is_cut || last < best.threshold() {
                    break;
                }
                options.k = options.k.saturating_mul(4);
            }
            stats.visited += 1;
        }
        stats.threshold = best.threshold();
        Ok((best.into_sorted(), stats))
    }

    /// The contribution of each query term to the score of a hit, in order.
    pub fn explain(
        &self,
        query: &Query,
        options: &SearchOptions<'_>,
        hit: &GlobalHit,
    ) -> Result<Vec<TermExplanation>, Error> {
        let Some(segment) = self.segments.get(hit.segment) else { return Ok(Vec::new()) };
        let Some(group) = self.statistics.groups.iter().find(|group| group.segments.contains(&hit.segment))
        else {
            return Ok(Vec::new());
        };
        let query = self.group_query(group, query, options)?;
        let mut options = options.with_idf_overrides(&query.idf_overrides);
        options.norms = self.norms(options.ranking)?.and_then(|norms| norms.get(hit.segment));
        let mut out = segment.explain_terms(&query.query, &options, hit.document)?;
        for term in &mut out {
            term.documents = query.known.get(&term.term).map_or(0, |known| known.found);
        }
        Ok(out)
    }

    /// The document norms, if the ranking needs them.
    fn norms(&self, ranking: Ranking) -> Result<Option<&Vec<Norms>>, Error> {
        let Some(parameters) = ranking.parameters() else { return Ok(None) };
        let own = &self.statistics.norms[parameters.2];
        if let Some(norms) = own.get() {
            return Ok(Some(norms));
        }
        let lengths = self.segments.iter().map(Segment::lengths).collect::<Result<Vec<_>, _>>()?;
        let total = lengths.iter().map(|lengths| lengths.total).sum();
        let mean = rank::mean(total, lengths.iter().map(|lengths| lengths.len()).sum());
        let norms = lengths.into_iter().map(|lengths| Norms::in_cluster(lengths, mean, parameters)).collect();
        Ok(Some(own.get_or_init(|| norms)))
    }

    fn group_queries(&self, query: &Query, options: &SearchOptions<'_>) -> Result<Vec<GroupQuery>, Error> {
        self.statistics.groups.iter().map(|group| self.group_query(group, query, options)).collect()
    }

    /// The query in terms of a group, with the statistics of its terms.
    fn group_query(
        &self,
        group: &AnalyzerGroup,
        query: &Query,
        options: &SearchOptions<'_>,
    ) -> Result<GroupQuery, Error> {
        let ranking = options.ranking;
        let segments: Vec<&Segment> = group.segments.iter().map(|at| &self.segments[*at]).collect();
        let query = self.expanded(group, query)?;
        let mut known = HashMap::new();
        for scored in query.scored() {
            if !known.contains_key(&scored.term) {
                options.cancel.check().map_err(|cancelled| segments[0].file().error(cancelled.into()))?;
                known.insert(scored.term.clone(), term_summary(&scored.term, &segments, ranking)?);
            }
        }
        let weight = |known: &TermSummary| {
            let idf = score::idf(group.documents, known.found);
            if ranking.is_weighted_by_frequency() {
                rank::weight(idf, known.found, known.occurrences)
            } else {
                idf
            }
        };
        let idf_overrides = known.iter().map(|(term, known)| (term.clone(), weight(known))).collect();
        Ok(GroupQuery { query, known, idf_overrides })
    }
}

/// Statistics of a term in every segment.
fn term_summary(term: &str, segments: &[&Segment], ranking: Ranking) -> Result<TermSummary, Error> {
    let mut out = TermSummary { found: 0, most: Vec::with_capacity(segments.len()), occurrences: 0 };
    for segment in segments {
        let stats = segment.term_stats(term)?;
        out.found += stats.map_or(0, |stats| stats.documents);
        out.most.push(stats.map_or(0, |stats| stats.max_frequency));
        if stats.is_some() && ranking.is_weighted_by_frequency() {
            out.occurrences += segment.term_occurrences(term)?;
        }
    }
    Ok(out)
}

/// The best hits, one per ID.
#[derive(Debug)]
struct Best {
    k: usize,
    hits: HashMap<Vec<u8>, GlobalHit>,
}

impl Best {
    fn new(k: usize) -> Self {
        Self { k, hits: HashMap::new() }
    }

    /// The k-th best score, or 0.
    fn threshold(&self) -> f32 {
        if self.k == 0 || self.hits.len() < self.k {
            return 0.0;
        }
        let mut scores: Vec<f32> = self.hits.values().map(|hit| hit.score).collect();
        let (_, kth, _) = scores.select_nth_unstable_by(self.k - 1, |a, b| b.total_cmp(a));
        *kth
    }

    /// Adds a hit; of two with the same ID the better one is kept, of equal ones the first.
    fn push(&mut self, hit: GlobalHit) {
        match self.hits.get_mut(&hit.doc_id) {
            Some(known) if known.score >= hit.score => {}
            Some(known) => *known = hit,
            None => {
                self.hits.insert(hit.doc_id.clone(), hit);
            }
        }
    }

    fn into_sorted(self) -> Vec<GlobalHit> {
        let mut out: Vec<GlobalHit> = self.hits.into_values().collect();
        out.sort_by(order);
        out.truncate(self.k);
        out
    }
}

/// By descending score, then by ID.
fn order(one: &GlobalHit, other: &GlobalHit) -> std::cmp::Ordering {
    other.score.total_cmp(&one.score).then_with(|| one.doc_id.cmp(&other.doc_id))
}

/// Hits with their document IDs.
fn named(at: usize, segment: &Segment, hits: &[Hit]) -> Result<Vec<GlobalHit>, Error> {
    let rows: Vec<u64> = hits.iter().map(|hit| hit.document.into()).collect();
    let ids = segment.file().take(&rows, &[columns::DOC_ID])?;
    let named = hits.iter().enumerate().map(|(index, hit)| {
        let Some(Scalar::Bytes(doc_id)) = ids.first().and_then(|ids| ids.scalar(index)) else {
            let rule = "the first column of a segment contains the document IDs";
            let reason = tercet_core::Reason::Unexpected { rule };
            let region = crate::Region::Chunk { group: 0, column: 0 };
            return Err(segment.file().error(crate::block_codec::fault(region, "doc_id", 0, 0, reason)));
        };
        Ok(GlobalHit { segment: at, document: hit.document, doc_id, score: hit.score })
    });
    named.collect()
}
