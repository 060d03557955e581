//! What can go wrong with a `.tet` file.

use std::fmt;

use tercet_codec::CodecError;
use tercet_core::checksum::Mismatch;
use tercet_core::limits::LimitExceeded;
use tercet_core::progress::Cancelled;
use tercet_core::tensor::{OutOfMemory, SelectionError};
use tercet_core::{Class, Diagnose, Hint, Malformed, SourceError, Span, escape};
use thiserror::Error;

use crate::Region;
use crate::layout::LayoutError;

/// A fault together with the name of its file.
pub type Error = tercet_core::Error<ErrorKind>;

/// What went wrong.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The bytes break the rules of the format.
    #[error(transparent)]
    Malformed(#[from] Malformed<Region>),
    /// A checksum of the integrity block differs: the region changed since it was written.
    #[error("{region} (bytes {span}) is damaged or was changed\n  {mismatch}")]
    Checksum {
        /// What changed.
        region: Region,
        /// Its bytes.
        span: Span,
        /// Stored and computed checksum.
        mismatch: Mismatch,
    },
    /// The integrity block does not belong to this file as it is now.
    #[error("{region} (bytes {span}) is damaged or was changed\n  {reason}")]
    StaleIntegrityBlock {
        /// What does not fit.
        region: Region,
        /// Its bytes.
        span: Span,
        /// How it was noticed.
        reason: StaleBlockError,
    },
    /// Parts of the integrity block cannot be used, so a change cannot keep what they say.
    #[error("the integrity block cannot be used as a whole: {}", escape::name(problems))]
    PartialIntegrityBlock {
        /// What is wrong with it.
        problems: Box<str>,
    },
    /// A chunk cannot be had.
    #[error(
        "dataset `{}`, chunk {} (row {row}, bytes {span}): {reason}",
        escape::name(dataset),
        Coords(tile)
    )]
    Chunk {
        /// The dataset.
        dataset: Box<str>,
        /// Grid coordinates of the chunk.
        tile: Box<[u64]>,
        /// The number of its index row.
        row: u64,
        /// Its stored bytes.
        span: Span,
        /// What is wrong with it.
        reason: ChunkError,
    },
    /// The index has no row for a chunk.
    #[error("dataset `{}`: chunk {} is missing from the index", escape::name(dataset), Coords(tile))]
    MissingChunk {
        /// The dataset.
        dataset: Box<str>,
        /// Grid coordinates of the chunk.
        tile: Box<[u64]>,
    },
    /// A dataset whose record no array can have.
    #[error("dataset `{}` cannot be used: {reason}", escape::name(dataset))]
    BadDataset {
        /// The dataset.
        dataset: Box<str>,
        /// What is wrong with its record.
        reason: DatasetError,
    },
    /// A declared size exceeds a limit.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// Memory within the limits could not be had.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// There is no dataset of this name.
    #[error("has no dataset `{}`", escape::name(name))]
    NoSuchDataset {
        /// The name asked for.
        name: Box<str>,
        /// Names there are, the first few.
        available: Box<str>,
    },
    /// There is no chunk at these coordinates.
    #[error("dataset `{}` has no chunk {}", escape::name(dataset), Coords(tile))]
    NoSuchChunk {
        /// The dataset.
        dataset: Box<str>,
        /// The coordinates asked for.
        tile: Box<[u64]>,
    },
    /// The selection does not fit the dataset.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// The caller's buffer has another size than the selection.
    #[error("the buffer has {found} bytes, but the selection has {expected}")]
    BufferSize {
        /// Bytes of the selection.
        expected: u64,
        /// Bytes of the buffer.
        found: u64,
    },
    /// A fill value that is no element of its dataset.
    #[error("{fill} is no {dtype} number")]
    FillValue {
        /// The type of the elements.
        dtype: tercet_core::ElementType,
        /// The value.
        fill: f64,
    },
    /// The output of a salvage is the damaged file.
    #[error("would replace the damaged file: salvage writes to another one")]
    OutputIsInput,
    /// The arithmetic of tiles went wrong: an error so that no input can turn it into a panic.
    #[error(transparent)]
    Copy(#[from] tercet_core::tensor::CopyError),
    /// The format cannot hold what is to be written.
    #[error(transparent)]
    Layout(#[from] Box<LayoutError>),
    /// A write failed.
    #[error("cannot write: {0}")]
    Write(#[from] std::io::Error),
    /// The file could not be put in its place, or is being changed by somebody else.
    #[cfg(any(unix, windows))]
    #[error(transparent)]
    Publish(#[from] tercet_core::publish::PublishError),
    /// A cell that is NaN or infinite where only numbers make sense.
    #[error(
        "dataset `{}`: the cell {} of the selection is not finite, and covariances need finite ones",
        escape::name(dataset),
        Coords(position)
    )]
    NotFinite {
        /// The dataset.
        dataset: Box<str>,
        /// Its position in the selection.
        position: Box<[u64]>,
    },
    /// The query cannot be answered as it is written.
    #[error(transparent)]
    Query(Box<crate::query::error::QueryError>),
    /// A result cannot be written where it was asked to.
    #[error("cannot write to `{}`: {reason}", escape::name(path))]
    Target {
        /// The path as given.
        path: Box<str>,
        /// What is wrong with it.
        reason: TargetError,
    },
    /// A result does not fit into the memory that a query may use.
    #[error("the result has {elements} elements, {bytes} bytes, but the memory budget is {budget} bytes")]
    OverBudget {
        /// Cells of the result.
        elements: u64,
        /// Their bytes.
        bytes: u64,
        /// Bytes that may be used.
        budget: u64,
    },
    /// Only floats can be transformed.
    #[error(
        "dataset `{}` holds {dtype} numbers, but only f16, f32 and f64 can be transformed",
        escape::name(dataset)
    )]
    TransformType {
        /// The dataset.
        dataset: Box<str>,
        /// The type of its elements.
        dtype: tercet_core::ElementType,
    },
    /// Cells that a filter leaves out have no value to stand for them.
    #[error(
        "dataset `{}` holds {dtype} numbers and has no fill value for the cells that the filter leaves out",
        escape::name(dataset)
    )]
    NoFill {
        /// The dataset.
        dataset: Box<str>,
        /// The type of its elements.
        dtype: tercet_core::ElementType,
    },
    /// The work was asked to stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

