//! Driver of reductions: tasks, partial results and threads. The driver is not generic over the computation, which is
//! an [`Accumulator`].
//!
//! The output is cut into strips of slots (output elements) whose states stay in the cache ([`cut`]), and all chunks of
//! a strip are visited. Rows of several chunks are folded at once ([`walk`](super::walk)). Cuts depend only on the plan
//! and partial results are merged in its order, so results are bit-identical for any number of threads.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Mutex;

use tercet_core::limits::check_limit;
use tercet_core::tensor::OutOfMemory;
use tercet_core::{ByteSource as _, ElementType, with_element};
use tercet_kernel::{Accumulator, ComputeType, Decode, Filter, Op, Statistics, StatisticsRange, Value};

use super::chunks::divide;
use super::cut::{Limits, cut, splits_chunks};
use super::job::Job;
use super::predicate::{Predicate, compute_filter};
use super::sizes::{
    BATCH, BATCH_BYTES, LARGE_DATASET, MANY_TASKS, MAX_SPLITS, SMALL_CHUNK, SPLIT, SPLIT_STATES, STRIP,
};
use super::task::{Block, Chain, Region, Task, chains, to_usize};
use super::visit::Visitor;
use super::walk::{Scratch, Streamed, ValueRules, Walker};
use super::{memory, rolling};
use crate::error::ErrorKind;
use crate::plan::PlannedChunk;
use crate::query::resolved::Role;
use crate::stats;

/// Result of a reduction.
#[derive(Debug)]
pub(crate) struct Folded {
    /// `width` numbers per output element, row-major.
    pub(crate) values: Vec<f64>,
    /// Number of selected elements that were reduced, after filters.
    pub(crate) elements: u64,
    /// Number of missing elements that were skipped.
    pub(crate) skipped: u64,
    /// Whether every selected element was visited once: windows may overlap or leave some out.
    pub(crate) is_complete: bool,
}

/// Reduces the selection of a job's plan to the output elements defined by the roles of the axes.
pub(crate) fn fold(job: &Job<'_>, op: &Op, roles: &[Role]) -> Result<Folded, ErrorKind> {
    let dtype = if sees_missing(op) { job.plan.grid.element() } else { job.element() };
    let mut folded = fold_with(job, &Standard { op, dtype }, roles)?;
    // Sums of finite values near the maximum of f64: the order of the additions decides whether they overflow.
    if let Some(op) = op.for_large_sums(dtype)
        && folded.values.iter().any(|value| value.is_infinite())
    {
        let again = fold_with(job, &Standard { op: &op, dtype }, roles)?;
        let values = folded.values.iter_mut().zip(again.values);
        values.filter(|(value, _)| value.is_infinite()).for_each(|(value, again)| *value = again);
    }
    Ok(folded)
}

/// A reduction: the computation of a fold.
pub(crate) trait Reduction: Sync {
    /// Creates an accumulator for a box of output elements.
    fn accumulator(&self, block: &Block) -> Result<Box<dyn Accumulator>, OutOfMemory>;
    /// Number of results per slot.
    fn width(&self) -> usize {
        1
    }
    /// Size of the state of a slot in bytes.
    fn slot_bytes(&self) -> usize;
    /// Maximum number of slots of a task.
    fn most_slots(&self) -> u64 {
        u64::MAX
    }
    /// Whether the reduction uses the index of values.
    fn is_indexed(&self) -> bool {
        false
    }
    /// Which of the results of a slot are indices.
    fn are_indices(&self) -> Vec<bool> {
        vec![self.is_indexed(); self.width()]
    }
    /// Which of the results of a slot are numbers of values.
    fn are_counts(&self) -> Vec<bool> {
        vec![false; self.width()]
    }
    /// Whether statistics of chunks can replace their values.
    fn takes_statistics(&self) -> bool {
        false
    }
    /// Whether results depend on the number of values of a slot.
    fn is_counted(&self) -> bool {
        false
    }
    /// Whether the reduction takes stored values, missing ones as well.
    fn sees_missing(&self) -> bool {
        false
    }
}

/// Whether an operation is about values that other operations skip.
pub(crate) fn sees_missing(op: &Op) -> bool {
    matches!(op, Op::NanCount | Op::InfCount { .. } | Op::AnyNotFinite | Op::EqualCount(_))
}

