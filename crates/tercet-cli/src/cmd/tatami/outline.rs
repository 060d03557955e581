//! `tatami outline`: the byte layout as a tree.

use std::sync::Arc;

use tercet::Format;
use tercet::core::{ByteSource, OutlineOptions};

use super::open::open;
use crate::args::{JsonArgs, LimitArgs};
use crate::failure::{Failure, Outcome};
use crate::many::{Files, JsonList};
use crate::render::tree_lines;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tatami outline crawl.tatami          row groups, column chunks, dictionaries, footer sections
  tatami outline crawl.tatami -n 0     all row groups with their pages
  tatami outline crawl.tatami --json   JSON";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("limit", |arg| arg.help("Print at most N row groups, and N blob runs of each column; 0 prints all, with their pages [default: 32]")))]
pub(crate) struct Args {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    limit: LimitArgs,
    /// The former spelling of `-n 0`
    #[arg(long, hide = true, conflicts_with = "limit")]
    pages: bool,
    #[command(flatten)]
    json: JsonArgs,
}

/// Items printed by default.
const LIMIT: u64 = 32;

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let limit = if args.pages { 0 } else { args.limit.limit.unwrap_or(LIMIT) };
    args.files.each(Some(Format::Tatami), JsonList::ForMany, out, |input, out| {
        run_on(args.json.json, limit, input.source()?, out)
    })
}

pub(crate) fn run_on(
    json: bool,
    limit: u64,
    source: Arc<dyn ByteSource>,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let outline = open(source)?.outline(OutlineOptions::new().with_max_rows((limit > 0).then_some(limit)))?;
    if json {
        out.json(&outline)?;
    } else {
        tree_lines(&outline).into_iter().try_for_each(|line| out.line(line))?;
    }
    Ok(Outcome::Done)
}
