//! `tgm merge`: merge messages into one.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use tercet::tgm::edit::{Merge, Strategy};

use super::editing::{Sink, WriteArgs, check_each};
use super::open::{DamageArgs, ReadArgs};
use crate::failure::{Failure, Outcome};
use crate::input::Inputs;
use crate::output::{display_path, json_path};
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tgm merge a.tgm b.tgm -o all.tgm       all objects of all messages, in one message
  tgm merge run.tgm -o one.tgm           the messages of one file
  tgm merge a.tgm b.tgm -o all.tgm -s error

Objects keep their metadata. The strategy resolves conflicting values of message metadata (`_extra_`).";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    /// Output file or URL (`s3://`, `gs://`, `az://`); `-` writes to standard output
    #[arg(short, long, value_name = "OUTPUT")]
    output: PathBuf,
    /// Conflict resolution: keep first, keep last, or fail
    #[arg(short, long, value_name = "STRATEGY", default_value = "first", value_parser = strategy())]
    strategy: Strategy,
    #[command(flatten)]
    damage: DamageArgs,
    #[command(flatten)]
    write: WriteArgs,
}

fn strategy() -> impl TypedValueParser<Value = Strategy> {
    PossibleValuesParser::new(Strategy::ALL.map(Strategy::name)).try_map(|name| name.parse::<Strategy>())
}

/// The JSON summary.
#[derive(Debug, Serialize)]
struct MergeJson {
    file: String,
    files: u64,
    messages: u64,
    objects: u64,
    strategy: &'static str,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let inputs = args.inputs.each()?;
    let output = args.write.output(&args.output, &inputs)?;
    let mut merge = Merge::new(args.strategy);
    let mut messages = 0;
    for input in &inputs {
        let file = ReadArgs::default().open_complete(input.one_of_many()?, args.damage, out)?;
        check_each(&file, out, |message| {
            messages += 1;
            Ok(merge.add(message)?)
        })?;
    }
    if messages == 0 {
        return Err(Failure::request("no messages to merge"));
    }
    let draft = merge.finish(&args.write.options())?;
    if !draft.is_hashed() {
        out.note("note: some objects have no hash; the merged message has none")?;
    }
    let bar = out.bar("writing", draft.len());
    let mut sink = Sink::open(output, args.write.force.force)?;
    sink.draft(&draft, &bar, out)?;
    let (objects, files, strategy) = (draft.object_count(), inputs.len() as u64, args.strategy.name());
    let (file, path) = (json_path(&args.output), display_path(&args.output));
    let line = format!("Merged {objects} objects from {files} file(s) into {path} (strategy: {strategy})");
    args.write.finish(sink, bar, &MergeJson { file, files, messages, objects, strategy }, line, out)
}
