//! `tatami search`: full-text search in a segment or collection.

pub(super) mod target;

use anstyle::Style;
use serde::Serialize;
use tercet::core::escape;
use tercet::tatami::search::{Analyzer, Query, Ranking, SearchOptions, StoredFields, TermExplanation};

use self::target::{Hit, SearchRequest, SearchTarget, Stats};
use super::filter::Where;
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

const EXAMPLES: &str = "\
Examples:
  tatami search docs.tatami 'memory safety'
  tatami search docs.tatami '+borrow checker -unsafe' -n 20
  tatami search docs.tatami '\"open source\" AND (licence OR license)'
  tatami search docs.tatami 'title:rust salvag* colour~1'
  tatami search docs.tatami 'memory' --where 'norm_body > 100' --rank bm25 --json
  tatami search crawl/ 'memory'           all segments of a directory or collection, ranked as one

Query syntax:
  a b             a or b; documents with both score higher
  +a b            a is required; b increases the score
  a -b, a NOT b   a without b
  a AND b         both terms
  \"a b\"           phrase; \"a b\"~3 allows 3 other terms between
  (a b) AND c     grouping
  title:a         in a field: title, body, anchor, url
  salvag*         terms with this prefix
  colour~1        terms within 1 or 2 edits
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
    #[arg(value_name = "QUERY", allow_hyphen_values = true)]
    query: String,
    #[command(flatten)]
    limit: LimitArgs,
    #[command(flatten)]
    filter: Where,
    /// Ranking function
    #[arg(long, value_name = "RANK", value_enum, default_value_t = RankArg::Relevance)]
    rank: RankArg,
    /// Treat the query as plain terms; ignore operators
    #[arg(long, alias = "words")]
    terms: bool,
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

/// The JSON output.
#[derive(Debug, Serialize)]
struct SearchJson<'a> {
    file: &'a str,
    query: &'a str,
    rank: Ranking,
    documents: u64,
    hits: Vec<Hit>,
    took_us: u64,
    stats: Stats,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let limit = usize::try_from(args.limit.or(HITS)).unwrap_or(usize::MAX);
    let query = if args.terms {
        Query::terms(&args.query)
    } else {
        Query::parse(&args.query).map_err(|error| {
            let end = args.query[error.at..].chars().next().map_or(error.at, |c| error.at + c.len_utf8());
            Failure::request(format!("invalid query: {error}")).with_excerpt(&args.query, &(error.at..end))
        })?
    };
    // The native ranking counts repeated terms.
    let query = if args.rank == RankArg::Native { query } else { query.dedup_terms() };
    let target = SearchTarget::open(&args.input, out)?;
    let rank = args.rank.ranking();
    let answer = target.search(&SearchRequest {
        query: &query,
        options: SearchOptions::new(limit).with_ranking(rank),
        filter: &args.filter,
        explain: args.explain,
        snippet_bytes: args.snippet_bytes,
    })?;
    let outcome = if answer.hits.is_empty() { Outcome::CheckFailed } else { Outcome::Done };
    let result = SearchJson {
        file: &args.input.path.to_string_lossy(),
        query: &args.query,
        rank,
        documents: target.documents(),
        hits: answer.hits,
        took_us: answer.took_us,
        stats: answer.stats,
    };
    if args.json.json {
        out.json(&result)?;
        return Ok(outcome);
    }
    show(&result, args.explain, out)?;
    let analyzers = target.analyzers();
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
    for word in target.missing_words(&query)? {
        let prefix: String = word.chars().take(MAX_TERM_CHARS).collect();
        let dots = if prefix.len() < word.len() { "…" } else { "" };
        out.side_summary(format_args!("no document contains `{}{dots}`", escape::name(&prefix)))?;
    }
    Ok(outcome)
}

fn show(result: &SearchJson<'_>, explain: bool, out: &mut Ui) -> Result<(), Failure> {
    for (number, hit) in result.hits.iter().enumerate() {
        let StoredFields { doc_id, url, title, .. } = &hit.stored;
        let name = [title, url, doc_id].into_iter().find(|name| !name.is_empty()).map_or("", String::as_str);
        let (name, score) = (paint(HEADING, escape::name(name)), paint(DIM, hit.score));
        out.line(format_args!("{:>3}. {name}  {score}", number + 1))?;
        let link = if url.is_empty() { doc_id } else { url };
        let link = escape::name(link);
        match &hit.file {
            Some(file) => out.line(format_args!("     {link}  {}", paint(DIM, escape::name(file))))?,
            None => out.line(format_args!("     {link}"))?,
        }
        if !hit.snippet.is_empty() {
            out.line(format_args!("     {}", marked(&hit.snippet, &hit.marks)))?;
        }
        for explanation in hit.explain.iter().flatten() {
            let TermExplanation { term, documents, idf, frequency, score, .. } = explanation;
            let term = escape::name(term);
            let text = format!("{term}: {frequency} times, in {documents} documents (idf {idf}): {score}");
            out.line(format_args!("       {}", paint(DIM, text)))?;
        }
    }
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    out.side_summary(format_args!(
        "{} hit{} in {} µs",
        result.hits.len(),
        plural(result.hits.len()),
        result.took_us
    ))?;
    if explain {
        out.note(result.stats)?;
    }
    Ok(())
}

/// A snippet with matched terms in bold, escaped for the terminal.
fn marked(text: &str, marks: &[(usize, usize)]) -> String {
    let mut out = String::new();
    let mut at = 0;
    for (start, end) in marks {
        out.push_str(&escape::name(&text[at..*start]));
        out.push_str(&paint(FOUND, escape::name(&text[*start..*end])));
        at = *end;
    }
    out.push_str(&escape::name(&text[at..]));
    out
}
