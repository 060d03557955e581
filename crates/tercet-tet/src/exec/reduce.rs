//! Which computation answers which operation, and how its numbers are named.

use super::drive::{self, Folded};
use super::fold::Fold;
use super::fold::arg::Arg;
use super::fold::extreme::Extreme;
use super::fold::moments::Moments;
use super::fold::product::Product;
use super::fold::sum::Sum;
use super::fold::tally::Tally;
use super::job::Job;
use super::{histogram, matrix, order, preview, scan, spill, transform};
use crate::error::ErrorKind;
use crate::query::answer::{Execution, Value};
use crate::query::operation::Kind;
use crate::query::resolved::{Operation, Role};
use crate::query::run::RunOptions;

/// Executes what the query of a job asks for.
pub(crate) fn execute(job: &Job<'_>, options: &RunOptions) -> Result<Execution, ErrorKind> {
    let Some(operation) = &job.resolved.operation else { return spill::execute(job, options) };
    let mut execution = Execution::default();
    match operation.kind {
        Kind::Transform { method } => return transform::execute(job, operation, method, options),
        Kind::Median | Kind::Quantile { .. } => {
            let q = if let Kind::Quantile { q } = operation.kind { q } else { 0.5 };
            let ordered = order::quantile(job, operation, q)?;
            let elements = elements_of(job, operation, ordered.elements)?;
            put_numbers(job, operation, ordered.values, elements, &mut execution);
        }
        Kind::Histogram { bins, range } => {
            let histogram = histogram::histogram(job, operation, bins, range)?;
            put_histogram(job, operation, histogram, &mut execution);
        }
        Kind::Covariance | Kind::Correlation => {
            let correlation = operation.kind == Kind::Correlation;
            let matrix = matrix::matrix(job, operation, correlation)?;
            let (values, order) = if correlation {
                ("operation_correlation", "operation_correlation_order")
            } else {
                ("operation_covariance", "operation_covariance_order")
            };
            execution.results.push(("operation_element_count", Value::Count(matrix.elements)));
            execution.results.push((values, Value::Numbers(matrix.values)));
            execution.results.push((order, Value::Count(matrix.order as u64)));
        }
        _ => reduce(job, operation, &mut execution)?,
    }
    execution.memory_strategy = match operation.kind {
        kind if is_streaming(kind) => "streaming_fold",
        _ if job.plan.selection_bytes() > job.budget => "temp_spill_materialize",
        _ => "in_memory_materialize",
    };
    put_counts(job, &mut execution);
    execution.preview = Some(preview::preview(job, options.preview)?);
    Ok(execution)
}

/// Whether an operation needs no more than the states of its cells.
pub(crate) fn is_streaming(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::Median | Kind::Quantile { .. } | Kind::Histogram { .. } | Kind::Covariance | Kind::Correlation
    )
}

/// Whether the plan of a job is visited as one span of bytes.
pub(crate) fn is_linear_scan(job: &Job<'_>) -> bool {
    let Some(operation) = &job.resolved.operation else { return false };
    let applies =
        |indexed, takes_stats| scan::applies(job, &operation.roles, indexed, takes_stats && job.statistics);
    match operation.kind {
        Kind::ArgMin | Kind::ArgMax => false,
        kind => is_streaming(kind) && with_fold(kind, TakesStats).is_some_and(|takes| applies(false, takes)),
    }
}

/// Something to do with the fold of an operation.
trait WithFold {
    type Out;
    fn with<F: Fold>(self, fold: &F) -> Self::Out;
}

struct TakesStats;

impl WithFold for TakesStats {
    type Out = bool;
    fn with<F: Fold>(self, fold: &F) -> bool {
        fold.takes_stats()
    }
}

struct Drive<'a>(&'a Job<'a>, &'a [Role]);

impl WithFold for Drive<'_> {
    type Out = Result<Folded, ErrorKind>;
    fn with<F: Fold>(self, fold: &F) -> Self::Out {
        drive::fold(self.0, fold, self.1)
    }
}

/// The fold of an operation, if it is one.
fn with_fold<W: WithFold>(kind: Kind, what: W) -> Option<W::Out> {
    Some(match kind {
        Kind::Sum => what.with(&Sum::Total),
        Kind::Mean => what.with(&Sum::Mean),
        Kind::NanMean => what.with(&Sum::NanMean),
        Kind::NormL1 => what.with(&Sum::NormL1),
        Kind::NormL2 => what.with(&Sum::NormL2),
        Kind::Min => what.with(&Extreme::Min),
        Kind::Max => what.with(&Extreme::Max),
        Kind::ArgMin => what.with(&Arg::Min),
        Kind::ArgMax => what.with(&Arg::Max),
        Kind::Count => what.with(&Tally::Count),
        Kind::NanCount | Kind::AnyNan => what.with(&Tally::Nan),
        Kind::InfCount => what.with(&Tally::Infinite),
        Kind::AnyInf => what.with(&Tally::AnyInfinite),
        Kind::AllFinite => what.with(&Tally::AnyNotFinite),
        Kind::NullCount { fill } => what.with(&Tally::Null(fill?)),
        Kind::Product => what.with(&Product),
        Kind::Var | Kind::Std => what.with(&Moments { skip_nan: false }),
        Kind::NanStd => what.with(&Moments { skip_nan: true }),
        Kind::Median
        | Kind::Quantile { .. }
        | Kind::Histogram { .. }
        | Kind::Covariance
        | Kind::Correlation
        | Kind::Transform { .. } => return None,
    })
}

