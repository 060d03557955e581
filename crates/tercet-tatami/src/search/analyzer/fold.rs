//! Accent folding.

use unicode_normalization::UnicodeNormalization as _;

/// Writes a word without the accents of Latin, Greek and Cyrillic letters and the vowel signs of Arabic and Hebrew to `out`.
///
/// Marks of other scripts distinguish words and are kept.
pub(super) fn fold(word: &str, out: &mut String) {
    out.clear();
    if word.is_ascii() {
        out.push_str(word);
        return;
    }
    for letter in word.nfd().filter(|letter| !is_accent(*letter)).nfc() {
        match letter {
            'æ' => out.push_str("ae"),
            'œ' => out.push_str("oe"),
            'þ' => out.push_str("th"),
            'ø' => out.push('o'),
            'đ' | 'ð' => out.push('d'),
            'ł' => out.push('l'),
            'ħ' => out.push('h'),
            'ı' => out.push('i'),
            'ς' => out.push('σ'),
            // Arabic tatweel only stretches a word.
            'ـ' => {}
            letter => out.push(letter),
        }
    }
}

fn is_accent(letter: char) -> bool {
    matches!(
        letter,
        '\u{300}'..='\u{36f}'
            | '\u{591}'..='\u{5bd}'
            | '\u{5bf}'
            | '\u{5c1}'
            | '\u{5c2}'
            | '\u{5c4}'
            | '\u{5c5}'
            | '\u{5c7}'
            | '\u{64b}'..='\u{65f}'
            | '\u{670}'
            | '\u{6d6}'..='\u{6dc}'
            | '\u{6df}'..='\u{6e4}'
            | '\u{6e7}'
            | '\u{6e8}'
            | '\u{6ea}'..='\u{6ed}'
    )
}
