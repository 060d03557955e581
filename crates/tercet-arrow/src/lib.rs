//! Tables of Arrow, Parquet and `.tatami`, each into the others.
//!
//! ```text
//!  Parquet ─┐                                    ┌─▶ Parquet
//!  Arrow   ─┼─▶ RecordBatch ─▶ Column ─▶ .tatami ─▶ Column ─▶ RecordBatch ─┼─▶ Arrow
//! ```
//!
//! A [`Table`] knows the columns on both sides. Values keep every bit: types that a `.tatami` file does not have (dates, decimals, times
//! of other units, bytes of fixed length, dictionaries) are kept in one that holds them exactly, and a note in the footer of the
//! file brings them back, with what Arrow keeps beside columns and tables. What cannot be kept is refused by name before
//! anything is written.
//!
//! ```
//! use std::sync::Arc;
//! use arrow_array::{Int64Array, RecordBatch, StringArray};
//! use tercet_arrow::{Options, Table, StringLayout};
//!
//! let cities = RecordBatch::try_from_iter([
//!     ("city", Arc::new(StringArray::from(vec!["Bonn", "Ulm"])) as Arc<dyn arrow_array::Array>),
//!     ("people", Arc::new(Int64Array::from(vec![331, 126]))),
//! ])?;
//! let table = Table::from_arrow(&"cities".into(), &cities.schema(), &Options::new())?;
//! let columns = table.columns(&cities, 0)?;
//! let back = table.batch(&table.arrow_schema(StringLayout::View), columns, 0)?;
//! assert_eq!(back.column(1), cities.column(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`table`] | columns on both sides |
//! | [`options`] | which columns get which roles, what becomes of times |
//! | [`read`] | Parquet and Arrow files as rows |
//! | [`mod@write`] | rows as Parquet and Arrow files |
//! | [`note`] | types that come back by a note |

pub mod annotation;
mod arrow_type;
mod dictionary;
pub mod error;
mod from_arrow;
mod half;
mod ipc;
pub mod options;
mod parquet_file;
pub mod read;
mod source;
mod string_arrays;
pub mod table;
mod to_arrow;
mod unwind;
pub mod write;

pub use error::{Batch, ColumnRole, ColumnRoleError, Error, UnsupportedColumn, ValueError};
pub use options::{ColumnOptions, Options, Timestamps};
pub use read::{Format, TableReader, batches, detect};
pub use table::{StringLayout, Table};
pub use write::{TableWriter, Written};
