//! `tatami inspect`: what a file holds.

use std::sync::Arc;

use tercet::core::ByteSource;

use super::open::open;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::ui::Ui;

mod pages;
mod text;
mod told;

const EXAMPLES: &str = "\
Examples:
  tatami inspect crawl.tatami            columns, row groups, indexes, metadata
  tatami inspect crawl.tatami --pages    every page: encoding, codec, bytes, place
  tatami inspect crawl.tatami --json     everything that header and footer say

`enc` and `codec` are those of the first page of the last row group. `needs` tells whether other readers of \
the format can read the file, or which features of this one it uses.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// List the pages too; their headers are read
    #[arg(long)]
    pages: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    run_on(args.json, args.pages, args.input.source()?, out)
}

/// Shows one file that is open already.
pub(crate) fn run_on(
    json: bool,
    pages: bool,
    source: Arc<dyn ByteSource>,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let file = open(source)?;
    if json {
        out.json(&told::Told::of(&file, pages)?)?;
        return Ok(Outcome::Done);
    }
    text::print(&file, out)?;
    if pages {
        pages::print(&file, out)?;
    }
    Ok(Outcome::Done)
}

/// The file in one line.
pub(crate) fn run_in_one_line(source: Arc<dyn ByteSource>, out: &mut Ui) -> Result<Outcome, Failure> {
    out.line(text::one_line(&open(source)?))?;
    Ok(Outcome::Done)
}
