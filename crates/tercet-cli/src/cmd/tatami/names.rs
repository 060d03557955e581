//! Comma-separated names with backtick quoting.

/// Splits at a separator outside backticks and, optionally, outside brackets.
pub(super) fn split(text: &str, separator: char, brackets: bool) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut is_quoted, mut depth) = (false, 0_usize);
    for (at, character) in text.char_indices() {
        match character {
            // Inside a name a backtick is an ordinary character.
            '`' if is_quoted || text[start..at].trim().is_empty() => is_quoted = !is_quoted,
            // A doubled backtick is an escaped one.
            '`' if text[..at].ends_with('`') && text[start..].trim_start().starts_with('`') => {
                is_quoted = true;
            }
            _ if is_quoted => {}
            '[' if brackets => depth += 1,
            ']' if brackets => depth = depth.saturating_sub(1),
            _ if character == separator && depth == 0 => {
                parts.push(&text[start..at]);
                start = at + character.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Parses a name, optionally in backticks; doubled backticks are escapes.
pub(super) fn name(text: &str) -> Result<String, String> {
    let text = text.trim();
    let Some(rest) = text.strip_prefix('`') else { return Ok(text.to_owned()) };
    let mut inside = rest.strip_suffix('`').ok_or_else(|| wrong(text))?;
    let mut name = String::new();
    while let Some((before, after)) = inside.split_once('`') {
        name.push_str(before);
        name.push('`');
        inside = after.strip_prefix('`').ok_or_else(|| wrong(text))?;
    }
    name.push_str(inside);
    Ok(name)
}

fn wrong(text: &str) -> String {
    let text = tercet::core::escape::name(text);
    format!("{text}: unterminated backtick quote; double a backtick to escape it")
}

/// Parses a comma-separated list of names.
pub(super) fn list(text: &str) -> Result<Vec<String>, String> {
    split(text, ',', false).into_iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_be_quoted_in_backticks() {
        assert_eq!(list("a, b").unwrap(), ["a", "b"]);
        assert_eq!(list("`a,b`,c d,` x`").unwrap(), ["a,b", "c d", " x"]);
        assert_eq!(list("`a``,b`,````").unwrap(), ["a`,b", "`"]);
        assert_eq!(list("a`b,c`").unwrap(), ["a`b", "c`"]);
        assert_eq!(list("").unwrap(), [""]);
        for wrong in ["`a", "`a`b`", "`"] {
            assert!(list(wrong).is_err(), "{wrong}");
        }
        assert_eq!(split("a:decimal[9, 2],b[", ',', true), ["a:decimal[9, 2]", "b["]);
    }
}
