//! Counting: order statistics of cells that do not fit in memory, by radix selection on the leading digits of keys.
//!
//! A pass over the chunks counts the keys by 16-bit digit. The counts identify the bucket of the wanted value; as soon
//! as the wanted buckets fit in memory, one more pass collects them. Types of at most 16 bits are resolved after the
//! first pass, 32-bit types after the second at the latest, 64-bit types after the fourth. Counts are integers, so they
//! do not depend on which thread adds them.

use std::sync::{Mutex, PoisonError};

use super::key::{Key, Ordinal, Rank, between};
use super::region::Region;
use super::walk::{Rows, Scratch, Sink, Walk};
use crate::error::ErrorKind;
use crate::exec::reach::chunks_of;

/// Bytes of decoded chunks that are counted together before their counts are added to the total.
const SEGMENT: u64 = 8 << 20;
/// Counters are added up before they can overflow.
const FULL: u64 = u32::MAX as u64 / 2;

/// Maximum bytes of counters per cell: two buckets of two lanes.
pub(super) const CELL_BYTES: usize = 2 * 2 * (1 << 16) * size_of::<u32>();

/// Result of counting.
pub(super) struct Counted {
    /// Quantile of each cell.
    pub(super) values: Vec<f64>,
    /// Number of values of each cell, without padding.
    pub(super) real: Vec<u64>,
}

/// Padding values, which are not in the file.
pub(super) struct Pads<K> {
    pub(super) key: K,
    /// Number of padding values per cell.
    pub(super) counts: Vec<u64>,
}

/// Quantile of every cell of a region. Keys are collected once they take at most `room` bytes.
pub(super) fn count<T: Ordinal>(
    walk: &Walk<'_, T>,
    region: &Region<'_>,
    pads: Option<&Pads<T::Key>>,
    q: f64,
    room: usize,
) -> Result<Counted, ErrorKind> {
    let digit = T::Key::BITS.min(16);
    let passes = Passes { walk, region, pads, segments: segments(walk, region), digit };
    let cells = region.len();
    let mut level = Level { shift: T::Key::BITS - digit, slots: vec![Slot::all(); cells] };
    for (table, slot) in level.slots.iter_mut().enumerate() {
        slot.table = table;
    }
    let totals = passes.tally(&level)?;
    let size = 1usize << digit;
    let mut searches = Vec::with_capacity(cells);
    let mut real = Vec::with_capacity(cells);
    for cell in 0..cells {
        let table = &totals[cell * size..(cell + 1) * size];
        let padding = pads.map_or(0, |pads| pads.counts[cell]);
        let all: u64 = table.iter().sum();
        real.push(all - padding);
        // The last bucket of floats holds only NaN.
        let has_nan = T::FLOAT && table[size - 1] > 0;
        searches.push((all > 0 && !has_nan).then(|| Search::new(Rank::new(q, all))));
    }
    refine(&mut searches, &level, &totals, digit);
    while level.shift > 0 {
        level.slots = slots(&searches);
        if passes.collected(&mut searches, &level, room)? {
            break;
        }
        level.shift -= digit;
        let totals = passes.tally(&level)?;
        refine(&mut searches, &level, &totals, digit);
    }
    let value = |search: &Option<Search>| match search {
        Some(Search { targets: [low, high], rank }) => {
            let value = |target: &Target| T::of_key(T::Key::narrow(target.prefix));
            between(value(low), value(high), rank.fraction)
        }
        None => f64::NAN,
    };
    Ok(Counted { values: searches.iter().map(value).collect(), real })
}

/// Splits the chunks of a region into segments of limited size.
fn segments<T: Ordinal>(walk: &Walk<'_, T>, region: &Region<'_>) -> Vec<Vec<usize>> {
    let plan = walk.job.plan;
    let mut segments = vec![Vec::new()];
    let mut bytes = 0;
    for chunk in chunks_of(plan, &region.ranges()) {
        if bytes >= SEGMENT {
            segments.push(Vec::new());
            bytes = 0;
        }
        bytes += plan.chunks[chunk].stored.raw_len;
        segments.last_mut().into_iter().for_each(|segment| segment.push(chunk));
    }
    segments
}

/// Search for the two values that enclose a quantile.
struct Search {
    rank: Rank,
    targets: [Target; 2],
}

/// A value of which some leading bits are known.
#[derive(Clone, Copy)]
struct Target {
    prefix: u64,
    /// Rank among the values with the same prefix.
    rank: u64,
    /// Number of values with the same prefix.
    count: u64,
}

impl Search {
    fn new(rank: Rank) -> Self {
        let target = |rank| Target { prefix: 0, rank, count: 0 };
        Self { rank, targets: [target(rank.low), target(rank.high())] }
    }

    fn is_together(&self) -> bool {
        self.targets[0].prefix == self.targets[1].prefix
    }
}

