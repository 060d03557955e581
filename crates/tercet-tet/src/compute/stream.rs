//! Reads the values of a selection in row-major order, block by block, in bounded memory.

use std::cell::RefCell;
use std::fmt;
use std::io::Write;
use std::ops::Range;

use tercet_core::{ElementType, Progress, Tensor};

use super::Select;
use crate::error::{Error, ErrorKind};
use crate::query::operation::Kind;

/// Bytes of a block of values.
const BLOCK_BYTES: u64 = 64 << 20;

/// A selection in blocks: ranges of its values in row-major order.
#[derive(Clone, Debug)]
pub(crate) struct Blocks<'f> {
    select: Select<'f>,
    /// The type of decoded values; `None` for stored ones.
    decoded: Option<ElementType>,
    /// Axis along which blocks are cut; those before it have one position in a block.
    axis: usize,
    /// Positions of the axis in a block.
    rows: u64,
    /// Values of one position of the axis.
    row_len: u64,
}

impl<'f> Blocks<'f> {
    fn new(select: &Select<'f>, decode: bool, block_bytes: u64) -> Result<Self, Error> {
        let dtype = select.value_type(decode)?;
        let (size, decoded) = (dtype.size() as u64, decode.then_some(dtype));
        let counts: Vec<u64> = select.axes.iter().map(|slice| slice.count()).collect();
        let below = |axis: usize| counts[axis + 1..].iter().copied().fold(1, u64::saturating_mul);
        let last = counts.len().saturating_sub(1);
        let fits = |axis: &usize| below(*axis).saturating_mul(size) <= block_bytes;
        let axis = (0..last).find(fits).unwrap_or(last);
        let Some(slice) = select.axes.get(axis) else {
            return Ok(Self { select: select.clone(), decoded, axis, rows: 1, row_len: 1 });
        };
        let row_len = below(axis);
        // Whole chunks, so that none is read twice.
        let chunk = (select.dataset.chunk_shape()[axis] / slice.step).max(1);
        let rows = block_bytes / row_len.saturating_mul(size).max(1);
        let rows = if rows > chunk { rows / chunk * chunk } else { rows.max(1) };
        Ok(Self { select: select.clone(), decoded, axis, rows, row_len })
    }

    fn counts(&self) -> impl Iterator<Item = u64> {
        self.select.axes.iter().map(|slice| slice.count())
    }

    /// The number of values.
    fn len(&self) -> u64 {
        self.counts().fold(1, u64::saturating_mul)
    }

    /// The block that starts with a value: the part of the selection, and its number of values.
    fn block(&self, start: u64) -> Result<(Select<'f>, u64), Error> {
        let counts: Vec<u64> = self.counts().collect();
        let mut part = self.select.clone();
        let Some(&count) = counts.get(self.axis) else { return Ok((part, 1)) };
        let row = start / self.row_len.max(1);
        let mut outer = row / count;
        let first = row % count;
        let end = first.saturating_add(self.rows).min(count);
        part = part.isel(self.axis, first..end)?;
        for axis in (0..self.axis).rev() {
            let position = outer % counts[axis];
            part = part.isel(axis, position..position + 1)?;
            outer /= counts[axis];
        }
        Ok((part, (end - first) * self.row_len))
    }

    /// Reads the block that starts with a value.
    fn read(&self, start: u64) -> Result<(Tensor, u64), Error> {
        let (part, len) = self.block(start)?;
        let tensor = match self.decoded {
            Some(dtype) => part.read_decoded_as(dtype)?,
            None => part.read()?,
        };
        Ok((tensor, len))
    }
}

impl<'f> Select<'f> {
    /// The element type of the values, stored or decoded by the CF conventions: [`CfEncoding::decoded_type`], but 64-bit
    /// integers that are not packed keep their type if none of them is missing. Their values are read for it.
    ///
    /// [`CfEncoding::decoded_type`]: crate::CfEncoding::decoded_type
    pub fn value_type(&self, decode: bool) -> Result<ElementType, Error> {
        let stored = self.dataset.grid()?.element();
        if !decode {
            return Ok(stored);
        }
        let encoding = self.dataset.cf_encoding()?;
        let decoded = encoding.decoded_type(stored);
        let may_round = is_wide(stored) && decoded != stored && !encoding.is_packed();
        if !may_round {
            return Ok(decoded);
        }
        let counts = self.whole([Kind::Count])?;
        let all = self.axes.iter().map(|slice| slice.count()).fold(1, u64::saturating_mul);
        #[expect(clippy::cast_precision_loss, reason = "numbers of values are far below 2^53")]
        let is_complete = counts[..] == [all as f64];
        Ok(if is_complete { stored } else { decoded })
    }

    /// Whether decoding rounds integers: some are missing, which only f64 can represent, and others have more than 53 bits.
    pub fn is_rounded_by_decoding(&self) -> Result<bool, Error> {
        let stored = self.dataset.grid()?.element();
        if !is_wide(stored) || self.dataset.cf_encoding()?.is_packed() || self.value_type(true)? == stored {
            return Ok(false);
        }
        // 2^53 itself may be the rounded value of a greater one.
        let extremes = self.whole([Kind::Min, Kind::Max])?;
        Ok(extremes.iter().any(|extreme| extreme.abs() >= 9_007_199_254_740_992.0))
    }

    /// Results over all values that are not missing.
    fn whole<const N: usize>(&self, ops: [Kind; N]) -> Result<Vec<f64>, Error> {
        let mut all = self.clone().skipna(true);
        all.reversed.fill(false);
        let results = all.reduce(ops).run_all()?;
        Ok(results.iter().filter_map(|result| result.tensor.to_vec::<f64>()?.first().copied()).collect())
    }

