//! JSON parser for lines: objects of scalars and lists of scalars.
//!
//! A custom parser, because numbers must keep their digits: as a float, 18446744073709551617 would silently change.

use std::borrow::Cow;

use super::token::Token;

/// A syntax error and its byte offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub(super) at: usize,
    pub(super) reason: &'static str,
}

/// Calls `each` for every wanted key. Values of other keys may be nested.
pub(super) fn object<'a, E: From<SyntaxError>>(
    line: &'a str,
    is_wanted: impl Fn(&str) -> bool,
    mut each: impl FnMut(Cow<'a, str>, Token<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let mut reader = Reader { text: line, at: 0 };
    reader.space();
    if !reader.accept(b'{') {
        return Err(reader.error("expected a JSON object: `{…}`").into());
    }
    reader.space();
    if !reader.accept(b'}') {
        loop {
            reader.space();
            if reader.peek() != Some(b'"') {
                return Err(reader.error("expected a quoted key").into());
            }
            let key = reader.string()?;
            reader.space();
            if !reader.accept(b':') {
                return Err(reader.error("expected `:`").into());
            }
            if is_wanted(&key) {
                let value = reader.value(true)?;
                each(key, value)?;
            } else {
                reader.skip(0)?;
            }
            reader.space();
            if reader.accept(b',') {
                continue;
            }
            if reader.accept(b'}') {
                break;
            }
            return Err(reader.error("expected `,` or `}`").into());
        }
    }
    reader.space();
    if reader.at < line.len() {
        return Err(reader.error("unexpected characters after the object").into());
    }
    Ok(())
}