// Results carry a boxed fault, but faults are moved around while they are made.
const _: () = assert!(size_of::<Error>() <= 24 && size_of::<ErrorKind>() <= 128);

impl From<LayoutError> for ErrorKind {
    fn from(error: LayoutError) -> Self {
        Self::Layout(Box::new(error))
    }
}

/// Reason a result cannot be written to a path.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TargetError {
    /// It lies in none of the allowed folders.
    #[error("the path lies outside the folders that results may go to")]
    Outside,
    /// It is a symbolic link.
    #[error("the path is a symbolic link")]
    Link,
    /// It names the file that is read.
    #[error("the path names the file that is read")]
    Source,
    /// It names something that a file cannot replace.
    #[cfg(any(unix, windows))]
    #[error("the path is {0}, not a file")]
    NotAFile(tercet_core::publish::EntryKind),
    /// It does not end in a name.
    #[error("the path does not end in a file name")]
    NoName,
    /// It leads up from a folder that does not exist.
    #[error("the path has `..` behind a folder that does not exist")]
    Dots,
    /// It is relative, but what is read is not a file in a folder.
    #[error("the path is relative, but the data has no folder")]
    NoBase,
    /// There is no cache folder for a file without a name.
    #[error("there is no cache folder: neither `HOME` nor `XDG_CACHE_HOME` nor `TMPDIR` is set")]
    NoCache,
    /// This platform has no files.
    #[error("there are no files on this platform")]
    NoFiles,
    /// The answer of the system.
    #[error("{0}")]
    Io(std::io::Error),
}

/// How a stale block is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the words of the message")]
pub enum StaleBlockError {
    /// The index has another number of rows.
    Rows { expected: Option<u64>, actual: u64 },
    /// The place of the footer's checksum cannot be found.
    NoDigits,
}

impl fmt::Display for StaleBlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows { expected: Some(expected), actual } => {
                write!(f, "the integrity block tells of {expected} chunks, the index holds {actual}")
            }
            Self::Rows { expected: None, .. } => f.write_str("the integrity block does not tell the chunks"),
            Self::NoDigits => f.write_str("its checksum is not where it was written"),
        }
    }
}

/// What is wrong with a chunk.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChunkError {
    /// Its bytes changed since they were written.
    #[error("damaged: {0}")]
    Checksum(Mismatch),
    /// Its bytes do not decode.
    #[error("{0}")]
    Codec(Box<CodecError>),
    /// Its decoded length is not that of its tile.
    #[error("its row says {found} raw bytes, but the tile has {expected}")]
    RawLength {
        /// Bytes of the tile.
        expected: u64,
        /// Bytes the row tells.
        found: u64,
    },
}

