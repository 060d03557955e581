//! Drawing of the state. Nothing is drawn outside of its area, however small the terminal is.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};
use tercet::core::num::grouped;
use tercet::plot::{Colors, TextOptions};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr};

use crate::app::{App, Focus, inside};
use crate::edit::Edit;
use crate::text::{Piece, counted, cut, size, styled};
use crate::tree::{Expansion, Node};
use crate::views::{
    ArrayView, BytesView, DocumentView, Picture, SearchView, TableView, VerificationView, View,
};
use crate::work::Lane;

/// The widest column of a table.
const MAX_COLUMN: usize = 40;

const HELP: &str = "\
Keys
  Tab, Shift+Tab   next, previous pane
  ↑ ↓ PgUp PgDn Home End   move (also j k g G)
  → ←              expand, collapse (also l h)
  Enter            open an array, a table, a message
  /                search documents: a segment, or a directory of segments
  b                byte layout of the file
  v                verify the file
  Esc              cancel, or back
  q, Ctrl+C        quit

Arrays
  ← →              move the slider by 1; with Shift, or PgUp PgDn, by 10
  ↑ ↓              choose a slider
  a                show the axis of the slider
  c, s             next color map; colors of the 2nd to 98th percentile

Tables
  f                filter rows, as with --where: status = 200 and url like \"https://a%\"
  ← →              first visible column

Search
  type             search; Enter or ↓ goes to the results, / back to the query
  Enter            show the document with its matches";

/// Draws the state.
pub(crate) fn draw(frame: &mut Frame<'_>, app: &App) {
    let panes = app.panes();
    draw_tree(frame, app, panes.tree);
    draw_attributes(frame, app, panes.attributes);
    draw_view(frame, app, panes.view);
    draw_status(frame, app, panes.status);
    if app.is_help {
        draw_help(frame, app);
    }
}

fn colored(app: &App, style: Style, color: Color) -> Style {
    if app.colors == Colors::None { style } else { style.fg(color) }
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn reversed() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}

fn mark(app: &App) -> Style {
    match app.colors {
        Colors::None => bold().add_modifier(Modifier::UNDERLINED),
        _ => bold().fg(Color::Yellow),
    }
}

fn bad(app: &App) -> Style {
    colored(app, bold(), Color::Red)
}

/// Draws a border with a title; returns the area inside.
fn pane(frame: &mut Frame<'_>, app: &App, area: Rect, title: &str, is_focused: bool) -> Rect {
    let inner = inside(area);
    if inner != area {
        let style = if is_focused { colored(app, bold(), Color::Cyan) } else { dim() };
        let width = usize::from(area.width.saturating_sub(4));
        let title = Span::styled(format!(" {} ", cut(title, width.saturating_sub(2))), style);
        frame.render_widget(Block::bordered().border_style(style).title(title), area);
    }
    inner
}

/// Draws lines, one per row of the area.
fn lines<'a>(frame: &mut Frame<'_>, area: Rect, lines: impl IntoIterator<Item = Line<'a>>) {
    let area = area.intersection(frame.area());
    for (row, line) in (0..area.height).zip(lines) {
        frame.render_widget(line, Rect::new(area.x, area.y + row, area.width, 1));
    }
}

/// The first visible line of a list, so that the selected one is visible.
fn first_visible(cursor: usize, height: usize, len: usize) -> usize {
    let half = height / 2;
    cursor.saturating_sub(half).min(len.saturating_sub(height))
}

/// Text on the left and on the right of a line.
fn two_sides(left: &str, right: &str, width: usize) -> (String, String) {
    let right = cut(right, width / 2);
    let left = cut(left, width.saturating_sub(right.width() + 1));
    let gap = width.saturating_sub(left.width() + right.width());
    (left, format!("{}{right}", " ".repeat(gap)))
}

