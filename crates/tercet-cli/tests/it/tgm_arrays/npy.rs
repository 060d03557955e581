//! Test arrays, encoded by naive code.

/// NumPy's letters for the element types, their sizes, and their names in messages.
pub(crate) const TYPES: [(&str, usize, &str); 13] = [
    ("f2", 2, "float16"),
    ("f4", 4, "float32"),
    ("f8", 8, "float64"),
    ("c8", 8, "complex64"),
    ("c16", 16, "complex128"),
    ("i1", 1, "int8"),
    ("i2", 2, "int16"),
    ("i4", 4, "int32"),
    ("i8", 8, "int64"),
    ("u1", 1, "uint8"),
    ("u2", 2, "uint16"),
    ("u4", 4, "uint32"),
    ("u8", 8, "uint64"),
];

/// Shapes with zero, one and several axes, and without values.
pub(crate) const SHAPES: [&[u64]; 6] = [&[], &[1], &[7], &[3, 4], &[2, 0, 3], &[2, 3, 1, 5]];

/// An array whose element number `n` (row-major) has the bytes `element(n)`.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) kind: &'static str,
    pub(crate) size: usize,
    pub(crate) shape: Vec<u64>,
}

impl Array {
    pub(crate) fn new(kind: &'static str, size: usize, shape: &[u64]) -> Self {
        Self { kind, size, shape: shape.to_vec() }
    }

    fn count(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Bytes that are swapped together: real and imaginary parts separately.
    fn unit(&self) -> usize {
        if self.kind.starts_with('c') { self.size / 2 } else { self.size }
    }

    /// The little-endian bytes of an element: different for neighbours, and finite.
    fn element(&self, n: u64) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..self.size as u64).map(|byte| (n * 37 + byte * 11 + 5) as u8).collect();
        if self.kind.starts_with(['f', 'c']) {
            // Clears the top of the exponent: no infinities, no NaN.
            bytes.chunks_mut(self.unit()).for_each(|part| *part.last_mut().unwrap() &= 0xbf);
        }
        bytes
    }

    /// All values, row-major, little-endian.
    pub(crate) fn values(&self) -> Vec<u8> {
        (0..self.count()).flat_map(|n| self.element(n)).collect()
    }

    /// The array as a `.npy` file.
    pub(crate) fn file(&self, big_endian: bool, fortran: bool) -> Vec<u8> {
        let order = match (self.size, big_endian) {
            (1, _) => '|',
            (_, true) => '>',
            (_, false) => '<',
        };
        let unit = self.unit();
        let values = (0..self.count()).flat_map(|position| {
            let element =
                self.element(if fortran { self.number_in_fortran_order(position) } else { position });
            let part = |part: &[u8]| -> Vec<u8> {
                if big_endian { part.iter().rev().copied().collect() } else { part.to_vec() }
            };
            element.chunks(unit).flat_map(part).collect::<Vec<u8>>()
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
    let extents: Vec<String> = shape.iter().map(|extent| format!("{extent},")).collect();
    let text = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': ({})}}\n", extents.join(" "));
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((text.len() as u16).to_le_bytes());
    file.extend(text.bytes());
    file.extend(values);
    file
}

/// The dictionary of a `.npy` file that a command wrote, without padding, and its values.
pub(crate) fn parts(file: &[u8]) -> (String, &[u8]) {
    let header = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
    assert_eq!((&file[..8], header % 64), (&b"\x93NUMPY\x01\x00"[..], 0));
    (String::from_utf8_lossy(&file[10..header]).trim_end().to_owned(), &file[header..])
}
