//! Search: quantiles of slots whose values do not fit in memory, by radix selection on the leading digits of keys.
//!
//! A pass counts the keys of every slot by digit, which identifies the bucket of the wanted value. As soon as the wanted
//! buckets fit in memory, one more pass collects them. The first digit has 16 to 20 bits, the others at most 16: 32-bit keys
//! are found after two passes at the latest, 64-bit keys after four. Counts are integers, so they do not depend on the order
//! of the values.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use tercet_core::tensor::OutOfMemory;

use super::Quantile;
use super::key::{Coding, Key, Rank};
use crate::accumulator::{Accumulator, Counts, Runs};
use crate::compute::ComputeType;
use crate::roll::Scan;
use crate::typed::filled;

/// Bits of a digit, and most bits of the first one.
const DIGIT: u32 = 16;
const FIRST_DIGIT: u32 = 20;
/// Counters are added to the totals before they can overflow.
const FULL: u64 = u32::MAX as u64 / 2;
/// Keys that are encoded at a time.
const BLOCK: usize = 1024;

/// Memory of a search, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct SearchRoom {
    /// Keys of all slots that may be collected.
    pub keys: u64,
    /// Counters of all slots in the first pass; at least those of a digit of 16 bits are used.
    pub counters: u64,
}

/// Search for the quantiles of many slots: one pass over the values per digit.
#[derive(Debug)]
pub struct Search {
    quantile: Quantile,
    room: SearchRoom,
    pass: Pass,
    slots: Arc<Mutex<Vec<SlotState>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    /// Counts the digit of `bits` bits with this shift; the bits above it must match a prefix.
    Count { shift: u32, bits: u32 },
    /// Collects the keys whose bits from `shift` on match a prefix.
    Collect { shift: u32 },
}

/// What is known about a slot.
#[derive(Clone, Copy, Debug)]
enum SlotState {
    /// Nothing yet.
    Nothing,
    /// It has no quantile: no values, or NaN.
    Empty,
    Targets(Targets),
}

/// The two values that enclose a quantile.
#[derive(Clone, Copy, Debug)]
struct Targets {
    rank: Rank,
    both: [Target; 2],
}

/// A value of which some leading bits are known.
#[derive(Clone, Copy, Debug)]
struct Target {
    prefix: u64,
    /// Rank among the values with the same prefix.
    rank: u64,
    /// Number of values with the same prefix.
    count: u64,
}

impl Targets {
    /// Number of different prefixes.
    fn prefixes(&self) -> usize {
        if self.both[0].prefix == self.both[1].prefix { 1 } else { 2 }
    }
}

impl SlotState {
    fn prefixes(&self) -> usize {
        match self {
            Self::Nothing => 1,
            Self::Empty => 0,
            Self::Targets(targets) => targets.prefixes(),
        }
    }
}

impl Search {
    /// Starts a search in `slots` slots. Keys are collected once they fit.
    pub fn new(quantile: Quantile, slots: usize, room: SearchRoom) -> Result<Self, OutOfMemory> {
        let fits = |bits: &u32| (table_bytes(*bits) as u64).saturating_mul(slots as u64) <= room.counters;
        let bits = (DIGIT + 1..=FIRST_DIGIT).rev().find(fits).unwrap_or(DIGIT);
        let slots = Arc::new(Mutex::new(filled(SlotState::Nothing, slots)?));
        let shift = quantile.value_bits() - bits;
        Ok(Self { quantile, room, pass: Pass::Count { shift, bits }, slots })
    }

    /// Bytes of the state of a slot in the current pass.
    pub fn slot_bytes(&self) -> usize {
        match self.pass {
            Pass::Count { shift, bits } if shift + bits == self.quantile.value_bits() => table_bytes(bits),
            Pass::Count { bits, .. } => 2 * table_bytes(bits),
            Pass::Collect { .. } => {
                let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
                usize::try_from(self.wanted(&slots) / (slots.len() as u64).max(1))
                    .unwrap_or(usize::MAX)
                    .max(64)
            }
        }
    }

    /// Creates an accumulator for the current pass. `globals` are the numbers of its slots.
    pub fn accumulator(&self, globals: Vec<usize>) -> Result<Box<dyn Accumulator>, OutOfMemory> {
        match Coding::narrow(self.quantile.dtype) {
            Some(coding) => self.typed(self.quantile.with_result(coding), globals),
            None => self.typed(self.quantile.with_result(Coding::wide(self.quantile.dtype)), globals),
        }
    }