fn draw_tree(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let is_focused = app.focus == Focus::Tree;
    let area = pane(frame, app, area, "files", is_focused);
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let nodes = &app.tree.nodes;
    let first = first_visible(app.tree.cursor, height, nodes.len());
    let line = |(number, node): (usize, &Node)| {
        let sign = match node.expansion {
            Expansion::Leaf => "  ",
            Expansion::Closed => "▸ ",
            Expansion::Loading => "… ",
            Expansion::Open => "▾ ",
        };
        let left = format!("{}{sign}{}", "  ".repeat(node.depth.min(20)), node.label);
        let (left, right) = two_sides(&left, &node.note, width);
        if number == app.tree.cursor {
            let style = if is_focused { reversed() } else { bold() };
            return Line::styled(left + &right, style);
        }
        Line::from(vec![Span::raw(left), Span::styled(right, dim())])
    };
    lines(frame, area, nodes.iter().enumerate().skip(first).take(height).map(line));
}

fn draw_attributes(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let area = pane(frame, app, area, "attributes", app.focus == Focus::Attributes);
    let rows = &app.attributes.rows;
    let widest = rows.iter().map(|(name, _)| name.width()).max().unwrap_or(0);
    let names = widest.min(usize::from(area.width) / 2);
    let visible = rows.iter().skip(app.attributes.top).map(|(name, value)| {
        let name = cut(name, names);
        let gap = names.saturating_sub(name.width()) + 1;
        let value = cut(value, usize::from(area.width).saturating_sub(names + 1));
        Line::from(vec![Span::styled(name, dim()), Span::raw(" ".repeat(gap)), Span::raw(value)])
    });
    lines(frame, area, visible);
}

fn draw_view(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let is_focused = app.focus == Focus::View;
    let title = match &app.view {
        View::Start => "tercet".to_owned(),
        View::Array(view) => view.info.as_ref().map_or_else(String::new, |info| info.title.clone()),
        View::Table(view) => crate::read::file_name(view.item.path()),
        View::Search(view) => format!("search {}", crate::read::file_name(view.item.path())),
        View::Document(view) => view.title.clone(),
        View::Bytes(view) => format!("bytes of {}", view.title),
        View::Verification(view) => format!("verify {}", view.title),
    };
    let area = pane(frame, app, area, &title, is_focused);
    if area.is_empty() {
        return;
    }
    match &app.view {
        View::Start => {
            let text = ["Enter opens the selected item.", "/ searches, b shows bytes, v verifies, ? helps."];
            lines(frame, area, text.map(|text| Line::styled(cut(text, usize::from(area.width)), dim())));
        }
        View::Array(view) => draw_array(frame, app, view, area),
        View::Table(view) => draw_table(frame, app, view, area),
        View::Search(view) => draw_search(frame, app, view, area),
        View::Document(view) => draw_document(frame, app, view, area),
        View::Bytes(view) => draw_bytes(frame, view, area),
        View::Verification(view) => draw_verification(frame, app, view, area),
    }
}

/// Draws text that is wrapped.
fn paragraph(frame: &mut Frame<'_>, area: Rect, text: &str, style: Style) {
    frame.render_widget(Paragraph::new(text).style(style).wrap(Wrap { trim: true }), area);
}

