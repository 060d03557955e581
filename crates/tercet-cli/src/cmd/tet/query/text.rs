//! An answer as text.

use std::fmt::Write as _;

use serde_json::Value as Json;
use tercet::core::escape;
use tercet::core::num::counted;
use tercet::tet::ReadPlan;
use tercet::tet::compat::{Answer, Execution, MatchedDataset, Value};

use super::arrays::{ArrayTable, Head, axis_name, position_labels, result_heads, selection_heads, tables};
use super::result::{AnswerContext, List, Operation, Results, Write, extents, has_key, scalar};
use crate::failure::Failure;
use crate::render::{Table, exact, significant, size_and_bytes};
use crate::ui::{DIM, HEADING, Ui, WARN, paint};

/// Maximum width of a histogram bar.
const BAR: f64 = 24.0;

/// Prints an answer. The inputs of a reduction are printed only with `--preview`.
pub(super) fn print(context: &AnswerContext<'_>, preview_given: bool, out: &mut Ui) -> Result<(), Failure> {
    let answer = context.answer;
    let operation = Operation::from_answer(answer);
    let Some(catalog) = &answer.catalog else {
        field("dataset", escape::name(&answer.dataset), out)?;
        if let Some(operation) = &operation {
            field("operation", describe_operation(context, operation), out)?;
        }
        out.line("the query is valid")?;
        return out.line(paint(DIM, "add `-t FILE` to print the read plan, and `-x` to execute the query"));
    };
    let Some(found) = &catalog.found else {
        return field("dataset", format_args!("{} (not found)", escape::name(&answer.dataset)), out);
    };
    field("dataset", described(context, found), out)?;
    if let Some(plan) = &answer.read_plan {
        print_selection(context, plan, found, out)?;
    }
    match (&answer.execution, &answer.read_plan) {
        (Some(execution), _) => print_execution(context, operation.as_ref(), execution, preview_given, out)?,
        (None, Some(plan)) => print_plan(plan, out)?,
        (None, None) => {}
    }
    explanation(answer).into_iter().try_for_each(|line| out.line(line))
}

fn field(name: &str, value: impl std::fmt::Display, out: &mut Ui) -> Result<(), Failure> {
    out.line(format_args!("{} {value}", paint(HEADING, format_args!("{name}:"))))
}

/// `temp, f32 6×5 (time×station)`
fn described(context: &AnswerContext<'_>, found: &MatchedDataset) -> String {
    let mut text =
        format!("{}, {} {}", escape::name(&context.answer.dataset), found.dtype, extents(&found.shape));
    let dataset = context.dataset();
    let axis = |axis| dataset.as_ref().and_then(|dataset| dataset.axis_name(axis));
    let names: Vec<_> = (0..found.shape.len()).filter_map(axis).map(escape::name).collect();
    if !names.is_empty() {
        // Writing to a String cannot fail.
        let _ = write!(text, " ({})", names.join("×"));
    }
    text
}

fn print_selection(
    context: &AnswerContext<'_>,
    plan: &ReadPlan,
    found: &MatchedDataset,
    out: &mut Ui,
) -> Result<(), Failure> {
    let selection = plan.selection();
    if selection.is_full(&found.shape) {
        return Ok(());
    }
    let dataset = context.dataset();
    let mut parts = Vec::new();
    for ((axis, slice), extent) in selection.axes().iter().enumerate().zip(&found.shape) {
        if (slice.start, slice.stop, slice.step) == (0, *extent, 1) {
            continue;
        }
        let step = if slice.step == 1 { String::new() } else { format!(":{}", slice.step) };
        let name = axis_name(dataset.as_ref(), axis);
        parts.push(format!("{name} {}:{}{step}", slice.start, slice.stop));
    }
    field("selection", format_args!("{} ({})", extents(&selection.shape()), parts.join(", ")), out)
}

fn print_plan(plan: &ReadPlan, out: &mut Ui) -> Result<(), Failure> {
    let (chunks, bytes) = (plan.chunks().len(), size_and_bytes(plan.total_stored_bytes()));
    field("elements", plan.element_count(), out)?;
    let scan = if plan.contiguous().is_some() { ", contiguous" } else { "" };
    field("would read", format_args!("{}, {bytes}{scan}", counted(chunks as u64, "chunk")), out)?;
    out.line(paint(DIM, "add `-x` to execute the query"))
}

