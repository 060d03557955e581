//! [`Export`]: writes a selection of any size as one dense array, in bounded memory.
//!
//! The result is cut into *blocks* of whole chunks that fit into memory. All threads read a block while the
//! previous one is written. If blocks are contiguous in the result, they are in order, so most arrays can be
//! streamed; a block that is not (a wide array whose row of chunks does not fit) is written run by run,
//! and every chunk is still decoded exactly once.

use std::io::{Seek, SeekFrom, Write};

use tercet_core::limits::check_limit;
use tercet_core::tensor::{AxisSlice, Buffer};
use tercet_core::{Progress, Selection};

use crate::error::{Error, ErrorKind};
use crate::file::Dataset;
use crate::grid::Grid;
use crate::read::dense_strides;

/// Bytes of a block. Two are in memory at a time.
pub(crate) const BLOCK_BYTES: u64 = 32 << 20;

/// Fills a dense block: its selection, its origin in the result, and the buffer.
pub(crate) type Fill<'f> = dyn Fn(&Selection, &[u64], &mut [u8]) -> Result<(), ErrorKind> + Sync + 'f;

/// A planned export. Nothing is read yet.
#[derive(Debug)]
pub struct Export<'a> {
    dataset: Dataset<'a>,
    selection: Selection,
    /// Bytes of an element of the output.
    size: usize,
    bytes: u64,
    /// For each axis, the selected positions of each block: first and count.
    cuts: Vec<Vec<(u64, u64)>>,
}

impl<'a> Dataset<'a> {
    /// Plans the export of a selection: row-major, little-endian.
    pub fn export(&self, selection: &Selection) -> Result<Export<'a>, Error> {
        self.plan_export(selection, BLOCK_BYTES, false).map_err(|fault| self.file.error(fault))
    }

    /// Plans an export in blocks of at most `block_bytes`. A block is one chunk at least, unless chunks may be `split`.
    pub(crate) fn plan_export(
        &self,
        selection: &Selection,
        block_bytes: u64,
        split: bool,
    ) -> Result<Export<'a>, ErrorKind> {
        let grid = self.checked_grid()?;
        let bytes = self.selection_bytes(grid, selection)?;
        // A complete chunk is decoded into its block, which the limit does not see.
        let chunk_bytes = grid
            .chunk_shape()
            .iter()
            .fold(grid.element().size() as u64, |bytes, &extent| bytes.saturating_mul(extent));
        check_limit("a chunk", chunk_bytes.min(bytes), self.file.options.limits.chunk_bytes)?;
        self.check_touched(grid, selection)?;
        let cuts = if split {
            let finer = Grid::new(grid.element(), grid.shape(), &grid.blocks_of_rows(block_bytes));
            cut(finer.as_ref().unwrap_or(grid), selection, block_bytes)
        } else {
            cut(grid, selection, block_bytes)
        };
        let size = grid.element().size();
        Ok(Export { dataset: *self, selection: selection.clone(), size, bytes, cuts })
    }
}

/// Plans the blocks: from the last axis outwards, as many chunks as fit; on the axes before, one chunk each.
fn cut(grid: &Grid, selection: &Selection, block_bytes: u64) -> Vec<Vec<(u64, u64)>> {
    let slices = || selection.axes().iter().enumerate().rev();
    let one_chunk = slices().map(|(axis, &slice)| grid.chunk_positions(axis, slice)).product::<u64>();
    // Chunks that fit; a block has at least one chunk.
    let mut room = (block_bytes / grid.element().size() as u64 / one_chunk).max(1);
    let mut cuts = vec![Vec::new(); grid.rank()];
    for (axis, &slice) in slices() {
        let per_chunk = grid.chunk_positions(axis, slice);
        let positions = per_chunk.saturating_mul(room);
        let total = slice.count();
        let mut first = 0;
        while first < total {
            // End where a chunk ends, so that no chunk is needed by two blocks.
            let goal = first.saturating_add(positions).min(total);
            let end = grid.next_chunk(axis, slice, goal - 1).min(total);
            cuts[axis].push((first, end - first));
            first = end;
        }
        // Only a block that takes the whole axis leaves room for more on the axis before.
        room = if cuts[axis].len() == 1 { (room / total.div_ceil(per_chunk)).max(1) } else { 1 };
    }
    cuts
}

