//! From text to words, and to a snippet.

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory as _};

/// Calls `each` with every word of a text.
///
/// A word is a run of letters and decimal digits in lower case; everything else, marks included, stands between words. Bytes
/// that are no UTF-8 stand between words too.
///
/// ```
/// let mut words = Vec::new();
/// tercet_tatami::search::analyze::words("Café, 2 DOGS!".as_bytes(), |word| words.push(word.to_owned()));
/// assert_eq!(words, ["café", "2", "dogs"]);
/// ```
pub fn words(text: &[u8], mut each: impl FnMut(&str)) {
    let mut word = String::new();
    let mut end = |word: &mut String| {
        if !word.is_empty() {
            each(word);
            word.clear();
        }
    };
    for chunk in text.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter.is_ascii() {
                if letter.is_ascii_alphanumeric() {
                    word.push(letter.to_ascii_lowercase());
                } else {
                    end(&mut word);
                }
            } else if belongs(letter) {
                word.push(lower(letter));
            } else {
                end(&mut word);
            }
        }
        if !chunk.invalid().is_empty() {
            end(&mut word);
        }
    }
    end(&mut word);
}

/// The words of a text.
pub fn tokens(text: &[u8]) -> Vec<String> {
    let mut out = Vec::new();
    words(text, |word| out.push(word.to_owned()));
    out
}

/// Letters and decimal digits. Standard predicates would also take marks and number signs.
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

/// The simple lower case: one character for each. Only `İ` has a longer full form, which starts with the simple one.
fn lower(letter: char) -> char {
    letter.to_lowercase().next().unwrap_or(letter)
}

/// The length of a snippet in characters when nothing else is asked for.
pub const SNIPPET_CHARS: usize = 200;

/// The beginning of a text: white space becomes one space, a text that is as long as the limit is cut at a word.
pub fn snippet(text: &[u8], limit: usize) -> String {
    let mut out = String::new();
    let (mut count, mut space) = (0, false);
    // One bad byte is one bad character.
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
