//! `tgm get`: metadata values for scripts.

use tercet::core::escape;

use super::open::{ReadArgs, for_each_message, listed};
use super::select::{Filter, Keys, Row};
use crate::args::LimitArgs;
use crate::failure::{Failure, Outcome};
use crate::input::Inputs;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tgm get -p mars.param run.tgm                     one line per message
  tgm get -p mars.param,mars.step run.tgm           values separated by spaces
  tgm get -w mars.param=2t -p mars.step run.tgm     matching messages
  tgm get -p mars.step --json run.tgm               one JSON object per line

A missing key is an error.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("limit", |arg| arg.help("Print at most N messages; 0 prints all [default: 0]")))]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    filter: Filter,
    /// Print these keys
    #[arg(short = 'p', long, value_name = "KEYS")]
    keys: Keys,
    #[command(flatten)]
    limit: LimitArgs,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let (mut left, mut matched, mut outcome) = (args.limit.or(0), 0, Outcome::Done);
    for input in args.inputs.each()? {
        let file = args.read.open(input.source()?, out)?;
        matched += for_each_message(&file, &args.filter, &mut left, |message, objects| {
            let row = Row::new(message.metadata(), Some(message), objects);
            let value = |key: &str| {
                if row.value(key)?.is_none() {
                    let message = format!("{}: message {}: no key `{key}`", file.name(), message.number());
                    return Err(Failure::request(message).with_hint("`tgm ls` prints N/A for missing keys"));
                }
                Ok(escape::name(&row.text(key)?).into_owned())
            };
            if out.is_json() {
                args.keys.iter().try_for_each(|key| value(key).map(drop))?;
                return out.json_line(&row.json(&args.keys)?);
            }
            let row = args.keys.iter().map(value).collect::<Result<Vec<_>, _>>()?;
            out.line(row.join(" "))
        })?;
        outcome = outcome.worse(listed(&file)?);
    }
    let is_empty = args.filter.note_if_none(matched, out)?;
    Ok(if is_empty { Outcome::CheckFailed } else { outcome })
}
