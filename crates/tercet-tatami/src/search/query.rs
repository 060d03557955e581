//! Queries: terms, phrases, fields and boolean operators.
//!
//! ```text
//! query   clause … ("OR" between clauses is optional)
//! clause  sign part ("AND" sign part) …; `&&` is `AND`, `||` is `OR`
//! sign    nothing (optional), "+" (required), "-" or "NOT" (excluded)
//! part    [field:] word, word*, word~2, "consecutive terms", "near terms"~3, ( query ), all with ^boost; * alone
//! field   title, body, anchor, url
//! part    column: value, prefix*, "value", [low TO high], {low TO high}, >low, >=low, <high, <=high, * for any value
//! ```
//!
//! A document matches if it has all required parts, or one of the optional parts if none is required, and no excluded part.
//! Next to required parts, optional ones affect only the score. `a AND b` is `(+a +b)`; it binds tighter than juxtaposition.
//! `*` matches all documents, and so does a group with nothing but excluded parts, less these. The score is the sum over the terms of
//! the matching parts, in query order; a list of plain terms is therefore ranked exactly as the format defines.
//!
//! A query holds words; the [`Analyzer`] of a segment turns them into terms. A word of several terms (`x-ray`, `3.14`, bigrams) is
//! these terms, if it is optional, and a phrase if it is required or excluded. A single character of a script without spaces stands
//! for the bigrams that start with it. A test of a column adds nothing to the score.
//!
//! ```
//! use tercet_tatami::search::{Analyzer, Query};
//!
//! let query = Query::parse("open +\"source code\" -beta")?;
//! assert_eq!(query.scored_terms(Analyzer::PLAIN), ["open", "source", "code"]);
//! let error = Query::parse("open (source").unwrap_err();
//! assert_eq!((error.at, error.to_string().as_str()), (5, "unmatched `(`"));
//! # Ok::<(), tercet_tatami::search::QueryError>(())
//! ```

mod column_test;
mod parse;
mod term_query;
#[cfg(test)]
mod tests;

use std::fmt;

pub(super) use column_test::ColumnTest;
use column_test::{Bound, ValueTest};
pub use parse::QueryError;
pub(super) use term_query::{Group, Part, Phrase, Scored, TermQuery};

use super::analyzer::Analyzer;

/// A query.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    root: Clauses,
    dedup: bool,
}

/// Occurrence of a part in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    May,
    Must,
    Not,
}

/// A field of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DocField {
    Title,
    Body,
    Anchor,
    Url,
}

impl DocField {
    pub(super) const ALL: [Self; 4] = [Self::Title, Self::Body, Self::Anchor, Self::Url];
    /// The fields whose terms are indexed by field as well.
    pub(super) const INDEXED: [Self; 3] = [Self::Title, Self::Anchor, Self::Url];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Body => "body",
            Self::Anchor => "anchor",
            Self::Url => "url",
        }
    }

    /// The dictionary entry of a term in this field. A colon is in no other term.
    pub(super) fn term(self, term: &str) -> String {
        format!("{}:{term}", self.name())
    }
}

impl fmt::Display for DocField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A group of parts, before analysis.
#[derive(Clone, Debug, Default, PartialEq)]
struct Clauses {
    parts: Vec<(Sign, Clause)>,
}

#[derive(Clone, Debug, PartialEq)]
struct Clause {
    /// The position in the text.
    at: usize,
    field: Option<DocField>,
    kind: ClauseKind,
    boost: f32,
}

#[derive(Clone, Debug, PartialEq)]
enum ClauseKind {
    Words(String),
    Prefix(String),
    /// A word within this many edits.
    Fuzzy(String, u8),
    /// Terms in this order with at most this many others between them.
    Phrase(String, u32),
    Group(Clauses),
    Column(ColumnTest),
    All,
}

impl Query {
    /// A query for any of the terms of a text, ignoring operators.
    pub fn terms(text: &str) -> Self {
        let kind = ClauseKind::Words(text.to_owned());
        let parts = vec![(Sign::May, Clause { at: 0, field: None, kind, boost: 1.0 })];
        Self { root: Clauses { parts }, dedup: false }
    }

    /// A query for any of some words, each with its boost.
    pub(super) fn weighted(words: impl IntoIterator<Item = (String, f32)>) -> Self {
        let clause = |(word, boost)| {
            let kind = ClauseKind::Words(word);
            (Sign::May, Clause { at: 0, field: None, kind, boost })
        };
        Self { root: Clauses { parts: words.into_iter().map(clause).collect() }, dedup: false }
    }