fn draw_array(frame: &mut Frame<'_>, app: &App, view: &ArrayView, area: Rect) {
    let sliders = view.sliders();
    let shown = sliders.len().min(usize::from(area.height / 3));
    let width = usize::from(area.width);
    // The chosen slider is always visible.
    let first = view.slider.saturating_sub(shown.saturating_sub(1));
    let slider = |number: usize| {
        let (axis, info) = (sliders[number], view.info.as_ref());
        let Some(info) = info.and_then(|info| info.axes.get(axis)) else { return Line::default() };
        let position = view.positions.get(axis).copied().unwrap_or(0);
        let label = info.label(position).map(|label| format!(" {label}")).unwrap_or_default();
        let text = format!(" {}{label} ({position} of {})", info.name, info.size);
        let track = width.saturating_sub(text.width() + 3).min(40);
        let steps = u128::from(info.size.saturating_sub(1).max(1));
        let at = u128::from(position) * track.saturating_sub(1) as u128 / steps;
        let bar: String = (0..track).map(|column| if column as u128 == at { '●' } else { '─' }).collect();
        let style = if number == view.slider && app.focus == Focus::View { reversed() } else { Style::new() };
        let arrow = if number == view.slider { "▸ " } else { "  " };
        Line::styled(cut(&format!("{arrow}{bar}{text}"), width), style)
    };
    let rows = u16::try_from(shown).unwrap_or(0);
    lines(frame, Rect { height: rows, ..area }, (first..first + shown).map(slider));
    let area = Rect { y: area.y + rows, height: area.height - rows, ..area };
    match &view.picture {
        None => paragraph(frame, area, "reading…", dim()),
        Some(Picture::Text(text)) => paragraph(frame, area, text, Style::new()),
        Some(Picture::Plot { plot, stretch }) => {
            let range = stretch.filter(|_| view.is_stretched);
            let plot = plot.as_ref().clone().with_range(range);
            // Title, axes, scale and remarks are up to ten lines.
            let below = if plot.y.is_some() { 9 } else { 6 } + plot.remarks.len();
            let height = usize::from(area.height).saturating_sub(below).max(3);
            let options = TextOptions::default()
                .with_width(width)
                .with_height(Some(height))
                .with_colors(app.colors)
                .with_colormap(view.colormap);
            lines(frame, area, styled(&plot.to_text(&options)));
        }
    }
}

/// The line with the text that is edited, and the cursor of the terminal.
fn draw_edit(frame: &mut Frame<'_>, area: Rect, label: &str, edit: &Edit, is_editing: bool) {
    let shown = crate::text::safe(edit.text());
    let before = crate::text::safe(edit.before_cursor());
    let width = usize::from(area.width).saturating_sub(label.width() + 1);
    // The end of a long line is visible.
    let hidden = before.width().saturating_sub(width);
    let mut skipped = 0;
    let visible = shown.chars().skip_while(|c| {
        skipped += c.width().unwrap_or(0);
        skipped <= hidden
    });
    let text: String = visible.collect();
    let style = if is_editing { bold() } else { Style::new() };
    lines(frame, area, [Line::from(vec![Span::styled(label, dim()), Span::styled(text, style)])]);
    let column = label.width() + before.width() - hidden;
    if is_editing && column < usize::from(area.width) && area.height > 0 {
        frame.set_cursor_position(Position::new(area.x + u16::try_from(column).unwrap_or(0), area.y));
    }
}

fn draw_table(frame: &mut Frame<'_>, app: &App, view: &TableView, area: Rect) {
    let filter_area = Rect { height: 1, ..area };
    if view.is_editing || !view.applied.is_empty() {
        draw_edit(frame, filter_area, "where ", &view.filter, view.is_editing && app.focus == Focus::View);
    } else {
        let text = cut("f filters rows", usize::from(area.width));
        lines(frame, filter_area, [Line::styled(text, dim())]);
    }
    let area = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    if let Some(problem) = &view.problem {
        paragraph(frame, area, problem, bad(app));
        return;
    }
    if area.height == 0 {
        return;
    }
    let height = u64::from(area.height.saturating_sub(1));
    let visible = |row: u64| {
        let at = usize::try_from(row.checked_sub(view.offset)?).ok()?;
        view.rows.get(at)
    };
    let rows: Vec<(u64, Option<&Vec<String>>)> = (view.top..view.top.saturating_add(height))
        .take_while(|row| *row < view.row_count().max(view.offset + view.rows.len() as u64))
        .map(|row| (row, visible(row)))
        .collect();
    let numbers = rows.last().map_or(1, |(row, _)| row.to_string().len());
    let mut widths = Vec::new();
    let mut left = usize::from(area.width).saturating_sub(numbers);
    for (column, found) in view.columns.iter().enumerate().skip(view.left) {
        let cells = rows.iter().filter_map(|(_, row)| row.as_ref()?.get(column));
        let widest = cells.map(|cell| cell.width()).max().unwrap_or(0).max(found.name.width());
        let width = widest.min(MAX_COLUMN).min(left.saturating_sub(1));
        if width == 0 {
            break;
        }
        left -= width + 1;
        widths.push((column, width));
    }
    let cell = |text: &str, width: usize, is_right: bool| {
        let text = cut(text, width);
        let gap = " ".repeat(width.saturating_sub(text.width()));
        if is_right { format!(" {gap}{text}") } else { format!(" {text}{gap}") }
    };
    let header: String = widths
        .iter()
        .map(|&(column, width)| cell(&view.columns[column].name, width, view.columns[column].is_number))
        .collect();
    let header = Line::styled(format!("{:numbers$}{header}", ""), bold());
    let body = rows.iter().map(|(number, row)| {
        let cells: String = match row {
            None => " …".to_owned(),
            Some(row) => {
                let text = |column: usize| row.get(column).map_or("", String::as_str);
                let columns = widths.iter();
                columns
                    .map(|&(column, width)| cell(text(column), width, view.columns[column].is_number))
                    .collect()
            }
        };
        let is_selected = *number == view.cursor;
        let style = if is_selected && app.focus == Focus::View { reversed() } else { Style::new() };
        let number = cut(&format!("{number:numbers$}"), usize::from(area.width));
        Line::from(vec![Span::styled(number, dim()), Span::styled(cells, style)])
    });
    lines(frame, area, std::iter::once(header).chain(body));
    if view.total.is_some() && rows.is_empty() && !app.is_busy(Lane::View) {
        paragraph(
            frame,
            Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area },
            "no rows",
            dim(),
        );
    }
}

