//! `tatami explain`: what a condition lets a reader leave out.

use serde::Serialize;
use tercet::tatami::scan::{By, Explain, GroupExplain};

use super::columns::Columns;
use super::condition::Condition;
use super::open::open_to_print;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tatami explain crawl.tatami --where 'status = 404'
  tatami explain crawl.tatami --where 'url = \"https://example.org/\"' --groups
  tatami explain crawl.tatami --where 'status = 404' --json

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

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let file = open_to_print(args.input.source()?)?;
    let columns = args.columns.of(&file)?;
    let condition = args.condition.of(&file)?;
    let explained = file.scan().column_positions(&columns)?.filter(&condition)?.explain()?;
    if args.json {
        out.json(&Told { file: file.name(), explained: &explained })?;
        return Ok(Outcome::Done);
    }
    out.line(&explained)?;
    if args.groups {
        for group in &explained.detail {
            out.line(told(group))?;
        }
    }
    Ok(Outcome::Done)
}

fn told(group: &GroupExplain) -> String {
    let GroupExplain { group: number, rows, verdict, .. } = group;
    let rows = if *rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") };
    match (*verdict, group.by) {
        ("pruned", by) => {
            let by = match by {
                Some(By::Bloom) => "a bloom filter",
                Some(By::Bounds) => "bounds of pages",
                Some(By::Dictionary) => "a dictionary",
                Some(By::Zone) | None => "zones",
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