/// Whether the results of an operation are numbers of values.
pub(crate) fn is_count(op: &Op) -> bool {
    matches!(op, Op::Count) || sees_missing(op)
}

/// A reduction of the kernel crate.
struct Standard<'a> {
    op: &'a Op,
    dtype: ElementType,
}

impl Reduction for Standard<'_> {
    fn accumulator(&self, block: &Block) -> Result<Box<dyn Accumulator>, OutOfMemory> {
        self.op.accumulator(self.dtype, block.len(), &|slot| block.global(slot))
    }
    fn width(&self) -> usize {
        self.op.width()
    }
    fn slot_bytes(&self) -> usize {
        self.op.slot_bytes()
    }
    fn is_indexed(&self) -> bool {
        self.op.is_indexed()
    }
    fn are_counts(&self) -> Vec<bool> {
        vec![is_count(self.op); self.op.width()]
    }
    fn takes_statistics(&self) -> bool {
        self.op.takes_statistics()
    }
    fn is_counted(&self) -> bool {
        matches!(self.op, Op::Mean | Op::NanMean | Op::LargeMean | Op::LargeNanMean | Op::Count)
    }
    fn sees_missing(&self) -> bool {
        sees_missing(self.op)
    }
}

/// Reduces with any accumulator.
pub(crate) fn fold_with(
    job: &Job<'_>,
    reduction: &dyn Reduction,
    roles: &[Role],
) -> Result<Folded, ErrorKind> {
    let roles: Vec<Role> = roles.iter().map(simplified).collect();
    Driver::new(job, reduction, &roles)?.all()
}

/// Simplifies groups of one position each, in order, to kept positions.
fn simplified(role: &Role) -> Role {
    match role {
        Role::Grouped(groups)
            if groups.size == 0
                && groups.count as usize == groups.numbers.len()
                && groups.numbers.iter().zip(0..).all(|(&number, position)| number == position) =>
        {
            Role::Kept
        }
        _ => role.clone(),
    }
}

/// Slots of a strip, whose states should stay in the cache. Sums touch a third of their states for every row.
fn strip(reduction: &dyn Reduction) -> u64 {
    match reduction.slot_bytes() {
        33..=64 => STRIP / 4,
        ..=32 if !reduction.is_indexed() => STRIP,
        _ => STRIP / 2,
    }
}

/// Whether a reduction takes the chunks of a plan as one span of stored values, whose order is not that of the array:
/// chunks that are too small to be visited one by one.
pub(crate) fn reads_span(job: &Job<'_>, roles: &[Role], indexed: bool, statistics: bool) -> bool {
    let Some(span) = job.plan.contiguous else { return false };
    let is_plain = roles.iter().all(|role| matches!(role, Role::Reduced)) && !indexed && !statistics;
    let is_small =
        span.len() / (job.plan.chunks.len() as u64).max(1) < SMALL_CHUNK && span.len() >= LARGE_DATASET;
    is_plain && !job.dataset.file.source.is_remote() && (is_small || job.out_of_core)
}

/// One reduction of one job.
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub(crate) struct Driver<'a> {
    pub(crate) job: &'a Job<'a>,
    pub(crate) reduction: &'a dyn Reduction,
    pub(crate) visitor: Visitor<'a>,
    /// Element type of the values of the reduction: f64 for decoded values.
    pub(crate) element: ElementType,
    decode: Option<&'a Decode>,
    filter: Option<Filter>,
    missing: Option<Missing>,
    /// Whether statistics may replace chunks.
    statistics: bool,
    /// Whether counts of values are kept, because they vary.
    counted: bool,
    /// Whether all chunks are memory-mapped.
    mapped: bool,
    /// Whether the chunks are read as one span.
    spans: bool,
}

/// States of the slots of a task.
pub(crate) struct States {
    pub(crate) accumulator: Box<dyn Accumulator>,
    /// Number of values per slot, if it varies.
    pub(crate) counts: Option<Vec<u64>>,
    entered: u64,
    skipped: u64,
}

/// Treatment of missing values.
struct Missing {
    /// Filter that they fail.
    filter: Filter,
    /// Rows of the chunks that may have missing values, by their statistics; `None` without statistics.
    chunks: Option<HashSet<u64>>,
}

