//! `tatami count`: how many rows fulfil a condition.

use serde::Serialize;

use super::condition::Where;
use super::open::open_to_print;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tatami count crawl.tatami
  tatami count crawl.tatami --where 'status >= 400'
  tatami count crawl.tatami --where 'url prefix \"https://a\" and not (lang in (\"de\", \"fr\"))'

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
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let file = open_to_print(args.input.source()?)?;
    let mut scan = file.scan();
    if let Some(condition) = args.condition.of(&file)? {
        scan = scan.filter(&condition)?;
    }
    let count = scan.count()?;
    if args.json {
        out.json(&Told { file: file.name(), rows: file.rows(), count })?;
    } else {
        out.line(count)?;
    }
    Ok(Outcome::Done)
}
