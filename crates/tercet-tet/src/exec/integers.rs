//! Exact results of integers: f64 rounds integers beyond 2^53.

use tercet_core::tensor::{FromVecError, Scalar};
use tercet_core::{ElementType, Tensor};
use tercet_kernel::Op;

use super::drive;
use super::job::Job;
use super::order;
use super::reduce::Numbers;
use crate::error::ErrorKind;
use crate::query::operation::Kind;
use crate::query::resolved::Operation;

/// All integers of at most this magnitude are exact in f64, and results up to it are not rounded.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Exact results, and their type.
#[derive(Debug)]
pub(crate) struct Integers {
    values: Vec<i128>,
    dtype: ElementType,
}

/// Exact results of an operation on integers, from its results as f64. Where these are beyond 2^53, another visit of the
/// chunks computes the difference. `None` if the results are not integers, if one is missing, or if one does not fit.
pub(crate) fn exact(
    job: &Job<'_>,
    operation: &Operation,
    numbers: &Numbers,
) -> Result<Option<Integers>, ErrorKind> {
    let Numbers::Values(nearest) = numbers else { return Ok(None) };
    let Some(dtype) = result_type(operation.kind, job.element()) else { return Ok(None) };
    if nearest.iter().any(|number| number.is_nan() || number.fract() != 0.0) {
        return Ok(None);
    }
    let rests = if nearest.iter().any(|number| number.abs() >= EXACT) {
        let rest = |op| drive::fold(job, &op, &operation.roles).map(|folded| folded.values);
        Some(match operation.kind {
            Kind::Min => rest(Op::MinRest)?,
            Kind::Max => rest(Op::MaxRest)?,
            Kind::Quantile { q } => order::quantile_rest(job, operation, q)?.values,
            Kind::Median => order::quantile_rest(job, operation, 0.5)?.values,
            _ => rest(Op::SumRest)?,
        })
    } else {
        None
    };
    #[expect(clippy::cast_possible_truncation, reason = "whole numbers of at most 107 bits")]
    let whole = |at: usize| -> Option<i128> {
        let rest = rests.as_ref().map_or(Some(0.0), |rests| rests.get(at).copied())?;
        let value = nearest[at] as i128 + rest as i128;
        let fits = match dtype {
            ElementType::U64 => u64::try_from(value).is_ok(),
            _ => i64::try_from(value).is_ok(),
        };
        (fits && !rest.is_nan()).then_some(value)
    };
    let values: Option<Vec<i128>> = (0..nearest.len()).map(whole).collect();
    Ok(values.map(|values| Integers { values, dtype }))
}

/// The type of exact results.
fn result_type(kind: Kind, element: ElementType) -> Option<ElementType> {
    use ElementType::{F16, F32, F64, I16, I32, I64, U8, U16, U32, U64};
    match (kind, element) {
        (_, F16 | F32 | F64) => None,
        (Kind::Min | Kind::Max, element) => Some(element),
        (Kind::Sum, U8 | U16 | U32 | U64) => Some(U64),
        (Kind::Sum, I16 | I32 | I64) => Some(I64),
        (Kind::Median | Kind::Quantile { .. }, I64 | U64) => Some(element),
        _ => None,
    }
}

impl Integers {
    /// The results as an array of the shape of another.
    pub(crate) fn tensor(self, like: &Tensor) -> Result<Tensor, ErrorKind> {
        match self.dtype {
            ElementType::U8 => self.typed::<u8>(like),
            ElementType::U16 => self.typed::<u16>(like),
            ElementType::U32 => self.typed::<u32>(like),
            ElementType::U64 => self.typed::<u64>(like),
            ElementType::I16 => self.typed::<i16>(like),
            ElementType::I32 => self.typed::<i32>(like),
            _ => self.typed::<i64>(like),
        }
    }

    fn typed<T: Scalar + TryFrom<i128> + Default>(self, like: &Tensor) -> Result<Tensor, ErrorKind> {
        // Every value fits: minima and maxima are elements, and others were checked.
        let values: Vec<T> =
            self.values.into_iter().map(|value| T::try_from(value).unwrap_or_default()).collect();
        Tensor::from_vec(like.shape().clone(), values).map_err(|error| match error {
            FromVecError::Memory(error) => error.into(),
            FromVecError::Shape(_) => tercet_core::tensor::CopyError.into(),
        })
    }
}
