//! The result of a query as tables.

use tercet::core::escape;
use tercet::tet::{Outcome, QueryResult, ReadPlan, Request};

use super::result::{Context, Operation, Results, extents};
use super::text;
use crate::failure::Failure;
use crate::render::{Table, rounded};
use crate::ui::{HEADING, Ui, paint};

/// Prints a result as tables; `verbose` adds read plan and execution details.
pub(super) fn print(context: &Context<'_>, verbose: bool, out: &mut Ui) -> Result<(), Failure> {
    let operation = Operation::new(context);
    fields("query:", &overview(context, operation.as_ref(), verbose), out)?;
    let Some(result) = context.result else { return Ok(()) };
    if let Some(plan) = result.plan.as_ref().filter(|_| verbose) {
        out.line("")?;
        fields("read_plan:", &planned(plan), out)?;
    }
    if let Some(strategy) = result.memory_strategy().filter(|_| verbose) {
        out.line("")?;
        fields("execution:", &executed(result, strategy), out)?;
    }
    if let (Some(request), Some(outcome)) = (&result.request, &result.outcome) {
        if let Some(operation) = &operation {
            out.line("")?;
            print_result(request, operation, outcome, out)?;
        }
        if outcome.preview.as_ref().is_some_and(|preview| preview.values.is_some()) {
            out.line("")?;
            let is_result = operation.is_some_and(|operation| operation.is_transform());
            text::print_preview(request, is_result, outcome, rounded, out)?;
        }
    }
    Ok(())
}

type Field = (&'static str, String);

fn fields(title: &str, rows: &[Field], out: &mut Ui) -> Result<(), Failure> {
    out.line(paint(HEADING, title))?;
    let mut table = Table::new(&["field", "value"]);
    for (name, value) in rows {
        table.row([(*name).to_owned(), value.clone()]);
    }
    out.line(table)
}

fn overview(context: &Context<'_>, operation: Option<&Operation>, verbose: bool) -> Vec<Field> {
    let mut rows = vec![("dataset", escape::name(context.query.dataset()).into_owned())];
    if let Some(operation) = operation {
        let axes = &operation.axes;
        let over = if axes.is_empty() { "(scalar)".to_owned() } else { format!("axes=[{}]", axes.join(",")) };
        rows.push(("op", format!("{} {}", operation.kind.key(), escape::name(&over))));
    }
    if let (Some(request), Some(outcome)) = (context.request(), context.outcome()) {
        let skipped = Results::new(request, outcome).map_or(0, |results| results.skipped);
        rows.extend((skipped > 0).then(|| ("skipped", skipped.to_string())));
    }
    if let Some(plan) = context.plan() {
        rows.push(("shape", extents(&plan.selection().shape())));
        rows.push(("chunks", plan.chunks().len().to_string()));
    }
    if let Some(outcome) = context.outcome() {
        rows.push(("bytes_read", outcome.execution.bytes_read.to_string()));
        if let Some((path, bytes)) = text::written(outcome) {
            rows.push(("written", escape::name(path).into_owned()));
            rows.push(("written_bytes", bytes.to_string()));
        }
    }
    if let Some(alignment) = context.result.and_then(|result| result.alignment.as_ref()) {
        rows.push(("bytes_read", "0".to_owned()));
        rows.push(("aligned", alignment.aligned.to_string()));
    }
    if verbose {
        rows.push(("status", "planned".to_owned()));
        let file = context.result.map(|result| result.file().name());
        rows.extend(file.map(|file| ("tet_file", escape::name(file).into_owned())));
    }
    rows
}

fn planned(plan: &ReadPlan) -> Vec<Field> {
    let mut rows = vec![
        ("touch_policy", plan.touch_policy().split('_').next().unwrap_or_default().to_owned()),
        ("chunk_count", plan.chunks().len().to_string()),
        ("stored_bytes", plan.total_stored_bytes().to_string()),
        ("logical_shape", extents(&plan.selection().shape())),
        ("logical_elements", plan.element_count().to_string()),
    ];
    let skipped = plan.zone_filter_skipped() + plan.index_filter_skipped();
    rows.extend((skipped > 0).then(|| ("skipped_chunks", skipped.to_string())));
    rows.extend(plan.contiguous().map(|span| ("contiguous_scan", format!("bytes {span}"))));
    rows
}

fn executed(result: &QueryResult<'_>, strategy: &'static str) -> Vec<Field> {
    let mut rows = vec![("memory_strategy", strategy.to_owned())];
    let (Some(plan), Some(outcome)) = (&result.plan, &result.outcome) else { return rows };
    let how = &outcome.execution;
    rows.insert(0, ("bytes_read", how.bytes_read.to_string()));
    if strategy == "streaming_fold" {
        rows.push(("io_regime", how.io_regime().to_owned()));
        rows.push(("fold_parallel", how.is_parallel.to_string()));
        rows.push(("fold_linear_scan", how.is_linear_scan.to_string()));
    }
    rows.push(("logical_selection_bytes", plan.selection_bytes().to_string()));
    rows.push(("device_used", "cpu".to_owned()));
    rows.extend(result.query.device_fallback().map(|reason| ("device_fallback_reason", reason.to_owned())));
    rows.extend(text::zero_divisors(outcome).map(|count| ("div_by_zero", count.to_string())));
    rows
}

fn print_result(
    request: &Request<'_>,
    operation: &Operation,
    outcome: &Outcome,
    out: &mut Ui,
) -> Result<(), Failure> {
    let Some(results) = Results::new(request, outcome) else { return Ok(()) };
    let shape = results.shape.as_ref().map(|shape| format!(" (reduced_shape={})", extents(shape)));
    out.line(paint(HEADING, format_args!("result{}:", shape.unwrap_or_default())))?;
    let tables = text::result_tables((request, outcome), operation, &results, rounded);
    if !tables.is_empty() {
        return tables.into_iter().try_for_each(|table| text::print_table(table, out));
    }
    let mut table = Table::new(&["field", ">value"]);
    for (name, list) in &results.values {
        table.row([(*name).to_owned(), list.text(0, rounded).unwrap_or_default()]);
    }
    for position in text::named_positions(request, outcome, (", ", 1)).into_iter().flatten() {
        table.row(["at".to_owned(), position]);
    }
    table.row(["elements".to_owned(), results.elements.to_string()]);
    if let Some(groups) = request.group_count() {
        table.row(["groups".to_owned(), groups.to_string()]);
    }
    out.line(table)
}
