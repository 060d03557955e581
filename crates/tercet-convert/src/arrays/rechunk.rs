//! Blocks: boxes of chunks of the output whose values are read from the source in one piece, so that every chunk of the source is decoded
//! once, or a few times if memory does not suffice.

use rayon::prelude::*;

use super::sink::{Fill, Stored, Values};
use crate::Error;

/// The most memory of a block in bytes; one is in memory at a time.
const MAX_BLOCK_BYTES: u64 = 256 << 20;
/// Smaller blocks grow to this, so that threads have enough to do between two blocks.
const BLOCK_BYTES: u64 = 64 << 20;

/// A box of the chunk grid of an output.
#[derive(Clone, Debug)]
pub(crate) struct ChunkBox {
    /// The number of chunks of the array, by axis.
    grid: Vec<u64>,
    first: Vec<u64>,
    counts: Vec<u64>,
    chunk: Vec<u64>,
    shape: Vec<u64>,
}

impl ChunkBox {
    /// All chunks of an array.
    fn whole(shape: &[u64], chunk: &[u64]) -> Self {
        let grid: Vec<u64> =
            shape.iter().zip(chunk).map(|(extent, chunk)| extent.div_ceil((*chunk).max(1))).collect();
        let first = vec![0; grid.len()];
        Self { counts: grid.clone(), grid, first, chunk: chunk.to_vec(), shape: shape.to_vec() }
    }

    /// The number of chunks.
    pub(crate) fn len(&self) -> u64 {
        self.counts.iter().product()
    }

    /// The coordinates of a chunk, counted in this box in row-major order.
    pub(crate) fn coords(&self, number: u64) -> Vec<u64> {
        let mut rest = number;
        let mut coords = self.first.clone();
        for axis in (0..coords.len()).rev() {
            coords[axis] += rest % self.counts[axis];
            rest /= self.counts[axis];
        }
        coords
    }

    /// The number of a chunk of this box in the array, in row-major order.
    pub(crate) fn linear(&self, number: u64) -> u64 {
        self.coords(number).iter().zip(&self.grid).fold(0, |linear, (at, count)| linear * count + at)
    }

    /// Start and extents of a chunk, without positions outside of the array.
    pub(crate) fn window(&self, coords: &[u64]) -> (Vec<u64>, Vec<u64>) {
        let start: Vec<u64> = coords.iter().zip(&self.chunk).map(|(at, chunk)| at * chunk).collect();
        let clipped = |((start, chunk), extent): ((&u64, &u64), &u64)| (*chunk).min(extent - start);
        let extents = start.iter().zip(&self.chunk).zip(&self.shape).map(clipped).collect();
        (start, extents)
    }

    /// Start and extents of the box.
    fn bounds(&self) -> (Vec<u64>, Vec<u64>) {
        let start: Vec<u64> = self.first.iter().zip(&self.chunk).map(|(at, chunk)| at * chunk).collect();
        let extents = start
            .iter()
            .zip(&self.counts)
            .zip(self.chunk.iter().zip(&self.shape))
            .map(|((start, count), (chunk, extent))| count.saturating_mul(*chunk).min(extent - start))
            .collect();
        (start, extents)
    }
}

