//! The byte layout: one module per table of `docs/spec/tet.md`, fields in the same order.
//!
//! No I/O. Parsers take the bytes and the span of one region; they return values or name the
//! invalid field.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::as_conversions)]

pub(crate) mod block;
pub(crate) mod directory;
pub(crate) mod footer;
pub(crate) mod ids;
pub(crate) mod index;
pub(crate) mod superblock;
