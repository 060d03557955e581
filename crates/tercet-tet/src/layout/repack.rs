//! [`Repack`]: another chunk shape, compression or rounding of a stored dataset.

use super::{Compression, DatasetId, Layout, LayoutError};
use crate::grid::Grid;
use crate::rounding::Rounding;

/// How a stored dataset is written again. What is not set stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Repack {
    /// The chunk shape.
    pub chunk_shape: Option<Vec<u64>>,
    /// The compression.
    pub compression: Option<Compression>,
    /// The rounding of the values.
    pub rounding: Option<Rounding>,
}

impl Repack {
    /// No changes yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the chunk shape.
    pub fn with_chunk_shape(mut self, shape: impl Into<Vec<u64>>) -> Self {
        self.chunk_shape = Some(shape.into());
        self
    }

    /// Sets the compression.
    pub fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self
    }

    /// Sets the rounding.
    pub fn with_rounding(mut self, rounding: Rounding) -> Self {
        self.rounding = Some(rounding);
        self
    }
}

impl Layout {
    /// Writes a stored dataset again, in other chunks, with another compression or with rounded values. A dataset without
    /// stored chunks is not changed by its chunk shape only.
    ///
    /// Without a compression, one is chosen as with [`Compression::Auto`]. A recorded error bound grows by the error
    /// that rounding again may add.
    pub fn repack(&mut self, dataset: DatasetId, repack: &Repack) -> Result<(), LayoutError> {
        let planned = &self.datasets[dataset.0];
        if let Some(chunk_shape) = &repack.chunk_shape {
            let of = || planned.name.clone();
            let rank = planned.grid.rank();
            if chunk_shape.len() != rank {
                return Err(LayoutError::ChunkRank { dataset: of(), rank, found: chunk_shape.len() });
            }
            let grid = Grid::new(planned.grid.element(), planned.grid.shape(), chunk_shape)
                .map_err(|reason| LayoutError::Dataset { dataset: of(), reason })?;
            self.datasets[dataset.0].grid = grid;
        }
        self.compress(dataset, repack.compression.unwrap_or(Compression::Auto))?;
        if let Some(rounding) = repack.rounding {
            let before = self.dataset_info(dataset).and_then(Rounding::recorded);
            self.round(dataset, rounding)?;
            match (before, rounding) {
                (Some(Rounding::MaxError(before)), Rounding::MaxError(error)) => {
                    self.add_error(dataset, before, error)?;
                }
                // Both roundings changed the values.
                (Some(Rounding::KeepBits(bits)), Rounding::MaxError(_)) => {
                    self.set_attr(dataset, crate::rounding::KEPT_BITS, &i64::from(bits).into())?;
                }
                _ => {}
            }
        }
        if let Some(origin) = &mut self.datasets[dataset.0].origin {
            origin.recoded = true;
        }
        Ok(())
    }

    /// Records the sum of two errors, unless the second rounding changes nothing.
    fn add_error(&mut self, dataset: DatasetId, before: f64, error: f64) -> Result<(), LayoutError> {
        let dtype = self.datasets[dataset.0].grid.element();
        let bits = |error: f64| Rounding::MaxError(error).bits(dtype).ok();
        let is_kept = bits(error).zip(bits(before)).is_some_and(|(new, old)| new.keeps(&old));
        let total = if is_kept { before } else { before + error };
        self.set_attr(dataset, crate::rounding::MAX_ERROR, &total.into())
    }
}
