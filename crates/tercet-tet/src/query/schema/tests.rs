use serde_json::{Value, json};

use crate::query::Query;
use crate::query::document::Document;

/// The value of a schema at a path of keys, following references.
fn at<'s>(schema: &'s Value, path: &[&str]) -> &'s Value {
    path.iter().fold(schema, |value, key| {
        let value = value.get(*key).unwrap_or_else(|| panic!("no {key} of {path:?} in {value}"));
        let reference = value.get("$ref").and_then(Value::as_str);
        reference.map_or(value, |reference| &schema["$defs"][reference.trim_start_matches("#/$defs/")])
    })
}

#[test]
fn the_schema_is_closed_and_knows_every_key() {
    let schema = Query::schema();
    let members = schema["properties"].as_object().unwrap();
    for key in Document::OPERATIONS.iter().copied().chain([
        "dataset",
        "layout_version",
        "selection",
        "spill",
        "write",
        "execution",
        "filter",
        "label_filter",
        "group_by",
        "window",
        "align",
        "pipeline",
    ]) {
        assert!(members.contains_key(key), "{key}");
        assert!(!at(&schema, &["properties", key]).to_string().contains(r#""default":null"#), "{key}");
    }
    assert_eq!(members.len(), 40);
    assert_eq!(schema["required"], json!(["dataset"]));
    assert_eq!(at(&schema, &["properties", "layout_version", "type"]), "integer");
    assert_eq!(at(&schema, &["properties", "layout_version", "maximum"]), u32::MAX);
    assert_eq!(schema["$defs"]["Selection"]["anyOf"][0]["maxItems"], 9, "eight slices and `...`");
    assert_eq!(at(&schema, &["properties", "pipeline", "minItems"]), 1);
    assert_eq!(at(&schema, &["properties", "histogram", "properties", "bins", "maximum"]), 4096);
    assert_eq!(at(&schema, &["properties", "window", "properties", "size", "maximum"]), 1_048_576);
    let pads = at(&schema, &["properties", "window", "properties", "pad"]).to_string();
    assert!(["none", "\"0\"", "nan", "fill"].iter().all(|pad| pads.contains(pad)), "{pads}");
    assert_eq!(at(&schema, &["properties", "filter", "properties", "gt"])["type"], "number");
    assert_eq!(at(&schema, &["properties", "filter", "properties", "is_null"])["enum"], json!([true]));
    closed(&schema, "");
    // Null is allowed only where the document accepts it.
    let mut nulls = Vec::new();
    find_nulls(&schema, "", &mut nulls);
    let allowed =
        ["/start", "/stop", "/step", "/start_label", "/stop_label", "/from", "/to", "/fill", "/min", "/max"];
    assert_eq!(nulls.len(), allowed.len(), "{nulls:?}");
    for path in nulls {
        assert!(allowed.iter().any(|end| path.ends_with(&format!("{end}/oneOf/1"))), "{path}");
    }
}

/// Objects are closed; entries by the names of axes have a schema of their own.
fn closed(schema: &Value, path: &str) {
    match schema {
        Value::Object(members) => {
            if members.get("type").is_some_and(|name| name == "object") {
                let additional = members.get("additionalProperties");
                let by_axis = json!({"$ref": "#/$defs/AxisSelection"});
                assert!(additional == Some(&json!(false)) || additional == Some(&by_axis), "{path}");
            }
            members.iter().for_each(|(key, value)| closed(value, &format!("{path}/{key}")));
        }
        Value::Array(list) => list.iter().for_each(|value| closed(value, path)),
        _ => {}
    }
}

fn find_nulls(schema: &Value, path: &str, nulls: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            let is_null = |name: &Value| {
                name == "null" || name.as_array().is_some_and(|all| all.contains(&json!("null")))
            };
            if members.get("type").is_some_and(is_null) {
                nulls.push(path.to_owned());
            }
            members.iter().for_each(|(key, value)| find_nulls(value, &format!("{path}/{key}"), nulls));
        }
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(n, value)| find_nulls(value, &format!("{path}/{n}"), nulls));
        }
        _ => {}
    }
}
