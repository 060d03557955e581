//! Which values a filter lets through.

mod bound;
#[cfg(test)]
mod tests;

pub(crate) use bound::fill_value;

use super::number::{Number, Rank};
use super::simd::{Work, vectorized};
use crate::query::operation::Scalar;
use crate::query::resolved::Filter;
use crate::stats::{Range, Stats};

/// A filter, compiled for an element type: inclusive bounds that are values of the type.
///
/// Null is NaN, or equal to the fill value. Null fails every comparison but `ne`, which it always passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Predicate<T: Number> {
    /// Bounds of what passes, if it is not null. Nothing is between them if they are in the wrong order.
    low: T::Rank,
    high: T::Rank,
    /// A value between the bounds that does not pass, if it is not null.
    barred: Option<T::Rank>,
    /// The fill value. NaN is none: it is null anyway.
    fill: Option<T::Rank>,
    null_passes: bool,
}

impl<T: Number> Predicate<T> {
    pub(crate) fn new(filter: &Filter, fill: Option<Scalar>) -> Self {
        let value = |number| fill_value::<T>(number).map(Number::rank);
        let bounds = [
            filter.eq.map(|number| value(number).map(|only| (only, only))),
            filter.ge.map(|number| bound::at_least::<T>(number, true).map(|low| (low, T::Rank::HIGHEST))),
            filter.gt.map(|number| bound::at_least::<T>(number, false).map(|low| (low, T::Rank::HIGHEST))),
            filter.le.map(|number| bound::at_most::<T>(number, true).map(|high| (T::Rank::LOWEST, high))),
            filter.lt.map(|number| bound::at_most::<T>(number, false).map(|high| (T::Rank::LOWEST, high))),
            // Of null, only what is null passes.
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
            fill: fill.and_then(value).filter(|fill| !fill.is_nan()),
            null_passes: !is_compared && !filter.is_not_null,
        }
    }

    /// Whether a value passes.
    #[inline(always)]
    pub(crate) fn passes(&self, value: T) -> bool {
        let value = value.rank();
        let is = |other: Option<T::Rank>| other.is_some_and(|other| value == other);
        let null = value.is_nan() | is(self.fill);
        let between = (self.low <= value) & (value <= self.high) & !is(self.barred);
        (null & self.null_passes) | (!null & between)
    }

    /// Whether a value of a chunk may pass, by its statistics.
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
                // A range that is none tells nothing.
                min.is_nan() || max.is_nan() || self.is_within(min, max, Number::to_f64)
            }
        }
    }

    /// Whether a value from `min` to `max` may pass, which `exact` makes comparable.
    fn is_within<V: PartialOrd>(&self, min: V, max: V, exact: impl Fn(T::Rank) -> V) -> bool {
        let is_only = |value: Option<T::Rank>| value.is_some_and(|value| exact(value) == min && min == max);
        let fill = self.fill.map(&exact).is_some_and(|fill| min <= fill && fill <= max);
        if fill && self.null_passes {
            return true;
        }
        exact(self.low) <= max && min <= exact(self.high) && !is_only(self.fill) && !is_only(self.barred)
    }

    /// Appends the values that pass.
    pub(crate) fn compact(&self, values: &[T], out: &mut Vec<T>) {
        let mut mask = [false; 1024];
        for values in values.chunks(mask.len()) {
            let mask = &mut mask[..values.len()];
            self.mask(values, mask);
            match mask.iter().map(|&passes| usize::from(passes)).sum::<usize>() {
                0 => {}
                all if all == values.len() => out.extend_from_slice(values),
                _ => {
                    let start = out.len();
                    out.resize(start + values.len(), T::default());
                    let mut end = start;
                    // Every value is written, and the next one over it if it does not pass: no branch to guess.
                    for (&value, &passes) in values.iter().zip(&*mask) {
                        out[end] = value;
                        end += usize::from(passes);
                    }
                    out.truncate(end);
                }
            }
        }
    }

    /// Says of each value whether it passes.
    fn mask(&self, values: &[T], out: &mut [bool]) {
        vectorized(Mask { predicate: self, values, out });
    }
}

struct Mask<'a, T: Number> {
    predicate: &'a Predicate<T>,
    values: &'a [T],
    out: &'a mut [bool],
}

impl<T: Number> Work for Mask<'_, T> {
    type Output = ();
    #[inline(always)]
    fn work(self) {
        let predicate = *self.predicate;
        for (&value, out) in self.values.iter().zip(self.out) {
            *out = predicate.passes(value);
        }
    }
}
