//! `tgm copy`: messages as they are, into one file or into several.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tercet::core::{Progress as _, Span, escape};
use tercet::tgm::{File, Writer};

use super::open::{Reading, for_each_message};
use super::select::Filter;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::Output;
use crate::render::human_size;
use crate::ui::Ui;

mod template;

use template::Template;

/// Bytes that go to standard output at a time.
const PIECE: u64 = 1 << 20;

const EXAMPLES: &str = "\
Examples:
  tgm copy run.tgm clean.tgm                    all messages, and nothing that stands between them
  tgm copy -w mars.param=2t run.tgm t2m.tgm     only these messages
  tgm copy run.tgm 'split/[mars.param].tgm'     a file for each value

A placeholder [KEY] is replaced by the value of the key, or by `unknown` where a message has none.
Messages with the same values go into the same file. Values that could lead out of the folder are
refused.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// The file to write; `[KEY]` in it makes a file for each value of the key, `-` writes to standard output
    #[arg(value_name = "OUTPUT")]
    output: PathBuf,
    #[command(flatten)]
    filter: Filter,
    /// Replace files that are there already
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    reading: Reading,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let template = Template::parse(&args.output)?;
    let file = args.reading.open(args.input.source()?, out)?;
    if let Some(template) = &template {
        let targets = plan(args, &file, template, out)?;
        for target in targets.keys() {
            check_target(args, target)?;
            template.refuse_links(target)?;
        }
        write_all(&file, &targets, Some(template), out)?;
        return Ok(Outcome::Done);
    }
    let output = check_target(args, &args.output)?;
    let spans = matching(args, &file, out)?;
    match output {
        Output::Stdout => send(&file, &spans, out)?,
        Output::Path(path) => write_all(&file, &[(path, spans)].into(), None, out)?,
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
fn matching(args: &Args, file: &File, out: &Ui) -> Result<Vec<Span>, Failure> {
    if args.reading.ignore_checksums && !args.filter.is_active() {
        // Nothing is asked of the messages: even those that cannot be followed are copied.
        return Ok(file.scan()?.messages.clone());
    }
    let mut spans = Vec::new();
    let bar = out.bar("checking", file.len());
    for_each_message(file, &args.filter, |message| {
        args.reading.check_objects(message)?;
        bar.advance(message.span().len());
        spans.push(message.span());
        Ok(())
    })?;
    Ok(spans)
}

/// The messages of each file that is to be written, each of them checked.
fn plan(
    args: &Args,
    file: &File,
    template: &Template,
    out: &Ui,
) -> Result<BTreeMap<PathBuf, Vec<Span>>, Failure> {
    let mut targets: BTreeMap<PathBuf, Vec<Span>> = BTreeMap::new();
    let bar = out.bar("checking", file.len());
    for_each_message(file, &args.filter, |message| {
        let target = template.expand(message.metadata()).map_err(|why| {
            Failure::request(format!("{}: message {}: {why}", file.name(), message.number()))
        })?;
        args.reading.check_objects(message)?;
        bar.advance(message.span().len());
        targets.entry(target).or_default().push(message.span());
        Ok(())
    })?;
    Ok(targets)
}

fn write_all(
    file: &File,
    targets: &BTreeMap<PathBuf, Vec<Span>>,
    template: Option<&Template>,
    out: &mut Ui,
) -> Result<(), Failure> {
    let bar = out.bar("copying", targets.values().map(|spans| total(spans)).sum());
    let mut written = BTreeSet::new();
    let mut lines = Vec::new();
    for (target, spans) in targets {
        let shown = escape::name(&target.to_string_lossy()).into_owned();
        if let Some(template) = template {
            template.make_folders(target)?;
        }
        // Names that differ may still be one file: some file systems do not tell upper from lower case.
        if std::fs::canonicalize(target).is_ok_and(|real| written.contains(&real)) {
            let said = format!("{shown}: is the file that was just written for another value");
            return Err(Failure::request(said));
        }
        let mut writer = Writer::create(target)?;
        for span in spans {
            writer.copy_from(&**file.source(), *span, &bar)?;
        }
        written.insert(writer.finish()?);
        let (count, size) = (spans.len(), human_size(total(spans)));
        let plural = if count == 1 { "" } else { "s" };
        lines.push(format!("{shown}: {count} message{plural}, {size}"));
    }
    drop(bar);
    lines.into_iter().try_for_each(|line| out.line(line))
}

/// Copies messages to standard output.
fn send(file: &File, spans: &[Span], out: &mut Ui) -> Result<(), Failure> {
    let bar = out.bar("copying", total(spans));
    let sink = out.bytes()?;
    for span in spans {
        let mut at = span.start();
        while at < span.end() {
            if bar.is_cancelled() {
                return Err(Failure::Interrupted);
            }
            let len = (span.end() - at).min(PIECE);
            let piece = file.source().read_at(Span::at(at, len).unwrap_or(Span::empty(at)));
            let piece = piece.map_err(|error| Failure::source(file.name(), error))?;
            sink.write_all(&piece).map_err(|error| Failure::output(&error))?;
            bar.advance(len);
            at += len;
        }
    }
    Ok(())
}

fn total(spans: &[Span]) -> u64 {
    spans.iter().map(|span| span.len()).sum()
}
