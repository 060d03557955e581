//! Errors of table conversion.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;
use tercet_core::{Class, CommonError, Diagnostic, Hint, Region, SourceError, Span, escape};
use tercet_tatami::{SchemaError, Type};
use thiserror::Error;

/// An error with the location of the file.
pub type Error = tercet_core::Error<ErrorKind>;

/// The kind of an error of reading, writing or converting a table.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// I/O, limits, memory, publication, cancellation.
    #[error(transparent)]
    Common(CommonError<NoRegion>),
    /// Columns whose types `.tatami` cannot store; all of them.
    #[error("unsupported column type{}: {}", plural(columns.len()), ColumnList(columns))]
    UnsupportedTypes {
        /// Every unsupported column.
        columns: Vec<UnsupportedColumn>,
    },
    /// Columns whose types Parquet does not have; all of them.
    #[error("Parquet has no type for {}", ColumnList(columns))]
    NotInParquet {
        /// Every unsupported column.
        columns: Vec<UnsupportedColumn>,
    },
    /// The file has none of the requested columns.
    #[error("none of the requested columns exists")]
    NoSuchColumns {
        /// The columns of the file.
        columns: Vec<String>,
    },
    /// An invalid schema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
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
    #[error("column `{}`, row {row}: {reason}", escape::name(column))]
    Value {
        /// The column.
        column: String,
        /// The row, 0-based.
        row: u64,
        /// Why the value cannot be converted.
        reason: ValueError,
    },
    /// A logical type annotation that does not match the type of its column.
    #[error(
        "column `{}` ({kind}): invalid logical type annotation `{}`",
        escape::name(column),
        escape::name(annotation)
    )]
    Annotation {
        /// The column.
        column: String,
        /// The stored type of the column.
        kind: Type,
        /// The text of the annotation.
        annotation: String,
    },
    /// A file that violates its format, or that uses an unsupported part of it.
    #[error("{message}")]
    Format {
        /// The error class.
        class: Class,
        /// The message of the reader.
        message: String,
    },
    /// An inconsistent batch of an Arrow file.
    #[error("{batch} {index}{} (bytes {span}): {message}", BufferNumber(*buffer))]
    Batch {
        /// The kind of batch.
        batch: Batch,
        /// The number of the batch among those of its kind, 0-based.
        index: u64,
        /// The number of the buffer, if the error refers to one.
        buffer: Option<usize>,
        /// The byte range of the buffer or of the batch body.
        span: Span,
        /// The error class.
        class: Class,
        /// The inconsistency.
        message: String,
    },
    /// Error of a `.tatami` file.
    #[error(transparent)]
    Tatami(#[from] tercet_tatami::ErrorKind),
}

/// The region of [`CommonError`]: errors of Arrow and Parquet files name batches and pages in their messages instead.
#[derive(Clone, Copy, Debug)]
pub enum NoRegion {}

impl fmt::Display for NoRegion {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl Region for NoRegion {}

tercet_core::impl_from_common!(ErrorKind, NoRegion);

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
    /// A timestamp that is not a whole number of the target unit.
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
    /// A value that is too long for a view.
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
                write!(
                    f,
                    "too many distinct values: dictionary keys of type {key_type} have at most {max} values"
                )
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

impl Diagnostic for ErrorKind {
    fn class(&self) -> Class {
        match self {
            Self::Common(error) => error.class(),
            Self::UnsupportedTypes { .. } | Self::NotInParquet { .. } => Class::Unsupported,
            Self::NoSuchColumns { .. } | Self::Schema(_) | Self::ColumnRole { .. } => Class::Request,
            Self::Value { reason, .. } => match reason {
                ValueError::InvalidUtf8
                | ValueError::UnexpectedNull
                | ValueError::PrecisionOverflow { .. } => Class::Malformed,
                _ => Class::Request,
            },
            Self::Annotation { .. } => Class::Malformed,
            Self::Format { class, .. } | Self::Batch { class, .. } => *class,
            Self::Tatami(error) => error.class(),
        }
    }

    fn span(&self) -> Option<Span> {
        match self {
            Self::Common(error) => error.span(),
            Self::Batch { span, .. } => Some(*span),
            Self::Tatami(error) => error.span(),
            _ => None,
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Common(error) => error.hint(),
            Self::UnsupportedTypes { .. } => Some("omit these columns when the table is written".into()),
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
            Self::Common(error) => error.is_not_found(),
            Self::Tatami(error) => error.is_not_found(),
            _ => false,
        }
    }

    fn is_cancelled(&self) -> bool {
        match self {
            Self::Common(error) => error.is_cancelled(),
            Self::Tatami(error) => error.is_cancelled(),
            _ => false,
        }
    }

    fn is_broken_pipe(&self) -> bool {
        match self {
            Self::Common(error) => error.is_broken_pipe(),
            Self::Tatami(error) => error.is_broken_pipe(),
            _ => false,
        }
    }
}

/// Converts an error of a `.tatami` file.
pub(crate) fn from_tatami(error: tercet_tatami::Error) -> Error {
    Error::new(error.location().into(), ErrorKind::Tatami(error.into_kind()))
}

/// Converts an error of the `parquet` crate.
pub(crate) fn from_parquet(name: &Arc<str>, error: ParquetError) -> Error {
    Error::new(Arc::clone(name), parquet_kind(error))
}

/// Converts an error of the `arrow` crates.
pub(crate) fn from_arrow(name: &Arc<str>, error: ArrowError) -> Error {
    Error::new(Arc::clone(name), arrow_kind(error))
}

fn parquet_kind(error: ParquetError) -> ErrorKind {
    match error {
        ParquetError::External(error) => external(error),
        ParquetError::NYI(message) => ErrorKind::Format { class: Class::Unsupported, message },
        error => other(&error.to_string()),
    }
}

fn arrow_kind(error: ArrowError) -> ErrorKind {
    match error {
        ArrowError::ExternalError(error) => external(error),
        ArrowError::IoError(message, error) => match error.downcast::<SourceError>() {
            Ok(error) => error.into(),
            Err(_) => ErrorKind::Format { class: Class::Malformed, message },
        },
        ArrowError::NotYetImplemented(message) => ErrorKind::Format { class: Class::Unsupported, message },
        error => other(&error.to_string()),
    }
}

fn external(error: Box<dyn StdError + Send + Sync>) -> ErrorKind {
    let error = match error.downcast::<SourceError>() {
        Ok(error) => return (*error).into(),
        Err(error) => error,
    };
    let error = match error.downcast::<ParquetError>() {
        Ok(error) => return parquet_kind(*error),
        Err(error) => error,
    };
    match error.downcast::<ArrowError>() {
        Ok(error) => arrow_kind(*error),
        Err(error) => other(&error.to_string()),
    }
}

/// Converts an error that has only a message.
fn other(message: &str) -> ErrorKind {
    let message = strip_prefixes(message);
    match message.strip_prefix("Disabled feature at compile time: ") {
        Some(codec) => {
            let message = format!("is compressed with {codec}, which is not supported");
            ErrorKind::Format { class: Class::Unsupported, message }
        }
        None => ErrorKind::Format { class: Class::Malformed, message },
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
