//! Masked copies and transforms: writes the rows of a dense result with a kernel.

use std::marker::PhantomData;
use std::ops::Range;

use tercet_core::tensor::CopyError;
use tercet_core::{Element as _, ElementType, Selection};
use tercet_kernel::{Decode, Plane, PlaneKernel, SlotNumbers};

use super::zero_divisors::ZeroDivisors;
use super::{Output, SLAB, Writer, visitor};
use crate::error::ErrorKind;
use crate::exec::drive::as_values;
use crate::exec::job::Job;
use crate::exec::number::Number;
use crate::exec::predicate::Predicate;
use crate::exec::task::to_usize;
use crate::exec::visit::{Consumer, Visitor};
use crate::exec::walk::Piece;
use crate::query::resolved::{Resolved, Role};
use crate::wire::ids::MAX_RANK;

/// Number of values gathered at a time.
const GATHERED: usize = 16 << 10;

/// Statistics of the slots (output elements of the first pass) that a transform uses.
#[derive(Debug)]
pub(crate) struct Numbers {
    pub(crate) shift: Vec<f64>,
    /// Divisors; NaN where a division is impossible. Empty if nothing is divided.
    pub(crate) divisor: Vec<f64>,
}

/// The selection of a job as a dense array, written part by part. The parts together must be the selection.
pub(crate) struct DenseWriter<'a> {
    visitor: Visitor<'a>,
    resolved: &'a Resolved,
    numbers: &'a Numbers,
    /// Whether any slot has an impossible divisor.
    has_zero_divisors: bool,
    /// Whether some elements are not visited: positions are excluded, or the plan has no chunk for them.
    has_blanks: bool,
    /// Stride of each axis among the slots, and in the selection.
    slots: [usize; MAX_RANK],
    indices: [u64; MAX_RANK],
    bad: ZeroDivisors,
}

impl<'a> DenseWriter<'a> {
    /// Creates a writer of values whose slots are defined by `roles`.
    pub(crate) fn new(job: &'a Job<'a>, numbers: &'a Numbers, roles: &[Role]) -> Self {
        let (mut slots, mut indices) = ([0; MAX_RANK], [0; MAX_RANK]);
        let (mut slot, mut index) = (1usize, 1u64);
        for (axis, slice) in job.plan.selection.axes().iter().enumerate().rev() {
            if roles[axis] == Role::Kept {
                slots[axis] = slot;
                slot = slot.saturating_mul(to_usize(slice.count()));
            }
            indices[axis] = index;
            index = index.saturating_mul(slice.count());
        }
        let touched = job.plan.grid.touched_count(&job.plan.selection);
        let has_blanks = job.resolved.positions.is_some() || touched != Some(job.plan.chunks.len() as u64);
        Self {
            visitor: visitor(job.scope()),
            resolved: job.resolved,
            numbers,
            has_zero_divisors: numbers.divisor.iter().any(|divisor| divisor.is_nan()),
            has_blanks,
            slots,
            indices,
            bad: ZeroDivisors::default(),
        }
    }

    /// Whether chunks can be read several times without decoding them each time.
    #[cfg(any(unix, windows))]
    pub(crate) fn can_split(&self) -> bool {
        self.visitor.chunks.are_mapped()
    }

    /// Number of finite values with an impossible divisor, and the first of their indices.
    pub(crate) fn into_zero_divisors(self) -> (u64, Vec<u64>) {
        self.bad.into_reported()
    }

    /// Checks the chunks that were not visited completely. Called after all parts, before a result is published.
    pub(crate) fn check(&self) -> Result<(), ErrorKind> {
        self.visitor.chunks.finish()
    }

    /// Copies `part`, whose first position is `origin` in the selection, to a dense buffer of its size.
    #[cfg(any(unix, windows))]
    pub(crate) fn copy_part(
        &self,
        (part, origin): (&Selection, &[u64]),
        out: &mut [u8],
    ) -> Result<(), ErrorKind> {
        let size = self.visitor.geometry.scope.grid.element().size();
        super::write(&self.visitor, &ranges(part, origin), out, &super::Copy { size })
    }

    /// Writes `part`, whose first position is `origin` in the selection, to a dense buffer of its size. Filtered-out
    /// values are replaced with `blank` before the kernel is applied.
    pub(crate) fn write_part<T: Number>(
        &self,
        kernel: PlaneKernel<T>,
        blank: T,
        (part, origin): (&Selection, &[u64]),
        out: &mut [u8],
    ) -> Result<(), ErrorKind> {
        let filter = self.resolved.dense_filter(T::ELEMENT);
        let predicate = filter.map(|filter| Predicate::<T>::new(&filter, self.resolved.fills()));
        let rows = Rows { dense: self, kernel, predicate, blank };
        super::write(&self.visitor, &ranges(part, origin), out, &rows)?;
        swap_bytes::<T>(out)
    }

