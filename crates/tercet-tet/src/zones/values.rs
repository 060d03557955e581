//! The distinct values of a dataset, up to a limit.

use tercet_core::tensor::OutOfMemory;

/// The limit of distinct values of an indexed dataset.
pub(super) const MAX_VALUES: usize = 64;

/// The distinct values of a chunk, as bits, in ascending order.
#[derive(Debug, Default)]
pub(super) struct Distinct {
    sorted: Vec<u64>,
    /// The last value: neighbours are often equal.
    last: Option<u64>,
}

impl Distinct {
    /// Adds a value; `false` if there are too many.
    pub(super) fn add(&mut self, bits: u64) -> bool {
        if self.last == Some(bits) {
            return true;
        }
        self.last = Some(bits);
        let Err(at) = self.sorted.binary_search(&bits) else { return true };
        if self.sorted.len() == MAX_VALUES {
            return false;
        }
        self.sorted.insert(at, bits);
        true
    }

    pub(super) fn into_vec(self) -> Vec<u64> {
        self.sorted
    }
}

/// The distinct values of a dataset and the chunks they occur in.
#[derive(Debug)]
pub(super) struct Values {
    /// The values as bits, in order of first occurrence.
    found: Vec<u64>,
    /// One bit per value for each chunk, in grid order.
    chunks: Vec<u64>,
}

impl Values {
    pub(super) fn new(chunks: usize) -> Result<Self, OutOfMemory> {
        Ok(Self { found: Vec::new(), chunks: super::room(chunks)? })
    }

    /// Adds the values of a chunk; `false` if there are too many.
    pub(super) fn note(&mut self, chunk: usize, values: &[u64]) -> bool {
        let mut mask = 0;
        for &bits in values {
            let number = match self.found.iter().position(|&known| known == bits) {
                Some(number) => number,
                None if self.found.len() == MAX_VALUES => return false,
                None => {
                    self.found.push(bits);
                    self.found.len() - 1
                }
            };
            mask |= 1 << number;
        }
        if let Some(slot) = self.chunks.get_mut(chunk) {
            *slot = mask;
        }
        true
    }

    /// Each value with its number, sorted by little-endian bytes.
    pub(super) fn by_bytes(&self) -> Vec<(usize, u64)> {
        let mut values: Vec<(usize, u64)> = self.found.iter().copied().enumerate().collect();
        values.sort_unstable_by_key(|(_, bits)| bits.swap_bytes());
        values
    }

    /// The chunks that contain the value with this number, in grid order.
    pub(super) fn chunks_with(&self, number: usize) -> impl Iterator<Item = u64> {
        (0..).zip(&self.chunks).filter(move |(_, mask)| *mask >> number & 1 == 1).map(|(chunk, _)| chunk)
    }
}
