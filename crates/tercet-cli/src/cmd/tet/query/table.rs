//! An answer as tables.

use tercet::core::escape;
use tercet::tet::ReadPlan;
use tercet::tet::compat::{Execution, Value};

use super::result::{AnswerContext, Operation, Results, extents, scalar};
use super::text;
use crate::failure::Failure;
use crate::render::{Table, rounded};
use crate::ui::{HEADING, Ui, paint};

/// Optional members of an execution that `table-verbose` prints.
const DETAILS: [(&str, &str); 7] = [
    ("io_regime", "io_regime"),
    ("fold_parallel", "fold_parallel"),
    ("fold_linear_scan", "fold_linear_scan"),
    ("logical_selection_bytes", "logical_selection_bytes"),
    ("device_used", "device_used"),
    ("device_fallback_reason", "device_fallback_reason"),
    ("transform_div_by_zero_count", "div_by_zero"),
];

/// Prints an answer as tables; `verbose` adds read plan and execution details.
pub(super) fn print(context: &AnswerContext<'_>, verbose: bool, out: &mut Ui) -> Result<(), Failure> {
    let answer = context.answer;
    let operation = Operation::from_answer(answer);
    fields("query:", &overview(context, operation.as_ref(), verbose), out)?;
    if let Some(catalog) = answer.catalog.as_ref().filter(|catalog| catalog.found.is_none()) {
        out.line("")?;
        out.line(paint(HEADING, "datasets:"))?;
        let mut table = Table::new(&[">#", "name"]);
        for (number, name) in catalog.available_datasets.iter().enumerate() {
            table.row([number.to_string(), escape::name(name).into_owned()]);
        }
        return out.line(table);
    }
    if let Some(plan) = answer.read_plan.as_ref().filter(|_| verbose) {
        out.line("")?;
        fields("read_plan:", &planned(plan), out)?;
    }
    if let Some(execution) = &answer.execution {
        if verbose {
            out.line("")?;
            fields("execution:", &executed(execution), out)?;
        }
        if let Some(operation) = &operation {
            out.line("")?;
            print_result(context, operation, execution, out)?;
        }
        if execution.preview.as_ref().is_some_and(|preview| preview.values.is_some()) {
            out.line("")?;
            let is_result = operation.is_some_and(|operation| operation.name == "transform");
            text::print_preview(context, is_result, execution, rounded, out)?;
        }
    }
    text::explanation(answer).into_iter().try_for_each(|line| out.line(line))
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

fn overview(context: &AnswerContext<'_>, operation: Option<&Operation<'_>>, verbose: bool) -> Vec<Field> {
    let answer = context.answer;
    let mut rows = vec![("dataset", escape::name(&answer.dataset).into_owned())];
    if let Some(operation) = operation {
        let axes = operation.axes();
        let over = if axes.is_empty() { "(scalar)".to_owned() } else { format!("axes=[{}]", axes.join(",")) };
        rows.push(("op", format!("{} {}", operation.name, escape::name(&over))));
    }
    if let Some(execution) = answer.execution.as_ref().filter(|execution| execution.skipped > 0) {
        rows.push(("skipped", execution.skipped.to_string()));
    }
    if answer.catalog.as_ref().is_some_and(|catalog| catalog.found.is_none()) {
        rows.push(("matched", "false".to_owned()));
    }
    if let Some(plan) = &answer.read_plan {
        rows.push(("shape", extents(&plan.selection().shape())));
        rows.push(("chunks", plan.chunks().len().to_string()));
    }
    if let Some(execution) = &answer.execution {
        rows.push(("bytes_read", execution.total_bytes_read_from_disk.to_string()));
        let text = |name| execution.get(name).map(|value| escape::name(&scalar(value, rounded)).into_owned());
        rows.extend(text("spill_f32_path").map(|path| ("written", path)));
        rows.extend(text("spill_f32_bytes").map(|bytes| ("written_bytes", bytes)));
        if let Some(Value::Json(alignment)) = execution.get("alignment") {
            rows.push(("aligned", alignment["aligned"].to_string()));
        }
    }
    if verbose {
        rows.push(("status", "planned".to_owned()));
        rows.extend(answer.tet_file.as_ref().map(|file| ("tet_file", escape::name(file).into_owned())));
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

fn executed(execution: &Execution) -> Vec<Field> {
    let mut rows = vec![
        ("bytes_read", execution.total_bytes_read_from_disk.to_string()),
        ("memory_strategy", execution.memory_strategy.to_owned()),
    ];
    for (name, shown) in DETAILS {
        rows.extend(
            execution.get(name).map(|value| (shown, escape::name(&scalar(value, rounded)).into_owned())),
        );
    }
    rows
}

fn print_result(
    context: &AnswerContext<'_>,
    operation: &Operation<'_>,
    execution: &Execution,
    out: &mut Ui,
) -> Result<(), Failure> {
    let results = Results::from_execution(execution);
    let shape = results.shape.map(|shape| format!(" (reduced_shape={})", extents(shape))).unwrap_or_default();
    out.line(paint(HEADING, format_args!("result{shape}:")))?;
    let tables = text::result_tables(context, operation, &results, rounded);
    if tables.is_empty() {
        let mut table = Table::new(&["field", ">value"]);
        for (name, value) in &results.values {
            table.row([(*name).to_owned(), scalar(value, rounded)]);
        }
        for (name, count) in [("elements", results.elements), ("groups", group_count(execution))] {
            if let Some(count) = count {
                table.row([name.to_owned(), count.to_string()]);
            }
        }
        return out.line(table);
    }
    tables.into_iter().try_for_each(|table| text::print_table(table, out))
}

fn group_count(execution: &Execution) -> Option<u64> {
    match execution.get("group_count") {
        Some(Value::Count(count)) => Some(*count),
        _ => None,
    }
}
