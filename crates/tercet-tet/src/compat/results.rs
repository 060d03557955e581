//! Typed results → members of the answer.

use std::borrow::Cow;

use tercet_core::tensor::Scalar;
use tercet_core::{ElementType, Tensor};

use super::answer::{Answer, Catalog, Execution, Explain, MatchedDataset, Value};
use crate::compute::{Computed, OutputFile, Reduced, Request, Transformed};
use crate::exec::reduce::is_streaming;
use crate::file::File;
use crate::plan::ReadPlan;
use crate::query::operation::Kind;
use crate::query::resolved::Operation;
use crate::query::{Query, QueryResult};

type Member<'a> = (&'static str, Value<'a>);

impl<'a> Answer<'a> {
    /// The answer to a query that was planned or run.
    pub fn new(result: &'a QueryResult<'a>) -> Self {
        let (query, file) = (result.query, result.dataset.file);
        let mut answer = Self::without_file(query);
        answer.tet_file = Some(file.name());
        answer.catalog = Some(Catalog {
            found: result.dataset.grid().ok().map(|grid| MatchedDataset {
                dataset_index: result.dataset.id(),
                dtype: grid.element(),
                dtype_tag: result.dataset.dtype_tag(),
                shape: grid.shape().to_vec(),
                chunk_shape: grid.chunk_shape().to_vec(),
                chunk_index_rows: grid.chunk_count(),
                bytes: grid.bytes(),
            }),
            file_execution: file.memory_budget(),
            available_datasets: Vec::new(),
        });
        answer.read_plan = result.plan.as_ref();
        answer.message = message(result);
        answer.execution = execution(result);
        if let Some(request) = &result.request {
            answer.operation = query.echo(Some(&request.resolved));
        }
        answer
    }

    /// The answer to a query that was checked without a file.
    pub fn without_file(query: &'a Query) -> Self {
        Self {
            layout_version: query.layout_version(),
            dataset: query.dataset(),
            selection_axes: query.selection_axes(),
            operation: query.echo(None),
            message: "query accepted".to_owned(),
            tet_file: None,
            catalog: None,
            read_plan: None,
            execution: None,
            explain: None,
        }
    }

    /// The answer to a query on a dataset that the file does not have: to the reference this is not an error.
    pub fn not_found(query: &'a Query, file: &'a File) -> Self {
        let mut answer = Self::without_file(query);
        answer.message += "; dataset name not found in this file (see catalog.available_datasets)";
        answer.tet_file = Some(file.name());
        let available_datasets = file.datasets().map(|dataset| dataset.name().to_owned()).collect();
        answer.catalog =
            Some(Catalog { found: None, file_execution: file.memory_budget(), available_datasets });
        answer
    }

    /// Adds how the result was computed.
    pub fn with_explain(mut self, result: &'a QueryResult<'a>) -> Self {
        self.explain = result.outcome.as_ref().map(|outcome| Explain {
            steps: &outcome.execution.steps,
            chunks_by_statistics: outcome.execution.chunks_by_statistics,
            chunks_by_payload: outcome.execution.chunks_read,
            chunks_skipped: outcome.execution.chunks_skipped,
            threads: outcome.execution.threads,
        });
        self
    }
}

/// The message of the answer: what was done.
fn message(result: &QueryResult<'_>) -> String {
    let mut parts = vec!["query accepted".to_owned(), "dataset matched".to_owned()];
    if let Some(alignment) = &result.alignment {
        let found = if alignment.aligned { "ok" } else { "reported mismatch" };
        parts.push(format!("alignment check {found} with {:?}", alignment.with));
    }
    if let (Some(request), Some(plan)) = (&result.request, &result.plan) {
        let resolved = &request.resolved;
        let mut put = |condition: bool, text: &str| parts.extend(condition.then(|| text.to_owned()));
        put(true, "read_plan lists mmap payload regions for touched chunks");
        put(resolved.filter.is_some(), "cell filter applied to kept chunks");
        put(resolved.positions.is_some(), "label filter applied to kept chunks");
        let skipped = plan.index_filter_skipped;
        put(skipped > 0, &format!("index filter skipped {skipped}"));
        if result.outcome.is_some() {
            let (executed, previewed) = (
                "operation executed (see execution.memory_strategy and operation_*)",
                "mmap f32 preview attached (see execution)",
            );
            put(true, if resolved.operation.is_some() { executed } else { previewed });
            put(
                resolved.group_count.is_some(),
                &format!("group_count={}", resolved.group_count.unwrap_or(0)),
            );
        }
    }
    parts.join("; ")
}

