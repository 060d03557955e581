//! The default table of `tgm ls`: one row per object, with the keys that vary.

use std::collections::BTreeMap;

use tercet::core::{Shape, escape};
use tercet::tgm::precision::Candidate;
use tercet::tgm::{Entry, File, Message, Value};
use unicode_width::UnicodeWidthStr as _;

use crate::cmd::tgm::select::{Row, printed};
use crate::failure::Failure;
use crate::render::human_size;
use crate::ui::{HEADING, Ui, paint};

/// Rows from which the columns are chosen; later rows have the same columns.
const SAMPLED: usize = 20_000;
/// The maximum depth of nested keys.
const MAX_DEPTH: usize = 4;
/// Key columns where the output is not a terminal.
const MAX_KEYS: usize = 16;
/// The maximum width of a value.
const MAX_WIDTH: usize = 40;
/// Spaces between columns.
const GAP: usize = 2;

/// A row: its columns and its metadata.
struct Line {
    cells: Vec<String>,
    keys: BTreeMap<String, String>,
}

/// The columns after the first rows.
struct Layout {
    /// Which of the first columns are printed.
    shown: Vec<bool>,
    keys: Vec<String>,
    widths: Vec<usize>,
}

/// A table under construction.
pub(super) struct Listing {
    heads: Vec<&'static str>,
    with_files: bool,
    rows: Vec<Line>,
    layout: Option<Layout>,
}

/// The columns before the keys; those that start with `>` are right-aligned.
const HEADS: [&str; 7] = [">message", ">object", "name", "shape", "dtype", "encoding", ">size"];

impl Listing {
    pub(super) fn new(with_files: bool) -> Self {
        let file = with_files.then_some("file");
        Self { heads: file.into_iter().chain(HEADS).collect(), with_files, rows: Vec::new(), layout: None }
    }

    /// Adds the objects of a message, or the message if it has none.
    pub(super) fn add(
        &mut self,
        file: &File,
        message: &Message,
        objects: &[u64],
        out: &mut Ui,
    ) -> Result<(), Failure> {
        let file = self.with_files.then(|| escape::name(file.name()).into_owned());
        let number = message.number().to_string();
        let metadata = message.metadata();
        if objects.is_empty() {
            let mut keys = BTreeMap::new();
            leaves(&metadata.extra, &mut keys);
            let name = keys.remove("name").unwrap_or_default();
            let cells =
                ["-".to_owned(), name, "-".to_owned(), "-".to_owned(), "-".to_owned(), "-".to_owned()];
            return self.push(file.into_iter().chain([number]).chain(cells).collect(), keys, out);
        }
        for &index in objects {
            let object = message.object(index)?;
            let descriptor = object.descriptor();
            let mut keys = BTreeMap::new();
            leaves(&metadata.extra, &mut keys);
            if let Some(entry) = usize::try_from(index).ok().and_then(|index| metadata.base.get(index)) {
                leaves(entry, &mut keys);
            }
            let row = Row::new(metadata, Some(message), std::slice::from_ref(&index));
            let name = row.value("name")?.map(|name| printed(&name).into_owned());
            keys.remove("name");
            let cells = [
                number.clone(),
                index.to_string(),
                short(&name.unwrap_or_default()),
                Shape::new(descriptor.shape.clone()).to_string(),
                descriptor.dtype.name().to_owned(),
                Candidate::given(descriptor).to_string(),
                human_size(object.stored_len()),
            ];
            self.push(file.iter().cloned().chain(cells).collect(), keys, out)?;
        }
        Ok(())
    }

    fn push(
        &mut self,
        cells: Vec<String>,
        keys: BTreeMap<String, String>,
        out: &mut Ui,
    ) -> Result<(), Failure> {
        let row = Line { cells, keys };
        if let Some(layout) = &mut self.layout {
            return out.line(layout.row(&self.heads, &row));
        }
        self.rows.push(row);
        if self.rows.len() < SAMPLED { Ok(()) } else { self.print(out) }
    }

    /// Prints the rows that are left.
    pub(super) fn finish(mut self, out: &mut Ui) -> Result<(), Failure> {
        if self.layout.is_some() || self.rows.is_empty() { Ok(()) } else { self.print(out) }
    }

    /// Chooses the columns and prints the rows.
    fn print(&mut self, out: &mut Ui) -> Result<(), Failure> {
        let (mut layout, left_out) = Layout::new(&self.heads, &self.rows);
        out.line(paint(HEADING, layout.header(&self.heads)))?;
        for row in &self.rows {
            out.line(layout.row(&self.heads, row))?;
        }
        self.rows.clear();
        self.layout = Some(layout);
        if !left_out.is_empty() {
            let some: Vec<_> = left_out.iter().take(8).map(|key| escape::name(key)).collect();
            let more = if left_out.len() > 8 { ", …" } else { "" };
            out.note(format_args!(
                "note: keys without a column: {}{more}; select with `-p`",
                some.join(", ")
            ))?;
        }
        Ok(())
    }
}

