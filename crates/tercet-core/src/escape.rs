//! Names from files, made safe for a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Escapes control characters, line breaks, bidirectional overrides and other invisible characters of a name that came from a file.
///
/// A file decides its names; it must not decide what a terminal does.
///
/// ```
/// use tercet_core::escape;
///
/// assert_eq!(escape::name("t2m"), "t2m");
/// assert_eq!(escape::name("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
/// ```
pub fn name(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_plain(c) {
            out.push(c);
        } else {
            match c {
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                _ => {
                    // Writing to a String cannot fail.
                    let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
                }
            }
        }
    }
    Cow::Owned(out)
}

/// Escapes the same characters in JSON text, where they can stand in strings only.
///
/// ```
/// use tercet_core::escape;
///
/// assert_eq!(escape::json("[\n \"a\u{9b}31m\"\n]"), "[\n \"a\\u009b31m\"\n]");
/// ```
pub fn json(text: &str) -> Cow<'_, str> {
    let fits = |c: char| is_plain(c) || c == '\n';
    if text.chars().all(fits) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if fits(c) {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    Cow::Owned(out)
}

fn is_plain(c: char) -> bool {
    !(c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_names_are_unchanged() {
        for text in ["t2m", "grp/sub/var", "温度", "naïve café", "a b"] {
            assert!(matches!(name(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn terminal_commands_are_visible_text() {
        assert_eq!(name("\u{9b}31m"), "\\u{9b}31m");
        assert_eq!(name("abc\u{202e}txt"), "abc\\u{202e}txt");
        assert_eq!(name("a\0b"), "a\\u{0}b");
    }
}
