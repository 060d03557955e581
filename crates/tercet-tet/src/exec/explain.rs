//! Explain: describes in words how a result is computed.

use std::sync::atomic::Ordering;

use super::job::Job;
use super::reduce;
use crate::query::operation::Kind;
use crate::wire::ids::Codec;

/// The steps of a job; after its execution with the number of chunks whose statistics replaced their values.
pub(crate) fn steps(job: &Job<'_>, executed: Option<u64>) -> Vec<String> {
    let plan = job.plan;
    let skipped = plan.zone_filter_skipped + plan.index_filter_skipped;
    let by_statistics = executed.unwrap_or(0);
    let by_payload = plan.chunks.len() as u64 - by_statistics;
    let mut steps = Vec::new();
    steps.push(format!(
        "the selection is {} elements ({} bytes) in {} of {} chunks",
        plan.element_count(),
        plan.selection_bytes(),
        plan.chunks.len() as u64 + skipped,
        plan.grid.chunk_count()
    ));
    if plan.zone_filter_skipped > 0 {
        steps.push(format!(
            "{} chunks skipped: by their statistics no element passes the filter",
            plan.zone_filter_skipped
        ));
    }
    if plan.index_filter_skipped > 0 {
        steps.push(format!("{} chunks skipped: no selected position or value", plan.index_filter_skipped));
    }
    if by_statistics > 0 {
        steps.push(format!("{by_statistics} chunks answered by their statistics, payloads not read"));
    }
    if reduce::is_linear_scan(job) {
        let len = plan.contiguous.map_or(0, tercet_core::Span::len);
        steps.push(format!("the dataset is read as one span of {len} raw bytes"));
    } else if by_payload > 0 {
        let zstd = plan.chunks.iter().any(|chunk| chunk.stored.codec == Codec::Zstd);
        let how = if zstd { "decompressed" } else { "read" };
        steps.push(format!("{by_payload} chunks {how}"));
    }
    steps.push(match job.dataset.file.integrity_status() {
        crate::IntegrityStatus::Checked { .. } => {
            "every payload that is read is checked against its checksum".to_owned()
        }
        crate::IntegrityStatus::Partial { .. } => {
            "payloads are checked as far as the file has checksums".to_owned()
        }
        _ => "payloads are not checked: the file has no checksums, or they are ignored".to_owned(),
    });
    if let Some(operation) = &job.resolved.operation {
        steps.push(match operation.kind {
            Kind::Transform { .. } => "statistics first, then every element".to_owned(),
            kind if reduce::is_streaming(kind) => match passes(job, executed) {
                Some(1) => "one pass over the chunks, merged in their order".to_owned(),
                Some(passes) => format!("{passes} passes over the chunks, merged in their order"),
                None => "results of the chunks are merged in their order".to_owned(),
            },
            _ => format!("several passes over the chunks, within {} bytes", job.budget),
        });
    }
    if executed.is_some() {
        steps.push(format!("{} stored bytes read", job.counters.bytes_read.load(Ordering::Relaxed)));
    }
    steps
}

/// The number of passes over the chunks of an executed job; `None` if some chunks were not read.
fn passes(job: &Job<'_>, by_statistics: Option<u64>) -> Option<u64> {
    let stored = job.plan.total_stored_bytes();
    if by_statistics != Some(0) || stored == 0 {
        return None;
    }
    Some(job.counters.bytes_read.load(Ordering::Relaxed).div_ceil(stored).max(1))
}
