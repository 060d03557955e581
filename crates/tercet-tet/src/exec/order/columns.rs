//! Columns: the keys of many cells, contiguous for each cell.

use tercet_core::tensor::Buffer;

use super::key::Ordinal;
use super::walk::{Rows, Sink};
use crate::error::ErrorKind;

/// Rows and columns transposed at a time: a cache line of most types, so that every line is read and written once.
const SIDE: usize = 16;

/// Storage for the keys of every cell of a region.
pub(super) struct Columns<T: Ordinal> {
    memory: Buffer,
    starts: Starts,
    lens: Vec<u32>,
    element: std::marker::PhantomData<T>,
}

/// Start of the storage of each cell.
#[derive(Debug)]
pub(super) enum Starts {
    /// The same capacity for all cells.
    Even(usize),
    /// One entry per cell and one for the end.
    Listed(Vec<usize>),
}

impl Starts {
    fn of(&self, cell: usize) -> usize {
        match self {
            Self::Even(room) => cell * room,
            Self::Listed(starts) => starts[cell],
        }
    }
}

/// Capacity for `keys` keys, padded so that the columns of neighbouring cells do not compete for the same cache lines,
/// as they would with a power of two between them.
pub(super) fn spread(keys: usize) -> usize {
    if keys < 4 * SIDE { keys } else { (keys.div_ceil(SIDE) | 1) * SIDE }
}

impl<T: Ordinal> Columns<T> {
    /// Allocates storage for `cells` cells.
    pub(super) fn new(cells: usize, starts: Starts) -> Result<Self, ErrorKind> {
        let bytes = starts.of(cells).saturating_mul(size_of::<T::Key>());
        let (memory, element) = (Buffer::zeroed(bytes)?, std::marker::PhantomData);
        Ok(Self { memory, starts, lens: vec![0; cells], element })
    }

    /// Number of keys of a cell.
    pub(super) fn len(&self, cell: usize) -> usize {
        self.lens[cell] as usize
    }

    /// Keys of a cell.
    pub(super) fn cell(&mut self, cell: usize) -> &mut [T::Key] {
        let (start, len) = (self.starts.of(cell), self.len(cell));
        &mut bytemuck::cast_slice_mut(&mut self.memory)[start..start + len]
    }

    /// Extends a cell by `count` keys.
    fn grow(&mut self, cell: usize, count: usize) -> &mut [T::Key] {
        let start = self.starts.of(cell) + self.len(cell);
        // Columns are in memory, so their lengths fit.
        self.lens[cell] += u32::try_from(count).unwrap_or(u32::MAX);
        &mut bytemuck::cast_slice_mut(&mut self.memory)[start..start + count]
    }

    /// Adds the same key `count` times.
    pub(super) fn pad(&mut self, cell: usize, key: T::Key, count: usize) {
        self.grow(cell, count).fill(key);
    }

    /// Transposes `columns` columns of `count` rows; a block of `SIDE` by `SIDE` values is transposed in registers and
    /// the L1 cache.
    fn turn(
        &mut self,
        cell: usize,
        step: usize,
        rows: &Rows<'_, T>,
        first: usize,
        count: usize,
        columns: usize,
    ) {
        let mut block = [[T::default().key(); SIDE]; SIDE];
        for row in 0..count {
            let values = &rows.row(first + row)[..columns];
            match <&[T; SIDE]>::try_from(values) {
                Ok(values) => (0..SIDE).for_each(|column| block[column][row] = values[column].key()),
                Err(_) => values.iter().zip(&mut block).for_each(|(value, column)| column[row] = value.key()),
            }
        }
        for (column, keys) in block[..columns].iter().enumerate() {
            self.grow(cell + column * step, count).copy_from_slice(&keys[..count]);
        }
    }
}

impl<T: Ordinal> Sink<T> for Columns<T> {
    fn run(&mut self, cell: usize, values: &[T]) {
        let keys = self.grow(cell, values.len());
        keys.iter_mut().zip(values).for_each(|(key, value)| *key = value.key());
    }

    fn rows(&mut self, cell: usize, step: usize, rows: &Rows<'_, T>) {
        for left in (0..rows.width).step_by(SIDE) {
            let columns = SIDE.min(rows.width - left);
            let part = Rows { values: &rows.values[left..], width: columns, ..*rows };
            for first in (0..rows.count).step_by(SIDE) {
                let count = SIDE.min(rows.count - first);
                self.turn(cell + left * step, step, &part, first, count, columns);
            }
        }
    }
}
