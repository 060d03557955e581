//! Search for applications: hits with stored fields and excerpts, totals, facets, sorting and pages of results.
//!
//! ```
//! use std::io::Cursor;
//! use tercet_tatami::File;
//! use tercet_tatami::search::{Document, Query, SearchRequest, Searcher, SegmentBuilder, SegmentOptions};
//!
//! let mut builder = SegmentBuilder::new(Cursor::new(Vec::new()), SegmentOptions::new())?;
//! builder.add(&Document::new("https://a.example/", "Cities").with_body(b"Bonn and Ulm"))?;
//! builder.add(&Document::new("https://b.example/", "Rivers").with_body(b"Bonn is on the Rhine"))?;
//! let file = File::from_bytes("cities", builder.finish()?.written.output)?;
//! let searcher = Searcher::from_segment(file.segment()?.unwrap());
//!
//! let found = searcher.search(&SearchRequest::new(Query::parse("bonn")?).with_limit(1).with_offset(1))?;
//! assert_eq!(found.total.unwrap().documents, 2);
//! assert_eq!(found.hits[0].stored.title, "Rivers");
//! assert_eq!(found.hits[0].highlight.as_ref().unwrap().text, "Bonn is on the Rhine");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clock;
mod facet;
mod feedback;
mod sort;
mod suggest;

use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};
use tercet_core::Progress;
use tercet_core::progress::NoProgress;

use super::analyzer::Analyzer;
use super::highlight::Highlight;
use super::merge::{drop_duplicates, live_rows};
use super::multi::{Cluster, GlobalHit, MultiSearchStats, Statistics};
use super::options::{Cancel, SearchOptions, SearchStats, StoredFields, TermExplanation};
use super::query::Query;
use super::rank::Ranking;
use super::segment::{Effort, Matches, Segment};
use crate::error::Error;
#[cfg(any(unix, windows))]
use crate::file::ReadOptions;
use crate::logical_type::LogicalType;
use crate::predicate::{Expr, Mask, Reduced};
use crate::schema::{Field, Schema};
use clock::Clock;
pub use facet::{Facet, FacetValue};
pub use sort::SortBy;
pub use suggest::Suggestion;

/// Hits whose documents are in memory at the same time.
const MAX_DOCUMENTS_IN_MEMORY: usize = 32;

/// Searches one segment, or several as one.
///
/// Of documents with the same ID in several segments, the newest is found: that of the segment with the latest creation time, of
/// equal times the last segment.
#[derive(Debug)]
pub struct Searcher {
    segments: Vec<Segment>,
    /// Statistics of several segments, ranked as one.
    statistics: Option<Arc<Statistics>>,
    older_versions: u64,
}

/// A search with everything that an application shows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SearchRequest {
    /// The query.
    pub query: Query,
    /// Ranking function.
    pub ranking: Ranking,
    /// Number of hits to return.
    pub limit: usize,
    /// Number of hits to skip.
    pub offset: usize,
    /// Restriction to some documents, by their columns.
    pub filter: Option<Expr>,
    /// The order of the hits, if not by score.
    pub sort: Option<SortBy>,
    /// Columns whose values are counted.
    pub facets: Vec<String>,
    /// Number of values of a facet to return.
    pub facet_values: usize,
    /// How exactly matching documents are counted.
    pub counting: Counting,
    /// Approximate size of excerpts in bytes; 0 for none.
    pub snippet_bytes: usize,
    /// Whether scores are explained.
    pub explain: bool,
    /// Whether characteristic words of the best documents are added to the query; see [`Searcher::expanded`].
    pub expand: bool,
}

/// How exactly matching documents are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// Not at all.
    Off,
    /// Exactly, unless it takes long: then the count is a lower bound.
    #[default]
    Bounded,
    /// Exactly. A query with phrases reads the text of each document with all of their terms.
    Exact,
}

/// The number of matching documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Total {
    /// The number.
    pub documents: u64,
    /// Whether it is exact; otherwise at least as many documents match.
    pub is_exact: bool,
}

/// The result of a search.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SearchResponse {
    /// The hits of the requested page.
    pub hits: Vec<DocumentHit>,
    /// The number of matching documents; `None` if it was not requested.
    pub total: Option<Total>,
    /// The requested facets, in order.
    pub facets: Vec<Facet>,
    /// The time it took.
    pub took: SearchTiming,
    /// Statistics of the ranking.
    pub stats: RunStats,
}