impl Values<'_> {
    /// The frames of chunks of this shape, if they are those of the source.
    pub(crate) fn carried(&self, chunk: &[u64]) -> Option<&Stored<'_>> {
        self.stored.filter(|_| self.source_chunks.as_deref() == Some(chunk))
    }

    /// Passes the chunks of an output to `each`, block by block, with the reader of their values.
    pub(crate) fn each_block(
        &self,
        shape: &[u64],
        item_size: usize,
        chunk: &[u64],
        each: &mut dyn FnMut(&ChunkBox, &Fill<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let whole = ChunkBox::whole(shape, chunk);
        if whole.len() == 0 {
            return Ok(());
        }
        let source = self.source_chunks.as_deref().filter(|source| source.len() == shape.len());
        let Some(source) = source.filter(|source| !is_aligned(source, chunk, shape)) else {
            return each(&whole, self.fill);
        };
        let block = block_shape(shape, item_size, source, chunk);
        let blocks = ChunkBox::whole(shape, &block);
        if blocks.len() == whole.len() {
            // A chunk alone is as large as a block.
            return each(&whole, self.fill);
        }
        let mut values = Vec::new();
        for number in 0..blocks.len() {
            let (start, extents) = blocks.window(&blocks.coords(number));
            // Blocks are multiples of chunks.
            let first: Vec<u64> = start.iter().zip(chunk).map(|(at, chunk)| at / chunk).collect();
            let counts = extents.iter().zip(chunk).map(|(extent, chunk)| extent.div_ceil(*chunk)).collect();
            let part = ChunkBox { first, counts, ..whole.clone() };
            self.load(&part, item_size, source, &mut values)?;
            let read = |from: &[u64], count: &[u64], out: &mut [u8]| {
                copy(&part, item_size, &values, (from, count), out)
            };
            each(&part, &read)?;
        }
        Ok(())
    }

    /// Reads the values of a block, in pieces that end at chunks of the source.
    fn load(
        &self,
        part: &ChunkBox,
        item_size: usize,
        source: &[u64],
        values: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let (start, extents) = part.bounds();
        let bytes = |extents: &[u64]| {
            let bytes = extents.iter().fold(item_size as u64, |bytes, extent| bytes.saturating_mul(*extent));
            usize::try_from(bytes).unwrap_or(usize::MAX)
        };
        values.resize(bytes(&extents), 0);
        let row = bytes(&extents[1..]);
        let (mut at, end, step) = (start[0], start[0] + extents[0], source[0].max(1));
        let mut rest = &mut values[..];
        let mut pieces = Vec::new();
        while at < end {
            let next = ((at / step + 1) * step).min(end);
            let len = usize::try_from(next - at).unwrap_or(usize::MAX).saturating_mul(row);
            let cut = len.min(rest.len());
            let (piece, after) = std::mem::take(&mut rest).split_at_mut(cut);
            pieces.push((at, next - at, piece));
            (at, rest) = (next, after);
        }
        pieces.into_par_iter().try_for_each(|(at, count, piece)| {
            let (mut start, mut extents) = (start.clone(), extents.clone());
            (start[0], extents[0]) = (at, count);
            (self.fill)(&start, &extents, piece)
        })
    }
}

/// Copies a box out of the values of a block.
fn copy(
    part: &ChunkBox,
    item_size: usize,
    values: &[u8],
    (from, count): (&[u64], &[u64]),
    out: &mut [u8],
) -> Result<(), Error> {
    let (start, extents) = part.bounds();
    let start: Vec<u64> = from.iter().zip(&start).map(|(at, start)| at - start).collect();
    crate::formats::strided::copy_box(values, &extents, item_size, (&start, count), out)
        .map_err(|error| Error::new("".into(), error.into()))
}

/// Whether a box of the target covers whole chunks of the source.
fn is_aligned(source: &[u64], target: &[u64], shape: &[u64]) -> bool {
    source
        .iter()
        .zip(target)
        .zip(shape)
        .all(|((&source, &target), &extent)| source <= 1 || target >= extent || target % source == 0)
}

