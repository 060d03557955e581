//! The byte tables of the format: each is read and written by one file, without I/O.
//!
//! | module | contents |
//! |---|---|
//! | [`ids`] | numbers of encodings, codecs, record kinds, flags |
//! | [`header`] | the first 64 bytes |
//! | [`page`] | the 32 bytes in front of every page and record |
//! | [`footer`] | the sections of the footer, and the trailer |

pub mod footer;
pub mod header;
pub mod ids;
pub mod page;

pub(crate) mod cursor;
