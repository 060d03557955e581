//! [`Op`]: the kinds of reductions.

use std::sync::Arc;

use tercet_core::ElementType;
use tercet_core::tensor::OutOfMemory;

use crate::accumulator::Accumulator;
use crate::arg::Arg;
use crate::compute::{Compute, ComputeType, Value};
use crate::extreme::{Extreme, Range};
use crate::histogram::{FiniteRange, Histogram, Outliers};
use crate::integer_sum::IntegerSum;
use crate::moments::Moments;
use crate::product::Product;
use crate::softmax::SoftmaxTotal;
use crate::sum::{FloatSum, MAGNITUDE, PLAIN, SCALED, SQUARE, SumResult};
use crate::tally::{Count, EQUAL, INFINITE, NAN, NOT_FINITE, Tally};

/// A reduction.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Σx; 0 for no values. Exact for integers, compensated for floats.
    Sum,
    /// Σx/n; NaN for no values.
    Mean,
    /// Σx/n of the values that are not NaN.
    NanMean,
    /// `Sum` of f64 for sums that overflow on the way to a result that does not.
    LargeSum,
    /// `Mean` of f64 for sums that overflow.
    LargeMean,
    /// `NanMean` of f64 for sums that overflow.
    LargeNanMean,
    /// Σ|x|
    NormL1,
    /// √Σx²
    NormL2,
    /// Minimum of the values that are not NaN; NaN if all are.
    Min,
    /// Maximum of the values that are not NaN; NaN if all are.
    Max,
    /// Difference between the exact sum of integers and `Sum`, which is the nearest f64; 0 for floats.
    SumRest,
    /// Difference between the exact minimum and `Min`, which is the nearest f64; 0 for floats.
    MinRest,
    /// Difference between the exact maximum and `Max`, which is the nearest f64; 0 for floats.
    MaxRest,
    /// Minimum and maximum: two numbers.
    Range,
    /// Minimum and maximum of the finite values: two numbers.
    FiniteRange,
    /// Argmin: index of the first minimum that is not NaN; −1 if all values are NaN.
    ArgMin,
    /// Argmax: index of the first maximum that is not NaN; −1 if all values are NaN.
    ArgMax,
    /// Count of values.
    Count,
    /// Count of NaN values.
    NanCount,
    /// Count of infinities. With `any`, only zero versus nonzero is guaranteed.
    InfCount {
        /// Whether only zero versus nonzero is guaranteed.
        any: bool,
    },
    /// Nonzero if any value is infinite or NaN, else 0.
    AnyNotFinite,
    /// Count of values equal to a number (NaN equals NaN); 0 without a number.
    EqualCount(Option<Value>),
    /// Product; 1 for no values.
    Product,
    /// Count, mean and variance: three numbers.
    Moments {
        /// Whether NaN is skipped.
        skip_nan: bool,
    },
    /// Softmax denominator: the maximum of the values that are not NaN, and the sum of exp(x − maximum): two numbers.
    SoftmaxTotal,
    /// Histogram with bins of equal width: one number per bin, and the numbers of `outliers`.
    Histogram {
        /// Number of bins.
        bins: usize,
        /// Range of each output slot, or one range for all.
        ranges: Arc<[[f64; 2]]>,
        /// Where values outside of the range are counted.
        outliers: Outliers,
    },
}

type AccumulatorResult = Result<Box<dyn Accumulator>, OutOfMemory>;

impl Op {
    /// Compute type of the accumulator for an element type.
    pub fn compute(&self, dtype: ElementType) -> ComputeType {
        match (self, dtype) {
            (Self::NormL2, ElementType::I32) => ComputeType::I64,
            (Self::NormL2, ElementType::U32) => ComputeType::U64,
            _ => ComputeType::for_dtype(dtype),
        }
    }

    /// The same reduction for sums that overflow; `None` if sums cannot overflow.
    pub fn for_large_sums(&self, dtype: ElementType) -> Option<Self> {
        match (self, dtype) {
            (Self::Sum, ElementType::F64) => Some(Self::LargeSum),
            (Self::Mean, ElementType::F64) => Some(Self::LargeMean),
            (Self::NanMean, ElementType::F64) => Some(Self::LargeNanMean),
            _ => None,
        }
    }

    /// Whether the reduction uses the index of values.
    pub fn is_indexed(&self) -> bool {
        matches!(self, Self::ArgMin | Self::ArgMax)
    }

    /// Number of results per slot.
    pub fn width(&self) -> usize {
        match self {
            Self::Range | Self::FiniteRange | Self::SoftmaxTotal => 2,
            Self::Moments { .. } => 3,
            Self::Histogram { bins, outliers, .. } => bins + outliers.width(),
            _ => 1,
        }
    }

