//! [`App`]: the state of the browser, and how keys and results change it. There is no I/O.

use std::path::PathBuf;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;
use tercet::plot::{Colormap, Colors};

use crate::read::{CANCELLED, Job, Reply, file_name};
use crate::tree::{Expansion, Item, Node, Tree};
use crate::views::{ArrayView, BytesView, DocumentView, SearchView, TableView, VerificationView, View};
use crate::work::{Done, Lane};

/// Terminals that are narrower show one pane at a time.
const MIN_WIDTH: u16 = 72;

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Event {
    Key(KeyEvent),
    Resize(u16, u16),
    Done(Done),
    /// The bytes that long work has processed.
    Progress(u64),
}

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    Start(Lane, u64, Job),
    Cancel(Lane),
    Quit,
}

/// The pane that has the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Focus {
    Tree,
    Attributes,
    View,
}

/// The attributes of the selected item.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    pub(crate) rows: Vec<(String, String)>,
    pub(crate) top: usize,
}

/// The state.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) size: (u16, u16),
    pub(crate) colors: Colors,
    pub(crate) tree: Tree,
    pub(crate) attributes: Attributes,
    pub(crate) view: View,
    pub(crate) focus: Focus,
    pub(crate) is_help: bool,
    /// The last error.
    pub(crate) problem: Option<String>,
    /// The numbers of the last jobs, and whether they are running.
    jobs: [(u64, bool); 4],
    effects: Vec<Effect>,
}

/// The areas of the panes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Panes {
    pub(crate) tree: Rect,
    pub(crate) attributes: Rect,
    pub(crate) view: Rect,
    pub(crate) status: Rect,
}

impl Panes {
    pub(crate) fn new((width, height): (u16, u16), focus: Focus) -> Self {
        let status_height = u16::from(height > 1);
        let main = Rect::new(0, 0, width, height - status_height);
        let status = Rect::new(0, main.height, width, status_height);
        if width < MIN_WIDTH {
            let none = Self { status, ..Self::default() };
            return match focus {
                Focus::Tree => Self { tree: main, ..none },
                Focus::Attributes => Self { attributes: main, ..none },
                Focus::View => Self { view: main, ..none },
            };
        }
        let left = (width / 3).clamp(24, 46);
        let top = main.height - main.height / 5 * 2;
        Self {
            tree: Rect::new(0, 0, left, top),
            attributes: Rect::new(0, top, left, main.height - top),
            view: Rect::new(left, 0, width - left, main.height),
            status,
        }
    }
}

/// The area inside of the border.
pub(crate) fn inside(area: Rect) -> Rect {
    if area.width < 3 || area.height < 3 {
        return area;
    }
    Rect::new(area.x + 1, area.y + 1, area.width - 2, area.height - 2)
}

impl App {
    /// The state at the start, and the first work.
    pub(crate) fn new(
        path: PathBuf,
        is_directory: bool,
        size: (u16, u16),
        colors: Colors,
    ) -> (Self, Vec<Effect>) {
        let label = file_name(&path);
        let item = if is_directory { Item::Directory(path) } else { Item::File(path) };
        let mut app = Self {
            size,
            colors,
            tree: Tree { nodes: vec![Node::new(label, "", item)], cursor: 0 },
            attributes: Attributes::default(),
            view: View::Start,
            focus: Focus::Tree,
            is_help: false,
            problem: None,
            jobs: [(0, false); 4],
            effects: Vec::new(),
        };
        app.expand(0);
        app.describe();
        let effects = std::mem::take(&mut app.effects);
        (app, effects)
    }

    pub(crate) fn panes(&self) -> Panes {
        Panes::new(self.size, self.focus)
    }

    /// Whether work of a kind is running.
    pub(crate) fn is_busy(&self, lane: Lane) -> bool {
        self.jobs[lane.index()].1
    }

    pub(crate) fn is_any_busy(&self) -> bool {
        Lane::ALL.into_iter().any(|lane| self.is_busy(lane))
    }

