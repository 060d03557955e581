//! `tgm recode`: messages whose values are stored in another way.

use std::path::PathBuf;

use tercet::core::Progress as _;
use tercet::tgm::File;

use super::Globals;
use super::editing::{Sink, told};
use super::open::{Reading, for_each_message};
use super::pipeline::Pipeline;
use super::select::Filter;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::{Output, shown};
use crate::ui::Ui;

mod recoder;
mod tally;

pub(super) use recoder::Recoder;
pub(super) use tally::Tally;

const EXAMPLES: &str = "\
Examples:
  tgm recode run.tgm small.tgm --filter shuffle --compression zstd
  tgm recode run.tgm small.tgm --encoding simple_packing --bits 24 --compression szip --lossy
  tgm recode run.tgm small.tgm --max-error 0.01
  tgm recode small.tgm plain.tgm --compression none

An object that cannot be stored as asked is copied as it is, and told. NaN and infinities are kept. A bound \
that was recorded for an object grows by what recoding may add to its error.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// The file to write, or the address of an object (`s3://`, `gs://`, `az://`); `-` writes to standard output
    #[arg(value_name = "OUTPUT")]
    output: PathBuf,
    #[command(flatten)]
    filter: Filter,
    /// Replace a file that is there already
    #[arg(long)]
    force: bool,
    /// Print what was done as JSON
    #[arg(short, long)]
    json: bool,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    recoding: Recoding,
}

/// How messages are recoded.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Recoding {
    /// Let recoding change values
    #[arg(long)]
    lossy: bool,
    /// Refuse objects that cannot be stored as asked, instead of copying them as they are
    #[arg(long)]
    strict: bool,
    /// Leave out when and by what recoded messages were written, so that equal messages make equal bytes
    #[arg(long)]
    reproducible: bool,
    #[command(flatten)]
    pipeline: Pipeline,
}

impl Recoding {
    /// Whether the user wants values stored in another way.
    pub(super) fn is_wanted(&self) -> bool {
        self.pipeline.is_given()
    }

    /// The first option, if any is given, that means nothing unless messages are recoded.
    pub(super) fn stray_option(&self) -> Option<&'static str> {
        let options =
            [("--lossy", self.lossy), ("--strict", self.strict), ("--reproducible", self.reproducible)];
        options.into_iter().find(|(_, is_given)| *is_given && !self.is_wanted()).map(|(option, _)| option)
    }

    /// Refuses options that do not go together.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.pipeline.check()
    }
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Ui) -> Result<Outcome, Failure> {
    args.recoding.check()?;
    if !args.recoding.is_wanted() {
        let failure = Failure::request("nothing says how the values are to be stored");
        return Err(failure.with_hint(
            "add `--encoding`, `--filter`, `--compression` or `--max-error`; `--compression none` stores them plainly",
        ));
    }
    let output = Output::of(&args.output, args.force)?;
    if !args.input.is_stdin() {
        output.must_not_be(&args.input.path)?;
    }
    if args.json && matches!(output, Output::Stdout) {
        return Err(Failure::request("`--json` and the messages cannot both go to standard output"));
    }
    let file = args.reading.open(args.input.source()?, out)?;
    let mut recoder = Recoder::new(&args.recoding, globals);
    let mut tally = Tally::default();
    let (is_stdout, mut sink) = (matches!(output, Output::Stdout), Sink::open(output, args.force)?);
    args.each(&file, &mut recoder, &mut tally, &mut sink, out)?;
    sink.finish()?;
    match (is_stdout, args.json) {
        (true, _) => {}
        (false, true) => out.json(&tally.told(&told(&args.output)))?,
        (false, false) => out.line(tally.line(&shown(&args.output)))?,
    }
    Ok(Outcome::Done)
}

impl Args {
    /// Recodes one message after the other.
    fn each(
        &self,
        file: &File,
        recoder: &mut Recoder<'_>,
        tally: &mut Tally,
        sink: &mut Sink,
        out: &mut Ui,
    ) -> Result<(), Failure> {
        let bar = out.bar("recoding", file.len());
        for_each_message(file, &self.filter, |message| {
            let bytes = recoder.message(message, tally, out)?;
            // A large message takes a while, in which the user may have changed their mind.
            bar.check().map_err(|_| Failure::Interrupted)?;
            sink.raw(&bytes, out)?;
            bar.advance(message.span().len());
            Ok(())
        })
    }
}
