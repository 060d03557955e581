//! `tatami create`: a file made of rows of text.

use std::io::Seek as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use serde::Serialize;
use tercet::core::{Sink, escape};
use tercet::tatami::wire::ids::requires;
use tercet::tatami::{BatchError, Error, ErrorKind, Field, Schema, Writer, WriterOptions, Written};

use crate::failure::{Failure, Outcome};
use crate::output::{Output, Spool, send};
use crate::render::{human_size, ratio};
use crate::ui::{Bar, Ui};

mod assemble;
mod build;
mod csv;
mod infer;
mod json;
pub(super) mod options;
pub(super) mod roles;
mod rows;
pub(super) mod schema;
mod stamp;
#[cfg(feature = "arrow")]
pub(super) mod table;
pub(super) mod text;
mod token;

use assemble::Batch;
use build::Reading;
use options::{Layout, Making, Text};
use roles::Roles;
use rows::Form;
use schema::Declared;
use text::Lines;

const EXAMPLES: &str = "\
Examples:
  tatami create cities.tatami --from cities.jsonl --sort-key name
  tatami create cities.tatami --from cities.csv --schema name:string,people:uint32:nullable
  zcat crawl.jsonl.gz | tatami create crawl.tatami --from - --blob html --bloom url
  tatami create for-others.tatami --from cities.csv --profile interop

JSONL has an object on each line: scalars, and lists of them. CSV has the names of its columns in the first \
record; a field that is empty and not in quotes is null in nullable columns.

Without --schema the whole input is looked at first: whole numbers become int64 (or uint64), other numbers \
float64, and values that are missing somewhere make their column nullable.

Types are bool, int8 to int64, uint8 to uint64, float32, float64, string, bytes, timestamp_micros, blobref \
and list:TYPE; types of Arrow that a note in the file keeps: date32, time[ms], duration[s], timestamp[ms], \
decimal128[9, 2]. Text of bytes and blobref columns is base64, as `tatami cat` prints it; --blob stores text \
apart as it is.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The file to make; `-` writes it to standard output
    #[arg(value_name = "OUT")]
    path: PathBuf,
    /// The rows: a file, an address, or `-` for standard input
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// Work on at most N threads; without it, on all that there are
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    #[command(flatten)]
    making: Making,
    #[command(flatten)]
    text: Text,
    /// The columns and their types: `name:type[:nullable],…`
    #[arg(long, value_name = "COLUMNS", help_heading = "Columns")]
    schema: Option<Declared>,
    #[command(flatten)]
    roles: Roles,
    #[command(flatten)]
    layout: Layout,
}

