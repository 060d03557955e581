//! Conversion between Arrow, Parquet and `.tatami` tables.
//!
//! ```text
//!  Parquet ─┐                                    ┌─▶ Parquet
//!  Arrow   ─┼─▶ RecordBatch ─▶ Column ─▶ .tatami ─▶ Column ─▶ RecordBatch ─┼─▶ Arrow
//! ```
//!
//! A [`Table`] maps the columns of both sides. Values are preserved bit for bit: types that `.tatami` does not have (dates, decimals, other
//! time units, fixed-size binary, dictionaries) are stored exactly in another type, and an annotation in the footer restores
//! them, together with the metadata of Arrow fields and schemas. Unsupported columns are reported by name before anything is
//! written.
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
//! | module | content |
//! |---|---|
//! | [`table`] | column mapping between Arrow and `.tatami` |
//! | [`options`] | column roles, timestamp conversion, limits |
//! | [`read`] | reader of Parquet and Arrow IPC files |
//! | [`mod@write`] | writer of Parquet and Arrow IPC files |
//! | [`annotation`] | footer annotations of logical types |

pub mod annotation;
mod arrow_type;
mod dictionary;
pub mod error;
mod from_arrow;
mod half;
mod ipc;
mod nested;
pub mod options;
mod parquet_file;
mod parquet_writer;
pub mod read;
mod source;
mod string_arrays;
pub mod table;
mod to_arrow;
mod unwind;
pub mod write;

pub use error::{
    Batch, ColumnRole, ColumnRoleError, Error, ErrorKind, NoRegion, UnsupportedColumn, ValueError,
};
pub use options::{ColumnOptions, Nested, Options, Timestamps};
pub use read::{Format, TableReader, batches, detect};
pub use table::{StringLayout, Table};
pub use write::{TableWriter, Written};
