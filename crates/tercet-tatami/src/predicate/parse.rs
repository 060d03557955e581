//! The parser of filter expressions.
//!
//! ```text
//! any   = all { "or" all }              all = one { "and" one }
//! one   = "not" one | "(" any ")" | column test
//! test  = ("=" | "!=" | "<" | "<=" | ">" | ">=") value | "prefix" value | "contains" value
//!       | ["not"] "in" "(" value { "," value } ")" | ["not"] "between" value "and" value | "is" ["not"] "null"
//! value = number | "string" | 'string' | x'00ff' | true | false
//! ```

use std::fmt;
use std::ops::Range;

use super::bind::{Binder, Part};
use super::tokens::{Token, TokenKind, tokens};
use super::{BindError, Comparison, Expr, Literal, Predicate};
use crate::logical_type::LogicalType;
use crate::scalar::Scalar;
use crate::schema::Schema;

/// The maximum nesting depth.
const MAX_DEPTH: usize = 64;

/// A syntax error in a filter expression.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseError {
    /// The byte offset of the error.
    pub at: usize,
    /// The character of the error, 1-based.
    pub character: usize,
    /// The problem.
    pub what: String,
}

impl ParseError {
    pub(super) fn new(at: usize, what: impl Into<String>) -> Self {
        Self { at, character: at + 1, what: what.into() }
    }

    /// Sets the character number.
    fn in_text(mut self, text: &str) -> Self {
        self.character = text.get(..self.at).unwrap_or(text).chars().count() + 1;
        self
    }

    /// The expression with a caret under the error.
    pub fn pointing_at(&self, text: &str) -> String {
        format!("{text}\n{}^ {}", " ".repeat(self.character - 1), self.what)
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "filter, character {}: {}", self.character, self.what)
    }
}

impl std::error::Error for ParseError {}

impl Expr {
    /// Parses a filter expression such as `status = 200 and url prefix "https://a"`.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Ok(ParsedFilter::new(text)?.expr)
    }
}

/// A parsed filter expression, with the byte range of each comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedFilter {
    expr: Expr,
    /// The byte ranges of the comparisons, from left to right.
    tests: Vec<ComparisonSpans>,
}

/// The byte ranges of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
struct ComparisonSpans {
    column: Range<usize>,
    operator: Range<usize>,
    values: Vec<Range<usize>>,
}

impl ParsedFilter {
    /// Parses a filter expression.
    pub fn new(text: &str) -> Result<Self, ParseError> {
        read(text).map_err(|error| error.in_text(text))
    }

    /// The expression.
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// Binds the filter to a schema with logical types; errors have the byte range in the text.
    pub fn bind(
        &self,
        schema: &Schema,
        logical_types: &[Option<LogicalType>],
    ) -> Result<Predicate, (BindError, Range<usize>)> {
        let mut binder = Binder::new(schema, logical_types);
        binder.bind(&self.expr).map_err(|error| {
            let test = binder.tests.checked_sub(1).and_then(|index| self.tests.get(index));
            let span = test.and_then(|test| match binder.part {
                Part::Column => Some(test.column.clone()),
                Part::Operator => Some(test.operator.clone()),
                Part::Value(index) => test.values.get(index).cloned(),
            });
            (error, span.unwrap_or(0..0))
        })
    }
}

