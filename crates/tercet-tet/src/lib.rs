//! `.tet` files: chunked arrays at rest.
//!
//! A file holds named arrays of numbers, cut into chunks that are stored raw or compressed, and finds any chunk
//! without reading the others:
//!
//! ```text
//! 0            32              align8(40+B)                                payload_end
//! ┌────────────┬───────────────┬───────────────────┬─────────────┬─────────┬────────────────────┐
//! │ superblock │ directory (B) │ TIDX header, rows │ payloads …  │ columns │ spill, JSON, tail  │
//! └────────────┴───────────────┴───────────────────┴─────────────┴─────────┴────────────────────┘
//!                                                   raw or zstd             footer, with the integrity block
//! ```
//!
//! ```
//! use tercet_core::{DType, TensorView};
//! use tercet_tet::{File, Layout, WriterOptions};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("t2m.tet");
//! let mut layout = Layout::new();
//! let t2m = layout.dataset("t2m", DType::F32, [2, 3], [1, 3])?;
//! let mut writer = layout.create(&path, WriterOptions::new())?;
//! writer.chunk(t2m, &[0, 0], TensorView::from_slice(&[1, 3], &[1.0f32, 2.0, 3.0])?)?;
//! writer.chunk(t2m, &[1, 0], TensorView::from_slice(&[1, 3], &[4.0f32, 5.0, 6.0])?)?;
//! writer.seal()?;
//!
//! let file = File::open(&path)?;
//! let t2m = file.dataset("t2m")?;
//! let column = t2m.read(&t2m.select(":,1")?)?;
//! assert_eq!(column.as_slice::<f32>(), Some(&[2.0, 5.0][..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Every byte that is read is checked against the integrity block, if the file has one; files of other
//! implementations have none and are read unchecked ([`File::integrity_status`] tells).
//!
//! | module | the road |
//! |---|---|
//! | `wire` | bytes ↔ tables, no I/O |
//! | `catalog`, `integrity`, `rows` | open: catalogue, integrity block, row lookup |
//! | `file`, `chunk`, `read`, `export` | chunks and selections → values |
//! | `layout`, `writer`, `zones` | values → file |
//! | `query`, `plan`, `exec` | a question → chunks to read → an answer |
//! | `rewrite` | append, drop |
//! | `verify`, `repair`, `outline`, `summary` | what a file is, whether it is well, and what to do |
#![deny(clippy::disallowed_methods)]
#![cfg_attr(
    test,
    allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "test values are small")
)]

mod catalog;
mod chunk;
mod error;
#[expect(
    clippy::inline_always,
    reason = "kernels are compiled for each instruction set only where they are inlined"
)]
#[expect(
    clippy::explicit_counter_loop,
    clippy::needless_bitwise_bool,
    clippy::needless_pass_by_value,
    clippy::needless_range_loop,
    reason = "loops over lanes and tests without branches become vector code"
)]
#[expect(clippy::float_cmp, reason = "equal is what is meant")]
mod exec;
mod export;
mod file;
mod grid;
mod integrity;
mod layout;
mod metadata;
mod metadata_limits;
mod outline;
mod plan;
mod query;
mod read;
mod region;
#[cfg(any(unix, windows))]
mod repair;
#[cfg(any(unix, windows))]
mod rewrite;
mod rows;
mod stats;
mod summary;
mod verify;
mod wire;
mod writer;
mod zones;

pub use chunk::Chunk;
pub use error::{ChunkError, DatasetError, Error, ErrorKind, StaleBlockError, TargetError};
pub use export::Export;
pub use file::{Access, ChunkRef, Dataset, File, ReadOptions};
pub use grid::Grid;
pub use integrity::IntegrityStatus;
pub use layout::{Compression, DatasetId, Layout, LayoutError, Profile, WriterOptions};
pub use metadata::{Coord, DatasetInfo, FileInfo, HistoryRow, Metadata, unix_seconds};
pub use metadata_limits::LimitViolation;
pub use plan::{PlannedChunk, ReadPlan};
pub use query::alignment::{Alignment, AxisAlignment};
pub use query::answer::{Answer, Catalog, Execution, Explain, Found, Preview, Value};
pub use query::document::{Device, Gpus, UnknownDevice};
pub use query::error::{QueryError, QueryErrorKind};
pub use query::operation::{Kind, Method, Scalar};
pub use query::run::RunOptions;
pub use query::tree::Syntax;
pub use query::{Query, Target};
pub use region::Region;
#[cfg(any(unix, windows))]
pub use repair::{
    Action, ActionState, MissingChunk, REPAIRABLE, RepairMode, RepairOptions, RepairReport, SalvageOptions,
    SalvageReport, repair, repair_on, salvage, salvage_on,
};
#[cfg(any(unix, windows))]
pub use rewrite::Rewrite;
pub use stats::{Range, Stats};
pub use summary::{DatasetSummary, Summary, read_tet_summary_v1};
#[cfg(any(unix, windows))]
pub use verify::verify;
pub use verify::{Fix, Recommendation, Report, ReportSummary, VerifyOptions, verify_source};
pub use wire::ids::{Codec, MAX_RANK};
pub use wire::index::{MemoryBudget, Row};
pub use wire::superblock::Superblock;
pub use writer::Writer;
