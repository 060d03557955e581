//! `tatami create`: create a file from JSONL or CSV.

use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use serde::Serialize;
use tercet::HEAD_LEN;
use tercet::convert::tables::{Batch, TextTable};
use tercet::core::progress::NoProgress;
use tercet::core::{Progress, Sink, Span, escape};
use tercet::tatami::format::requires;
use tercet::tatami::{BatchError, Error, ErrorKind, Field, Schema, Writer, WriterOptions, Written};

use crate::args::{OutputArgs, can_start};
use crate::failure::{Failure, Outcome};
use crate::input::must_be_text;
use crate::output::{Output, Spool, send, stream_file};
use crate::render::{human_size, ratio};
use crate::ui::{Bar, Ui};

pub(super) mod options;
pub(super) mod roles;
pub(super) mod schema;

use options::{Layout, Text, WriteArgs};
use roles::Roles;
use schema::Declared;

const EXAMPLES: &str = "\
Examples:
  tatami create cities.tatami --from cities.jsonl --sort-key name
  tatami create cities.tatami --from cities.csv --schema name:string,people:uint32:nullable
  zcat crawl.jsonl.gz | tatami create crawl.tatami --from - --blob html --bloom url
  tatami create for-others.tatami --from cities.csv --profile interop

JSONL input has one object per line, with scalars and lists of scalars. CSV input has the column names in the first \
record; an empty field without quotes is null in nullable columns.

Without --schema, types are inferred from the entire input: integers become int64 (or uint64), other numbers float64; \
columns with missing values are nullable.

Types are bool, int8 to int64, uint8 to uint64, float32, float64, string, bytes, timestamp_micros, blobref \
and list:TYPE; logical types: date32, time[ms], duration[s], timestamp[ms], decimal128[9, 2]. \
Values of bytes and blobref columns are base64, as printed by `tatami cat`; --blob stores strings \
as blobs.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    output: OutputArgs,
    /// Input file or URL; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    text: Text,
    /// Schema: `name:type[:nullable],…` [default: inferred]
    #[arg(long, value_name = "COLUMNS", help_heading = "Columns")]
    schema: Option<Declared>,
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
    /// Features that other readers do not support.
    required_features: Vec<String>,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let output = Output::open(args.output.path(), args.write.force.force)?;
    if matches!(output, Output::Stdout) && args.write.json.json {
        return Err(Failure::request("cannot write both the file and JSON to standard output"));
    }
    output.must_not_be(&args.from)?;
    let source = args.write.input(&args.from).source()?;
    let head = source.read_at(Span::first(source.len().min(HEAD_LEN)));
    let head = head.map_err(|error| Failure::source(source.name(), error))?;
    must_be_text(source.name(), &head, "JSONL or CSV")?;
    let format = args.text.format(&args.from, &head)?;
    let mut options = args.layout.options()?;
    let input_bytes = source.len();
    let declared = args.schema.as_ref().map(Declared::columns);
    let bar = declared.is_none().then(|| out.bar("inferring", input_bytes));
    let progress: &dyn Progress = bar.as_ref().map_or(&NoProgress, |bar| bar);
    let input = source.name().to_string();
    let table = TextTable::open(source, format, declared, progress)?;
    drop(bar);
    for (key, value) in table.annotations() {
        options = options.with_metadata(key, value);
    }
    let schema = args.roles.apply(table.fields().to_vec())?;
    let bar = out.bar("writing", input_bytes);
    let work = Work { input, table, schema: &schema, bar: &bar };
    let summary = |written: Counts, path: &Path| CreateJson {
        path: crate::output::display_path(path),
        rows: written.rows,
        columns: schema.fields().to_vec(),
        groups: written.groups,
        bytes: written.bytes,
        input_bytes,
        required_features: requires::names(written.requires),
    };
    match output {
        Output::Path(path) => {
            // Without `--force`, a file that appears meanwhile is not replaced.
            let options = options.with_overwrite(args.write.force.force);
            let (written, _) = work.fill(Writer::create(&path, schema.clone(), options)?)?;
            drop(bar);
            show(&summary(written, &path), args.write.json.json, out)?;
        }
        Output::Stream(stream) => {
            let name = stream.name();
            let writer = create(Spool::new()?, &schema, options, &name)?;
            let (written, file) = work.fill(writer)?;
            drop(bar);
            stream_file(file, stream)?;
            show(&summary(written, args.output.path()), args.write.json.json, out)?;
        }
        Output::Stdout => {
            let name = "standard output";
            let (_, file) = work.fill(create(Spool::new()?, &schema, options, name)?)?;
            drop(bar);
            send(file, out)?;
        }
    }
    Ok(Outcome::Done)
}

