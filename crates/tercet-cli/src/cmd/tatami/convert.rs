//! `tatami convert`: convert between table formats.

use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use serde::Serialize;
use tercet::arrow::Timestamps;
use tercet::core::num::counted;
use tercet::tatami::{Column, Field, LogicalType, Type};

use super::columns::Columns;
use super::create::options::{Layout, WriteArgs};
use super::create::roles::Roles;
use super::create::schema::Declared;
use super::filter::Where;
use crate::args::OutputArgs;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::ui::Ui;

mod format;
mod input;
mod output;

use format::Format;
use input::{InputOptions, Open};
use output::{Counts, Target};

const EXAMPLES: &str = "\
Examples:
  tatami convert crawl.parquet crawl.tatami
  tatami convert crawl.parquet for-others.tatami --profile interop --raw-timestamps
  tatami convert crawl.tatami errors.parquet --where 'status >= 400' --columns url,status
  tatami convert cities.csv cities.arrow --schema name:string,people:uint32:nullable
  tatami convert crawl.tatami - --to arrow-stream | other-program

Types without a .tatami equivalent (dates, times of day, decimals, timestamps not in microseconds, fixed-size binary, \
dictionaries) are stored exactly in another type and restored by a logical type annotation. Unsupported columns are \
listed before anything is written.

Columns of Parquet and Arrow input have default roles by name: markdown, body and html are stored as blobs; doc_id, url \
and digest get bloom filters. An empty list disables this: --bloom \"\".";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Input file or URL; `-` reads standard input
    #[arg(value_name = "IN")]
    from: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
    /// Output format [default: by file extension]
    #[arg(long, value_name = "FORMAT")]
    to: Option<Format>,
    /// Input format [default: detected from content and file extension]
    #[arg(long, value_name = "FORMAT")]
    from_format: Option<Format>,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    filter: Where,
    #[command(flatten)]
    columns: Columns,
    /// Schema of CSV or JSONL input: `name:type[:nullable],…`
    #[arg(long, value_name = "COLUMNS", help_heading = "Columns")]
    schema: Option<Declared>,
    #[command(flatten)]
    roles: Roles,
    /// Copy timestamp values without unit conversion, like the reference implementation
    #[arg(long, help_heading = "Columns")]
    raw_timestamps: bool,
    /// Floor timestamps to microseconds instead of rejecting higher precision
    #[arg(long, help_heading = "Columns", conflicts_with = "raw_timestamps")]
    floor_timestamps: bool,
    /// Write stored values instead of logical types (dates, times, decimals) to CSV and JSONL
    #[arg(long, help_heading = "Columns")]
    stored: bool,
    /// Rows per batch [default: about 16 MiB of rows, 4096 rows with --profile interop]
    #[arg(long, value_name = "ROWS", help_heading = "Columns", value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    batch: Option<u32>,
    #[command(flatten)]
    layout: Layout,
}

