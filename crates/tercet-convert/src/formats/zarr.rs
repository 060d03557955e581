//! Zarr stores of versions 2 and 3: directories and ZIP archives. Version 3 is written.

mod codecs;
mod metadata;
mod read;
mod store;
mod write;

pub(crate) use read::Zarr;
pub(crate) use store::is_store;
pub(crate) use write::{ZarrSink, check_target, replace_store};
