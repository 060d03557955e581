//! Walks the values of one piece of a chunk and passes them to an accumulator in the longest runs and the most rows
//! possible.

use tercet_core::ElementType;
use tercet_kernel::{Accumulator, ComputeType, Decode, Filter, Runs, gather};

use super::chunks::Shifts;
use super::sizes::{CACHED, NARROW};
use super::visit::Consumer;
use crate::error::ErrorKind;

/// One axis of the selected part of a piece: `count` positions, outermost axis first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AxisRun<'a> {
    /// First selected position of the axis.
    pub(crate) first: u64,
    pub(crate) count: usize,
    /// Stride from one position to the next, in values.
    pub(crate) stride: usize,
    pub(crate) slots: SlotStep<'a>,
    /// Stride among the reduced positions; modulo 2^64, because it is negative on a reversed axis.
    pub(crate) index: u64,
    /// Mask of included positions; `None` includes all.
    pub(crate) keep: Option<&'a [bool]>,
}

impl AxisRun<'_> {
    /// Index of a position among the reduced positions, from that of the first.
    fn index_at(&self, first: u64, position: usize) -> u64 {
        first.wrapping_add((position as u64).wrapping_mul(self.index))
    }
}

/// Step of the output slot from one position to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SlotStep<'a> {
    /// All positions belong to the same slot.
    Same,
    /// Each position belongs to a separate slot, with this stride.
    Each(usize),
    /// Each position belongs to the slot of its group: `(groups[i] − first) · stride`.
    Group { groups: &'a [u32], first: u32, stride: usize },
}

/// The selected part of a piece.
#[derive(Clone, Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) axes: Vec<AxisRun<'a>>,
    /// Offset of the first value.
    pub(crate) offset: usize,
    /// Slot of the first value.
    pub(crate) slot: usize,
    /// Index of the first value among the reduced positions.
    pub(crate) index: u64,
    /// Whether all bytes of the slab are used and none was read before: they are in memory, not in the cache.
    pub(crate) cold: bool,
}

impl Piece<'_> {
    /// Joins axes that form one run of values, of slots and (if indexed) of indices.
    pub(crate) fn join(&mut self, indexed: bool) {
        let mut joined: Vec<AxisRun<'_>> = Vec::with_capacity(self.axes.len());
        for &axis in &self.axes {
            if axis.count == 1 && axis.keep.is_none_or(|keep| keep[0]) {
                if let SlotStep::Group { groups, first, stride } = axis.slots {
                    self.slot += (groups[0] - first) as usize * stride;
                }
                continue;
            }
            let Some(outer) = joined.last_mut() else {
                joined.push(axis);
                continue;
            };
            let slots = match (outer.slots, axis.slots) {
                (SlotStep::Same, SlotStep::Same) => (!indexed
                    || outer.index == axis.index.wrapping_mul(axis.count as u64))
                .then_some(SlotStep::Same),
                // Windows keep positions separate and count them as well.
                (SlotStep::Each(far), SlotStep::Each(near)) => {
                    let counted = indexed && (outer.index, axis.index) != (0, 0);
                    (far == near * axis.count && !counted).then_some(SlotStep::Each(near))
                }
                _ => None,
            };
            let one_run =
                outer.stride == axis.stride * axis.count && outer.keep.is_none() && axis.keep.is_none();
            match slots.filter(|_| one_run) {
                Some(slots) => *outer = AxisRun { count: outer.count * axis.count, slots, ..axis },
                None => joined.push(axis),
            }
        }
        self.axes = joined;
    }
}

/// Maximum number of rows folded by one call.
const ROWS: usize = 64;
/// Maximum number of values chosen one by one before they are folded.
const CHOSEN: usize = 4096;
/// Groups with fewer neighbours than this, on average, are folded value by value.
const GROUP_RUN: usize = 8;
/// Minimum number of rows, and maximum number of values of a row, that are folded as a plane.
const PLANE_ROWS: usize = if cfg!(test) { 2 } else { 8 };
const PLANE_WIDTH: usize = 1024;
/// Narrow rows are joined up to this width.
const JOINED: usize = if cfg!(test) { 4 } else { 64 };

