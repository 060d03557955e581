//! `tgm outline`: the byte layout as a tree.

use std::sync::Arc;

use tercet::Format;
use tercet::core::{ByteSource, OutlineOptions};
use tercet::tgm::{File, ReadOptions};

use super::open::{listed, warn_of_gaps};
use crate::args::{JsonArgs, LimitArgs, limits};
use crate::failure::{Failure, Outcome};
use crate::many::{Files, JsonList};
use crate::render::print_outline;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tgm outline run.tgm          messages, frames and fields with byte ranges
  tgm outline run.tgm -n 0     all messages and frames
  tgm outline run.tgm --json   JSON

Damaged files are printed as far as they can be parsed; hashes are printed, not verified.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("limit", |arg| arg.help("Print at most N messages, and N frames of each; 0 prints all [default: 32]")))]
pub(crate) struct Args {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    limit: LimitArgs,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let options = args.limit.for_outline();
    args.files.each(Some(Format::Tgm), JsonList::ForMany, out, |input, out| {
        run_on(args.json.json, options, input.source_of(Format::Tgm)?, out)
    })
}

pub(crate) fn run_on(
    json: bool,
    options: OutlineOptions,
    source: Arc<dyn ByteSource>,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let file = File::from_source(source, ReadOptions::new().with_limits(limits()))?;
    let bar = out.bar("scanning", file.len());
    file.scan_with(&bar)?;
    drop(bar);
    warn_of_gaps(&file, out)?;
    let outline = file.outline(options)?;
    print_outline(file.name(), file.len(), &outline, json, out)?;
    listed(&file)
}
