//! Random arrays and queries for tests, and a naive computation of the values of every output element.

#![expect(clippy::cast_possible_wrap, reason = "test values are small")]

use std::sync::Arc;

use proptest::prelude::*;
use tercet_core::progress::NoProgress;
use tercet_core::tensor::AxisSlice;
use tercet_core::{ElementType, Selection, TensorView};

use super::job::{Counters, Job};
use super::locate::locate;
use super::number::Number;
use super::predicate::{Predicate, fill_value};
use crate::query::operation::{Kind, Scalar};
use crate::query::resolved::{
    Filter, Groups, Operation, Padding, Positions, Resolved, Role, Rolling, Values,
};
use crate::{Compression, File, Layout, Writer, WriterOptions};

/// An array, a selection of it and the roles of its axes.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) dtype: ElementType,
    pub(crate) shape: Vec<u64>,
    pub(crate) chunks: Vec<u64>,
    pub(crate) zstd: bool,
    pub(crate) bytes: Vec<u8>,
    pub(crate) resolved: Resolved,
    pub(crate) operation: Operation,
}

/// Values of one output element.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot<T> {
    pub(crate) values: Vec<T>,
    pub(crate) pads: Vec<T>,
}

impl<T: Clone> Slot<T> {
    /// Values of the array and of padding; `None` if there are fewer than `min_count`.
    pub(crate) fn all(&self, min_count: u64) -> Option<Vec<T>> {
        let all = [&self.values[..], &self.pads].concat();
        (self.values.len() as u64 >= min_count).then_some(all)
    }
}

impl Sample {
    pub(crate) fn file(&self) -> File {
        let mut layout = Layout::new();
        let id = layout.dataset("a", self.dtype, &self.shape, &self.chunks).unwrap();
        if self.zstd {
            layout.compress(id, Compression::Zstd { level: 1 }).unwrap();
        }
        let sink = std::io::Cursor::new(Vec::new());
        let mut writer = Writer::new(sink, layout, WriterOptions::new()).unwrap();
        writer.array(id, TensorView::new(self.dtype, &self.shape, &self.bytes).unwrap()).unwrap();
        let bytes = writer.finish().unwrap().output;
        // Half of the files are read by position, the others in place.
        if self.bytes.iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte)) % 2 == 0 {
            return File::from_bytes("memory", bytes).unwrap();
        }
        super::testing::read_by_position(bytes)
    }

    /// Runs a function on the array.
    pub(crate) fn run<R>(
        &self,
        file: &File,
        budget: u64,
        parallel: bool,
        work: impl FnOnce(&Job<'_>) -> R,
    ) -> R {
        let dataset = file.dataset("a").unwrap();
        let plan = locate(&dataset, &self.resolved, true).unwrap();
        let (resolved, progress) = (&self.resolved, &NoProgress);
        let (statistics, out_of_core, plan) = (true, false, &plan);
        work(&Job {
            dataset,
            plan,
            resolved,
            budget,
            requested_budget: budget,
            parallel,
            held: 0,
            out_of_core,
            statistics,
            outliers: tercet_kernel::Outliers::Separate,
            as_reference: false,
            progress,
            counters: Counters::default(),
        })
    }

    /// Windows with fewer values than this return NaN.
    pub(crate) fn min_count(&self) -> u64 {
        let of = |role: &Role| match role {
            Role::Grouped(groups) => groups.padding.map(|padding| padding.min_count),
            Role::Rolling(rolling) => Some(rolling.padding.min_count),
            _ => None,
        };
        self.operation.roles.iter().find_map(of).unwrap_or(0)
    }

    /// Values of every output element, and the number of selected elements that were used.
    pub(crate) fn slots<T: Number>(&self) -> (Vec<Slot<T>>, u64) {
        let Self { resolved, operation, .. } = self;
        let roles = &operation.roles;
        let axes = resolved.selection.axes();
        let extents: Vec<u64> = axes.iter().map(|slice| slice.count()).collect();
        let output = operation.output_shape(&extents);
        let mut slots = vec![Slot::default(); output.iter().product::<u64>() as usize];
        let predicate = resolved.filter.as_ref().map(|filter| Predicate::<T>::new(filter, resolved.fills()));
        let mut entered = 0;
        for position in positions(&extents) {
            let place = axes.iter().zip(&position).map(|(slice, p)| slice.start + p * slice.step);
            let linear = place.zip(&self.shape).fold(0, |linear, (p, extent)| linear * extent + p) as usize;
            let size = size_of::<T>();
            let value: T = bytemuck::pod_read_unaligned(&self.bytes[linear * size..(linear + 1) * size]);
            let value = value.swap_le();
            if predicate.as_ref().is_some_and(|predicate| !predicate.passes(value))
                || resolved.positions.as_ref().is_some_and(|keep| !keep.counts[position[keep.axis] as usize])
            {
                continue;
            }
            entered += 1;
            for slot in targets(roles, &extents, &output, &position) {
                slots[slot].values.push(value);
            }
        }
        self.add_pads(&mut slots, &extents, &output);
        (slots, entered)
    }

    fn add_pads<T: Number>(&self, slots: &mut [Slot<T>], extents: &[u64], output: &[u64]) {
        let roles = &self.operation.roles;
        let others = roles.iter().zip(extents).filter(|(role, _)| matches!(role, Role::Reduced));
        let others: u64 = others.map(|(_, extent)| extent).product();
        let mut output_axis = 0;
        for (role, &extent) in roles.iter().zip(extents) {
            let window = |slot: usize| {
                let below: u64 = output[output_axis + 1..].iter().product();
                slot as u64 / below % output[output_axis]
            };
            let (value, size) = match role {
                Role::Grouped(groups) => (groups.padding.and_then(|padding| padding.value), groups.size),
                Role::Rolling(rolling) => (rolling.padding.value, rolling.size),
                _ => (None, 0),
            };
            if let Some(pad) = value.and_then(fill_value::<T>) {
                for (number, slot) in slots.iter_mut().enumerate() {
                    let mine = |p: &u64| window_slots(role, *p).contains(&window(number));
                    let real = (0..extent).filter(mine).count() as u64;
                    slot.pads = vec![pad; ((size - real) * others) as usize];
                }
            }
            output_axis += usize::from(role.output_len(extent).is_some());
        }
    }
}

