//! The target of a search: a segment, or all segments of a collection.

use std::time::Instant;

use serde::Serialize;
use tercet::core::escape;
use tercet::tatami::Error;
use tercet::tatami::predicate::Mask;
use tercet::tatami::search::{
    Analyzer, Cluster, GlobalHit, Highlight, MultiSearchStats, Query, SearchOptions, SearchStats, Segment,
    StoredFields, TermExplanation,
};

use crate::cmd::tatami::filter::Where;
use crate::cmd::tatami::merge::segments_of;
use crate::cmd::tatami::open::open_to_print;
use crate::failure::Failure;
use crate::input::Input;
use crate::ui::Ui;

/// The searched segments.
pub(in crate::cmd::tatami) enum SearchTarget {
    One(Box<Segment>),
    /// The segments of a directory or collection, ranked as one.
    All(Vec<Segment>),
}

/// A search hit.
#[derive(Debug, Serialize)]
pub(super) struct Hit {
    /// The file, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<String>,
    #[serde(flatten)]
    pub(super) stored: StoredFields,
    pub(super) score: f32,
    document: u32,
    pub(super) snippet: String,
    /// Byte ranges of matched terms in the snippet.
    pub(super) marks: Vec<(usize, usize)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) explain: Option<Vec<TermExplanation>>,
}

/// Search statistics.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Stats {
    One(SearchStats),
    All(MultiSearchStats),
}

impl std::fmt::Display for Stats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (decoded, blocks, scored, read) = match self {
            Self::One(stats) => {
                (stats.blocks_decoded, stats.blocks, stats.documents_scored, stats.documents_read)
            }
            Self::All(stats) => {
                write!(f, "{} of {} files searched; ", stats.visited, stats.candidates)?;
                (stats.blocks_decoded, stats.blocks, stats.documents_scored, stats.documents_read)
            }
        };
        write!(f, "{decoded} of {blocks} blocks decoded, {} skipped; ", blocks.saturating_sub(decoded))?;
        write!(f, "{scored} documents scored, {read} documents read for phrases")
    }
}

/// A search request.
pub(super) struct SearchRequest<'a> {
    pub(super) query: &'a Query,
    pub(super) options: SearchOptions<'a>,
    pub(super) filter: &'a Where,
    pub(super) explain: bool,
    pub(super) snippet_bytes: usize,
}

/// The result of a search.
pub(super) struct Answer {
    pub(super) hits: Vec<Hit>,
    pub(super) took_us: u64,
    pub(super) stats: Stats,
}

impl SearchTarget {
    pub(in crate::cmd::tatami) fn open(input: &Input, out: &mut Ui) -> Result<Self, Failure> {
        if input.is_on_disk() && input.path.is_dir() {
            return Ok(Self::All(segments_of(&input.path, out)?));
        }
        let file = open_to_print(input.source()?)?;
        let Some(segment) = file.segment()? else {
            return Err(Failure::request(format!("{}: not a search segment", escape::name(file.name())))
                .with_hint("create one with `tatami index`"));
        };
        Ok(Self::One(Box::new(segment)))
    }

    pub(in crate::cmd::tatami) fn segments(&self) -> &[Segment] {
        match self {
            Self::One(segment) => std::slice::from_ref(segment),
            Self::All(segments) => segments,
        }
    }

    /// The number of live documents.
    pub(super) fn documents(&self) -> u64 {
        self.segments().iter().map(Segment::live_document_count).sum()
    }

    /// The analyzers of the segments.
    pub(super) fn analyzers(&self) -> Vec<Analyzer> {
        Cluster::new(self.segments()).analyzers()
    }

