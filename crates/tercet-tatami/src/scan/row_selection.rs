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

    /// The last row.
    pub(super) fn last(&self) -> Option<u64> {
        self.ranges.last().map(|range| range.end - 1)
    }

    /// The rows inside `all`, relative to its start.
    pub(super) fn relative_to(&self, all: Range<u64>) -> Vec<Range<u64>> {
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
