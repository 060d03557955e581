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
        values.all(|values| vectorized(All(self.typed(values))))
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
