//! [`ReadPlan`]: the chunks that a query reads, computed without reading payloads.

use std::fmt;

use tercet_core::Selection;

use crate::error::Coords;
use crate::file::ChunkRef;
use crate::grid::Grid;
use crate::wire::ids::Codec;

/// The chunks that a query reads. `Display` prints them.
#[derive(Clone, Debug)]
pub struct ReadPlan {
    pub(crate) grid: Grid,
    pub(crate) selection: Selection,
    /// In grid order, last axis fastest; without pruned chunks.
    pub(crate) chunks: Vec<PlannedChunk>,
    pub(crate) zone_filter_skipped: u64,
    pub(crate) index_filter_skipped: u64,
    /// The span of a dataset that is stored contiguously as raw bytes.
    pub(crate) contiguous: Option<tercet_core::Span>,
}

/// A chunk of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedChunk {
    /// The number of the chunk in the grid, last axis fastest: see [`Grid::coords`].
    pub number: u64,
    /// The stored bytes of the chunk.
    pub stored: ChunkRef,
    /// The zone map entry of the chunk, if a filter used it.
    pub zone: Option<Box<serde_json::Value>>,
}

const DENSE: &str = "dense_half_open_intervals_per_axis_json_step_ignored_for_chunk_touch_list";
const STRIDED: &str = "strided_half_open_per_axis_json_step_applied_to_chunk_touch_list";

/// The number of chunks that `Display` prints.
const SHOWN: usize = 32;

/// The selection, the chunks with their stored bytes, and the number of pruned chunks.
impl fmt::Display for ReadPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slices: Vec<String> = self
            .selection
            .axes()
            .iter()
            .map(|axis| {
                let step = if axis.step == 1 { String::new() } else { format!(":{}", axis.step) };
                format!("{}:{}{step}", axis.start, axis.stop)
            })
            .collect();
        writeln!(
            f,
            "selection {}: {} elements, {} bytes",
            slices.join(","),
            self.element_count(),
            self.selection_bytes()
        )?;
        write!(f, "{} chunks, {} stored bytes", self.chunks.len(), self.total_stored_bytes())?;
        for chunk in self.chunks.iter().take(SHOWN) {
            let (coords, stored) = (self.grid.coords(chunk.number), &chunk.stored);
            let coords = Coords(&coords[..self.grid.rank()]);
            let codec = match stored.codec {
                Codec::Raw => "raw",
                Codec::Zstd => "zstd",
            };
            write!(f, "\n  chunk {coords}: row {}, bytes {}, {codec}", stored.row, stored.span)?;
        }
        if let Some(more @ 1..) = self.chunks.len().checked_sub(SHOWN) {
            write!(f, "\n  … and {more} more")?;
        }
        for (count, how) in [(self.zone_filter_skipped, "statistics"), (self.index_filter_skipped, "labels")]
        {
            if count > 0 {
                write!(f, "\n{count} chunks pruned by {how}")?;
            }
        }
        Ok(())
    }
}

impl ReadPlan {
    /// A plan of the chunks with selected positions.
    pub(crate) fn new(grid: &Grid, selection: &Selection, chunks: Vec<PlannedChunk>) -> Self {
        let (zone_filter_skipped, index_filter_skipped) = (0, 0);
        let (grid, selection) = (grid.clone(), selection.clone());
        let mut plan =
            Self { grid, selection, chunks, zone_filter_skipped, index_filter_skipped, contiguous: None };
        plan.contiguous = plan.find_contiguous();
        plan
    }

    /// The chunks, in grid order.
    pub fn chunks(&self) -> &[PlannedChunk] {
        &self.chunks
    }

    /// The selection.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The stored bytes of all chunks.
    pub fn total_stored_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.stored.span.len()).sum()
    }

    /// The number of selected elements.
    pub fn element_count(&self) -> u64 {
        self.selection.axes().iter().map(|slice| slice.count()).product()
    }

    /// The bytes of the selected elements.
    pub fn selection_bytes(&self) -> u64 {
        self.element_count() * self.grid.element().size() as u64
    }

    /// How the steps of the selection prune chunks, as the answer names it.
    pub fn touch_policy(&self) -> &'static str {
        if self.selection.axes().iter().any(|slice| slice.step != 1) { STRIDED } else { DENSE }
    }

    /// Chunks pruned by zone maps or statistics: no element passes the filter.
    pub fn zone_filter_skipped(&self) -> u64 {
        self.zone_filter_skipped
    }

    /// Chunks pruned by labels.
    pub fn index_filter_skipped(&self) -> u64 {
        self.index_filter_skipped
    }

    /// The span of the dataset, if it is stored contiguously as raw bytes and read completely.
    pub fn contiguous(&self) -> Option<tercet_core::Span> {
        self.contiguous
    }

    fn find_contiguous(&self) -> Option<tercet_core::Span> {
        if !self.selection.is_full(self.grid.shape()) {
            return None;
        }
        let first = self.chunks.first()?;
        let mut end = first.stored.span.start();
        for chunk in &self.chunks {
            if chunk.stored.codec != Codec::Raw || chunk.stored.span.start() != end {
                return None;
            }
            end = chunk.stored.span.end();
        }
        let span = tercet_core::Span::between(first.stored.span.start(), end)?;
        (span.len() == self.grid.bytes()).then_some(span)
    }
}

#[cfg(test)]
mod tests {
    use super::PlannedChunk;

    #[test]
    fn plans_of_many_chunks_are_small() {
        assert!(size_of::<PlannedChunk>() <= 64);
    }
}
