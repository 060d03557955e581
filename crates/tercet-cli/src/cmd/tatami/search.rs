//! `tatami search`: documents that hold words, in a file or in all files of a folder.

mod searched;

use anstyle::Style;
use serde::Serialize;
use tercet::core::escape;
use tercet::tatami::search::{Query, Ranking, SearchOptions, StoredFields, TermExplanation};

use self::searched::{Asked, Hit, Searched, Stats};
use super::condition::Where;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::ui::{DIM, HEADING, Ui, paint};

/// How words that were found are shown on a terminal.
const FOUND: Style = Style::new().bold();

/// Characters of a word that are shown.
const SHOWN_CHARS: usize = 60;

const EXAMPLES: &str = "\
Examples:
  tatami search docs.tatami 'memory safety'
  tatami search docs.tatami '+borrow checker -unsafe' -k 20
  tatami search docs.tatami '\"open source\" AND (licence OR license)'
  tatami search docs.tatami 'memory' --where 'norm_body > 100' --rank bm25 --json
  tatami search crawl/ 'memory'           all segments of a folder or collection, ranked as one

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
    #[command(flatten)]
    condition: Where,
    /// How documents are ranked
    #[arg(long, value_name = "RANK", value_enum, default_value_t = RankArg::Format)]
    rank: RankArg,
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
enum RankArg {
    /// As the format says: BM25 with b = 0, the length of a document does not matter
    Format,
    /// BM25 with k1 = 1.2 and b = 0.75; a word that stands twice side by side counts once
    Bm25,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Told<'a> {
    file: &'a str,
    query: &'a str,
    rank: Ranking,
    documents: u64,
    hits: Vec<Hit>,
    took_us: u64,
    stats: Stats,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let query = if args.words {
        Query::terms(&args.query)
    } else {
        Query::parse(&args.query).map_err(|error| {
            let end = args.query[error.at..].chars().next().map_or(error.at, |c| error.at + c.len_utf8());
            Failure::request(format!("the query: {error}")).with_excerpt(&args.query, &(error.at..end))
        })?
    };
    // The format counts a word as often as it is written.
    let query = if args.rank == RankArg::Bm25 { query.dedup_terms() } else { query };
    let searched = Searched::open(&args.input, out)?;
    let rank = match args.rank {
        RankArg::Format => Ranking::Native,
        RankArg::Bm25 => Ranking::Bm25,
    };
    let answer = searched.ask(&Asked {
        query: &query,
        options: SearchOptions::new(args.k).with_ranking(rank),
        condition: &args.condition,
        explain: args.explain,
        snippet_bytes: args.snippet_bytes,
    })?;
    let outcome = if answer.hits.is_empty() { Outcome::CheckFailed } else { Outcome::Done };
    let told = Told {
        file: &args.input.path.to_string_lossy(),
        query: &args.query,
        rank,
        documents: searched.documents(),
        hits: answer.hits,
        took_us: answer.took_us,
        stats: answer.stats,
    };
    if args.json {
        out.json(&told)?;
        return Ok(outcome);
    }
    show(&told, args.explain, out)?;
    for word in query.scored_terms() {
        if !searched.holds(word)? {
            let shown: String = word.chars().take(SHOWN_CHARS).collect();
            let dots = if shown.len() < word.len() { "…" } else { "" };
            out.note(format_args!("no document holds `{}{dots}`", escape::name(&shown)))?;
        }
    }
    Ok(outcome)
}

fn show(told: &Told<'_>, explain: bool, out: &mut Ui) -> Result<(), Failure> {
    for (number, hit) in told.hits.iter().enumerate() {
        let StoredFields { doc_id, url, title, .. } = &hit.stored;
        let name = [title, url, doc_id].into_iter().find(|name| !name.is_empty()).map_or("", String::as_str);
        let (name, score) = (paint(HEADING, escape::name(name)), paint(DIM, hit.score));
        out.line(format_args!("{:>3}. {name}  {score}", number + 1))?;
        let address = if url.is_empty() { doc_id } else { url };
        let address = escape::name(address);
        match &hit.file {
            Some(file) => out.line(format_args!("     {address}  {}", paint(DIM, escape::name(file))))?,
            None => out.line(format_args!("     {address}"))?,
        }
        if !hit.snippet.is_empty() {
            out.line(format_args!("     {}", marked(&hit.snippet, &hit.marks)))?;
        }
        for word in hit.explain.iter().flatten() {
            let TermExplanation { term: word, documents, idf, frequency, score, .. } = word;
            let word = escape::name(word);
            let text = format!("{word}: {frequency} times, in {documents} documents (idf {idf}): {score}");
            out.line(format_args!("       {}", paint(DIM, text)))?;
        }
    }
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    out.note(format_args!("{} hit{} in {} µs", told.hits.len(), plural(told.hits.len()), told.took_us))?;
    if explain {
        out.note(told.stats)?;
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