fn pieces<'a>(app: &App, pieces: &'a [Piece]) -> Line<'a> {
    let span = |(text, is_marked): &'a Piece| {
        Span::styled(text.as_str(), if *is_marked { mark(app) } else { Style::new() })
    };
    Line::from(pieces.iter().map(span).collect::<Vec<_>>())
}

fn draw_search(frame: &mut Frame<'_>, app: &App, view: &SearchView, area: Rect) {
    let is_focused = app.focus == Focus::View;
    draw_edit(frame, Rect { height: 1, ..area }, "/ ", &view.query, view.is_editing && is_focused);
    let area = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    if let Some(problem) = &view.problem {
        paragraph(frame, area, problem, bad(app));
        return;
    }
    let Some(found) = &view.found else { return };
    let width = usize::from(area.width);
    lines(frame, area, [Line::styled(cut(&found.summary, width), dim())]);
    // A hit has a line for the title and two for the excerpt.
    let visible = usize::from(area.height.saturating_sub(1) / 3).max(1);
    let first = first_visible(view.cursor, visible, found.hits.len());
    let mut y = area.y + 1;
    for (number, hit) in found.hits.iter().enumerate().skip(first).take(visible) {
        if y >= area.bottom() {
            break;
        }
        let (title, score) = two_sides(&hit.title, &hit.score, width);
        let is_selected = number == view.cursor && !view.is_editing && is_focused;
        let style = if is_selected { reversed() } else { bold() };
        let title = Line::from(vec![Span::styled(title, style), Span::styled(score, dim())]);
        lines(frame, Rect { y, height: 1, ..area }, [title]);
        let height = area.bottom().saturating_sub(y + 1).min(2);
        let excerpt = Paragraph::new(pieces(app, &hit.snippet)).wrap(Wrap { trim: true });
        frame.render_widget(excerpt, Rect { y: y + 1, height, ..area });
        y += 3;
    }
}

fn draw_document(frame: &mut Frame<'_>, app: &App, view: &DocumentView, area: Rect) {
    let visible = view.lines.iter().skip(view.top).take(usize::from(area.height));
    let text: Vec<Line<'_>> = visible.map(|line| pieces(app, line)).collect();
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }), area);
}

