//! Errors that point at bytes: region, field, span, class and hint.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::num::counted;
use crate::{Hint, Span};

/// A named part of a file: one enum per format.
pub trait Region: fmt::Debug + fmt::Display + Copy + Send + Sync + 'static {}

/// A position in a file: region, field and span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site<R> {
    /// The part of the file.
    pub region: R,
    /// The field, as the format's specification names it.
    pub field: &'static str,
    /// The bytes of the field.
    pub span: Span,
}

impl<R: Region> fmt::Display for Site<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} › {} (bytes {})", self.region, self.field, self.span)
    }
}

/// The error of bytes that violate their format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed<R> {
    /// The position.
    pub site: Site<R>,
    /// The violation.
    pub reason: Reason,
}

impl<R: Region> fmt::Display for Malformed<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.class() == Class::Unsupported { "unsupported" } else { "malformed" };
        write!(f, "{what} {}\n  {}", self.site, self.reason)
    }
}

impl<R: Region> StdError for Malformed<R> {}

/// The ways in which bytes can violate a format.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The bytes end inside the field.
    Truncated {
        /// Bytes of the field.
        need: u64,
        /// Bytes available.
        have: u64,
    },
    /// The magic bytes differ.
    BadMagic {
        /// The bytes that the format requires.
        expected: &'static [u8],
        /// The bytes found.
        found: Vec<u8>,
    },
    /// A number outside the range of the format.
    OutOfRange {
        /// The number found.
        found: u64,
        /// The allowed values, as text.
        allowed: &'static str,
    },
    /// An unknown version.
    UnknownVersion {
        /// The version found.
        found: u64,
        /// The known versions, as text.
        known: &'static str,
    },
    /// An unknown codec, encoding or other number of a registry.
    UnknownId {
        /// The number found.
        found: u64,
        /// The known numbers, as text.
        known: &'static str,
    },
    /// A number that differs from a redundant one.
    Mismatch {
        /// The number found.
        found: u64,
        /// The number expected.
        expected: u64,
        /// The origin of the expected number.
        because: &'static str,
    },
    /// A span that ends after its container.
    OutOfBounds {
        /// The start of the span.
        offset: u64,
        /// The declared length.
        len: u64,
        /// The end of the container.
        end: u64,
        /// The container.
        what: &'static str,
    },
    /// Text that is not UTF-8.
    NotUtf8,
    /// JSON that does not parse.
    Unparsable {
        /// The message of the parser.
        detail: String,
    },
    /// Trailing bytes after the end of a structure.
    Leftover {
        /// The number of bytes.
        len: u64,
    },
    /// A structure that is not allowed in this position.
    Unexpected {
        /// The violated rule.
        rule: &'static str,
    },
    /// Declared sizes whose sum or product overflows.
    Overflow {
        /// The quantity.
        what: &'static str,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { need, have } => {
                let are = if *have == 1 { "is" } else { "are" };
                write!(f, "needs {}, but only {have} {are} available", counted(*need, "byte"))
            }
            Self::BadMagic { expected, found } => {
                write!(f, "expected `{}`, found `{}`", expected.escape_ascii(), found.escape_ascii())
            }
            Self::OutOfRange { found, allowed } => write!(f, "is {found}, but must be {allowed}"),
            Self::UnknownVersion { found, known } => {
                write!(f, "is {found}, but this build supports version {known} only")
            }
            Self::UnknownId { found, known } => write!(f, "is {found}, but this build supports {known} only"),
            Self::Mismatch { found, expected, because } => {
                write!(f, "is {found}, but must be {expected} ({because})")
            }
            Self::OutOfBounds { offset, len, end, what } => {
                write!(f, "declares {} at offset {offset}, but {what} end at {end}", counted(*len, "byte"))
            }
            Self::NotUtf8 => f.write_str("is not valid UTF-8"),
            Self::Unparsable { detail } => write!(f, "does not parse: {detail}"),
            Self::Leftover { len } => f.write_str(&counted(*len, "trailing byte")),
            Self::Unexpected { rule } => write!(f, "does not belong here: {rule}"),
            Self::Overflow { what } => write!(f, "{what} overflows 64 bits"),
        }
    }
}

