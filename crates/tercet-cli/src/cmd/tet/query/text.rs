//! The result of a query as text.

use std::fmt::Write as _;

use tercet::core::escape;
use tercet::core::num::counted;
use tercet::tet::{Alignment, Computed, Dataset, Op, Outcome, ReadPlan, Request};

use super::arrays::{ArrayTable, Head, axis_name, position_labels, result_heads, selection_heads, tables};
use super::result::{Context, List, Operation, Results, Write, extents};
use crate::failure::Failure;
use crate::render::{Table, exact, significant, size_and_bytes};
use crate::ui::{DIM, HEADING, Ui, WARN, paint};

/// Maximum width of a histogram bar.
const BAR: f64 = 24.0;

/// Prints a result. The inputs of a reduction are printed only with `--preview`.
pub(super) fn print(context: &Context<'_>, preview_given: bool, out: &mut Ui) -> Result<(), Failure> {
    let operation = Operation::new(context);
    let Some(result) = context.result else {
        field("dataset", escape::name(context.query.dataset()), out)?;
        if let Some(operation) = &operation {
            field("operation", describe_operation(context, operation), out)?;
        }
        out.line("the query is valid")?;
        return out.line(paint(DIM, "add `-t FILE` to print the read plan, and `-x` to execute the query"));
    };
    field("dataset", described(&result.dataset), out)?;
    if let Some(alignment) = &result.alignment {
        print_alignment(alignment, out)?;
        return print_read(0, out);
    }
    if let Some(plan) = &result.plan {
        print_selection(&result.dataset, plan, out)?;
        match (&result.request, &result.outcome) {
            (Some(request), Some(outcome)) => {
                print_outcome(context, (request, plan, outcome), operation.as_ref(), preview_given, out)?;
            }
            _ => print_plan(plan, out)?,
        }
    }
    Ok(())
}

fn field(name: &str, value: impl std::fmt::Display, out: &mut Ui) -> Result<(), Failure> {
    out.line(format_args!("{} {value}", paint(HEADING, format_args!("{name}:"))))
}

/// `temp, f32 6×5 (time×station)`
fn described(dataset: &Dataset<'_>) -> String {
    let dtype = dataset.grid().map(|grid| format!("{} ", grid.element())).unwrap_or_default();
    let mut text = format!("{}, {dtype}{}", escape::name(dataset.name()), extents(dataset.shape()));
    let names: Vec<_> =
        (0..dataset.shape().len()).filter_map(|axis| dataset.axis_name(axis)).map(escape::name).collect();
    if !names.is_empty() {
        // Writing to a String cannot fail.
        let _ = write!(text, " ({})", names.join("×"));
    }
    text
}

