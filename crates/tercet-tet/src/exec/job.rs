//! One execution: what to read, how much memory it may take, and who is watching.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use rayon::prelude::*;
use tercet_core::Progress;

use crate::error::ErrorKind;
use crate::file::Dataset;
use crate::plan::{PlannedChunk, ReadPlan};
use crate::query::resolved::Resolved;
use crate::stats::Stats;
use crate::wire::ids::Codec;

/// An execution of a plan.
pub(crate) struct Job<'a> {
    pub(crate) dataset: Dataset<'a>,
    pub(crate) plan: &'a ReadPlan,
    pub(crate) resolved: &'a Resolved,
    /// Bytes of dense buffers that may be held at once.
    pub(crate) budget: u64,
    /// Whether chunks are worked on by several threads. The answer is the same, bit for bit.
    pub(crate) parallel: bool,
    /// Whether the selection is larger than most of the memory of this machine.
    pub(crate) out_of_core: bool,
    /// Whether statistics of chunks may replace their values.
    pub(crate) statistics: bool,
    pub(crate) progress: &'a dyn Progress,
    /// Chunks whose statistics stood for their values.
    pub(crate) by_statistics: AtomicU64,
    /// Stored bytes of chunks read so far.
    pub(crate) bytes_read: AtomicU64,
}

impl Job<'_> {
    /// The decoded bytes of a chunk of the plan, checked. A raw chunk of a mapped file is not copied.
    pub(crate) fn tile(&self, number: usize) -> Result<Bytes, ErrorKind> {
        self.progress.check()?;
        let chunk = &self.plan.chunks[number];
        let tile = &chunk.tile[..self.plan.grid.rank()];
        let stored = self.dataset.fetch(tile, &chunk.stored)?;
        self.count(chunk.stored.span.len());
        if chunk.stored.codec == Codec::Raw {
            return Ok(stored);
        }
        let mut raw = self.dataset.room(&chunk.stored)?;
        self.dataset.decode(tile, &chunk.stored, &stored, &mut raw)?;
        Ok(raw.into())
    }

    /// The statistics of a chunk, checked, if the file has them.
    pub(crate) fn stats(&self, chunk: &PlannedChunk) -> Result<Option<Stats>, ErrorKind> {
        let file = self.dataset.file;
        let Some(checker) = &file.checker else { return Ok(None) };
        let bytes = checker.row_stats(&file.source, chunk.stored.row)?;
        Ok(bytes.map(|bytes| Stats::decode(self.plan.grid.element(), &bytes)))
    }

    /// Whether the file has statistics of the chunks.
    pub(crate) fn has_statistics(&self) -> bool {
        // What cannot be read is told when it is asked for.
        self.plan.chunks.first().is_some_and(|chunk| !matches!(self.stats(chunk), Ok(None)))
    }

    /// Notes that stored bytes were read.
    pub(crate) fn count(&self, bytes: u64) {
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
        self.progress.advance(bytes);
    }

    /// Does every task, on all threads if the job is parallel; the results come in the order of the tasks.
    pub(crate) fn each<I: Sync, R: Send>(
        &self,
        tasks: &[I],
        work: impl Fn(&I) -> Result<R, ErrorKind> + Sync + Send,
    ) -> Result<Vec<R>, ErrorKind> {
        if self.parallel && tasks.len() > 1 {
            return tasks.par_iter().with_max_len(1).map(work).collect();
        }
        tasks.iter().map(work).collect()
    }

    /// Likewise with something that each thread keeps from task to task.
    pub(crate) fn each_with<I: Sync, S, R: Send>(
        &self,
        tasks: &[I],
        start: impl Fn() -> S + Sync + Send,
        work: impl Fn(&mut S, &I) -> Result<R, ErrorKind> + Sync + Send,
    ) -> Result<Vec<R>, ErrorKind> {
        if self.parallel && tasks.len() > 1 {
            return tasks.par_iter().with_max_len(1).map_init(start, work).collect();
        }
        let mut kept = start();
        tasks.iter().map(|task| work(&mut kept, task)).collect()
    }
}
