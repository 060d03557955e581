//! Job: one execution, with its plan, memory budget and progress. Scope: what a visit of chunks reads.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use tercet_core::{ByteSource as _, ElementType, Progress, Selection};
use tercet_kernel::{Decode, Outliers};

use crate::error::ErrorKind;
use crate::file::{ChunkRef, Dataset};
use crate::grid::Grid;
use crate::plan::{PlannedChunk, ReadPlan};
use crate::query::resolved::{Positions, Resolved};
use crate::stats::Stats;
use crate::wire::ids::Codec;

/// The chunks that a visit reads: those of a plan, or all chunks of a selection.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) dataset: Dataset<'a>,
    pub(crate) grid: &'a Grid,
    pub(crate) selection: &'a Selection,
    /// Chunks of a plan, without pruned chunks; `None` if every chunk is looked up when it is visited.
    pub(crate) planned: Option<&'a [PlannedChunk]>,
    /// Included positions of one axis; `None` includes all.
    pub(crate) positions: Option<&'a Positions>,
    /// Axes whose positions are indexed in descending order; empty if there are none.
    pub(crate) reversed: &'a [bool],
    pub(crate) progress: &'a dyn Progress,
    /// Counters of an execution. Without them, progress counts decoded bytes.
    pub(crate) counters: Option<&'a Counters>,
    /// Whether several threads process chunks.
    pub(crate) parallel: bool,
}

impl Scope<'_> {
    /// Counts the bytes of a chunk that were read.
    pub(crate) fn count(&self, chunk: &ChunkRef, stored: u64, decoded: u64) {
        if let Some(counters) = self.counters {
            counters.read.insert(chunk.row);
        }
        self.count_bytes(stored, decoded);
    }

    /// Counts the bytes of consecutive chunks that were read as one span.
    pub(crate) fn count_span(&self, chunks: &[PlannedChunk], bytes: u64) {
        if let Some(counters) = self.counters {
            for chunk in chunks {
                counters.read.insert(chunk.stored.row);
            }
        }
        self.count_bytes(bytes, bytes);
    }

    fn count_bytes(&self, stored: u64, decoded: u64) {
        match self.counters {
            Some(counters) => {
                counters.bytes_read.fetch_add(stored, Ordering::Relaxed);
                self.progress.advance(stored);
            }
            None => self.progress.advance(decoded),
        }
    }

    /// Counts a chunk that was decompressed.
    pub(crate) fn count_decoded(&self, bytes: u64) {
        if let Some(counters) = self.counters {
            counters.chunks_decoded.fetch_add(1, Ordering::Relaxed);
            counters.bytes_decoded.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Number of threads that process chunks.
    pub(crate) fn threads(&self) -> usize {
        if self.parallel { rayon::current_num_threads().max(1) } else { 1 }
    }
}

/// Counters of an execution.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Stored bytes of chunks that were read.
    pub(crate) bytes_read: AtomicU64,
    /// Number of chunks that were decompressed, every time counted.
    pub(crate) chunks_decoded: AtomicU64,
    /// Bytes of these chunks.
    pub(crate) bytes_decoded: AtomicU64,
    /// Chunks whose statistics replaced their values in some visit.
    pub(crate) by_statistics: RowSet,
    /// Chunks whose values were read in some visit.
    pub(crate) read: RowSet,
}

impl Counters {
    /// Counters of the chunks of a plan.
    pub(crate) fn new(plan: &ReadPlan) -> Self {
        Self { by_statistics: RowSet::new(plan), read: RowSet::new(plan), ..Self::default() }
    }

    /// Number of chunks whose statistics replaced their values in every visit.
    pub(crate) fn by_statistics_only(&self) -> u64 {
        self.by_statistics.without(&self.read)
    }
}

/// A set of the chunks of a plan, by the numbers of their rows.
#[derive(Debug, Default)]
pub(crate) struct RowSet {
    first: u64,
    bits: Vec<AtomicU64>,
}