    /// The same query with further optional words, each with its boost.
    #[must_use]
    pub(super) fn with_words(mut self, words: impl IntoIterator<Item = (String, f32)>) -> Self {
        self.root.parts.extend(Self::weighted(words).root.parts);
        self
    }

    /// Counts repeated optional terms of each group once. The native ranking counts repeated terms; other rankings work better
    /// without them.
    ///
    /// ```
    /// use tercet_tatami::search::{Analyzer, Query};
    ///
    /// let query = Query::terms("to be or not to be").dedup_terms();
    /// assert_eq!(query.scored_terms(Analyzer::PLAIN), ["to", "be", "or", "not"]);
    /// ```
    #[must_use]
    pub fn dedup_terms(mut self) -> Self {
        self.dedup = true;
        self
    }

    /// The scored terms of an analyzer, in order, without excluded ones and without the expansions of prefixes and fuzzy words.
    pub fn scored_terms(&self, analyzer: Analyzer) -> Vec<String> {
        let query = self.analyze(analyzer);
        query.scored().map(|scored| scored.term.clone()).collect()
    }

    /// The scored words of the query, each with a term of an analyzer, in order.
    pub fn scored_words(&self, analyzer: Analyzer) -> Vec<(String, String)> {
        let query = self.analyze(analyzer);
        query.scored().map(|scored| (scored.word.to_string(), scored.term.clone())).collect()
    }

    /// Whether the query has a prefix, such as `salvag*`. Prefixes match terms of the dictionary, which may be stems: see
    /// [`Analyzer::is_stemming`].
    pub fn has_prefix(&self) -> bool {
        self.root.has_prefix()
    }

    /// Words with a colon before a space, such as `price` of `price: 15`. They are searched as text, also if there is such a column.
    pub fn words_with_colon(&self) -> Vec<&str> {
        let mut out = Vec::new();
        self.root.words_with_colon(&mut out);
        out
    }

    /// The terms of the query for an analyzer.
    pub(super) fn analyze(&self, analyzer: Analyzer) -> TermQuery {
        let mut query = TermQuery { root: group(&self.root, analyzer) };
        if self.dedup {
            query.root.dedup_terms();
        }
        query
    }
}

/// A term of a text.
struct AnalyzedTerm {
    term: String,
    /// The word of the text.
    word: String,
    is_stop: bool,
}

/// The terms of a text.
fn analyzed_terms(text: &str, analyzer: Analyzer) -> Vec<AnalyzedTerm> {
    let mut out = Vec::new();
    analyzer.tokenizer().spans(text.as_bytes(), |range, term| {
        let word = text.get(range).unwrap_or(term).to_owned();
        let is_stop = analyzer.is_stop_word(&word);
        out.push(AnalyzedTerm { term: term.to_owned(), word, is_stop });
    });
    out
}

impl Clause {
    fn scored(&self, term: String, word: &str) -> Scored {
        Scored::new(term, self.field, self.boost).with_word(word)
    }

    /// A term. A single character of a script without spaces is in the index as the start of bigrams.
    fn term(&self, term: String, word: &str, analyzer: Analyzer) -> Part {
        let is_lone = analyzer.is_lone(&term);
        let scored = self.scored(term, word);
        if is_lone { Part::Prefix(scored) } else { Part::Term(scored) }
    }

    /// Consecutive terms; none without terms.
    fn phrase(
        &self,
        mut found: Vec<AnalyzedTerm>,
        slop: u32,
        is_word: bool,
        analyzer: Analyzer,
    ) -> Option<Part> {
        if found.len() < 2 {
            return found.pop().map(|AnalyzedTerm { term, word, .. }| self.term(term, &word, analyzer));
        }
        let scored = found.iter().map(|found| self.scored(found.term.clone(), &found.word)).collect();
        let terms = found.into_iter().map(|found| found.term).collect();
        Some(Part::Phrase(scored, Phrase { terms, field: self.field, slop, is_word }))
    }

