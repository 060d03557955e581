//! [`ArraySink`]: the writer of an array file.

use tercet_core::Progress;

use crate::Error;

/// Reads the values of a box: start, extents, buffer. Called from several threads.
pub type Fill<'f> = dyn Fn(&[u64], &[u64], &mut [u8]) -> Result<(), Error> + Sync + 'f;

/// The values of a variable, for a sink.
pub struct Values<'f> {
    /// Reads the values of a box, row-major, little-endian.
    pub fill: &'f Fill<'f>,
    /// The chunk shape of the source, if a box costs as much as the chunks that it overlaps.
    pub source_chunks: Option<Vec<u64>>,
    /// The frames of the chunk of the output at these coordinates, if the source has the same chunks, compressed with Zstandard.
    pub stored: Option<&'f Stored<'f>>,
}

/// Returns the Zstandard frames of a chunk, if it is stored like that. Called from several threads.
pub type Stored<'f> = dyn Fn(&[u64]) -> Result<Option<Vec<u8>>, Error> + Sync + 'f;

impl std::fmt::Debug for Values<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Values").field("source_chunks", &self.source_chunks).finish_non_exhaustive()
    }
}

/// The writer of an array file. It is created with the structure of the file; the sink asks for the values box by box, in the
/// order that suits the format.
pub trait ArraySink {
    /// Writes all values of a variable of numbers or characters.
    fn write(&mut self, variable: usize, values: &Values<'_>, progress: &dyn Progress) -> Result<(), Error>;

    /// Writes all strings of a variable.
    fn write_strings(&mut self, variable: usize, strings: &[String]) -> Result<(), Error>;

    /// Completes the file. It appears under its name here.
    fn finish(self: Box<Self>) -> Result<(), Error>;
}

/// The memory of a slab in bytes.
pub(crate) const SLAB_BYTES: u64 = 64 << 20;

/// A box: start and extents.
pub(crate) type Slab = (Vec<u64>, Vec<u64>);

/// Cuts an array into slabs: contiguous ranges of at most about [`SLAB_BYTES`], in order. Slabs end at chunks of the source,
/// if that needs at most four times the memory.
pub(crate) fn slabs(shape: &[u64], item_size: usize, chunks: Option<&[u64]>) -> Vec<Slab> {
    if shape.contains(&0) {
        return Vec::new();
    }
    // The first axis whose positions are small enough is divided; the axes before it have single positions.
    let mut inner = item_size.max(1) as u64;
    let mut axis = shape.len();
    while axis > 0 && inner.saturating_mul(shape[axis - 1]) <= SLAB_BYTES {
        axis -= 1;
        inner *= shape[axis];
    }
    if axis == 0 {
        return vec![(vec![0; shape.len()], shape.to_vec())];
    }
    let cut = axis - 1;
    let mut step = (SLAB_BYTES / inner).max(1);
    if let Some(chunk) = chunks.and_then(|chunks| chunks.get(cut)).copied().filter(|chunk| *chunk > 1) {
        if step >= chunk {
            step = step / chunk * chunk;
        } else if chunk.saturating_mul(inner) <= SLAB_BYTES * 4 {
            step = chunk;
        }
    }
    let mut slabs = Vec::new();
    let mut start = vec![0; shape.len()];
    loop {
        let mut extents = shape.to_vec();
        extents[..cut].fill(1);
        extents[cut] = step.min(shape[cut] - start[cut]);
        slabs.push((start.clone(), extents));
        start[cut] += step;
        if start[cut] < shape[cut] {
            continue;
        }
        start[cut] = 0;
        // The next position of the axes before.
        let mut outer = cut;
        loop {
            if outer == 0 {
                return slabs;
            }
            outer -= 1;
            start[outer] += 1;
            if start[outer] < shape[outer] {
                break;
            }
            start[outer] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slabs_cover_the_array_in_order() {
        for (shape, chunks) in [
            (vec![3u64, 5_000_000], None),
            (vec![2, 3, 40_000_000], None),
            (vec![1000, 1000, 100], Some(vec![7, 1000, 100])),
            (vec![1000, 1000, 1000], Some(vec![100, 100, 100])),
            (vec![5], None),
            (vec![], None),
        ] {
            let mut next = 0u64;
            for (start, extents) in slabs(&shape, 4, chunks.as_deref()) {
                let linear = start.iter().zip(&shape).fold(0, |linear, (at, extent)| linear * extent + at);
                assert_eq!(linear, next, "{shape:?}");
                let elements: u64 = extents.iter().product();
                assert!(elements * 4 <= SLAB_BYTES * 4);
                next += elements;
            }
            assert_eq!(next, shape.iter().product::<u64>(), "{shape:?}");
        }
        assert!(slabs(&[0, 3], 4, None).is_empty());
    }
}
