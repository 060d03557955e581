//! `tgm set`: set metadata values.

use tercet::core::{Progress as _, escape};
use tercet::tgm::File;
use tercet::tgm::edit::{self, Change, Changes, EditError};

use super::create::meta;
use super::editing::{EditJson, Sink, WriteArgs, check_each};
use super::open::{DamageArgs, ReadArgs};
use super::select::Filter;
use crate::args::OutputArgs;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::display_path;
use crate::persona::is_reference;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tgm set -s mars.class=rd run.tgm new.tgm               a key of every object
  tgm set -s extra.centre=ecmf,extra.note=x run.tgm new.tgm
  tgm set -s objects.0.quality=good run.tgm new.tgm      a parameter of one object
  tgm set -s mars.step=12 -w mars.step=6 run.tgm new.tgm
  tgm set --set-str mars.date=20261118 run.tgm new.tgm   a string, not a number

A value is parsed as JSON if possible: numbers, `true`, `false`, `null`, `[…]`, `{…}` and quoted strings. \
Anything else is a string, and so is a decimal number that would lose digits, like 130.10. Missing keys are added. \
Messages that do not match WHERE are copied unchanged, and so are all payloads.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    output: OutputArgs,
    /// Set a key. Repeatable. Dots nest keys; `extra.` sets message metadata, `objects.N.` sets parameters of object N
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE,…", required_unless_present = "set_str")]
    set: Vec<String>,
    /// Like --set, but the value is always a string, also with commas. Repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    set_str: Vec<String>,
    /// The values of --set may contain commas: each is one pair
    #[arg(long, hide = true)]
    json_values: bool,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    damage: DamageArgs,
    #[command(flatten)]
    write: WriteArgs,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let changes = args.changes(out)?;
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
    fn changes(&self, out: &mut Ui) -> Result<Changes, Failure> {
        let refused =
            |error: &EditError| Failure::for_program(&tercet::tgm::ErrorKind::from(error.clone()), "tgm");
        let mut changes = Vec::new();
        for set in &self.set {
            for pair in self.pairs(set) {
                let (key, value) = key_and_value(pair)?;
                let wrong = |reason: String| Failure::request(format!("`{}`: {reason}", escape::name(key)));
                // The reference implementation has strings only.
                let (value, is_kept) =
                    if is_reference() { (value.into(), false) } else { meta::typed(value).map_err(wrong)? };
                if is_kept {
                    out.note(meta::kept_note(key, &value))?;
                }
                changes.push(Change::new(key, value).map_err(|error| refused(&error))?);
            }
        }
        for set in &self.set_str {
            let (key, value) = key_and_value(set)?;
            changes.push(Change::new(key, value).map_err(|error| refused(&error))?);
        }
        Changes::new(changes).map_err(|error| refused(&error))
    }

    /// The pairs of an option. Commas inside JSON do not separate them.
    fn pairs<'a>(&self, mut set: &'a str) -> Vec<&'a str> {
        if is_reference() {
            return set.split(',').collect();
        }
        if self.json_values {
            return vec![set];
        }
        let mut pairs = Vec::new();
        loop {
            let start = set.find('=').map_or(0, |at| at + 1);
            let start = if set.find(',').is_some_and(|comma| comma < start) { 0 } else { start };
            let end = start + value_len(&set[start..]);
            pairs.push(&set[..end]);
            match set.get(end + 1..) {
                Some(rest) => set = rest,
                None => return pairs,
            }
        }
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

/// The length of the value before a comma. Lists, maps and quoted strings may contain commas.
fn value_len(text: &str) -> usize {
    if text.trim_start().starts_with(['[', '{', '"']) {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
        if let Some(Ok(_)) = values.next() {
            let end = values.byte_offset();
            let rest = text[end..].trim_start();
            if rest.is_empty() || rest.starts_with(',') {
                return text.len() - rest.len();
            }
        }
    }
    text.find(',').unwrap_or(text.len())
}

fn key_and_value(pair: &str) -> Result<(&str, &str), Failure> {
    let (key, value) = pair.split_once('=').ok_or_else(|| {
        let pair = escape::name(pair).into_owned();
        Failure::request(format!("expected KEY=VALUE, found `{pair}`"))
            .with_hint("commas separate pairs; use `--set-str` for a string with commas")
    })?;
    Ok((key.trim(), value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_json_do_not_separate_pairs() {
        for (text, lens) in [
            ("6,b=7", 1),
            ("[1,2],b=7", 5),
            (r#"{"a": "x,y"} ,b=7"#, 13),
            (r#""x,y",b=7"#, 5),
            (r#""x,b=7"#, 2),
            ("[1,b=7", 2),
            ("x", 1),
            ("", 0),
        ] {
            assert_eq!(value_len(text), lens, "{text}");
        }
    }
}
