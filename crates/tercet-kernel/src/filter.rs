//! Filter: evaluates which values pass.

use crate::compute::{Compute, Value};
use crate::simd::{Work, vectorized};

/// A filter: inclusive bounds, and the treatment of null values (NaN or the fill value).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Filter {
    /// Lower bound of non-null values that pass. If `low` is greater than `high`, no value passes.
    pub low: Value,
    /// Upper bound; see `low`.
    pub high: Value,
    /// Excluded value within the bounds; it fails if it is not null.
    pub barred: Option<Value>,
    /// Fill values. Not set for NaN, which is always null.
    pub fills: [Option<Value>; 2],
    /// Whether null values pass.
    pub null_passes: bool,
}

impl Filter {
    /// Evaluates the filter: a boolean mask of `values`. The values have the type of the bounds.
    pub fn mask(&self, values: &[u8], out: &mut [bool]) {
        match self.low {
            Value::F32(_) => self.typed_mask::<f32>(values, out),
            Value::F64(_) => self.typed_mask::<f64>(values, out),
            Value::I64(_) => self.typed_mask::<i64>(values, out),
            Value::U64(_) => self.typed_mask::<u64>(values, out),
        }
    }

    /// Whether all of the values pass. The values have the type of the bounds.
    pub fn passes_all(&self, values: &[u8]) -> bool {
        match self.low {
            Value::F32(_) => self.typed_all::<f32>(values),
            Value::F64(_) => self.typed_all::<f64>(values),
            Value::I64(_) => self.typed_all::<i64>(values),
            Value::U64(_) => self.typed_all::<u64>(values),
        }
    }

    fn typed_all<T: Compute>(&self, values: &[u8]) -> bool {
        /// Number of values between two looks at the result.
        const LOOK: usize = 1 << 10;
        let mut values = bytemuck::cast_slice::<u8, T>(values).chunks(LOOK);
        let test = self.typed::<T>(&[]);
        let only_nulls_fail =
            !test.null_passes && test.barred.is_none() && test.low == T::LOWEST && test.high == T::HIGHEST;
        match test.fills {
            _ if !only_nulls_fail => values.all(|values| vectorized(All(self.typed(values)))),
            [None, None] => !T::FLOAT || values.all(|values| vectorized(NoNull { values, fills: [] })),
            [one, other] => {
                let fills = [one.or(other), other.or(one)].map(Option::unwrap_or_default);
                values.all(|values| vectorized(NoNull { values, fills }))
            }
        }
    }

    fn typed<'a, T: Compute>(&self, values: &'a [T]) -> TypedFilter<'a, T> {
        TypedFilter {
            values,
            low: T::from_value(self.low),
            high: T::from_value(self.high),
            barred: self.barred.map(T::from_value),
            fills: self.fills.map(|fill| fill.map(T::from_value)),
            null_passes: self.null_passes,
        }
    }

    fn typed_mask<T: Compute>(&self, values: &[u8], out: &mut [bool]) {
        vectorized(Mask { test: self.typed(bytemuck::cast_slice::<u8, T>(values)), out });
    }
}

/// A filter of one type, and the values to test.
struct TypedFilter<'a, T> {
    values: &'a [T],
    low: T,
    high: T,
    barred: Option<T>,
    fills: [Option<T>; 2],
    null_passes: bool,
}

impl<T: Compute> TypedFilter<'_, T> {
    #[inline(always)]
    fn passes(&self, value: T) -> bool {
        let is = |other: Option<T>| other.is_some_and(|other| value == other);
        let null = value.is_nan() | is(self.fills[0]) | is(self.fills[1]);
        let between = (self.low <= value) & (value <= self.high) & !is(self.barred);
        (null & self.null_passes) | (!null & between)
    }
}

struct Mask<'a, T> {
    test: TypedFilter<'a, T>,
    out: &'a mut [bool],
}

impl<T: Compute> Work for Mask<'_, T> {
    type Output = ();
    #[inline(always)]
    fn work(self) {
        let Self { test, out } = self;
        for (&value, out) in test.values.iter().zip(out) {
            *out = test.passes(value);
        }
    }
}

struct All<'a, T>(TypedFilter<'a, T>);

impl<T: Compute> Work for All<'_, T> {
    type Output = bool;
    #[inline(always)]
    fn work(self) -> bool {
        let Self(test) = self;
        test.values.iter().fold(true, |all, &value| all & test.passes(value))
    }
}

/// Test of the most common filter: values that are neither NaN nor a fill value pass.
struct NoNull<'a, T, const FILLS: usize> {
    values: &'a [T],
    fills: [T; FILLS],
}

impl<T: Compute, const FILLS: usize> NoNull<'_, T, FILLS> {
    #[inline(always)]
    fn is_null(&self, value: T) -> bool {
        let mut null = value.is_nan();
        for fill in 0..FILLS {
            null |= value == self.fills[fill];
        }
        null
    }
}

impl<T: Compute, const FILLS: usize> Work for NoNull<'_, T, FILLS> {
    type Output = bool;
    #[inline(always)]
    fn work(self) -> bool {
        /// Lanes of counters as wide as the values.
        const LANES: usize = 32;
        let (groups, tail) = self.values.as_chunks::<LANES>();
        let mut nulls = [T::ordinal(0); LANES];
        for group in groups {
            for lane in 0..LANES {
                nulls[lane] = T::next_if(nulls[lane], self.is_null(group[lane]));
            }
        }
        let mut none = true;
        for lane in 0..LANES {
            none &= nulls[lane] == T::ordinal(0);
        }
        none & tail.iter().fold(true, |none, &value| none & !self.is_null(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The quick test of complete values equals the mask of single ones.
    #[test]
    fn values_without_nulls_are_complete() {
        let any = (Value::F32(f32::NEG_INFINITY), Value::F32(f32::INFINITY));
        for fills in [[None; 2], [Some(-9.0), None], [None, Some(7.5)], [Some(-9.0), Some(7.5)]] {
            let fills = fills.map(|fill: Option<f32>| fill.map(Value::F32));
            let filter = Filter { low: any.0, high: any.1, barred: None, fills, null_passes: false };
            for len in [1usize, 31, 32, 33, 1024, 1500] {
                for null in [f32::NAN, -9.0, 7.5, 1.0] {
                    for at in [0, len / 2, len - 1] {
                        let mut values = vec![2.5f32; len];
                        values[at] = null;
                        let bytes: &[u8] = bytemuck::cast_slice(&values);
                        let mut mask = vec![false; len];
                        filter.mask(bytes, &mut mask);
                        let all = mask.iter().all(|&passes| passes);
                        assert_eq!(filter.passes_all(bytes), all, "{fills:?} {len} {null} {at}");
                    }
                }
            }
        }
        let (low, high) = (Value::I64(i64::MIN), Value::I64(i64::MAX));
        for fill in [None, Some(Value::I64(3))] {
            let filter = Filter { low, high, barred: None, fills: [fill, None], null_passes: false };
            assert_eq!(filter.passes_all(bytemuck::cast_slice(&[1i64, 2, 3])), fill.is_none());
            assert!(filter.passes_all(bytemuck::cast_slice(&[1i64, 2, 4, 0])));
        }
    }
}
