//! Read, write, query, verify and repair `.tet` files: chunked n-dimensional arrays.
//!
//! A file contains named datasets. Each dataset is an array cut into chunks, stored raw or compressed with Zstandard;
//! any chunk is found without reading the others:
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
//! use tercet_tet::{File, Layout, Writer, WriterOptions};
//!
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path().join("t2m.tet");
//! let mut layout = Layout::new();
//! let t2m = layout.dataset("t2m", DType::F32, [2, 3], [1, 3])?;
//! let mut writer = Writer::create(&path, layout, WriterOptions::new())?;
//! writer.chunk(t2m, &[0, 0], TensorView::from_slice(&[1, 3], &[1.0f32, 2.0, 3.0])?)?;
//! writer.chunk(t2m, &[1, 0], TensorView::from_slice(&[1, 3], &[4.0f32, 5.0, 6.0])?)?;
//! writer.finish()?;
//!
//! let file = File::open(&path)?;
//! let t2m = file.dataset("t2m")?;
//! let column = t2m.select().slices(":,1")?.read()?;
//! assert_eq!(column.as_slice::<f32>(), Some(&[2.0, 5.0][..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! All bytes are checked against the integrity block. Files of other implementations have none and are read unchecked;
//! see [`File::integrity_status`]. `examples/arrays.rs` shows more of the API.
//!
//! | module | contents |
//! |---|---|
//! | `wire` | byte layout of every table, no I/O |
//! | `catalog`, `integrity`, `rows` | opening: catalog, integrity block, row lookup |
//! | `file`, `chunk`, `read`, `export` | reading chunks and selections |
//! | `layout`, `writer`, `rounding`, `zones` | writing files |
//! | `compute`, `cf`, `plan`, `exec` | typed computations: requests, missing and packed values, read plans, execution |
//! | `query`, `compat` | query documents, converted to requests; answers in the JSON of the reference implementation |
//! | `results` | results with names, coordinates and units, and their JSON |
//! | `rewrite`, `merge`, `stored` | changing and merging files: stored chunks are copied |
//! | `advise` | sizes and speeds of a dataset with other compressions and roundings |
//! | `verify`, `repair`, `outline`, `summary` | verification, repair, salvage, byte layout, contents |
#![deny(clippy::disallowed_methods)]
#![cfg_attr(
    test,
    allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "test values are small")
)]

mod advise;
mod attribute;
mod catalog;
mod cf;
mod chunk;
pub mod compat;
mod compute;
mod error;
#[expect(clippy::inline_always, reason = "kernels must be inlined to be compiled for each instruction set")]
#[expect(
    clippy::needless_bitwise_bool,
    clippy::needless_pass_by_value,
    reason = "branch-free tests are vectorized"
)]
#[expect(clippy::float_cmp, reason = "exact comparison is intended")]
mod exec;
mod export;
mod file;
mod grid;
mod integrity;
mod layout;
mod merge;
mod metadata;
mod metadata_limits;
mod outline;
mod plan;
mod query;
mod read;
mod region;
#[cfg(any(unix, windows))]
mod repair;
mod results;
#[cfg(any(unix, windows))]
mod rewrite;
mod rounding;
mod rows;
mod stats;
mod stored;
mod summary;
mod verified;
mod verify;
mod wire;
mod writer;
mod zones;

pub use advise::{Advice, Measured, Trial, advise};
pub use attribute::{AttrError, AttrType, AttrValue};
pub use cf::CfEncoding;
pub use chunk::Chunk;
pub use compute::{
    Axis, BlockMeans, Comparison, Computed, CoordinateValues, Coordinates, Dim, Execution, ExpressionError,
    Group, Label, LabelSelection, LazyValues, Outcome, OutputFile, Plan, PositionRange, Preview, Reduce,
    Reduced, Request, Select, TimePart, Transform, Transformed, Weights, Window, missing_values,
};
pub use error::{ChunkError, DatasetError, Error, ErrorKind, StaleBlockError, TargetError};
pub use export::Export;
pub use file::{ChunkRef, Dataset, File, ReadOptions};
pub use grid::Grid;
pub use integrity::IntegrityStatus;
pub use layout::{
    Append, AppendError, Appended, Compression, CompressionChoice, CoordinateChanges, DatasetId, EditError,
    Layout, LayoutError, Profile, Repack, WriterOptions,
};
pub use merge::{Merge, MergeReport};
pub use metadata::{Coord, DatasetInfo, FileInfo, HistoryRow, Metadata, unix_seconds};
pub use metadata_limits::LimitViolation;
pub use plan::{PlannedChunk, ReadPlan};
pub use query::alignment::{Alignment, AxisAlignment};
pub use query::error::{QueryError, QueryErrorKind};
pub use query::operation::{Kind as Op, Method, Scalar, UnknownOp};
pub use query::tree::Syntax;
pub use query::{Query, QueryResult, RunOptions, Target};
pub use region::Region;
#[cfg(any(unix, windows))]
pub use repair::{
    Action, ActionState, MissingChunk, REPAIRABLE, RepairMode, RepairOptions, RepairReport, SalvageOptions,
    SalvageReport, plan_repair, repair, repair_on, safe_repairs, salvage, salvage_file, salvage_file_on,
};
pub use results::{AxisPositions, ResultArray, ResultDim, ResultValues, Results, StoredCoordinates};
#[cfg(any(unix, windows))]
pub use rewrite::Rewrite;
pub use rounding::{Rounding, RoundingError};
pub use stats::{Range, Stats};
pub use stored::NewValues;
pub use summary::{CoordinateSource, DatasetSummary, Summary, read_tet_summary_v1};
pub use tercet_core::source::Access;
pub use tercet_core::{DType, OutlineOptions, Tensor};
pub use verify::{
    Fix, FixAction, Recommendation, Report, ReportDetails, ReportSummary, VerifyOptions, verify,
};
pub use wire::ids::{Codec, MAX_RANK};
pub use wire::index::{MemoryBudget, Row};
pub use wire::superblock::Superblock;
pub use writer::{ChunkEncoder, EncodedChunk, Writer, Written};
