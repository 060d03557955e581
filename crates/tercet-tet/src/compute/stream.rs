//! Reads the values of a selection in row-major order, block by block, in bounded memory.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::Write;
use std::ops::Range;

use tercet_core::tensor::f16;
use tercet_core::{ElementType, Progress, Tensor};

use super::Select;
use crate::error::{Error, ErrorKind};
use crate::exec::job::reads_part;
use crate::exec::memory::{self, Memory};
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
    /// Blocks of about `block_bytes` bytes, or of a row of chunks if that has at most `most_bytes`.
    fn new(select: &Select<'f>, decode: bool, (block_bytes, most_bytes): (u64, u64)) -> Result<Self, Error> {
        let dtype = select.value_type(decode)?;
        let (size, decoded) = (dtype.size() as u64, decode.then_some(dtype));
        let counts: Vec<u64> = select.axes.iter().map(|slice| slice.count()).collect();
        let below = |axis: usize| counts[axis + 1..].iter().copied().fold(1, u64::saturating_mul);
        let last = counts.len().saturating_sub(1);
        let fits = |axis: &usize| below(*axis).saturating_mul(size) <= block_bytes;
        let axis = (0..last).find(fits).unwrap_or(last);
        // Positions of a chunk. Chunks of several blocks are decoded for each of them.
        let chunk = |axis: usize| {
            let positions = select.dataset.chunk_shape()[axis].div_ceil(select.axes[axis].step);
            positions.clamp(1, counts[axis].max(1))
        };
        let chunk_fits =
            |axis: &usize| below(*axis).saturating_mul(size).saturating_mul(chunk(*axis)) <= most_bytes;
        let axis = (0..counts.len().min(axis + 1)).find(chunk_fits).unwrap_or(axis);
        if select.axes.is_empty() {
            return Ok(Self { select: select.clone(), decoded, axis, rows: 1, row_len: 1 });
        }
        let row_len = below(axis);
        let rows = block_bytes / row_len.saturating_mul(size).max(1);
        let rows = if chunk_fits(&axis) { rows.max(chunk(axis)) } else { rows.max(1) };
        Ok(Self { select: select.clone(), decoded, axis, rows, row_len })
    }

    fn counts(&self) -> impl Iterator<Item = u64> {
        self.select.axes.iter().map(|slice| slice.count())
    }

    /// The number of values.
    fn len(&self) -> u64 {
        self.counts().fold(1, u64::saturating_mul)
    }

    /// The number of the chunk, along the axis of the blocks, that a row is in.
    fn chunk(&self, row: u64) -> u64 {
        let slice = self.select.axes[self.axis];
        let position = if self.select.reversed[self.axis] { slice.count() - 1 - row } else { row };
        (slice.start + position * slice.step) / self.select.dataset.chunk_shape()[self.axis]
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
        // Back to the edge of a chunk, so that none is read twice.
        let is_edge = |&row: &u64| row == count || self.chunk(row) != self.chunk(row - 1);
        let end = (first + 1..=end).rev().find(is_edge).unwrap_or(end);
        part = part.isel(self.axis, first..end)?;
        for axis in (0..self.axis).rev() {
            let position = outer % counts[axis];
            part = part.isel(axis, position..position + 1)?;
            outer /= counts[axis];
        }
        Ok((part, (end - first) * self.row_len))
    }

    /// Reads the block that starts with a value; returns its number of values.
    fn read(&self, start: u64) -> Result<(Tensor, u64), Error> {
        let (part, len) = self.block(start)?;
        let tensor = match self.decoded {
            Some(dtype) => part.read_decoded_as(dtype)?,
            None => part.read()?,
        };
        Ok((tensor, len))
    }

    /// The number of missing values of a block; 0 if the values are stored ones.
    fn missing(&self, tensor: &Tensor) -> u64 {
        if self.decoded.is_some() { missing_values(tensor) } else { 0 }
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
    /// read one after another, so it may be larger than memory. Returns the number of missing values among decoded ones.
    pub fn write_values(
        &self,
        decode: bool,
        out: &mut dyn Write,
        progress: &dyn Progress,
    ) -> Result<u64, Error> {
        self.write_blocks(&Blocks::new(self, decode, self.block_bytes())?, out, progress)
    }

    /// Bytes of a block, and of one that has a row of chunks.
    fn block_bytes(&self) -> (u64, u64) {
        let file = self.dataset.file;
        let block = BLOCK_BYTES.min(file.options.limits.array_bytes);
        let starts =
            self.axes.iter().zip(self.dataset.chunk_shape()).map(|(slice, chunk)| slice.start / chunk);
        // Parts of chunks that are not compressed are read by themselves. Errors are reported when values are read.
        let first = self.dataset.chunk_ref(&starts.collect::<Vec<u64>>());
        if first.is_ok_and(|chunk| reads_part(&self.dataset, &chunk)) {
            return (block, block);
        }
        let memory = Memory::new(&self.settings.execution, file.memory_budget(), memory::available());
        // Stored and decoded values are held at once.
        (block, (memory.budget / 4).min(file.options.limits.array_bytes).max(block))
    }

    fn write_blocks(
        &self,
        blocks: &Blocks<'f>,
        out: &mut dyn Write,
        progress: &dyn Progress,
    ) -> Result<u64, Error> {
        let (mut start, mut missing) = (0, 0);
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
            missing += blocks.missing(&tensor);
        }
        Ok(missing)
    }

    /// The values, stored or decoded by the CF conventions, read block by block when they are requested.
    pub fn lazy_values<'p>(
        &self,
        decode: bool,
        progress: &'p dyn Progress,
    ) -> Result<LazyValues<'f, 'p>, Error> {
        let blocks = Blocks::new(self, decode, self.block_bytes())?;
        let (held, counted, error) = Default::default();
        Ok(LazyValues { blocks, progress, held, counted, error })
    }

    /// Whether the values are read and written in several blocks.
    pub fn is_large(&self) -> Result<bool, Error> {
        let size = self.value_type(false)?.size() as u64;
        let count = self.axes.iter().map(|slice| slice.count()).fold(size, u64::saturating_mul);
        let (block_bytes, _) = self.block_bytes();
        Ok(count > block_bytes)
    }
}

