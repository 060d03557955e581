//! `tgm copy`: messages as they are, into one file or into several.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tercet::core::{Progress as _, Span};
use tercet::tgm::File;

use super::Globals;
use super::editing::Sink;
use super::open::{Reading, for_each_message};
use super::recode::{Recoder, Recoding, Tally};
use super::select::Filter;
use crate::address;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::{Output, shown};
use crate::render::human_size;
use crate::ui::{Bar, Ui};

mod template;

use template::Template;

const EXAMPLES: &str = "\
Examples:
  tgm copy run.tgm clean.tgm                    all messages, and nothing that stands between them
  tgm copy -w mars.param=2t run.tgm t2m.tgm     only these messages
  tgm copy run.tgm 'split/[mars.param].tgm'     a file for each value
  tgm copy run.tgm small.tgm --compression zstd like `tgm recode`
  tgm copy run.tgm s3://bucket/run.tgm          into an object store

A placeholder [KEY] is replaced by the value of the key, or by `unknown` where a message has none.
Messages with the same values go into the same file. Values that could lead out of the folder are
refused.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// The file to write, or the address of an object (`s3://`, `gs://`, `az://`); `[KEY]` in it makes a file for each
    /// value of the key, `-` writes to standard output
    #[arg(value_name = "OUTPUT")]
    output: PathBuf,
    #[command(flatten)]
    filter: Filter,
    /// Replace files that are there already
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    recoding: Recoding,
}

/// A message that is copied.
#[derive(Clone, Copy, Debug)]
struct Found {
    number: u64,
    span: Span,
}

pub(crate) fn run(args: &Args, globals: &Globals, out: &mut Ui) -> Result<Outcome, Failure> {
    args.recoding.check()?;
    if let Some(option) = args.recoding.stray_option() {
        let said = format!("`{option}` is for messages whose values are stored in another way");
        let hint = "add `--encoding`, `--filter`, `--compression` or `--max-error`";
        return Err(Failure::request(said).with_hint(hint));
    }
    let recoder = args.recoding.is_wanted().then(|| Recoder::new(&args.recoding, globals));
    let template = Template::parse(&args.output)?;
    if let Some((address, _)) = address::of(&args.output).zip(template.as_ref()) {
        let failure =
            Failure::request(format!("{}: addresses have no placeholders", address::shown(address)));
        return Err(failure.with_hint("split into files, and copy each of them"));
    }
    let file = args.reading.open(args.input.source()?, out)?;
    if let Some(template) = &template {
        let targets = plan(args, &file, template, out)?;
        for target in targets.keys() {
            check_target(args, target)?;
            template.refuse_links(target)?;
        }
        write_all(args, &file, targets, template, recoder, out)?;
        return Ok(Outcome::Done);
    }
    let output = check_target(args, &args.output)?;
    let is_stdout = matches!(output, Output::Stdout);
    let found = matching(args, &file, out)?;
    let bar = out.bar("copying", total(&found));
    let mut copying = Copying { file: &file, recoder, bar, force: args.force };
    let (_, line) = copying.write(&args.output, output, &found, out)?;
    drop(copying);
    if !is_stdout {
        out.line(line)?;
    }
    Ok(Outcome::Done)
}

fn check_target(args: &Args, target: &Path) -> Result<Output, Failure> {
    let output = Output::of(target, args.force)?;
    if !args.input.is_stdin() {
        output.must_not_be(&args.input.path)?;
    }
    Ok(output)
}

/// The messages that are copied, each of them checked.
fn matching(args: &Args, file: &File, out: &Ui) -> Result<Vec<Found>, Failure> {
    if args.reading.ignore_checksums && !args.filter.is_active() && !args.recoding.is_wanted() {
        // Nothing is asked of the messages: even those that cannot be followed are copied.
        let found = |(&span, number)| Found { number, span };
        return Ok(file.scan()?.messages.iter().zip(0..).map(found).collect());
    }
    let mut found = Vec::new();
    let bar = out.bar("checking", file.len());
    for_each_message(file, &args.filter, |message| {
        args.reading.check_objects(message)?;
        bar.advance(message.span().len());
        found.push(Found { number: message.number(), span: message.span() });
        Ok(())
    })?;
    Ok(found)
}

/// The messages of each file that is to be written, each of them checked.
fn plan(
    args: &Args,
    file: &File,
    template: &Template,
    out: &Ui,
) -> Result<BTreeMap<PathBuf, Vec<Found>>, Failure> {
    let mut targets: BTreeMap<PathBuf, Vec<Found>> = BTreeMap::new();
    let bar = out.bar("checking", file.len());
    for_each_message(file, &args.filter, |message| {
        let target = template.expand(message.metadata()).map_err(|reason| {
            Failure::request(format!("{}: message {}: {reason}", file.name(), message.number()))
        })?;
        args.reading.check_objects(message)?;
        bar.advance(message.span().len());
        let found = Found { number: message.number(), span: message.span() };
        targets.entry(target).or_default().push(found);
        Ok(())
    })?;
    Ok(targets)
}

/// Messages on their way into one file after the other.
struct Copying<'a> {
    file: &'a File,
    recoder: Option<Recoder<'a>>,
    bar: Bar,
    force: bool,
}

impl Copying<'_> {
    /// Writes messages to one output; answers where it really is, and what was done.
    fn write(
        &mut self,
        path: &Path,
        output: Output,
        found: &[Found],
        out: &mut Ui,
    ) -> Result<(Option<PathBuf>, String), Failure> {
        let mut sink = Sink::open(output, self.force)?;
        let mut tally = Tally::default();
        for &Found { number, span } in found {
            if let Some(recoder) = &mut self.recoder {
                let bytes = recoder.message(&self.file.message(number)?, &mut tally, out)?;
                self.bar.check().map_err(|_| Failure::Interrupted)?;
                sink.raw(&bytes, out)?;
                self.bar.advance(span.len());
            } else {
                sink.copy(self.file, span, &self.bar, out)?;
            }
        }
        let written = sink.finish()?;
        let (shown, count, size) = (shown(path), found.len(), human_size(total(found)));
        let plural = if count == 1 { "" } else { "s" };
        let line = match &self.recoder {
            None => format!("{shown}: {count} message{plural}, {size}"),
            Some(_) => tally.line(&shown),
        };
        Ok((written, line))
    }
}

/// Writes a file for each value.
fn write_all(
    args: &Args,
    file: &File,
    targets: BTreeMap<PathBuf, Vec<Found>>,
    template: &Template,
    recoder: Option<Recoder<'_>>,
    out: &mut Ui,
) -> Result<(), Failure> {
    let bar = out.bar("copying", targets.values().map(|found| total(found)).sum());
    let mut copying = Copying { file, recoder, bar, force: args.force };
    let mut written = BTreeSet::new();
    let mut lines = Vec::new();
    for (target, found) in targets {
        template.make_folders(&target)?;
        // Names that differ may still be one file: some file systems do not tell upper from lower case.
        if std::fs::canonicalize(&target).is_ok_and(|real| written.contains(&real)) {
            let said = format!("{}: is the file that was just written for another value", shown(&target));
            return Err(Failure::request(said));
        }
        let (real, line) = copying.write(&target, Output::Path(target.clone()), &found, out)?;
        written.extend(real);
        lines.push(line);
    }
    drop(copying);
    lines.into_iter().try_for_each(|line| out.line(line))
}

fn total(found: &[Found]) -> u64 {
    found.iter().map(|found| found.span.len()).sum()
}
