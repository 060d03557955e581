//! The states of the views.

use tercet::plot::{Colormap, Plot};
use tercet::tet::Coordinates;

use crate::edit::Edit;
use crate::text::Piece;
use crate::tree::Item;

/// What the large pane shows.
#[derive(Debug)]
pub(crate) enum View {
    Start,
    Array(Box<ArrayView>),
    Table(TableView),
    Search(SearchView),
    Document(DocumentView),
    Bytes(BytesView),
    Verification(VerificationView),
}

/// A slice of an array.
#[derive(Debug)]
pub(crate) struct ArrayView {
    pub(crate) item: Item,
    /// Nothing before the first result.
    pub(crate) info: Option<ArrayInfo>,
    /// The position on each axis.
    pub(crate) positions: Vec<u64>,
    /// The shown axes: rows and columns, or one axis.
    pub(crate) plane: Vec<usize>,
    /// The chosen slider, as an index of [`sliders`](Self::sliders).
    pub(crate) slider: usize,
    pub(crate) picture: Option<Picture>,
    pub(crate) colormap: Colormap,
    /// Whether the colors cover the 2nd to the 98th percentile.
    pub(crate) is_stretched: bool,
}

/// The axes of an array.
#[derive(Clone, Debug)]
pub(crate) struct ArrayInfo {
    pub(crate) title: String,
    pub(crate) axes: Vec<AxisInfo>,
}

#[derive(Clone, Debug)]
pub(crate) struct AxisInfo {
    pub(crate) name: String,
    pub(crate) size: u64,
    pub(crate) coordinates: Option<Coordinates>,
}

impl AxisInfo {
    /// The label of a position.
    pub(crate) fn label(&self, position: u64) -> Option<String> {
        let coordinates = self.coordinates.as_ref()?;
        let position = usize::try_from(position).ok().filter(|at| *at < coordinates.len())?;
        Some(crate::text::safe(&coordinates.text(position)))
    }
}

/// The values of a slice.
#[derive(Clone, Debug)]
pub(crate) enum Picture {
    Plot {
        plot: Box<Plot>,
        /// The 2nd and the 98th percentile.
        stretch: Option<(f64, f64)>,
    },
    /// A single value, or the reason why there is none.
    Text(String),
}

impl ArrayView {
    pub(crate) fn new(item: Item) -> Self {
        Self {
            item,
            info: None,
            positions: Vec::new(),
            plane: Vec::new(),
            slider: 0,
            picture: None,
            colormap: Colormap::default(),
            is_stretched: false,
        }
    }

    /// Shows the last two axes with several positions.
    pub(crate) fn set_info(&mut self, info: ArrayInfo) {
        let long: Vec<usize> = (0..info.axes.len()).filter(|&axis| info.axes[axis].size > 1).collect();
        self.plane = long[long.len().saturating_sub(2)..].to_vec();
        self.positions = vec![0; info.axes.len()];
        self.info = Some(info);
    }

    /// The axes of which one of several positions is shown.
    pub(crate) fn sliders(&self) -> Vec<usize> {
        let axes = self.info.iter().flat_map(|info| info.axes.iter().enumerate());
        axes.filter(|(axis, info)| info.size > 1 && !self.plane.contains(axis))
            .map(|(axis, _)| axis)
            .collect()
    }

    /// Moves the chosen slider; returns whether it moved.
    pub(crate) fn slide(&mut self, to: impl FnOnce(u64, u64) -> u64) -> bool {
        let sliders = self.sliders();
        let (Some(&axis), Some(info)) = (sliders.get(self.slider), &self.info) else { return false };
        let last = info.axes[axis].size.saturating_sub(1);
        let Some(position) = self.positions.get_mut(axis) else { return false };
        let to = to(*position, last).min(last);
        std::mem::replace(position, to) != to
    }

    /// Shows the axis of the chosen slider in place of the rows.
    pub(crate) fn swap_axis(&mut self) -> bool {
        let sliders = self.sliders();
        let (Some(&axis), false) = (sliders.get(self.slider), self.plane.is_empty()) else { return false };
        self.plane[0] = axis;
        self.plane.sort_unstable();
        true
    }

    /// The axes that are not shown, with their positions.
    pub(crate) fn fixed(&self) -> Vec<(usize, u64)> {
        let axes = self.positions.iter().enumerate();
        axes.filter(|(axis, _)| !self.plane.contains(axis)).map(|(axis, &at)| (axis, at)).collect()
    }
}

