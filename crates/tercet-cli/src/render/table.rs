//! Tables, drawn with lines.

use comfy_table::{CellAlignment, ContentArrangement, presets};

/// A table under construction.
#[derive(Debug)]
pub(crate) struct Table {
    table: comfy_table::Table,
}

impl Table {
    /// A table with these column heads. A head that starts with `>` belongs to a column of numbers.
    pub(crate) fn new(heads: &[&str]) -> Self {
        let mut table = comfy_table::Table::new();
        // Rows are never broken: what is copied from a table must be what is in the file.
        table.load_preset(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(heads.iter().map(|head| head.trim_start_matches('>')));
        for (column, head) in table.column_iter_mut().zip(heads) {
            if head.starts_with('>') {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        Self { table }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.table.add_row(cells);
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.table.fmt(f)
    }
}