/// What is wrong with a dataset record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DatasetError {
    /// Its element type is not known.
    #[error("unknown element type {tag}")]
    UnknownDType {
        /// The tag found.
        tag: u32,
    },
    /// An extent of its shape is zero.
    #[error("axis {axis} has extent 0")]
    ZeroShape {
        /// The axis.
        axis: usize,
    },
    /// An extent of its chunks is zero.
    #[error("axis {axis} has chunk extent 0")]
    ZeroChunk {
        /// The axis.
        axis: usize,
    },
    /// It is larger than any file.
    #[error("its size overflows 64 bits")]
    TooLarge,
    /// It has far more chunks than the index has rows: nearly all are missing, or its extents are wrong.
    #[error("it has {tiles} chunks, but the index has only {rows} rows")]
    FewRows {
        /// Chunks of its grid.
        tiles: u64,
        /// Rows of the index, for all datasets.
        rows: u64,
    },
}

/// Grid coordinates as `[0, 3]`.
pub(crate) struct Coords<'a>(pub(crate) &'a [u64]);

impl fmt::Display for Coords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl Diagnose for ErrorKind {
    fn class(&self) -> Class {
        match self {
            Self::Source(error) => error.class(),
            Self::Malformed(malformed) => malformed.class(),
            Self::MissingChunk { .. } | Self::BadDataset { .. } => Class::Malformed,
            Self::Checksum { .. } | Self::StaleIntegrityBlock { .. } | Self::PartialIntegrityBlock { .. } => {
                Class::Corrupt
            }
            Self::Chunk { reason, .. } => match reason {
                ChunkError::Codec(error) if error.is_not_built() => Class::Unsupported,
                ChunkError::Codec(_) | ChunkError::Checksum(_) => Class::Corrupt,
                ChunkError::RawLength { .. } => Class::Malformed,
            },
            Self::Limit(_) | Self::OutOfMemory(_) | Self::Copy(_) => Class::Limit,
            Self::NoSuchDataset { .. } | Self::NoSuchChunk { .. } | Self::BufferSize { .. } => Class::Request,
            Self::FillValue { .. } | Self::NoFill { .. } => Class::Request,
            Self::Target { reason: TargetError::Io(_), .. } => Class::Io,
            Self::Target { .. } => Class::Request,
            Self::OverBudget { .. } => Class::Limit,
            Self::TransformType { .. } => Class::Request,
            Self::Selection(error) => error.class(),
            Self::Query(_)
            | Self::NotFinite { .. }
            | Self::Layout(_)
            | Self::OutputIsInput
            | Self::Cancelled(_) => Class::Request,
            Self::Write(_) => Class::Io,
            #[cfg(any(unix, windows))]
            Self::Publish(error) => error.class(),
        }
    }

    fn span(&self) -> Option<Span> {
        match self {
            Self::Source(error) => error.span(),
            Self::Malformed(error) => error.span(),
            Self::Checksum { span, .. }
            | Self::StaleIntegrityBlock { span, .. }
            | Self::Chunk { span, .. } => Some(*span),
            _ => None,
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Malformed(malformed) => match malformed.site.region {
                Region::Superblock if malformed.site.field == "magic" => None,
                Region::FooterTail | Region::FooterJson | Region::MetadataSpill => Some(Hint::RepairFooter),
                _ => Some(Hint::Verify),
            },
            Self::Checksum { .. } | Self::StaleIntegrityBlock { .. } | Self::PartialIntegrityBlock { .. } => {
                Some(Hint::Repair)
            }
            Self::Chunk { reason: ChunkError::Checksum(_) | ChunkError::Codec(_), .. } => Some(Hint::Salvage),
            Self::NoSuchDataset { available, .. } if available.is_empty() => {
                Some("the file has no datasets".into())
            }
            Self::NoSuchDataset { available, .. } => {
                Some(Hint::Available { what: "datasets", names: available.clone() })
            }
            Self::Query(error) => error.hint(),
            Self::Target { reason: TargetError::Outside, .. } => Some(Hint::SpillDirectories),
            Self::OverBudget { .. } => Some(Hint::MemoryBudget),
            Self::NoFill { .. } => Some(Hint::FillValue),
            Self::Source(error) => error.hint(),
            #[cfg(any(unix, windows))]
            Self::Publish(error) => error.hint(),
            _ => None,
        }
    }

    fn is_not_found(&self) -> bool {
        matches!(self, Self::Source(error) if error.is_not_found())
    }

    fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled(_))
    }

    fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write(error) if error.kind() == std::io::ErrorKind::BrokenPipe)
    }
}
