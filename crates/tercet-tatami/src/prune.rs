//! Pruning structures: page statistics, bloom filters and the index of the sort key.

pub mod bloom;
pub mod key;
