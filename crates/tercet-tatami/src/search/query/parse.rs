//! The parser of queries.

use thiserror::Error;

use super::{Bound, Clause, ClauseKind, Clauses, ColumnTest, DocField, Query, Sign, ValueTest};
use crate::search::Analyzer;
use crate::search::analyze;

/// Maximum nesting depth of parentheses.
const MAX_DEPTH: usize = 64;

/// The maximum number of terms: each takes memory.
const MAX_TERMS: usize = 1024;

/// The maximum number of edits of a fuzzy word.
const MAX_EDITS: u8 = 2;

/// The maximum boost, and its reciprocal the minimum.
const MAX_BOOST: f32 = 1e6;

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
        let query = Self { root, dedup: false };
        if query.scored_terms(Analyzer::PLAIN).len() > MAX_TERMS {
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

/// What is before a colon.
enum Target {
    Field(DocField),
    Column(String),
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
            "AND" | "&&" => Next::And,
            "OR" | "||" => Next::Or,
            _ => Next::Other,
        }
    }

    /// Clauses up to the end or to a closing parenthesis.
    fn group(&mut self) -> Result<Clauses, QueryError> {
        let mut group = Clauses::default();
        // Whether an operand came before, even without terms.
        let mut any = false;
        loop {
            let at = self.at;
            match self.next() {
                Next::End | Next::Close => break,
                Next::And => return Err(self.missing_operand("before")),
                Next::Or if !any => return Err(self.missing_operand("before")),
                Next::Or => {
                    let missing = self.missing_operand("after");
                    self.at += self.run().len();
                    if matches!(self.next(), Next::End | Next::Close | Next::And | Next::Or) {
                        return Err(missing);
                    }
                }
                Next::Other => {
                    self.clause(&mut group)?;
                    any = true;
                }
            }
            debug_assert!(self.at > at, "the parser makes progress");
        }
        Ok(group)
    }

    /// The error of the current operator.
    fn missing_operand(&self, side: &str) -> QueryError {
        QueryError::new(self.at, format!("missing operand {side} `{}`", self.run()))
    }

    fn clause(&mut self, group: &mut Clauses) -> Result<(), QueryError> {
        let first = self.signed()?;
        if self.next() != Next::And {
            group.parts.extend(first);
            return Ok(());
        }
        let at = self.at;
        let mut all = Clauses::default();
        let must = |sign| if sign == Sign::May { Sign::Must } else { sign };
        all.parts.extend(first.into_iter().map(|(sign, part)| (must(sign), part)));
        while self.next() == Next::And {
            let missing = self.missing_operand("after");
            self.at += self.run().len();
            if self.next() != Next::Other {
                return Err(missing);
            }
            all.parts.extend(self.signed()?.into_iter().map(|(sign, part)| (must(sign), part)));
        }
        let kind = ClauseKind::Group(all);
        group.parts.push((Sign::May, Clause { at, field: None, kind, boost: 1.0 }));
        Ok(())
    }

    /// A part with its sign. Parts without terms are dropped; a token with separators becomes several terms.
    fn signed(&mut self) -> Result<Option<(Sign, Clause)>, QueryError> {
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
        if sign != Sign::May && self.rest().starts_with(['+', '-']) {
            return Err(QueryError::new(part_at, "duplicate sign"));
        }
        self.reject_other_syntax()?;
        let field = match self.field()? {
            Some(Target::Column(name)) => {
                let (at, test) = (self.at, self.column_test(&name)?);
                if self.rest().starts_with('^') {
                    let what = "a test of a column adds nothing to the score: it has no boost";
                    return Err(QueryError::new(self.at, what));
                }
                let kind = ClauseKind::Column(ColumnTest { column: name, test });
                return Ok(Some((sign, Clause { at, field: None, kind, boost: 1.0 })));
            }
            Some(Target::Field(field)) => Some(field),
            None => None,
        };
        let at = self.at;
        let kind = if self.rest().starts_with('"') {
            self.phrase()?
        } else if self.rest().starts_with('(') {
            if let Some(field) = field {
                let what = format!("a group cannot have a field: write `{field}:` before each of its terms");
                return Err(QueryError::new(part_at, what));
            }
            Some(ClauseKind::Group(self.parenthesis()?))
        } else {
            self.word(field)?
        };
        if self.at == part_at && sign != Sign::May {
            let sign = &self.text[start..part_at];
            return Err(QueryError::new(start, format!("missing operand after `{}`", sign.trim_end())));
        }
        if self.at == at
            && let Some(field) = field
        {
            return Err(QueryError::new(part_at, format!("missing term after `{field}:`")));
        }
        let boost = self.boost()?;
        Ok(kind.map(|kind| (sign, Clause { at, field, kind, boost })))
    }

    /// Operators of other query languages are errors, not words.
    fn reject_other_syntax(&self) -> Result<(), QueryError> {
        let (rest, run) = (self.rest(), self.run());
        let fault = |what: String| Err(QueryError::new(self.at, what));
        let is_operand = |next: char| next.is_alphanumeric() || matches!(next, '"' | '(');
        if rest.strip_prefix('!').is_some_and(|after| after.starts_with(is_operand)) {
            return fault("`!` is not supported: write `-term` to exclude a term".to_owned());
        }
        if rest.starts_with(['[', '{'])
            && let Some(end) = rest.find([']', '}'])
            && rest[..end].split_whitespace().any(|word| word == "TO")
        {
            let range = &rest[..=end];
            return fault(format!("a range needs a column: write `column:{range}`"));
        }
        let inside = run.strip_prefix('/').and_then(|run| run.strip_suffix('/'));
        if inside.is_some_and(|inside| inside.contains(['*', '?', '+', '[', '|', '\\', '^', '$'])) {
            return fault(format!(
                "regular expressions are not supported in queries: quote `{run}` to search for it as text"
            ));
        }
        for operator in ["&&", "||"] {
            if let Some((before, after)) = run.split_once(operator)
                && ends_in_word(before)
                && !after.is_empty()
            {
                return fault(format!("write spaces around `{operator}`"));
            }
        }
        Ok(())
    }

    /// A field or a column and its colon. `std::vec`, `http://host` and `12:30` are words.
    fn field(&mut self) -> Result<Option<Target>, QueryError> {
        let rest = self.rest();
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.');
        let len = rest.find(|letter: char| !is_part(letter)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(len);
        let Some(after) = after.strip_prefix(':') else { return Ok(None) };
        let field = DocField::ALL.into_iter().find(|field| field.name() == name);
        if let Some(field) = field.filter(|_| after.is_empty() || after.starts_with(char::is_whitespace)) {
            let what = format!("missing term after `{field}:`: write the term without a space before it");
            return Err(QueryError::new(self.at, what));
        }
        if !name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            || after.is_empty()
            || after.starts_with(|next: char| next.is_whitespace() || matches!(next, ':' | '/'))
        {
            return Ok(None);
        }
        let target = match field {
            Some(field) if after.starts_with(['[', '{', '<', '>']) => {
                let what = format!("field `{field}` has no ranges; columns have");
                return Err(QueryError::new(self.at, what));
            }
            Some(field) => Target::Field(field),
            None => Target::Column(name.to_owned()),
        };
        self.at += len + 1;
        Ok(Some(target))
    }

    /// A test of the values of a column.
    fn column_test(&mut self, column: &str) -> Result<ValueTest, QueryError> {
        let start = self.at;
        if self.rest().starts_with(['[', '{']) {
            return self.range();
        }
        for (sign, is_low, is_inclusive) in
            [(">=", true, true), ("<=", false, true), (">", true, false), ("<", false, false)]
        {
            if self.rest().starts_with(sign) {
                self.at += sign.len();
                let value = self.value()?;
                let bound = (!value.is_empty()).then_some(Bound { value, is_inclusive });
                let Some(bound) = bound else {
                    return Err(QueryError::new(start, format!("missing value after `{column}:{sign}`")));
                };
                return Ok(if is_low {
                    ValueTest::Range(Some(bound), None)
                } else {
                    ValueTest::Range(None, Some(bound))
                });
            }
        }
        if self.rest().starts_with('"') {
            return Ok(ValueTest::Is(self.value()?));
        }
        if self.rest().starts_with('(') {
            let what = format!("a group cannot have a column: write `{column}:` before each of its values");
            return Err(QueryError::new(start, what));
        }
        let value = self.value()?;
        if value == "*" {
            return Ok(ValueTest::Exists);
        }
        match value.strip_suffix('*') {
            Some(prefix) => Ok(ValueTest::Prefix(prefix.to_owned())),
            None => Ok(ValueTest::Is(value)),
        }
    }

    /// A value: a word, or a text in quotation marks.
    fn value(&mut self) -> Result<String, QueryError> {
        if let Some(inside) = self.rest().strip_prefix('"') {
            let Some(len) = inside.find('"') else {
                return Err(QueryError::new(self.at, "unterminated `\""));
            };
            let value = inside[..len].to_owned();
            self.at += len + 2;
            return Ok(value);
        }
        let run = self.run();
        let len = run.find('^').unwrap_or(run.len());
        let value = run[..len].to_owned();
        self.at += len;
        Ok(value)
    }

    /// `[low TO high]`, with `{` and `}` without the bound; `*` is not a bound.
    fn range(&mut self) -> Result<ValueTest, QueryError> {
        let start = self.at;
        let invalid = || QueryError::new(start, "invalid range: write `[low TO high]`, or `*` for no bound");
        let includes_low = self.rest().starts_with('[');
        self.at += 1;
        let mut values = Vec::new();
        let mut is_complete = false;
        loop {
            self.space();
            let rest = self.rest();
            if rest.is_empty() {
                return Err(QueryError::new(start, "unterminated range: `]` or `}` is missing"));
            }
            if rest.starts_with([']', '}']) {
                break;
            }
            if rest.starts_with('"') {
                values.push(Some(self.value()?));
                continue;
            }
            let end = rest.find(|letter: char| letter.is_whitespace() || matches!(letter, ']' | '}' | '"'));
            let word = rest[..end.unwrap_or(rest.len())].to_owned();
            self.at += word.len();
            if values.len() == 1 && word == "TO" {
                is_complete = true;
                continue;
            }
            values.push((word != "*").then_some(word));
        }
        let includes_high = self.rest().starts_with(']');
        self.at += 1;
        let Ok([low, high]) = <[Option<String>; 2]>::try_from(values) else { return Err(invalid()) };
        if !is_complete {
            return Err(invalid());
        }
        let bound = |value: Option<String>, is_inclusive| value.map(|value| Bound { value, is_inclusive });
        Ok(ValueTest::Range(bound(low, includes_low), bound(high, includes_high)))
    }

    /// A word, a prefix, a fuzzy word or `*`; the text of a word ends before a boost.
    fn word(&mut self, field: Option<DocField>) -> Result<Option<ClauseKind>, QueryError> {
        let start = self.at;
        let run = self.run().to_owned();
        let word = match run.rfind('^').filter(|at| is_number(&run[at + 1..])) {
            Some(at) => &run[..at],
            None => &run[..],
        };
        self.at += word.len();
        if word == "*" {
            if let Some(field) = field {
                return Err(QueryError::new(
                    start,
                    format!("`{field}:*` is not supported; `*` matches all documents"),
                ));
            }
            return Ok(Some(ClauseKind::All));
        }
        let has_letter = |text: &str| !analyze::tokens(text.as_bytes()).is_empty();
        if let Some(prefix) = word.strip_suffix('*').filter(|prefix| ends_in_word(prefix)) {
            reject_wildcards(prefix, start)?;
            return Ok(Some(ClauseKind::Prefix(prefix.to_owned())));
        }
        reject_wildcards(word, start)?;
        if let Some((text, edits)) = word.rsplit_once('~').filter(|(text, _)| ends_in_word(text)) {
            let edits = match edits {
                "" => Some(1),
                edits => edits.parse().ok().filter(|edits| *edits <= MAX_EDITS),
            };
            let Some(edits) = edits else {
                let what = format!("a fuzzy term has at most {MAX_EDITS} edits: `term~1` or `term~2`");
                return Err(QueryError::new(start + text.len(), what));
            };
            return Ok(Some(ClauseKind::Fuzzy(text.to_owned(), edits)));
        }
        Ok(has_letter(word).then(|| ClauseKind::Words(word.to_owned())))
    }

    /// `^2` after a part.
    fn boost(&mut self) -> Result<f32, QueryError> {
        let Some(after) = self.rest().strip_prefix('^') else { return Ok(1.0) };
        let len = after.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(after.len());
        let boost = after[..len].parse().ok();
        let valid = boost.filter(|boost: &f32| (1.0 / MAX_BOOST..=MAX_BOOST).contains(boost));
        let Some(boost) = valid else {
            return Err(QueryError::new(self.at, "invalid boost: write a positive number, such as `term^2`"));
        };
        self.at += len + 1;
        Ok(boost)
    }

    fn phrase(&mut self) -> Result<Option<ClauseKind>, QueryError> {
        let open = self.at;
        let inside = &self.text[open + 1..];
        let Some(len) = inside.find('"') else {
            return Err(QueryError::new(open, "unterminated `\"`"));
        };
        self.at = open + len + 2;
        let inside = &inside[..len];
        let slop = match self.rest().strip_prefix('~') {
            None => 0,
            Some(after) => {
                let digits = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());
                let Ok(slop) = after[..digits].parse() else {
                    let what = "invalid distance: write the number of other terms, such as `\"a b\"~3`";
                    return Err(QueryError::new(self.at, what));
                };
                self.at += digits + 1;
                slop
            }
        };
        let any = !analyze::tokens(inside.as_bytes()).is_empty();
        Ok(any.then(|| ClauseKind::Phrase(inside.to_owned(), slop)))
    }

    fn parenthesis(&mut self) -> Result<Clauses, QueryError> {
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

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Whether a text ends in a letter or a digit.
fn ends_in_word(text: &str) -> bool {
    text.chars()
        .next_back()
        .is_some_and(|last| !analyze::tokens(last.encode_utf8(&mut [0; 4]).as_bytes()).is_empty())
}

/// Wildcards are honoured at the end of a word only. A `?` in a URL is text.
fn reject_wildcards(word: &str, start: usize) -> Result<(), QueryError> {
    let letters: Vec<(usize, char)> = word.char_indices().collect();
    if !word.contains('/') {
        for three in letters.windows(3) {
            if three[1].1 == '?' && three[0].1.is_alphanumeric() && three[2].1.is_alphanumeric() {
                let what =
                    "the wildcard `?` is not supported: write a prefix (`col*`) or a fuzzy term (`color~1`)";
                return Err(QueryError::new(start + three[1].0, what));
            }
        }
    }
    for pair in letters.windows(2) {
        let ((at, first), (_, second)) = (pair[0], pair[1]);
        if first == '*' && second.is_alphanumeric() {
            let what = "a wildcard is supported at the end of a term only, as in `salvag*`";
            return Err(QueryError::new(start + at, what));
        }
    }
    Ok(())
}
