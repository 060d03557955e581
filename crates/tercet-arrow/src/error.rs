//! Errors of table conversion.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;
use tercet_core::{Class, Diagnose, Hint, SourceError, Span, escape};
use tercet_tatami::{SchemaError, Type};
use thiserror::Error;

/// Error of reading, writing or converting a table.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// Columns whose types `.tatami` cannot store; all of them.
    #[error("{}: unsupported column type{}: {}", escape::name(name), plural(columns.len()), ColumnList(columns))]
    UnsupportedTypes {
        /// The file.
        name: Arc<str>,
        /// Every unsupported column.
        columns: Vec<UnsupportedColumn>,
    },
    /// Columns whose types Parquet does not have; all of them.
    #[error("{}: Parquet has no type for {}", escape::name(name), ColumnList(columns))]
    NotInParquet {
        /// The output file.
        name: Arc<str>,
        /// Every unsupported column.
        columns: Vec<UnsupportedColumn>,
    },
    /// The file has none of the requested columns.
    #[error("{}: none of the requested columns exists", escape::name(name))]
    NoSuchColumns {
        /// The file.
        name: Arc<str>,
        /// The columns of the file.
        columns: Vec<String>,
    },
    /// Columns that make no valid schema.
    #[error("{}: {error}", escape::name(name))]
    Schema {
        /// The file.
        name: Arc<str>,
        /// The schema error.
        error: SchemaError,
    },
    /// A column role that the column cannot have.
    #[error("cannot use column `{}` as {role}: {reason}", escape::name(column))]
    ColumnRole {
        /// The role.
        role: ColumnRole,
        /// The column.
        column: String,
        /// Why the column cannot have the role.
        reason: ColumnRoleError,
    },
    /// A value that the target type cannot represent.
    #[error("{}: column `{}`, row {row}: {reason}", escape::name(name), escape::name(column))]
    Value {
        /// The file.
        name: Arc<str>,
        /// The column.
        column: String,
        /// The row, 0-based.
        row: u64,
        /// Why the value cannot be converted.
        reason: ValueError,
    },
    /// A logical type annotation that does not fit the type of its column.
    #[error(
        "{}: column `{}` ({kind}): invalid logical type annotation `{}`",
        escape::name(name),
        escape::name(column),
        escape::name(annotation)
    )]
    Annotation {
        /// The file.
        name: Arc<str>,
        /// The column.
        column: String,
        /// The stored type of the column.
        kind: Type,
        /// The text of the annotation.
        annotation: String,
    },
    /// A file that violates its format, or that uses an unsupported part of it.
    #[error("{}: {message}", escape::name(name))]
    Format {
        /// The file.
        name: Arc<str>,
        /// The error class.
        class: Class,
        /// The message of the reader.
        message: String,
    },
    /// An inconsistent batch of an Arrow file.
    #[error("{}: {batch} {index}{} (bytes {span}): {message}", escape::name(name), BufferNumber(*buffer))]
    Batch {
        /// The file.
        name: Arc<str>,
        /// The kind of batch.
        batch: Batch,
        /// The number of the batch among those of its kind, 0-based.
        index: u64,
        /// The number of the buffer, if the error is about one.
        buffer: Option<usize>,
        /// The byte range of the buffer or of the batch body.
        span: Span,
        /// The error class.
        class: Class,
        /// The inconsistency.
        message: String,
    },
    /// Read error.
    #[error("{}: {error}", escape::name(name))]
    Source {
        /// The file.
        name: Arc<str>,
        /// The read error.
        error: SourceError,
    },
    /// Write error.
    #[error("{}: cannot write: {error}", escape::name(name))]
    Write {
        /// The file.
        name: Arc<str>,
        /// The write error.
        error: std::io::Error,
    },
    /// Error of a `.tatami` file.
    #[error(transparent)]
    Tatami(#[from] tercet_tatami::Error),
}

/// Kind of batch in an Arrow file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// Record batch.
    Record,
    /// Dictionary batch.
    Dictionary,
}

impl fmt::Display for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Record => "record batch",
            Self::Dictionary => "dictionary batch",
        })
    }
}

struct BufferNumber(Option<usize>);

impl fmt::Display for BufferNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |index| write!(f, ", buffer {index}"))
    }
}

/// Role of a column in a `.tatami` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ColumnRole {
    /// Values stored in the blob region.
    Blob,
    /// Column with bloom filters.
    Bloom,
    /// Column with the dictionary hint.
    Dictionary,
    /// Sort key of the rows.
    SortKey,
}

