//! Byte layouts for fuzz targets and tests. Not part of the public API.

pub use crate::wire::{footer, header, ids, page};

/// Page statistics and filters.
pub mod prune {
    pub use crate::page::bounds;
    pub use crate::prune::{bloom, key};
}
