//! `tatami explain`: what a condition lets a reader leave out.

use serde::Serialize;
use tercet::core::escape;
use tercet::tatami::scan::{Explain, GroupExplain, PrunedBy};
use tercet::tatami::{Collection, File};

use super::columns::Columns;
use super::condition::Condition;
use super::folder;
use super::open::open_to_print;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tatami explain crawl.tatami --where 'status = 404'
  tatami explain crawl.tatami --where 'url = \"https://example.org/\"' --groups
  tatami explain crawl.tatami --where 'status = 404' --json
  tatami explain crawl --where 'status = 404'            which files of a collection are opened at all

Footer, filters, page headers, bounds and dictionaries are read, but no values.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// The condition: `status = 200 and url prefix "https://a"`
    #[arg(short = 'w', long = "where", value_name = "CONDITION")]
    condition: Condition,
    #[command(flatten)]
    columns: Columns,
    /// Tell what was left out by what in each row group too
    #[arg(long, conflicts_with = "json")]
    groups: bool,
    /// Tell everything as JSON
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Told<'a> {
    file: &'a str,
    #[serde(flatten)]
    explained: &'a Explain,
}

/// What `--json` prints of a collection.
#[derive(Serialize)]
struct ToldOfAll {
    file: String,
    files: usize,
    /// Files that the manifest alone leaves out.
    files_pruned: usize,
    members: Vec<ToldOfOne>,
}

#[derive(Serialize)]
struct ToldOfOne {
    file: String,
    #[serde(flatten)]
    explained: Explain,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    if let Some(collection) = folder::collection(&args.input, out)? {
        return explain_all(&collection, args, out);
    }
    let file = open_to_print(args.input.source()?)?;
    let explained = explain(&file, args)?;
    if args.json {
        out.json(&Told { file: file.name(), explained: &explained })?;
        return Ok(Outcome::Done);
    }
    show(&explained, args.groups, out)?;
    Ok(Outcome::Done)
}

fn explain(file: &File, args: &Args) -> Result<Explain, Failure> {
    let columns = args.columns.of(file)?;
    let condition = args.condition.of(file)?;
    Ok(file.scan().column_positions(&columns)?.filter(&condition)?.explain()?)
}

fn explain_all(collection: &Collection, args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let mut members = Vec::new();
    if let Some(first) = folder::first_of(collection)? {
        for member in collection.prune(&args.condition.of(&first)?)? {
            let explained = explain(&collection.open_member(member)?, args)?;
            members.push(ToldOfOne { file: member.path.clone(), explained });
        }
    }
    let files = collection.members().len();
    let files_pruned = files - members.len();
    if args.json {
        out.json(&ToldOfAll { file: folder::name(&args.input.path), files, files_pruned, members })?;
        return Ok(Outcome::Done);
    }
    let plural = if files == 1 { "" } else { "s" };
    out.line(format_args!("{files} file{plural}, {files_pruned} left out by the manifest"))?;
    for ToldOfOne { file, explained } in &members {
        out.line(format_args!("{}:", escape::name(file)))?;
        show(explained, args.groups, out)?;
    }
    Ok(Outcome::Done)
}

fn show(explained: &Explain, groups: bool, out: &mut Ui) -> Result<(), Failure> {
    out.line(explained)?;
    if groups {
        for group in &explained.detail {
            out.line(told(group))?;
        }
    }
    Ok(())
}

fn told(group: &GroupExplain) -> String {
    let GroupExplain { group: number, rows, verdict, .. } = group;
    let rows = if *rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") };
    match (*verdict, group.by) {
        ("pruned", by) => {
            let by = match by {
                Some(PrunedBy::Bloom) => "a bloom filter",
                Some(PrunedBy::Bounds) => "bounds of pages",
                Some(PrunedBy::Dictionary) => "a dictionary",
                Some(PrunedBy::Zone) | None => "zones",
            };
            format!("  group {number}: {rows} left out by {by}")
        }
        ("whole", _) => format!("  group {number}: {rows} taken without a look"),
        _ => format!(
            "  group {number}: {} of {rows} tested, {} left out by bounds of pages, {} by a dictionary, {} of {} \
             pages decoded",
            group.rows_tested,
            group.rows_pruned_by_bounds,
            group.rows_pruned_by_dictionary,
            group.pages.total - group.pages.spared,
            group.pages.total,
        ),
    }
}
