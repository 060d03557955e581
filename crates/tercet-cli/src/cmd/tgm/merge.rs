//! `tgm merge`: many messages into one.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use tercet::tgm::edit::{Merge, Strategy};

use super::editing::{Making, Sink, check_each, told};
use super::open::Reading;
use crate::failure::{Failure, Outcome};
use crate::input::Inputs;
use crate::output::shown;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tgm merge a.tgm b.tgm -o all.tgm       every object of every message, in one message
  tgm merge run.tgm -o one.tgm           the messages of one file
  tgm merge a.tgm b.tgm -o all.tgm -s error

Objects keep their metadata. The strategy is for keys of the messages themselves (`_extra_`) that have \
different values.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    /// The file to write, or the address of an object (`s3://`, `gs://`, `az://`); `-` writes to standard output
    #[arg(short, long, value_name = "OUTPUT")]
    output: PathBuf,
    /// Whose value counts where messages disagree: that of the first, that of the last, or none
    #[arg(short, long, value_name = "STRATEGY", default_value = "first", value_parser = strategy())]
    strategy: Strategy,
    #[command(flatten)]
    making: Making,
}

fn strategy() -> impl TypedValueParser<Value = Strategy> {
    PossibleValuesParser::new(Strategy::ALL.map(Strategy::name)).try_map(|name| name.parse::<Strategy>())
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Told {
    file: String,
    files: u64,
    messages: u64,
    objects: u64,
    strategy: &'static str,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let inputs = args.inputs.each()?;
    let output = args.making.output(&args.output, &inputs)?;
    let mut merge = Merge::new(args.strategy);
    let mut messages = 0;
    for input in &inputs {
        let file = Reading::default().open(input.one_of_many()?, out)?;
        check_each(&file, out, |message| {
            messages += 1;
            Ok(merge.add(message)?)
        })?;
    }
    if messages == 0 {
        return Err(Failure::request("there is no message to merge"));
    }
    let draft = merge.finish(&args.making.options())?;
    if !draft.is_hashed() {
        out.note("note: not every object has a hash, so the new message has none")?;
    }
    let bar = out.bar("writing", draft.len());
    let mut sink = Sink::open(output, args.making.force)?;
    sink.draft(&draft, &bar, out)?;
    let (objects, files, strategy) = (draft.object_count(), inputs.len() as u64, args.strategy.name());
    let (file, path) = (told(&args.output), shown(&args.output));
    let line = format!("Merged {objects} objects from {files} file(s) into {path} (strategy: {strategy})");
    args.making.finish(sink, bar, &Told { file, files, messages, objects, strategy }, line, out)
}
