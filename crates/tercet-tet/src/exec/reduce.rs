//! Dispatches operations to their computations.

use tercet_kernel::{ComputeType, Op};

use super::drive::{self, Folded};
use super::job::Job;
use super::predicate::compute_fill;
use super::several::Several;
use super::{histogram, matrix, order};
use crate::error::ErrorKind;
use crate::query::operation::Kind;
use crate::query::resolved::{Operation, Role};

/// Result of an operation.
#[derive(Debug)]
pub(crate) struct Computed {
    pub(crate) numbers: Numbers,
    /// Number of selected elements that were used, after filters.
    pub(crate) elements: u64,
    /// Number of missing elements that were skipped.
    pub(crate) skipped: u64,
}

/// Results of all output elements, row-major.
#[derive(Debug)]
pub(crate) enum Numbers {
    Values(Vec<f64>),
    /// `None` if a window has too few values.
    Flags(Vec<Option<bool>>),
    /// −1 for no index.
    Indices(Vec<i64>),
    Histogram {
        counts: Vec<f64>,
        edges: Option<Vec<f64>>,
        /// Number of values below and above the range, if they are in no bin.
        outside: Option<[u64; 2]>,
    },
    Matrix {
        values: Vec<f64>,
        order: usize,
    },
}

/// Computes an operation other than a transform.
pub(crate) fn compute(job: &Job<'_>, operation: &Operation) -> Result<Computed, ErrorKind> {
    let kind = operation.kind;
    let (numbers, (elements, skipped)) = match kind {
        Kind::Median | Kind::Quantile { .. } => {
            let q = if let Kind::Quantile { q } = kind { q } else { 0.5 };
            let ordered = order::quantile(job, operation, q)?;
            let counts = elements_of(job, operation, &ordered)?;
            (Numbers::Values(ordered.values), counts)
        }
        Kind::Histogram { bins, range } => {
            let histogram = histogram::histogram(job, operation, bins, range)?;
            let histogram::Histogram { counts, edges, outside, elements, skipped } = histogram;
            return Ok(Computed {
                numbers: Numbers::Histogram { counts, edges, outside },
                elements,
                skipped,
            });
        }
        Kind::Covariance | Kind::Correlation => {
            let matrix = matrix::matrix(job, operation, kind == Kind::Correlation)?;
            let (values, order) = (matrix.values, matrix.order);
            let numbers = Numbers::Matrix { values, order };
            return Ok(Computed { numbers, elements: matrix.elements, skipped: 0 });
        }
        _ => {
            // A resolved query has a fill value for `null_count`.
            let op = op_of(job, kind).unwrap_or(Op::EqualCount(None));
            let folded = drive::fold(job, &op, &operation.roles)?;
            let counts = elements_of(job, operation, &folded)?;
            let values = folded.values;
            let width = op.width();
            let plain = width == 1 && is_plain(kind);
            let numbers = if plain {
                Numbers::Values(values)
            } else {
                result_numbers(kind, values.chunks_exact(width))
            };
            (numbers, counts)
        }
    };
    Ok(Computed { numbers, elements, skipped })
}

/// Computes several operations for the same roles. Operations share a visit of the chunks if possible.
pub(crate) fn compute_all(
    job: &Job<'_>,
    kinds: &[Kind],
    operation: &Operation,
) -> Result<Vec<Computed>, ErrorKind> {
    let dtype = job.element();
    let visits_all = job.resolved.values.decode.is_none() && job.resolved.missing_filter(dtype).is_none();
    let shared: Vec<(usize, Op)> = kinds
        .iter()
        .enumerate()
        .filter_map(|(number, &kind)| Some((number, op_of(job, kind)?)))
        .filter(|(_, op)| op.compute(dtype) == ComputeType::for_dtype(dtype))
        .filter(|(_, op)| visits_all || !drive::sees_missing(op))
        .collect();
    let mut computed: Vec<Option<Computed>> = kinds.iter().map(|_| None).collect();
    if shared.len() > 1 {
        let ops: Vec<Op> = shared.iter().map(|(_, op)| op.clone()).collect();
        let several = Several { ops: &ops, dtype };
        let mut folded = drive::fold_with(job, &several, &operation.roles)?;
        let all: usize = ops.iter().map(Op::width).sum();
        repeat_large_sums(job, &ops, operation, &mut folded.values)?;
        let (elements, skipped) = elements_of(job, operation, &folded)?;
        let mut from = 0;
        for (number, op) in &shared {
            let own = folded.values.chunks_exact(all).map(|slot| &slot[from..from + op.width()]);
            let numbers = result_numbers(kinds[*number], own);
            computed[*number] = Some(Computed { numbers, elements, skipped });
            from += op.width();
        }
    }
    let rest = computed.into_iter().zip(kinds).map(|(computed, &kind)| match computed {
        Some(computed) => Ok(computed),
        None => compute(job, &Operation { kind, ..operation.clone() }),
    });
    rest.collect()
}

