//! `tatami count`: count rows.

use serde::Serialize;

use super::collection_scan::{self, deleted_rows, note_deleted};
use super::columns::Columns;
use super::filter::Where;
use super::open::open_to_print;
use crate::args::JsonArgs;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tatami count crawl.tatami
  tatami count crawl.tatami --where 'status >= 400'
  tatami count crawl.tatami --where 'url prefix \"https://a\" and not (lang in (\"de\", \"fr\"))'
  tatami count crawl --where 'status >= 400'          all files of a collection

Pages pruned by zone maps, bloom filters, page statistics and dictionaries are not read; see `tatami explain`.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    filter: Where,
    #[command(flatten)]
    json: JsonArgs,
}

/// The JSON output.
#[derive(Serialize)]
struct CountJson<'a> {
    file: &'a str,
    rows: u64,
    count: u64,
    /// Rows of deleted documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<u64>,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    if let Some(collection) = collection_scan::collection(&args.input, out)? {
        let file = collection_scan::name(&args.input.path);
        let (mut count, mut deleted) = (0, 0);
        if let Some(first) = collection_scan::first_of(&collection)? {
            let scan = collection_scan::scan(&collection, &first, &Columns::default(), &args.filter)?;
            count = scan.count()?;
            deleted = collection_scan::deleted_in_all(&scan, &collection, &first)?;
        }
        return print(args, &file, collection.rows(), count, deleted, out);
    }
    let file = open_to_print(args.input.source()?)?;
    let mut scan = file.scan();
    if let Some(predicate) = args.filter.bind_to(&file)? {
        scan = scan.filter(&predicate)?;
    }
    let count = scan.count()?;
    print(args, file.name(), file.rows(), count, deleted_rows(&file)?, out)
}

fn print(
    args: &Args,
    file: &str,
    rows: u64,
    count: u64,
    deleted: u64,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    if args.json.json {
        out.json(&CountJson { file, rows, count, deleted: Some(deleted).filter(|deleted| *deleted > 0) })?;
    } else {
        out.line(count)?;
        note_deleted(file, deleted, out)?;
    }
    Ok(Outcome::Done)
}