    /// Whether statistics can replace the values they describe.
    pub fn takes_statistics(&self) -> bool {
        matches!(
            self,
            Self::Sum
                | Self::Mean
                | Self::NanMean
                | Self::Min
                | Self::Max
                | Self::SumRest
                | Self::MinRest
                | Self::MaxRest
                | Self::Range
                | Self::Count
                | Self::NanCount
                | Self::InfCount { any: true }
                | Self::AnyNotFinite
        )
    }

    /// Size of the state of a slot in bytes.
    pub fn slot_bytes(&self) -> usize {
        match self {
            Self::Count => 1,
            Self::NanCount | Self::InfCount { .. } | Self::AnyNotFinite | Self::EqualCount(_) => 8,
            Self::Min | Self::Max | Self::MinRest | Self::MaxRest => 9,
            Self::Range | Self::FiniteRange => 18,
            Self::ArgMin | Self::ArgMax | Self::Product => 16,
            Self::Sum
            | Self::SumRest
            | Self::Mean
            | Self::NanMean
            | Self::LargeSum
            | Self::LargeMean
            | Self::LargeNanMean
            | Self::NormL1
            | Self::NormL2 => 32,
            Self::SoftmaxTotal => 24,
            Self::Moments { .. } => 48,
            Self::Histogram { bins, .. } => bins * 8 + 32,
        }
    }

    /// Creates an accumulator for an element type. `global` maps a slot to its number in the output.
    pub fn accumulator(
        &self,
        dtype: ElementType,
        slots: usize,
        global: &dyn Fn(usize) -> usize,
    ) -> AccumulatorResult {
        let is_float = matches!(dtype, ElementType::F16 | ElementType::F32 | ElementType::F64);
        match self {
            Self::Sum => sum::<PLAIN>(SumResult::Total, dtype, slots),
            Self::SumRest => sum::<PLAIN>(SumResult::Rest, dtype, slots),
            Self::NanMean if is_float => match ComputeType::for_dtype(dtype) {
                ComputeType::F32 => boxed(FloatSum::<f32, PLAIN, true>::new(SumResult::Mean, false, slots)),
                _ => boxed(FloatSum::<f64, PLAIN, true>::new(SumResult::Mean, false, slots)),
            },
            Self::Mean | Self::NanMean => sum::<PLAIN>(SumResult::Mean, dtype, slots),
            Self::LargeSum => boxed(FloatSum::<f64, SCALED, false>::new(SumResult::Total, false, slots)),
            Self::LargeMean => boxed(FloatSum::<f64, SCALED, false>::new(SumResult::Mean, false, slots)),
            Self::LargeNanMean => boxed(FloatSum::<f64, SCALED, true>::new(SumResult::Mean, false, slots)),
            Self::NormL1 => sum::<MAGNITUDE>(SumResult::Total, dtype, slots),
            Self::NormL2 => match dtype {
                // These squares are not exact in f64.
                ElementType::I32 => boxed(IntegerSum::<i64, SQUARE>::new(SumResult::Root, slots)),
                ElementType::U32 => boxed(IntegerSum::<u64, SQUARE>::new(SumResult::Root, slots)),
                ElementType::I64 => boxed(FloatSum::<i64, SQUARE, false>::new(SumResult::Root, false, slots)),
                ElementType::U64 => boxed(FloatSum::<u64, SQUARE, false>::new(SumResult::Root, false, slots)),
                _ => sum::<SQUARE>(SumResult::Root, dtype, slots),
            },
            Self::EqualCount(Some(number)) => match *number {
                Value::F32(number) if number.is_nan() => boxed(Tally::<f32, NAN>::new(0.0, false, slots)),
                Value::F64(number) if number.is_nan() => boxed(Tally::<f64, NAN>::new(0.0, false, slots)),
                Value::F32(number) => boxed(Tally::<f32, EQUAL>::new(number, false, slots)),
                Value::F64(number) => boxed(Tally::<f64, EQUAL>::new(number, false, slots)),
                Value::I64(number) => boxed(Tally::<i64, EQUAL>::new(number, false, slots)),
                Value::U64(number) => boxed(Tally::<u64, EQUAL>::new(number, false, slots)),
            },
            Self::Count => Ok(counter(dtype, slots, false)),
            Self::EqualCount(None) => Ok(counter(dtype, slots, true)),
            Self::NanCount | Self::InfCount { .. } | Self::AnyNotFinite if !is_float => {
                Ok(counter(dtype, slots, true))
            }
            Self::NanCount => match ComputeType::for_dtype(dtype) {
                ComputeType::F32 => boxed(Tally::<f32, NAN>::new(0.0, true, slots)),
                _ => boxed(Tally::<f64, NAN>::new(0.0, true, slots)),
            },
            &Self::InfCount { any } => match ComputeType::for_dtype(dtype) {
                ComputeType::F32 => boxed(Tally::<f32, INFINITE>::new(0.0, any, slots)),
                _ => boxed(Tally::<f64, INFINITE>::new(0.0, any, slots)),
            },
            Self::AnyNotFinite => match ComputeType::for_dtype(dtype) {
                ComputeType::F32 => boxed(Tally::<f32, NOT_FINITE>::new(0.0, true, slots)),
                _ => boxed(Tally::<f64, NOT_FINITE>::new(0.0, true, slots)),
            },
            Self::Product => match ComputeType::for_dtype(dtype) {
                ComputeType::F32 => boxed(Product::<f32, false>::new(slots)),
                ComputeType::F64 if is_float => boxed(Product::<f64, true>::new(slots)),
                ComputeType::F64 => boxed(Product::<f64, false>::new(slots)),
                ComputeType::I64 => boxed(Product::<i64, false>::new(slots)),
                ComputeType::U64 => boxed(Product::<u64, false>::new(slots)),
            },
            Self::Moments { skip_nan: true } if is_float => match ComputeType::for_dtype(dtype) {
                ComputeType::F32 => boxed(Moments::<f32, true>::new(slots)),
                _ => boxed(Moments::<f64, true>::new(slots)),
            },
            Self::SoftmaxTotal => match ComputeType::for_dtype(dtype) {
                ComputeType::F32 => boxed(SoftmaxTotal::<f32>::new(slots)),
                ComputeType::F64 => boxed(SoftmaxTotal::<f64>::new(slots)),
                ComputeType::I64 => boxed(SoftmaxTotal::<i64>::new(slots)),
                ComputeType::U64 => boxed(SoftmaxTotal::<u64>::new(slots)),
            },
            _ => match ComputeType::for_dtype(dtype) {
                ComputeType::F32 => self.typed::<f32>(slots, global),
                ComputeType::F64 => self.typed::<f64>(slots, global),
                ComputeType::I64 => self.typed::<i64>(slots, global),
                ComputeType::U64 => self.typed::<u64>(slots, global),
            },
        }
    }

