#![expect(clippy::cast_possible_wrap, clippy::cast_precision_loss, reason = "test values are small")]

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use proptest::prelude::*;
use tercet_core::progress::NoProgress;
use tercet_core::tensor::AxisSlice;
use tercet_core::{ElementType, Selection, TensorView};

use super::*;
use crate::exec::fold::Rows;
use crate::exec::locate::locate;
use crate::query::operation::Scalar;
use crate::query::resolved::{Filter, Groups, Padding, Positions, Resolved, Rolling};
use crate::{Compression, File, Layout, Writer, WriterOptions};

/// Tells of each cell how many values it got, their sum, and their sum weighted by index.
struct Trace<const INDEXED: bool>;

impl<const INDEXED: bool> Fold for Trace<INDEXED> {
    const INDEXED: bool = INDEXED;
    type Cells<T: Number> = Vec<[f64; 3]>;

    fn cell_bytes<T: Number>(&self) -> usize {
        24
    }
    fn start<T: Number>(&self, block: &Block) -> Vec<[f64; 3]> {
        vec![[0.0; 3]; block.len()]
    }
    fn run<T: Number>(&self, cells: &mut Vec<[f64; 3]>, at: usize, values: &[T], index: u64) {
        for (i, &value) in values.iter().enumerate() {
            self.one(cells, at, value, index + i as u64);
        }
    }
    fn rows<T: Number>(&self, cells: &mut Vec<[f64; 3]>, at: usize, rows: &Rows<'_, T>) {
        for row in 0..rows.count {
            for (c, &value) in rows.row(row).iter().enumerate() {
                self.one(cells, at + c, value, rows.index + row as u64 * rows.index_step);
            }
        }
    }
    fn one<T: Number>(&self, cells: &mut Vec<[f64; 3]>, at: usize, value: T, index: u64) {
        let weight = if INDEXED { index as f64 } else { 0.0 };
        let value = value.to_f64();
        for (sum, more) in cells[at].iter_mut().zip([1.0, value, value * weight]) {
            *sum += more;
        }
    }
    fn merge<T: Number>(
        &self,
        into: (&mut Vec<[f64; 3]>, usize),
        later: (&Vec<[f64; 3]>, usize),
        count: usize,
    ) {
        for i in 0..count {
            let more = later.0[later.1 + i];
            into.0[into.1 + i].iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
    }
    fn merge_within<T: Number>(&self, cells: &mut Vec<[f64; 3]>, at: usize, from: usize, count: usize) {
        for i in 0..count {
            let more = cells[from + i];
            cells[at + i].iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
    }
    fn width(&self) -> usize {
        3
    }
    fn finish<T: Number>(&self, cells: Vec<[f64; 3]>) -> Vec<f64> {
        cells.into_iter().flatten().collect()
    }
}

/// An array of integers in a file.
fn file(shape: &[u64], chunks: &[u64], zstd: bool) -> File {
    let mut layout = Layout::new();
    let id = layout.dataset("a", ElementType::F64, shape, chunks).unwrap();
    if zstd {
        layout.compress(id, Compression::Zstd { level: 1 }).unwrap();
    }
    let values: Vec<f64> = (0..shape.iter().product::<u64>()).map(value_at).collect();
    let sink = std::io::Cursor::new(Vec::new());
    let mut writer = Writer::new(sink, layout, WriterOptions::new()).unwrap();
    writer.array(id, TensorView::from_slice(shape, &values).unwrap()).unwrap();
    File::from_bytes("memory", writer.finish().unwrap().output).unwrap()
}

fn value_at(position: u64) -> f64 {
    (position * 7919 % 251) as f64 - 100.0
}

/// What the axis does, for the obvious version: the cells of a position and its place in each.
fn cells_of(role: &Role, position: u64, extent: u64) -> Vec<(u64, u64)> {
    match role {
        Role::Reduced => vec![(0, position)],
        Role::Kept => vec![(position, 0)],
        Role::Grouped(groups) => {
            let cell = groups.cells[position as usize];
            let first = (0..extent).find(|&p| groups.cells[p as usize] == cell).unwrap();
            let short = (0..extent).filter(|&p| groups.cells[p as usize] == cell).count() as u64;
            // Bins that are short at the front start before the axis.
            let lead = if groups.size > 0 && cell == 0 { groups.size - short } else { 0 };
            let lead = if cell == 0 && groups.count == 1 { 0 } else { lead };
            vec![(u64::from(cell), if groups.size > 0 { position - first + lead } else { 0 })]
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
    let output: Vec<u64> = roles.iter().zip(&extents).filter_map(|(r, &e)| r.cells(e)).collect();
    let mut cells = vec![[0.0; 3]; output.iter().product::<u64>() as usize];
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
            let own = cells_of(&roles[axis], positions[axis], extents[axis]);
            let (kept, size) = match &roles[axis] {
                Role::Reduced => (1, extents[axis]),
                Role::Grouped(groups) if groups.size > 0 => (u64::from(groups.count), groups.size),
                Role::Rolling(rolling) => (rolling.count, rolling.size),
                role => (role.cells(extents[axis]).unwrap(), 1),
            };
            places = places
                .iter()
                .flat_map(|&(cell, index)| own.iter().map(move |&(c, i)| (cell * kept + c, index * size + i)))
                .collect();
        }
        for (cell, index) in places {
            let at = &mut cells[cell as usize];
            at[0] += 1.0;
            at[1] += value;
            at[2] += value * index as f64;
        }
    }
    (cells, entered)
}

fn check(shape: &[u64], chunks: &[u64], zstd: bool, resolved: &Resolved, roles: &[Role]) {
    let file = file(shape, chunks, zstd);
    let dataset = file.dataset("a").unwrap();
    let plan = locate(&dataset, resolved, true).unwrap();
    let (expected, entered) = slow(shape, resolved, roles);
    let windows = roles.iter().any(|role| matches!(role, Role::Rolling(_)));
    for parallel in [false, true] {
        let job = Job {
            dataset,
            plan: &plan,
            resolved,
            budget: 1 << 20,
            parallel,
            out_of_core: false,
            statistics: true,
            progress: &NoProgress,
            by_statistics: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
        };
        let plain = fold(&job, &Trace::<false>, roles).unwrap();
        if !windows {
            assert_eq!(plain.elements, entered);
        }
        for (got, want) in plain.values.chunks(3).zip(&expected) {
            assert_eq!(got[..2], want[..2]);
        }
        assert_eq!(plain.values.len(), expected.len() * 3);
        // The index is moved to the start of its window only in the results of `Arg`; here weights tell.
        if !windows && !roles.iter().any(|role| matches!(role, Role::Grouped(groups) if groups.size > 0)) {
            let indexed = fold(&job, &Trace::<true>, roles).unwrap();
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
                let cells: Vec<u32> = (0..count).map(|p| (p * 5 % 3) as u32).collect();
                let mut seen = cells.clone();
                seen.sort_unstable();
                seen.dedup();
                let cells: Arc<[u32]> =
                    cells.iter().map(|c| seen.iter().position(|s| s == c).unwrap() as u32).collect();
                Role::Grouped(Groups { cells, count: seen.len() as u32, padding: None, size: 0 })
            }
            3 => {
                let lead = if window_step == 2 { 0 } else { (size - count % size) % size };
                let cells: Arc<[u32]> = (0..count).map(|p| ((p + lead) / size) as u32).collect();
                let groups = count.div_ceil(size) as u32;
                Role::Grouped(Groups { cells, count: groups, padding: Some(padding), size })
            }
            _ => {
                let windows = (count - size) / window_step + 1;
                Role::Rolling(Rolling { size, step: window_step, first: 0, count: windows, padding })
            }
        };
        (extent, chunk, slice, role)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tercet_testkit::cases(400)))]
    #[test]
    fn every_cell_gets_its_values(
        axes in prop::collection::vec(axis(), 1..4),
        filter in prop::option::of(-100i32..150),
        keep in prop::option::of((0usize..4, 1u64..4)),
        zstd: bool,
    ) {
        let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
        let chunks: Vec<u64> = axes.iter().map(|axis| axis.1).collect();
        let slices: Vec<AxisSlice> = axes.iter().map(|axis| axis.2).collect();
        let mut roles: Vec<Role> = axes.iter().map(|axis| axis.3.clone()).collect();
        // At most one axis of windows, and windows not with groups.
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
            operation: None,
            filter: filter.map(|gt| Filter { gt: Some(Scalar::Float(f64::from(gt))), ..Filter::default() }),
            positions,
            fill: None,
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
        let answer = query.run(&file, &crate::RunOptions::new(), &NoProgress).unwrap();
        let sums = answer.execution.unwrap().get("operation_reduced_sum").cloned();
        assert_eq!(sums, Some(crate::Value::Numbers(vec![(0..8).map(value_at).sum()])), "{step}");
    }
}
