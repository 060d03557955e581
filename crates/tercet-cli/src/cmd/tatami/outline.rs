//! `tatami outline`: the byte layout as a tree.

use std::sync::Arc;

use tercet::core::{ByteSource, OutlineOptions};

use super::open::open;
use crate::args::JsonArgs;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::render::tree_lines;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tatami outline crawl.tatami            row groups, column chunks, dictionaries, footer sections
  tatami outline crawl.tatami --pages    with all pages
  tatami outline crawl.tatami --json     JSON";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Also print the pages; reads their headers
    #[arg(long)]
    pages: bool,
    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    run_on(args.json.json, args.pages, args.input.source()?, out)
}

pub(crate) fn run_on(
    json: bool,
    pages: bool,
    source: Arc<dyn ByteSource>,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let outline = open(source)?.outline(OutlineOptions::new().with_max_rows((!pages).then_some(0)))?;
    if json {
        out.json(&outline)?;
    } else {
        tree_lines(&outline).into_iter().try_for_each(|line| out.line(line))?;
    }
    Ok(Outcome::Done)
}