/// Scratch memory that is reused from piece to piece.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Arena of widened and gathered values, and the number of words in use.
    arena: Vec<u64>,
    used: usize,
    mask: Vec<bool>,
    /// Mask of the values that are not missing.
    present: Vec<bool>,
    chosen: Chosen,
    pub(crate) shifts: Shifts,
    /// Accumulator of the last task.
    pub(crate) spare: Option<Box<dyn Accumulator>>,
}

/// Values that were chosen one by one.
#[derive(Debug, Default)]
struct Chosen {
    /// Packed values, each with the size of a compute value.
    values: Vec<u64>,
    count: usize,
    slots: Vec<u32>,
    indices: Vec<u64>,
}

/// Values of a row.
#[derive(Clone, Copy, Debug)]
enum Row<'b> {
    /// Stored bytes, used in place.
    Stored(&'b [u8]),
    /// Start in words of the arena, and length in bytes.
    Widened { start: usize, bytes: usize },
}

/// Passes the values of pieces to an accumulator. Rows are buffered until there are many for the same slots.
pub(crate) struct Walker<'w, 'b> {
    accumulator: &'w mut dyn Accumulator,
    /// Number of values per slot, if it is not known beforehand.
    counts: Option<&'w mut [u64]>,
    values: ValueRules<'w>,
    compute: ComputeType,
    indexed: bool,
    scratch: &'w mut Scratch,
    rows: Vec<Row<'b>>,
    row_indices: Vec<u64>,
    row_bytes: usize,
    /// First slot and width of the buffered rows.
    target: (usize, usize),
    pub(crate) entered: u64,
    /// Number of missing values that were skipped.
    pub(crate) skipped: u64,
}

/// How the stored values of a piece are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueRules<'w> {
    /// Stored element type.
    pub(crate) dtype: ElementType,
    /// Decoding to f64.
    pub(crate) decode: Option<&'w Decode>,
    /// Filter that missing values fail.
    pub(crate) missing: Option<&'w Filter>,
    /// Filter of the values that are not missing.
    pub(crate) filter: Option<&'w Filter>,
}

impl ValueRules<'_> {
    fn chooses(&self) -> bool {
        self.missing.is_some() || self.filter.is_some()
    }
}

impl<'b> Consumer<'b> for Walker<'_, 'b> {
    /// Few enough bytes that their widened values stay in the cache.
    fn slab_bytes(&self) -> u64 {
        (CACHED * self.values.dtype.size() / self.compute.size()) as u64
    }

    fn piece(&mut self, bytes: &'b [u8], mut piece: Piece<'_>) -> Result<(), ErrorKind> {
        piece.join(self.indexed);
        if piece.cold && self.accumulator.reads_values() && !self.streams(&piece) {
            read_ahead(bytes);
        }
        let missing = self.values.missing;
        // Most pieces have no missing values: a look at all of their values is faster than choosing one by one.
        if missing.is_some_and(|missing| self.is_complete(bytes, missing)) {
            self.values.missing = None;
        }
        let done = self.descend(bytes, &piece.axes, piece.offset, piece.slot, piece.index);
        self.values.missing = missing;
        done
    }
}

/// A walker whose bytes are not kept: no rows stay buffered after a piece.
pub(crate) struct Streamed<'s, 'w, 'b>(pub(crate) &'s mut Walker<'w, 'b>);

impl Consumer<'_> for Streamed<'_, '_, '_> {
    fn slab_bytes(&self) -> u64 {
        self.0.slab_bytes()
    }

    fn piece(&mut self, bytes: &[u8], piece: Piece<'_>) -> Result<(), ErrorKind> {
        self.0.piece_now(bytes, piece)
    }
}

