//! Suggestions: completions, corrections, similar documents.
//!
//! The dictionary holds terms, not words: stems without accents. A suggestion is therefore written as in the first document with the
//! term.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use super::Searcher;
use crate::error::Error;
use crate::predicate::Expr;
use crate::search::analyzer::Analyzer;
use crate::search::expand::distance;
use crate::search::query::Query;
use crate::search::segment::Segment;
use crate::search::terms::Entry;
use crate::search::{columns, score};

/// Terms of a prefix that are compared. Of more, the first ones in the order of the dictionary.
const MAX_TERMS: usize = 1 << 16;

/// Words up to this length may have one error, longer ones two.
const SHORT_WORD: usize = 4;

/// Bytes of a document that are examined.
const MAX_TEXT: usize = 1 << 18;

/// Terms of a query for similar documents.
const SIMILAR_TERMS: usize = 25;

/// A word of the index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Suggestion {
    /// The word as in a document, in lower case.
    pub word: String,
    /// Documents with its term, including deleted ones.
    pub documents: u64,
}

/// A term of the dictionaries of segments with the same analyzer.
struct Candidate<'a> {
    term: String,
    documents: u64,
    /// A segment with the term.
    segment: &'a Segment,
    entry: Entry,
    edits: usize,
}

impl Searcher {
    /// Completions of the last word of a text: the most frequent words that start with it. None if the text ends between words.
    pub fn complete(&self, text: &str, limit: usize) -> Result<Vec<Suggestion>, Error> {
        let typed = text.rsplit(|letter: char| letter.is_whitespace()).next().unwrap_or("");
        let mut found = Vec::new();
        for analyzer in self.analyzers() {
            // The start of a word is not stemmed.
            let unstemmed = if analyzer == Analyzer::PLAIN { analyzer } else { Analyzer::STANDARD };
            let Some(prefix) = unstemmed.terms(typed.as_bytes()).pop() else { continue };
            let mut terms = BTreeMap::new();
            for segment in self.segments_with(analyzer) {
                collect(segment, &prefix, &mut terms, |_| Some(0))?;
            }
            let stem = analyzer.terms(typed.as_bytes()).pop().filter(|stem| !stem.starts_with(&prefix));
            for segment in self.segments_with(analyzer) {
                let Some(stem) = &stem else { break };
                let entry = segment.terms.get(stem.as_bytes());
                if let Some(entry) = entry.map_err(|kind| segment.file().error(kind))? {
                    add(segment, stem, entry, 0, &mut terms);
                }
            }
            let starts = |word: &str| {
                let terms = unstemmed.terms(word.as_bytes());
                terms.first().is_some_and(|term| term.starts_with(&prefix))
            };
            found.extend(suggested(terms, analyzer, limit, &starts)?);
        }
        Ok(merged(found, limit))
    }

    /// Corrections of a word that no document contains: similar words, the closest first, then the most frequent.
    pub fn correct(&self, word: &str, limit: usize) -> Result<Vec<Suggestion>, Error> {
        let mut found = Vec::new();
        for analyzer in self.analyzers() {
            let [term] = &analyzer.terms(word.as_bytes())[..] else { continue };
            let letters: Vec<char> = term.chars().collect();
            let most = if letters.len() <= SHORT_WORD { 1 } else { 2 };
            let mut terms = BTreeMap::new();
            // Most errors are not in the first letter; the other terms are many more.
            let first: String = letters.iter().take(1).collect();
            for prefix in [first.as_str(), ""] {
                let mut row = Vec::new();
                for segment in self.segments_with(analyzer) {
                    collect(segment, prefix, &mut terms, |other| {
                        if other.len() > 4 * (letters.len() + most) {
                            return None;
                        }
                        distance(&letters, other, most, &mut row).filter(|edits| *edits > 0)
                    })?;
                }
                if !terms.is_empty() {
                    break;
                }
            }
            found.extend(suggested(terms, analyzer, limit, &|_| true)?);
        }
        Ok(merged(found, limit))
    }

    /// The words of the query that no document contains, in any form of the analyzers.
    pub fn missing_words(&self, query: &Query) -> Result<Vec<String>, Error> {
        // Whether a segment has all terms of a word, in the order of the query.
        let mut words: Vec<(String, bool)> = Vec::new();
        for analyzer in self.analyzers() {
            let mut here: Vec<(String, bool)> = Vec::new();
            for (word, term) in query.scored_words(analyzer) {
                let found = self.segments_with(analyzer).try_fold(
                    false,
                    |found, segment| -> Result<bool, Error> {
                        Ok(found || segment.term_stats(&term)?.is_some())
                    },
                )?;
                match here.iter_mut().find(|(known, _)| *known == word) {
                    Some((_, all)) => *all &= found,
                    None => here.push((word, found)),
                }
            }
            for (word, found) in here {
                match words.iter_mut().find(|(known, _)| *known == word) {
                    Some((_, any)) => *any |= found,
                    None => words.push((word, found)),
                }
            }
        }
        Ok(words.into_iter().filter(|(_, found)| !found).map(|(word, _)| word).collect())
    }

    /// A query for documents like the one with an ID, and a filter that excludes it; `None` if there is no such document. Its terms are those
    /// of title and body that are frequent in the document and rare in others.
    pub fn similar_to(&self, doc_id: &str) -> Result<Option<(Query, Expr)>, Error> {
        for segment in self.segments.iter().rev() {
            let Some(document) = segment.document_with_id(doc_id)? else { continue };
            let query = similar(segment, document)?;
            let column = segment.file().schema().fields()[columns::DOC_ID].name.to_string();
            return Ok(Some((query, Expr::col(column).ne(doc_id))));
        }
        Ok(None)
    }

