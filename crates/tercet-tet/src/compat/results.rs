//! Typed results → members of the answer.

use tercet_core::Tensor;

use super::answer::{Execution, Value};
use super::run::is_fold;
use crate::compute::{self, Computed, OutputFile, Reduced, Request, Transformed};
use crate::plan::ReadPlan;
use crate::query::operation::Kind;
use crate::query::resolved::Operation;

/// The members of the results of a request, without previews.
pub(super) fn execution(
    request: &Request<'_>,
    plan: &ReadPlan,
    computed: Computed,
    how: &compute::Execution,
) -> Execution {
    let mut execution = Execution::default();
    match (computed, &request.resolved.operation) {
        (Computed::Reduced(results), Some(operation)) => {
            execution.memory_strategy = match operation.kind {
                kind if is_fold(kind) => "streaming_fold",
                _ if plan.selection_bytes() > how.memory_budget => "temp_spill_materialize",
                _ => "in_memory_materialize",
            };
            for reduced in results {
                execution.skipped = reduced.skipped;
                execution.results.extend(reduction(operation, plan, reduced));
            }
            let groups = request.resolved.group_count.map(|count| ("group_count", Value::Count(count)));
            let windows = request.resolved.window_count.map(|count| ("window_count", Value::Count(count)));
            execution.details = groups.into_iter().chain(windows).collect();
        }
        (Computed::Transformed(made), Some(operation)) => {
            execution.memory_strategy = match (&made.file, made.is_sidecar) {
                (None, _) => "transform_ram",
                (Some(_), false) => "transform_spill",
                (Some(_), true) => "transform_sidecar",
            };
            let Transformed { tensor, file, .. } = put_transform(operation, plan, *made, &mut execution);
            execution.details = file.map_or_else(Vec::new, written);
            execution.tensor = tensor;
        }
        (Computed::Written(file), _) => {
            execution.memory_strategy = "mmap_spill";
            execution.details = written(file);
        }
        (Computed::Read(tensor), _) => execution.tensor = Some(tensor),
        (Computed::Reduced(_) | Computed::Transformed(_), None) => {}
    }
    execution
}

/// The members of a file. Their names mention the first supported element type; all types use them.
fn written(file: OutputFile) -> Vec<(&'static str, Value)> {
    let path = file.path.map(|path| ("spill_f32_path", Value::Text(path)));
    path.into_iter().chain([("spill_f32_bytes", Value::Count(file.bytes))]).collect()
}

/// The members of a reduction.
fn reduction(operation: &Operation, plan: &ReadPlan, reduced: Reduced) -> Vec<(&'static str, Value)> {
    let (scalar, array) = names(reduced.op);
    let mut members = vec![("operation_element_count", Value::Count(reduced.elements))];
    let mut put = |name, value| members.push((name, value));
    if let Kind::Covariance | Kind::Correlation = reduced.op {
        let order = reduced.tensor.shape().first().copied().unwrap_or(0);
        let order_name = match reduced.op {
            Kind::Correlation => "operation_correlation_order",
            _ => "operation_covariance_order",
        };
        put(scalar, numbers(reduced.tensor));
        put(order_name, Value::Count(order));
        return members;
    }
    if !operation.is_scalar() {
        put("operation_reduced_shape", Value::Shape(operation.output_shape(&plan.selection.shape())));
        put(array, values(reduced.op, reduced.tensor));
        return members;
    }
    match reduced.op {
        Kind::Count => {}
        Kind::Histogram { .. } => {
            put(scalar, numbers(reduced.tensor));
            let edges = reduced.edges.map_or(Value::Json(serde_json::Value::Null), Value::Numbers);
            put("operation_histogram_edges", edges);
        }
        op => put(
            scalar,
            match values(op, reduced.tensor) {
                Value::Flags(flags) => Value::Flag(flags.first().copied().flatten().unwrap_or(false)),
                Value::Indices(indices) => {
                    Value::Index(indices.first().and_then(|&index| u64::try_from(index).ok()))
                }
                Value::Numbers(numbers) => Value::Number(numbers.first().copied().unwrap_or(f64::NAN)),
                other => other,
            },
        ),
    }
    members
}

