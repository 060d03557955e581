//! Phrases: consecutive terms in a text.

use super::analyzer::Tokenizer;
use super::query::Phrase;

/// Whether the terms of a text contain a phrase: its terms in order, with at most [`Phrase::slop`] others between them.
pub(super) fn contains(text: &[u8], phrase: &Phrase, tokenizer: &mut Tokenizer) -> bool {
    if phrase.slop == 0 {
        return contains_consecutive(text, &phrase.terms, tokenizer);
    }
    // The positions of each term; every first term has the nearest possible end.
    let mut positions: Vec<Vec<usize>> = vec![Vec::new(); phrase.terms.len()];
    let mut at = 0;
    tokenizer.spans(text, |_, term| {
        for (wanted, found) in phrase.terms.iter().zip(&mut positions) {
            if wanted == term {
                found.push(at);
            }
        }
        at += 1;
    });
    let Some((first, rest)) = positions.split_first() else { return true };
    first.iter().any(|start| {
        let end = rest.iter().try_fold(*start, |before, found| {
            found.get(found.partition_point(|position| *position <= before)).copied()
        });
        end.is_some_and(|end| end - start - rest.len() <= phrase.slop as usize)
    })
}

/// Knuth-Morris-Pratt.
fn contains_consecutive(text: &[u8], phrase: &[String], tokenizer: &mut Tokenizer) -> bool {
    // The failure function.
    let mut back = vec![0; phrase.len()];
    let mut matched = 0;
    for at in 1..phrase.len() {
        while matched > 0 && phrase[at] != phrase[matched] {
            matched = back[matched - 1];
        }
        matched += usize::from(phrase[at] == phrase[matched]);
        back[at] = matched;
    }
    let (mut matched, mut found) = (0, phrase.is_empty());
    tokenizer.spans(text, |_, term| {
        if found {
            return;
        }
        while matched > 0 && term != phrase[matched] {
            matched = back[matched - 1];
        }
        matched += usize::from(term == phrase[matched]);
        found = matched == phrase.len();
    });
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::search::Analyzer;

    /// Whether terms follow each other in order with at most `slop` others between them, by trying all.
    fn naive(text: &[String], phrase: &[String], slop: usize) -> bool {
        (0..text.len()).any(|start| {
            let end = text.len().min(start + phrase.len() + slop);
            (start + 1..=end).any(|end| {
                let here = &text[start..end];
                let mut wanted = phrase.iter().peekable();
                for term in here {
                    wanted.next_if(|next| *next == term);
                }
                here.len() <= phrase.len() + slop && wanted.peek().is_none()
            })
        })
    }

    proptest! {
        #[test]
        fn matches_equal_a_naive_search(
            text in proptest::collection::vec("[ab]{1,2}", 0..30),
            phrase in proptest::collection::vec("[ab]{1,2}", 1..5),
            slop in 0u32..4,
        ) {
            let expected = naive(&text, &phrase, slop as usize);
            let phrase = Phrase { terms: phrase, field: None, slop, is_word: false };
            let mut tokenizer = Analyzer::PLAIN.tokenizer();
            prop_assert_eq!(contains(text.join(", ").as_bytes(), &phrase, &mut tokenizer), expected);
        }
    }
}
