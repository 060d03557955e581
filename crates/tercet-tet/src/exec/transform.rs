//! Transforms: arrays of the same shape, computed in two passes.
//!
//! The first pass computes statistics of the cells (output elements), as any fold does. The second pass writes every
//! transformed value to its position in the result. Results are written to memory, to a raw file or to a new `.tet`
//! file; files are written in blocks, so they may be larger than memory.

use tercet_core::limits::check_limit;
use tercet_core::tensor::{CopyError, f16};
use tercet_core::{ElementType, Selection, Tensor};
use tercet_kernel::Op;

use super::dense::{DenseWriter, Kernel, Numbers};
use super::drive::{Folded, fold};
use super::job::Job;
use super::spill::Spilled;
use super::target::Outputs;
use crate::error::ErrorKind;
use crate::query::Target;
use crate::query::answer::{Execution, Preview, Value};
use crate::query::operation::Method;
use crate::query::resolved::{Operation, Role};
use crate::query::run::RunOptions;

#[cfg(any(unix, windows))]
mod files;
mod kernel;
#[cfg(any(unix, windows))]
mod sidecar;
#[cfg(test)]
mod tests;

/// Result of a transform.
#[derive(Debug)]
pub(crate) struct Transformed {
    /// Result array, if it is kept in memory.
    pub(crate) tensor: Option<Tensor>,
    /// Preview: the first elements of the result, as one dimension; `None` if not requested.
    pub(crate) preview: Option<Tensor>,
    /// File that the result was written to.
    pub(crate) spill: Option<Spilled>,
    /// Memory strategy.
    pub(crate) strategy: &'static str,
    /// Statistics of the first pass, with their names in the result.
    pub(crate) statistics: Vec<(&'static str, Value)>,
    /// Number of finite elements with an impossible divisor, and the first of their indices, ascending.
    pub(crate) div_by_zero: u64,
    pub(crate) div_by_zero_indices: Vec<u64>,
    /// Number of elements in the statistics.
    pub(crate) elements: u64,
}

/// Executes a query that transforms.
pub(crate) fn execute(
    job: &Job<'_>,
    operation: &Operation,
    method: Method,
    options: &RunOptions,
) -> Result<Execution, ErrorKind> {
    let outputs = Outputs::new(job.dataset.file.path(), &options.spill_allow, options.preview)?;
    let made = transform(job, operation, method, &outputs)?;
    let mut results = vec![("operation_element_count", Value::Count(made.elements))];
    if !operation.is_scalar() {
        let shape = operation.output_shape(&job.plan.selection.shape());
        results.push(("operation_reduced_shape", Value::Shape(shape)));
    }
    results.extend(made.statistics);
    results.push(("transform_method", Value::Text(method.name().to_owned())));
    if made.div_by_zero > 0 {
        let indices = made.div_by_zero_indices.into_iter().map(Some).collect();
        results.push(("transform_div_by_zero_indices", Value::Indices(indices)));
        results.push(("transform_div_by_zero_count", Value::Count(made.div_by_zero)));
    }
    let dtype = job.plan.grid.element();
    let truncated = job.plan.element_count() > options.preview;
    Ok(Execution {
        preview: Some(Preview { cells: made.preview, dtype, truncated }),
        results,
        memory_strategy: made.strategy,
        details: made.spill.map_or_else(Vec::new, Spilled::details),
        tensor: made.tensor,
        ..Execution::default()
    })
}

/// Transforms the selection. All checks run before the first pass.
pub(crate) fn transform(
    job: &Job<'_>,
    operation: &Operation,
    method: Method,
    outputs: &Outputs,
) -> Result<Transformed, ErrorKind> {
    let dtype = job.plan.grid.element();
    if !dtype.is_float() {
        return Err(ErrorKind::TransformType { dataset: job.dataset.name().into(), dtype });
    }
    if operation.roles.iter().any(|role| !matches!(role, Role::Kept | Role::Reduced)) {
        // A resolved query never combines these with a transform.
        return Err(CopyError.into());
    }
    let bytes = job.plan.selection_bytes();
    let fits = bytes <= job.budget;
    let target = match job.resolved.target() {
        Target::Switch if fits => Target::Ram,
        Target::Ram if !fits => {
            return Err(ErrorKind::OverBudget {
                elements: job.plan.element_count(),
                bytes,
                budget: job.budget,
            });
        }
        target => target,
    };
    if target == Target::Ram {
        check_limit("the result", bytes, job.dataset.file.options.limits.array_bytes)?;
        let pass = Pass::first(job, operation, method)?;
        let dense = DenseWriter::new(job, &pass.numbers, &operation.roles);
        let mut tensor = Tensor::zeros(dtype, job.plan.selection.shape())?;
        let origin = vec![0; job.plan.grid.rank()];
        write_part(&dense, dtype, method, (&job.plan.selection, &origin), tensor.bytes_mut())?;
        let most = outputs.preview.min(job.plan.element_count());
        let preview = (most > 0).then(|| super::preview::first(&tensor, most)).transpose()?;
        let made = Made { tensor: Some(tensor), preview, spill: None, strategy: "transform_ram" };
        let bad = dense.into_zero_divisors();
        return Ok(pass.end(made, bad));
    }
    write(job, operation, method, outputs, target)
}

#[cfg(any(unix, windows))]
fn write(
    job: &Job<'_>,
    operation: &Operation,
    method: Method,
    outputs: &Outputs,
    target: Target,
) -> Result<Transformed, ErrorKind> {
    let goal = files::Goal::prepare(job, operation, method, outputs, target)?;
    let pass = Pass::first(job, operation, method)?;
    let dense = DenseWriter::new(job, &pass.numbers, &operation.roles);
    let dtype = job.plan.grid.element();
    let made = goal.write(job, &dense, outputs.preview, &|part, origin, out| {
        write_part(&dense, dtype, method, (part, origin), out)
    })?;
    let bad = dense.into_zero_divisors();
    Ok(pass.end(made, bad))
}

#[cfg(not(any(unix, windows)))]
fn write(
    _job: &Job<'_>,
    _operation: &Operation,
    method: Method,
    _outputs: &Outputs,
    _target: Target,
) -> Result<Transformed, ErrorKind> {
    Err(ErrorKind::Target { path: method.name().into(), reason: crate::error::TargetError::NoFiles })
}

/// Result of the second pass.
struct Made {
    tensor: Option<Tensor>,
    preview: Option<Tensor>,
    spill: Option<Spilled>,
    strategy: &'static str,
}

/// Result of the first pass.
struct Pass {
    numbers: Numbers,
    statistics: Vec<(&'static str, Value)>,
    elements: u64,
}

impl Pass {
    fn first(job: &Job<'_>, operation: &Operation, method: Method) -> Result<Self, ErrorKind> {
        let roles = &operation.roles;
        let Folded { values, elements, .. } = match method {
            Method::Center => fold(job, &Op::Mean, roles)?,
            Method::Zscore | Method::Scale => fold(job, &Op::Moments { skip_nan: false }, roles)?,
            Method::Minmax | Method::Log1p | Method::Sqrt => fold(job, &Op::Range, roles)?,
            Method::L1 => fold(job, &Op::NormL1, roles)?,
            Method::L2 => fold(job, &Op::NormL2, roles)?,
            Method::Softmax => fold(job, &Op::SoftmaxTotal, roles)?,
        };
        let column = |number: usize, width: usize| -> Vec<f64> {
            values.iter().skip(number).step_by(width).copied().collect()
        };
        let std =
            || -> Vec<f64> { values.iter().skip(2).step_by(3).map(|variance| variance.sqrt()).collect() };
        let (shift, divisor, found): (_, _, Vec<(Statistic, Vec<f64>)>) = match method {
            Method::Center => (values.clone(), Vec::new(), vec![(Statistic::Mean, values)]),
            Method::Zscore => {
                (column(1, 3), std(), vec![(Statistic::Mean, column(1, 3)), (Statistic::Std, std())])
            }
            Method::Scale => (Vec::new(), std(), vec![(Statistic::Std, std())]),
            Method::Minmax => {
                let (min, max) = (column(0, 2), column(1, 2));
                let extent = min.iter().zip(&max).map(|(min, max)| max - min).collect();
                (min.clone(), extent, vec![(Statistic::Min, min), (Statistic::Max, max)])
            }
            Method::L1 => (Vec::new(), values.clone(), vec![(Statistic::NormL1, values)]),
            Method::L2 => (Vec::new(), values.clone(), vec![(Statistic::NormL2, values)]),
            Method::Log1p | Method::Sqrt => (column(0, 2), Vec::new(), vec![(Statistic::Min, column(0, 2))]),
            Method::Softmax => (column(0, 2), column(1, 2), vec![(Statistic::Max, column(0, 2))]),
        };
        let shift = if shift.is_empty() { vec![0.0; divisor.len()] } else { shift };
        // An impossible division yields NaN.
        let possible = |divisor: f64| if divisor != 0.0 && divisor.is_finite() { divisor } else { f64::NAN };
        let divisor = divisor.into_iter().map(possible).collect();
        let statistics = statistic_names(operation.is_scalar(), found);
        Ok(Self { numbers: Numbers { shift, divisor }, statistics, elements })
    }

