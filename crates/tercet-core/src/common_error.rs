//! The errors that every format shares: I/O, malformed bytes, checksums, limits, memory, cancellation.

use std::io;

use thiserror::Error;

use crate::checksum::Mismatch;
use crate::limits::LimitExceeded;
use crate::progress::Cancelled;
use crate::publish::PublishError;
use crate::tensor::OutOfMemory;
use crate::{Class, Diagnostic, Hint, Malformed, Region, SourceError, Span};

/// The part of a format's `ErrorKind` that all formats share.
///
/// A format has a variant `Common(CommonError<Region>)` and invokes [`impl_from_common!`](crate::impl_from_common),
/// which lets `?` convert each of these errors.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CommonError<R: Region> {
    /// The bytes could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The bytes break the rules of the format.
    #[error(transparent)]
    Malformed(#[from] Malformed<R>),
    /// A checksum differs: the region changed since it was written.
    #[error("{region} (bytes {span}) is damaged or was changed\n  {mismatch}")]
    Checksum {
        /// The region.
        region: R,
        /// The bytes of the region.
        span: Span,
        /// Stored and computed checksum.
        mismatch: Mismatch,
    },
    /// A declared size exceeds a limit.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// An allocation within the limits failed.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// Writing to the output failed.
    #[error("cannot write: {0}")]
    Write(io::Error),
    /// The output file could not be created, locked or renamed.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The operation was cancelled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// Recovers a [`PublishError`] that an [`io::Error`] carries.
impl<R: Region> From<io::Error> for CommonError<R> {
    fn from(error: io::Error) -> Self {
        match PublishError::recover(error) {
            Ok(error) => Self::Publish(error),
            Err(error) => Self::Write(error),
        }
    }
}

impl<R: Region> Diagnostic for CommonError<R> {
    fn class(&self) -> Class {
        match self {
            Self::Source(error) => error.class(),
            Self::Malformed(error) => error.class(),
            Self::Checksum { .. } => Class::Corrupt,
            Self::Limit(_) | Self::OutOfMemory(_) => Class::Limit,
            Self::Write(_) => Class::Io,
            Self::Publish(error) => error.class(),
            Self::Cancelled(_) => Class::Request,
        }
    }

    fn span(&self) -> Option<Span> {
        match self {
            Self::Source(error) => error.span(),
            Self::Malformed(error) => error.span(),
            Self::Checksum { span, .. } => Some(*span),
            _ => None,
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Source(error) => error.hint(),
            Self::Publish(error) => error.hint(),
            Self::Malformed(_) | Self::Checksum { .. } => Some(Hint::Verify),
            Self::Limit(_) => Some(Hint::RaiseLimit),
            Self::OutOfMemory(_) | Self::Write(_) | Self::Cancelled(_) => None,
        }
    }

    fn is_not_found(&self) -> bool {
        match self {
            Self::Source(error) => error.is_not_found(),
            Self::Publish(error) => error.is_not_found(),
            _ => false,
        }
    }

    fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled(_))
    }

    fn is_broken_pipe(&self) -> bool {
        match self {
            Self::Write(error) => error.kind() == io::ErrorKind::BrokenPipe,
            Self::Publish(error) => error.is_broken_pipe(),
            _ => false,
        }
    }
}

/// Implements `From` for a format's error kind: from [`CommonError`] and from every error in it.
///
/// ```
/// use tercet_core::{CommonError, Region, SourceError, Span, impl_from_common};
///
/// #[derive(Clone, Copy, Debug)]
/// struct Header;
/// impl std::fmt::Display for Header {
///     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
///         f.write_str("header")
///     }
/// }
/// impl Region for Header {}
///
/// #[derive(Debug)]
/// enum ErrorKind {
///     Common(CommonError<Header>),
/// }
/// impl_from_common!(ErrorKind, Header);
///
/// let error = ErrorKind::from(SourceError::PastEnd { span: Span::first(8), len: 4 });
/// assert!(matches!(error, ErrorKind::Common(CommonError::Source(_))));
/// ```
#[macro_export]
macro_rules! impl_from_common {
    ($kind:ty, $region:ty) => {
        impl From<$crate::CommonError<$region>> for $kind {
            fn from(error: $crate::CommonError<$region>) -> Self {
                Self::Common(error)
            }
        }
        $crate::impl_from_common!(
            @each $kind, $region:
            $crate::SourceError,
            $crate::Malformed<$region>,
            $crate::limits::LimitExceeded,
            $crate::tensor::OutOfMemory,
            $crate::publish::PublishError,
            $crate::progress::Cancelled,
            ::std::io::Error,
        );
    };
    (@each $kind:ty, $region:ty: $($error:ty,)*) => {$(
        impl From<$error> for $kind {
            fn from(error: $error) -> Self {
                Self::Common($crate::CommonError::from(error))
            }
        }
    )*};
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    struct Header;
    impl std::fmt::Display for Header {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("header")
        }
    }
    impl Region for Header {}

    #[test]
    fn publish_errors_are_recovered_from_io_errors() {
        let exists = PublishError::Exists { path: PathBuf::from("a.tet") };
        let error: CommonError<Header> = io::Error::from(exists).into();
        assert!(matches!(error, CommonError::Publish(PublishError::Exists { .. })));
        assert_eq!(error.hint(), Some(Hint::Overwrite));
        let error: CommonError<Header> = io::Error::from(io::ErrorKind::BrokenPipe).into();
        assert!(error.is_broken_pipe() && !error.is_not_found());
    }

    #[test]
    fn missing_files_and_cancellation_are_recognized() {
        let missing = SourceError::Open(io::ErrorKind::NotFound.into());
        assert!(CommonError::<Header>::from(missing).is_not_found());
        assert!(CommonError::<Header>::from(Cancelled).is_cancelled());
    }
}