    fn typed<K: Key>(
        &self,
        coding: Coding<K>,
        globals: Vec<usize>,
    ) -> Result<Box<dyn Accumulator>, OutOfMemory> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let mut table = 0;
        let prefixes_by_slot = globals.iter().map(|&global| {
            let found = slots.get(global).copied().unwrap_or(SlotState::Empty);
            let prefixes = match found {
                SlotState::Targets(targets) => targets.both.map(|target| target.prefix),
                SlotState::Nothing | SlotState::Empty => [0; 2],
            };
            let own = SlotPrefixes {
                table,
                prefixes,
                count: found.prefixes(),
                all: matches!(found, SlotState::Nothing),
            };
            table += own.count;
            own
        });
        let prefixes_by_slot: Vec<SlotPrefixes> = prefixes_by_slot.collect();
        drop(slots);
        let shared = Shared {
            coding,
            q: self.quantile.q,
            prefixes_by_slot,
            globals,
            found: self.slots.clone(),
            block: vec![K::default(); BLOCK],
        };
        Ok(match self.pass {
            Pass::Count { shift, bits } => Box::new(Digits {
                shared,
                shift,
                bits,
                lanes: filled(0, table << (bits + 1))?,
                totals: Vec::new(),
                since: 0,
            }),
            Pass::Collect { shift } => Box::new(Collected { shared, shift, keys: vec![Vec::new(); table] }),
        })
    }

    /// Ends a pass. Returns whether the search is complete, so that the results of the pass are the quantiles.
    pub fn advance(&mut self) -> bool {
        let shift = match self.pass {
            Pass::Collect { .. } | Pass::Count { shift: 0, .. } => return true,
            Pass::Count { shift, .. } => shift,
        };
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = self.wanted(&slots) <= self.room.keys;
        drop(slots);
        let bits = shift.min(DIGIT);
        self.pass = if fits { Pass::Collect { shift } } else { Pass::Count { shift: shift - bits, bits } };
        false
    }

    /// Bytes of the keys with the wanted prefixes.
    fn wanted(&self, slots: &[SlotState]) -> u64 {
        let keys = slots.iter().map(|found| match found {
            SlotState::Targets(targets) => {
                targets.both[..targets.prefixes()].iter().map(|target| target.count).sum()
            }
            SlotState::Nothing | SlotState::Empty => 0,
        });
        keys.fold(0, u64::saturating_add).saturating_mul(self.quantile.value_bytes() as u64)
    }
}

/// Bytes of the counters of a digit: two lanes of 32 bits.
fn table_bytes(bits: u32) -> usize {
    8 << bits
}

/// Prefixes of one slot.
#[derive(Clone, Copy, Debug)]
struct SlotPrefixes {
    /// Number of its first table.
    table: usize,
    prefixes: [u64; 2],
    /// Number of prefixes, and of tables.
    count: usize,
    /// Whether no digit is known yet, so that every key is counted.
    all: bool,
}

/// What both kinds of passes have in common.
#[derive(Debug)]
struct Shared<K> {
    coding: Coding<K>,
    q: f64,
    prefixes_by_slot: Vec<SlotPrefixes>,
    globals: Vec<usize>,
    found: Arc<Mutex<Vec<SlotState>>>,
    block: Vec<K>,
}

/// One pass of a search.
trait Visit<K: Key>: Sized {
    fn shared(&self) -> &Shared<K>;
    fn shared_mut(&mut self) -> &mut Shared<K>;
    /// Folds keys into a slot.
    fn fold(&mut self, slot: usize, keys: &[K]);

    /// Passes values, encoded block by block.
    fn blocks(&mut self, values: &[u8], mut fold: impl FnMut(&mut Self, usize, &[K])) {
        let (size, encode) = (self.shared().coding.compute.size(), self.shared().coding.encode);
        let mut block = std::mem::take(&mut self.shared_mut().block);
        for (number, values) in values.chunks(BLOCK * size).enumerate() {
            let keys = &mut block[..values.len() / size];
            encode(values, keys);
            fold(self, number * BLOCK, keys);
        }
        self.shared_mut().block = block;
    }

    /// Passes rows of values whose columns belong to separate slots.
    fn columns(&mut self, at: usize, rows: &[&[u8]]) {
        for row in rows {
            self.blocks(row, |visit, first, keys| {
                for (column, key) in keys.iter().enumerate() {
                    visit.fold(at + first + column, std::slice::from_ref(key));
                }
            });
        }
    }

    fn each_run(&mut self, at: usize, runs: &Runs<'_>) {
        let size = self.shared().coding.compute.size();
        for run in 0..runs.count {
            let values = &runs.values[run * runs.stride * size..][..runs.len * size];
            self.blocks(values, |visit, _, keys| visit.fold(at + run, keys));
        }
    }

    fn each_value(&mut self, slots: &[u32], values: &[u8]) {
        self.blocks(values, |visit, first, keys| {
            for (key, &slot) in keys.iter().zip(&slots[first..]) {
                visit.fold(slot as usize, std::slice::from_ref(key));
            }
        });
    }
}