/// Every position of a box, row-major.
fn positions(extents: &[u64]) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new()];
    for &extent in extents {
        all = all.iter().flat_map(|head| (0..extent).map(move |p| [&head[..], &[p]].concat())).collect();
    }
    all
}

/// Slots of the axis that a position belongs to.
fn window_slots(role: &Role, position: u64) -> Vec<u64> {
    match role {
        Role::Reduced => vec![0],
        Role::Kept => vec![position],
        Role::Grouped(groups) => vec![u64::from(groups.numbers[position as usize])],
        Role::Rolling(rolling) => (0..rolling.count)
            .filter(|window| {
                let start = rolling.first + (window * rolling.step) as i64;
                (start..start + rolling.size as i64).contains(&(position as i64))
            })
            .collect(),
    }
}

fn targets(roles: &[Role], extents: &[u64], output: &[u64], position: &[u64]) -> Vec<usize> {
    let mut slots = vec![0u64];
    let mut output = output.iter();
    for ((role, &extent), &p) in roles.iter().zip(extents).zip(position) {
        let Some(_) = role.output_len(extent) else { continue };
        let count = output.next().unwrap();
        let own = window_slots(role, p);
        slots = slots.iter().flat_map(|slot| own.iter().map(move |own| slot * count + own)).collect();
    }
    slots.into_iter().map(|slot| slot as usize).collect()
}

/// Bytes of an element of any type: often small numbers, sometimes extremes and (with `spice`) NaN and infinities.
fn element(dtype: ElementType, code: u32, spice: bool) -> Vec<u8> {
    let small = f64::from(code >> 8 & 31) - 12.0;
    let special = [f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e300, -1e300, f64::NAN];
    let float = match code & 255 {
        which @ 0..5 if spice => special[which as usize],
        5 if spice && code & 0x100 == 0 => f64::NAN,
        6..60 => f64::from(code) * 1.37e-5,
        _ => small / 4.0,
    };
    let whole = match code & 255 {
        0 => i64::MIN,
        1 => i64::MAX,
        2 => -1,
        3..30 => i64::from(code).wrapping_mul(0x0123_4567_89ab_cdef),
        _ => i64::from(code >> 8 & 31),
    };
    match dtype {
        ElementType::F16 => half::f16::from_f64(float).to_le_bytes().to_vec(),
        ElementType::F32 => (float as f32).to_le_bytes().to_vec(),
        ElementType::F64 => float.to_le_bytes().to_vec(),
        _ => whole.to_le_bytes()[8 - dtype.size()..].to_vec(),
    }
}