fn print_execution(
    context: &AnswerContext<'_>,
    operation: Option<&Operation<'_>>,
    execution: &Execution,
    preview_given: bool,
    out: &mut Ui,
) -> Result<(), Failure> {
    if let Some(operation) = operation {
        print_result(context, operation, execution, out)?;
    }
    if let Some(Value::Json(alignment)) = execution.get("alignment") {
        print_alignment(alignment, out)?;
    }
    let is_fold = operation.is_some_and(|operation| operation.name != "transform");
    if !is_fold || preview_given {
        print_preview(context, operation.is_some() && !is_fold, execution, significant, out)?;
    }
    print_remarks(execution, out)?;
    let read = size_and_bytes(execution.total_bytes_read_from_disk);
    out.line(paint(DIM, format_args!("read: {read} of chunks")))
}

/// The operation as text: `mean over station`.
fn describe_operation(context: &AnswerContext<'_>, operation: &Operation<'_>) -> String {
    let dataset = context.dataset();
    let name = |axis: &String| match axis.parse() {
        Ok(number) => axis_name(dataset.as_ref(), number),
        Err(_) => escape::name(axis).into_owned(),
    };
    let axes: Vec<String> = operation.axes().iter().map(name).collect();
    let mut text = match operation.parameter("method").and_then(Json::as_str) {
        Some(method) => escape::name(method).into_owned(),
        None => operation.name.to_owned(),
    };
    for (parameter, word) in [("q", ""), ("bins", " bins"), ("fill", " as fill")] {
        if let Some(value) = operation.parameter(parameter) {
            let value = value.as_f64().map_or_else(|| escape::name(&value.to_string()).into_owned(), exact);
            let between = if parameter == "bins" { " of " } else { " " };
            let _ = write!(text, "{between}{value}{word}");
        }
    }
    if !axes.is_empty() {
        let _ = write!(text, " over {}", axes.join(", "));
    }
    text
}

fn print_result(
    context: &AnswerContext<'_>,
    operation: &Operation<'_>,
    execution: &Execution,
    out: &mut Ui,
) -> Result<(), Failure> {
    let results = Results::from_execution(execution);
    let mut heading = describe_operation(context, operation);
    let selected = context.answer.read_plan.as_ref().map(ReadPlan::element_count);
    if let Some(elements) = results.elements {
        let part = selected.filter(|selected| elements < *selected).map(|all| format!(" of {all} selected"));
        let _ = write!(heading, ", {}{}", counted(elements, "element"), part.unwrap_or_default());
    }
    if execution.skipped > 0 {
        let _ = write!(heading, ", {} skipped", counted(execution.skipped, "missing value"));
    }
    for (name, word) in [("group_count", "group"), ("window_count", "window")] {
        if let Some(Value::Count(count)) = execution.get(name) {
            let _ = write!(heading, ", {}", counted(*count, word));
        }
    }
    let heading = paint(HEADING, heading);
    let tables = result_tables(context, operation, &results, significant);
    if !tables.is_empty() {
        out.line(format_args!("{heading}:"))?;
        return tables.into_iter().try_for_each(|table| print_table(table, out));
    }
    match &results.values[..] {
        [] => out.line(format_args!("{heading}: {}", results.elements.unwrap_or(0))),
        [(_, value)] => {
            let at = coordinates(context, value).map(|at| format!(" ({at})")).unwrap_or_default();
            out.line(format_args!("{heading}: {}{at}", scalar(value, exact)))
        }
        values => {
            out.line(format_args!("{heading}:"))?;
            values
                .iter()
                .try_for_each(|(name, value)| out.line(format_args!("  {name}: {}", scalar(value, exact))))
        }
    }
}