impl Missing {
    /// Treatment of the missing values of a job; `None` if there are none, by the statistics of the chunks.
    fn new(job: &Job<'_>, element: ElementType, compute: ComputeType) -> Result<Option<Self>, ErrorKind> {
        let resolved = job.resolved;
        let Some(missing) = resolved.missing_filter(job.plan.grid.element()) else { return Ok(None) };
        if resolved.values.decode.is_some() {
            let filter = compute_filter(&missing, [None; 2], element, compute);
            return Ok(Some(Self { filter, chunks: None }));
        }
        let filter = compute_filter(&missing, resolved.fills(), element, compute);
        if !job.statistics || !job.has_statistics() {
            return Ok(Some(Self { filter, chunks: None }));
        }
        let mut chunks = HashSet::new();
        with_element!(element, |T| {
            let predicate = Predicate::<T>::new(&missing, resolved.fills());
            for chunk in &job.plan.chunks {
                let stats = job.stats(&chunk.stored)?;
                if stats.is_none_or(|stats| !predicate.passes_all(&stats)) {
                    chunks.insert(chunk.stored.row);
                }
            }
        });
        Ok((!chunks.is_empty()).then_some(Self { filter, chunks: Some(chunks) }))
    }

    /// Whether a chunk may have missing values.
    fn may_be_in(&self, region: &Region) -> bool {
        self.chunks.as_ref().is_none_or(|chunks| chunks.contains(&region.stored.row))
    }
}

impl<'a> Driver<'a> {
    fn new(job: &'a Job<'a>, reduction: &'a dyn Reduction, roles: &'a [Role]) -> Result<Self, ErrorKind> {
        let resolved = job.resolved;
        let probe = reduction.accumulator(&Block { axes: vec![(0, 0)], output: vec![0] })?;
        let decode = resolved.values.decode.as_deref().filter(|_| !reduction.sees_missing());
        let element = if decode.is_some() { ElementType::F64 } else { job.plan.grid.element() };
        let missing =
            if reduction.sees_missing() { None } else { Missing::new(job, element, probe.compute())? };
        let fills = if decode.is_some() { [None; 2] } else { resolved.fills() };
        let filter =
            resolved.filter.as_ref().map(|filter| compute_filter(filter, fills, element, probe.compute()));
        let visitor = Visitor::new(job.scope(), roles);
        let plain = filter.is_none() && resolved.positions.is_none() && decode.is_none();
        let has_groups = roles.iter().any(|role| matches!(role, Role::Grouped(_)));
        let has_windows = roles.iter().any(|role| match role {
            Role::Rolling(_) => true,
            Role::Grouped(groups) => groups.size > 0,
            Role::Reduced | Role::Kept => false,
        });
        // Statistics are requested only if the file has them.
        let statistics = job.statistics && plain && reduction.takes_statistics() && job.has_statistics();
        let varies = !plain || missing.is_some() || has_groups;
        let counted = varies && (reduction.is_counted() || has_windows);
        let mapped = visitor.chunks.are_mapped();
        let spans = reads_span(job, roles, reduction.is_indexed(), statistics);
        Ok(Self {
            job,
            reduction,
            visitor,
            element,
            decode,
            filter,
            missing,
            statistics,
            counted,
            mapped,
            spans,
        })
    }

