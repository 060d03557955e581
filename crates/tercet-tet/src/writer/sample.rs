//! A sample of the values of a dataset, which decides its compression.
//!
//! The sample is the same for any number of threads and for every run: some chunks spread over the array, and of
//! large chunks the middle.

use tercet_codec::bytes::zstd;
use tercet_core::CommonError;

use crate::error::ErrorKind;
use crate::grid::Grid;
use crate::layout::Compression;
use crate::wire::ids::MAX_RANK;

/// The length of a sample in bytes.
const SAMPLE_BYTES: u64 = 8 << 20;
/// The length of a sample in chunks.
const SAMPLE_CHUNKS: u64 = 64;
/// The bytes of chunks that are requested for a sample, unless one chunk has more.
const REQUESTED_BYTES: u64 = 32 << 20;
/// The part of a chunk that is compressed.
const PIECE_BYTES: usize = 1 << 20;

/// The positions of the chunks of a sample, spread evenly over `count` chunks.
pub(crate) fn positions(grid: &Grid, count: u64) -> Vec<u64> {
    // The first chunk is the largest: chunks are clipped at the far edges.
    let bytes = grid.chunk_bytes_at(&[0; MAX_RANK][..grid.rank()]).max(1);
    let by_sample = SAMPLE_BYTES / bytes.min(PIECE_BYTES as u64);
    let wanted = by_sample.min(REQUESTED_BYTES / bytes).clamp(1, SAMPLE_CHUNKS).min(count);
    let middle = |number: u64| {
        let position = (u128::from(2 * number + 1) * u128::from(count)) / u128::from(2 * wanted);
        u64::try_from(position).unwrap_or(0)
    };
    (0..wanted).map(middle).collect()
}

/// The part of a chunk that is compressed: the middle, in whole elements.
pub(crate) fn piece(raw: &mut [u8], size: usize) -> &mut [u8] {
    if raw.len() <= PIECE_BYTES {
        return raw;
    }
    let start = (raw.len() - PIECE_BYTES) / 2 / size * size;
    &mut raw[start..start + PIECE_BYTES]
}

/// The length of compressed bytes.
pub(crate) fn compressed_len(raw: &[u8], level: i32) -> Result<u64, ErrorKind> {
    if !zstd::is_built_in() {
        return Ok(raw.len() as u64);
    }
    let mut out = Vec::new();
    zstd::encode(raw, level, &mut out)
        .map_err(|error| ErrorKind::Common(CommonError::Write(std::io::Error::other(error))))?;
    Ok(out.len() as u64)
}

/// The compression for a sample of these lengths. Chunks without compression can be mapped, so it must be worth it.
/// Rounding is asked for to make a file smaller: then any gain is.
pub(crate) fn choose(sample: u64, compressed: u64, is_rounded: bool) -> Compression {
    let saves_a_quarter = u128::from(compressed) * 4 <= u128::from(sample) * 3;
    let is_worth_it = if is_rounded { compressed < sample } else { saves_a_quarter };
    if is_worth_it && zstd::is_built_in() {
        Compression::Zstd { level: zstd::DEFAULT_LEVEL }
    } else {
        Compression::None
    }
}

#[cfg(test)]
mod tests {
    use tercet_core::ElementType;

    use super::*;

    fn sampled(shape: &[u64], chunk: &[u64]) -> Vec<u64> {
        let grid = Grid::new(ElementType::F32, shape, chunk).unwrap();
        positions(&grid, grid.chunk_count())
    }

    #[test]
    fn a_sample_is_spread_over_the_array_and_bounded() {
        assert_eq!(sampled(&[10], &[10]), [0]);
        assert_eq!(sampled(&[4], &[1]), [0, 1, 2, 3]);
        let many = sampled(&[1 << 40], &[1]);
        assert_eq!(many.len(), 64);
        assert_eq!(many[0], 1 << 33);
        // Chunks of 4 MiB: at most 32 MiB are requested. Chunks of 1 GiB: one.
        assert_eq!(sampled(&[1000, 1 << 20], &[1, 1 << 20]).len(), 8);
        assert_eq!(sampled(&[100, 1 << 28], &[1, 1 << 28]), [50]);
    }

    #[test]
    fn the_middle_of_a_large_chunk_is_compressed() {
        let mut raw = vec![0; PIECE_BYTES * 3 + 8];
        let from = raw.as_ptr();
        let piece = piece(&mut raw, 8);
        assert_eq!(piece.len(), PIECE_BYTES);
        assert_eq!((piece.as_ptr().addr() - from.addr()) % 8, 0);
    }

    #[test]
    fn compression_must_save_a_quarter() {
        let zstd = Compression::Zstd { level: 3 };
        assert_eq!(choose(100, 75, false), zstd);
        assert_eq!(choose(100, 76, false), Compression::None);
        assert_eq!(choose(100, 99, true), zstd);
        assert_eq!(choose(100, 100, true), Compression::None);
    }
}
