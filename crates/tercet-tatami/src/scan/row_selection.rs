//! Rows selected by number.

use std::ops::Range;

/// Row numbers of a file: ascending, disjoint ranges.
///
/// ```
/// use tercet_tatami::scan::RowSelection;
///
/// let rows = RowSelection::from(vec![7, 3, 4, 3]);
/// assert_eq!(rows.ranges(), [3..5, 7..8]);
/// assert_eq!(rows.len(), 3);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(from = "Vec<Range<u64>>", into = "Vec<Range<u64>>")]
pub struct RowSelection {
    ranges: Vec<Range<u64>>,
}

impl RowSelection {
    /// The ranges, ascending and disjoint.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// The number of rows.
    pub fn len(&self) -> u64 {
        self.ranges.iter().fold(0, |sum, range| sum.saturating_add(range.end - range.start))
    }

    /// Whether no row is selected.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether a row is selected.
    pub fn contains(&self, row: u64) -> bool {
        let at = self.ranges.partition_point(|range| range.end <= row);
        self.ranges.get(at).is_some_and(|range| range.start <= row)
    }

    /// The rows of both selections.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        [&self.ranges[..], &other.ranges[..]].concat().into()
    }

    /// The rows that are in both selections.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut ranges = Vec::new();
        let (mut one, mut two) = (self.ranges.iter().peekable(), other.ranges.iter().peekable());
        while let (Some(a), Some(b)) = (one.peek(), two.peek()) {
            let both = a.start.max(b.start)..a.end.min(b.end);
            if !both.is_empty() {
                ranges.push(both);
            }
            if a.end <= b.end {
                one.next()
            } else {
                two.next()
            };
        }
        Self { ranges }
    }

    /// The rows of `0..rows` that are not selected.
    #[must_use]
    pub fn complement(&self, rows: u64) -> Self {
        let mut ranges = Vec::with_capacity(self.ranges.len() + 1);
        let mut at = 0;
        for range in &self.ranges {
            ranges.push(at..range.start.min(rows));
            at = range.end.min(rows);
        }
        ranges.push(at..rows);
        ranges.retain(|range| !range.is_empty());
        Self { ranges }
    }

    /// The last row.
    pub(crate) fn last(&self) -> Option<u64> {
        self.ranges.last().map(|range| range.end - 1)
    }

    /// The rows inside `all`, relative to its start.
    pub(crate) fn relative_to(&self, all: Range<u64>) -> Vec<Range<u64>> {
        let first = self.ranges.partition_point(|range| range.end <= all.start);
        let inside = self.ranges[first..].iter().take_while(|range| range.start < all.end);
        inside
            .map(|range| range.start.max(all.start) - all.start..range.end.min(all.end) - all.start)
            .filter(|range| !range.is_empty())
            .collect()
    }
}

impl From<Vec<Range<u64>>> for RowSelection {
    fn from(mut ranges: Vec<Range<u64>>) -> Self {
        ranges.retain(|range| !range.is_empty());
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        ranges.dedup_by(|next, last| {
            let joins = next.start <= last.end;
            if joins {
                last.end = last.end.max(next.end);
            }
            joins
        });
        Self { ranges }
    }
}

impl From<RowSelection> for Vec<Range<u64>> {
    fn from(rows: RowSelection) -> Self {
        rows.ranges
    }
}

impl From<Range<u64>> for RowSelection {
    fn from(rows: Range<u64>) -> Self {
        vec![rows].into()
    }
}

impl From<Vec<u64>> for RowSelection {
    fn from(rows: Vec<u64>) -> Self {
        rows.as_slice().into()
    }
}

impl From<&[u64]> for RowSelection {
    fn from(rows: &[u64]) -> Self {
        // No file has the row `u64::MAX`; its range is kept in bounds and refused as any other missing row.
        let single = |row: &u64| row.saturating_sub(u64::from(*row == u64::MAX))..row.saturating_add(1);
        rows.iter().map(single).collect::<Vec<_>>().into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn selection(bits: &[bool]) -> RowSelection {
        (0..).zip(bits).filter(|(_, bit)| **bit).map(|(row, _)| row).collect::<Vec<u64>>().into()
    }

    proptest! {
        #[test]
        fn set_operations_equal_those_of_bits(bits in prop::collection::vec(any::<(bool, bool)>(), 0..80)) {
            let (a, b): (Vec<bool>, Vec<bool>) = bits.iter().copied().unzip();
            let bitwise = |of: fn(bool, bool) -> bool| {
                selection(&bits.iter().map(|(a, b)| of(*a, *b)).collect::<Vec<_>>())
            };
            let (one, two) = (selection(&a), selection(&b));
            prop_assert_eq!(one.union(&two), bitwise(|a, b| a || b));
            prop_assert_eq!(one.intersection(&two), bitwise(|a, b| a && b));
            prop_assert_eq!(one.complement(bits.len() as u64), bitwise(|a, _| !a));
            for (row, bit) in (0..).zip(&a) {
                prop_assert_eq!(one.contains(row), *bit);
            }
        }
    }
}
