//! The parser of filter expressions.
//!
//! ```text
//! any   = all { "or" all }              all = one { "and" one }
//! one   = "not" one | "(" any ")" | column test | function "(" column "," value ")"
//! test  = ("=" | "!=" | "<" | "<=" | ">" | ">=") (value | column) | ["not"] word value
//!       | ["not"] "in" "(" value { "," value } ")" | ["not"] "between" value "and" value | "is" ["not"] "null"
//! word  = "like" | "ilike" | "contains" | "starts_with" | "prefix" | "ends_with" | "regexp"
//! value = number | "string" | 'string' | x'00ff' | true | false | ("date" | "time" | "timestamp") "string"
//! ```

use std::fmt;
use std::ops::Range;

use super::bind::{Binder, Part};
use super::tokens::{Token, TokenKind, tokens};
use super::{BindError, Comparison, Expr, Literal, Operator, Predicate, suggest};
use crate::logical_type::LogicalType;
use crate::scalar::Scalar;
use crate::schema::Schema;

/// The maximum nesting depth.
const MAX_DEPTH: usize = 64;

/// An operator that is a word, by its names.
type Word = (&'static [&'static str], fn(Literal) -> Comparison<Literal>);

/// The operators that are words. The first name is the one that messages suggest.
const WORDS: [Word; 6] = [
    (&["like"], Comparison::Like),
    (&["ilike"], Comparison::ILike),
    (&["contains"], Comparison::Contains),
    (&["starts_with", "prefix"], Comparison::Prefix),
    (&["ends_with", "suffix"], Comparison::EndsWith),
    (&["regexp", "regexp_matches"], Comparison::Regexp),
];

/// The operators for a message.
const OPERATORS: &str = "expected `=`, `!=`, `<`, `<=`, `>`, `>=`, `in`, `between`, `like`, `ilike`, `contains`, `starts_with`, \
                         `ends_with`, `regexp` or `is`";

