//! The plan of a scan.

use std::fmt;

use serde::Serialize;

use super::prune::{GroupPlan, PrunedBy, Verdict};
use crate::file::File;
use crate::predicate::Predicate;

/// What a scan reads and prunes.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Explain {
    /// The columns of the filter.
    pub filter_columns: Vec<String>,
    /// Row groups of the scan: those of the file, unless it is restricted.
    pub groups: u64,
    /// Row groups that are not pruned.
    pub groups_scanned: u64,
    /// Row groups pruned by zone maps, and by bloom filters.
    pub groups_pruned: Pruned,
    /// Row groups matched by statistics, without decoding values.
    pub groups_matched: u64,
    /// Rows of the scan before the filter.
    pub rows: u64,
    /// Rows tested by value.
    pub rows_tested: u64,
    /// Rows matched by statistics.
    pub rows_matched: u64,
    /// Rows pruned without decoding values.
    pub rows_pruned: RowsPruned,
    /// Pages of the filter columns.
    pub pages: PageExplain,
    /// Each row group.
    pub detail: Vec<GroupExplain>,
}

/// Row groups pruned, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pruned {
    /// By zone maps and null counts.
    pub zone: u64,
    /// By bloom filters.
    pub bloom: u64,
}

/// Rows pruned, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RowsPruned {
    /// By zone maps and null counts.
    pub zone: u64,
    /// By bloom filters.
    pub bloom: u64,
    /// By page statistics.
    pub bounds: u64,
    /// By dictionaries.
    pub dictionary: u64,
}

/// Pages of the filter columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageExplain {
    /// The number of pages.
    pub total: u64,
    /// Pages that are not decoded.
    pub skipped: u64,
}

/// One row group.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct GroupExplain {
    /// Its number.
    pub group: u64,
    /// Its rows.
    pub rows: u64,
    /// `pruned`, `matched` or `scanned`.
    pub verdict: &'static str,
    /// The structure that pruned it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<PrunedBy>,
    /// Rows pruned by page statistics.
    pub rows_pruned_by_bounds: u64,
    /// Rows pruned by a dictionary.
    pub rows_pruned_by_dictionary: u64,
    /// Rows tested by value.
    pub rows_tested: u64,
    /// Pages of the filter columns.
    pub pages: PageExplain,
}

pub(super) fn explain(file: &File, predicate: Option<&Predicate>, plans: &[GroupPlan]) -> Explain {
    let names = |column: usize| file.schema().fields()[column].name.to_string();
    let mut out = Explain {
        filter_columns: predicate
            .map_or(Vec::new(), |predicate| predicate.columns().into_iter().map(names).collect()),
        groups: plans.len() as u64,
        groups_scanned: 0,
        groups_pruned: Pruned::default(),
        groups_matched: 0,
        rows: plans.iter().map(GroupPlan::rows).fold(0, u64::saturating_add),
        rows_tested: 0,
        rows_matched: 0,
        rows_pruned: RowsPruned::default(),
        pages: PageExplain::default(),
        detail: Vec::new(),
    };
    for plan in plans {
        let rows = |wanted: &dyn Fn(Verdict) -> bool| {
            let matching = plan.segments.iter().filter(|segment| wanted(segment.verdict));
            matching.map(|segment| segment.rows.end - segment.rows.start).sum::<u64>()
        };
        let tested = rows(&|verdict| verdict == Verdict::Maybe);
        let (verdict, by) = match plan.verdict {
            Verdict::Never(by) => ("pruned", Some(by)),
            Verdict::Always => ("matched", None),
            Verdict::Maybe => ("scanned", None),
        };
        match plan.verdict {
            Verdict::Never(PrunedBy::Bloom) => out.groups_pruned.bloom += 1,
            Verdict::Never(_) => out.groups_pruned.zone += 1,
            Verdict::Always => out.groups_matched += 1,
            Verdict::Maybe => {}
        }
        out.groups_scanned += u64::from(!matches!(plan.verdict, Verdict::Never(_)));
        out.rows_tested += tested;
        out.rows_matched += rows(&|verdict| verdict == Verdict::Always);
        let pruned = |by: PrunedBy| rows(&|verdict| verdict == Verdict::Never(by));
        out.rows_pruned.zone += pruned(PrunedBy::Zone);
        out.rows_pruned.bloom += pruned(PrunedBy::Bloom);
        out.rows_pruned.bounds += pruned(PrunedBy::Bounds);
        out.rows_pruned.dictionary += pruned(PrunedBy::Dictionary);
        out.pages.total += plan.pages;
        out.pages.skipped += plan.pages_skipped;
        out.detail.push(GroupExplain {
            group: plan.group as u64,
            rows: rows(&|_| true),
            verdict,
            by,
            rows_pruned_by_bounds: pruned(PrunedBy::Bounds),
            rows_pruned_by_dictionary: pruned(PrunedBy::Dictionary),
            rows_tested: tested,
            pages: PageExplain { total: plan.pages, skipped: plan.pages_skipped },
        });
    }
    out
}

impl fmt::Display for Explain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.filter_columns.is_empty() {
            writeln!(f, "filter:     none")?;
        } else {
            writeln!(f, "filter:     on {}", self.filter_columns.join(", "))?;
        }
        let Pruned { zone, bloom } = self.groups_pruned;
        writeln!(
            f,
            "row groups: {} of {} scanned; {zone} pruned by zone maps, {bloom} by bloom filters; {} matched by statistics",
            self.groups_scanned, self.groups, self.groups_matched
        )?;
        writeln!(
            f,
            "rows:       {} of {} tested, {} matched by statistics",
            self.rows_tested, self.rows, self.rows_matched
        )?;
        let RowsPruned { zone, bloom, bounds, dictionary } = self.rows_pruned;
        writeln!(
            f,
            "pruned:     {zone} rows by zone maps, {bloom} by bloom filters, {bounds} by page statistics, {dictionary} by \
             dictionaries"
        )?;
        let PageExplain { total, skipped } = self.pages;
        write!(
            f,
            "pages:      {} of {total} of the filter columns decoded, {skipped} skipped",
            total - skipped
        )
    }
}
