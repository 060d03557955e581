//! `tatami inspect`: columns, row groups, indexes and metadata.

use std::sync::Arc;

use tercet::Format;
use tercet::core::ByteSource;

use super::open::open;
use crate::args::{JsonArgs, QuietArgs};
use crate::failure::{Failure, Outcome};
use crate::many::{Files, JsonList};
use crate::ui::Ui;

mod pages;
mod text;

const EXAMPLES: &str = "\
Examples:
  tatami inspect crawl.tatami            columns, row groups, indexes, metadata
  tatami inspect crawl.tatami --pages    all pages: encoding, codec, size, offset
  tatami inspect crawl.tatami --json     complete header and footer

`enc` and `codec` are those of the first page of the last row group. `needs` is `reference` if all readers support \
the file, else the required features.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    files: Files,
    /// Also list the pages; reads their headers
    #[arg(long)]
    pages: bool,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    quiet: QuietArgs,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    args.files.each(Some(Format::Tatami), JsonList::ForMany, out, |input, out| {
        if args.quiet.quiet && !args.json.json {
            return print_one_line(input.source()?, out);
        }
        run_on(args.json.json, args.pages, input.source()?, out)
    })
}

/// Inspects an open file.
pub(crate) fn run_on(
    json: bool,
    pages: bool,
    source: Arc<dyn ByteSource>,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let file = open(source)?;
    if json {
        let summary = if pages { file.summary_with_pages()? } else { file.summary() };
        out.json(&summary)?;
        return Ok(Outcome::Done);
    }
    text::print(&file, out)?;
    if pages {
        pages::print(&file, out)?;
    }
    Ok(Outcome::Done)
}

/// Prints a one-line summary.
pub(crate) fn print_one_line(source: Arc<dyn ByteSource>, out: &mut Ui) -> Result<Outcome, Failure> {
    out.line(text::one_line(&open(source)?))?;
    Ok(Outcome::Done)
}