impl<'w, 'b> Walker<'w, 'b> {
    pub(crate) fn new(
        accumulator: &'w mut dyn Accumulator,
        counts: Option<&'w mut [u64]>,
        values: ValueRules<'w>,
        scratch: &'w mut Scratch,
    ) -> Self {
        let (compute, indexed) = (accumulator.compute(), accumulator.is_indexed());
        scratch.used = 0;
        Self {
            accumulator,
            counts,
            values,
            compute,
            indexed,
            scratch,
            rows: Vec::with_capacity(ROWS),
            row_indices: Vec::new(),
            row_bytes: 0,
            target: (0, 0),
            entered: 0,
            skipped: 0,
        }
    }

    /// Folds a piece whose bytes are not kept: none of its rows stay buffered.
    pub(crate) fn piece_now(&mut self, bytes: &[u8], piece: Piece<'_>) -> Result<(), ErrorKind> {
        self.flush();
        let mut walker =
            Walker::new(&mut *self.accumulator, self.counts.as_deref_mut(), self.values, self.scratch);
        walker.piece(bytes, piece)?;
        walker.flush();
        self.entered += walker.entered;
        self.skipped += walker.skipped;
        Ok(())
    }

    /// Folds the buffered rows.
    pub(crate) fn flush(&mut self) {
        self.flush_rows();
        self.flush_chosen();
        self.scratch.used = 0;
    }

    fn flush_rows(&mut self) {
        if self.rows.is_empty() {
            return;
        }
        let arena = bytemuck::cast_slice::<u64, u8>(&self.scratch.arena);
        let mut rows: [&[u8]; ROWS] = [&[]; ROWS];
        for (typed, row) in rows.iter_mut().zip(&self.rows) {
            *typed = match *row {
                Row::Stored(bytes) => bytes,
                Row::Widened { start, bytes } => &arena[start * 8..start * 8 + bytes],
            };
        }
        let (slot, width) = self.target;
        self.accumulator.rows(slot, &rows[..self.rows.len()], &self.row_indices);
        self.count(slot, width, self.rows.len() as u64);
        self.rows.clear();
        self.row_indices.clear();
        self.row_bytes = 0;
        self.scratch.used = 0;
    }

    fn flush_chosen(&mut self) {
        let chosen = &mut self.scratch.chosen;
        let values = &bytemuck::cast_slice::<u64, u8>(&chosen.values)[..chosen.count * self.compute.size()];
        self.accumulator.scatter(&chosen.slots, values, &chosen.indices);
        if let Some(counts) = &mut self.counts {
            for &slot in &chosen.slots {
                counts[slot as usize] += 1;
            }
        }
        chosen.count = 0;
        chosen.values.clear();
        chosen.slots.clear();
        chosen.indices.clear();
    }

    fn count(&mut self, slot: usize, slots: usize, values: u64) {
        self.entered += slots as u64 * values;
        if let Some(counts) = &mut self.counts {
            for count in &mut counts[slot..slot + slots] {
                *count += values;
            }
        }
    }

