//! Search: results with highlights, suggestions, documents.

use std::time::Instant;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use tercet::tatami::Expr;
use tercet::tatami::search::{Facet, Query, Ranking, SearchRequest, Segment, SortBy};

use super::cells::{CellType, cell, scalar};
use super::marks::Marked;
use super::tatami::{bind, parse};
use crate::endpoint::{Call, Content, Endpoint, Parameter, Run};
use crate::failure::Failure;
use crate::index::SearchSet;
use crate::options::Options;
use crate::reply::{Reply, Shortest, millis};

/// The maximum position of a hit.
const MAX_WINDOW: usize = 10_000;
/// The maximum number of facets.
const MAX_FACETS: usize = 8;
/// The maximum number of values of a facet.
const FACET_VALUES: usize = 20;

const IN: Parameter = Parameter::list("in", "IDs of the searched files and collections [default: all]");

pub(crate) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        path: "/api/search",
        tag: "search",
        summary: "Ranked documents with highlights",
        parameters: &[
            Parameter::text("q", "The query; `*` for all documents").required(),
            Parameter::integer(
                "limit",
                0,
                1000,
                "Maximum number of documents; at most the limit of the server",
            ),
            Parameter::integer("offset", 0, 10_000, "Documents to skip"),
            Parameter::one_of("rank", &["relevance", "bm25", "native"], "Ranking [default: relevance]"),
            Parameter::one_of(
                "syntax",
                &["query", "terms"],
                "Whether operators are understood [default: query]",
            ),
            Parameter::text("where", "Filter by the columns of the segments: `norm_body > 100`"),
            Parameter::text("sort", "`score` or a column; `-column` is descending [default: score]"),
            Parameter::list("facets", "Columns whose values are counted"),
            IN,
            Parameter::integer("highlight", 0, 2000, "Bytes of an excerpt [default: 200]"),
        ],
        run: Run::Work,
        content: &[Content::json::<SearchJson>()],
        handler: search,
    },
    Endpoint {
        path: "/suggest",
        tag: "search",
        summary: "Completions of the last word of a query by indexed terms",
        parameters: &[
            Parameter::text("q", "The query").required(),
            Parameter::integer("limit", 1, 50, "Maximum number of suggestions [default: 8]"),
            IN,
        ],
        run: Run::Work,
        content: &[Content::json::<SuggestJson>()],
        handler: suggest,
    },
    Endpoint {
        path: "/doc/{doc_id}",
        tag: "search",
        summary: "A stored document, with the matches of a query",
        parameters: &[
            Parameter::text("doc_id", "The ID of the document").in_path(),
            Parameter::text("q", "The query whose matches are marked"),
            Parameter::text("syntax", "`query` or `terms`"),
            IN,
            Parameter::integer("document", 0, u64::MAX, "The number of the document in its file"),
            Parameter::integer(
                "max",
                0,
                1 << 24,
                "Maximum bytes of the text; at most the limit of the server",
            ),
        ],
        run: Run::Work,
        content: &[Content::json::<DocumentJson>()],
        handler: document,
    },
];

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SearchAnswer")]
struct SearchJson {
    query: String,
    offset: usize,
    limit: usize,
    /// The number of matching documents.
    matches: u64,
    /// Whether it is exact; otherwise a lower bound.
    matches_exact: bool,
    documents: u64,
    segments: usize,
    took_ms: Shortest<f64>,
    timing: TimingJson,
    /// Sentences about the query.
    notes: Vec<String>,
    results: Vec<ResultJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    facets: Option<Vec<FacetJson>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Facet")]
struct FacetJson {
    field: String,
    values: Vec<FacetValueJson>,
    /// The number of further distinct values.
    more: u64,
    /// The number of documents without a value.
    missing: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "FacetValue")]
