//! Errors of `.tatami` files.

use tercet_codec::CodecError;
use tercet_core::{Class, CommonError, Diagnostic, Hint, Span, escape};
use thiserror::Error;

use crate::region::Region;
use crate::schema::{SchemaError, Type};
use crate::wire::ids::Codec;

/// An error with the location of its file.
pub type Error = tercet_core::Error<ErrorKind>;

/// The kind of an error.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// I/O, malformed bytes, checksums, limits, memory, publication, cancellation.
    #[error(transparent)]
    Common(CommonError<Region>),
    /// A payload that cannot be decoded.
    #[error("{region} (bytes {span}) cannot be decoded\n  {error}")]
    Codec {
        /// The region.
        region: Region,
        /// Its bytes.
        span: Span,
        /// The error of the decoder.
        error: Box<CodecError>,
    },
    /// A string that is not valid UTF-8.
    #[error("column `{}`, row {row}: string is not valid UTF-8", escape::name(column))]
    NotUtf8 {
        /// The column.
        column: Box<str>,
        /// The row number in the file.
        row: u64,
    },
    /// The file requires features that this build does not support.
    #[error("requires unsupported features ({features})")]
    UnsupportedFeatures {
        /// The features, by name or bit.
        features: Box<str>,
    },
    /// No such column.
    #[error("has no column `{}`", escape::name(name))]
    NoSuchColumn {
        /// The requested name.
        name: Box<str>,
        /// The first few column names.
        available: Box<str>,
    },
    /// A query that cannot be evaluated.
    #[error("cannot evaluate the query: {reason}")]
    Query {
        /// Why.
        reason: Box<str>,
    },
    /// A phrase query on a segment that stores only snippets.
    #[error("is a snippet-only segment: phrase queries are not supported")]
    SnippetOnly,
    /// No such row.
    #[error("has no row {row}: there are {rows}")]
    NoSuchRow {
        /// The requested row.
        row: u64,
        /// Rows of the file.
        rows: u64,
    },
    /// A scan that cannot be divided, or whose parts other processes cannot open.
    #[error("cannot be scanned in partitions: {reason}")]
    NoPartitions {
        /// The reason.
        reason: &'static str,
    },
    /// The file of a partition was replaced.
    #[error("is not the file that was partitioned\n  {was}, but now {now}")]
    PartitionChanged {
        /// Its length, the checksum of its footer and the rows of the groups when it was partitioned.
        was: Box<str>,
        /// The current values.
        now: Box<str>,
    },
    /// An aggregate that a column does not have.
    #[error("column `{}` is {kind}: {function} is not supported", escape::name(column))]
    NoAggregate {
        /// The aggregate.
        function: &'static str,
        /// The column.
        column: Box<str>,
        /// Its type or logical type.
        kind: Box<str>,
    },
    /// A sum that its type cannot represent.
    #[error("the sum of column `{}` exceeds {kind}", escape::name(column))]
    SumOverflow {
        /// The column.
        column: Box<str>,
        /// The type or logical type of the sum.
        kind: Box<str>,
    },
    /// No such row group.
    #[error("has no row group {group}: there are {groups}")]
    NoSuchGroup {
        /// The requested group.
        group: u64,
        /// Groups of the file.
        groups: u64,
    },
    /// A key lookup in a file without a sort key.
    #[error("has no sort key to look up")]
    NotSorted,
    /// A key of the wrong type.
    #[error("invalid {expected} value {found} for the sort key `{}`", escape::name(column))]
    KeyType {
        /// The sort key.
        column: Box<str>,
        /// Its type.
        expected: Type,
        /// The given value.
        found: Box<str>,
    },
    /// A filter that does not match the columns.
    #[error(transparent)]
    Bind(Box<crate::predicate::BindError>),
    /// A search in a file without an inverted region.
    #[error("is not a search segment")]
    NotASegment,
    /// A directory without files to search.
    #[error("has no .tatami files")]
    NoSegments,
    /// A change of rows in a search segment, whose documents are indexed.
    #[error("is a search segment: its rows are documents")]
    SegmentRows,
    /// A column that cannot identify rows.
    #[error("column `{}` is {kind} and cannot identify rows", escape::name(column))]
    NoKey {
        /// The column.
        column: Box<str>,
        /// Its type.
        kind: Type,
    },
    /// A new row without a key.
    #[error("a new row has no value in the key column `{}`", escape::name(column))]
    NullKey {
        /// The column.
        column: Box<str>,
    },
    /// The members of a collection changed during another change.
    #[error("the collection was changed by another program meanwhile")]
    CollectionChanged,
    /// A damaged record of a manifest.
    #[error("record {record} of the manifest (bytes {span}) is damaged")]
    ManifestDamaged {
        /// Its number, 0-based.
        record: u64,
        /// The damaged bytes.
        span: Span,
    },
    /// A manifest that is shorter than its first record says, or than its header.
    #[error("the manifest is truncated: {found} of {expected} bytes")]
    ManifestTruncated {
        /// Its length.
        found: u64,
        /// The length it should have, at least.
        expected: u64,
    },
    /// A manifest with a header and no records.
    #[error("the manifest has no records: emptied by another program, or truncated")]
    ManifestEmpty,
    /// A file of a directory without a manifest, which an update would hide.
    #[error("the directory has `{}` and no manifest", escape::name(path))]
    UnlistedFile {
        /// Its path.
        path: Box<str>,
    },
    /// A path outside its collection.
    #[error("`{}` is not a path inside the collection", escape::name(path))]
    Outside {
        /// The path.
        path: Box<str>,
    },
    /// The location of a collection is a URL.
    #[error("a collection must be a directory on this machine")]
    RemoteCollection,
    /// No such member of a collection.
    #[error("the collection has no member `{}`", escape::name(path))]
    NoSuchMember {
        /// The requested path.
        path: Box<str>,
    },
    /// A file of a collection changed since it was added.
    #[error("was changed since it was added to the collection\n  {was}, but now {now}")]
    MemberChanged {
        /// Its length and the checksum of its footer when it was added.
        was: Box<str>,
        /// The current values.
        now: Box<str>,
    },
    /// Two files with the same ID.
    #[error("has the ID of the member `{}`, which is another file", escape::name(other))]
    DuplicateId {
        /// The path of the other file.
        other: Box<str>,
    },
    /// Incompatible files.
    #[error("is incompatible with `{}`: {reason}", escape::name(other))]
    SchemaMismatch {
        /// The file that it is compared with.
        other: Box<str>,
        /// The difference.
        reason: Box<str>,
    },
    /// An invalid schema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// Rows that do not match the schema.
    #[error(transparent)]
    Batch(#[from] Box<BatchError>),
    /// Invalid writer options.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// Compression failed.
    #[error("cannot be written: {0}")]
    Encode(Box<CodecError>),
}