/// A hit with its document.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DocumentHit {
    /// The segment, by its position.
    pub segment: usize,
    /// Its row in that segment.
    pub document: u32,
    /// The score; `None` if the hits are sorted by a column.
    pub score: Option<f32>,
    /// ID, URL and title.
    pub stored: StoredFields,
    /// The excerpt, if requested.
    pub highlight: Option<Highlight>,
    /// The contributions to the score, if requested.
    pub explanation: Option<Vec<TermExplanation>>,
}

/// The time of the parts of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SearchTiming {
    /// Filtering and ranking.
    #[serde(rename = "ranking_us", serialize_with = "as_micros")]
    pub ranking: Duration,
    /// Counting, facets and sorting: finding all matching documents.
    #[serde(rename = "counting_us", serialize_with = "as_micros")]
    pub counting: Duration,
    /// Reading stored fields and texts of the hits.
    #[serde(rename = "fetching_us", serialize_with = "as_micros")]
    pub fetching: Duration,
    /// Making excerpts.
    #[serde(rename = "highlighting_us", serialize_with = "as_micros")]
    pub highlighting: Duration,
    /// The sum.
    #[serde(rename = "total_us", serialize_with = "as_micros")]
    pub total: Duration,
}

fn as_micros<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}

/// Statistics of the ranking.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RunStats {
    /// Of one segment.
    One(SearchStats),
    /// Of several segments.
    Several(MultiSearchStats),
}

impl SearchRequest {
    /// The first ten hits with excerpts of 200 bytes, ranked by relevance.
    pub fn new(query: Query) -> Self {
        Self {
            query,
            ranking: Ranking::Relevance,
            limit: 10,
            offset: 0,
            filter: None,
            sort: None,
            facets: Vec::new(),
            facet_values: 10,
            counting: Counting::default(),
            snippet_bytes: 200,
            explain: false,
            expand: false,
        }
    }

    /// Sets the ranking.
    pub fn with_ranking(mut self, ranking: Ranking) -> Self {
        self.ranking = ranking;
        self
    }

    /// Sets the number of hits to return.
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the number of hits to skip.
    pub fn with_offset(mut self, offset: usize) -> Self {
        self.offset = offset;
        self
    }

    /// Restricts the search to some documents.
    pub fn with_filter(mut self, filter: Option<Expr>) -> Self {
        self.filter = filter;
        self
    }

    /// Sets the order of the hits.
    pub fn with_sort(mut self, sort: Option<SortBy>) -> Self {
        self.sort = sort;
        self
    }

    /// Sets the columns whose values are counted, and the number of values of each to return.
    pub fn with_facets(mut self, columns: Vec<String>, values: usize) -> Self {
        (self.facets, self.facet_values) = (columns, values);
        self
    }

    /// Sets how exactly matching documents are counted.
    pub fn with_counting(mut self, counting: Counting) -> Self {
        self.counting = counting;
        self
    }

    /// Sets the approximate size of excerpts; 0 for none.
    pub fn with_snippet_bytes(mut self, bytes: usize) -> Self {
        self.snippet_bytes = bytes;
        self
    }

    /// Sets whether characteristic words of the best documents are added to the query.
    pub fn with_expand(mut self, expand: bool) -> Self {
        self.expand = expand;
        self
    }

    /// Sets whether scores are explained.
    pub fn with_explain(mut self, explain: bool) -> Self {
        self.explain = explain;
        self
    }
}

/// A hit before its document is read.
#[derive(Clone, Copy, Debug)]
struct RankedDocument {
    segment: usize,
    document: u32,
    score: Option<f32>,
}

impl Searcher {
    /// Searches one segment by its own statistics.
    pub fn from_segment(segment: Segment) -> Self {
        Self { segments: vec![segment], statistics: None, older_versions: 0 }
    }

    /// Searches several segments as one, with the statistics of all; of documents with the same ID the newest.
    pub fn new(mut segments: Vec<Segment>) -> Result<Self, Error> {
        let has_unique_ids = segments.first().is_some_and(|first| {
            first.mark.is_some() && segments.iter().all(|segment| segment.mark == first.mark)
        });
        let is_one = segments.len() <= 1;
        let older_versions = if is_one || has_unique_ids { 0 } else { hide_older_versions(&mut segments)? };
        let statistics = Arc::clone(Cluster::new(&segments).statistics());
        Ok(Self { segments, statistics: Some(statistics), older_versions })
    }

