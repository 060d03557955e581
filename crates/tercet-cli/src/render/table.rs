//! Tables with box-drawing characters.

use std::fmt;

use unicode_width::UnicodeWidthStr as _;

/// Longer cells are truncated: a file decides how long its strings are, and every row is padded to the longest cell.
const MAX_CELL_CHARS: usize = 1000;

/// A table under construction. Rows are never wrapped, so that text can be copied from a table.
#[derive(Debug)]
pub(crate) struct Table {
    header: Vec<Cell>,
    /// Whether a column is right-aligned.
    right: Vec<bool>,
    rows: Vec<Vec<Cell>>,
    widths: Vec<usize>,
}

#[derive(Debug)]
struct Cell {
    text: String,
    width: usize,
}

impl Cell {
    fn new(mut text: String) -> Self {
        if let Some((end, _)) = text.char_indices().nth(MAX_CELL_CHARS) {
            text.truncate(end);
            text.push('…');
        }
        let width = text.width();
        Self { text, width }
    }
}

impl Table {
    /// A table with these column heads. A head that starts with `>` belongs to a right-aligned column.
    pub(crate) fn new(heads: &[&str]) -> Self {
        let header: Vec<Cell> =
            heads.iter().map(|head| Cell::new(head.trim_start_matches('>').to_owned())).collect();
        let widths = header.iter().map(|cell| cell.width).collect();
        let right = heads.iter().map(|head| head.starts_with('>')).collect();
        Self { header, right, rows: Vec::new(), widths }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let row: Vec<Cell> = cells.into_iter().take(self.header.len()).map(Cell::new).collect();
        for (width, cell) in self.widths.iter_mut().zip(&row) {
            *width = cell.width.max(*width);
        }
        self.rows.push(row);
    }

    fn rule(&self, f: &mut fmt::Formatter<'_>, [left, line, cross, right]: [char; 4]) -> fmt::Result {
        write!(f, "{left}")?;
        for (column, width) in self.widths.iter().enumerate() {
            if column > 0 {
                write!(f, "{cross}")?;
            }
            for _ in 0..width + 2 {
                write!(f, "{line}")?;
            }
        }
        write!(f, "{right}")
    }

    fn line(&self, f: &mut fmt::Formatter<'_>, row: &[Cell], right: impl Fn(usize) -> bool) -> fmt::Result {
        for (column, width) in self.widths.iter().enumerate() {
            let (text, used) = row.get(column).map_or(("", 0), |cell| (cell.text.as_str(), cell.width));
            let padding = width - used;
            let (before, after) = if right(column) { (padding, 0) } else { (0, padding) };
            let bar = if column == 0 { '│' } else { '┆' };
            write!(f, "{bar} {:before$}{text}{:after$} ", "", "")?;
        }
        write!(f, "│")
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let right = |column: usize| self.right.get(column).copied().unwrap_or(false);
        self.rule(f, ['┌', '─', '┬', '┐'])?;
        writeln!(f)?;
        self.line(f, &self.header, right)?;
        writeln!(f)?;
        self.rule(f, ['╞', '═', '╪', '╡'])?;
        writeln!(f)?;
        for row in &self.rows {
            self.line(f, row, right)?;
            writeln!(f)?;
        }
        self.rule(f, ['└', '─', '┴', '┘'])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["name", ">n"]);
        table.row(["é".to_owned(), "1".to_owned()]);
        table.row(["温度".to_owned(), "12345".to_owned()]);
        let expected = "\
┌──────┬───────┐
│ name ┆     n │
╞══════╪═══════╡
│ é    ┆     1 │
│ 温度 ┆ 12345 │
└──────┴───────┘";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn long_cells_are_truncated() {
        let mut table = Table::new(&["field", "value"]);
        table.row(["long".to_owned(), "name, ".repeat(2 << 20)]);
        table.row(["short".to_owned(), "x".to_owned()]);
        let text = table.to_string();
        assert!(text.lines().all(|line| line.chars().count() < MAX_CELL_CHARS + 20));
        assert!(text.contains("name,…") || text.contains('…'));
        assert_eq!(text.lines().count(), 6);
    }
}
