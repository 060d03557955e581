//! The stored structures of header, footer and pages.
//!
//! [`File::header`](crate::File::header), [`File::footer`](crate::File::footer) and [`File::pages`](crate::File::pages) return
//! them. Their byte layout is in the format specification.

pub use crate::wire::footer::{
    AccessSection, BlobColumn, Chunk, DictionaryEntry, Features, Footer, Group, IndexEntry, Inverted,
    Resource, Run, Statistics, Zone,
};
pub use crate::wire::header::Header;
pub use crate::wire::ids::{Codec, Encoding, Kind, Role, file_flags, offers, page_flags, requires};
pub use crate::wire::page::PageHeader;