/// The summary of a conversion.
#[derive(Debug, Serialize)]
struct ConvertJson {
    input: String,
    input_format: Format,
    input_bytes: u64,
    output: String,
    output_format: Format,
    output_bytes: u64,
    rows: u64,
    columns: Vec<Field>,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let to = Format::for_output(args.to, args.output.path())?;
    let open = if to.is_text() { Output::open_for_text } else { Output::open };
    let output = open(args.output.path(), args.write.force.force)?;
    let is_stdout = matches!(output, Output::Stdout);
    if is_stdout && args.write.json.json {
        return Err(Failure::request("cannot write both the file and JSON to standard output"));
    }
    output.must_not_be(&args.from)?;
    if to != Format::Tatami
        && let Some(option) = args.layout.is_interop().then_some("--profile").or_else(|| args.roles.given())
    {
        return Err(Failure::request(format!("`{option}` applies to .tatami output only")));
    }
    if args.stored && (to == Format::Tatami || to.in_arrow().is_some()) {
        return Err(Failure::request("`--stored` applies to CSV and JSONL output only"));
    }
    let source = args.write.input(&args.from).source()?;
    let input_bytes = source.len();
    let from = Format::detect(args.from_format, &args.from, &*source)?;
    let input_options = InputOptions {
        filter: &args.filter,
        columns: &args.columns,
        declared: args.schema.as_ref(),
        roles: &args.roles,
        timestamps: timestamps(args),
        into_tatami: to == Format::Tatami,
        interop: to == Format::Tatami && args.layout.is_interop(),
        batch: args.batch.map(|rows| rows as usize),
    };
    let table = input::open(source, from, &input_options, out)?;
    let logical_types = logical_types(args, &table);
    let target = Target::create(output, to, &table, &logical_types, &args.layout, args.write.force.force)?;
    let (shared, columns) = (table.table().clone(), table.table().schema().fields().to_vec());
    let bar = out.bar("converting", input_bytes);
    let (sender, receiver) = sync_channel::<Vec<Column>>(2);
    let (filled, cut) = std::thread::scope(|scope| {
        let bar = &bar;
        let reading = std::thread::Builder::new().spawn_scoped(scope, move || {
            table.read(bar, |columns| {
                // The receiver is gone after a write error, which is reported instead.
                sender.send(columns).map_err(|_| Failure::Interrupted)
            })
        });
        let reading = reading.map_err(Failure::no_thread)?;
        let written = target.fill(receiver);
        let read = reading.join().unwrap_or_else(|cause| std::panic::resume_unwind(cause));
        match (written, read) {
            (Ok(filled), Ok(cut)) => Ok((filled, cut)),
            // The incomplete output is discarded.
            (Ok(_), Err(failure)) | (Err(failure), _) => Err(failure),
        }
    })?;
    let counts = filled.finish(out)?;
    drop(bar);
    let Counts { rows, bytes: output_bytes, warnings } = counts;
    for warning in cut.into_iter().chain(warnings) {
        out.note(warning)?;
    }
    let summary = ConvertJson {
        input: shared.name().to_string(),
        input_format: from,
        input_bytes,
        output: if is_stdout { "-".to_owned() } else { crate::output::display_path(args.output.path()) },
        output_format: to,
        output_bytes,
        rows,
        columns,
    };
    show(&summary, args.write.json.json, is_stdout, out)?;
    Ok(Outcome::Done)
}

/// The logical types of columns in text output.
fn logical_types(args: &Args, table: &Open) -> Vec<Option<LogicalType>> {
    let fields = table.table().schema().fields();
    if args.stored {
        return vec![None; fields.len()];
    }
    let noted = LogicalType::for_fields(fields, table.pairs());
    // Raw numbers have an unknown unit.
    let natural = |field: &Field| {
        (field.scalar() == Type::TimestampMicros && !args.raw_timestamps).then_some(LogicalType::Timestamp)
    };
    noted.into_iter().zip(fields).map(|(noted, field)| noted.or_else(|| natural(field))).collect()
}

fn timestamps(args: &Args) -> Timestamps {
    match (args.raw_timestamps, args.floor_timestamps) {
        (true, _) => Timestamps::Raw,
        (_, true) => Timestamps::Floor,
        _ => Timestamps::Exact,
    }
}

/// Compares sizes: `12.5% smaller`, `3.4 times as large`.
#[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
fn compared(before: u64, after: u64) -> String {
    let ratio = after as f64 / (before as f64).max(1.0);
    match ratio {
        ..=1.0 => format!("{:.1}% smaller", (1.0 - ratio) * 100.0),
        1.0..2.0 => format!("{:.1}% larger", (ratio - 1.0) * 100.0),
        _ => format!("{ratio:.1} times as large"),
    }
}

fn show(summary: &ConvertJson, json: bool, is_stdout: bool, out: &mut Ui) -> Result<(), Failure> {
    if json {
        return out.json(summary);
    }
    let label = |format: Format| format!("{}:", format.name());
    let text = format!(
        "converted {}, {}\n  {:<8} {}\n  {:<8} {} ({})",
        counted(summary.rows, "row"),
        counted(summary.columns.len() as u64, "column"),
        label(summary.input_format),
        counted(summary.input_bytes, "byte"),
        label(summary.output_format),
        counted(summary.output_bytes, "byte"),
        compared(summary.input_bytes, summary.output_bytes),
    );
    if is_stdout { out.side_summary(text) } else { out.summary(text) }
}

/// The name of a path for messages.
fn named(path: &Path) -> std::sync::Arc<str> {
    path.to_string_lossy().into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_compared() {
        assert_eq!(compared(1000, 500), "50.0% smaller");
        assert_eq!(compared(1000, 1000), "0.0% smaller");
        assert_eq!(compared(1000, 1255), "25.5% larger");
        assert_eq!(compared(10, 340), "34.0 times as large");
        assert_eq!(compared(0, 3), "3.0 times as large");
    }
}
