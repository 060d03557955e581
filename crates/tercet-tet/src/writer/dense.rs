//! Writes a dataset from byte ranges of the whole array, in any order, in bounded memory.

use rayon::prelude::*;
use tercet_core::checksum::{crc32c, crc32c_combine};
use tercet_core::{ElementType, Sink};

use super::Writer;
use crate::error::ErrorKind;
use crate::layout::{Compression, DatasetId, LayoutError};
use crate::stats::Stats;
use crate::wire::ids::Codec;

/// Bytes per unit of statistics. Sums are computed in this order for any number of threads.
const PIECE: usize = 1 << 20;

/// The state of a raw dataset whose chunks are consecutive row ranges of the array.
///
/// Checksums of chunks are combined from those of the ranges, in any order; nothing is read back.
#[derive(Debug)]
pub(crate) struct Dense {
    dataset: DatasetId,
    dtype: ElementType,
    chunks: Vec<Part>,
    total: u64,
    written: u64,
}

/// A chunk that is not complete.
#[derive(Debug)]
struct Part {
    /// The offset in the array.
    start: u64,
    end: u64,
    crc: u32,
    stats: Option<Stats>,
}

impl<S: Sink> Writer<S> {
    /// Starts a raw dataset whose chunks are row ranges, so that file order is array order.
    pub(crate) fn dense(&self, dataset: DatasetId) -> Dense {
        let planned = &self.layout.datasets[dataset.0];
        debug_assert_eq!(planned.compression, Compression::None);
        let grid = &planned.grid;
        let mut start = 0;
        let chunks = (0..grid.chunk_count()).map(|linear| {
            let end = start + grid.chunk_bytes_at(&grid.coords(linear)[..grid.rank()]);
            let part = Part { start, end, crc: 0, stats: None };
            start = end;
            part
        });
        Dense { dataset, dtype: grid.element(), chunks: chunks.collect(), total: grid.bytes(), written: 0 }
    }

    /// Writes a byte range of the array. Each byte is written once.
    pub(crate) fn put_dense(
        &mut self,
        dense: &mut Dense,
        mut at: u64,
        mut bytes: &[u8],
    ) -> Result<(), ErrorKind> {
        let base = usize::try_from(self.base(dense.dataset)).unwrap_or(usize::MAX);
        while !bytes.is_empty() {
            let number = dense.chunks.partition_point(|chunk| chunk.end <= at);
            let Some(chunk) = dense.chunks.get_mut(number) else { return Err(self.out_of_place(dense)) };
            let room = usize::try_from(chunk.end - at).unwrap_or(usize::MAX);
            let (mine, rest) = bytes.split_at(room.min(bytes.len()));
            self.write_at(self.rows.offsets[base + number] + (at - chunk.start), mine)?;
            if self.options.has_block() {
                let after = chunk.end - at - mine.len() as u64;
                chunk.update(dense.dtype, mine, after, self.options.statistics);
            }
            at += mine.len() as u64;
            dense.written += mine.len() as u64;
            bytes = rest;
        }
        Ok(())
    }

    /// Completes the dataset.
    pub(crate) fn end_dense(&mut self, dense: &Dense) -> Result<(), ErrorKind> {
        if dense.written != dense.total {
            return Err(self.out_of_place(dense));
        }
        let base = usize::try_from(self.base(dense.dataset)).unwrap_or(usize::MAX);
        for (row, chunk) in (base..).zip(&dense.chunks) {
            self.rows.stored[row] = chunk.end - chunk.start;
            self.rows.codecs[row] = u8::try_from(Codec::Raw.id()).unwrap_or(super::UNWRITTEN);
            if let Some(crc) = self.rows.crcs.get_mut(row) {
                *crc = chunk.crc;
            }
            if let (Some(slot), Some(stats)) = (self.rows.stats.get_mut(row), &chunk.stats) {
                *slot = stats.encode();
            }
        }
        // Readers would skip a chunk that is missing from the zone maps.
        self.zones = None;
        Ok(())
    }

    fn out_of_place(&self, dense: &Dense) -> ErrorKind {
        let planned = &self.layout.datasets[dense.dataset.0];
        let missing = dense.chunks.len() as u64;
        LayoutError::Unwritten {
            dataset: planned.name.clone(),
            coords: vec![0; planned.grid.rank()],
            missing,
        }
        .into()
    }
}

impl Part {
    /// Adds a byte range of the chunk that is followed by `after` bytes.
    fn update(&mut self, dtype: ElementType, bytes: &[u8], after: u64, statistics: bool) {
        let one =
            |piece: &[u8]| (crc32c(piece), piece.len(), statistics.then(|| Stats::compute(dtype, piece)));
        let pieces: Vec<_> =
            if bytes.len() > PIECE { bytes.par_chunks(PIECE).map(one).collect() } else { vec![one(bytes)] };
        let mut crc = 0;
        for (next, len, stats) in pieces {
            crc = crc32c_combine(crc, next, len as u64);
            self.stats = match (&self.stats, stats) {
                (Some(before), Some(stats)) => Some(before.join(&stats)),
                (None, stats) => stats,
                (before, None) => *before,
            };
        }
        self.crc ^= crc32c_combine(crc, 0, after);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;
    use tercet_core::TensorView;

    use crate::grid::Grid;
    use crate::{Layout, Writer, WriterOptions};

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(64)))]
        #[test]
        fn pieces_in_any_order_make_the_same_file(
            shape in prop::collection::vec(1u64..7, 1..4),
            chunk_bytes in 1u64..300,
            cuts in prop::collection::vec(0usize..300, 0..6),
            swap: bool,
        ) {
            let rows = Grid::new(ElementType::F32, &shape, &shape).unwrap().blocks_of_rows(chunk_bytes);
            let count = shape.iter().product::<u64>() as usize;
            let values: Vec<f32> = (0..count).map(|n| if n % 7 == 3 { f32::NAN } else { f32::from(n as u16) - 9.5 }).collect();
            let start = || {
                let mut layout = Layout::new();
                let id = layout.dataset("a", ElementType::F32, &shape, &rows).unwrap();
                layout.history(crate::HistoryRow::at("a", "b", 1)).unwrap();
                (Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap(), id)
            };
            let (mut whole, id) = start();
            whole.array(id, TensorView::from_slice(&shape, &values).unwrap()).unwrap();
            let bytes: &[u8] = bytemuck::cast_slice(&values);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (count + 1) * 4).chain([0, bytes.len()]).collect();
            cuts.sort_unstable();
            let mut pieces: Vec<(usize, usize)> = cuts.windows(2).map(|pair| (pair[0], pair[1])).collect();
            if swap {
                pieces.reverse();
            }
            let (mut pieced, id) = start();
            let mut dense = pieced.dense(id);
            for (from, to) in pieces {
                pieced.put_dense(&mut dense, from as u64, &bytes[from..to]).unwrap();
            }
            pieced.end_dense(&dense).unwrap();
            prop_assert_eq!(pieced.finish().unwrap().output, whole.finish().unwrap().output);
        }
    }

    #[test]
    fn missing_bytes_are_detected() {
        let mut layout = Layout::new();
        let id = layout.dataset("a", ElementType::U8, [4], [4]).unwrap();
        let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
        let mut dense = writer.dense(id);
        writer.put_dense(&mut dense, 1, &[1, 2, 3]).unwrap();
        assert!(writer.end_dense(&dense).is_err());
        assert!(writer.put_dense(&mut dense, 2, &[1, 2, 3]).is_err());
    }
}
