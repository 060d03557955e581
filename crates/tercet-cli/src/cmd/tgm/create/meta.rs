//! Metadata of new messages: `--meta`, `--meta-str` and `--meta-json`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;

use jsonc_parser::ast;
use tercet::core::escape;
use tercet::tgm::{Entry, Value};

use crate::failure::Failure;

/// Maximum nesting depth of keys; readers have a limit, too.
const MAX_DEPTH: usize = 32;
/// The maximum number of digits that float64 keeps.
const MAX_DIGITS: usize = 17;
/// The metadata sections of a message.
const SECTIONS: [&str; 3] = ["base", "_extra_", "_reserved_"];

/// A key path and its value.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    /// The object of `NAME:KEY`; `None` for the message.
    object: Option<String>,
    path: Vec<String>,
    value: Value,
    /// Whether a number is kept as a string, because it would lose digits.
    is_kept: bool,
}

/// Parses `KEY=VALUE` or `NAME:KEY=VALUE`; a value that is JSON is parsed.
pub(super) fn pair(text: &str) -> Result<Pair, String> {
    let mut pair = string_pair(text)?;
    if let Value::Text(text) = &pair.value {
        (pair.value, pair.is_kept) = typed(text)?;
    }
    Ok(pair)
}

/// Parses a value as JSON, or else as a string; also whether it is a number kept as a string, because it would lose digits.
pub(in crate::cmd::tgm) fn typed(text: &str) -> Result<(Value, bool), String> {
    if loses_digits(text) { Ok((text.into(), true)) } else { Ok((parse(text)?, false)) }
}

/// Parses `KEY=VALUE` or `NAME:KEY=VALUE`; the value is a string.
pub(super) fn string_pair(text: &str) -> Result<Pair, String> {
    let Some((key, value)) = text.split_once('=') else {
        return Err("expected KEY=VALUE, like `step=6`".to_owned());
    };
    let (object, key) = match key.split_once(':') {
        Some((object, key)) => (Some(object.to_owned()), key),
        None => (None, key),
    };
    let path: Vec<String> = key.split('.').map(str::to_owned).collect();
    if path.iter().any(String::is_empty) {
        return Err("a key, or a part of it between dots, is empty".to_owned());
    }
    if path.len() > MAX_DEPTH {
        return Err(format!("the key has {} parts; at most {MAX_DEPTH} are allowed", path.len()));
    }
    if SECTIONS.contains(&path[0].as_str()) {
        return Err(format!("`{}` is a section of the message, not a metadata key", path[0]));
    }
    Ok(Pair { object, path, value: value.into(), is_kept: false })
}

/// The key of the axis along which arrays are split, and its values.
#[derive(Clone, Debug)]
pub(super) struct SplitAxis {
    key: Pair,
    /// By default the positions.
    values: Option<Vec<Value>>,
}

/// Parses `KEY` or `KEY=VALUE,VALUE,…`.
pub(super) fn split_axis(text: &str) -> Result<SplitAxis, String> {
    let (key, values) = text.split_once('=').map_or((text, None), |(key, values)| (key, Some(values)));
    let key = string_pair(&format!("{key}="))?;
    if key.object.is_some() {
        return Err("the key is one of the message".to_owned());
    }
    let value = |text: &str| typed(text).map(|(value, _)| value);
    let values = values.map(|values| values.split(',').map(value).collect()).transpose()?;
    Ok(SplitAxis { key, values })
}

impl SplitAxis {
    pub(super) fn key(&self) -> String {
        self.key.path.join(".")
    }

    /// The metadata of each position.
    pub(super) fn pairs(&self, count: u64) -> Result<Vec<Pair>, Failure> {
        let values = match &self.values {
            None => (0..count).map(Value::from).collect(),
            Some(values) if values.len() as u64 == count => values.clone(),
            Some(values) => {
                let (key, found) = (self.key(), values.len());
                return Err(Failure::request(format!(
                    "`--split-axis {}=…`: {found} values, but the first axis has {count} positions",
                    escape::name(&key)
                )));
            }
        };
        Ok(values.into_iter().map(|value| Pair { value, ..self.key.clone() }).collect())
    }
}

