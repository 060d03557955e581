//! Text rendering: tables, trees, sizes, times, rows as JSON and CSV.

#[cfg(feature = "arrow")]
mod csv_rows;
mod excerpt;
mod json_rows;
mod number;
mod rows;
mod shell;
mod size;
mod table;
mod time;
mod tree;

#[cfg(feature = "arrow")]
pub(crate) use csv_rows::RecordWriter;
pub(crate) use excerpt::Excerpt;
pub(crate) use json_rows::RowWriter;
pub(crate) use number::{exact, rounded, significant};
pub(crate) use rows::{LossCounts, Rows, pieces};
pub(crate) use shell::shell_quoted;
pub(crate) use size::{human_size, parse_size, ratio, size_and_bytes};
pub(crate) use table::Table;
pub(crate) use time::utc;
pub(crate) use tree::print_outline;
