//! Patterns of strings: `like`, `ilike` and `regexp`.
//!
//! In `like` patterns, `%` matches any bytes, `_` one character, and `\\` escapes the next character. Patterns are compiled once, to a
//! prefix, a suffix, a substring or a regular expression. Regular expressions take linear time and bounded memory.

use std::fmt;

use regex::bytes::{Regex, RegexBuilder};

use super::Comparison;
use crate::scalar::Scalar;

/// Maximum length of a pattern in bytes.
const MAX_PATTERN: usize = 1 << 16;

/// Maximum size of a compiled pattern in bytes.
const MAX_COMPILED: usize = 1 << 22;

/// Maximum nesting depth of a regular expression.
const MAX_NESTING: u32 = 64;

/// A compiled pattern.
#[derive(Clone)]
pub struct Matcher {
    operator: &'static str,
    pattern: String,
    /// Every match starts with these bytes.
    prefix: Vec<u8>,
    regex: Regex,
}

impl Matcher {
    /// Compiles a regular expression, which may match anywhere in a value.
    pub fn regexp(pattern: &str) -> Result<Self, String> {
        Self::compile("regexp", pattern, pattern, literal_prefix(pattern))
    }

    fn compile(operator: &'static str, pattern: &str, regex: &str, prefix: Vec<u8>) -> Result<Self, String> {
        if pattern.len() > MAX_PATTERN {
            return Err(format!("longer than {MAX_PATTERN} bytes"));
        }
        let built = RegexBuilder::new(regex)
            .size_limit(MAX_COMPILED)
            .dfa_size_limit(MAX_COMPILED)
            .nest_limit(MAX_NESTING)
            .build();
        let regex = built.map_err(|error| match error {
            regex::Error::CompiledTooBig(limit) => format!("needs more than {limit} bytes when compiled"),
            // The last line is the reason; those before it repeat the pattern.
            other => {
                let text = other.to_string();
                let last = text.lines().last().unwrap_or_default();
                last.trim_start_matches("error: ").to_owned()
            }
        })?;
        Ok(Self { operator, pattern: pattern.to_owned(), prefix, regex })
    }

    /// Whether a value matches.
    pub fn is_match(&self, value: &[u8]) -> bool {
        value.starts_with(&self.prefix) && self.regex.is_match(value)
    }

    /// The bytes that every match starts with; may be empty.
    pub fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// The operator.
    pub const fn operator(&self) -> &'static str {
        self.operator
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.operator, self.pattern)
    }
}

/// Compares the patterns.
impl PartialEq for Matcher {
    fn eq(&self, other: &Self) -> bool {
        (self.operator, &self.pattern) == (other.operator, &other.pattern)
    }
}

impl Comparison<Scalar> {
    /// Compiles the pattern of the comparison, if it has one.
    pub fn compiled(self) -> Result<Self, String> {
        compile(self)
    }

    /// Whether the comparison holds for a string. `None` if it compares with something else.
    pub fn holds_for_string(&self, value: &str) -> Option<bool> {
        let value = value.as_bytes();
        let with = |literal: &Scalar, holds: &dyn Fn(&[u8]) -> bool| match literal {
            Scalar::Bytes(literal) => Some(holds(literal)),
            _ => None,
        };
        match self {
            Self::Eq(literal) => with(literal, &|literal| value == literal),
            Self::Ne(literal) => with(literal, &|literal| value != literal),
            Self::Lt(literal) => with(literal, &|literal| value < literal),
            Self::Le(literal) => with(literal, &|literal| value <= literal),
            Self::Gt(literal) => with(literal, &|literal| value > literal),
            Self::Ge(literal) => with(literal, &|literal| value >= literal),
            Self::Between(low, high) => {
                let above = with(low, &|low| value >= low)?;
                Some(with(high, &|high| value <= high)? && above)
            }
            Self::In(literals) => {
                let mut results = literals.iter().map(|literal| with(literal, &|literal| value == literal));
                results.try_fold(false, |any, one| Some(any || one?))
            }
            Self::Prefix(literal) => with(literal, &|literal| value.starts_with(literal)),
            Self::EndsWith(literal) => with(literal, &|literal| value.ends_with(literal)),
            Self::Substring(literal) | Self::Contains(literal) => {
                with(literal, &|literal| memchr::memmem::find(value, literal).is_some())
            }
            Self::Matches(matcher) => Some(matcher.is_match(value)),
            Self::Like(_) | Self::ILike(_) | Self::Regexp(_) | Self::IsNull => None,
        }
    }
}