const _: () = assert!(size_of::<Error>() <= 24 && size_of::<ErrorKind>() <= 128);

/// Rows that cannot be written.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchError {
    /// Wrong number of columns.
    #[error("the batch has {found} columns, but the schema has {expected}")]
    Columns {
        /// Columns of the schema.
        expected: usize,
        /// Columns of the batch.
        found: usize,
    },
    /// Values of the wrong type.
    #[error("column `{}` is {expected}, but the batch has {found}", escape::name(column))]
    Values {
        /// The column.
        column: Box<str>,
        /// Its type.
        expected: Type,
        /// The type of the values in the batch.
        found: &'static str,
    },
    /// Columns of different lengths.
    #[error("column `{}` has {found} rows, but the first has {expected}", escape::name(column))]
    Rows {
        /// The column.
        column: Box<str>,
        /// Rows of the first column.
        expected: u64,
        /// Rows of this column.
        found: u64,
    },
    /// A null in a non-nullable column.
    #[error("column `{}`, row {row} of the batch: null in a non-nullable column", escape::name(column))]
    Null {
        /// The column.
        column: Box<str>,
        /// The row of the batch.
        row: u64,
    },
    /// A string that is not valid UTF-8.
    #[error("column `{}`, row {row} of the batch: string is not valid UTF-8", escape::name(column))]
    NotUtf8 {
        /// The column.
        column: Box<str>,
        /// The row of the batch.
        row: u64,
    },
    /// A value that exceeds the maximum page size.
    #[error(
        "column `{}`, row {row} of the batch: {bytes} bytes exceed the maximum page size",
        escape::name(column)
    )]
    TooLarge {
        /// The column.
        column: Box<str>,
        /// The row of the batch.
        row: u64,
        /// Its bytes.
        bytes: u64,
    },
    /// List ends outside the elements.
    #[error("column `{}`, row {row} of the batch: the list ends outside its elements", escape::name(column))]
    ListEnds {
        /// The column.
        column: Box<str>,
        /// The row of the batch.
        row: u64,
    },
    /// A list that exceeds the maximum length.
    #[error(
        "column `{}`, row {row} of the batch: {elements} elements exceed the maximum list length",
        escape::name(column)
    )]
    TooManyElements {
        /// The column.
        column: Box<str>,
        /// The row of the batch.
        row: u64,
        /// Its elements.
        elements: u64,
    },
    /// A list of another length than the lists of its column.
    #[error(
        "column `{}`, row {row} of the batch: {elements} elements in a column of lists of {expected}",
        escape::name(column)
    )]
    ListLength {
        /// The column.
        column: Box<str>,
        /// The row of the batch.
        row: u64,
        /// The length of the lists.
        expected: u64,
        /// The elements of this one.
        elements: u64,
    },
    /// Rows that are not sorted by the sort key.
    #[error("sort key `{}`, row {row} of the file is less than the previous row", escape::name(column))]
    Unsorted {
        /// The sort key.
        column: Box<str>,
        /// The row number in the file.
        row: u64,
    },
}

