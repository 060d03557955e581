//! `tatami head`: the first rows as JSON.

use super::cat;
use super::columns::Columns;
use super::open::open_to_print;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
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
}

pub(crate) fn run(args: &Args, out: &mut Ui) -> Result<Outcome, Failure> {
    let file = open_to_print(args.input.source()?)?;
    let columns = args.columns.of(&file)?;
    cat::print(&file, &columns, args.rows, out)
}
