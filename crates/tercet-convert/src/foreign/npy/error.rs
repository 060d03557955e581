//! What can go wrong with a `.npy` file.

use std::fmt;

use tercet_core::limits::LimitExceeded;
use tercet_core::tensor::CopyError;
use tercet_core::{Class, Diagnose, Hint, Malformed, Shape, SourceError, Span, escape};
use tercet_tet::MAX_RANK;
use thiserror::Error;

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
    /// A version of the format that is not known.
    #[error("npy format version {major}.{minor} is not known")]
    Version {
        /// Before the point.
        major: u8,
        /// Behind it.
        minor: u8,
    },
    /// Elements that are no numbers of ours.
    #[error("holds {kind} (dtype `{}`), not plain numbers", escape::name(descr))]
    ForeignType {
        /// What they are.
        kind: ForeignType,
        /// NumPy's word for them, shortened.
        descr: Box<str>,
    },
    /// An array of numbers with a shape that is not supported.
    #[error("{reason} (shape {shape:?})")]
    Shape {
        /// The reason.
        reason: ShapeErrorKind,
        /// The shape.
        shape: Shape,
    },
    /// A declared size exceeds a limit.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// The array has no such part.
    #[error("there are no {extents:?} values at {start:?}")]
    NoSuchBox {
        /// The first position on each axis.
        start: Box<[u64]>,
        /// The number of positions on each axis.
        extents: Box<[u64]>,
    },
    /// The caller's buffer has another size than the part asked for.
    #[error("the buffer has {found} bytes, but the values have {expected}")]
    BufferSize {
        /// Bytes of the values.
        expected: u64,
        /// Bytes of the buffer.
        found: u64,
    },
    /// The values of the file are not where its header says.
    #[error(transparent)]
    Copy(#[from] CopyError),
}

const _: () = assert!(size_of::<Error>() <= 24 && size_of::<ErrorKind>() <= 128);

/// The parts of a `.npy` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// Magic, version and length of the header.
    Preamble,
    /// The dictionary.
    Header,
    /// The values.
    Data,
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Preamble => "npy preamble",
            Self::Header => "npy header",
            Self::Data => "npy data",
        })
    }
}

impl tercet_core::Region for Region {}

/// Element types that are refused, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum ForeignType {
    Object,
    Structured,
    Subarray,
    Bytes,
    Text,
    Void,
    Complex,
    DateTime,
    TimeDelta,
    LongDouble,
    LongComplex,
    NativeOrder,
    Unknown,
}

impl fmt::Display for ForeignType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Object => "Python objects, which are never unpickled",
            Self::Structured => "structured records",
            Self::Subarray => "arrays inside of elements",
            Self::Bytes => "byte strings",
            Self::Text => "text strings",
            Self::Void => "raw bytes without a type",
            Self::Complex => "complex numbers",
            Self::DateTime => "dates and times",
            Self::TimeDelta => "time differences",
            Self::LongDouble => "extended-precision floats, which differ between machines",
            Self::LongComplex => "extended-precision complex numbers, which differ between machines",
            Self::NativeOrder => "numbers in the byte order of an unknown machine",
            Self::Unknown => "elements of an unknown type",
        })
    }
}

impl ForeignType {
    fn hint(self) -> Option<&'static str> {
        match self {
            Self::Object => Some("if the objects are numbers, save `array.astype('float64')` instead"),
            Self::Structured => Some("save each field as an array of its own"),
            Self::Complex => Some("save `array.real` and `array.imag` as two arrays"),
            Self::DateTime | Self::TimeDelta => {
                Some("save `array.astype('int64')` and note its unit as an attribute")
            }
            Self::LongDouble => Some("save `array.astype('float64')` instead"),
            Self::LongComplex => Some("save `array.astype('complex128')` instead"),
            _ => None,
        }
    }
}

/// Reason a shape is not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ShapeErrorKind {
    /// No axis at all.
    #[error("is a single number without axes, but an array needs 1 to {MAX_RANK}")]
    NoAxes,
    /// More axes than there can be.
    #[error("has {rank} axes, but at most {most} are allowed")]
    TooManyAxes {
        /// How many.
        rank: usize,
        /// How many are allowed.
        most: usize,
    },
    /// No value at all.
    #[error("holds no values: axis {axis} has extent 0")]
    Empty {
        /// The axis without extent.
        axis: usize,
    },
    /// More bytes than any file has.
    #[error("its size overflows 64 bits")]
    TooLarge,
}

impl Diagnose for ErrorKind {
    fn class(&self) -> Class {
        match self {
            Self::Source(error) => error.class(),
            Self::Malformed(_) | Self::Copy(_) | Self::Shape { reason: ShapeErrorKind::TooLarge, .. } => {
                Class::Malformed
            }
            Self::Version { .. } | Self::ForeignType { .. } | Self::Shape { .. } => Class::Unsupported,
            Self::Limit(_) => Class::Limit,
            Self::NoSuchBox { .. } | Self::BufferSize { .. } => Class::Request,
        }
    }

    fn span(&self) -> Option<Span> {
        match self {
            Self::Source(error) => error.span(),
            Self::Malformed(error) => error.span(),
            _ => None,
        }
    }

    fn hint(&self) -> Option<Hint> {
        let hint = match self {
            Self::ForeignType { kind, .. } => kind.hint()?,
            Self::Shape { reason: ShapeErrorKind::NoAxes, .. } => "save `array.reshape(1)` instead",
            Self::Malformed(malformed) => match (malformed.site.region, &malformed.reason) {
                (Region::Data, tercet_core::Reason::Leftover { .. }) => {
                    "the file may hold several arrays; save each in a file of its own"
                }
                (Region::Preamble, tercet_core::Reason::BadMagic { .. }) => "only `.npy` files are read here",
                _ => return None,
            },
            _ => return None,
        };
        Some(hint.into())
    }
}
