//! Queries: terms, phrases and boolean operators.
//!
//! ```text
//! query   clause … ("OR" between clauses is optional)
//! clause  sign part ("AND" sign part) …
//! sign    nothing (optional), "+" (required), "-" or "NOT" (excluded)
//! part    term, "consecutive terms", ( query )
//! ```
//!
//! A document matches if it has all required parts, or one of the optional parts if none is required, and no excluded part.
//! Next to required parts, optional ones affect only the score. `a AND b` is `(+a +b)`; it binds tighter than juxtaposition.
//! The score is the sum over the terms of the matching parts, in query order; a list of plain terms is therefore ranked exactly
//! as the format defines.
//!
//! ```
//! use tercet_tatami::search::Query;
//!
//! let query = Query::parse("open +\"source code\" -beta")?;
//! assert_eq!(query.scored_terms().collect::<Vec<_>>(), ["open", "source", "code"]);
//! let error = Query::parse("open (source").unwrap_err();
//! assert_eq!((error.at, error.to_string().as_str()), (5, "unmatched `(`"));
//! # Ok::<(), tercet_tatami::search::QueryError>(())
//! ```

mod parse;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

pub use parse::QueryError;

use super::analyze;

/// A query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    pub(super) root: Group,
}

/// Occurrence of a part in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    May,
    Must,
    Not,
}

/// A group of parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) parts: Vec<(Sign, Part)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Term(String),
    /// Consecutive terms.
    Phrase(Vec<String>),
    Group(Group),
}

impl Query {
    /// A query for any of the terms of a text, ignoring operators.
    pub fn terms(text: &str) -> Self {
        let terms = analyze::tokens(text.as_bytes());
        let parts = terms.into_iter().map(|term| (Sign::May, Part::Term(term))).collect();
        Self { root: Group { parts } }
    }

    /// Removes repeated optional terms of each group. The native ranking counts repeated terms; other rankings work better
    /// without them.
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

    /// The scored terms, in order, without excluded ones.
    pub fn scored_terms(&self) -> impl Iterator<Item = &str> {
        let mut out = Vec::new();
        self.root.collect(&mut out);
        out.into_iter()
    }

    /// The terms, if all parts are optional terms.
    pub(super) fn plain(&self) -> Option<Vec<&str>> {
        let plain = |(sign, part): &(Sign, Part)| matches!((sign, part), (Sign::May, Part::Term(_)));
        self.root.parts.iter().all(plain).then(|| self.scored_terms().collect())
    }

    /// Whether there are phrases.
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