    /// Changes the state; returns what to do.
    pub(crate) fn update(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Key(key) if key.kind == KeyEventKind::Release => {}
            Event::Key(key) => self.key(key),
            Event::Resize(width, height) => {
                self.size = (width, height);
                self.refresh();
            }
            Event::Progress(bytes) => {
                if let View::Verification(view) = &mut self.view {
                    view.done = bytes;
                }
            }
            Event::Done(done) => self.done(done),
        }
        std::mem::take(&mut self.effects)
    }

    fn start(&mut self, lane: Lane, job: Job) {
        let (number, is_busy) = &mut self.jobs[lane.index()];
        *number += 1;
        *is_busy = true;
        self.effects.push(Effect::Start(lane, *number, job));
    }

    fn cancel(&mut self, lane: Lane) {
        let (number, is_busy) = &mut self.jobs[lane.index()];
        // A result that is on its way is ignored.
        *number += 1;
        *is_busy = false;
        self.effects.push(Effect::Cancel(lane));
    }

    // Keys.

    fn key(&mut self, key: KeyEvent) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && matches!(key.code, KeyCode::Char('c' | 'q')) {
            self.effects.push(Effect::Quit);
            return;
        }
        if self.is_help {
            self.is_help = false;
            return;
        }
        self.problem = None;
        if self.edits(key) {
            return;
        }
        match key.code {
            KeyCode::Char('q') => self.effects.push(Effect::Quit),
            KeyCode::Char('?') | KeyCode::F(1) => self.is_help = true,
            KeyCode::Tab => self.turn_focus(1),
            KeyCode::BackTab => self.turn_focus(2),
            KeyCode::Esc => self.escape(),
            KeyCode::Char('/') => self.open_search(),
            KeyCode::Char('b') => self.open_bytes(),
            KeyCode::Char('v') => self.open_verification(),
            _ => match self.focus {
                Focus::Tree => self.tree_key(key),
                Focus::Attributes => self.attributes_key(key),
                Focus::View => self.view_key(key),
            },
        }
    }

    /// Passes a key to the line that is edited; returns whether there is one.
    fn edits(&mut self, key: KeyEvent) -> bool {
        if self.focus != Focus::View {
            return false;
        }
        match &mut self.view {
            View::Search(view) if view.is_editing => match key.code {
                KeyCode::Enter | KeyCode::Down | KeyCode::Tab => view.is_editing = false,
                KeyCode::Esc => {
                    view.is_editing = false;
                    self.focus = Focus::Tree;
                }
                _ => {
                    if view.query.key(key) {
                        view.cursor = 0;
                        self.search();
                    }
                }
            },
            View::Table(view) if view.is_editing => match key.code {
                KeyCode::Enter => {
                    view.is_editing = false;
                    view.filter.text().trim().clone_into(&mut view.applied);
                    (view.cursor, view.top, view.offset, view.matched) = (0, 0, 0, None);
                    view.rows.clear();
                    view.problem = None;
                    self.read_rows(0);
                }
                KeyCode::Esc => view.is_editing = false,
                _ => {
                    view.filter.key(key);
                }
            },
            _ => return false,
        }
        true
    }

    fn turn_focus(&mut self, steps: usize) {
        let order = [Focus::Tree, Focus::Attributes, Focus::View];
        let at = order.iter().position(|focus| *focus == self.focus).unwrap_or(0);
        self.focus = order[(at + steps) % order.len()];
        self.refresh();
    }

    fn escape(&mut self) {
        if self.is_busy(Lane::Long) {
            self.cancel(Lane::Long);
            if matches!(self.view, View::Verification(_) | View::Bytes(_)) {
                self.view = View::Start;
                self.focus = Focus::Tree;
            }
            self.problem = Some(CANCELLED.to_owned());
        } else if self.is_busy(Lane::View) {
            self.cancel(Lane::View);
            self.problem = Some(CANCELLED.to_owned());
        } else if matches!(self.view, View::Document(_))
            && let View::Document(view) = std::mem::replace(&mut self.view, View::Start)
        {
            self.view = View::Search(*view.back);
        } else {
            self.focus = Focus::Tree;
        }
    }

    fn tree_key(&mut self, key: KeyEvent) {
        let cursor = self.tree.cursor;
        let page = usize::from(inside(self.panes().tree).height).max(1);
        let last = self.tree.nodes.len().saturating_sub(1);
        if let Some(to) = moved(key.code, cursor, last, page) {
            if self.tree.go(to) {
                self.describe();
            }
            return;
        }
        match key.code {
            KeyCode::Right | KeyCode::Char('l') => match self.tree.selected().map(|node| node.expansion) {
                Some(Expansion::Closed) => self.expand(cursor),
                Some(Expansion::Open) if self.tree.go(cursor + 1) => self.describe(),
                _ => {}
            },
            KeyCode::Left | KeyCode::Char('h') => {
                if !self.tree.collapse(cursor)
                    && let Some(parent) = self.tree.parent(cursor)
                {
                    self.tree.go(parent);
                    self.describe();
                }
            }
            KeyCode::Enter | KeyCode::Char(' ') => self.enter(cursor),
            _ => {}
        }
    }

    /// Expands or collapses a line, or opens its view.
    fn enter(&mut self, at: usize) {
        let Some(node) = self.tree.nodes.get(at) else { return };
        match (&node.item, node.expansion) {
            (item @ (Item::Dataset { .. } | Item::Object { .. }), _) => {
                let item = item.clone();
                self.view = View::Array(Box::new(ArrayView::new(item.clone())));
                self.start(Lane::View, Job::Axes(item));
                self.focus = Focus::View;
            }
            (Item::Table(path) | Item::Column { path, .. }, _) => {
                let column = if let Item::Column { column, .. } = node.item { column } else { 0 };
                let item = Item::Table(path.clone());
                self.view = View::Table(TableView { left: column, ..TableView::new(item.clone()) });
                self.start(Lane::View, Job::Columns(item));
                self.focus = Focus::View;
            }
            (_, Expansion::Closed) => self.expand(at),
            (_, Expansion::Open) => {
                self.tree.collapse(at);
            }
            _ => {}
        }
    }

    fn expand(&mut self, at: usize) {
        if let Some(item) = self.tree.expand(at) {
            self.start(Lane::Tree, Job::Children(item));
        }
    }

    fn describe(&mut self) {
        if let Some(node) = self.tree.selected() {
            let item = node.item.clone();
            self.start(Lane::Describe, Job::Describe(item));
        }
    }

    fn attributes_key(&mut self, key: KeyEvent) {
        let page = usize::from(inside(self.panes().attributes).height).max(1);
        let last = self.attributes.rows.len().saturating_sub(1);
        if let Some(to) = moved(key.code, self.attributes.top, last, page) {
            self.attributes.top = to;
        }
    }

    fn view_key(&mut self, key: KeyEvent) {
        let area = inside(self.panes().view);
        let page = usize::from(area.height).max(1);
        match &mut self.view {
            View::Start => {}
            View::Array(_) => self.array_key(key),
            View::Table(_) => self.table_key(key),
            View::Search(view) => {
                let last = view.found.as_ref().map_or(0, |found| found.hits.len().saturating_sub(1));
                match key.code {
                    KeyCode::Up | KeyCode::Char('k') if view.cursor == 0 => view.is_editing = true,
                    KeyCode::Enter => self.open_document(),
                    code => {
                        if let Some(to) = moved(code, view.cursor, last, (page / 3).max(1)) {
                            view.cursor = to;
                        }
                    }
                }
            }
            View::Document(view) => {
                let last = view.lines.len().saturating_sub(1);
                if let Some(to) = moved(key.code, view.top, last, page) {
                    view.top = to;
                }
            }
            View::Bytes(view) => {
                let last = view.regions.len().saturating_sub(1);
                if let Some(to) = moved(key.code, view.cursor, last, page) {
                    view.cursor = to;
                }
            }
            View::Verification(view) => {
                let last = view.result.as_ref().map_or(0, |found| found.findings.len().saturating_sub(1));
                if let Some(to) = moved(key.code, view.top, last, page) {
                    view.top = to;
                }
            }
        }
    }

    fn array_key(&mut self, key: KeyEvent) {
        let View::Array(view) = &mut self.view else { return };
        let sliders = view.sliders().len();
        let far = key.modifiers.contains(KeyModifiers::SHIFT);
        let step = if far { 10 } else { 1 };
        let is_moved = match key.code {
            KeyCode::Left | KeyCode::Char('h') => view.slide(|at, _| at.saturating_sub(step)),
            KeyCode::Right | KeyCode::Char('l') => view.slide(|at, _| at.saturating_add(step)),
            KeyCode::PageUp => view.slide(|at, _| at.saturating_sub(10)),
            KeyCode::PageDown => view.slide(|at, _| at.saturating_add(10)),
            KeyCode::Home => view.slide(|_, _| 0),
            KeyCode::End => view.slide(|_, last| last),
            KeyCode::Char('a') => view.swap_axis(),
            KeyCode::Up | KeyCode::Char('k') => {
                view.slider = view.slider.saturating_sub(1);
                false
            }
            KeyCode::Down | KeyCode::Char('j') => {
                view.slider = (view.slider + 1).min(sliders.saturating_sub(1));
                false
            }
            KeyCode::Char('c') => {
                let all = Colormap::ALL;
                let at = all.iter().position(|map| *map == view.colormap).unwrap_or(0);
                view.colormap = all[(at + 1) % all.len()];
                false
            }
            KeyCode::Char('s') => {
                view.is_stretched = !view.is_stretched;
                false
            }
            _ => false,
        };
        if is_moved {
            self.read_slice();
        }
    }

    fn table_key(&mut self, key: KeyEvent) {
        let lines = self.table_lines();
        let View::Table(view) = &mut self.view else { return };
        match key.code {
            KeyCode::Char('f') => view.is_editing = true,
            KeyCode::Left | KeyCode::Char('h') => view.left = view.left.saturating_sub(1),
            KeyCode::Right | KeyCode::Char('l') => {
                view.left = (view.left + 1).min(view.columns.len().saturating_sub(1));
            }
            code => {
                let page = lines.max(1);
                let to = match code {
                    KeyCode::Up | KeyCode::Char('k') => view.cursor.saturating_sub(1),
                    KeyCode::Down | KeyCode::Char('j') => view.cursor.saturating_add(1),
                    KeyCode::PageUp => view.cursor.saturating_sub(page),
                    KeyCode::PageDown => view.cursor.saturating_add(page),
                    KeyCode::Home | KeyCode::Char('g') => 0,
                    KeyCode::End | KeyCode::Char('G') => u64::MAX,
                    _ => return,
                };
                view.go(to, lines);
                self.read_missing_rows();
            }
        }
    }

    // Views.

    fn open_search(&mut self) {
        let item = match self.tree.selected().map(|node| &node.item) {
            Some(item) if item.is_directory() => item.clone(),
            Some(item) => Item::File(item.path().to_owned()),
            None => return,
        };
        // The words are kept where the same place is searched again.
        if let View::Search(view) = &mut self.view
            && view.item == item
        {
            view.is_editing = true;
            self.focus = Focus::View;
            return;
        }
        self.view = View::Search(SearchView::new(item));
        self.focus = Focus::View;
        self.search();
    }

    fn search(&mut self) {
        if let View::Search(view) = &mut self.view {
            view.problem = None;
            let job = Job::Search { item: view.item.clone(), query: view.query.text().to_owned() };
            self.start(Lane::View, job);
        }
    }

    fn open_document(&mut self) {
        let View::Search(view) = &mut self.view else { return };
        let Some(hit) = view.found.as_ref().and_then(|found| found.hits.get(view.cursor)) else { return };
        let (item, query) = (view.item.clone(), view.query.text().to_owned());
        let job = Job::Document { item, segment: hit.segment, document: hit.document, query };
        let title = hit.title.clone();
        if let View::Search(back) = std::mem::replace(&mut self.view, View::Start) {
            self.view =
                View::Document(DocumentView { title, lines: Vec::new(), top: 0, back: Box::new(back) });
        }
        self.start(Lane::View, job);
    }

    /// The file of the selected item; nothing for a directory.
    fn selected_file(&mut self) -> Option<PathBuf> {
        let item = self.tree.selected().map(|node| &node.item)?;
        if item.is_directory() {
            self.problem = Some("select a file first".to_owned());
            return None;
        }
        Some(item.path().to_owned())
    }

    fn open_bytes(&mut self) {
        let Some(path) = self.selected_file() else { return };
        self.view =
            View::Bytes(BytesView { title: file_name(&path), is_loading: true, ..BytesView::default() });
        self.focus = Focus::View;
        self.start(Lane::Long, Job::Bytes(path));
    }

    fn open_verification(&mut self) {
        let Some(path) = self.selected_file() else { return };
        let title = file_name(&path);
        self.view = View::Verification(VerificationView { title, ..VerificationView::default() });
        self.focus = Focus::View;
        self.start(Lane::Long, Job::Verify(path));
    }

    /// The lines for rows: without filter, header, and border.
    fn table_lines(&self) -> u64 {
        u64::from(inside(Panes::new(self.size, Focus::View).view).height.saturating_sub(2))
    }

    /// Reads what a new size makes visible.
    fn refresh(&mut self) {
        match &self.view {
            View::Table(_) => self.read_missing_rows(),
            View::Array(view) if view.info.is_some() && view.picture.is_none() => self.read_slice(),
            _ => {}
        }
    }

    fn read_missing_rows(&mut self) {
        let lines = self.table_lines();
        let View::Table(view) = &mut self.view else { return };
        view.go(view.cursor, lines);
        if let Some(offset) = view.missing(lines) {
            self.read_rows(offset);
        }
    }

    fn read_rows(&mut self, offset: u64) {
        let limit = self.table_lines().max(8).saturating_mul(3);
        if let View::Table(view) = &self.view {
            let (item, filter) = (view.item.clone(), view.applied.clone());
            self.start(Lane::View, Job::Rows { item, filter, offset, limit });
        }
    }

    fn read_slice(&mut self) {
        // Twice as many rows as lines, and no fewer values than columns. A larger terminal repeats them.
        let most = u64::from(self.size.1.saturating_mul(2).max(self.size.0)).clamp(160, 1000);
        if let View::Array(view) = &self.view {
            let (item, fixed, plane) = (view.item.clone(), view.fixed(), view.plane.clone());
            self.start(Lane::View, Job::Slice { item, fixed, plane, most });
        }
    }

    // Results.

    fn done(&mut self, done: Done) {
        let (number, is_busy) = &mut self.jobs[done.lane.index()];
        let is_last = done.number == *number;
        *is_busy &= !is_last;
        if done.lane == Lane::Tree {
            if let Ok(Reply::Children(item, children)) = done.reply {
                self.children(&item, children);
            } else if let Err(problem) = done.reply {
                self.problem = Some(problem);
            }
            return;
        }
        // Later work has replaced it.
        if !is_last {
            return;
        }
        match done.reply {
            Ok(reply) => self.show(reply),
            Err(problem) if problem == CANCELLED => {}
            Err(problem) => self.fail(done.lane, problem),
        }
    }

    fn children(&mut self, item: &Item, children: Result<Vec<Node>, String>) {
        match children {
            Ok(children) => {
                let is_only_file = self.tree.nodes.len() == 1 && !item.is_directory();
                self.tree.insert(item, children);
                // The content of a single file is what the user came for.
                if is_only_file && self.tree.nodes.len() > 1 && self.tree.go(1) {
                    self.describe();
                }
            }
            Err(problem) => {
                self.tree.fail(item);
                self.problem = Some(problem);
            }
        }
    }

    fn fail(&mut self, lane: Lane, problem: String) {
        match (&mut self.view, lane) {
            (_, Lane::Describe) => {
                self.attributes = Attributes { rows: vec![("problem".to_owned(), problem)], top: 0 };
            }
            (View::Table(view), _) => view.problem = Some(problem),
            (View::Search(view), _) => {
                view.found = None;
                view.problem = Some(problem);
            }
            (View::Array(view), _) => view.picture = Some(crate::views::Picture::Text(problem)),
            (View::Bytes(_) | View::Verification(_), Lane::Long) => {
                self.view = View::Start;
                self.problem = Some(problem);
            }
            _ => self.problem = Some(problem),
        }
    }

    fn show(&mut self, reply: Reply) {
        match (reply, &mut self.view) {
            (Reply::Attributes(rows), _) => self.attributes = Attributes { rows, top: 0 },
            (Reply::Axes(info), View::Array(view)) => {
                view.set_info(info);
                self.read_slice();
            }
            (Reply::Slice(picture), View::Array(view)) => view.picture = Some(picture),
            (Reply::Columns { columns, rows }, View::Table(view)) => {
                view.left = view.left.min(columns.len().saturating_sub(1));
                (view.columns, view.total) = (columns, Some(rows));
                self.read_rows(0);
            }
            (Reply::Rows { filter, offset, rows }, View::Table(view)) if filter == view.applied => {
                (view.rows, view.offset) = (rows, offset);
                if !filter.is_empty() && view.matched.is_none() {
                    let item = view.item.clone();
                    self.start(Lane::Long, Job::Count { item, filter });
                }
            }
            (Reply::Count { filter, rows }, View::Table(view)) if filter == view.applied => {
                view.matched = Some(rows);
                self.read_missing_rows();
            }
            (Reply::Found(found), View::Search(view)) => {
                view.cursor = view.cursor.min(found.hits.len().saturating_sub(1));
                view.found = Some(found);
            }
            (Reply::Document(lines), View::Document(view)) => {
                view.top = lines.iter().position(|line| line.iter().any(|piece| piece.1)).unwrap_or(0);
                view.top = view.top.saturating_sub(2);
                view.lines = lines;
            }
            (Reply::Bytes { regions, file_len }, View::Bytes(view)) => {
                (view.regions, view.file_len, view.is_loading) = (regions, file_len, false);
            }
            (Reply::Verified(result), View::Verification(view)) => view.result = Some(result),
            // A result for a view that is closed.
            _ => {}
        }
    }
}

/// The new position after a key that moves in a list.
fn moved(code: KeyCode, at: usize, last: usize, page: usize) -> Option<usize> {
    let to = match code {
        KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => at.saturating_add(1),
        KeyCode::PageUp => at.saturating_sub(page),
        KeyCode::PageDown => at.saturating_add(page),
        KeyCode::Home | KeyCode::Char('g') => 0,
        KeyCode::End | KeyCode::Char('G') => last,
        _ => return None,
    };
    Some(to.min(last))
}