/// Whether a decimal number is printed with other digits than it was written: a code like `130.10`, or more digits than
/// float64 has.
fn loses_digits(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let Some((whole, fraction)) = digits.split_once('.') else { return false };
    let is_number = !whole.is_empty() && !fraction.is_empty();
    let is_plain = [whole, fraction].iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    let significant = format!("{whole}{fraction}").trim_start_matches('0').len();
    is_number && is_plain && ((fraction.len() > 1 && fraction.ends_with('0')) || significant > MAX_DIGITS)
}

/// Notes about numbers that are stored as strings.
pub(super) fn notes(pairs: &[Pair]) -> impl Iterator<Item = String> {
    pairs.iter().filter(|pair| pair.is_kept).map(|pair| kept_note(&pair.path.join("."), &pair.value))
}

/// The note about a number that is stored as a string.
pub(in crate::cmd::tgm) fn kept_note(key: &str, value: &Value) -> String {
    let (key, value) = (escape::name(key), value.printed());
    format!("note: `{key}` is stored as the string \"{value}\": as a number it would lose digits")
}

/// The metadata section of the message, or of one of its objects.
pub(super) fn section(pairs: &[Pair], object: Option<&str>) -> Result<Entry, Failure> {
    let mut root = BTreeMap::new();
    for pair in pairs.iter().filter(|pair| pair.object.as_deref() == object) {
        insert(&mut root, &pair.path, &pair.value).map_err(|(parts, reason)| {
            let show = |path: &[String]| escape::name(&path.join(".")).into_owned();
            Failure::request(format!(
                "`--meta {}`: `{}` {reason}",
                show(&pair.path),
                show(&pair.path[..parts])
            ))
        })?;
    }
    Ok(root.into_iter().map(|(key, tree)| (key, tree.into_value())).collect())
}

/// Rejects pairs for objects that the message does not have.
pub(super) fn check_objects<'a>(pairs: &[Pair], names: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
    let known: Vec<&str> = names.collect();
    let is_unknown = |name: &&String| !known.contains(&name.as_str());
    match pairs.iter().filter_map(|pair| pair.object.as_ref()).find(is_unknown) {
        Some(name) => {
            let failure =
                Failure::request(format!("`--meta {0}:…`: no object is named `{0}`", escape::name(name)));
            Err(failure.with_hint(
                "`NAME:KEY=VALUE` sets metadata of an object; keys with colons can be set by `--meta-json`",
            ))
        }
        None => Ok(()),
    }
}

/// The metadata in a JSON file: keys of the message, and in `base` those of its objects by name.
pub(super) fn from_json_file(text: &str) -> Result<(Entry, BTreeMap<String, Entry>), String> {
    if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
        let error = serde_json::from_str::<serde_json::Value>(text).err();
        return Err(error.map_or_else(|| "invalid JSON".to_owned(), |error| format!("invalid JSON: {error}")));
    }
    let map = |value: Value, what: &str| match value {
        Value::Map(pairs) => pairs
            .into_iter()
            .map(|(key, value)| (key.printed(), value))
            .map(
                |(key, value)| {
                    if key.is_empty() { Err(format!("empty key in {what}")) } else { Ok((key, value)) }
                },
            )
            .collect::<Result<Entry, String>>(),
        _ => Err(format!("{what} must be a JSON object")),
    };
    let mut extra = map(parse(text)?, "metadata")?;
    let base = extra.remove("base").map(|base| map(base, "`base`")).transpose()?.unwrap_or_default();
    if let Some(section) = SECTIONS.iter().find(|section| extra.contains_key(**section)) {
        return Err(format!("`{section}` is a section of the message, not a metadata key"));
    }
    let objects = base.into_iter().map(|(name, entry)| Ok((name, map(entry, "an entry of `base`")?)));
    Ok((extra, objects.collect::<Result<_, String>>()?))
}

