//! Predicates: evaluate which values pass a filter.

mod bound;
#[cfg(test)]
mod tests;

pub(crate) use bound::fill_value;

use tercet_core::{Element, ElementType, with_element};
use tercet_kernel::{ComputeType, Value};

use super::number::{Number, Rank};
use crate::query::operation::Scalar;
use crate::query::resolved::Filter;
use crate::stats::{Range, Stats};

/// A filter, compiled for an element type: inclusive bounds that are values of the type.
///
/// Null is NaN, or equal to the fill value. Null fails every comparison except `ne`, which it always passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Predicate<T: Number> {
    /// Bounds of non-null values that pass. If they are in the wrong order, no value passes.
    low: T::Rank,
    high: T::Rank,
    /// Excluded value within the bounds; it fails if it is not null.
    barred: Option<T::Rank>,
    /// Fill values. Not set for NaN, which is always null.
    fills: [Option<T::Rank>; 2],
    null_passes: bool,
}

impl<T: Number> Predicate<T> {
    pub(crate) fn new(filter: &Filter, fills: [Option<Scalar>; 2]) -> Self {
        let value = |number| fill_value::<T>(number).map(Number::rank);
        let bounds = [
            filter.eq.map(|number| value(number).map(|only| (only, only))),
            filter.ge.map(|number| bound::at_least::<T>(number, true).map(|low| (low, T::Rank::HIGHEST))),
            filter.gt.map(|number| bound::at_least::<T>(number, false).map(|low| (low, T::Rank::HIGHEST))),
            filter.le.map(|number| bound::at_most::<T>(number, true).map(|high| (T::Rank::LOWEST, high))),
            filter.lt.map(|number| bound::at_most::<T>(number, false).map(|high| (T::Rank::LOWEST, high))),
            // With `is_null`, only null values pass.
            filter.is_null.then_some(None),
        ];
        let (mut low, mut high) = (T::Rank::LOWEST, T::Rank::HIGHEST);
        for bounds in bounds.into_iter().flatten() {
            let (least, most) = bounds.unwrap_or((T::Rank::HIGHEST, T::Rank::LOWEST));
            low = if least > low { least } else { low };
            high = if most < high { most } else { high };
        }
        let is_compared = [filter.eq, filter.ge, filter.gt, filter.le, filter.lt].iter().any(Option::is_some);
        Self {
            low,
            high,
            barred: filter.ne.and_then(value),
            fills: fills.map(|fill| fill.and_then(value).filter(|fill| !fill.is_nan())),
            null_passes: !is_compared && !filter.is_not_null,
        }
    }

    /// Whether a value passes.
    #[inline(always)]
    pub(crate) fn passes(&self, value: T) -> bool {
        let value = value.rank();
        let is = |other: Option<T::Rank>| other.is_some_and(|other| value == other);
        let null = value.is_nan() | is(self.fills[0]) | is(self.fills[1]);
        let between = (self.low <= value) & (value <= self.high) & !is(self.barred);
        (null & self.null_passes) | (!null & between)
    }

    /// Whether any value of a chunk may pass, by its statistics.
    pub(crate) fn may_match(&self, stats: &Stats) -> bool {
        if stats.nan_count > 0 && self.null_passes {
            return true;
        }
        if stats.nan_count >= stats.count {
            return false;
        }
        match stats.range {
            Range::Signed { min, max, .. } => {
                self.is_within(i128::from(min), i128::from(max), Number::to_i128)
            }
            Range::Unsigned { min, max, .. } => {
                self.is_within(i128::from(min), i128::from(max), Number::to_i128)
            }
            Range::Float { min, max, .. } => {
                // An invalid range proves nothing.
                min.is_nan() || max.is_nan() || self.is_within(min, max, Number::to_f64)
            }
        }
    }

    /// Whether all values of a chunk are between the bounds and none is null, by its statistics.
    pub(crate) fn passes_all(&self, stats: &Stats) -> bool {
        let between = match stats.range {
            Range::Signed { min, max, .. } => {
                self.encloses(i128::from(min), i128::from(max), Number::to_i128)
            }
            Range::Unsigned { min, max, .. } => {
                self.encloses(i128::from(min), i128::from(max), Number::to_i128)
            }
            // An invalid range proves nothing: comparisons with NaN are false.
            Range::Float { min, max, .. } => self.encloses(min, max, Number::to_f64),
        };
        stats.nan_count == 0 && between && self.barred.is_none()
    }

    /// Whether all values from `min` to `max` are between the bounds and none is a fill value.
    fn encloses<V: PartialOrd>(&self, min: V, max: V, exact: impl Fn(T::Rank) -> V) -> bool {
        let is_apart = |fill: T::Rank| exact(fill) < min || max < exact(fill);
        exact(self.low) <= min && max <= exact(self.high) && self.fills.into_iter().flatten().all(is_apart)
    }

    /// Whether any value from `min` to `max` may pass; `exact` converts the bounds for the comparison.
    fn is_within<V: PartialOrd>(&self, min: V, max: V, exact: impl Fn(T::Rank) -> V) -> bool {
        let is_only = |value: Option<T::Rank>| value.is_some_and(|value| exact(value) == min && min == max);
        let is_within = |fill: T::Rank| min <= exact(fill) && exact(fill) <= max;
        if self.fills.into_iter().flatten().any(is_within) && self.null_passes {
            return true;
        }
        let is_excluded = self.fills.into_iter().chain([self.barred]).any(is_only);
        exact(self.low) <= max && min <= exact(self.high) && !is_excluded
    }
}

/// Converts a number to an element type, then widens it to a compute type: its bytes.
pub(crate) fn compute_value(number: Scalar, dtype: ElementType, compute: ComputeType) -> Option<[u8; 8]> {
    let value = with_element!(dtype, |T| fill_value::<T>(number).map(|value| widened(value, compute)))?;
    let mut bytes = [0; 8];
    match &value {
        Value::F32(value) => bytes[..4].copy_from_slice(bytemuck::bytes_of(value)),
        Value::F64(value) => bytes.copy_from_slice(bytemuck::bytes_of(value)),
        Value::I64(value) => bytes.copy_from_slice(bytemuck::bytes_of(value)),
        Value::U64(value) => bytes.copy_from_slice(bytemuck::bytes_of(value)),
    }
    Some(bytes)
}

/// Converts the fill value of a query to the compute type of the elements.
pub(crate) fn compute_fill(number: Scalar, dtype: ElementType) -> Option<Value> {
    with_element!(dtype, |T| fill_value::<T>(number)
        .map(|value| widened(value, ComputeType::for_dtype(dtype))))
}

/// Filter for values of a compute type.
pub(crate) fn compute_filter(
    filter: &Filter,
    fills: [Option<Scalar>; 2],
    dtype: ElementType,
    compute: ComputeType,
) -> tercet_kernel::Filter {
    with_element!(dtype, |T| {
        let predicate = Predicate::<T>::new(filter, fills);
        tercet_kernel::Filter {
            low: widened(predicate.low, compute),
            high: widened(predicate.high, compute),
            barred: predicate.barred.map(|value| widened(value, compute)),
            fills: predicate.fills.map(|fill| fill.map(|value| widened(value, compute))),
            null_passes: predicate.null_passes,
        }
    })
}

fn widened<T: Element>(value: T, compute: ComputeType) -> Value {
    Value::widened(T::ELEMENT, bytemuck::bytes_of(&value.swap_le()), compute)
}