    fn all(mut self) -> Result<Folded, ErrorKind> {
        let job = self.job;
        let shape = job.plan.selection.shape();
        let roles = self.visitor.geometry.roles;
        let output: Vec<u64> =
            roles.iter().zip(shape.iter()).filter_map(|(role, &extent)| role.output_len(extent)).collect();
        let width = self.reduction.width();
        let slots = output.iter().try_fold(width as u64, |slots, &extent| slots.checked_mul(extent));
        let bytes = slots.and_then(|slots| slots.checked_mul(8)).unwrap_or(u64::MAX);
        let bytes = check_limit("the result", bytes, job.dataset.file.options.limits.array_bytes)?;
        memory::check_available(bytes as u64)?;
        let values = bytemuck::allocation::try_zeroed_slice_box::<f64>(bytes / 8)
            .map_err(|()| OutOfMemory { bytes })?
            .into_vec();
        // The state of a slot, and its results until they are put into the output; for windows, the states that are
        // carried from task to task as well.
        let slot = (self.reduction.slot_bytes() + 8 * width) as u64;
        let window =
            roles.iter().position(|role| matches!(role, Role::Rolling(rolling) if !rolling.separate));
        let slot = if window.is_some() { slot + slot / 2 } else { slot };
        // Cuts depend on the budget, not on the number of threads: so do the last digits of float sums.
        let share = (job.budget / 4).max(1 << 20) / slot;
        let most = share.clamp(1, self.reduction.most_slots().max(1));
        // Windows that are reduced one by one overlap: their parts do not add up to complete chunks, whose checksums
        // need all of their bytes.
        let is_partition =
            !roles.iter().any(|role| matches!(role, Role::Rolling(rolling) if rolling.separate));
        let strips = self.mapped || (is_partition && self.visitor.chunks.reads_parts());
        let limits = Limits { strips, strip: strip(self.reduction), most };
        let parts = cut(job.plan, roles, job.resolved.positions.as_ref(), limits);
        let chains = chains(&parts, window, self.mapped);
        self.visitor.chunks.expect_pieces(is_partition);
        let kept = if splits_chunks(job.plan, &parts) { job.budget / 4 } else { 0 };
        self.visitor.chunks.keep_decoded(kept);
        let values = Mutex::new(values);
        let largest =
            chains.iter().flat_map(|chain| &chain.tasks).map(|task| self.visitor.geometry.block(task).len());
        let states = (largest.max().unwrap_or(0) as u64).saturating_mul(slot);
        let threads = to_usize((job.budget / 2).max(2 << 20) / states.max(1)).max(1);
        // Memory for the partial results of a task.
        let room = if chains.len() < MANY_TASKS {
            SPLIT_STATES.min(to_usize(job.budget / 4)) / chains.len().max(1)
        } else {
            0
        };
        let entered = job.each_with(threads, &chains, Scratch::default, |scratch, chain| {
            self.chain(chain, window, room, scratch, &values)
        })?;
        self.visitor.chunks.finish()?;
        let values = values.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (elements, skipped) = entered.iter().fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1));
        let is_complete = roles.iter().zip(shape.iter()).all(|(role, &extent)| match role {
            Role::Rolling(rolling) => !rolling.separate && rolling.covers(extent),
            _ => true,
        });
        Ok(Folded { values, elements, skipped, is_complete })
    }

    /// Processes the tasks of a chain; returns the numbers of reduced and of skipped elements.
    fn chain(
        &self,
        chain: &Chain,
        window: Option<usize>,
        room: usize,
        scratch: &mut Scratch,
        output: &Mutex<Vec<f64>>,
    ) -> Result<(u64, u64), ErrorKind> {
        let mut entered = (0, 0);
        let mut carried = match &chain.lead {
            Some(lead) => {
                let mut regions = self.visitor.geometry.regions(lead)?;
                // Other tasks read these positions as well, so the checksums of the chunks are not joined from pieces.
                for region in &mut regions {
                    region.is_selected = false;
                }
                Some(self.visit(lead, &self.visitor.geometry.block(lead), regions, room, scratch)?)
            }
            None => None,
        };
        for (number, task) in chain.tasks.iter().enumerate() {
            let block = self.visitor.geometry.block(task);
            let regions = if self.spans { Vec::new() } else { self.visitor.geometry.regions(task)? };
            let mut states = self.visit(task, &block, regions, room, scratch)?;
            entered = (entered.0 + states.entered, entered.1 + states.skipped);
            if let Some(axis) = window {
                let lines = Lines::new(self.visitor.geometry.roles, &block, axis);
                if let Some(carried) = carried.take() {
                    let positions = to_usize(task.carried);
                    lines.copy(&carried, (0, positions), &mut states, (0, lines.positions), positions);
                }
                if let Some(next) = chain.tasks.get(number + 1).filter(|next| next.carried > 0) {
                    carried = Some(Self::carried(&lines, to_usize(next.carried), &states)?);
                }
            }
            rolling::finish(self, task, &block, &mut states, output)?;
            scratch.spare = Some(states.accumulator).filter(|spare| spare.is_uniform());
        }
        Ok(entered)
    }

    /// Copies the states of the last positions of a block.
    fn carried(lines: &Lines, positions: usize, states: &States) -> Result<States, ErrorKind> {
        let slots = lines.outer * positions * lines.inner;
        let accumulator = states.accumulator.fresh(slots)?;
        let counts = if states.counts.is_some() { Some(zeros(slots)?) } else { None };
        let mut carried = States { accumulator, counts, entered: 0, skipped: 0 };
        let first = lines.positions - positions;
        lines.copy(states, (first, lines.positions), &mut carried, (0, positions), positions);
        carried.accumulator.settle();
        Ok(carried)
    }

    /// Folds the regions of a task; several threads make partial results if these fit in `room` bytes.
    fn visit(
        &self,
        task: &Task,
        block: &Block,
        mut regions: Vec<Region>,
        room: usize,
        scratch: &mut Scratch,
    ) -> Result<States, ErrorKind> {
        if room > 0 && self.mapped {
            regions = self.divided(task, block, regions);
        }
        let states = block.len().saturating_mul(self.reduction.slot_bytes()).max(1);
        let most = (room / states).clamp(1, MAX_SPLITS);
        let (chunks, size) = (&self.job.plan.chunks, self.job.plan.grid.element().size());
        let splits = if self.spans {
            split(chunks.iter().map(|chunk| chunk.stored.raw_len), most)
        } else {
            split(regions.iter().map(|region| region.bytes(size)), most)
        };
        let part = |range: &Range<usize>, scratch: &mut Scratch| {
            if self.spans {
                return self.span(block, &chunks[range.clone()], scratch);
            }
            self.split(task, block, &regions[range.clone()], scratch)
        };
        if let [one] = &splits[..] {
            return part(one, scratch);
        }
        let partials = self
            .job
            .each_with(usize::MAX, &splits, Scratch::default, |scratch, range| part(range, scratch))?;
        let mut partials = partials.into_iter();
        let mut all = match partials.next() {
            Some(first) => first,
            None => self.states(block, scratch)?,
        };
        for later in partials {
            all.accumulator.merge(0, &*later.accumulator, 0, block.len());
            all.entered += later.entered;
            all.skipped += later.skipped;
            for (count, more) in all.counts.iter_mut().flatten().zip(later.counts.iter().flatten()) {
                *count += more;
            }
        }
        Ok(all)
    }

    /// Splits large chunks, so that several threads can process each.
    fn divided(&self, task: &Task, block: &Block, regions: Vec<Region>) -> Vec<Region> {
        let steps: Vec<u64> = self.job.plan.selection.axes().iter().map(|slice| slice.step).collect();
        let size = self.job.plan.grid.element().size();
        let mut parts = Vec::with_capacity(regions.len());
        for region in regions {
            // Statistics replace complete chunks.
            if self.statistics && self.visitor.geometry.single_slot(task, block, &region).is_some() {
                parts.push(region);
            } else {
                divide(region, size, &steps, &mut parts);
            }
        }
        parts
    }

    /// Empty states for a block; a thread reuses those of its last task.
    fn states(&self, block: &Block, scratch: &mut Scratch) -> Result<States, ErrorKind> {
        let accumulator = match scratch.spare.take().filter(|spare| spare.slots() == block.len()) {
            Some(mut spare) => {
                spare.clear();
                spare
            }
            None => self.reduction.accumulator(block)?,
        };
        let counts = if self.counted { Some(zeros(block.len())?) } else { None };
        Ok(States { accumulator, counts, entered: 0, skipped: 0 })
    }

    /// Folds some regions of a task.
    fn split(
        &self,
        task: &Task,
        block: &Block,
        regions: &[Region],
        scratch: &mut Scratch,
    ) -> Result<States, ErrorKind> {
        let mut states = self.states(block, scratch)?;
        let mut rest = regions;
        while let [region, later @ ..] = rest {
            self.job.progress.check()?;
            if let Some((slot, mut statistics)) = self.statistics_of(task, block, region)? {
                if self.missing.is_some() {
                    states.skipped += statistics.nan_count;
                    statistics.count -= statistics.nan_count;
                    statistics.nan_count = 0;
                }
                if statistics.count > 0 {
                    states.accumulator.fold_statistics(slot, &statistics);
                }
                states.entered += statistics.count;
                if let Some(counts) = &mut states.counts {
                    counts[slot] += statistics.count;
                }
                self.job.counters.by_statistics.insert(region.stored.row);
                rest = later;
                continue;
            }
            let count = if self.statistics { 1 } else { self.batch(rest) };
            let (batch, later) = rest.split_at(count);
            self.fold_batch(task, block, batch, &mut states, scratch)?;
            rest = later;
        }
        states.accumulator.settle();
        Ok(states)
    }

    /// Folds chunks that are read as one span into a single slot.
    fn span(
        &self,
        block: &Block,
        chunks: &[PlannedChunk],
        scratch: &mut Scratch,
    ) -> Result<States, ErrorKind> {
        let mut states = self.states(block, scratch)?;
        self.walk(&mut states, true, scratch, |walker| self.visitor.span(chunks, &mut Streamed(walker)))?;
        states.accumulator.settle();
        Ok(states)
    }

    /// Number of regions that are folded together.
    fn batch(&self, regions: &[Region]) -> usize {
        let count = self.visitor.geometry.batch(regions, BATCH);
        let Some(first) = regions.first() else { return 0 };
        if self.mapped {
            return count;
        }
        let held = self.visitor.chunks.held_bytes(first);
        count.min(to_usize(BATCH_BYTES.min(self.job.budget / 8) / held.max(1)).max(1))
    }

    fn fold_batch(
        &self,
        task: &Task,
        block: &Block,
        regions: &[Region],
        states: &mut States,
        scratch: &mut Scratch,
    ) -> Result<(), ErrorKind> {
        let may_miss = self
            .missing
            .as_ref()
            .is_some_and(|missing| regions.iter().any(|region| missing.may_be_in(region)));
        if let [region] = regions
            && self.visitor.chunks.streams(region)
        {
            return self.walk(states, may_miss, scratch, |walker| {
                self.visitor.stream((task, block), region, &mut Streamed(walker))
            });
        }
        let (held, mut checks) = self.visitor.load(regions)?;
        self.walk(states, may_miss, scratch, |walker| {
            self.visitor.pass((task, block), regions, (&held, &mut checks), walker)
        })?;
        self.visitor.end(regions, (held, checks), &mut scratch.shifts)
    }

    /// Folds what is passed to a walker.
    fn walk<'b>(
        &self,
        states: &mut States,
        may_miss: bool,
        scratch: &mut Scratch,
        pass: impl FnOnce(&mut Walker<'_, 'b>) -> Result<(), ErrorKind>,
    ) -> Result<(), ErrorKind> {
        let missing = self.missing.as_ref().filter(|_| may_miss);
        let values = ValueRules {
            dtype: self.job.plan.grid.element(),
            decode: self.decode,
            missing: missing.map(|missing| &missing.filter),
            filter: self.filter.as_ref(),
        };
        let counts = states.counts.as_deref_mut();
        let mut walker = Walker::new(&mut *states.accumulator, counts, values, scratch);
        pass(&mut walker)?;
        walker.flush();
        states.entered += walker.entered;
        states.skipped += walker.skipped;
        Ok(())
    }

    /// Statistics of a chunk, and the one slot that the complete chunk is folded into, if they can replace its values.
    fn statistics_of(
        &self,
        task: &Task,
        block: &Block,
        region: &Region,
    ) -> Result<Option<(usize, Statistics)>, ErrorKind> {
        if !self.statistics || !region.is_whole {
            return Ok(None);
        }
        let Some(slot) = self.visitor.geometry.single_slot(task, block, region) else { return Ok(None) };
        let Some(stats) = self.job.stats(&region.stored)? else { return Ok(None) };
        // NaN is counted apart from the other values, other missing values are not.
        let may_miss = self.missing.as_ref().is_some_and(|missing| missing.may_be_in(region));
        if may_miss && self.job.resolved.has_missing_values() {
            return Ok(None);
        }
        Ok(Some((slot, kernel_statistics(&stats, self.job.plan.grid.element()))))
    }
}

