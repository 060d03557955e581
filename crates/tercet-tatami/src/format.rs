//! The structures of header, footer and pages, as they are stored.
//!
//! [`File::header`](crate::File::header), [`File::footer`](crate::File::footer) and [`File::pages`](crate::File::pages) return
//! them. How their bytes are laid out is in the format document.

pub use crate::wire::footer::{
    BlobColumn, Chunk, DictionaryEntry, Features, Footer, Group, IndexEntry, Inverted, Resource, Run,
    Statistics, Zone,
};
pub use crate::wire::header::Header;
pub use crate::wire::ids::{Codec, Encoding, Kind, Role, file_flags, offers, page_flags, requires};
pub use crate::wire::page::PageHeader;