/// Invalid writer options.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionsError {
    /// A codec that the profile does not support.
    #[error("{codec} is not supported by the interop profile")]
    CodecInterop {
        /// The codec.
        codec: Codec,
    },
    /// A codec that the writer does not offer.
    #[error("{codec} is not a writer codec: use none, lz4 or zstd")]
    Codec {
        /// The codec.
        codec: Codec,
    },
    /// A sort key whose stored bytes sort differently.
    #[error(
        "column `{}` cannot be the sort key: decimals of more than 18 digits are stored as bytes, which sort differently",
        escape::name(name)
    )]
    SortedDecimals {
        /// The column.
        name: Box<str>,
    },
}

impl From<CodecError> for ErrorKind {
    fn from(error: CodecError) -> Self {
        Self::Encode(Box::new(error))
    }
}

impl From<BatchError> for ErrorKind {
    fn from(error: BatchError) -> Self {
        Self::Batch(Box::new(error))
    }
}

tercet_core::impl_from_common!(ErrorKind, Region);

impl Diagnostic for ErrorKind {
    fn class(&self) -> Class {
        match self {
            Self::Common(error) => error.class(),
            Self::Codec { error, .. } | Self::Encode(error) if error.is_not_built() => Class::Unsupported,
            Self::Codec { .. }
            | Self::ManifestDamaged { .. }
            | Self::ManifestTruncated { .. }
            | Self::ManifestEmpty
            | Self::MemberChanged { .. } => Class::Corrupt,
            Self::NotUtf8 { .. } => Class::Malformed,
            Self::UnsupportedFeatures { .. } => Class::Unsupported,
            Self::NoSuchColumn { .. }
            | Self::NoSuchRow { .. }
            | Self::NoSuchGroup { .. }
            | Self::NoPartitions { .. }
            | Self::NoAggregate { .. }
            | Self::SumOverflow { .. }
            | Self::PartitionChanged { .. }
            | Self::NotSorted
            | Self::SnippetOnly
            | Self::Query { .. }
            | Self::KeyType { .. }
            | Self::Bind(_)
            | Self::NotASegment
            | Self::NoSegments
            | Self::SegmentRows
            | Self::NoKey { .. }
            | Self::NullKey { .. }
            | Self::CollectionChanged
            | Self::UnlistedFile { .. }
            | Self::Outside { .. }
            | Self::RemoteCollection
            | Self::NoSuchMember { .. }
            | Self::DuplicateId { .. }
            | Self::SchemaMismatch { .. }
            | Self::Schema(_)
            | Self::Batch(_)
            | Self::Options(_)
            | Self::Encode(_) => Class::Request,
        }
    }

    fn span(&self) -> Option<Span> {
        match self {
            Self::Common(error) => error.span(),
            Self::Codec { span, .. } | Self::ManifestDamaged { span, .. } => Some(*span),
            _ => None,
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Common(CommonError::Malformed(malformed))
                if matches!(malformed.site.region, Region::Manifest { .. }) =>
            {
                None
            }
            Self::Common(CommonError::Malformed(_) | CommonError::Checksum { .. }) | Self::Codec { .. } => {
                Some(Hint::VerifyDeep)
            }
            Self::Common(error) => error.hint(),
            Self::Bind(error) => match &**error {
                crate::predicate::BindError::NoSuchColumn { nearest: Some(name), .. } => {
                    Some(Hint::DidYouMean(name.clone()))
                }
                crate::predicate::BindError::NoSuchColumn { available, .. } => {
                    Some(Hint::Available { what: "columns", names: available.as_ref().into() })
                }
                _ => None,
            },
            Self::NoSuchColumn { available, .. } if !available.is_empty() => {
                Some(Hint::Available { what: "columns", names: available.as_ref().into() })
            }
            Self::ManifestDamaged { .. } | Self::ManifestTruncated { .. } | Self::ManifestEmpty => {
                Some(Hint::SalvageManifest)
            }
            Self::SegmentRows => {
                Some("index the new documents, and merge both segments without duplicates".into())
            }
            Self::UnlistedFile { .. } => {
                Some("add its files to a collection first, or use an empty directory".into())
            }
            Self::CollectionChanged => Some("repeat the change".into()),
            Self::MemberChanged { .. } => Some(Hint::UpdateMember),
            Self::DuplicateId { .. } => Some("a copy needs a UUID of its own, or none".into()),
            _ => None,
        }
    }

    fn is_not_found(&self) -> bool {
        matches!(self, Self::Common(error) if error.is_not_found())
    }

    fn is_cancelled(&self) -> bool {
        matches!(self, Self::Common(error) if error.is_cancelled())
    }

    fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Common(error) if error.is_broken_pipe())
    }
}
