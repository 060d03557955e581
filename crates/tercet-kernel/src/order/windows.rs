//! Rolling order statistics: quantiles of windows along an axis.

use std::ops::Range;

use super::key::{Coding, Key, Rank};

/// Windows of at most this many values are kept sorted; larger ones are counted by rank.
const FEW: usize = 1024;

/// Values of one line along the window axis.
pub(super) struct Line<K> {
    keys: Vec<K>,
    /// Start of the keys of each position, and the end.
    starts: Vec<usize>,
}

impl<K: Key> Line<K> {
    pub(super) fn new() -> Self {
        Self { keys: Vec::new(), starts: vec![0] }
    }

    /// Clears the line.
    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.starts.clear();
        self.starts.push(0);
    }

    /// Adds a position.
    pub(super) fn push(&mut self, keys: &[K]) {
        self.keys.extend_from_slice(keys);
        self.starts.push(self.keys.len());
    }

    /// Entries of a range of positions.
    fn entries(&self, positions: &Range<usize>) -> Range<usize> {
        self.starts[positions.start]..self.starts[positions.end]
    }
}

/// A window: its positions, relative to the first position of the line, and its number of padding values.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) positions: Range<usize>,
    pub(super) pads: u64,
}

/// Quantiles of consecutive windows. `pad` is the key of padding values; windows with fewer than `min_count` other
/// values return NaN.
pub(super) fn slide<K: Key>(
    coding: &Coding<K>,
    q: f64,
    line: &Line<K>,
    windows: &[Window],
    (pad, min_count): (Option<K>, u64),
    mut answer: impl FnMut(usize, f64),
) {
    let most = windows.iter().map(|window| line.entries(&window.positions).len()).max().unwrap_or(0);
    let (mut sorted, mut ranked);
    let held: &mut dyn Multiset<K> = if most <= FEW {
        sorted = Sorted { entries: &line.keys, keys: Vec::with_capacity(most) };
        &mut sorted
    } else {
        ranked = Ranked::new(&line.keys);
        &mut ranked
    };
    let mut now = 0..0;
    for (number, window) in windows.iter().enumerate() {
        let next = line.entries(&window.positions);
        (now.start..next.start.min(now.end)).for_each(|entry| held.remove(entry));
        (now.end.max(next.start)..next.end).for_each(|entry| held.insert(entry));
        now = next;
        let enough = held.len() as u64 >= min_count;
        answer(number, if enough { quantile(coding, q, held, pad, window.pads) } else { f64::NAN });
    }
}

fn quantile<K: Key>(coding: &Coding<K>, q: f64, held: &dyn Multiset<K>, pad: Option<K>, pads: u64) -> f64 {
    let real = held.len() as u64;
    let pad = pad.filter(|_| pads > 0);
    let pads = if pad.is_some() { pads } else { 0 };
    if real + pads == 0 {
        return f64::NAN;
    }
    let below = pad.map_or(0, |pad| held.below(pad) as u64);
    let at = |rank: u64| match pad {
        Some(pad) if (below..below + pads).contains(&rank) => pad,
        _ => held.at(usize::try_from(if rank < below { rank } else { rank - pads }).unwrap_or(0)),
    };
    // NaN is greater than all other values.
    if coding.has_nan && at(real + pads - 1) == K::MAX {
        return f64::NAN;
    }
    let rank = Rank::new(q, real + pads);
    let value = |rank: u64| (coding.decode)(at(rank));
    coding.between(value(rank.low), value(rank.high()), rank.fraction)
}

/// Multiset of the values of a window.
trait Multiset<K> {
    /// Inserts the value of an entry of the line.
    fn insert(&mut self, entry: usize);
    /// Removes the value of an entry that was inserted.
    fn remove(&mut self, entry: usize);
    fn len(&self) -> usize;
    /// Value of rank `rank`: with `rank` values before it.
    fn at(&self, rank: usize) -> K;
    /// Number of values less than `key`.
    fn below(&self, key: K) -> usize;
}

/// Sorted values.
struct Sorted<'l, K> {
    entries: &'l [K],
    keys: Vec<K>,
}

