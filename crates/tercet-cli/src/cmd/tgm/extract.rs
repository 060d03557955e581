//! `tgm extract`: extract arrays from messages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tercet::core::num::counted;
use tercet::core::{Shape, escape};
use tercet::tgm::{DType, File, Message};

use super::copy::template::Template;
use super::object_id::describe;
use super::open::{DamageArgs, ReadArgs};
use super::select::{Filter, Row};
use crate::args::ForceArgs;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::{Output, display_path, json_path};
use crate::render::human_size;
use crate::ui::Ui;

mod csv;
mod format;
mod ranges;
mod target;
mod tet;
mod values;

use format::ArrayFormat;
use ranges::Span;
use target::{ObjectNumber, Target};
use values::Stack;

const EXAMPLES: &str = "\
Examples:
  tgm extract run.tgm 0.1 -o land.npy               object 1 of message 0
  tgm extract run.tgm -1 -o last.npy                the only object of the last message
  tgm extract run.tgm t2m -w step=6 -o t2m.npy      the object named t2m with step 6
  tgm extract run.tgm 0 -s 0:2,0:3 -o corner.npy    a part, as in NumPy; reads only the needed bytes
  tgm extract run.tgm -w name=t/z -o 'out/[name]-[step].npy'
  tgm extract run.tgm t2m --stack step -o t2m.npy   all steps as the first axis
  tgm extract run.tgm t2m --stack step -o t2m.tet   with the steps as coordinates
  tgm extract run.tgm 7 -o - | xxd                  raw values
  tgm extract run.tgm 0.0 --range 100:50 -o x.npy   50 values, starting at index 100

Messages, objects and values are numbered from 0, negative numbers count from the end. A placeholder [KEY] in OUT is a \
metadata key or a field (`message`, `object`); each object needs its own name.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Message and object number, or name of the object: `3.1`, `-1`, `t2m`. The object number may be omitted if the message
    /// has one object [default: all objects that -w and --where select]
    #[arg(value_name = "OBJECT", value_parser = target::parse, allow_negative_numbers = true)]
    object: Option<Target>,
    #[command(flatten)]
    filter: Filter,
    /// Output format [default: by the extension: *.npy, *.tet, *.csv, or *.bin, *.raw, *.dat for raw values, also for `-`]
    #[arg(long = "as", value_name = "FORMAT")]
    format: Option<ArrayFormat>,
    /// Output file or URL; `[KEY]` writes one file per object; `-` writes raw values to standard output, or a .npy file with
    /// `--as npy`
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Extract a part by axis: `0:2,0:3`, `start:stop:step` for each axis, outermost first; negative positions count from the
    /// end. A single position keeps its axis
    #[arg(short = 's', long = "slice", value_name = "SLICES", allow_hyphen_values = true)]
    slices: Option<String>,
    /// Stack all selected objects along a new first axis, ordered by the values of KEY
    #[arg(long, value_name = "KEY", conflicts_with = "ranges")]
    stack: Option<String>,
    /// Extract COUNT values from index START: `100:50`. Several ranges, separated by commas or repeated, are
    /// concatenated to a one-dimensional array
    #[arg(long = "range", value_name = "START:COUNT", value_delimiter = ',', value_parser = ranges::span,
          conflicts_with = "slices")]
    ranges: Vec<Span>,
    /// Verify the hash of the whole object before extracting a part
    #[arg(long, conflicts_with = "ignore_checksums")]
    verify: bool,
    /// Write zeros instead of masked NaN and infinities
    #[arg(long)]
    no_restore: bool,
    #[command(flatten)]
    damage: DamageArgs,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    read: ReadArgs,
}

impl Args {
    /// Whether the result would be another one if a message were lost: without a filter, everything or a number from the
    /// end is extracted.
    fn needs_whole_file(&self, is_template: bool) -> bool {
        !self.filter.is_active()
            && match &self.object {
                None => true,
                Some(target @ Target::Number { .. }) => target.message().is_none(),
                Some(Target::Name(_)) => is_template || self.stack.is_some(),
            }
    }
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let template = Template::parse(&args.output)?;
    if template.is_none() {
        open_output(args, &args.output)?;
    }
    let format = ArrayFormat::infer(args.format, &args.output)?;
    let options = args.read.options().with_restore_non_finite(!args.no_restore);
    let options = if args.damage.allow_gaps { options.with_allow_gaps(true) } else { options };
    let source = args.input.source()?;
    let file = match args.object.as_ref().and_then(Target::message) {
        Some(number) if !options.allow_gaps => ReadArgs::open_up_to(source, number, options, out)?,
        _ => ReadArgs::open_with(source, options, out)?,
    };
    if args.needs_whole_file(template.is_some()) {
        args.damage.check(&file)?;
    }
    let (found, matched) = target::find(args.object.as_ref(), &args.filter, &file)?;
    if found.is_empty() {
        if args.filter.note_if_none(matched, out)? {
            return Ok(Outcome::CheckFailed);
        }
        return Err(target::nothing(args.object.as_ref(), &file));
    }
    let outputs = match &template {
        Some(template) => by_name(args, &file, template, &found)?,
        None if found.len() > 1 && args.stack.is_none() => return Err(too_many(&file, &found)),
        None => BTreeMap::from([(args.output.clone(), found)]),
    };
    for (path, objects) in outputs {
        if let Some(template) = &template {
            template.create_directories(&path)?;
        }
        write(args, &file, format, &path, &objects, out)?;
    }
    Ok(Outcome::Done)
}