enum Tree {
    /// A given value.
    Given(Value),
    /// A map of nested keys.
    Keys(BTreeMap<String, Tree>),
}

impl Tree {
    fn into_value(self) -> Value {
        match self {
            Self::Given(value) => value,
            Self::Keys(keys) => {
                let keys: Entry = keys.into_iter().map(|(key, tree)| (key, tree.into_value())).collect();
                keys.into()
            }
        }
    }
}

/// Inserts a value; the error has the length of the conflicting path and the reason.
fn insert(
    root: &mut BTreeMap<String, Tree>,
    path: &[String],
    value: &Value,
) -> Result<(), (usize, &'static str)> {
    let mut here = root;
    for (depth, part) in path.iter().enumerate() {
        let is_last = depth + 1 == path.len();
        let next = match here.entry(part.clone()) {
            Slot::Vacant(slot) if is_last => {
                slot.insert(Tree::Given(value.clone()));
                return Ok(());
            }
            Slot::Vacant(slot) => slot.insert(Tree::Keys(BTreeMap::new())),
            Slot::Occupied(there) => there.into_mut(),
        };
        match next {
            Tree::Keys(keys) if !is_last => here = keys,
            Tree::Keys(_) => return Err((depth + 1, "already has nested keys")),
            Tree::Given(_) => return Err((depth + 1, "already has a value")),
        }
    }
    Ok(())
}

/// Parses JSON, or else a string.
fn parse(text: &str) -> Result<Value, String> {
    // The strict parser decides whether it is JSON; the other one keeps the digits of numbers.
    if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
        return Ok(text.into());
    }
    let (collect, options) = (jsonc_parser::CollectOptions::default(), jsonc_parser::ParseOptions::default());
    match jsonc_parser::parse_to_ast(text, &collect, &options).map(|parsed| parsed.value) {
        Ok(Some(value)) => from_json(&value),
        _ => Ok(text.into()),
    }
}

fn from_json(json: &ast::Value<'_>) -> Result<Value, String> {
    Ok(match json {
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::BooleanLit(literal) => literal.value.into(),
        ast::Value::StringLit(literal) => literal.value.as_ref().into(),
        ast::Value::NumberLit(literal) => number(literal.value)?,
        ast::Value::Array(array) => {
            array.elements.iter().map(from_json).collect::<Result<Vec<_>, _>>()?.into()
        }
        ast::Value::Object(object) => {
            let mut entry = Entry::new();
            for property in &object.properties {
                let key = property.name.as_str();
                if entry.insert(key.to_owned(), from_json(&property.value)?).is_some() {
                    return Err(format!("duplicate key `{}`", escape::name(key)));
                }
            }
            entry.into()
        }
    })
}