/// The class of an error. It determines the exit code, the HTTP status and the Python exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// I/O error: missing file, permission, full disk, network.
    Io,
    /// The bytes violate the format.
    Malformed,
    /// A checksum or a decoder reports damaged bytes.
    Corrupt,
    /// A declared size exceeds a limit of this reader or of this platform.
    Limit,
    /// Valid, but not supported by this build or version.
    Unsupported,
    /// Invalid request: unknown name, selection out of range.
    Request,
}

impl Class {
    /// The exit code of a command that fails with this class.
    ///
    /// 0 is success, 1 a failed check, 2 an invalid command line, 130 an interrupt.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Io => 3,
            Self::Malformed => 4,
            Self::Corrupt => 5,
            Self::Limit => 6,
            Self::Unsupported => 7,
            Self::Request => 8,
        }
    }
}

/// The interface of every error: class, span and hint.
pub trait Diagnostic: StdError {
    /// The class.
    fn class(&self) -> Class;
    /// The bytes that caused the error, if any.
    fn span(&self) -> Option<Span> {
        None
    }
    /// What to do about it.
    fn hint(&self) -> Option<Hint> {
        None
    }
    /// Whether the file does not exist.
    fn is_not_found(&self) -> bool {
        false
    }
    /// Whether the operation was cancelled through [`Progress`](crate::Progress).
    fn is_cancelled(&self) -> bool {
        false
    }
    /// Whether the output pipe was closed by its reader.
    fn is_broken_pipe(&self) -> bool {
        false
    }
}

impl<R: Region> Diagnostic for Malformed<R> {
    fn class(&self) -> Class {
        match self.reason {
            Reason::UnknownVersion { .. } | Reason::UnknownId { .. } => Class::Unsupported,
            _ => Class::Malformed,
        }
    }
    fn span(&self) -> Option<Span> {
        Some(self.site.span)
    }
}

/// An error kind with the location of the file.
///
/// The location is attached once, where the file was opened. The kind is boxed so that a `Result` stays small.
#[derive(Debug)]
pub struct Error<K> {
    location: Arc<str>,
    kind: Box<K>,
}

impl<K> Error<K> {
    /// Attaches the location of a file to an error kind.
    pub fn new(location: Arc<str>, kind: K) -> Self {
        Self { location, kind: Box::new(kind) }
    }

    /// The path or URL, as it was opened.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// The error kind.
    pub fn kind(&self) -> &K {
        &self.kind
    }

    /// The error kind, without the location.
    pub fn into_kind(self) -> K {
        *self.kind
    }
}

impl<K: fmt::Display> fmt::Display for Error<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", crate::escape::name(&self.location), self.kind)
    }
}

impl<K: StdError> StdError for Error<K> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.kind.source()
    }
}

impl<K: Diagnostic> Diagnostic for Error<K> {
    fn class(&self) -> Class {
        self.kind.class()
    }
    fn span(&self) -> Option<Span> {
        self.kind.span()
    }
    fn hint(&self) -> Option<Hint> {
        self.kind.hint()
    }
    fn is_not_found(&self) -> bool {
        self.kind.is_not_found()
    }
    fn is_cancelled(&self) -> bool {
        self.kind.is_cancelled()
    }
    fn is_broken_pipe(&self) -> bool {
        self.kind.is_broken_pipe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_sentences() {
        let codec = Reason::UnknownId { found: 34, known: "0 to 3" };
        assert_eq!(codec.to_string(), "is 34, but this build supports 0 to 3 only");
        let one = Reason::Truncated { need: 1, have: 0 };
        assert_eq!(one.to_string(), "needs 1 byte, but only 0 are available");
        assert_eq!(Reason::Leftover { len: 1 }.to_string(), "1 trailing byte");
    }
}