    /// Writes the values: row-major, little-endian, stored or decoded by the CF conventions. Blocks of the selection are
    /// read one after another, so it may be larger than memory.
    pub fn write_values(
        &self,
        decode: bool,
        out: &mut dyn Write,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        self.write_blocks(&Blocks::new(self, decode, self.block_bytes())?, out, progress)
    }

    fn block_bytes(&self) -> u64 {
        BLOCK_BYTES.min(self.dataset.file.options.limits.array_bytes)
    }

    fn write_blocks(
        &self,
        blocks: &Blocks<'f>,
        out: &mut dyn Write,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let mut start = 0;
        while start < blocks.len() {
            let (tensor, len) = blocks.read(start)?;
            let mut write = || -> Result<(), ErrorKind> {
                progress.check()?;
                out.write_all(tensor.bytes())?;
                progress.advance(tensor.bytes().len() as u64);
                Ok(())
            };
            write().map_err(|kind| self.dataset.file.error(kind))?;
            start += len;
        }
        Ok(())
    }

    /// The values, stored or decoded by the CF conventions, read block by block when they are requested.
    pub fn lazy_values<'p>(
        &self,
        decode: bool,
        progress: &'p dyn Progress,
    ) -> Result<LazyValues<'f, 'p>, Error> {
        let blocks = Blocks::new(self, decode, self.block_bytes())?;
        Ok(LazyValues { blocks, progress, held: RefCell::default(), error: RefCell::default() })
    }
}

/// Whether f64 rounds values of a type.
fn is_wide(dtype: ElementType) -> bool {
    matches!(dtype, ElementType::I64 | ElementType::U64)
}

/// The values of a selection in row-major order. One block of them is held at a time: requests in ascending order read
/// each block once.
pub struct LazyValues<'f, 'p> {
    blocks: Blocks<'f>,
    progress: &'p dyn Progress,
    held: RefCell<Option<(Range<u64>, Tensor)>>,
    error: RefCell<Option<Box<Error>>>,
}

impl fmt::Debug for LazyValues<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyValues").field("blocks", &self.blocks).finish_non_exhaustive()
    }
}

impl LazyValues<'_, '_> {
    /// Calls a function with a block and the position of a value in it. `None` if the block cannot be read: then
    /// [`finish`](Self::finish) returns the error.
    pub fn with<R>(&self, at: u64, use_value: impl FnOnce(&Tensor, usize) -> R) -> Option<R> {
        let mut held = self.held.borrow_mut();
        if held.as_ref().is_none_or(|(range, _)| !range.contains(&at)) {
            // The memory of the last block is free before the next is read.
            *held = None;
            let start = at / self.blocks.row_len.max(1) * self.blocks.row_len;
            match self.read(start) {
                Ok(block) => *held = Some(block),
                Err(error) => {
                    *self.error.borrow_mut() = Some(Box::new(error));
                    return None;
                }
            }
        }
        let (range, tensor) = held.as_ref()?;
        Some(use_value(tensor, usize::try_from(at - range.start).ok()?))
    }

    fn read(&self, start: u64) -> Result<(Range<u64>, Tensor), Error> {
        let failed = |kind: ErrorKind| self.blocks.select.dataset.file.error(kind);
        self.progress.check().map_err(|cancelled| failed(cancelled.into()))?;
        let (tensor, len) = self.blocks.read(start)?;
        self.progress.advance(tensor.bytes().len() as u64);
        Ok((start..start + len, tensor))
    }

    /// The error of a block that could not be read.
    pub fn finish(self) -> Result<(), Error> {
        self.error.take().map_or(Ok(()), |error| Err(*error))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use tercet_core::progress::NoProgress;
    use tercet_core::tensor::IndexSlice;
    use tercet_core::{ElementType, TensorView};

    use super::*;
    use crate::{File, Layout, Writer, WriterOptions};

    #[test]
    fn blocks_of_any_size_make_the_same_array() {
        let mut layout = Layout::new();
        let id = layout.dataset("a", ElementType::I16, [5, 7, 6], [2, 3, 6]).unwrap();
        layout.attr(id, "scale_factor", "0.5").unwrap();
        let values: Vec<i16> = (0..210).collect();
        let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
        writer.array(id, TensorView::from_slice(&[5, 7, 6], &values).unwrap()).unwrap();
        let file = File::from_bytes("m", writer.finish().unwrap().output).unwrap();
        let select = file.dataset("a").unwrap().select();
        let select = select.isel(1, IndexSlice::parse("5::-2").unwrap()).unwrap().isel(0, 1..).unwrap();
        for decode in [false, true] {
            let expected = if decode { select.read_decoded() } else { select.read() }.unwrap();
            for block_bytes in [1, 12, 40, 100, 1000, 10_000] {
                let mut out = Vec::new();
                let blocks = Blocks::new(&select, decode, block_bytes).unwrap();
                select.write_blocks(&blocks, &mut out, &NoProgress).unwrap();
                assert!(out == expected.bytes(), "{decode} {block_bytes}");
                // Also in another order.
                let (held, error) = Default::default();
                let values = LazyValues { blocks, progress: &NoProgress, held, error };
                let size = expected.dtype().size().unwrap();
                let bytes = |tensor: &Tensor, at: usize| tensor.bytes()[at * size..(at + 1) * size].to_vec();
                for at in (0..values.blocks.len()).rev() {
                    let found = values.with(at, bytes).unwrap();
                    assert_eq!(found, bytes(&expected, at as usize), "{decode} {block_bytes} {at}");
                }
                values.finish().unwrap();
            }
        }
    }
}