/// The operators after `not`, for a message.
const NEGATED_OPERATORS: &str =
    "expected `in`, `between`, `like`, `ilike`, `contains`, `starts_with`, `ends_with` or `regexp`";

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
        binder.bind_filter(&self.expr).map_err(|error| {
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
        if let Some(comparison) = self.value_first()? {
            return Ok(comparison);
        }
        let token = self.take();
        if let TokenKind::Name(name) = &token.kind
            && self.peek().kind == TokenKind::Sign("(")
        {
            return self.function(name, &token);
        }
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

    /// A comparison with the value before the column: `5 < x`.
    fn value_first(&mut self) -> Result<Option<Expr>, ParseError> {
        let kind = |at: usize| self.tokens.get(at).map(|token| &token.kind);
        let is_typed = matches!(kind(self.next), Some(TokenKind::Name(name)) if is_type(name));
        let at = self.next + usize::from(is_typed);
        let is_value = match kind(at) {
            Some(TokenKind::Text(_)) => true,
            Some(TokenKind::Number(_) | TokenKind::Bytes(_)) => !is_typed,
            _ => false,
        };
        let (Some(TokenKind::Sign(sign)), true) = (kind(at + 1), is_value) else { return Ok(None) };
        let make: fn(Literal) -> Comparison<Literal> = match *sign {
            "=" => Comparison::Eq,
            "!=" => Comparison::Ne,
            "<" => Comparison::Gt,
            "<=" => Comparison::Ge,
            ">" => Comparison::Lt,
            ">=" => Comparison::Le,
            _ => return Ok(None),
        };
        let value = self.value()?;
        let operator = self.take();
        let column = self.take();
        let (TokenKind::Name(name) | TokenKind::Quoted(name)) = column.kind else {
            return Err(ParseError::new(column.at, "expected a column"));
        };
        let values = std::mem::take(&mut self.values);
        let spans =
            ComparisonSpans { column: column.at..column.end, operator: operator.at..operator.end, values };
        self.tests.push(spans);
        Ok(Some(Expr::Comparison { column: name, test: make(value) }))
    }

    /// A comparison in the notation of a function: `contains(name, "x")`.
    fn function(&mut self, name: &str, token: &Token) -> Result<Expr, ParseError> {
        let Some(make) = word(name) else {
            let names = WORDS.iter().flat_map(|(names, _)| names.iter().copied());
            let what = format!("unknown function `{name}`");
            return Err(ParseError::new(token.at, with_suggestion(what, name, names)));
        };
        self.sign("(")?;
        let column = self.take();
        let (TokenKind::Name(text) | TokenKind::Quoted(text)) = column.kind else {
            return Err(ParseError::new(column.at, "expected a column"));
        };
        self.sign(",")?;
        let value = self.value()?;
        self.sign(")")?;
        let values = std::mem::take(&mut self.values);
        self.tests.push(ComparisonSpans {
            column: column.at..column.end,
            operator: token.at..token.end,
            values,
        });
        Ok(Expr::Comparison { column: text, test: make(value) })
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
        let token = self.take();
        if let TokenKind::Name(name) = &token.kind
            && let Some(make) = word(name)
        {
            return Ok(negate_if(negated, with(make(self.value()?))));
        }
        let (operator, make): (_, fn(Literal) -> Comparison<Literal>) = match token.kind {
            TokenKind::Sign("=") if !negated => (Operator::Eq, Comparison::Eq),
            TokenKind::Sign("!=") if !negated => (Operator::Ne, Comparison::Ne),
            TokenKind::Sign("<") if !negated => (Operator::Lt, Comparison::Lt),
            TokenKind::Sign("<=") if !negated => (Operator::Le, Comparison::Le),
            TokenKind::Sign(">") if !negated => (Operator::Gt, Comparison::Gt),
            TokenKind::Sign(">=") if !negated => (Operator::Ge, Comparison::Ge),
            kind => {
                let what = if negated { NEGATED_OPERATORS } else { OPERATORS };
                let what = match kind {
                    TokenKind::Name(name) => {
                        let names = WORDS.iter().map(|(names, _)| names[0]);
                        with_suggestion(what.to_owned(), &name, names.chain(["in", "between", "is"]))
                    }
                    _ => what.to_owned(),
                };
                return Err(ParseError::new(token.at, what));
            }
        };
        if let Some(right) = self.column_value() {
            return Ok(Expr::Columns { left: column.to_owned(), operator, right });
        }
        Ok(with(make(self.value()?)))
    }

    /// Accepts a column in the place of a value.
    fn column_value(&mut self) -> Option<String> {
        let token = self.peek();
        let name = match token.kind {
            TokenKind::Quoted(name) => name,
            TokenKind::Name(name) => {
                let is_value = ["true", "false", "null"].iter().any(|word| name.eq_ignore_ascii_case(word));
                let is_typed = is_type(&name)
                    && matches!(self.tokens.get(self.next + 1), Some(Token { kind: TokenKind::Text(_), .. }));
                if is_value || is_typed {
                    return None;
                }
                name
            }
            _ => return None,
        };
        self.values.push(token.at..token.end);
        self.next += 1;
        Some(name)
    }

    fn value(&mut self) -> Result<Literal, ParseError> {
        let mut token = self.take();
        if let (TokenKind::Name(name), TokenKind::Text(_)) = (&token.kind, &self.peek().kind)
            && is_type(name)
        {
            // The type is that of the column.
            token = self.take();
        }
        self.values.push(token.at..token.end);
        match token.kind {
            TokenKind::Name(name) if name.eq_ignore_ascii_case("null") => {
                Err(ParseError::new(token.at, "no value equals null; use `is null` or `is not null`"))
            }
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

/// The operator of a word, in any case.
fn word(name: &str) -> Option<fn(Literal) -> Comparison<Literal>> {
    let is_name = |known: &&str| known.eq_ignore_ascii_case(name);
    WORDS.iter().find(|(names, _)| names.iter().any(is_name)).map(|(_, make)| *make)
}

/// Whether a word may precede a quoted literal: `date "2020-01-31"`.
fn is_type(name: &str) -> bool {
    ["date", "time", "timestamp"].iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Adds the most similar name to a message.
fn with_suggestion<'n>(what: String, name: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    match suggest::closest(name, known) {
        Some(near) => format!("{what}; did you mean `{near}`?"),
        None => what,
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
    fn values_may_precede_columns() {
        for (text, same) in [
            ("5 < a", "a > 5"),
            ("5 <= a", "a >= 5"),
            ("-5 > a", "a < -5"),
            ("5 >= a", "a <= 5"),
            ("'x' = `b c`", "`b c` = 'x'"),
            ("5 <> a", "a != 5"),
            ("date '2024-01-01' <= d and not 3 == a", "d >= date '2024-01-01' and not a = 3"),
            ("x'00' < a or (1 < a and a < 2)", "a > x'00' or (a > 1 and a < 2)"),
        ] {
            assert_eq!(Expr::parse(text).unwrap(), Expr::parse(same).unwrap(), "{text}");
        }
        let error = Expr::parse("1 < 2").unwrap_err();
        assert_eq!((error.at, error.what.as_str()), (4, "expected a column"));
        assert!(Expr::parse("1 < a < 2").is_err());
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
            ("a = 1_", 4),
            ("a = 1_e3", 4),
            ("a = x'0'", 7),
            ("a = x'0g'", 7),
            ("a = x'00", 4),
            ("`a``b = 1", 0),
            ("a = null", 4),
            ("a lik 'x'", 2),
            ("upper(a, 'x')", 0),
            ("contains(a 'x')", 11),
            ("a between b and 2", 10),
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
            ("not a in (1, true) or a = 1", "true"),
            ("s prefix 'x' and `s`= 4", "4"),
            ("a between 1 and 'x'", "'x'"),
            ("`t``o` = 1", "`t``o`"),
            ("a prefix 'x'", "prefix"),
            ("a like 'x'", "like"),
            ("s = t", "t"),
            ("s < a", "<"),
            ("s regexp '('", "'('"),
            ("s like 'a\\\\'", "'a\\\\'"),
            ("contains(a, 'x')", "contains"),
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
    fn words_and_columns_are_parsed() {
        let s = || Expr::col("s");
        for (text, expected) in [
            ("s LIKE 'a%'", s().like("a%")),
            ("s not ilike 'a%'", s().ilike("a%").negate()),
            ("s Starts_With 'a'", s().prefix("a")),
            ("s prefix 'a'", s().prefix("a")),
            ("s ends_with 'a'", s().ends_with("a")),
            ("s contains 'a'", s().contains("a")),
            ("contains(s, 'a')", s().contains("a")),
            ("NOT regexp_matches(`s`, '^a')", s().regexp("^a").negate()),
            ("s regexp '^a'", s().regexp("^a")),
            ("d >= date '2020-01-31'", Expr::col("d").ge("2020-01-31")),
            ("d between DATE '2020-01-31' and timestamp \"x\"", Expr::col("d").between("2020-01-31", "x")),
            ("date < `time`", Expr::col("date").compare(Operator::Lt, "time")),
            ("a.b <> c", Expr::col("a.b").compare(Operator::Ne, "c")),
        ] {
            assert_eq!(Expr::parse(text).unwrap(), expected, "{text}");
        }
        for (text, suggestion) in [
            ("s lyke 'a'", "did you mean `like`?"),
            ("s startswith 'a'", "did you mean `starts_with`?"),
            ("s not beetween 1 and 2", "did you mean `between`?"),
            ("regex(s, 'a')", "did you mean `regexp`?"),
        ] {
            let error = Expr::parse(text).unwrap_err();
            assert!(error.what.ends_with(suggestion), "{error}");
        }
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
