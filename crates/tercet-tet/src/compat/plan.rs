//! Serialization of read plans.

use serde::Serialize;
use serde::ser::SerializeStruct as _;

use crate::grid::Grid;
use crate::plan::{PlannedChunk, ReadPlan};

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
        plan.serialize_field("chunks", &Chunks { grid: &self.grid, chunks: &self.chunks })?;
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
    grid: &'a Grid,
    chunks: &'a [PlannedChunk],
}

impl Serialize for Chunks<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.chunks.iter().map(|chunk| ChunkRow {
            chunk_index: self.grid.coords(chunk.number)[..self.grid.rank()].to_vec(),
            payload_offset: chunk.stored.span.start(),
            stored_byte_len: chunk.stored.span.len(),
            raw_byte_len: chunk.stored.raw_len,
            codec: match chunk.stored.codec {
                crate::Codec::Raw => 0,
                crate::Codec::Zstd => 1,
            },
            zone: chunk.zone.as_deref(),
        }))
    }
}

#[derive(Serialize)]
struct ChunkRow<'a> {
    chunk_index: Vec<u64>,
    payload_offset: u64,
    stored_byte_len: u64,
    raw_byte_len: u64,
    codec: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<&'a serde_json::Value>,
}
