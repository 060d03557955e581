//! An answer as one line.

use std::fmt::Write as _;

use serde_json::Value as Json;
use tercet::core::escape;
use tercet::tet::ReadPlan;
use tercet::tet::compat::{Answer, Catalog, Execution, Value};

use super::result::{List, Operation, Results, extents, scalar};
use crate::render::rounded;

/// Numbers printed of a result.
const VALUES: usize = 12;
/// Elements printed of a preview.
const PREVIEW_VALUES: usize = 6;
/// Dataset names printed.
const NAMES: usize = 32;

/// Formats an answer as one line of `key=value` pairs.
pub(super) fn format(answer: &Answer) -> String {
    let mut line = format!("dataset={}", escape::name(&answer.dataset));
    // Writing to a String cannot fail.
    let _ = match (&answer.catalog, &answer.execution, &answer.read_plan) {
        (None, ..) => write!(line, " validated hint=pass --tet PATH for catalog and read_plan"),
        (Some(catalog), ..) if catalog.found.is_none() => {
            write!(line, " status=not_found available={}", names(catalog))
        }
        (_, Some(execution), _) => match Operation::from_answer(answer) {
            Some(operation) => write!(line, " status=ok {}", computed(&operation, execution)),
            None => write!(line, " {}", read(execution)),
        },
        (_, None, Some(plan)) => write!(line, " status=planned {}", planned(plan)),
        (_, None, None) => write!(line, " status=planned"),
    };
    line
}

fn names(catalog: &Catalog) -> String {
    let all = &catalog.available_datasets;
    list(all.iter().take(NAMES).map(|name| escape::name(name).into_owned()), all.len())
}

fn planned(plan: &ReadPlan) -> String {
    format!(
        "chunks={} elements={} stored_bytes={} logical_shape={} touch_policy={}",
        plan.chunks().len(),
        plan.element_count(),
        plan.total_stored_bytes(),
        extents(&plan.selection().shape()),
        plan.touch_policy(),
    )
}

fn computed(operation: &Operation<'_>, execution: &Execution) -> String {
    let results = Results::from_execution(execution);
    let mut words = vec![format!("op={}", operation.name)];
    let axes = operation.axes();
    if !axes.is_empty() {
        words.push(format!("axes={}", list(axes.iter().cloned(), axes.len())));
    }
    for name in ["q", "bins", "fill"] {
        words.extend(operation.parameter(name).map(|value| format!("{name}={}", number(value))));
    }
    match results.shape {
        Some(shape) => {
            words.push(format!("reduced_shape={}", extents(shape)));
            words.push(format!("values={}", arrays(operation, &results)));
        }
        None => words.push(scalars(operation, &results)),
    }
    words.extend(results.elements.map(|count| format!("elements={count}")));
    words.extend((execution.skipped > 0).then(|| format!("skipped={}", execution.skipped)));
    let groups = execution.get("group_count");
    words.extend(groups.map(|count| format!("group_count={}", scalar(count, rounded))));
    words.extend(written(execution));
    words.push(format!("memory_strategy={}", execution.memory_strategy));
    words.join(" ")
}

fn number(value: &Json) -> String {
    value.as_f64().map_or_else(|| value.to_string(), rounded)
}

/// Results that are arrays; transforms have several.
fn arrays(operation: &Operation<'_>, results: &Results<'_>) -> String {
    let display = |value: &Value| {
        List::from_value(value).map_or_else(|| scalar(value, rounded), |list| numbers(list, VALUES))
    };
    if operation.name == "transform" {
        let named = results.values.iter().map(|(name, value)| format!("{name}={}", display(value)));
        return named.collect::<Vec<_>>().join(" ");
    }
    results.values.first().map_or_else(|| "[]".to_owned(), |(_, value)| display(value))
}

/// Results that are single numbers, and those that are always arrays.
fn scalars(operation: &Operation<'_>, results: &Results<'_>) -> String {
    let numbers_of = |name| {
        results.get(name).and_then(List::from_value).map(|list| numbers(list, VALUES)).unwrap_or_default()
    };
    let pairs = || {
        let one = |(name, value): &(&str, &Value)| format!("{name}={}", scalar(value, rounded));
        results.values.iter().map(one).collect::<Vec<_>>().join(" ")
    };
    match operation.name {
        "count" => format!("count={}", results.elements.unwrap_or(0)),
        "histogram" => {
            let bins = operation.parameter("bins").map(number).unwrap_or_default();
            format!("histogram=bins={bins} counts={}", numbers_of("histogram_counts"))
        }
        name @ ("covariance" | "correlation") => {
            let order = results.get(&format!("{name}_order")).map(|order| scalar(order, rounded));
            format!("order={} values={}", order.unwrap_or_default(), numbers_of(name))
        }
        "transform" => format!("transform={}", pairs()),
        _ => pairs(),
    }
}

/// An execution without operation: alignment or preview.
fn read(execution: &Execution) -> String {
    if let Some(Value::Json(alignment)) = execution.get("alignment") {
        let status = if alignment["aligned"] == true { "aligned" } else { "mismatch" };
        let with = escape::name(alignment["with"].as_str().unwrap_or_default()).into_owned();
        return format!("status={status} with={with} memory_strategy={}", execution.memory_strategy);
    }
    let mut words = vec!["status=preview".to_owned()];
    words.push(format!("read_bytes={}", execution.total_bytes_read_from_disk));
    words.extend(written(execution));
    words.push(format!("memory_strategy={}", execution.memory_strategy));
    let preview = execution.preview.as_ref();
    match preview.and_then(|preview| Some((preview, preview.values.as_ref()?))) {
        Some((preview, values)) => {
            let values = List::Tensor(values);
            words.push(format!("preview={} {}", values.len(), preview.dtype));
            words.push(format!("truncated={}", preview.truncated));
            let sample = (0..PREVIEW_VALUES).map_while(|at| values.text(at, rounded));
            words.push(format!("sample=[{}]", sample.collect::<Vec<_>>().join(",")));
        }
        None => words.push("preview=empty".to_owned()),
    }
    words.join(" ")
}

/// The spill file.
fn written(execution: &Execution) -> impl Iterator<Item = String> {
    let names = [("spill_f32_path", "spill"), ("spill_f32_bytes", "spill_bytes")];
    // A temporary spill file has a size but no path.
    let names = names.into_iter().filter(|_| execution.get("spill_f32_path").is_some());
    names.filter_map(|(name, word)| {
        let value = scalar(execution.get(name)?, rounded);
        Some(format!("{word}={}", escape::name(&value)))
    })
}

fn numbers(values: List<'_>, most: usize) -> String {
    list((0..most).map_while(|at| values.text(at, rounded)), values.len())
}

/// The first items of a list of `len`, and the number of omitted items.
fn list(words: impl Iterator<Item = String>, len: usize) -> String {
    let mut words: Vec<String> = words.collect();
    let more = len - words.len();
    if more > 0 {
        words.push(format!("…+{more}"));
    }
    format!("[{}]", words.join(","))
}