    /// The terms of a word before its last one, which is a prefix or fuzzy: an exclusion needs all of them.
    fn with_last(&self, before: Vec<String>, last: Part, sign: Sign, out: &mut Group) {
        let before = before.into_iter().map(|term| Part::Term(Scored::new(term, self.field, self.boost)));
        let parts = before.chain([last]);
        if sign == Sign::Not {
            let all = Group { parts: parts.map(|part| (Sign::Must, part)).collect() };
            out.parts.push((sign, Part::Group(all)));
        } else {
            out.parts.extend(parts.map(|part| (sign, part)));
        }
    }
}

fn group(clauses: &Clauses, analyzer: Analyzer) -> Group {
    // Optional stop words are skipped next to other parts.
    let only_stop = |(sign, clause): &(Sign, Clause)| match &clause.kind {
        ClauseKind::Words(text) if *sign == Sign::May && clause.field.is_none() => {
            analyzed_terms(text, analyzer).iter().all(|found| found.is_stop)
        }
        _ => *sign == Sign::Not,
    };
    let skip_stop_words = !clauses.parts.iter().all(only_stop);
    let mut out = Group::default();
    for (sign, clause) in &clauses.parts {
        match &clause.kind {
            ClauseKind::Words(text) if *sign == Sign::May => {
                let skip = skip_stop_words && clause.field.is_none();
                for word in text.split_whitespace() {
                    let terms =
                        analyzed_terms(word, analyzer).into_iter().filter(|found| !(skip && found.is_stop));
                    out.parts.extend(terms.map(|found| (*sign, clause.term(found.term, word, analyzer))));
                }
            }
            ClauseKind::Words(text) => {
                let part = clause.phrase(analyzed_terms(text, analyzer), 0, true, analyzer);
                out.parts.extend(part.map(|part| (*sign, part)));
            }
            ClauseKind::Prefix(text) => {
                // The last term is the prefix; it is not stemmed, because it is not a word.
                let prefix = if analyzer == Analyzer::PLAIN { analyzer } else { Analyzer::STANDARD };
                let mut terms = prefix.terms(text.as_bytes());
                let Some(last) = terms.pop() else { continue };
                let stem = analyzer.terms(last.as_bytes()).pop().filter(|stem| !stem.starts_with(&last));
                let scored = |term| Scored::new(term, clause.field, clause.boost);
                let mut either = Group::default();
                either.parts.push((Sign::May, Part::Prefix(scored(last))));
                // A prefix that is a word also matches its stem, which may be shorter.
                either.parts.extend(stem.map(|stem| (Sign::May, Part::Term(scored(stem)))));
                clause.with_last(terms, Part::Group(either), *sign, &mut out);
            }
            ClauseKind::Fuzzy(text, edits) => {
                let mut terms = analyzer.terms(text.as_bytes());
                let Some(last) = terms.pop() else { continue };
                let last = Part::Fuzzy(Scored::new(last, clause.field, clause.boost), *edits);
                clause.with_last(terms, last, *sign, &mut out);
            }
            ClauseKind::Phrase(text, slop) => {
                let part = clause.phrase(analyzed_terms(text, analyzer), *slop, false, analyzer);
                out.parts.extend(part.map(|part| (*sign, part)));
            }
            ClauseKind::Group(inner) => {
                let mut inner = group(inner, analyzer);
                inner.boost(clause.boost);
                out.parts.push((*sign, Part::Group(inner)));
            }
            ClauseKind::Column(test) => out.parts.push((*sign, Part::Column(test.clone()))),
            ClauseKind::All => out.parts.push((*sign, Part::All)),
        }
    }
    if !out.parts.is_empty() && out.parts.iter().all(|(sign, _)| *sign == Sign::Not) {
        out.parts.push((Sign::May, Part::All));
    }
    out
}

impl Clauses {
    fn words_with_colon<'a>(&'a self, out: &mut Vec<&'a str>) {
        for (_, clause) in &self.parts {
            match &clause.kind {
                ClauseKind::Words(text) => {
                    let words = text.split_whitespace().filter_map(|word| word.strip_suffix(':'));
                    out.extend(words.filter(|word| !word.is_empty()));
                }
                ClauseKind::Group(inner) => inner.words_with_colon(out),
                _ => {}
            }
        }
    }

    fn has_prefix(&self) -> bool {
        self.parts.iter().any(|(_, clause)| match &clause.kind {
            ClauseKind::Prefix(_) => true,
            ClauseKind::Group(inner) => inner.has_prefix(),
            _ => false,
        })
    }
}
