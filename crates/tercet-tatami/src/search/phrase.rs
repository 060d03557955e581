//! Phrases: consecutive terms in a text.

use super::analyze;

/// Whether the terms of a text contain `phrase` (Knuth-Morris-Pratt).
pub(super) fn contains(text: &[u8], phrase: &[String]) -> bool {
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
    analyze::tokenize(text, |term| {
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

    proptest! {
        #[test]
        fn matches_equal_a_naive_search(
            text in proptest::collection::vec("[ab]{1,2}", 0..30),
            phrase in proptest::collection::vec("[ab]{1,2}", 1..5),
        ) {
            let expected = text.windows(phrase.len()).any(|some| some == phrase);
            prop_assert_eq!(contains(text.join(", ").as_bytes(), &phrase), expected);
        }
    }
}
