//! Test arrays, encoded and sliced by naive code.

/// NumPy's letters for the ten element types, and their sizes.
pub(crate) const TYPES: [(&str, usize); 10] = [
    ("f2", 2),
    ("f4", 4),
    ("f8", 8),
    ("i2", 2),
    ("i4", 4),
    ("i8", 8),
    ("u1", 1),
    ("u2", 2),
    ("u4", 4),
    ("u8", 8),
];

/// An array whose element number `n` (row-major) has the bytes `element(n)`.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) kind: &'static str,
    pub(crate) size: usize,
    pub(crate) shape: Vec<u64>,
}

impl Array {
    pub(crate) fn new((kind, size): (&'static str, usize), shape: &[u64]) -> Self {
        Self { kind, size, shape: shape.to_vec() }
    }

    pub(crate) fn count(&self) -> u64 {
        self.shape.iter().product()
    }

    /// The little-endian bytes of an element: different for neighbours, finite for floats.
    pub(crate) fn element(&self, n: u64) -> Vec<u8> {
        let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        let mut bytes = mixed[8 - self.size..].to_vec();
        if self.kind.starts_with('f') {
            // Clears the top of the exponent: no infinities, no NaN.
            bytes[self.size - 1] &= 0xbf;
        }
        bytes
    }

    /// All values, row-major, little-endian.
    pub(crate) fn values(&self) -> Vec<u8> {
        (0..self.count()).flat_map(|n| self.element(n)).collect()
    }

    /// The values at `start, start + step, …` below `stop` on each axis.
    pub(crate) fn slice(&self, slices: &[(u64, u64, u64)]) -> Vec<u8> {
        let mut numbers = vec![0];
        for (axis, &(start, stop, step)) in slices.iter().enumerate() {
            let positions: Vec<u64> = (start..stop).step_by(step as usize).collect();
            numbers = numbers
                .iter()
                .flat_map(|n| positions.iter().map(move |p| n * self.shape[axis] + p))
                .collect();
        }
        numbers.into_iter().flat_map(|n| self.element(n)).collect()
    }

    /// The array as a `.npy` file.
    pub(crate) fn file(&self, big_endian: bool, fortran: bool) -> Vec<u8> {
        let order = match (self.size, big_endian) {
            (1, _) => '|',
            (_, true) => '>',
            (_, false) => '<',
        };
        let values = (0..self.count()).flat_map(|position| {
            let n = if fortran { self.number_in_fortran_order(position) } else { position };
            let mut element = self.element(n);
            if big_endian {
                element.reverse();
            }
            element
        });
        with_header(&format!("'{order}{}'", self.kind), fortran, &self.shape, values.collect())
    }

    /// The row-major number of the element that is at `position` when the first axis is the fastest.
    fn number_in_fortran_order(&self, mut position: u64) -> u64 {
        let mut index = vec![0; self.shape.len()];
        for (slot, extent) in index.iter_mut().zip(&self.shape) {
            *slot = position % extent;
            position /= extent;
        }
        index.iter().zip(&self.shape).fold(0, |n, (i, extent)| n * extent + i)
    }
}

/// A `.npy` file with this `descr`.
pub(crate) fn with_header(descr: &str, fortran: bool, shape: &[u64], values: Vec<u8>) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let extents = shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ") + ",";
    let text = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': ({extents})}}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((text.len() as u16).to_le_bytes());
    file.extend(text.bytes());
    file.extend(values);
    file
}

/// The values of a `.npy` file that a command wrote.
pub(crate) fn values(file: &[u8]) -> &[u8] {
    let header = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
    &file[header..]
}