/// The values of an operation, in the type that the answer gives them.
fn values(op: Kind, tensor: Tensor) -> Value {
    match op {
        Kind::ArgMin | Kind::ArgMax => Value::Indices(tensor.into_vec().unwrap_or_default()),
        Kind::AllFinite | Kind::AnyNan | Kind::AnyInf => {
            let flags = tensor.into_vec::<f64>().unwrap_or_default();
            Value::Flags(flags.into_iter().map(|flag| (!flag.is_nan()).then_some(flag > 0.0)).collect())
        }
        _ => numbers(tensor),
    }
}

fn numbers(tensor: Tensor) -> Value {
    Value::Numbers(tensor.into_vec().unwrap_or_default())
}

/// Puts the members of a transform; returns the rest of it.
fn put_transform(
    operation: &Operation,
    plan: &ReadPlan,
    mut made: Transformed,
    execution: &mut Execution,
) -> Transformed {
    let results = &mut execution.results;
    let scalar = operation.is_scalar();
    results.push(("operation_element_count", Value::Count(made.elements)));
    if !scalar {
        let shape = operation.output_shape(&plan.selection.shape());
        results.push(("operation_reduced_shape", Value::Shape(shape)));
    }
    // With axes all six arrays are present; those that were not needed are empty.
    for op in [Kind::Mean, Kind::Min, Kind::Max, Kind::Std, Kind::NormL1, Kind::NormL2] {
        let (name, array) = names(op);
        let found = made.statistics.iter_mut().find(|(other, _)| *other == op);
        match (scalar, found.map(|(_, numbers)| std::mem::take(numbers))) {
            (true, Some(numbers)) => {
                results.push((name, Value::Number(numbers.first().copied().unwrap_or(f64::NAN))));
            }
            (true, None) => {}
            (false, numbers) => results.push((array, Value::Numbers(numbers.unwrap_or_default()))),
        }
    }
    results.push(("transform_method", Value::Text(made.method.name().to_owned())));
    if made.zero_divisors > 0 {
        let indices = made.zero_divisor_indices.iter().map(|&index| index.cast_signed()).collect();
        results.push(("transform_div_by_zero_indices", Value::Indices(indices)));
        results.push(("transform_div_by_zero_count", Value::Count(made.zero_divisors)));
    }
    made
}

/// Names of an operation's results: for a scalar, and for an array.
fn names(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Sum => ("operation_sum", "operation_reduced_sum"),
        Kind::Mean => ("operation_mean", "operation_reduced_mean"),
        Kind::Min => ("operation_min", "operation_reduced_min"),
        Kind::Max => ("operation_max", "operation_reduced_max"),
        Kind::Count => ("operation_element_count", "operation_reduced_count"),
        Kind::Var => ("operation_var", "operation_reduced_var"),
        Kind::Std => ("operation_std", "operation_reduced_std"),
        Kind::Product => ("operation_product", "operation_reduced_product"),
        Kind::NormL1 => ("operation_norm_l1", "operation_reduced_norm_l1"),
        Kind::NormL2 => ("operation_norm_l2", "operation_reduced_norm_l2"),
        Kind::AllFinite => ("operation_all_finite", "operation_reduced_all_finite"),
        Kind::AnyNan => ("operation_any_nan", "operation_reduced_any_nan"),
        Kind::AnyInf => ("operation_any_inf", "operation_reduced_any_inf"),
        Kind::NanCount => ("operation_nan_count", "operation_reduced_nan_count"),
        Kind::InfCount => ("operation_inf_count", "operation_reduced_inf_count"),
        Kind::NanMean => ("operation_nan_mean", "operation_reduced_nan_mean"),
        Kind::NanStd => ("operation_nan_std", "operation_reduced_nan_std"),
        Kind::NullCount { .. } => ("operation_null_count", "operation_reduced_null_count"),
        Kind::ArgMin => ("operation_argmin_index", "operation_reduced_argmin"),
        Kind::ArgMax => ("operation_argmax_index", "operation_reduced_argmax"),
        Kind::Median => ("operation_median", "operation_reduced_median"),
        Kind::Quantile { .. } => ("operation_quantile", "operation_reduced_quantile"),
        Kind::Histogram { .. } => ("operation_histogram_counts", "operation_reduced_histogram_counts"),
        Kind::Covariance => ("operation_covariance", "operation_covariance"),
        Kind::Correlation => ("operation_correlation", "operation_correlation"),
        Kind::Transform { .. } => ("transform_method", "transform_method"),
    }
}