fn create<S: Sink>(
    sink: S,
    schema: &Schema,
    options: WriterOptions,
    name: &str,
) -> Result<Writer<S>, Failure> {
    let writer = Writer::new(sink, schema.clone(), options);
    let named = |error: Error| Error::new(name.into(), error.into_kind());
    Ok(writer.map_err(named)?.with_name(name))
}

/// Counts of a written file.
#[derive(Clone, Copy, Debug)]
struct Counts {
    rows: u64,
    groups: u64,
    bytes: u64,
    requires: u64,
}

/// The conversion of text rows to a file.
struct Work<'a> {
    input: String,
    table: TextTable,
    schema: &'a Schema,
    bar: &'a Bar,
}

impl Work<'_> {
    /// Reads on one thread while the others write, or in turns if no thread can be started.
    fn fill<S: Sink>(self, mut writer: Writer<S>) -> Result<(Counts, S::Output), Failure> {
        let Self { input, table, schema, bar } = self;
        let mut append = |batch: &Batch| {
            let before = writer.rows();
            writer.append(&batch.columns).map_err(|error| explained(error, batch, before, &input))
        };
        if !can_start(1) {
            table.read(schema, bar, |batch| append(&batch))?;
            return finish(writer);
        }
        let (sender, receiver) = sync_channel::<Batch>(1);
        std::thread::scope(|scope| {
            let reading = std::thread::Builder::new().spawn_scoped(scope, move || {
                table.read(schema, bar, |batch| {
                    // The receiver is gone after a write error, which is reported instead.
                    sender.send(batch).map_err(|_| Failure::Interrupted)
                })
            });
            let reading = reading.map_err(Failure::no_thread)?;
            // The receiver is dropped after an error, which ends the reader.
            let written = receiver.into_iter().try_for_each(|batch| append(&batch));
            let read = reading.join().unwrap_or_else(|cause| std::panic::resume_unwind(cause));
            written.and(read)
        })?;
        finish(writer)
    }
}

fn finish<S: Sink>(writer: Writer<S>) -> Result<(Counts, S::Output), Failure> {
    let Written { rows, groups, bytes, requires, output, .. } = writer.finish()?;
    Ok((Counts { rows, groups, bytes, requires }, output))
}

/// An error of the writer; errors of a row are reported with the input line.
fn explained(failed: Error, batch: &Batch, before: u64, input: &str) -> Failure {
    let ErrorKind::Batch(error) = failed.kind() else { return failed.into() };
    let (row, column, reason) = match &**error {
        BatchError::Unsorted { column, row } => {
            (row.saturating_sub(before), column, "sort key is less than in the previous row")
        }
        BatchError::Null { column, row } => (*row, column, "null in a non-nullable column"),
        BatchError::TooLarge { column, row, .. } => (*row, column, "value exceeds the maximum page size"),
        _ => return failed.into(),
    };
    let line = usize::try_from(row).ok().and_then(|row| batch.lines.get(row));
    let prefix = line.map_or_else(String::new, |line| format!("line {line}: "));
    let failure = Failure::request(format!("{input}: {prefix}column `{}`: {reason}", escape::name(column)));
    match &**error {
        BatchError::Unsorted { .. } => failure.with_hint("sort the input first, or omit `--sort-key`"),
        _ => failure,
    }
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
