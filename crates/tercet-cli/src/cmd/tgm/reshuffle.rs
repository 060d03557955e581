//! `tgm reshuffle`: move metadata, index and hashes before the objects.

use std::path::PathBuf;

use tercet::core::{Progress as _, escape};
use tercet::tgm::edit;

use super::editing::{EditJson, Sink, WriteArgs, check_each};
use super::open::{DamageArgs, ReadArgs};
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::display_path;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tgm reshuffle stream.tgm -o file.tgm
  producer | tgm reshuffle - -o file.tgm

Messages with length, metadata and index before their objects are copied unchanged.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Output file or URL (`s3://`, `gs://`, `az://`); `-` writes to standard output
    #[arg(short, long, value_name = "OUTPUT")]
    output: PathBuf,
    #[command(flatten)]
    damage: DamageArgs,
    #[command(flatten)]
    write: WriteArgs,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let output = args.write.output(&args.output, [&args.input])?;
    let file = ReadArgs::default().open_complete(args.input.source()?, args.damage, out)?;
    let mut numbers = Vec::new();
    check_each(&file, out, |message| {
        numbers.push(message.number());
        Ok(edit::check(message)?)
    })?;
    let (options, mut sink) = (args.write.options(), Sink::open(output, args.write.force.force)?);
    let bar = out.bar("writing", file.len());
    let (messages, mut changed) = (numbers.len() as u64, 0);
    for number in numbers {
        bar.check().map_err(|_| Failure::Interrupted)?;
        match edit::reshuffle(&file.message(number)?, &options)? {
            Some(draft) => {
                sink.draft(&draft, &bar, out)?;
                changed += 1;
            }
            None => sink.copy(&file, file.message_span(number)?, &bar, out)?,
        }
    }
    let path = &args.output;
    let (from, to) = (escape::name(file.name()), display_path(path));
    let line = format!("Reshuffled {messages} message(s) from {from} to {to}");
    args.write.finish(sink, bar, &EditJson::new(path, messages, changed), line, out)
}
