//! Transforms: arrays of the same shape, computed in two passes.
//!
//! The first pass computes statistics of the slots (output elements), as any fold does. The second pass writes every
//! transformed value to its position in the result. Results are written to memory, to a raw file or to a new `.tet`
//! file; files are written in blocks, so they may be larger than memory.

use tercet_core::limits::check_limit;
use tercet_core::tensor::{CopyError, f16};
use tercet_core::{ElementType, Selection, Tensor};
use tercet_kernel::{Formula, Op, Real};

use super::dense::{DenseWriter, Numbers};
use super::drive::{Folded, fold};
use super::job::Job;
use super::target::Outputs;
use crate::compute::OutputFile;
use crate::error::ErrorKind;
use crate::query::Target;
use crate::query::operation::{Kind, Method};
use crate::query::resolved::{Operation, Role};

#[cfg(any(unix, windows))]
mod files;
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
    /// File that the result was written to, and whether it is a `.tet` file.
    pub(crate) file: Option<OutputFile>,
    pub(crate) is_sidecar: bool,
    /// Statistics of the first pass: operations and their results.
    pub(crate) statistics: Vec<(Kind, Vec<f64>)>,
    /// Number of finite elements with an impossible divisor, and the first of their indices, ascending.
    pub(crate) div_by_zero: u64,
    pub(crate) div_by_zero_indices: Vec<u64>,
    /// Number of elements in the statistics.
    pub(crate) elements: u64,
    /// Number of missing elements that were skipped.
    pub(crate) skipped: u64,
}

/// Transforms the selection. All checks run before the first pass.
pub(crate) fn transform(
    job: &Job<'_>,
    operation: &Operation,
    method: Method,
    outputs: &Outputs,
) -> Result<Transformed, ErrorKind> {
    let dtype = job.transformed();
    if !dtype.is_float() {
        return Err(ErrorKind::TransformType { dataset: job.dataset.name().into(), dtype });
    }
    if operation.roles.iter().any(|role| !matches!(role, Role::Kept | Role::Reduced)) {
        // A resolved query never combines these with a transform.
        return Err(CopyError.into());
    }
    let bytes = job.plan.element_count().saturating_mul(dtype.size() as u64);
    let fits = bytes <= job.requested_budget;
    let target = match job.resolved.target() {
        Target::Switch if fits => Target::Ram,
        Target::Ram if !fits => {
            return Err(ErrorKind::OverBudget {
                elements: job.plan.element_count(),
                bytes,
                budget: job.requested_budget,
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
        write_part(job, &dense, method, (&job.plan.selection, &origin), tensor.bytes_mut())?;
        dense.check()?;
        let most = outputs.preview.min(job.plan.element_count());
        let preview = (most > 0).then(|| super::preview::first(&tensor, most)).transpose()?;
        let made = Made { tensor: Some(tensor), preview, file: None, is_sidecar: false };
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
    let goal = files::PendingOutput::prepare(job, operation, method, outputs, target)?;
    let pass = Pass::first(job, operation, method)?;
    let dense = DenseWriter::new(job, &pass.numbers, &operation.roles);
    let made = goal.write(job, &dense, outputs.preview, &|part, origin, out| {
        write_part(job, &dense, method, (part, origin), out)
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
    file: Option<OutputFile>,
    is_sidecar: bool,
}

/// Result of the first pass.
struct Pass {
    numbers: Numbers,
    statistics: Vec<(Kind, Vec<f64>)>,
    elements: u64,
    skipped: u64,
}

impl Pass {
    fn first(job: &Job<'_>, operation: &Operation, method: Method) -> Result<Self, ErrorKind> {
        let roles = &operation.roles;
        let Folded { values, elements, skipped, .. } = match method {
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
        let (shift, divisor, found): (_, _, Vec<(Kind, Vec<f64>)>) = match method {
            Method::Center => (values.clone(), Vec::new(), vec![(Kind::Mean, values)]),
            Method::Zscore => (column(1, 3), std(), vec![(Kind::Mean, column(1, 3)), (Kind::Std, std())]),
            Method::Scale => (Vec::new(), std(), vec![(Kind::Std, std())]),
            Method::Minmax => {
                let (min, max) = (column(0, 2), column(1, 2));
                let extent = min.iter().zip(&max).map(|(min, max)| max - min).collect();
                (min.clone(), extent, vec![(Kind::Min, min), (Kind::Max, max)])
            }
            Method::L1 => (Vec::new(), values.clone(), vec![(Kind::NormL1, values)]),
            Method::L2 => (Vec::new(), values.clone(), vec![(Kind::NormL2, values)]),
            Method::Log1p | Method::Sqrt => (column(0, 2), Vec::new(), vec![(Kind::Min, column(0, 2))]),
            Method::Softmax => (column(0, 2), column(1, 2), vec![(Kind::Max, column(0, 2))]),
        };
        let shift = if shift.is_empty() { vec![0.0; divisor.len()] } else { shift };
        // An impossible division yields NaN.
        let possible = |divisor: f64| if divisor != 0.0 && divisor.is_finite() { divisor } else { f64::NAN };
        let divisor = divisor.into_iter().map(possible).collect();
        Ok(Self { numbers: Numbers { shift, divisor }, statistics: found, elements, skipped })
    }

    fn end(self, made: Made, (div_by_zero, div_by_zero_indices): (u64, Vec<u64>)) -> Transformed {
        Transformed {
            tensor: made.tensor,
            preview: made.preview,
            file: made.file,
            is_sidecar: made.is_sidecar,
            statistics: self.statistics,
            div_by_zero,
            div_by_zero_indices,
            elements: self.elements,
            skipped: self.skipped,
        }
    }
}

/// Transforms a part of the selection into a dense buffer. Excluded elements are NaN, and NaN passes unchanged.
fn write_part(
    job: &Job<'_>,
    dense: &DenseWriter<'_>,
    method: Method,
    part: (&Selection, &[u64]),
    out: &mut [u8],
) -> Result<(), ErrorKind> {
    let formula = match method {
        Method::Center => Formula::Shift,
        Method::Zscore | Method::Scale | Method::Minmax | Method::L1 | Method::L2 => Formula::Divide,
        Method::Log1p => Formula::Ln1p,
        Method::Sqrt => Formula::Sqrt,
        Method::Softmax => Formula::Softmax,
    };
    if let Some(decode) = &job.resolved.values.decode {
        let kernel = f64::kernel(formula);
        return match job.transformed() {
            ElementType::F16 => dense.write_decoded::<f16>(decode, kernel, part, out),
            ElementType::F32 => dense.write_decoded::<f32>(decode, kernel, part, out),
            ElementType::F64 => dense.write_decoded::<f64>(decode, kernel, part, out),
            _ => Err(CopyError.into()),
        };
    }
    match job.plan.grid.element() {
        ElementType::F16 => dense.write_part(f16::kernel(formula), f16::NAN, part, out),
        ElementType::F32 => dense.write_part(f32::kernel(formula), f32::NAN, part, out),
        ElementType::F64 => dense.write_part(f64::kernel(formula), f64::NAN, part, out),
        _ => Err(CopyError.into()),
    }
}
