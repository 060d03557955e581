//! `tatami outline`: the byte layout as a tree.

use std::sync::Arc;

use tercet::Format;
use tercet::core::{ByteSource, OutlineOptions};

use super::open::open;
use crate::args::{JsonArgs, LimitArgs};
use crate::failure::{Failure, Outcome};
use crate::many::{Files, JsonList};
use crate::render::print_outline;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tatami outline crawl.tatami          row groups, column chunks, dictionaries, footer sections
  tatami outline crawl.tatami -n 0     all row groups
  tatami outline crawl.tatami --pages  pages of column chunks
  tatami outline crawl.tatami --json   JSON";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("limit", |arg| arg.help("Print at most N row groups, and N blob runs of each column; 0 prints all [default: 32]")))]
pub(crate) struct Args {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    limit: LimitArgs,
    /// Also list the pages; reads their headers
    #[arg(long)]
    pages: bool,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let options = args.limit.for_outline().with_pages(args.pages);
    args.files.each(Some(Format::Tatami), JsonList::ForMany, out, |input, out| {
        run_on(args.json.json, options, input.source()?, out)
    })
}

pub(crate) fn run_on(
    json: bool,
    options: OutlineOptions,
    source: Arc<dyn ByteSource>,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let file = open(source)?;
    let outline = file.outline(options)?;
    print_outline(file.name(), file.len(), &outline, json, out)?;
    Ok(Outcome::Done)
}
