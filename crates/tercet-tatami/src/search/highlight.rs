//! Highlights: excerpts with the matching terms.

use std::collections::HashSet;
use std::ops::Range;

use serde::Serialize;

use super::Query;
use super::analyzer::Tokenizer;
use super::query::{Scored, TermQuery};
use super::segment::Segment;
use crate::error::Error;

/// Maximum number of terms examined from the start of a text.
const MAX_TERMS: usize = 1 << 20;

/// Fraction of an excerpt before the first match.
const BEFORE: usize = 4;

/// An excerpt of a text with its matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Highlight {
    /// The excerpt, with collapsed white space; `...` marks omitted text.
    pub text: String,
    /// The matching terms, as byte ranges of the excerpt.
    pub marks: Vec<Range<usize>>,
}

impl Segment {
    /// The excerpt of a document, of about `bytes` bytes, with the most query terms.
    pub fn highlight(&self, query: &Query, document: u32, bytes: usize) -> Result<Highlight, Error> {
        Ok(self.highlighter(query, bytes)?.highlight(&self.text(document)?))
    }

    /// The matching terms of a text, such as that of a document, as byte ranges that do not overlap. Terms after the first million are not
    /// examined.
    pub fn matches_in(&self, query: &Query, text: &[u8]) -> Result<Vec<Range<usize>>, Error> {
        let terms = self.expanded_terms(query).map_err(|kind| self.file().error(kind))?;
        let wanted: HashSet<&str> = terms.scored().map(Scored::text).collect();
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut seen = 0;
        self.analyzer().tokenizer().spans(text, |range, term| {
            seen += 1;
            if seen > MAX_TERMS || !wanted.contains(term) {
                return;
            }
            match found.last_mut() {
                // Bigrams overlap: one range covers them.
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => found.push(range),
            }
        });
        Ok(found)
    }

    /// Marks the terms of a query in texts of this segment.
    pub(super) fn highlighter(&self, query: &Query, bytes: usize) -> Result<Highlighter, Error> {
        let query = self.expanded_terms(query).map_err(|kind| self.file().error(kind))?;
        Ok(Highlighter { query, tokenizer: self.analyzer().tokenizer(), bytes })
    }
}

/// Makes excerpts of about this many bytes.
#[derive(Debug)]
pub(super) struct Highlighter {
    query: TermQuery,
    tokenizer: Tokenizer,
    bytes: usize,
}

impl Highlighter {
    pub(super) fn highlight(&mut self, text: &[u8]) -> Highlight {
        highlight(text, &self.query, &mut self.tokenizer, self.bytes)
    }
}

fn highlight(text: &[u8], query: &TermQuery, tokenizer: &mut Tokenizer, bytes: usize) -> Highlight {
    let wanted: HashSet<&str> = query.scored().map(Scored::text).collect();
    let mut found: Vec<(Range<usize>, String)> = Vec::new();
    let mut seen = 0;
    tokenizer.spans(text, |range, term| {
        seen += 1;
        if seen <= MAX_TERMS && wanted.contains(term) {
            found.push((range, term.to_owned()));
        }
    });
    let first = best_start(&found, bytes);
    let anchor = found.get(first).map_or(0, |(range, _)| range.start);
    let start = term_start(text, anchor.saturating_sub(bytes / BEFORE), anchor);
    let end = term_end(text, start, bytes);
    let mut out = Highlight { text: String::new(), marks: Vec::new() };
    if start > 0 {
        out.text.push_str("...");
    }
    let inside = found.iter().filter(|(range, _)| range.start >= start && range.end <= end);
    let mut at = start;
    for (range, _) in inside {
        // Bigrams overlap: one mark covers them.
        if range.start < at && range.end > at {
            push(&mut out.text, &text[at..range.end]);
            if let Some(last) = out.marks.last_mut() {
                last.end = out.text.len();
            }
            at = range.end;
            continue;
        }
        if range.start < at {
            continue;
        }
        push(&mut out.text, &text[at..range.start]);
        let from = out.text.len();
        push(&mut out.text, &text[range.clone()]);
        out.marks.push(from..out.text.len());
        at = range.end;
    }
    push(&mut out.text, &text[at..end]);
    out.text.truncate(out.text.trim_end().len());
    if end < text.len() {
        out.text.push_str("...");
    }
    out
}

