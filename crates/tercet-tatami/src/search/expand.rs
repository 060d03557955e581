//! Prefixes and fuzzy words: the dictionary terms that they match.

use std::collections::{BTreeMap, BTreeSet};

use super::query::{Group, Part, Query, Scored, Sign, TermQuery};
use super::segment::Segment;
use crate::error::ErrorKind;

/// Maximum number of terms of a prefix or a fuzzy word: each takes memory.
const MAX_TERMS: usize = 1024;

/// The same for a single character of a script without spaces, which starts many bigrams.
const MAX_BIGRAMS: usize = 1 << 14;

impl Segment {
    /// The query in terms of this segment, which has its columns.
    pub(super) fn expanded(&self, query: &Query) -> Result<TermQuery, ErrorKind> {
        let query = self.expanded_terms(query)?;
        check_columns(&query, std::slice::from_ref(self))?;
        Ok(query)
    }

    /// The query in terms of this segment, whose columns other segments may have.
    pub(super) fn expanded_terms(&self, query: &Query) -> Result<TermQuery, ErrorKind> {
        expanded(query, &[self])
    }
}

/// Checks that a segment has each column of a query. A column that only some segments have is empty in the others.
pub(super) fn check_columns(query: &TermQuery, segments: &[Segment]) -> Result<(), ErrorKind> {
    let Some(first) = segments.first() else { return Ok(()) };
    let has =
        |column: &str| segments.iter().any(|segment| segment.file().schema().index_of(column).is_some());
    for test in query.columns() {
        if !has(&test.column) {
            return Err(test.unknown(first.file().schema()));
        }
    }
    Ok(())
}

/// The query in terms of segments with the same analyzer. Columns are not checked.
pub(super) fn expanded(query: &Query, segments: &[&Segment]) -> Result<TermQuery, ErrorKind> {
    let analyzer = segments.first().map_or(super::Analyzer::PLAIN, |segment| segment.analyzer());
    let mut query = query.analyze(analyzer);
    if !analyzer.has_fields() && query.any(&has_field) {
        let reason = "its terms are not indexed by field: index the documents again with an analyzer other than `plain`";
        return Err(ErrorKind::Query { reason: reason.into() });
    }
    // Anchor texts are not stored.
    query.try_for_each_mut(&mut |part| {
        if matches!(part, Part::Phrase(_, phrase) if phrase.field == Some(super::query::DocField::Anchor)) {
            part.loosen();
        }
        Ok::<_, ErrorKind>(())
    })?;
    let anchor = |part: &Part| matches!(part, Part::Phrase(_, phrase) if phrase.field == Some(super::query::DocField::Anchor));
    if query.any(&anchor) {
        let reason = "phrases in anchor texts are not supported: anchor texts are not stored";
        return Err(ErrorKind::Query { reason: reason.into() });
    }
    query.try_for_each_mut(&mut |part| {
        let mut most = MAX_TERMS;
        let (terms, text, kind) = match part {
            Part::Prefix(scored) => {
                if analyzer.is_lone(scored.text()) {
                    most = MAX_BIGRAMS;
                }
                let terms = terms_with_prefix(&scored.term, segments, most)?;
                let terms = terms.into_iter().map(|term| Scored { term, ..scored.clone() });
                (terms.collect::<Vec<_>>(), scored.text(), "prefix")
            }
            Part::Fuzzy(scored, edits) => {
                let terms = similar_terms(scored, usize::from(*edits), segments)?;
                (weighted_by_similarity(scored, terms), scored.text(), "fuzzy term")
            }
            _ => return Ok(()),
        };
        if terms.len() > most {
            let reason = format!("the {kind} `{text}` matches more than {most} terms");
            return Err(ErrorKind::Query { reason: reason.into() });
        }
        let parts = terms.into_iter().map(|scored| (Sign::May, Part::Term(scored)));
        *part = Part::Group(Group { parts: parts.collect() });
        Ok(())
    })?;
    Ok(query)
}

fn has_field(part: &Part) -> bool {
    let one = |scored: &Scored| scored.body_only || scored.term.contains(':');
    match part {
        Part::Term(scored) | Part::Prefix(scored) | Part::Fuzzy(scored, _) => one(scored),
        Part::Phrase(terms, _) => terms.iter().any(one),
        Part::Group(_) | Part::Column(_) | Part::All => false,
    }
}