/// Digit and prefixes of a pass.
struct Level {
    /// Shift of the counted digit; the bits above it must match a prefix.
    shift: u32,
    slots: Vec<Slot>,
}

/// Tables of one cell: one per prefix.
#[derive(Clone, Copy)]
struct Slot {
    table: usize,
    prefixes: [u64; 2],
    count: usize,
    /// Whether no digit is known yet, so that every key is counted.
    all: bool,
}

impl Slot {
    fn all() -> Self {
        Self { table: 0, prefixes: [0; 2], count: 1, all: true }
    }
}

fn slots(searches: &[Option<Search>]) -> Vec<Slot> {
    let mut table = 0;
    let slot = |search: &Option<Search>| {
        let count = search.as_ref().map_or(0, |search| if search.is_together() { 1 } else { 2 });
        let prefixes = search.as_ref().map_or([0; 2], |search| search.targets.map(|target| target.prefix));
        let slot = Slot { table, prefixes, count, all: false };
        table += count;
        slot
    };
    searches.iter().map(slot).collect()
}

/// Finds the next digit of every target.
fn refine(searches: &mut [Option<Search>], level: &Level, totals: &[u64], digit: u32) {
    let size = 1usize << digit;
    for (search, slot) in searches.iter_mut().zip(&level.slots) {
        let Some(search) = search else { continue };
        for (number, target) in search.targets.iter_mut().enumerate() {
            let table = slot.table + number.min(slot.count - 1);
            let table = &totals[table * size..(table + 1) * size];
            let mut found = 0;
            while target.rank >= table[found] && found + 1 < size {
                target.rank -= table[found];
                found += 1;
            }
            target.prefix = if slot.all { found as u64 } else { (target.prefix << digit) | found as u64 };
            target.count = table[found];
        }
    }
}

struct Passes<'p, 'a, T: Ordinal> {
    walk: &'p Walk<'a, T>,
    region: &'p Region<'a>,
    pads: Option<&'p Pads<T::Key>>,
    segments: Vec<Vec<usize>>,
    digit: u32,
}

impl<T: Ordinal> Passes<'_, '_, T> {
    /// Counts the digits of a level: one table per prefix.
    fn tally(&self, level: &Level) -> Result<Vec<u64>, ErrorKind> {
        let tables: usize = level.slots.iter().map(|slot| slot.count).sum();
        let size = 1usize << self.digit;
        let totals = Mutex::new(vec![0u64; tables * size]);
        self.walk.job.each(&self.segments, |segment| {
            let mut tally = Tally::<T> {
                level,
                above: level.shift + self.digit,
                mask: size as u64 - 1,
                lanes: vec![0; tables * size * 2],
                since: 0,
                totals: &totals,
                element: std::marker::PhantomData,
            };
            let mut scratch = Scratch::default();
            for &chunk in segment {
                self.walk.chunk(self.region, chunk, &mut tally, &mut scratch)?;
            }
            tally.flush();
            Ok(())
        })?;
        let mut totals = totals.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(pads) = self.pads {
            let key = pads.key.wide();
            for (slot, &count) in level.slots.iter().zip(&pads.counts) {
                for number in 0..slot.count {
                    if slot.all || key >> (level.shift + self.digit) == slot.prefixes[number] {
                        let digit = usize::try_from(key >> level.shift).unwrap_or(0) & (size - 1);
                        totals[(slot.table + number) * size + digit] += count;
                    }
                }
            }
        }
        Ok(totals)
    }

    /// Collects the wanted buckets and ends all searches, if they fit in `room` bytes.
    fn collected(
        &self,
        searches: &mut [Option<Search>],
        level: &Level,
        room: usize,
    ) -> Result<bool, ErrorKind> {
        let wanted = |search: &Search| match search.targets {
            [low, _] if search.is_together() => vec![low.count],
            [low, high] => vec![low.count, high.count],
        };
        let counts: Vec<u64> = searches.iter().flatten().flat_map(wanted).collect();
        let all = counts.iter().fold(0u64, |sum, &count| sum.saturating_add(count));
        if all.saturating_mul(size_of::<T::Key>() as u64) > room as u64 {
            return Ok(false);
        }
        // Fits, because the total does.
        let buckets = counts.iter().map(|&count| Vec::with_capacity(usize::try_from(count).unwrap_or(0)));
        let buckets: Mutex<Vec<Vec<T::Key>>> = Mutex::new(buckets.collect());
        self.walk.job.each(&self.segments, |segment| {
            let found = vec![Vec::new(); counts.len()];
            let mut sink = Collect::<T> { level, found, element: std::marker::PhantomData };
            let mut scratch = Scratch::default();
            for &chunk in segment {
                self.walk.chunk(self.region, chunk, &mut sink, &mut scratch)?;
            }
            let mut buckets = buckets.lock().unwrap_or_else(PoisonError::into_inner);
            buckets.iter_mut().zip(sink.found).for_each(|(bucket, found)| bucket.extend(found));
            Ok(())
        })?;
        let mut buckets = buckets.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(pads) = self.pads {
            let key = pads.key.wide();
            for (slot, &count) in level.slots.iter().zip(&pads.counts) {
                let same = (0..slot.count).filter(|&number| key >> level.shift == slot.prefixes[number]);
                for number in same {
                    let count = usize::try_from(count).unwrap_or(0);
                    buckets[slot.table + number].extend(std::iter::repeat_n(pads.key, count));
                }
            }
        }
        for (search, slot) in searches.iter_mut().zip(&level.slots) {
            let Some(search) = search else { continue };
            for (number, target) in search.targets.iter_mut().enumerate() {
                let bucket = &mut buckets[slot.table + number.min(slot.count - 1)];
                // A file that changes while it is read may now have fewer keys.
                let last = bucket.len().saturating_sub(1);
                let rank = usize::try_from(target.rank).unwrap_or(usize::MAX).min(last);
                if !bucket.is_empty() {
                    target.prefix = bucket.select_nth_unstable(rank).1.wide();
                }
            }
        }
        Ok(true)
    }
}

