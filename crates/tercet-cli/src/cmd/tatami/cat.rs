//! `tatami cat`: rows as JSON.

use rayon::prelude::*;
use tercet::core::escape;
use tercet::tatami::{Column, Expr, File};

use super::columns::{Columns, fields};
use super::condition::Where;
use super::open::open_to_print;
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
  tatami cat crawl.tatami --where 'status = 404 or url prefix \"https://a\"'

Conditions compare columns with values: = != < <= > >=, in (1, 2), between 1 and 2, prefix \"text\", contains for \
lists, is null, joined with and, or, not and parentheses. A comparison with null is neither true nor false.

Bytes and blobs are printed as base64. NaN and infinities, which JSON does not have, are printed as null \
and counted in a warning at the end.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    columns: Columns,
    #[command(flatten)]
    condition: Where,
    /// Print at most N rows; 0 means all
    #[arg(long, value_name = "N", default_value_t = 0)]
    limit: u64,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let file = open_to_print(args.input.source()?)?;
    let columns = args.columns.of(&file)?;
    let limit = if args.limit == 0 { u64::MAX } else { args.limit };
    match args.condition.of(&file)? {
        Some(condition) => print_where(&file, &columns, &condition, limit, out),
        None => print(&file, &columns, limit, out),
    }
}

/// Prints the first rows that fulfil a condition.
fn print_where(
    file: &File,
    columns: &[usize],
    condition: &Expr,
    limit: u64,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let mut writer = RowWriter::new(fields(file, columns));
    let scan = file.scan().column_positions(columns)?.filter(condition)?;
    let mut left = limit;
    for batch in scan.with_batch_rows(batch_rows(file, columns)).batches() {
        if is_interrupted() {
            return Err(Failure::Interrupted);
        }
        let batch = batch?;
        let rows = batch.rows.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        for text in pieces(&mut writer, &batch.columns, rows) {
            out.bytes()?.write_all(&text).map_err(|error| Failure::output(&error))?;
        }
        left -= rows as u64;
        if left == 0 {
            break;
        }
    }
    warn(file, &writer, out)?;
    Ok(Outcome::Done)
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
        let batch = batch?;
        let rows = batch.first().map_or(0, Column::len);
        for text in pieces(&mut writer, &batch, rows) {
            out.bytes()?.write_all(&text).map_err(|error| Failure::output(&error))?;
        }
    }
    warn(file, &writer, out)?;
    Ok(Outcome::Done)
}

/// How many rows are printed at a time.
pub(super) fn batch_rows(file: &File, columns: &[usize]) -> u64 {
    file.rows_within(columns, BATCH_BYTES).min(BATCH_ROWS)
}

/// The first rows of a batch as text, made on all threads and handed over in order.
pub(super) fn pieces(writer: &mut RowWriter, batch: &[Column], rows: usize) -> Vec<Vec<u8>> {
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
