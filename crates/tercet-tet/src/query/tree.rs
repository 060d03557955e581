//! JSON and TOML parsers for a syntax tree with byte positions.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use super::error::{QueryError, QueryErrorKind, excerpt};

/// The length limit of a query, in bytes.
pub(crate) const TEXT_BYTES: usize = 1 << 20;
/// The nesting limit; the document is level 1.
pub(crate) const NESTING: usize = 64;

/// The syntax of a query document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// JSON.
    Json,
    /// TOML.
    Toml,
}

impl Syntax {
    /// JSON if the text starts with `{`, else TOML.
    pub fn guess(text: &str) -> Self {
        if text.trim_start().starts_with('{') { Self::Json } else { Self::Toml }
    }
}

/// A value and its position in the text.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Tree,
    pub(crate) at: Range<usize>,
}

#[derive(Clone, Debug)]
pub(crate) enum Tree {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    /// An integer beyond both, for exact comparisons; otherwise the nearest float.
    Wide(i128, f64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A member of a table.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_at: Range<usize>,
    pub(crate) node: Node,
}

impl Tree {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Unsigned(_) | Self::Signed(_) | Self::Wide(..) => "an integer",
            Self::Float(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Table(_) => "an object",
        }
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

/// Parses a text. A duplicate key is an error.
pub(crate) fn parse(text: &str, syntax: Syntax) -> Result<Node, QueryError> {
    if text.len() > TEXT_BYTES {
        let reason = QueryErrorKind::TooLong { found: text.len(), allowed: TEXT_BYTES };
        return Err(QueryError::new(reason, String::new(), 0..0, ""));
    }
    check_nesting(text, syntax)?;
    match syntax {
        Syntax::Json => parse_json(text),
        Syntax::Toml => parse_toml(text),
    }
}

/// Checks the nesting before a recursive parser runs. Brackets in TOML comments or multi-line strings are counted
/// as well; no sensible document has 64 of them open.
fn check_nesting(text: &str, syntax: Syntax) -> Result<(), QueryError> {
    // A TOML document is a table itself, without brackets.
    let mut depth = usize::from(syntax == Syntax::Toml);
    let (mut in_text, mut escaped) = (None, false);
    for (at, byte) in text.bytes().enumerate() {
        match in_text {
            Some(quote) => {
                if escaped {
                    escaped = false;
                } else if byte == b'\\' && quote == b'"' {
                    escaped = true;
                } else if byte == quote || (byte == b'\n' && syntax == Syntax::Toml) {
                    in_text = None;
                }
            }
            None => match byte {
                b'"' => in_text = Some(b'"'),
                b'\'' if syntax == Syntax::Toml => in_text = Some(b'\''),
                b'{' | b'[' => {
                    depth += 1;
                    if depth > NESTING {
                        let reason = QueryErrorKind::TooDeep { allowed: NESTING };
                        return Err(QueryError::new(reason, String::new(), at..at + 1, text));
                    }
                }
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            },
        }
    }
    Ok(())
}

fn parse_json(text: &str) -> Result<Node, QueryError> {
    // The strict parser decides what is JSON; the other one gives positions.
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        let at = offset_of(text, error.line(), error.column());
        let message = error.to_string();
        // The position is reported separately.
        let detail =
            message.rsplit_once(" at line ").map_or(message.as_str(), |(detail, _)| detail).to_owned();
        return Err(QueryError::new(QueryErrorKind::Syntax { detail }, String::new(), at..at, text));
    }
    let parsed = jsonc_parser::parse_to_ast(text, &jsonc_parser::CollectOptions::default(), &strict());
    match parsed.map(|result| result.value) {
        Ok(Some(value)) => from_json(&value, text),
        Ok(None) => {
            let reason = QueryErrorKind::Syntax { detail: "is empty".to_owned() };
            Err(QueryError::new(reason, String::new(), 0..0, text))
        }
        Err(error) => {
            let reason = QueryErrorKind::Syntax { detail: error.kind().to_string() };
            Err(QueryError::new(reason, String::new(), error.range().start..error.range().end, text))
        }
    }
}

fn strict() -> jsonc_parser::ParseOptions {
    jsonc_parser::ParseOptions {
        allow_comments: false,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn from_json(value: &jsonc_parser::ast::Value<'_>, text: &str) -> Result<Node, QueryError> {
    use jsonc_parser::ast::Value;
    use jsonc_parser::common::Ranged as _;

    let at = value.range().start..value.range().end;
    let tree = match value {
        Value::NullKeyword(_) => Tree::Null,
        Value::BooleanLit(literal) => Tree::Bool(literal.value),
        Value::StringLit(literal) => Tree::Text(literal.value.to_string()),
        Value::NumberLit(literal) => number(literal.value).ok_or_else(|| out_of_range(&at, text))?,
        Value::Array(array) => Tree::List(
            array.elements.iter().map(|element| from_json(element, text)).collect::<Result<_, _>>()?,
        ),
        Value::Object(object) => {
            let mut entries: Vec<Entry> = Vec::with_capacity(object.properties.len());
            let mut keys = HashSet::with_capacity(object.properties.len());
            for property in &object.properties {
                let (name, range) = (property.name.as_str(), property.name.range());
                let key_at = range.start..range.end;
                if !keys.insert(name) {
                    let reason = QueryErrorKind::DuplicateKey { key: excerpt(name) };
                    return Err(QueryError::new(reason, String::new(), key_at, text));
                }
                let node = from_json(&property.value, text)?;
                entries.push(Entry { key: name.to_owned(), key_at, node });
            }
            Tree::Table(entries)
        }
    };
    Ok(Node { value: tree, at })
}

fn out_of_range(at: &Range<usize>, text: &str) -> QueryError {
    let reason = QueryErrorKind::Syntax { detail: "a number out of range".to_owned() };
    QueryError::new(reason, String::new(), at.clone(), text)
}

/// A JSON number; `None` if it overflows f64.
fn number(text: &str) -> Option<Tree> {
    if let Ok(number) = text.parse() {
        return Some(Tree::Unsigned(number));
    }
    // `-0` is a float: no integer is negative zero.
    if let Some(number) = text.parse().ok().filter(|number: &i64| *number != 0) {
        return Some(Tree::Signed(number));
    }
    let float = text.parse().ok().filter(|number: &f64| number.is_finite())?;
    let whole = text.parse().ok().filter(|number: &i128| *number != 0);
    Some(whole.map_or(Tree::Float(float), |whole| Tree::Wide(whole, float)))
}

fn parse_toml(text: &str) -> Result<Node, QueryError> {
    match toml::de::DeTable::parse(text) {
        Ok(table) => {
            let at = table.span();
            let entries = from_table(table.get_ref(), text, 1)?;
            Ok(Node { value: Tree::Table(entries), at })
        }
        Err(error) => {
            let reason = QueryErrorKind::Syntax { detail: error.message().to_owned() };
            Err(QueryError::new(reason, String::new(), error.span().unwrap_or(0..0), text))
        }
    }
}

/// `depth` is the level of the table; dotted keys nest without brackets.
fn from_table(table: &toml::de::DeTable<'_>, text: &str, depth: usize) -> Result<Vec<Entry>, QueryError> {
    let mut entries = Vec::with_capacity(table.len());
    for (key, value) in table {
        let node = from_toml(value, text, depth + 1)?;
        entries.push(Entry { key: key.get_ref().to_string(), key_at: key.span(), node });
    }
    Ok(entries)
}

fn from_toml(
    value: &toml::Spanned<toml::de::DeValue<'_>>,
    text: &str,
    depth: usize,
) -> Result<Node, QueryError> {
    use toml::de::DeValue;

    let at = value.span();
    let is_container = matches!(value.get_ref(), DeValue::Array(_) | DeValue::Table(_));
    if is_container && depth > NESTING {
        let reason = QueryErrorKind::TooDeep { allowed: NESTING };
        return Err(QueryError::new(reason, String::new(), at, text));
    }
    let tree = match value.get_ref() {
        DeValue::String(text) => Tree::Text(text.to_string()),
        DeValue::Integer(integer) => {
            let (digits, radix) = (integer.as_str(), integer.radix());
            if let Ok(number) = u64::from_str_radix(digits, radix) {
                Tree::Unsigned(number)
            } else if let Ok(number) = i64::from_str_radix(digits, radix) {
                Tree::Signed(number)
            } else {
                return Err(out_of_range(&at, text));
            }
        }
        DeValue::Float(float) => Tree::Float(float.as_str().parse().map_err(|_| out_of_range(&at, text))?),
        DeValue::Boolean(value) => Tree::Bool(*value),
        DeValue::Datetime(value) => Tree::Text(value.to_string()),
        DeValue::Array(array) => {
            let elements = array.iter().map(|element| from_toml(element, text, depth + 1));
            Tree::List(elements.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => Tree::Table(from_table(table, text, depth)?),
    };
    Ok(Node { value: tree, at })
}

/// The byte offset of a line and column, both from 1.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    text.floor_char_boundary(start + column.saturating_sub(1))
}

impl Node {
    /// The member at a path such as `selection[0].start`: the position of its key (of the value in lists) and the
    /// value. Without such a member, the innermost one around it.
    pub(crate) fn find(&self, path: &str) -> (Range<usize>, &Node) {
        let (mut key_at, mut node) = (self.at.clone(), self);
        for part in path.split(['.', '[']).filter(|part| !part.is_empty()) {
            let index = part.strip_suffix(']').and_then(|digits| digits.parse::<usize>().ok());
            match (&node.value, index) {
                (Tree::Table(entries), None) => {
                    let Some(entry) = entries.iter().find(|entry| entry.key == part) else { break };
                    (key_at, node) = (entry.key_at.clone(), &entry.node);
                }
                (Tree::List(list), Some(index)) => {
                    let Some(element) = list.get(index) else { break };
                    (key_at, node) = (element.at.clone(), element);
                }
                _ => break,
            }
        }
        (key_at, node)
    }

    /// The tree as JSON. Numbers that JSON does not have become strings, which the parser accepts, too.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Tree::Null => serde_json::Value::Null,
            Tree::Bool(value) => (*value).into(),
            Tree::Unsigned(number) => (*number).into(),
            Tree::Signed(number) => (*number).into(),
            Tree::Wide(_, number) => (*number).into(),
            Tree::Float(number) if number.is_finite() => (*number).into(),
            Tree::Float(number) => number.to_string().to_lowercase().into(),
            Tree::Text(text) => text.as_str().into(),
            Tree::List(list) => list.iter().map(Self::to_json).collect(),
            Tree::Table(entries) => {
                entries.iter().map(|entry| (entry.key.clone(), entry.node.to_json())).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_give_the_same_tree() {
        let json = parse(r#"{"a": [1, -2, 2.5, "x"], "b": {"c": true}}"#, Syntax::Json).unwrap();
        let toml = parse("a = [1, -2, 2.5, 'x']\n[b]\nc = true\n", Syntax::Toml).unwrap();
        assert_eq!(json.to_json(), toml.to_json());
    }

    #[test]
    fn positions_are_recorded() {
        let text = r#"{"mean": [], "fancy": 1}"#;
        let node = parse(text, Syntax::Json).unwrap();
        let Tree::Table(entries) = node.value else { panic!() };
        assert_eq!(&text[entries[1].key_at.clone()], r#""fancy""#);
        assert_eq!(&text[entries[1].node.at.clone()], "1");
    }

    #[test]
    fn invalid_documents_are_rejected() {
        let deep = |n: usize| format!("{}1{}", "{\"a\":[".repeat(n), "]}".repeat(n));
        assert!(parse(&deep(32), Syntax::Json).is_ok());
        assert!(matches!(
            parse(&deep(33), Syntax::Json).unwrap_err().reason(),
            QueryErrorKind::TooDeep { .. }
        ));
        assert!(parse(&format!("{{\"a\":\"{}\"}}", "[".repeat(100)), Syntax::Json).is_ok());
        let long = " ".repeat(TEXT_BYTES + 1);
        assert!(matches!(parse(&long, Syntax::Json).unwrap_err().reason(), QueryErrorKind::TooLong { .. }));
        for wrong in ["", "{", "{'a':1}", "{a:1}", "{\"a\":1,}", "{\"a\":0x1}", "{} {}", "{\"a\":1 // x\n}"] {
            assert!(parse(wrong, Syntax::Json).is_err(), "{wrong}");
        }
        for wrong in ["{\"a\":1e999}", "{\"a\":-1e999}"] {
            let error = parse(wrong, Syntax::Json).unwrap_err();
            assert_eq!(&wrong[error.at()], wrong[5..].trim_end_matches('}'));
        }
        for wrong in ["a = ", "a = [", "a = 1\na = 2", "= 3"] {
            assert!(parse(wrong, Syntax::Toml).is_err(), "{wrong}");
        }
    }

    /// A reader of the document cannot know which of two values counts.
    #[test]
    fn duplicate_keys_are_rejected() {
        for (text, at) in [
            ("{\"mean\": [],\n \"mean\": 0}", (2, 2)),
            ("{\"a\": [{\"b\": 1}, {\"b\": 1, \"\\u0062\": 1}]}", (1, 27)),
        ] {
            let error = parse(text, Syntax::Json).unwrap_err();
            assert!(matches!(error.reason(), QueryErrorKind::DuplicateKey { .. }), "{error}");
            assert_eq!((error.line(), error.column()), at, "{error}");
        }
        let error = parse("{\"a\":1,\"a\":2}", Syntax::Json).unwrap_err();
        assert_eq!(error.to_string(), "query (line 1, column 8): duplicate key `a`");
        for text in ["a = 1\na = 2", "b = 1\na = {b = 1, b = 2}", "[a]\n[a]"] {
            let error = parse(text, Syntax::Toml).unwrap_err();
            assert!(error.to_string().contains("duplicate key"), "{error}");
            assert!(error.at().start > 0, "{error}");
        }
    }

    #[test]
    fn dotted_keys_nest_too() {
        for form in ["KEY = 1", "[KEY]\na = 1", "[[KEY]]\na = 1", "a = {KEY = 1}"] {
            let text = |n: usize| form.replace("KEY", &vec!["k"; n].join("."));
            assert!(parse(&text(20), Syntax::Toml).is_ok(), "{form}");
            for many in [70, 5_000, 100_000] {
                assert!(parse(&text(many), Syntax::Toml).is_err(), "{form} {many}");
            }
        }
        let deep = |n: usize| format!("{} = 1", vec!["k"; n].join("."));
        assert!(parse(&deep(64), Syntax::Toml).is_ok());
        assert!(matches!(
            parse(&deep(65), Syntax::Toml).unwrap_err().reason(),
            QueryErrorKind::TooDeep { .. }
        ));
    }

    #[test]
    fn many_keys_take_no_time() {
        let keys: Vec<String> = (0..80_000).map(|n| format!("\"k{n}\":0")).collect();
        let text = format!("{{{},\"k\":\"last\"}}", keys.join(","));
        let node = parse(&text, Syntax::Json).unwrap();
        let Tree::Table(entries) = &node.value else { panic!() };
        assert_eq!(entries.len(), 80_001);
        assert!(matches!(&node.find("k").1.value, Tree::Text(last) if last == "last"));
    }

    #[test]
    fn members_are_found_by_their_path() {
        let text = r#"{"selection": [{"start": 3}, {}]}"#;
        let node = parse(text, Syntax::Json).unwrap();
        let (key_at, value) = node.find("selection[0].start");
        assert_eq!((&text[key_at], &text[value.at.clone()]), ("\"start\"", "3"));
        let (_, around) = node.find("selection[1].stop");
        assert_eq!(&text[around.at.clone()], "{}");
        assert_eq!(node.find("").1.at, 0..text.len());
        assert_eq!(&text[node.find("selection[7]").1.at.clone()], r#"[{"start": 3}, {}]"#);
    }
}
