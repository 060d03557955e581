//! [`BlockMeans`]: a selection reduced to fewer values, for display.

use tercet_core::num::saturating_usize;
use tercet_core::tensor::OutOfMemory;

use super::Select;
use crate::error::{Error, ErrorKind};

/// The mean of each block of a selection.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BlockMeans {
    /// The number of blocks on each axis.
    pub shape: Vec<u64>,
    /// The decoded means, row-major; NaN for a block without values.
    pub values: Vec<f64>,
    /// The number of missing values of the selection.
    pub missing: u64,
    /// The number of infinite values of the selection, which are in no mean.
    pub infinite: u64,
    /// The number of values of the selection.
    pub count: u64,
}

/// Bytes that are read at a time.
const BAND_BYTES: u64 = 64 << 20;
/// The largest number of blocks.
const MAX_BLOCKS: u64 = 1 << 26;

impl Select<'_> {
    /// Reduces the selection to at most `most` values on each axis, by means of blocks of nearly equal size. Values are decoded;
    /// missing ones are skipped. Every value is read, in memory that does not grow with the selection.
    pub fn block_means(&self, most: &[u64]) -> Result<BlockMeans, Error> {
        let extents: Vec<u64> = self.axes.iter().map(|slice| slice.count()).collect();
        let limit = |axis: usize| most.get(axis).copied().unwrap_or(u64::MAX).max(1);
        let shape: Vec<u64> =
            extents.iter().enumerate().map(|(axis, &extent)| extent.min(limit(axis))).collect();
        let blocks = shape.iter().try_fold(1u64, |product, &extent| product.checked_mul(extent));
        let Some(blocks) = blocks.filter(|blocks| *blocks <= MAX_BLOCKS) else {
            return Err(self.refuse("too many values: reduce the selection"));
        };
        let mut sums = Sums::new(saturating_usize(blocks)).map_err(|kind| self.dataset.file.error(kind))?;
        let full = extents.iter().map(|&extent| (0, extent)).collect::<Vec<_>>();
        self.visit(&full, &extents, &shape, &mut sums)?;
        let count = extents.iter().fold(1u64, |product, &extent| product.saturating_mul(extent));
        let values = sums.totals.iter().zip(&sums.counts);
        #[expect(clippy::cast_precision_loss, reason = "a count of values")]
        let values = values.map(|(sum, &count)| if count == 0 { f64::NAN } else { sum / count as f64 });
        let present: u64 = sums.counts.iter().sum();
        let (values, infinite) = (values.collect(), sums.infinite);
        let missing = count.saturating_sub(present).saturating_sub(infinite);
        Ok(BlockMeans { shape, values, missing, infinite, count })
    }

    /// Adds the values of a box. A large box is divided along its first axes.
    fn visit(
        &self,
        ranges: &[(u64, u64)],
        extents: &[u64],
        shape: &[u64],
        sums: &mut Sums,
    ) -> Result<(), Error> {
        let size = self.dataset.grid()?.element().size() as u64;
        let bytes = ranges.iter().fold(size, |bytes, (start, stop)| bytes.saturating_mul(stop - start));
        let long = ranges.iter().position(|(start, stop)| stop - start > 1);
        if let Some(axis) = long.filter(|_| bytes > BAND_BYTES) {
            let (start, stop) = ranges[axis];
            let row = (bytes / (stop - start)).max(1);
            let chunk = self.dataset.chunk_shape()[axis].div_ceil(self.axes[axis].step).max(1);
            // Whole chunks, so that each is decoded once.
            let rows = BAND_BYTES / row;
            let rows = if rows > chunk { rows / chunk * chunk } else { rows };
            // One row is still too large: the next axis is divided.
            let rows = rows.max(1);
            let mut first = start;
            while first < stop {
                let mut part = ranges.to_vec();
                part[axis] = (first, stop.min(first.saturating_add(rows)));
                first = part[axis].1;
                self.visit(&part, extents, shape, sums)?;
            }
            return Ok(());
        }
        // In the order of the dataset; reversed axes are reversed by the number of the block.
        let mut select = self.clone();
        select.reversed.fill(false);
        for (axis, (start, stop)) in ranges.iter().enumerate() {
            select = select.isel(axis, *start..*stop)?;
        }
        let tensor = select.read()?;
        let dtype = self.dataset.grid()?.element();
        let decode = self.dataset.cf_encoding()?.decode(dtype);
        // The block of each position, on each axis.
        let places: Vec<Vec<usize>> = (0..shape.len())
            .map(|axis| {
                let block = |at: u64| {
                    let at = if self.reversed[axis] { extents[axis] - 1 - at } else { at };
                    u128::from(at) * u128::from(shape[axis]) / u128::from(extents[axis])
                };
                (ranges[axis].0..ranges[axis].1).map(|at| usize::try_from(block(at)).unwrap_or(0)).collect()
            })
            .collect();
        let Some((last, outer)) = places.split_last() else { return Ok(()) };
        let mut numbers = vec![0.0; last.len()];
        for (row, bytes) in tensor.bytes().chunks_exact(last.len() * dtype.size()).enumerate() {
            decode.gather(dtype, bytes, 1, &mut numbers);
            let (mut rest, mut base, mut stride) = (row, 0, saturating_usize(shape[shape.len() - 1]));
            for (axis, places) in outer.iter().enumerate().rev() {
                base += places[rest % places.len()] * stride;
                rest /= places.len();
                stride *= saturating_usize(shape[axis]);
            }
            for (&number, &place) in numbers.iter().zip(last).filter(|(number, _)| number.is_finite()) {
                sums.totals[base + place] += number;
                sums.counts[base + place] += 1;
            }
            sums.infinite += numbers.iter().filter(|number| number.is_infinite()).count() as u64;
        }
        Ok(())
    }
}

