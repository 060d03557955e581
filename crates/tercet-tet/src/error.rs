//! Errors of `.tet` files.

use std::fmt;

use tercet_codec::CodecError;
use tercet_core::checksum::Mismatch;
use tercet_core::tensor::SelectionError;
use tercet_core::{Class, CommonError, Diagnostic, Hint, Span, escape};
use thiserror::Error;

use crate::Region;
use crate::layout::LayoutError;

/// An error together with the name of its file.
pub type Error = tercet_core::Error<ErrorKind>;

/// The kind of an [`type@Error`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An error that every format has: I/O, malformed bytes, checksums, limits, memory, cancellation.
    #[error(transparent)]
    Common(CommonError<Region>),
    /// The integrity block does not belong to the file as it is now.
    #[error("{region} (bytes {span}) is damaged or was changed\n  {reason}")]
    StaleIntegrityBlock {
        /// The region with the contradiction.
        region: Region,
        /// The bytes of the region.
        span: Span,
        /// The contradiction.
        reason: StaleBlockError,
    },
    /// Parts of the integrity block are unusable, so a rewrite cannot keep them.
    #[error("the integrity block is partly unusable: {}", escape::name(problems))]
    PartialIntegrityBlock {
        /// The problems of the block.
        problems: Box<str>,
    },
    /// A chunk cannot be read.
    #[error(
        "dataset `{}`, chunk {} (row {row}, bytes {span}): {reason}",
        escape::name(dataset),
        Coords(coords)
    )]
    Chunk {
        /// The name of the dataset.
        dataset: Box<str>,
        /// Grid coordinates of the chunk.
        coords: Box<[u64]>,
        /// The number of its index row.
        row: u64,
        /// The stored bytes.
        span: Span,
        /// The error of the chunk.
        reason: ChunkError,
    },
    /// The index has no row for a chunk.
    #[error("dataset `{}`: chunk {} is missing from the index", escape::name(dataset), Coords(coords))]
    MissingChunk {
        /// The name of the dataset.
        dataset: Box<str>,
        /// Grid coordinates of the chunk.
        coords: Box<[u64]>,
    },
    /// The record of a dataset is invalid.
    #[error("dataset `{}` cannot be used: {reason}", escape::name(dataset))]
    BadDataset {
        /// The name of the dataset.
        dataset: Box<str>,
        /// The error of the record.
        reason: DatasetError,
    },
    /// No dataset has this name.
    #[error("has no dataset `{}`", escape::name(name))]
    NoSuchDataset {
        /// The requested name.
        name: Box<str>,
        /// The first few names in the file.
        available: Box<str>,
        /// The most similar name in the file.
        nearest: Option<Box<str>>,
    },
    /// No axis has this name or number.
    #[error("dataset `{}` has no axis `{}`", escape::name(dataset), escape::name(axis))]
    NoSuchAxis {
        /// The name of the dataset.
        dataset: Box<str>,
        /// The requested axis.
        axis: Box<str>,
        /// The names of the axes, or their numbers.
        available: Box<str>,
        /// The most similar name.
        nearest: Option<Box<str>>,
    },
    /// No chunk has these coordinates.
    #[error("dataset `{}` has no chunk {}", escape::name(dataset), Coords(coords))]
    NoSuchChunk {
        /// The name of the dataset.
        dataset: Box<str>,
        /// The requested coordinates.
        coords: Box<[u64]>,
    },
    /// The selection does not fit the dataset.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// The caller's buffer and the selection differ in size.
    #[error("the buffer has {found} bytes, but the selection has {expected}")]
    BufferSize {
        /// Bytes of the selection.
        expected: u64,
        /// Bytes of the buffer.
        found: u64,
    },
    /// The fill value is not a value of the element type.
    #[error("{fill} is not a {dtype} value")]
    FillValue {
        /// The element type.
        dtype: tercet_core::ElementType,
        /// The fill value.
        fill: f64,
    },
    /// The output of a salvage is the damaged file.
    #[error("would replace the damaged file: salvage writes to another one")]
    OutputIsInput,
    /// A copy between chunks is out of bounds. An error, so that no input can turn it into a panic.
    #[error(transparent)]
    Copy(#[from] tercet_core::tensor::CopyError),
    /// The format cannot store the layout.
    #[error(transparent)]
    Layout(#[from] Box<LayoutError>),
    /// An element is NaN or infinite where only finite values are defined.
    #[error(
        "dataset `{}`: element {} of the selection is not finite, and covariances need finite values",
        escape::name(dataset),
        Coords(position)
    )]
    NotFinite {
        /// The name of the dataset.
        dataset: Box<str>,
        /// The position in the selection.
        position: Box<[u64]>,
    },
    /// The query is invalid for this file.
    #[error(transparent)]
    Query(Box<crate::query::error::QueryError>),
    /// A computation is invalid for this dataset.
    #[error("dataset `{}`: cannot compute: {detail}", escape::name(dataset))]
    Compute {
        /// The name of the dataset.
        dataset: Box<str>,
        /// What is wrong.
        detail: Box<str>,
    },
    /// `null_count` needs a fill value that the dataset does not have.
    #[error("dataset `{}`: `null_count` needs a fill value, but the dataset has none", escape::name(dataset))]
    NoNullValue {
        /// The name of the dataset.
        dataset: Box<str>,
    },
    /// A result cannot be written to the requested path.
    #[error("cannot write to `{}`: {reason}", escape::name(path))]
    Target {
        /// The path as given.
        path: Box<str>,
        /// The error of the path.
        reason: TargetError,
    },
    /// A result exceeds the memory budget of the query.
    #[error("the result has {elements} elements, {bytes} bytes, but the memory budget is {budget} bytes")]
    OverBudget {
        /// Elements of the result.
        elements: u64,
        /// Bytes of the result.
        bytes: u64,
        /// Bytes of the memory budget.
        budget: u64,
    },
    /// Only floats can be transformed.
    #[error(
        "dataset `{}` has element type {dtype}, but only f16, f32 and f64 can be transformed",
        escape::name(dataset)
    )]
    TransformType {
        /// The name of the dataset.
        dataset: Box<str>,
        /// The element type.
        dtype: tercet_core::ElementType,
    },
    /// Elements that fail the filter have no fill value.
    #[error(
        "dataset `{}` has element type {dtype} and no fill value for elements that fail the filter",
        escape::name(dataset)
    )]
    NoFill {
        /// The name of the dataset.
        dataset: Box<str>,
        /// The element type.
        dtype: tercet_core::ElementType,
    },
}