impl Export<'_> {
    /// Sets the bytes of an element of the output, if it is not of the stored type: then values are [`Fill`]ed.
    #[cfg(any(unix, windows))]
    pub(crate) fn with_element_size(mut self, size: usize) -> Self {
        self.bytes = (self.bytes / self.size as u64).saturating_mul(size as u64);
        self.size = size;
        self
    }

    /// The bytes of the output.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the result is written in order, so that it can be streamed.
    pub fn is_sequential(&self) -> bool {
        // The first axis with more than one block may have any number of positions in a block; before it, blocks
        // must have one position each.
        let many = self.cuts.iter().rposition(|cuts| cuts.len() > 1).unwrap_or(0);
        self.cuts[..many].iter().all(|cuts| cuts.iter().all(|&(_, count)| count == 1))
    }

    /// Writes the result to a stream. An error unless [`is_sequential`](Self::is_sequential).
    pub fn stream(&self, out: &mut dyn Write, progress: &dyn Progress) -> Result<(), Error> {
        if !self.is_sequential() {
            let needs_seek = std::io::Error::other("this selection cannot be written without seeking");
            return Err(self.dataset.file.error(needs_seek.into()));
        }
        let written =
            self.run(&self.plain(progress), |_, bytes| out.write_all(bytes).map_err(ErrorKind::from));
        written.map_err(|fault| self.dataset.file.error(fault))
    }

    /// Writes the result into `out` at position `start`.
    pub fn write_at<W: Write + Seek>(
        &self,
        out: &mut W,
        start: u64,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let mut at = None;
        let written = self.each_run(&self.plain(progress), |offset, run| {
            let offset = start + offset;
            if at != Some(offset) {
                out.seek(SeekFrom::Start(offset))?;
            }
            out.write_all(run)?;
            at = Some(offset + run.len() as u64);
            Ok(())
        });
        written.map_err(|fault| self.dataset.file.error(fault))
    }

    /// Fills the blocks with `fill` and visits their runs: byte offset in the result, and bytes.
    pub(crate) fn each_run(
        &self,
        fill: &Fill<'_>,
        mut put: impl FnMut(u64, &[u8]) -> Result<(), ErrorKind>,
    ) -> Result<(), ErrorKind> {
        let (shape, size) = (self.selection.shape(), self.size);
        let strides = dense_strides(&shape, size);
        self.run(fill, |block, bytes| {
            for_each_run(block, &shape, size, |first, range| {
                let offset: u64 = first.iter().zip(&strides).map(|(&n, &stride)| n * stride as u64).sum();
                put(offset, &bytes[range])
            })
        })
    }

    /// Fills blocks from the file.
    fn plain<'f>(
        &'f self,
        progress: &'f dyn Progress,
    ) -> impl Fn(&Selection, &[u64], &mut [u8]) -> Result<(), ErrorKind> + Sync + 'f {
        move |selection, _, out| self.dataset.read_into(selection, out, progress).map_err(Error::into_kind)
    }

    /// Fills the blocks, one ahead of the one being written.
    fn run(
        &self,
        fill: &Fill<'_>,
        mut write: impl FnMut(&[(u64, u64)], &[u8]) -> Result<(), ErrorKind>,
    ) -> Result<(), ErrorKind> {
        let mut ready: Option<(Vec<(u64, u64)>, Buffer)> = None;
        let mut spare: Option<Buffer> = None;
        let mut blocks = self.blocks();
        loop {
            let next = blocks.next();
            if next.is_none() && ready.is_none() {
                return Ok(());
            }
            let writing = ready.take();
            let reuse = spare.take();
            let (read, written) = crate::writer::in_place_join(
                || next.map(|block| self.make_block(block, reuse, fill)).transpose(),
                || match &writing {
                    Some((block, bytes)) => write(block, &bytes[..self.block_bytes(block)]),
                    None => Ok(()),
                },
            );
            written?;
            spare = writing.map(|(_, bytes)| bytes);
            ready = read?;
        }
    }

    /// The blocks, outermost axis slowest.
    fn blocks(&self) -> impl Iterator<Item = Vec<(u64, u64)>> + '_ {
        let total: usize = self.cuts.iter().map(Vec::len).product();
        (0..total).map(|mut number| {
            let mut block = vec![(0, 0); self.cuts.len()];
            for (slot, cuts) in block.iter_mut().zip(&self.cuts).rev() {
                *slot = cuts[number % cuts.len()];
                number /= cuts.len();
            }
            block
        })
    }

    fn block_bytes(&self, block: &[(u64, u64)]) -> usize {
        let elements: u64 = block.iter().map(|&(_, count)| count).product();
        usize::try_from(elements).unwrap_or(usize::MAX).saturating_mul(self.size)
    }

    fn make_block(
        &self,
        block: Vec<(u64, u64)>,
        reuse: Option<Buffer>,
        fill: &Fill<'_>,
    ) -> Result<(Vec<(u64, u64)>, Buffer), ErrorKind> {
        let axes = self.selection.axes().iter().zip(&block);
        let slices = axes.map(|(slice, &(first, count))| AxisSlice {
            start: slice.start + first * slice.step,
            stop: slice.start + (first + count - 1) * slice.step + 1,
            step: slice.step,
        });
        let selection = Selection::new(slices.collect(), self.dataset.shape())?;
        let origin: Vec<u64> = block.iter().map(|&(first, _)| first).collect();
        let len = self.block_bytes(&block);
        let mut buffer = match reuse {
            Some(buffer) if buffer.len() >= len => buffer,
            _ => Buffer::zeroed(len)?,
        };
        fill(&selection, &origin, &mut buffer[..len])?;
        Ok((block, buffer))
    }
}

