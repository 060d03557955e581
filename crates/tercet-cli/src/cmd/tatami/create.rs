//! `tatami create`: create a file from tables of any format.

use std::path::PathBuf;

use serde::Serialize;
use tercet::tatami::Field;
use tercet::tatami::format::requires;

use super::columns::Columns;
use super::filter::Where;
use super::ingest::format::Format;
use super::ingest::{self, Request};
use crate::args::OutputArgs;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::render::{human_size, ratio};
use crate::ui::Ui;

pub(super) mod options;
pub(super) mod roles;
pub(super) mod schema;

use super::layout::Layout;
use options::{Text, WriteArgs};
use roles::Roles;
use schema::{Declared, SchemaArgs};

const EXAMPLES: &str = "\
Examples:
  tatami create cities.tatami --from cities.csv
  tatami create cities.tatami --from cities.jsonl --sort name
  tatami create sales.tatami --from 'sales/*.csv.gz' --on-error skip --rejects bad.jsonl
  tatami create cities.tatami --from cities.csv --schema name:string,people:uint32:nullable
  tatami create crawl.tatami --from crawl.parquet
  tatami create errors.tatami --from 'crawl/*.parquet' --where 'status >= 400' --columns url,status
  zcat crawl.jsonl.gz | tatami create crawl.tatami --from - --blob html --bloom url
  tatami create for-others.tatami --from cities.csv --profile interop

Input is CSV, TSV, JSONL, Parquet, Arrow IPC or .tatami, detected by content, also compressed with gzip or \
zstd. Several files of one format are one table.

The delimiter, quote, header, decimal comma and types of CSV are detected; --dry-run prints them. An empty field without \
quotes is null. Dates (2024-06-21), times and timestamps are recognized; NULL, NA, N/A, None and \\N are null in columns \
of numbers, dates and bools.

Nested JSON objects and structs become columns a.b; maps and lists of lists or objects are stored as JSON text.

Without --schema, types are inferred from the first rows: integers become int64 (or uint64), other numbers float64. If a \
later value does not fit, they are inferred again from the entire input; no value is changed.

Types are bool, int8 to int64, uint8 to uint64, float32, float64, string, bytes, timestamp_micros, blobref \
and list:TYPE; logical types: date32, time[ms], duration[s], timestamp[ms], decimal128[9, 2]. \
Values of bytes and blobref columns are base64, as printed by `tatami cat`; --blob stores strings \
as blobs.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    output: OutputArgs,
    /// Input files, directories, glob patterns or URLs; `-` reads standard input
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    from: Vec<PathBuf>,
    /// Input format [default: detected from content and file extension]
    #[arg(long, value_name = "FORMAT", alias = "from-format")]
    format: Option<Format>,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    filter: Where,
    #[command(flatten)]
    columns: Columns,
    #[command(flatten)]
    text: Text,
    #[command(flatten)]
    schema: SchemaArgs,
    #[command(flatten)]
    roles: Roles,
    #[command(flatten)]
    layout: Layout,
}

/// The summary of a written file.
#[derive(Debug, Serialize)]
struct CreateJson {
    path: String,
    rows: u64,
    columns: Vec<Field>,
    groups: u64,
    bytes: u64,
    input_bytes: u64,
    /// Records and values that could not be read.
    rejected: u64,
    /// Features that other readers do not support.
    required_features: Vec<String>,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let declared: Option<Declared> = args.schema.declared()?;
    let output = Output::open(args.output.path(), args.write.force.force || args.text.dry_run)?;
    let is_stdout = matches!(output, Output::Stdout);
    if is_stdout && args.write.json.json && !args.text.dry_run {
        return Err(Failure::request("cannot write both the file and JSON to standard output"));
    }
    let request = Request {
        from: &args.from,
        from_format: args.format,
        to: Format::Tatami,
        write: &args.write,
        text: &args.text,
        filter: &args.filter,
        columns: &args.columns,
        declared: declared.as_ref(),
        roles: &args.roles,
        layout: &args.layout,
        #[cfg(feature = "arrow")]
        timestamps: tercet::arrow::Timestamps::Exact,
        stored: false,
        batch: None,
    };
    let Some(done) = ingest::run(&request, output, out)? else { return Ok(Outcome::Done) };
    if !is_stdout {
        let summary = CreateJson {
            path: crate::output::display_path(args.output.path()),
            rows: done.counts.rows,
            columns: done.counts.columns,
            groups: done.counts.groups,
            bytes: done.counts.bytes,
            input_bytes: done.input_bytes,
            rejected: done.rejected,
            required_features: requires::names(done.counts.requires),
        };
        show(&summary, args.write.json.json, out)?;
    }
    Ok(Outcome::Done)
}

fn show(summary: &CreateJson, json: bool, out: &mut Ui) -> Result<(), Failure> {
    if json {
        return out.json(summary);
    }
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    let columns = summary.columns.len() as u64;
    out.summary(format_args!(
        "{}: {} row{}, {columns} column{}, {} row group{}, {} (from {}, ratio {})",
        summary.path,
        summary.rows,
        plural(summary.rows),
        plural(columns),
        summary.groups,
        plural(summary.groups),
        human_size(summary.bytes),
        human_size(summary.input_bytes),
        ratio(summary.input_bytes, summary.bytes),
    ))
}
