//! `tgm copy`: copy messages to one or several files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tercet::core::{Progress as _, Span};
use tercet::tgm::File;

use super::Globals;
use super::editing::Sink;
use super::open::{DamageArgs, ReadArgs, for_each_message};
use super::repack::{RepackOptions, Repacker, Tally};
use super::select::{Filter, Row};
use crate::args::{ForceArgs, OutputArgs};
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::{Output, display_path, json_path};
use crate::remote;
use crate::render::human_size;
use crate::ui::{Bar, Ui};

pub(super) mod template;

use template::Template;

const EXAMPLES: &str = "\
Examples:
  tgm copy run.tgm clean.tgm                      all messages, without unrecognized bytes
  tgm copy -w mars.param=2t run.tgm t2m.tgm       matching messages
  tgm copy run.tgm 'split/[mars.param].tgm'       one file per value
  tgm copy run.tgm small.tgm --compression zstd   repack, like `tgm repack`
  tgm copy run.tgm s3://bucket/run.tgm            upload to an object store

A placeholder [KEY] is replaced by the value of the key; a missing key is an error. Messages with equal values go to the same file. Values that would escape the directory are
rejected.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("output", |arg| arg.help("Output file or URL (`s3://`, `gs://`, `az://`); `[KEY]` writes one file per value, `-` writes to standard output")))]
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
    read: ReadArgs,
    #[command(flatten)]
    damage: DamageArgs,
    #[command(flatten)]
    repacking: RepackOptions,
}

/// The JSON summary of an output file.
#[derive(Debug, Serialize)]
struct CopyJson {
    file: String,
    messages: u64,
    bytes: u64,
}

/// The summary of an output file.
struct Summary {
    line: String,
    json: serde_json::Value,
}

/// A message to copy.
#[derive(Clone, Copy, Debug)]
struct MatchingMessage {
    number: u64,
    span: Span,
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Ui) -> Result<Outcome, Failure> {
    args.repacking.check()?;
    if let Some(option) = args.repacking.stray_option() {
        let message = format!("`{option}` requires a pipeline option");
        let hint = "add `--encoding`, `--filter`, `--compression` or `--max-error`";
        return Err(Failure::request(message).with_hint(hint));
    }
    let template = Template::parse(args.output.path())?;
    if let Some((url, _)) = remote::url_of(args.output.path()).zip(template.as_ref()) {
        let failure =
            Failure::request(format!("{}: placeholders are not supported in URLs", remote::redacted(url)));
        return Err(failure.with_hint("write local files first, then copy each of them"));
    }
    let file = args.read.open_complete(args.input.source()?, args.damage, out)?;
    let repacker = args.repacking.is_wanted().then(|| Repacker::new(&args.repacking, globals, &file));
    if let Some(template) = &template {
        let targets = plan(args, &file, template, out)?;
        if args.filter.note_if_none(targets.len() as u64, out)? {
            return Ok(Outcome::CheckFailed);
        }
        for target in targets.keys() {
            check_target(args, target)?;
            template.reject_links(target)?;
        }
        write_all(args, &file, targets, template, repacker, out)?;
        return Ok(Outcome::Done);
    }
    let output = check_target(args, args.output.path())?;
    let is_stdout = matches!(output, Output::Stdout);
    let found = matching(args, &file, out)?;
    if args.filter.note_if_none(found.len() as u64, out)? {
        return Ok(Outcome::CheckFailed);
    }
    let bar = out.bar("copying", total(&found));
    let mut copying = Copying { file: &file, repacker, bar, force: args.force.force };
    let (_, summary) = copying.write(args.output.path(), output, &found, out)?;
    drop(copying);
    match (is_stdout, out.is_json()) {
        (true, _) => {}
        (false, true) => out.json(&summary.json)?,
        (false, false) => out.summary(summary.line)?,
    }
    Ok(Outcome::Done)
}

fn check_target(args: &Args, target: &Path) -> Result<Output, Failure> {
    let output = Output::open(target, args.force.force)?;
    if !args.input.is_stdin() {
        output.must_not_be(&args.input.path)?;
    }
    Ok(output)
}

