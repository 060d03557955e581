//! [`LayoutError`].

use std::fmt;

use tercet_codec::bytes::zstd;
use tercet_core::{DType, Hint, Shape, escape};

use super::{AppendError, EditError, NAME_BYTES};
use crate::error::DatasetError;
use crate::metadata_limits::LimitViolation;
use crate::rounding::RoundingError;
use crate::wire::ids::MAX_RANK;

/// An error of a [`Layout`](crate::Layout), or of the chunks given to a writer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are the words of the message")]
pub enum LayoutError {
    NameLength { name: String, len: usize },
    DuplicateName { name: String },
    Rank { dataset: String, rank: usize },
    ChunkRank { dataset: String, rank: usize, found: usize },
    Dataset { dataset: String, reason: DatasetError },
    UnsupportedType { dataset: String, dtype: DType },
    ZstdLevel { level: i32 },
    NoZstd,
    Rounding { dataset: String, reason: Box<RoundingError> },
    DimNames { dataset: String, rank: usize, found: usize },
    NoSuchAxis { dataset: String, axis: String, available: String },
    Edit(Box<EditError>),
    Append(Box<AppendError>),
    LabelCount { dataset: String, axis: String, extent: u64, found: usize },
    BudgetPercent { bps: u16 },
    Metadata(Box<LimitViolation>),
    TooManyDatasets { found: usize },
    TooLarge,
    HistorySize { found: usize, allowed: usize },
    MetadataSize { found: usize, allowed: usize },
    Marker,
    NoSuchChunk { dataset: String, coords: Vec<u64> },
    ChunkShape { dataset: String, expected: Box<(DType, Shape)>, found: Box<(DType, Shape)> },
    ChunkTwice { dataset: String, coords: Vec<u64> },
    Unwritten { dataset: String, coords: Vec<u64>, missing: u64 },
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let q = |name: &str| format!("`{}`", escape::name(name));
        match self {
            Self::NameLength { len: 0, .. } => write!(f, "a dataset name must not be empty"),
            Self::NameLength { name, len } => {
                write!(f, "dataset name {}… has {len} bytes, at most {NAME_BYTES} are allowed", q(name))
            }
            Self::DuplicateName { name } => write!(f, "duplicate dataset {}", q(name)),
            Self::Rank { dataset, rank } => {
                write!(f, "dataset {} has {rank} axes, but 1 to {MAX_RANK} are allowed", q(dataset))
            }
            Self::ChunkRank { dataset, rank, found } => {
                write!(f, "dataset {} has {rank} axes, but its chunks have {found}", q(dataset))
            }
            Self::Dataset { dataset, reason } => write!(f, "dataset {}: {reason}", q(dataset)),
            Self::UnsupportedType { dataset, dtype } => {
                write!(f, "dataset {}: {dtype} is not supported by .tet", q(dataset))
            }
            Self::ZstdLevel { level } => {
                write!(
                    f,
                    "zstd has no level {level} (from {} to {})",
                    zstd::LEVELS.start(),
                    zstd::LEVELS.end()
                )
            }
            Self::NoZstd => write!(f, "zstd is not part of this build (cargo feature `zstd`)"),
            Self::Rounding { dataset, reason } => write!(f, "dataset {}: {reason}", q(dataset)),
            Self::DimNames { dataset, rank, found } => {
                let axes = if *rank == 1 { "1 axis".to_owned() } else { format!("{rank} axes") };
                write!(f, "dataset {} has {axes}, but {} given", q(dataset), names_are(*found))
            }
            Self::NoSuchAxis { dataset, axis, .. } => {
                write!(f, "dataset {} has no axis {}", q(dataset), q(axis))
            }
            Self::Edit(error) => error.fmt(f),
            Self::Append(error) => error.fmt(f),
            Self::LabelCount { dataset, axis, extent, found } => {
                let (dataset, axis) = (q(dataset), q(axis));
                write!(
                    f,
                    "axis {axis} of dataset {dataset} has {extent} positions, but {found} labels are given"
                )
            }
            Self::BudgetPercent { bps } => {
                write!(f, "a memory budget of {bps} hundredths of a percent is more than 100 %")
            }
            Self::Metadata(violation) => violation.fmt(f),
            Self::TooManyDatasets { found } => write!(f, "{found} datasets are too many for one file"),
            Self::TooLarge => write!(f, "the size of the file overflows 64 bits"),
            Self::HistorySize { found, allowed } => {
                write!(f, "the history needs {found} bytes, at most {allowed} are allowed")
            }
            Self::MetadataSize { found, allowed } => {
                write!(f, "the metadata needs {found} bytes, at most {allowed} are allowed")
            }
            Self::Marker => write!(f, "the metadata contains the marker of the integrity block"),
            Self::NoSuchChunk { dataset, coords } => {
                write!(f, "dataset {} has no chunk {coords:?}", q(dataset))
            }
            Self::ChunkShape { dataset, expected, found } => write!(
                f,
                "a chunk of dataset {} is {} {}, but {} {} was given",
                q(dataset),
                expected.0,
                expected.1,
                found.0,
                found.1
            ),
            Self::ChunkTwice { dataset, coords } => {
                write!(f, "chunk {coords:?} of dataset {} was written already", q(dataset))
            }
            Self::Unwritten { dataset, coords, missing } => {
                write!(
                    f,
                    "{missing} chunks were not written, the first is {coords:?} of dataset {}",
                    q(dataset)
                )
            }
        }
    }
}

/// `1 name is`, `3 names are`
fn names_are(count: usize) -> String {
    if count == 1 { "1 name is".to_owned() } else { format!("{count} names are") }
}

impl std::error::Error for LayoutError {}

impl LayoutError {
    /// What to do about it.
    pub fn hint(&self) -> Option<Hint> {
        match self {
            Self::NoSuchAxis { available: names, .. } => available("axes", names),
            Self::Edit(error) => error.hint(),
            Self::Append(error) => error.hint(),
            _ => None,
        }
    }
}

/// The names that exist, if there are any.
pub(super) fn available(what: &'static str, names: &str) -> Option<Hint> {
    (!names.is_empty()).then(|| Hint::Available { what, names: names.into() })
}
