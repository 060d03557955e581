//! A line of a text with marks under the place that is meant.

use std::ops::Range;

use tercet::core::escape;

/// Longer lines are cut around the place.
const LINE_CHARS: usize = 96;
/// How much of a cut line is shown before the place.
const CHARS_BEFORE: usize = 48;

/// A line of a text and marks under a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Excerpt {
    /// The number of the line, counted from 1.
    pub(crate) number: usize,
    /// The line, or the part of it around the place.
    pub(crate) line: String,
    /// Spaces and marks, to be put under the line.
    pub(crate) marks: String,
}

impl Excerpt {
    /// The line that `at` starts in; nothing where that has nothing to show.
    pub(crate) fn new(text: &str, at: &Range<usize>) -> Option<Self> {
        let start = text.floor_char_boundary(at.start);
        let line_start = text[..start].rfind('\n').map_or(0, |end| end + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |len| start + len);
        let line = &text[line_start..line_end];
        if line.trim().is_empty() {
            return None;
        }
        let end = text.floor_char_boundary(at.end.clamp(start, line_end)).max(start);
        let before = text[line_start..start].chars().count();
        let marked = text[start..end].chars().count();
        let number = text[..line_start].matches('\n').count() + 1;

        let first =
            if line.chars().nth(LINE_CHARS).is_some() { before.saturating_sub(CHARS_BEFORE) } else { 0 };
        let mut rest = line.trim_end_matches('\r').chars().skip(first);
        let mut shown: String = rest.by_ref().take(LINE_CHARS).map(in_one_column).collect();
        let cut_before = usize::from(first > 0);
        if cut_before > 0 {
            shown.insert(0, '…');
        }
        let room = shown.chars().count().saturating_sub(before - first + cut_before);
        if rest.next().is_some() {
            shown.push('…');
        }
        let marks =
            format!("{}{}", " ".repeat(before - first + cut_before), "^".repeat(marked.min(room).max(1)));
        Some(Self { number, line: shown, marks })
    }
}

/// The character, or what stands for it where it would move or command the terminal.
fn in_one_column(c: char) -> char {
    match c {
        '\t' => ' ',
        c if escape::name(c.encode_utf8(&mut [0; 4])).chars().eq([c]) => c,
        _ => '\u{fffd}',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(text: &str, at: Range<usize>) -> Option<(usize, String, String)> {
        Excerpt::new(text, &at).map(|excerpt| (excerpt.number, excerpt.line, excerpt.marks))
    }

    #[test]
    fn marks_are_under_the_place() {
        let text = "{\n  \"é\": 12,\r\n\t\"x\": [1,\n 2]\n}";
        let place = |part: &str| text.find(part).map(|at| at..at + part.len()).unwrap();
        let drawn = |at| drawn(text, at).unwrap();
        assert_eq!(drawn(place("12")), (2, "  \"é\": 12,".into(), "       ^^".into()));
        assert_eq!(drawn(place("[1,\n 2]")), (3, " \"x\": [1,".into(), "      ^^^".into()));
        assert_eq!(drawn(text.len()..text.len()), (5, "}".into(), " ^".into()));
        assert_eq!(drawn(0..0), (1, "{".into(), "^".into()));
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let text = format!("{}STOP{}", "a".repeat(5000), "b".repeat(5000));
        let (_, line, marks) = drawn(&text, 5000..5004).unwrap();
        assert_eq!(line, format!("…{}STOP{}…", "a".repeat(48), "b".repeat(44)));
        assert_eq!(marks, format!("{}^^^^", " ".repeat(49)));
        let (_, line, marks) = drawn(&text, 0..9000).unwrap();
        assert_eq!((line.chars().count(), marks.len()), (97, 96));
    }

    #[test]
    fn no_place_is_too_strange() {
        assert_eq!(drawn("", 0..0), None);
        assert_eq!(drawn("a\n \nb", 2..3), None);
        assert_eq!(drawn("é", 1..99), Some((1, "é".into(), "^".into())));
        assert_eq!(drawn("a", 50..60).map(|(_, line, _)| line), Some("a".into()));
        assert_eq!(drawn("\u{1b}[2J\u{202e}", 1..2), Some((1, "\u{fffd}[2J\u{fffd}".into(), " ^".into())));
    }
}
