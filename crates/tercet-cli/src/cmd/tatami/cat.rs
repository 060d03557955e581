//! `tatami cat`: rows as JSON Lines.

use tercet::tatami::{Collection, Column, File, Scan};

use super::collection_scan::{self, deleted_rows, note_deleted};
use super::columns::{AsStored, Columns};
use super::filter::Where;
use super::open::open_to_print;
use super::warnings::warning;
use crate::args::LimitArgs;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::render::{RowWriter, pieces};
use crate::ui::{Ui, is_interrupted};

/// Maximum rows per batch.
const BATCH_ROWS: u64 = 16_384;
/// Target bytes per batch.
const BATCH_BYTES: u64 = 16 << 20;

const EXAMPLES: &str = "\
Examples:
  tatami cat crawl.tatami                          all rows, {\"url\":\"…\",\"status\":200}
  tatami cat crawl.tatami --columns url,status     two columns, in this order
  tatami cat crawl.tatami -n 5 | jq .url
  tatami cat crawl.tatami --where 'status = 404 or url prefix \"https://a\"'
  tatami cat crawl                                 all files of a collection

Filters compare columns with literals: = != < <= > >=, in (1, 2), between 1 and 2, prefix \"text\", contains for \
lists, is null, combined with and, or, not and parentheses. Nulls follow SQL three-valued logic.

Dates, times, decimals, UUIDs and JSON are printed by their logical type: \"2020-01-31\", 12.50, {\"a\": 1}; --stored \
prints the stored values. Other timestamps are microseconds since 1970. Bytes are printed as base64. NaN and infinities are printed \
as null, with a warning at the end.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("limit", |arg| arg.help("Print at most N rows; 0 prints all [default: 0]")))]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    columns: Columns,
    #[command(flatten)]
    filter: Where,
    #[command(flatten)]
    limit: LimitArgs,
    #[command(flatten)]
    values: AsStored,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    if let Some(collection) = collection_scan::collection(&args.input, out)? {
        let request = Request { columns: &args.columns, filter: &args.filter, values: args.values };
        return print_all(&collection, &args.input, &request, args.limit.or(0), out);
    }
    let file = open_to_print(args.input.source()?)?;
    let columns = args.columns.positions_in(&file)?;
    let limit = args.limit.or(0);
    let writer = RowWriter::new(args.values.typed_columns(&file, &columns));
    let mut scan = file.scan().column_positions(&columns)?.limit(limit);
    if let Some(filter) = args.filter.bind_to(&file)? {
        scan = scan.filter(&filter)?;
    }
    let outcome = print(scan, writer, out)?;
    note_deleted(file.name(), deleted_rows(&file)?, out)?;
    Ok(outcome)
}

/// What is printed of a collection.
pub(super) struct Request<'a> {
    pub(super) columns: &'a Columns,
    pub(super) filter: &'a Where,
    pub(super) values: AsStored,
}

/// Prints at most `limit` rows of all members of a collection.
pub(super) fn print_all(
    collection: &Collection,
    input: &Input,
    request: &Request<'_>,
    limit: u64,
    out: &mut Ui,
) -> Result<Outcome, Failure> {
    let Some(first) = collection_scan::first_of(collection)? else { return Ok(Outcome::Done) };
    let columns = request.columns.positions_in(&first)?;
    let mut writer = RowWriter::new(request.values.typed_columns(&first, &columns));
    let scan = collection_scan::scan(collection, &first, request.columns, request.filter)?;
    let mut left = limit;
    let scan = scan.with_batch_rows(batch_rows(&first, &columns)).limit(limit);
    for batch in scan.batches()? {
        if is_interrupted() {
            return Err(Failure::Interrupted);
        }
        let batch = batch?.batch;
        left -= put(&mut writer, &batch.columns, batch.rows.len(), left, out)?;
        if left == 0 {
            break;
        }
    }
    let name = collection_scan::name(&input.path);
    warn(&name, &writer, out)?;
    note_deleted(&name, collection_scan::deleted_in_all(&scan, collection, &first)?, out)?;
    Ok(Outcome::Done)
}

/// Prints the rows of a scan.
pub(super) fn print(scan: Scan, mut writer: RowWriter, out: &mut Ui) -> Result<Outcome, Failure> {
    let file = scan.file().clone();
    let rows = batch_rows(&file, scan.positions());
    for batch in scan.with_batch_rows(rows).batches() {
        if is_interrupted() {
            return Err(Failure::Interrupted);
        }
        let batch = batch?;
        put(&mut writer, &batch.columns, batch.rows.len(), u64::MAX, out)?;
    }
    warn(file.name(), &writer, out)?;
    Ok(Outcome::Done)
}

/// Prints at most `limit` rows of a batch; returns their number.
fn put(
    writer: &mut RowWriter,
    columns: &[Column],
    rows: usize,
    most: u64,
    out: &mut Ui,
) -> Result<u64, Failure> {
    let rows = rows.min(usize::try_from(most).unwrap_or(usize::MAX));
    for text in pieces(writer, columns, rows) {
        out.bytes()?.write_all(&text).map_err(|error| Failure::output(&error))?;
    }
    Ok(rows as u64)
}

/// The number of rows per batch.
pub(super) fn batch_rows(file: &File, columns: &[usize]) -> u64 {
    file.estimate_batch_rows(columns, BATCH_BYTES).min(BATCH_ROWS)
}

/// Warns about values that JSON cannot represent.
pub(super) fn warn(name: &str, writer: &RowWriter, out: &mut Ui) -> Result<(), Failure> {
    let not_finite = "NaN and infinities are printed as null";
    let not_utf8 = "invalid UTF-8 is printed with \\ufffd for each invalid byte";
    let warnings = [
        warning(name, writer, not_finite, |odd| odd.not_finite),
        warning(name, writer, not_utf8, |odd| odd.not_utf8),
    ];
    warnings.into_iter().flatten().try_for_each(|warning| out.note(warning))
}
