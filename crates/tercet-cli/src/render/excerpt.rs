//! A line of the user's text with the relevant part underlined.

use std::ops::Range;

use tercet::core::escape;

/// Longer lines are truncated around the marked range.
const LINE_CHARS: usize = 96;
/// Characters kept before the marked range.
const CHARS_BEFORE: usize = 48;

/// A line of text with marks below a range of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Excerpt {
    /// The line number, from 1.
    pub(crate) number: usize,
    /// The line, truncated around the marked range.
    pub(crate) line: String,
    /// Spaces and `^`, printed below the line.
    pub(crate) marks: String,
}

impl Excerpt {
    /// The line that contains the start of `at`; `None` for a blank line.
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
        let mut visible: String = rest.by_ref().take(LINE_CHARS).map(in_one_column).collect();
        let cut_before = usize::from(first > 0);
        if cut_before > 0 {
            visible.insert(0, '…');
        }
        let room = visible.chars().count().saturating_sub(before - first + cut_before);
        if rest.next().is_some() {
            visible.push('…');
        }
        let marks =
            format!("{}{}", " ".repeat(before - first + cut_before), "^".repeat(marked.min(room).max(1)));
        Some(Self { number, line: visible, marks })
    }
}

/// The character, or a replacement of width one for control characters.
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

    fn excerpt(text: &str, at: Range<usize>) -> Option<(usize, String, String)> {
        Excerpt::new(text, &at).map(|excerpt| (excerpt.number, excerpt.line, excerpt.marks))
    }

    #[test]
    fn marks_are_below_the_range() {
        let text = "{\n  \"é\": 12,\r\n\t\"x\": [1,\n 2]\n}";
        let range = |part: &str| text.find(part).map(|at| at..at + part.len()).unwrap();
        let excerpt = |at| excerpt(text, at).unwrap();
        assert_eq!(excerpt(range("12")), (2, "  \"é\": 12,".into(), "       ^^".into()));
        assert_eq!(excerpt(range("[1,\n 2]")), (3, " \"x\": [1,".into(), "      ^^^".into()));
        assert_eq!(excerpt(text.len()..text.len()), (5, "}".into(), " ^".into()));
        assert_eq!(excerpt(0..0), (1, "{".into(), "^".into()));
    }

    #[test]
    fn long_lines_are_truncated_around_the_range() {
        let text = format!("{}STOP{}", "a".repeat(5000), "b".repeat(5000));
        let (_, line, marks) = excerpt(&text, 5000..5004).unwrap();
        assert_eq!(line, format!("…{}STOP{}…", "a".repeat(48), "b".repeat(44)));
        assert_eq!(marks, format!("{}^^^^", " ".repeat(49)));
        let (_, line, marks) = excerpt(&text, 0..9000).unwrap();
        assert_eq!((line.chars().count(), marks.len()), (97, 96));
    }

    #[test]
    fn odd_ranges_do_not_panic() {
        assert_eq!(excerpt("", 0..0), None);
        assert_eq!(excerpt("a\n \nb", 2..3), None);
        assert_eq!(excerpt("é", 1..99), Some((1, "é".into(), "^".into())));
        assert_eq!(excerpt("a", 50..60).map(|(_, line, _)| line), Some("a".into()));
        assert_eq!(excerpt("\u{1b}[2J\u{202e}", 1..2), Some((1, "\u{fffd}[2J\u{fffd}".into(), " ^".into())));
    }
}
