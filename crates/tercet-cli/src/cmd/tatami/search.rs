//! `tatami search`: full-text search in a segment or collection.

mod json;

use std::ops::Range;

use anstyle::Style;
use tercet::core::escape;
use tercet::tatami::search::{
    Analyzer, Counting, DocumentHit, Facet, Query, Ranking, RunStats, SearchRequest, SearchResponse,
    Searcher, Segment, SortBy, StoredFields, Suggestion, TermExplanation, Total,
};

use self::json::SearchJson;
use super::filter::Where;
use super::merge::segments_of;
use super::open::open_to_print;
use super::scalars::display;
use crate::args::{JsonArgs, LimitArgs};
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::ui::{DIM, HEADING, Ui, paint};

/// Style of matched terms in snippets.
const FOUND: Style = Style::new().bold();

/// Hits returned by default.
const HITS: u64 = 10;
/// Maximum characters of a printed term.
const MAX_TERM_CHARS: usize = 60;
/// Completions, or corrections of a word, that are printed.
const SUGGESTIONS: usize = 10;
const CORRECTIONS: usize = 3;

const EXAMPLES: &str = "\
Examples:
  tatami search docs.tatami 'memory safety'
  tatami search docs.tatami '+borrow checker -unsafe' -n 20
  tatami search docs.tatami '\"open source\" AND (licence OR license)'
  tatami search docs.tatami 'title:rust salvag* color~1'
  tatami search docs.tatami 'memory' --where 'norm_body > 100' --rank bm25 --json
  tatami search crawl/ 'memory'           all segments of a directory or collection, ranked as one
  tatami search shop.tatami 'lamp' --offset 10 --facet brand --sort price:desc
  tatami search docs.tatami --like ID     documents similar to the one with this ID
  tatami search docs.tatami --complete me words of the index that start with `me`

Query syntax:
  a b             a or b; documents with both score higher
  +a b            a is required; b increases the score
  a -b, a NOT b   a without b
  a AND b, a && b both terms
  \"a b\"           phrase; \"a b\"~3 allows 3 other terms between
  (a b) AND c     grouping
  title:a         in a field: title, body, anchor, url
  salvag*         terms with this prefix
  color~1        terms within 1 or 2 edits
  a^2 b           a counts twice
  *, -a           all documents; all without a
  +x-ray, -3.14   a signed word of several terms is a phrase

Exit code 0: hits; 1: no hits; others: the search failed.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("limit", |arg| arg.short_alias('k').alias("k").help("Return at most N hits; 0 returns all [default: 10]")))]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Search query
    #[arg(value_name = "QUERY", allow_hyphen_values = true, required_unless_present_any = ["like", "complete"])]
    query: Option<String>,
    #[command(flatten)]
    limit: LimitArgs,
    /// Skip the first N hits
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: usize,
    /// Sort hits by a column instead of by score: `price`, or `price:desc` for descending order
    #[arg(long, value_name = "COLUMN")]
    sort: Option<String>,
    /// Count the values of a column in all matching documents; repeat for several columns
    #[arg(long, value_name = "COLUMN")]
    facet: Vec<String>,
    /// Number of values to print for each facet
    #[arg(long, value_name = "N", default_value_t = 10)]
    facet_values: usize,
    /// Count matching documents
    #[arg(long, value_name = "HOW", value_enum, default_value_t = CountArg::Auto)]
    count: CountArg,
    /// Find documents similar to the one with this ID
    #[arg(long, value_name = "ID", conflicts_with_all = ["query", "terms"])]
    like: Option<String>,
    /// Print words of the index that start with PREFIX, the most frequent first
    #[arg(long, value_name = "PREFIX", conflicts_with_all = ["query", "like", "sort", "facet", "explain"])]
    complete: Option<String>,
    #[command(flatten)]
    filter: Where,
    /// Ranking function
    #[arg(long, value_name = "RANK", value_enum, default_value_t = RankArg::Relevance)]
    rank: RankArg,
    /// Treat the query as plain terms; ignore operators
    #[arg(long, alias = "words")]
    terms: bool,
    /// Add characteristic words of the best documents to the query: finds related documents too
    #[arg(long, conflicts_with_all = ["like", "complete"])]
    expand: bool,
    /// Explain the scores and print search statistics
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    json: JsonArgs,
    /// Approximate snippet size in bytes
    #[arg(long, value_name = "N", default_value_t = 200)]
    snippet_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum RankArg {
    /// BM25 of the format specification, with b = 0: no length normalization
    #[value(alias = "format")]
    Native,
    /// BM25 with k1 = 1.2 and b = 0.75; repeated query terms count once
    Bm25,
    /// BM25 with k1 = 0.9 and b = 0.4, weighted by the mean frequency of terms
    Relevance,
}

