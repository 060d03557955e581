//! What the program for search segments is made of.

pub mod corpus;
pub mod peer;
