//! `tatami convert`: convert between table formats.

use std::path::PathBuf;

use serde::Serialize;
use tercet::arrow::Timestamps;
use tercet::core::num::counted;
use tercet::tatami::Field;

use super::columns::Columns;
use super::create::options::{Text, WriteArgs};
use super::create::roles::Roles;
use super::create::schema::SchemaArgs;
use super::filter::Where;
use super::ingest::format::Format;
use super::ingest::{self, Request};
use super::layout::Layout;
use crate::args::OutputArgs;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::ui::Ui;

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
    /// Input file, directory, glob pattern or URL; `-` reads standard input
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
    #[command(flatten)]
    text: Text,
    #[command(flatten)]
    schema: SchemaArgs,
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
    /// Records and values that could not be read.
    rejected: u64,
    columns: Vec<Field>,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let to = Format::for_output(args.to, args.output.path())?;
    let declared = args.schema.declared()?;
    let open = if to.is_text() { Output::open_for_text } else { Output::open };
    let output = open(args.output.path(), args.write.force.force || args.text.dry_run)?;
    let is_stdout = matches!(output, Output::Stdout);
    if is_stdout && args.write.json.json && !args.text.dry_run {
        return Err(Failure::request("cannot write both the file and JSON to standard output"));
    }
    if to != Format::Tatami
        && let Some(option) = args.layout.is_interop().then_some("--profile").or_else(|| args.roles.given())
    {
        return Err(Failure::request(format!("`{option}` applies to .tatami output only")));
    }
    if args.stored && !to.is_text() {
        return Err(Failure::request("`--stored` applies to CSV and JSONL output only"));
    }
    let request = Request {
        from: std::slice::from_ref(&args.from),
        from_format: args.from_format,
        to,
        write: &args.write,
        text: &args.text,
        filter: &args.filter,
        columns: &args.columns,
        declared: declared.as_ref(),
        roles: &args.roles,
        layout: &args.layout,
        timestamps: timestamps(args),
        stored: args.stored,
        batch: args.batch.map(|rows| rows as usize),
    };
    let Some(done) = ingest::run(&request, output, out)? else { return Ok(Outcome::Done) };
    let summary = ConvertJson {
        input: done.inputs.join(", "),
        input_format: done.from,
        input_bytes: done.input_bytes,
        output: if is_stdout { "-".to_owned() } else { crate::output::display_path(args.output.path()) },
        output_format: to,
        output_bytes: done.counts.bytes,
        rows: done.counts.rows,
        rejected: done.rejected,
        columns: done.counts.columns,
    };
    show(&summary, args.write.json.json, is_stdout, out)?;
    Ok(Outcome::Done)
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
