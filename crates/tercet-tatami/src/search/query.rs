//! What is searched for: words and how they go together.
//!
//! ```text
//! query   clause … ("OR" between clauses may be written or left out)
//! clause  sign part ("AND" sign part) …
//! sign    nothing, "+" (must be there), "-" or "NOT" (must not be there)
//! part    word, "words that follow each other", ( query )
//! ```
//!
//! A document is found if it holds one of the words that have no sign, or all of those with `+` if there are such; and none of
//! those with `-`. Words without a sign beside ones with `+` count for the ranking only. `a AND b` is `(+a +b)`; it binds
//! closer than what stands side by side. The score is the sum over the words of the parts that match, in the order of the
//! query; a list of plain words is therefore ranked exactly as the format says.
//!
//! ```
//! use tercet_tatami::search::Query;
//!
//! let query = Query::parse("open +\"source code\" -beta")?;
//! assert_eq!(query.scored_terms().collect::<Vec<_>>(), ["open", "source", "code"]);
//! let error = Query::parse("open (source").unwrap_err();
//! assert_eq!((error.at, error.to_string().as_str()), (5, "`(` is not closed"));
//! # Ok::<(), tercet_tatami::search::QueryError>(())
//! ```

mod parse;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

pub use parse::QueryError;

use super::analyze;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    pub(super) root: Group,
}

/// How a part goes together with those beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    May,
    Must,
    Not,
}

/// Parts side by side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) parts: Vec<(Sign, Part)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Term(String),
    /// Words that follow each other.
    Phrase(Vec<String>),
    Group(Group),
}

impl Query {
    /// The words of a text, whatever stands between them: any of them.
    pub fn terms(text: &str) -> Self {
        let terms = analyze::tokens(text.as_bytes());
        let parts = terms.into_iter().map(|term| (Sign::May, Part::Term(term))).collect();
        Self { root: Group { parts } }
    }

    /// The same question with each word once among those it stands beside without a sign. The ranking of the format
    /// counts a word as often as it is written; other rankings are better off without that.
    ///
    /// ```
    /// use tercet_tatami::search::Query;
    ///
    /// assert_eq!(Query::terms("to be or not to be").dedup_terms(), Query::terms("to be or not"));
    /// ```
    #[must_use]
    pub fn dedup_terms(mut self) -> Self {
        self.root.dedup_terms();
        self
    }

    /// The words that are searched for, in order, without those that must not be there.
    pub fn scored_terms(&self) -> impl Iterator<Item = &str> {
        let mut out = Vec::new();
        self.root.collect(&mut out);
        out.into_iter()
    }

    /// The words, if there is nothing but words without a sign.
    pub(super) fn plain(&self) -> Option<Vec<&str>> {
        let plain = |(sign, part): &(Sign, Part)| matches!((sign, part), (Sign::May, Part::Term(_)));
        self.root.parts.iter().all(plain).then(|| self.scored_terms().collect())
    }

    /// Whether there are words that must follow each other.
    pub fn has_phrase(&self) -> bool {
        self.root.has_phrase()
    }
}

impl Group {
    fn dedup_terms(&mut self) {
        let mut seen = HashSet::new();
        self.parts.retain_mut(|(sign, part)| match part {
            Part::Term(term) if *sign == Sign::May => seen.insert(term.clone()),
            Part::Group(group) => {
                group.dedup_terms();
                true
            }
            Part::Term(_) | Part::Phrase(_) => true,
        });
    }

    fn collect<'a>(&'a self, out: &mut Vec<&'a str>) {
        for (sign, part) in &self.parts {
            match part {
                _ if *sign == Sign::Not => {}
                Part::Term(term) => out.push(term),
                Part::Phrase(terms) => out.extend(terms.iter().map(String::as_str)),
                Part::Group(group) => group.collect(out),
            }
        }
    }

    fn has_phrase(&self) -> bool {
        self.parts.iter().any(|(_, part)| match part {
            Part::Term(_) => false,
            Part::Phrase(_) => true,
            Part::Group(group) => group.has_phrase(),
        })
    }
}
