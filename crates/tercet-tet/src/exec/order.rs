//! Order statistics: exact medians and quantiles of any array, in bounded memory.
//!
//! The values of a slot (output element) are kept if they fit in memory; larger slots are searched digit by digit, with
//! one visit of the chunks per digit. Both are reductions of the one driver.

use tercet_core::limits::check_limit;
use tercet_core::tensor::OutOfMemory;
use tercet_kernel::{Accumulator, Capacity, Quantile, Search, SearchRoom};

use super::drive::{self, Folded, Reduction};
use super::job::{Job, reads_parts};
use super::predicate::compute_value;
use super::task::{Block, to_usize};
use crate::error::ErrorKind;
use crate::query::resolved::{Groups, Operation, Role, Rolling};

/// Quantile `q` of every output element: position q·(n − 1) of its sorted values, with linear interpolation; NaN if it
/// has no values or a NaN.
pub(crate) fn quantile(job: &Job<'_>, operation: &Operation, q: f64) -> Result<Folded, ErrorKind> {
    quantile_in(job, operation, Quantile { q, dtype: job.element(), is_rest: false }, &MemoryLimits::new(job))
}

/// Difference between the quantile of integers and the nearest f64; NaN if it is not an integer.
pub(crate) fn quantile_rest(job: &Job<'_>, operation: &Operation, q: f64) -> Result<Folded, ErrorKind> {
    quantile_in(job, operation, Quantile { q, dtype: job.element(), is_rest: true }, &MemoryLimits::new(job))
}

fn quantile_in(
    job: &Job<'_>,
    operation: &Operation,
    quantile: Quantile,
    room: &MemoryLimits,
) -> Result<Folded, ErrorKind> {
    let dtype = quantile.dtype;
    let kept = Kept::new(job, quantile, &operation.roles, room.task);
    let pad = kept.axes.iter().find_map(Axis::pad);
    if let Some(value) = pad.filter(|&value| compute_value(value, dtype, quantile.compute()).is_none()) {
        return Err(ErrorKind::FillValue { dtype, fill: value.to_f64() });
    }
    if kept.fits(room.task) {
        return drive::fold_with(job, &kept, &operation.roles);
    }
    let shape = job.plan.selection.shape();
    let slots =
        operation.output_shape(&shape).iter().try_fold(1u64, |slots, &extent| slots.checked_mul(extent));
    let limit = job.dataset.file.options.limits.array_bytes / 8;
    let slots = check_limit("the result", slots.unwrap_or(u64::MAX), limit)?;
    let roles: Vec<Role> = operation.roles.iter().map(separate).collect();
    let mut search =
        Search::new(quantile, slots, SearchRoom { keys: room.collected, counters: room.counters })?;
    loop {
        let folded = drive::fold_with(job, &Searched { search: &search, most: room.slots }, &roles)?;
        if search.advance() {
            return Ok(folded);
        }
    }
}

/// Windows are searched one by one.
fn separate(role: &Role) -> Role {
    match role {
        Role::Rolling(rolling) => Role::Rolling(Rolling { separate: true, ..rolling.clone() }),
        other => other.clone(),
    }
}

/// Bytes of the values of one task. A larger task is not faster: it is processed slot by slot.
const TASK: u64 = 32 << 20;
/// Bytes that are used even if the budget is less.
const MIN_BYTES: u64 = 1 << 20;
/// Bytes of the counters of one pass.
const COUNTERS: u64 = 64 << 20;
/// Bytes of the counters of one slot.
const SLOT_COUNTERS: u64 = 1 << 20;
/// Bytes per slot beside its values: its result, its length, its start.
const PER_SLOT: usize = 24;
/// Bytes per value of a window beside the value: it is sorted, ranked and counted.
const PER_WINDOW_VALUE: usize = 24;

/// Memory limits of the parts of an execution.
#[derive(Clone, Copy, Debug)]
struct MemoryLimits {
    /// Bytes of the values of a task.
    task: u64,
    /// Bytes of the values collected at the end of a search.
    collected: u64,
    /// Bytes of the counters of the first pass of a search: more of them leave fewer values to collect.
    counters: u64,
    /// Number of slots that are searched together by a task.
    slots: u64,
}

impl MemoryLimits {
    fn new(job: &Job<'_>) -> Self {
        let share = (job.budget / 4).max(MIN_BYTES);
        // If chunks must be decoded or downloaded again, a task should have all slots of a column of chunks.
        let reads_parts = reads_parts(&job.dataset, &job.plan.chunks);
        Self {
            task: if reads_parts { share.min(TASK) } else { share },
            collected: share,
            // Several partial results of a task fit in a quarter of the budget.
            counters: job.budget / 16,
            slots: (COUNTERS.min(job.budget / 2) / SLOT_COUNTERS / 2).max(1),
        }
    }
}

/// A search, as a reduction.
struct Searched<'a> {
    search: &'a Search,
    most: u64,
}

impl Reduction for Searched<'_> {
    fn accumulator(&self, block: &Block) -> Result<Box<dyn Accumulator>, OutOfMemory> {
        self.search.accumulator((0..block.len()).map(|slot| block.global(slot)).collect())
    }
    fn slot_bytes(&self) -> usize {
        self.search.slot_bytes()
    }
    fn most_slots(&self) -> u64 {
        self.most
    }
}

/// The reduction that keeps all values.
struct Kept<'a> {
    quantile: Quantile,
    axes: Vec<Axis<'a>>,
    /// Bytes of the values of a task.
    room: u64,
}

