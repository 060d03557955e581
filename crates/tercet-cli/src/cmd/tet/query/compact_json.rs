//! Compact JSON answers, without the chunk list and element values.

use serde_json::{Map, Value as Json, json};
use tercet::tet::ReadPlan;
use tercet::tet::compat::{Answer, Catalog, Execution};

/// The formats `stats`: plan and results.
pub(super) fn stats(answer: &Answer) -> Json {
    let mut slim = head(answer);
    if let Some(execution) = &answer.execution {
        slim.insert("execution".to_owned(), Json::Object(executed(execution)));
    }
    explained(answer, slim)
}

/// The format `plan`: the read plan only.
pub(super) fn plan(answer: &Answer) -> Json {
    explained(answer, head(answer))
}

fn explained(answer: &Answer, mut slim: Map<String, Json>) -> Json {
    if let Some(explain) = &answer.explain {
        slim.insert("explain".to_owned(), json!(explain));
    }
    Json::Object(slim)
}

fn head(answer: &Answer) -> Map<String, Json> {
    let mut slim = Map::new();
    let mut put = |name: &str, value: Json| {
        if !value.is_null() {
            slim.insert(name.to_owned(), value);
        }
    };
    put("status", json!("planned"));
    put("accepted", json!(true));
    put("dataset", json!(answer.dataset));
    put("operation", json!(answer.operation));
    put("message", json!(answer.message));
    put("tet_file", json!(answer.tet_file));
    put("catalog", answer.catalog.as_ref().map_or(Json::Null, catalog));
    put("read_plan", answer.read_plan.as_ref().map_or(Json::Null, read_plan));
    slim
}

fn catalog(catalog: &Catalog) -> Json {
    match &catalog.found {
        Some(found) => json!({
            "matched": true,
            "dataset_index": found.dataset_index,
            "dtype": found.dtype_tag,
            "shape": found.shape,
        }),
        None => json!({"matched": false, "available_datasets": catalog.available_datasets}),
    }
}

fn read_plan(plan: &ReadPlan) -> Json {
    let mut slim = json!({
        "chunk_touch_policy": plan.touch_policy(),
        "chunk_count": plan.chunks().len(),
        "total_stored_bytes": plan.total_stored_bytes(),
        "logical_selection_shape": *plan.selection().shape(),
        "logical_element_count": plan.element_count(),
    });
    for (name, skipped) in [
        ("zone_filter_skipped_chunks", plan.zone_filter_skipped()),
        ("index_filter_skipped_chunks", plan.index_filter_skipped()),
    ] {
        if skipped > 0 {
            slim[name] = json!(skipped);
        }
    }
    if let Some(span) = plan.contiguous() {
        slim["contiguous_scan"] = json!({"offset": span.start(), "byte_len": span.len()});
    }
    slim
}

fn executed(execution: &Execution) -> Map<String, Json> {
    let mut slim = Map::new();
    let mut put = |name: &str, value: Json| slim.insert(name.to_owned(), value);
    put("total_bytes_read_from_disk", json!(execution.total_bytes_read_from_disk));
    for (name, value) in &execution.results {
        put(name, json!(value));
    }
    put("memory_strategy", json!(execution.memory_strategy));
    for (name, value) in &execution.details {
        put(name, json!(value));
    }
    slim
}
