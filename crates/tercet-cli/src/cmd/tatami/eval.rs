//! `tatami eval`: relevance of search results.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tercet::tatami::search::evaluate::{self, EvaluationError, Judgements, Measures};
use tercet::tatami::search::{Query, Ranking, SearchOptions, SearchRequest};

use super::search::{self, RankArg};
use crate::args::JsonArgs;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::display_path;
use crate::ui::{Ui, is_interrupted};

const EXAMPLES: &str = "\
Examples:
  tatami eval docs.tatami --queries topics.trec --qrels qrels.txt
  tatami eval docs.tatami --queries queries.tsv --qrels qrels.txt --rank bm25 --json

Queries are TREC topics or `ID<tab>QUERY` lines; operators are ignored. Judgments are TREC qrels lines: query ID, iteration, \
document ID, grade.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Queries: TREC topics or tab-separated values
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    /// Relevance judgments in TREC qrels format
    #[arg(long, value_name = "FILE")]
    qrels: PathBuf,
    /// Ranking function [default: all]
    #[arg(long, value_name = "RANK", value_enum)]
    rank: Option<RankArg>,
    /// Expand each query by words of its best documents, as `search --expand` does
    #[arg(long)]
    expand: bool,
    #[command(flatten)]
    json: JsonArgs,
}

/// The JSON output.
#[derive(Debug, Serialize)]
struct EvalJson {
    rank: Ranking,
    #[serde(flatten)]
    measures: Measures,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let topics = parse(&args.queries, evaluate::parse_topics)?;
    let judged = parse(&args.qrels, Judgements::parse)?;
    let searcher = search::open(&args.input, out)?;
    let cluster = searcher.cluster();
    let all = [RankArg::Relevance, RankArg::Bm25, RankArg::Native];
    let ranks = args.rank.map_or_else(|| all.to_vec(), |rank| vec![rank]);
    let mut results = Vec::new();
    for rank in ranks {
        let ranking = rank.ranking();
        let mut measures = Vec::new();
        for topic in &topics {
            if is_interrupted() {
                return Err(Failure::Interrupted);
            }
            let query = Query::terms(&topic.text);
            let query = if ranking == Ranking::Native { query } else { query.dedup_terms() };
            let query = if args.expand {
                searcher.expanded(&SearchRequest::new(query).with_ranking(ranking))?
            } else {
                query
            };
            let options = SearchOptions::new(evaluate::DEPTH).with_ranking(ranking);
            let (hits, _) = cluster.find(&query, &options, None)?;
            let ids: Vec<String> =
                hits.iter().map(|hit| String::from_utf8_lossy(&hit.doc_id).into_owned()).collect();
            measures.extend(judged.measure(&topic.id, &ids));
        }
        if measures.is_empty() {
            let (queries, qrels) = (display_path(&args.queries), display_path(&args.qrels));
            return Err(Failure::request(format!("{qrels} judges no query of {queries} as relevant")));
        }
        results.push(EvalJson { rank: ranking, measures: Measures::mean(&measures) });
    }
    if args.json.json {
        out.json(&results)?;
        return Ok(Outcome::Done);
    }
    out.line("rank        queries  MAP@100  nDCG@10   P@10  recall@100")?;
    for EvalJson { rank, measures } in &results {
        let Measures { queries, map_100, ndcg_10, precision_10, recall_100, .. } = measures;
        let rank = format!("{rank:?}").to_lowercase();
        out.line(format_args!(
            "{rank:<10} {queries:>8} {map_100:>8.4} {ndcg_10:>8.4} {precision_10:>6.4} {recall_100:>11.4}"
        ))?;
    }
    Ok(Outcome::Done)
}

fn parse<T>(path: &Path, parse: impl FnOnce(&str) -> Result<T, EvaluationError>) -> Result<T, Failure> {
    let name = display_path(path);
    let text = std::fs::read_to_string(path).map_err(|error| Failure::io(&name, &error))?;
    parse(&text).map_err(|error| Failure::request(format!("{name}: {error}")))
}