/// The member `execution`.
fn execution<'a>(result: &'a QueryResult<'a>) -> Option<Execution<'a>> {
    let memory_strategy = result.memory_strategy()?;
    if let Some(alignment) = &result.alignment {
        let alignment = Value::Json(serde_json::to_value(alignment).unwrap_or_default());
        let details = vec![("alignment", alignment)];
        return Some(Execution { memory_strategy, details, ..Execution::default() });
    }
    let (request, plan, outcome) =
        (result.request.as_ref()?, result.plan.as_ref()?, result.outcome.as_ref()?);
    let mut execution = Execution {
        memory_strategy,
        preview: outcome.preview.as_ref(),
        total_bytes_read_from_disk: outcome.execution.bytes_read,
        ..Execution::default()
    };
    match (&outcome.computed, &request.resolved.operation) {
        (Computed::Reduced(results), Some(operation)) => {
            for reduced in results {
                execution.results.extend(reduction(operation, plan, reduced));
            }
            let groups = request.resolved.group_count.map(|count| ("group_count", Value::Count(count)));
            let windows = request.resolved.window_count.map(|count| ("window_count", Value::Count(count)));
            execution.details.extend(groups.into_iter().chain(windows));
        }
        (Computed::Transformed(made), Some(operation)) => {
            execution.results = transform(operation, plan, made);
            execution.details.extend(made.file.iter().flat_map(written));
        }
        (Computed::Written(file), _) => execution.details.extend(written(file)),
        _ => {}
    }
    details(result, plan, &mut execution.details);
    Some(execution)
}

/// Adds the members about memory and execution.
fn details<'a>(result: &'a QueryResult<'a>, plan: &ReadPlan, details: &mut Vec<Member<'a>>) {
    let Some(how) = result.outcome.as_ref().map(|outcome| &outcome.execution) else { return };
    let mut put = |name, value| details.push((name, value));
    put("memory_budget_bytes", Value::Count(how.memory_budget));
    if let Some(available) = how.available_memory {
        put("host_available_ram_bytes", Value::Count(available));
    }
    if plan.grid.element() == ElementType::F32 {
        put("logical_selection_f32_bytes", Value::Count(plan.selection_bytes()));
    }
    put("logical_selection_bytes", Value::Count(plan.selection_bytes()));
    let kind = result.request.as_ref().and_then(Request::operation_kind);
    if kind.is_some_and(is_streaming) {
        put("fold_parallel", Value::Flag(how.is_parallel));
        put("io_regime", Value::Text(how.io_regime().into()));
        put("fold_linear_scan", Value::Flag(how.is_linear_scan));
    }
    let device = result.query.execution().device;
    if device.fallback_reason().is_some() {
        put("device_requested", Value::Text(device.to_string().into()));
    }
    put("device_used", Value::Text("cpu".into()));
    if let Some(reason) = device.fallback_reason() {
        put("device_fallback_reason", Value::Text(reason.into()));
    }
}

/// The members of a file. Their names mention the first supported element type; all types use them.
fn written(file: &OutputFile) -> impl Iterator<Item = Member<'_>> {
    let path = file.path.as_ref().map(|path| ("spill_f32_path", Value::Text(path.as_str().into())));
    path.into_iter().chain([("spill_f32_bytes", Value::Count(file.bytes))])
}

