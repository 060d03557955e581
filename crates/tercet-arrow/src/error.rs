//! What can go wrong between tables.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;
use tercet_core::{Class, Diagnose, SourceError, Span, escape};
use tercet_tatami::{SchemaError, Type};
use thiserror::Error;

/// A table that could not be read, written or carried over.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// Columns whose types have no place here; all of them.
    #[error("{}: {}", escape::name(name), Listed(columns))]
    Types {
        /// The file.
        name: Arc<str>,
        /// Each column.
        columns: Vec<Refused>,
    },
    /// Columns whose types the format of the output does not have; all of them.
    #[error("{}: Parquet has no type for {}", escape::name(name), Each(columns))]
    NotInParquet {
        /// The file to make.
        name: Arc<str>,
        /// Each column.
        columns: Vec<Refused>,
    },
    /// Not one of the columns that were asked for.
    #[error("{}: has none of the columns that were asked for", escape::name(name))]
    NoColumns {
        /// The file.
        name: Arc<str>,
        /// The columns that it has.
        columns: Vec<String>,
    },
    /// Columns that cannot stand together.
    #[error("{}: {error}", escape::name(name))]
    Schema {
        /// The file.
        name: Arc<str>,
        /// Reason.
        error: SchemaError,
    },
    /// A role that was asked for and that the column cannot have.
    #[error("`--{role} {}`: {reason}", escape::name(column))]
    Role {
        /// The role.
        role: &'static str,
        /// The column.
        column: String,
        /// Reason.
        reason: String,
    },
    /// A value that cannot be told in the type of its column.
    #[error("{}: column `{}`, row {row}: {reason}", escape::name(name), escape::name(column))]
    Value {
        /// The file.
        name: Arc<str>,
        /// The column.
        column: String,
        /// The row, counted from 0.
        row: u64,
        /// What is wrong.
        reason: Reason,
    },
    /// A note about the type of a column that does not fit the column.
    #[error(
        "{}: column `{}` is {kind}, and `{}` is no such type",
        escape::name(name),
        escape::name(column),
        escape::name(note)
    )]
    Note {
        /// The file.
        name: Arc<str>,
        /// The column.
        column: String,
        /// What the column is.
        kind: Type,
        /// What the note says.
        note: String,
    },
    /// Bytes that are no table of their format, or of which a part is not known here.
    #[error("{}: {}", escape::name(name), told)]
    Format {
        /// The file.
        name: Arc<str>,
        /// What it is.
        class: Class,
        /// The words of the library that reads it.
        told: String,
    },
    /// A batch of an Arrow file that says of itself what cannot be.
    #[error("{}: {batch} {index}{} (bytes {span}): {told}", escape::name(name), Numbered(*buffer))]
    Batch {
        /// The file.
        name: Arc<str>,
        /// The kind of batch.
        batch: Batch,
        /// Its number among those of its kind, from 0.
        index: u64,
        /// The number of the buffer, where it is one.
        buffer: Option<usize>,
        /// Where it is.
        span: Span,
        /// What it is.
        class: Class,
        /// What it says.
        told: String,
    },
    /// Bytes that could not be had.
    #[error("{}: {error}", escape::name(name))]
    Source {
        /// The file.
        name: Arc<str>,
        /// Reason.
        error: SourceError,
    },
    /// Bytes that could not be written.
    #[error("{}: cannot write: {error}", escape::name(name))]
    Write {
        /// The file.
        name: Arc<str>,
        /// Reason.
        error: std::io::Error,
    },
    /// A `.tatami` file.
    #[error(transparent)]
    Tatami(#[from] tercet_tatami::Error),
}

/// The kinds of batches of Arrow files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// Rows.
    Record,
    /// Values that rows tell by their number.
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

struct Numbered(Option<usize>);

impl fmt::Display for Numbered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |index| write!(f, ", buffer {index}"))
    }
}

