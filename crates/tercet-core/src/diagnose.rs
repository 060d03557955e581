//! The language every error speaks: which region, which field, which bytes, and of which class.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::{Hint, Span};

/// A named part of a file: one enum per format, the breadcrumb in its errors.
pub trait Region: fmt::Debug + fmt::Display + Copy + Send + Sync + 'static {}

/// A place in a file: region, field and bytes.
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

/// Bytes that break the rules of their format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed<R> {
    /// Where.
    pub site: Site<R>,
    /// What is wrong there.
    pub reason: Reason,
}

impl<R: Region> fmt::Display for Malformed<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.class() == Class::Unsupported { "unsupported" } else { "malformed" };
        write!(f, "{what} {}\n  {}", self.site, self.reason)
    }
}

impl<R: Region> StdError for Malformed<R> {}

/// The ways bytes can break the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The bytes end before the field does.
    Truncated {
        /// Bytes the field needs.
        need: u64,
        /// Bytes that are there.
        have: u64,
    },
    /// Fixed bytes are not there.
    BadMagic {
        /// The bytes the format asks for.
        want: &'static [u8],
        /// The bytes found.
        found: Vec<u8>,
    },
    /// A number outside the values the format allows.
    OutOfRange {
        /// The number found.
        found: u64,
        /// The values allowed, in words.
        allowed: &'static str,
    },
    /// A version that this reader does not know.
    UnknownVersion {
        /// The version found.
        found: u64,
        /// The versions known, in words.
        known: &'static str,
    },
    /// A number that must equal another one.
    Mismatch {
        /// The number found.
        found: u64,
        /// The number it must equal.
        expected: u64,
        /// What the expected number is.
        because: &'static str,
    },
    /// A span that leaves the space it must lie in.
    OutOfBounds {
        /// Where the span starts.
        offset: u64,
        /// Its declared length.
        len: u64,
        /// The end it must not pass.
        end: u64,
        /// What ends there.
        what: &'static str,
    },
    /// Text that is not UTF-8.
    NotUtf8,
    /// Structured text (JSON) that does not parse.
    Unparsable {
        /// The parser's words: what and where in the text.
        detail: String,
    },
    /// Bytes left over where a structure must end.
    Leftover {
        /// How many.
        len: u64,
    },
    /// A structure where it must not stand.
    Unexpected {
        /// The rule it breaks.
        rule: &'static str,
    },
    /// An arithmetic combination of declared sizes that no file can have.
    Overflow {
        /// What was being computed.
        what: &'static str,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { need, have } => write!(f, "needs {need} bytes, but only {have} are there"),
            Self::BadMagic { want, found } => {
                write!(f, "expected `{}`, found `{}`", want.escape_ascii(), found.escape_ascii())
            }
            Self::OutOfRange { found, allowed } => write!(f, "says {found}, but must be {allowed}"),
            Self::UnknownVersion { found, known } => {
                write!(f, "is {found}, but this build knows version {known} only")
            }
            Self::Mismatch { found, expected, because } => {
                write!(f, "says {found}, but must be {expected} ({because})")
            }
            Self::OutOfBounds { offset, len, end, what } => {
                write!(f, "says {len} bytes at offset {offset}, but {what} end at {end}")
            }
            Self::NotUtf8 => f.write_str("is not valid UTF-8"),
            Self::Unparsable { detail } => write!(f, "does not parse: {detail}"),
            Self::Leftover { len: 1 } => write!(f, "1 byte is left over"),
            Self::Leftover { len } => write!(f, "{len} bytes are left over"),
            Self::Unexpected { rule } => write!(f, "does not belong here: {rule}"),
            Self::Overflow { what } => write!(f, "{what} overflows 64 bits"),
        }
    }
}

/// The kind of a failure. It decides the exit code, the HTTP status and the Python exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The operating system or the network refused: missing file, permission, full disk.
    Io,
    /// The bytes break the rules of the format.
    Malformed,
    /// The bytes follow the rules but a checksum or a decoder says that they changed.
    Corrupt,
    /// A declared size exceeds a limit of this reader or of this platform.
    Limit,
    /// Valid, but this build or version cannot do it.
    Unsupported,
    /// The caller asked for something that cannot be: unknown name, selection out of range.
    Request,
}

impl Class {
    /// The exit code of a command that failed this way.
    ///
    /// 0 is success, 1 "checked and found bad", 2 a wrong command line; 130 an interrupt.
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

/// What every error of the workspace can tell about itself.
pub trait Diagnose: StdError {
    /// The kind of failure.
    fn class(&self) -> Class;
    /// The bytes it is about, if it is about bytes.
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
    /// Whether the reader of the output closed it.
    fn is_broken_pipe(&self) -> bool {
        false
    }
}

impl<R: Region> Diagnose for Malformed<R> {
    fn class(&self) -> Class {
        match self.reason {
            Reason::UnknownVersion { .. } => Class::Unsupported,
            _ => Class::Malformed,
        }
    }
    fn span(&self) -> Option<Span> {
        Some(self.site.span)
    }
}

/// An error and the file it happened in.
///
/// The location is attached once, where the file was opened. The kind is boxed so that a `Result` stays small.
#[derive(Debug)]
pub struct Error<K> {
    location: Arc<str>,
    kind: Box<K>,
}

impl<K> Error<K> {
    /// Attaches the location of a file to what went wrong in it.
    pub fn new(location: Arc<str>, kind: K) -> Self {
        Self { location, kind: Box::new(kind) }
    }

    /// The path or URL, as it was opened.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// What went wrong.
    pub fn kind(&self) -> &K {
        &self.kind
    }

    /// What went wrong, without the location.
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

impl<K: Diagnose> Diagnose for Error<K> {
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