/// The slots of a block, `outer × positions × inner`, around the window axis.
struct Lines {
    outer: usize,
    positions: usize,
    inner: usize,
}

impl Lines {
    fn new(roles: &[Role], block: &Block, window: usize) -> Self {
        let axis = roles[..window].iter().filter(|role| !matches!(role, Role::Reduced)).count();
        let count = |axes: &[(u64, u64)]| axes.iter().map(|&(_, count)| to_usize(count)).product();
        Self {
            outer: count(&block.axes[..axis]),
            positions: to_usize(block.axes[axis].1),
            inner: count(&block.axes[axis + 1..]),
        }
    }

    /// Merges the states of `count` positions into empty ones. Both sides have their first position and the number of
    /// positions of a line.
    fn copy(
        &self,
        from: &States,
        (first, line): (usize, usize),
        into: &mut States,
        (at, into_line): (usize, usize),
        count: usize,
    ) {
        let slots = count * self.inner;
        for outer in 0..self.outer {
            let from_slot = (outer * line + first) * self.inner;
            let into_slot = (outer * into_line + at) * self.inner;
            into.accumulator.merge(into_slot, &*from.accumulator, from_slot, slots);
            if let (Some(into), Some(from)) = (&mut into.counts, &from.counts) {
                into[into_slot..into_slot + slots].copy_from_slice(&from[from_slot..from_slot + slots]);
            }
        }
    }
}

