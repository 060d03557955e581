//! The plan of a scan, printable.

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
    /// Row groups of the file.
    pub groups: u64,
    /// Row groups that may have matching rows.
    pub groups_scanned: u64,
    /// Row groups pruned by zone maps, and by bloom filters.
    pub groups_pruned: Pruned,
    /// Row groups matched by statistics, without decoding values.
    pub groups_whole: u64,
    /// Rows of the file.
    pub rows: u64,
    /// Rows whose values decide.
    pub rows_tested: u64,
    /// Rows matched by statistics.
    pub rows_whole: u64,
    /// Rows pruned without decoding values.
    pub rows_pruned: RowsPruned,
    /// Pages of the columns of the filter.
    pub pages: PageExplain,
    /// Each row group.
    pub detail: Vec<GroupExplain>,
}

/// How often each reason left something out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pruned {
    /// By zones and null counts.
    pub zone: u64,
    /// By a bloom filter.
    pub bloom: u64,
}

/// Rows pruned, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RowsPruned {
    /// By zones and null counts of row groups.
    pub zone: u64,
    /// By bloom filters.
    pub bloom: u64,
    /// By the bounds and null counts of pages.
    pub bounds: u64,
    /// By the values of dictionaries.
    pub dictionary: u64,
}

/// Pages of the columns of the filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageExplain {
    /// All of them.
    pub total: u64,
    /// Pages that need not be decoded.
    pub spared: u64,
}

/// One row group.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct GroupExplain {
    /// Its number.
    pub group: u64,
    /// Its rows.
    pub rows: u64,
    /// `pruned`, `whole` or `scanned`.
    pub verdict: &'static str,
    /// What pruned it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<PrunedBy>,
    /// Rows pruned by page statistics.
    pub rows_pruned_by_bounds: u64,
    /// Rows pruned by a dictionary.
    pub rows_pruned_by_dictionary: u64,
    /// Rows whose values decide.
    pub rows_tested: u64,
    /// Pages of the columns of the filter.
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
        groups_whole: 0,
        rows: file.rows(),
        rows_tested: 0,
        rows_whole: 0,
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
            Verdict::Always => ("whole", None),
            Verdict::Maybe => ("scanned", None),
        };
        match plan.verdict {
            Verdict::Never(PrunedBy::Bloom) => out.groups_pruned.bloom += 1,
            Verdict::Never(_) => out.groups_pruned.zone += 1,
            Verdict::Always => out.groups_whole += 1,
            Verdict::Maybe => {}
        }
        out.groups_scanned += u64::from(!matches!(plan.verdict, Verdict::Never(_)));
        out.rows_tested += tested;
        out.rows_whole += rows(&|verdict| verdict == Verdict::Always);
        let pruned = |by: PrunedBy| rows(&|verdict| verdict == Verdict::Never(by));
        out.rows_pruned.zone += pruned(PrunedBy::Zone);
        out.rows_pruned.bloom += pruned(PrunedBy::Bloom);
        out.rows_pruned.bounds += pruned(PrunedBy::Bounds);
        out.rows_pruned.dictionary += pruned(PrunedBy::Dictionary);
        out.pages.total += plan.pages;
        out.pages.spared += plan.pages_spared;
        out.detail.push(GroupExplain {
            group: plan.group as u64,
            rows: rows(&|_| true),
            verdict,
            by,
            rows_pruned_by_bounds: pruned(PrunedBy::Bounds),
            rows_pruned_by_dictionary: pruned(PrunedBy::Dictionary),
            rows_tested: tested,
            pages: PageExplain { total: plan.pages, spared: plan.pages_spared },
        });
    }
    out
}

impl fmt::Display for Explain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.filter_columns.is_empty() {
            writeln!(f, "condition:  none")?;
        } else {
            writeln!(f, "condition:  on {}", self.filter_columns.join(", "))?;
        }
        let Pruned { zone, bloom } = self.groups_pruned;
        writeln!(
            f,
            "row groups: {} of {} scanned, {zone} left out by zones, {bloom} by bloom filters, {} taken whole",
            self.groups_scanned, self.groups, self.groups_whole
        )?;
        writeln!(
            f,
            "rows:       {} of {} tested, {} taken without a look",
            self.rows_tested, self.rows, self.rows_whole
        )?;
        let RowsPruned { zone, bloom, bounds, dictionary } = self.rows_pruned;
        writeln!(
            f,
            "left out:   {zone} rows by zones, {bloom} by bloom filters, {bounds} by bounds of pages, {dictionary} by \
             dictionaries"
        )?;
        let PageExplain { total, spared } = self.pages;
        write!(f, "pages:      {} of {total} of the condition decoded, {spared} spared", total - spared)
    }
}
