//! `tatami head`: the first rows as JSON Lines.

use super::cat;
use super::columns::{AsStored, Columns};
use super::open::open_to_print;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::render::RowWriter;
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Print N rows
    #[arg(short = 'n', long = "rows", value_name = "N", default_value_t = 10)]
    rows: u64,
    #[command(flatten)]
    columns: Columns,
    #[command(flatten)]
    values: AsStored,
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let file = open_to_print(args.input.source()?)?;
    let columns = args.columns.positions_in(&file)?;
    let writer = RowWriter::new(args.values.typed_columns(&file, &columns));
    cat::print(&file, &columns, args.rows, writer, out)
}
