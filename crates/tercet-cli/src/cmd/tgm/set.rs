//! `tgm set`: set metadata values.

use tercet::core::{Progress as _, escape};
use tercet::tgm::edit::{self, Change, Changes, EditError};
use tercet::tgm::{File, Value};

use super::create::json_or_text;
use super::editing::{EditJson, Sink, WriteArgs, check_each};
use super::open::{DamageArgs, ReadArgs};
use super::select::Filter;
use crate::args::OutputArgs;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::display_path;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tgm set -s mars.class=rd run.tgm new.tgm               a key of every object
  tgm set -s extra.centre=ecmf,extra.note=x run.tgm new.tgm
  tgm set -s objects.0.quality=good run.tgm new.tgm      a parameter of one object
  tgm set -s mars.step=12 --json-values -w mars.step=6 run.tgm new.tgm

Values are strings; with --json-values, values that are JSON are parsed. Missing keys are added. \
Messages that do not match WHERE are copied unchanged, and so are all payloads.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    output: OutputArgs,
    /// Set a key. Repeatable. Dots nest keys; `extra.` sets message metadata, `objects.N.` sets parameters of object N
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE,…", required = true)]
    set: Vec<String>,
    /// Parse values as JSON: numbers, bools, null, lists, maps. Each -s is then one pair
    #[arg(long)]
    json_values: bool,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    damage: DamageArgs,
    #[command(flatten)]
    write: WriteArgs,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let changes = args.changes()?;
    let output = args.write.output(args.output.path(), [&args.input])?;
    let file = ReadArgs::default().open_complete(args.input.source()?, args.damage, out)?;
    let takes = args.check(&file, &changes, out)?;
    let taken = takes.iter().filter(|(_, is_taken)| *is_taken).count() as u64;
    if args.filter.note_if_none(taken, out)? {
        return Ok(Outcome::CheckFailed);
    }
    let (options, mut sink) = (args.write.options(), Sink::open(output, args.write.force.force)?);
    let bar = out.bar("writing", file.len());
    let mut changed = 0;
    for &(number, is_taken) in &takes {
        bar.check().map_err(|_| Failure::Interrupted)?;
        if is_taken {
            sink.draft(&edit::set(&file.message(number)?, &changes, &options)?, &bar, out)?;
            changed += 1;
        } else {
            sink.copy(&file, file.message_span(number)?, &bar, out)?;
        }
    }
    let path = args.output.path();
    let (messages, name) = (takes.len() as u64, display_path(path));
    let line = format!("{name}: {changed} message(s) changed, {} copied", messages - changed);
    args.write.finish(sink, bar, &EditJson::new(path, messages, changed), line, out)
}

impl Args {
    fn changes(&self) -> Result<Changes, Failure> {
        let refused =
            |error: &EditError| Failure::for_program(&tercet::tgm::ErrorKind::from(error.clone()), "tgm");
        let mut changes = Vec::new();
        for set in &self.set {
            // JSON values may contain commas.
            let pairs: Vec<&str> = if self.json_values { vec![set] } else { set.split(',').collect() };
            for pair in pairs {
                let (key, value) = pair.split_once('=').ok_or_else(|| {
                    let pair = escape::name(pair).into_owned();
                    Failure::request(format!("expected KEY=VALUE, found `{pair}`"))
                        .with_hint("commas separate pairs; use `--json-values` for values with commas")
                })?;
                let (key, value) = (key.trim(), value.trim());
                let wrong = |reason: String| Failure::request(format!("`{}`: {reason}", escape::name(key)));
                let value =
                    if self.json_values { json_or_text(value).map_err(wrong)? } else { Value::from(value) };
                changes.push(Change::new(key, value).map_err(|error| refused(&error))?);
            }
        }
        Changes::new(changes).map_err(|error| refused(&error))
    }

    /// Verifies every message and tries the changes; returns the messages and whether each is changed.
    fn check(&self, file: &File, changes: &Changes, out: &Ui) -> Result<Vec<(u64, bool)>, Failure> {
        let mut takes = Vec::new();
        check_each(file, out, |message| {
            let is_taken = self.filter.takes(message)?.is_some();
            takes.push((message.number(), is_taken));
            if is_taken {
                edit::set(message, changes, &self.write.options())?;
            } else {
                edit::check(message)?;
            }
            Ok(())
        })?;
        Ok(takes)
    }
}
