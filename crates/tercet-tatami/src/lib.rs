//! The `.tatami` format: columnar tables and full-text search.
//!
//! ```text
//! ┌────────┬──────────────┬───┬──────┬──────────────┬─────────┬────────┬─────────┐
//! │ header │ row group 0  │ … │ blob │ dictionaries │ indexes │ footer │ trailer │
//! │ 64     │ chunk, chunk │   │ runs │              │         │        │ 12      │
//! └────────┴──────────────┴───┴──────┴──────────────┴─────────┴────────┴─────────┘
//!            page, page …    each page and record: 32-byte header, payload
//! ```
//!
//! ```
//! use tercet_tatami::{Column, Expr, Field, File, Schema, Type, Values, Writer, WriterOptions};
//!
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path().join("cities.tatami");
//! let schema = Schema::new(vec![Field::new("id", Type::Int32), Field::new("people", Type::Int64)])?;
//! let mut writer = Writer::create(&path, schema, WriterOptions::new())?;
//! let ids = Column::new(Values::Int32(vec![1, 2, 3]));
//! let people = Column::new(Values::Int64(vec![320_000, 60_000, 2_400_000]));
//! writer.append(&[ids, people])?;
//! writer.finish()?;
//!
//! let file = File::open(&path)?;
//! let filter = Expr::parse("people > 100000")?;
//! for batch in file.scan().columns(&["id"])?.filter(&filter)?.batches() {
//!     assert_eq!(batch?.columns[0].values, Values::Int32(vec![1, 3]));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`schema`], [`mod@column`] | columns, their types and values |
//! | [`scalar`], [`logical_type`] | scalars, and logical types such as dates and decimals |
//! | [`mod@file`], [`read`], [`lookup`] | open files; read columns, rows and streams; look up keys |
//! | [`predicate`], [`scan`], [`aggregate`] | filter expressions, scans, aggregates by group |
//! | [`search`] | full-text search |
//! | [`collection`] | directories of files with a manifest |
//! | `change` | upsert and delete rows of files |
//! | [`writer`] | write files |
//! | [`mod@verify`], [`mod@salvage`] | verify files; copy the intact rows of damaged ones |
//! | [`summary`], [`outline`], [`mod@format`] | metadata, byte layout, structures of header and footer |
//! | [`error`], [`region`] | errors and file regions |
#![cfg_attr(test, allow(clippy::cast_possible_truncation, reason = "test values are small"))]

pub mod aggregate;
mod blob;
mod block_codec;
#[cfg(any(unix, windows))]
pub mod change;
mod chunk;
pub mod collection;
pub mod column;
mod dictionary;
pub mod error;
pub mod file;
pub mod format;
pub mod logical_type;
pub mod lookup;
pub mod outline;
mod page;
mod pool;
pub mod predicate;
mod prune;
pub mod read;
pub mod region;
pub mod salvage;
pub mod scalar;
pub mod scan;
pub mod schema;
pub mod search;
mod stats;
pub mod summary;
pub mod verify;
mod wire;
pub mod writer;

pub use chunk::PageEntry;
#[cfg(any(unix, windows))]
pub use collection::Collection;
pub use column::{Bitmap, Column, Lists, Strings, Values};
pub use error::{BatchError, Error, ErrorKind, OptionsError};
pub use file::{Access, File, ReadOptions};
pub use format::{Codec, Encoding};
pub use logical_type::LogicalType;
pub use lookup::KeyPosition;
pub use predicate::Expr;
pub use region::Region;
pub use salvage::{SalvageOptions, SalvageReport, salvage};
pub use scalar::Scalar;
pub use scan::Scan;
pub use schema::{Field, Schema, SchemaError, Type};
pub use summary::Summary;
pub use tercet_core::OutlineOptions;
pub use verify::{Report, VerifyOptions, verify};
pub use writer::{Profile, Provenance, Writer, WriterOptions, Written};
