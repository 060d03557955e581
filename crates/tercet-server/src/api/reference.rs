//! The endpoints of the existing server, with its bodies: `/search` and `/stats`.

use std::sync::atomic::Ordering;
use std::time::Instant;

use schemars::JsonSchema;
use serde::Serialize;
use tercet::tatami::search::{Cluster, GlobalHit, Segment};

use crate::endpoint::{Call, Content, Endpoint, Parameter, Run};
use crate::failure::Failure;
use crate::options::Options;
use crate::params::lenient;
use crate::reply::{Reply, Shortest, json, millis};

/// The header in which the router passes the query string on.
pub(crate) const QUERY: &str = "tercet-query";
/// The header in which the router passes the method on.
pub(crate) const METHOD: &str = "tercet-method";

pub(crate) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        path: "/search",
        tag: "search",
        summary: "The best documents for the words of a query, with the ranking of the format",
        parameters: &[
            Parameter::text("q", "The words").required(),
            Parameter::integer("k", 1, 1_000_000, "The number of documents; at most the limit of the server"),
        ],
        run: Run::Work,
        content: &[Content::json::<SearchJson>()],
        handler: search,
    },
    Endpoint {
        path: "/stats",
        tag: "server",
        summary: "Counters of searches",
        parameters: &[],
        run: Run::Light,
        content: &[Content::json::<StatsJson>()],
        handler: stats,
    },
];

/// The results of a search.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ReferenceSearch")]
struct SearchJson {
    query: String,
    k: usize,
    /// The number of results.
    total: usize,
    took_ms: Shortest<f64>,
    stats: VisitedJson,
    results: Vec<HitJson>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ReferenceVisited")]
struct VisitedJson {
    candidates: u64,
    visited: u64,
    threshold: Shortest<f32>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ReferenceHit")]
struct HitJson {
    doc_id: String,
    url: String,
    title: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    snippet: String,
    score: Shortest<f32>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ServerStats")]
struct StatsJson {
    shards: u64,
    docs: u64,
    cache_len: usize,
    max_in_flight: usize,
    in_flight: u64,
    total: u64,
    rejected: u64,
    timed_out: u64,
    canceled: u64,
    failed: u64,
}

/// The body of an error.
pub(crate) fn error_body(message: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct Body<'a> {
        error: &'a str,
    }
    json(&Body { error: message })
}

/// Query and number of hits, checked in the order of the existing server.
pub(crate) fn check(options: &Options, query: &str) -> Result<(String, usize), Failure> {
    let text = lenient(query, "q")?.filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| Failure::request("missing query parameter q"))?;
    let k = match lenient(query, "k")?.filter(|text| !text.is_empty()) {
        None => options.default_k,
        Some(k) => {
            let digits = k.strip_prefix(['+', '-']).unwrap_or(&k);
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(Failure::request("k must be an integer"));
            }
            // Integers have 64 bits.
            let k: i64 = k.parse().map_err(|_| Failure::request("k must be an integer"))?;
            match usize::try_from(k) {
                Ok(k) if k > options.max_k => {
                    return Err(Failure::request(format!("k must be at most {}", options.max_k)));
                }
                Ok(k) if k > 0 => k,
                _ => return Err(Failure::request("k must be positive")),
            }
        }
    };
    super::search::check_terms(options, &text)?;
    Ok((text, k))
}

fn search(call: &Call<'_>) -> Result<Reply, Failure> {
    let query = call.headers.get(QUERY).and_then(|query| query.to_str().ok()).unwrap_or("");
    let (query, k) = check(&call.state.options, query)?;
    let started = Instant::now();
    let set = call.state.searches.get(call.state, &[], call.work)?;
    let segments = set.plain();
    let (hits, stats) = Cluster::new(segments).search_with(&query, k, call.work)?;
    call.work.check_deadline()?;
    let mut results = Vec::with_capacity(hits.len());
    for hit in &hits {
        results.push(result(&segments[hit.segment], hit)?);
        call.work.check_deadline()?;
    }
    Ok(Reply::json(&SearchJson {
        query,
        k,
        total: results.len(),
        took_ms: millis(started.elapsed()),
        stats: VisitedJson {
            candidates: stats.candidates,
            visited: stats.visited,
            threshold: Shortest(stats.threshold),
        },
        results,
    }))
}

fn result(segment: &Segment, hit: &GlobalHit) -> Result<HitJson, Failure> {
    let stored = segment.documents(&[hit.document])?.pop();
    let Some(stored) = stored else { return Err(Failure::internal("a document is missing")) };
    let snippet = if segment.is_snippet_only() {
        String::from_utf8_lossy(&segment.text(hit.document)?).into_owned()
    } else {
        String::new()
    };
    Ok(HitJson {
        doc_id: stored.doc_id,
        url: stored.url,
        title: stored.title,
        snippet,
        score: Shortest(hit.score),
    })
}

#[expect(clippy::unnecessary_wraps, reason = "a handler")]
fn stats(call: &Call<'_>) -> Result<Reply, Failure> {
    let (state, metrics) = (call.state, &call.state.metrics);
    let (shards, docs) = crate::index::SearchSets::size(state);
    Ok(Reply::json(&StatsJson {
        shards,
        docs,
        cache_len: state.searches.open_count(),
        max_in_flight: state.options.max_in_flight,
        in_flight: metrics.searching.load(Ordering::Relaxed),
        total: metrics.searches.load(Ordering::Relaxed),
        rejected: metrics.rejected.load(Ordering::Relaxed),
        timed_out: metrics.timed_out.load(Ordering::Relaxed),
        canceled: metrics.canceled.load(Ordering::Relaxed),
        failed: metrics.failed.load(Ordering::Relaxed),
    }))
}
