//! Escaping of untrusted text for terminals.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Escapes control characters, line breaks, bidirectional marks and zero-width characters of a name from a file.
///
/// The names in a file are untrusted: they must not control a terminal or disguise other names.
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

/// Escapes the same characters in JSON text, where they occur in strings only.
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

/// Whether a character is printed as it is.
fn is_plain(c: char) -> bool {
    // `is_control` covers C0, DEL and C1.
    !(c.is_control() || is_invisible(c))
}

/// Bidirectional marks, zero-width characters, line separators, fillers and tags.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}'
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
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
    fn terminal_sequences_are_escaped() {
        assert_eq!(name("\u{9b}31m"), "\\u{9b}31m");
        assert_eq!(name("abc\u{202e}txt"), "abc\\u{202e}txt");
        assert_eq!(name("a\0b"), "a\\u{0}b");
    }

    #[test]
    fn control_characters_are_escaped() {
        for c in ('\0'..='\u{1f}').chain('\u{7f}'..='\u{9f}') {
            let (escaped, json) = (name(&c.to_string()).into_owned(), json(&format!("\"{c}\"")).into_owned());
            assert!(escaped.starts_with('\\') && !escaped.contains(c), "{c:?}");
            assert!(c == '\n' || !json.contains(c), "{c:?}");
        }
    }

    #[test]
    fn bidirectional_marks_and_zero_width_characters_are_escaped() {
        let marks = ['\u{61c}', '\u{200e}', '\u{200f}'].into_iter().chain('\u{202a}'..='\u{202e}');
        let isolates = '\u{2066}'..='\u{2069}';
        let zero_width =
            ['\u{ad}', '\u{34f}', '\u{180e}', '\u{200b}', '\u{200c}', '\u{200d}', '\u{2060}', '\u{feff}'];
        let others = ['\u{2028}', '\u{2029}', '\u{3164}', '\u{ffa0}', '\u{e0001}', '\u{e0100}'];
        for c in marks.chain(isolates).chain(zero_width).chain(others) {
            let text = format!("a{c}b");
            assert_eq!(name(&text), format!("a\\u{{{:x}}}b", u32::from(c)));
            assert!(json(&text).is_ascii(), "{c:?}");
        }
    }
}