/// The number of NaN in an array.
pub fn missing_values(tensor: &Tensor) -> u64 {
    let count = if let Some(values) = tensor.as_slice::<f64>() {
        values.iter().filter(|value| value.is_nan()).count()
    } else if let Some(values) = tensor.as_slice::<f32>() {
        values.iter().filter(|value| value.is_nan()).count()
    } else if let Some(values) = tensor.as_slice::<f16>() {
        values.iter().filter(|value| value.is_nan()).count()
    } else {
        0
    };
    count as u64
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
    /// End of the blocks whose missing values were counted, and their number.
    counted: Cell<(u64, u64)>,
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
        let (end, missing) = self.counted.get();
        if start >= end {
            self.counted.set((start + len, missing + self.blocks.missing(&tensor)));
        }
        Ok((start..start + len, tensor))
    }

    /// The number of missing values among decoded ones, if all values were requested in ascending order.
    pub fn missing(&self) -> u64 {
        self.counted.get().1
    }

    /// The error of a block that could not be read.
    pub fn finish(self) -> Result<(), Error> {
        self.error.take().map_or(Ok(()), |error| Err(*error))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::sync::Arc;

    use tercet_core::progress::NoProgress;
    use tercet_core::source::Memory;
    use tercet_core::tensor::IndexSlice;
    use tercet_core::{ElementType, Span, TensorView};
    use tercet_testkit::counting::Counting;

    use super::*;
    use crate::{Compression, File, Layout, ReadOptions, Writer, WriterOptions};

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
            for (block_bytes, most) in
                [(1, 1), (12, 12), (12, 400), (40, 40), (40, 100), (100, 100), (1000, 1000), (10_000, 10_000)]
            {
                let mut out = Vec::new();
                let blocks = Blocks::new(&select, decode, (block_bytes, most)).unwrap();
                select.write_blocks(&blocks, &mut out, &NoProgress).unwrap();
                assert!(out == expected.bytes(), "{decode} {block_bytes} {most}");
                // Also in another order.
                let (held, counted, error) = Default::default();
                let values = LazyValues { blocks, progress: &NoProgress, held, counted, error };
                let size = expected.dtype().size().unwrap();
                let bytes = |tensor: &Tensor, at: usize| tensor.bytes()[at * size..(at + 1) * size].to_vec();
                for at in (0..values.blocks.len()).rev() {
                    let found = values.with(at, bytes).unwrap();
                    assert_eq!(found, bytes(&expected, at as usize), "{decode} {block_bytes} {most} {at}");
                }
                values.finish().unwrap();
            }
        }
    }

    #[test]
    fn chunks_of_a_row_that_fits_are_read_once() {
        let shape = [24, 6, 8];
        let mut layout = Layout::new();
        let id = layout.dataset("a", ElementType::I16, shape, [8, 3, 8]).unwrap();
        layout.compress(id, Compression::Zstd { level: 1 }).unwrap();
        let values: Vec<i16> = (0..1152).collect();
        let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
        writer.array(id, TensorView::from_slice(&shape, &values).unwrap()).unwrap();
        let source = Arc::new(Counting::new(Memory::new("m", writer.finish().unwrap().output)).with_copies());
        let file = File::from_source(Arc::<Counting<Memory>>::clone(&source), ReadOptions::new()).unwrap();
        let dataset = file.dataset("a").unwrap();
        let all = dataset.select();
        let from_3 = all.clone().isel(0, 3..).unwrap();
        let backwards = all.clone().isel(0, IndexSlice::parse("17::-2").unwrap()).unwrap();
        let payloads: Vec<Span> = dataset
            .grid()
            .unwrap()
            .touched(&dataset.selection(":").unwrap())
            .iter()
            .map(|coords| dataset.chunk_ref(&coords[..3]).unwrap().span)
            .collect();
        let stored: u64 = payloads.iter().map(|payload| payload.len()).sum();
        // A plane has 96 bytes, a row of chunks 768.
        for (select, most, times) in
            [(&all, 768, 1), (&from_3, 768, 1), (&backwards, 768, 1), (&all, 200, 4), (&all, 96, 8)]
        {
            let expected = select.read().unwrap();
            source.reset();
            let mut out = Vec::new();
            let blocks = Blocks::new(select, false, (most.min(200), most)).unwrap();
            select.write_blocks(&blocks, &mut out, &NoProgress).unwrap();
            assert!(out == expected.bytes());
            let of_payload = |span: &Span, payload: &Span| {
                span.end().min(payload.end()).saturating_sub(span.start().max(payload.start()))
            };
            let spans = source.spans();
            let read: u64 =
                spans.iter().flat_map(|span| payloads.iter().map(move |one| of_payload(span, one))).sum();
            assert_eq!(read, times * stored, "{most}");
        }
    }
}