/// The messages to copy, verified.
fn matching(args: &Args, file: &File, out: &Ui) -> Result<Vec<MatchingMessage>, Failure> {
    if args.read.ignore_checksums && !args.filter.is_active() && !args.repacking.is_wanted() {
        // Without a filter, messages that cannot be parsed are copied, too.
        let found = |(&span, number)| MatchingMessage { number, span };
        return Ok(file.scan()?.messages.iter().zip(0..).map(found).collect());
    }
    let mut found = Vec::new();
    let bar = out.bar("checking", file.len());
    for_each_message(file, &args.filter, &mut { u64::MAX }, |message, _| {
        args.read.check_objects(message)?;
        bar.advance(message.span().len());
        found.push(MatchingMessage { number: message.number(), span: message.span() });
        Ok(())
    })?;
    Ok(found)
}

/// The messages of each output file, verified.
fn plan(
    args: &Args,
    file: &File,
    template: &Template,
    out: &Ui,
) -> Result<BTreeMap<PathBuf, Vec<MatchingMessage>>, Failure> {
    let mut targets: BTreeMap<PathBuf, Vec<MatchingMessage>> = BTreeMap::new();
    let bar = out.bar("checking", file.len());
    for_each_message(file, &args.filter, &mut { u64::MAX }, |message, objects| {
        let target = template.expand(&Row::new(message.metadata(), Some(message), objects));
        let target = target?.map_err(|reason| {
            Failure::request(format!("{}: message {}: {reason}", file.name(), message.number()))
        })?;
        args.read.check_objects(message)?;
        bar.advance(message.span().len());
        let found = MatchingMessage { number: message.number(), span: message.span() };
        targets.entry(target).or_default().push(found);
        Ok(())
    })?;
    Ok(targets)
}

/// The copy of messages to output files.
struct Copying<'a> {
    file: &'a File,
    repacker: Option<Repacker<'a>>,
    bar: Bar,
    force: bool,
}

impl Copying<'_> {
    /// Writes messages to one output; returns its resolved path and a summary.
    fn write(
        &mut self,
        path: &Path,
        output: Output,
        found: &[MatchingMessage],
        out: &mut Ui,
    ) -> Result<(Option<PathBuf>, Summary), Failure> {
        let mut sink = Sink::open(output, self.force)?;
        let mut tally = Tally::default();
        for &MatchingMessage { number, span } in found {
            if let Some(repacker) = &mut self.repacker {
                let bytes = repacker.message(&self.file.message(number)?, &mut tally, out)?;
                self.bar.check().map_err(|_| Failure::Interrupted)?;
                sink.raw(&bytes, out)?;
                self.bar.advance(span.len());
            } else {
                sink.copy(self.file, span, &self.bar, out)?;
            }
        }
        let written = sink.finish()?;
        let (name, count, size) = (display_path(path), found.len(), human_size(total(found)));
        let plural = if count == 1 { "" } else { "s" };
        let (file, messages, bytes) = (json_path(path), count as u64, total(found));
        let summary = match &self.repacker {
            None => Summary {
                line: format!("{name}: {count} message{plural}, {size}"),
                json: serde_json::json!(CopyJson { file, messages, bytes }),
            },
            Some(_) => Summary { line: tally.line(&name), json: serde_json::json!(tally.to_json(&file)) },
        };
        Ok((written, summary))
    }
}

/// Writes a file per value.
fn write_all(
    args: &Args,
    file: &File,
    targets: BTreeMap<PathBuf, Vec<MatchingMessage>>,
    template: &Template,
    repacker: Option<Repacker<'_>>,
    out: &mut Ui,
) -> Result<(), Failure> {
    let bar = out.bar("copying", targets.values().map(|found| total(found)).sum());
    let mut copying = Copying { file, repacker, bar, force: args.force.force };
    let mut written = BTreeSet::new();
    let mut summaries = Vec::new();
    for (target, found) in targets {
        template.create_directories(&target)?;
        // Different names may be the same file on a case-insensitive file system.
        if std::fs::canonicalize(&target).is_ok_and(|real| written.contains(&real)) {
            let message = format!("{}: already written for another value", display_path(&target));
            return Err(Failure::request(message));
        }
        let output = check_target(args, &target)?;
        let (real, summary) = copying.write(&target, output, &found, out)?;
        written.extend(real);
        summaries.push(summary);
    }
    drop(copying);
    if out.is_json() {
        let files: Vec<_> = summaries.into_iter().map(|summary| summary.json).collect();
        return out.json(&serde_json::json!({ "files": files }));
    }
    summaries.into_iter().try_for_each(|summary| out.summary(summary.line))
}

fn total(found: &[MatchingMessage]) -> u64 {
    found.iter().map(|found| found.span.len()).sum()
}