fn role(extent: u64, window: bool, numbers: [u64; 4]) -> Role {
    let [which, a, b, c] = numbers;
    let value = [None, Some(Scalar::Whole(0)), Some(Scalar::Whole(3))][b as usize % 3];
    match which % 5 {
        0 | 1 => Role::Reduced,
        2 => Role::Kept,
        3 if window => {
            let (size, step) = (1 + a % extent, 1 + c % 3);
            let min_count = 1 + c % size;
            let (first, count) = match (value, c % 2) {
                (None, _) => (0, (extent - size) / step + 1),
                (_, 0) => (1 - size as i64, (extent - 1) / step + 1),
                _ => (0, (extent - 1) / step + 1),
            };
            let padding = Padding { value, min_count };
            Role::Rolling(Rolling { size, step, first, count, padding, separate: false })
        }
        4 if window => {
            let size = 1 + a % extent;
            let count = extent.div_ceil(size);
            let lead = if c % 2 == 0 { 0 } else { count * size - extent };
            let numbers = (0..extent).map(|p| ((p + lead) / size) as u32).collect();
            let padding = Some(Padding { value, min_count: 1 + c % size });
            Role::Grouped(Groups { numbers, count: count as u32, padding, size })
        }
        _ => {
            let mut seen = Vec::new();
            let numbers: Arc<[u32]> = (0..extent)
                .map(|p| {
                    let label = (p + 1) * (a + 3) % (b % 5 + 1);
                    let known = seen.iter().position(|&other| other == label);
                    known.unwrap_or_else(|| {
                        seen.push(label);
                        seen.len() - 1
                    }) as u32
                })
                .collect();
            Role::Grouped(Groups { numbers, count: seen.len() as u32, padding: None, size: 0 })
        }
    }
}

prop_compose! {
    /// Any sample of a type.
    pub(crate) fn sample(dtype: ElementType)(
        axes in prop::collection::vec((1u64..9, 1u64..5, 0u64..9, 0u64..9, 1u64..4), 1..5),
        roles in prop::collection::vec(any::<[u8; 4]>(), 4),
        window in prop::option::of(0usize..4),
        codes in any::<u32>(),
        (zstd, spice) in (any::<bool>(), any::<bool>()),
        filter in prop::option::weighted(0.3, (0u8..6, -5i32..6)),
        keep in prop::option::weighted(0.3, (0usize..4, any::<u16>())),
    ) -> Sample {
        let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
        let chunks = axes.iter().map(|axis| axis.1).collect();
        let slices = axes.iter().map(|&(extent, _, start, len, step)| {
            let start = start % extent;
            AxisSlice { start, stop: start + 1 + len % (extent - start), step }
        });
        let selection = Selection::new(slices.collect(), &shape).unwrap();
        let extents: Vec<u64> = selection.axes().iter().map(|slice| slice.count()).collect();
        let rank = shape.len();
        let roles = (0..rank).map(|axis| {
            let numbers = roles[axis].map(u64::from);
            // At most one axis has windows, and then the others have no groups.
            match window.map(|window| window % rank) {
                Some(window) if window == axis => role(extents[axis], true, [3 + numbers[0] % 2, numbers[1], numbers[2], numbers[3]]),
                Some(_) => role(extents[axis], false, [numbers[0] % 3, 0, 0, 0]),
                None => role(extents[axis], false, numbers),
            }
        });
        let roles: Vec<Role> = roles.collect();
        let mut state = codes | 1;
        let bytes = (0..shape.iter().product::<u64>()).flat_map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            element(dtype, state >> 7 ^ state << 16, spice)
        });
        let bytes = bytes.collect();
        let filter = filter.map(|(which, bound)| {
            let (bound, mut filter) = (Some(Scalar::Whole(bound.into())), Filter::default());
            match which {
                0 => filter.gt = bound,
                1 => filter.le = bound,
                2 => filter.ne = bound,
                3 => filter.is_not_null = true,
                4 => filter.eq = bound,
                _ => filter.gt = Some(Scalar::Float(1e30)),
            }
            filter
        });
        let positions = keep.map(|(axis, bits)| {
            let axis = axis % rank;
            Positions { axis, counts: (0..extents[axis]).map(|p| bits >> (p % 16) & 1 == 1).collect() }
        });
        let operation = Operation { kind: Kind::Median, axes: Vec::new(), roles };
        let resolved = Resolved {
            dropped: Vec::new(),
            reversed: vec![false; selection.axes().len()], selection, operation: None, filter, positions, fill: None, values: Values::default(), spill: None, write: None,
            group_count: None, window_count: None,
        };
        Sample { dtype, shape, chunks, zstd, bytes, resolved, operation }
    }
}

/// Any sample of any type.
pub(crate) fn samples() -> impl Strategy<Value = Sample> {
    prop::sample::select(ElementType::ALL.to_vec()).prop_flat_map(sample)
}
