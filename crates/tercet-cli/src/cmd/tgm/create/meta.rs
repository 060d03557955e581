//! `KEY=VALUE` of `--meta`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;

use jsonc_parser::ast;
use tercet::core::escape;
use tercet::tgm::{Entry, Value};

use crate::failure::Failure;

/// Maximum nesting depth of keys; readers have a limit, too.
const MAX_DEPTH: usize = 32;
/// The metadata sections of a message.
const SECTIONS: [&str; 3] = ["base", "_extra_", "_reserved_"];

/// A key path and its value.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    path: Vec<String>,
    value: Value,
}

/// Parses `KEY=VALUE`.
pub(super) fn pair(text: &str) -> Result<Pair, String> {
    let Some((key, value)) = text.split_once('=') else {
        return Err("expected KEY=VALUE, like `step=6`".to_owned());
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
    Ok(Pair { path, value: parse(value)? })
}

/// The metadata section with these pairs.
pub(super) fn section(pairs: &[Pair]) -> Result<Entry, Failure> {
    let mut root = BTreeMap::new();
    for pair in pairs {
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
pub(super) fn parse(text: &str) -> Result<Value, String> {
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
        match section(&pairs) {
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
    fn dots_nest_maps() {
        let nested = json(&["mars.step=6", "mars.param=2t", "centre=98"]);
        assert_eq!(nested.unwrap(), r#"{"centre":98,"mars":{"param":"2t","step":6}}"#);
        assert_eq!(json(&["a=1", "a=2"]).unwrap_err(), "`--meta a`: `a` already has a value");
        assert_eq!(json(&["a=1", "a.b=2"]).unwrap_err(), "`--meta a.b`: `a` already has a value");
        assert_eq!(json(&["a={}", "a.b=2"]).unwrap_err(), "`--meta a.b`: `a` already has a value");
        assert_eq!(json(&["a.b=1", "a=2"]).unwrap_err(), "`--meta a`: `a` already has nested keys");
    }
}