/// The members of a reduction.
fn reduction<'a>(operation: &Operation, plan: &ReadPlan, reduced: &'a Reduced) -> Vec<Member<'a>> {
    let (scalar, array) = names(reduced.op);
    let mut members = vec![("operation_element_count", Value::Count(reduced.elements))];
    let mut put = |name, value| members.push((name, value));
    let tensor = &reduced.tensor;
    let numbers = || Value::Numbers(elements(tensor));
    if let Kind::Covariance | Kind::Correlation = reduced.op {
        let order = tensor.shape().first().copied().unwrap_or(0);
        let order_name = match reduced.op {
            Kind::Correlation => "operation_correlation_order",
            _ => "operation_covariance_order",
        };
        put(scalar, numbers());
        put(order_name, Value::Count(order));
        return members;
    }
    let is_index = matches!(reduced.op, Kind::ArgMin | Kind::ArgMax);
    let is_flag = matches!(reduced.op, Kind::AllFinite | Kind::AnyNan | Kind::AnyInf);
    if !operation.is_scalar() {
        put("operation_reduced_shape", Value::Shape(operation.output_shape(&plan.selection.shape())));
        put(
            array,
            match () {
                () if is_index => Value::Indices(elements(tensor)),
                () if is_flag => Value::Flags(elements(tensor)),
                () => numbers(),
            },
        );
        return members;
    }
    let first = || elements::<f64>(tensor).first().copied();
    match reduced.op {
        Kind::Count => {}
        Kind::Histogram { .. } => {
            put(scalar, numbers());
            let edges = reduced.edges.as_deref().map(|edges| Value::Numbers(edges.into()));
            put("operation_histogram_edges", edges.unwrap_or(Value::Json(serde_json::Value::Null)));
        }
        _ if is_index => {
            let index = elements::<i64>(tensor).first().and_then(|&index| u64::try_from(index).ok());
            put(scalar, Value::Index(index));
        }
        _ if is_flag => put(scalar, Value::Flag(first().is_some_and(|flag| flag > 0.0))),
        _ => put(scalar, Value::Number(first().unwrap_or(f64::NAN))),
    }
    members
}

/// The elements of a tensor; without a copy on little-endian hosts.
fn elements<T: Scalar>(tensor: &Tensor) -> Cow<'_, [T]> {
    match tensor.as_slice() {
        Some(elements) => elements.into(),
        None => tensor.to_vec().unwrap_or_default().into(),
    }
}

/// The members of a transform.
fn transform<'a>(operation: &Operation, plan: &ReadPlan, made: &'a Transformed) -> Vec<Member<'a>> {
    let scalar = operation.is_scalar();
    let mut members = vec![("operation_element_count", Value::Count(made.elements))];
    let mut put = |name, value| members.push((name, value));
    if !scalar {
        put("operation_reduced_shape", Value::Shape(operation.output_shape(&plan.selection.shape())));
    }
    // With axes all six arrays are present; those that were not needed are empty.
    for op in [Kind::Mean, Kind::Min, Kind::Max, Kind::Std, Kind::NormL1, Kind::NormL2] {
        let (name, array) = names(op);
        let found = made.statistics.iter().find(|(other, _)| *other == op).map(|(_, numbers)| &numbers[..]);
        match (scalar, found) {
            (true, Some(numbers)) => put(name, Value::Number(numbers.first().copied().unwrap_or(f64::NAN))),
            (true, None) => {}
            (false, numbers) => put(array, Value::Numbers(numbers.unwrap_or_default().into())),
        }
    }
    put("transform_method", Value::Text(made.method.name().into()));
    if made.zero_divisors > 0 {
        let indices: Vec<i64> = made.zero_divisor_indices.iter().map(|&index| index.cast_signed()).collect();
        put("transform_div_by_zero_indices", Value::Indices(indices.into()));
        put("transform_div_by_zero_count", Value::Count(made.zero_divisors));
    }
    members
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