    /// Like [`write_part`](Self::write_part), of values that are decoded first. Missing and filtered-out values are NaN.
    pub(crate) fn write_decoded<T: Number>(
        &self,
        decode: &Decode,
        kernel: PlaneKernel<f64>,
        (part, origin): (&Selection, &[u64]),
        out: &mut [u8],
    ) -> Result<(), ErrorKind> {
        let filter = self.resolved.dense_filter(f64::ELEMENT);
        let predicate = filter.map(|filter| Predicate::<f64>::new(&filter, [None; 2]));
        let stored = self.visitor.geometry.scope.grid.element();
        let rows = DecodedRows::<T> { dense: self, stored, decode, kernel, predicate, of: PhantomData };
        super::write(&self.visitor, &ranges(part, origin), out, &rows)?;
        swap_bytes::<T>(out)
    }

    fn slot_numbers(&self) -> SlotNumbers<'_> {
        let shift = &self.numbers.shift[..];
        // Without a division the second number is not read.
        let divisor = if self.numbers.divisor.is_empty() { shift } else { &self.numbers.divisor[..] };
        SlotNumbers { shift, divisor }
    }

    /// Counts the finite values of a row with an impossible divisor.
    fn count_zero_divisors<T: Number>(&self, values: &[T], row: &DenseAxis<'_>, at: At) {
        let bad = |i: usize| self.numbers.divisor[at.slot + i * row.slot].is_nan();
        if row.slot == 0 && !bad(0) {
            return;
        }
        let finite = |value: T| !value.is_nan() && !value.is_infinite();
        let found = values.iter().enumerate().filter(|&(i, &value)| finite(value) && bad(i));
        self.bad.note(found.map(|(i, _)| at.index + i as u64 * row.index));
    }

    /// Axes of a piece, joined where several axes are one run in the chunk, in the result and among the slots. The
    /// last axis is a row of the result, with one slot for all values or one per value.
    fn axes<'p>(&self, piece: &Piece<'p>) -> (Vec<DenseAxis<'p>>, At) {
        let mut at = At { from: piece.offset, to: piece.slot, slot: 0, index: 0 };
        let mut axes: Vec<DenseAxis<'p>> = Vec::with_capacity(piece.axes.len() + 1);
        for ((run, &slot), &index) in piece.axes.iter().zip(&self.slots).zip(&self.indices) {
            at.slot += to_usize(run.first) * slot;
            at.index += run.first * index;
            let inner = DenseAxis {
                count: run.count,
                from: run.stride,
                to: run.slots.offset(1),
                slot,
                index,
                keep: run.keep,
            };
            match axes.last_mut() {
                _ if inner.count == 1 && inner.keep.is_none() => {}
                Some(outer) if outer.continues_into(&inner, self.has_zero_divisors) => {
                    *outer = DenseAxis { count: outer.count * inner.count, ..inner };
                }
                _ => axes.push(inner),
            }
        }
        if axes.last().is_none_or(|last| last.to != 1 || last.slot > 1) {
            axes.push(DenseAxis::SINGLE);
        }
        (axes, at)
    }
}

/// Converts values to little-endian bytes.
fn swap_bytes<T: Number>(out: &mut [u8]) -> Result<(), ErrorKind> {
    if cfg!(target_endian = "big") {
        for value in bytemuck::try_cast_slice_mut::<u8, T>(out).map_err(|_| CopyError)? {
            *value = value.swap_le();
        }
    }
    Ok(())
}

/// Positions of a part of the selection that begins at `origin`.
fn ranges(part: &Selection, origin: &[u64]) -> Vec<Range<u64>> {
    part.axes().iter().zip(origin).map(|(slice, &first)| first..first + slice.count()).collect()
}

/// The positions of one axis, with strides in elements.
#[derive(Clone, Copy, Debug)]
struct DenseAxis<'a> {
    count: usize,
    /// Stride in the chunk.
    from: usize,
    /// Stride in the result.
    to: usize,
    /// Stride among the slots of the statistics.
    slot: usize,
    /// Stride in the complete selection.
    index: u64,
    /// Mask of included positions; `None` includes all.
    keep: Option<&'a [bool]>,
}