    /// Searches the segments of a collection, or the `.tatami` files of a directory without a manifest.
    #[cfg(any(unix, windows))]
    pub fn open_directory(directory: &std::path::Path, options: ReadOptions) -> Result<Self, Error> {
        Self::new(super::directory::DirectorySegments::open(directory, options)?.segments)
    }

    /// The segments.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Whether it searches a directory or a collection, whose segments are ranked as one.
    pub fn is_cluster(&self) -> bool {
        self.statistics.is_some()
    }

    /// The number of documents that are found.
    pub fn documents(&self) -> u64 {
        self.segments.iter().map(Segment::live_document_count).sum()
    }

    /// Documents that are not found because a newer one has the same ID.
    pub fn older_versions(&self) -> u64 {
        self.older_versions
    }

    /// The analyzers of the segments.
    pub fn analyzers(&self) -> Vec<Analyzer> {
        self.cluster().analyzers()
    }

    /// The segments as a cluster.
    pub fn cluster(&self) -> Cluster<'_> {
        match &self.statistics {
            Some(statistics) => Cluster::with_statistics(&self.segments, statistics),
            None => Cluster::new(&self.segments),
        }
    }

    /// Searches, reads the documents of the hits and marks the query terms in them.
    pub fn search(&self, request: &SearchRequest) -> Result<SearchResponse, Error> {
        self.search_with(request, &NoProgress)
    }

    /// The same; `progress` can cancel it. It is asked for each block of postings, before texts are read, and between the parts.
    ///
    /// ```
    /// # use std::io::Cursor;
    /// # use tercet_core::{Diagnostic, progress::Counter};
    /// # use tercet_tatami::File;
    /// # use tercet_tatami::search::{Document, Query, SearchRequest, Searcher, SegmentBuilder, SegmentOptions};
    /// # let mut builder = SegmentBuilder::new(Cursor::new(Vec::new()), SegmentOptions::new())?;
    /// # builder.add(&Document::new("https://a.example/", "Cities").with_body(b"Bonn and Ulm"))?;
    /// # let file = File::from_bytes("cities", builder.finish()?.written.output)?;
    /// # let searcher = Searcher::from_segment(file.segment()?.unwrap());
    /// let progress = Counter::default();
    /// progress.cancel();
    /// let cancelled = searcher.search_with(&SearchRequest::new(Query::parse("bonn")?), &progress);
    /// assert!(cancelled.unwrap_err().is_cancelled());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn search_with(
        &self,
        request: &SearchRequest,
        progress: &dyn Progress,
    ) -> Result<SearchResponse, Error> {
        let cancel = Cancel::new(progress);
        self.check(cancel)?;
        let (mut took, mut clock) = (SearchTiming::default(), Clock::start());
        let filters = request.filter.as_ref().map(|filter| self.filters(filter)).transpose()?;
        let filters = filters.as_deref();
        let expanded;
        let request = if request.expand {
            let query = self.expanded_with(request, filters, cancel)?;
            expanded = SearchRequest { query, ..request.clone() };
            &expanded
        } else {
            request
        };
        let (mut ranked, stats) = self.ranked(request, filters, cancel)?;
        took.ranking = clock.lap();

        let wanted = request.offset.saturating_add(request.limit);
        let mut total = None;
        let mut facets = Vec::new();
        if request.sort.is_some() || !request.facets.is_empty() {
            let mut effort = Effort::unbounded(cancel);
            let found = self.cluster().matching(&request.query, filters, &mut effort)?;
            let documents = found.iter().map(|matches| matches.rows.count() as u64).sum();
            total = Some(Total { documents, is_exact: true });
            if let Some(sort) = &request.sort {
                ranked = sort::sorted(&self.segments, &found, sort, wanted, cancel)?;
            }
            for column in &request.facets {
                self.check(cancel)?;
                facets.push(facet::facet(&self.segments, &found, column, request.facet_values)?);
            }
        } else if request.counting != Counting::Off {
            total = Some(self.total(request, filters, ranked.len(), wanted, cancel)?);
        }
        took.counting = clock.lap();

        let page = ranked.get(request.offset.min(ranked.len())..).unwrap_or_default();
        self.check(cancel)?;
        let mut hits = self.hits(page)?;
        took.fetching = clock.lap();
        if request.snippet_bytes > 0 {
            for start in (0..page.len()).step_by(MAX_DOCUMENTS_IN_MEMORY) {
                let end = page.len().min(start + MAX_DOCUMENTS_IN_MEMORY);
                self.check(cancel)?;
                let texts = self.by_segment(&page[start..end], |segment, documents| {
                    Ok(segment.texts(documents)?.iter().map(<[u8]>::to_vec).collect())
                })?;
                took.fetching += clock.lap();
                self.highlight(request, &mut hits[start..end], &texts, cancel)?;
                took.highlighting += clock.lap();
            }
        }
        if request.explain && request.sort.is_none() {
            self.explain(request, &mut hits)?;
            took.ranking += clock.lap();
        }
        took.total = took.ranking + took.counting + took.fetching + took.highlighting;
        Ok(SearchResponse { hits, total, facets, took, stats })
    }

    /// The columns of all segments with their logical types; `None` without segments. Of several columns with the same name, that of the
    /// first segment.
    pub fn schema(&self) -> Option<(Schema, Vec<Option<LogicalType>>)> {
        let (mut fields, mut logical_types): (Vec<Field>, Vec<Option<LogicalType>>) =
            (Vec::new(), Vec::new());
        for file in self.segments.iter().map(Segment::file) {
            for (field, logical_type) in file.schema().fields().iter().zip(file.logical_types()) {
                if !fields.iter().any(|known| known.name == field.name) {
                    fields.push(Field { sort_key: false, ..field.clone() });
                    logical_types.push(logical_type);
                }
            }
        }
        Some((Schema::new(fields).ok()?, logical_types))
    }

    /// The documents of each segment that match a filter. A column that only some segments have is null in the others.
    fn filters(&self, filter: &Expr) -> Result<Vec<Mask>, Error> {
        for column in filter.columns() {
            check_column(&self.segments, column)?;
        }
        let one = |segment: &Segment| {
            let all = |bit| Mask::filled(usize::try_from(segment.document_count()).unwrap_or(0), bit);
            match filter.without_columns(&|column| segment.file().schema().index_of(column).is_some()) {
                Reduced::Every => Ok(all(true)),
                Reduced::Never => Ok(all(false)),
                Reduced::Rows(filter) => segment.filter(&filter),
            }
        };
        self.segments.iter().map(one).collect()
    }

    /// Fails if the search is cancelled.
    fn check(&self, cancel: Cancel<'_>) -> Result<(), Error> {
        cancel.check().map_err(|cancelled| match self.segments.first() {
            Some(segment) => segment.file().error(cancelled.into()),
            None => Error::new("search".into(), cancelled.into()),
        })
    }

    /// The top documents up to the end of the requested page.
    fn ranked(
        &self,
        request: &SearchRequest,
        filters: Option<&[Mask]>,
        cancel: Cancel<'_>,
    ) -> Result<(Vec<RankedDocument>, RunStats), Error> {
        // Sorted hits need no ranking.
        let k = if request.sort.is_some() { 0 } else { request.offset.saturating_add(request.limit) };
        let options = SearchOptions { cancel, ..SearchOptions::new(k).with_ranking(request.ranking) };
        if self.statistics.is_none()
            && let [segment] = &self.segments[..]
        {
            let options = options.with_filter(filters.and_then(<[Mask]>::first));
            let found = segment.find(&request.query, &options)?;
            let ranked = |hit: &super::Hit| RankedDocument {
                segment: 0,
                document: hit.document,
                score: Some(hit.score),
            };
            return Ok((found.hits.iter().map(ranked).collect(), RunStats::One(found.stats)));
        }
        let (found, stats) = self.cluster().find(&request.query, &options, filters)?;
        let ranked = |hit: &GlobalHit| RankedDocument {
            segment: hit.segment,
            document: hit.document,
            score: Some(hit.score),
        };
        Ok((found.iter().map(ranked).collect(), RunStats::Several(stats)))
    }

    fn total(
        &self,
        request: &SearchRequest,
        filters: Option<&[Mask]>,
        found: usize,
        wanted: usize,
        cancel: Cancel<'_>,
    ) -> Result<Total, Error> {
        let found_count = found as u64;
        // The ranking returned all.
        if found < wanted {
            return Ok(Total { documents: found_count, is_exact: true });
        }
        let mut effort = match request.counting {
            Counting::Exact => Effort::unbounded(cancel),
            _ => Effort::small(cancel),
        };
        let (documents, is_exact) = self.cluster().count(&request.query, filters, &mut effort)?;
        Ok(Total { documents: documents.max(found_count), is_exact })
    }

    /// The hits with their stored fields.
    fn hits(&self, page: &[RankedDocument]) -> Result<Vec<DocumentHit>, Error> {
        let stored = self.by_segment(page, Segment::documents)?;
        let hit = |(ranked, stored): (&RankedDocument, StoredFields)| DocumentHit {
            segment: ranked.segment,
            document: ranked.document,
            score: ranked.score,
            stored,
            highlight: None,
            explanation: None,
        };
        Ok(page.iter().zip(stored).map(hit).collect())
    }

    /// Reads something of each document, segment by segment, and returns it in the order of the hits.
    fn by_segment<T>(
        &self,
        page: &[RankedDocument],
        read: impl Fn(&Segment, &[u32]) -> Result<Vec<T>, Error>,
    ) -> Result<Vec<T>, Error> {
        let mut out: Vec<Option<T>> = page.iter().map(|_| None).collect();
        for (at, segment) in self.segments.iter().enumerate() {
            let positions: Vec<usize> =
                (0..page.len()).filter(|position| page[*position].segment == at).collect();
            if positions.is_empty() {
                continue;
            }
            let documents: Vec<u32> = positions.iter().map(|position| page[*position].document).collect();
            for (position, value) in positions.into_iter().zip(read(segment, &documents)?) {
                out[position] = Some(value);
            }
        }
        Ok(out.into_iter().flatten().collect())
    }

    fn highlight(
        &self,
        request: &SearchRequest,
        hits: &mut [DocumentHit],
        texts: &[Vec<u8>],
        cancel: Cancel<'_>,
    ) -> Result<(), Error> {
        for (at, segment) in self.segments.iter().enumerate() {
            let mut highlighter = None;
            for (hit, text) in hits.iter_mut().zip(texts).filter(|(hit, _)| hit.segment == at) {
                self.check(cancel)?;
                let highlighter = match &mut highlighter {
                    Some(known) => known,
                    none => none.insert(segment.highlighter(&request.query, request.snippet_bytes)?),
                };
                hit.highlight = Some(highlighter.highlight(text));
            }
        }
        Ok(())
    }

    fn explain(&self, request: &SearchRequest, hits: &mut [DocumentHit]) -> Result<(), Error> {
        let options = SearchOptions::new(0).with_ranking(request.ranking);
        let cluster = self.cluster();
        for hit in hits {
            let segment = &self.segments[hit.segment];
            hit.explanation = Some(if self.statistics.is_none() {
                segment.explain(&request.query, &options, hit.document)?
            } else {
                let hit = GlobalHit {
                    segment: hit.segment,
                    document: hit.document,
                    doc_id: Vec::new(),
                    score: hit.score.unwrap_or(0.0),
                };
                cluster.explain(&request.query, &options, &hit)?
            });
        }
        Ok(())
    }
}