/// Reason a value cannot be carried over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message says it")]
pub enum Reason {
    /// A time between two microseconds.
    FinerThanMicros { value: i64, unit: &'static str },
    /// A time that 64 bits cannot tell in the other unit.
    TimeRange { value: i64, unit: &'static str },
    /// A time between two units.
    CoarserUnit { micros: i64, unit: &'static str },
    /// A number with more digits than its type says.
    Digits { value: String, kind: String },
    /// Bytes of another length than all have.
    Length { found: usize, expected: usize },
    /// A list of another length than all have.
    Elements { found: usize, expected: usize },
    /// More values than the numbers of a dictionary can tell apart.
    Distinct { most: usize, key: String },
    /// A time of a day that is not the start of one, or of one too far away.
    NotADay { millis: i64 },
    /// A float that 16 bits cannot tell.
    Half { value: String },
    /// A text that is none.
    NotUtf8,
    /// A value that is longer than its array can say.
    TooLong { len: usize },
    /// Null where nothing can be null.
    Null,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FinerThanMicros { value, unit } => {
                write!(f, "the time {value} {unit} is more exact than microseconds")
            }
            Self::TimeRange { value, unit } => {
                write!(f, "the time {value} {unit} is out of the range of the other unit")
            }
            Self::CoarserUnit { micros, unit } => {
                write!(f, "the time {micros} microseconds is more exact than {unit}")
            }
            Self::Digits { value, kind } => write!(f, "{value} has more digits than {kind}"),
            Self::Length { found, expected } => write!(f, "has {found} bytes, but all have {expected}"),
            Self::Elements { found, expected } => {
                write!(f, "has {found} elements, but all lists have {expected}")
            }
            Self::Distinct { most, key } => {
                write!(f, "is one value too many: numbers of the type {key} tell {most} apart")
            }
            Self::NotADay { millis } => {
                write!(f, "{millis} milliseconds since 1970 are no day that Parquet can tell")
            }
            Self::Half { value } => write!(f, "{value} is no float of 16 bits"),
            Self::NotUtf8 => f.write_str("the text is not valid UTF-8"),
            Self::TooLong { len } => write!(f, "has {len} bytes, more than a view can tell"),
            Self::Null => f.write_str("is null, but the column is not nullable"),
        }
    }
}

/// A column whose type has no place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// The column.
    pub column: String,
    /// Its type.
    pub kind: String,
}

struct Listed<'a>(&'a [Refused]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.0.len() == 1 { "a type that has" } else { "types that have" };
        write!(f, "has {what} no place in a .tatami file: {}", Each(self.0))
    }
}

struct Each<'a>(&'a [Refused]);

impl fmt::Display for Each<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Refused { column, kind }) in self.0.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(f, "{comma}`{}` ({})", escape::name(column), escape::name(kind))?;
        }
        Ok(())
    }
}

impl Diagnose for Error {
    fn class(&self) -> Class {
        match self {
            Self::Types { .. } | Self::NotInParquet { .. } => Class::Unsupported,
            Self::NoColumns { .. } | Self::Schema { .. } | Self::Role { .. } => Class::Request,
            Self::Value { reason, .. } => match reason {
                Reason::NotUtf8 | Reason::Null | Reason::Digits { .. } => Class::Malformed,
                _ => Class::Request,
            },
            Self::Note { .. } => Class::Malformed,
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

    fn hint(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Types { .. } => Some("leave these columns out when the table is made".into()),
            Self::NotInParquet { .. } => Some("`--columns` takes the others; Arrow has such types".into()),
            Self::Value { reason: Reason::FinerThanMicros { .. }, .. } => Some(
                "`--floor-timestamps` cuts times to microseconds, `--raw-timestamps` copies the numbers"
                    .into(),
            ),
            Self::Value { reason: Reason::TimeRange { .. }, .. } => {
                Some("`--raw-timestamps` copies the numbers".into())
            }
            Self::Value { reason: Reason::Distinct { .. }, .. } => {
                Some("Arrow streams and Parquet may start a new dictionary, Arrow files may not".into())
            }
            Self::Tatami(error) => error.hint(),
            _ => None,
        }
    }
}

/// An error of the Parquet library about a file.
pub(crate) fn from_parquet(name: &Arc<str>, error: ParquetError) -> Error {
    let name = Arc::clone(name);
    match error {
        ParquetError::External(error) => external(name, error),
        ParquetError::NYI(told) => Error::Format { name, class: Class::Unsupported, told },
        error => other(name, &error.to_string()),
    }
}

/// An error of the Arrow library about a file.
pub(crate) fn from_arrow(name: &Arc<str>, error: ArrowError) -> Error {
    let name = Arc::clone(name);
    match error {
        ArrowError::ExternalError(error) => external(name, error),
        ArrowError::IoError(told, error) => match error.downcast::<SourceError>() {
            Ok(error) => Error::Source { name, error },
            Err(_) => Error::Format { name, class: Class::Malformed, told },
        },
        ArrowError::NotYetImplemented(told) => Error::Format { name, class: Class::Unsupported, told },
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

/// An error of which there are only words.
fn other(name: Arc<str>, told: &str) -> Error {
    let told = plain(told);
    match told.strip_prefix("Disabled feature at compile time: ") {
        Some(codec) => {
            let told = format!("is compressed with {codec}, which is not supported");
            Error::Format { name, class: Class::Unsupported, told }
        }
        None => Error::Format { name, class: Class::Malformed, told },
    }
}

/// The words of a library without the name of its error.
fn plain(told: &str) -> String {
    for head in ["Parquet error: ", "Parquet argument error: ", "Arrow: ", "Ipc error: ", "External: "] {
        if let Some(rest) = told.strip_prefix(head) {
            return plain(rest);
        }
    }
    told.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_codec_that_is_not_there_is_named() {
        let told = "Disabled feature at compile time: brotli".to_owned();
        for error in [
            from_parquet(&"a".into(), ParquetError::General(told.clone())),
            from_arrow(&"a".into(), ParquetError::General(told).into()),
        ] {
            assert_eq!(error.to_string(), "a: is compressed with brotli, which is not supported");
            assert_eq!(error.class(), Class::Unsupported);
        }
    }
}
