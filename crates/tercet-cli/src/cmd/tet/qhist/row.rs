//! Dataset, operation and selection of a recorded query.

use serde_json::Value;

use super::Entry;

/// Keys of a query document that are not operations.
const OTHER_KEYS: [&str; 12] = [
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
];

/// The dataset name.
pub(super) fn dataset(entry: &Entry) -> &str {
    entry.query.get("dataset").and_then(Value::as_str).unwrap_or_default()
}

/// The operation: `mean`, `align`, `spill`; empty for a preview of values.
pub(super) fn operation(entry: &Entry) -> &str {
    let Some(document) = entry.query.as_object() else { return "" };
    let steps = document.get("pipeline").and_then(Value::as_array);
    let steps = steps.into_iter().flatten().filter_map(Value::as_object);
    let keys = || document.keys().chain(steps.clone().flat_map(serde_json::Map::keys)).map(String::as_str);
    let is_operation = |key: &&str| !OTHER_KEYS.contains(key) && *key != "select";
    keys().find(is_operation).or_else(|| keys().find(|key| ["align", "spill"].contains(key))).unwrap_or("")
}

/// The kind of selection: `full`, `strided`, or `slice`.
pub(super) fn selection(entry: &Entry) -> &'static str {
    let axes = entry.query.get("selection").and_then(Value::as_array);
    let axes = || axes.into_iter().flatten().filter_map(Value::as_object);
    if axes().any(|axis| axis.get("step").and_then(Value::as_u64).is_some_and(|step| step > 1)) {
        return "strided";
    }
    if axes().flat_map(serde_json::Map::values).any(|end| !end.is_null() && *end != 1) {
        "slice"
    } else {
        "full"
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(query: Value) -> Entry {
        Entry { at: 0, tet: None, execute: true, query }
    }

    #[test]
    fn operations_are_found() {
        for (query, found) in [
            (json!({"dataset": "a", "mean": [], "filter": {"gt": 1}}), "mean"),
            (json!({"dataset": "a", "pipeline": [{"select": []}, {"max": 0, "group_by": [1]}]}), "max"),
            (json!({"dataset": "a", "spill": "x"}), "spill"),
            (json!({"dataset": "a"}), ""),
            (json!([1]), ""),
        ] {
            assert_eq!(operation(&entry(query)), found);
        }
    }

    #[test]
    fn selections_are_classified() {
        for (axes, found) in [
            (json!(null), "full"),
            (json!([{}, {"start": null}]), "full"),
            (json!([{}, {"start": 2}]), "slice"),
            (json!([{"stop_label": "x"}]), "slice"),
            (json!([{"step": 2}]), "strided"),
        ] {
            assert_eq!(selection(&entry(json!({"selection": axes}))), found, "{axes}");
        }
    }
}