/// Rows of a table. Only those near the visible ones are read.
#[derive(Debug)]
pub(crate) struct TableView {
    pub(crate) item: Item,
    pub(crate) columns: Vec<TableColumn>,
    /// The rows of the file; none before the first result.
    pub(crate) total: Option<u64>,
    pub(crate) filter: Edit,
    pub(crate) is_editing: bool,
    /// The filter of the shown rows.
    pub(crate) applied: String,
    /// The number of rows that match the filter, when they are counted.
    pub(crate) matched: Option<u64>,
    pub(crate) cursor: u64,
    /// The first visible row.
    pub(crate) top: u64,
    /// The first visible column.
    pub(crate) left: usize,
    /// The rows that are read, and the first of them.
    pub(crate) rows: Vec<Vec<String>>,
    pub(crate) offset: u64,
    pub(crate) problem: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableColumn {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) is_number: bool,
}

impl TableView {
    pub(crate) fn new(item: Item) -> Self {
        Self {
            item,
            columns: Vec::new(),
            total: None,
            filter: Edit::default(),
            is_editing: false,
            applied: String::new(),
            matched: None,
            cursor: 0,
            top: 0,
            left: 0,
            rows: Vec::new(),
            offset: 0,
            problem: None,
        }
    }

    /// The number of rows, as far as it is known.
    pub(crate) fn row_count(&self) -> u64 {
        let read_end = self.offset + self.rows.len() as u64;
        match self.matched.filter(|_| !self.applied.is_empty()) {
            Some(matched) => matched,
            None if self.applied.is_empty() => self.total.unwrap_or(0),
            None => self.total.unwrap_or(0).max(read_end),
        }
    }

    /// Moves the cursor and keeps it visible on a number of lines.
    pub(crate) fn go(&mut self, to: u64, lines: u64) {
        self.cursor = to.min(self.row_count().saturating_sub(1));
        if self.cursor < self.top {
            self.top = self.cursor;
        } else if self.cursor >= self.top.saturating_add(lines.max(1)) {
            self.top = self.cursor + 1 - lines.max(1);
        }
    }

    /// The first row to read, if visible rows are not read yet.
    pub(crate) fn missing(&self, lines: u64) -> Option<u64> {
        let end = self.top.saturating_add(lines).min(self.row_count());
        let read_end = self.offset + self.rows.len() as u64;
        (self.top < self.offset || end > read_end).then(|| self.top.saturating_sub(lines))
    }
}

/// Search results.
#[derive(Debug)]
pub(crate) struct SearchView {
    /// A `.tatami` file, or a directory with several.
    pub(crate) item: Item,
    pub(crate) query: Edit,
    pub(crate) is_editing: bool,
    pub(crate) found: Option<Found>,
    pub(crate) cursor: usize,
    pub(crate) problem: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub(crate) hits: Vec<HitLine>,
    /// For example `3 documents in 1.2 ms`.
    pub(crate) summary: String,
}

#[derive(Clone, Debug)]
pub(crate) struct HitLine {
    pub(crate) segment: usize,
    pub(crate) document: u32,
    pub(crate) title: String,
    pub(crate) score: String,
    pub(crate) snippet: Vec<Piece>,
}

impl SearchView {
    pub(crate) fn new(item: Item) -> Self {
        Self { item, query: Edit::default(), is_editing: true, found: None, cursor: 0, problem: None }
    }
}

/// The text of a document with marked matches.
#[derive(Debug)]
pub(crate) struct DocumentView {
    pub(crate) title: String,
    pub(crate) lines: Vec<Vec<Piece>>,
    pub(crate) top: usize,
    /// The results to go back to.
    pub(crate) back: Box<SearchView>,
}

/// The byte layout of a file.
#[derive(Debug, Default)]
pub(crate) struct BytesView {
    pub(crate) title: String,
    pub(crate) regions: Vec<RegionLine>,
    pub(crate) file_len: u64,
    pub(crate) cursor: usize,
    pub(crate) is_loading: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct RegionLine {
    pub(crate) depth: usize,
    pub(crate) name: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) value: String,
}

/// The result of a verification.
#[derive(Debug, Default)]
pub(crate) struct VerificationView {
    pub(crate) title: String,
    /// The bytes verified so far.
    pub(crate) done: u64,
    pub(crate) result: Option<Verified>,
    pub(crate) top: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Verified {
    pub(crate) is_ok: bool,
    /// Whether each check passed, and the check.
    pub(crate) findings: Vec<(bool, String)>,
}
