//! Errors of pipelines.

use tercet_codec::CodecError;
use tercet_codec::finite::NonFinite;
use tercet_codec::pack::PackError;
use tercet_core::{Class, Hint, escape};
use thiserror::Error;

use super::masks::MaskKind;
use crate::metadata::MetadataError;

/// The error of values that cannot be encoded or decoded with the pipeline of a descriptor.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum PipelineError {
    /// A missing or invalid parameter.
    #[error(transparent)]
    Parameter(#[from] MetadataError),
    /// An unknown encoding, filter, compression or mask method.
    #[error("unknown {stage} `{}`", escape::name(name))]
    Unknown {
        /// `encoding`, `filter`, `compression` or `mask method`.
        stage: &'static str,
        /// The name in the descriptor.
        name: Box<str>,
    },
    /// An invalid combination of stages, which other programs may accept and decode to wrong values.
    #[error("{what} {reason}")]
    Combination {
        /// The combination.
        what: Box<str>,
        /// The reason.
        reason: &'static str,
    },
    /// A non-finite value that is not allowed.
    #[error("element {index} is {what}, which is not allowed")]
    NonFinite {
        /// The number of the first such element.
        index: u64,
        /// The value.
        what: NonFinite,
    },
    /// Values that cannot be packed, or invalid packing parameters.
    #[error(transparent)]
    Packing(PackError),
    /// A codec error.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// An invalid mask.
    #[error("mask `{kind}`: {error}")]
    Mask {
        /// The mask.
        kind: MaskKind,
        /// The error.
        error: CodecError,
    },
    /// A wrong szip offset.
    #[error(
        "key `szip_block_offsets[{entry}]` is {}, but must be {}",
        offset(*found),
        offset(*expected)
    )]
    SzipOffset {
        /// The number of the first wrong offset.
        entry: u64,
        /// The stored offset, if any.
        found: Option<u64>,
        /// The correct offset, if any.
        expected: Option<u64>,
    },
}

/// An offset in bits, or `missing`.
fn offset(position: Option<u64>) -> String {
    position.map_or_else(|| "missing".to_owned(), |bit| format!("bit {bit}"))
}

impl From<PackError> for PipelineError {
    fn from(error: PackError) -> Self {
        match error {
            PackError::NonFinite { index, what } => Self::NonFinite { index, what },
            error => Self::Packing(error),
        }
    }
}

impl PipelineError {
    /// Whether another build or other options could decode it.
    pub(crate) fn is_unsupported(&self) -> bool {
        match self {
            Self::Unknown { .. } => true,
            Self::Codec(error) | Self::Mask { error, .. } => error.is_not_built(),
            _ => false,
        }
    }

    /// Whether the error concerns only the descriptor.
    pub(crate) fn is_about_descriptor(&self) -> bool {
        matches!(
            self,
            Self::Unknown { .. } | Self::Parameter(_) | Self::Combination { .. } | Self::Packing(_)
        ) || matches!(self, Self::Codec(CodecError::Parameter { .. }))
    }

    /// The class of the error when reading.
    pub(crate) fn class(&self) -> Class {
        match self {
            error if error.is_unsupported() => Class::Unsupported,
            Self::Codec(CodecError::OutOfMemory { .. }) => Class::Limit,
            _ => Class::Malformed,
        }
    }

    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<Hint> {
        match self {
            Self::NonFinite { what: NonFinite::Nan, .. } => Some(Hint::AllowNan),
            Self::NonFinite { .. } => Some(Hint::AllowInf),
            _ => None,
        }
    }
}
