//! Conversion of element types.

use tercet_core::DType;

use super::model::{Number, number_at, push_number};

/// Converts elements to another type. Returns the largest absolute error.
///
/// Floats are rounded to narrower floats. An integer that does not fit, and a float that is not a whole number in the range of an
/// integer type, is an error: its position and its text.
#[expect(clippy::cast_possible_truncation, reason = "rounding is the conversion")]
pub(crate) fn cast(from: DType, to: DType, bytes: &[u8], out: &mut [u8]) -> Result<f64, (usize, String)> {
    use tercet_core::tensor::f16;
    let (size, wide) = (from.size().unwrap_or(1), to.size().unwrap_or(1));
    let mut largest = 0f64;
    let mut buffer = Vec::with_capacity(8);
    for (position, (element, slot)) in bytes.chunks_exact(size).zip(out.chunks_exact_mut(wide)).enumerate() {
        let number = number_at(from, element).ok_or_else(|| (position, from.to_string()))?;
        // Fast paths; `push_number` accepts exact values only.
        let rounded = match (number, to) {
            (Number::Float(value), DType::F64) => {
                slot.copy_from_slice(&value.to_le_bytes());
                Some(value)
            }
            (Number::Float(value), DType::F32) => {
                slot.copy_from_slice(&(value as f32).to_le_bytes());
                Some(f64::from(value as f32))
            }
            (Number::Float(value), DType::F16) => {
                slot.copy_from_slice(&f16::from_f64(value).to_le_bytes());
                Some(f16::from_f64(value).to_f64())
            }
            (Number::Int(_), DType::F32 | DType::F16 | DType::F64) => {
                let value = number.as_f64();
                let rounded = match to {
                    DType::F64 => value,
                    DType::F32 => f64::from(value as f32),
                    _ => f16::from_f64(value).to_f64(),
                };
                match to {
                    DType::F64 => slot.copy_from_slice(&value.to_le_bytes()),
                    DType::F32 => slot.copy_from_slice(&(value as f32).to_le_bytes()),
                    _ => slot.copy_from_slice(&f16::from_f64(value).to_le_bytes()),
                }
                Some(rounded)
            }
            _ => None,
        };
        if let Some(rounded) = rounded {
            let value = number.as_f64();
            if rounded.is_infinite() && value.is_finite() {
                return Err((position, format!("{value:?}")));
            }
            if value.is_finite() {
                largest = largest.max((value - rounded).abs());
            }
            continue;
        }
        buffer.clear();
        if !push_number(to, number, &mut buffer) {
            return Err((
                position,
                match number {
                    Number::Int(value) => value.to_string(),
                    Number::Float(value) => format!("{value:?}"),
                },
            ));
        }
        slot.copy_from_slice(&buffer);
    }
    Ok(largest)
}

/// The largest absolute difference of two arrays of one type, and the position of the first difference. A NaN equals a NaN; any
/// other non-finite difference is infinite.
pub(crate) fn difference(dtype: DType, left: &[u8], right: &[u8]) -> Option<(f64, usize)> {
    if left == right {
        return None;
    }
    let (size, parts) = match dtype {
        DType::C64 => (4, Some(DType::F32)),
        DType::C128 => (8, Some(DType::F64)),
        other => (other.size().unwrap_or(1), Some(other)),
    };
    let dtype = parts.unwrap_or(dtype);
    let mut found: Option<(f64, usize)> = None;
    for (position, (left, right)) in left.chunks_exact(size).zip(right.chunks_exact(size)).enumerate() {
        if left == right {
            continue;
        }
        let distance = match (number_at(dtype, left), number_at(dtype, right)) {
            (Some(Number::Float(left)), Some(Number::Float(right))) => {
                if left.is_nan() && right.is_nan() {
                    continue;
                }
                let distance = (left - right).abs();
                if distance.is_nan() { f64::INFINITY } else { distance }
            }
            (Some(left), Some(right)) => (left.as_f64() - right.as_f64()).abs(),
            _ => f64::INFINITY,
        };
        let (largest, first) = found.unwrap_or((0.0, position));
        found = Some((largest.max(distance), first));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_do_not_fit_are_refused_with_their_position() {
        let mut out = [0u8; 2];
        assert_eq!(cast(DType::I16, DType::I8, &[1, 0, 200, 0], &mut out), Err((1, "200".to_owned())));
        assert_eq!(cast(DType::I16, DType::U8, &[1, 0, 200, 0], &mut out), Ok(0.0));
        assert_eq!(out, [1, 200]);
        let values: Vec<u8> = [0.1f64, f64::NAN].iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut narrow = [0u8; 8];
        let error = cast(DType::F64, DType::F32, &values, &mut narrow).unwrap();
        assert!(error > 0.0 && error < 1e-8);
        assert!(cast(DType::F64, DType::F32, &1e300f64.to_le_bytes(), &mut narrow[..4]).is_err());
        assert!(cast(DType::F64, DType::I32, &0.5f64.to_le_bytes(), &mut narrow[..4]).is_err());
        assert!(cast(DType::F64, DType::I32, &f64::NAN.to_le_bytes(), &mut narrow[..4]).is_err());
    }
}