impl DenseAxis<'_> {
    /// A single position.
    const SINGLE: Self = Self { count: 1, from: 1, to: 1, slot: 0, index: 0, keep: None };

    fn continues_into(&self, inner: &DenseAxis<'_>, indexed: bool) -> bool {
        let one_run = |outer: usize, inner_step: usize| outer == inner_step.saturating_mul(inner.count);
        one_run(self.from, inner.from)
            && one_run(self.to, inner.to)
            && one_run(self.slot, inner.slot)
            && (!indexed || self.index == inner.index.saturating_mul(inner.count as u64))
            && self.keep.is_none()
            && inner.keep.is_none()
    }
}

/// A position in a chunk, with the corresponding positions in the result, the slots and the selection.
#[derive(Clone, Copy, Debug)]
struct At {
    from: usize,
    to: usize,
    slot: usize,
    index: u64,
}

impl At {
    /// Advances by `i` positions.
    #[inline]
    fn step(self, run: &DenseAxis<'_>, i: usize) -> Self {
        Self {
            from: self.from + i * run.from,
            to: self.to + i * run.to,
            slot: self.slot + i * run.slot,
            index: self.index + i as u64 * run.index,
        }
    }
}

/// Rows of elements of one type.
struct Rows<'s, T: Number> {
    dense: &'s DenseWriter<'s>,
    kernel: PlaneKernel<T>,
    predicate: Option<Predicate<T>>,
    /// Value that replaces filtered-out values.
    blank: T,
}

impl<T: Number> Output for Rows<'_, T> {
    fn consumer<'o>(&'o self, out: &'o mut [u8]) -> Result<Writer<'o>, ErrorKind> {
        let out = bytemuck::try_cast_slice_mut::<u8, T>(out).map_err(|_| CopyError)?;
        if self.dense.has_blanks {
            out.fill(self.blank);
        }
        Ok(Box::new(RowWriter { rows: self, out, row: Vec::new(), aligned: Vec::new() }))
    }
}

/// Writer of the rows of one task.
struct RowWriter<'o, T: Number> {
    rows: &'o Rows<'o, T>,
    out: &'o mut [T],
    /// Gathered values of a row.
    row: Vec<T>,
    /// Copied values of a slab that is not aligned.
    aligned: Vec<T>,
}

impl<T: Number> Consumer<'_> for RowWriter<'_, T> {
    fn slab_bytes(&self) -> u64 {
        SLAB
    }

    fn piece(&mut self, bytes: &[u8], piece: Piece<'_>) -> Result<(), ErrorKind> {
        let (axes, at) = self.rows.dense.axes(&piece);
        let mut aligned = std::mem::take(&mut self.aligned);
        self.descend(as_values(bytes, &mut aligned), &axes, at);
        self.aligned = aligned;
        Ok(())
    }
}

impl<T: Number> RowWriter<'_, T> {
    fn descend(&mut self, values: &[T], axes: &[DenseAxis<'_>], at: At) {
        match axes {
            [] => {}
            [row] => self.plane(values, &DenseAxis::SINGLE, row, at),
            [rows, row] if rows.keep.is_none() => self.plane(values, rows, row, at),
            [outer, rest @ ..] => {
                for i in (0..outer.count).filter(|&i| outer.keep.is_none_or(|keep| keep[i])) {
                    self.descend(values, rest, at.step(outer, i));
                }
            }
        }
    }

    /// Writes rows whose elements are contiguous in the result.
    fn plane(&mut self, values: &[T], rows: &DenseAxis<'_>, row: &DenseAxis<'_>, at: At) {
        let Rows { dense, kernel, ref predicate, .. } = *self.rows;
        let numbers = dense.slot_numbers();
        let plane = Plane {
            rows: rows.count,
            width: row.count,
            from_row: rows.from,
            to_row: rows.to,
            slot_row: rows.slot,
            slot_column: row.slot,
        };
        if row.from == 1 && row.keep.is_none() && predicate.is_none() {
            kernel((&values[at.from..], &mut self.out[at.to..]), plane, numbers, at.slot);
            if dense.has_zero_divisors {
                for i in 0..rows.count {
                    let at = at.step(rows, i);
                    dense.count_zero_divisors(&values[at.from..at.from + row.count], row, at);
                }
            }
            return;
        }
        for i in 0..rows.count {
            for start in (0..row.count).step_by(GATHERED) {
                let at = at.step(rows, i).step(row, start);
                let end = row.count.min(start + GATHERED);
                let row =
                    DenseAxis { count: end - start, keep: row.keep.map(|keep| &keep[start..end]), ..*row };
                self.gather(&values[at.from..], &row);
                let plane = Plane { rows: 1, width: row.count, ..plane };
                kernel((&self.row, &mut self.out[at.to..]), plane, numbers, at.slot);
                if dense.has_zero_divisors {
                    dense.count_zero_divisors(&self.row, &row, at);
                }
            }
        }
    }

    /// Gathers the values of a row. Excluded values are blanked.
    fn gather(&mut self, values: &[T], row: &DenseAxis<'_>) {
        let blank = self.rows.blank;
        self.row.clear();
        self.row.extend(values.iter().step_by(row.from.max(1)).take(row.count));
        if let Some(predicate) = &self.rows.predicate {
            for value in &mut self.row {
                *value = if predicate.passes(*value) { *value } else { blank };
            }
        }
        if let Some(keep) = row.keep {
            for (value, &keep) in self.row.iter_mut().zip(keep) {
                *value = if keep { *value } else { blank };
            }
        }
    }
}

