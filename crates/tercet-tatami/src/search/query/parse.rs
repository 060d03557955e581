//! The parser of queries.

use thiserror::Error;

use super::{Group, Part, Query, Sign};
use crate::search::analyze;

/// Maximum nesting depth of parentheses.
const MAX_DEPTH: usize = 64;

/// The maximum number of terms: each takes memory.
const MAX_TERMS: usize = 1024;

/// A syntax error in a query.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct QueryError {
    /// The byte offset of the error.
    pub at: usize,
    what: String,
}

impl QueryError {
    fn new(at: usize, what: impl Into<String>) -> Self {
        Self { at, what: what.into() }
    }
}

impl Query {
    /// Parses a query; see the [module](super) for the syntax.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let root = parser.group()?;
        parser.space();
        if parser.at < text.len() {
            return Err(QueryError::new(parser.at, "unmatched `)`"));
        }
        let query = Self { root };
        if query.scored_terms().count() > MAX_TERMS {
            return Err(QueryError::new(0, format!("more than {MAX_TERMS} terms")));
        }
        Ok(query)
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

/// The current token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    End,
    Close,
    And,
    Or,
    Other,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// The characters up to the next space, quotation mark or parenthesis.
    fn run(&self) -> &str {
        let rest = self.rest();
        let end = rest.find(|letter: char| letter.is_whitespace() || matches!(letter, '"' | '(' | ')'));
        &rest[..end.unwrap_or(rest.len())]
    }

    fn next(&mut self) -> Next {
        self.space();
        match self.run() {
            "" if self.at == self.text.len() => Next::End,
            "" if self.rest().starts_with(')') => Next::Close,
            "AND" => Next::And,
            "OR" => Next::Or,
            _ => Next::Other,
        }
    }

    /// Clauses up to the end or to a closing parenthesis.
    fn group(&mut self) -> Result<Group, QueryError> {
        let start = self.at;
        let mut group = Group::default();
        // Whether an operand came before, even without terms.
        let mut any = false;
        loop {
            let at = self.at;
            match self.next() {
                Next::End | Next::Close => break,
                Next::Or if !any => {
                    return Err(QueryError::new(self.at, "missing operand before `OR`"));
                }
                Next::And => return Err(QueryError::new(self.at, "missing operand before `AND`")),
                Next::Or => {
                    let or = self.at;
                    self.at += 2;
                    if matches!(self.next(), Next::End | Next::Close | Next::And | Next::Or) {
                        return Err(QueryError::new(or, "missing operand after `OR`"));
                    }
                }
                Next::Other => {
                    self.clause(&mut group)?;
                    any = true;
                }
            }
            debug_assert!(self.at > at, "the parser makes progress");
        }
        let wanted = group.parts.iter().any(|(sign, _)| *sign != Sign::Not);
        if !wanted && !group.parts.is_empty() {
            return Err(QueryError::new(start, "only excluded terms: at least one other term is required"));
        }
        Ok(group)
    }

    fn clause(&mut self, group: &mut Group) -> Result<(), QueryError> {
        let first = self.signed()?;
        if self.next() != Next::And {
            group.parts.extend(first);
            return Ok(());
        }
        let start = self.at;
        let mut all = Group::default();
        let must = |sign| if sign == Sign::May { Sign::Must } else { sign };
        all.parts.extend(first.into_iter().map(|(sign, part)| (must(sign), part)));
        while self.next() == Next::And {
            let and = self.at;
            self.at += 3;
            if self.next() != Next::Other {
                return Err(QueryError::new(and, "missing operand after `AND`"));
            }
            all.parts.extend(self.signed()?.into_iter().map(|(sign, part)| (must(sign), part)));
        }
        if !all.parts.iter().any(|(sign, _)| *sign == Sign::Must) {
            return Err(QueryError::new(start, "only excluded terms: at least one other term is required"));
        }
        group.parts.push((Sign::May, Part::Group(all)));
        Ok(())
    }

    /// A part with its sign. Parts without terms are dropped; a token with separators becomes several terms.
    fn signed(&mut self) -> Result<Vec<(Sign, Part)>, QueryError> {
        let start = self.at;
        let mut sign = Sign::May;
        let run = self.run();
        if run == "NOT" {
            sign = Sign::Not;
            self.at += 3;
            self.space();
        } else if let Some(first) = run.chars().next().filter(|first| matches!(first, '+' | '-')) {
            sign = if first == '+' { Sign::Must } else { Sign::Not };
            self.at += 1;
        }
        let part_at = self.at;
        let rest = self.rest();
        if sign != Sign::May && rest.starts_with(['+', '-']) {
            return Err(QueryError::new(part_at, "duplicate sign"));
        }
        let parts = if rest.starts_with('"') {
            self.phrase()?.into_iter().collect()
        } else if rest.starts_with('(') {
            vec![Part::Group(self.parenthesis()?)]
        } else {
            let run = self.run();
            let terms = analyze::tokens(run.as_bytes());
            self.at += run.len();
            terms.into_iter().map(Part::Term).collect()
        };
        if sign != Sign::May && self.at == part_at {
            let sign = &self.text[start..part_at];
            return Err(QueryError::new(start, format!("missing operand after `{}`", sign.trim_end())));
        }
        Ok(parts.into_iter().map(|part| (sign, part)).collect())
    }

    fn phrase(&mut self) -> Result<Option<Part>, QueryError> {
        let open = self.at;
        let inside = &self.text[open + 1..];
        let Some(len) = inside.find('"') else {
            return Err(QueryError::new(open, "unterminated `\"`"));
        };
        self.at = open + len + 2;
        let mut terms = analyze::tokens(&inside.as_bytes()[..len]);
        if terms.len() < 2 {
            return Ok(terms.pop().map(Part::Term));
        }
        Ok(Some(Part::Phrase(terms)))
    }

    fn parenthesis(&mut self) -> Result<Group, QueryError> {
        let open = self.at;
        if self.depth == MAX_DEPTH {
            return Err(QueryError::new(open, format!("parentheses nested deeper than {MAX_DEPTH}")));
        }
        self.depth += 1;
        self.at += 1;
        let group = self.group()?;
        self.depth -= 1;
        self.space();
        if !self.rest().starts_with(')') {
            return Err(QueryError::new(open, "unmatched `(`"));
        }
        self.at += 1;
        Ok(group)
    }
}
