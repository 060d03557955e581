//! `tet outline`: the byte layout as a tree.

use std::sync::Arc;

use tercet::Format;
use tercet::core::ByteSource;
use tercet::tet::{File, ReadOptions};

use super::report::warn_if_partly_protected;
use crate::args::{JsonArgs, LimitArgs, limits};
use crate::failure::{Failure, Outcome};
use crate::many::{Files, JsonList};
use crate::render::print_outline;
use crate::ui::Ui;

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
    /// Also list the pages of .tatami files; reads their headers
    #[arg(long, hide = true)]
    pub(crate) pages: bool,
    /// Skip checksum verification
    #[arg(long)]
    ignore_checksums: bool,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    if args.pages {
        return Err(Failure::request("`--pages` is for .tatami files"));
    }
    args.files.each(Some(Format::Tet), JsonList::ForMany, out, |input, out| {
        run_on(args, input.source_of(Format::Tet)?, out)
    })
}

pub(crate) fn run_on(args: &Args, source: Arc<dyn ByteSource>, out: &mut Ui) -> Result<Outcome, Failure> {
    let options = ReadOptions::new().with_verify(!args.ignore_checksums).with_limits(limits());
    let file = File::from_source(source, options)?;
    warn_if_partly_protected(&file, out)?;
    print_outline(file.name(), file.len(), &file.outline(args.limit.for_outline())?, args.json.json, out)?;
    Ok(Outcome::Done)
}
