//! `tet qhist`: the queries that were asked, and asking them again.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use tercet::core::escape;

use super::history::{Entry, History};
use super::query::{Document, How, ask};
use crate::failure::{Failure, Outcome};
use crate::ui::Ui;

mod list;
mod row;

const EXAMPLES: &str = "\
Examples:
  tet qhist                       the latest queries, newest first
  tet qhist list --dataset t2m    only those about some dataset
  tet qhist run 1                 ask the newest again
  tet qhist run 1 -t other.tet    ask another file
  tet qhist --clear               forget them all

Environment:
  TET_NO_QUERY_HISTORY=1    note nothing
  TET_QUERY_HISTORY_FILE    the file, instead of query_history.jsonl in the cache of the user
  TET_QUERY_HISTORY_MAX     how many queries are kept, 1 to 10000 (default 50)";

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
    /// Ask a query again
    Run(Run),
}

#[derive(Debug, clap::Args)]
struct List {
    /// Print at most N queries
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    limit: usize,
    /// Print every query that is kept
    #[arg(long)]
    all: bool,
    /// Print them as JSON, documents included
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    filter: Filter,
    /// Only those whose file contains this, in any case
    #[arg(long, value_name = "TEXT")]
    tet: Option<String>,
    /// Remove the history
    #[arg(long)]
    clear: bool,
}

#[derive(Debug, clap::Args)]
struct Run {
    /// The number of the query in the list with the same filters; 1 is the newest
    #[arg(value_name = "N")]
    number: usize,
    /// Ask this file
    #[arg(short, long, value_name = "PATH")]
    tet: Option<PathBuf>,
    /// Read values and compute, even if that was not done before
    #[arg(short = 'x', long)]
    execute: bool,
    /// Only tell what would be read
    #[arg(long, conflicts_with = "execute")]
    plan: bool,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    filter: Filter,
    /// Only those whose file contains this, in any case
    #[arg(long, value_name = "TEXT")]
    tet_filter: Option<String>,
}

/// Which queries are meant.
#[derive(Debug, clap::Args)]
struct Filter {
    /// Only those whose dataset contains this, in any case
    #[arg(long, value_name = "TEXT")]
    dataset: Option<String>,
    /// Only those with values (`x`) or without (`p`)
    #[arg(long, value_name = "MODE")]
    mode: Option<Mode>,
    /// Only those whose dataset, file or operation contains this, in any case
    #[arg(long, value_name = "TEXT")]
    grep: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Values were read
    #[value(alias = "execute")]
    X,
    /// Only a plan was made
    #[value(alias = "plan")]
    P,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let Some(history) = History::find() else {
        let failure = Failure::request("there is no place for a query history");
        return Err(failure.with_hint("`TET_QUERY_HISTORY_FILE` names a file for it"));
    };
    match &args.verb {
        None => listed(&args.list, &history, out),
        Some(Verb::List(list)) => listed(list, &history, out),
        Some(Verb::Run(run)) => again(run, &history, out),
    }
}

fn listed(args: &List, history: &History, out: &mut Ui) -> Result<Outcome, Failure> {
    if args.clear { clear(history, out) } else { list::print(args, history, out) }
}

fn clear(history: &History, out: &mut Ui) -> Result<Outcome, Failure> {
    let said = if history.clear()? { "the query history is removed" } else { "there is no query history" };
    out.line(said)?;
    Ok(Outcome::Done)
}

/// Asks a query again.
fn again(args: &Run, history: &History, out: &mut Ui) -> Result<Outcome, Failure> {
    let kept = args.filter.select(history.entries()?, args.tet_filter.as_deref());
    let Some(entry) = args.number.checked_sub(1).and_then(|at| kept.get(at)) else {
        let found = match kept.len() {
            0 => "there are none".to_owned(),
            1 => "there is only one".to_owned(),
            count => format!("there are {count}"),
        };
        let failure = Failure::request(format!("there is no query {} in the history; {found}", args.number));
        return Err(failure.with_hint("`tet qhist` lists them"));
    };
    let tet = args.tet.clone().or_else(|| entry.tet.as_ref().map(PathBuf::from));
    let execute = (entry.execute || args.execute) && !args.plan;
    if execute && tet.is_none() {
        let failure = Failure::request("the query was asked without a file, so it has no values to read");
        return Err(failure.with_hint("`-t FILE` names one"));
    }
    // An operation that is not computed has no answer but a plan.
    let is_fold = !["", "align", "spill"].contains(&row::operation(entry));
    let how = args.how.clone();
    let how = if is_fold && !execute { how.plan_by_default() } else { how };
    let document = Document::json(format!("query {}", args.number), entry.query.to_string());
    ask(&document, tet.as_deref(), execute, &how, out)
}

impl Filter {
    /// The queries that are meant, newest first.
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

    /// The filter in words, if there is one.
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