/// Compiles the pattern of a comparison, if it has one.
pub(super) fn compile(test: Comparison<Scalar>) -> Result<Comparison<Scalar>, String> {
    match &test {
        Comparison::Like(Scalar::Bytes(pattern)) => like(pattern, false),
        Comparison::ILike(Scalar::Bytes(pattern)) => like(pattern, true),
        Comparison::Regexp(Scalar::Bytes(pattern)) => {
            let text = std::str::from_utf8(pattern).map_err(|_| "not UTF-8".to_owned())?;
            Matcher::regexp(text).map(Comparison::Matches)
        }
        _ => Ok(test),
    }
}

/// A part of a `like` pattern.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Literal(Vec<u8>),
    /// `_`: one character.
    One,
    /// `%`: any bytes.
    Any,
}

/// Compiles a `like` or `ilike` pattern to the simplest comparison.
pub(super) fn like(pattern: &[u8], ignore_case: bool) -> Result<Comparison<Scalar>, String> {
    let parts = parts(pattern)?;
    let bytes = |literal: &[u8]| Scalar::Bytes(literal.to_vec());
    if !ignore_case {
        match &parts[..] {
            [] => return Ok(Comparison::Eq(bytes(&[]))),
            [Part::Literal(text)] => return Ok(Comparison::Eq(bytes(text))),
            [Part::Any] => return Ok(Comparison::Prefix(bytes(&[]))),
            [Part::Literal(text), Part::Any] => return Ok(Comparison::Prefix(bytes(text))),
            [Part::Any, Part::Literal(text)] => return Ok(Comparison::EndsWith(bytes(text))),
            [Part::Any, Part::Literal(text), Part::Any] => return Ok(Comparison::Substring(bytes(text))),
            _ => {}
        }
    }
    let operator = if ignore_case { "ilike" } else { "like" };
    let mut regex = String::from(if ignore_case { r"(?i)\A" } else { r"\A" });
    for part in &parts {
        match part {
            Part::Any => regex.push_str("(?s-u:.*)"),
            Part::One => regex.push_str("(?s:.)"),
            Part::Literal(literal) => escape(literal, &mut regex),
        }
    }
    regex.push_str(r"\z");
    let prefix = match parts.first() {
        Some(Part::Literal(prefix)) if !ignore_case => prefix.clone(),
        _ => Vec::new(),
    };
    let matcher = Matcher::compile(operator, &String::from_utf8_lossy(pattern), &regex, prefix)?;
    Ok(Comparison::Matches(matcher))
}

fn parts(pattern: &[u8]) -> Result<Vec<Part>, String> {
    let mut out: Vec<Part> = Vec::new();
    let mut bytes = pattern.iter();
    while let Some(byte) = bytes.next() {
        let literal = match byte {
            b'%' if out.last() == Some(&Part::Any) => continue,
            b'%' => {
                out.push(Part::Any);
                continue;
            }
            b'_' => {
                out.push(Part::One);
                continue;
            }
            b'\\' => *bytes.next().ok_or("nothing follows the last backslash")?,
            other => *other,
        };
        match out.last_mut() {
            Some(Part::Literal(text)) => text.push(literal),
            _ => out.push(Part::Literal(vec![literal])),
        }
    }
    Ok(out)
}

