//! `tgm repack`: rewrite messages with another encoding, filter or compression.

use tercet::core::Progress as _;
use tercet::tgm::File;

use super::Globals;
use super::editing::Sink;
use super::open::{DamageArgs, ReadArgs, for_each_message};
use super::pipeline::Pipeline;
use super::select::Filter;
use crate::args::{ForceArgs, JsonArgs, OutputArgs};
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::{Output, display_path, json_path};
use crate::ui::Ui;

mod repacker;
mod tally;

pub(super) use repacker::Repacker;
pub(super) use tally::Tally;

const EXAMPLES: &str = "\
Examples:
  tgm repack run.tgm small.tgm --filter shuffle --compression zstd
  tgm repack run.tgm small.tgm --encoding simple_packing --bits 24 --compression szip --lossy
  tgm repack run.tgm small.tgm --max-error 0.01
  tgm repack small.tgm plain.tgm --compression none

An object that the pipeline cannot store is copied unchanged, with a note. NaN and infinities are kept. A recorded \
error bound grows by the error that repacking may add.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    read: ReadArgs,
    #[command(flatten)]
    damage: DamageArgs,
    #[command(flatten)]
    repacking: RepackOptions,
}

/// Repacking options.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct RepackOptions {
    /// Allow repacking to change values
    #[arg(long)]
    lossy: bool,
    /// Fail on objects that the pipeline cannot store, instead of copying them unchanged
    #[arg(long)]
    strict: bool,
    /// Omit timestamp, UUID and producer, for reproducible output
    #[arg(long)]
    reproducible: bool,
    #[command(flatten)]
    pipeline: Pipeline,
}

impl RepackOptions {
    /// Whether a pipeline is given.
    pub(super) fn is_wanted(&self) -> bool {
        self.pipeline.is_given()
    }

    /// The first given option that requires a pipeline.
    pub(super) fn stray_option(&self) -> Option<&'static str> {
        let options =
            [("--lossy", self.lossy), ("--strict", self.strict), ("--reproducible", self.reproducible)];
        options.into_iter().find(|(_, is_given)| *is_given && !self.is_wanted()).map(|(option, _)| option)
    }

    /// Rejects conflicting options.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.pipeline.check()
    }
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Ui) -> Result<Outcome, Failure> {
    args.repacking.check()?;
    if !args.repacking.is_wanted() {
        let failure = Failure::request("no encoding, filter or compression given");
        return Err(failure.with_hint(
            "add `--encoding`, `--filter`, `--compression` or `--max-error`; `--compression none` stores values uncompressed",
        ));
    }
    let output = Output::open(args.output.path(), args.force.force)?;
    if !args.input.is_stdin() {
        output.must_not_be(&args.input.path)?;
    }
    if args.json.json && matches!(output, Output::Stdout) {
        return Err(Failure::request("cannot write both messages and JSON to standard output"));
    }
    let file = args.read.open_complete(args.input.source()?, args.damage, out)?;
    let mut repacker = Repacker::new(&args.repacking, globals, &file);
    let mut tally = Tally::default();
    let (is_stdout, mut sink) = (matches!(output, Output::Stdout), Sink::open(output, args.force.force)?);
    let matched = args.each(&file, &mut repacker, &mut tally, &mut sink, out)?;
    if args.filter.note_if_none(matched, out)? {
        return Ok(Outcome::CheckFailed);
    }
    sink.finish()?;
    match (is_stdout, args.json.json) {
        (true, _) => {}
        (false, true) => out.json(&tally.to_json(&json_path(args.output.path())))?,
        (false, false) => out.summary(tally.line(&display_path(args.output.path())))?,
    }
    Ok(Outcome::Done)
}

impl Args {
    /// Repacks all messages.
    fn each(
        &self,
        file: &File,
        repacker: &mut Repacker<'_>,
        tally: &mut Tally,
        sink: &mut Sink,
        out: &mut Ui,
    ) -> Result<u64, Failure> {
        let bar = out.bar("repacking", file.len());
        for_each_message(file, &self.filter, &mut { u64::MAX }, |message, _| {
            let bytes = repacker.message(message, tally, out)?;
            // Check for interrupts after each message.
            bar.check().map_err(|_| Failure::Interrupted)?;
            sink.raw(&bytes, out)?;
            bar.advance(message.span().len());
            Ok(())
        })
    }
}