fn print_selection(dataset: &Dataset<'_>, plan: &ReadPlan, out: &mut Ui) -> Result<(), Failure> {
    let selection = plan.selection();
    if selection.is_full(dataset.shape()) {
        return Ok(());
    }
    let mut parts = Vec::new();
    for ((axis, slice), extent) in selection.axes().iter().enumerate().zip(dataset.shape()) {
        if (slice.start, slice.stop, slice.step) == (0, *extent, 1) {
            continue;
        }
        let step = if slice.step == 1 { String::new() } else { format!(":{}", slice.step) };
        let name = axis_name(Some(dataset), axis);
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

fn print_outcome(
    context: &Context<'_>,
    (request, plan, outcome): (&Request<'_>, &ReadPlan, &Outcome),
    operation: Option<&Operation>,
    preview_given: bool,
    out: &mut Ui,
) -> Result<(), Failure> {
    if let Some(operation) = operation {
        print_result(context, (request, plan, outcome), operation, out)?;
    }
    let is_fold = operation.is_some_and(|operation| !operation.is_transform());
    if !is_fold || preview_given {
        print_preview(request, operation.is_some() && !is_fold, outcome, significant, out)?;
    }
    print_remarks(context, outcome, out)?;
    print_read(outcome.execution.bytes_read, out)
}

fn print_read(bytes: u64, out: &mut Ui) -> Result<(), Failure> {
    out.line(paint(DIM, format_args!("read: {} of chunks", size_and_bytes(bytes))))
}

/// The operation as text: `mean over station`.
fn describe_operation(context: &Context<'_>, operation: &Operation) -> String {
    let dataset = context.dataset();
    let name = |axis: &String| match axis.parse() {
        Ok(number) => axis_name(dataset.as_ref(), number),
        Err(_) => escape::name(axis).into_owned(),
    };
    let axes: Vec<String> = operation.axes.iter().map(name).collect();
    let mut text = match operation.kind {
        Op::Transform { method } => method.name(),
        op => op.key(),
    }
    .to_owned();
    let _ = match operation.parameter() {
        Some(("bins", bins)) => write!(text, " of {bins} bins"),
        Some(("fill", fill)) => write!(text, " {} as fill", exact(fill)),
        Some((_, value)) => write!(text, " {}", exact(value)),
        None => Ok(()),
    };
    if !axes.is_empty() {
        let _ = write!(text, " over {}", axes.join(", "));
    }
    text
}

fn print_result(
    context: &Context<'_>,
    (request, plan, outcome): (&Request<'_>, &ReadPlan, &Outcome),
    operation: &Operation,
    out: &mut Ui,
) -> Result<(), Failure> {
    let Some(results) = Results::new(request, outcome) else { return Ok(()) };
    let mut heading = describe_operation(context, operation);
    let selected = Some(plan.element_count()).filter(|selected| results.elements < *selected);
    let part = selected.map(|all| format!(" of {all} selected")).unwrap_or_default();
    let _ = write!(heading, ", {}{part}", counted(results.elements, "element"));
    if results.skipped > 0 {
        let _ = write!(heading, ", {} skipped", counted(results.skipped, "missing value"));
    }
    for (count, word) in [(request.group_count(), "group"), (request.window_count(), "window")] {
        if let Some(count) = count {
            let _ = write!(heading, ", {}", counted(count, word));
        }
    }
    let heading = paint(HEADING, heading);
    let tables = result_tables((request, outcome), operation, &results, significant);
    if !tables.is_empty() {
        out.line(format_args!("{heading}:"))?;
        return tables.into_iter().try_for_each(|table| print_table(table, out));
    }
    let text = |list: &List<'_>| list.text(0, exact).unwrap_or_default();
    match &results.values[..] {
        [] => out.line(format_args!("{heading}: {}", results.elements)),
        [(_, list)] => {
            let at = list.index(0).and_then(|index| coordinates(request, index));
            let at = at.map(|at| format!(" ({at})")).unwrap_or_default();
            out.line(format_args!("{heading}: {}{at}", text(list)))
        }
        values => {
            out.line(format_args!("{heading}:"))?;
            values.iter().try_for_each(|(name, list)| out.line(format_args!("  {name}: {}", text(list))))
        }
    }
}

/// The coordinates of an index of the selection: `time=2024-01-03, station=B`.
fn coordinates(request: &Request<'_>, index: usize) -> Option<String> {
    let heads = selection_heads(request);
    (!heads.is_empty()).then(|| named_position(&heads, index))
}

fn named_position(heads: &[Head], index: usize) -> String {
    let labels = position_labels(heads, index);
    let parts = heads.iter().zip(labels).map(|(head, label)| format!("{}={label}", head.name));
    parts.collect::<Vec<_>>().join(", ")
}

/// The coordinates of the first results of `arg_min` or `arg_max`: `time=2024-01-03,station=B`. `None` for other operations, and
/// for positions within groups, which have none.
pub(super) fn named_positions(
    request: &Request<'_>,
    outcome: &Outcome,
    (separator, most): (&str, usize),
) -> Option<Vec<String>> {
    let Computed::Reduced(reduced) = &outcome.computed else { return None };
    let first = reduced.first().filter(|first| matches!(first.op, Op::ArgMin | Op::ArgMax))?;
    let axes = request.positions(first).ok()?;
    let count = axes.first()?.indices.len();
    let named = |at| {
        let parts = axes.iter().filter_map(|axis| {
            Some(format!("{}={}", escape::name(&axis.axis), escape::name(&axis.text(at)?)))
        });
        parts.collect::<Vec<_>>().join(separator)
    };
    Some((0..count.min(most)).map(named).collect())
}

/// Indices among the reduced axes as text: `17 (station=B)`.
fn positions(named: Option<&[String]>, list: List<'_>) -> Vec<String> {
    let text = |at| match (list.index(at), named.and_then(|named| named.get(at))) {
        (None, _) => "none".to_owned(),
        (Some(index), None) => index.to_string(),
        (Some(index), Some(named)) => format!("{index} ({named})"),
    };
    (0..list.len()).map(text).collect()
}

/// The array results as tables.
pub(super) fn result_tables(
    (request, outcome): (&Request<'_>, &Outcome),
    operation: &Operation,
    results: &Results<'_>,
    write: Write,
) -> Vec<ArrayTable> {
    let heads = || result_heads(request, operation);
    let first = results.values.first();
    match (operation.kind, &results.shape, first) {
        (Op::Histogram { .. }, None, Some((_, counts))) => match results.edges {
            Some(edges) => vec![histogram(*counts, edges, write)],
            None => Vec::new(),
        },
        (Op::Histogram { .. }, Some(shape), Some((_, counts))) => {
            let outputs = shape.iter().product::<u64>().max(1);
            let mut heads = heads();
            heads.push(Head::numbered("bin", counts.len() as u64 / outputs));
            tables(&heads, &[("count", *counts)], write)
        }
        (Op::Covariance | Op::Correlation, ..) => {
            let both: Vec<Head> = heads().into_iter().chain(heads()).collect();
            tables(&both, &results.values, write)
        }
        (Op::ArgMin | Op::ArgMax, Some(_), _) if !operation.axes.is_empty() => {
            let named = named_positions(request, outcome, (", ", usize::MAX));
            let named = named.as_deref();
            let texts: Vec<(&str, Vec<String>)> =
                results.values.iter().map(|(name, list)| (*name, positions(named, *list))).collect();
            let lists: Vec<_> = texts.iter().map(|(name, texts)| (*name, List::Texts(texts))).collect();
            tables(&heads(), &lists, write)
        }
        (_, Some(_), _) => tables(&heads(), &results.values, write),
        (_, None, _) => Vec::new(),
    }
}

fn histogram(counts: List<'_>, edges: &[f64], write: Write) -> ArrayTable {
    let numbers = match counts {
        List::Tensor(counts) => counts.to_vec::<f64>().unwrap_or_default(),
        _ => Vec::new(),
    };
    let most = numbers.iter().copied().fold(1.0, f64::max);
    let mut table = Table::new(&[">from", ">to", ">count", ""]);
    for (bin, count) in numbers.iter().enumerate() {
        let edge = |at: usize| edges.get(at).map(|edge| write(*edge)).unwrap_or_default();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most the width of a bar"
        )]
        let bar = "▇".repeat((count / most * BAR).round() as usize);
        table.row([edge(bin), edge(bin + 1), write(*count), bar]);
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
    request: &Request<'_>,
    of_result: bool,
    outcome: &Outcome,
    write: Write,
    out: &mut Ui,
) -> Result<(), Failure> {
    let Some(preview) = &outcome.preview else { return Ok(()) };
    let Some(values) = &preview.values else { return Ok(()) };
    let list = List::Tensor(values);
    let what = if of_result { "result" } else { "stored values" };
    let part = if preview.truncated {
        let total = request.selection().shape().iter().product::<u64>();
        format!("{what}, the first {} of {total}:", list.len())
    } else {
        format!("{what}:")
    };
    out.line(paint(HEADING, part))?;
    tables(&selection_heads(request), &[("value", list)], write).into_iter().try_for_each(|part| {
        // The heading has the total already.
        let omitted = part.omitted.filter(|_| !preview.truncated);
        print_table(ArrayTable { omitted, ..part }, out)
    })
}

fn print_alignment(alignment: &Alignment, out: &mut Ui) -> Result<(), Failure> {
    let aligned = if alignment.aligned { "aligned" } else { "not aligned" };
    out.line(paint(HEADING, format_args!("{aligned} with {}:", escape::name(&alignment.with))))?;
    let mut table = Table::new(&["axis", "ok", ">extent", ">other extent", "labels", "reason"]);
    for axis in &alignment.axes {
        let flag = |is_equal: bool| if is_equal { "yes" } else { "no" }.to_owned();
        table.row([
            escape::name(&axis.axis).into_owned(),
            flag(axis.ok),
            axis.extent_left.to_string(),
            axis.extent_right.to_string(),
            flag(axis.labels_ok),
            escape::name(axis.reason.as_deref().unwrap_or_default()).into_owned(),
        ]);
    }
    out.line(table)
}

/// Prints spill file, divisions by zero and device.
fn print_remarks(context: &Context<'_>, outcome: &Outcome, out: &mut Ui) -> Result<(), Failure> {
    if let Some((path, bytes)) = written(outcome) {
        field("written", format_args!("{} ({})", escape::name(path), size_and_bytes(bytes)), out)?;
    }
    if let Some(count) = zero_divisors(outcome) {
        out.line(paint(WARN, format_args!("{count} elements are NaN because of division by zero")))?;
    }
    if let Some(reason) = context.query.device_fallback() {
        out.line(paint(DIM, format_args!("device: fell back to CPU ({reason})")))?;
    }
    Ok(())
}

/// The path and the size of the file that a result was written to. A temporary file has no path.
pub(super) fn written(outcome: &Outcome) -> Option<(&str, u64)> {
    let file = match &outcome.computed {
        Computed::Written(file) => file,
        Computed::Transformed(made) => made.file.as_ref()?,
        Computed::Read(_) | Computed::Preview | Computed::Reduced(_) => return None,
    };
    Some((file.path.as_deref()?, file.bytes))
}

/// The number of elements without a result because of their divisor.
pub(super) fn zero_divisors(outcome: &Outcome) -> Option<u64> {
    match &outcome.computed {
        Computed::Transformed(made) => Some(made.zero_divisors).filter(|&count| count > 0),
        _ => None,
    }
}

/// The lines of `--explain`.
pub(super) fn explanation(context: &Context<'_>) -> Vec<String> {
    let Some(outcome) = context.outcome() else { return Vec::new() };
    let how = &outcome.execution;
    let mut lines = vec![paint(HEADING, "explain:")];
    let steps = how.steps.iter().enumerate();
    lines.extend(steps.map(|(number, step)| format!("  {}. {}", number + 1, escape::name(step))));
    lines.push(format!(
        "  chunks: {} by statistics, {} by values, {} skipped",
        how.chunks_by_statistics, how.chunks_read, how.chunks_skipped
    ));
    lines.push(format!("  threads: {}", how.threads));
    lines
}