/// Opens an output, which must not be the input.
fn open_output(args: &Args, path: &Path) -> Result<Output, Failure> {
    let output = Output::open(path, args.force.force)?;
    if !args.input.is_stdin() {
        output.must_not_be(&args.input.path)?;
    }
    Ok(output)
}

/// The objects of each output file.
fn by_name(
    args: &Args,
    file: &File,
    template: &Template,
    found: &[ObjectNumber],
) -> Result<BTreeMap<PathBuf, Vec<ObjectNumber>>, Failure> {
    let mut outputs: BTreeMap<PathBuf, Vec<ObjectNumber>> = BTreeMap::new();
    for &number in found {
        let message = number.message(file)?;
        let objects = [number.object];
        let row = Row::new(message.metadata(), Some(&message), &objects);
        let path = template.expand(&row)?.map_err(|reason| {
            let name = escape::name(file.name());
            Failure::request(format!(
                "{name}: message {}, object {}: {reason}",
                number.message, number.object
            ))
        })?;
        let objects = outputs.entry(path.clone()).or_default();
        objects.push(number);
        if let ([first, second, ..], None) = (objects.as_slice(), &args.stack) {
            let message = format!("{}: {first} and {second} have the same output name", display_path(&path));
            return Err(Failure::request(message)
                .with_hint("add another placeholder, like `[message]` and `[object]`, or `--stack KEY`"));
        }
    }
    for path in outputs.keys() {
        open_output(args, path)?;
        template.reject_links(path)?;
    }
    Ok(outputs)
}

fn too_many(file: &File, found: &[ObjectNumber]) -> Failure {
    let some: Vec<String> =
        found.iter().take(4).map(|number| format!("{}.{}", number.message, number.object)).collect();
    let more = if found.len() > 4 { ", …" } else { "" };
    let count = counted(found.len() as u64, "object");
    let message = format!("{}: {count} selected: {}{more}", escape::name(file.name()), some.join(", "));
    Failure::request(message)
        .with_hint("select one, write one file for each with `-o '[name]-[message].npy'`, or stack them with `--stack KEY`")
}

/// Extracts objects to one output.
fn write(
    args: &Args,
    file: &File,
    format: ArrayFormat,
    path: &Path,
    objects: &[ObjectNumber],
    out: &mut Ui,
) -> Result<(), Failure> {
    let output = open_output(args, path)?;
    let (taken, what, first, axis) = if let Some(key) = &args.stack {
        let Stack { taken, labels, axis } = values::stack(args, file, format, objects, key, out)?;
        let what = format!("{} by {}", counted(objects.len() as u64, "object"), escape::name(key));
        (taken, format!("{what} ({labels})"), None, Some((key.as_str(), axis)))
    } else {
        let Some(&number) = objects.first() else { return Ok(()) };
        let message = number.message(file)?;
        let taken = values::take(args, &message, format, number.object, out)?;
        let object = message.object(number.object)?;
        (taken, describe(&message, &object), Some(number), None)
    };
    let (dtype, shape) = (taken.dtype, taken.shape.clone());
    let bytes = match format {
        ArrayFormat::Tet => Some(tet::write(args, file, taken, first, axis.as_ref(), output, out)?),
        _ => taken.write(output, format, args.force.force, out)?,
    };
    let Some(bytes) = bytes else { return Ok(()) };
    if out.is_json() {
        let (message, object) = (first.map(|first| first.message), first.map(|first| first.object));
        let json = ExtractJson { file: json_path(path), message, object, dtype, shape: &shape, bytes };
        return if objects.len() > 1 || args.output.as_path() != path {
            out.json_line(&json)
        } else {
            out.json(&json)
        };
    }
    out.summary(format_args!("{}: {what}, {dtype} {shape}, {}", display_path(path), human_size(bytes)))
}

/// The JSON summary.
#[derive(Debug, Serialize)]
struct ExtractJson<'a> {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<u64>,
    #[serde(serialize_with = "as_text")]
    dtype: DType,
    shape: &'a Shape,
    bytes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature of serde")]
fn as_text<S: serde::Serializer>(dtype: &DType, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(dtype)
}

impl ObjectNumber {
    /// Opens the message.
    fn message(self, file: &File) -> Result<Message, Failure> {
        target::open(file, self.message)
    }
}
