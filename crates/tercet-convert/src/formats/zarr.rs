//! Zarr stores of versions 2 and 3: directories, ZIP archives, and remote stores with consolidated metadata. Version 3 is written.

mod codecs;
mod filters;
mod metadata;
mod read;
mod store;
mod write;

pub(crate) use read::Zarr;
pub use store::OpenKey;
pub(crate) use store::is_store;
pub(crate) use write::{ZarrSink, check_target, replace_store};
