//! Tokenization and snippets.

use std::ops::Range;

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory as _};

/// Calls `each` with every term of a text.
///
/// A term is a sequence of letters and decimal digits in lower case; everything else, including combining marks, separates terms. Bytes
/// that are not valid UTF-8 separate terms too.
///
/// ```
/// let mut terms = Vec::new();
/// tercet_tatami::search::analyze::tokenize("Café, 2 DOGS!".as_bytes(), |term| terms.push(term.to_owned()));
/// assert_eq!(terms, ["café", "2", "dogs"]);
/// ```
pub fn tokenize(text: &[u8], mut each: impl FnMut(&str)) {
    spans(text, |_, term| each(term));
}

/// Calls `each` with every term of a text, and its byte range.
pub(super) fn spans(text: &[u8], mut each: impl FnMut(Range<usize>, &str)) {
    let mut term = String::new();
    let mut at = 0;
    for chunk in text.utf8_chunks() {
        let valid = chunk.valid();
        let mut position = 0;
        while position < valid.len() {
            position = one(valid, position, &mut term, |range, term| {
                each(at + range.start..at + range.end, term);
            });
        }
        at += valid.len() + chunk.invalid().len();
    }
}

/// Lower case of ASCII term characters; 0 for separators.
const PLAIN: [u8; 128] = {
    let mut out = [0; 128];
    let mut letter = 0u8;
    while letter < 128 {
        if letter.is_ascii_alphanumeric() {
            out[letter as usize] = letter.to_ascii_lowercase();
        }
        letter += 1;
    }
    out
};

/// Scans one term from a position and returns its end.
#[inline]
fn one(text: &str, from: usize, term: &mut String, each: impl FnOnce(Range<usize>, &str)) -> usize {
    let bytes = text.as_bytes();
    let plain = |byte: u8| PLAIN.get(usize::from(byte)).copied();
    let mut at = from;
    while at < bytes.len() && plain(bytes[at]) == Some(0) {
        at += 1;
    }
    let start = at;
    let mut changed = 0;
    while let Some(letter) = bytes.get(at).and_then(|byte| plain(*byte)).filter(|letter| *letter != 0) {
        changed |= letter ^ bytes[at];
        at += 1;
    }
    if at > start && bytes.get(at).is_none_or(u8::is_ascii) {
        if changed == 0 {
            each(start..at, &text[start..at]);
        } else {
            term.clear();
            term.push_str(&text[start..at]);
            term.make_ascii_lowercase();
            each(start..at, term);
        }
        return at;
    }
    // Non-ASCII letters are rare: such a term is scanned again.
    at = start;
    term.clear();
    for letter in text[start..].chars() {
        if !belongs(letter) {
            break;
        }
        term.push(lower(letter));
        at += letter.len_utf8();
    }
    if at > start {
        each(start..at, term);
        return at;
    }
    // A separator.
    at + text[at..].chars().next().map_or(0, char::len_utf8)
}

/// Tokenizes a text.
pub fn tokens(text: &[u8]) -> Vec<String> {
    let mut out = Vec::new();
    tokenize(text, |term| out.push(term.to_owned()));
    out
}

/// Letters and decimal digits. The standard predicates also accept marks and other numbers.
fn belongs(letter: char) -> bool {
    matches!(
        letter.general_category(),
        GeneralCategory::UppercaseLetter
            | GeneralCategory::LowercaseLetter
            | GeneralCategory::TitlecaseLetter
            | GeneralCategory::ModifierLetter
            | GeneralCategory::OtherLetter
            | GeneralCategory::DecimalNumber
    )
}

/// Simple lower-case mapping, one to one. Only `İ` has a longer full mapping, which starts with the simple one.
fn lower(letter: char) -> char {
    letter.to_lowercase().next().unwrap_or(letter)
}

/// The default length of a snippet in characters.
pub const SNIPPET_CHARS: usize = 200;

/// The start of a text: white space is collapsed, and a text that reaches the limit is truncated at a term.
pub fn snippet(text: &[u8], limit: usize) -> String {
    let mut out = String::new();
    let (mut count, mut space) = (0, false);
    // Each invalid byte becomes one replacement character.
    let letters = text.utf8_chunks().flat_map(|chunk| {
        let bad = std::iter::repeat_n(char::REPLACEMENT_CHARACTER, chunk.invalid().len());
        chunk.valid().chars().chain(bad)
    });
    for letter in letters {
        if letter.is_whitespace() {
            space = true;
            continue;
        }
        if space && !out.is_empty() {
            out.push(' ');
            count += 1;
            if count >= limit {
                break;
            }
        }
        space = false;
        out.push(letter);
        count += 1;
        if count >= limit {
            break;
        }
    }
    if count < limit {
        return out;
    }
    if let Some(at) = out.rfind(' ').filter(|at| *at > 0) {
        out.truncate(at);
    }
    out.push_str("...");
    out
}
