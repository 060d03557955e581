//! `tatami head`: the first rows as JSON Lines.

use super::cat;
use super::collection_scan;
use super::columns::{AsStored, Columns};
use super::filter::Where;
use super::open::open_to_print;
use crate::args::LimitArgs;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::render::RowWriter;
use crate::ui::Ui;

/// Rows printed by default.
const ROWS: u64 = 10;

#[derive(Debug, clap::Args)]
#[command(mut_arg("limit", |arg| arg.alias("rows").help("Print at most N rows; 0 prints all [default: 10]")))]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    limit: LimitArgs,
    #[command(flatten)]
    columns: Columns,
    #[command(flatten)]
    values: AsStored,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    if let Some(collection) = collection_scan::collection(&args.input, out)? {
        let request = cat::Request { columns: &args.columns, filter: &Where::default(), values: args.values };
        return cat::print_all(&collection, &args.input, &request, args.limit.or(ROWS), out);
    }
    let file = open_to_print(args.input.source()?)?;
    let columns = args.columns.positions_in(&file)?;
    let writer = RowWriter::new(args.values.typed_columns(&file, &columns));
    let scan = file.scan().column_positions(&columns)?.limit(args.limit.or(ROWS));
    cat::print(scan, writer, out)
}