impl Layout {
    /// The columns for these rows, and the keys that vary but have no room.
    fn new(heads: &[&'static str], rows: &[Line]) -> (Self, Vec<String>) {
        let text = |head: &str| head.trim_start_matches('>').width();
        let mut widths: Vec<usize> = heads.iter().map(|head| text(head)).collect();
        let mut shown: Vec<bool> = vec![true; heads.len()];
        for (column, head) in heads.iter().enumerate() {
            let cells = rows.iter().filter_map(|row| row.cells.get(column));
            widths[column] = cells.clone().map(|cell| cell.width()).max().unwrap_or(0).max(widths[column]);
            // No object has a name.
            shown[column] = *head != "name" || cells.into_iter().any(|cell| !cell.is_empty());
        }
        let mut keys: Vec<&String> = rows.iter().flat_map(|row| row.keys.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        let varies = |key: &&String| {
            rows.len() == 1 || rows.iter().any(|row| row.keys.get(*key) != rows[0].keys.get(*key))
        };
        let used = |widths: &[usize], shown: &[bool]| -> usize {
            widths.iter().zip(shown).filter(|(_, shown)| **shown).map(|(width, _)| width + GAP).sum()
        };
        let (room, most) = match terminal_width() {
            Some(width) => (width + GAP, usize::MAX),
            None => (usize::MAX, MAX_KEYS),
        };
        let (mut taken, mut left_out) = (Vec::new(), Vec::new());
        for key in keys.into_iter().filter(varies) {
            let values = rows.iter().filter_map(|row| row.keys.get(key));
            let width = values.map(|value| value.width()).max().unwrap_or(0).max(key.width());
            if taken.len() < most && used(&widths, &shown) + width + GAP <= room {
                taken.push(key.clone());
                widths.push(width);
                shown.push(true);
            } else {
                left_out.push(key.clone());
            }
        }
        (Self { shown, keys: taken, widths }, left_out)
    }

    fn header(&self, heads: &[&'static str]) -> String {
        let heads = heads.iter().map(|head| (head.trim_start_matches('>'), head.starts_with('>')));
        self.line(heads.chain(self.keys.iter().map(|key| (key.as_str(), false))))
    }

    fn row(&mut self, heads: &[&'static str], row: &Line) -> String {
        let cells = row.cells.iter().zip(heads).map(|(cell, head)| (cell.as_str(), head.starts_with('>')));
        let keys = self.keys.iter().map(|key| (row.keys.get(key).map_or("-", String::as_str), false));
        let cells: Vec<_> = cells.chain(keys).collect();
        self.line(cells.into_iter())
    }

    fn line<'a>(&self, cells: impl Iterator<Item = (&'a str, bool)>) -> String {
        let mut line = String::new();
        for (column, (cell, right)) in
            cells.enumerate().filter(|(column, _)| self.shown.get(*column) == Some(&true))
        {
            let padding =
                " ".repeat(self.widths.get(column).copied().unwrap_or(0).saturating_sub(cell.width()));
            if right {
                line.push_str(&padding);
                line.push_str(cell);
            } else {
                line.push_str(cell);
                line.push_str(&padding);
            }
            line.push_str("  ");
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// The width of the terminal, if standard output is one.
fn terminal_width() -> Option<usize> {
    use std::io::IsTerminal as _;
    std::io::stdout()
        .is_terminal()
        .then(terminal_size::terminal_size)
        .flatten()
        .map(|(width, _)| width.0.into())
}

/// The values that are not maps, by path.
fn leaves(entry: &Entry, found: &mut BTreeMap<String, String>) {
    for (key, value) in entry.iter().filter(|(key, _)| *key != "_reserved_") {
        leaf(escape::name(key).into_owned(), value, 1, found);
    }
}

fn leaf(path: String, value: &Value, depth: usize, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Map(pairs) if depth < MAX_DEPTH && !pairs.is_empty() => {
            for (key, value) in pairs {
                leaf(format!("{path}.{}", escape::name(&printed(key))), value, depth + 1, found);
            }
        }
        _ => {
            found.insert(path, short(&printed(value)));
        }
    }
}

/// A value that fits into a column.
fn short(text: &str) -> String {
    let text = escape::name(text);
    match text.char_indices().nth(MAX_WIDTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}
