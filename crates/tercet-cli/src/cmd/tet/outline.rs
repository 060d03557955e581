//! `tet outline`: the byte layout as a tree.

use std::sync::Arc;

use tercet::Format;
use tercet::core::{ByteSource, OutlineOptions};
use tercet::tet::{File, ReadOptions};

use super::report::warn_if_partly_protected;
use crate::args::{JsonArgs, LimitArgs, limits};
use crate::failure::{Failure, Outcome};
use crate::many::{Files, JsonList};
use crate::render::tree_lines;
use crate::ui::Ui;

/// Items printed by default.
pub(crate) const LIMIT: u64 = 32;

const EXAMPLES: &str = "\
Examples:
  tet outline era5.tet          every field with byte range and value
  tet outline era5.tet -n 0     all rows of the chunk index
  tet outline era5.tet --json   JSON";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("limit", |arg| arg.help("Print at most N rows of each table; 0 prints all [default: 32]")))]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) files: Files,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) limit: LimitArgs,
    /// Skip checksum verification
    #[arg(long)]
    ignore_checksums: bool,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    args.files.each(Some(Format::Tet), JsonList::ForMany, out, |input, out| {
        run_on(args, input.source_of(Format::Tet)?, out)
    })
}

pub(crate) fn run_on(args: &Args, source: Arc<dyn ByteSource>, out: &mut Ui) -> Result<Outcome, Failure> {
    let options = ReadOptions::new().with_verify(!args.ignore_checksums).with_limits(limits());
    let file = File::from_source(source, options)?;
    warn_if_partly_protected(&file, out)?;
    let limit = args.limit.limit.unwrap_or(LIMIT);
    let rows = OutlineOptions::new().with_max_rows((limit > 0).then_some(limit));
    let outline = file.outline(rows)?;
    if args.json.json {
        out.json(&outline)?;
    } else {
        tree_lines(&outline).into_iter().try_for_each(|line| out.line(line))?;
    }
    Ok(Outcome::Done)
}