/// Appends a regular expression that matches exactly these bytes.
fn escape(literal: &[u8], out: &mut String) {
    use fmt::Write as _;

    match std::str::from_utf8(literal) {
        Ok(text) => out.push_str(&regex::escape(text)),
        Err(_) => literal.iter().for_each(|byte| {
            // Writing to a string cannot fail.
            let _ = write!(out, r"(?-u:\x{byte:02X})");
        }),
    }
}

/// The bytes that every match of a regular expression starts with, for pruning; empty if they are not obvious.
fn literal_prefix(pattern: &str) -> Vec<u8> {
    let Some(rest) = pattern.strip_prefix('^') else { return Vec::new() };
    if rest.contains('|') {
        return Vec::new();
    }
    let is_literal = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '/' | ':' | '-' | '_' | ',' | '@');
    let mut prefix: String = rest.chars().take_while(is_literal).collect();
    // A quantifier may make the last character optional: also `+`, in `a+*`.
    if rest[prefix.len()..].starts_with(['*', '?', '{', '+']) {
        prefix.pop();
    }
    prefix.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The obvious evaluation.
    fn naive(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['%', rest @ ..] => (0..=text.len()).any(|at| naive(rest, &text[at..])),
            ['_', rest @ ..] => !text.is_empty() && naive(rest, &text[1..]),
            ['\\', c, rest @ ..] | [c, rest @ ..] => text.first() == Some(c) && naive(rest, &text[1..]),
        }
    }

    proptest::proptest! {
        #[test]
        fn like_matches_a_naive_evaluation(pattern in "[ab%_\\.é]{0,8}", text in "[ab%_.é\n]{0,8}") {
            let chars = |text: &str| text.chars().collect::<Vec<char>>();
            let Ok(test) = like(pattern.as_bytes(), false) else {
                // Only a lone backslash is an error.
                let escapes = pattern.chars().rev().take_while(|c| *c == '\\').count();
                proptest::prop_assert_eq!(escapes % 2, 1);
                return Ok(());
            };
            let values = crate::column::Values::Bytes([&text].into_iter().collect());
            let found = test.values(&values).get(0);
            proptest::prop_assert_eq!(found, naive(&chars(&pattern), &chars(&text)), "{:?}", test);
        }

        #[test]
        fn prefixes_of_regular_expressions_are_necessary(pattern in "\\^?[ab/.*?+|{}1()]{0,6}", text in "[ab/1]{0,6}") {
            if let Ok(matcher) = Matcher::regexp(&pattern) {
                let matches = Regex::new(&pattern).unwrap().is_match(text.as_bytes());
                proptest::prop_assert_eq!(matcher.is_match(text.as_bytes()), matches, "{:?}", matcher.prefix());
            }
        }
    }

    #[test]
    fn case_and_bytes_are_handled() {
        let found = |pattern: &[u8], ignore_case, value: &[u8]| {
            let values = crate::column::Values::Bytes([value].into_iter().collect());
            like(pattern, ignore_case).unwrap().values(&values).get(0)
        };
        assert!(found(b"STRA%", true, "straße".as_bytes()));
        assert!(found("É_".as_bytes(), true, "éx".as_bytes()));
        assert!(!found(b"STRA%", false, b"strand"));
        assert!(found(b"a%\xff_", false, b"a..\xffz"));
        assert!(!found(b"a%\xff_", false, b"a..\xfez"));
    }

    #[test]
    fn hostile_patterns_are_rejected_or_fast() {
        let nested = "(".repeat(10_000) + &")".repeat(10_000);
        for bad in ["(", "a{1000}{1000}{1000}", "\\", &nested, &"a".repeat(MAX_PATTERN + 1)] {
            assert!(Matcher::regexp(bad).is_err());
        }
        assert!(like(b"a\\", false).is_err());
        let slow = Matcher::regexp("(a+)+$").unwrap();
        assert!(!slow.is_match(&[&vec![b'a'; 100_000][..], b"b"].concat()));
        let many = like("%a".repeat(5_000).as_bytes(), false).unwrap();
        assert!(matches!(many, Comparison::Matches(_)));
    }
}