impl fmt::Display for ColumnRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blob => "blob column",
            Self::Bloom => "bloom filter column",
            Self::Dictionary => "dictionary column",
            Self::SortKey => "sort key",
        })
    }
}

/// Reason a column cannot have a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnRoleError {
    /// No column has this name.
    NotFound,
    /// Only string and bytes columns can be stored as blobs.
    NotBytes(Type),
    /// Blob columns have no bloom filters.
    BlobBloom,
    /// The type has no order.
    Unordered(Type),
}

impl fmt::Display for ColumnRoleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("no such column"),
            Self::NotBytes(kind) => write!(f, "expected string or bytes, found {kind}"),
            Self::BlobBloom => f.write_str("blob columns have no bloom filters"),
            Self::Unordered(kind) => write!(f, "{kind} values have no order"),
        }
    }
}

/// Reason a value cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum ValueError {
    /// A timestamp between two microseconds.
    SubMicrosecond { value: i64, unit: &'static str },
    /// A timestamp outside the range of the target unit.
    TimestampOverflow { value: i64, unit: &'static str },
    /// A timestamp that is no whole number of the target unit.
    FractionalUnit { micros: i64, unit: &'static str },
    /// A decimal that exceeds the precision of its type.
    PrecisionOverflow { value: String, type_name: String },
    /// A fixed-size binary value of another length.
    LengthMismatch { found: usize, expected: usize },
    /// A fixed-size list of another length.
    ListLengthMismatch { found: usize, expected: usize },
    /// More distinct values than the dictionary key type can number.
    DictionaryKeyOverflow { max: usize, key_type: String },
    /// A millisecond date that is not midnight, or outside the range of a Parquet date.
    NotADate { millis: i64 },
    /// A float that float16 cannot represent.
    NotFloat16 { value: String },
    /// A string that is not UTF-8.
    InvalidUtf8,
    /// A value longer than a view can address.
    TooLong { len: usize },
    /// Null in a column that is not nullable.
    UnexpectedNull,
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SubMicrosecond { value, unit } => {
                write!(f, "timestamp {value} {unit} is finer than microseconds")
            }
            Self::TimestampOverflow { value, unit } => {
                write!(f, "timestamp {value} {unit} overflows the target unit")
            }
            Self::FractionalUnit { micros, unit } => {
                write!(f, "timestamp {micros} us is not a whole number of {unit}")
            }
            Self::PrecisionOverflow { value, type_name } => {
                write!(f, "{value} exceeds the precision of {type_name}")
            }
            Self::LengthMismatch { found, expected } => {
                write!(f, "value of {found} bytes, expected {expected}")
            }
            Self::ListLengthMismatch { found, expected } => {
                write!(f, "list of {found} elements, expected {expected}")
            }
            Self::DictionaryKeyOverflow { max, key_type } => {
                write!(f, "too many distinct values: dictionary keys of type {key_type} number at most {max}")
            }
            Self::NotADate { millis } => {
                write!(f, "{millis} ms since 1970-01-01 is not a Parquet date")
            }
            Self::NotFloat16 { value } => write!(f, "{value} is not a float16 value"),
            Self::InvalidUtf8 => f.write_str("invalid UTF-8"),
            Self::TooLong { len } => write!(f, "value of {len} bytes is too long for a view"),
            Self::UnexpectedNull => f.write_str("null in a column that is not nullable"),
        }
    }
}

/// A column of an unsupported type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnsupportedColumn {
    /// The column name.
    pub column: String,
    /// The type name, such as `struct of x, y`.
    pub type_name: String,
}

const fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

struct ColumnList<'a>(&'a [UnsupportedColumn]);

impl fmt::Display for ColumnList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, UnsupportedColumn { column, type_name }) in self.0.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(f, "{comma}`{}` ({})", escape::name(column), escape::name(type_name))?;
        }
        Ok(())
    }
}

impl Diagnose for Error {
    fn class(&self) -> Class {
        match self {
            Self::UnsupportedTypes { .. } | Self::NotInParquet { .. } => Class::Unsupported,
            Self::NoSuchColumns { .. } | Self::Schema { .. } | Self::ColumnRole { .. } => Class::Request,
            Self::Value { reason, .. } => match reason {
                ValueError::InvalidUtf8
                | ValueError::UnexpectedNull
                | ValueError::PrecisionOverflow { .. } => Class::Malformed,
                _ => Class::Request,
            },
            Self::Annotation { .. } => Class::Malformed,
            Self::Format { class, .. } | Self::Batch { class, .. } => *class,
            Self::Source { error, .. } => error.class(),
            Self::Write { .. } => Class::Io,
            Self::Tatami(error) => error.class(),
        }
    }