/// What was written.
#[derive(Debug, Serialize)]
struct Told {
    path: String,
    rows: u64,
    columns: Vec<Field>,
    groups: u64,
    bytes: u64,
    input_bytes: u64,
    /// Features that other readers of the format do not have.
    needs: Vec<String>,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    if let Some(threads) = args.threads {
        // Only the first pool counts; in tests, which share a process, that is the one of the first test.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global();
    }
    let output = Output::of(&args.path, args.making.force)?;
    if matches!(output, Output::Stdout) && args.making.json {
        return Err(Failure::request("standard output cannot hold the file and its summary in JSON"));
    }
    output.must_not_be(&args.from)?;
    let form = args.text.form(&args.from)?;
    let mut options = args.layout.options()?;
    let notes = args.schema.as_ref().map_or(&[][..], Declared::notes);
    for (key, value) in notes {
        options = options.with_metadata(key, value);
    }
    let source = args.making.input(&args.from).source()?;
    let fields = if let Some(declared) = &args.schema {
        declared.fields()
    } else {
        let bar = out.bar("looking", source.len());
        rows::infer(&mut Lines::of(source.clone()), &form, &bar)?
    };
    // How text is read depends on the type, not on where the values are stored.
    let readings = Reading::all(&fields, notes);
    let schema = args.roles.apply(fields)?;
    let input_bytes = source.len();
    let bar = out.bar("writing", input_bytes);
    let work = Work { lines: Lines::of(source), form: &form, readings, schema: &schema, bar: &bar };
    let told = |written: Counts, path: &Path| Told {
        path: crate::output::shown(path),
        rows: written.rows,
        columns: schema.fields().to_vec(),
        groups: written.groups,
        bytes: written.bytes,
        input_bytes,
        needs: requires::names(written.requires),
    };
    match output {
        Output::Path(path) => {
            // Without `--force` a file that appears meanwhile is not replaced either.
            let start = if args.making.force { Writer::create_path } else { Writer::create_new };
            let writer = start(&path, schema.clone(), options)?;
            let name = path.to_string_lossy().into_owned();
            let (written, _) = work.fill(writer, &name)?;
            drop(bar);
            show(&told(written, &path), args.making.json, out)?;
        }
        Output::Object(object) => {
            let name = object.name();
            let writer = create(Spool::new()?, &schema, options, &name)?;
            let (written, mut file) = work.fill(writer, &name)?;
            drop(bar);
            file.rewind().map_err(|error| Failure::io("cannot use the temporary file", &error))?;
            object.take(&mut file)?;
            show(&told(written, &args.path), args.making.json, out)?;
        }
        Output::Stdout => {
            let name = "standard output";
            let (_, file) = work.fill(create(Spool::new()?, &schema, options, name)?, name)?;
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
    Writer::create(sink, schema.clone(), options).map_err(|fault| Error::new(name.into(), fault).into())
}

/// Numbers about a file that was written.
#[derive(Clone, Copy, Debug)]
struct Counts {
    rows: u64,
    groups: u64,
    bytes: u64,
    requires: u64,
}

/// Rows on their way from text to a file.
struct Work<'a> {
    lines: Lines,
    form: &'a Form,
    readings: Vec<Reading>,
    schema: &'a Schema,
    bar: &'a Bar,
}

impl Work<'_> {
    /// Reads everything on one thread while the rows before are written on the others.
    fn fill<S: Sink>(self, mut writer: Writer<S>, name: &str) -> Result<(Counts, S::Done), Failure> {
        let Self { mut lines, form, readings, schema, bar } = self;
        let fields: Vec<(Field, Reading)> = schema.fields().iter().cloned().zip(readings).collect();
        let input = lines.name().to_owned();
        let (sender, receiver) = sync_channel::<Batch>(1);
        std::thread::scope(|scope| {
            let reading = scope.spawn(move || {
                rows::read(&mut lines, form, &fields, bar, |batch| {
                    // Nobody takes it any more when a row before was refused: that is the error to tell.
                    sender.send(batch).map_err(|_| Failure::Interrupted)
                })
            });
            let mut written = Ok(());
            for batch in receiver {
                let before = writer.rows();
                if let Err(fault) = writer.append(&batch.columns) {
                    written = Err(explained(fault, &batch, before, &input, name));
                    break;
                }
            }
            let read = reading.join().unwrap_or_else(|cause| std::panic::resume_unwind(cause));
            written.and(read)
        })?;
        let done = writer.finish().map_err(|fault| Failure::from(Error::new(name.into(), fault)))?;
        let Written { rows, groups, bytes, requires, output, .. } = done;
        Ok((Counts { rows, groups, bytes, requires }, output))
    }
}

/// A fault of the writer; one about a row is told by the line of the input.
fn explained(fault: ErrorKind, batch: &Batch, before: u64, input: &str, name: &str) -> Failure {
    let ErrorKind::Batch(error) = &fault else { return Error::new(name.into(), fault).into() };
    let (row, column, reason) = match &**error {
        BatchError::Unsorted { column, row } => {
            (row.saturating_sub(before), column, "the sort key is smaller than in the row before")
        }
        BatchError::Null { column, row } => (*row, column, "null in a column that is not nullable"),
        BatchError::TooLarge { column, row, .. } => (*row, column, "the value is larger than a page can be"),
        _ => return Error::new(name.into(), fault).into(),
    };
    let line = usize::try_from(row).ok().and_then(|row| batch.lines.get(row));
    let place = line.map_or_else(String::new, |line| format!("line {line}: "));
    let failure = Failure::request(format!("{input}: {place}column `{}`: {reason}", escape::name(column)));
    match &**error {
        BatchError::Unsorted { .. } => failure.with_hint("sort the input first, or leave out `--sort-key`"),
        _ => failure,
    }
}

fn show(told: &Told, json: bool, out: &mut Ui) -> Result<(), Failure> {
    if json {
        return out.json(told);
    }
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    let columns = told.columns.len() as u64;
    out.line(format_args!(
        "{}: {} row{}, {columns} column{}, {} row group{}, {} (from {}, ratio {})",
        told.path,
        told.rows,
        plural(told.rows),
        plural(columns),
        told.groups,
        plural(told.groups),
        human_size(told.bytes),
        human_size(told.input_bytes),
        ratio(told.input_bytes, told.bytes),
    ))
}
