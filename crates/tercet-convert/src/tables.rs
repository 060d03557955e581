//! Tables of other formats as batches of `.tatami` columns.
//!
//! ```text
//!                            ┌▶ Sample ──▶ Dialect, types
//! bytes ──▶ Chunks of records┤
//!                            └▶ Cell (CSV, plain JSONL), Token (other JSONL) ──▶ Batch      on all threads
//! ```
//!
//! Without declared columns, dialect and types are inferred from a sample. A value that does not fit is never changed: the types
//! are then inferred again from all rows. Memory is bounded by a few chunks and the longest record.
//!
//! ```
//! use std::sync::Arc;
//! use tercet_convert::tables::{Error, TextFormat, TextOptions, TextTable};
//! use tercet_core::{progress::NoProgress, source::Memory};
//! use tercet_tatami::{Schema, Type};
//!
//! let csv = Memory::new("cities.csv", "name;people;since\nBonn;331;1244-03-18\nUlm;;1181-01-01\n");
//! let table = TextTable::open(&[Arc::new(csv)], TextFormat::Csv, TextOptions::new(), None, &NoProgress)?;
//! assert_eq!((table.fields()[1].kind, table.fields()[1].nullable), (Type::Int64, true));
//! assert_eq!(table.annotations(), [("arrow.type:since".to_owned(), "date32".to_owned())]);
//!
//! let schema = Schema::new(table.fields().to_vec()).unwrap();
//! let mut lines = Vec::new();
//! table.read(&schema, &NoProgress, &mut drop, |_, batch| {
//!     lines.extend(batch.lines);
//!     Ok::<_, Error>(())
//! })?;
//! assert_eq!(lines, [2, 3]);
//! # Ok::<(), Error>(())
//! ```

mod build;
mod cells;
mod chunks;
mod compress;
#[cfg(any(unix, windows))]
mod create;
mod csv;
mod decode;
mod dialect;
mod error;
mod format;
mod infer;
mod ingest;
mod json;
mod lines;
mod moment;
mod parsed;
mod plain_json;
mod reject;
mod sort;
mod stamp;
mod table;
mod text_table;
mod token;

pub use compress::Encoder;
#[cfg(any(unix, windows))]
pub use create::{IngestOptions, create};
pub use dialect::{CsvOptions, Dialect};
pub use error::{Error, ErrorKind, NonText};
pub use format::{Compression, Detected, TableFormat, detect};
pub use ingest::{IngestError, rejected_row, transfer};
pub use json::Nested;
pub use parsed::Batch;
pub use reject::{OnError, Reject};
pub use sort::{SortError, Sorter};
pub use table::{Rows, Table, TableError, TableOptions};
pub use text_table::{DeclaredColumns, Sample, TextFormat, TextOptions, TextTable};
