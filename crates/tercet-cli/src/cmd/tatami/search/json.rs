//! The JSON output of a search.

use serde::Serialize;
use tercet::tatami::search::{
    DocumentHit, Facet, Ranking, RunStats, SearchResponse, SearchTiming, Searcher, StoredFields,
    TermExplanation, Total,
};

use super::Args;
use crate::cmd::tatami::scalars::{JsonScalar, typed_json};

/// The JSON output.
#[derive(Debug, Serialize)]
pub(super) struct SearchJson<'a> {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    like: Option<&'a str>,
    rank: Ranking,
    documents: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<Total>,
    offset: usize,
    hits: Vec<HitJson<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    facets: Vec<FacetJson<'a>>,
    took: SearchTiming,
    stats: RunStats,
}

/// A search hit.
#[derive(Debug, Serialize)]
struct HitJson<'a> {
    /// The file, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(flatten)]
    stored: &'a StoredFields,
    /// Without a score, the hits are sorted by a column.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f32>,
    document: u32,
    snippet: &'a str,
    /// Byte ranges of matched terms in the snippet.
    marks: Vec<(usize, usize)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<&'a [TermExplanation]>,
}

#[derive(Debug, Serialize)]
struct FacetJson<'a> {
    column: &'a str,
    values: Vec<FacetValueJson>,
    distinct: u64,
    others: u64,
    missing: u64,
}

#[derive(Debug, Serialize)]
struct FacetValueJson {
    value: JsonScalar,
    documents: u64,
}

impl<'a> SearchJson<'a> {
    pub(super) fn new(args: &'a Args, searcher: &'a Searcher, response: &'a SearchResponse) -> Self {
        let hit = |hit: &'a DocumentHit| {
            let file = searcher.is_cluster().then(|| &**searcher.segments()[hit.segment].file().name());
            HitJson::new(file, hit)
        };
        Self {
            file: args.input.path.to_string_lossy().into_owned(),
            query: args.query.as_deref(),
            like: args.like.as_deref(),
            rank: args.rank.ranking(),
            documents: searcher.documents(),
            total: response.total,
            offset: args.offset,
            hits: response.hits.iter().map(hit).collect(),
            facets: response.facets.iter().map(FacetJson::new).collect(),
            took: response.took,
            stats: response.stats,
        }
    }
}

impl<'a> HitJson<'a> {
    fn new(file: Option<&'a str>, hit: &'a DocumentHit) -> Self {
        let highlight = hit.highlight.as_ref();
        let marks = highlight.map_or(&[][..], |highlight| &highlight.marks);
        Self {
            file,
            stored: &hit.stored,
            score: hit.score,
            document: hit.document,
            snippet: highlight.map_or("", |highlight| &highlight.text),
            marks: marks.iter().map(|mark| (mark.start, mark.end)).collect(),
            explain: hit.explanation.as_deref(),
        }
    }
}

impl<'a> FacetJson<'a> {
    fn new(facet: &'a Facet) -> Self {
        let values = facet.values.iter().map(|value| FacetValueJson {
            value: typed_json(facet.kind, facet.logical_type, &value.value),
            documents: value.documents,
        });
        let Facet { column, distinct, others, missing, .. } = facet;
        Self { column, values: values.collect(), distinct: *distinct, others: *others, missing: *missing }
    }
}
