//! Search over the documents of a segment.
//!
//! A search segment is a document store with an inverted region: for every word the documents that hold it and how often.
//!
//! ```text
//! term dictionary ─▶ posting list, ─▶ blocks of 128 documents ─▶ the k best
//! (64 words a block)  skip table      (skipped where no score can be high enough)
//! ```
//!
//! [`Segment::search`] finds the best documents for a list of words without decoding the blocks that cannot matter; the answer
//! is that of a scorer that looks at everything, to the bit.

pub mod analyze;
mod cursor;
#[cfg(any(unix, windows))]
mod delete;
mod live;
mod many;
mod policy;
mod postings;
mod routing;
pub mod score;
mod segment;
mod terms;
mod top;
mod wand;

#[cfg(any(unix, windows))]
pub use delete::{Deleted, Doomed, delete, delete_on};
pub use many::{Cluster, Index, ManyHit, ManyStats};
pub use policy::{MergePolicy, SegmentSize};
pub use routing::{Route, Routing};
pub use segment::{Hit, SearchStats, Segment, TermInfo};