/// The first term of the excerpt with the most distinct matches, then the most matches.
fn best_start(found: &[(Range<usize>, String)], bytes: usize) -> usize {
    let (mut best, mut most) = (0, (0, 0));
    let mut end = 0;
    for start in 0..found.len() {
        while end < found.len() && found[end].0.end <= found[start].0.start + bytes - bytes / BEFORE {
            end += 1;
        }
        let here = &found[start..end.max(start)];
        // More than a few make no difference.
        let different: HashSet<&str> = here.iter().take(64).map(|(_, term)| term.as_str()).collect();
        if (different.len(), here.len()) > most {
            (best, most) = (start, (different.len(), here.len()));
        }
    }
    best
}

/// The start of a term from `from` to `anchor`.
fn term_start(text: &[u8], from: usize, anchor: usize) -> usize {
    if from == 0 {
        return 0;
    }
    let space = text[from..anchor].iter().position(u8::is_ascii_whitespace);
    space.map_or(anchor, |space| from + space + 1)
}

/// The end of a term about `bytes` after `start`.
fn term_end(text: &[u8], start: usize, bytes: usize) -> usize {
    let most = text.len().min(start.saturating_add(bytes));
    if most == text.len() {
        return most;
    }
    let space = text[start..most].iter().rposition(u8::is_ascii_whitespace);
    let end = space.filter(|space| *space > bytes / 2).map_or(most, |space| start + space);
    // At a character boundary.
    (0..4).map(|back| end - back.min(end - start)).find(|at| text[*at] & 0xc0 != 0x80).unwrap_or(end)
}

/// Appends a text; white space is collapsed, control characters become question marks.
fn push(out: &mut String, text: &[u8]) {
    for letter in String::from_utf8_lossy(text).chars() {
        if letter.is_whitespace() {
            if !out.is_empty() && !out.ends_with(' ') {
                out.push(' ');
            }
        } else {
            out.push(if letter.is_control() { '\u{fffd}' } else { letter });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Analyzer;

    fn plain(text: &[u8], query: &Query, bytes: usize) -> Highlight {
        highlight(text, &query.analyze(Analyzer::PLAIN), &mut Analyzer::PLAIN.tokenizer(), bytes)
    }

    fn display(text: &str, query: &str, bytes: usize) -> String {
        let found = plain(text.as_bytes(), &Query::parse(query).unwrap(), bytes);
        let mut out = found.text.clone();
        for mark in found.marks.iter().rev() {
            out.insert(mark.end, ']');
            out.insert(mark.start, '[');
        }
        out
    }

    #[test]
    fn excerpts_have_the_most_matches() {
        assert_eq!(display("One  two\n three", "TWO", 200), "One [two] three");
        assert_eq!(display("", "two", 200), "");
        assert_eq!(display("one two", "four", 200), "one two");
        let filler = "lorem ipsum dolor sit amet ".repeat(20);
        let text = format!("red {filler} red green {filler}");
        let found = display(&text, "red green", 60);
        assert!(found.contains("[red] [green]"), "{found}");
        assert!(found.starts_with("...") && found.ends_with("..."), "{found}");
    }

    #[test]
    fn any_text_and_length_has_an_excerpt() {
        let documents: [&[u8]; 4] =
            ["日本語 テキスト word ".repeat(30).leak().as_bytes(), b"\xff\xfe word \xc3", b"word", b"w"];
        for text in documents {
            for bytes in [0, 1, 2, 3, 5, 8, 40, 4000] {
                let found = plain(text, &Query::terms("word テキスト"), bytes);
                for mark in &found.marks {
                    assert!(found.text.is_char_boundary(mark.start) && found.text.is_char_boundary(mark.end));
                }
            }
        }
    }
}