struct FacetValueJson {
    value: Json,
    count: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SearchTiming")]
#[expect(clippy::struct_field_names, reason = "the names in the output")]
struct TimingJson {
    open_ms: Shortest<f64>,
    search_ms: Shortest<f64>,
    count_ms: Shortest<f64>,
    fetch_ms: Shortest<f64>,
    highlight_ms: Shortest<f64>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SearchResult")]
struct ResultJson {
    doc_id: String,
    file: FileJson,
    document: u32,
    url: String,
    title: String,
    /// None if the documents are sorted by a column.
    score: Option<Shortest<f32>>,
    snippet: Option<Marked>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "FileRef")]
struct FileJson {
    id: String,
    path: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Suggestions")]
struct SuggestJson {
    query: String,
    prefix: String,
    suggestions: Vec<SuggestionJson>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Suggestion")]
struct SuggestionJson {
    text: String,
    term: String,
    documents: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Document")]
struct DocumentJson {
    doc_id: String,
    file: FileJson,
    document: u32,
    url: String,
    title: Marked,
    body: Option<BodyJson>,
    body_is_snippet: bool,
    fields: Vec<FieldJson>,
    hits: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DocumentBody")]
struct BodyJson {
    #[serde(flatten)]
    text: Marked,
    truncated: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DocumentField")]
struct FieldJson {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    value: Json,
}

/// Fails if a query has too many words.
pub(super) fn check_terms(options: &Options, query: &str) -> Result<(), Failure> {
    let most = options.max_query_terms;
    let words = query.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let terms = words.count();
    if terms > most {
        return Err(Failure::request(format!("the query has {terms} words, and may have {most}")));
    }
    Ok(())
}

/// The query of a request.
fn query(call: &Call<'_>, text: &str) -> Result<Query, Failure> {
    check_terms(&call.state.options, text)?;
    if call.params.get("syntax") == Some("terms") {
        return Ok(Query::terms(text));
    }
    Query::parse(text).map_err(|error| {
        let at = error.at.min(text.len());
        let end = text[at..].chars().next().map_or(at, |c| at + c.len_utf8());
        Failure::request(format!("invalid query: {error}")).with_at("q", text, &(at..end))
    })
}

fn search(call: &Call<'_>) -> Result<Reply, Failure> {
    let started = Instant::now();
    let (options, params) = (&call.state.options, &call.params);
    let text = params.get("q").ok_or_else(|| Failure::request("missing query parameter q"))?;
    let limit = params.number("limit").unwrap_or(options.default_k);
    if limit > options.max_k {
        return Err(Failure::request(format!("`limit` must be at most {}", options.max_k)));
    }
    let offset: usize = params.number("offset").unwrap_or(0);
    if offset + limit > MAX_WINDOW {
        return Err(Failure::request(format!("`offset` and `limit` together must be at most {MAX_WINDOW}")));
    }
    let ranking = match params.get("rank") {
        Some("native") => Ranking::Native,
        Some("bm25") => Ranking::Bm25,
        _ => Ranking::Relevance,
    };
    let query = query(call, text)?;
    // The native ranking counts repeated terms.
    let query = if ranking == Ranking::Native { query } else { query.dedup_terms() };
    let set = call.state.searches.get(call.state, &params.list("in"), call.work)?;
    let opened = started.elapsed();
    let (facets, uncounted) = facets(call, &set)?;
    let sort = params.get("sort").filter(|sort| *sort != "score").map(|sort| match sort.strip_prefix('-') {
        Some(column) => SortBy::descending(column),
        None => SortBy::ascending(sort),
    });
    let request = SearchRequest::new(query)
        .with_ranking(ranking)
        .with_limit(limit)
        .with_offset(offset)
        .with_filter(filter(call, &set)?)
        .with_sort(sort)
        .with_facets(facets, FACET_VALUES)
        .with_snippet_bytes(params.number("highlight").unwrap_or(200));
    call.work.check_deadline()?;
    let found = set.searcher.search_with(&request, call.work)?;
    call.work.check_deadline()?;
    let result = |hit: &tercet::tatami::search::DocumentHit| ResultJson {
        doc_id: hit.stored.doc_id.clone(),
        file: file_of(&set, hit.segment),
        document: hit.document,
        url: hit.stored.url.clone(),
        title: hit.stored.title.clone(),
        score: hit.score.map(Shortest),
        snippet: hit
            .highlight
            .as_ref()
            .filter(|highlight| !highlight.text.is_empty())
            .map(|highlight| Marked::new(highlight.text.clone(), &highlight.marks)),
    };
    let total =
        found.total.map_or((found.hits.len() as u64, false), |total| (total.documents, total.is_exact));
    Ok(Reply::json(&SearchJson {
        query: text.to_owned(),
        offset,
        limit,
        matches: total.0,
        matches_exact: total.1,
        documents: set.searcher.documents(),
        segments: set.files.len(),
        took_ms: millis(started.elapsed()),
        timing: TimingJson {
            open_ms: millis(opened),
            search_ms: millis(found.took.ranking),
            count_ms: millis(found.took.counting),
            fetch_ms: millis(found.took.fetching),
            highlight_ms: millis(found.took.highlighting),
        },
        notes: notes(&set, &request.query)?.into_iter().chain(uncounted).collect(),
        results: found.hits.iter().map(result).collect(),
        facets: params.get("facets").map(|_| found.facets.iter().map(facet).collect()),
    }))
}

/// The facets that can be counted in the searched segments, and notes about the others.
fn facets(call: &Call<'_>, set: &SearchSet) -> Result<(Vec<String>, Vec<String>), Failure> {
    let names = call.params.list("facets");
    if names.len() > MAX_FACETS {
        return Err(Failure::request(format!("at most {MAX_FACETS} facets can be counted")));
    }
    let listed = call.state.catalog.snapshot();
    let (mut counted, mut notes) = (Vec::new(), Vec::new());
    for name in names {
        let shown = crate::catalog::shown(name);
        let types = set.searcher.segments().iter().filter_map(|segment| {
            let at = segment.file().schema().index_of(name)?;
            let field = &segment.file().schema().fields()[at];
            Some((field.element, field.kind, segment.file().logical_types()[at]))
        });
        let types: Vec<_> = types.collect();
        if types.windows(2).any(|pair| pair[0] != pair[1]) {
            notes.push(format!("column `{shown}` has different types, so its values are not counted"));
        } else if types.is_empty() && listed.document_columns().contains(&name) {
            notes.push(format!("no searched file has the column `{shown}`"));
        } else {
            // An unknown column is an error of the search.
            counted.push(name.to_owned());
        }
    }
    Ok((counted, notes))
}

fn facet(facet: &Facet) -> FacetJson {
    let kind = CellType::new(facet.kind, facet.logical_type, true);
    let value = |value: &tercet::tatami::search::FacetValue| FacetValueJson {
        value: scalar(&value.value, kind).0,
        count: value.documents,
    };
    FacetJson {
        field: facet.column.clone(),
        values: facet.values.iter().map(value).collect(),
        more: facet.distinct.saturating_sub(facet.values.len() as u64),
        missing: facet.missing,
    }
}

fn file_of(set: &SearchSet, segment: usize) -> FileJson {
    let file = &set.files[segment];
    FileJson { id: file.id.clone(), path: file.path.clone() }
}

/// The filter, checked against the columns of all segments. A column that only some segments have is null in the others.
fn filter(call: &Call<'_>, set: &SearchSet) -> Result<Option<Expr>, Failure> {
    let Some(text) = call.params.get("where") else { return Ok(None) };
    let parsed = parse(text)?;
    let Some((schema, logical_types)) = set.searcher.schema() else { return Ok(None) };
    bind(&parsed, text, &schema, &logical_types)?;
    Ok(Some(parsed.expr().clone()))
}

/// Words of the query that no document contains.
fn notes(set: &SearchSet, query: &Query) -> Result<Vec<String>, Failure> {
    let missing = set.searcher.missing_words(query)?;
    let note = |word: String| format!("no document contains `{}`", crate::catalog::shown(&word));
    Ok(missing.into_iter().take(8).map(note).collect())
}

fn suggest(call: &Call<'_>) -> Result<Reply, Failure> {
    let text = call.params.get("q").unwrap_or("");
    let start = text
        .rfind(|c: char| !c.is_alphanumeric())
        .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
    let limit: usize = call.params.number("limit").unwrap_or(8);
    let prefix = &text[start..];
    let mut suggestions = Vec::new();
    if !prefix.is_empty() {
        let set = call.state.searches.get(call.state, &call.params.list("in"), call.work)?;
        for found in set.searcher.complete(prefix, limit)? {
            suggestions.push(SuggestionJson {
                text: format!("{}{}", &text[..start], found.word),
                term: found.word,
                documents: found.documents,
            });
        }
    }
    Ok(Reply::json(&SuggestJson { query: text.to_owned(), prefix: prefix.to_owned(), suggestions }))
}

fn document(call: &Call<'_>) -> Result<Reply, Failure> {
    let params = &call.params;
    let set = call.state.searches.get(call.state, &params.list("in"), call.work)?;
    let id = params.path("doc_id");
    let query = params.get("q").map(|text| query(call, text)).transpose()?;
    let given = params.number::<u32>("document");
    for (number, segment) in set.searcher.segments().iter().enumerate() {
        call.work.check_deadline()?;
        let found = match given {
            Some(document) if u64::from(document) < segment.document_count() => {
                let stored = segment.documents(&[document])?.pop();
                stored.filter(|stored| stored.doc_id == id).map(|_| document)
            }
            Some(_) => None,
            None => find_id(call, segment, id)?,
        };
        if let Some(document) = found {
            let json = read_document(call, segment, file_of(&set, number), document, query.as_ref())?;
            return Ok(Reply::json(&json));
        }
    }
    Err(Failure::not_found(format!("no document `{}`", crate::catalog::shown(id))))
}

/// The document with an ID that is not deleted.
fn find_id(call: &Call<'_>, segment: &Segment, id: &str) -> Result<Option<u32>, Failure> {
    use tercet::tatami::predicate::Expr;
    let file = segment.file().without_deleted_documents()?;
    let scan = file.scan().columns(&["doc_id"])?.filter(&Expr::col("doc_id").eq(id))?.limit(1);
    for batch in scan.batches() {
        call.work.check_deadline()?;
        if let Some(row) = batch?.rows.first() {
            return Ok(u32::try_from(*row).ok());
        }
    }
    Ok(None)
}

fn read_document(
    call: &Call<'_>,
    segment: &Segment,
    file: FileJson,
    document: u32,
    query: Option<&Query>,
) -> Result<DocumentJson, Failure> {
    let stored = segment.documents(&[document])?.pop();
    let Some(stored) = stored else { return Err(Failure::internal("a document is missing")) };
    let most = call.params.number("max").unwrap_or(usize::MAX).min(call.state.options.max_document_bytes);
    let bytes = segment.text(document)?;
    call.work.check_deadline()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let is_truncated = end < text.len();
    let marks = |text: &str| -> Result<Vec<std::ops::Range<usize>>, Failure> {
        call.work.check_deadline()?;
        Ok(query.map(|query| segment.matches_in(query, text.as_bytes())).transpose()?.unwrap_or_default())
    };
    let text = text[..end].to_owned();
    let body_marks = marks(&text)?;
    let title_marks = marks(&stored.title)?;
    let title = Marked::new(stored.title, &title_marks);
    let body = Marked::new(text, &body_marks);
    let hits = title.len() + body.len();
    Ok(DocumentJson {
        doc_id: stored.doc_id,
        file,
        document,
        url: stored.url,
        title,
        body: (!bytes.is_empty()).then_some(BodyJson { text: body, truncated: is_truncated }),
        body_is_snippet: segment.is_snippet_only(),
        fields: fields(segment, document)?,
        hits,
    })
}

/// The other columns of a document.
fn fields(segment: &Segment, document: u32) -> Result<Vec<FieldJson>, Failure> {
    let file = segment.file();
    let logical_types = file.logical_types();
    let mut names = Vec::new();
    for (index, field) in file.schema().fields().iter().enumerate() {
        let is_shown = matches!(&*field.name, "doc_id" | "url" | "title" | "body" | "snippet");
        if !is_shown && field.kind != tercet::tatami::Type::BlobRef {
            names.push((index, field));
        }
    }
    let positions: Vec<usize> = names.iter().map(|(index, _)| *index).collect();
    let columns = file.take(&[u64::from(document)], &positions)?;
    let fields = names.iter().zip(&columns).map(|((index, field), column)| {
        let kind = CellType::new(field.element.unwrap_or(field.kind), logical_types[*index], true);
        FieldJson {
            name: field.name.to_string(),
            kind: field.kind.to_string(),
            value: cell(column, 0, kind).0,
        }
    });
    Ok(fields.collect())
}
