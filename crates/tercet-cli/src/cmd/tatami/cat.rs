//! `tatami cat`: rows as JSON.

use rayon::prelude::*;
use tercet::core::escape;
use tercet::tatami::{Column, File};

use super::columns::{Columns, fields};
use super::open::{open_to_print, total};
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::render::{Odd, RowWriter};
use crate::ui::{Ui, WARN, is_interrupted, paint};

/// Rows that are printed at a time, unless they are large.
const BATCH_ROWS: u64 = 16_384;
/// Bytes of values that are in memory at a time, unless one row has more.
const BATCH_BYTES: u64 = 16 << 20;
/// Rows that one thread prints.
const PIECE_ROWS: usize = 1024;

const EXAMPLES: &str = "\
Examples:
  tatami cat crawl.tatami                          every row, {\"url\":\"…\",\"status\":200}
  tatami cat crawl.tatami --columns url,status     some columns, in this order
  tatami cat crawl.tatami --limit 5 | jq .url

Bytes and blobs are printed as base64. NaN and infinities, which JSON does not have, are printed as null \
and counted in a warning at the end.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    columns: Columns,
    /// Print at most N rows; 0 means all
    #[arg(long, value_name = "N", default_value_t = 0)]
    limit: u64,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let file = open_to_print(args.input.source()?)?;
    let columns = args.columns.of(&file)?;
    print(&file, &columns, if args.limit == 0 { u64::MAX } else { args.limit }, out)
}

/// Prints the first rows of some columns.
pub(super) fn print(file: &File, columns: &[usize], limit: u64, out: &mut Ui) -> Result<Outcome, Failure> {
    let mut writer = RowWriter::new(fields(file, columns));
    let batch_rows = batch_rows(file, columns).min(limit.max(1));
    let stream = file.stream(columns, usize::try_from(batch_rows).unwrap_or(usize::MAX))?.with_limit(limit);
    for batch in stream {
        if is_interrupted() {
            return Err(Failure::Interrupted);
        }
        for text in pieces(&mut writer, &batch?) {
            out.bytes()?.write_all(&text).map_err(|error| Failure::output(&error))?;
        }
    }
    warn(file, &writer, out)?;
    Ok(Outcome::Done)
}

/// How many rows fit into memory together, as far as their number and their bytes tell.
fn batch_rows(file: &File, columns: &[usize]) -> u64 {
    let groups = file.footer().groups.iter();
    let chunks = groups.flat_map(|group| columns.iter().filter_map(|column| group.chunks.get(*column)));
    let in_pages = total(chunks.map(|chunk| chunk.raw_bytes));
    let blobs = file.footer().blobs.iter();
    let blobs = blobs.filter(|blob| columns.iter().any(|column| *column as u64 == blob.column));
    let in_runs = total(blobs.flat_map(|blob| &blob.runs).map(|run| run.raw_bytes));
    let per_row = in_pages.saturating_add(in_runs) / file.rows().max(1);
    (BATCH_BYTES / per_row.max(1)).clamp(1, BATCH_ROWS)
}

/// The rows of a batch as text, made on all threads and handed over in order.
fn pieces(writer: &mut RowWriter, batch: &[Column]) -> Vec<Vec<u8>> {
    let rows = batch.first().map_or(0, Column::len);
    let fresh = writer.cleared();
    let made: Vec<(RowWriter, Vec<u8>)> = (0..rows.div_ceil(PIECE_ROWS))
        .into_par_iter()
        .map(|piece| {
            let (mut writer, mut text) = (fresh.clone(), Vec::new());
            let start = piece * PIECE_ROWS;
            writer.rows(batch, start, rows.min(start + PIECE_ROWS), &mut text);
            (writer, text)
        })
        .collect();
    let mut texts = Vec::with_capacity(made.len());
    for (counted, text) in made {
        writer.add(&counted);
        texts.push(text);
    }
    texts
}

/// Tells on standard error about values that were not printed as they are.
pub(super) fn warn(file: &File, writer: &RowWriter, out: &mut Ui) -> Result<(), Failure> {
    let (warning, name) = (paint(WARN, "warning:"), escape::name(file.name()).into_owned());
    let list = |count: &dyn Fn(Odd) -> u64| {
        let odd = writer.odd().map(|(column, odd)| (column, count(odd))).filter(|(_, count)| *count > 0);
        let told: Vec<String> =
            odd.map(|(column, count)| format!("{count} in `{}`", escape::name(column))).collect();
        (!told.is_empty()).then(|| told.join(", "))
    };
    if let Some(told) = list(&|odd| odd.not_finite) {
        out.note(format_args!("{warning} {name}: NaN and infinities are printed as null: {told}"))?;
    }
    if let Some(told) = list(&|odd| odd.not_utf8) {
        let said = "text that is not valid UTF-8 is printed with \\ufffd for each wrong byte";
        out.note(format_args!("{warning} {name}: {said}: {told}"))?;
    }
    Ok(())
}