/// The extents of blocks, in multiples of target chunks: as many as cover whole chunks of the source, if memory suffices.
fn block_shape(shape: &[u64], item_size: usize, source: &[u64], target: &[u64]) -> Vec<u64> {
    let bytes = |extents: &[u64]| {
        extents.iter().fold(item_size as u64, |bytes, extent| bytes.saturating_mul(*extent))
    };
    let mut block: Vec<u64> =
        target.iter().zip(shape).map(|(chunk, extent)| (*chunk).min((*extent).max(1))).collect();
    // Grows an axis to `wanted`, or as far as the memory allows.
    let mut grow = |axis: usize, wanted: u64, most: u64| {
        let other = bytes(&block) / block[axis].max(1);
        let chunk = target[axis].max(1);
        let fits = most / other.saturating_mul(chunk).max(1) * chunk;
        block[axis] = wanted.min(fits).clamp(block[axis], shape[axis].max(block[axis]));
    };
    for axis in (0..shape.len()).rev() {
        let (from, to) = (source[axis].max(1), target[axis].max(1));
        let common = (1..=4).map(|count| from.saturating_mul(count)).find(|extent| extent % to == 0);
        let whole = common.unwrap_or_else(|| from.div_ceil(to).saturating_mul(to));
        grow(axis, whole.min(shape[axis]), MAX_BLOCK_BYTES);
    }
    for axis in (0..shape.len()).rev() {
        grow(axis, shape[axis], BLOCK_BYTES);
    }
    // Blocks are multiples of chunks, but for the last ones.
    for (axis, extent) in block.iter_mut().enumerate() {
        *extent = extent.div_ceil(target[axis].max(1)).saturating_mul(target[axis].max(1));
    }
    block
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn decodes(shape: &[u64], item_size: usize, source: &[u64], target: &[u64]) -> (u64, u64) {
        let block = block_shape(shape, item_size, source, target);
        let bytes = block.iter().zip(shape).fold(item_size as u64, |bytes, (a, b)| bytes * a.min(b));
        // The chunks of the source that the blocks overlap, of those that there are.
        let (mut decoded, mut stored) = (1, 1);
        for ((extent, block), source) in shape.iter().zip(&block).zip(source) {
            let mut touched = 0;
            let mut at = 0;
            while at < *extent {
                let end = (at + block).min(*extent);
                touched += (end - 1) / source - at / source + 1;
                at = end;
            }
            decoded *= touched;
            stored *= extent.div_ceil(*source);
        }
        (u64::div_ceil(decoded, stored), bytes)
    }

    #[test]
    fn source_chunks_are_decoded_once_in_bounded_memory() {
        for (shape, source, target, most) in [
            // Maps to series and back.
            (vec![512u64, 512, 1024], vec![8u64, 256, 512], vec![512u64, 32, 32], 1),
            (vec![512, 512, 1024], vec![512, 32, 32], vec![8, 256, 512], 1),
            (vec![512, 512, 1024], vec![1, 512, 1024], vec![8, 256, 512], 1),
            (vec![365, 721, 1440], vec![1, 721, 1440], vec![365, 10, 10], 7),
            (vec![10_000, 100, 100], vec![7, 100, 100], vec![100, 30, 30], 2),
            (vec![2000, 1000, 1000], vec![10, 1000, 1000], vec![2000, 16, 16], 32),
        ] {
            let (times, bytes) = decodes(&shape, 4, &source, &target);
            assert!(times <= most, "{shape:?} {source:?} {target:?}: {times} times");
            assert!(bytes <= MAX_BLOCK_BYTES, "{shape:?} {source:?} {target:?}: {bytes} bytes");
        }
    }

    #[test]
    fn boxes_are_read_from_blocks() {
        for (shape, source, target) in [
            ([40u64, 30, 20], [1u64, 30, 20], [40u64, 4, 7]),
            ([40, 30, 20], [7, 11, 20], [5, 4, 3]),
            ([40, 30, 20], [40, 3, 3], [3, 30, 20]),
            ([40, 30, 20], [50, 50, 50], [1, 1, 20]),
        ] {
            let reads = AtomicU64::new(0);
            let fill = |start: &[u64], extents: &[u64], out: &mut [u8]| -> Result<(), Error> {
                reads.fetch_add(1, Ordering::Relaxed);
                let mut at = 0;
                for a in 0..extents[0] {
                    for b in 0..extents[1] {
                        for c in 0..extents[2] {
                            let value = ((start[0] + a) * shape[1] + start[1] + b) * shape[2] + start[2] + c;
                            out[at..at + 4].copy_from_slice(&u32::try_from(value).unwrap().to_le_bytes());
                            at += 4;
                        }
                    }
                }
                Ok(())
            };
            let values = Values { fill: &fill, source_chunks: Some(source.to_vec()), stored: None };
            let mut seen = vec![];
            values
                .each_block(&shape, 4, &target, &mut |part, read| {
                    for number in 0..part.len() {
                        let (start, extents) = part.window(&part.coords(number));
                        let len = usize::try_from(extents.iter().product::<u64>() * 4).unwrap();
                        let (mut found, mut expected) = (vec![0; len], vec![0; len]);
                        read(&start, &extents, &mut found)?;
                        fill(&start, &extents, &mut expected)?;
                        assert_eq!(found, expected, "{start:?}");
                        seen.push(part.linear(number));
                    }
                    Ok(())
                })
                .unwrap();
            seen.sort_unstable();
            let count: u64 = shape.iter().zip(target).map(|(extent, chunk)| extent.div_ceil(chunk)).product();
            assert_eq!(seen, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn aligned_boxes_are_read_directly() {
        let fill = |_: &[u64], _: &[u64], _: &mut [u8]| -> Result<(), Error> { Ok(()) };
        let values = Values { fill: &fill, source_chunks: Some(vec![1, 30, 20]), stored: None };
        let mut blocks = 0;
        values
            .each_block(&[40, 30, 20], 4, &[5, 30, 20], &mut |part, _| {
                blocks += 1;
                assert_eq!(part.len(), 8);
                Ok(())
            })
            .unwrap();
        assert_eq!(blocks, 1);
    }
}