impl RowSet {
    fn new(plan: &ReadPlan) -> Self {
        let rows = || plan.chunks.iter().map(|chunk| chunk.stored.row);
        let (Some(first), Some(last)) = (rows().min(), rows().max()) else { return Self::default() };
        let words = (last - first) / 64 + 1;
        Self { first, bits: (0..words).map(|_| AtomicU64::new(0)).collect() }
    }

    pub(crate) fn insert(&self, row: u64) {
        let Some(number) = row.checked_sub(self.first) else { return };
        let word = usize::try_from(number / 64).ok().and_then(|word| self.bits.get(word));
        if let Some(word) = word {
            word.fetch_or(1 << (number % 64), Ordering::Relaxed);
        }
    }

    /// Inserts the chunks of a part of the plan.
    fn extend(&self, part: &Self) {
        for (word, bits) in (0u64..).zip(&part.bits) {
            let bits = bits.load(Ordering::Relaxed);
            (0..64)
                .filter(|bit| bits >> bit & 1 == 1)
                .for_each(|bit| self.insert(part.first + word * 64 + bit));
        }
    }

    /// Number of chunks that are not in another set of the same plan.
    fn without(&self, other: &Self) -> u64 {
        let words = self.bits.iter().zip(&other.bits);
        let count = |(own, other): (&AtomicU64, &AtomicU64)| {
            u64::from((own.load(Ordering::Relaxed) & !other.load(Ordering::Relaxed)).count_ones())
        };
        words.map(count).sum()
    }
}

impl Counters {
    /// Adds the counts of a part of the execution.
    pub(crate) fn add(&self, part: &Self) {
        let Self { bytes_read, chunks_decoded, bytes_decoded, by_statistics, read } = part;
        self.by_statistics.extend(by_statistics);
        self.read.extend(read);
        for (all, part) in [
            (&self.bytes_read, bytes_read),
            (&self.chunks_decoded, chunks_decoded),
            (&self.bytes_decoded, bytes_decoded),
        ] {
            all.fetch_add(part.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

/// An execution of a plan.
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub(crate) struct Job<'a> {
    pub(crate) dataset: Dataset<'a>,
    pub(crate) plan: &'a ReadPlan,
    pub(crate) resolved: &'a Resolved,
    /// Memory budget: bytes that may be held at once. At least two chunks.
    pub(crate) budget: u64,
    /// Memory budget as requested, which decides where results are kept.
    pub(crate) requested_budget: u64,
    /// Whether several threads process chunks. The result is bit-identical.
    pub(crate) parallel: bool,
    /// Bytes that a thread holds for the chunk it processes.
    pub(crate) held: u64,
    /// Whether the selection is larger than most of the memory of this machine.
    pub(crate) out_of_core: bool,
    /// Whether statistics of chunks may replace their values.
    pub(crate) statistics: bool,
    /// Where histograms count values outside of their range.
    pub(crate) outliers: Outliers,
    /// Whether results are those of the reference implementation.
    pub(crate) as_reference: bool,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) counters: Counters,
}

/// Whether parts of a chunk can be read again without decoding or downloading more than them.
pub(crate) fn reads_part(dataset: &Dataset<'_>, chunk: &ChunkRef) -> bool {
    let source = &dataset.file.source;
    chunk.codec == Codec::Raw && (source.is_zero_copy() || !source.is_remote())
}

/// Whether parts of all chunks can be read in this way.
pub(crate) fn reads_parts(dataset: &Dataset<'_>, chunks: &[PlannedChunk]) -> bool {
    chunks.iter().all(|chunk| reads_part(dataset, &chunk.stored))
}

/// Bytes that a thread holds for the largest chunk of a plan: decoded and, unless they are mapped, stored.
pub(crate) fn held_bytes(dataset: &Dataset<'_>, plan: &ReadPlan) -> u64 {
    if reads_parts(dataset, &plan.chunks) {
        return 0;
    }
    let mapped = dataset.file.source.is_zero_copy();
    let held = plan.chunks.iter().map(|chunk| {
        let is_coded = chunk.stored.codec != Codec::Raw;
        let stored = if is_coded && !mapped { chunk.stored.span.len() } else { 0 };
        chunk.stored.raw_len.saturating_add(stored)
    });
    held.max().unwrap_or(0)
}

impl Job<'_> {
    /// Number of threads: as many as the chunks they hold fit in the budget.
    pub(crate) fn threads(&self) -> usize {
        if !self.parallel {
            return 1;
        }
        // The other half of the budget is for states.
        let fitting = self.budget / self.held.saturating_mul(2).max(1);
        let fitting = usize::try_from(fitting).unwrap_or(usize::MAX);
        rayon::current_num_threads().min(fitting).max(1)
    }

    /// The chunks of the plan.
    pub(crate) fn scope(&self) -> Scope<'_> {
        Scope {
            dataset: self.dataset,
            grid: &self.plan.grid,
            selection: &self.plan.selection,
            planned: Some(&self.plan.chunks),
            positions: self.resolved.positions.as_ref(),
            reversed: &self.resolved.reversed,
            progress: self.progress,
            counters: Some(&self.counters),
            parallel: self.threads() > 1,
        }
    }

