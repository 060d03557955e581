//! Filters as text: `value > 250 and value <= 300`.

use std::fmt;
use std::ops::Range;

use super::Comparison;
use crate::query::document::parse_scalar;
use crate::query::operation::Scalar;

/// The maximum length of an expression, in bytes.
const MAX_BYTES: usize = 4096;

/// An expression that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExpressionError {
    /// The bytes of the expression that are wrong.
    pub at: Range<usize>,
    /// What is wrong.
    pub detail: String,
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "filter, at byte {}: {}", self.at.start, self.detail)
    }
}

impl std::error::Error for ExpressionError {}

impl Comparison {
    /// Parses comparisons that are joined by `and`: all of them must hold.
    ///
    /// A comparison is `value > 250`, `250 < value`, `250 < value <= 300`, `> 250`, `value is missing` or
    /// `value is not missing`. The operators are `>`, `>=`, `<`, `<=`, `==` (or `=`) and `!=`.
    ///
    /// ```
    /// use tercet_tet::{Comparison, Scalar};
    ///
    /// let both = Comparison::parse("value > 250 and value <= 300.5")?;
    /// assert_eq!(both, [Comparison::Gt(Scalar::Whole(250)), Comparison::Le(Scalar::Float(300.5))]);
    /// assert_eq!(Comparison::parse("value > x").unwrap_err().at, 8..9);
    /// # Ok::<(), tercet_tet::ExpressionError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Vec<Self>, ExpressionError> {
        if text.len() > MAX_BYTES {
            let detail = format!("the expression is longer than {MAX_BYTES} bytes");
            return Err(ExpressionError { at: 0..text.len(), detail });
        }
        let mut parser = Parser { tokens: tokens(text)?, at: 0, end: text.len() };
        let mut comparisons = Vec::new();
        loop {
            parser.clause(&mut comparisons)?;
            match parser.next() {
                None => return Ok(comparisons),
                Some((Token::And, _)) => {}
                Some((Token::Word(word), at)) if word.eq_ignore_ascii_case("or") => {
                    return Err(wrong(at, "`or` is not supported; comparisons are joined by `and`"));
                }
                Some((_, at)) => return Err(wrong(at, "expected `and` or the end")),
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Operator(Operator),
    Number(Scalar),
    Value,
    And,
    Word(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Operator {
    fn with(self, number: Scalar) -> Comparison {
        match self {
            Self::Eq => Comparison::Eq(number),
            Self::Ne => Comparison::Ne(number),
            Self::Lt => Comparison::Lt(number),
            Self::Le => Comparison::Le(number),
            Self::Gt => Comparison::Gt(number),
            Self::Ge => Comparison::Ge(number),
        }
    }

    /// The operator with its sides exchanged.
    fn flipped(self) -> Self {
        match self {
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
            Self::Gt => Self::Lt,
            Self::Ge => Self::Le,
            other => other,
        }
    }
}

fn wrong(at: Range<usize>, detail: impl Into<String>) -> ExpressionError {
    ExpressionError { at, detail: detail.into() }
}

fn tokens(text: &str) -> Result<Vec<(Token, Range<usize>)>, ExpressionError> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { return Ok(tokens) };
        let start = text.len() - rest.len();
        let len = match first {
            '<' | '>' | '=' | '!' | '&' => rest.find(|c| !"<>=!&".contains(c)).unwrap_or(rest.len()),
            _ => rest.find(|c: char| c.is_whitespace() || "<>=!&".contains(c)).unwrap_or(rest.len()),
        };
        let (word, after) = rest.split_at(len);
        let at = start..start + len;
        tokens.push((token(word, &at)?, at));
        rest = after;
    }
}

fn token(word: &str, at: &Range<usize>) -> Result<Token, ExpressionError> {
    Ok(match word {
        ">" => Token::Operator(Operator::Gt),
        ">=" => Token::Operator(Operator::Ge),
        "<" => Token::Operator(Operator::Lt),
        "<=" => Token::Operator(Operator::Le),
        "==" | "=" => Token::Operator(Operator::Eq),
        "!=" | "<>" => Token::Operator(Operator::Ne),
        "&&" | "&" => Token::And,
        _ if word.starts_with(['<', '>', '=', '!', '&']) => {
            return Err(wrong(at.clone(), format!("unknown operator `{word}`; use > >= < <= == !=")));
        }
        _ if word.eq_ignore_ascii_case("and") => Token::And,
        _ if word.eq_ignore_ascii_case("value") => Token::Value,
        _ => match parse_scalar(word) {
            Some(number) if number.to_f64().is_nan() => {
                let detail = "NaN equals nothing; use `value is missing` or `value is not missing`";
                return Err(wrong(at.clone(), detail));
            }
            Some(number) => Token::Number(number),
            None => Token::Word(word.to_owned()),
        },
    })
}

struct Parser {
    tokens: Vec<(Token, Range<usize>)>,
    at: usize,
    end: usize,
}

impl Parser {
    fn next(&mut self) -> Option<(Token, Range<usize>)> {
        let next = self.tokens.get(self.at).cloned();
        self.at += 1;
        next
    }

    fn peek_operator(&self) -> bool {
        matches!(self.tokens.get(self.at), Some((Token::Operator(_), _)))
    }

    fn ended(&self) -> Range<usize> {
        self.end..self.end
    }

    fn clause(&mut self, out: &mut Vec<Comparison>) -> Result<(), ExpressionError> {
        match self.next() {
            Some((Token::Value, _)) => match self.next() {
                Some((Token::Operator(operator), _)) => {
                    out.push(operator.with(self.number()?));
                    Ok(())
                }
                Some((Token::Word(word), _)) if word.eq_ignore_ascii_case("is") => self.missing(out),
                Some((_, at)) => Err(wrong(at, "expected a comparison: > >= < <= == !=")),
                None => Err(wrong(self.ended(), "expected a comparison: > >= < <= == !=")),
            },
            Some((Token::Operator(operator), _)) => {
                out.push(operator.with(self.number()?));
                Ok(())
            }
            Some((Token::Number(number), _)) => {
                let operator = self.operator()?;
                match self.next() {
                    Some((Token::Value, _)) => {}
                    Some((_, at)) => return Err(wrong(at, "expected `value`")),
                    None => return Err(wrong(self.ended(), "expected `value`")),
                }
                out.push(operator.flipped().with(number));
                if self.peek_operator() {
                    let operator = self.operator()?;
                    out.push(operator.with(self.number()?));
                }
                Ok(())
            }
            Some((Token::Word(word), at)) => {
                Err(wrong(at, format!("unknown name `{word}`; values are named `value`")))
            }
            Some((Token::And, at)) => Err(wrong(at, "expected a comparison, such as `value > 250`")),
            None => Err(wrong(self.ended(), "expected a comparison, such as `value > 250`")),
        }
    }

    fn missing(&mut self, out: &mut Vec<Comparison>) -> Result<(), ExpressionError> {
        let is = |word: &str, other: &str| word.eq_ignore_ascii_case(other);
        let mut negated = false;
        loop {
            match self.next() {
                Some((Token::Word(word), _)) if is(&word, "not") && !negated => negated = true,
                Some((Token::Word(word), _)) if is(&word, "missing") || is(&word, "null") => {
                    out.push(if negated { Comparison::IsNotNull } else { Comparison::IsNull });
                    return Ok(());
                }
                Some((_, at)) => return Err(wrong(at, "expected `missing` or `not missing`")),
                None => return Err(wrong(self.ended(), "expected `missing` or `not missing`")),
            }
        }
    }

    fn operator(&mut self) -> Result<Operator, ExpressionError> {
        match self.next() {
            Some((Token::Operator(operator), _)) => Ok(operator),
            Some((_, at)) => Err(wrong(at, "expected a comparison: > >= < <= == !=")),
            None => Err(wrong(self.ended(), "expected a comparison: > >= < <= == !=")),
        }
    }

    fn number(&mut self) -> Result<Scalar, ExpressionError> {
        match self.next() {
            Some((Token::Number(number), _)) => Ok(number),
            Some((_, at)) => Err(wrong(at, "expected a number")),
            None => Err(wrong(self.ended(), "expected a number")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_have_several_forms() {
        let whole = Scalar::Whole;
        for (text, expected) in [
            ("value > 250", vec![Comparison::Gt(whole(250))]),
            ("value>250", vec![Comparison::Gt(whole(250))]),
            ("> 250", vec![Comparison::Gt(whole(250))]),
            ("250 <= value", vec![Comparison::Ge(whole(250))]),
            ("-5<value<1e3", vec![Comparison::Gt(whole(-5)), Comparison::Lt(Scalar::Float(1e3))]),
            ("value != 0 && value = 7", vec![Comparison::Ne(whole(0)), Comparison::Eq(whole(7))]),
            ("value is not missing", vec![Comparison::IsNotNull]),
            ("VALUE IS NULL AND value == 1", vec![Comparison::IsNull, Comparison::Eq(whole(1))]),
        ] {
            assert_eq!(Comparison::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn errors_point_at_the_text() {
        for (text, at, part) in [
            ("", 0..0, "expected a comparison"),
            ("value", 5..5, "expected a comparison"),
            ("value >", 7..7, "expected a number"),
            ("value > 250 or value < 5", 12..14, "`or`"),
            ("t2m > 250", 0..3, "named `value`"),
            ("value => 250", 6..8, "unknown operator"),
            ("value > nan", 8..11, "missing"),
            ("value > 1 value < 2", 10..15, "`and`"),
            ("value é 1", 6..8, "comparison"),
            ("value is 5", 9..10, "missing"),
            ("1 < 2", 4..5, "`value`"),
        ] {
            let error = Comparison::parse(text).unwrap_err();
            assert_eq!(error.at, at, "{text}: {error}");
            assert!(error.detail.contains(part), "{text}: {error}");
        }
        assert!(Comparison::parse(&"value > 1 and ".repeat(1000)).is_err());
    }
}
