//! Modules of the search benchmark.

pub mod corpus;
pub mod peer;
