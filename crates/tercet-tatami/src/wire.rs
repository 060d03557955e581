//! Parsers and serializers of the byte layout, without I/O.
//!
//! | module | contents |
//! |---|---|
//! | [`ids`] | IDs of encodings, codecs, record kinds, flags |
//! | [`header`] | the file header |
//! | [`page`] | the 32-byte header of pages and records |
//! | [`footer`] | the sections of the footer, and the trailer |

pub(crate) mod footer;
pub(crate) mod header;
pub(crate) mod ids;
pub(crate) mod page;

pub(crate) mod cursor;
