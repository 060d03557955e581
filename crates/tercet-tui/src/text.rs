//! Text from files for the terminal: escaped, cut, with marks.

use std::fmt::Display;
use std::ops::Range;

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use tercet::core::escape;
use tercet::core::num::grouped;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Longer values are cut.
const MAX_CHARS: usize = 1000;

/// A piece of text, and whether it is marked as a match.
pub(crate) type Piece = (String, bool);

/// Untrusted text, escaped and cut.
pub(crate) fn safe(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", escape::name(&text[..end])),
        None => escape::name(text).into_owned(),
    }
}

/// An error on one line.
pub(crate) fn message(error: &impl Display) -> String {
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    safe(&lines.join("; "))
}

/// A count with its noun: `1,000 rows`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// The beginning of a text that fits in a number of columns.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        out.push(c);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// A text with marked byte ranges as lines of escaped pieces.
pub(crate) fn marked_lines(text: &str, marks: &[Range<usize>]) -> Vec<Vec<Piece>> {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let range = start..start + line.trim_end_matches(['\n', '\r']).len();
        lines.push(marked(text, range, marks));
        start += line.len();
    }
    lines
}

/// A range of a text as escaped pieces.
pub(crate) fn marked(text: &str, range: Range<usize>, marks: &[Range<usize>]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut push = |range: Range<usize>, is_marked| {
        // Ranges that do not fit the text are not marks.
        if let Some(piece) = text.get(range).filter(|piece| !piece.is_empty()) {
            // Tabs would be escaped, and texts have many.
            pieces.push((escape::name(&piece.replace('\t', "    ")).into_owned(), is_marked));
        }
    };
    let mut at = range.start;
    let first = marks.partition_point(|mark| mark.end <= range.start);
    for mark in marks[first..].iter().take_while(|mark| mark.start < range.end) {
        let (from, to) = (mark.start.max(at), mark.end.min(range.end));
        if from < to && text.is_char_boundary(from) && text.is_char_boundary(to) {
            push(at..from, false);
            push(from..to, true);
            at = to;
        }
    }
    push(at..range.end, false);
    pieces
}

/// A size with a binary unit: `2.6 MiB`.
#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
pub(crate) fn size(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        if value < 1023.95 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    format!("{value:.1} {unit}")
}

/// A shape: `2×3`.
pub(crate) fn shape(extents: &[u64]) -> String {
    match extents {
        [] => "scalar".to_owned(),
        _ => extents.iter().map(ToString::to_string).collect::<Vec<_>>().join("×"),
    }
}

/// The lines of a plot: colors and bold are styles, other text is escaped.
pub(crate) fn styled(text: &str) -> Vec<Line<'static>> {
    text.lines().map(styled_line).collect()
}

fn styled_line(line: &str) -> Line<'static> {
    let mut spans = Vec::new();
    let mut style = Style::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        push_span(before, style, &mut spans);
        let Some((codes, after)) = after.split_once('m') else { return Line::from(spans) };
        style = with_codes(style, codes);
        rest = after;
    }
    push_span(rest, style, &mut spans);
    Line::from(spans)
}

fn push_span(text: &str, style: Style, spans: &mut Vec<Span<'static>>) {
    if !text.is_empty() {
        spans.push(Span::styled(escape::name(text).into_owned(), style));
    }
}

fn with_codes(mut style: Style, codes: &str) -> Style {
    let mut numbers = codes.split(';').map_while(|code| code.parse::<u8>().ok());
    while let Some(code) = numbers.next() {
        match code {
            0 => style = Style::new(),
            1 => style = style.add_modifier(Modifier::BOLD),
            38 | 48 => {
                let color = match numbers.next() {
                    Some(2) => match (numbers.next(), numbers.next(), numbers.next()) {
                        (Some(red), Some(green), Some(blue)) => Color::Rgb(red, green, blue),
                        _ => return style,
                    },
                    Some(5) => match numbers.next() {
                        Some(index) => Color::Indexed(index),
                        None => return style,
                    },
                    _ => return style,
                };
                style = if code == 38 { style.fg(color) } else { style.bg(color) };
            }
            _ => {}
        }
    }
    style
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_is_escaped_and_cut() {
        assert_eq!(safe("a\u{1b}[2J\u{9b}\u{202e}\u{200b}"), "a\\u{1b}[2J\\u{9b}\\u{202e}\\u{200b}");
        assert_eq!(safe(&"x".repeat(5000)).chars().count(), MAX_CHARS + 1);
        assert_eq!(message(&"one\n  two"), "one; two");
    }

    #[test]
    fn text_is_cut_by_columns() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("温度計", 4), "温…");
        assert_eq!(cut("abc", 0), "");
    }

    #[test]
    fn marks_are_pieces_of_lines() {
        let text = "one two\nthree";
        let lines = marked_lines(text, &[4..10, 11..12, 90..99]);
        let piece = |text: &str, marked| (text.to_owned(), marked);
        assert_eq!(lines[0], [piece("one ", false), piece("two", true)]);
        assert_eq!(lines[1], [piece("th", true), piece("r", false), piece("e", true), piece("e", false)]);
        let outside = 1..2;
        assert_eq!(marked("é\u{202e}", 0..5, std::slice::from_ref(&outside)), [piece("é\\u{202e}", false)]);
    }

    #[test]
    fn escape_sequences_of_plots_are_styles() {
        let lines = styled("\x1b[1mtitle\x1b[0m\n\x1b[0;38;2;1;2;3;48;5;7m▀\x1b[0m a\u{202e}");
        assert_eq!(lines[0].spans[0].style, Style::new().add_modifier(Modifier::BOLD));
        assert_eq!(lines[1].spans[0].style, Style::new().fg(Color::Rgb(1, 2, 3)).bg(Color::Indexed(7)));
        assert_eq!(lines[1].spans[1].content, " a\\u{202e}");
        assert_eq!(styled("\x1b[2"), [Line::default()]);
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!([size(0), size(1023), size(1536)], ["0 B", "1023 B", "1.5 KiB"]);
        assert_eq!([shape(&[]), shape(&[2, 3])], ["scalar", "2×3"]);
    }
}