    fn span(&self) -> Option<Span> {
        match self {
            Self::Source { error, .. } => error.span(),
            Self::Batch { span, .. } => Some(*span),
            Self::Tatami(error) => error.span(),
            _ => None,
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::UnsupportedTypes { .. } => Some("leave these columns out when the table is made".into()),
            Self::NotInParquet { .. } => Some(Hint::SelectColumns),
            Self::Value { reason: ValueError::SubMicrosecond { .. }, .. } => Some(Hint::FloorTimestamps),
            Self::Value { reason: ValueError::TimestampOverflow { .. }, .. } => Some(Hint::RawTimestamps),
            Self::Value { reason: ValueError::DictionaryKeyOverflow { .. }, .. } => {
                Some("Arrow streams and Parquet may start a new dictionary, Arrow files may not".into())
            }
            Self::Tatami(error) => error.hint(),
            _ => None,
        }
    }

    fn is_not_found(&self) -> bool {
        match self {
            Self::Source { error, .. } => error.is_not_found(),
            Self::Tatami(error) => error.is_not_found(),
            _ => false,
        }
    }

    fn is_cancelled(&self) -> bool {
        matches!(self, Self::Tatami(error) if error.is_cancelled())
    }

    fn is_broken_pipe(&self) -> bool {
        match self {
            Self::Write { error, .. } => error.kind() == std::io::ErrorKind::BrokenPipe,
            Self::Tatami(error) => error.is_broken_pipe(),
            _ => false,
        }
    }
}

/// Converts an error of the `parquet` crate.
pub(crate) fn from_parquet(name: &Arc<str>, error: ParquetError) -> Error {
    let name = Arc::clone(name);
    match error {
        ParquetError::External(error) => external(name, error),
        ParquetError::NYI(message) => Error::Format { name, class: Class::Unsupported, message },
        error => other(name, &error.to_string()),
    }
}

/// Converts an error of the `arrow` crates.
pub(crate) fn from_arrow(name: &Arc<str>, error: ArrowError) -> Error {
    let name = Arc::clone(name);
    match error {
        ArrowError::ExternalError(error) => external(name, error),
        ArrowError::IoError(message, error) => match error.downcast::<SourceError>() {
            Ok(error) => Error::Source { name, error },
            Err(_) => Error::Format { name, class: Class::Malformed, message },
        },
        ArrowError::NotYetImplemented(message) => Error::Format { name, class: Class::Unsupported, message },
        error => other(name, &error.to_string()),
    }
}

fn external(name: Arc<str>, error: Box<dyn StdError + Send + Sync>) -> Error {
    let error = match error.downcast::<SourceError>() {
        Ok(error) => return Error::Source { name, error: *error },
        Err(error) => error,
    };
    let error = match error.downcast::<ParquetError>() {
        Ok(error) => return from_parquet(&name, *error),
        Err(error) => error,
    };
    match error.downcast::<ArrowError>() {
        Ok(error) => from_arrow(&name, *error),
        Err(error) => other(name, &error.to_string()),
    }
}

/// Converts an error that has only a message.
fn other(name: Arc<str>, message: &str) -> Error {
    let message = strip_prefixes(message);
    match message.strip_prefix("Disabled feature at compile time: ") {
        Some(codec) => {
            let message = format!("is compressed with {codec}, which is not supported");
            Error::Format { name, class: Class::Unsupported, message }
        }
        None => Error::Format { name, class: Class::Malformed, message },
    }
}

/// The message of a library error without its prefixes.
fn strip_prefixes(message: &str) -> String {
    for head in ["Parquet error: ", "Parquet argument error: ", "Arrow: ", "Ipc error: ", "External: "] {
        if let Some(rest) = message.strip_prefix(head) {
            return strip_prefixes(rest);
        }
    }
    message.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disabled_codecs_are_named() {
        let message = "Disabled feature at compile time: brotli".to_owned();
        for error in [
            from_parquet(&"a".into(), ParquetError::General(message.clone())),
            from_arrow(&"a".into(), ParquetError::General(message).into()),
        ] {
            assert_eq!(error.to_string(), "a: is compressed with brotli, which is not supported");
            assert_eq!(error.class(), Class::Unsupported);
        }
    }
}