/// The coordinates of an index of the selection: `time=2024-01-03, station=B`.
fn coordinates(context: &AnswerContext<'_>, value: &Value) -> Option<String> {
    let Value::Index(Some(index)) = value else { return None };
    let heads = selection_heads(context);
    let labels = position_labels(&heads, usize::try_from(*index).ok()?);
    let parts = heads.iter().zip(labels).map(|(head, label)| format!("{}={label}", head.name));
    (!heads.is_empty()).then(|| parts.collect::<Vec<_>>().join(", "))
}

/// Indices among the reduced axes as text: `17 (station=B)`. Indices in windows have no labels.
fn positions(context: &AnswerContext<'_>, operation: &Operation<'_>, value: &Value) -> Option<Vec<String>> {
    let Value::Indices(indices) = value else { return None };
    let reduced = operation.axis_numbers();
    let has_parts = ["window", "group_by"].iter().any(|key| has_key(context.query, key));
    let heads: Vec<Head<'_>> = selection_heads(context)
        .into_iter()
        .enumerate()
        .filter(|(axis, _)| reduced.contains(axis) && !has_parts)
        .map(|(_, head)| head)
        .collect();
    let text = |&index: &i64| {
        let Ok(index) = usize::try_from(index) else { return "none".to_owned() };
        if heads.is_empty() {
            return index.to_string();
        }
        let labels = position_labels(&heads, index);
        let parts = heads.iter().zip(labels).map(|(head, label)| format!("{}={label}", head.name));
        format!("{index} ({})", parts.collect::<Vec<_>>().join(", "))
    };
    Some(indices.iter().map(text).collect())
}

/// The array results as tables.
pub(super) fn result_tables(
    context: &AnswerContext<'_>,
    operation: &Operation<'_>,
    results: &Results<'_>,
    write: Write,
) -> Vec<ArrayTable> {
    let list = |name: &str| results.get(name).and_then(List::from_value);
    match (operation.name, results.shape) {
        ("histogram", None) => match (list("histogram_counts"), list("histogram_edges")) {
            (Some(counts), Some(edges)) => vec![histogram(counts, edges, write)],
            _ => Vec::new(),
        },
        ("histogram", Some(shape)) => {
            let Some(counts) = list("histogram_counts") else { return Vec::new() };
            let outputs = shape.iter().product::<u64>().max(1);
            let mut heads = result_heads(context, operation, shape);
            heads.push(Head::numbered("bin", counts.len() as u64 / outputs));
            tables(&heads, &[("count", counts)], write)
        }
        (name @ ("covariance" | "correlation"), _) => {
            let (Some(values), Some(Value::Count(order))) =
                (list(name), results.get(&format!("{name}_order")))
            else {
                return Vec::new();
            };
            let mut heads = result_heads(context, operation, &[*order]);
            heads.extend(result_heads(context, operation, &[*order]));
            tables(&heads, &[(name, values)], write)
        }
        ("arg_min" | "arg_max", Some(shape)) if !operation.axis_numbers().is_empty() => {
            let texts: Vec<(&str, Vec<String>)> = results
                .values
                .iter()
                .filter_map(|(name, value)| Some((*name, positions(context, operation, value)?)))
                .collect();
            let lists: Vec<_> = texts.iter().map(|(name, texts)| (*name, List::Texts(texts))).collect();
            tables(&result_heads(context, operation, shape), &lists, write)
        }
        (_, Some(shape)) => {
            let lists: Vec<_> = results
                .values
                .iter()
                .filter_map(|(name, value)| Some((*name, List::from_value(value)?)))
                .collect();
            tables(&result_heads(context, operation, shape), &lists, write)
        }
        (_, None) => Vec::new(),
    }
}

fn histogram(counts: List<'_>, edges: List<'_>, write: Write) -> ArrayTable {
    let number = |at| match counts {
        List::Numbers(numbers) => numbers.get(at).copied().unwrap_or(0.0),
        _ => 0.0,
    };
    let most = (0..counts.len()).map(number).fold(1.0, f64::max);
    let mut table = Table::new(&[">from", ">to", ">count", ""]);
    for bin in 0..counts.len() {
        let text = |list: List<'_>, at| list.text(at, write).unwrap_or_default();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most the width of a bar"
        )]
        let bar = "▇".repeat((number(bin) / most * BAR).round() as usize);
        table.row([text(edges, bin), text(edges, bin + 1), text(counts, bin), bar]);
    }
    ArrayTable { title: None, table, omitted: None }
}

