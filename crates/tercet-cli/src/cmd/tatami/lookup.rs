//! `tatami lookup`: look up a row by its sort key.

use serde::Serialize;
use serde_json::value::RawValue;
use tercet::core::escape;
use tercet::tatami::{Column, File, KeyPosition, LogicalType, Scalar, Type};

use super::cat::warn;
use super::collection_scan;
use super::columns::{AsStored, Columns};
use super::open::open_to_print;
use crate::args::JsonArgs;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::render::RowWriter;
use crate::ui::Ui;

const EXAMPLES: &str = "\
Examples:
  tatami lookup crawl.tatami https://example.org/
  tatami lookup years.tatami --columns events -- -753     a key that starts with a dash
  tatami lookup crawl.tatami https://example.org/ --json    with row group and row number
  tatami lookup crawl https://example.org/                  all files of a collection
  tatami lookup days.tatami 2024-06-21 --all                all rows with the key
  tatami get crawl.tatami https://example.org/ --columns html --raw > page.html

The first row with the key is printed; with --all every row of the file.
Exit code 0: found; 1: not found; others: the lookup failed.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Value of the sort key, like 2024-06-21 or 2024-06-21T12:00:00Z for dates and times; bytes as x'00ff'
    #[arg(value_name = "KEY", allow_negative_numbers = true)]
    key: String,
    #[command(flatten)]
    columns: Columns,
    #[command(flatten)]
    values: AsStored,
    /// Print all rows with the key
    #[arg(long, conflicts_with_all = ["json", "raw"])]
    all: bool,
    /// Write the bytes of the value of one column, without quotes and line break; needs --columns NAME
    #[arg(long, requires = "columns", conflicts_with = "json")]
    raw: bool,
    #[command(flatten)]
    json: JsonArgs,
}

/// The JSON output.
#[derive(Serialize)]
struct LookupJson<'a> {
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
    let Some((file, position)) = found.position else {
        if args.json.json {
            out.json(&lookup_json(args, &found.name, None, None))?;
        }
        let (name, key) = (escape::name(&found.name), escape::name(&args.key));
        out.side_summary(format_args!("{name}: no row with key `{key}`"))?;
        return Ok(Outcome::CheckFailed);
    };
    let columns = args.columns.positions_in(&file)?;
    if args.all {
        return print_all(args, &file, &found.key, &columns, out);
    }
    let values = file.take(&[position.row], &columns)?;
    if args.raw {
        return raw(&file, &values, out);
    }
    let mut writer = RowWriter::new(args.values.typed_columns(&file, &columns));
    let mut text = Vec::new();
    writer.row(&values, 0, &mut text);
    if args.json.json {
        let values = String::from_utf8(text).ok().and_then(|text| RawValue::from_string(text).ok());
        out.json(&lookup_json(args, file.name(), Some(position), values))?;
    } else {
        text.push(b'\n');
        out.bytes()?.write_all(&text).map_err(|error| Failure::output(&error))?;
    }
    warn(file.name(), &writer, out)?;
    let more = file.scan_key(&found.key)?.column_positions(&[])?.limit(2).batches();
    if more.map(|batch| Ok(batch?.rows.len())).sum::<Result<usize, Failure>>()? > 1 {
        out.note("note: more rows have this key; `--all` prints them")?;
    }
    Ok(Outcome::Done)
}

/// Prints all rows with the key.
fn print_all(
    args: &Args,
    file: &File,
    key: &Scalar,
    columns: &[usize],
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let mut writer = RowWriter::new(args.values.typed_columns(file, columns));
    for batch in file.scan_key(key)?.column_positions(columns)?.batches() {
        let batch = batch?;
        let mut text = Vec::new();
        for row in 0..batch.rows.len() {
            writer.row(&batch.columns, row, &mut text);
            text.push(b'\n');
        }
        out.bytes()?.write_all(&text).map_err(|error| Failure::output(&error))?;
    }
    warn(file.name(), &writer, out)?;
    Ok(Outcome::Done)
}

/// Writes the bytes of a value.
fn raw(file: &File, values: &[Column], out: &mut Ui) -> Result<Outcome, Failure> {
    let [value] = values else {
        return Err(Failure::request("`--raw` writes one value: name one column with `--columns`"));
    };
    let bytes = match value.scalar(0) {
        Some(Scalar::Bytes(bytes)) => bytes,
        Some(value) => value.to_string().into_bytes(),
        None => {
            out.side_summary(format_args!("{}: the value is null", escape::name(file.name())))?;
            return Ok(Outcome::CheckFailed);
        }
    };
    out.bytes()?.write_all(&bytes).map_err(|error| Failure::output(&error))?;
    Ok(Outcome::Done)
}

/// The result of a lookup.
struct Answer {
    name: String,
    key: Scalar,
    position: Option<(File, KeyPosition)>,
}

fn find(args: &Args, out: &mut Ui) -> Result<Answer, Failure> {
    if let Some(collection) = collection_scan::collection(&args.input, out)? {
        let sorted = collection.members().iter().find(|member| !member.sort_column.is_empty());
        let key = match sorted {
            Some(member) => key(&collection.open_member(member)?, &args.key)?,
            None => collection.parse_key(&args.key)?,
        };
        let found = collection.lookup(&key)?;
        let unsorted = collection.members().iter().filter(|member| member.sort_column.is_empty()).count();
        if found.found.is_none() && unsorted > 0 {
            let (have, were) = if unsorted == 1 { ("file has", "was") } else { ("files have", "were") };
            out.side_summary(format_args!(
                "{unsorted} {have} no sort key and {were} not searched; use `cat --where`"
            ))?;
        }
        let name = collection_scan::name(&args.input.path);
        return Ok(Answer { name, key, position: found.found.map(|(_, file, position)| (file, position)) });
    }
    let file = open_to_print(args.input.source()?)?;
    args.columns.positions_in(&file)?;
    let key = key(&file, &args.key)?;
    let found = file.lookup(&key)?;
    Ok(Answer { name: file.name().to_string(), key, position: found.map(|position| (file, position)) })
}

/// Parses the key by the logical type of the sort key column.
fn key(file: &File, text: &str) -> Result<Scalar, Failure> {
    let logical_value = file.schema().sort_key().and_then(|column| {
        let kind = file.schema().fields().get(column)?.kind;
        let natural = (kind == Type::TimestampMicros).then_some(LogicalType::UTC);
        let logical_type = file.logical_types().get(column).copied().flatten().or(natural)?;
        logical_type.read(kind, text)
    });
    match logical_value {
        Some(key) => Ok(key),
        None => Ok(file.parse_key(text)?),
    }
}

fn lookup_json<'a>(
    args: &'a Args,
    file: &'a str,
    position: Option<KeyPosition>,
    values: Option<Box<RawValue>>,
) -> LookupJson<'a> {
    LookupJson {
        file,
        key: &args.key,
        found: position.is_some(),
        group: position.map(|position| position.group),
        row_in_group: position.map(|position| position.row_in_group),
        row: position.map(|position| position.row),
        values,
    }
}