impl RankArg {
    pub(super) fn ranking(self) -> Ranking {
        match self {
            Self::Native => Ranking::Native,
            Self::Bm25 => Ranking::Bm25,
            Self::Relevance => Ranking::Relevance,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum CountArg {
    /// Exactly, or at least a lower bound if counting takes long
    Auto,
    /// Exactly; for phrases, the text of each candidate is read
    Exact,
    /// Do not count
    Off,
}

impl CountArg {
    fn counting(self) -> Counting {
        match self {
            Self::Auto => Counting::Bounded,
            Self::Exact => Counting::Exact,
            Self::Off => Counting::Off,
        }
    }
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let parsed = args.parsed_query()?;
    let searcher = open(&args.input, out)?;
    if let Some(prefix) = &args.complete {
        return complete(args, prefix, &searcher, out);
    }
    let mut filter = args.filter(&searcher)?;
    let query = match (parsed, &args.like) {
        (Some(query), _) => query,
        (None, like) => {
            let id = like.as_deref().unwrap_or_default();
            let Some((query, others)) = searcher.similar_to(id)? else {
                return Err(Failure::request(format!("no document with the ID `{}`", escape::name(id))));
            };
            filter = Some(match filter {
                Some(filter) => filter.and(others),
                None => others,
            });
            query
        }
    };
    let limit = usize::try_from(args.limit.or(HITS)).unwrap_or(usize::MAX);
    let rank = args.rank.ranking();
    let request = SearchRequest::new(query)
        .with_ranking(rank)
        .with_limit(limit)
        .with_offset(args.offset)
        .with_filter(filter)
        .with_sort(args.sort.as_deref().map(sort_by))
        .with_facets(args.facet.clone(), args.facet_values)
        .with_counting(args.count.counting())
        .with_snippet_bytes(args.snippet_bytes)
        .with_expand(args.expand)
        .with_explain(args.explain);
    let response = searcher.search(&request)?;
    let outcome = if response.hits.is_empty() { Outcome::CheckFailed } else { Outcome::Done };
    if args.json.json {
        out.json(&SearchJson::new(args, &searcher, &response))?;
        return Ok(outcome);
    }
    show(args, &searcher, &response, out)?;
    notes(&searcher, &request.query, out)?;
    Ok(outcome)
}

/// Opens a segment, or all segments of a directory.
pub(super) fn open(input: &Input, out: &mut Ui) -> Result<Searcher, Failure> {
    if input.is_on_disk() && input.path.is_dir() {
        return Ok(Searcher::new(segments_of(&input.path, out)?)?);
    }
    let file = open_to_print(input.source()?)?;
    let Some(segment) = file.segment()? else {
        return Err(Failure::request(format!("{}: is not a search segment", escape::name(file.name())))
            .with_hint("create one with `tatami index`"));
    };
    Ok(Searcher::from_segment(segment))
}

impl Args {
    /// The query as given; `None` for similar documents and completions.
    fn parsed_query(&self) -> Result<Option<Query>, Failure> {
        let Some(text) = &self.query else { return Ok(None) };
        let query = if self.terms {
            Query::terms(text)
        } else {
            Query::parse(text).map_err(|error| {
                let end = text[error.at..].chars().next().map_or(error.at, |c| error.at + c.len_utf8());
                Failure::request(format!("invalid query: {error}")).with_excerpt(text, &(error.at..end))
            })?
        };
        // The native ranking counts repeated terms.
        Ok(Some(if self.rank == RankArg::Native { query } else { query.dedup_terms() }))
    }

    /// The filter. A column that only some segments have is null in the others.
    fn filter(&self, searcher: &Searcher) -> Result<Option<tercet::tatami::Expr>, Failure> {
        let (Some(filter), Some((schema, logical_types))) = (self.filter.text(), searcher.schema()) else {
            return Ok(None);
        };
        let parsed = filter.parsed()?;
        let first = searcher.segments().first().map_or("", |segment| segment.file().name());
        filter.bound(&parsed, first, &schema, &logical_types)?;
        let columns = parsed.expr().columns();
        for file in searcher.segments().iter().map(Segment::file) {
            if columns.iter().all(|column| file.schema().index_of(column).is_some()) {
                filter.bind_to(file)?;
            }
        }
        Ok(Some(parsed.expr().clone()))
    }
}

/// A column with an optional direction.
fn sort_by(text: &str) -> SortBy {
    match text.rsplit_once(':') {
        Some((column, "desc")) => SortBy::descending(column),
        Some((column, "asc")) => SortBy::ascending(column),
        _ => SortBy::ascending(text),
    }
}

fn complete(args: &Args, prefix: &str, searcher: &Searcher, out: &mut Ui) -> Result<Outcome, Failure> {
    let limit = usize::try_from(args.limit.or(SUGGESTIONS as u64)).unwrap_or(usize::MAX);
    let words = searcher.complete(prefix, limit)?;
    if args.json.json {
        out.json(&words)?;
    } else {
        for Suggestion { word, documents, .. } in &words {
            out.line(format_args!("{}  {}", escape::name(word), paint(DIM, documents)))?;
        }
    }
    Ok(if words.is_empty() { Outcome::CheckFailed } else { Outcome::Done })
}

fn show(args: &Args, searcher: &Searcher, response: &SearchResponse, out: &mut Ui) -> Result<(), Failure> {
    for (number, hit) in response.hits.iter().enumerate() {
        let file = searcher.is_cluster().then(|| searcher.segments()[hit.segment].file().name());
        show_hit(args.offset + number + 1, hit, file.map(|name| &**name), out)?;
    }
    for facet in &response.facets {
        show_facet(facet, out)?;
    }
    let count = response.hits.len();
    let plural = if count == 1 { "" } else { "s" };
    let of = match response.total {
        Some(Total { documents, is_exact: true, .. }) => format!(" of {documents}"),
        Some(Total { documents, .. }) => format!(" of at least {documents}"),
        None => String::new(),
    };
    let took = &response.took;
    out.side_summary(format_args!(
        "{count} hit{plural}{of} in {} µs (ranking {}, counting {}, fetching {}, highlighting {})",
        took.total.as_micros(),
        took.ranking.as_micros(),
        took.counting.as_micros(),
        took.fetching.as_micros(),
        took.highlighting.as_micros(),
    ))?;
    if args.explain {
        out.note(statistics(&response.stats))?;
    }
    Ok(())
}

fn show_hit(number: usize, hit: &DocumentHit, file: Option<&str>, out: &mut Ui) -> Result<(), Failure> {
    let StoredFields { doc_id, url, title, .. } = &hit.stored;
    let name = [title, url, doc_id].into_iter().find(|name| !name.is_empty()).map_or("", String::as_str);
    let name = paint(HEADING, escape::name(name));
    match hit.score {
        Some(score) => out.line(format_args!("{number:>3}. {name}  {}", paint(DIM, score)))?,
        None => out.line(format_args!("{number:>3}. {name}"))?,
    }
    let link = escape::name(if url.is_empty() { doc_id } else { url });
    match file {
        Some(file) => out.line(format_args!("     {link}  {}", paint(DIM, escape::name(file))))?,
        None => out.line(format_args!("     {link}"))?,
    }
    if let Some(highlight) = hit.highlight.as_ref().filter(|highlight| !highlight.text.is_empty()) {
        out.line(format_args!("     {}", marked(&highlight.text, &highlight.marks)))?;
    }
    for explanation in hit.explanation.iter().flatten() {
        let TermExplanation { term, documents, idf, frequency, score, .. } = explanation;
        let term = escape::name(term);
        let text = format!("{term}: {frequency} times, in {documents} documents (idf {idf}): {score}");
        out.line(format_args!("       {}", paint(DIM, text)))?;
    }
    Ok(())
}

fn show_facet(facet: &Facet, out: &mut Ui) -> Result<(), Failure> {
    out.line(paint(HEADING, escape::name(&facet.column)))?;
    for value in &facet.values {
        let text = display(facet.kind, facet.logical_type, &value.value);
        out.line(format_args!("{:>9}  {text}", value.documents))?;
    }
    let hidden = facet.distinct - facet.values.len() as u64;
    if hidden > 0 {
        let plural = if hidden == 1 { "" } else { "s" };
        out.line(format_args!(
            "{:>9}  {}",
            facet.others,
            paint(DIM, format!("{hidden} other value{plural}"))
        ))?;
    }
    if facet.missing > 0 {
        out.line(format_args!("{:>9}  {}", facet.missing, paint(DIM, "no value")))?;
    }
    Ok(())
}

fn statistics(stats: &RunStats) -> String {
    let (files, decoded, blocks, scored, read) = match stats {
        RunStats::One(stats) => {
            (String::new(), stats.blocks_decoded, stats.blocks, stats.documents_scored, stats.documents_read)
        }
        RunStats::Several(stats) => (
            format!("{} of {} files searched; ", stats.visited, stats.candidates),
            stats.blocks_decoded,
            stats.blocks,
            stats.documents_scored,
            stats.documents_read,
        ),
    };
    let skipped = blocks.saturating_sub(decoded);
    format!(
        "{files}{decoded} of {blocks} blocks decoded, {skipped} skipped; \
         {scored} documents scored, {read} documents read for phrases"
    )
}

/// What a user may want to know about the result.
fn notes(searcher: &Searcher, query: &Query, out: &mut Ui) -> Result<(), Failure> {
    let older = searcher.older_versions();
    if older > 0 {
        let plural = if older == 1 { "" } else { "s" };
        out.side_summary(format_args!(
            "{older} older version{plural} of documents with the same ID not searched"
        ))?;
    }
    let analyzers = searcher.analyzers();
    if analyzers.len() > 1 {
        let names: Vec<&str> = analyzers.iter().map(Analyzer::name).collect();
        out.side_summary(format_args!("the segments have different analyzers: {}", names.join(", ")))?;
    }
    let stemming = analyzers.iter().find(|analyzer| analyzer.is_stemming());
    if let Some(analyzer) = stemming.filter(|_| query.has_prefix()) {
        out.side_summary(format_args!(
            "prefixes match stems (analyzer {}), which may be shorter than the words of the text",
            analyzer.name()
        ))?;
    }
    if let Some((schema, _)) = searcher.schema() {
        for word in query.words_with_colon() {
            if schema.index_of(word).is_some() {
                let word = escape::name(word);
                out.side_summary(format_args!(
                    "`{word}:` before a space is text: write `{word}:value` to test the column"
                ))?;
            }
        }
    }
    // Corrections compare a large part of the dictionary, which a remote segment would transfer.
    let is_remote = searcher.segments().iter().any(Segment::is_remote);
    for word in searcher.missing_words(query)? {
        let prefix: String = word.chars().take(MAX_TERM_CHARS).collect();
        let dots = if prefix.len() < word.len() { "…" } else { "" };
        let similar = if is_remote { Vec::new() } else { searcher.correct(&word, CORRECTIONS)? };
        let similar: Vec<String> =
            similar.iter().map(|similar| format!("`{}`", escape::name(&similar.word))).collect();
        let hint = if similar.is_empty() {
            String::new()
        } else {
            format!("; did you mean {}?", similar.join(" or "))
        };
        out.side_summary(format_args!("no document contains `{}{dots}`{hint}", escape::name(&prefix)))?;
    }
    Ok(())
}

/// A snippet with matched terms in bold, escaped for the terminal.
fn marked(text: &str, marks: &[Range<usize>]) -> String {
    let mut out = String::new();
    let mut at = 0;
    for mark in marks {
        out.push_str(&escape::name(&text[at..mark.start]));
        out.push_str(&paint(FOUND, escape::name(&text[mark.clone()])));
        at = mark.end;
    }
    out.push_str(&escape::name(&text[at..]));
    out
}
