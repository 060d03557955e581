//! `tatami search`: documents that hold words.

use std::time::Instant;

use anstyle::Style;
use serde::Serialize;
use tercet::core::escape;
use tercet::tatami::Expr;
use tercet::tatami::search::{
    Highlight, Query, Rank, SearchOptions, SearchStats, Segment, Stored, WordExplain,
};

use super::open::open_to_print;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::ui::{DIM, HEADING, Ui, paint};

/// How words that were found are shown on a terminal.
const FOUND: Style = Style::new().bold();

const EXAMPLES: &str = "\
Examples:
  tatami search docs.tatami 'memory safety'
  tatami search docs.tatami '+borrow checker -unsafe' -k 20
  tatami search docs.tatami '\"open source\" AND (licence OR license)'
  tatami search docs.tatami 'memory' --where 'norm_body > 100' --rank bm25 --json

A question is a list of words; documents that hold more and rarer ones of them come first.
  a b           documents with a or b; those with both are better
  +a b          documents with a; b makes them better
  a -b, a NOT b   documents with a that do not hold b
  a AND b       documents with both
  \"a b\"         documents where b follows a
  (a b) AND c   parentheses put parts together

Exit code 0: something was found; 1: nothing was; others: it could not be searched.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// What to search for
    #[arg(value_name = "QUERY", allow_hyphen_values = true)]
    query: String,
    /// How many documents are told
    #[arg(short, long, value_name = "N", default_value_t = 10)]
    k: usize,
    /// Only documents whose columns fulfil a condition
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,
    /// How documents are ranked
    #[arg(long, value_name = "RANK", value_enum, default_value_t = Ranking::Format)]
    rank: Ranking,
    /// Take the question as plain words, whatever signs stand between them
    #[arg(long)]
    words: bool,
    /// Tell how each score comes about, and what was looked at
    #[arg(long)]
    explain: bool,
    /// Tell the answer as JSON
    #[arg(long)]
    json: bool,
    /// About how many bytes of a document are shown
    #[arg(long, value_name = "N", default_value_t = 200)]
    snippet_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Ranking {
    /// As the format says: BM25 with b = 0, the length of a document does not matter
    Format,
    /// BM25 with k1 = 1.2 and b = 0.75; a word that is written twice counts once
    Bm25,
}

/// A document that was found.
#[derive(Debug, Serialize)]
struct Hit {
    #[serde(flatten)]
    stored: Stored,
    score: f32,
    document: u32,
    snippet: String,
    /// The words in the snippet, as pairs of bytes.
    marks: Vec<(usize, usize)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<Vec<WordExplain>>,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Told<'a> {
    file: &'a str,
    query: &'a str,
    rank: Rank,
    documents: u64,
    hits: Vec<Hit>,
    took_us: u64,
    stats: SearchStats,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let query = if args.words {
        Query::of_words(&args.query)
    } else {
        Query::parse(&args.query).map_err(|error| {
            let end = args.query[error.at..].chars().next().map_or(error.at, |c| error.at + c.len_utf8());
            Failure::request(format!("the query: {error}")).with_excerpt(&args.query, &(error.at..end))
        })?
    };
    // The format counts a word as often as it is written.
    let query = if args.rank == Ranking::Bm25 { query.once() } else { query };
    let file = open_to_print(args.input.source()?)?;
    let Some(segment) = file.segment()? else {
        return Err(Failure::request(format!("{}: is no search segment", escape::name(file.name())))
            .with_hint("`tatami index` makes one"));
    };
    let filter = match &args.condition {
        Some(text) => Some(segment.filter(&condition(text)?)?),
        None => None,
    };
    let rank = match args.rank {
        Ranking::Format => Rank::Format,
        Ranking::Bm25 => Rank::Bm25,
    };
    let options = SearchOptions::new(args.k).with_rank(rank).with_filter(filter.as_ref());
    let started = Instant::now();
    let found = segment.find(&query, &options)?;
    let took_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
    let documents: Vec<u32> = found.hits.iter().map(|hit| hit.document).collect();
    let stored = segment.stored(&documents)?;
    let mut hits = Vec::with_capacity(stored.len());
    for (hit, stored) in found.hits.iter().zip(stored) {
        let Highlight { text, marks, .. } = segment.highlight(&query, hit.document, args.snippet_bytes)?;
        let explain = args.explain.then(|| segment.explain(&query, &options, hit.document)).transpose()?;
        let marks = marks.into_iter().map(|mark| (mark.start, mark.end)).collect();
        hits.push(Hit { stored, score: hit.score, document: hit.document, snippet: text, marks, explain });
    }
    let any = !hits.is_empty();
    let told = Told {
        file: segment.file().name(),
        query: &args.query,
        rank,
        documents: segment.live_documents(),
        hits,
        took_us,
        stats: found.stats,
    };
    if args.json {
        out.json(&told)?;
    } else {
        show(&told, args.explain, out)?;
        unknown_words(&segment, &query, out)?;
    }
    Ok(if any { Outcome::Done } else { Outcome::FoundBad })
}

fn condition(text: &str) -> Result<Expr, Failure> {
    Expr::parse(text).map_err(|error| {
        let end = text[error.at..].chars().next().map_or(error.at, |c| error.at + c.len_utf8());
        Failure::request(error.to_string()).with_excerpt(text, &(error.at..end))
    })
}

/// Says which words no document holds.
fn unknown_words(segment: &Segment, query: &Query, out: &mut Ui) -> Result<(), Failure> {
    for word in query.words() {
        if segment.term_stats(word)?.is_none() {
            out.note(format_args!("no document holds `{}`", escape::name(word)))?;
        }
    }
    Ok(())
}

fn show(told: &Told<'_>, explain: bool, out: &mut Ui) -> Result<(), Failure> {
    for (number, hit) in told.hits.iter().enumerate() {
        let Stored { doc_id, url, title, .. } = &hit.stored;
        let name = [title, url, doc_id].into_iter().find(|name| !name.is_empty()).map_or("", String::as_str);
        let (name, score) = (paint(HEADING, escape::name(name)), paint(DIM, hit.score));
        out.line(format_args!("{:>3}. {name}  {score}", number + 1))?;
        let address = if url.is_empty() { doc_id } else { url };
        out.line(format_args!("     {}", escape::name(address)))?;
        if !hit.snippet.is_empty() {
            out.line(format_args!("     {}", marked(&hit.snippet, &hit.marks)))?;
        }
        for word in hit.explain.iter().flatten() {
            let WordExplain { word, documents, idf, frequency, score, .. } = word;
            let word = escape::name(word);
            let text = format!("{word}: {frequency} times, in {documents} documents (idf {idf}): {score}");
            out.line(format_args!("       {}", paint(DIM, text)))?;
        }
    }
    let stats = &told.stats;
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    out.note(format_args!("{} hit{} in {} µs", told.hits.len(), plural(told.hits.len()), told.took_us))?;
    if explain {
        out.note(format_args!(
            "{} of {} blocks decoded, {} skipped; {} documents scored, {} texts read",
            stats.blocks_decoded,
            stats.blocks,
            stats.blocks_skipped,
            stats.documents_scored,
            stats.texts_read
        ))?;
    }
    Ok(())
}

/// A snippet with its words in bold.
fn marked(text: &str, marks: &[(usize, usize)]) -> String {
    let mut out = String::new();
    let mut at = 0;
    for (start, end) in marks {
        out.push_str(&text[at..*start]);
        out.push_str(&paint(FOUND, &text[*start..*end]));
        at = *end;
    }
    out.push_str(&text[at..]);
    out
}
