//! Parser of the Python literals in headers: strings, integers, bools, tuples, lists.

use std::fmt;
use std::iter::Peekable;
use std::str::CharIndices;

/// Maximum nesting depth.
const MAX_DEPTH: usize = 16;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Literal {
    Text(String),
    Int(u64),
    Bool(bool),
    None,
    Tuple(Vec<Literal>),
    List(Vec<Literal>),
}

impl Literal {
    /// The name of a field of a structured type: `('x', '<f4')`, or `(('title', 'x'), '<f4')`.
    pub(super) fn field_name(&self) -> Option<String> {
        let Self::Tuple(parts) = self else { return None };
        match parts.first()? {
            Self::Text(name) => Some(name.clone()),
            Self::Tuple(titled) => match titled.last()? {
                Self::Text(name) => Some(name.clone()),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Syntax error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotALiteral {
    expected: &'static str,
    at: usize,
}

impl fmt::Display for NotALiteral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {} at byte {} of the header", self.expected, self.at)
    }
}

/// Parses a dictionary with string keys, in order. Only white space may follow it.
pub(super) fn dictionary(text: &str) -> Result<Vec<(String, Literal)>, NotALiteral> {
    let mut parser = Parser { chars: text.char_indices().peekable(), end: text.len() };
    parser.expect('{', "`{`")?;
    let mut entries = Vec::new();
    while !parser.take('}') {
        let Literal::Text(key) = parser.value(0)? else { return parser.fail("a quoted key") };
        parser.expect(':', "`:`")?;
        entries.push((key, parser.value(0)?));
        if !parser.take(',') {
            parser.expect('}', "`,` or `}`")?;
            break;
        }
    }
    parser.skip_space();
    match parser.chars.peek() {
        None => Ok(entries),
        Some(_) => parser.fail("nothing more"),
    }
}

struct Parser<'a> {
    chars: Peekable<CharIndices<'a>>,
    end: usize,
}

impl Parser<'_> {
    fn value(&mut self, depth: usize) -> Result<Literal, NotALiteral> {
        if depth > MAX_DEPTH {
            return self.fail("fewer brackets");
        }
        self.skip_space();
        match self.chars.peek().map(|&(_, c)| c) {
            Some(quote @ ('\'' | '"')) => {
                self.chars.next();
                self.text(quote)
            }
            Some('(') => {
                self.chars.next();
                self.tuple(depth)
            }
            Some('[') => {
                self.chars.next();
                let (items, _) = self.items(']', depth)?;
                Ok(Literal::List(items))
            }
            Some('0'..='9') => self.int(),
            Some('A'..='Z' | 'a'..='z') => self.word(),
            _ => self.fail("a value"),
        }
    }

    /// `()`, `(1,)`, `(1, 2)`; without a comma parentheses only group: `(1)` is `1`.
    fn tuple(&mut self, depth: usize) -> Result<Literal, NotALiteral> {
        let (mut items, comma) = self.items(')', depth)?;
        match items.pop() {
            Some(only) if items.is_empty() && !comma => Ok(only),
            Some(last) => {
                items.push(last);
                Ok(Literal::Tuple(items))
            }
            None => Ok(Literal::Tuple(items)),
        }
    }

    /// Values up to the closing bracket, and whether there was a comma.
    fn items(&mut self, close: char, depth: usize) -> Result<(Vec<Literal>, bool), NotALiteral> {
        let (mut items, mut comma) = (Vec::new(), false);
        while !self.take(close) {
            items.push(self.value(depth + 1)?);
            if self.take(',') {
                comma = true;
            } else {
                self.expect(close, "`,` or a closing bracket")?;
                break;
            }
        }
        Ok((items, comma))
    }

    fn text(&mut self, quote: char) -> Result<Literal, NotALiteral> {
        let mut text = String::new();
        loop {
            match self.chars.next().map(|(_, c)| c) {
                Some(c) if c == quote => return Ok(Literal::Text(text)),
                Some('\\') => match self.chars.next().map(|(_, c)| c) {
                    Some(c @ ('\\' | '\'' | '"')) => text.push(c),
                    // Other escapes only occur in field names, which are displayed and never used.
                    Some(c) => text.extend(['\\', c]),
                    None => return self.fail("a closing quote"),
                },
                Some('\n') | None => return self.fail("a closing quote"),
                Some(c) => text.push(c),
            }
        }
    }