/// One axis: how many values of a slot it contributes.
struct Axis<'a> {
    role: &'a Role,
    extent: u64,
    /// Number of included positions.
    included: u64,
    /// For groups: the number of positions of each, and the number of included ones.
    groups: Vec<(u64, u64)>,
}

impl Axis<'_> {
    /// Number of values of a slot along this axis, without padding.
    fn values(&self, slot: u64) -> u64 {
        match self.role {
            Role::Reduced => self.included,
            Role::Kept | Role::Rolling(_) => 1,
            Role::Grouped(_) => self.groups.get(to_usize(slot)).map_or(0, |group| group.1),
        }
    }

    /// Number of padding positions of a slot.
    fn missing(&self, slot: u64) -> u64 {
        match self.role {
            Role::Grouped(Groups { padding: Some(padding), size, .. }) if padding.value.is_some() => {
                size.saturating_sub(self.groups.get(to_usize(slot)).map_or(0, |group| group.0))
            }
            _ => 0,
        }
    }

    fn pad(&self) -> Option<crate::query::operation::Scalar> {
        match self.role {
            Role::Grouped(groups) => groups.padding.and_then(|padding| padding.value),
            Role::Rolling(rolling) => rolling.padding.value,
            Role::Reduced | Role::Kept => None,
        }
    }
}

impl<'a> Kept<'a> {
    fn new(job: &Job<'_>, quantile: Quantile, roles: &'a [Role], room: u64) -> Self {
        let axes = roles.iter().enumerate().map(|(number, role)| {
            let extent = job.plan.selection.axes()[number].count();
            let mask = job.resolved.positions.as_ref().filter(|positions| positions.axis == number);
            let includes = |position: usize| mask.is_none_or(|mask| mask.counts[position]);
            let included =
                mask.map_or(extent, |mask| mask.counts.iter().filter(|&&included| included).count() as u64);
            let mut sizes = Vec::new();
            if let Role::Grouped(groups) = role {
                sizes.resize(groups.count as usize, (0, 0));
                for (position, &group) in groups.numbers.iter().enumerate() {
                    let size: &mut (u64, u64) = &mut sizes[group as usize];
                    size.0 += 1;
                    size.1 += u64::from(includes(position));
                }
            }
            Axis { role, extent, included, groups: sizes }
        });
        Self { quantile, axes: axes.collect(), room }
    }

    /// Number of padding values per padding position: the product of the reduced axes.
    fn per_position(&self) -> u64 {
        let reduced = self.axes.iter().filter(|axis| matches!(axis.role, Role::Reduced));
        reduced.map(|axis| axis.extent).product()
    }

    /// Number of values of the slot with these coordinates on the output axes.
    fn values(&self, slot: &[u64]) -> u64 {
        let mut coordinates = slot.iter();
        let (mut values, mut missing) = (1u64, 0);
        for axis in &self.axes {
            let at =
                if matches!(axis.role, Role::Reduced) { 0 } else { coordinates.next().copied().unwrap_or(0) };
            values = values.saturating_mul(axis.values(at));
            missing += axis.missing(at);
        }
        values.saturating_add(missing.saturating_mul(self.per_position()))
    }

    /// Maximum number of values of a slot; of a position, for windows.
    fn most_values(&self) -> u64 {
        let most = |axis: &Axis<'_>| {
            let groups = (0..axis.groups.len() as u64).map(|group| axis.values(group) + axis.missing(group));
            if axis.groups.is_empty() { axis.values(0) } else { groups.max().unwrap_or(0) }
        };
        self.axes.iter().map(most).fold(1, u64::saturating_mul)
    }

    /// Whether the values of a slot fit in `room` bytes; for windows, those of all positions of a window. Values are
    /// numbered with 32 bits.
    fn fits(&self, room: u64) -> bool {
        let positions = self.window().unwrap_or(1);
        let values = self.most_values().saturating_mul(positions);
        values <= u32::MAX.into() && (self.slot_bytes() as u64).saturating_mul(positions) <= room
    }

    /// Positions that are held together for the windows.
    fn window(&self) -> Option<u64> {
        self.axes.iter().find_map(|axis| match axis.role {
            Role::Rolling(rolling) => Some(rolling.size.min(axis.extent)),
            _ => None,
        })
    }
}

impl Reduction for Kept<'_> {
    fn accumulator(&self, block: &Block) -> Result<Box<dyn Accumulator>, OutOfMemory> {
        if !self.axes.iter().any(|axis| matches!(axis.role, Role::Grouped(_))) {
            return self
                .quantile
                .accumulator(Capacity::Same { slots: block.len(), values: to_usize(self.most_values()) });
        }
        let mut starts = Vec::new();
        let bytes = block.len().saturating_mul(8);
        starts.try_reserve_exact(block.len() + 1).map_err(|_| OutOfMemory { bytes })?;
        let mut end = 0usize;
        starts.push(end);
        for slot in 0..block.len() {
            end = end.saturating_add(to_usize(self.values(&block.coordinates(slot))));
            starts.push(end);
        }
        self.quantile.accumulator(Capacity::Each(starts))
    }
    /// Bytes of a slot; for windows, of a position.
    fn slot_bytes(&self) -> usize {
        let value = self.quantile.value_bytes();
        let values = to_usize(self.most_values());
        match self.window() {
            None => values.saturating_mul(value).saturating_add(PER_SLOT),
            Some(_) => values.saturating_mul(value + PER_WINDOW_VALUE).saturating_add(PER_SLOT),
        }
    }
    fn most_slots(&self) -> u64 {
        (self.room / (self.slot_bytes() as u64).max(1)).max(1)
    }
}

#[cfg(test)]
mod tests;