/// Up to one more than `most` terms.
fn terms_with_prefix(
    prefix: &str,
    segments: &[&Segment],
    most: usize,
) -> Result<BTreeSet<String>, ErrorKind> {
    let mut out = BTreeSet::new();
    for segment in segments {
        segment.terms.with_prefix(prefix.as_bytes(), &mut |term, _| {
            // Entries of fields belong to prefixes with a field.
            if let Ok(term) = str::from_utf8(term)
                && (prefix.contains(':') || !term.contains(':'))
            {
                out.insert(term.to_owned());
            }
            out.len() <= most
        })?;
    }
    Ok(out)
}

/// A term within some edits.
#[derive(Clone, Copy, Debug, Default)]
struct SimilarTerm {
    edits: usize,
    /// Documents with it.
    documents: u64,
}

fn similar_terms(
    scored: &Scored,
    edits: usize,
    segments: &[&Segment],
) -> Result<BTreeMap<String, SimilarTerm>, ErrorKind> {
    let word: Vec<char> = scored.text().chars().collect();
    let field = scored.term.strip_suffix(scored.text()).unwrap_or("");
    let mut row = Vec::new();
    let mut out: BTreeMap<String, SimilarTerm> = BTreeMap::new();
    for segment in segments {
        segment.terms.with_prefix(field.as_bytes(), &mut |term, entry| {
            if let Ok(term) = str::from_utf8(term)
                && let Some(rest) = term.strip_prefix(field)
                && !rest.contains(':')
                && rest.len() <= 4 * (word.len() + edits)
                && let Some(edits) = distance(&word, rest, edits, &mut row)
            {
                let similar = out.entry(term.to_owned()).or_default();
                similar.edits = edits;
                similar.documents += u64::from(entry.documents());
            }
            out.len() <= MAX_TERMS
        })?;
    }
    Ok(out)
}

/// The terms of a fuzzy word. Each counts less by its edits. All have the weight of the most frequent one: misspellings are rare, so by
/// their own weights they would rank above the word.
fn weighted_by_similarity(scored: &Scored, terms: BTreeMap<String, SimilarTerm>) -> Vec<Scored> {
    let most = terms.iter().rev().max_by_key(|(_, similar)| similar.documents);
    let Some(weight_of) = most.map(|(term, _)| Box::from(term.as_str())) else { return Vec::new() };
    let field = scored.term.len() - scored.text().len();
    let one = |(term, similar): (String, SimilarTerm)| {
        let letters = scored.text().chars().count().max(term[field..].chars().count());
        let boost = scored.boost * similarity(similar.edits, letters);
        Scored { term, boost, weight_of: Some(Box::clone(&weight_of)), ..scored.clone() }
    };
    terms.into_iter().map(one).collect()
}

/// The factor of a term with this many edits of the letters of the longer word: 1 for the word itself, and more than 0.
#[expect(clippy::cast_precision_loss, reason = "few letters")]
fn similarity(edits: usize, letters: usize) -> f32 {
    1.0 - edits as f32 / (letters + 1) as f32
}

/// The edit distance of two words, if it is at most `edits`: letters inserted, deleted, replaced, or swapped with the next one.
pub(super) fn distance(word: &[char], other: &str, edits: usize, rows: &mut Vec<usize>) -> Option<usize> {
    // The distances of the starts of the word to the start of the other one, and to those that are one and two letters shorter.
    let width = word.len() + 1;
    rows.clear();
    rows.resize(2 * width, 0);
    rows.extend(0..width);
    let (mut before, mut best_before) = (None, 0);
    for (length, letter) in (1..).zip(other.chars()) {
        rows.copy_within(width.., 0);
        rows[2 * width] = length;
        let mut best = length;
        for at in 1..width {
            let replaced = rows[width + at - 1] + usize::from(word[at - 1] != letter);
            let mut least = replaced.min(rows[width + at] + 1).min(rows[2 * width + at - 1] + 1);
            if at > 1 && before == Some(word[at - 1]) && word[at - 2] == letter {
                least = least.min(rows[at - 2] + 1);
            }
            rows[2 * width + at] = least;
            best = best.min(least);
        }
        if best > edits && best_before > edits {
            return None;
        }
        (before, best_before) = (Some(letter), best);
    }
    rows.last().copied().filter(|distance| *distance <= edits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distances() {
        let cases = [
            ("colour", "color", 1),
            ("kitten", "sitting", 3),
            ("", "ab", 2),
            ("abc", "abc", 0),
            ("straße", "strase", 1),
            ("ab", "ba", 1),
            ("memroy", "memory", 1),
            ("ca", "abc", 3),
            ("abcd", "badc", 2),
        ];
        for (one, other, expected) in cases {
            let word: Vec<char> = one.chars().collect();
            for edits in 0..5 {
                let found = distance(&word, other, edits, &mut Vec::new());
                assert_eq!(found, (edits >= expected).then_some(expected), "{one} {other}");
            }
        }
    }
}