    fn segments_with(&self, analyzer: Analyzer) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(move |segment| segment.analyzer() == analyzer)
    }
}

/// Adds the terms with a prefix to which `edits` gives a number.
fn collect<'a>(
    segment: &'a Segment,
    prefix: &str,
    out: &mut BTreeMap<String, Candidate<'a>>,
    mut edits: impl FnMut(&str) -> Option<usize>,
) -> Result<(), Error> {
    let walked = segment.terms.with_prefix(prefix.as_bytes(), &mut |term, entry| {
        // Entries with a colon are those of fields.
        if let Ok(term) = str::from_utf8(term)
            && !term.contains(':')
            && let Some(edits) = edits(term)
        {
            add(segment, term, entry, edits, out);
        }
        out.len() < MAX_TERMS
    });
    walked.map_err(|kind| segment.file().error(kind))
}

fn add<'a>(
    segment: &'a Segment,
    term: &str,
    entry: Entry,
    edits: usize,
    out: &mut BTreeMap<String, Candidate<'a>>,
) {
    let documents = entry.documents().into();
    if let Some(known) = out.get_mut(term) {
        known.documents += documents;
    } else {
        let candidate = Candidate { term: term.to_owned(), documents, segment, entry, edits };
        out.insert(term.to_owned(), candidate);
    }
}

/// The best terms as words, with the edits of each.
fn suggested(
    terms: BTreeMap<String, Candidate<'_>>,
    analyzer: Analyzer,
    limit: usize,
    accepts: &dyn Fn(&str) -> bool,
) -> Result<Vec<(usize, Suggestion)>, Error> {
    let mut terms: Vec<Candidate<'_>> = terms.into_values().collect();
    terms.sort_by(|one, other| (one.edits, other.documents).cmp(&(other.edits, one.documents)));
    let mut out = Vec::new();
    // Some terms are written differently, and some have no accepted form.
    for candidate in terms.into_iter().take(limit.saturating_mul(2)) {
        let word = if analyzer == Analyzer::PLAIN { None } else { written(&candidate, analyzer, accepts)? };
        let word = word.unwrap_or(candidate.term);
        if accepts(&word) {
            out.push((candidate.edits, Suggestion { word, documents: candidate.documents }));
        }
        if out.len() == limit {
            break;
        }
    }
    Ok(out)
}

/// How the first document with a term writes it.
fn written(
    candidate: &Candidate<'_>,
    analyzer: Analyzer,
    accepts: &dyn Fn(&str) -> bool,
) -> Result<Option<String>, Error> {
    let Candidate { term, segment, entry, .. } = candidate;
    let document = segment.first_document(*entry).map_err(|kind| segment.file().error(kind))?;
    let fields = segment.file().take(&[document.into()], &[columns::TITLE, columns::BODY, columns::URL])?;
    let mut tokenizer = analyzer.tokenizer();
    for field in fields {
        let crate::Values::Bytes(strings) = field.values else { continue };
        let text = strings.get(0);
        let text = &text[..text.len().min(MAX_TEXT)];
        let mut found = None;
        tokenizer.spans(text, |range, other| {
            if found.is_none() && other == term {
                let word = String::from_utf8_lossy(&text[range]).to_lowercase();
                found = Some(word).filter(|word| accepts(word));
            }
        });
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The suggestions of several analyzers: the closest first, then the most frequent.
fn merged(mut found: Vec<(usize, Suggestion)>, limit: usize) -> Vec<Suggestion> {
    found.sort_by(|one, other| {
        let by_count = (one.0, other.1.documents).cmp(&(other.0, one.1.documents));
        by_count.then_with(|| one.1.word.cmp(&other.1.word))
    });
    let mut seen = HashSet::new();
    found.retain(|(_, suggestion)| seen.insert(suggestion.word.clone()));
    found.truncate(limit);
    found.into_iter().map(|(_, suggestion)| suggestion).collect()
}

/// The most characteristic words of a document.
fn similar(segment: &Segment, document: u32) -> Result<Query, Error> {
    let fields = segment.file().take(&[document.into()], &[columns::TITLE, columns::BODY])?;
    let mut tokenizer = segment.analyzer().tokenizer();
    // The word and the frequency of each term.
    let mut terms: BTreeMap<String, (String, u32)> = BTreeMap::new();
    for field in fields {
        let crate::Values::Bytes(strings) = field.values else { continue };
        let text = strings.get(0);
        tokenizer.spans(&text[..text.len().min(MAX_TEXT)], |range, term| {
            let known = terms.entry(term.to_owned());
            let word = || (String::from_utf8_lossy(&text[range]).into_owned(), 0);
            known.or_insert_with(word).1 += 1;
        });
    }
    let mut weighted: Vec<(f32, f32, String)> = Vec::with_capacity(terms.len());
    for (term, (word, frequency)) in terms {
        if segment.analyzer().is_stop_word(&word) {
            continue;
        }
        let Some(stats) = segment.term_stats(&term)? else { continue };
        // A term of this document only finds no other.
        if stats.documents < 2 {
            continue;
        }
        let boost = score::term(1.0, frequency);
        weighted.push((boost * score::idf(segment.document_count(), stats.documents), boost, word));
    }
    weighted.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.2.cmp(&other.2)));
    weighted.truncate(SIMILAR_TERMS);
    Ok(Query::weighted(weighted.into_iter().map(|(_, boost, word)| (word, boost))))
}