/// Converts statistics to the form that accumulators take.
pub(crate) fn kernel_statistics(stats: &stats::Stats, dtype: ElementType) -> Statistics {
    let compute = ComputeType::for_dtype(dtype);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "values of narrower types"
    )]
    let range = match stats.range {
        stats::Range::Signed { min, max, sum } => {
            let value = |value: i64| match compute {
                ComputeType::F32 => Value::F32(value as f32),
                ComputeType::F64 => Value::F64(value as f64),
                _ => Value::I64(value),
            };
            StatisticsRange { min: value(min), max: value(max), infinite: 0, whole: sum, sum: 0.0 }
        }
        stats::Range::Unsigned { min, max, sum } => {
            let value = |value: u64| match compute {
                ComputeType::F32 => Value::F32(value as f32),
                ComputeType::F64 => Value::F64(value as f64),
                _ => Value::U64(value),
            };
            StatisticsRange { min: value(min), max: value(max), infinite: 0, whole: sum, sum: 0.0 }
        }
        stats::Range::Float { min, max, sum } => {
            let value = |value: f64| match compute {
                ComputeType::F32 => Value::F32(value as f32),
                _ => Value::F64(value),
            };
            let infinite = u64::from(min.is_infinite()) + u64::from(max.is_infinite());
            StatisticsRange { min: value(min), max: value(max), infinite, whole: 0, sum }
        }
    };
    Statistics { count: stats.count, nan_count: stats.nan_count, range }
}

