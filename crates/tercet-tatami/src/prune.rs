//! Pruning structures: bloom filters and the page index of the sort key.

pub mod bloom;
pub mod key;