    /// Element type of the values of a computation: f64 for decoded values.
    pub(crate) fn element(&self) -> ElementType {
        if self.resolved.values.decode.is_some() { ElementType::F64 } else { self.plan.grid.element() }
    }

    /// Element type of the result of a transform: the stored float type, or f64 if values are packed or integers.
    pub(crate) fn transformed(&self) -> ElementType {
        let stored = self.plan.grid.element();
        let is_packed = |decode: &Decode| (decode.scale, decode.offset) != (1.0, 0.0);
        match &self.resolved.values.decode {
            Some(decode) if !stored.is_float() || is_packed(decode) => ElementType::F64,
            _ => stored,
        }
    }

    /// Verified statistics of a chunk, if the file has them.
    pub(crate) fn stats(&self, chunk: &ChunkRef) -> Result<Option<Stats>, ErrorKind> {
        let file = self.dataset.file;
        let Some(checker) = &file.checker else { return Ok(None) };
        let bytes = checker.row_stats(&file.source, chunk.row)?;
        Ok(bytes.map(|bytes| Stats::decode(self.plan.grid.element(), &bytes)))
    }

    /// Whether the file has statistics of the chunks.
    pub(crate) fn has_statistics(&self) -> bool {
        // Read errors are reported when the statistics are requested.
        self.plan.chunks.first().is_some_and(|chunk| !matches!(self.stats(&chunk.stored), Ok(None)))
    }

    /// Runs every task, on at most `threads` threads if the job is parallel, with state that each thread keeps from task to
    /// task; results are in the order of the tasks.
    pub(crate) fn each_with<I: Sync, S, R: Send>(
        &self,
        threads: usize,
        tasks: &[I],
        start: impl Fn() -> S + Sync + Send,
        work: impl Fn(&mut S, &I) -> Result<R, ErrorKind> + Sync + Send,
    ) -> Result<Vec<R>, ErrorKind> {
        let threads = threads.min(self.threads());
        if threads < 2 || tasks.len() < 2 {
            let mut kept = start();
            return tasks.iter().map(|task| work(&mut kept, task)).collect();
        }
        if threads == rayon::current_num_threads() {
            return tasks.par_iter().with_max_len(1).map_init(start, work).collect();
        }
        let mut results = Vec::with_capacity(tasks.len());
        for tasks in tasks.chunks(threads) {
            let some: Vec<R> =
                tasks.par_iter().with_max_len(1).map_init(&start, &work).collect::<Result<_, _>>()?;
            results.extend(some);
        }
        Ok(results)
    }
}