/// Rows of decoded elements; the results are of the float type `T`.
struct DecodedRows<'s, T: Number> {
    dense: &'s DenseWriter<'s>,
    stored: ElementType,
    decode: &'s Decode,
    kernel: PlaneKernel<f64>,
    predicate: Option<Predicate<f64>>,
    of: PhantomData<T>,
}

impl<T: Number> Output for DecodedRows<'_, T> {
    fn consumer<'o>(&'o self, out: &'o mut [u8]) -> Result<Writer<'o>, ErrorKind> {
        let out = bytemuck::try_cast_slice_mut::<u8, T>(out).map_err(|_| CopyError)?;
        if self.dense.has_blanks {
            out.fill(T::nearest_f64(f64::NAN));
        }
        Ok(Box::new(DecodedWriter { rows: self, out, row: Vec::new(), results: Vec::new() }))
    }
    fn size(&self) -> Option<usize> {
        Some(size_of::<T>())
    }
}

/// Writer of the decoded rows of one task.
struct DecodedWriter<'o, T: Number> {
    rows: &'o DecodedRows<'o, T>,
    out: &'o mut [T],
    /// Decoded values of a row, and their results.
    row: Vec<f64>,
    results: Vec<f64>,
}

impl<T: Number> Consumer<'_> for DecodedWriter<'_, T> {
    fn slab_bytes(&self) -> u64 {
        SLAB
    }

    fn piece(&mut self, bytes: &[u8], piece: Piece<'_>) -> Result<(), ErrorKind> {
        let (axes, at) = self.rows.dense.axes(&piece);
        self.descend(bytes, &axes, at);
        Ok(())
    }
}

impl<T: Number> DecodedWriter<'_, T> {
    fn descend(&mut self, bytes: &[u8], axes: &[DenseAxis<'_>], at: At) {
        match axes {
            [] => {}
            [row] => self.write_row(bytes, row, at),
            [outer, rest @ ..] => {
                for i in (0..outer.count).filter(|&i| outer.keep.is_none_or(|keep| keep[i])) {
                    self.descend(bytes, rest, at.step(outer, i));
                }
            }
        }
    }

    fn write_row(&mut self, bytes: &[u8], row: &DenseAxis<'_>, at: At) {
        let DecodedRows { dense, stored, decode, kernel, ref predicate, .. } = *self.rows;
        for start in (0..row.count).step_by(GATHERED) {
            let at = at.step(row, start);
            let end = row.count.min(start + GATHERED);
            let row = DenseAxis { count: end - start, keep: row.keep.map(|keep| &keep[start..end]), ..*row };
            self.row.clear();
            self.row.resize(row.count, 0.0);
            decode.gather(stored, &bytes[at.from * stored.size()..], row.from, &mut self.row);
            let passes = |value: f64| predicate.as_ref().is_none_or(|predicate| predicate.passes(value));
            for (i, value) in self.row.iter_mut().enumerate() {
                if !passes(*value) || row.keep.is_some_and(|keep| !keep[i]) {
                    *value = f64::NAN;
                }
            }
            self.results.clear();
            self.results.resize(row.count, 0.0);
            let plane = Plane {
                rows: 1,
                width: row.count,
                from_row: 0,
                to_row: 0,
                slot_row: 0,
                slot_column: row.slot,
            };
            kernel((&self.row, &mut self.results), plane, dense.slot_numbers(), at.slot);
            for (out, &result) in self.out[at.to..].iter_mut().zip(&self.results) {
                *out = T::nearest_f64(result);
            }
            if dense.has_zero_divisors {
                dense.count_zero_divisors(&self.row, &row, at);
            }
        }
    }
}