/// Parses a number exactly: long integers do not become floats.
fn number(text: &str) -> Result<Value, String> {
    if text.contains(['.', 'e', 'E']) {
        let float: Option<f64> = text.parse().ok();
        let float = float.filter(|float| float.is_finite());
        return float.map(Value::from).ok_or_else(|| format!("`{text}` is out of the range of float64"));
    }
    let integer: Option<i128> = text.parse().ok();
    integer
        .map(Value::from)
        .ok_or_else(|| format!("integer `{text}` has more than 127 bits; quote it to store a string"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        pair(&format!("k={text}")).unwrap().value
    }

    fn json(pairs: &[&str]) -> Result<String, String> {
        let pairs: Vec<Pair> = pairs.iter().map(|text| pair(text).unwrap()).collect();
        match section(&pairs, None) {
            Ok(entry) => Ok(Value::from(entry).printed()),
            Err(Failure::Error(report)) => Err(report.message),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn values_are_json_or_strings() {
        assert_eq!(value("6"), Value::Integer(6));
        assert_eq!(value("-18446744073709551616"), Value::Integer(-(1 << 64)));
        assert_eq!(value("6.0"), Value::Float(6.0));
        assert_eq!(value("8.5066664e-3"), Value::Float(8.506_666_4e-3));
        assert_eq!((value("true"), value("null")), (true.into(), Value::Null));
        assert_eq!(value("\"6\""), "6".into());
        assert_eq!(value("[1, \"a\"]"), vec![1.into(), "a".into()].into());
        assert_eq!(value("{\"a\": [9007199254740993]}").printed(), "{\"a\":[9007199254740993]}");
        for text in ["", "06", "2t", "nan", "True", "1 2", "[1,", "'a'", "0x10", "a=b", "[1,] // x"] {
            assert_eq!(value(text), text.into());
        }
    }

    #[test]
    fn ambiguous_values_are_rejected() {
        for (text, reason) in [
            ("step", "expected KEY=VALUE"),
            ("=6", "is empty"),
            ("a..b=6", "is empty"),
            ("base.0=6", "`base` is a section"),
            ("_extra_.a=6", "`_extra_` is a section"),
            ("a=1e999", "out of the range"),
            ("a=[170141183460469231731687303715884105728]", "more than 127 bits"),
            ("a={\"x\": 1, \"x\": 2}", "duplicate key `x`"),
        ] {
            let error = pair(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
        assert!(pair(&format!("{}=1", vec!["a"; MAX_DEPTH].join("."))).is_ok());
        assert!(pair(&format!("{}=1", vec!["a"; MAX_DEPTH + 1].join("."))).is_err());
    }

    #[test]
    fn numbers_that_would_lose_digits_stay_strings() {
        for text in ["130.10", "1.00", "-0.50", "0.12345678901234567890"] {
            assert_eq!(value(text), text.into());
            assert_eq!(notes(&[pair(&format!("k={text}")).unwrap()]).count(), 1);
        }
        assert_eq!(
            (value("130.1"), value("6.0"), value("1000")),
            (Value::Float(130.1), Value::Float(6.0), 1000.into())
        );
        assert_eq!(string_pair("k=6").unwrap().value, "6".into());
    }

    #[test]
    fn names_select_objects() {
        let pairs = [pair("step=6").unwrap(), pair("t2m:units=K").unwrap(), pair("t2m:a.b=1").unwrap()];
        assert_eq!(Value::from(section(&pairs, None).unwrap()).printed(), r#"{"step":6}"#);
        assert_eq!(
            Value::from(section(&pairs, Some("t2m")).unwrap()).printed(),
            r#"{"a":{"b":1},"units":"K"}"#
        );
        assert!(check_objects(&pairs, ["t2m"].into_iter()).is_ok());
        assert!(check_objects(&pairs, ["u"].into_iter()).is_err());
    }

    #[test]
    fn json_files_have_message_and_object_metadata() {
        let (extra, base) =
            from_json_file(r#"{"step": 6, "base": {"t2m": {"units": "K", "big": 9007199254740993}}}"#)
                .unwrap();
        assert_eq!(Value::from(extra).printed(), r#"{"step":6}"#);
        assert_eq!(Value::from(base["t2m"].clone()).printed(), r#"{"big":9007199254740993,"units":"K"}"#);
        for wrong in ["[1]", "{", "{\"base\": 1}", "{\"_extra_\": {}}", "{\"a\": 1, \"a\": 2}"] {
            assert!(from_json_file(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn dots_nest_maps() {
        let nested = json(&["mars.step=6", "mars.param=2t", "centre=98"]);
        assert_eq!(nested.unwrap(), r#"{"centre":98,"mars":{"param":"2t","step":6}}"#);
        assert_eq!(json(&["a=1", "a=2"]).unwrap_err(), "`--meta a`: `a` already has a value");
        assert_eq!(json(&["a=1", "a.b=2"]).unwrap_err(), "`--meta a.b`: `a` already has a value");
        assert_eq!(json(&["a={}", "a.b=2"]).unwrap_err(), "`--meta a.b`: `a` already has a value");
        assert_eq!(json(&["a.b=1", "a=2"]).unwrap_err(), "`--meta a`: `a` already has nested keys");
    }
}
