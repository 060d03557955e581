//! `tatami lookup`: the row with a key.

use serde::Serialize;
use serde_json::value::RawValue;
use tercet::core::escape;
use tercet::tatami::{File, KeyPosition, Scalar};

use super::cat::warn;
use super::columns::{AsStored, Columns};
use super::folder;
use super::open::open_to_print;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::render::RowWriter;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tatami lookup crawl.tatami https://example.org/
  tatami lookup years.tatami --columns events -- -753     a key that starts with a dash
  tatami lookup crawl.tatami https://example.org/ --json    and where the row is
  tatami lookup crawl https://example.org/                  in all files of a collection

The first of several rows with the key is printed.
Exit code 0: there is a row; 1: there is none; others: it could not be looked up.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// A value of the sort key; times in microseconds since 1970
    #[arg(value_name = "KEY", allow_negative_numbers = true)]
    key: String,
    #[command(flatten)]
    columns: Columns,
    #[command(flatten)]
    values: AsStored,
    /// Tell the row group and the number of the row too
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Told<'a> {
    file: &'a str,
    key: &'a str,
    found: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    row_in_group: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Box<RawValue>>,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let found = find(args, out)?;
    let Some((file, place)) = found.place else {
        if args.json {
            out.json(&told(args, &found.name, None, None))?;
        }
        let (name, key) = (escape::name(&found.name), escape::name(&args.key));
        out.note(format_args!("{name}: has no row with the key `{key}`"))?;
        return Ok(Outcome::CheckFailed);
    };
    let columns = args.columns.of(&file)?;
    let mut writer = RowWriter::new(args.values.shown(&file, &columns));
    let mut text = Vec::new();
    writer.row(&file.take(&[place.row], &columns)?, 0, &mut text);
    if args.json {
        let values = String::from_utf8(text).ok().and_then(|text| RawValue::from_string(text).ok());
        out.json(&told(args, file.name(), Some(place), values))?;
    } else {
        text.push(b'\n');
        out.bytes()?.write_all(&text).map_err(|error| Failure::output(&error))?;
    }
    warn(file.name(), &writer, out)?;
    Ok(Outcome::Done)
}

/// The answer of a file or of a collection.
struct Answer {
    name: String,
    place: Option<(File, KeyPosition)>,
}

fn find(args: &Args, out: &mut Ui) -> Result<Answer, Failure> {
    if let Some(collection) = folder::collection(&args.input, out)? {
        let found = collection.lookup(&collection.parse_key(&args.key)?)?;
        let unsorted = collection.members().iter().filter(|member| member.sort_column.is_empty()).count();
        if found.found.is_none() && unsorted > 0 {
            let plural = if unsorted == 1 { "file has" } else { "files have" };
            out.note(format_args!(
                "{unsorted} {plural} no sort key and can only be asked with `cat --where`"
            ))?;
        }
        let name = folder::name(&args.input.path);
        return Ok(Answer { name, place: found.found.map(|(_, file, place)| (file, place)) });
    }
    let file = open_to_print(args.input.source()?)?;
    args.columns.of(&file)?;
    let found = file.lookup(&key(&file, &args.key)?)?;
    Ok(Answer { name: file.name().to_string(), place: found.map(|place| (file, place)) })
}

/// The key that a text means: a date or a decimal where a note says that keys are some.
fn key(file: &File, text: &str) -> Result<Scalar, Failure> {
    let meant = file.schema().sort_key().and_then(|column| {
        let logical_type = file.logical_types().get(column).copied().flatten()?;
        logical_type.read(file.schema().fields().get(column)?.kind, text)
    });
    match meant {
        Some(key) => Ok(key),
        None => Ok(file.parse_key(text)?),
    }
}

fn told<'a>(
    args: &'a Args,
    file: &'a str,
    place: Option<KeyPosition>,
    values: Option<Box<RawValue>>,
) -> Told<'a> {
    Told {
        file,
        key: &args.key,
        found: place.is_some(),
        group: place.map(|place| place.group),
        row_in_group: place.map(|place| place.row_in_group),
        row: place.map(|place| place.row),
        values,
    }
}
