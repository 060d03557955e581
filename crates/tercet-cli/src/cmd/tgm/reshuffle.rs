//! `tgm reshuffle`: what readers need first, first.

use std::path::PathBuf;

use serde::Serialize;
use tercet::core::{Progress as _, escape};
use tercet::tgm::{File, edit};

use super::editing::{Making, Sink, not_from_damage, told};
use super::open::Reading;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::shown;
use crate::ui::{Ui, is_interrupted};

const EXAMPLES: &str = "\
Examples:
  tgm reshuffle stream.tgm -o file.tgm
  producer | tgm reshuffle - -o file.tgm

Messages that have length, metadata and index before their objects already are copied as they are.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// The file to write; `-` writes to standard output
    #[arg(short, long, value_name = "OUTPUT")]
    output: PathBuf,
    #[command(flatten)]
    making: Making,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Told {
    file: String,
    messages: u64,
    changed: u64,
    copied: u64,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let output = args.making.output(&args.output, [&args.input])?;
    let file = Reading::default().open(args.input.source()?, out)?;
    check(&file, out).map_err(not_from_damage)?;
    let (options, mut sink) = (args.making.options(), Sink::open(output)?);
    let bar = out.bar("writing", file.len());
    let (messages, mut changed) = (file.message_count()?, 0);
    for number in 0..messages {
        bar.check().map_err(|_| Failure::Interrupted)?;
        match edit::reshuffle(&file.message(number)?, &options)? {
            Some(draft) => {
                sink.draft(&draft, &bar, out)?;
                changed += 1;
            }
            None => sink.copy(&file, file.message_span(number)?, &bar, out)?,
        }
    }
    let is_stdout = sink.is_stdout();
    sink.finish()?;
    drop(bar);
    if is_stdout {
        return Ok(Outcome::Done);
    }
    let path = &args.output;
    if args.making.json {
        let file = told(path);
        out.json(&Told { file, messages, changed, copied: messages - changed })?;
    } else {
        let (from, to) = (escape::name(file.name()), shown(path));
        out.line(format_args!("Reshuffled {messages} message(s) from {from} to {to}"))?;
    }
    Ok(Outcome::Done)
}

/// Checks every message before the first byte is written.
fn check(file: &File, out: &Ui) -> Result<(), Failure> {
    let bar = out.bar("checking", file.len());
    for message in file.messages()? {
        if is_interrupted() {
            return Err(Failure::Interrupted);
        }
        let message = message?;
        edit::check(&message)?;
        bar.advance(message.span().len());
    }
    Ok(())
}