struct Sums {
    totals: Vec<f64>,
    counts: Vec<u64>,
    infinite: u64,
}

impl Sums {
    fn new(len: usize) -> Result<Self, ErrorKind> {
        let failed = |_| OutOfMemory { bytes: len.saturating_mul(16) };
        let (mut totals, mut counts) = (Vec::new(), Vec::new());
        totals.try_reserve_exact(len).map_err(failed)?;
        counts.try_reserve_exact(len).map_err(failed)?;
        totals.resize(len, 0.0);
        counts.resize(len, 0);
        Ok(Self { totals, counts, infinite: 0 })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use tercet_core::{DType, TensorView};

    use crate::{File, Layout, Writer, WriterOptions};

    fn file() -> File {
        let mut layout = Layout::new();
        let id = layout.dataset("a", DType::I16, [4, 6], [3, 4]).unwrap();
        layout.dims(id, ["y", "x"]).unwrap();
        layout.attr(id, "_FillValue", "-1").unwrap();
        layout.attr(id, "scale_factor", "0.5").unwrap();
        let mut values: Vec<i16> = (0..24).collect();
        values[0] = -1;
        let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
        writer.array(id, TensorView::from_slice(&[4, 6], &values).unwrap()).unwrap();
        File::from_bytes("a", writer.finish().unwrap().output).unwrap()
    }

    #[test]
    fn blocks_are_decoded_means_without_missing_values() {
        let file = file();
        let means = file.dataset("a").unwrap().select().block_means(&[2, 2]).unwrap();
        assert_eq!(means.shape, [2, 2]);
        let left = (1.0 + 2.0 + 6.0 + 7.0 + 8.0) / 5.0 * 0.5;
        assert_eq!(means.values, [left, 3.5, 8.0, 9.5]);
        assert_eq!((means.missing, means.count), (1, 24));
        let all = file.dataset("a").unwrap().select().block_means(&[100, 100]).unwrap();
        assert!(all.values[0].is_nan());
        assert_eq!(all.values[1..4], [0.5, 1.0, 1.5]);
    }

    #[test]
    fn infinities_are_in_no_mean() {
        let mut layout = Layout::new();
        let id = layout.dataset("a", DType::F32, [6], [6]).unwrap();
        let values = [1.0, f32::INFINITY, 3.0, f32::NAN, f32::NEG_INFINITY, 5.0];
        let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
        writer.array(id, TensorView::from_slice(&[6], &values).unwrap()).unwrap();
        let file = File::from_bytes("a", writer.finish().unwrap().output).unwrap();
        let means = file.dataset("a").unwrap().select().block_means(&[2]).unwrap();
        assert_eq!(means.values, [2.0, 5.0]);
        assert_eq!((means.missing, means.infinite, means.count), (1, 2, 6));
    }

    #[test]
    fn selections_and_reversed_axes_are_respected() {
        let file = file();
        let select = file.dataset("a").unwrap().select().slices("1,::-1").unwrap();
        let means = select.block_means(&[1, 3]).unwrap();
        assert_eq!(means.values, [5.25, 4.25, 3.25]);
    }
}
