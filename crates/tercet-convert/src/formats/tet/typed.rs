//! The member `typed` of metadata: types that a `.tet` file does not have.

use serde_json::{Value, json};
use tercet_core::DType;

use crate::arrays::{Attr, AttrData, Numbers};

/// The name of the member, of a dataset and of the file.
pub(super) const TYPED: &str = "typed";

/// The longest attribute that is visible to other programs; longer ones are in the record only.
const VISIBLE_BYTES: usize = 1024;
/// The number of attributes of a dataset that are visible to other programs.
pub(super) const VISIBLE_ATTRS: usize = 60;

/// The text of a value as the format stores it.
pub(super) fn text(value: &AttrData) -> String {
    match value {
        AttrData::Text(text) => text.clone(),
        AttrData::Numbers(numbers) if numbers.is_list => format!("[{}]", numbers.texts().join(",")),
        AttrData::Numbers(numbers) => numbers.texts().concat(),
        AttrData::Strings(_) | AttrData::Json(_) => value.to_json().to_string(),
    }
}

/// Whether an attribute can be stored where other programs see it.
pub(super) fn is_visible(name: &str, text: &str) -> bool {
    let fits = |text: &str| !text.is_empty() && text.len() <= VISIBLE_BYTES;
    fits(name) && fits(text)
}

/// The records of attributes: name, type, text, in order. `visible` says which are stored as attributes too.
pub(super) fn records(attrs: &[Attr], visible: impl Fn(&str) -> bool) -> Value {
    let record = |attr: &Attr| {
        let mut record = vec![json!(attr.name), json!(type_name(&attr.value)), json!(text(&attr.value))];
        if !visible(&attr.name) {
            record.push(json!("only here"));
        }
        Value::Array(record)
    };
    attrs.iter().map(record).collect()
}

fn type_name(value: &AttrData) -> String {
    match value {
        AttrData::Text(_) => "string".to_owned(),
        AttrData::Strings(_) => "string[]".to_owned(),
        AttrData::Json(_) => "json".to_owned(),
        AttrData::Numbers(numbers) => {
            format!("{}{}", numbers.dtype.short_name(), if numbers.is_list { "[]" } else { "" })
        }
    }
}

fn parse(kind: &str, text: &str) -> Option<AttrData> {
    match kind {
        "string" => return Some(AttrData::Text(text.to_owned())),
        "string[]" => return serde_json::from_str(text).ok().map(AttrData::Strings),
        "json" => return serde_json::from_str(text).ok().map(AttrData::Json),
        _ => {}
    }
    let (name, is_list) = kind.strip_suffix("[]").map_or((kind, false), |name| (name, true));
    let dtype: DType = name.parse().ok()?;
    let inner = if is_list { text.strip_prefix('[')?.strip_suffix(']')? } else { text };
    let texts: Vec<&str> = if inner.is_empty() { Vec::new() } else { inner.split(',').collect() };
    Numbers::parse(dtype, &texts, is_list).map(AttrData::Numbers)
}

