//! [`ReadPlan`]: the chunks that a query reads, computed without reading payloads.

use serde::Serialize;
use serde::ser::SerializeStruct as _;
use tercet_core::Selection;

use crate::file::ChunkRef;
use crate::grid::Grid;
use crate::wire::ids::MAX_RANK;

/// The chunks that a query reads.
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
    /// Grid coordinates; those past the rank are zero.
    pub tile: [u64; MAX_RANK],
    /// The stored bytes of the chunk.
    pub stored: ChunkRef,
    /// The zone map entry of the chunk, if a filter used it.
    pub zone: Option<serde_json::Value>,
}

const DENSE: &str = "dense_half_open_intervals_per_axis_json_step_ignored_for_chunk_touch_list";
const STRIDED: &str = "strided_half_open_per_axis_json_step_applied_to_chunk_touch_list";

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
            if chunk.stored.codec != crate::Codec::Raw || chunk.stored.span.start() != end {
                return None;
            }
            end = chunk.stored.span.end();
        }
        let span = tercet_core::Span::between(first.stored.span.start(), end)?;
        (span.len() == self.grid.bytes()).then_some(span)
    }
}

impl Serialize for ReadPlan {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let axes = self.selection.axes();
        let list = |of: fn(&tercet_core::tensor::AxisSlice) -> u64| axes.iter().map(of).collect::<Vec<u64>>();
        let mut plan = serializer.serialize_struct("ReadPlan", 15)?;
        plan.serialize_field("chunk_touch_policy", self.touch_policy())?;
        plan.serialize_field("chunk_count", &self.chunks.len())?;
        plan.serialize_field("zone_filter_skipped_chunks", &self.zone_filter_skipped)?;
        plan.serialize_field("index_filter_skipped_chunks", &self.index_filter_skipped)?;
        plan.serialize_field("total_stored_bytes", &self.total_stored_bytes())?;
        plan.serialize_field("chunks", &Chunks { rank: self.grid.rank(), chunks: &self.chunks })?;
        plan.serialize_field("dataset_shape", self.grid.shape())?;
        plan.serialize_field("chunk_shape", self.grid.chunk_shape())?;
        plan.serialize_field("selection_box_start", &list(|slice| slice.start))?;
        plan.serialize_field("selection_box_stop_exclusive", &list(|slice| slice.stop))?;
        plan.serialize_field("selection_step", &list(|slice| slice.step))?;
        plan.serialize_field("logical_selection_shape", &list(|slice| slice.count()))?;
        plan.serialize_field("logical_element_count", &self.element_count())?;
        match self.contiguous {
            Some(span) => {
                let scan = ContiguousScan { offset: span.start(), byte_len: span.len() };
                plan.serialize_field("contiguous_scan", &scan)?;
            }
            None => plan.skip_field("contiguous_scan")?,
        }
        plan.end()
    }
}

/// The span of a contiguous dataset.
#[derive(Serialize)]
struct ContiguousScan {
    offset: u64,
    byte_len: u64,
}

struct Chunks<'a> {
    rank: usize,
    chunks: &'a [PlannedChunk],
}

impl Serialize for Chunks<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.chunks.iter().map(|chunk| ChunkRow {
            chunk_index: &chunk.tile[..self.rank],
            payload_offset: chunk.stored.span.start(),
            stored_byte_len: chunk.stored.span.len(),
            raw_byte_len: chunk.stored.raw_len,
            codec: match chunk.stored.codec {
                crate::Codec::Raw => 0,
                crate::Codec::Zstd => 1,
            },
            zone: chunk.zone.as_ref(),
        }))
    }
}

#[derive(Serialize)]
struct ChunkRow<'a> {
    chunk_index: &'a [u64],
    payload_offset: u64,
    stored_byte_len: u64,
    raw_byte_len: u64,
    codec: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<&'a serde_json::Value>,
}
