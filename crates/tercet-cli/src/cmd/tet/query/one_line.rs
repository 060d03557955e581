//! The result of a query as one line.

use std::fmt::Write as _;

use tercet::core::escape;
use tercet::tet::{Op, Outcome, QueryResult, ReadPlan, Request};

use super::result::{Context, List, Operation, Results, extents};
use super::text::{named_positions, written};
use crate::render::rounded;

/// Numbers printed of a result.
const VALUES: usize = 12;
/// Elements printed of a preview.
const PREVIEW_VALUES: usize = 6;

/// Formats a result as one line of `key=value` pairs.
pub(super) fn format(context: &Context<'_>) -> String {
    let mut line = format!("dataset={}", escape::name(context.query.dataset()));
    // Writing to a String cannot fail.
    let _ = match context.result {
        None => write!(line, " validated hint=pass --tet PATH for catalog and read_plan"),
        Some(result) => write!(line, " {}", fields(context, result).join(" ")),
    };
    line
}

fn fields(context: &Context<'_>, result: &QueryResult<'_>) -> Vec<String> {
    let strategy = format!("memory_strategy={}", result.memory_strategy().unwrap_or_default());
    if let Some(alignment) = &result.alignment {
        let status = if alignment.aligned { "aligned" } else { "mismatch" };
        let with = escape::name(&alignment.with);
        return vec![format!("status={status}"), format!("with={with}"), strategy];
    }
    match (&result.request, &result.plan, &result.outcome) {
        (Some(request), _, Some(outcome)) => match Operation::new(context) {
            Some(operation) => computed(request, &operation, outcome, strategy),
            None => read(outcome, strategy),
        },
        (_, Some(plan), None) => vec!["status=planned".to_owned(), planned(plan)],
        _ => vec!["status=planned".to_owned()],
    }
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

fn computed(
    request: &Request<'_>,
    operation: &Operation,
    outcome: &Outcome,
    strategy: String,
) -> Vec<String> {
    let mut words = vec!["status=ok".to_owned(), format!("op={}", operation.kind.key())];
    let axes = &operation.axes;
    if !axes.is_empty() {
        words.push(format!("axes={}", list(axes.iter().cloned(), axes.len())));
    }
    words.extend(operation.parameter().map(|(name, value)| format!("{name}={}", rounded(value))));
    if let Some(results) = Results::new(request, outcome) {
        match &results.shape {
            Some(shape) => {
                words.push(format!("reduced_shape={}", extents(shape)));
                words.push(format!("values={}", arrays(operation, &results)));
            }
            None => words.push(scalars(operation, &results)),
        }
        if let Some(named) = named_positions(request, outcome, (",", VALUES)) {
            let len = results.values.first().map_or(0, |(_, list)| list.len());
            words.push(format!("at={}", list(named.iter().map(|position| format!("({position})")), len)));
        }
        words.push(format!("elements={}", results.elements));
        words.extend((results.skipped > 0).then(|| format!("skipped={}", results.skipped)));
    }
    words.extend(request.group_count().map(|count| format!("group_count={count}")));
    words.extend(file(outcome));
    words.push(strategy);
    words
}

/// Results that are arrays; transforms have several.
fn arrays(operation: &Operation, results: &Results<'_>) -> String {
    if operation.is_transform() {
        let named = results.values.iter().map(|(name, list)| format!("{name}={}", numbers(*list, VALUES)));
        return named.collect::<Vec<_>>().join(" ");
    }
    results.values.first().map_or_else(|| "[]".to_owned(), |(_, list)| numbers(*list, VALUES))
}

/// Results that are single numbers, and those that are always arrays.
fn scalars(operation: &Operation, results: &Results<'_>) -> String {
    let first = || results.values.first().map(|(_, list)| numbers(*list, VALUES)).unwrap_or_default();
    let pairs = || {
        let one =
            |(name, list): &(&str, List<'_>)| format!("{name}={}", list.text(0, rounded).unwrap_or_default());
        results.values.iter().map(one).collect::<Vec<_>>().join(" ")
    };
    match operation.kind {
        Op::Count => format!("count={}", results.elements),
        Op::Histogram { bins, .. } => format!("histogram=bins={bins} counts={}", first()),
        Op::Covariance | Op::Correlation => {
            let values = results.values.first().map_or(0, |(_, list)| list.len());
            format!("order={} values={}", values.isqrt(), first())
        }
        Op::Transform { .. } => format!("transform={}", pairs()),
        _ => pairs(),
    }
}

/// A result without operation: a preview.
fn read(outcome: &Outcome, strategy: String) -> Vec<String> {
    let mut words = vec!["status=preview".to_owned(), format!("read_bytes={}", outcome.execution.bytes_read)];
    words.extend(file(outcome));
    words.push(strategy);
    match outcome.preview.as_ref().and_then(|preview| Some((preview, preview.values.as_ref()?))) {
        Some((preview, values)) => {
            let values = List::Tensor(values);
            words.push(format!("preview={} {}", values.len(), preview.dtype));
            words.push(format!("truncated={}", preview.truncated));
            let sample = (0..PREVIEW_VALUES).map_while(|at| values.text(at, rounded));
            words.push(format!("sample=[{}]", sample.collect::<Vec<_>>().join(",")));
        }
        None => words.push("preview=empty".to_owned()),
    }
    words
}

/// The spill file.
fn file(outcome: &Outcome) -> Vec<String> {
    let words = |(path, bytes)| vec![format!("spill={}", escape::name(path)), format!("spill_bytes={bytes}")];
    written(outcome).map(words).unwrap_or_default()
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
