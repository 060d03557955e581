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
//! use tercet_arrow::{Options, Table, Texts};
//!
//! let cities = RecordBatch::try_from_iter([
//!     ("city", Arc::new(StringArray::from(vec!["Bonn", "Ulm"])) as Arc<dyn arrow_array::Array>),
//!     ("people", Arc::new(Int64Array::from(vec![331, 126]))),
//! ])?;
//! let table = Table::from_arrow(&"cities".into(), &cities.schema(), &Options::new())?;
//! let columns = table.columns(&cities, 0)?;
//! let back = table.batch(&table.arrow_schema(Texts::Views), columns, 0)?;
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

mod dictionary;
pub mod error;
mod from_arrow;
mod guard;
mod half;
mod ipc;
mod kind;
pub mod note;
pub mod options;
mod parquet_file;
pub mod read;
mod source;
pub mod table;
mod texts;
mod to_arrow;
pub mod write;

pub use error::{Batch, Error, Reason, Refused};
pub use options::{Options, Roles, Timestamps};
pub use read::{Format, Rows, batches, detect};
pub use table::{Table, Texts};
pub use write::{Sink, Written};
