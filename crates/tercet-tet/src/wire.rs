//! The bytes of the format: one file for each table of `docs/spec/tet.md`, fields in the same order.
//!
//! Nothing here reads a file. Parsers take the bytes of one region and its place; they return values or say which
//! field is wrong.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::as_conversions)]

pub(crate) mod block;
pub(crate) mod directory;
pub(crate) mod footer;
pub(crate) mod ids;
pub(crate) mod index;
pub(crate) mod superblock;
