//! Columns: the keys of every slot, contiguous for each slot.

use std::any::Any;

use tercet_core::tensor::{Buffer, OutOfMemory};

use super::Capacity;
use super::key::{Coding, Key};
use super::windows::{Line, Window, slide};
use crate::accumulator::{Accumulator, Counts, Runs};
use crate::compute::ComputeType;
use crate::roll::{Roll, RollPadding, Scan};
use crate::typed::filled;

/// Rows and columns transposed at a time.
const SIDE: usize = 64;
/// Stride of the rows of a block, so that a column does not use a few cache sets only.
const ROW: usize = SIDE + 8;

/// Keys of every slot.
#[derive(Debug)]
pub(super) struct Columns<K> {
    coding: Coding<K>,
    q: f64,
    capacity: Capacity,
    memory: Buffer,
    /// Number of keys per slot.
    lens: Vec<u32>,
    /// Keys of a block of rows.
    block: Vec<K>,
}

/// Capacity for `keys` keys, padded so that the columns of neighbouring slots do not compete for the same cache lines,
/// as they would with a power of two between them.
fn spread(keys: usize) -> usize {
    const LINE: usize = 16;
    if keys < 4 * LINE { keys } else { (keys.div_ceil(LINE) | 1) * LINE }
}

impl<K: Key> Columns<K> {
    pub(super) fn new(coding: Coding<K>, q: f64, capacity: Capacity) -> Result<Self, OutOfMemory> {
        let capacity = match capacity {
            Capacity::Same { slots, values } => Capacity::Same { slots, values: spread(values) },
            each @ Capacity::Each(_) => each,
        };
        let slots = capacity.slots();
        let keys = match &capacity {
            Capacity::Same { slots, values } => slots.saturating_mul(*values),
            Capacity::Each(starts) => starts.last().copied().unwrap_or(0),
        };
        let memory = Buffer::zeroed(keys.saturating_mul(size_of::<K>()))?;
        let block = filled(K::default(), SIDE * ROW)?;
        Ok(Self { coding, q, capacity, memory, lens: filled(0, slots)?, block })
    }

    fn start(&self, slot: usize) -> usize {
        match &self.capacity {
            Capacity::Same { values, .. } => slot * values,
            Capacity::Each(starts) => starts[slot],
        }
    }

    fn len(&self, slot: usize) -> usize {
        self.lens[slot] as usize
    }

    /// Keys of a slot.
    fn keys(&self, slot: usize) -> &[K] {
        let (start, len) = (self.start(slot), self.len(slot));
        &bytemuck::cast_slice(&self.memory)[start..start + len]
    }

    /// Extends a slot by `count` keys.
    #[inline(always)]
    fn grow(&mut self, slot: usize, count: usize) -> &mut [K] {
        let start = self.start(slot) + self.len(slot);
        // Columns are in memory, so their lengths fit.
        self.lens[slot] += u32::try_from(count).unwrap_or(u32::MAX);
        &mut bytemuck::cast_slice_mut(&mut self.memory)[start..start + count]
    }

    /// Transposes at most `SIDE` rows of at most `SIDE` values.
    fn transpose(&mut self, at: usize, rows: &[&[u8]], values: std::ops::Range<usize>) {
        let mut block = std::mem::take(&mut self.block);
        let columns = values.len() / self.coding.compute.size();
        for (row, keys) in rows.iter().zip(block.chunks_exact_mut(ROW)) {
            (self.coding.encode)(&row[values.clone()], &mut keys[..columns]);
        }
        for column in 0..columns {
            let keys = self.grow(at + column, rows.len());
            for (key, row) in keys.iter_mut().zip(block.chunks_exact(ROW)) {
                *key = row[column];
            }
        }
        self.block = block;
    }
}

impl<K: Key> Accumulator for Columns<K> {
    fn compute(&self) -> ComputeType {
        self.coding.compute
    }

    /// Slots have different capacities.
    fn is_uniform(&self) -> bool {
        false
    }

    fn fresh(&self, slots: usize) -> Result<Box<dyn Accumulator>, OutOfMemory> {
        let values = match &self.capacity {
            Capacity::Same { values, .. } => *values,
            Capacity::Each(starts) => starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0),
        };
        Ok(Box::new(Self::new(self.coding, self.q, Capacity::Same { slots, values })?))
    }

    fn clear(&mut self) {
        self.lens.fill(0);
    }

    fn slots(&self) -> usize {
        self.lens.len()
    }

    fn rows(&mut self, at: usize, rows: &[&[u8]], _: &[u64]) {
        let size = self.coding.compute.size();
        let width = rows.first().map_or(0, |row| row.len());
        for rows in rows.chunks(SIDE) {
            for left in (0..width).step_by(SIDE * size) {
                self.transpose(at + left / size, rows, left..(left + SIDE * size).min(width));
            }
        }
    }

    fn runs(&mut self, at: usize, runs: &Runs<'_>) {
        let (size, encode) = (self.coding.compute.size(), self.coding.encode);
        for run in 0..runs.count {
            let values = &runs.values[run * runs.stride * size..][..runs.len * size];
            encode(values, self.grow(at + run, runs.len));
        }
    }

    fn scatter(&mut self, slots: &[u32], values: &[u8], _: &[u64]) {
        let (size, encode) = (self.coding.compute.size(), self.coding.encode);
        let mut block = std::mem::take(&mut self.block);
        for (slots, values) in slots.chunks(SIDE).zip(values.chunks(SIDE * size)) {
            let keys = &mut block[..slots.len()];
            encode(values, keys);
            for (&slot, &key) in slots.iter().zip(&*keys) {
                self.grow(slot as usize, 1)[0] = key;
            }
        }
        self.block = block;
    }

    fn merge(&mut self, at: usize, later: &dyn Accumulator, from: usize, count: usize) {
        if let Some(later) = later.as_any().downcast_ref::<Self>() {
            for i in 0..count {
                let keys = later.keys(from + i);
                self.grow(at + i, keys.len()).copy_from_slice(keys);
            }
        }
    }

    /// Windows are never merged: see `roll_values`.
    fn scan(&mut self, _: &Scan, _: bool) {}

    fn roll_values(&self, roll: &Roll<'_>, padding: &RollPadding<'_>) -> Option<Vec<f64>> {
        let pad = padding.value.map(|value| self.coding.key(value));
        let windows: Vec<Window> = roll
            .windows
            .iter()
            .zip(padding.counts)
            .map(|(positions, &pads)| Window { positions: positions.clone(), pads })
            .collect();
        let mut values = vec![f64::NAN; roll.outer * windows.len() * roll.inner];
        let mut line = Line::new();
        for outer in 0..roll.outer {
            for inner in 0..roll.inner {
                line.clear();
                for position in 0..roll.positions {
                    line.push(self.keys((outer * roll.positions + position) * roll.inner + inner));
                }
                slide(&self.coding, self.q, &line, &windows, (pad, padding.min_count), |window, value| {
                    values[(outer * windows.len() + window) * roll.inner + inner] = value;
                });
            }
        }
        Some(values)
    }

    fn finish(&mut self, _: Counts<'_>, out: &mut [f64]) {
        for (slot, out) in out.iter_mut().enumerate() {
            let (start, len) = (self.start(slot), self.len(slot));
            let keys = &mut bytemuck::cast_slice_mut(&mut self.memory)[start..start + len];
            *out = self.coding.select(keys, self.q);
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