/// Counts the digits of a segment.
struct Tally<'t, T: Ordinal> {
    level: &'t Level,
    above: u32,
    mask: u64,
    /// Two lanes per table, used alternately: consecutive equal keys do not depend on each other's count.
    lanes: Vec<u32>,
    /// Number of keys counted since the lanes were last flushed.
    since: u64,
    totals: &'t Mutex<Vec<u64>>,
    element: std::marker::PhantomData<T>,
}

impl<T: Ordinal> Tally<'_, T> {
    fn flush(&mut self) {
        let size = self.lanes_size();
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        for (total, lanes) in totals.chunks_mut(size).zip(self.lanes.chunks_mut(2 * size)) {
            let (a, b) = lanes.split_at(size);
            total.iter_mut().zip(a.iter().zip(b)).for_each(|(t, (&a, &b))| *t += u64::from(a) + u64::from(b));
            lanes.fill(0);
        }
        self.since = 0;
    }

    fn lanes_size(&self) -> usize {
        usize::try_from(self.mask).unwrap_or(0) + 1
    }

    #[expect(clippy::cast_possible_truncation, reason = "digits have 16 bits")]
    fn add(&mut self, slot: Slot, values: &[T]) {
        let size = self.lanes_size();
        let (shift, mask, above) = (self.level.shift, self.mask, self.above);
        let digit = |key: u64| ((key >> shift) & mask) as usize;
        let lanes = &mut self.lanes[slot.table * size * 2..(slot.table + slot.count) * size * 2];
        if slot.all {
            let (a, b) = lanes.split_at_mut(size);
            let (pairs, rest) = values.as_chunks::<2>();
            for [x, y] in pairs {
                a[digit(x.key().wide())] += 1;
                b[digit(y.key().wide())] += 1;
            }
            for x in rest {
                a[digit(x.key().wide())] += 1;
            }
            return;
        }
        for (number, value) in values.iter().enumerate() {
            let key = value.key().wide();
            for which in 0..slot.count {
                if key >> above == slot.prefixes[which] {
                    lanes[(2 * which + number % 2) * size + digit(key)] += 1;
                }
            }
        }
    }
}

impl<T: Ordinal> Sink<T> for Tally<'_, T> {
    fn run(&mut self, cell: usize, values: &[T]) {
        let slot = self.level.slots[cell];
        if slot.count == 0 {
            return;
        }
        for values in values.chunks(1 << 30) {
            if self.since > FULL {
                self.flush();
            }
            self.since += values.len() as u64;
            self.add(slot, values);
        }
    }

    fn rows(&mut self, cell: usize, step: usize, rows: &Rows<'_, T>) {
        for row in 0..rows.count {
            for (column, value) in rows.row(row).iter().enumerate() {
                self.run(cell + column * step, std::slice::from_ref(value));
            }
        }
    }
}

/// Collects the keys of the wanted buckets.
struct Collect<'c, T: Ordinal> {
    level: &'c Level,
    found: Vec<Vec<T::Key>>,
    element: std::marker::PhantomData<T>,
}

impl<T: Ordinal> Sink<T> for Collect<'_, T> {
    fn run(&mut self, cell: usize, values: &[T]) {
        let slot = self.level.slots[cell];
        for number in 0..slot.count {
            let prefix = slot.prefixes[number];
            let keys = values.iter().map(|value| value.key());
            self.found[slot.table + number]
                .extend(keys.filter(|key| key.wide() >> self.level.shift == prefix));
        }
    }

    fn rows(&mut self, cell: usize, step: usize, rows: &Rows<'_, T>) {
        for row in 0..rows.count {
            for (column, value) in rows.row(row).iter().enumerate() {
                self.run(cell + column * step, std::slice::from_ref(value));
            }
        }
    }
}