fn zeros(slots: usize) -> Result<Vec<u64>, OutOfMemory> {
    let mut counts = Vec::new();
    counts.try_reserve_exact(slots).map_err(|_| OutOfMemory { bytes: slots.saturating_mul(8) })?;
    counts.resize(slots, 0);
    Ok(counts)
}

/// Splits items of these sizes into at most `most` runs of similar size.
fn split(sizes: impl Iterator<Item = u64> + Clone, most: usize) -> Vec<Range<usize>> {
    let each = (sizes.clone().sum::<u64>() / most as u64).max(SPLIT);
    let mut splits = Vec::new();
    let (mut start, mut end, mut sum) = (0, 0, 0);
    for size in sizes {
        sum += size;
        end += 1;
        if sum >= each {
            splits.push(start..end);
            (start, sum) = (end, 0);
        }
    }
    if start < end {
        splits.push(start..end);
    }
    splits
}

/// Casts little-endian bytes to values: in place, or copied if they are not aligned.
pub(crate) fn as_values<'v, T: super::number::Number>(bytes: &'v [u8], aligned: &'v mut Vec<T>) -> &'v [T] {
    if cfg!(target_endian = "little")
        && let Ok(values) = bytemuck::try_cast_slice(bytes)
    {
        return values;
    }
    aligned.clear();
    let chunks = bytes.chunks_exact(size_of::<T>());
    aligned.extend(chunks.map(|chunk| bytemuck::pod_read_unaligned::<T>(chunk).swap_le()));
    aligned
}

#[cfg(test)]
mod tests;