/// Whether two texts have the same numbers, also if they are written differently: `1e20` and `1e+20`, `inf` and `"Infinity"`.
fn is_same(left: &str, right: &str) -> bool {
    let is_separator = |c: char| matches!(c, ',' | '[' | ']' | '"') || c.is_whitespace();
    let parts = |text: &str| -> Vec<String> {
        text.split(is_separator).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let equal = |(left, right): (&String, &String)| {
        let number = |text: &String| text.parse::<f64>().ok().map(f64::to_bits);
        // Integers of more digits than a float has are compared as text.
        let is_integer = left.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-' || byte == b'+');
        left == right || !is_integer && number(left).is_some() && number(left) == number(right)
    };
    let (a, b) = (parts(left), parts(right));
    a.len() == b.len() && a.iter().zip(&b).all(equal)
}

/// The attributes of a file or a dataset: those that are stored, with their recorded types, and those that are recorded only.
pub(super) fn attributes(record: Option<&Value>, mut stored: Vec<(String, String, AttrData)>) -> Vec<Attr> {
    let mut attrs = Vec::new();
    for item in record.and_then(|record| record.get("attrs")).and_then(Value::as_array).into_iter().flatten()
    {
        let part = |index: usize| item.get(index).and_then(Value::as_str);
        let (Some(name), Some(kind), Some(text)) = (part(0), part(1), part(2)) else { continue };
        let position = stored.iter().position(|(found, ..)| found == name);
        let recorded = parse(kind, text);
        match (position, recorded) {
            (Some(position), recorded) => {
                let (name, found, value) = stored.remove(position);
                let is_unchanged = |recorded: &AttrData| {
                    found == text || matches!(recorded, AttrData::Numbers(_)) && is_same(&found, text)
                };
                let value = recorded.filter(is_unchanged).unwrap_or(value);
                attrs.push(Attr { name, value });
            }
            // Removed by an edit, unless it was never visible.
            (None, Some(value)) if item.get(3).is_some() => attrs.push(Attr { name: name.to_owned(), value }),
            (None, _) => {}
        }
    }
    attrs.extend(stored.into_iter().map(|(name, _, value)| Attr { name, value }));
    attrs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_parsed_back() {
        let numbers = |dtype, texts: &[&str], is_list| {
            AttrData::Numbers(Numbers::parse(dtype, texts, is_list).unwrap())
        };
        for value in [
            AttrData::Text("850".to_owned()),
            AttrData::Text(String::new()),
            AttrData::Strings(vec!["a".to_owned(), String::new()]),
            AttrData::Json(json!({"a": [1, null]})),
            numbers(DType::I16, &["-5"], false),
            numbers(DType::U64, &["18446744073709551615"], false),
            numbers(DType::F32, &["0.1", "NaN", "-inf", "1e20"], true),
            numbers(DType::F64, &["0.1"], true),
            numbers(DType::I8, &[], true),
        ] {
            let back = parse(&type_name(&value), &text(&value)).unwrap();
            assert_eq!(format!("{back:?}"), format!("{value:?}"));
        }
        assert_eq!(parse("i8", "300"), None);
        assert_eq!(parse("i8[]", "300"), None);
        assert_eq!(parse("f99", "1"), None);
    }

    #[test]
    fn edited_attributes_win_over_their_records() {
        let attrs = [
            Attr::new("level", AttrData::Numbers(Numbers::parse(DType::I16, &["850"], false).unwrap())),
            Attr::text("title", "old"),
            Attr::text("history", "long"),
        ];
        let record = json!({ "attrs": records(&attrs, |name| name != "history") });
        let stored =
            |name: &str, text: &str| (name.to_owned(), text.to_owned(), AttrData::Text(text.to_owned()));
        let found = attributes(Some(&record), vec![stored("level", "850"), stored("new", "x")]);
        assert_eq!(found, [attrs[0].clone(), attrs[2].clone(), Attr::text("new", "x")]);
        let float = [Attr::new(
            "big",
            AttrData::Numbers(Numbers::parse(DType::F32, &["1e20", "0.1"], true).unwrap()),
        )];
        let record_of_float = json!({ "attrs": records(&float, |_| true) });
        assert_eq!(attributes(Some(&record_of_float), vec![stored("big", "[1e+20, 0.1]")]), float);
        assert_ne!(attributes(Some(&record_of_float), vec![stored("big", "[1e+21, 0.1]")]), float);
        let values = ["NaN", "inf", "-inf", "-0"];
        let special =
            [Attr::new("special", AttrData::Numbers(Numbers::parse(DType::F64, &values, true).unwrap()))];
        let record_of_special = json!({ "attrs": records(&special, |_| true) });
        let text = r#"["NaN","Infinity","-Infinity",-0.0]"#;
        let back = attributes(Some(&record_of_special), vec![stored("special", text)]);
        assert_eq!(format!("{back:?}"), format!("{special:?}"));
        let changed = text.replace("\"-Inf", "\"Inf");
        let changed = attributes(Some(&record_of_special), vec![stored("special", &changed)]);
        assert_ne!(format!("{changed:?}"), format!("{special:?}"));
        let edited = attributes(Some(&record), vec![stored("level", "851")]);
        assert_eq!(edited[0], Attr::text("level", "851"));
    }
}