impl<K: Key> Multiset<K> for Sorted<'_, K> {
    fn insert(&mut self, entry: usize) {
        let key = self.entries[entry];
        self.keys.insert(self.below(key), key);
    }
    fn remove(&mut self, entry: usize) {
        self.keys.remove(self.below(self.entries[entry]));
    }
    fn len(&self) -> usize {
        self.keys.len()
    }
    fn at(&self, rank: usize) -> K {
        self.keys[rank]
    }
    fn below(&self, key: K) -> usize {
        self.keys.partition_point(|&other| other < key)
    }
}

/// Values counted by their rank among all values of the line, in a binary indexed tree: insert, remove and select take
/// logarithmic time.
struct Ranked<K> {
    /// All values of the line, sorted.
    sorted: Vec<K>,
    /// Rank of each entry.
    ranks: Vec<u32>,
    tree: Vec<u32>,
    len: usize,
}

impl<K: Key> Ranked<K> {
    fn new(entries: &[K]) -> Self {
        // Lines are in memory with other data, so they have fewer than 2^32 entries.
        let mut order: Vec<u32> = (0..u32::try_from(entries.len()).unwrap_or(u32::MAX)).collect();
        order.sort_unstable_by_key(|&entry| (entries[entry as usize], entry));
        let mut ranks = vec![0; entries.len()];
        for (rank, &entry) in (0u32..).zip(&order) {
            ranks[entry as usize] = rank;
        }
        let sorted = order.iter().map(|&entry| entries[entry as usize]).collect();
        Self { sorted, ranks, tree: vec![0; entries.len() + 1], len: 0 }
    }

    fn add(&mut self, entry: usize, change: u32) {
        let mut at = self.ranks[entry] as usize + 1;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add(change);
            at += at & at.wrapping_neg();
        }
    }
}

impl<K: Key> Multiset<K> for Ranked<K> {
    fn insert(&mut self, entry: usize) {
        self.add(entry, 1);
        self.len += 1;
    }
    fn remove(&mut self, entry: usize) {
        self.add(entry, u32::MAX);
        self.len -= 1;
    }
    fn len(&self) -> usize {
        self.len
    }
    fn at(&self, mut rank: usize) -> K {
        let mut at = 0;
        let mut half = self.tree.len().next_power_of_two();
        while half > 0 {
            if at + half < self.tree.len() && self.tree[at + half] as usize <= rank {
                at += half;
                rank -= self.tree[at] as usize;
            }
            half /= 2;
        }
        self.sorted[at]
    }
    fn below(&self, key: K) -> usize {
        let mut at = self.sorted.partition_point(|&other| other < key);
        let mut count = 0;
        while at > 0 {
            count += self.tree[at] as usize;
            at &= at - 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_ways_to_hold_a_window_are_the_same(
            entries in prop::collection::vec(0u32..20, 1..40),
            changes in prop::collection::vec(any::<prop::sample::Index>(), 0..80),
            pivot in 0u32..21,
        ) {
            let mut held = vec![false; entries.len()];
            let mut sorted = Sorted { entries: &entries, keys: Vec::new() };
            let mut ranked = Ranked::new(&entries);
            for change in changes {
                let entry = change.index(entries.len());
                if held[entry] {
                    sorted.remove(entry);
                    ranked.remove(entry);
                } else {
                    sorted.insert(entry);
                    ranked.insert(entry);
                }
                held[entry] = !held[entry];
                let mut naive: Vec<u32> = (0..entries.len()).filter(|&e| held[e]).map(|e| entries[e]).collect();
                naive.sort_unstable();
                prop_assert_eq!((sorted.len(), ranked.len()), (naive.len(), naive.len()));
                let below = naive.iter().filter(|&&key| key < pivot).count();
                prop_assert_eq!((sorted.below(pivot), ranked.below(pivot)), (below, below));
                for (rank, &key) in naive.iter().enumerate() {
                    prop_assert_eq!((sorted.at(rank), ranked.at(rank)), (key, key));
                }
            }
        }
    }
}
