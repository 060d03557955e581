//! Prefixes and fuzzy words: the dictionary terms that they stand for.

use std::collections::BTreeSet;

use super::query::{Group, Part, Query, Scored, Sign, TermQuery};
use super::segment::Segment;
use crate::error::ErrorKind;

/// Maximum number of terms of a prefix or a fuzzy word: each takes memory.
const MAX_TERMS: usize = 1024;

/// The same for a single character of a script without spaces, which starts many bigrams.
const MAX_BIGRAMS: usize = 1 << 14;

impl Segment {
    /// The query in terms of this segment.
    pub(super) fn expanded(&self, query: &Query) -> Result<TermQuery, ErrorKind> {
        expanded(query, &[self])
    }
}

/// The query in terms of segments with the same analyzer.
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
        let found = match part {
            Part::Prefix(scored) => {
                if analyzer.is_lone(scored.text()) {
                    most = MAX_BIGRAMS;
                }
                (terms_with_prefix(&scored.term, segments, most)?, scored.clone(), "prefix")
            }
            Part::Fuzzy(scored, edits) => {
                (similar_terms(scored, usize::from(*edits), segments)?, scored.clone(), "fuzzy term")
            }
            _ => return Ok(()),
        };
        let (terms, scored, kind) = found;
        if terms.len() > most {
            let reason = format!("the {kind} `{}` matches more than {most} terms", scored.text());
            return Err(ErrorKind::Query { reason: reason.into() });
        }
        let parts = terms.into_iter().map(|term| (Sign::May, Part::Term(Scored { term, ..scored.clone() })));
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
        Part::Group(_) | Part::All => false,
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
        segment.terms.with_prefix(prefix.as_bytes(), &mut |term| {
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

fn similar_terms(
    scored: &Scored,
    edits: usize,
    segments: &[&Segment],
) -> Result<BTreeSet<String>, ErrorKind> {
    let word: Vec<char> = scored.text().chars().collect();
    let field = scored.term.strip_suffix(scored.text()).unwrap_or("");
    let mut row = Vec::new();
    let mut out = BTreeSet::new();
    for segment in segments {
        segment.terms.with_prefix(field.as_bytes(), &mut |term| {
            if let Ok(term) = str::from_utf8(term)
                && let Some(rest) = term.strip_prefix(field)
                && !rest.contains(':')
                && rest.len() <= 4 * (word.len() + edits)
                && is_within(&word, rest, edits, &mut row)
            {
                out.insert(term.to_owned());
            }
            out.len() <= MAX_TERMS
        })?;
    }
    Ok(out)
}

/// Whether the edit distance (Levenshtein) of two words is at most `edits`.
fn is_within(word: &[char], other: &str, edits: usize, row: &mut Vec<usize>) -> bool {
    row.clear();
    row.extend(0..=word.len());
    let mut length = 0;
    for letter in other.chars() {
        length += 1;
        let mut diagonal = row[0];
        row[0] = length;
        let mut least = length;
        for at in 0..word.len() {
            let replaced = diagonal + usize::from(word[at] != letter);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(row[at] + 1).min(diagonal + 1);
            least = least.min(row[at + 1]);
        }
        if least > edits {
            return false;
        }
    }
    row[word.len()] <= edits
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
            ("ab", "ba", 2),
        ];
        for (one, other, distance) in cases {
            let word: Vec<char> = one.chars().collect();
            for edits in 0..5 {
                assert_eq!(
                    is_within(&word, other, edits, &mut Vec::new()),
                    edits >= distance,
                    "{one} {other}"
                );
            }
        }
    }
}