    /// Reductions with the same implementation for all types.
    fn typed<T: Compute>(&self, slots: usize, global: &dyn Fn(usize) -> usize) -> AccumulatorResult {
        match self {
            Self::Min => boxed(Extreme::<T, false>::new(slots)),
            Self::Max => boxed(Extreme::<T, true>::new(slots)),
            Self::MinRest => boxed(Extreme::<T, false>::rest(slots)),
            Self::MaxRest => boxed(Extreme::<T, true>::rest(slots)),
            Self::Range => boxed(Range::<T>::new(slots)),
            Self::FiniteRange => boxed(FiniteRange::<T>::new(slots)),
            Self::ArgMin => boxed(Arg::<T, false>::new(slots)),
            Self::ArgMax => boxed(Arg::<T, true>::new(slots)),
            Self::Histogram { bins, ranges, outliers } => {
                let range = |slot: usize| match ranges[..] {
                    [all] => all,
                    _ => ranges.get(global(slot)).copied().unwrap_or([f64::NAN; 2]),
                };
                boxed(Histogram::<T>::new(*bins, *outliers, &range, slots))
            }
            _ => boxed(Moments::<T, false>::new(slots)),
        }
    }
}

fn boxed<A: Accumulator>(made: Result<A, OutOfMemory>) -> AccumulatorResult {
    Ok(Box::new(made?))
}

fn counter(dtype: ElementType, slots: usize, never: bool) -> Box<dyn Accumulator> {
    Box::new(Count { slots, compute: ComputeType::for_dtype(dtype), never })
}

fn sum<const TERM: u8>(result: SumResult, dtype: ElementType, slots: usize) -> AccumulatorResult {
    let exact = !matches!(dtype, ElementType::F16 | ElementType::F32 | ElementType::F64);
    match ComputeType::for_dtype(dtype) {
        ComputeType::F32 => boxed(FloatSum::<f32, TERM, false>::new(result, exact, slots)),
        ComputeType::F64 => boxed(FloatSum::<f64, TERM, false>::new(result, exact, slots)),
        ComputeType::I64 => boxed(IntegerSum::<i64, TERM>::new(result, slots)),
        ComputeType::U64 => boxed(IntegerSum::<u64, TERM>::new(result, slots)),
    }
}
