//! Text with marked ranges, for pages.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;

/// A text with its matches.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Marked {
    text: String,
    /// Ranges of the text in UTF-16 code units, in order.
    marks: Vec<[usize; 2]>,
    /// The text for HTML: escaped, then marked.
    html: String,
}

impl Marked {
    /// `marks` are ranges of bytes, in order. Those that do not fit are skipped.
    pub(super) fn new(text: String, marks: &[Range<usize>]) -> Self {
        let (mut html, mut units) = (String::with_capacity(text.len() + marks.len() * 13), Vec::new());
        let (mut at, mut at_unit) = (0, 0);
        for mark in marks {
            let (Some(before), Some(marked)) = (text.get(at..mark.start), text.get(mark.clone())) else {
                continue;
            };
            if marked.is_empty() {
                continue;
            }
            let start = at_unit + before.encode_utf16().count();
            let end = start + marked.encode_utf16().count();
            units.push([start, end]);
            escape(before, &mut html);
            html.push_str("<mark>");
            escape(marked, &mut html);
            html.push_str("</mark>");
            (at, at_unit) = (mark.end, end);
        }
        escape(&text[at..], &mut html);
        Self { text, marks: units, html }
    }

    pub(super) fn len(&self) -> usize {
        self.marks.len()
    }
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_made_after_escaping() {
        let marked = Marked::new("é<b>𝄞mark</b>".to_owned(), &[5..13, 13..17]);
        assert_eq!(marked.marks, [[4, 10], [10, 14]]);
        assert_eq!(
            marked.html,
            "é&lt;b<mark>&gt;𝄞mar</mark>".replace("b<mark>&gt;𝄞mar</mark>", "b&gt;")
                + "<mark>𝄞mark</mark><mark>&lt;/b&gt;</mark>"
        );
        assert_eq!(Marked::new("<mark>".to_owned(), &[]).html, "&lt;mark&gt;");
    }

    #[test]
    fn ranges_that_do_not_fit_are_left_out() {
        let marked = Marked::new("aé".to_owned(), &[0..1, 0..1, 1..2, 2..9]);
        assert_eq!((marked.marks, marked.html.as_str()), (vec![[0, 1]], "<mark>a</mark>é"));
    }
}
