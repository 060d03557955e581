//! `tgm ls`: list messages and objects.

use serde_json::{Map, Value as Json, json};
use tercet::core::escape;
use tercet::tgm::precision::Candidate;
use tercet::tgm::{Entry, File, Message};

use super::open::{ReadArgs, for_each_message, listed};
use super::select::{Filter, Keys, Row};
use crate::args::{JsonArgs, LimitArgs};
use crate::failure::{Failure, Outcome};
use crate::input::Inputs;
use crate::persona::is_reference;
use crate::ui::Ui;

mod table;

use table::Listing;

const EXAMPLES: &str = "\
Examples:
  tgm ls run.tgm                                 one row per object, with the keys that vary
  tgm ls run.tgm -w step=6,name=t/z              objects with step 6 and name t or z
  tgm ls run.tgm --where 'step > 6 and units = \"K\"'
  tgm ls run.tgm -p name,step,shape,min,max      these columns, tab-separated
  tgm ls run.tgm -j | jq .shape                  JSON Lines

KEY is a metadata key, with dots for nested keys (mars.param): that of the object, else that of the \
message. `base.KEY` and `extra.KEY` are restricted to object and message metadata. `version` is the format version. \
Fields of an object, unless the metadata has the key: message object shape ndim strides dtype byte_order encoding filter compression masks \
size raw_size ratio offset, and pipeline parameters (sp_bits_per_value); min max mean nans decode its values. With a field, `-p` prints a row per object, else a row per message.

Exit code 1: no message matches, or the file ends inside a message.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("limit", |arg| arg.help("Print at most N messages; 0 prints all [default: 0]")))]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    filter: Filter,
    /// Print these keys and fields [default: message, object, name, shape, dtype, encoding, size, keys that vary]
    #[arg(short = 'p', long, value_name = "KEYS")]
    keys: Option<Keys>,
    #[command(flatten)]
    json: JsonArgs,
    #[command(flatten)]
    limit: LimitArgs,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let keys = args.keys.clone().or_else(|| is_reference().then(Keys::default));
    let inputs = args.inputs.each()?;
    let mut listing = Listing::new(inputs.len() > 1);
    let mut has_heads = args.json.json;
    let (mut left, mut matched, mut outcome) = (args.limit.or(0), 0, Outcome::Done);
    for input in inputs {
        let file = args.read.open(input.source()?, out)?;
        if let Some(keys) = keys.as_ref().filter(|_| !has_heads) {
            out.line(keys.iter().map(escape::name).collect::<Vec<_>>().join("\t"))?;
            has_heads = true;
        }
        matched += for_each_message(&file, &args.filter, &mut left, |message, objects| match &keys {
            Some(keys) => print_keys(message, objects, keys, args.json.json, out),
            None if args.json.json => print_json(&file, message, objects, out),
            None => listing.add(&file, message, objects, out),
        })?;
        outcome = outcome.worse(listed(&file)?);
    }
    listing.finish(out)?;
    let is_empty = args.filter.note_if_none(matched, out)?;
    Ok(if is_empty { Outcome::CheckFailed } else { outcome })
}

/// Prints a row for each object if a key is a field of objects, else for the message.
fn print_keys(
    message: &Message,
    objects: &[u64],
    keys: &Keys,
    json: bool,
    out: &mut Ui,
) -> Result<(), Failure> {
    let mut print = |objects: &[u64]| {
        let row = Row::new(message.metadata(), Some(message), objects);
        if json {
            let values = row.json(keys)?;
            return if is_reference() { out.json(&values) } else { out.json_line(&values) };
        }
        let values = keys.iter().map(|key| Ok(escape::name(&row.text(key)?).into_owned()));
        out.line(values.collect::<Result<Vec<_>, Failure>>()?.join("\t"))
    };
    if keys.has_fields() && !objects.is_empty() {
        return objects.iter().try_for_each(|object| print(&[*object]));
    }
    print(objects)
}

/// Prints an object as a line of JSON.
fn print_json(file: &File, message: &Message, objects: &[u64], out: &mut Ui) -> Result<(), Failure> {
    let (file, number) = (&**file.name(), message.number());
    if objects.is_empty() {
        return out.json_line(&json!({
            "file": file,
            "message": number,
            "metadata": metadata(message, None),
        }));
    }
    for &index in objects {
        let object = message.object(index)?;
        let descriptor = object.descriptor();
        let row = Row::new(message.metadata(), Some(message), std::slice::from_ref(&index));
        out.json_line(&json!({
            "file": file,
            "message": number,
            "object": index,
            "name": row.value("name")?.map(|value| value.to_json()),
            "shape": descriptor.shape,
            "dtype": descriptor.dtype.name(),
            "encoding": Candidate::given(descriptor).to_string(),
            "size": object.stored_len(),
            "offset": object.frame().span.start(),
            "metadata": metadata(message, Some(index)),
        }))?;
    }
    Ok(())
}

/// The metadata of an object and of its message, without the reserved keys.
fn metadata(message: &Message, object: Option<u64>) -> Json {
    let metadata = message.metadata();
    let entry = object.and_then(|object| metadata.base.get(usize::try_from(object).ok()?));
    let mut json = Map::new();
    let mut add = |entry: &Entry| {
        for (key, value) in entry.iter().filter(|(key, _)| *key != "_reserved_") {
            json.insert(key.clone(), value.to_json());
        }
    };
    add(&metadata.extra);
    if let Some(entry) = entry {
        add(entry);
    }
    Json::Object(json)
}