fn draw_bytes(frame: &mut Frame<'_>, view: &BytesView, area: Rect) {
    if view.is_loading {
        paragraph(frame, area, "reading…", dim());
        return;
    }
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    // The place of the selected region in the file.
    if let Some(region) = view.regions.get(view.cursor) {
        let place = |byte: u64| {
            let column = u128::from(byte) * width as u128 / u128::from(view.file_len.max(1));
            usize::try_from(column).unwrap_or(width).min(width)
        };
        let from = place(region.start).min(width.saturating_sub(1));
        let to = place(region.end).max(from + 1);
        let bar: String =
            (0..width).map(|column| if (from..to).contains(&column) { '█' } else { '░' }).collect();
        lines(frame, area, [Line::raw(bar)]);
    }
    let area = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let first = first_visible(view.cursor, height.saturating_sub(1), view.regions.len());
    let line = |(number, region): (usize, &crate::views::RegionLine)| {
        let left = match region.value.as_str() {
            "" => region.name.clone(),
            value => format!("{}: {value}", region.name),
        };
        let left = format!("{}{left}", "  ".repeat(region.depth.min(20)));
        let range =
            format!("{}..{} {}", region.start, region.end, size(region.end.saturating_sub(region.start)));
        let (left, right) = two_sides(&left, &range, width);
        if number == view.cursor {
            return Line::styled(left + &right, reversed());
        }
        Line::from(vec![Span::raw(left), Span::styled(right, dim())])
    };
    lines(frame, area, view.regions.iter().enumerate().skip(first).take(height).map(line));
}

fn draw_verification(frame: &mut Frame<'_>, app: &App, view: &VerificationView, area: Rect) {
    let width = usize::from(area.width);
    let Some(result) = &view.result else {
        let text = format!("verifying… {} read; Esc cancels", size(view.done));
        paragraph(frame, area, &text, dim());
        return;
    };
    let failures = result.findings.iter().filter(|(is_ok, _)| !is_ok).count() as u64;
    let verdict = if result.is_ok {
        Line::styled("valid", colored(app, bold(), Color::Green))
    } else {
        Line::styled(cut(&format!("fails verification: {}", counted(failures, "problem")), width), bad(app))
    };
    let finding = |(is_ok, text): &(bool, String)| {
        let sign = if *is_ok { "✓" } else { "✗" };
        let style = if *is_ok { Style::new() } else { bad(app) };
        Line::styled(cut(&format!("{sign} {text}"), width), style)
    };
    lines(frame, area, std::iter::once(verdict).chain(result.findings.iter().skip(view.top).map(finding)));
}

fn draw_status(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let width = usize::from(area.width);
    if let Some(problem) = &app.problem {
        lines(frame, area, [Line::styled(cut(problem, width), bad(app))]);
        return;
    }
    let state = match &app.view {
        View::Table(view) if view.total.is_some() => {
            let matched = match view.matched {
                Some(matched) => format!("{} of ", grouped(matched)),
                None if view.applied.is_empty() => String::new(),
                None => "? of ".to_owned(),
            };
            format!("{matched}{}", counted(view.total.unwrap_or(0), "row"))
        }
        View::Array(view) => {
            let stretch = if view.is_stretched { ", 2–98 %" } else { "" };
            format!("{}{stretch}", view.colormap.name())
        }
        _ => String::new(),
    };
    let work = if app.is_any_busy() { "reading… " } else { "" };
    let keys = "Tab pane  Enter open  / search  b bytes  v verify  ? help  q quit";
    let (left, right) = two_sides(keys, &format!("{work}{state}"), width);
    lines(frame, area, [Line::from(vec![Span::styled(left, dim()), Span::raw(right)])]);
}

fn draw_help(frame: &mut Frame<'_>, app: &App) {
    let area = frame.area();
    let (rows, columns) = (HELP.lines().count(), HELP.lines().map(UnicodeWidthStr::width).max().unwrap_or(0));
    let height = u16::try_from(rows + 2).unwrap_or(u16::MAX).min(area.height);
    let width = u16::try_from(columns + 4).unwrap_or(u16::MAX).min(area.width);
    let place = Rect::new((area.width - width) / 2, (area.height - height) / 2, width, height);
    frame.render_widget(Clear, place);
    let inner = pane(frame, app, place, "help: any key closes it", true);
    lines(frame, inner, HELP.lines().map(|line| Line::raw(cut(line, usize::from(inner.width)))));
}