    /// Integers, with the `L` suffix of Python 2.
    fn int(&mut self) -> Result<Literal, NotALiteral> {
        let mut number = 0u64;
        while let Some((_, c @ '0'..='9')) = self.chars.peek().copied() {
            let digit = u64::from(u32::from(c) - u32::from('0'));
            let Some(next) = number.checked_mul(10).and_then(|n| n.checked_add(digit)) else {
                return self.fail("a number of at most 64 bits");
            };
            number = next;
            self.chars.next();
        }
        self.chars.next_if(|&(_, c)| c == 'L');
        match self.chars.peek() {
            Some(&(_, c)) if c.is_alphanumeric() || c == '_' || c == '.' => self.fail("an integer"),
            _ => Ok(Literal::Int(number)),
        }
    }

    fn word(&mut self) -> Result<Literal, NotALiteral> {
        let at = self.at();
        let mut word = String::new();
        while let Some((_, c)) = self.chars.next_if(|&(_, c)| c.is_alphanumeric() || c == '_') {
            word.push(c);
        }
        match word.as_str() {
            "True" => Ok(Literal::Bool(true)),
            "False" => Ok(Literal::Bool(false)),
            "None" => Ok(Literal::None),
            // `u'<f4'` is a Python 2 string.
            "u" => match self.chars.next_if(|&(_, c)| c == '\'' || c == '"') {
                Some((_, quote)) => self.text(quote),
                None => self.fail("a quoted string"),
            },
            _ => Err(NotALiteral { expected: "a literal, not a name", at }),
        }
    }

    fn skip_space(&mut self) {
        while self.chars.next_if(|&(_, c)| c.is_ascii_whitespace()).is_some() {}
    }

    /// Skips `wanted` and white space before it, if it comes next.
    fn take(&mut self, wanted: char) -> bool {
        self.skip_space();
        self.chars.next_if(|&(_, c)| c == wanted).is_some()
    }

    fn expect(&mut self, wanted: char, expected: &'static str) -> Result<(), NotALiteral> {
        if self.take(wanted) { Ok(()) } else { self.fail(expected) }
    }

    fn at(&mut self) -> usize {
        self.chars.peek().map_or(self.end, |&(at, _)| at)
    }

    fn fail<T>(&mut self, expected: &'static str) -> Result<T, NotALiteral> {
        Err(NotALiteral { expected, at: self.at() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(text: &str) -> Result<Literal, NotALiteral> {
        Ok(dictionary(&format!("{{'x': {text}}}"))?.swap_remove(0).1)
    }

    #[test]
    fn literals_are_parsed_like_python() {
        let text = |t: &str| Literal::Text(t.to_owned());
        assert_eq!(first("'<f4'"), Ok(text("<f4")));
        assert_eq!(first("\"a'b\""), Ok(text("a'b")));
        assert_eq!(first("u'<f4'"), Ok(text("<f4")));
        assert_eq!(first(r"'a\'b\\c\n'"), Ok(text(r"a'b\c\n")));
        assert_eq!(first("()"), Ok(Literal::Tuple(vec![])));
        assert_eq!(first("( 3 , )"), Ok(Literal::Tuple(vec![Literal::Int(3)])));
        assert_eq!(first("(3)"), Ok(Literal::Int(3)));
        assert_eq!(first("(3L, 4L)"), Ok(Literal::Tuple(vec![Literal::Int(3), Literal::Int(4)])));
        assert_eq!(
            first("[True, False, None]").map(|l| matches!(l, Literal::List(items) if items.len() == 3)),
            Ok(true)
        );
        assert_eq!(first("18446744073709551615"), Ok(Literal::Int(u64::MAX)));
        assert_eq!(dictionary(" {\n} \n"), Ok(vec![]));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "{",
            "}",
            "{'a'}",
            "{'a':}",
            "{'a': 1",
            "{'a': 1,,}",
            "{,}",
            "{1: 2}",
            "{'a': 1} x",
            "{'a': -1}",
            "{'a': 1.5}",
            "{'a': 1e3}",
            "{'a': 0x10}",
            "{'a': 1_0}",
            "{'a': 18446744073709551616}",
            "{'a': (1 2)}",
            "{'a': (1, 2]}",
            "{'a': [1}",
            "{'a': 'x}",
            "{'a': 'x\\",
            "{'a': 'x\ny'}",
            "{'a': __import__('os')}",
            "{'a': b'x'}",
            "{'a': True if 1 else 2}",
            "{'a': u}",
            "['a']",
            "{'a': {}}",
        ] {
            assert!(dictionary(text).is_err(), "{text}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(first(&deep).is_err());
        let fine = format!("{}1{}", "[".repeat(10), "]".repeat(10));
        assert!(first(&fine).is_ok());
    }

    #[test]
    fn messages_name_the_position() {
        assert_eq!(dictionary("{'a' 1}").unwrap_err().to_string(), "expected `:` at byte 5 of the header");
        assert_eq!(
            dictionary("{'a': 1").unwrap_err().to_string(),
            "expected `,` or `}` at byte 7 of the header"
        );
    }
}
