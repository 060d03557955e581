//! Reason a pipeline cannot run.

use tercet_codec::CodecError;
use tercet_codec::finite::NonFinite;
use tercet_codec::pack::PackError;
use tercet_core::{Class, Hint, escape};
use thiserror::Error;

use super::masks::MaskKind;
use crate::metadata::MetadataError;

/// Reason values cannot be encoded or decoded as a descriptor says.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum PipelineError {
    /// A parameter that is missing or wrong.
    #[error(transparent)]
    Parameter(#[from] MetadataError),
    /// A name that the format does not define.
    #[error("{stage} `{}` is not known", escape::name(name))]
    Unknown {
        /// `encoding`, `filter`, `compression` or `mask method`.
        stage: &'static str,
        /// What the descriptor says.
        name: Box<str>,
    },
    /// Stages that do not go together: other programs write or read them, and get wrong values.
    #[error("{what} {reason}")]
    Combination {
        /// The stages, in words.
        what: Box<str>,
        /// Reason they do not go together.
        reason: &'static str,
    },
    /// A value that is not finite, where that was not allowed.
    #[error("element {index} is {what}, which is not allowed")]
    NonFinite {
        /// The first such element.
        index: u64,
        /// What it is.
        what: NonFinite,
    },
    /// Numbers that cannot be packed, or parameters that cannot have packed any.
    #[error(transparent)]
    Packing(PackError),
    /// A compressor that failed.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// A mask that cannot be read or written.
    #[error("mask `{kind}`: {error}")]
    Mask {
        /// Which one.
        kind: MaskKind,
        /// What is wrong with it.
        error: CodecError,
    },
    /// A payload that is not decoded in this process, because its library can be crashed by it.
    #[error("sz3 payloads can crash the library that decodes them, so they are not decoded unless trusted")]
    Untrusted,
    /// A stored position of an szip interval that is not where the interval starts.
    #[error(
        "key `szip_block_offsets[{entry}]` is {}, but must be {}",
        said(*found),
        said(*expected)
    )]
    SzipOffset {
        /// The first wrong entry.
        entry: u64,
        /// What it says, if it is there.
        found: Option<u64>,
        /// Where the interval starts, if there is one.
        expected: Option<u64>,
    },
}

/// A position that may be missing.
fn said(position: Option<u64>) -> String {
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
    /// Whether another build, or other options, could do it.
    pub(crate) fn is_unsupported(&self) -> bool {
        match self {
            Self::Unknown { .. } | Self::Untrusted => true,
            Self::Codec(error) | Self::Mask { error, .. } => error.is_not_built(),
            _ => false,
        }
    }

    /// Whether the descriptor alone is wrong, whatever the payload.
    pub(crate) fn is_about_descriptor(&self) -> bool {
        matches!(
            self,
            Self::Unknown { .. } | Self::Parameter(_) | Self::Combination { .. } | Self::Packing(_)
        ) || matches!(self, Self::Codec(CodecError::Parameter { .. }))
    }

    /// The kind of failure when bytes are read.
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
            Self::Untrusted => Some(Hint::SeparateProcess),
            _ => None,
        }
    }
}
