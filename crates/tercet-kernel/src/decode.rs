//! Decoding of packed values: missing values become NaN, all others are scaled.

use tercet_core::ElementType;

use crate::compute::{Compute, ComputeType, Value};
use crate::simd::{Work, vectorized};
use crate::widen::gather;

/// Decoding of stored values to f64: `value · scale + offset`, or NaN.
#[derive(Clone, Debug, PartialEq)]
pub struct Decode {
    /// Stored values that mean "missing", as values of the compute type of the element type. NaN is always missing.
    pub missing: Vec<Value>,
    /// Inclusive range of the stored values that are valid; all others are missing.
    pub valid: Option<(Value, Value)>,
    /// Factor.
    pub scale: f64,
    /// Summand.
    pub offset: f64,
}

/// Number of values widened at a time.
const BLOCK: usize = 256;

impl Decode {
    /// Decodes every `stride`th little-endian element of `bytes`, starting with the first.
    pub fn gather(&self, dtype: ElementType, bytes: &[u8], stride: usize, out: &mut [f64]) {
        let compute = ComputeType::for_dtype(dtype);
        let mut words = [0u64; BLOCK];
        let step = BLOCK * stride.max(1) * dtype.size();
        for (number, out) in out.chunks_mut(BLOCK).enumerate() {
            let from = bytes.get(number * step..).unwrap_or_default();
            let wide = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..out.len() * compute.size()];
            gather(dtype, from, stride, compute, wide);
            match compute {
                ComputeType::F32 => self.values::<f32>(wide, out),
                ComputeType::F64 => self.values::<f64>(wide, out),
                ComputeType::I64 => self.values::<i64>(wide, out),
                ComputeType::U64 => self.values::<u64>(wide, out),
            }
        }
    }

    fn values<T: Compute>(&self, values: &[u8], out: &mut [f64]) {
        let values = bytemuck::cast_slice::<u8, T>(values);
        let (low, high) = match self.valid {
            Some((low, high)) => (T::from_value(low), T::from_value(high)),
            None => (T::LOWEST, T::HIGHEST),
        };
        vectorized(Affine { values, out: &mut *out, low, high, scale: self.scale, offset: self.offset });
        for &missing in &self.missing {
            let missing = T::from_value(missing);
            for (out, &value) in out.iter_mut().zip(values) {
                *out = if value == missing { f64::NAN } else { *out };
            }
        }
    }
}

struct Affine<'a, T> {
    values: &'a [T],
    out: &'a mut [f64],
    low: T,
    high: T,
    scale: f64,
    offset: f64,
}

impl<T: Compute> Work for Affine<'_, T> {
    type Output = ();
    #[inline(always)]
    fn work(self) {
        let Self { values, out, low, high, scale, offset } = self;
        for (out, &value) in out.iter_mut().zip(values) {
            let is_valid = (low <= value) & (value <= high);
            let decoded = value.to_f64() * scale + offset;
            *out = if is_valid { decoded } else { f64::NAN };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_values_are_scaled_and_missing_ones_are_nan() {
        let stored: Vec<i16> = (0..700).map(|n| if n % 7 == 3 { -999 } else { n }).collect();
        let bytes: Vec<u8> = stored.iter().flat_map(|value| value.to_le_bytes()).collect();
        let decode = Decode {
            missing: vec![Value::F32(-999.0)],
            valid: Some((Value::F32(-2000.0), Value::F32(500.0))),
            scale: 0.01,
            offset: 273.15,
        };
        for stride in [1usize, 3] {
            let mut out = vec![0.0; stored.len().div_ceil(stride)];
            decode.gather(ElementType::I16, &bytes, stride, &mut out);
            for (found, &value) in out.iter().zip(stored.iter().step_by(stride)) {
                let expected = f64::from(value) * 0.01 + 273.15;
                let is_missing = value == -999 || value > 500;
                assert!(if is_missing { found.is_nan() } else { *found == expected }, "{value}: {found}");
            }
        }
    }

    #[test]
    fn whole_numbers_are_compared_exactly() {
        let stored = [i64::MIN, i64::MIN + 1, 1 << 53, (1 << 53) + 1];
        let bytes: Vec<u8> = stored.iter().flat_map(|value| value.to_le_bytes()).collect();
        let missing = vec![Value::I64(i64::MIN), Value::I64(1 << 53)];
        let decode = Decode { missing, valid: None, scale: 1.0, offset: 0.0 };
        let mut out = [0.0; 4];
        decode.gather(ElementType::I64, &bytes, 1, &mut out);
        assert_eq!(out.map(f64::is_nan), [true, false, true, false]);
    }
}
