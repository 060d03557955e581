//! The byte layout of a file as a tree.

use serde::Serialize;
use tercet::core::{Outline, escape};

use crate::failure::Failure;
use crate::ui::{DIM, HEADING, Ui, paint};

/// Longer values are truncated in text; `--json` prints them completely.
const VALUE_CHARS: usize = 100;

/// The JSON of an outline.
#[derive(Serialize)]
struct OutlineJson<'a> {
    path: &'a str,
    file_len: u64,
    outline: &'a Outline,
}

/// Prints the outline of a file; its name is a heading if it is one of several.
pub(crate) fn print_outline(
    path: &str,
    file_len: u64,
    outline: &Outline,
    json: bool,
    out: &mut Ui,
) -> Result<(), Failure> {
    if json {
        return out.json(&OutlineJson { path, file_len, outline });
    }
    if out.is_captured() {
        out.line(format_args!("file: {}", escape::name(path)))?;
    }
    tree_lines(outline).into_iter().try_for_each(|line| out.line(line))
}

/// A header line, then one line per node.
fn tree_lines(outline: &Outline) -> Vec<String> {
    let (mut spans, mut lens, mut names) = ("bytes".len(), "length".len(), 0);
    outline.walk(&mut |depth, node| {
        spans = spans.max(node.span.to_string().len());
        lens = lens.max(node.span.len().to_string().len());
        if node.parts.is_empty() {
            names = names.max(2 * depth + escape::name(&node.name).chars().count());
        }
    });
    let mut lines = vec![paint(DIM, format_args!("{:<spans$}  {:>lens$}  field", "bytes", "length"))];
    outline.walk(&mut |depth, node| {
        let place = format!("{:<spans$}  {:>lens$}", node.span.to_string(), node.span.len());
        let indent = " ".repeat(2 * depth);
        let name = escape::name(&node.name);
        lines.push(match &node.value {
            Some(value) => {
                let width = names.saturating_sub(indent.len());
                format!("{place}  {indent}{name:<width$}  {}", short(value))
            }
            None => format!("{place}  {indent}{}", paint(HEADING, name)),
        });
    });
    lines
}

fn short(value: &str) -> String {
    let value = escape::name(value);
    match value.char_indices().nth(VALUE_CHARS) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use tercet::core::Span;

    use super::*;

    #[test]
    fn long_values_are_truncated_and_names_escaped() {
        let mut root = Outline::region("root\u{1b}[2J", Span::first(300));
        root.field("text", 300, "é".repeat(101));
        let lines = tree_lines(&root);
        assert!(lines[1].contains("root\\u{1b}[2J"), "{}", lines[1]);
        assert!(lines[2].ends_with(&format!("{}…", "é".repeat(100))), "{}", lines[2]);
    }
}