/// Parses a list.
pub(super) fn list(text: &str) -> Result<Vec<Token<'_>>, SyntaxError> {
    let mut reader = Reader { text, at: 0 };
    reader.space();
    if reader.peek() != Some(b'[') {
        return Err(reader.error("expected `[`"));
    }
    let list = reader.list()?;
    reader.space();
    match list {
        Token::List(elements) if reader.at == text.len() => Ok(elements),
        _ => Err(reader.error("unexpected characters after the list")),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn error(&self, reason: &'static str) -> SyntaxError {
        SyntaxError { at: self.at, reason }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn accept(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn keyword(&mut self, keyword: &str, token: Token<'a>) -> Result<Token<'a>, SyntaxError> {
        if !self.text.as_bytes()[self.at..].starts_with(keyword.as_bytes()) {
            return Err(self.error("expected a value"));
        }
        self.at += keyword.len();
        Ok(token)
    }

    fn value(&mut self, lists: bool) -> Result<Token<'a>, SyntaxError> {
        self.space();
        match self.peek() {
            Some(b'"') => Ok(Token::Text(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'n') => self.keyword("null", Token::Null),
            Some(b't') => self.keyword("true", Token::Bool(true)),
            Some(b'f') => self.keyword("false", Token::Bool(false)),
            Some(b'[') if lists => self.list(),
            Some(b'[') => Err(self.error("nested lists are not supported")),
            Some(b'{') => Err(self.error("nested objects are not supported")),
            _ => Err(self.error("expected a value")),
        }
    }

    /// Skips a value.
    fn skip(&mut self, depth: usize) -> Result<(), SyntaxError> {
        /// Maximum nesting depth, to bound the stack.
        const MAX_DEPTH: usize = 128;
        self.space();
        let close = match self.peek() {
            Some(b'[') => b']',
            Some(b'{') => b'}',
            _ => return self.value(false).map(drop),
        };
        if depth == MAX_DEPTH {
            return Err(self.error("nesting is too deep"));
        }
        self.at += 1;
        self.space();
        if self.accept(close) {
            return Ok(());
        }
        loop {
            if close == b'}' {
                self.space();
                if self.peek() != Some(b'"') {
                    return Err(self.error("expected a quoted key"));
                }
                self.string()?;
                self.space();
                if !self.accept(b':') {
                    return Err(self.error("expected `:`"));
                }
            }
            self.skip(depth + 1)?;
            self.space();
            if self.accept(close) {
                return Ok(());
            }
            if !self.accept(b',') {
                return Err(self.error("expected `,` or the end of the value"));
            }
        }
    }

    fn list(&mut self) -> Result<Token<'a>, SyntaxError> {
        self.at += 1;
        let mut elements = Vec::new();
        self.space();
        if self.accept(b']') {
            return Ok(Token::List(elements));
        }
        loop {
            elements.push(self.value(false)?);
            self.space();
            if self.accept(b']') {
                return Ok(Token::List(elements));
            }
            if !self.accept(b',') {
                return Err(self.error("expected `,` or `]`"));
            }
        }
    }

    fn digits(&mut self) -> Result<(), SyntaxError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.error("expected a digit")) } else { Ok(()) }
    }

    fn number(&mut self) -> Result<Token<'a>, SyntaxError> {
        let start = self.at;
        self.accept(b'-');
        if !self.accept(b'0') {
            self.digits()?;
        }
        if self.accept(b'.') {
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if !self.accept(b'+') {
                self.accept(b'-');
            }
            self.digits()?;
        }
        // The caller rejects `01` and `1x`.
        Ok(Token::Number(&self.text[start..self.at]))
    }

    fn string(&mut self) -> Result<Cow<'a, str>, SyntaxError> {
        self.at += 1;
        let bytes = self.text.as_bytes();
        let mut start = self.at;
        let mut owned: Option<String> = None;
        loop {
            match bytes.get(self.at) {
                Some(b'"') => {
                    let rest = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(match owned {
                        None => Cow::Borrowed(rest),
                        Some(mut text) => {
                            text.push_str(rest);
                            Cow::Owned(text)
                        }
                    });
                }
                Some(b'\\') => {
                    let text = owned.get_or_insert_default();
                    text.push_str(&self.text[start..self.at]);
                    self.at += 1;
                    let character = self.escape()?;
                    text.push(character);
                    start = self.at;
                }
                Some(0..=0x1f) => return Err(self.error("a control character must be escaped")),
                Some(_) => self.at += 1,
                None => return Err(self.error("unterminated string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, SyntaxError> {
        let Some(byte) = self.peek() else { return Err(self.error("unterminated string")) };
        self.at += 1;
        Ok(match byte {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(),
            _ => {
                self.at -= 1;
                return Err(self.error("invalid escape"));
            }
        })
    }

    fn unicode(&mut self) -> Result<char, SyntaxError> {
        const ALONE: &str = "unpaired surrogate";
        let first = self.hex()?;
        if !(0xd800..0xe000).contains(&first) {
            return char::from_u32(first).ok_or_else(|| self.error(ALONE));
        }
        if first >= 0xdc00 || !(self.accept(b'\\') && self.accept(b'u')) {
            return Err(self.error(ALONE));
        }
        let second = self.hex()?;
        if !(0xdc00..0xe000).contains(&second) {
            return Err(self.error(ALONE));
        }
        char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))
            .ok_or_else(|| self.error(ALONE))
    }

    fn hex(&mut self) -> Result<u32, SyntaxError> {
        let mut value = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            value = value * 16 + digit.ok_or_else(|| self.error("expected four hex digits after `\\u`"))?;
            self.at += 1;
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;

    /// Our result as a `serde_json` value.
    fn ours(line: &str) -> Result<Value, SyntaxError> {
        fn value(token: Token<'_>) -> Value {
            match token {
                Token::Null => Value::Null,
                Token::Bool(value) => value.into(),
                Token::Number(text) => serde_json::from_str(text).unwrap(),
                Token::Text(text) => text.into_owned().into(),
                Token::Loose(text) => text.into(),
                Token::List(list) => Value::Array(list.into_iter().map(value).collect()),
            }
        }
        let mut all = Map::new();
        object::<SyntaxError>(
            line,
            |_| true,
            |key, token| {
                all.insert(key.into_owned(), value(token));
                Ok(())
            },
        )?;
        Ok(Value::Object(all))
    }

    #[test]
    fn valid_lines_equal_serde_json() {
        for line in [
            "{}",
            " { } ",
            r#"{"a":1,"b":-0.5e+3,"c":null,"d":true,"e":false,"f":"x"}"#,
            r#"{ "a" : [ 1 , "x" , null ] , "b" : [] }"#,
            r#"{"\u00e9\"\\\/\b\f\n\r\t":"\ud83d\ude00 \u2028 日本"}"#,
            "{\"a\":1e10}\r",
            r#"{"a":-0}"#,
        ] {
            assert_eq!(ours(line).unwrap(), serde_json::from_str::<Value>(line).unwrap(), "{line}");
        }
    }

    #[test]
    fn invalid_lines_are_rejected() {
        for line in [
            "",
            "1",
            "[]",
            "{",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{,}",
            "{\"a\":01}",
            "{\"a\":1.}",
            "{\"a\":.5}",
            "{\"a\":+1}",
            "{\"a\":1e}",
            "{\"a\":nul}",
            "{\"a\":nan}",
            "{'a':1}",
            "{\"a\":1} x",
            "{\"a\":\"\\x\"}",
            "{\"a\":\"\\ud800\"}",
            "{\"a\":\"\\udc00\\ud800\"}",
            "{\"a\":\"\\u12\"}",
            "{\"a\":\"\t\"}",
            "{\"a\":\"",
            "{\"a\":[1,]}",
            "{\"a\":[1",
            "{\"a\" 1}",
            "{\"a\":1 \"b\":2}",
            "{a:1}",
            "{\"a\":-}",
            "{\"a\":truefalse}",
        ] {
            assert!(serde_json::from_str::<Value>(line).is_err() || !line.starts_with('{'), "{line}");
            assert!(ours(line).is_err(), "{line}");
        }
        assert!(ours("{\"a\":{}}").is_err() && ours("{\"a\":[[]]}").is_err(), "nested values are rejected");
    }

    #[test]
    fn mutated_lines_are_judged_like_serde_json() {
        let line = r#"{"a":[1,-2.5e3,"x\u0041"],"b":null,"c":true}"#;
        let other = b"{}[]\",:\\ 0-.eaun\x01\xff";
        for at in 0..line.len() {
            for byte in other {
                let mut bytes = line.as_bytes().to_vec();
                bytes[at] = *byte;
                let Ok(changed) = String::from_utf8(bytes) else { continue };
                let theirs = serde_json::from_str::<Value>(&changed).ok();
                match ours(&changed) {
                    Ok(value) => assert_eq!(Some(value), theirs, "{changed}"),
                    Err(error) => {
                        let nested = error.reason.contains("not supported");
                        assert!(nested || theirs.is_none(), "{changed}: {error:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn unwanted_values_may_be_nested() {
        let seen = |line: &str| {
            let mut keys = Vec::new();
            object::<SyntaxError>(
                line,
                |key| key == "a",
                |key, _| {
                    keys.push(key.into_owned());
                    Ok(())
                },
            )
            .map(|()| keys)
        };
        for line in [
            r#"{"x":{"y":[[1],{"z":null}],"":"}"},"a":1}"#,
            r#"{"a":1,"x":[ ] , "y" : { } }"#,
            r#"{"x":"]","a":[1]}"#,
        ] {
            assert_eq!(seen(line).unwrap(), ["a"], "{line}");
        }
        for line in [
            r#"{"x":{"y"},"a":1}"#,
            r#"{"x":[1,],"a":1}"#,
            r#"{"x":{,},"a":1}"#,
            r#"{"x":[1}"#,
            r#"{"x":tru}"#,
        ] {
            assert!(serde_json::from_str::<Value>(line).is_err() && seen(line).is_err(), "{line}");
        }
        assert!(seen(&format!("{{\"x\":{}}}", "[".repeat(100_000))).is_err());
    }
}