fn read(text: &str) -> Result<ParsedFilter, ParseError> {
    let tokens = tokens(text)?;
    let mut parser = Parser { text, tokens, next: 0, tests: Vec::new(), values: Vec::new() };
    let expr = parser.any(0)?;
    match parser.peek() {
        Token { kind: TokenKind::End, .. } => Ok(ParsedFilter { expr, tests: parser.tests }),
        token => Err(ParseError::new(token.at, "expected `and`, `or` or the end")),
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    next: usize,
    tests: Vec<ComparisonSpans>,
    /// The values of the current comparison.
    values: Vec<Range<usize>>,
}

impl Parser<'_> {
    fn peek(&self) -> Token {
        let end = Token { at: 0, end: 0, kind: TokenKind::End };
        self.tokens.get(self.next).or(self.tokens.last()).cloned().unwrap_or(end)
    }

    fn take(&mut self) -> Token {
        let token = self.peek();
        self.next += 1;
        token
    }

    /// Accepts a keyword, ignoring case.
    fn keyword(&mut self, keyword: &str) -> bool {
        let found = matches!(self.peek().kind, TokenKind::Name(name) if name.eq_ignore_ascii_case(keyword));
        self.next += usize::from(found);
        found
    }

    fn sign(&mut self, sign: &'static str) -> Result<(), ParseError> {
        let token = self.take();
        if token.kind == TokenKind::Sign(sign) {
            return Ok(());
        }
        Err(ParseError::new(token.at, format!("expected `{sign}`")))
    }

    fn any(&mut self, depth: usize) -> Result<Expr, ParseError> {
        let mut parts = vec![self.all(depth)?];
        while self.keyword("or") {
            parts.push(self.all(depth)?);
        }
        Ok(single(parts, Expr::Or))
    }

    fn all(&mut self, depth: usize) -> Result<Expr, ParseError> {
        let mut parts = vec![self.one(depth)?];
        while self.keyword("and") {
            parts.push(self.one(depth)?);
        }
        Ok(single(parts, Expr::And))
    }

    fn one(&mut self, depth: usize) -> Result<Expr, ParseError> {
        if depth == MAX_DEPTH {
            return Err(ParseError::new(self.peek().at, format!("nesting deeper than {MAX_DEPTH}")));
        }
        if self.keyword("not") {
            return Ok(self.one(depth + 1)?.negate());
        }
        if self.peek().kind == TokenKind::Sign("(") {
            self.take();
            let inner = self.any(depth + 1)?;
            self.sign(")")?;
            return Ok(inner);
        }
        let token = self.take();
        match token.kind {
            TokenKind::Name(column) | TokenKind::Quoted(column) => {
                let start = self.peek().at;
                let test = self.test(&column)?;
                let values = std::mem::take(&mut self.values);
                let upto = values.first().map_or(self.peek().at, |value| value.start);
                let operator = self.text.get(start..upto).unwrap_or_default();
                let operator = start..start + operator.trim_end_matches(['(', ' ']).trim_end().len();
                self.tests.push(ComparisonSpans { column: token.at..token.end, operator, values });
                Ok(test)
            }
            TokenKind::End => Err(ParseError::new(token.at, "expected a column")),
            _ => Err(ParseError::new(token.at, "expected a column; quote other names in backquotes")),
        }
    }

    fn test(&mut self, column: &str) -> Result<Expr, ParseError> {
        let with = |test| Expr::Comparison { column: column.to_owned(), test };
        if self.keyword("is") {
            let negated = self.keyword("not");
            if !self.keyword("null") {
                return Err(ParseError::new(self.peek().at, "expected `null`"));
            }
            return Ok(negate_if(negated, with(Comparison::IsNull)));
        }
        let negated = self.keyword("not");
        if self.keyword("in") {
            self.sign("(")?;
            let mut values = vec![self.value()?];
            while self.peek().kind == TokenKind::Sign(",") {
                self.take();
                values.push(self.value()?);
            }
            self.sign(")")?;
            return Ok(negate_if(negated, with(Comparison::In(values))));
        }
        if self.keyword("between") {
            let low = self.value()?;
            if !self.keyword("and") {
                return Err(ParseError::new(self.peek().at, "expected `and` and the upper bound"));
            }
            let high = self.value()?;
            return Ok(negate_if(negated, with(Comparison::Between(low, high))));
        }
        if self.keyword("prefix") {
            let value = self.value()?;
            return Ok(negate_if(negated, with(Comparison::Prefix(value))));
        }
        if self.keyword("contains") {
            let value = self.value()?;
            return Ok(negate_if(negated, with(Comparison::Contains(value))));
        }
        let token = self.take();
        let make: fn(Literal) -> Comparison<Literal> = match token.kind {
            TokenKind::Sign("=") if !negated => Comparison::Eq,
            TokenKind::Sign("!=") if !negated => Comparison::Ne,
            TokenKind::Sign("<") if !negated => Comparison::Lt,
            TokenKind::Sign("<=") if !negated => Comparison::Le,
            TokenKind::Sign(">") if !negated => Comparison::Gt,
            TokenKind::Sign(">=") if !negated => Comparison::Ge,
            _ => {
                let what = if negated {
                    "expected `in`, `between`, `prefix` or `contains`"
                } else {
                    "expected `=`, `!=`, `<`, `<=`, `>`, `>=`, `in`, `between`, `prefix`, `contains` or `is`"
                };
                return Err(ParseError::new(token.at, what));
            }
        };
        Ok(with(make(self.value()?)))
    }

    fn value(&mut self) -> Result<Literal, ParseError> {
        let token = self.take();
        self.values.push(token.at..token.end);
        match token.kind {
            TokenKind::Number(number) => Ok(Literal::Number(number)),
            TokenKind::Text(text) => Ok(Literal::Text(text)),
            TokenKind::Bytes(bytes) => Ok(Literal::Exact(Scalar::Bytes(bytes))),
            TokenKind::Name(name) if name.eq_ignore_ascii_case("true") => Ok(Literal::Bool(true)),
            TokenKind::Name(name) if name.eq_ignore_ascii_case("false") => Ok(Literal::Bool(false)),
            _ => Err(ParseError::new(token.at, "expected a number, a quoted string, `true` or `false`")),
        }
    }
}

