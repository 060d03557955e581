//! The tokens of a filter expression.

use super::ParseError;
use crate::logical_type::is_number;

/// A token and its byte range.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) at: usize,
    pub(super) end: usize,
    pub(super) kind: TokenKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    /// A name or keyword, as written.
    Name(String),
    /// A quoted name, never a keyword.
    Quoted(String),
    Number(String),
    Text(String),
    /// Bytes in hexadecimal digits: `x'00ff'`.
    Bytes(Vec<u8>),
    /// `=`, `!=`, `<`, `<=`, `>`, `>=`, `(`, `)`, `,`.
    Sign(&'static str),
    End,
}

/// Splits a filter expression into tokens; the last is [`TokenKind::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, ParseError> {
    let mut out = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((at, first)) = rest.next() {
        let kind = match first {
            _ if first.is_whitespace() => continue,
            '(' => TokenKind::Sign("("),
            ')' => TokenKind::Sign(")"),
            ',' => TokenKind::Sign(","),
            '=' => {
                // `==` is an alias of `=`.
                rest.next_if(|(_, next)| *next == '=');
                TokenKind::Sign("=")
            }
            '!' => match rest.next_if(|(_, next)| *next == '=') {
                Some(_) => TokenKind::Sign("!="),
                None => return Err(ParseError::new(at, "expected `=` after `!`; negation is `not`")),
            },
            '<' => match rest.next_if(|(_, next)| matches!(next, '=' | '>')) {
                Some((_, '=')) => TokenKind::Sign("<="),
                Some(_) => TokenKind::Sign("!="),
                None => TokenKind::Sign("<"),
            },
            '>' => match rest.next_if(|(_, next)| *next == '=') {
                Some(_) => TokenKind::Sign(">="),
                None => TokenKind::Sign(">"),
            },
            '"' | '\'' => TokenKind::Text(quoted(at, first, &mut rest)?),
            '`' => {
                let mut name = String::new();
                loop {
                    match rest.next() {
                        // A doubled backquote is an escaped one.
                        Some((_, '`')) if rest.next_if(|(_, next)| *next == '`').is_some() => name.push('`'),
                        Some((_, '`')) => break,
                        Some((_, next)) => name.push(next),
                        None => return Err(ParseError::new(at, "unterminated name: missing backquote")),
                    }
                }
                TokenKind::Quoted(name)
            }
            'x' | 'X' if matches!(rest.peek(), Some((_, '"' | '\''))) => {
                let quote = rest.next().map_or('\'', |(_, quote)| quote);
                TokenKind::Bytes(hexadecimal(at, quote, &mut rest)?)
            }
            '0'..='9' | '-' | '+' | '.' => {
                let mut number = String::from(first);
                while let Some((_, next)) = rest.peek().copied() {
                    let sign = matches!(next, '+' | '-') && number.ends_with(['e', 'E']);
                    if next.is_ascii_alphanumeric() || next == '.' || next == '_' || sign {
                        number.push(next);
                        rest.next();
                    } else {
                        break;
                    }
                }
                TokenKind::Number(plain(&number).ok_or_else(|| ParseError::new(at, NUMBERS))?)
            }
            _ if first.is_alphabetic() || first == '_' => {
                let mut name = String::from(first);
                while let Some((_, next)) =
                    rest.next_if(|(_, next)| next.is_alphanumeric() || matches!(next, '_' | '.'))
                {
                    name.push(next);
                }
                TokenKind::Name(name)
            }
            _ => return Err(ParseError::new(at, "unexpected character")),
        };
        let end = rest.peek().map_or(text.len(), |(end, _)| *end);
        out.push(Token { at, end, kind });
    }
    out.push(Token { at: text.len(), end: text.len(), kind: TokenKind::End });
    Ok(out)
}

const NUMBERS: &str =
    "invalid number: expected JSON syntax, like 10, -0.5 or 1e3, with single `_` between digits";

/// A JSON number without digit separators.
fn plain(number: &str) -> Option<String> {
    let is_mark = |(at, byte): (usize, &u8)| {
        let digit =
            |at: Option<usize>| at.and_then(|at| number.as_bytes().get(at)).is_some_and(u8::is_ascii_digit);
        *byte != b'_' || (digit(at.checked_sub(1)) && digit(Some(at + 1)))
    };
    let plain = number.replace('_', "");
    (number.as_bytes().iter().enumerate().all(is_mark) && is_number(&plain)).then_some(plain)
}

/// Parses hexadecimal digits up to the closing quote.
fn hexadecimal(
    start: usize,
    quote: char,
    rest: &mut std::iter::Peekable<std::str::CharIndices<'_>>,
) -> Result<Vec<u8>, ParseError> {
    let (mut bytes, mut high) = (Vec::new(), None);
    loop {
        match rest.next() {
            Some((at, next)) if next == quote => match high {
                None => return Ok(bytes),
                Some(_) => return Err(ParseError::new(at, "odd number of hexadecimal digits")),
            },
            Some((at, next)) => {
                let digit = next.to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                let digit = digit.ok_or_else(|| {
                    ParseError::new(at, "invalid hexadecimal digit; expected bytes like x'00ff'")
                })?;
                match high.take() {
                    None => high = Some(digit),
                    Some(high) => bytes.push(high << 4 | digit),
                }
            }
            None => return Err(ParseError::new(start, "unterminated bytes: missing quote")),
        }
    }
}

fn quoted(
    start: usize,
    quote: char,
    rest: &mut std::iter::Peekable<std::str::CharIndices<'_>>,
) -> Result<String, ParseError> {
    let mut text = String::new();
    loop {
        match rest.next() {
            Some((_, next)) if next == quote => return Ok(text),
            Some((at, '\\')) => match rest.next() {
                Some((_, 'n')) => text.push('\n'),
                Some((_, 't')) => text.push('\t'),
                Some((_, 'r')) => text.push('\r'),
                Some((_, next @ ('\\' | '"' | '\''))) => text.push(next),
                _ => {
                    return Err(ParseError::new(
                        at,
                        "invalid escape: expected \\n, \\t, \\r, \\\\ or an escaped quote",
                    ));
                }
            },
            Some((_, next)) => text.push(next),
            None => return Err(ParseError::new(start, "unterminated string: missing quote")),
        }
    }
}
