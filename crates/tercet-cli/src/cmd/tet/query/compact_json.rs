//! Compact JSON answers, without the chunk list and element values.

use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use serde_json::{Map, Value as Json, json};
use tercet::tet::ReadPlan;
use tercet::tet::compat::{Answer, Catalog, Execution};

/// The format `stats`: plan and results, which are written as they are serialized.
pub(super) struct Stats<'a>(pub(super) &'a Answer<'a>);

impl Serialize for Stats<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(self.0, self.0.execution.as_ref(), serializer)
    }
}

/// The format `plan`: the read plan only.
pub(super) struct Plan<'a>(pub(super) &'a Answer<'a>);

impl Serialize for Plan<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(self.0, None, serializer)
    }
}

fn serialize<S: Serializer>(
    answer: &Answer<'_>,
    execution: Option<&Execution<'_>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for (name, value) in &head(answer) {
        map.serialize_entry(name, value)?;
    }
    if let Some(execution) = execution {
        map.serialize_entry("execution", &Executed(execution))?;
    }
    if let Some(explain) = &answer.explain {
        map.serialize_entry("explain", explain)?;
    }
    map.end()
}

fn head(answer: &Answer<'_>) -> Map<String, Json> {
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
    put("read_plan", answer.read_plan.map_or(Json::Null, read_plan));
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

struct Executed<'a>(&'a Execution<'a>);

impl Serialize for Executed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("total_bytes_read_from_disk", &self.0.total_bytes_read_from_disk)?;
        for (name, value) in &self.0.results {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry("memory_strategy", self.0.memory_strategy)?;
        for (name, value) in &self.0.details {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// A query that was checked or planned, not executed.
pub(super) struct Checked<'a>(pub(super) &'a Answer<'a>);

impl Serialize for Checked<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("dataset", &self.0.dataset)?;
        map.serialize_entry("operation", &self.0.operation)?;
        map.serialize_entry("valid", &true)?;
        if let Some(plan) = &self.0.read_plan {
            map.serialize_entry("shape", &plan.selection().shape())?;
            map.serialize_entry("elements", &plan.element_count())?;
            map.serialize_entry("chunks", &plan.chunks().len())?;
            map.serialize_entry("stored_bytes", &plan.total_stored_bytes())?;
        }
        map.end()
    }
}