/// Visits the runs of a block that are contiguous in the result: the position of each, and its byte range in the
/// block.
fn for_each_run(
    block: &[(u64, u64)],
    shape: &[u64],
    size: usize,
    mut visit: impl FnMut(&[u64], std::ops::Range<usize>) -> Result<(), ErrorKind>,
) -> Result<(), ErrorKind> {
    // A run spans the trailing axes that the block covers completely, and one more axis.
    let whole = block.iter().zip(shape).rev().take_while(|((_, count), extent)| count == *extent).count();
    let outer = block.len().saturating_sub(whole + 1);
    let run: u64 = block[outer..].iter().map(|&(_, count)| count).product();
    let run = usize::try_from(run).unwrap_or(usize::MAX).saturating_mul(size);
    let total: u64 = block[..outer].iter().map(|&(_, count)| count).product();
    let mut position: Vec<u64> = block.iter().map(|&(first, _)| first).collect();
    for number in 0..total {
        let mut rest = number;
        for axis in (0..outer).rev() {
            let (first, count) = block[axis];
            position[axis] = first + rest % count;
            rest /= count;
        }
        // The block is in memory, so its offsets fit.
        let at = usize::try_from(number).unwrap_or(usize::MAX).saturating_mul(run);
        visit(&position, at..at + run)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;
    use tercet_core::progress::NoProgress;
    use tercet_core::{ElementType, TensorView};

    use super::*;
    use crate::{File, Layout, Writer, WriterOptions};

    fn file(shape: &[u64], chunks: &[u64]) -> File {
        let mut layout = Layout::new();
        let id = layout.dataset("a", ElementType::U16, shape, chunks).unwrap();
        let count = shape.iter().product::<u64>();
        let values: Vec<u16> = (0..count).map(|n| n as u16).collect();
        let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
        writer.array(id, TensorView::from_slice(shape, &values).unwrap()).unwrap();
        File::from_bytes("m", writer.finish().unwrap().output).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(64)))]
        #[test]
        fn blocks_of_any_size_make_the_same_array(
            axes in prop::collection::vec((1u64..12, 1u64..6, 0u64..12, 1u64..12, 1u64..4), 1..4),
            block_bytes in 1u64..200,
            split: bool,
        ) {
            let shape: Vec<u64> = axes.iter().map(|a| a.0).collect();
            let chunks: Vec<u64> = axes.iter().map(|a| a.1).collect();
            let slices = axes.iter().map(|&(extent, _, start, len, step)| {
                let start = start % extent;
                AxisSlice { start, stop: (start + len).min(extent), step }
            });
            let selection = Selection::new(slices.collect(), &shape).unwrap();
            let file = file(&shape, &chunks);
            let dataset = file.dataset("a").unwrap();
            let expected = dataset.read(&selection).unwrap();
            let export = dataset.plan_export(&selection, block_bytes, split).unwrap();
            prop_assert_eq!(export.bytes(), expected.bytes().len() as u64);
            let mut out = Cursor::new(vec![7; 3]);
            export.write_at(&mut out, 3, &NoProgress).unwrap();
            prop_assert_eq!(&out.get_ref()[3..], expected.bytes());
            let mut stream = Vec::new();
            if export.is_sequential() {
                export.stream(&mut stream, &NoProgress).unwrap();
                prop_assert_eq!(&stream[..], expected.bytes());
            } else {
                prop_assert!(export.stream(&mut stream, &NoProgress).is_err());
            }
        }
    }

    #[test]
    fn rows_of_chunks_that_fit_are_streamed() {
        let file = file(&[8, 8], &[2, 3]);
        let dataset = file.dataset("a").unwrap();
        let all = Selection::full(&[8, 8]);
        assert!(dataset.plan_export(&all, 36, false).unwrap().is_sequential());
        assert!(!dataset.plan_export(&all, 35, false).unwrap().is_sequential());
        assert!(dataset.export(&all).unwrap().is_sequential());
    }
}
