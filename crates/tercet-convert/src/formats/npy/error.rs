//! Errors of `.npy` files.

use std::fmt;

use tercet_core::tensor::CopyError;
use tercet_core::{Class, CommonError, Diagnostic, Hint, Shape, Span, escape};
use tercet_tet::MAX_RANK;
use thiserror::Error;

/// Error of a `.npy` file, with the name of the file.
pub type Error = tercet_core::Error<ErrorKind>;

/// Kind of error.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An error that all formats share: I/O, malformed bytes, limits, lack of memory.
    #[error(transparent)]
    Common(CommonError<Region>),
    /// An unknown format version.
    #[error("unknown npy format version {major}.{minor}")]
    Version {
        /// Major version.
        major: u8,
        /// Minor version.
        minor: u8,
    },
    /// An unsupported element type.
    #[error("holds {kind} (dtype `{}`), not plain numbers", escape::name(descr))]
    UnsupportedDtype {
        /// Its kind.
        kind: UnsupportedDtype,
        /// NumPy type string, shortened.
        descr: Box<str>,
    },
    /// An unsupported shape.
    #[error("{reason} (shape {shape:?})")]
    Shape {
        /// The reason.
        reason: ShapeErrorKind,
        /// The shape.
        shape: Shape,
    },
    /// The selection is outside the array.
    #[error("selection of {extents:?} at {start:?} is outside the array")]
    OutOfBounds {
        /// The first position on each axis.
        start: Box<[u64]>,
        /// The number of positions on each axis.
        extents: Box<[u64]>,
    },
    /// The buffer has another size than the selection.
    #[error("the buffer has {found} bytes, but the values have {expected}")]
    BufferSize {
        /// Size of the selection in bytes.
        expected: u64,
        /// Size of the buffer in bytes.
        found: u64,
    },
    /// The values are not at the position that the header declares.
    #[error(transparent)]
    Copy(#[from] CopyError),
}

tercet_core::impl_from_common!(ErrorKind, Region);

const _: () = assert!(size_of::<Error>() <= 24 && size_of::<ErrorKind>() <= 128);

/// Regions of a `.npy` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// Magic, version and length of the header.
    Preamble,
    /// The header dictionary.
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

/// Unsupported element types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum UnsupportedDtype {
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

impl fmt::Display for UnsupportedDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Object => "Python objects, which are never unpickled",
            Self::Structured => "structured records",
            Self::Subarray => "nested arrays",
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

impl UnsupportedDtype {
    fn hint(self) -> Option<&'static str> {
        match self {
            Self::Object => Some("if the objects are numbers, save `array.astype('float64')` instead"),
            Self::Structured => Some("save each field as a separate array"),
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
    /// A scalar.
    #[error("is a scalar; expected 1 to {MAX_RANK} axes")]
    NoAxes,
    /// Too many axes.
    #[error("has {rank} axes, but at most {most} are allowed")]
    TooManyAxes {
        /// Number of axes.
        rank: usize,
        /// Maximum number of axes.
        most: usize,
    },
    /// An empty array.
    #[error("is empty: axis {axis} has extent 0")]
    Empty {
        /// The axis of extent 0.
        axis: usize,
    },
    /// Too many bytes for any file.
    #[error("its size overflows 64 bits")]
    TooLarge,
}

impl Diagnostic for ErrorKind {
    fn class(&self) -> Class {
        match self {
            Self::Common(error) => error.class(),
            Self::Copy(_) | Self::Shape { reason: ShapeErrorKind::TooLarge, .. } => Class::Malformed,
            Self::Version { .. } | Self::UnsupportedDtype { .. } | Self::Shape { .. } => Class::Unsupported,
            Self::OutOfBounds { .. } | Self::BufferSize { .. } => Class::Request,
        }
    }

    fn span(&self) -> Option<Span> {
        match self {
            Self::Common(error) => error.span(),
            _ => None,
        }
    }

    fn hint(&self) -> Option<Hint> {
        let hint = match self {
            Self::UnsupportedDtype { kind, .. } => kind.hint()?,
            Self::Shape { reason: ShapeErrorKind::NoAxes, .. } => "save `array.reshape(1)` instead",
            Self::Common(CommonError::Malformed(malformed)) => {
                match (malformed.site.region, &malformed.reason) {
                    (Region::Data, tercet_core::Reason::Leftover { .. }) => {
                        "the file may hold several arrays; save each in a separate file"
                    }
                    (Region::Preamble, tercet_core::Reason::BadMagic { .. }) => {
                        "only `.npy` files are supported"
                    }
                    _ => return None,
                }
            }
            Self::Common(error) => return error.hint(),
            _ => return None,
        };
        Some(hint.into())
    }

    fn is_not_found(&self) -> bool {
        matches!(self, Self::Common(error) if error.is_not_found())
    }

    fn is_cancelled(&self) -> bool {
        matches!(self, Self::Common(error) if error.is_cancelled())
    }
}
