//! Linear scan: reduces a complete dataset, stored as one contiguous range of raw bytes, without visiting chunks.

use tercet_core::{ByteSource as _, Span, checksum};
use tercet_kernel::Counts;

use super::drive::Reduction;
use super::job::Job;
use super::sizes::{CACHED, LARGE_DATASET, SMALL_CHUNK, SPLIT};
use super::task::{Block, to_usize};
use super::visit::Consumer as _;
use super::walk::{AxisRun, CellStep, Piece, Scratch, ValueRules, Walker};
use crate::error::ErrorKind;
use crate::query::resolved::Role;

/// Maximum bytes of the state of a batch.
const MAX_STATE: usize = 4 << 10;

/// Whether the scan can replace the visit of chunks, and is worth it.
///
/// Chunks are not in the order of the array, so reductions that depend on the order cannot use the scan.
pub(crate) fn applies(
    job: &Job<'_>,
    roles: &[Role],
    (indexed, state): (bool, usize),
    statistics: bool,
) -> bool {
    let plan = job.plan;
    let scalar = roles.iter().all(|role| matches!(role, Role::Reduced));
    let plain = job.resolved.filter.is_none() && job.resolved.positions.is_none();
    let Some(span) = plan.contiguous else { return false };
    let small = span.len() / (plan.chunks.len() as u64).max(1) < SMALL_CHUNK && span.len() >= LARGE_DATASET;
    let zero_copy = job.dataset.file.source.is_zero_copy();
    // Every batch has states of its own.
    let suitable = !indexed && state <= MAX_STATE;
    scalar && plain && suitable && !statistics && zero_copy && (small || job.out_of_core)
}

/// Reduces the byte range to the single output element; returns the number of values.
pub(crate) fn all(job: &Job<'_>, reduction: &dyn Reduction, output: &mut [f64]) -> Result<u64, ErrorKind> {
    let chunks = &job.plan.chunks;
    let dtype = job.plan.grid.element();
    let block = Block { axes: Vec::new(), output: Vec::new() };
    let mut batches = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (number, chunk) in chunks.iter().enumerate() {
        bytes += chunk.stored.raw_len;
        if bytes >= SPLIT || number + 1 == chunks.len() {
            batches.push(start..number + 1);
            (start, bytes) = (number + 1, 0);
        }
    }
    let rank = job.plan.grid.rank();
    let source = &job.dataset.file.source;
    let partials = job.each_with(usize::MAX, &batches, Scratch::default, |scratch, batch| {
        job.progress.check()?;
        let batch = &chunks[batch.clone()];
        let mut accumulator = reduction.accumulator(&block)?;
        let (Some(first), Some(last)) = (batch.first(), batch.last()) else { return Ok((accumulator, 0)) };
        let span =
            Span::between(first.stored.span.start(), last.stored.span.end()).unwrap_or(first.stored.span);
        let stored = source.read_at(span)?;
        let mut walker = Walker::new(&mut *accumulator, None, ValueRules::stored(dtype), scratch);
        let slab = to_usize(walker.slab_bytes());
        let mut fold = |bytes: &[u8]| -> Result<(), ErrorKind> {
            for bytes in bytes.chunks(slab) {
                let count = bytes.len() / dtype.size();
                let lane =
                    AxisRun { first: 0, count, stride: 1, cells: CellStep::Same, index: 1, keep: None };
                let piece = Piece { lanes: vec![lane], offset: 0, cell: 0, index: 0 };
                walker.piece_now(bytes, piece)?;
            }
            Ok(())
        };
        let (mut done, mut at) = (0, 0);
        for chunk in batch {
            let chunk_ref = &chunk.stored;
            let end = at + to_usize(chunk_ref.raw_len);
            match job.dataset.crc_to_check(chunk_ref)? {
                Some(expected) => {
                    let mut crc = 0;
                    for piece in stored[at..end].chunks(CACHED) {
                        crc = checksum::crc32c_append(crc, piece);
                        at += piece.len();
                        if at - done >= CACHED {
                            fold(&stored[done..at])?;
                            done = at;
                        }
                    }
                    job.dataset.check_crc(
                        &job.plan.grid.coords(chunk.number)[..rank],
                        chunk_ref,
                        expected,
                        crc,
                    )?;
                }
                None => at = end,
            }
        }
        fold(&stored[done..])?;
        drop(walker);
        accumulator.settle();
        job.count(span.len());
        Ok((accumulator, span.len() / dtype.size() as u64))
    })?;
    let mut total = reduction.accumulator(&block)?;
    let mut entered = 0;
    for (later, more) in &partials {
        total.merge(0, &**later, 0, 1);
        entered += more;
    }
    total.finish(Counts::Same(entered), output);
    Ok(entered)
}
