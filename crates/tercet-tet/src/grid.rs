//! [`Grid`]: the chunk grid of a dataset.

use tercet_core::tensor::AxisSlice;
use tercet_core::{DType, ElementType, Selection};

use crate::error::DatasetError;
use crate::wire::directory::Record;
use crate::wire::ids::{MAX_RANK, dtype_of};

/// The chunk grid of a dataset: shape and chunk shape, checked for overflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    dtype: ElementType,
    shape: Vec<u64>,
    chunk_shape: Vec<u64>,
    counts: Vec<u64>,
    chunk_count: u64,
    bytes: u64,
}

impl Grid {
    /// A grid. `chunk_shape` need not divide `shape`; chunks at the edge are clipped.
    pub fn new(dtype: ElementType, shape: &[u64], chunk_shape: &[u64]) -> Result<Self, DatasetError> {
        if let Some(axis) = shape.iter().position(|&extent| extent == 0) {
            return Err(DatasetError::ZeroShape { axis });
        }
        if let Some(axis) = chunk_shape.iter().position(|&extent| extent == 0) {
            return Err(DatasetError::ZeroChunk { axis });
        }
        let counts: Vec<u64> =
            shape.iter().zip(chunk_shape).map(|(extent, chunk)| extent.div_ceil(*chunk)).collect();
        let product = |numbers: &[u64]| numbers.iter().try_fold(1u64, |a, &b| a.checked_mul(b));
        let bytes = product(shape).and_then(|elements| elements.checked_mul(dtype.size() as u64));
        let (Some(chunk_count), Some(bytes)) = (product(&counts), bytes) else {
            return Err(DatasetError::TooLarge);
        };
        let (shape, chunk_shape) = (shape.to_vec(), chunk_shape.to_vec());
        Ok(Self { dtype, shape, chunk_shape, counts, chunk_count, bytes })
    }

    /// The grid of a directory record.
    pub(crate) fn from_record(record: &Record) -> Result<Self, DatasetError> {
        let dtype = dtype_of(record.dtype_tag).ok_or(DatasetError::UnknownDType { tag: record.dtype_tag })?;
        Self::new(dtype, &record.shape, &record.chunk_shape)
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype.into()
    }

    /// The numeric type of the elements.
    pub fn element(&self) -> ElementType {
        self.dtype
    }

    /// The extents of the array.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The extents of a chunk that is not clipped.
    pub fn chunk_shape(&self) -> &[u64] {
        &self.chunk_shape
    }

    /// The number of chunks on each axis.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The number of chunks.
    pub fn chunk_count(&self) -> u64 {
        self.chunk_count
    }

    /// The bytes of the whole array.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The number of a chunk, last axis fastest; `None` outside the grid.
    pub fn linear(&self, coords: &[u64]) -> Option<u64> {
        if coords.len() != self.rank() || coords.iter().zip(&self.counts).any(|(c, count)| c >= count) {
            return None;
        }
        // Cannot overflow: it stays below the number of chunks.
        Some(coords.iter().zip(&self.counts).fold(0, |linear, (c, count)| linear * count + c))
    }

    /// The coordinates of a chunk number; those past the rank are zero.
    pub fn coords(&self, mut linear: u64) -> [u64; MAX_RANK] {
        let mut coords = [0; MAX_RANK];
        for (slot, count) in coords.iter_mut().zip(&self.counts).rev() {
            *slot = linear % count;
            linear /= count;
        }
        coords
    }

    /// The extents of a chunk, clipped at the edge. Coordinates must be inside the grid.
    pub fn chunk_shape_at(&self, coords: &[u64]) -> Vec<u64> {
        (0..self.rank()).map(|axis| self.window(axis, coords[axis])).map(|(low, high)| high - low).collect()
    }

    /// The bytes of a chunk, clipped at the edge.
    pub fn chunk_bytes_at(&self, coords: &[u64]) -> u64 {
        self.chunk_shape_at(coords).iter().product::<u64>() * self.dtype.size() as u64
    }

    /// The positions `low..high` of a chunk on one axis.
    pub fn window(&self, axis: usize, coordinate: u64) -> (u64, u64) {
        let low = coordinate * self.chunk_shape[axis];
        (low, low.saturating_add(self.chunk_shape[axis]).min(self.shape[axis]))
    }

    /// The first selected position of an axis after the chunk of a selected position. Positions are numbers in the
    /// selection.
    pub(crate) fn next_chunk(&self, axis: usize, slice: AxisSlice, position: u64) -> u64 {
        let (_, high) = self.window(axis, (slice.start + position * slice.step) / self.chunk_shape[axis]);
        high.saturating_sub(slice.start).div_ceil(slice.step).max(position + 1)
    }

    /// The largest number of selected positions of an axis in one chunk.
    pub(crate) fn chunk_positions(&self, axis: usize, slice: AxisSlice) -> u64 {
        self.chunk_shape[axis].div_ceil(slice.step).min(slice.count()).max(1)
    }

    /// The extents of consecutive parts of a chunk, at most `bytes` bytes (or one element) each: a part
    /// is a range of rows.
    pub(crate) fn blocks_of_rows(&self, bytes: u64) -> Vec<u64> {
        let mut extents = self.chunk_shape.clone();
        for (extent, &most) in extents.iter_mut().zip(&self.shape) {
            *extent = most.min(*extent);
        }
        for axis in 0..extents.len() {
            // Cannot overflow: it stays below the bytes of the array.
            let below = extents[axis + 1..].iter().product::<u64>() * self.dtype.size() as u64;
            if below <= bytes {
                extents[axis] = extents[axis].min(bytes / below);
                break;
            }
            extents[axis] = 1;
        }
        extents
    }

