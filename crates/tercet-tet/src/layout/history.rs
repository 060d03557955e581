//! Histories that outgrow the footer.

use super::{Layout, json_len};
use crate::metadata::HistoryRow;
use crate::metadata_limits::{HISTORY_ROWS, INLINE_BYTES};

/// The parameter with the number of rows that a row replaces.
const ROWS: &str = "rows";
/// The parameter with the time of the first of them.
const SINCE: &str = "since";

impl Layout {
    /// Adds a history row, also to a history that is full: older rows are merged.
    pub fn add_history(&mut self, row: HistoryRow) {
        self.history.push(row);
        self.condense_history();
    }

    /// Merges older history rows if the history does not fit in the footer, so that a file can be changed any number of
    /// times: first consecutive rows of the same operation. The first row and the newest row are kept as they are.
    pub(crate) fn condense_history(&mut self) {
        // The margin is that of the size check of the layout.
        let most = INLINE_BYTES.saturating_sub(json_len(&self.unknown) + 256);
        let sizes = |rows: &[HistoryRow]| -> usize { rows.iter().map(|row| json_len(row) + 1).sum() };
        if self.history.len() <= HISTORY_ROWS && sizes(&self.history) <= most {
            return;
        }
        // Half of the room, so that this does not happen with every change.
        let mut size = sizes(&self.history);
        let mut position = 1;
        while (size > most / 2 || self.history.len() > HISTORY_ROWS / 2) && position + 2 < self.history.len()
        {
            let end = self.history.len() - 1;
            let op = &self.history[position].op;
            let run = self.history[position..end].iter().take_while(|row| row.op == *op).count();
            if run > 1 {
                let merged = merge(&self.history[position..position + run]);
                self.history.splice(position..position + run, [merged]);
                size = sizes(&self.history);
            }
            position += 1;
        }
        // Rows of different operations: the older half becomes one row.
        while size > most && self.history.len() > 3 {
            let end = 2 + self.history.len() / 2;
            let merged = HistoryRow { op: "several".to_owned(), ..merge(&self.history[1..end]) };
            self.history.splice(1..end, [merged]);
            size = sizes(&self.history);
        }
    }
}

/// One row for several rows.
fn merge(rows: &[HistoryRow]) -> HistoryRow {
    let count = |row: &HistoryRow| row.params.get(ROWS).and_then(|rows| rows.parse().ok()).unwrap_or(1u64);
    let total = rows.iter().map(count).fold(0u64, u64::saturating_add);
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return HistoryRow::default() };
    let since = first.params.get(SINCE).unwrap_or(&first.at).clone();
    let mut row = HistoryRow {
        op: last.op.clone(),
        source: last.source.clone(),
        at: last.at.clone(),
        ..HistoryRow::default()
    };
    row.params.insert(ROWS.to_owned(), total.to_string());
    if !since.is_empty() {
        row.params.insert(SINCE.to_owned(), since);
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_history_is_condensed() {
        let mut layout = Layout::new();
        layout.history.push(HistoryRow::at("create", "a.npy", 1));
        for number in 0..3000 {
            layout.history.push(HistoryRow::at("append", &format!("{number}.npy"), 100 + number));
            layout.condense_history();
            layout.check(crate::WriterOptions::new()).unwrap();
            assert_eq!(layout.history[0], HistoryRow::at("create", "a.npy", 1));
            assert_eq!(layout.history.last().unwrap().source, format!("{number}.npy"));
        }
        let total: u64 = layout.history[1..]
            .iter()
            .map(|row| row.params.get(ROWS).map_or(1, |rows| rows.parse().unwrap()))
            .sum();
        assert_eq!(total, 3000);
        assert_eq!(layout.history[1].params[SINCE], "100");
        assert!(layout.history.len() > 2 && layout.history.len() < 1000);
    }

    #[test]
    fn alternating_operations_are_condensed() {
        let mut layout = Layout::new();
        for number in 0..3000 {
            let op = if number % 2 == 0 { "set" } else { "append" };
            layout.history.push(HistoryRow::at(op, &format!("{number}.npy"), number));
            layout.condense_history();
            layout.check(crate::WriterOptions::new()).unwrap();
        }
        assert_eq!(layout.history[1].op, "several");
        assert_eq!(layout.history.last().unwrap().at, "2999");
    }

    #[test]
    fn a_short_history_is_unchanged() {
        let mut layout = Layout::new();
        layout.history = vec![HistoryRow::at("append", "a", 1); 9];
        layout.condense_history();
        assert_eq!(layout.history.len(), 9);
    }
}