pub(super) fn print_table(table: ArrayTable, out: &mut Ui) -> Result<(), Failure> {
    if let Some(title) = table.title {
        out.line(format_args!("{title}:"))?;
    }
    out.line(table.table)?;
    match table.omitted {
        Some(part) => out.line(paint(DIM, format_args!("({part}; `--json` prints all)"))),
        None => Ok(()),
    }
}

/// Prints the preview.
pub(super) fn print_preview(
    context: &AnswerContext<'_>,
    of_result: bool,
    execution: &Execution,
    write: Write,
    out: &mut Ui,
) -> Result<(), Failure> {
    let Some(preview) = &execution.preview else { return Ok(()) };
    let Some(values) = &preview.values else { return Ok(()) };
    let list = List::Tensor(values);
    let what = if of_result { "result" } else { "stored values" };
    let total = context.answer.read_plan.as_ref().map(ReadPlan::element_count);
    let part = match total.filter(|_| preview.truncated) {
        Some(total) => format!("{what}, the first {} of {total}:", list.len()),
        None => format!("{what}:"),
    };
    out.line(paint(HEADING, part))?;
    let heads = selection_heads(context);
    tables(&heads, &[("value", list)], write).into_iter().try_for_each(|part| {
        // The heading has the total already.
        let omitted = part.omitted.filter(|_| !preview.truncated);
        print_table(ArrayTable { omitted, ..part }, out)
    })
}

fn print_alignment(alignment: &Json, out: &mut Ui) -> Result<(), Failure> {
    let word = |value: &Json| escape::name(value.as_str().unwrap_or_default()).into_owned();
    let aligned = if alignment["aligned"] == true { "aligned" } else { "not aligned" };
    out.line(paint(HEADING, format_args!("{aligned} with {}:", word(&alignment["with"]))))?;
    let mut table = Table::new(&["axis", "ok", ">extent", ">other extent", "labels", "reason"]);
    for axis in alignment["axes"].as_array().into_iter().flatten() {
        let flag = |name: &str| if axis[name] == true { "yes" } else { "no" }.to_owned();
        table.row([
            axis["axis"]
                .as_str()
                .map_or_else(|| axis["axis"].to_string(), |text| escape::name(text).into_owned()),
            flag("ok"),
            axis["extent_left"].to_string(),
            axis["extent_right"].to_string(),
            flag("labels_ok"),
            word(&axis["reason"]),
        ]);
    }
    out.line(table)
}

/// Prints spill file, divisions by zero and device.
fn print_remarks(execution: &Execution, out: &mut Ui) -> Result<(), Failure> {
    let text = |name: &str| execution.get(name).map(|value| escape::name(&scalar(value, exact)).into_owned());
    if let Some(path) = text("spill_f32_path") {
        let bytes = match execution.get("spill_f32_bytes") {
            Some(Value::Count(bytes)) => format!(" ({})", size_and_bytes(*bytes)),
            _ => String::new(),
        };
        field("written", format_args!("{path}{bytes}"), out)?;
    }
    if let Some(count) = text("transform_div_by_zero_count") {
        out.line(paint(WARN, format_args!("{count} elements are NaN because of division by zero")))?;
    }
    if let Some(reason) = text("device_fallback_reason") {
        out.line(paint(DIM, format_args!("device: fell back to CPU ({reason})")))?;
    }
    Ok(())
}

/// The lines of `--explain`.
pub(super) fn explanation(answer: &Answer) -> Vec<String> {
    let Some(explain) = &answer.explain else { return Vec::new() };
    let mut lines = vec![paint(HEADING, "explain:")];
    let steps = explain.steps.iter().enumerate();
    lines.extend(steps.map(|(number, step)| format!("  {}. {}", number + 1, escape::name(step))));
    lines.push(format!(
        "  chunks: {} by statistics, {} by values, {} skipped",
        explain.chunks_by_statistics, explain.chunks_by_payload, explain.chunks_skipped
    ));
    lines.push(format!("  threads: {}", explain.threads));
    lines
}