    fn end(self, made: Made, (div_by_zero, div_by_zero_indices): (u64, Vec<u64>)) -> Transformed {
        Transformed {
            tensor: made.tensor,
            preview: made.preview,
            spill: made.spill,
            strategy: made.strategy,
            statistics: self.statistics,
            div_by_zero,
            div_by_zero_indices,
            elements: self.elements,
        }
    }
}

/// Statistics of a result, in their output order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Statistic {
    Mean,
    Min,
    Max,
    Std,
    NormL1,
    NormL2,
}

impl Statistic {
    const ALL: [Self; 6] = [Self::Mean, Self::Min, Self::Max, Self::Std, Self::NormL1, Self::NormL2];

    /// Names without and with axes.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Mean => ("operation_mean", "operation_reduced_mean"),
            Self::Min => ("operation_min", "operation_reduced_min"),
            Self::Max => ("operation_max", "operation_reduced_max"),
            Self::Std => ("operation_std", "operation_reduced_std"),
            Self::NormL1 => ("operation_norm_l1", "operation_reduced_norm_l1"),
            Self::NormL2 => ("operation_norm_l2", "operation_reduced_norm_l2"),
        }
    }
}

/// With axes all six arrays are present; those that were not needed are empty.
fn statistic_names(scalar: bool, mut found: Vec<(Statistic, Vec<f64>)>) -> Vec<(&'static str, Value)> {
    let mut named = Vec::new();
    for one in Statistic::ALL {
        let numbers =
            found.iter_mut().find(|(other, _)| *other == one).map(|(_, numbers)| std::mem::take(numbers));
        match (scalar, numbers) {
            (true, Some(numbers)) => {
                named.push((one.names().0, Value::Number(numbers.first().copied().unwrap_or(f64::NAN))));
            }
            (true, None) => {}
            (false, numbers) => named.push((one.names().1, Value::Numbers(numbers.unwrap_or_default()))),
        }
    }
    named
}

/// Transforms a part of the selection into a dense buffer. Excluded elements are NaN, and NaN passes unchanged.
fn write_part(
    dense: &DenseWriter<'_>,
    dtype: ElementType,
    method: Method,
    part: (&Selection, &[u64]),
    out: &mut [u8],
) -> Result<(), ErrorKind> {
    match dtype {
        ElementType::F16 => dense.write_part(kernel_of(method), f16::NAN, part, out),
        ElementType::F32 => dense.write_part(kernel_of(method), f32::NAN, part, out),
        ElementType::F64 => dense.write_part(kernel_of(method), f64::NAN, part, out),
        _ => Err(CopyError.into()),
    }
}

fn kernel_of<T: kernel::Real>(method: Method) -> Kernel<T> {
    match method {
        Method::Center => kernel::plane::<T, kernel::Shift>,
        Method::Zscore | Method::Scale | Method::Minmax | Method::L1 | Method::L2 => {
            kernel::plane::<T, kernel::Divide>
        }
        Method::Log1p => kernel::plane::<T, kernel::Ln1p>,
        Method::Sqrt => kernel::plane::<T, kernel::Sqrt>,
        Method::Softmax => kernel::plane::<T, kernel::Softmax>,
    }
}