/// Accumulator methods that both passes share.
macro_rules! visits {
    () => {
        fn compute(&self) -> ComputeType {
            self.shared.coding.compute
        }
        /// Slots have different prefixes.
        fn is_uniform(&self) -> bool {
            false
        }
        fn slots(&self) -> usize {
            self.shared.prefixes_by_slot.len()
        }
        fn rows(&mut self, at: usize, rows: &[&[u8]], _: &[u64]) {
            self.columns(at, rows);
        }
        fn runs(&mut self, at: usize, runs: &Runs<'_>) {
            self.each_run(at, runs);
        }
        fn scatter(&mut self, slots: &[u32], values: &[u8], _: &[u64]) {
            self.each_value(slots, values);
        }
        fn fresh(&self, _: usize) -> Result<Box<dyn Accumulator>, OutOfMemory> {
            // Only uniform accumulators are copied.
            Err(OutOfMemory { bytes: 0 })
        }
        /// Windows are searched one by one.
        fn scan(&mut self, _: &Scan, _: bool) {}
        fn as_any(&self) -> &dyn Any {
            self
        }
    };
}

/// Counts digits.
#[derive(Debug)]
struct Digits<K> {
    shared: Shared<K>,
    shift: u32,
    /// Bits of the digit.
    bits: u32,
    /// Two lanes per table, used alternately: consecutive equal keys do not depend on each other's count.
    lanes: Vec<u32>,
    /// Counts that were moved out of the lanes; empty until then.
    totals: Vec<u64>,
    /// Number of keys counted since then.
    since: u64,
}

impl<K: Key> Digits<K> {
    /// Number of values of a digit.
    fn size(&self) -> usize {
        1 << self.bits
    }

    /// Moves the counts of the lanes to the totals.
    fn flush(&mut self) {
        let size = self.size();
        self.totals.resize(self.lanes.len() / 2, 0);
        for (total, lanes) in self.totals.chunks_mut(size).zip(self.lanes.chunks_mut(2 * size)) {
            let (a, b) = lanes.split_at(size);
            total.iter_mut().zip(a.iter().zip(b)).for_each(|(t, (&a, &b))| *t += u64::from(a) + u64::from(b));
            lanes.fill(0);
        }
        self.since = 0;
    }

    /// Count of a digit of a table.
    fn count(&self, table: usize, digit: usize) -> u64 {
        let lane = |lane: usize| u64::from(self.lanes[(2 * table + lane) * self.size() + digit]);
        self.totals.get(table * self.size() + digit).copied().unwrap_or(0) + lane(0) + lane(1)
    }

    /// Adds the digits of the tables of a slot to what is known about it.
    fn refined(&self, own: SlotPrefixes, found: SlotState) -> SlotState {
        let size = self.size();
        let mut targets = match found {
            SlotState::Empty => return found,
            SlotState::Targets(targets) => targets,
            SlotState::Nothing => {
                let all: u64 = (0..size).map(|digit| self.count(own.table, digit)).sum();
                // The last bucket of floats has only NaN.
                if all == 0 || self.shared.coding.has_nan && self.count(own.table, size - 1) > 0 {
                    return SlotState::Empty;
                }
                let rank = Rank::new(self.shared.q, all);
                let target = |rank| Target { prefix: 0, rank, count: 0 };
                Targets { rank, both: [target(rank.low), target(rank.high())] }
            }
        };
        for (number, target) in targets.both.iter_mut().enumerate() {
            let table = own.table + number.min(own.count.saturating_sub(1));
            let mut digit = 0;
            let mut count = self.count(table, digit);
            while target.rank >= count && digit + 1 < size {
                target.rank -= count;
                digit += 1;
                count = self.count(table, digit);
            }
            target.prefix = target.prefix << self.bits | digit as u64;
            target.count = count;
        }
        SlotState::Targets(targets)
    }
}

impl<K: Key> Visit<K> for Digits<K> {
    fn shared(&self) -> &Shared<K> {
        &self.shared
    }
    fn shared_mut(&mut self) -> &mut Shared<K> {
        &mut self.shared
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "digits have at most 20 bits")]
    fn fold(&mut self, slot: usize, keys: &[K]) {
        let own = self.shared.prefixes_by_slot[slot];
        if own.count == 0 {
            return;
        }
        if self.since > FULL {
            self.flush();
        }
        self.since += keys.len() as u64;
        let (shift, bits, size) = (self.shift, self.bits, self.size());
        let digit = |key: K| (key.wide() >> shift) as usize & (size - 1);
        let lanes = &mut self.lanes[own.table * size * 2..(own.table + own.count) * size * 2];
        if own.all {
            let (a, b) = lanes.split_at_mut(size);
            let (pairs, rest) = keys.as_chunks::<2>();
            for &[x, y] in pairs {
                a[digit(x)] += 1;
                b[digit(y)] += 1;
            }
            for &x in rest {
                a[digit(x)] += 1;
            }
            return;
        }
        for (number, &key) in keys.iter().enumerate() {
            for which in 0..own.count {
                if key.wide() >> (shift + bits) == own.prefixes[which] {
                    lanes[(2 * which + number % 2) * size + digit(key)] += 1;
                }
            }
        }
    }
}

