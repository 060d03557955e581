//! Pruning structures: bloom filters and the page index of the sort key.

pub(crate) mod bloom;
pub(crate) mod key;
