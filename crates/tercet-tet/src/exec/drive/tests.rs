#![expect(clippy::cast_possible_wrap, clippy::cast_precision_loss, reason = "test values are small")]

use std::any::Any;
use std::sync::Arc;

use proptest::prelude::*;
use tercet_core::progress::NoProgress;
use tercet_core::tensor::AxisSlice;
use tercet_core::{ElementType, Selection, TensorView};

use tercet_kernel::{Counts, Runs, Scan};

use super::*;
use crate::exec::job::Counters;
use crate::exec::locate::locate;
use crate::query::operation::Scalar;
use crate::query::resolved::{Filter, Groups, Padding, Positions, Resolved, Rolling};
use crate::{Compression, File, Layout, Writer, WriterOptions};

/// Trace accumulator: records the count, the sum and the index-weighted sum of the values of each slot.
#[derive(Debug)]
struct Trace {
    slots: Vec<[f64; 3]>,
    indexed: bool,
}

impl Trace {
    fn add(&mut self, slot: usize, value: f64, index: u64) {
        let weight = if self.indexed { index as f64 } else { 0.0 };
        for (sum, more) in self.slots[slot].iter_mut().zip([1.0, value, value * weight]) {
            *sum += more;
        }
    }
}

impl Accumulator for Trace {
    fn compute(&self) -> ComputeType {
        ComputeType::F64
    }
    fn is_indexed(&self) -> bool {
        self.indexed
    }
    fn fresh(&self, slots: usize) -> Result<Box<dyn Accumulator>, OutOfMemory> {
        Ok(Box::new(Self { slots: vec![[0.0; 3]; slots], indexed: self.indexed }))
    }
    fn clear(&mut self) {
        self.slots.fill([0.0; 3]);
    }
    fn slots(&self) -> usize {
        self.slots.len()
    }
    fn rows(&mut self, at: usize, rows: &[&[u8]], indices: &[u64]) {
        for (number, row) in rows.iter().enumerate() {
            for (slot, &value) in (at..).zip(bytemuck::cast_slice::<u8, f64>(row)) {
                self.add(slot, value, indices.get(number).copied().unwrap_or(0));
            }
        }
    }
    fn runs(&mut self, at: usize, runs: &Runs<'_>) {
        let values = bytemuck::cast_slice::<u8, f64>(runs.values);
        for run in 0..runs.count {
            for i in 0..runs.len {
                let index = runs.index + run as u64 * runs.index_step + i as u64;
                self.add(at + run, values[run * runs.stride + i], index);
            }
        }
    }
    fn scatter(&mut self, slots: &[u32], values: &[u8], indices: &[u64]) {
        for (number, (&slot, &value)) in slots.iter().zip(bytemuck::cast_slice::<u8, f64>(values)).enumerate()
        {
            self.add(slot as usize, value, indices.get(number).copied().unwrap_or(0));
        }
    }
    fn merge(&mut self, at: usize, later: &dyn Accumulator, from: usize, count: usize) {
        let later = &later.as_any().downcast_ref::<Self>().unwrap().slots[from..from + count];
        for (own, more) in self.slots[at..].iter_mut().zip(later) {
            own.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
    }
    fn scan(&mut self, scan: &Scan, reverse: bool) {
        let line = scan.positions * scan.inner;
        for slots in self.slots.chunks_mut(line.max(1)) {
            for position in 1..scan.positions {
                let position = if reverse { scan.positions - 1 - position } else { position };
                let other = if reverse { position + 1 } else { position - 1 };
                if position.max(other).is_multiple_of(scan.period) {
                    continue;
                }
                for i in 0..scan.inner {
                    let more = slots[other * scan.inner + i];
                    let own = &mut slots[position * scan.inner + i];
                    own.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
                }
            }
        }
    }
    fn width(&self) -> usize {
        3
    }
    fn finish(&mut self, _: Counts<'_>, out: &mut [f64]) {
        out.copy_from_slice(self.slots.as_flattened());
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Trace reduction, indexed or not.
struct Tracing(bool);

impl Reduction for Tracing {
    fn accumulator(&self, block: &Block) -> Result<Box<dyn Accumulator>, OutOfMemory> {
        Trace { slots: Vec::new(), indexed: self.0 }.fresh(block.len())
    }
    fn width(&self) -> usize {
        3
    }
    fn slot_bytes(&self) -> usize {
        24
    }
    fn is_indexed(&self) -> bool {
        self.0
    }
    fn is_counted(&self) -> bool {
        true
    }
}

/// Creates a file with an array of integers.
fn file(shape: &[u64], chunks: &[u64], zstd: bool) -> File {
    File::from_bytes("memory", bytes(shape, chunks, zstd)).unwrap()
}

fn bytes(shape: &[u64], chunks: &[u64], zstd: bool) -> Vec<u8> {
    let mut layout = Layout::new();
    let id = layout.dataset("a", ElementType::F64, shape, chunks).unwrap();
    if zstd {
        layout.compress(id, Compression::Zstd { level: 1 }).unwrap();
    }
    let values: Vec<f64> = (0..shape.iter().product::<u64>()).map(value_at).collect();
    let sink = std::io::Cursor::new(Vec::new());
    let mut writer = Writer::new(sink, layout, WriterOptions::new()).unwrap();
    writer.array(id, TensorView::from_slice(shape, &values).unwrap()).unwrap();
    writer.finish().unwrap().output
}

fn value_at(position: u64) -> f64 {
    (position * 7919 % 251) as f64 - 100.0
}

/// Naive role of an axis: the slots of a position, and its index in each.
fn slots_of(role: &Role, position: u64, extent: u64) -> Vec<(u64, u64)> {
    match role {
        Role::Reduced => vec![(0, position)],
        Role::Kept => vec![(position, 0)],
        Role::Grouped(groups) => {
            let group = groups.numbers[position as usize];
            let first = (0..extent).find(|&p| groups.numbers[p as usize] == group).unwrap();
            let short = (0..extent).filter(|&p| groups.numbers[p as usize] == group).count() as u64;
            // Bins that are short at the front start before the axis.
            let lead = if groups.size > 0 && group == 0 { groups.size - short } else { 0 };
            let lead = if group == 0 && groups.count == 1 { 0 } else { lead };
            vec![(u64::from(group), if groups.size > 0 { position - first + lead } else { 0 })]
        }
        Role::Rolling(rolling) => (0..rolling.count)
            .filter_map(|window| {
                let start = rolling.first + (window * rolling.step) as i64;
                let at = position as i64 - start;
                (0..rolling.size as i64).contains(&at).then_some((window, at as u64))
            })
            .collect(),
    }
}

fn slow(shape: &[u64], resolved: &Resolved, roles: &[Role]) -> (Vec<[f64; 3]>, u64) {
    let extents: Vec<u64> = resolved.selection.axes().iter().map(|slice| slice.count()).collect();
    let output: Vec<u64> = roles.iter().zip(&extents).filter_map(|(r, &e)| r.output_len(e)).collect();
    let mut slots = vec![[0.0; 3]; output.iter().product::<u64>() as usize];
    let mut entered = 0;
    let total: u64 = extents.iter().product();
    for n in 0..total {
        let mut positions = vec![0; extents.len()];
        let mut rest = n;
        for axis in (0..extents.len()).rev() {
            positions[axis] = rest % extents[axis];
            rest /= extents[axis];
        }
        let array = resolved.selection.axes().iter().zip(&positions).zip(shape);
        let linear = array.fold(0, |sum, ((slice, p), &extent)| sum * extent + slice.start + p * slice.step);
        let value = value_at(linear);
        if resolved.filter.is_some_and(|filter| filter.gt.is_some_and(|gt| value <= gt.to_f64())) {
            continue;
        }
        if resolved.positions.as_ref().is_some_and(|keep| !keep.counts[positions[keep.axis] as usize]) {
            continue;
        }
        entered += 1;
        let mut places = vec![(0u64, 0u64)];
        for axis in 0..extents.len() {
            let own = slots_of(&roles[axis], positions[axis], extents[axis]);
            let (kept, size) = match &roles[axis] {
                Role::Reduced => (1, extents[axis]),
                Role::Grouped(groups) if groups.size > 0 => (u64::from(groups.count), groups.size),
                Role::Rolling(rolling) => (rolling.count, rolling.size),
                role => (role.output_len(extents[axis]).unwrap(), 1),
            };
            places = places
                .iter()
                .flat_map(|&(slot, index)| own.iter().map(move |&(c, i)| (slot * kept + c, index * size + i)))
                .collect();
        }
        for (slot, index) in places {
            let at = &mut slots[slot as usize];
            at[0] += 1.0;
            at[1] += value;
            at[2] += value * index as f64;
        }
    }
    (slots, entered)
}

fn check(shape: &[u64], chunks: &[u64], zstd: bool, resolved: &Resolved, roles: &[Role]) {
    let file = file(shape, chunks, zstd);
    let dataset = file.dataset("a").unwrap();
    let plan = locate(&dataset, resolved, true).unwrap();
    let (expected, entered) = slow(shape, resolved, roles);
    let windows = roles.iter().any(|role| matches!(role, Role::Rolling(_)));
    let copied = crate::exec::testing::read_by_position(bytes(shape, chunks, zstd));
    let copied = copied.dataset("a").unwrap();
    for (parallel, dataset) in [(false, dataset), (true, dataset), (true, copied)] {
        let job = Job {
            dataset,
            plan: &plan,
            resolved,
            budget: 1 << 20,
            requested_budget: 1 << 20,
            parallel,
            held: 0,
            out_of_core: false,
            statistics: true,
            outliers: tercet_kernel::Outliers::Separate,
            as_reference: false,
            progress: &NoProgress,
            counters: Counters::default(),
        };
        let plain = fold_with(&job, &Tracing(false), roles).unwrap();
        assert!(plain.is_complete || windows);
        if plain.is_complete {
            assert_eq!(plain.elements, entered);
        }
        for (got, want) in plain.values.chunks(3).zip(&expected) {
            assert_eq!(got[..2], want[..2]);
        }
        assert_eq!(plain.values.len(), expected.len() * 3);
        // Only the results of `Arg` make the index relative to its window, so weights are compared without windows.
        if !windows && !roles.iter().any(|role| matches!(role, Role::Grouped(groups) if groups.size > 0)) {
            let indexed = fold_with(&job, &Tracing(true), roles).unwrap();
            for (got, want) in indexed.values.chunks(3).zip(&expected) {
                assert_eq!(got, want);
            }
        }
    }
}

fn axis() -> impl Strategy<Value = (u64, u64, AxisSlice, Role)> {
    let shape = (1u64..16, 1u64..7, 0u64..9, 1u64..16, 1u64..4, 0u8..5, 1u64..14, 1u64..4);
    shape.prop_map(|(extent, chunk, start, len, step, kind, size, window_step)| {
        let start = start % extent;
        let slice = AxisSlice { start, stop: (start + len).min(extent), step };
        let count = slice.count();
        let size = size.min(count);
        let padding = Padding { value: None, min_count: 0 };
        let role = match kind {
            0 | 1 => Role::Reduced,
            2 => Role::Kept,
            3 if window_step == 1 => {
                let slots: Vec<u32> = (0..count).map(|p| (p * 5 % 3) as u32).collect();
                let mut seen = slots.clone();
                seen.sort_unstable();
                seen.dedup();
                let numbers: Arc<[u32]> =
                    slots.iter().map(|c| seen.iter().position(|s| s == c).unwrap() as u32).collect();
                Role::Grouped(Groups { numbers, count: seen.len() as u32, padding: None, size: 0 })
            }
            3 => {
                let lead = if window_step == 2 { 0 } else { (size - count % size) % size };
                let numbers: Arc<[u32]> = (0..count).map(|p| ((p + lead) / size) as u32).collect();
                let groups = count.div_ceil(size) as u32;
                Role::Grouped(Groups { numbers, count: groups, padding: Some(padding), size })
            }
            _ => {
                let windows = (count - size) / window_step + 1;
                Role::Rolling(Rolling {
                    size,
                    step: window_step,
                    first: 0,
                    count: windows,
                    padding,
                    separate: false,
                })
            }
        };
        (extent, chunk, slice, role)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(400)))]
    #[test]
    fn every_slot_gets_its_values(
        axes in prop::collection::vec(axis(), 1..4),
        filter in prop::option::of(-100i32..150),
        keep in prop::option::of((0usize..4, 1u64..4)),
        zstd: bool,
    ) {
        let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
        let chunks: Vec<u64> = axes.iter().map(|axis| axis.1).collect();
        let slices: Vec<AxisSlice> = axes.iter().map(|axis| axis.2).collect();
        let mut roles: Vec<Role> = axes.iter().map(|axis| axis.3.clone()).collect();
        // At most one axis has windows, and never together with groups.
        let mut special = false;
        for role in &mut roles {
            if matches!(role, Role::Rolling(_)) || matches!(role, Role::Grouped(groups) if groups.size > 0) {
                if special {
                    *role = Role::Kept;
                }
                special = true;
            }
        }
        let positions = keep.filter(|(axis, _)| *axis < axes.len()).map(|(axis, every)| {
            Positions { axis, counts: (0..slices[axis].count()).map(|p| p % every == 0).collect() }
        });
        let resolved = Resolved {
            selection: Selection::new(slices, &shape).unwrap(),
            dropped: Vec::new(),
            reversed: vec![false; shape.len()],
            operation: None,
            filter: filter.map(|gt| Filter { gt: Some(Scalar::Float(f64::from(gt))), ..Filter::default() }),
            positions,
            fill: None,
            values: crate::query::resolved::Values::default(),
            spill: None,
            write: None,
            group_count: None,
            window_count: None,
        };
        check(&shape, &chunks, zstd, &resolved, &roles);
    }
}

#[test]
fn a_step_beyond_all_positions_leaves_one_window() {
    let file = file(&[12], &[5], false);
    for step in [12, 1 << 62, u64::MAX] {
        let window = format!(r#"{{"axis": 0, "size": 8, "mode": "rolling", "step": {step}}}"#);
        let text = format!(r#"{{"dataset": "a", "sum": [], "window": {window}}}"#);
        let query = crate::Query::parse(&text, crate::Syntax::Json).unwrap();
        let outcome = query.request(&file).unwrap().run(&NoProgress).unwrap();
        let crate::Computed::Reduced(sums) = outcome.computed else { panic!("{step}") };
        assert_eq!(sums[0].tensor.to_vec(), Some(vec![(0..8).map(value_at).sum::<f64>()]), "{step}");
    }
}
