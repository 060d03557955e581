//! A whole dataset that lies in the file as one span of raw bytes, folded without looking at tiles.

use tercet_core::{ByteSource as _, Span, checksum};

use super::drive::{Run, as_values};
use super::fold::{Block, Fold};
use super::job::Job;
use super::number::Number;
use super::sizes::{CACHED, LARGE_DATASET, SMALL_CHUNK, SPLIT};
use super::task::to_usize;
use crate::error::ErrorKind;
use crate::query::resolved::Role;

/// Whether the scan can take the place of the visit of tiles, and is worth it.
///
/// Tiles are not in the order of the array, so nothing that asks for an order can be answered this way.
pub(crate) fn applies(job: &Job<'_>, roles: &[Role], indexed: bool, statistics: bool) -> bool {
    let plan = job.plan;
    let scalar = roles.iter().all(|role| matches!(role, Role::Reduced));
    let plain = job.resolved.filter.is_none() && job.resolved.positions.is_none();
    let Some(span) = plan.contiguous else { return false };
    let small = span.len() / (plan.chunks.len() as u64).max(1) < SMALL_CHUNK && span.len() >= LARGE_DATASET;
    let zero_copy = job.dataset.file.source.is_zero_copy();
    scalar && plain && !indexed && !statistics && zero_copy && (small || job.out_of_core)
}

/// Folds the span; the result of one cell, and how many values entered.
pub(crate) fn all<T: Number, F: Fold>(run: &Run<'_, T, F>) -> Result<(Vec<f64>, u64), ErrorKind> {
    let job = run.job;
    let chunks = &job.plan.chunks;
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
    let partials = job.each(&batches, |batch| {
        job.progress.check()?;
        let batch = &chunks[batch.clone()];
        let (Some(first), Some(last)) = (batch.first(), batch.last()) else {
            return Ok((run.fold.start(&block), 0));
        };
        let span =
            Span::between(first.stored.span.start(), last.stored.span.end()).unwrap_or(first.stored.span);
        let stored = source.read_at(span)?;
        let mut cells = run.fold.start::<T>(&block);
        let mut aligned = Vec::new();
        let (mut done, mut at) = (0, 0);
        for chunk in batch {
            let place = &chunk.stored;
            let end = at + to_usize(place.raw_len);
            match job.dataset.expected_crc(place)? {
                Some(expected) => {
                    let mut crc = 0;
                    for piece in stored[at..end].chunks(to_usize(CACHED)) {
                        crc = checksum::crc32c_append(crc, piece);
                        at += piece.len();
                        if at - done >= to_usize(CACHED) {
                            run.fold.run(&mut cells, 0, as_values(&stored[done..at], &mut aligned), 0);
                            done = at;
                        }
                    }
                    job.dataset.check_crc(&chunk.tile[..rank], place, expected, crc)?;
                }
                None => at = end,
            }
        }
        for piece in stored[done..].chunks(to_usize(CACHED)) {
            run.fold.run(&mut cells, 0, as_values(piece, &mut aligned), 0);
        }
        job.count(span.len());
        Ok((cells, span.len() / size_of::<T>() as u64))
    })?;
    let mut cells = run.fold.start::<T>(&block);
    let mut entered = 0;
    for (later, more) in &partials {
        run.fold.merge((&mut cells, 0), (later, 0), 1);
        entered += more;
    }
    Ok((run.fold.finish(cells), entered))
}