    /// The number of chunks with selected positions; `None` on overflow.
    pub fn touched_count(&self, selection: &Selection) -> Option<u64> {
        let mut per_axis = selection.axes().iter().zip(&self.chunk_shape).map(|(slice, &chunk)| {
            // A step larger than a chunk hits a new chunk each time; a smaller one skips no chunk.
            if slice.step > chunk { slice.count() } else { slice.last() / chunk - slice.start / chunk + 1 }
        });
        per_axis.try_fold(1u64, u64::checked_mul)
    }

    /// The chunks with selected positions, in grid order.
    ///
    /// The list has [`touched_count`](Self::touched_count) entries: check that number first for untrusted grids.
    pub fn touched(&self, selection: &Selection) -> Vec<[u64; MAX_RANK]> {
        self.touched_numbers(selection).into_iter().map(|number| self.coords(number)).collect()
    }

    /// The numbers of the chunks with selected positions, in ascending order.
    pub(crate) fn touched_numbers(&self, selection: &Selection) -> Vec<u64> {
        let mut touched = vec![0];
        for (axis, slice) in selection.axes().iter().enumerate() {
            let chunk = self.chunk_shape[axis];
            let hit: Vec<u64> = if slice.step > chunk {
                (0..slice.count()).map(|n| (slice.start + n * slice.step) / chunk).collect()
            } else {
                (slice.start / chunk..=slice.last() / chunk).collect()
            };
            let count = self.counts[axis];
            touched = touched.iter().flat_map(|&outer| hit.iter().map(move |&c| outer * count + c)).collect();
        }
        touched
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tercet_core::tensor::AxisSlice;

    use super::*;

    #[test]
    fn edge_chunks_are_clipped() {
        let grid = Grid::new(ElementType::F32, &[7, 5], &[3, 2]).unwrap();
        let lengths: Vec<u64> =
            (0..grid.chunk_count()).map(|n| grid.chunk_bytes_at(&grid.coords(n)[..2])).collect();
        assert_eq!(lengths, [24, 24, 12, 24, 24, 12, 8, 8, 4]);
        let grid = Grid::new(ElementType::I32, &[3, 5], &[8, 16]).unwrap();
        assert_eq!((grid.chunk_count(), grid.chunk_bytes_at(&[0, 0])), (1, 60));
    }

    #[test]
    fn rows_of_a_chunk_fit() {
        let grid = Grid::new(ElementType::F32, &[10, 6, 5], &[4, 8, 3]).unwrap();
        for (bytes, rows) in
            [(1 << 20, [4, 6, 3]), (287, [3, 6, 3]), (72, [1, 6, 3]), (71, [1, 5, 3]), (11, [1, 1, 2])]
        {
            assert_eq!(grid.blocks_of_rows(bytes), rows, "{bytes}");
        }
        assert_eq!(grid.blocks_of_rows(0), [1, 1, 1]);
    }

    #[test]
    fn impossible_grids_are_refused() {
        assert_eq!(Grid::new(ElementType::U8, &[0], &[1]), Err(DatasetError::ZeroShape { axis: 0 }));
        assert_eq!(Grid::new(ElementType::U8, &[1, 1], &[1, 0]), Err(DatasetError::ZeroChunk { axis: 1 }));
        assert_eq!(Grid::new(ElementType::U16, &[1 << 63, 1], &[1, 1]), Err(DatasetError::TooLarge));
        let huge = Grid::new(ElementType::U8, &[u64::MAX], &[u64::MAX - 1]).unwrap();
        assert_eq!(huge.window(0, 1), (u64::MAX - 1, u64::MAX));
    }

    proptest! {
        #[test]
        fn numbers_and_coordinates_agree(shape in prop::collection::vec((1u64..9, 1u64..5), 1..5)) {
            let (extents, chunks): (Vec<u64>, Vec<u64>) = shape.into_iter().unzip();
            let grid = Grid::new(ElementType::U8, &extents, &chunks).unwrap();
            let mut total = 0;
            for n in 0..grid.chunk_count() {
                let coords = grid.coords(n);
                prop_assert_eq!(grid.linear(&coords[..extents.len()]), Some(n));
                total += grid.chunk_bytes_at(&coords[..extents.len()]);
            }
            prop_assert_eq!(total, grid.bytes());
        }

        #[test]
        fn touched_chunks_are_those_with_a_position(
            axes in prop::collection::vec((1u64..20, 1u64..6, 0u64..20, 1u64..20, 1u64..7), 1..4)
        ) {
            let extents: Vec<u64> = axes.iter().map(|a| a.0).collect();
            let chunks: Vec<u64> = axes.iter().map(|a| a.1).collect();
            let slices: Vec<AxisSlice> = axes.iter().map(|&(extent, _, start, len, step)| {
                let start = start % extent;
                AxisSlice { start, stop: (start + len).min(extent), step }
            }).collect();
            let selection = Selection::new(slices.clone(), &extents).unwrap();
            let grid = Grid::new(ElementType::U8, &extents, &chunks).unwrap();
            let mut expected = Vec::new();
            for n in 0..grid.chunk_count() {
                let coords = grid.coords(n);
                let hit = slices.iter().enumerate().all(|(axis, slice)| {
                    let (low, high) = grid.window(axis, coords[axis]);
                    (slice.start..slice.stop).step_by(slice.step as usize).any(|p| (low..high).contains(&p))
                });
                if hit {
                    expected.push(coords);
                }
            }
            prop_assert_eq!(grid.touched_count(&selection), Some(expected.len() as u64));
            prop_assert_eq!(grid.touched(&selection), expected);
        }
    }
}
