//! `tet qhist`: list past queries and run them again.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use tercet::core::escape;

use super::history::{Entry, History};
use super::query::{Document, QueryArgs, run_query};
use crate::args::{JsonArgs, LimitArgs};
use crate::failure::{Failure, Outcome};
use crate::ui::Ui;

mod list;
mod row;

const EXAMPLES: &str = "\
Examples:
  tet qhist                       recent queries, newest first
  tet qhist list --dataset t2m    queries on one dataset
  tet qhist run 1                 run the newest query again
  tet qhist run 1 -t other.tet    run it on another file
  tet qhist --clear               delete the history

Environment:
  TET_NO_QUERY_HISTORY=1    disable the history
  TET_QUERY_HISTORY_FILE    history file [default: query_history.jsonl in the cache directory]
  TET_QUERY_HISTORY_MAX     maximum number of queries, 1 to 10000 [default: 50]";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(flatten)]
    list: List,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List queries, newest first (default)
    List(List),
    /// Run a query again
    Run(RunArgs),
}

/// Queries printed by default.
const LIMIT: u64 = 50;

#[derive(Debug, clap::Args)]
#[command(mut_arg("limit", |arg| arg.help("Print at most N queries; 0 prints all [default: 50]")))]
struct List {
    #[command(flatten)]
    limit: LimitArgs,
    /// Print all queries
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    filter: Filter,
    /// Select queries whose file name contains TEXT (case-insensitive)
    #[arg(long, value_name = "TEXT")]
    tet: Option<String>,
    /// Delete the history
    #[arg(long)]
    clear: bool,
}

#[derive(Debug, clap::Args)]
struct RunArgs {
    /// Query number in the list with the same filters; 1 is the newest
    #[arg(value_name = "N")]
    number: usize,
    /// Query this file instead
    #[arg(short, long, value_name = "PATH")]
    tet: Option<PathBuf>,
    /// Execute the query, even if it was only planned before
    #[arg(short = 'x', long)]
    execute: bool,
    /// Only print the read plan
    #[arg(long, conflicts_with = "execute")]
    plan: bool,
    #[command(flatten)]
    options: QueryArgs,
    #[command(flatten)]
    filter: Filter,
    /// Select queries whose file name contains TEXT (case-insensitive)
    #[arg(long, value_name = "TEXT")]
    tet_filter: Option<String>,
}

/// Filters of the list.
#[derive(Debug, clap::Args)]
struct Filter {
    /// Select queries whose dataset contains TEXT (case-insensitive)
    #[arg(long, value_name = "TEXT")]
    dataset: Option<String>,
    /// Select executed (`x`) or planned (`p`) queries
    #[arg(long, value_name = "MODE")]
    mode: Option<Mode>,
    /// Select queries whose dataset, file or operation contains TEXT (case-insensitive)
    #[arg(long, value_name = "TEXT")]
    grep: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Executed
    #[value(alias = "execute")]
    X,
    /// Planned only
    #[value(alias = "plan")]
    P,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let Some(history) = History::find() else {
        let failure = Failure::request("no location for the query history");
        return Err(failure.with_hint("set `TET_QUERY_HISTORY_FILE`"));
    };
    match &args.verb {
        None => listed(&args.list, &history, out),
        Some(Verb::List(list)) => listed(list, &history, out),
        Some(Verb::Run(run)) => rerun(run, &history, out),
    }
}

fn listed(args: &List, history: &History, out: &mut Ui) -> Result<Outcome, Failure> {
    if args.clear { clear(history, out) } else { list::print(args, history, out) }
}

fn clear(history: &History, out: &mut Ui) -> Result<Outcome, Failure> {
    let message = if history.clear()? { "deleted the query history" } else { "no query history" };
    out.line(message)?;
    Ok(Outcome::Done)
}

/// Runs a query again.
fn rerun(args: &RunArgs, history: &History, out: &mut Ui) -> Result<Outcome, Failure> {
    let kept = args.filter.select(history.entries()?, args.tet_filter.as_deref());
    let Some(entry) = args.number.checked_sub(1).and_then(|at| kept.get(at)) else {
        let found = match kept.len() {
            0 => "it is empty".to_owned(),
            1 => "it has 1 query".to_owned(),
            count => format!("it has {count} queries"),
        };
        let failure = Failure::request(format!("no query {} in the history; {found}", args.number));
        return Err(failure.with_hint("list queries with `tet qhist`"));
    };
    let tet = args.tet.clone().or_else(|| entry.tet.as_ref().map(PathBuf::from));
    let execute = (entry.execute || args.execute) && !args.plan;
    if execute && tet.is_none() {
        let failure = Failure::request("the query was recorded without a file");
        return Err(failure.with_hint("add `-t FILE`"));
    }
    // An operation that is not executed has a plan only.
    let is_fold = !["", "align", "spill"].contains(&row::operation(entry));
    let query_args = args.options.clone();
    let query_args = if is_fold && !execute { query_args.plan_by_default() } else { query_args };
    let document = Document::json(format!("query {}", args.number), entry.query.to_string());
    run_query(&document, tet.as_deref(), execute, &query_args, out)
}

impl Filter {
    /// The matching queries, newest first.
    fn select(&self, mut entries: Vec<Entry>, tet: Option<&str>) -> Vec<Entry> {
        let wanted = |words: &[&str], part: Option<&str>| {
            part.is_none_or(|part| {
                words.iter().any(|word| word.to_lowercase().contains(&part.to_lowercase()))
            })
        };
        entries.retain(|entry| {
            let file = entry.tet.as_deref().unwrap_or_default();
            let dataset = row::dataset(entry);
            let everything = [dataset, file, row::operation(entry)];
            let mode = if entry.execute { Mode::X } else { Mode::P };
            wanted(&[dataset], self.dataset.as_deref())
                && wanted(&[file], tet)
                && wanted(&everything, self.grep.as_deref())
                && self.mode.is_none_or(|wanted| wanted == mode)
        });
        entries.reverse();
        entries
    }

    /// The filter as text, if there is one.
    fn to_text(&self, tet: Option<&str>) -> Option<String> {
        let mode = self.mode.map(|mode| if mode == Mode::X { "x" } else { "p" });
        let parts = [
            ("dataset~", self.dataset.as_deref()),
            ("tet~", tet),
            ("mode=", mode),
            ("grep~", self.grep.as_deref()),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .filter_map(|(name, part)| Some(format!("{name}{}", escape::name(part?))))
            .collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    }
}
