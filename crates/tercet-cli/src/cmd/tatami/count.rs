//! `tatami count`: how many rows fulfil a condition.

use serde::Serialize;

use super::columns::Columns;
use super::condition::Where;
use super::folder::{self, deleted_rows, note_deleted};
use super::open::open_to_print;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tatami count crawl.tatami
  tatami count crawl.tatami --where 'status >= 400'
  tatami count crawl.tatami --where 'url prefix \"https://a\" and not (lang in (\"de\", \"fr\"))'
  tatami count crawl --where 'status >= 400'          in all files of a collection

What zones, filters, bounds of pages and dictionaries answer is not read; `tatami explain` says how much that is.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    condition: Where,
    /// Tell the rows of the file too, as JSON
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Told<'a> {
    file: &'a str,
    rows: u64,
    count: u64,
    /// Rows of a segment whose documents were deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<u64>,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    if let Some(collection) = folder::collection(&args.input, out)? {
        let file = folder::name(&args.input.path);
        let (mut count, mut deleted) = (0, 0);
        if let Some(first) = folder::first_of(&collection)? {
            let scan = folder::question(&collection, &first, &Columns::default(), &args.condition)?;
            count = scan.count()?;
            deleted = folder::deleted_in_all(&scan, &collection, &first)?;
        }
        return tell(args, &file, collection.rows(), count, deleted, out);
    }
    let file = open_to_print(args.input.source()?)?;
    let mut scan = file.scan();
    if let Some(condition) = args.condition.of(&file)? {
        scan = scan.filter(&condition)?;
    }
    let count = scan.count()?;
    tell(args, file.name(), file.rows(), count, deleted_rows(&file)?, out)
}

fn tell(
    args: &Args,
    file: &str,
    rows: u64,
    count: u64,
    deleted: u64,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    if args.json {
        out.json(&Told { file, rows, count, deleted: Some(deleted).filter(|deleted| *deleted > 0) })?;
    } else {
        out.line(count)?;
        note_deleted(file, deleted, out)?;
    }
    Ok(Outcome::Done)
}
