//! JSON parser for lines: objects of scalars, lists and nested objects.
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

/// How nested objects are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nested {
    /// As one column for each member, named by its path: `a.b`.
    #[default]
    Flatten,
    /// As their JSON text.
    Json,
}

/// Maximum elements per list.
const MAX_ELEMENTS: usize = 1 << 22;
/// A list that is too long.
pub(super) const TOO_MANY_ELEMENTS: &str = "list exceeds 4194304 elements";
/// Maximum nesting depth, to bound the stack.
const MAX_DEPTH: usize = 128;

/// The keys of objects.
struct Keys<W, H> {
    nested: Nested,
    /// Whether a key is read.
    is_wanted: W,
    /// Whether an object is one value, also if others are flattened.
    is_whole: H,
}

/// Calls `each` for every wanted key, or path of a member of nested objects. Objects for which `is_whole` is true are one value.
pub(super) fn object<'a, E: From<SyntaxError>>(
    line: &'a str,
    nested: Nested,
    is_wanted: impl Fn(&str) -> bool,
    is_whole: impl Fn(&str) -> bool,
    mut each: impl FnMut(Cow<'a, str>, Token<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let mut reader = Reader { text: line, at: 0 };
    reader.space();
    if reader.peek() != Some(b'{') {
        return Err(reader.error("expected a JSON object: `{…}`").into());
    }
    let keys = Keys { nested, is_wanted, is_whole };
    reader.members(None, 0, &keys, &mut each)?;
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
        Token::List(elements, _) if reader.at == text.len() => Ok(elements),
        Token::List(..) => Err(reader.error("unexpected characters after the list")),
        _ => Err(reader.error("nested lists are not supported")),
    }
}

/// Replaces the escapes of a string, which is given without its quotes.
pub(super) fn unescaped(text: &str) -> Result<Cow<'_, str>, SyntaxError> {
    let mut reader = Reader { text, at: 0 };
    let mut out = String::with_capacity(text.len());
    while let Some(found) = memchr::memchr(b'\\', &text.as_bytes()[reader.at..]) {
        out.push_str(&text[reader.at..reader.at + found]);
        reader.at += found + 1;
        out.push(reader.escape()?);
    }
    out.push_str(&text[reader.at..]);
    Ok(out.into())
}

/// A number that is all of a text.
pub(super) fn number(text: &str) -> Option<Token<'_>> {
    let mut reader = Reader { text, at: 0 };
    let token = reader.number().ok()?;
    (reader.at == text.len()).then_some(token)
}

