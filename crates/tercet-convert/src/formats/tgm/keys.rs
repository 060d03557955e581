//! Metadata as flat keys: `mars.step`, `extra.centre`.

use std::collections::BTreeMap;

use tercet_core::DType;
use tercet_tgm::{Entry, Value};

use super::EXTRA;
use crate::arrays::{AttrData, Number, Numbers};

/// Flat keys and their values.
pub(super) type Keys = BTreeMap<String, Value>;

/// Metadata is not nested deeper in flat keys.
const MAX_DEPTH: usize = 8;

/// Adds the keys of a map. Maps with string keys are entered; a dot inside a key is written as `\.`.
pub(super) fn flatten(entry: &Entry, prefix: &str, keys: &mut Keys) {
    for (key, value) in entry {
        if key != "_reserved_" {
            flatten_value(value, &format!("{prefix}{}", escaped(key)), 0, keys);
        }
    }
}

fn flatten_value(value: &Value, path: &str, depth: usize, keys: &mut Keys) {
    // The first component `extra` is that of the message.
    let is_message = format!("{path}.") == EXTRA;
    if let Value::Map(pairs) = value
        && depth < MAX_DEPTH
        && !pairs.is_empty()
        && !is_message
        && pairs.iter().all(|(key, _)| key.as_text().is_some())
    {
        for (key, value) in pairs {
            let key = escaped(key.as_text().unwrap_or_default());
            flatten_value(value, &format!("{path}.{key}"), depth + 1, keys);
        }
        return;
    }
    keys.insert(path.to_owned(), value.clone());
}

fn escaped(key: &str) -> String {
    key.replace('\\', "\\\\").replace('.', "\\.")
}

/// The components of a path.
pub(super) fn components(path: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = path.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => parts.last_mut().into_iter().for_each(|part| part.extend(characters.next())),
            '.' => parts.push(String::new()),
            other => parts.last_mut().into_iter().for_each(|part| part.push(other)),
        }
    }
    parts
}

/// The last component of a path.
pub(super) fn last(path: &str) -> String {
    components(path).pop().unwrap_or_default()
}

/// The entry of an object and that of the message of flat keys.
pub(super) fn unflatten(keys: &Keys) -> (Entry, Entry) {
    let (mut base, mut extra) = (Entry::new(), Entry::new());
    for (path, value) in keys {
        match path.strip_prefix(EXTRA) {
            Some(path) => insert(&mut extra, &components(path), value),
            None => insert(&mut base, &components(path), value),
        }
    }
    (base, extra)
}

fn insert(entry: &mut Entry, path: &[String], value: &Value) {
    let Some((first, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        entry.insert(first.clone(), value.clone());
        return;
    }
    let slot = entry.entry(first.clone()).or_insert_with(|| Value::Map(Vec::new()));
    insert_value(slot, rest, value);
}

fn insert_value(slot: &mut Value, path: &[String], value: &Value) {
    if !matches!(slot, Value::Map(_)) {
        *slot = Value::Map(Vec::new());
    }
    let Value::Map(pairs) = slot else { return };
    let Some((first, rest)) = path.split_first() else { return };
    let position = pairs.iter().position(|(key, _)| key.as_text() == Some(first));
    let position = position.unwrap_or_else(|| {
        pairs.push((first.as_str().into(), Value::Null));
        pairs.len() - 1
    });
    if rest.is_empty() {
        pairs[position].1 = value.clone();
    } else {
        insert_value(&mut pairs[position].1, rest, value);
    }
}

/// The value of a key as an attribute.
pub(super) fn attribute(value: &Value) -> AttrData {
    match value {
        Value::Text(text) => AttrData::Text(text.clone()),
        Value::Integer(integer) => match i64::try_from(*integer) {
            Ok(integer) => AttrData::Numbers(Numbers::scalar(DType::I64, integer.to_le_bytes().to_vec())),
            Err(_) => AttrData::Json(value.to_json()),
        },
        Value::Float(float) => AttrData::f64(*float),
        Value::Array(items) if !items.is_empty() => {
            let texts: Option<Vec<String>> =
                items.iter().map(|item| item.as_text().map(str::to_owned)).collect();
            if let Some(texts) = texts {
                return AttrData::Strings(texts);
            }
            let integers: Option<Vec<i64>> =
                items.iter().map(|item| item.as_i128().and_then(|integer| integer.try_into().ok())).collect();
            if let Some(integers) = integers {
                let bytes = integers.iter().flat_map(|integer| integer.to_le_bytes()).collect();
                return AttrData::Numbers(Numbers { dtype: DType::I64, bytes, is_list: true });
            }
            let float = |item: &Value| match item {
                Value::Float(float) => Some(*float),
                _ => None,
            };
            let floats: Option<Vec<f64>> = items.iter().map(float).collect();
            match floats {
                Some(floats) => {
                    let bytes = floats.iter().flat_map(|float| float.to_le_bytes()).collect();
                    AttrData::Numbers(Numbers { dtype: DType::F64, bytes, is_list: true })
                }
                None => AttrData::Json(value.to_json()),
            }
        }
        other => AttrData::Json(other.to_json()),
    }
}

/// The value of an attribute as metadata. The element type of numbers is lost.
pub(super) fn value(data: &AttrData) -> Value {
    let number = |number: Number| match number {
        Number::Int(integer) => Value::Integer(integer),
        Number::Float(float) => Value::Float(float),
    };
    match data {
        AttrData::Text(text) => text.as_str().into(),
        AttrData::Strings(texts) => Value::Array(texts.iter().map(|text| text.as_str().into()).collect()),
        AttrData::Numbers(numbers) if !numbers.is_list => numbers.first().map_or(Value::Null, number),
        AttrData::Numbers(numbers) => Value::Array(numbers.iter().map(number).collect()),
        AttrData::Json(json) => Value::from_json(json),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_restored() {
        let nested = Value::Map(vec![("step".into(), 6.into()), ("a.b".into(), Value::Map(Vec::new()))]);
        let entry: Entry =
            [("mars".to_owned(), nested), ("x\\.y".to_owned(), 1.5.into()), ("extra".to_owned(), "z".into())]
                .into();
        let extra: Entry = [("centre".to_owned(), "ecmf".into())].into();
        let mut keys = Keys::new();
        flatten(&entry, "", &mut keys);
        flatten(&extra, EXTRA, &mut keys);
        assert_eq!(keys["mars.step"], 6.into());
        assert_eq!(last("mars.a\\.b"), "a.b");
        let (found, found_extra) = unflatten(&keys);
        // Canonical CBOR has one order of keys.
        let bytes = |entry: Entry| tercet_tgm::cbor::encode(&entry.into());
        assert_eq!(bytes(found), bytes(entry));
        assert_eq!(bytes(found_extra), bytes(extra));
    }
}
