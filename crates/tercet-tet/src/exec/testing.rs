//! Small files and jobs for tests of results that keep the shape of the selection.

use std::io::Cursor;
use std::sync::Arc;

use tercet_core::source::Memory;
use tercet_testkit::counting::Counting;

use tercet_core::{Element, Progress, Selection, TensorView};

use super::job::{Counters, Job};
use crate::plan::{PlannedChunk, ReadPlan};
use crate::query::operation::{Kind, Method};
use crate::query::resolved::{Operation, Resolved, Role};
use crate::{Compression, Dataset, Layout, Writer, WriterOptions};

/// Creates a file with one dataset `a` of these values.
pub(super) fn layout<T: Element>(shape: &[u64], chunks: &[u64], values: &[T], zstd: bool) -> Vec<u8> {
    let mut layout = Layout::new();
    let id = layout.dataset("a", T::ELEMENT, shape, chunks).unwrap();
    if zstd {
        layout.compress(id, Compression::Zstd { level: 1 }).unwrap();
    }
    layout.attr(id, "units", "K").unwrap();
    let names: Vec<String> = (0..shape.len()).map(|axis| format!("d{axis}")).collect();
    layout.dims(id, names.iter().map(String::as_str)).unwrap();
    for (name, &extent) in names.iter().zip(shape) {
        layout.labels(id, name, (0..extent).map(|n| format!("{name}-{n}")).collect()).unwrap();
    }
    let mut writer = Writer::new(Cursor::new(Vec::new()), layout, WriterOptions::new()).unwrap();
    writer.array(id, TensorView::from_slice(shape, values).unwrap()).unwrap();
    writer.finish().unwrap().output
}

/// Opens a file whose bytes are copied by every read.
pub(super) fn read_by_position(bytes: Vec<u8>) -> crate::File {
    let source = Counting::new(Memory::new("memory", bytes)).with_copies().shared();
    crate::File::from_source(Arc::<Counting<Memory>>::clone(&source), crate::ReadOptions::new()).unwrap()
}

pub(super) fn plan(dataset: &Dataset<'_>, selection: &Selection) -> ReadPlan {
    let grid = dataset.grid().unwrap();
    let touched = grid.touched_numbers(selection).into_iter();
    let chunk = |number: u64| {
        let chunk_ref = dataset.find_chunk(&grid.coords(number)[..grid.rank()]).unwrap();
        PlannedChunk { number, stored: chunk_ref, zone: None }
    };
    ReadPlan::new(grid, selection, touched.map(chunk).collect())
}

pub(super) fn resolved(selection: &Selection, axes: &[usize], method: Method) -> Resolved {
    let rank = selection.axes().len();
    let role = |axis: usize| if axes.is_empty() || axes.contains(&axis) { Role::Reduced } else { Role::Kept };
    let roles = (0..rank).map(role).collect();
    Resolved {
        selection: selection.clone(),
        dropped: Vec::new(),
        reversed: vec![false; rank],
        operation: Some(Operation { kind: Kind::Transform { method }, axes: axes.to_vec(), roles }),
        filter: None,
        positions: None,
        fill: None,
        values: crate::query::resolved::Values::default(),
        spill: None,
        write: None,
        group_count: None,
        window_count: None,
    }
}

pub(super) fn job<'a>(
    dataset: Dataset<'a>,
    plan: &'a ReadPlan,
    resolved: &'a Resolved,
    budget: u64,
    progress: &'a dyn Progress,
) -> Job<'a> {
    Job {
        dataset,
        plan,
        resolved,
        budget,
        requested_budget: budget,
        out_of_core: false,
        parallel: true,
        held: 0,
        statistics: false,
        outliers: tercet_kernel::Outliers::Separate,
        as_reference: false,
        progress,
        counters: Counters::default(),
    }
}