    /// The words of the query that no document contains, in any form of the analyzers.
    pub(super) fn missing_words(&self, query: &Query) -> Result<Vec<String>, Error> {
        // Whether a segment has all terms of a word, in the order of the query.
        let mut words: Vec<(String, bool)> = Vec::new();
        for analyzer in self.analyzers() {
            let mut here: Vec<(String, bool)> = Vec::new();
            for (word, term) in query.scored_words(analyzer) {
                let mut segments = self.segments().iter().filter(|segment| segment.analyzer() == analyzer);
                let found = segments.try_fold(false, |found, segment| -> Result<bool, Error> {
                    Ok(found || segment.term_stats(&term)?.is_some())
                })?;
                match here.iter_mut().find(|(known, _)| *known == word) {
                    Some((_, all)) => *all &= found,
                    None => here.push((word, found)),
                }
            }
            for (word, found) in here {
                match words.iter_mut().find(|(known, _)| *known == word) {
                    Some((_, any)) => *any |= found,
                    None => words.push((word, found)),
                }
            }
        }
        let missing = words.into_iter().filter(|(_, found)| !found).map(|(word, _)| word).collect();
        Ok(missing)
    }

    /// Searches and reads the stored fields of the hits.
    pub(super) fn search(&self, request: &SearchRequest<'_>) -> Result<Answer, Failure> {
        let SearchRequest { query, options, filter, .. } = request;
        let mut filters = Vec::new();
        for segment in self.segments() {
            if let Some(predicate) = filter.bind_to(segment.file())? {
                filters.push(segment.filter(&predicate)?);
            }
        }
        let started = Instant::now();
        let elapsed_us = || u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let mut hits = Vec::new();
        let (stats, took_us) = match self {
            Self::One(segment) => {
                let found = segment.find(query, &options.with_filter(filters.first()))?;
                let took_us = elapsed_us();
                let documents: Vec<u32> = found.hits.iter().map(|hit| hit.document).collect();
                for (hit, stored) in found.hits.iter().zip(segment.documents(&documents)?) {
                    let explain =
                        request.explain.then(|| segment.explain(query, options, hit.document)).transpose()?;
                    hits.push(request.hit(segment, hit.document, hit.score, stored, explain)?);
                }
                (Stats::One(found.stats), took_us)
            }
            Self::All(segments) => {
                let cluster = Cluster::new(segments);
                let filters: Option<&[Mask]> = filter.is_some().then_some(&filters);
                let (found, stats) = cluster.find(query, options, filters)?;
                let took_us = elapsed_us();
                for (hit, stored) in found.iter().zip(stored(segments, &found)?) {
                    let explain =
                        request.explain.then(|| cluster.explain(query, options, hit)).transpose()?;
                    let segment = &segments[hit.segment];
                    let mut found = request.hit(segment, hit.document, hit.score, stored, explain)?;
                    found.file = Some(segment.file().name().to_string());
                    hits.push(found);
                }
                (Stats::All(stats), took_us)
            }
        };
        Ok(Answer { hits, took_us, stats })
    }
}

/// The stored fields of the hits, in order; read segment by segment.
fn stored(segments: &[Segment], hits: &[GlobalHit]) -> Result<Vec<StoredFields>, Error> {
    let mut out: Vec<Option<StoredFields>> = vec![None; hits.len()];
    for (at, segment) in segments.iter().enumerate() {
        let positions: Vec<usize> =
            (0..hits.len()).filter(|position| hits[*position].segment == at).collect();
        let documents: Vec<u32> = positions.iter().map(|position| hits[*position].document).collect();
        for (position, stored) in positions.into_iter().zip(segment.documents(&documents)?) {
            out[position] = Some(stored);
        }
    }
    Ok(out.into_iter().flatten().collect())
}

impl SearchRequest<'_> {
    fn hit(
        &self,
        segment: &Segment,
        document: u32,
        score: f32,
        stored: StoredFields,
        explain: Option<Vec<TermExplanation>>,
    ) -> Result<Hit, Failure> {
        let Highlight { text, marks, .. } = segment.highlight(self.query, document, self.snippet_bytes)?;
        let marks = marks.into_iter().map(|mark| (mark.start, mark.end)).collect();
        Ok(Hit { file: None, stored, score, document, snippet: text, marks, explain })
    }
}
