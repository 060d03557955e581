//! `tgm dump`: metadata and object descriptions.

use serde_json::{Map, Value as Json};
use tercet::core::escape;
use tercet::tgm::{DataObjectDescriptor, Entry, Message, VERSION, Value};

use super::open::{ReadArgs, for_each_message, listed};
use super::select::{Filter, Keys, Row};
use crate::args::{JsonArgs, LimitArgs};
use crate::failure::{Failure, Outcome};
use crate::input::Inputs;
use crate::persona::is_reference;
use crate::ui::{HEADING, Ui, paint};

const EXAMPLES: &str = "\
Examples:
  tgm dump run.tgm                        all messages
  tgm dump run.tgm -w mars.param=2t -j    matching messages as JSON
  tgm dump run.tgm -p mars.param,units    only these keys";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("limit", |arg| arg.help("Print at most N messages; 0 prints all [default: 0]")))]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    filter: Filter,
    /// Print only these keys
    #[arg(short = 'p', long, value_name = "KEYS")]
    keys: Option<Keys>,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    limit: LimitArgs,
    /// Also print the metadata added by the writer: time, UUID, encoder
    #[arg(long, conflicts_with = "keys")]
    reserved: bool,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let (mut left, mut matched, mut outcome) = (args.limit.or(0), 0, Outcome::Done);
    for input in args.inputs.each()? {
        let file = args.read.open(input.source()?, out)?;
        matched += for_each_message(&file, &args.filter, &mut left, |message, objects| {
            args.read.check_objects(message)?;
            let row = Row::new(message.metadata(), Some(message), objects);
            match (&args.keys, args.json.json) {
                (Some(keys), true) => print_json(&row.json(keys)?, out),
                (Some(keys), false) => print_keys(message, &row, keys, out),
                (None, true) => print_json(&message_json(message, args.reserved)?, out),
                (None, false) => print(message, args.reserved, out),
            }
        })?;
        outcome = outcome.worse(listed(&file)?);
    }
    let is_empty = args.filter.note_if_none(matched, out)?;
    Ok(if is_empty { Outcome::CheckFailed } else { outcome })
}

/// Prints JSON Lines, or indented JSON in the form of the reference implementation.
fn print_json(value: &Json, out: &mut Ui) -> Result<(), Failure> {
    if is_reference() { out.json(value) } else { out.json_line(value) }
}

fn heading(message: &Message, out: &mut Ui) -> Result<(), Failure> {
    out.line(paint(HEADING, format_args!("=== Message {} ===", message.number())))
}

fn print(message: &Message, with_reserved: bool, out: &mut Ui) -> Result<(), Failure> {
    let metadata = message.metadata();
    heading(message, out)?;
    out.line(format_args!("version: {VERSION}"))?;
    out.line(format_args!("objects: {}", message.object_count()))?;
    for object in message.objects() {
        let object = object?;
        let DataObjectDescriptor { obj_type, dtype, shape, .. } = object.descriptor();
        let (index, kind) = (object.index(), escape::name(obj_type));
        out.line(format_args!("  object[{index}]: type={kind}, dtype={dtype}, shape={shape:?}"))?;
    }
    for (index, entry) in metadata.base.iter().enumerate() {
        print_entry(&format!("base[{index}]"), entry, out)?;
    }
    if !metadata.extra.is_empty() {
        print_entry("extra", &metadata.extra, out)?;
    }
    if with_reserved && !metadata.reserved.is_empty() {
        print_entry("reserved", &metadata.reserved, out)?;
    }
    out.line("")
}

fn print_entry(name: &str, entry: &Entry, out: &mut Ui) -> Result<(), Failure> {
    out.line(format_args!("  {name}:"))?;
    entry.iter().try_for_each(|(key, value)| {
        let value = sorted(value).to_string();
        out.line(format_args!("    {}: {}", escape::name(key), escape::name(&value)))
    })
}

fn print_keys(message: &Message, row: &Row<'_>, keys: &Keys, out: &mut Ui) -> Result<(), Failure> {
    heading(message, out)?;
    if let Json::Object(found) = row.json(keys)? {
        let mut names: Vec<&String> = found.keys().collect();
        names.sort_unstable();
        for key in names {
            out.line(format_args!("{}: {}", escape::name(key), escape::name(&row.text(key)?)))?;
        }
    }
    out.line("")
}

/// The JSON of a message: sorted keys, without empty sections.
fn message_json(message: &Message, with_reserved: bool) -> Result<Json, Failure> {
    let metadata = message.metadata();
    let object = |descriptor: &DataObjectDescriptor| {
        let mut fields = descriptor.params.clone();
        let DataObjectDescriptor { obj_type, dtype, shape, .. } = descriptor;
        fields.insert("type".to_owned(), obj_type.as_str().into());
        fields.insert("dtype".to_owned(), dtype.name().into());
        fields.insert("shape".to_owned(), Value::Array(shape.iter().map(|&n| n.into()).collect()));
        sorted_entry(&fields)
    };
    let objects = message.objects().map(|found| Ok(object(found?.descriptor())));
    let objects = objects.collect::<Result<Vec<Json>, Failure>>()?;
    let base: Vec<Json> = metadata.base.iter().map(sorted_entry).collect();
    let mut json = Map::new();
    let mut put = |key: &str, value: Json, present: bool| {
        if present {
            json.insert(key.to_owned(), value);
        }
    };
    put("base", base.into(), !metadata.base.is_empty());
    put("extra", sorted_entry(&metadata.extra), !metadata.extra.is_empty());
    put("objects", objects.into(), true);
    put("reserved", sorted_entry(&metadata.reserved), with_reserved);
    put("version", VERSION.into(), true);
    Ok(json.into())
}

fn sorted_entry(entry: &Entry) -> Json {
    entry.iter().map(|(key, value)| (key.clone(), sorted(value))).collect::<Map<_, _>>().into()
}

/// A value as JSON with sorted keys.
fn sorted(value: &Value) -> Json {
    let mut json = value.to_json();
    json.sort_all_objects();
    json
}
