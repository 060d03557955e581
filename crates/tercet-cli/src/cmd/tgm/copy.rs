//! `tgm copy`: messages as they are, into one file or into several.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use tercet::core::{Progress as _, Span, escape};
use tercet::tgm::{File, Writer};

use super::Globals;
use super::open::{Reading, for_each_message};
use super::recode::{Recoder, Recoding, Tally};
use super::select::Filter;
use crate::address::{self, Object, of_object};
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::Output;
use crate::render::human_size;
use crate::ui::Ui;

mod template;

use template::Template;

/// Bytes that are handed over at a time.
const PIECE: u64 = 1 << 20;

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
        write_all(&file, &targets, Some(template), recoder, out)?;
        return Ok(Outcome::Done);
    }
    let output = check_target(args, &args.output)?;
    let found = matching(args, &file, out)?;
    match (output, recoder) {
        (Output::Stdout, recoder) => {
            send(&file, &found, recoder, out, |bytes, out| {
                out.bytes()?.write_all(bytes).map_err(|error| Failure::output(&error))
            })?;
        }
        (Output::Object(object), recoder) => upload(object, &file, &found, recoder, out)?,
        (Output::Path(path), recoder) => write_all(&file, &[(path, found)].into(), None, recoder, out)?,
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
        let target = template.expand(message.metadata()).map_err(|why| {
            Failure::request(format!("{}: message {}: {why}", file.name(), message.number()))
        })?;
        args.reading.check_objects(message)?;
        bar.advance(message.span().len());
        let found = Found { number: message.number(), span: message.span() };
        targets.entry(target).or_default().push(found);
        Ok(())
    })?;
    Ok(targets)
}

fn write_all(
    file: &File,
    targets: &BTreeMap<PathBuf, Vec<Found>>,
    template: Option<&Template>,
    mut recoder: Option<Recoder<'_>>,
    out: &mut Ui,
) -> Result<(), Failure> {
    let bar = out.bar("copying", targets.values().map(|found| total(found)).sum());
    let mut written = BTreeSet::new();
    let mut lines = Vec::new();
    for (target, found) in targets {
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
        let mut tally = Tally::default();
        for &Found { number, span } in found {
            match &mut recoder {
                None => writer.copy_from(&**file.source(), span, &bar)?,
                Some(recoder) => {
                    let bytes = recoder.message(&file.message(number)?, &mut tally, out)?;
                    bar.check().map_err(|_| Failure::Interrupted)?;
                    writer.raw(&bytes)?;
                    bar.advance(span.len());
                }
            }
        }
        written.insert(writer.finish()?);
        let (count, size) = (found.len(), human_size(total(found)));
        let plural = if count == 1 { "" } else { "s" };
        lines.push(match &recoder {
            None => format!("{shown}: {count} message{plural}, {size}"),
            Some(_) => tally.line(&shown),
        });
    }
    drop(bar);
    lines.into_iter().try_for_each(|line| out.line(line))
}

/// Copies messages to an object of a store.
fn upload(
    mut object: Object,
    file: &File,
    found: &[Found],
    recoder: Option<Recoder<'_>>,
    out: &mut Ui,
) -> Result<(), Failure> {
    let is_recoded = recoder.is_some();
    let tally = send(file, found, recoder, out, |bytes, _| {
        object.write_all(bytes).map_err(|error| of_object(&error))
    })?;
    let name = object.name();
    let size = human_size(object.finish()?);
    if is_recoded {
        return out.line(tally.line(&name));
    }
    let (count, plural) = (found.len(), if found.len() == 1 { "" } else { "s" });
    out.line(format_args!("{name}: {count} message{plural}, {size}"))
}

/// Hands over messages in pieces, as they are or recoded.
fn send(
    file: &File,
    found: &[Found],
    mut recoder: Option<Recoder<'_>>,
    out: &mut Ui,
    mut put: impl FnMut(&[u8], &mut Ui) -> Result<(), Failure>,
) -> Result<Tally, Failure> {
    let bar = out.bar("copying", total(found));
    let mut tally = Tally::default();
    for &Found { number, span } in found {
        if let Some(recoder) = &mut recoder {
            let bytes = recoder.message(&file.message(number)?, &mut tally, out)?;
            bar.check().map_err(|_| Failure::Interrupted)?;
            put(&bytes, out)?;
            bar.advance(span.len());
            continue;
        }
        let mut at = span.start();
        while at < span.end() {
            bar.check().map_err(|_| Failure::Interrupted)?;
            let len = (span.end() - at).min(PIECE);
            let piece = file.source().read_at(Span::at(at, len).unwrap_or(Span::empty(at)));
            let piece = piece.map_err(|error| Failure::source(file.name(), error))?;
            put(&piece, out)?;
            bar.advance(len);
            at += len;
        }
    }
    Ok(tally)
}

fn total(found: &[Found]) -> u64 {
    found.iter().map(|found| found.span.len()).sum()
}
