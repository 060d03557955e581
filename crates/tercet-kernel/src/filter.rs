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
    /// Fill value. Not set for NaN, which is always null.
    pub fill: Option<Value>,
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

    fn typed_mask<T: Compute>(&self, values: &[u8], out: &mut [bool]) {
        vectorized(Mask {
            values: bytemuck::cast_slice::<u8, T>(values),
            out,
            low: T::from_value(self.low),
            high: T::from_value(self.high),
            barred: self.barred.map(T::from_value),
            fill: self.fill.map(T::from_value),
            null_passes: self.null_passes,
        });
    }
}

struct Mask<'a, T> {
    values: &'a [T],
    out: &'a mut [bool],
    low: T,
    high: T,
    barred: Option<T>,
    fill: Option<T>,
    null_passes: bool,
}

impl<T: Compute> Work for Mask<'_, T> {
    type Output = ();
    #[inline(always)]
    fn work(self) {
        let Self { values, out, low, high, barred, fill, null_passes } = self;
        let is = |value: T, other: Option<T>| other.is_some_and(|other| value == other);
        for (&value, out) in values.iter().zip(out) {
            let null = value.is_nan() | is(value, fill);
            let between = (low <= value) & (value <= high) & !is(value, barred);
            *out = (null & null_passes) | (!null & between);
        }
    }
}
