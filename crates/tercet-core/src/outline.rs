//! The byte layout of a file as a tree of named spans.

use std::fmt;

use serde::Serialize;

use crate::Span;
use crate::num::counted;

/// A node of the layout tree: a named span, its decoded value, and its parts.
///
/// Front ends print or draw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outline {
    /// The name, as the format's specification gives it.
    pub name: String,
    /// The bytes.
    pub span: Span,
    /// The decoded value of a leaf.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The parts, in file order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Outline>,
}

impl Outline {
    /// A region that will hold parts.
    pub fn region(name: impl Into<String>, span: Span) -> Self {
        Self { name: name.into(), span, value: None, parts: Vec::new() }
    }

    /// A field with its decoded value.
    pub fn leaf(name: impl Into<String>, span: Span, value: impl fmt::Display) -> Self {
        Self { name: name.into(), span, value: Some(value.to_string()), parts: Vec::new() }
    }

    /// Appends a field of `len` bytes where the last part ended.
    pub fn field(&mut self, name: impl Into<String>, len: u64, value: impl fmt::Display) {
        let start = self.parts.last().map_or(self.span.start(), |last| last.span.end());
        let span = Span::clamped(start, len);
        self.parts.push(Self::leaf(name, span, value));
    }

    /// Adds a leaf called `name` for every range of bytes that the parts of a region leave uncovered, at every depth.
    /// Parts are sorted by their first byte.
    pub fn fill_gaps(&mut self, name: &str) {
        if self.parts.is_empty() {
            return;
        }
        let mut parts = std::mem::take(&mut self.parts);
        parts.sort_by_key(|part| part.span.start());
        let mut end = self.span.start();
        for mut part in parts {
            part.fill_gaps(name);
            self.parts.extend(gap(name, end, part.span.start()));
            end = end.max(part.span.end());
            self.parts.push(part);
        }
        self.parts.extend(gap(name, end, self.span.end()));
    }

    /// Visits the tree in file order with the depth of each node.
    pub fn walk<'a>(&'a self, visit: &mut impl FnMut(usize, &'a Outline)) {
        fn go<'a>(node: &'a Outline, depth: usize, visit: &mut impl FnMut(usize, &'a Outline)) {
            visit(depth, node);
            for part in &node.parts {
                go(part, depth + 1, visit);
            }
        }
        go(self, 0, visit);
    }
}

fn gap(name: &str, start: u64, end: u64) -> Option<Outline> {
    let span = Span::between(start, end).filter(|span| !span.is_empty())?;
    Some(Outline::leaf(name, span, counted(span.len(), "byte")))
}

/// How much of a file an outline covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutlineOptions {
    /// The largest number of rows of each table; by default all.
    pub max_rows: Option<u64>,
    /// Whether parts are listed whose headers must be read: the pages of `.tatami` files.
    pub pages: bool,
}

impl Default for OutlineOptions {
    fn default() -> Self {
        Self { max_rows: None, pages: true }
    }
}

impl OutlineOptions {
    /// All rows of all tables, with pages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether pages are listed.
    pub fn with_pages(mut self, pages: bool) -> Self {
        self.pages = pages;
        self
    }

    /// Sets the largest number of rows of each table.
    pub fn with_max_rows(mut self, max_rows: Option<u64>) -> Self {
        self.max_rows = max_rows;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_follow_each_other() {
        let mut region = Outline::region("superblock", Span::at(100, 32).unwrap());
        region.field("magic", 4, "TETR");
        region.field("layout_version", 4, 1);
        assert_eq!(region.parts[1].span.to_string(), "104..108");
        let mut names = Vec::new();
        region.walk(&mut |depth, node| names.push((depth, node.name.as_str())));
        assert_eq!(names, [(0, "superblock"), (1, "magic"), (1, "layout_version")]);
    }

    #[test]
    fn gaps_become_leaves() {
        let mut root = Outline::region("file", Span::first(32));
        let mut table = Outline::region("table", Span::at(16, 12).unwrap());
        table.field("rows", 4, 3);
        root.parts = vec![table, Outline::leaf("magic", Span::at(4, 4).unwrap(), "m")];
        root.fill_gaps("unused");
        let mut leaves = Vec::new();
        root.walk(&mut |_, node| {
            if node.parts.is_empty() {
                leaves.push((node.name.as_str(), node.span.to_string()));
            }
        });
        let expected = [
            ("unused", "0..4"),
            ("magic", "4..8"),
            ("unused", "8..16"),
            ("rows", "16..20"),
            ("unused", "20..28"),
            ("unused", "28..32"),
        ];
        assert_eq!(leaves, expected.map(|(name, span)| (name, span.to_owned())));
    }
}