impl<K: Key> Accumulator for Digits<K> {
    visits!();

    fn clear(&mut self) {
        self.lanes.fill(0);
        self.totals.clear();
        self.since = 0;
    }

    fn merge(&mut self, at: usize, later: &dyn Accumulator, from: usize, count: usize) {
        let Some(later) = later.as_any().downcast_ref::<Self>() else { return };
        let size = self.size();
        self.flush();
        for i in 0..count {
            let (own, other) =
                (self.shared.prefixes_by_slot[at + i], later.shared.prefixes_by_slot[from + i]);
            for number in 0..own.count.min(other.count) {
                for digit in 0..size {
                    self.totals[(own.table + number) * size + digit] +=
                        later.count(other.table + number, digit);
                }
            }
        }
    }

    fn finish(&mut self, _: Counts<'_>, out: &mut [f64]) {
        let found = self.shared.found.clone();
        for (slot, out) in out.iter_mut().enumerate() {
            let global = self.shared.globals[slot];
            let before = found.lock().unwrap_or_else(PoisonError::into_inner)[global];
            let after = self.refined(self.shared.prefixes_by_slot[slot], before);
            found.lock().unwrap_or_else(PoisonError::into_inner)[global] = after;
            // The result of the last pass; before it the keys are not complete.
            *out = match after {
                SlotState::Targets(targets) if self.shift == 0 => self.shared.value(&targets),
                _ => f64::NAN,
            };
        }
    }
}

impl<K: Key> Shared<K> {
    /// Quantile of complete targets.
    fn value(&self, targets: &Targets) -> f64 {
        let [low, high] = targets.both.map(|target| (self.coding.decode)(K::narrow(target.prefix)));
        self.coding.between(low, high, targets.rank.fraction)
    }
}

/// Collects the keys of the wanted buckets.
#[derive(Debug)]
struct Collected<K> {
    shared: Shared<K>,
    shift: u32,
    /// Keys of each prefix.
    keys: Vec<Vec<K>>,
}

impl<K: Key> Visit<K> for Collected<K> {
    fn shared(&self) -> &Shared<K> {
        &self.shared
    }
    fn shared_mut(&mut self) -> &mut Shared<K> {
        &mut self.shared
    }

    #[inline]
    fn fold(&mut self, slot: usize, keys: &[K]) {
        let own = self.shared.prefixes_by_slot[slot];
        for number in 0..own.count {
            let (prefix, shift) = (own.prefixes[number], self.shift);
            let matching = keys.iter().copied().filter(|key| key.wide() >> shift == prefix);
            self.keys[own.table + number].extend(matching);
        }
    }
}

impl<K: Key> Accumulator for Collected<K> {
    visits!();

    fn clear(&mut self) {
        self.keys.iter_mut().for_each(Vec::clear);
    }

    fn merge(&mut self, at: usize, later: &dyn Accumulator, from: usize, count: usize) {
        let Some(later) = later.as_any().downcast_ref::<Self>() else { return };
        for i in 0..count {
            let (own, other) =
                (self.shared.prefixes_by_slot[at + i], later.shared.prefixes_by_slot[from + i]);
            for number in 0..own.count.min(other.count) {
                self.keys[own.table + number].extend_from_slice(&later.keys[other.table + number]);
            }
        }
    }

    fn finish(&mut self, _: Counts<'_>, out: &mut [f64]) {
        let found = self.shared.found.clone();
        let found = found.lock().unwrap_or_else(PoisonError::into_inner);
        for (slot, out) in out.iter_mut().enumerate() {
            let own = self.shared.prefixes_by_slot[slot];
            let Some(SlotState::Targets(mut targets)) = found.get(self.shared.globals[slot]).copied() else {
                *out = f64::NAN;
                continue;
            };
            for (number, target) in targets.both.iter_mut().enumerate() {
                let keys = &mut self.keys[own.table + number.min(own.count.saturating_sub(1))];
                // A file that changes while it is read may now have fewer keys.
                let last = keys.len().saturating_sub(1);
                let rank = usize::try_from(target.rank).unwrap_or(usize::MAX).min(last);
                if !keys.is_empty() {
                    target.prefix = keys.select_nth_unstable(rank).1.wide();
                }
            }
            *out = self.shared.value(&targets);
        }
    }
}