fn reduce(job: &Job<'_>, operation: &Operation, execution: &mut Execution) -> Result<(), ErrorKind> {
    let kind = operation.kind;
    let Some(folded) = with_fold(kind, Drive(job, &operation.roles)) else { return Ok(()) };
    let Folded { values, elements } = folded?;
    let elements = elements_of(job, operation, elements)?;
    // Two or three numbers for each cell of some folds: the one that is asked for.
    let values: Vec<f64> = match kind {
        Kind::Var => values.chunks_exact(3).map(|cell| cell[2]).collect(),
        Kind::Std | Kind::NanStd => values.chunks_exact(3).map(|cell| cell[2].sqrt()).collect(),
        _ => values,
    };
    put_numbers(job, operation, values, elements, execution);
    Ok(())
}

/// The cells of the selection that entered. Windows overlap, and a cell counts once.
fn elements_of(job: &Job<'_>, operation: &Operation, entered: u64) -> Result<u64, ErrorKind> {
    let rolling = operation.roles.iter().any(|role| matches!(role, Role::Rolling(_)));
    if !rolling {
        return Ok(entered);
    }
    if job.resolved.filter.is_none() && job.resolved.positions.is_none() {
        return Ok(job.plan.element_count());
    }
    let all = vec![Role::Reduced; operation.roles.len()];
    Ok(drive::fold(job, &Tally::Count, &all)?.elements)
}

/// Names and writes one number for each output cell.
fn put_numbers(
    job: &Job<'_>,
    operation: &Operation,
    values: Vec<f64>,
    elements: u64,
    execution: &mut Execution,
) {
    let (scalar, reduced) = names(operation.kind);
    execution.results.push(("operation_element_count", Value::Count(elements)));
    let flag = |value: f64| match operation.kind {
        Kind::AllFinite => value == 0.0,
        _ => value > 0.0,
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "indices are whole numbers, or -1 for none"
    )]
    let index = |value: f64| (value >= 0.0).then_some(value as u64);
    if operation.is_scalar() {
        let value = values.first().copied().unwrap_or(f64::NAN);
        let value = match operation.kind {
            Kind::Count => return,
            Kind::AllFinite | Kind::AnyNan | Kind::AnyInf => Value::Flag(flag(value)),
            Kind::ArgMin | Kind::ArgMax => Value::Index(index(value)),
            _ => Value::Number(value),
        };
        execution.results.push((scalar, value));
        return;
    }
    put_shape(job, operation, execution);
    let values = match operation.kind {
        Kind::AllFinite | Kind::AnyNan | Kind::AnyInf => {
            Value::Flags(values.into_iter().map(|value| (!value.is_nan()).then(|| flag(value))).collect())
        }
        Kind::ArgMin | Kind::ArgMax => Value::Indices(values.into_iter().map(index).collect()),
        _ => Value::Numbers(values),
    };
    execution.results.push((reduced, values));
}

fn put_shape(job: &Job<'_>, operation: &Operation, execution: &mut Execution) {
    let shape = operation.output_shape(&job.plan.selection.shape());
    execution.results.push(("operation_reduced_shape", Value::Shape(shape)));
}

fn put_histogram(
    job: &Job<'_>,
    operation: &Operation,
    histogram: histogram::Histogram,
    execution: &mut Execution,
) {
    execution.results.push(("operation_element_count", Value::Count(histogram.elements)));
    if operation.is_scalar() {
        execution.results.push(("operation_histogram_counts", Value::Numbers(histogram.counts)));
        let edges = histogram.edges.map_or(Value::Json(serde_json::Value::Null), Value::Numbers);
        execution.results.push(("operation_histogram_edges", edges));
        return;
    }
    put_shape(job, operation, execution);
    execution.results.push(("operation_reduced_histogram_counts", Value::Numbers(histogram.counts)));
}

/// The numbers of groups and windows.
fn put_counts(job: &Job<'_>, execution: &mut Execution) {
    if let Some(groups) = job.resolved.group_count {
        execution.details.push(("group_count", Value::Count(groups)));
    }
    if let Some(windows) = job.resolved.window_count {
        execution.details.push(("window_count", Value::Count(windows)));
    }
}

/// The names of an operation's results: of one value, and of an array.
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
