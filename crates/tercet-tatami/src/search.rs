//! Full-text search over the documents of a segment.
//!
//! A search segment stores documents and an inverted index: for every term its documents and frequencies.
//!
//! ```text
//! term dictionary ─▶ posting list, ─▶ blocks of 128 documents ─▶ top k
//! (64 terms a block)  skip table      (skipped if no score can reach the threshold)
//! ```
//!
//! [`Segment::search`] returns the top-k documents for a list of terms by block-max pruning; the result is bit-identical to
//! exhaustive scoring. [`Segment::find`] evaluates a [`Query`] with required and excluded terms and phrases.
//! [`SegmentBuilder`] builds segments.

pub(crate) mod access;
pub mod analyze;
mod analyzer;
pub mod build;
mod columns;
mod cursor;
#[cfg(any(unix, windows))]
mod delete;
#[cfg(any(unix, windows))]
mod directory;
mod disjunction;
pub mod evaluate;
mod expand;
mod highlight;
pub(crate) mod inverted;
pub(crate) mod live;
pub(crate) mod merge;
mod multi;
mod options;
pub(crate) mod page_headers;
mod payload;
mod phrase;
mod policy;
pub(crate) mod positions;
mod postings;
pub mod query;
mod rank;
mod routing;
pub mod score;
mod searcher;
mod segment;
mod terms;
mod top;
mod tree;

pub use analyzer::{Analyzer, UnknownAnalyzer};
pub use build::{AnalyzerChoice, Document, FieldValue, SegmentBuilder, SegmentOptions, StorageMode};
#[cfg(any(unix, windows))]
pub use delete::{DeleteBy, DeleteOptions, Deleted, delete, delete_on};
#[cfg(any(unix, windows))]
pub use directory::DirectorySegments;
pub use highlight::Highlight;
pub use merge::{MergeOptions, Merged, merge};
pub use multi::{Cluster, GlobalHit, MultiSearchStats, SegmentSet};
pub use options::{Hit, SearchOptions, SearchResult, SearchStats, StoredFields, TermExplanation, TermStats};
pub use policy::{MergePolicy, SegmentSize};
pub use query::{Query, QueryError};
pub use rank::Ranking;
pub use routing::{Route, Routing};
pub use searcher::{
    Counting, DocumentHit, Facet, FacetValue, RunStats, SearchRequest, SearchResponse, SearchTiming,
    Searcher, SortBy, Suggestion, Total,
};
pub use segment::{Segment, TermInfo};