tercet_core::impl_from_common!(ErrorKind, Region);

// Results carry a boxed error kind, but kinds are moved around while they are made.
const _: () = assert!(size_of::<Error>() <= 24 && size_of::<ErrorKind>() <= 128);

impl From<LayoutError> for ErrorKind {
    fn from(error: LayoutError) -> Self {
        Self::Layout(Box::new(error))
    }
}

impl ErrorKind {
    /// Whether the error is not about the bytes of the file, so that it shows no damage: a failed read, a limit,
    /// memory, cancellation.
    pub(crate) fn is_not_damage(&self) -> bool {
        let Self::Common(error) = self else { return false };
        matches!(
            error,
            CommonError::Source(_)
                | CommonError::Limit(_)
                | CommonError::OutOfMemory(_)
                | CommonError::Cancelled(_)
        )
    }
}

/// The error of an output path.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The path is in none of the allowed directories.
    #[error("the path is outside the directories allowed for results")]
    Outside,
    /// The path is a symbolic link.
    #[error("the path is a symbolic link")]
    Link,
    /// The path is the input file.
    #[error("the path is the input file")]
    Source,
    /// The path is a directory, a device or another special file.
    #[cfg(any(unix, windows))]
    #[error("the path is {0}, not a file")]
    NotAFile(tercet_core::publish::EntryKind),
    /// The path has no file name.
    #[error("the path has no file name")]
    NoName,
    /// The path has `..` after a directory that does not exist.
    #[error("the path has `..` after a directory that does not exist")]
    Dots,
    /// The path is relative, but the input is not a file in a directory.
    #[error("the path is relative, but the input has no directory")]
    NoBase,
    /// No cache directory is known for a file without a name.
    #[error("no cache directory: neither `HOME` nor `XDG_CACHE_HOME` nor `TMPDIR` is set")]
    NoCache,
    /// The platform has no file system.
    #[error("this platform has no file system")]
    NoFiles,
    /// An I/O error.
    #[error("{0}")]
    Io(std::io::Error),
}

/// The contradiction between a stale integrity block and its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the words of the message")]
pub enum StaleBlockError {
    /// The index has a different number of rows.
    Rows { expected: Option<u64>, actual: u64 },
    /// The footer checksum is not found.
    NoDigits,
    /// The footer flag is clear, but a footer with an integrity block follows the payloads.
    FooterFlag,
    /// The block is under another name or has another version.
    Renamed,
    /// The bytes after the payloads have members of a block, but no block can be parsed.
    Parts,
}

impl fmt::Display for StaleBlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows { expected: Some(expected), actual } => {
                write!(f, "the integrity block covers {expected} chunks, the index has {actual}")
            }
            Self::Rows { expected: None, .. } => f.write_str("the integrity block has no chunk count"),
            Self::NoDigits => f.write_str("its checksum is not where it was written"),
            Self::FooterFlag => f.write_str(
                "the footer flag is clear, but a footer with an integrity block follows the payloads",
            ),
            Self::Renamed => f.write_str("the name or the version of the integrity block is damaged"),
            Self::Parts => f.write_str("it has parts of an integrity block, but none can be parsed"),
        }
    }
}

