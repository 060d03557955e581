//! Limits of history and metadata in a footer.

use std::fmt;

use crate::metadata::{DatasetInfo, HistoryRow, Metadata};

/// Bytes of the footer JSON.
pub(crate) const INLINE_BYTES: usize = 65_536;
/// Bytes of a metadata spill.
pub(crate) const SPILL_BYTES: usize = 16 << 20;
/// Labels per axis in `coords`.
pub(crate) const COORD_LABELS: usize = 64;
pub(crate) const HISTORY_ROWS: usize = 4096;
const PARENTS: usize = 16;
const PARAMS: usize = 32;
const DATASETS: usize = 256;
const ATTRS: usize = 64;
const DIM_NAMES: usize = 8;
const COORD_AXES: usize = 8;
pub(crate) const STRING_BYTES: usize = 1024;

/// Metadata that exceeds a limit of the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitViolation {
    /// The limited quantity.
    pub what: &'static str,
    /// The object with the limit: a dataset, an axis, a history row.
    pub of: String,
    /// The found number.
    pub found: u64,
    /// The allowed number.
    pub allowed: u64,
}

impl fmt::Display for LimitViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, of, found, allowed } = self;
        write!(f, "{what} of {}: {found}, ", tercet_core::escape::name(of))?;
        if *found == 0 { write!(f, "must not be empty") } else { write!(f, "at most {allowed} allowed") }
    }
}

/// Collects violations.
struct Check(Vec<LimitViolation>);

impl Check {
    fn most(&mut self, what: &'static str, of: &str, found: usize, allowed: usize) {
        if found > allowed {
            self.violation(what, of, found, allowed);
        }
    }

    fn text(&mut self, what: &'static str, of: &str, text: &str) {
        if text.is_empty() || text.len() > STRING_BYTES {
            self.violation(what, of, text.len(), STRING_BYTES);
        }
    }

    fn violation(&mut self, what: &'static str, of: &str, found: usize, allowed: usize) {
        // A hostile file can have millions of violations; a report needs the first few.
        if self.0.len() < 100 {
            let (found, allowed) = (found as u64, allowed as u64);
            self.0.push(LimitViolation { what, of: of.to_owned(), found, allowed });
        }
    }
}

/// The limit violations of a history.
pub(crate) fn check_history(history: &[HistoryRow]) -> Vec<LimitViolation> {
    let mut check = Check(Vec::new());
    check.most("rows", "the history", history.len(), HISTORY_ROWS);
    for (number, row) in history.iter().enumerate() {
        let of = format!("history row {number}");
        for (what, text) in [("op", &row.op), ("source", &row.source), ("at", &row.at)] {
            check.text(what, &of, text);
        }
        check.most("parents", &of, row.parents.len(), PARENTS);
        check.most("params", &of, row.params.len(), PARAMS);
        let params = row.params.iter().flat_map(|(key, value)| [key, value]);
        let optional = [&row.agent, &row.activity, &row.entity].into_iter().flatten();
        for text in row.parents.iter().chain(params).chain(optional) {
            check.text("bytes of a string", &of, text);
        }
    }
    check.0
}

/// The limit violations of metadata. Without `label_limit` the labels per axis are not limited.
pub(crate) fn check_metadata(metadata: &Metadata, label_limit: bool) -> Vec<LimitViolation> {
    let mut check = Check(Vec::new());
    let file = &metadata.file;
    for text in [&file.tool, &file.library_version, &file.created_at] {
        if !text.is_empty() {
            check.text("bytes of a string", "the file", text);
        }
    }
    check.most("dataset entries", "the metadata", metadata.datasets.len(), DATASETS);
    for (name, info) in &metadata.datasets {
        dataset(&mut check, name, info, label_limit);
    }
    check.0
}

fn dataset(check: &mut Check, name: &str, info: &DatasetInfo, label_limit: bool) {
    let of = format!("dataset `{name}`");
    check.text("bytes of the name", &of, name);
    check.most("attributes", &of, info.attrs.len(), ATTRS);
    check.most("dimension names", &of, info.dim_names.len(), DIM_NAMES);
    check.most("coordinate axes", &of, info.coords.len(), COORD_AXES);
    let attrs = info.attrs.iter().flat_map(|(key, value)| [key, value]);
    for text in attrs.chain(&info.dim_names).chain(info.coords.keys()) {
        check.text("bytes of a string", &of, text);
    }
    for (axis, coord) in &info.coords {
        let of = format!("axis `{axis}` of dataset `{name}`");
        if label_limit {
            check.most("labels", &of, coord.labels.len(), COORD_LABELS);
        }
        for label in &coord.labels {
            check.text("bytes of a label", &of, label);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Coord;

    #[test]
    fn the_limits_themselves_are_allowed() {
        let mut metadata = Metadata::default();
        let mut info = DatasetInfo::default();
        info.attrs.insert("k".repeat(1024), "v".repeat(1024));
        info.coords.insert("t".to_owned(), Coord::new(vec!["x".to_owned(); 64]));
        metadata.datasets.insert("a".to_owned(), info);
        assert_eq!(check_metadata(&metadata, true), []);

        let info = metadata.datasets.get_mut("a").unwrap();
        info.coords.insert("t".to_owned(), Coord::new(vec!["x".to_owned(); 65]));
        assert_eq!(check_metadata(&metadata, false), []);
        let violations = check_metadata(&metadata, true);
        assert_eq!(violations[0].to_string(), "labels of axis `t` of dataset `a`: 65, at most 64 allowed");
    }

    #[test]
    fn empty_strings_are_rejected() {
        let violations = check_history(&[HistoryRow::at("", "s", 1)]);
        assert_eq!(violations[0].to_string(), "op of history row 0: 0, must not be empty");
        assert_eq!(check_history(&vec![HistoryRow::at("a", "b", 1); 4097]).len(), 1);
    }
}
