//! Slabs for another chunk grid: every chunk of the source is decoded a bounded number of times, in bounded memory.

use std::sync::{Arc, Mutex, OnceLock};

use tercet_core::tensor::BoxCopy;

use super::sink::Fill;
use crate::Error;

/// The memory of one slab in bytes; two are kept.
const SLAB_BYTES: u64 = 128 << 20;

/// Reads boxes of a target grid from slabs, which are read from the source in one piece each.
pub(crate) struct Rechunk<'f> {
    fill: &'f Fill<'f>,
    shape: Vec<u64>,
    item_size: usize,
    /// The extents of a slab, in multiples of target chunks.
    slab: Vec<u64>,
    kept: Mutex<Vec<Kept>>,
    pool: Option<rayon::ThreadPool>,
}

type Loaded = Arc<OnceLock<Result<Arc<Vec<u8>>, Error>>>;

struct Kept {
    start: Vec<u64>,
    values: Loaded,
}

/// Whether a box of the target covers whole chunks of the source.
fn is_aligned(source: &[u64], target: &[u64], shape: &[u64]) -> bool {
    source
        .iter()
        .zip(target)
        .zip(shape)
        .all(|((&source, &target), &extent)| source <= 1 || target >= extent || target % source == 0)
}

impl<'f> Rechunk<'f> {
    /// Slabs for a target grid; `None` if boxes cover whole chunks, or if one row of target chunks needs too much memory.
    pub(crate) fn new(
        fill: &'f Fill<'f>,
        shape: &[u64],
        item_size: usize,
        source: &[u64],
        target: &[u64],
    ) -> Option<Self> {
        if source.len() != shape.len() || target.len() != shape.len() || is_aligned(source, target, shape) {
            return None;
        }
        let bytes = |extents: &[u64]| {
            extents.iter().fold(item_size as u64, |bytes, extent| bytes.saturating_mul(*extent))
        };
        let mut slab: Vec<u64> =
            target.iter().zip(shape).map(|(chunk, extent)| (*chunk).min(*extent)).collect();
        if bytes(&slab) > SLAB_BYTES {
            return None;
        }
        // From the last axis on, axes become whole; the first that does not fit grows as far as it can.
        for axis in (0..shape.len()).rev() {
            let chunk = slab[axis];
            slab[axis] = shape[axis];
            if bytes(&slab) > SLAB_BYTES {
                slab[axis] = chunk;
                let count = (SLAB_BYTES / bytes(&slab).max(1)).max(1);
                slab[axis] = chunk.saturating_mul(count).min(shape[axis]);
                break;
            }
        }
        // Reads run on their own threads: those that wait for a slab must not start other work meanwhile.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(rayon::current_num_threads()).build().ok();
        Some(Self { fill, shape: shape.to_vec(), item_size, slab, kept: Mutex::new(Vec::new()), pool })
    }

    /// Reads a box of the target grid.
    pub(crate) fn read(&self, start: &[u64], extents: &[u64], out: &mut [u8]) -> Result<(), Error> {
        let first: Vec<u64> = start.iter().zip(&self.slab).map(|(at, slab)| at / slab * slab).collect();
        let size: Vec<u64> = first
            .iter()
            .zip(&self.slab)
            .zip(&self.shape)
            .map(|((first, slab), extent)| (*slab).min(extent - first))
            .collect();
        let inside = start.iter().zip(extents).zip(first.iter().zip(&size));
        if !inside.clone().all(|((at, count), (first, size))| at + count <= first + size) {
            return (self.fill)(start, extents, out);
        }
        let loaded = self.loaded(&first);
        let values = loaded.get_or_init(|| self.load(&first, &size).map(Arc::new));
        let values = match values {
            Ok(values) => values.clone(),
            // The error belongs to the first reader; others read for themselves and get their own.
            Err(_) => return (self.fill)(start, extents, out),
        };
        let fit = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        let counts: Vec<usize> = extents.iter().map(|count| fit(*count)).collect();
        let strides = |extents: &[u64]| {
            let mut strides = vec![self.item_size; extents.len()];
            for axis in (0..extents.len().saturating_sub(1)).rev() {
                strides[axis] = strides[axis + 1] * fit(extents[axis + 1]);
            }
            strides
        };
        let (from, to) = (strides(&size), strides(extents));
        let offset: usize =
            start.iter().zip(&first).zip(&from).map(|((at, first), stride)| fit(at - first) * stride).sum();
        BoxCopy::new(self.item_size, &counts, (offset, &from), (0, &to))
            .run(&values, out)
            .map_err(|error| Error::new("".into(), error.into()))
    }

    /// The slab at a position; the oldest of two is dropped.
    fn loaded(&self, first: &[u64]) -> Loaded {
        let mut kept = self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(found) = kept.iter().find(|kept| kept.start == first) {
            return found.values.clone();
        }
        if kept.len() >= 2 {
            kept.remove(0);
        }
        let values = Loaded::default();
        kept.push(Kept { start: first.to_vec(), values: values.clone() });
        values
    }

    fn load(&self, first: &[u64], size: &[u64]) -> Result<Vec<u8>, Error> {
        let bytes = size.iter().fold(self.item_size as u64, |bytes, extent| bytes * extent);
        let mut values = vec![0; usize::try_from(bytes).unwrap_or(0)];
        let mut read = || (self.fill)(first, size, &mut values);
        match &self.pool {
            None => read()?,
            Some(pool) => std::thread::scope(|scope| match scope.spawn(|| pool.install(read)).join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })?,
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn boxes_are_read_from_slabs() {
        let shape = [40u64, 30, 20];
        let reads = AtomicU64::new(0);
        let fill = |start: &[u64], extents: &[u64], out: &mut [u8]| -> Result<(), Error> {
            reads.fetch_add(1, Ordering::Relaxed);
            let mut at = 0;
            for a in 0..extents[0] {
                for b in 0..extents[1] {
                    for c in 0..extents[2] {
                        let value = ((start[0] + a) * 30 + start[1] + b) * 20 + start[2] + c;
                        out[at..at + 4].copy_from_slice(&u32::try_from(value).unwrap().to_le_bytes());
                        at += 4;
                    }
                }
            }
            Ok(())
        };
        let rechunk = Rechunk::new(&fill, &shape, 4, &[1, 30, 20], &[40, 4, 7]);
        assert!(Rechunk::new(&fill, &shape, 4, &[1, 30, 20], &[5, 30, 20]).is_none());
        // One position of axis 0 is one chunk of the source, so boxes are whole chunks only along that axis.
        let rechunk = rechunk.unwrap();
        for b in (0..30).step_by(4) {
            for c in (0..20).step_by(7) {
                let extents = [40, 4.min(30 - b), 7.min(20 - c)];
                let len = usize::try_from(extents.iter().product::<u64>() * 4).unwrap();
                let (mut found, mut expected) = (vec![0; len], vec![0; len]);
                rechunk.read(&[0, b, c], &extents, &mut found).unwrap();
                fill(&[0, b, c], &extents, &mut expected).unwrap();
                assert_eq!(found, expected);
            }
        }
        assert_eq!(reads.load(Ordering::Relaxed), 24 + 1, "one slab");
    }
}