/// The number of first bytes, eight at a time, without a quote, a backslash or a control character.
#[inline]
pub(super) fn plain_len(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // The high bit of bytes that are zero; bits above the first of them may be wrong.
    let zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let mut len = 0;
    for word in bytes.as_chunks::<8>().0 {
        let word = u64::from_le_bytes(*word);
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let found = control | zero(word ^ (ONES * u64::from(b'"'))) | zero(word ^ (ONES * u64::from(b'\\')));
        if found != 0 {
            return len + (found.trailing_zeros() / 8) as usize;
        }
        len += 8;
    }
    len
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

    /// Reads an object, from its `{`.
    fn members<E: From<SyntaxError>>(
        &mut self,
        path: Option<&str>,
        depth: usize,
        keys: &Keys<impl Fn(&str) -> bool, impl Fn(&str) -> bool>,
        each: &mut impl FnMut(Cow<'a, str>, Token<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        if depth == MAX_DEPTH {
            return Err(self.error("nesting is too deep").into());
        }
        self.at += 1;
        self.space();
        if self.accept(b'}') {
            return Ok(());
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.error("expected a quoted key").into());
            }
            let key = self.string()?;
            let key = match path {
                Some(path) => Cow::Owned(format!("{path}.{key}")),
                None => key,
            };
            self.space();
            if !self.accept(b':') {
                return Err(self.error("expected `:`").into());
            }
            if (keys.is_wanted)(&key) {
                self.space();
                let is_object = self.peek() == Some(b'{');
                if is_object && keys.nested == Nested::Flatten && !(keys.is_whole)(&key) {
                    self.members(Some(&key), depth + 1, keys, each)?;
                } else {
                    let value = self.value()?;
                    each(key, value)?;
                }
            } else {
                self.skip(0)?;
            }
            self.space();
            if self.accept(b',') {
                continue;
            }
            if self.accept(b'}') {
                return Ok(());
            }
            return Err(self.error("expected `,` or `}`").into());
        }
    }

    /// Reads a value. Nested values are returned as their text.
    fn value(&mut self) -> Result<Token<'a>, SyntaxError> {
        self.space();
        let start = self.at;
        match self.peek() {
            Some(b'[') => self.list(),
            Some(b'{') => {
                self.skip(0)?;
                Ok(Token::Json(&self.text[start..self.at]))
            }
            _ => self.scalar(),
        }
    }

    fn scalar(&mut self) -> Result<Token<'a>, SyntaxError> {
        match self.peek() {
            Some(b'"') => Ok(Token::Text(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'n') => self.keyword("null", Token::Null),
            Some(b't') => self.keyword("true", Token::Bool(true)),
            Some(b'f') => self.keyword("false", Token::Bool(false)),
            _ => Err(self.error("expected a value")),
        }
    }

    /// Skips a value.
    fn skip(&mut self, depth: usize) -> Result<(), SyntaxError> {
        self.space();
        let close = match self.peek() {
            Some(b'[') => b']',
            Some(b'{') => b'}',
            _ => return self.scalar().map(drop),
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
        let start = self.at;
        self.at += 1;
        let mut elements = Vec::new();
        self.space();
        if self.accept(b']') {
            return Ok(Token::List(elements, &self.text[start..self.at]));
        }
        loop {
            self.space();
            if matches!(self.peek(), Some(b'[' | b'{')) {
                self.at = start;
                self.skip(0)?;
                return Ok(Token::Json(&self.text[start..self.at]));
            }
            if elements.len() == MAX_ELEMENTS {
                return Err(self.error(TOO_MANY_ELEMENTS));
            }
            elements.push(self.scalar()?);
            self.space();
            if self.accept(b']') {
                return Ok(Token::List(elements, &self.text[start..self.at]));
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
            self.at += plain_len(&bytes[self.at..]);
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

    #[test]
    fn plain_bytes_are_found_in_words() {
        let all: Vec<u8> = (0..=255).collect();
        let is_plain = |byte: &u8| !matches!(byte, 0..=0x1f | b'"' | b'\\');
        for special in all.iter().filter(|byte| !is_plain(byte)) {
            for at in 0..20 {
                let mut bytes = vec![0xe9; 24];
                bytes[at] = *special;
                assert_eq!(plain_len(&bytes), at, "{special}");
            }
        }
        for plain in all.iter().filter(|byte| is_plain(byte)) {
            assert_eq!(plain_len(&[*plain; 17]), 16, "{plain}");
        }
    }

    /// Our result as a `serde_json` value.
    fn ours(line: &str) -> Result<Value, SyntaxError> {
        fn value(token: Token<'_>) -> Value {
            match token {
                Token::Null => Value::Null,
                Token::Bool(value) => value.into(),
                Token::Number(text) | Token::Json(text) => serde_json::from_str(text).unwrap(),
                Token::Text(text) => text.into_owned().into(),
                Token::Loose(text) => text.into(),
                Token::List(list, _) => Value::Array(list.into_iter().map(value).collect()),
            }
        }
        let mut all = Map::new();
        object::<SyntaxError>(
            line,
            Nested::Json,
            |_| true,
            |_| false,
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
                    Err(error) => assert!(theirs.is_none(), "{changed}: {error:?}"),
                }
            }
        }
    }

    #[test]
    fn nested_objects_are_flattened_or_kept() {
        let read = |line: &str, nested| {
            let mut all = Vec::new();
            let each = |key: Cow<'_, str>, token: Token<'_>| {
                all.push(format!("{key}={token:?}"));
                Ok::<(), SyntaxError>(())
            };
            object(line, nested, |_| true, |key| key == "w", each).map(|()| all)
        };
        let line = r#"{"w":{"x":1}}"#;
        assert_eq!(read(line, Nested::Flatten).unwrap(), [r#"w=Json("{\"x\":1}")"#]);
        let line = r#"{"a":{"b":1,"c":{"d":[2]}},"e":[{"f":1}],"g":{}}"#;
        assert_eq!(
            read(line, Nested::Flatten).unwrap(),
            [r#"a.b=Number("1")"#, r#"a.c.d=List([Number("2")], "[2]")"#, r#"e=Json("[{\"f\":1}]")"#]
        );
        assert_eq!(
            read(line, Nested::Json).unwrap(),
            [r#"a=Json("{\"b\":1,\"c\":{\"d\":[2]}}")"#, r#"e=Json("[{\"f\":1}]")"#, r#"g=Json("{}")"#]
        );
        for nested in [Nested::Flatten, Nested::Json] {
            assert!(read(&"{\"a\":".repeat(100_000), nested).is_err());
            assert!(read(r#"{"a":{"b":1}"#, nested).is_err());
        }
    }

    #[test]
    fn unwanted_values_may_be_nested() {
        let seen = |line: &str| {
            let mut keys = Vec::new();
            object::<SyntaxError>(
                line,
                Nested::Json,
                |key| key == "a",
                |_| false,
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