/// Checks that a segment has a column.
fn check_column(segments: &[Segment], column: &str) -> Result<(), Error> {
    let Some(first) = segments.first() else { return Ok(()) };
    if segments.iter().any(|segment| segment.file().schema().index_of(column).is_some()) {
        return Ok(());
    }
    first.file().column_index(column).map(drop)
}

/// Hides the documents that a newer segment, or a later row of the same one, has as well; returns their number.
fn hide_older_versions(segments: &mut [Segment]) -> Result<u64, Error> {
    let mut order: Vec<usize> = (0..segments.len()).collect();
    order.sort_by_key(|at| segments[*at].file().header().created_millis);
    let by_age: Vec<&Segment> = order.iter().map(|at| &segments[*at]).collect();
    let mut kept: Vec<Vec<bool>> = by_age.iter().map(|segment| live_rows(segment)).collect();
    let hidden = drop_duplicates(&by_age, &mut kept)?;
    if hidden > 0 {
        for (at, kept) in order.into_iter().zip(kept) {
            segments[at].hide((0..).zip(kept).filter(|(_, kept)| !kept).map(|(row, _)| row));
        }
    }
    Ok(hidden)
}

/// The rows of the matching documents.
fn rows(matches: &Matches) -> Vec<u64> {
    matches.rows.positions().map(|row| row as u64).collect()
}
