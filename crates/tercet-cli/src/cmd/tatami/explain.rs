//! `tatami explain`: pruning of row groups and pages by a filter.

use serde::Serialize;
use tercet::core::escape;
use tercet::tatami::collection::CollectionExplain;
use tercet::tatami::scan::{Explain, GroupExplain, PrunedBy};
use tercet::tatami::{Collection, File};

use super::collection_scan;
use super::columns::Columns;
use super::filter::FilterText;
use super::open::open_to_print;
use crate::args::JsonArgs;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tatami explain crawl.tatami --where 'status = 404'
  tatami explain crawl.tatami --where 'url = \"https://example.org/\"' --groups
  tatami explain crawl.tatami --where 'status = 404' --json
  tatami explain crawl --where 'status = 404'            pruned files of a collection

Reads footer, bloom filters, page headers, page statistics and dictionaries, but no values.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Filter: `status = 200 and url like "https://a%"`
    #[arg(short = 'w', long = "where", value_name = "FILTER")]
    filter: FilterText,
    #[command(flatten)]
    columns: Columns,
    /// Also print the pruning of each row group
    #[arg(long, conflicts_with = "json")]
    groups: bool,
    #[command(flatten)]
    json: JsonArgs,
}

/// The JSON output of a file.
#[derive(Serialize)]
struct ExplainJson<'a> {
    file: &'a str,
    #[serde(flatten)]
    explained: &'a Explain,
}

/// The JSON output of a collection.
#[derive(Serialize)]
struct CollectionJson {
    file: String,
    #[serde(flatten)]
    explained: CollectionExplain,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    if let Some(collection) = collection_scan::collection(&args.input, out)? {
        return explain_all(&collection, args, out);
    }
    let file = open_to_print(args.input.source()?)?;
    let explained = explain(&file, args)?;
    if args.json.json {
        out.json(&ExplainJson { file: file.name(), explained: &explained })?;
        return Ok(Outcome::Done);
    }
    show(&explained, args.groups, out)?;
    Ok(Outcome::Done)
}

fn explain(file: &File, args: &Args) -> Result<Explain, Failure> {
    let columns = args.columns.positions_in(file)?;
    let predicate = args.filter.bind_to(file)?;
    Ok(file.scan().column_positions(&columns)?.filter(&predicate)?.explain()?)
}

fn explain_all(collection: &Collection, args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let mut scan = collection.scan();
    if let Some(first) = collection_scan::first_of(collection)? {
        if let Some(names) = args.columns.names()? {
            scan = scan.columns(&names)?;
        }
        scan = scan.filter(&args.filter.bind_to(&first)?)?;
    }
    let explained = scan.explain()?;
    if args.json.json {
        out.json(&CollectionJson { file: collection_scan::name(&args.input.path), explained })?;
        return Ok(Outcome::Done);
    }
    let CollectionExplain { files, files_pruned, members, .. } = explained;
    let plural = if files == 1 { "" } else { "s" };
    out.line(format_args!("{files} file{plural}, {files_pruned} pruned by the manifest"))?;
    for member in &members {
        out.line(format_args!("{}:", escape::name(&member.file)))?;
        show(&member.explained, args.groups, out)?;
    }
    Ok(Outcome::Done)
}

fn show(explained: &Explain, groups: bool, out: &mut Ui) -> Result<(), Failure> {
    out.line(explained)?;
    if groups {
        for group in &explained.detail {
            out.line(group_line(group))?;
        }
    }
    Ok(())
}

fn group_line(group: &GroupExplain) -> String {
    let GroupExplain { group: number, rows, verdict, .. } = group;
    let rows = if *rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") };
    match (*verdict, group.by) {
        ("pruned", by) => {
            let by = match by {
                Some(PrunedBy::Bloom) => "a bloom filter",
                Some(PrunedBy::Bounds) => "page statistics",
                Some(PrunedBy::Dictionary) => "a dictionary",
                Some(PrunedBy::Zone) | None => "zone maps",
            };
            format!("  group {number}: {rows} pruned by {by}")
        }
        ("matched", _) => format!("  group {number}: {rows} matched by statistics"),
        _ => format!(
            "  group {number}: {} of {rows} tested, {} pruned by page statistics, {} by a dictionary, {} of {} \
             pages decoded",
            group.rows_tested,
            group.rows_pruned_by_bounds,
            group.rows_pruned_by_dictionary,
            group.pages.total - group.pages.skipped,
            group.pages.total,
        ),
    }
}
