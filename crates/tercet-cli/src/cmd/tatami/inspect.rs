//! `tatami inspect`: columns, row groups, indexes and metadata.

use std::sync::Arc;

use tercet::Format;
use tercet::core::ByteSource;
use tercet::tatami::Summary;

use super::open::open;
use crate::args::{JsonArgs, LimitArgs, QuietArgs};
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
  tatami inspect crawl                   members and columns of a collection

`enc` and `codec` are those of the first page of the last row group. `required features` lists what other \
implementations may not support; without this line they read the file.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("limit", |arg| arg.help("List at most N pages; 0 lists all [default: 0]")))]
pub(crate) struct Args {
    #[command(flatten)]
    files: Files,
    /// Also list the pages; reads their headers
    #[arg(long)]
    pages: bool,
    #[command(flatten)]
    limit: LimitArgs,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    quiet: QuietArgs,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    if let Some(directory) = args.files.collection() {
        return super::collection::inspect(directory, args.json.json, out);
    }
    args.files.each(Some(Format::Tatami), JsonList::ForMany, out, |input, out| {
        if args.quiet.quiet && !args.json.json {
            return print_one_line(input.source()?, out);
        }
        let pages = args.pages.then(|| args.limit.or(0));
        run_on(args.json.json, pages, input.source()?, out)
    })
}

/// Inspects an open file, and at most `pages` of its pages.
pub(crate) fn run_on(
    json: bool,
    pages: Option<u64>,
    source: Arc<dyn ByteSource>,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let file = open(source)?;
    if json {
        let summary = match pages {
            Some(most) => with_most_pages(file.summary_with_pages()?, most),
            None => file.summary()?,
        };
        out.json(&summary)?;
        return Ok(Outcome::Done);
    }
    text::print(&file, out)?;
    if let Some(most) = pages {
        pages::print(&file, most, out)?;
    }
    Ok(Outcome::Done)
}

/// A summary with at most `most` pages.
fn with_most_pages(mut summary: Summary, most: u64) -> Summary {
    let mut left = usize::try_from(most).unwrap_or(usize::MAX);
    for chunk in summary.groups.iter_mut().flat_map(|group| &mut group.chunks) {
        if let Some(pages) = &mut chunk.pages {
            pages.truncate(left);
            left -= pages.len();
        }
    }
    summary
}

/// Prints a one-line summary.
pub(crate) fn print_one_line(source: Arc<dyn ByteSource>, out: &mut Ui) -> Result<Outcome, Failure> {
    out.line(text::one_line(&open(source)?))?;
    Ok(Outcome::Done)
}