    fn descend(
        &mut self,
        bytes: &'b [u8],
        axes: &[AxisRun<'_>],
        offset: usize,
        slot: usize,
        index: u64,
    ) -> Result<(), ErrorKind> {
        match axes {
            [] => {
                self.row(bytes, &SINGLE, offset, slot, index);
                Ok(())
            }
            [inner] => {
                self.row(bytes, inner, offset, slot, index);
                Ok(())
            }
            [outer, inner] if self.is_rows(outer, inner) => {
                if inner.count < NARROW && outer.count > 1 {
                    return self.narrow(bytes, (outer, inner), offset, slot, index);
                }
                if self.plane(bytes, (outer, inner), offset, slot) {
                    return Ok(());
                }
                for i in 0..outer.count {
                    let (offset, index) = (offset + i * outer.stride, outer.index_at(index, i));
                    self.push(bytes, (offset, inner.count, inner.stride), slot, index);
                }
                Ok(())
            }
            [outer, inner] if self.is_runs(outer, inner) => {
                self.runs(bytes, (outer, inner), offset, slot, index);
                Ok(())
            }
            [outer, rest @ ..] => {
                for i in 0..outer.count {
                    if outer.keep.is_some_and(|keep| !keep[i]) {
                        continue;
                    }
                    let (slot, index) = (slot + outer.slots.offset(i), outer.index_at(index, i));
                    self.descend(bytes, rest, offset + i * outer.stride, slot, index)?;
                }
                Ok(())
            }
        }
    }

    /// Whether the values of a piece are read in their order, as fast as memory delivers them. Others are read ahead, as a
    /// checksum does.
    fn streams(&self, piece: &Piece<'_>) -> bool {
        let is_row = piece.axes.last().is_some_and(|axis| matches!(axis.slots, SlotStep::Each(_)));
        let in_place = self.values.decode.is_none() && self.compute.is_native(self.values.dtype);
        match (is_row, piece.axes.len()) {
            (true, 1) => in_place,
            (true, _) => false,
            (false, _) => in_place && self.accumulator.is_streaming(),
        }
    }

    /// Whether stored values can be used in place and none of them is missing.
    fn is_complete(&self, bytes: &[u8], missing: &Filter) -> bool {
        let size = self.values.dtype.size();
        self.values.decode.is_none()
            && self.compute.is_native(self.values.dtype)
            && bytes.as_ptr().addr().is_multiple_of(size)
            && bytes.len().is_multiple_of(size)
            && missing.passes_all(bytes)
    }

    fn is_plain(&self, outer: &AxisRun<'_>, inner: &AxisRun<'_>) -> bool {
        outer.keep.is_none() && inner.keep.is_none() && !self.values.chooses()
    }

    /// Whether two axes are rows of values for neighbouring slots.
    fn is_rows(&self, outer: &AxisRun<'_>, inner: &AxisRun<'_>) -> bool {
        matches!((outer.slots, inner.slots), (SlotStep::Same, SlotStep::Each(1)))
            && (!self.indexed || inner.index == 0)
            && self.is_plain(outer, inner)
    }

    /// Whether two axes are runs of values of neighbouring slots.
    fn is_runs(&self, outer: &AxisRun<'_>, inner: &AxisRun<'_>) -> bool {
        matches!((outer.slots, inner.slots), (SlotStep::Each(1), SlotStep::Same))
            && (!self.indexed || inner.index == 1)
            && self.is_plain(outer, inner)
    }

    /// Returns stored values if they can be used in place.
    fn stored(&self, bytes: &'b [u8], offset: usize, count: usize, stride: usize) -> Option<&'b [u8]> {
        let size = self.compute.size();
        let dtype = self.values.dtype;
        let values = &bytes[offset * dtype.size()..];
        let fits = self.compute.is_native(dtype)
            && self.values.decode.is_none()
            && (stride == 1 || count == 1)
            && values.as_ptr().addr().is_multiple_of(size);
        fits.then(|| &values[..count * size])
    }

    /// Widens values into the arena: rows of `count` values each.
    fn widen(
        &mut self,
        bytes: &[u8],
        offset: usize,
        (count, stride): (usize, usize),
        start: usize,
    ) -> Row<'b> {
        let len = count * self.compute.size();
        let arena = bytemuck::cast_slice_mut::<u64, u8>(&mut self.scratch.arena);
        let ValueRules { dtype, decode, .. } = self.values;
        let (from, out) = (&bytes[offset * dtype.size()..], &mut arena[start..start + len]);
        match decode {
            // Rows start at a word of the arena, so its values are aligned.
            Some(decode) => decode.gather(dtype, from, stride, bytemuck::cast_slice_mut(out)),
            None => gather(dtype, from, stride, self.compute, out),
        }
        Row::Widened { start: start / 8, bytes: len }
    }

    /// Allocates space for values in the arena; may flush the rows buffered in it first.
    fn room(&mut self, count: usize) -> usize {
        let words = (count * self.compute.size()).div_ceil(8);
        if self.scratch.used + words > self.scratch.arena.len() {
            self.flush_rows();
            self.scratch.used = 0;
            if words > self.scratch.arena.len() {
                self.scratch.arena.resize(words.max(CACHED / 4), 0);
            }
        }
        let start = self.scratch.used;
        self.scratch.used += words;
        start * 8
    }

    /// Buffers a row.
    fn push(
        &mut self,
        bytes: &'b [u8],
        (offset, count, stride): (usize, usize, usize),
        slot: usize,
        index: u64,
    ) {
        let out_of_order = self.indexed && self.row_indices.last().is_some_and(|&last| last >= index);
        let is_full = self.rows.len() == ROWS || self.row_bytes >= CACHED;
        if !self.rows.is_empty() && (self.target != (slot, count) || out_of_order || is_full) {
            self.flush_rows();
        }
        let row = if let Some(stored) = self.stored(bytes, offset, count, stride) {
            Row::Stored(stored)
        } else {
            let start = self.room(count);
            self.widen(bytes, offset, (count, stride), start)
        };
        self.target = (slot, count);
        self.row_bytes += count * self.compute.size();
        self.rows.push(row);
        if self.indexed {
            self.row_indices.push(index);
        }
    }

    /// Folds many short rows without buffering them one by one; returns whether they could be folded.
    fn plane(
        &mut self,
        bytes: &'b [u8],
        (outer, inner): (&AxisRun<'_>, &AxisRun<'_>),
        offset: usize,
        slot: usize,
    ) -> bool {
        let (count, len) = (outer.count, inner.count);
        if self.indexed || count < PLANE_ROWS || len > PLANE_WIDTH {
            return false;
        }
        let all = (count - 1) * outer.stride + len;
        let Some(values) = self.stored(bytes, offset, all, inner.stride) else { return false };
        self.flush_rows();
        let rows = Runs { values, len, stride: outer.stride, count, index: 0, index_step: 0 };
        self.accumulator.plane(slot, &rows);
        self.count(slot, len, count as u64);
        true
    }

    /// Folds runs of neighbouring slots.
    fn runs(
        &mut self,
        bytes: &'b [u8],
        (outer, inner): (&AxisRun<'_>, &AxisRun<'_>),
        offset: usize,
        slot: usize,
        index: u64,
    ) {
        let (count, len) = (outer.count, inner.count);
        let all = (count - 1) * outer.stride + len;
        let (values, stride) = if let Some(stored) = self.stored(bytes, offset, all, inner.stride) {
            (stored, outer.stride)
        } else {
            let start = self.room(count * len);
            if inner.stride == 1 && outer.stride == len {
                self.widen(bytes, offset, (count * len, 1), start);
            } else {
                for run in 0..count {
                    let start = start + run * len * self.compute.size();
                    self.widen(bytes, offset + run * outer.stride, (len, inner.stride), start);
                }
            }
            let arena = bytemuck::cast_slice::<u64, u8>(&self.scratch.arena);
            (&arena[start..start + count * len * self.compute.size()], len)
        };
        let runs = Runs { values, len, stride, count, index, index_step: outer.index };
        self.accumulator.runs(slot, &runs);
        self.count(slot, count, len as u64);
    }

    /// Folds rows that are too narrow for lanes.
    fn narrow(
        &mut self,
        bytes: &'b [u8],
        (outer, inner): (&AxisRun<'_>, &AxisRun<'_>),
        offset: usize,
        slot: usize,
        index: u64,
    ) -> Result<(), ErrorKind> {
        let width = inner.count;
        let joined = JOINED / width;
        let is_dense = inner.stride == 1 && outer.stride == width;
        if is_dense && self.accumulator.is_uniform() && !self.indexed && outer.count >= 8 * joined {
            // Several rows side by side form one wider row, whose slots are merged afterwards.
            let mut wide = self.accumulator.fresh(joined * width)?;
            let full = outer.count / joined;
            let mut walker = Walker::new(&mut *wide, None, self.values, self.scratch);
            for row in 0..full {
                walker.push(bytes, (offset + row * joined * width, joined * width, 1), 0, 0);
            }
            walker.flush();
            wide.settle();
            self.accumulator.settle();
            for part in 0..joined {
                self.accumulator.merge(slot, &*wide, part * width, width);
            }
            self.count(slot, width, (full * joined) as u64);
            let rest = AxisRun { count: outer.count - full * joined, ..*outer };
            if rest.count > 0 {
                self.transposed(bytes, (&rest, inner), offset + full * joined * width, slot, index);
            }
            return Ok(());
        }
        self.transposed(bytes, (outer, inner), offset, slot, index);
        Ok(())
    }

    /// Folds the columns of rows (transposed).
    fn transposed(
        &mut self,
        bytes: &'b [u8],
        (outer, inner): (&AxisRun<'_>, &AxisRun<'_>),
        offset: usize,
        slot: usize,
        index: u64,
    ) {
        let (len, count) = (outer.count, inner.count);
        if self.indexed && outer.index != 1 {
            // The index of a run grows by 1.
            for i in 0..len {
                let (offset, index) = (offset + i * outer.stride, outer.index_at(index, i));
                self.push(bytes, (offset, count, inner.stride), slot, index);
            }
            return;
        }
        let start = self.room(len * count);
        for column in 0..count {
            let start = start + column * len * self.compute.size();
            self.widen(bytes, offset + column * inner.stride, (len, outer.stride), start);
        }
        let arena = bytemuck::cast_slice::<u64, u8>(&self.scratch.arena);
        let values = &arena[start..start + len * count * self.compute.size()];
        self.accumulator.runs(slot, &Runs { values, len, stride: len, count, index, index_step: 0 });
        self.count(slot, count, len as u64);
    }

    fn row(&mut self, bytes: &'b [u8], axis: &AxisRun<'_>, offset: usize, slot: usize, index: u64) {
        if self.values.chooses() || axis.keep.is_some() {
            return self.choose(bytes, axis, offset, slot, index);
        }
        match axis.slots {
            SlotStep::Same if !self.indexed || axis.index == 1 => {
                let one = AxisRun { count: 1, stride: axis.count * axis.stride, ..SINGLE };
                self.runs(bytes, (&one, axis), offset, slot, index);
            }
            SlotStep::Each(1) if !self.indexed || axis.index == 0 => {
                self.push(bytes, (offset, axis.count, axis.stride), slot, index);
            }
            SlotStep::Group { groups, first, stride } if !self.indexed || axis.index <= 1 => {
                let of = |group: u32| slot + (group - first) as usize * stride;
                let runs = 1 + groups.windows(2).filter(|pair| pair[0] != pair[1]).count();
                if stride == 1 && axis.index == 0 && groups.windows(2).all(|pair| pair[1] == pair[0] + 1) {
                    self.push(bytes, (offset, axis.count, axis.stride), of(groups[0]), index);
                } else if runs * GROUP_RUN <= groups.len() && (!self.indexed || axis.index == 1) {
                    let mut at = 0;
                    for run in groups.chunk_by(|a, b| a == b) {
                        let one = AxisRun { count: 1, stride: 0, ..SINGLE };
                        let part = AxisRun { count: run.len(), slots: SlotStep::Same, ..*axis };
                        let offset = offset + at * axis.stride;
                        self.runs(bytes, (&one, &part), offset, of(run[0]), axis.index_at(index, at));
                        at += run.len();
                    }
                } else {
                    self.choose(bytes, axis, offset, slot, index);
                }
            }
            _ => self.choose(bytes, axis, offset, slot, index),
        }
    }

    /// Folds a row value by value, or a row with excluded values.
    fn choose(&mut self, bytes: &'b [u8], axis: &AxisRun<'_>, offset: usize, slot: usize, index: u64) {
        let mut done = 0;
        while done < axis.count {
            let count = CHOSEN.min(axis.count - done);
            self.choose_some(bytes, axis, done..done + count, offset, (slot, index));
            done += count;
        }
    }

    fn choose_some(
        &mut self,
        bytes: &'b [u8],
        axis: &AxisRun<'_>,
        range: std::ops::Range<usize>,
        offset: usize,
        (slot, index): (usize, u64),
    ) {
        if self.scratch.chosen.count > CHOSEN {
            self.flush_chosen();
        }
        let (size, count) = (self.compute.size(), range.len());
        let offset = offset + range.start * axis.stride;
        let stored = self.stored(bytes, offset, count, axis.stride);
        let start = if stored.is_some() {
            0
        } else {
            let start = self.room(count);
            self.widen(bytes, offset, (count, axis.stride), start);
            start
        };
        let Scratch { arena, mask, present, chosen, .. } = &mut *self.scratch;
        let arena = bytemuck::cast_slice::<u64, u8>(arena);
        let values = stored.unwrap_or_else(|| &arena[start..start + count * size]);
        mask.clear();
        mask.resize(count, true);
        if let Some(filter) = self.values.filter {
            filter.mask(values, mask);
        }
        if let Some(missing) = self.values.missing {
            present.clear();
            present.resize(count, true);
            missing.mask(values, present);
            let keep = |place: usize| axis.keep.is_none_or(|keep| keep[range.start + place]);
            let skipped = present.iter().enumerate().filter(|(place, present)| !**present && keep(*place));
            self.skipped += skipped.count() as u64;
            mask.iter_mut().zip(&*present).for_each(|(mask, &present)| *mask &= present);
        }
        if let Some(keep) = axis.keep {
            mask.iter_mut().zip(&keep[range.clone()]).for_each(|(mask, &keep)| *mask &= keep);
        }
        let before = chosen.count;
        let most = before + count;
        chosen.values.resize((most * size).div_ceil(8), 0);
        // Branchless: every value is written, and overwritten by the next one if it does not pass.
        let mut end = before;
        if size == 4 {
            let out = bytemuck::cast_slice_mut::<u64, u32>(&mut chosen.values);
            for (&value, &passes) in bytemuck::cast_slice::<u8, u32>(values).iter().zip(&*mask) {
                out[end] = value;
                end += usize::from(passes);
            }
        } else {
            let out = &mut chosen.values;
            for (&value, &passes) in bytemuck::cast_slice::<u8, u64>(values).iter().zip(&*mask) {
                out[end] = value;
                end += usize::from(passes);
            }
        }
        let passed = end - before;
        self.entered += passed as u64;
        if matches!(axis.slots, SlotStep::Same) && !self.indexed && passed >= 32 {
            // All values belong to one slot: fold them directly.
            let chosen = &bytemuck::cast_slice::<u64, u8>(&chosen.values)[before * size..end * size];
            if size == 4 || before == 0 || chosen.as_ptr().addr().is_multiple_of(8) {
                let runs =
                    Runs { values: chosen, len: passed, stride: passed, count: 1, index: 0, index_step: 0 };
                self.accumulator.runs(slot, &runs);
                if let Some(counts) = &mut self.counts {
                    counts[slot] += passed as u64;
                }
                return;
            }
        }
        chosen.count = end;
        let places = range.zip(&*mask).filter(|(_, passes)| **passes).map(|(place, _)| place);
        let slot_of = |place: usize| u32::try_from(slot + axis.slots.offset(place)).unwrap_or(u32::MAX);
        if self.indexed {
            let indices = places.clone().map(|place| axis.index_at(index, place));
            chosen.indices.extend(indices);
        }
        chosen.slots.extend(places.map(slot_of));
    }
}

/// Reads every cache line of a slab, in order.
fn read_ahead(bytes: &[u8]) {
    const LINE: usize = 64;
    let any = bytes.iter().step_by(LINE).fold(0, |any, byte| any | byte);
    std::hint::black_box(any);
}

/// The row of a piece that is a single value.
const SINGLE: AxisRun<'static> =
    AxisRun { first: 0, count: 1, stride: 1, slots: SlotStep::Same, index: 1, keep: None };

impl SlotStep<'_> {
    /// Offset from the slot of the first position to the slot of position `i`.
    pub(crate) fn offset(&self, i: usize) -> usize {
        match *self {
            Self::Same => 0,
            Self::Each(stride) => i * stride,
            Self::Group { groups, first, stride } => (groups[i] - first) as usize * stride,
        }
    }
}