/// Computes the sums that overflow again, in one visit for all of them. `values` are the results of the operations.
fn repeat_large_sums(
    job: &Job<'_>,
    ops: &[Op],
    operation: &Operation,
    values: &mut [f64],
) -> Result<(), ErrorKind> {
    let dtype = job.element();
    let all: usize = ops.iter().map(Op::width).sum();
    let mut at = 0;
    let (mut large, mut columns) = (Vec::new(), Vec::new());
    for op in ops {
        let is_infinite = || values.iter().skip(at).step_by(all).any(|value| value.is_infinite());
        if let Some(op) = op.for_large_sums(dtype)
            && is_infinite()
        {
            large.push(op);
            columns.push(at);
        }
        at += op.width();
    }
    if large.is_empty() {
        return Ok(());
    }
    // These have one result each.
    let again = drive::fold_with(job, &Several { ops: &large, dtype }, &operation.roles)?.values;
    for (slot, again) in values.chunks_exact_mut(all).zip(again.chunks_exact(large.len())) {
        for (&column, &again) in columns.iter().zip(again) {
            if slot[column].is_infinite() {
                slot[column] = again;
            }
        }
    }
    Ok(())
}

/// Whether the results of a reduction are those of the operation.
fn is_plain(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::Var
            | Kind::Std
            | Kind::NanStd
            | Kind::ArgMin
            | Kind::ArgMax
            | Kind::AllFinite
            | Kind::AnyNan
            | Kind::AnyInf
    )
}

/// Selects the reported value of an operation from the numbers of each slot.
fn result_numbers<'v>(kind: Kind, slots: impl Iterator<Item = &'v [f64]>) -> Numbers {
    #[expect(clippy::cast_possible_truncation, reason = "indices are whole numbers, or NaN or -1 for none")]
    let index = |value: f64| if value >= 0.0 { value as i64 } else { -1 };
    let flag = |value: f64| match kind {
        Kind::AllFinite => value == 0.0,
        _ => value > 0.0,
    };
    match kind {
        Kind::Var => Numbers::Values(slots.map(|slot| slot[2]).collect()),
        Kind::Std | Kind::NanStd => Numbers::Values(slots.map(|slot| slot[2].sqrt()).collect()),
        Kind::ArgMin | Kind::ArgMax => Numbers::Indices(slots.map(|slot| index(slot[0])).collect()),
        Kind::AllFinite | Kind::AnyNan | Kind::AnyInf => {
            Numbers::Flags(slots.map(|slot| (!slot[0].is_nan()).then(|| flag(slot[0]))).collect())
        }
        _ => Numbers::Values(slots.map(|slot| slot[0]).collect()),
    }
}

/// Whether an operation streams: it needs only the states of its slots.
pub(crate) fn is_streaming(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::Median | Kind::Quantile { .. } | Kind::Histogram { .. } | Kind::Covariance | Kind::Correlation
    )
}

/// Whether the plan of a job is read as one contiguous byte range.
pub(crate) fn is_linear_scan(job: &Job<'_>) -> bool {
    let Some(operation) = &job.resolved.operation else { return false };
    let Some(op) = op_of(job, operation.kind) else { return false };
    let statistics = op.takes_statistics() && job.statistics && job.has_statistics();
    drive::reads_span(job, &operation.roles, op.is_indexed(), statistics)
}

/// Reduction of an operation, if it is one.
fn op_of(job: &Job<'_>, kind: Kind) -> Option<Op> {
    Some(match kind {
        Kind::Sum => Op::Sum,
        Kind::Mean => Op::Mean,
        Kind::NanMean => Op::NanMean,
        Kind::NormL1 => Op::NormL1,
        Kind::NormL2 => Op::NormL2,
        Kind::Min => Op::Min,
        Kind::Max => Op::Max,
        Kind::ArgMin => Op::ArgMin,
        Kind::ArgMax => Op::ArgMax,
        Kind::Count => Op::Count,
        Kind::NanCount | Kind::AnyNan => Op::NanCount,
        Kind::InfCount => Op::InfCount { any: false },
        Kind::AnyInf => Op::InfCount { any: true },
        Kind::AllFinite => Op::AnyNotFinite,
        Kind::NullCount { fill } => Op::EqualCount(compute_fill(fill?, job.plan.grid.element())),
        Kind::Product => Op::Product,
        Kind::Var | Kind::Std => Op::Moments { skip_nan: false },
        Kind::NanStd => Op::Moments { skip_nan: true },
        Kind::Median
        | Kind::Quantile { .. }
        | Kind::Histogram { .. }
        | Kind::Covariance
        | Kind::Correlation
        | Kind::Transform { .. } => return None,
    })
}

/// Numbers of selected elements that were used and that were skipped, in windows or between them.
fn elements_of(job: &Job<'_>, operation: &Operation, folded: &Folded) -> Result<(u64, u64), ErrorKind> {
    if folded.is_complete {
        return Ok((folded.elements, folded.skipped));
    }
    let resolved = job.resolved;
    let may_miss = resolved.missing_filter(job.plan.grid.element()).is_some();
    if resolved.filter.is_none() && resolved.positions.is_none() && !may_miss {
        return Ok((job.plan.element_count(), 0));
    }
    let all = vec![Role::Reduced; operation.roles.len()];
    let folded = drive::fold(job, &Op::Count, &all)?;
    Ok((folded.elements, folded.skipped))
}
