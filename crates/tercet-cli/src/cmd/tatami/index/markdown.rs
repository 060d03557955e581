//! The title of a Markdown document. The text is indexed unchanged: markup separates words anyway.

/// The first non-empty heading of any level.
pub(super) fn title(text: &str) -> Option<&str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // The open code fence, and whether a comment is open.
    let (mut fence, mut in_comment): (Option<&str>, bool) = (None, false);
    // The previous line, if an underline would make it a heading.
    let mut before: Option<&str> = None;
    for line in text.lines() {
        let (bare, indent) = indented(line);
        if let Some(open) = fence {
            // At least as many characters as the opening fence, and nothing else.
            let closes =
                bare.starts_with(open) && bare.trim_end().bytes().all(|sign| open.as_bytes()[0] == sign);
            if closes && indent < 4 {
                fence = None;
            }
            continue;
        }
        if in_comment {
            in_comment = !line.contains("-->");
            continue;
        }
        let last = before.take();
        if bare.is_empty() {
            continue;
        }
        if indent >= 4 {
            // A continuation of a paragraph, or else indented code.
            before = last;
            continue;
        }
        if let Some(open) = opening(bare) {
            fence = Some(open);
        } else if let Some(comment) = bare.strip_prefix("<!--") {
            in_comment = !comment.contains("-->");
        } else if let Some(heading) = atx_heading(bare) {
            if !heading.is_empty() {
                return Some(heading);
            }
        } else if let Some(heading) = last
            && is_underline(bare)
        {
            return Some(heading);
        } else if !is_other(bare) {
            before = Some(bare.trim_end());
        }
    }
    None
}

/// A line without indentation, and the indentation.
fn indented(line: &str) -> (&str, usize) {
    let bare = line.trim_start_matches([' ', '\t']);
    let indent = line[..line.len() - bare.len()].bytes().map(|byte| if byte == b'\t' { 4 } else { 1 }).sum();
    (bare.trim_end(), indent)
}

/// The opening code fence.
fn opening(line: &str) -> Option<&str> {
    let sign = line.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let (signs, rest) = line.split_at(line.len() - line.trim_start_matches(sign).len());
    (signs.len() >= 3 && !(sign == '`' && rest.contains('`'))).then_some(signs)
}

/// The heading of a line with one to six `#`.
fn atx_heading(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches('#');
    if !(1..=6).contains(&(line.len() - rest.len())) || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let heading = rest.trim();
    let bare = heading.trim_end_matches('#');
    // A closing sequence of `#` must follow a space.
    let is_separate = bare.is_empty() || bare.ends_with([' ', '\t']);
    Some(if is_separate { bare.trim_end() } else { heading })
}

fn is_underline(line: &str) -> bool {
    line.bytes().all(|sign| sign == b'=') || line.bytes().all(|sign| sign == b'-')
}

/// Whether a line cannot be a heading: item, quote, table, rule.
fn is_other(line: &str) -> bool {
    let is_item = ["- ", "* ", "+ ", ">", "|", "<"].iter().any(|start| line.starts_with(start));
    is_item || is_underline(line) || line.bytes().all(|sign| matches!(sign, b'*' | b'_' | b' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_heading_is_the_title() {
        assert_eq!(title("text\n# One  #\n# Two"), Some("One"));
        assert_eq!(title("## Two\n# One"), Some("Two"));
        assert_eq!(title("\u{feff}# C#"), Some("C#"));
        assert_eq!(title("#\n## ##\n###### Six"), Some("Six"));
        assert_eq!(title("#!shebang\n#\n####### seven"), None);
    }

    #[test]
    fn headings_may_be_underlined() {
        assert_eq!(title("One\n===\n# Two"), Some("One"));
        assert_eq!(title("a\n\nOne \n---"), Some("One"));
        assert_eq!(title("---\nname: x\n\n---\n\n# One"), Some("One"));
        assert_eq!(title("- item\n---\n\n***\n---\na\n\n---"), None);
    }

    #[test]
    fn code_and_comments_have_no_titles() {
        assert_eq!(title("```sh\n# no\n~~~\n```\n# One"), Some("One"));
        assert_eq!(title("~~~~\n# no\n~~~\n# no\n~~~~~\n# One"), Some("One"));
        assert_eq!(title("    # no\n\t# no\n   # One"), Some("One"));
        assert_eq!(title("<!-- # no\n# no\n-->\n<!-- a -->\n# One"), Some("One"));
        assert_eq!(title("```\n# no"), None);
    }
}