fn single(mut parts: Vec<Expr>, join: fn(Vec<Expr>) -> Expr) -> Expr {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            join(parts)
        }
        None => join(parts),
    }
}

fn negate_if(negated: bool, expr: Expr) -> Expr {
    if negated { expr.negate() } else { expr }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Field, Type};

    #[test]
    fn operators_bind_as_expected() {
        let (a, b, c) = (Expr::col("a").eq(1), Expr::col("b").lt(2), Expr::col("c").ge(3));
        assert_eq!(Expr::parse("a = 1 or b < 2 and c >= 3").unwrap(), a.clone().or(b.clone().and(c.clone())));
        assert_eq!(Expr::parse("(a == 1 or b<2)and c>=3").unwrap(), Expr::And(vec![a.or(b), c]));
        assert_eq!(
            Expr::parse("`quoted name` not in (1, -2.5e-3, 'x') AND d IS NOT NULL").unwrap(),
            Expr::And(vec![
                Expr::col("quoted name")
                    .is_in([Literal::Number("1".into()), Literal::Number("-2.5e-3".into()), "x".into()])
                    .negate(),
                Expr::col("d").is_null().negate(),
            ])
        );
        assert_eq!(Expr::parse("e <> true").unwrap(), Expr::col("e").ne(true));
        assert_eq!(Expr::parse("t between 1_000 and 2").unwrap(), Expr::col("t").between(1000, 2));
    }

    #[test]
    fn errors_point_at_the_character() {
        for (text, at) in [
            ("", 0),
            ("status", 6),
            ("status = ", 9),
            ("status = 200 url", 13),
            ("status ! 200", 7),
            ("= 3", 0),
            ("a in (1", 7),
            ("a = \"open", 4),
            ("a between 1 or 2", 12),
            ("a = 1 and", 9),
            ("é = 1 §", 7),
            ("a not = 1", 6),
            ("a = 01", 4),
            ("a = +1", 4),
            ("a = .5", 4),
            ("a in (1, 5.)", 9),
            ("a = 1__0", 4),
            ("a = _1", 4),
            ("a = 1_", 4),
            ("a = 1_e3", 4),
            ("a = x'0'", 7),
            ("a = x'0g'", 7),
            ("a = x'00", 4),
            ("`a``b = 1", 0),
        ] {
            let error = Expr::parse(text).unwrap_err();
            assert_eq!(error.at, at, "{text}: {error}");
            assert!(error.pointing_at(text).starts_with(text));
        }
        assert_eq!(
            Expr::parse("é = 1 §").unwrap_err().pointing_at("é = 1 §").lines().nth(1).unwrap().find('^'),
            Some(6)
        );
        assert_eq!(
            Expr::parse("é = 1 §").unwrap_err().to_string().split(':').next(),
            Some("filter, character 7")
        );
        assert!(Expr::parse(&"(".repeat(100_000)).is_err());
        assert!(Expr::parse(&format!("{}a = 1", "not ".repeat(100_000))).is_err());
    }

    #[test]
    fn bind_errors_have_byte_ranges() {
        let fields =
            vec![Field::new("a", Type::Int8), Field::new("s", Type::String), Field::list("l", Type::Int8)];
        let schema = Schema::new(fields).unwrap();
        for (text, part) in [
            ("a = 1 and (a < 2 or é >= 3 ) and s = 4", "é"),
            ("not a in (1, 300) or a = 1", "300"),
            ("s prefix 'x' and `s`= 4", "4"),
            ("a between 1 and 'x'", "'x'"),
            ("`t``o` = 1", "`t``o`"),
            ("a prefix 'x'", "prefix"),
            ("l not in ( 1, 2)", "not in"),
            ("l >= 7", ">="),
            ("a = x'00'", "x'00'"),
        ] {
            let (_, span) = ParsedFilter::new(text).unwrap().bind(&schema, &[]).unwrap_err();
            assert_eq!(&text[span], part);
        }
        assert!(ParsedFilter::new("s = 'x' or a is null").unwrap().bind(&schema, &[]).is_ok());
    }

    #[test]
    fn quoted_names_and_bytes_are_parsed() {
        assert_eq!(Expr::parse("`a``b` is null").unwrap(), Expr::col("a`b").is_null());
        assert_eq!(Expr::parse("```` is null").unwrap(), Expr::col("`").is_null());
        let bytes = Scalar::Bytes(vec![0, 0xff]);
        assert_eq!(Expr::parse("b = x'00fF' or x = X\"\"").unwrap(), {
            Expr::col("b").eq(bytes).or(Expr::col("x").eq(Scalar::Bytes(Vec::new())))
        });
    }
}