/// The error of a chunk.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChunkError {
    /// The checksum of the stored bytes differs.
    #[error("damaged: {0}")]
    Checksum(Mismatch),
    /// The stored bytes do not decode.
    #[error("{0}")]
    Codec(Box<CodecError>),
    /// The decoded length differs from the length of the chunk.
    #[error("its row has raw_byte_len {found}, but the chunk has {expected} bytes")]
    RawLength {
        /// Bytes of the chunk.
        expected: u64,
        /// Bytes in the index row.
        found: u64,
    },
}

/// The error of a dataset record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DatasetError {
    /// The element type is unknown.
    #[error("unknown element type {tag}")]
    UnknownDType {
        /// The tag in the file.
        tag: u32,
    },
    /// An extent of the shape is zero.
    #[error("axis {axis} has extent 0")]
    ZeroShape {
        /// The axis.
        axis: usize,
    },
    /// An extent of the chunk shape is zero.
    #[error("axis {axis} has chunk extent 0")]
    ZeroChunk {
        /// The axis.
        axis: usize,
    },
    /// The dataset is larger than any file.
    #[error("its size overflows 64 bits")]
    TooLarge,
    /// The grid has far more chunks than the index has rows: nearly all are missing, or the extents are wrong.
    #[error("it has {chunks} chunks, but the index has only {rows} rows")]
    FewRows {
        /// Chunks of the grid.
        chunks: u64,
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

impl Diagnostic for ErrorKind {
    fn class(&self) -> Class {
        match self {
            Self::Common(error) => error.class(),
            Self::MissingChunk { .. } | Self::BadDataset { .. } => Class::Malformed,
            Self::StaleIntegrityBlock { .. } | Self::PartialIntegrityBlock { .. } => Class::Corrupt,
            Self::Chunk { reason, .. } => match reason {
                ChunkError::Codec(error) if error.is_not_built() => Class::Unsupported,
                ChunkError::Codec(_) | ChunkError::Checksum(_) => Class::Corrupt,
                ChunkError::RawLength { .. } => Class::Malformed,
            },
            Self::Copy(_) | Self::OverBudget { .. } => Class::Limit,
            Self::Target { reason: TargetError::Io(_), .. } => Class::Io,
            Self::Selection(error) => error.class(),
            Self::NoSuchDataset { .. }
            | Self::NoSuchAxis { .. }
            | Self::NoSuchChunk { .. }
            | Self::BufferSize { .. }
            | Self::FillValue { .. }
            | Self::NoFill { .. }
            | Self::Target { .. }
            | Self::TransformType { .. }
            | Self::NoNullValue { .. }
            | Self::Query(_)
            | Self::Compute { .. }
            | Self::NotFinite { .. }
            | Self::Layout(_)
            | Self::OutputIsInput => Class::Request,
        }
    }

    fn span(&self) -> Option<Span> {
        match self {
            Self::Common(error) => error.span(),
            Self::StaleIntegrityBlock { span, .. } | Self::Chunk { span, .. } => Some(*span),
            _ => None,
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Common(CommonError::Malformed(malformed)) => match malformed.site.region {
                Region::Superblock if malformed.site.field == "magic" => None,
                Region::FooterTail | Region::FooterJson | Region::MetadataSpill => Some(Hint::RepairFooter),
                _ => Some(Hint::Verify),
            },
            Self::Common(CommonError::Checksum { .. })
            | Self::StaleIntegrityBlock { .. }
            | Self::PartialIntegrityBlock { .. } => Some(Hint::Repair),
            Self::Common(error) => error.hint(),
            Self::Chunk { reason: ChunkError::Checksum(_) | ChunkError::Codec(_), .. } => Some(Hint::Salvage),
            Self::NoSuchDataset { available, .. } if available.is_empty() => {
                Some("the file has no datasets".into())
            }
            Self::NoSuchDataset { nearest: Some(nearest), .. }
            | Self::NoSuchAxis { nearest: Some(nearest), .. } => Some(Hint::DidYouMean(nearest.clone())),
            Self::NoSuchDataset { available, .. } => {
                Some(Hint::Available { what: "datasets", names: available.clone() })
            }
            Self::NoSuchAxis { available, .. } => {
                Some(Hint::Available { what: "axes", names: available.clone() })
            }
            Self::Query(error) => error.hint(),
            Self::Layout(error) => error.hint(),
            Self::Target { reason: TargetError::Outside, .. } => Some(Hint::SpillDirectories),
            Self::OverBudget { .. } => Some(Hint::MemoryBudget),
            Self::NoFill { .. } => Some(Hint::FillValue),
            Self::NoNullValue { .. } => {
                Some("count the missing values with a filter, `value is missing`".into())
            }
            _ => None,
        }
    }

    fn is_not_found(&self) -> bool {
        matches!(self, Self::Common(error) if error.is_not_found())
    }

    fn is_cancelled(&self) -> bool {
        matches!(self, Self::Common(error) if error.is_cancelled())
    }

    fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Common(error) if error.is_broken_pipe())
    }
}
